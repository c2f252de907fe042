"""Sketch rules of one's own for `auto_scheduler`: the space that they make.

As in auto_scheduler, stages are visited from the results to the inputs. At each, the rules are
asked what they would do; a rule writes steps on a `loop_state.State` and says which stage comes
next. The steps are then done by the primitives of a Schedule, and recorded in its trace: sizes that
a rule leaves open are drawn by `sample_perfect_tile`, so the search changes them. Stages that no
rule has claimed are left to the schedule rules of meta_schedule, which also say of all stages how
much runs in parallel and what becomes vectors.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

from ...schedule import Schedule, ScheduleError
from ...te.error import TensorExprError
from ...te.replay import Replay
from ...tir.stmt import Block
from ..postproc.common import leaf_blocks, statements
from ..schedule_rule import ParallelizeVectorizeUnroll
from ..space_generator import PostOrderApply, SpaceError
from ..space_generator.schedule_fn import DRAWS
from .compute_dag import inlined_stages
from .loop_state import StateObject, Step, steps_on_te

if TYPE_CHECKING:
    from collections.abc import Callable
    from ...ir.module import IRModule
    from ...tir.function import PrimFunc
    from .compute_dag import ComputeDAG

#: sketches that are followed at most
_MOST = 64
#: the innermost loop of a split whose sizes are drawn has so many iterations at most
_INNERMOST = 64


class PreloadCustomSketchRule:
    """A rule for `SketchPolicy(init_search_callbacks=[...])`.

    `meet_condition_func(policy, state_object, stage_id)` answers PASS (the rule has nothing to
    say), APPLY (a sketch of it, and those of the rules after it too) or APPLY_AND_SKIP_REST (only
    its own). `apply_func(policy, state_object, stage_id)` gives a list of [state object, number of
    the stage that is visited next]: those in between are done with.
    """

    PASS, APPLY, APPLY_AND_SKIP_REST = 0, 1, 2

    def __init__(self, meet_condition_func: Callable[..., Any], apply_func: Callable[..., Any],
                 rule_name: str = "CustomSketchRule") -> None:
        self.meet_condition_func, self.apply_func = meet_condition_func, apply_func
        self.rule_name = rule_name


class Sketch(NamedTuple):
    """Steps, the stages that rules have claimed, and those that are inlined because they are
    simple, so that rules see who reads what in the end."""

    state: StateObject
    claimed: frozenset[int] = frozenset()
    simple: frozenset[int] = frozenset()


def sketches_of(policy: Any, rules: list[PreloadCustomSketchRule]) -> list[Sketch]:
    """What is left when the rules have seen all stages; of those that claim nothing none.

    Raises SpaceError, with the line at fault, where a function of a rule raises or answers what it
    should not.
    """
    dag: ComputeDAG = policy.search_task.compute_dag
    coming = [(Sketch(StateObject()), len(dag.ops) - 1)]
    out: list[Sketch] = []
    while coming:
        sketch, stage_id = coming.pop(0)
        if stage_id < 0:
            if sketch.claimed:
                out.append(sketch)
            continue
        rest = True
        for rule in rules:
            met = _asked(rule, rule.meet_condition_func, policy, sketch.state, stage_id)
            if met not in (rule.PASS, rule.APPLY, rule.APPLY_AND_SKIP_REST):
                raise SpaceError(f"the condition of sketch rule {rule.rule_name} answered {met!r}: "
                                 "it answers PASS, APPLY or APPLY_AND_SKIP_REST")
            if met == rule.PASS:
                continue
            coming += _applied(rule, policy, sketch, stage_id)
            if met == rule.APPLY_AND_SKIP_REST:
                rest = False
                break
        if rest:
            coming.append((_by_default(dag, sketch, stage_id), stage_id - 1))
        if len(coming) > _MOST:
            raise SpaceError(f"the sketch rules made more than {_MOST} sketches: let them answer "
                             "APPLY_AND_SKIP_REST, or at fewer stages")
    return list(dict.fromkeys(out))


def _by_default(dag: ComputeDAG, sketch: Sketch, stage_id: int) -> Sketch:
    if stage_id in sketch.claimed or not dag.is_always_inlined(stage_id):
        return sketch
    steps = (*sketch.state.transform_steps, Step("compute_inline", stage_id, ()))
    return sketch._replace(state=StateObject(steps), simple=sketch.simple | {stage_id})


def _applied(rule: PreloadCustomSketchRule, policy: Any, sketch: Sketch, stage_id: int
             ) -> list[tuple[Sketch, int]]:
    made = _asked(rule, rule.apply_func, policy, sketch.state, stage_id)
    pairs = list(made)
    if len(pairs) == 2 and isinstance(pairs[1], int):
        pairs = [pairs]  # one pair, not in a list
    out = []
    for pair in pairs:
        state, following = pair
        state = getattr(state, "state_object", state)
        if not isinstance(state, StateObject) or not isinstance(following, int) or (
                following >= stage_id):
            raise SpaceError(f"sketch rule {rule.rule_name} gave {pair!r} at stage {stage_id}: it "
                             "gives [state_object, number of a stage before this one]")
        claimed = set(range(following + 1, stage_id + 1)) | set(sketch.claimed)
        for step in state.transform_steps[len(sketch.state.transform_steps):]:
            claimed.add(step.stage_id)
            if step.kind == "compute_at":
                claimed.add(step.args[0])
        out.append((Sketch(state, frozenset(claimed), sketch.simple - claimed), following))
    return out


def _asked(rule: PreloadCustomSketchRule, function: Callable[..., Any], policy: Any,
           state: StateObject, stage_id: int) -> Any:
    try:
        return function(policy, state, stage_id)
    except Exception as error:
        code = getattr(function, "__code__", None)
        own = [f for f in traceback.extract_tb(error.__traceback__)
               if code is not None and f.filename == code.co_filename]
        where = f" at line {own[-1].lineno} ({own[-1].line})" if own else ""
        raise SpaceError(f"sketch rule {rule.rule_name} raised {type(error).__name__} at stage "
                         f"{stage_id}{where}:\n{error}") from error


class CustomSketches(PostOrderApply):
    """The space of a policy with rules of its own. Where no rule claims a stage, that of
    PostOrderApply."""

    def __init__(self, policy: Any, rules: list[PreloadCustomSketchRule]) -> None:
        super().__init__(with_default=False)
        self.policy, self.rules = policy, list(rules)

    @property
    def description(self) -> str:
        """The rules' names."""
        return f"CustomSketches({', '.join(r.rule_name for r in self.rules)})"

    def generate_design_space(self, mod: IRModule | PrimFunc, seed: int = -1) -> list[Schedule]:
        """The schedules of all sketches. Raises SpaceError where steps are refused."""
        sketches = sketches_of(self.policy, self.rules)
        if not sketches:
            self.with_default = True
            return super().generate_design_space(mod, seed)
        names = [name for name, _ in leaf_blocks(Schedule(mod, debug_mask="none"))]
        out: list[Schedule] = []
        for sketch in sketches:
            out += self._completed(self._drawn(mod, sketch, seed), sketch, names)
        return out[:_MOST]

    def _drawn(self, mod: Any, sketch: Sketch, seed: int) -> Schedule:
        """A schedule with the steps of a sketch; sizes are drawn until the steps are legal."""
        for draw in range(DRAWS):
            sch = Schedule(mod, seed=seed if seed < 0 else (seed + draw * 7919) % 2**31 or 1,
                           debug_mask="none")
            try:
                perform(sch, self.policy.search_task.compute_dag, sketch)
                return sch
            except (ScheduleError, TensorExprError, ValueError) as error:
                if draw + 1 < DRAWS and isinstance(error, ScheduleError) and sch.trace.decisions:
                    continue
                raise SpaceError("the steps of sketch rule "
                                 f"{', '.join(r.rule_name for r in self.rules)} are refused:\n"
                                 f"{error}") from error
        raise AssertionError("a draw ends the loop")

    def _completed(self, sch: Schedule, sketch: Sketch, names: list[str]) -> list[Schedule]:
        """What the schedule rules make of the stages that no sketch rule has claimed."""
        claimed = _blocks_of(self.policy.search_task.compute_dag, sketch.claimed)
        schedules = [sch]
        for rule in self.sch_rules:
            whole = isinstance(rule, ParallelizeVectorizeUnroll)  # it is about all of the program
            for name in names:
                if whole or name not in claimed:
                    schedules = [made for one in schedules
                                 for made in self._apply(rule, one, name)]
        return schedules


