"""Schedule: transforms a module step by step, each step checked, recorded and replayable.

The primitives are functions in `primitive/`, one file each; `methods.py` makes them methods.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence

from ..above import above
from ..arith.expr_util import DoesNotFit
from ..arith.index_map import NoBounds
from ..ir.containers import is_sequence
from ..ir.module import GlobalVar, IRModule
from ..ir.recursion import grows_stack
from ..tir import op
from ..tir.expr import FloatImm, IntImm, PrimExpr, Var
from ..tir.function import IndexMap, PrimFunc
from ..tir.functor import free_vars, substitute
from ..tir.stmt import Block, For
from . import primitive as primitive
from .aliases import HARMLESS, names_are_one
from .annotations import annotations_stay_in_scope, loops_named_stay_around
from .arguments import fitting
from .buffers import nested_views_fit
from .error import LEVELS, Refusal, ScheduleError
from .instruction import BlockRV, Instruction, InstructionKind, LoopRV, python_text
from .loop_kind import changed_loops, loops_stay_independent
from .methods import Primitives
from .open_number import take_open_numbers
from .provenance import Note, noting
from .state import ScheduleState, StmtSRef, function_named
from .threads import threads_agree
from .trace import Trace

if TYPE_CHECKING:
    from ..tir.stmt import Stmt


#: walks over the whole program, which may be deep
_new_state, _copied_state = grows_stack(ScheduleState), grows_stack(ScheduleState.copy)


class Step(NamedTuple):
    """One primitive as it was applied: the module before and after, or why it was refused.

    `origins` says of what the primitive made what it came from (see `provenance`).
    """

    instruction: Instruction
    decision: Any
    before: IRModule
    after: IRModule
    error: ScheduleError | None
    text: str | Callable[[], str]
    origins: Sequence[Note] = ()

    @property
    def python(self) -> str:
        """The call as the trace writes it."""
        return self.text if isinstance(self.text, str) else self.text()


class Schedule(Primitives):
    """A module under transformation.

    Parameters
    ----------
    mod: the IRModule (or a PrimFunc, which becomes the function "main").
    seed: of the sampling primitives; None or -1 takes a random one.
    debug_mask: "all", or a `ScheduleDebugMask`, checks the state after every step, "none" does not.
    error_render_level: how much a refusal says: "detail"; "fast" does not look for two iterations
        that clash and shows no program; "none" says that it was refused. ValueError for another.
    enable_check: TVM's; the rules are checked in any case.

    Every primitive takes and returns random variables (BlockRV, LoopRV, ExprRV) that follow blocks
    and loops through rewrites. A primitive that would change what the program computes raises
    ScheduleError and leaves the schedule as it was.

    `mod` is the module as it is now, `trace` the instructions so far, `steps` the recording of
    every step with the module before and after it, refused ones included.
    """

    def __init__(self, mod: Any, *, seed: int | None = None,
                 debug_mask: str | int = "none", error_render_level: str = "detail",
                 enable_check: bool = True, **older: Any) -> None:
        for name, value in older.items():  # as other versions call it
            if above("parameters of schedules")["Schedule"].get(name) != "debug_mask":
                raise TypeError(f"Schedule() takes no argument {name!r}")
            debug_mask = value
        if isinstance(mod, PrimFunc):  # called "main" in the module, and outside as it says itself
            mod = IRModule({"main": mod})
        if not isinstance(mod, IRModule):
            raise TypeError(f"Schedule takes an IRModule or a PrimFunc, got {type(mod).__name__}")
        self.state = _new_state(mod)
        self.trace: Trace = Trace()
        self.steps: list[Step] = []
        self._symbols: dict[Any, Any] = {}
        self._names: dict[Any, str] = {}
        #: what stands for the numbers that are left open, by their names (see `open_number`)
        self.open_numbers: dict[str, Any] = {}
        self._late = False
        self._debug = debug_mask in ("all", -1) or (isinstance(debug_mask, int) and debug_mask > 0)
        self.enable_check = enable_check
        if error_render_level not in LEVELS:
            raise ValueError(f"error_render_level is one of {', '.join(map(repr, LEVELS))}, not "
                             f"{error_render_level!r}")
        self.error_render_level = error_render_level
        self._working_on: GlobalVar | None = None
        if "main" in mod:
            self._working_on = mod.get_global_var("main")
        elif len(self.state.roots) == 1:
            self._working_on = next(iter(self.state.roots))
        self.seed(-1 if seed is None else seed)
        recorder = Schedule.on_create
        if recorder is not None:
            recorder(self)

    #: called with every new Schedule while a recording is on (`observe` sets it)
    on_create: Any = None

    # ------------------------------------------------------------------ the program

    @property
    def mod(self) -> IRModule:
        """The module as it is now."""
        return self.state.mod

    @property
    def func_working_on(self) -> GlobalVar | None:
        """The function `get_block` looks in when no `func_name` is given."""
        return self._working_on

    def work_on(self, func_name: str) -> None:
        """Let `get_block` look in the function `func_name` from now on."""
        try:
            self._working_on = function_named(self.state, func_name)
        except Refusal as why:
            raise ScheduleError("work_on", f"sch.work_on({func_name!r})", why, self.mod) from None

    def show(self, *args: object, **options: object) -> None:
        """Print the module and the trace, highlighted."""
        above("show")(self.mod, *args, **options)
        self.trace.show()

    def explore(self, *args: object, **options: object) -> Any:
        """The stepper: every step so far with program, cost and check (needs the `lab` extra)."""
        return above("explore")(self, *args, **options)

    def accesses(self, *args: object, **options: object) -> Any:
        """What the program as it is now reads and writes, in time order; `.show()` draws it."""
        return above("accesses")(self, *args, **options)

    def count_accesses(self, *args: object, **options: object) -> Any:
        """Exact counts of cache hits and misses, this machine's caches or `caches=`."""
        return above("count_accesses")(self, *args, **options)

    def workbench(self, *args: object, **options: object) -> Any:
        """Go on scheduling by clicking, from the steps so far (needs the `lab` extra)."""
        return above("workbench")(self, *args, **options)

    def live(self, *args: object, **options: object) -> Any:
        """One page on which numbers, steps and orders of this schedule can be changed, with all
        that follows from each choice (needs the `lab` extra)."""
        return above("live")(self, *args, **options)

    # ------------------------------------------------------------------ random variables

    def get(self, rv: object) -> Any:
        """What a random variable stands for now: a Block, a For, or an int.

        IndexError: the variable is not this schedule's, or what it stood for is gone.
        """
        value = self._known(rv)
        return value.stmt if isinstance(value, StmtSRef) else value

    def get_sref(self, rv_or_stmt: BlockRV | LoopRV | Stmt) -> StmtSRef:
        """The reference of a random variable or of a statement of the module."""
        if isinstance(rv_or_stmt, (BlockRV, LoopRV)):
            return self._known(rv_or_stmt)
        if rv_or_stmt in self.state.refs:
            return self.state.refs[rv_or_stmt]
        raise ValueError("the statement is not part of the module under schedule")

    def known_sref(self, rv: object) -> StmtSRef | None:
        """What a block or loop variable refers to (its `stmt` is None once that is gone); None for
        a number, and for a variable of another schedule."""
        value = self._symbols.get(rv)
        return value if isinstance(value, StmtSRef) else None

    def rv_of(self, sref: StmtSRef) -> BlockRV | LoopRV | None:
        """The random variable that a block or loop was given first; None if it has none."""
        return next((rv for rv, value in self._symbols.items() if value is sref), None)

    def srefs(self) -> dict[BlockRV | LoopRV, StmtSRef]:
        """What each block and loop variable refers to; its `stmt` is None once that is gone."""
        return {rv: value for rv, value in self._symbols.items() if isinstance(value, StmtSRef)}

    def new_rv(self, stmt: Block | For) -> BlockRV | LoopRV:
        """A random variable for a block or loop of the module, called as that is."""
        rv: BlockRV | LoopRV = LoopRV() if type(stmt) is For else BlockRV()
        self._symbols[rv] = self.state.refs[stmt]
        self._names[rv] = stmt.loop_var.name if isinstance(stmt, For) else stmt.name_hint
        return rv

    def _known(self, rv: object) -> Any:
        try:
            return self.resolve(rv)
        except Refusal as err:
            raise IndexError("; ".join(filter(None, (err.message, err.hint)))) from None

    def remove_rv(self, rv: object) -> None:
        """Forget a random variable."""
        if rv not in self._symbols:
            raise ValueError(f"{rv!r} is not known to this schedule")
        del self._symbols[rv]

    def seed(self, seed: int) -> None:
        """Seed the sampling primitives; -1 takes a random seed."""
        if seed == -1:
            seed = random.SystemRandom().randint(1, 2**31 - 1)
        self._seed, self._generator = seed, None

    @property
    def _rng(self) -> random.Random:
        """The generator of the sampling primitives, made when it is first asked: most copies
        sample nothing."""
        if self._generator is None:
            self._generator = random.Random(self._seed)
        return self._generator

    def fork_seed(self) -> int:
        """A new seed drawn from this schedule's generator."""
        return self._rng.randint(1, 2**31 - 1)

    def can_decompose_padding(self, block: Any, loop: Any) -> bool:
        """Whether `decompose_padding(block, loop)` would be accepted now; nothing is changed."""
        trial = self.copy()
        try:
            trial.decompose_padding(block, loop)
        except ScheduleError:
            return False
        return True

    def copy(self, also: Mapping[Any, StmtSRef] | None = None) -> "Schedule":
        """A schedule of its own in the same state; the random variables are valid in both.

        `also`: variables that only the copy knows, with what they refer to in this schedule.
        """
        new = Schedule.__new__(type(self))
        new.state, table = _copied_state(self.state)
        new.trace = self.trace.copy()
        new.steps = list(self.steps)
        new._symbols = {rv: table.get(v, _GONE) if isinstance(v, StmtSRef) else v
                        for rv, v in {**self._symbols, **(also or {})}.items()}
        new._names = dict(self._names)
        for rv in also or ():
            if rv not in new._names:
                new._name(rv)
        new.open_numbers = dict(self.open_numbers)
        new._late = False
        new._debug, new.enable_check = self._debug, self.enable_check
        new.error_render_level = self.error_render_level
        new._working_on = self._working_on
        new._seed, new._generator = self.fork_seed(), None
        return new

    def check_late(self, late: bool) -> None:
        """Whether what steps must leave true of threads and of iterations that run at the same
        time is checked after each of them, or once: when this is called with False.

        Raises Refusal where it is not true then. A copy checks after each step.
        """
        self._late = late
        if not late:
            loops_stay_independent(self.state, changed_loops(self.state, {}))
            threads_agree(self.state)

    def become(self, other: "Schedule") -> None:
        """Take over what a copy of this schedule has become; the copy is not to be used again."""
        vars(self).update(vars(other))

    # ------------------------------------------------------------------ applying

    def resolve(self, value: Any) -> Any:
        """An argument with random variables replaced by what they stand for."""
        if value is None or isinstance(value, (int, str)):
            return value
        if isinstance(value, (BlockRV, LoopRV)):
            try:
                sref = self._symbols[value]
            except KeyError:
                raise Refusal("known_rv", f"{value!r} does not belong to this schedule (or was "
                              "removed)", hint="take it from this schedule's get_block / get_loops"
                              ) from None
            if sref.stmt is None:
                what = "block" if isinstance(value, BlockRV) else "loop"
                raise Refusal(
                    "not_expired", f"this {what} ({self._names.get(value, '?')} in the trace) is "
                    "gone: an earlier step split, fused or inlined it",
                    hint="use the loops or blocks that step returned, or sch.get_loops(block)")
            return sref
        if isinstance(value, PrimExpr):
            if isinstance(value, (IntImm, FloatImm)):
                return value.value
            if isinstance(value, Var):
                if value in self._symbols:
                    return self._symbols[value]
                return value
            new = substitute(value, {v: c for v, c in self._symbols.items() if isinstance(v, Var)})
            return new.value if isinstance(new, (IntImm, FloatImm)) else new
        if is_sequence(value):
            if isinstance(value, list):
                return [self.resolve(v) for v in value]
            return tuple(self.resolve(v) for v in value)
        if isinstance(value, IndexMap):
            return self._resolved_map(value)
        return value

    def _resolved_map(self, given: IndexMap) -> IndexMap:
        """A map of indices with sampled numbers in the place of their variables."""
        known = {v: op.const(c, v.dtype) if isinstance(c, int) else c
                 for e in given.final_indices for v in free_vars(e)
                 if (c := self._symbols.get(v)) is not None}
        if not known:
            return given
        return type(given)(given.initial_indices, [substitute(e, known)
                                                   for e in given.final_indices])

    def _wrap(self, value: Any) -> Any:
        """A primitive's result as random variables."""
        if isinstance(value, StmtSRef):
            rv: Any = BlockRV() if type(value.stmt) is Block else LoopRV()
            assert type(value.stmt) in (Block, For)
            self._symbols[rv] = value
            self._name(rv)
            return rv
        if isinstance(value, int) and not isinstance(value, bool):
            name = f"v{len(self._names)}"
            rv = Var(name, "int32")
            self._symbols[rv], self._names[rv] = value, name
            return rv
        if is_sequence(value):
            return [self._wrap(v) for v in value]
        return None

    def _name(self, rv: object) -> None:
        prefix = "b" if isinstance(rv, BlockRV) else "l" if isinstance(rv, LoopRV) else "v"
        self._names[rv] = f"{prefix}{len(self._names)}"

    def apply(self, kind: InstructionKind, args: dict[str, Any]) -> Any:
        """Run a primitive with bound arguments; record it, or raise ScheduleError.

        Its methods (`split`, ...) come here; so does what replays or builds instructions.
        """
        args = take_open_numbers(self, args)
        before, length = self.state.mod, len(self.trace.insts)
        try:
            if kind.normalize is not None:
                kind.normalize(self, args)
            self._take_names(args)
            fitting(self, kind, args)
            result, decision, origins = self._run(kind, args)
        except Refusal as err:
            del self.trace.insts[length:]  # blocks that were given by name
            raise self._refused(kind, args, err, before) from err.__cause__
        if self._debug:
            self.state.verify()
        outputs = self._wrap(result)
        recorded = {**args, "decision": None} if kind.sampling else args
        instruction = Instruction.of(kind, recorded, outputs)
        if kind.traced:
            self.trace.append(instruction, decision)
            self.steps.append(Step(instruction, decision, before, self.state.mod, None,
                                   lambda: instruction.as_python(self._names, decision),
                                   origins))
        return outputs

    @grows_stack
    def _run(self, kind: InstructionKind, args: dict[str, Any]) -> tuple[Any, Any, list[Note]]:
        """What a primitive returns, its decision, and what it noted of origins.

        Where it raises, the state is as it was.
        """
        state, before, decision = self.state, self.state.mod, None
        positional, keyword = kind.call({k: self.resolve(v) for k, v in args.items()})
        if kind.pure and not kind.sampling:  # looks something up
            return kind.fn(state, *positional, **keyword), None, []
        if not kind.pure and kind.name not in HARMLESS:
            names_are_one((*positional, *keyword.values()))
        snapshot = None if kind.pure else state.snapshot()
        try:
            with noting() as origins:
                if kind.sampling:
                    result, decision = kind.fn(state, self._rng, *positional, **keyword)
                else:
                    result = kind.fn(state, *positional, **keyword)
                if state.mod is not before and snapshot is not None:
                    annotations_stay_in_scope(state, snapshot[1])
                    loops_named_stay_around(state, snapshot[1])
                    nested_views_fit(state, before)
                if snapshot is not None and not self._late:
                    if kind.moves:
                        loops_stay_independent(state, changed_loops(state, snapshot[1]))
                    if kind.moves or kind.binds:
                        threads_agree(state)
        except BaseException as err:
            if snapshot is not None and state.mod is not before:
                state.restore(*snapshot)
            if isinstance(err, DoesNotFit):
                raise Refusal(
                    "index_fits", "an index or an extent of the result would be larger than its "
                    "type can hold; an int32 ends at 2147483647",
                    hint="declare the shapes in int64: T.Buffer((T.int64(70000), ...))") from None
            if isinstance(err, NoBounds):
                raise Refusal("map_has_bounds", str(err), hint="indices are computed of whole "
                              "numbers, and are divided by what is never 0") from None
            raise
        return result, decision, origins

    def _take_names(self, args: dict[str, Any]) -> None:
        """Blocks may be given by name: each name in `args` becomes a get_block of its own."""
        for key in ("block", "scope_block"):
            if isinstance(args.get(key), str):
                args[key] = self.get_block(args[key])
        readers = args.get("consumer_blocks")
        if is_sequence(readers):
            args["consumer_blocks"] = [self.get_block(b) if isinstance(b, str) else b
                                       for b in readers]

    def _refused(self, kind: InstructionKind, args: Mapping[str, Any], refusal: Refusal,
                 mod: IRModule) -> ScheduleError:
        instruction = Instruction.of(kind, dict(args), None)
        names = self._names
        error = ScheduleError(kind.method, lambda: instruction.as_python(names), refusal, mod)
        error.level = self.error_render_level
        self.steps.append(Step(instruction, None, mod, mod, error, lambda: error.call))
        return error

    def text_of(self, value: object) -> str:
        """An argument as the trace writes it."""
        return python_text(value, self._names)

    def variable_named(self, name: str, at: BlockRV | LoopRV | None = None) -> Var | None:
        """The variable of that name in the shapes or among the parameters of the functions, or,
        nearest first, of a loop or block around the block or loop `at`."""
        functions = self.state.mod.functions
        first = [functions[self._working_on]] if self._working_on in functions else []
        for func in (*first, *functions.values()):
            if isinstance(func, PrimFunc):
                shapes = [d for b in func.buffer_map.values() for d in b.shape]
                for var in (*func.params, *(v for d in shapes for v in free_vars(d))):
                    if var.name == name and var.dtype != "handle":
                        return var
        around = self.state.ancestors(self.get_sref(at)) if at is not None else ()
        for stmt in (sref.stmt for sref in around):
            own = [stmt.loop_var] if type(stmt) is For else [iv.var for iv in stmt.iter_vars]
            for var in own:
                if var.name == name:
                    return var
        return None

    def apply_trace(self, trace: Trace | str | Sequence[Any]) -> None:
        """Replay a Trace, or the text or JSON of one."""
        if isinstance(trace, str):
            trace = Trace.from_json(trace) if trace.lstrip().startswith("[") else (
                Trace.from_python(trace))
        elif not isinstance(trace, Trace):
            trace = Trace.from_json(trace)
        trace.apply_to_schedule(self)


_GONE = StmtSRef(None, None, GlobalVar("gone"))

__all__ = ["BlockRV", "LoopRV", "Schedule", "ScheduleError", "Step"]
