"""A recording written by hand, so that views can be tested without the compiler.

The schedule of mm_relu 128, seven steps: one moves loops, one moves a block, one is refused. Keys
are given as the recorder would: loops by variable, blocks by name, iterators by name and block.
"""

import re

from mlc_lab.observe.recording import Recorder

HEAD = """\
# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), \
C: T.Buffer((128, 128), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        # with T.block("root"):
        Y = T.alloc_buffer((128, 128))
"""
RELU = """\
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(Y[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0.0))
"""
BODY = """\
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(Y[vi, vj])
                with T.init():
                    Y[vi, vj] = T.float32(0.0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
"""
START = HEAD + """\
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
""" + BODY + RELU
SPLIT_AXES = """\
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 8 + j_1)
                vk = T.axis.reduce(128, k)
"""
SPLIT = HEAD + """\
        for i, j_0, j_1, k in T.grid(128, 16, 8, 128):
            with T.block("Y"):
""" + SPLIT_AXES + BODY + RELU
REORDER = SPLIT.replace("i, j_0, j_1, k in T.grid(128, 16, 8, 128)",
                        "i, j_0, k, j_1 in T.grid(128, 16, 128, 8)")  # fmt: skip


def deeper(text, by=4):
    return "".join(" " * by + line + "\n" for line in text.splitlines())


MOVED_RELU = """\
            for ax0 in range(8):
                with T.block("C"):
                    vi = T.axis.spatial(128, i)
                    vj = T.axis.spatial(128, j_0 * 8 + ax0)
                    T.reads(Y[vi, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = T.max(Y[vi, vj], T.float32(0.0))
"""
COMPUTE_AT = HEAD + """\
        for i, j_0 in T.grid(128, 16):
            for k, j_1 in T.grid(128, 8):
                with T.block("Y"):
""" + deeper(SPLIT_AXES + BODY) + MOVED_RELU
INIT = """\
                with T.init():
                    Y[vi, vj] = T.float32(0.0)
"""
UPDATE = BODY.replace(INIT, "")
UPDATE = UPDATE.replace("T.reads(A", "T.reads(Y[vi, vj], A")
DECOMPOSE = HEAD + """\
        for i, j_0 in T.grid(128, 16):
            for j_1_init in range(8):
                with T.block("Y_init"):
                    vi = T.axis.spatial(128, i)
                    vj = T.axis.spatial(128, j_0 * 8 + j_1_init)
                    T.reads()
                    T.writes(Y[vi, vj])
                    Y[vi, vj] = T.float32(0.0)
            for k, j_1 in T.grid(128, 8):
                with T.block("Y_update"):
""" + deeper(SPLIT_AXES + UPDATE) + MOVED_RELU
VECTORIZE = DECOMPOSE.replace("""\
            for k, j_1 in T.grid(128, 8):
                with T.block("Y_update"):
""" + deeper(SPLIT_AXES + UPDATE), """\
            for k in range(128):
                for j_1 in T.vectorized(8):
                    with T.block("Y_update"):
""" + deeper(SPLIT_AXES + UPDATE, 8))

REFUSAL = """\
vectorize(loop=j_1) is refused

The rule: a vectorized loop's iterations run at once, so no iteration may depend on another.
Here two iterations of k write the same element of Y:

    for k, j_1 in T.grid(128, 8):
        ^
    iteration k=0, j_1=0 writes Y[0, 0]
    iteration k=1, j_1=0 reads and writes Y[0, 0]

What would make it legal: vectorize j_1, or decompose the reduction first.
"""

STEPS = [
    # op, Python, lead, program, cost
    ("start", "", [], START, (2.71e-3, 0.012, True, 0.0)),
    ("split", "j_0, j_1 = sch.split(loop=j, factors=[None, 8])",
     ['Y = sch.get_block(name="Y", func_name="main")', "i, j, k = sch.get_loops(block=Y)"],
     SPLIT, (2.69e-3, 0.015, True, 0.0)),
    ("reorder", "sch.reorder(i, j_0, k, j_1)", [], REORDER, (4.1e-4, 0.02, True, 1.1e-5)),
    ("reverse_compute_at", "sch.reverse_compute_at(block=C, loop=j_0)",
     ['C = sch.get_block(name="C", func_name="main")'], COMPUTE_AT, (3.62e-4, 0.011, True, 1.1e-5)),
    ("vectorize", "sch.vectorize(loop=k)", [], None, None),
    ("decompose_reduction", "Y_init = sch.decompose_reduction(block=Y, loop=k)", [], DECOMPOSE,
     (2.2e-4, 0.01, True, 1.1e-5)),
    ("vectorize", "sch.vectorize(loop=j_1)", [], VECTORIZE, (3.4e-5, 0.008, True, 1.2e-5)),
]  # fmt: skip

DOCS = {
    "start": "The program as it was.",
    "split": "Split a loop into several nested loops.\n\nThe factors, from the outermost in; one "
    "may be None and is inferred.\n\n    before:  for i in range(128): ...\n"
    "    after:   for i_0, i_1 in T.grid(16, 8): ...",
    "reorder": "Put loops of one nest into a new order.\n\nThe loops must be a chain.",
    "vectorize": "Run the iterations of a loop at once, in vector lanes.\n\n"
    "Legal where no iteration depends on another.",
    "reverse_compute_at": "Move a consumer block under a loop of its producer.",
    "decompose_reduction": "Split a reduction block into an init block and an update block.",
}


