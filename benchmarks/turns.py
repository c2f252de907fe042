"""Contestants in processes of their own, which take turns: a line of JSON for a line of JSON.

So what else the machine does meets all of them, no contestant's libraries, threads or allocations
are another's, and a peer compiler needs to be installed in its own Python only.
"""

import json
import os
import subprocess
import sys
import threading


def start(script, which, python=sys.executable):
    """A process that runs `python script --serve which` on one thread."""
    environment = dict(os.environ, TVM_NUM_THREADS="1", MLC_LAB_NUM_THREADS="1")
    return subprocess.Popen(
        [python, script, "--serve", which], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, env=environment,
    )  # fmt: skip


def ask(process, limit=None, **request):
    """The answer to a request; {"error": ...} after `limit` seconds, when the process is ended."""
    timer = threading.Timer(limit, process.kill) if limit else None
    if timer:
        timer.start()
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except OSError:
        line = ""
    finally:
        if timer:
            timer.cancel()
    if line:
        return json.loads(line)
    process.wait()
    late = limit and process.returncode == -9
    return {"error": f"no answer in {limit:g} s" if late else "the process ended"}


def serve(answer):
    """Answer requests until there are no more: `answer(**request)` gives a dict.

    What it raises is sent back as {"error": ...}, so that one case does not end the comparison.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    for line in sys.stdin:
        try:
            reply = answer(**json.loads(line))
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"[:2000]}
        out.write(json.dumps(reply) + "\n")
        out.flush()


def stop(process):
    """End a process that `start` began, or that ended by itself."""
    if process is not None:
        if process.poll() is None:
            process.stdin.close()
        process.wait()
