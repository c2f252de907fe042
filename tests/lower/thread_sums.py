"""Programs whose threads reduce together, and what numpy says of them."""

import numpy as np
from mlc_lab.ir import dtype as dt
from mlc_lab.ir.module import IRModule
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

BODIES = {
    "sum": ("T.{d}(0)", "C[v] + A[v, r]"),
    "max": ('T.min_value("{d}")', "T.max(C[v], A[v, r])"),
}


def of(**choices):
    """The arguments of `together` in a table of cases."""
    return choices


def program(kind, dtype, rows, width):
    """A row's sum, maximum, or maximum with its place."""
    if kind == "argmax":
        return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {width}), "{dtype}"), C: T.Buffer(({rows},), "{dtype}"),
         D: T.Buffer(({rows},), "int32")):
    for i, k in T.grid({rows}, {width}):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                D[v] = -1
                C[v] = T.min_value("{dtype}")
            a: T.int32 = T.Select(C[v] > A[v, r] or C[v] == A[v, r] and D[v] < r, D[v], r)
            b: T.{dtype} = T.Select(C[v] > A[v, r], C[v], A[v, r])
            D[v] = a
            C[v] = b
""")
    first, step = BODIES[kind]
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {width}), "{dtype}"), C: T.Buffer(({rows},), "{dtype}")):
    for i, k in T.grid({rows}, {width}):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = {first.format(d=dtype)}
            C[v] = {step}
""")


def together(kind="sum", dtype="float32", rows=3, width=40, threads=8, beside=1,
             axes="xy", loop=False):
    """Threads of axis `axes[0]` reduce a row together; `beside` rows on `axes[1]` in a block. With
    two letters first, as in "xy,z", threads of both reduce. With `loop`, each block does several
    rows, one after the other."""
    sch = Schedule(program(kind, dtype, rows, width))
    reducing, _, grouping = axes.partition(",") if "," in axes else (axes[0], "", axes[1])
    i, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, beside])
    parts = [threads] if len(reducing) == 1 else [threads // 4, 4]
    k0, *inner = sch.split(k, [None, *parts])
    sch.reorder(i0, i1, k0, *inner)
    if not loop:
        sch.bind(i0, "blockIdx.x")
    if beside > 1:
        sch.bind(i1, f"threadIdx.{grouping}")
    for loop_of, letter in zip(inner, reversed(reducing)):
        sch.bind(loop_of, f"threadIdx.{letter}")
    return sch.mod


def in_a_loop(rows=4, width=40, threads=40):
    """One block, which reduces a row after another."""
    return IRModule.from_expr(from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {width}), "float32"), C: T.Buffer(({rows},), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in range({rows}):
            for k in T.thread_binding({threads}, thread="threadIdx.x"):
                for r in range({-(-width // threads)}):
                    with T.block("C"):
                        v = T.axis.spatial({rows}, i)
                        vr = T.axis.reduce({width}, r * {threads} + k)
                        T.where(r * {threads} + k < {width})
                        with T.init():
                            C[v] = T.float32(0)
                        C[v] = C[v] + A[v, vr]
"""))


def under_a_condition(threads):
    """Threads of a fourth row, which is not there, do not come to the loops of the others."""
    return IRModule.from_expr(from_source(f"""
@T.prim_func
def main(A: T.Buffer((3, {2 * threads}), "float32"), C: T.Buffer((3,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for y in T.thread_binding(4, thread="threadIdx.y"):
            if y < 3:
                for k in T.thread_binding({threads}, thread="threadIdx.x"):
                    for r in range(2):
                        with T.block("C"):
                            v = T.axis.spatial(3, y)
                            vr = T.axis.reduce({2 * threads}, r * {threads} + k)
                            with T.init():
                                C[v] = T.float32(0)
                            C[v] = C[v] + A[v, vr]
"""))


def for_all(rows=3, width=40, threads=8, beside=1, scope="local"):
    """What a row has beyond its sum: each thread needs the result."""
    sch = Schedule(from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {width}), "float32"), B: T.Buffer(({rows}, {width}), "float32")):
    C = T.alloc_buffer(({rows},), scope="{scope}")
    for i, k in T.grid({rows}, {width}):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + A[v, r]
    for i, k in T.grid({rows}, {width}):
        with T.block("B"):
            v, vk = T.axis.remap("SS", [i, k])
            B[v, vk] = A[v, vk] - C[v]
"""))
    i, k = sch.get_loops("B")
    i0, i1 = sch.split(i, [None, beside])
    sch.bind(sch.split(k, [None, threads])[1], "threadIdx.x")
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.y")
    sch.compute_at("C", i1)
    sch.bind(sch.split(sch.get_loops("C")[-1], [None, threads])[1], "threadIdx.x")
    return sch.mod


def arrays(mod, seed=0):
    """Arguments, whose sums are exact: small whole numbers."""
    rng = np.random.default_rng(seed)
    buffers = mod["main"].buffer_map.values()
    return [rng.integers(0 if b.dtype[0] == "u" else -4, 5, [int(n) for n in b.shape]).astype(
        dt.numpy_dtype(b.dtype)) if b.name == "A" else np.zeros(
            [int(n) for n in b.shape], dt.numpy_dtype(b.dtype)) for b in buffers]


def expected(kind, a):
    """What numpy says."""
    if kind == "for all":
        return [a - a.sum(1, keepdims=True)]
    if kind == "argmax":
        return [a.max(1), a.argmax(1).astype("int32")]
    return [(a.sum(1, dtype=np.float64) if kind == "sum" else a.max(1)).astype(a.dtype)]
