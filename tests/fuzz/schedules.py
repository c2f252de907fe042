"""Random schedules of random programs: accepted means that the program computes the same.

A case is a program of `programs.py` and up to 12 primitives with arguments that look right. Laws:
the result is that of the program before, in the interpreter and as machine code or GPU kernels,
also where the iterations of loops that run at the same time come in another order; blocks declare
all that they touch; the text of every program met parses back to it; a refusal changes nothing; the
trace, as Python and as JSON, gives the same program again; and nothing but a ScheduleError comes
out of a primitive.
"""

from __future__ import annotations

import contextlib
import signal

import numpy as np

import mlc_lab as tvm
from mlc_lab.backend.interp import InterpError, interpret
from mlc_lab.build import build
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.lower import LowerError
from mlc_lab.schedule import Schedule, ScheduleError, Trace
from mlc_lab.schedule.error import Accepted
from mlc_lab.schedule.truth import truthful
from mlc_lab.script import from_source
from mlc_lab.tir.expr import Var
from mlc_lab.tir.functor import Mutator, pre_order, substitute
from mlc_lab.tir.stmt import For, ForKind

from . import harness
from .defined import undefined
from .programs import SEEDS, Program, program
from .regions import Undeclared, check_declared
from .steps import PRIMITIVES, Nothing, Steps

#: the most primitives that are tried on one program; half of all cases try so many
STEPS = 12

#: how long a run of a program of this size may take
SECONDS = 5

#: loops whose iterations run at the same time; threads may share a reduction, which has a start
TOGETHER = (ForKind.PARALLEL, ForKind.VECTORIZED)


class Late(AssertionError):
    """A program that does not end in time."""


