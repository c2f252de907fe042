"""Processes that run what may crash, hang or eat memory, for the search and for the views.

`pool.py` is the side that asks, `child.py` the process that answers, `messages.py` what travels
between them. What a process can do is a *service*: a module with a table `HANDLERS`, from what a
request wants done ("do") to a function that takes the request and returns the answer, both of them
dicts; `load(role)`, if it is there, loads what requests will need. A function that is a generator
yields what is told before the answer, which it returns.

Kept libraries do this only in part: pebble and loky import the user's main module again, which a
notebook or a script without a guard does not stand, limit no memory, and unpickle what comes back
from a process that ran anything at all.
"""
