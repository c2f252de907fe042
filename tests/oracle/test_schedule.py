"""The same trace on the same module gives the same script as apache-tvm."""

import random

from mlc_lab.arith import Analyzer
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.structural import structural_equal
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source
from mlc_lab.tir.functor import Mutator
from schedule.common import chain, matmul, mm_relu, row_sum, stencil

from .bridge import ask, needs_oracle

PROGRAMS = {"matmul": matmul, "mm_relu": mm_relu, "chain": chain, "row_sum": row_sum,
            "stencil": stencil}

CASES = [
    ("matmul", lambda s, C: s.split(s.get_loops(C)[1], factors=[None, 4])),
    ("matmul", lambda s, C: s.split(s.get_loops(C)[1], factors=[3, None, 2])),
    ("matmul", lambda s, C: s.split(s.get_loops(C)[0], factors=[None, 1],
                                    preserve_unit_iters=False)),
    ("matmul", lambda s, C: s.fuse(*s.get_loops(C)[:2])),
    ("matmul", lambda s, C: s.fuse(*s.get_loops(C))),
    ("matmul", lambda s, C: s.split(s.fuse(*s.get_loops(C)[:2]), factors=[None, 7])),
    ("matmul", lambda s, C: s.reorder(*reversed(s.get_loops(C)))),
    ("matmul", lambda s, C: s.parallel(s.get_loops(C)[0])),
    ("matmul", lambda s, C: s.vectorize(s.get_loops(C)[1])),
    ("matmul", lambda s, C: s.unroll(s.get_loops(C)[2])),
    ("matmul", lambda s, C: s.bind(s.get_loops(C)[0], "blockIdx.x")),
    ("matmul", lambda s, C: s.add_unit_loop(C)),
    ("matmul", lambda s, C: s.add_unit_loop(s.get_loops(C)[1])),
    ("matmul", lambda s, C: s.annotate(C, "key", "value")),
    ("matmul", lambda s, C: s.annotate(s.get_loops(C)[0], "pragma_auto_unroll_max_step", 16)),
    ("matmul", lambda s, C: s.decompose_reduction(C, s.get_loops(C)[2])),
    ("matmul", lambda s, C: s.decompose_reduction(C, s.get_loops(C)[0])),
    ("row_sum", lambda s, B: s.decompose_reduction(B, s.get_loops(B)[1])),
    ("mm_relu", lambda s, C: s.reverse_compute_at(C, s.get_loops(s.get_block("Y"))[0])),
    ("mm_relu", lambda s, C: s.reverse_compute_at(C, s.get_loops(s.get_block("Y"))[1])),
    ("mm_relu", lambda s, C: s.compute_at(s.get_block("Y"), s.get_loops(C)[1])),
    ("chain", lambda s, D: s.compute_at(s.get_block("C"), s.get_loops(D)[0])),
    ("chain", lambda s, D: s.compute_at(s.get_block("C"), s.get_loops(D)[1],
                                        preserve_unit_loops=True)),
    ("chain", lambda s, D: s.reverse_compute_at(D, s.get_loops(s.get_block("C"))[0])),
    ("chain", lambda s, D: s.compute_inline(s.get_block("B"))),
    ("chain", lambda s, D: s.reverse_compute_inline(D)),
    ("stencil", lambda s, C: s.compute_inline(s.get_block("B"))),
    ("stencil", lambda s, C: s.compute_at(
        s.get_block("B"), s.split(s.get_loops(C)[0], factors=[4, 4])[0])),
    ("stencil", lambda s, C: s.compute_at(
        s.get_block("B"), s.split(s.get_loops(C)[0], factors=[None, 5])[0])),
]


def lines(sch):
    return [line.strip() for line in str(sch.trace).split("\n")[2:] if line.strip() != "pass"]


@needs_oracle
def test_each_primitive_gives_tvms_script():
    schedules = []
    for name, step in CASES:
        sch = Schedule(PROGRAMS[name])
        last = sch.get_child_blocks(sch.get_block("root"))[-1]
        step(sch, last)
        schedules.append((name, sch))
    answers = ask([{"program": Schedule(PROGRAMS[n]).mod.script(), "trace": lines(s)}
                   for n, s in schedules])
    for (_, sch), answer in zip(schedules, answers):
        assert not answer.get("error") and not answer["refused"], answer
        assert sch.mod.script() == answer["script"]
        assert str(sch.trace) == answer["trace"]


def random_schedule(func, seed):
    rng = random.Random(seed)
    sch = Schedule(func)
    names = [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_block("root"))]
    for _ in range(rng.randint(1, 5)):
        try:
            block = sch.get_block(rng.choice(names))
            loops = sch.get_loops(block)
            step = rng.choice(["split", "fuse", "reorder", "kind", "at", "rat", "decompose"])
            if step == "split":
                sch.split(rng.choice(loops), factors=[None, rng.choice([2, 3, 4, 5])])
            elif step == "fuse" and len(loops) > 1:
                at = rng.randrange(len(loops) - 1)
                sch.fuse(loops[at], loops[at + 1])
            elif step == "reorder":
                sch.reorder(*rng.sample(loops, len(loops)))
            elif step == "kind":
                getattr(sch, rng.choice(["parallel", "vectorize", "unroll"]))(rng.choice(loops))
            elif step in ("at", "rat"):
                other = sch.get_block(rng.choice(names))
                place = rng.choice(sch.get_loops(other))
                (sch.compute_at if step == "at" else sch.reverse_compute_at)(block, place)
            elif step == "decompose":
                sch.decompose_reduction(block, rng.choice(loops))
        except ScheduleError:
            pass
    return sch


@needs_oracle
def test_random_schedules_give_tvms_script():
    schedules = []
    for seed in range(100):
        func = list(PROGRAMS.values())[seed % len(PROGRAMS)]
        schedules.append((func, random_schedule(func, seed)))
    answers = ask([{"program": Schedule(f).mod.script(), "trace": lines(s)}
                   for f, s in schedules])
    exact = 0
    for (_, sch), answer in zip(schedules, answers):
        assert not answer.get("error") and not answer["refused"], answer
        if sch.mod.script() == answer["script"]:
            exact += 1
        else:  # sums that are no iteration maps may list their terms in another order
            same = structural_equal(normal(sch.mod), normal(from_source(answer["script"])))
            assert same, f"{same!r}\n{sch.trace}\n{sch.mod.script()}\n{answer['script']}"
    assert exact >= 0.9 * len(schedules)


class _Normal(Mutator):
    def visit_BinaryOp(self, node):
        return Analyzer().simplify(node)


def normal(mod):
    """A module with every index and predicate simplified."""
    return IRModule({v.name_hint: f.with_body(_Normal().visit(f.body))
                     for v, f in mod.functions.items()})
