"""What a schedule rule is, what it may know of the machine, and the pass that applies rules."""

from __future__ import annotations

import functools
import os
from typing import Any, Iterable

from ..above import above
from ..ir.module import IRModule
from ..ir.transform import Pass, PassContext, PassInfo
from ..schedule import Schedule, ScheduleError
from ..target import Target
from ..target.limits import limits_of
from ..machine.vectors import NARROWEST, VectorUnit, vector_unit
from ..tir.expr import IterVar
from ..tir.function import PrimFunc
from ..tir.functor import all_statements, uses_var
from ..tir.op import as_int
from ..tir.stmt import Block, BlockRealize, For, ForKind, Stmt
from .analysis import BlockInfo, IterInfo, normalize_prim_func  # noqa: F401  (TVM's place)

#: attribute of a function that has its schedule
SCHEDULED = "tir.is_scheduled"
#: annotations of blocks that are no schedule: topi's poolings say how to tune them, and its softmax
#: names its axis
_HINTS = {"schedule_rule", "axis"}
#: a loop is worth several threads from about so many scalar operations on
WORTH_THREADS = 1 << 18


class Machine:
    """What rules ask about a target: its vector registers, and whether it has several cores.

    Attributes
    ----------
    unit : VectorUnit
        Width and number of the vector registers.
    cores : int
        The target's ``num-cores``; where it says nothing, the processors of this machine.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.unit: VectorUnit = vector_unit(target)
        self.cores = int(target.num_cores or os.cpu_count() or 1)

    def lanes(self, dtype: str) -> int:
        """Elements of a dtype in one vector register."""
        digits = "".join(c for c in dtype.split("x")[0] if c.isdigit())
        return self.unit.lanes(int(digits or 8))

    def widths(self, dtype: str) -> list[int]:
        """Elements in one vector register, in half of it, ..., the widest first.

        All processors with vectors have those of 128 bits, which are the narrowest here.
        """
        lanes = self.lanes(dtype)
        return [lanes >> n for n in range(6) if n == 0 or self.unit.bits >> n >= NARROWEST]

    def lanes_within(self, dtype: str, extent: int | None) -> int:
        """Elements of the widest vectors that a row of so many elements fills; of the narrowest for
        shorter rows, of a register where the extent is not known."""
        widths = self.widths(dtype)
        return next((n for n in widths if extent is None or n <= extent), widths[-1])

    def threads_pay(self, operations: int | None) -> bool:
        """Whether so many scalar operations (None: unknown, taken as many) are worth threads."""
        return self.cores > 1 and (operations is None or operations >= WORTH_THREADS)


class KernelRule:
    """A way to schedule one kind of function.

    A rule defines ``schedule(sch, machine)``: it works on a fresh schedule of the function (whose
    name there is "main") and returns whether the function is of its kind. A ScheduleError means
    that it is not, after all.
    """

    #: whether the rule begins with cheap intermediate results computed where they are used
    inlines = False

    def begin(self, start: "Start") -> Schedule | None:
        """The schedule to begin with, which is copied before it is worked on; None where the
        function is not of the rule's kind."""
        return start.inlined if self.inlines else start.plain

    def schedule(self, sch: Schedule, machine: Machine) -> bool:
        """Schedule the function; False where it is of another kind."""
        raise TypeError(f"{type(self).__name__} does not say how it schedules")

    def variants(self) -> list["KernelRule"]:
        """The rule in its forms, the best first; the next is tried where one is refused."""
        return [self]

    def apply(self, func: PrimFunc, target: Target | str | None, tunable: bool = False
              ) -> Schedule | None:
        """The function scheduled for a target, or None where the rule does not fit it."""
        return first_fitting([self], func, target)