@contextlib.contextmanager
def limited(seconds: float):
    """Raise `Late` if what is inside takes too long: a loop that runs far too often.

    The time is that of the process: on a busy machine a case may have to wait. Of a limit around
    this one as much is left afterwards as there was before.
    """

    def late(*_) -> None:
        raise Late(f"the program did not end in {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    left, _ = signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, left)
        signal.signal(signal.SIGPROF, before)


# ------------------------------------------------------------------------------- laws


def case(draw) -> None:
    """One program and one schedule."""
    made = program(draw)
    func = made.parse()
    if func is None:
        harness.counts["programs that read what is not there"] += 1
        return
    _register_intrinsics()
    harness.note(made.text)
    sch = Schedule(func, seed=draw.integer(1, 5), debug_mask="all")
    original = sch.mod
    check_text(original)
    steps = Steps(draw, sch)
    promised = promises(sch)
    if draw.chance(15):
        split_within_a_block(steps)
    for _ in range(min(draw.integer(0, 24), STEPS)):
        promised.clear()
        step(draw, made, steps, promised)
    if sch.mod is not original:
        check_text(sch.mod)
        with limited(SECONDS):
            check_result(made, original, sch, draw)
        check_replay(original, sch, draw)


def split_within_a_block(steps: Steps) -> None:
    """A loop that is split further than it is long, in a block of its own: what follows meets
    conditions on loops that no iterator uses."""
    draw, sch = steps.draw, steps.sch
    with contextlib.suppress(ScheduleError, Nothing):
        block = steps.block()
        loops = steps.loops(block)
        if not loops:
            return
        loop = draw.choice(loops)
        for _ in range(draw.integer(1, 3)):
            loop = sch.split(loop, [None, draw.choice([2, 2, 3, 4])])[draw.choice([0, 0, 1])]
        if draw.chance(70):
            sch.blockize([block] if draw.chance(50) else loop, preserve_unit_iters=draw.chance(50))


def promises(sch: Schedule) -> list[bool]:
    """Where it is written down that a primitive said it would refuse nothing any more."""
    state, made = sch.state, []
    accepted = state.accepted

    def watched() -> None:
        state.asking = True
        try:
            accepted()
        except Accepted:
            made.append(True)
        finally:
            state.asking = False

    state.accepted = watched
    return made


def step(draw, made: Program, steps: Steps, promised: list[bool]) -> None:
    """Try one primitive; a refusal must leave everything as it was, and comes before a primitive
    says that it is accepted."""
    sch, name = steps.sch, draw.choice(PRIMITIVES)
    before = sch.mod
    count = len(sch.steps)
    try:
        getattr(steps, name)()
    except Nothing:
        return
    except ScheduleError as error:
        harness.counts[f"refused  {name}"] += 1
        assert not promised, f"refused after it was accepted: {error}"
        length = len(sch.trace.insts)
        assert sch.mod is before or sch.steps[-1].error is error, "a refusal changed the program"
        assert sch.steps[-1].before is sch.mod and sch.steps[-1].after is sch.mod
        assert all(s.error is None for s in sch.steps[count:-1])
        assert length == len(sch.trace.insts)
        sch.state.verify()
        if draw.chance(30):
            str(error)
        return
    if sch.mod is not before:
        harness.counts[f"accepted {name}"] += 1
        harness.note(sch.steps[-1].python)
        check_regions(made, sch)
        if draw.chance(30):  # the last program's text is looked at in any case
            check_text(sch.mod)


def check_regions(made: Program, sch: Schedule) -> None:
    """Blocks declare all that they touch: every rule about moving them rests on it."""
    functions = sch.mod.functions.values()
    if any(truthful(func) is not func for func in functions):  # or it cannot be proven
        try:
            watched(sch.mod, made.arguments(SEEDS[0]))
        except Undeclared as error:
            raise AssertionError(f"{sch.steps[-1].python}: {error}\n{sch.mod.script()}") from None


def watched(mod, arguments) -> bool:
    """Run a module by the definition, each access looked at. False if there is no time for it: that
    takes as long as all regions of all iterations have elements, which is no fault of a program."""
    try:
        with limited(SECONDS):
            check_declared(mod, arguments)
    except Late:
        harness.counts["regions that were too many to be watched"] += 1
        return False
    harness.counts["regions that were watched"] += 1
    return True


def check_text(mod) -> None:
    """The text of a module parses back to it."""
    text = mod.script()
    assert_structural_equal(from_source(text), mod)


def check_replay(original, sch: Schedule, draw) -> None:
    """The trace gives the same program again, from its text or from its JSON."""
    trace = (Trace.from_json(sch.trace.as_json()) if draw.chance(50) else
             Trace.from_python(str(sch.trace)))
    again = Schedule(original)
    trace.apply_to_schedule(again)
    assert_structural_equal(again.mod, sch.mod)


def check_result(made: Program, original, sch: Schedule, draw) -> None:
    """Before and after compute the same; the first step that breaks this is named.

    Half of the programs are also built, some of them with all of LLVM's optimization.
    """
    for seed in SEEDS:
        want = made.arguments(seed)
        interpret(original["main"], *want)
        got = outcome(made, sch.mod, seed)
        if not agree(want, got):
            raise AssertionError(f"{broken_step(made, original, sch, seed)} changed the result\n"
                                 f"{sch.mod.script()}\nbefore: {want}\nafter: {got}")
    if has_loops(sch.mod, TOGETHER):
        got = outcome(made, backwards(sch.mod), seed)
        if not agree(want, got):
            raise AssertionError("the order of iterations that run at the same time matters\n"
                                 f"{sch.mod.script()}\nforwards: {want}\nbackwards: {got}")
    if draw.chance(20):
        got = made.arguments(seed)
        if watched(sch.mod, got) and not agree(want, got):
            raise AssertionError(f"the two interpreters differ\n{sch.mod.script()}\n"
                                 f"quick: {want}\ndefinition: {got}")
    if has_loops(sch.mod, [ForKind.THREAD_BINDING]):
        check_kernels(made, sch.mod, seed, want)
    elif draw.chance(50):
        # Memory that is made anew in each iteration holds nothing of the one before: machine code
        # may find it there all the same.
        try:
            lowered = tvm.lower(sch.mod)
        except LowerError as error:
            if "software pipeline" not in str(error):
                raise
            harness.counts["pipelines refused"] += 1
            return
        if any("software_pipeline_stage" in n.annotations for n in pre_order(sch.mod["main"].body)
               if type(n) is For):
            harness.counts["pipelines run"] += 1
        got = outcome(made, lowered, seed)
        if not agree(want, got):
            raise AssertionError(f"lowering changed the result\n{sch.mod.script()}\n"
                                 f"{lowered.script()}\nbefore: {want}\nlowered: {got}")
        optimized = draw.chance(30)
        run = build(sch.mod, target="llvm" if optimized else "llvm -opt-level=0")["main"]
        held = [tvm.nd.array(a) if a.flags.c_contiguous or a.dtype.kind == "V"  # bfloat16
                else tvm.nd.from_dlpack(a) for a in made.arguments(seed)]
        run(*held)
        got = [a.numpy() for a in held]
        if not agree(want, got):
            raise AssertionError(f"machine code differs\n{sch.mod.script()}\n"
                                 f"interpreter: {want}\nmachine code: {got}")


def check_kernels(made: Program, mod, seed: int, want) -> None:
    """The GPU kernels of a program, whose threads run side by side, compute the same, unless
    lowering says that they cannot."""
    try:
        kernels = tvm.lower(mod)
    except LowerError:
        harness.counts["kernels refused"] += 1
        return
    harness.counts["kernels run"] += 1
    if undefined(kernels):
        raise AssertionError(f"undefined: {undefined(kernels)}\n{kernels.script()}")
    got = outcome(made, kernels, seed)
    if not agree(want, got):
        raise AssertionError(f"the kernels differ\n{mod.script()}\n{kernels.script()}\n"
                             f"before: {want}\nkernels: {got}")


def outcome(made: Program, mod, seed: int):
    """All arguments after a run in the interpreter, or the error that ended it."""
    arguments = made.arguments(seed)
    try:
        interpret(mod, *arguments, func_name="main")  # with the kernels that it launches
    except InterpError as error:
        return error
    return arguments


def agree(want, got) -> bool:
    """Whether two runs left the same; exactly where all numbers are small and whole."""
    if isinstance(got, Exception):
        return False
    for a, b in zip(want, got):
        a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
        tolerance = 0 if np.all(np.isfinite(a)) and np.all(np.abs(a) < 128) else 0.02
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance * 8, equal_nan=True):
            return False
    return True


