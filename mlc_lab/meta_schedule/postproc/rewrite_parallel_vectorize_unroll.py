"""RewriteParallelVectorizeUnroll: carry out the annotations of ParallelizeVectorizeUnroll.

`meta_schedule.parallel` = n: the outermost loops of each nest become one parallel loop of at most n
iterations where they divide so. `meta_schedule.vectorize` = n: innermost loops over neighbouring
elements that are no vectors yet become vectors of at most n elements.
`meta_schedule.unroll_explicit` (or `_implicit`) = n: loops of at most n steps are unrolled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...machine.hardware import hardware_of
from ...schedule import Refusal, ScheduleError
from ...schedule.guards import parallelizable
from ...tir import op
from ...tir.functor import pre_order, uses_var
from ...tir.stmt import For, ForKind
from ..analysis import BlockFacts, vector_axis
from .common import cpu_vector_extent, leaf_blocks, outermost, root_block
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV, LoopRV
    from ...schedule.schedule import Schedule

_PREFIX = "meta_schedule."


class RewriteParallelVectorizeUnroll(Postproc):
    """See the file's text."""

    stage = "judged"

    def apply(self, sch: Schedule) -> bool:
        """Always keeps the candidate; what cannot be done is left as it is."""
        root = root_block(sch)
        asked = {}
        for key, value in dict(sch.get(root).annotations).items():
            if key.startswith(_PREFIX):
                asked[key[len(_PREFIX):]] = int(getattr(value, "value", value))
                sch.unannotate(root, key)
        if not asked:
            return True
        for _, block in leaf_blocks(sch):
            if asked.get("vectorize", 0) > 1:
                self._vectorize(sch, block, asked["vectorize"])
        if asked.get("parallel", 0) > 1:
            done: set[Any] = set()
            for _, block in leaf_blocks(sch):
                self._parallel(sch, outermost(sch, block), asked["parallel"], done)
        steps = asked.get("unroll_explicit", asked.get("unroll_implicit", 0))
        if steps > 1:
            self._unroll(sch, steps, "unroll_explicit" in asked)
        return True

    def _vectorize(self, sch: Schedule, block: BlockRV, most: int) -> None:
        """Make a vector of the loop along which the result is contiguous, innermost."""
        loops = sch.get_loops(block)
        if not loops or any(sch.get(lp).kind is not ForKind.SERIAL for lp in loops):
            return
        facts = BlockFacts(sch, block)
        at = self._driver(sch, block, facts, loops)
        extent = None if at is None else op.as_int(sch.get(loops[at]).extent)
        if at is None or extent is None:
            return
        inside = [lp for lp in loops[at + 1:] if op.as_int(sch.get(lp).extent) != 1]
        if inside and not self._contiguous(facts):
            return
        hw = hardware_of(self.context.target if self.context is not None else None)
        lanes = hw.lanes(facts.result.dtype)
        if facts.reduced:
            most = max(most, hw.registers // 2 * lanes)  # so many partial sums are in registers
        length = extent if extent <= most else cpu_vector_extent(lanes, extent, most)
        if length == 1:
            return
        try:
            loop = loops[at]
            if length < extent:
                loop = sch.split(loop, factors=[None, length])[1]
            if loops[at + 1:]:
                sch.reorder(*loops[at + 1:], loop)
            sch.vectorize(loop)
        except ScheduleError:
            pass  # e.g. a loop that is shared with another block

    def _driver(self, sch: Schedule, block: BlockRV, facts: BlockFacts, loops: list) -> int | None:
        """Which loop moves the result by one element, and nothing else of the block."""
        axis = vector_axis(facts)
        if axis is None or facts.store is None:
            return None
        realize = sch.state.realize_of(sch.get_sref(block))
        for position in range(len(loops) - 1, -1, -1):
            stmt = sch.get(loops[position])
            if op.as_int(stmt.extent) in (None, 1):
                continue
            driven = [iv.var for iv, v in zip(realize.block.iter_vars, realize.iter_values)
                      if uses_var(v, stmt.loop_var)]
            if driven == [axis.var]:
                return position
        return None

    def _contiguous(self, facts: BlockFacts) -> bool:
        """Whether the inputs are contiguous, or stand still, along the vector."""
        axis = vector_axis(facts)
        return axis is not None and all(
            (facts.steps(r) or {axis.var: 2}).get(axis.var, 0) in (0, 1) for r in facts.reads)

    def _parallel(self, sch: Schedule, block: BlockRV, jobs: int, done: set) -> None:
        loops = sch.get_loops(block)
        if not loops or sch.get_sref(loops[0]) in done:
            return
        chain, product = [], 1
        for loop in loops:
            stmt: For = sch.get(loop)
            extent = op.as_int(stmt.extent)
            if stmt.kind is not ForKind.SERIAL or extent is None or product * extent > jobs * 64:
                break
            if not self._may_be_parallel(sch, loop):
                break
            chain.append(loop)
            product *= extent
            if product >= jobs or type(stmt.body) is not For:
                break
        if not chain:
            return
        try:
            fused = sch.fuse(*chain) if len(chain) > 1 else chain[0]
            if product > jobs:
                pieces = max(d for d in range(1, jobs + 1) if product % d == 0)
                if pieces * 2 > jobs:
                    fused = sch.split(fused, factors=[pieces, None])[0]
            sch.parallel(fused)
            done.add(sch.get_sref(fused))
        except ScheduleError:
            pass  # e.g. loops with a condition that depends on both

    def _may_be_parallel(self, sch: Schedule, loop: LoopRV) -> bool:
        try:
            parallelizable(sch.state, sch.get_sref(loop), "parallel")
        except Refusal:
            return False
        return True

    def _unroll(self, sch: Schedule, steps: int, explicit: bool) -> None:
        done: set[Any] = set()
        for _, block in leaf_blocks(sch):
            loops = sch.get_loops(outermost(sch, block))
            if not loops or sch.get_sref(loops[0]) in done:
                continue
            done.add(sch.get_sref(loops[0]))
            if any(type(n) is For and n.kind is ForKind.UNROLLED
                   for n in pre_order(sch.get(loops[0]))):
                continue  # tiled by hand or by a rule
            sch.annotate(loops[0], "pragma_auto_unroll_max_step", steps)
            sch.annotate(loops[0], "pragma_unroll_explicit", 1 if explicit else 0)