class Start:
    """A function that rules are tried on, and what several of them do to it first."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func

    @functools.cached_property
    def plain(self) -> Schedule:
        """The function as it is."""
        return Schedule(IRModule({"main": self.func}))

    @functools.cached_property
    def inlined(self) -> Schedule:
        """With cheap intermediate results computed where they are used."""
        sch = self.plain.copy()
        above("inline_cheap")(sch)
        return sch


def _machine_of(target: Target) -> Machine:
    if target.kind.device == "cpu":
        return Machine(target)
    return above("machine of GPU rules")(target)


def first_fitting(rules: Iterable[KernelRule], func: PrimFunc, target: Target | str | None
                  ) -> Schedule | None:
    """The function as the first of the rules that fits schedules it; None where none does."""
    machine = _machine_of(Target(target if target is not None else "llvm"))
    start = Start(func)
    for rule in rules:
        try:
            ready = rule.begin(start)
        except ScheduleError:  # e.g. a program without a root block
            continue
        if ready is None:
            continue
        for variant in rule.variants():
            sch = ready.copy()
            try:
                if variant.schedule(sch, machine):
                    return sch
            except ScheduleError:
                continue
    return None


def is_scheduled(func: PrimFunc) -> bool:
    """Whether a function has a schedule already, by its attribute or by how its loops look.

    Functions without blocks, and with blocks inside of blocks, count as scheduled: somebody wrote
    them as they are to run.
    """
    if func.attrs.get(SCHEDULED):
        return True
    blocks = 0
    for node in all_statements(func.body):
        if type(node) is For and (node.kind is not ForKind.SERIAL or node.annotations):
            return True
        if type(node) is Block:
            blocks += 1
            if set(node.annotations) - _HINTS or node.match_buffers:
                return True
            if blocks > 1 and (node.alloc_buffers or _holds_block(node.body)):
                return True
    return blocks < 2  # the root, and something in it


def _holds_block(body: Stmt) -> bool:
    return any(type(node) is BlockRealize for node in all_statements(body))


class ApplyDefaultSchedule(Pass):
    """Give every function without a schedule the one of the first rule that fits it.

    Parameters
    ----------
    rules : KernelRule
        Tried in this order; by default those of ``dlight.cpu.default_rules()``, or of
        ``dlight.gpu``, as the target is.
    target : Target, optional
        By default the current target, or this machine.
    """

    def __init__(self, *rules: KernelRule, target: Any = None) -> None:
        if len(rules) == 1 and isinstance(rules[0], (list, tuple)):
            rules = tuple(rules[0])
        self.rules, self.target = rules, target
        super().__init__(self._run, PassInfo("ApplyDefaultSchedule"))

    def _run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        target = Target(self.target or Target.current() or "llvm")
        if limits_of(target) is None and target.kind.device != "cpu":
            return mod
        gpu = target.kind.device != "cpu"
        rules = self.rules or (
            above("default rules of a GPU")() if gpu else above("default rules")())
        changed = {}
        for var, func in mod.functions.items():
            if isinstance(func, PrimFunc) and not is_scheduled(func):
                new = default_schedule(func, target, rules)
                if new is not func:
                    changed[var] = new
        if not changed:
            return mod
        functions = {v: changed.get(v, f) for v, f in mod.functions.items()}
        return IRModule(functions, mod.attrs, mod.global_infos)


def default_schedule(func: PrimFunc, target: Target | str | None, rules: Any) -> PrimFunc:
    """The function as the first fitting rule schedules it; itself where none fits."""
    sch = schedule_of(func, target, rules)
    return func if sch is None else sch.mod["main"].with_attr(SCHEDULED, True)


def schedule_of(func: PrimFunc, target: Target | str | None, rules: Any) -> Schedule | None:
    """The schedule that the function gets by default; None where no rule fits."""
    empty = any(as_int(node.extent) == 0 for node in all_statements(func.body) if type(node) is For)
    sch = None if empty else first_fitting(rules, func, target)  # no tile fits into no elements
    if _may_sum_nothing(func):
        sch = sch or Start(func).plain
        _start_sums_outside(sch)
    return sch


def _may_sum_nothing(func: PrimFunc) -> bool:
    """Whether a sum of the function may have no terms: an extent is 0, or not known."""
    return any(not as_int(node.extent) for node in all_statements(func.body) if type(node) is For)


def _start_sums_outside(sch: Schedule) -> None:
    """Start every sum before its loops, where that is possible: a program within them never runs
    where there are no terms, and the result would be what was in memory before."""
    blocks = [n for n in all_statements(sch.mod["main"].body) if type(n) is BlockRealize]
    for realize in blocks:
        if realize.block.init is None:
            continue
        rv = sch.get_block(realize.block.name_hint)
        summed = [value for iv, value in zip(realize.block.iter_vars, realize.iter_values)
                  if iv.iter_type == IterVar.CommReduce]
        loops = [loop for loop in sch.get_loops(rv)
                 if any(uses_var(v, sch.get(loop).loop_var) for v in summed)]
        if any(not as_int(sch.get(loop).extent) for loop in loops):
            try:
                sch.decompose_reduction(rv, loops[0])
            except ScheduleError:
                continue


#: the name that TVM has for it
ScheduleRule = KernelRule
