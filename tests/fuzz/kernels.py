"""Fuzz target "gpu": random kernels with random schedules compute what the interpreter says.

A case is a product with an epilogue, reductions of rows across threads, or a chain of kernels
through memory of its own, of random sizes that the tiles need not divide. The schedule is drawn; a
step that is refused is left out. The scheduled program is then held against the program before, on
the interpreter, on the simulated CUDA device, and on OpenCL and WebGPU where there is a device. No
two of its threads may clash, and it must be countable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.lower import LowerError
from mlc_lab.runtime.driver import driver_of
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source
from mlc_lab.tir.functor import pre_order
from mlc_lab.tir.op import as_int
from mlc_lab.tir.shuffles import is_shuffle
from mlc_lab.tir.stmt import SeqStmt

from .harness import Draw, counts, note


def _product(m, n, k, dtype):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({m}, {k}), "{dtype}"), B: T.Buffer(({k}, {n}), "{dtype}"),
         D: T.Buffer(({m}, {n}), "{dtype}")):
    C = T.alloc_buffer(({m}, {n}), "{dtype}")
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.{dtype}(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid({m}, {n}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.{dtype}(0)) + T.{dtype}(1)
""")


def _rows(rows, width, dtype, reduce):
    """A number for each row, or two: the maximum and its place."""
    if reduce == "argmax":
        return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {width}), "{dtype}"), D: T.Buffer(({rows},), "{dtype}"),
         C: T.Buffer(({rows},), "int32")):
    for i, k in T.grid({rows}, {width}):
        with T.block("C"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = -1
                D[v] = T.min_value("{dtype}")
            at: T.int32 = T.Select(D[v] > A[v, vk] or D[v] == A[v, vk] and C[v] < vk, C[v], vk)
            best: T.{dtype} = T.Select(D[v] > A[v, vk], D[v], A[v, vk])
            C[v] = at
            D[v] = best
""")
    first, step = {"sum": (f"T.{dtype}(0)", "C[v] + A[v, vk]"),
                   "max": (f'T.min_value("{dtype}")', "T.max(C[v], A[v, vk])")}[reduce]
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {width}), "{dtype}"), C: T.Buffer(({rows},), "{dtype}")):
    for i, k in T.grid({rows}, {width}):
        with T.block("C"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = {first}
            C[v] = {step}
""")


def _beyond_sum(rows, width, dtype, scope):
    """What all elements of a row have beyond its sum and its maximum."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {width}), "{dtype}"), O: T.Buffer(({rows}, {width}), "{dtype}")):
    C = T.alloc_buffer(({rows},), "{dtype}", scope="{scope}")
    M = T.alloc_buffer(({rows},), "{dtype}", scope="{scope}")
    for i, k in T.grid({rows}, {width}):
        with T.block("M"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[v] = T.min_value("{dtype}")
            M[v] = T.max(M[v], A[v, vk])
    for i, k in T.grid({rows}, {width}):
        with T.block("C"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = T.{dtype}(0)
            C[v] = C[v] + (A[v, vk] - M[v])
    for i, k in T.grid({rows}, {width}):
        with T.block("O"):
            v, vk = T.axis.remap("SS", [i, k])
            O[v, vk] = A[v, vk] * T.{dtype}(2) - C[v]
""")


#: what an element of a stage of a chain is, of values a and b from before, n elements each
_STAGES = ("{a}[v] + {t}(1)", "{a}[v] * {b}[v]", "{a}[v] + {b}[{n} - 1 - v]", "{a}[{n} - 1 - v]",
           "{b}[(v + 1) % {n}] - {a}[v]", "T.Select(v % 2 == 0, {a}[v], {b}[v])",
           "{a}[v // 2] + {a}[v]")  # fmt: skip


