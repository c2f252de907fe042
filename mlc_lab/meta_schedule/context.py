"""TuneContext: one program to be tuned, with everything its search uses."""

from __future__ import annotations

import functools
import random
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from ..ir.diagnostics import MLCError
from ..ir.module import IRModule
from ..schedule import Refusal, Schedule, ScheduleError, Trace
from ..target import Target
from .defaults import is_gpu, num_cores
from .gpu_estimate import Product, product_of
from .replay import Replayer
from .search_strategy import SearchStrategy
from .space_generator import SpaceError, SpaceGenerator
from ..tir.functor import pre_order
from ..tir.stmt import Block
from .workload import TensorInfo, as_workload, count_flops

if TYPE_CHECKING:
    from ..tir.function import PrimFunc
    from .cost_model.cost_model import CostModel
    from .database.database import Database


class Draft(NamedTuple):
    """A candidate: its schedule without postprocessing, the one that the cost model judges, and the
    decisions of its sampling instructions, by index."""

    sch: Schedule
    judged: Schedule
    decisions: dict[int, Any]


class TuneContext:
    """One task.

    Parameters
    ----------
    mod: the program (IRModule with one PrimFunc, or a PrimFunc). A context without one describes no
        task: cost models of one's own may be tried with it.
    target: for which machine. Of one that programs cannot be run on here, such as a GPU, spaces and
        candidates can be made; a search refuses it (see `must_run_here`).
    space_generator: a SpaceGenerator, a function of a schedule, or "post-order-apply".
    search_strategy: a SearchStrategy or the name of one.
    task_name: how the task is called in the table and the database.
    rand_state: seed of every random choice.
    inputs: arrays for parameters, by position, where candidates cannot be measured with random
        ones, such as the places of a sparse matrix.
    """

    def __init__(self, mod: IRModule | PrimFunc | None = None, *, target: Any = None,
                 space_generator: object = "post-order-apply",
                 search_strategy: object = "evolutionary", task_name: str = "main",
                 rand_state: int = -1, num_threads: int | None = None, logger: object = None,
                 inputs: Mapping[int, Any] | None = None) -> None:
        del logger
        self.mod: IRModule = IRModule({}) if mod is None else as_workload(mod)
        self.target = Target(target if target is not None else Target.current() or "llvm")
        # of a GPU's program the host has little to do
        self.num_threads = num_threads or (1 if is_gpu(self.target) else num_cores(self.target))
        self.task_name = task_name
        self.inputs = dict(inputs or {})
        if rand_state is None or rand_state == -1:
            rand_state = random.SystemRandom().randint(1, 2**31 - 1)
        self.seed = rand_state
        self.rng = random.Random(rand_state)
        self.args_info = [] if mod is None else TensorInfo.from_prim_func(self.mod["main"])
        self.flop = 0.0 if mod is None else count_flops(self.mod)
        # rules for GPUs bind loops first, and each step that follows would be checked again
        self.replayer = Replayer(self.mod, late_checks=is_gpu(self.target))
        self.rejected: dict[str, int] = {}
        self.space_generator = SpaceGenerator.create(space_generator)
        self.search_strategy = SearchStrategy.create(search_strategy)
        if mod is not None:
            self.initialize()

    @functools.cached_property
    def product(self) -> Product | None:
        """The product that a program for a GPU is about, of which there is an estimate."""
        return product_of(self.mod, self.target) if is_gpu(self.target) else None

    def must_run_here(self) -> None:
        """ValueError where candidates of this task cannot be measured on this machine."""
        if self.target.kind.name != "llvm" and not is_gpu(self.target):
            raise ValueError("candidates are measured on this machine, with target \"llvm\", or "
                             f"for a GPU; they cannot be run for {self.target.kind.name!r} here")

    @property
    def rand_state(self) -> int:
        """The seed."""
        return self.seed

    def initialize(self) -> None:
        """Let the parts know the task."""
        if self.space_generator is not None:
            self.space_generator.initialize_with_tune_context(self)
        if self.search_strategy is not None:
            self.search_strategy.initialize_with_tune_context(self)

    def clone(self) -> "TuneContext":
        """Another task of the same description."""
        return TuneContext(
            self.mod, target=self.target, space_generator=self.space_generator.clone(),
            search_strategy=self.search_strategy.clone(), task_name=self.task_name,
            rand_state=self.seed, num_threads=self.num_threads, inputs=self.inputs)

    def fresh_seed(self) -> int:
        """A seed drawn from the task's generator."""
        return self.rng.randint(1, 2**31 - 1)

    # ------------------------------------------------------------------ the space

    def generate_design_space(self) -> list[Schedule]:
        """The design spaces. Raises SpaceError if there is none, and for a program without blocks,
        in which there is nothing to schedule."""
        if not self.mod.functions:
            raise SpaceError("this context has no program: give it one, TuneContext(mod, ...)")
        if not any(type(node) is Block for node in pre_order(self.mod["main"].body)):
            raise SpaceError(f"the program of task {self.task_name!r} has no block, and schedules "
                             "are made of what is done to blocks: write its statements in "
                             "`with T.block(...)`, or leave it out of the search")
        spaces = self.space_generator.generate_design_space(self.mod, self.fresh_seed())
        if not spaces:
            raise SpaceError(f"the space of task {self.task_name!r} is empty: its generator "
                             f"{self.space_generator.description} made no schedule")
        return spaces

    def replay(self, trace: Trace, fresh: bool = False, decisions: dict | None = None
               ) -> Schedule | None:
        """A postprocessed schedule of a trace; None if it is refused or rejected.

        `fresh` decides every sampling instruction anew, `decisions` by index.
        """
        sch = self._replayed(trace, {} if fresh else decisions)
        return sch if sch is not None and self.postprocess(sch) else None

    def draft(self, trace: Trace) -> Draft | None:
        """A candidate of a trace; None if it is rejected.

        Its schedule is to be postprocessed when it is chosen; the judged one has run the steps of
        the stage "judged". Where a step has no stage, both are one schedule, postprocessed.
        """
        for step in self.space_generator.postprocs:
            if not step.admits(trace):
                self.reject(type(step).__name__)
                return None
        sch = self._replayed(trace, None)
        if sch is None:
            return None
        decisions = sch.trace.decisions
        steps = self.space_generator.postprocs
        if any(step.stage is None for step in steps):
            return Draft(sch, sch, decisions) if self.postprocess(sch) else None
        judged = sch.copy()
        if not self._run_all([step for step in steps if step.stage == "judged"], judged):
            return None
        return Draft(sch, judged, decisions)

    def _replayed(self, trace: Trace, decisions: dict | None) -> Schedule | None:
        try:
            sch = self.replayer.replay(trace, decisions, self.fresh_seed())
        except (Refusal, ScheduleError, ValueError) as error:
            self.reject(f"{type(error).__name__}: {getattr(error, 'rule', error)}")
            return None
        return sch

    def postprocess(self, sch: Schedule) -> bool:
        """Run the postprocessors; whether all of them accept."""
        sch.enter_postproc()
        late = self.replayer.late_checks
        if late:
            sch.check_late(True)
        if not self._run_all(self.space_generator.postprocs, sch):
            return False
        if late:
            try:
                sch.check_late(False)
            except Refusal as error:
                self.reject(f"Refusal: {error.rule}")
                return False
        sch.trace = sch.trace.simplified(remove_postproc=False)
        return True

    def _run_all(self, steps: Sequence[Any], sch: Schedule) -> bool:
        for step in steps:
            try:
                if not step.apply(sch):
                    self.reject(type(step).__name__)
                    return False
            except (Refusal, ScheduleError) as error:
                self.reject(f"{type(step).__name__}: {error.rule}")
                return False
        return True

    def reject(self, why: str) -> None:
        """Count a candidate that was dropped before it was built."""
        self.rejected[why] = self.rejected.get(why, 0) + 1

    # ------------------------------------------------------------------ TVM's way in

    def pre_tuning(self, max_trials: int, num_trials_per_iter: int = 64,
                   design_spaces: list | None = None, database: Database | None = None,
                   cost_model: CostModel | None = None) -> None:
        """Begin a search by hand."""
        self.search_strategy.pre_tuning(
            max_trials, num_trials_per_iter, design_spaces or self.generate_design_space(),
            database, cost_model)

    def generate_measure_candidates(self) -> list | None:
        """The strategy's next batch."""
        return self.search_strategy.generate_measure_candidates()

    def notify_runner_results(self, candidates: list, results: list) -> None:
        """Tell the strategy how its batch did."""
        self.search_strategy.notify_runner_results(candidates, results)

    def post_tuning(self) -> None:
        """End the search."""
        self.search_strategy.post_tuning()


__all__ = ["MLCError", "TuneContext"]
