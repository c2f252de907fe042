"""A class of twelve, and what each of them hands in: well, badly and with malice."""

from mlc_lab import exercises

IDS = ["01.1", "01.2", "01.5", "09.2"]

CLASS = ["Ada Lovelace", "Bob Stone", "Ivy <img src=x onerror=alert(1)>", "=1+1|calc", "Dee Page",
         "Eve Zipf", "Fay Upward", "Gus Levels", "Hal Years", "Ida Bytes", "Jon Forks", "Kim Reads"]
ADA, BOB, IMG, FORMULA, HTML, BOMB, CLIMBS, DEEP, YEARS, MEMORY, FORKS, READS = CLASS
#: the points of each, of 4, 5, 3 and 5
POINTS = {
    ADA: [4, 5, 3, 5], IMG: [4, 5, 3, 5], FORMULA: [4, 5, 0, 5], BOB: [1, 2, 1, 3],
    HTML: [0, 0, 0, 0], BOMB: [0, 0, 0, 0], CLIMBS: [4, 5, 3, 5], DEEP: [0, 0, 0, 0],
    YEARS: [1, 0, 3, 0], MEMORY: [1, 5, 3, 0], FORKS: [4, 5, 3, 0], READS: [4, 5, 3, 0]}

SCRIPT = "</textarea></script><script>alert(1)</script><img src=x onerror=alert(1)>"

#: loops that would run for 10 ** 27 steps; each is legal, and so is the program
LONG = """
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float32"), B: T.Buffer(({m},), "float32"),
         C: T.Buffer(({n}, {m}), "float32")):
    for a, b, c in T.grid(1000000000, 1000000000, 1000000000):
        for i, j in T.grid({n}, {m}):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vj]
"""
#: the right program, with a buffer of 4 terabytes beside it
LARGE = """
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float32"), B: T.Buffer(({m},), "float32"),
         C: T.Buffer(({n}, {m}), "float32")):
    D = T.alloc_buffer((1048576, 1048576))
    for i, j in T.grid({n}, {m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = A[vi, vj]
            C[vi, vj] = D[vi, vj] + B[vj]
"""
IN_MUTATE = "def mutate(factors, most, seed):\n    "
#: starts processes, and sleeps where it may not
FORKING = IN_MUTATE + """import os, time
    for _ in range(100):
        try:
            if os.fork() == 0: time.sleep(10 ** 9)
        except (OSError, AttributeError): pass
    time.sleep(10 ** 9)
"""
#: tells what stands in files, and what a server says
READING = IN_MUTATE + """import glob, os, socket
    found = []
    for path in ["/etc/passwd", *glob.glob("/home/*/.*"), *glob.glob("/root/.*"), "../roster.json"]:
        try: found.append(open(path).read())
        except OSError: pass
    for port in 22, 80, 443, 8888:
        try: found.append(repr(socket.create_connection(("127.0.0.1", port), 1)))
        except OSError: pass
    try: open("/tmp/written-by-an-answer", "w").write("x"); found.append("written")
    except OSError: pass
    raise Exception("found " + " ".join(found)[:1000])
"""


def reference(id, seed):
    """A right answer."""
    return exercises.get(id).variant(seed).reference


def answers(student, seed):
    """What a student answers, by exercise; those whose file is hostile have right ones."""
    values = exercises.get("01.1").variant(seed).values
    right = {id: reference(id, seed) for id in IDS}
    return {
        ADA: right,
        IMG: right,
        FORMULA: {**right, "01.5": {"A": 1, "B": 2, "C": 3}},
        BOB: {id: exercises.get(id).variant(seed).wrong[0].answer for id in IDS},
        HTML: {"01.1": SCRIPT, "01.2": f"sch.get_block('{SCRIPT}')", "01.5": {"A": SCRIPT},
               "09.2": IN_MUTATE + f"raise Exception({SCRIPT!r})"},
        YEARS: {**right, "01.1": LONG.format(**vars(values)),
                "01.2": "i, j, k = sch.get_loops('C')\nsch.split(i, factors=[None, 10 ** 30])",
                "09.2": IN_MUTATE + "while True: pass"},
        MEMORY: {**right, "01.1": LARGE.format(**vars(values)),
                 "09.2": IN_MUTATE + "return [0] * (1 << 42)"},
        FORKS: {**right, "09.2": FORKING},
        READS: {**right, "09.2": READING},
    }.get(student, right)