def perform(sch: Schedule, dag: ComputeDAG, sketch: Sketch) -> None:
    """Do the steps of a sketch on a schedule of the program; sizes left open are sampled.

    Raises ScheduleError or TensorExprError where a step is not legal.
    """
    chosen = {}
    names, around = dag.built.names, dag.built.around
    for number, step in enumerate(sketch.state.transform_steps):
        if step.kind != "split" or None not in step.args[1]:
            continue
        op: Any = dag.ops[step.stage_id]
        axis = _axis_of(sketch.state, number, dag)
        block, inner = names[op], around.get(op)
        place = axis
        if inner is not None:
            block, place = (inner, axis) if axis < len(op.axis) else (block, axis - len(op.axis))
        loops = sch.get_loops(sch.get_block(block))
        chosen[number] = sch.sample_perfect_tile(loops[place], n=len(step.args[1]) + 1,
                                                 max_innermost_factor=_INNERMOST)
    schedule = steps_on_te(dag, sketch.state, chosen)
    may_stay = {schedule.stages[n] for n in sketch.simple & inlined_stages(sketch.state)}
    Replay(schedule, dag.tensors, on=(sch, dag.built), may_stay=may_stay)


def _axis_of(state: StateObject, number: int, dag: ComputeDAG) -> int:
    """Which axis of its operation a split of drawn sizes takes."""
    from .loop_state import State

    before = State(StateObject(state.transform_steps[:number]), dag)
    step = state.transform_steps[number]
    axis = before.stages[step.stage_id].iters[step.args[0]].axis
    assert axis is not None, "State.split checks it"
    return axis


def _blocks_of(dag: ComputeDAG, stages: frozenset[int]) -> set[str]:
    """The names of the blocks of stages, with those inside of them."""
    names, around = dag.built.names, dag.built.around
    out: set[str] = set()
    for number in stages:
        op = dag.ops[number]
        if op not in names:
            continue
        out |= {names[op], f"{names[op]}_update"}
        top = around.get(op)
        if top is not None:
            out |= {block.name_hint for whole in statements(dag.built.func.body)
                    if type(whole) is Block and whole.name_hint == top
                    for block in statements(whole) if type(block) is Block}
    return out


__all__ = ["CustomSketches", "PreloadCustomSketchRule", "Sketch", "perform", "sketches_of"]
