"""A service for tests of workers: it dies, hangs, eats memory, or answers nonsense."""

import gc
import os
import sys
import time


def crash(request):
    os.kill(os.getpid(), 11)


def hang(request):
    time.sleep(3600)


def take(request):
    return {"status": "ok", "size": len(bytearray(request["bytes"]))}


def echo(request):
    return {"status": "ok", "value": request["value"], "types": [
        type(v).__name__ for v in request["value"]]}


def garble(request):
    """What a kernel could do that finds the pipe: write bytes of its own into the answers."""
    for number in range(3, 64):
        try:
            os.write(number, bytes(request["bytes"]))
        except OSError:
            continue
    sys.stdout.flush()
    return {"status": "ok"}


def count(request):
    """Tells each number on the way."""
    for number in range(request["upto"]):
        if number == request.get("die"):
            os.kill(os.getpid(), 11)
        yield {"number": number}
        time.sleep(request.get("wait", 0))
    return {"status": "ok", "upto": request["upto"]}


def searched(request):
    """How many objects a search for garbage walks over, and how many it leaves out."""
    return {"status": "ok", "walked": len(gc.get_objects()), "left": gc.get_freeze_count()}


HANDLERS = {"count": count, "crash": crash, "hang": hang, "take": take, "echo": echo,
            "garble": garble, "searched": searched}