def _chained(draw: Draw, n: str, dtype: str):
    """Stages that read what was made before, some of them sums. Long or symbolic ones share
    memory."""
    head = (f"def main(a: T.handle, b: T.handle, o: T.handle):\n"
            f"    {'n = T.int32()' if n == 'n' else 'pass'}\n")  # fmt: skip
    given, body = ["A", "B"], []
    buffers = [f'    {b.upper()} = T.match_buffer({b}, ({n},), "{dtype}")\n' for b in "abo"]
    stages = draw.integer(3, 7)
    for at in range(stages):
        a, b = draw.choice(given), draw.choice(given)
        name = "O" if at == stages - 1 else f"V{at}"
        value = draw.choice(_STAGES).format(a=a, b=b, n=n, t=f"T.{dtype}")
        store = f"{name}[v] = {value}"
        sums = draw.chance(15)
        if sums:
            store = (f"k = T.axis.reduce(3, r)\n            with T.init():\n                "
                     f"{name}[v] = T.{dtype}(0)\n            "
                     f"{name}[v] = {name}[v] + {a}[v] * {b}[k]")  # fmt: skip
        grid = f"i, r in T.grid({n}, 3)" if sums else f"i in range({n})"
        body.append(f"    for {grid}:\n        with T.block('S{at}'):\n            "
                    f"v = T.axis.spatial({n}, i)\n            {store}\n")  # fmt: skip
        if name != "O":
            given.append(name)
            buffers.append(f'    {name} = T.alloc_buffer(({n},), "{dtype}")\n')
    order = list(range(3, len(buffers)))
    while order:  # memory is declared in any order
        buffers.append(buffers[order.pop(draw.integer(0, len(order) - 1))])
    kept = dict.fromkeys(buffers[::-1])  # the last place of each
    return from_source("@T.prim_func\n" + head + "".join([*list(kept)[::-1], *body]))


def _bound(draw: Draw, sch: Schedule, stages: list[str]) -> None:
    """Each stage a kernel of its own; some pairs are one."""
    for name in stages:
        block = sch.get_block(name)
        if draw.chance(20):
            readers = sch.get_consumers(block)
            if len(readers) == 1 and _tried("compute_inline", sch.compute_inline, block) is None:
                continue
        if draw.chance(20):
            _tried("cache_read", sch.cache_read, block, 0, "global")
    for block in sch.get_child_blocks(sch.get_block("root")):
        loops = sch.get_loops(block)
        outer, inner = sch.split(loops[0], [None, draw.choice([1, 8, 32, 37])])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")


_REFUSED = object()


def _tried(name, step, *args):
    """What a step gives; _REFUSED where it is refused."""
    try:
        out = step(*args)
    except ScheduleError:
        counts[f"refused {name}"] += 1
        return _REFUSED
    counts[f"accepted {name}"] += 1
    return out


def _fetch(draw, sch, block, at, under, depth, threads):
    """An operand in shared memory, fetched by all threads together, or by each for itself."""
    copy = _tried("cache_read", sch.cache_read, block, at, draw.choice(["shared", "local"]))
    if copy is _REFUSED:
        return
    if _tried("compute_at", sch.compute_at, copy, under) is _REFUSED:
        return
    if sch.get(copy).writes[0].buffer.scope() != "shared":
        return
    own = sch.get_loops(copy)[depth:]
    if not own:
        return
    fused = sch.fuse(*own) if len(own) > 1 else own[0]
    vector = draw.choice([1, 2, 4])
    _, inner, lanes = sch.split(fused, [None, threads, vector])
    _tried("bind", sch.bind, inner, "threadIdx.x")
    if vector > 1:
        _tried("vectorize", sch.vectorize, lanes)
    if draw.chance(30):
        _tried("storage_align", sch.storage_align, copy, 0, 0, 8, 1)


def _pipeline(draw: Draw, sch: Schedule, loop: Any) -> None:
    """The statements of a loop work on different iterations, if lowering finds that they may."""
    body = sch.get(loop).body
    parts = len(body.seq) if isinstance(body, SeqStmt) else 1
    stages = sorted(draw.integer(0, 3) for _ in range(parts))
    orders = list(range(parts))
    if draw.chance(40):
        orders = orders[::-1]
    sch.annotate(loop, "software_pipeline_stage", stages)
    sch.annotate(loop, "software_pipeline_order", orders)
    if draw.chance(30):
        sch.annotate(loop, "software_pipeline_async_stages", [stages[0]])
    counts["pipelines"] += 1