KINDS = {"T.vectorized": "vectorized", "T.parallel": "parallel"}
AXES = {"S": "spatial", "R": "reduce", "spatial": "spatial", "reduce": "reduce"}


def buffers(code):
    found = re.findall(r"(\w+)(?:: T\.Buffer| = T\.alloc_buffer)\(\(([\d, ]+)\)", code)
    return [["buffer", name, shape.rstrip(",").split(", "), "float32", "global"]
            for name, shape in found]  # fmt: skip


def parts_of(code):
    """What stands in a line, as the printer would say it."""
    loop = re.match(r"for ([\w, ]+) in (range|T\.\w+)\((.*)\):", code)
    if loop:
        names, extents = loop[1].split(", "), loop[3].split(", ")
        return [["loop", name, extent, KINDS.get(loop[2], "serial"), ""]
                for name, extent in zip(names, extents)]  # fmt: skip
    if block := re.match(r'with T\.block\("(\w+)"\)', code):
        return [["block", block[1]]]
    if remap := re.match(r'([\w, ]+) = T\.axis\.remap\("(\w+)", \[(.*)\]\)', code):
        return [["iterator", name, AXES[kind], value, "128"] for name, kind, value in
                zip(remap[1].split(", "), remap[2], remap[3].split(", "))]  # fmt: skip
    if axis := re.match(r"(\w+) = T\.axis\.(\w+)\((\d+), (.*)\)", code):
        return [["iterator", axis[1], AXES[axis[2]], axis[4], axis[3]]]
    if region := re.match(r"T\.(reads|writes)\((.*)\)", code):
        return [[region[1], region[2]]]
    if code.startswith(("@", "#")):
        return [["aside"]]
    head = re.match(r"((?:def|class) \w+)", code)
    if head or code == "with T.init():":
        return [["group", head[1] if head else "init"], *buffers(code)]
    return buffers(code)


def keyed(recorder, text):
    """((line, keys), parts) of a program, read off the text as the printer would give them."""
    block = "root"
    for line in text.splitlines():
        keys = []
        code = line.strip()
        loop = re.match(r"for ([\w, ]+) in", code)
        named = re.match(r'with T\.block\("(\w+)"\)', code)
        axis = re.match(r"([\w, ]+) = T\.axis\.", code)
        if code.startswith("def "):
            keys += [recorder.key("buffer", b, b) for b in re.findall(r"(\w+): T\.Buffer", code)]
        elif "T.alloc_buffer" in code:
            keys.append(recorder.key("buffer", code.split()[0], code.split()[0]))
        elif loop:
            for var in loop.group(1).split(", "):
                # The loops over C's rows and columns are other loops than those of Y.
                own = "C." if code == "for i, j in T.grid(128, 128):" else ""
                keys.append(recorder.key("loop", var, own + var))
        elif named:
            block = named.group(1).replace("Y_update", "Y")
            keys.append(recorder.key("block", block, block))
        elif axis:
            keys += [recorder.key("iterator", v, f"{block}.{v}") for v in axis.group(1).split(", ")]
        elif code.startswith(("T.reads", "T.writes")):
            keys.append(recorder.key("block", block, block, role=code[:8]))
        elif re.match(r"[YC]\[", code):
            init = "T.float32(0.0)" in code and "max" not in code
            keys.append(recorder.key("statement", "", "init" if init else block))
        yield (line, tuple(keys)), parts_of(code)


#: what comes from what: step -> {new: [old, ...]}, as (kind, name, identity)
ORIGINS = {
    1: {("loop", "j_0", "j_0"): [("loop", "j", "j")], ("loop", "j_1", "j_1"): [("loop", "j", "j")]},
    3: {("loop", "ax0", "ax0"): [("loop", "j", "C.j")]},
    5: {("loop", "j_1_init", "j_1_init"): [("loop", "j_1", "j_1")],
        ("block", "Y_init", "Y_init"): [("block", "Y", "Y")]},
}  # fmt: skip


def recording(measured=True):
    """The recording of the seven steps."""
    recorder = Recorder("main", "sch = tvm.tir.Schedule(MyModule)")
    kept = recorder.recording
    flops = 2 * 128**3 + 128**2
    now = None
    for op, python, lead, text, cost in STEPS:
        before = now
        if text is not None:
            now = recorder.program(*zip(*keyed(recorder, text)))
            before = now if before is None else before
            origins = [
                [recorder.key(*new), [recorder.key(*old) for old in olds]]
                for new, olds in ORIGINS.get(len(kept.steps), {}).items()
            ]
            recorder.step(op, python, before, now, lead, origins=origins)
        else:
            error = {"rule": "no loop-carried dependence", "message": REFUSAL}
            error["keys"] = [recorder.key("loop", "k", "k")]
            recorder.step(op, python, now, now, lead, error)
        if cost and measured:
            time, spread, equal, error = cost
            gflops = flops / time / 1e9
            kept.programs[now].cost = {
                "time": time, "spread": spread, "runs": 20, "equal": equal, "max_error": error,
                "gflops": gflops, "peak_fraction": gflops / 250.0,
            }  # fmt: skip
    if measured:
        kept.machine = {"cpu": "znver5", "cores": 1, "peak_gflops": 250.0}
        kept.flops = flops
    for op, doc in DOCS.items():
        recorder.doc(op, doc)
    return kept
