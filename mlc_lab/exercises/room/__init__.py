"""A lecture that asks: students say on their phones what a step will do, then it is shown.

`mlc-lab class NOTEBOOK` serves the steppers of a notebook on the local network. The teacher's page
shows them in guess mode and the answers as they come; students join with a PIN and install nothing.

A reader's path: `questions.py` (what is asked, and what is so), `room.py` (who may do what),
`journal.py` (the hour as a file), `slow.py` (who is too quick has to wait), `server.py` (the web
server, the one file that needs tornado), `command.py`.
"""