def _tiles(draw: Draw, sch: Schedule) -> None:
    """Tiles of blocks, virtual threads, threads and elements; operands fetched a tile at a time."""
    block, last = sch.get_block("C"), sch.get_block("D")
    i, j = sch.get_loops(last)
    sizes = [[draw.choice([1, 2]), draw.choice([4, 1, 2, 3]), draw.choice([1, 2, 3])]
             for _ in "ij"]
    (i0, i1, i2, i3), (j0, j1, j2, j3) = (
        sch.split(loop, [None, *size]) for loop, size in zip((i, j), sizes))
    sch.reorder(i0, j0, i1, j1, i2, j2, i3, j3)
    grid = sch.fuse(i0, j0)
    sch.bind(grid, "blockIdx.x")
    if draw.chance(50):
        sch.bind(i1, "vthread.y")
        sch.bind(j1, "vthread.x")
    tx = sch.fuse(i2, j2)
    sch.bind(tx, "threadIdx.x")
    sch.set_scope(block, 0, "local")
    if _tried("compute_at", sch.compute_at, block, tx) is _REFUSED:
        return
    own = sch.get_loops(block)[4:]
    if not own:  # all of extent 1
        return
    *inner, k = own
    k0, _ = sch.split(k, [None, draw.choice([4, 1, 2, 3])])
    depth = 5  # loops down to k0
    if inner and _tried("reorder", sch.reorder, k0, *inner) is _REFUSED:
        depth += len(inner)
    for at in (0, 1):
        if draw.chance(70):
            _fetch(draw, sch, block, at, k0, depth, sizes[0][1] * sizes[1][1])
    if draw.chance(60):
        _tried("decompose_reduction", sch.decompose_reduction, block, k0)
    if draw.chance(60):
        _pipeline(draw, sch, k0)


#: threads that reduce a row: parts of a warp, a warp, several, with a last one that is not full
_TOGETHER = [4, 8, 5, 32, 7, 16, 2, 24, 33, 64, 97, 128, 256]


