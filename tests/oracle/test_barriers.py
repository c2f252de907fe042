"""Kernels have the launch parameters of apache-tvm's, and pass the same barriers or fewer."""

import random

import mlc_lab as tvm
from backend import gpu_programs as programs
from lower.thread_sums import of, together
from mlc_lab import te, topi
from mlc_lab.schedule import Schedule
from mlc_lab.tir import stmt as S
from mlc_lab.tir.op import as_int

from .bridge import ask, needs_oracle


def passed(s):
    """How often a thread passes a barrier."""
    if type(s) is S.Evaluate:
        return int(getattr(s.value.op, "name", "") == "tir.tvm_storage_sync")
    inside = sum(passed(c) for c in s.children() if isinstance(c, S.Stmt))
    return inside and inside * (as_int(s.extent) if type(s) is S.For else 1)


def lowered(mod):
    """What the bridge tells of TVM's kernel."""
    kernels = [f for v, f in tvm.lower(mod, target="cuda").functions.items()
               if v.name_hint.endswith("_kernel")]
    (func,) = kernels
    extents = {}
    s = func.body
    while not isinstance(s, (S.SeqStmt, S.For)) and hasattr(s, "body"):
        if type(s) is S.AttrStmt and s.attr_key == "thread_extent":
            extents[s.node.thread_tag] = as_int(s.value)
        s = s.body
    return {"barriers": passed(func.body), "extents": extents}


def pipelines():
    """Products with tiles in shared memory, as they are and with their loop as a pipeline."""
    rng = random.Random(0)
    for vthreads in (False, True):
        for how in (None, [0, 0, 1], [0, 0, 2], [0, 1, 2], [0, 0, 3]):
            sch = programs.tiled_schedule(k=64, vthreads=vthreads, vector=rng.choice([1, 2, 4]))
            loops = sch.get_loops(sch.get_block("C_update"))
            k0 = next(rv for rv in loops if sch.get(rv).loop_var.name == "k_0")
            if how is not None:
                sch.annotate(k0, "software_pipeline_stage", how)
                sch.annotate(k0, "software_pipeline_order", [0, 1, 2])
            yield sch.mod


@needs_oracle
def test_launch_parameters_and_barriers():
    compared({mod: Schedule(mod).mod for mod in pipelines()})


@needs_oracle
def test_tiles_with_padded_rows():
    """A tile of padded rows that takes several rounds to fetch had a barrier in each round."""
    mods = [programs.padded_tiles(*sizes).mod for sizes in programs.PADDED]
    compared({mod: Schedule(mod).mod for mod in mods}, fewer_somewhere=False)


def compared(mods, fewer_somewhere=True):
    """Ours have the launch parameters of what TVM makes of the same programs, and the same barriers
    or fewer; in some fewer."""
    cases = [{"program": theirs.script(), "lower": True} for theirs in mods.values()]
    fewer = 0
    for mod, answer in zip(mods, ask(cases)):
        assert "error" not in answer, answer["error"]
        theirs, ours = answer["lowered"], lowered(mod)
        assert ours["extents"] == theirs["extents"]
        assert ours["barriers"] <= theirs["barriers"], (mod.script(), ours, theirs)
        fewer += ours["barriers"] < theirs["barriers"]
    assert fewer or not fewer_somewhere


def of_rows(width):
    """Operators that reduce rows."""
    A, g, b = (te.placeholder(shape, name=name) for name, shape in (
        ("A", (6, width)), ("g", (width,)), ("b", (width,))))
    yield te.create_prim_func([A, topi.nn.softmax(A, axis=1)])
    yield te.create_prim_func([A, g, topi.nn.rms_norm(A, g, [1])])
    yield te.create_prim_func([A, g, b, topi.nn.layer_norm(A, g, b, [1])])
    yield te.create_prim_func([A, topi.sum(A, axis=1)])


def row_a_block(func, threads, scope):
    """A block of threads for each row, whose threads reduce together; what is between lies in
    memory of a scope."""
    sch = Schedule(func)
    *before, last = sch.get_child_blocks(sch.get_block("root"))
    for block in before:
        reads = [r.buffer for r in sch.get(block).reads]
        if sch.get(block).init is None and len(sch.get_loops(block)) == 1 and reads:
            sch.compute_inline(block)  # a number for each row
            before = [b for b in before if b is not block]
    row, *inner = sch.get_loops(last)
    sch.bind(row, "blockIdx.x")
    sch.bind(sch.split(inner[0], [None, threads])[1], "threadIdx.x")
    for block in reversed(before):
        sch.set_scope(block, 0, scope)
        sch.compute_at(block, row)
        sch.bind(sch.split(sch.get_loops(block)[-1], [None, threads])[1], "threadIdx.x")
    return sch.mod


def rows():
    for width, threads in ((256, 32), (256, 256), (1000, 64), (1024, 1024)):
        for func in of_rows(width):
            for scope in ("shared", "local"):
                yield row_a_block(func, threads, scope)
        yield together("argmax", "float32", 6, width, threads)
    for case in (of(threads=8, beside=4), of(threads=16, beside=16), of(threads=24),
                 of(threads=32, beside=8, dtype="float16"), of(threads=64, beside=4),
                 of(threads=32, axes="yx", beside=32), of(threads=100), of(threads=20),
                 of(threads=64, dtype="int64"), of(threads=32, dtype="float64")):
        yield together(rows=64, width=320, **case)


@needs_oracle
def test_reductions_across_threads():
    """Softmax, norms, sums and argmax of rows: by shuffles, as TVM's."""
    compared({mod: mod["main"] for mod in rows()})