def broken_step(made: Program, original, sch: Schedule, seed: int) -> str:
    """The first step after which the result is another."""
    want = made.arguments(seed)
    interpret(original["main"], *want)
    for one in sch.steps:
        if one.error is None and one.after is not one.before:
            if not agree(want, outcome(made, one.after, seed)):
                return one.python
    return "no single step"


class _Backwards(Mutator):
    """The iterations of loops that run at the same time come last to first, one by one."""

    def visit_For(self, node):
        new = self.default(node)
        if node.kind not in TOGETHER:
            return new
        var = Var(node.loop_var.name, node.loop_var.dtype)
        last = new.min + (new.extent - 1) + new.min
        return new.replace(loop_var=var, kind=ForKind.SERIAL,
                           body=substitute(new.body, {node.loop_var: last - var}))


def backwards(mod):
    """The program with all loops whose iterations run at the same time from their ends."""
    func = mod["main"]
    return tvm.IRModule({"main": func.replace(body=_Backwards().visit(func.body))})


def has_loops(mod, kinds) -> bool:
    """Whether some loop is of one of these kinds."""
    return any(type(n) is For and n.kind in kinds
               for f in mod.functions.values() for n in pre_order(f.body))


def _register_intrinsics() -> None:
    """Small tensor intrinsics, written without intrinsic calls."""
    from mlc_lab.tir import TensorIntrin

    if TensorIntrin.get("fuzz_fill_2", allow_missing=True) is not None:
        return
    for name, inputs, value in (("fill", [], "T.float32(0)"),
                                ("double", ["A"], "A[v] * T.float32(2)"),
                                ("add", ["A", "B"], "A[v] + B[v]")):
        def text(body: str, inputs=inputs) -> str:
            handles = ", ".join(f"p{x}: T.handle" for x in [*inputs, "C"])
            lines = ["@T.prim_func", f"def f({handles}):"]
            for x in [*inputs, "C"]:
                lines.append(f'    {x} = T.match_buffer(p{x}, (2,), "float32", offset_factor=1)')
            lines += ['    with T.block("root"):',
                      f"        T.reads({', '.join(f'{x}[0:2]' for x in inputs)})",
                      "        T.writes(C[0:2])", body]
            return "\n".join(lines) + "\n"

        desc = text("        for i in range(2):\n            with T.block(\"x\"):\n"
                    f"                v = T.axis.spatial(2, i)\n                C[v] = {value}")
        impl = text("        for v in range(2):\n"
                    f"            C[v] = {value}")
        TensorIntrin.register(f"fuzz_{name}_2", from_source(desc), from_source(impl),
                              override=True)