def _groups(draw: Draw, sch: Schedule) -> None:
    """Rows over blocks and an axis of threads, the reduction over another one, or over two."""
    i, k = sch.get_loops("C")
    reducing, grouping = draw.choice([("x", "y"), ("x", "z"), ("y", "x"), ("xy", "z")])
    each = [None, draw.choice([1, 2, 3, 4])]
    # some blocks do several rows, one after the other
    i0, *_, i1 = sch.split(i, each if draw.chance(80) else [1, *each])
    sch.bind(i0, "blockIdx.x")
    threads = draw.choice(_TOGETHER)
    _tried("bind", sch.bind, i1, f"threadIdx.{grouping}")
    if reducing == "xy":
        _, k0, k1 = sch.split(k, [None, -(-threads // 4), 4])
        _tried("bind", sch.bind, k0, "threadIdx.y")
        _tried("bind", sch.bind, k1, "threadIdx.x")
        return
    factors = [None, threads]
    k0, k1 = sch.split(k, factors if draw.chance(70) else factors[::-1])
    lanes = k1 if draw.chance(70) else k0
    _tried("bind", sch.bind, lanes, f"threadIdx.{reducing}")
    if draw.chance(30):
        _tried("reorder", sch.reorder, k1, k0)


def _in_one(draw: Draw, sch: Schedule) -> None:
    """A block of threads for a row, or for several: all of them need what they have reduced."""
    threads = draw.choice(_TOGETHER)
    i, k = sch.get_loops("O")
    # in memory of a block a thread finds the rows of all
    own = sch.get(sch.get_block("C")).writes[0].buffer.scope() == "local"
    i0, i1 = sch.split(i, [None, draw.choice([1, 2, 4]) if own else 1])
    sch.bind(sch.split(k, [None, threads])[1], "threadIdx.x")
    sch.bind(i0, "blockIdx.x")
    _tried("bind", sch.bind, i1, "threadIdx.y")
    for name in "CM":
        if _tried("compute_at", sch.compute_at, sch.get_block(name), i1) is not _REFUSED:
            own = sch.get_loops(name)[2:]  # none where all are of extent 1
            for loop in own[-1:]:
                inner = sch.split(loop, [None, threads])[1]
                _tried("bind", sch.bind, inner, "threadIdx.x")


def case(draw: Draw) -> None:
    """One kernel."""
    dtype = draw.choice(["int32", "float32"])
    length = draw.integer(3, 40)
    if draw.chance(25):
        n = draw.choice(["n", str(length), str(length + 1024)])
        mod = _chained(draw, n, dtype)
        sch = Schedule(mod)
        root = sch.get_block("root")
        _bound(draw, sch, [sch.get(b).name_hint for b in sch.get_child_blocks(root)])
        length = length if n == "n" else int(n)
    elif draw.chance(50):
        mod = _product(*(draw.integer(1, 20) for _ in "mnk"), dtype)
        sch = Schedule(mod)
        _tiles(draw, sch)
    else:
        dtype = draw.choice([dtype, dtype, "float16", "int64"])
        rows, width = draw.integer(1, 9), draw.integer(1, draw.choice([70, 300]))
        if draw.chance(35):
            mod = _beyond_sum(rows, width, dtype, draw.choice(["local", "shared", "global"]))
            sch = Schedule(mod)
            _in_one(draw, sch)
        else:
            mod = _rows(rows, width, dtype, draw.choice(["sum", "max", "argmax"]))
            sch = Schedule(mod)
            _groups(draw, sch)
    note(sch.mod.script())
    rng = np.random.default_rng(draw.integer(0, 9))
    shapes = [sch.mod["main"].buffer_map[p].shape for p in sch.mod["main"].params]
    types = [sch.mod["main"].buffer_map[p].dtype for p in sch.mod["main"].params]
    # sums are exact in any order: 300 differences of at most 6 in float16
    least, end = (-3, 4) if dtype == "float16" else (-9, 9)
    arrays = [rng.integers(least, end, [length if as_int(d) is None else int(d) for d in shape])
              .astype(kind) for shape, kind in zip(shapes, types)]  # fmt: skip
    want, got = ([a.copy() for a in arrays] for _ in range(2))
    interpret(mod, *want)
    interpret(sch.mod, *got)
    np.testing.assert_array_equal(got[-1], want[-1], "the interpreter, scheduled")
    for kind, without in (("cuda", ()), ("opencl", ("float16",)), ("webgpu", ("float16", "int64"))):
        if kind != "cuda" and (driver_of(kind).simulated or not {*types}.isdisjoint(without)):
            continue
        try:
            rt = tvm.build(sch.mod, target=kind)
        except LowerError as error:
            counts[f"refused by lowering: {str(error).partition(':')[2][:60]}"] += 1
            if kind == "webgpu":  # which has fewer threads and less memory than the others
                continue
            return
        there = [tvm.nd.array(a, tvm.device(kind, 0)) for a in arrays]
        rt["main"](*there)
        np.testing.assert_array_equal(there[-1].numpy(), want[-1], f"the device {kind}")
        counts[f"ran on {kind}"] += 1
    lowered = tvm.lower(sch.mod, target="cuda")
    if any(is_shuffle(x) for f in lowered.functions.values() for x in pre_order(f)):
        counts["has shuffles"] += 1
        got = [a.copy() for a in arrays]
        interpret(lowered, *got)
        np.testing.assert_array_equal(got[-1], want[-1], "the interpreter, lowered")
    # memory that has no place inside of the kernel is an argument of it, which all blocks share:
    # they store the same numbers there
    given = [p for f in lowered.functions.values() for p in f.params
             if p.dtype == "handle" and getattr(p, "storage_scope", "global") not in ("", "global")]
    if not given:
        races = tvm.find_races(sch.mod, "cuda", arrays=arrays)
        assert not races, f"threads clash:\n{races}"
        counts["has no races"] += 1
    for kernel in tvm.count_gpu(sch.mod, "cuda", arrays=arrays):
        assert kernel.modelled.seconds >= 0
