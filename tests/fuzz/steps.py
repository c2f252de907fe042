"""What random schedules are put together from: primitives with arguments that look right."""

from __future__ import annotations

import numpy as np

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.schedule.error import Refusal
from mlc_lab.schedule.guards import complete_or_reduction
from mlc_lab.tir import IndexMap, IterVar
from mlc_lab.tir.functor import free_vars
from mlc_lab.tir.stmt import BufferStore

from .intrinsics import made_from

SCOPES = ["global", "local", "shared"]
AXES = ["threadIdx.x", "blockIdx.x", "threadIdx.y", "vthread.x"]


class Nothing(Exception):
    """There is nothing to try a primitive on."""


class Steps:
    """Tries primitives on a schedule. Each method draws arguments and makes one call."""

    def __init__(self, draw, sch: Schedule) -> None:
        self.draw, self.sch = draw, sch

    # ------------------------------------------------------------------ arguments

    def blocks(self) -> list:
        """All blocks of the program but the root."""
        out = []

        def collect(scope) -> None:
            for child in self.sch.get_child_blocks(scope):
                out.append(child)
                collect(child)

        collect(self.sch.get_block("root"))
        return out

    def block(self):
        return self.draw.choice(self.blocks())

    def loops(self, block=None) -> list:
        return self.sch.get_loops(block if block is not None else self.block())

    def loop(self, block=None):
        loops = self.loops(block)
        if not loops:
            raise Nothing
        return self.draw.choice(loops)

    def whole(self, blocks: list) -> list:
        """Mostly those that are complete or reductions, which is what most primitives ask for."""
        return blocks if self.draw.chance(20) else [b for b in blocks if self._is_whole(b)] or (
            blocks)

    def _is_whole(self, block) -> bool:
        state, sref = self.sch.state, self.sch.get_sref(block)
        try:
            complete_or_reduction(state, sref, state.scope_root(sref))
        except Refusal:
            return False
        return True

    def apart(self, block, partners: list) -> list:
        """The loops of partners that are not around a block."""
        around = {self.sch.get_sref(loop) for loop in self.loops(block)}
        return [loop for p in partners for loop in self.loops(p)
                if self.sch.get_sref(loop) not in around]

    def scope(self) -> str:
        return self.draw.choice(SCOPES)

    def stmt(self, block):
        return self.sch.get(block)

    def region(self, block, kind: str) -> int:
        regions = self.stmt(block).reads if kind == "read" else self.stmt(block).writes
        return self.draw.integer(0, max(len(regions) - 1, 0))

    def between(self):
        """Mostly a block whose result is an intermediate one."""
        return self.draw.choice(self._between())

    def _between(self) -> list:
        blocks = self.blocks()
        if self.draw.chance(20):
            return blocks
        return [b for b in blocks if self.written(b)] or blocks

    def written(self, block):
        """The buffers that a block says it writes and that the function allocates."""
        params = set(self.sch.mod["main"].buffers)
        return [n for n, w in enumerate(self.stmt(block).writes) if w.buffer not in params]

    def index_map(self, rank: int, drop: int = 0, odd: int = 10) -> IndexMap:
        """A map that shuffles, splits, fuses, or now and then no such thing."""
        draw = self.draw
        order = [i for i in draw.permutation(range(rank)) if not draw.chance(drop)]
        parts = [(i, draw.choice([0, 0, 2, 3, 4]), draw.chance(odd)) for i in order]
        shift = draw.integer(-1, 1)
        fuse = draw.chance(odd) and len(order) > 1

        def index_map(*at):
            out = []
            for i, n, strange in parts:
                if strange:
                    out.append(4 - at[i] if shift < 0 else at[i] + shift)
                elif n:
                    out += [at[i] // n, at[i] % n]
                else:
                    out.append(at[i])
            if fuse:
                out[:2] = [out[0] * 4 + out[1]]
            return out

        return IndexMap.from_func(index_map, rank)

    # ------------------------------------------------------------------ loops

    def split(self):
        factors = self.draw.choice([[None, 2], [2, None], [None, 3], [1, None], [None, 1],
                                    [None, 4], [2, None, 2], [None, 2, 2], [4, 4]])
        loop = self.loop()
        extent = getattr(self.sch.get(loop).extent, "value", None)
        exact = extent is not None and None in factors and extent % int(
            np.prod([f for f in factors if f])) == 0
        self.sch.split(loop, factors, preserve_unit_iters=not self.draw.chance(20),
                       disable_predication=exact and self.draw.chance(20))

    def loop_partition(self):
        factors = self.draw.choice([[None, 2], [1, None], [1], [2, 1, None], [3, 1], [None, 1, 1]])
        self.sch.loop_partition(self.loop(), factors,
                                preserve_unit_iters=not self.draw.chance(20))

    def fuse(self):
        loops = self.loops()
        first = self.draw.integer(0, max(len(loops) - 2, 0))
        count = self.draw.choice([2, 2, 3, 1])
        self.sch.fuse(*loops[first:first + count],
                      preserve_unit_iters=not self.draw.chance(20))

    def merge(self):
        """Mostly loops of nests that follow each other."""
        blocks = self.blocks()
        at = self.draw.integer(0, max(len(blocks) - 2, 0))
        pair = [self.loops(b) for b in blocks[at:at + 2]]
        depth = min(map(len, pair))
        if len(pair) < 2 or not depth:
            raise Nothing
        level = self.draw.integer(0, depth - 1)
        self.sch.merge(*(loops[level] for loops in pair))

    def reorder(self):
        loops = self.loops()
        self.sch.reorder(*self.draw.sample(loops, min(len(loops), self.draw.choice([2, 2, 3]))))

    def parallel(self):
        self.sch.parallel(self.loop())

    def vectorize(self):
        self.sch.vectorize(self.loop())

    def unroll(self):
        self.sch.unroll(self.loop())

    def bind(self):
        self.sch.bind(self.loop(), self.draw.choice(AXES))

    def kernel_bind(self):
        """A kernel: a loop on blocks of threads, and of each block in it a loop on threads."""
        block = self.draw.choice(self.blocks())
        first = self.loop(block)
        if not self.draw.chance(15):
            first = self.loops(block)[0]
        if self.draw.chance(50):
            for producer in self.sch.get_producers(block)[::-1]:
                if self.draw.chance(30):
                    self.sch.set_scope(producer, 0, self.draw.choice(["shared", "local"]))
                self.sch.compute_at(producer, first)
        self.sch.bind(first, "blockIdx.x")
        threads = self.draw.choice([2, 4, 3])
        for child in self.sch.get_child_blocks(first):
            loops = self.loops(child)[1:]
            if loops and not self.draw.chance(15):
                loop = self.draw.choice(loops)
                if not self.draw.chance(25):
                    loop = self.draw.choice(self.sch.split(loop, self.draw.choice(
                        [[None, threads], [threads, None]])))
                self.sch.bind(loop, "threadIdx.x")

    def add_unit_loop(self):
        self.sch.add_unit_loop(self.block() if self.draw.chance(50) else self.loop())

    # ------------------------------------------------------------------ places

    def _at(self, method, blocks, partners):
        """Move one of the blocks, mostly to a loop of its partners that is not around it."""
        found = [(b, loops) for b in self.whole(blocks)
                 if (loops := self.apart(b, partners(b)))]
        if found and not self.draw.chance(15):
            block, loops = self.draw.choice(found)
            loop = self.draw.choice(loops)
        else:
            block, loop = self.draw.choice(blocks), self.loop()
        method(block, loop, preserve_unit_loops=self.draw.chance(30),
               index=self.draw.choice([-1, -1, -1, -1, -1, -2, 0, 1]))

    def compute_at(self):
        self._at(self.sch.compute_at, self._between(), self.sch.get_consumers)

    def reverse_compute_at(self):
        self._at(self.sch.reverse_compute_at, self.blocks(), self.sch.get_producers)

    def compute_inline(self):
        self.sch.compute_inline(self.between())

    def reverse_compute_inline(self):
        consumers = self.sch.get_consumers(self.between())
        if not consumers:
            raise Nothing
        self.sch.reverse_compute_inline(self.draw.choice(consumers))

    def sample_compute_location(self):
        block = self.block()
        self.sch.compute_at(block, self.sch.sample_compute_location(block))

    # ------------------------------------------------------------------ reductions

    def decompose_reduction(self):
        block = self._reduction()
        self.sch.decompose_reduction(block, self.loop(block))

    def rfactor(self):
        block = self.draw.choice(self.whole(self._reductions()))
        self.sch.rfactor(self.draw.choice(self._driving(block, IterVar.CommReduce)),
                         self.draw.choice([0, -1, 1]))

    def _reduction(self):
        return self.draw.choice(self._reductions())

    def _reductions(self) -> list:
        blocks = self.blocks()
        if self.draw.chance(10):
            return blocks
        found = [b for b in blocks if self.stmt(b).init is not None]
        if not found:
            raise Nothing
        return found

    def _driving(self, block, kind: int) -> list:
        """Mostly the loops that drive iterators of one kind alone."""
        loops = self.loops(block)
        if not loops:
            raise Nothing
        if self.draw.chance(15):
            return loops
        state, sref = self.sch.state, self.sch.get_sref(block)
        used = [(iv.iter_type == kind, set(free_vars(value))) for iv, value in zip(
            sref.stmt.iter_vars, state.realize_of(sref).iter_values)]
        return [loop for loop in loops if any(
            right and self.sch.get(loop).loop_var in names for right, names in used) and not any(
            self.sch.get(loop).loop_var in names for right, names in used if not right)] or loops

    def rolling_buffer(self):
        """Mostly of what one block reads at several places that move with a loop: there it goes."""
        found = []
        for block in self.whole([b for b in self.blocks() if self.written(b)]):
            consumers = self.sch.get_consumers(block)
            if len(consumers) == 1 or self.draw.chance(10):
                found += [(block, loop) for c in consumers for loop in self._moving(block, c)]
        if not found:
            raise Nothing
        if self.draw.chance(10):
            block = self.between()
            self.sch.rolling_buffer(block, self.region(block, "write"))
            return
        block, loop = self.draw.choice(found)
        if self.sch.get_sref(loop) not in map(self.sch.get_sref, self.loops(block)):
            if self.draw.chance(40):
                loop, _ = self.sch.split(loop, [None, 2])
            self.sch.compute_at(block, loop)
        self.sch.rolling_buffer(block, self.region(block, "write"))

    def _moving(self, block, consumer) -> list:
        """The loops with which several elements move that a consumer reads of what a block writes.
        """
        written = {w.buffer for w in self.stmt(block).writes}
        places = set()
        for read in self.stmt(consumer).reads:
            for r in read.region if read.buffer in written else ():
                if len(free_vars(r.min)) > 1 or getattr(r.extent, "value", 1) > 1:
                    places |= set(free_vars(r.min))
        sref = self.sch.get_sref(consumer)
        driving = {v for iv, value in zip(sref.stmt.iter_vars,
                                          self.sch.state.realize_of(sref).iter_values)
                   if iv.var in places and iv.iter_type == IterVar.DataPar
                   for v in free_vars(value)}
        return [loop for loop in self.loops(consumer) if self.sch.get(loop).loop_var in driving]

    # ------------------------------------------------------------------ buffers

    def cache_read(self):
        block = self.block()
        self.sch.cache_read(block, self.region(block, "read"), self.scope(),
                            consumer_blocks=[block] if self.draw.chance(25) else None)

    def cache_write(self):
        block = self.block()
        readers = self.sch.get_consumers(block)
        self.sch.cache_write(block, self.region(block, "write"), self.scope(),
                             consumer_blocks=self.draw.sample(readers, 1)
                             if readers and self.draw.chance(25) else None)

    def cache_inplace(self):
        blocks = self.blocks()
        block = self.draw.choice([b for b in blocks if any(
            r.buffer is w.buffer for r in self.stmt(b).reads for w in self.stmt(b).writes)
            and not self.draw.chance(20)] or blocks)
        self.sch.cache_inplace(block, self.region(block, "read"), self.scope())

    def cache_index(self):
        self.sch.cache_index(self.block(), "global", self.draw.choice([0, 1, 2]))

    def reindex(self):
        block = self.block()
        kind = self.draw.choice(["read", "write"])
        self.sch.reindex(block, (kind, self.region(block, kind)))

    def reindex_cache_read(self):
        block = self.block()
        self.sch.reindex_cache_read(block, self.region(block, "read"), self.scope(),
                                    self.index_map(len(self.stmt(block).iter_vars), 20))

    def reindex_cache_write(self):
        block = self.block()
        self.sch.reindex_cache_write(block, self.region(block, "write"), self.scope(),
                                     self.index_map(len(self.stmt(block).iter_vars), 20))

    def set_scope(self):
        block = self.block()
        self.sch.set_scope(block, self.region(block, "write"), self.scope())

    def storage_align(self):
        block = self.block()
        self.sch.storage_align(block, self.region(block, "write"), self.draw.choice([0, -1, 1]),
                               self.draw.choice([4, 8]), self.draw.choice([0, 1, 2]))

    def unsafe_set_dtype(self):
        """Only to what holds every value."""
        block = self.block()
        for n in self.written(block):
            if self.stmt(block).writes[n].buffer.dtype == "float32":
                self.sch.unsafe_set_dtype(block, n, "float64")
                return

    def transform_layout(self):
        block = self.block()
        for n in self.written(block):  # a parameter's layout is agreed on with the caller
            buffer = self.stmt(block).writes[n].buffer
            pad = self.draw.choice([None, None, 0])
            self.sch.transform_layout(block, ("write", n), self.index_map(len(buffer.shape)),
                                      pad_value=pad if pad is None or buffer.dtype == "bool" else (
                                          float(pad) if "float" in buffer.dtype else pad))
            return

    def set_axis_separator(self):
        block = self.block()
        for n in self.written(block):
            rank = len(self.stmt(block).writes[n].buffer.shape)
            self.sch.set_axis_separator(block, ("write", n),
                                        [self.draw.integer(1, rank - 1)] if rank > 1 else [])
            return

    def annotate_buffer_access(self):
        block = self.block()
        kind = self.draw.choice(["read", "write"])
        n = self.region(block, kind)
        regions = self.stmt(block).reads if kind == "read" else self.stmt(block).writes
        if regions:
            spans = [self.draw.choice(["all", "all", "half"]) for _ in regions[n].buffer.shape]
            shape = regions[n].buffer.shape
            self.sch.annotate_buffer_access(block, n, kind, lambda *at: [
                (0, d) if s == "all" else (0, (d + 1) // 2) for s, d in zip(spans, shape)])

    # ------------------------------------------------------------------ blocks

    def blockize(self):
        if self.draw.chance(25):
            blocks = self.blocks()
            first = self.draw.integer(0, len(blocks) - 1)
            self.sch.blockize(blocks[first:first + 2],
                              preserve_unit_iters=not self.draw.chance(20))
        else:
            self.sch.blockize(self.loop(), preserve_unit_iters=not self.draw.chance(20))

    def unblockize(self):
        """A block inside another one, most often such that were made of tiles for it."""
        block = self.draw.choice(self.blocks())
        if self.draw.chance(80):
            blocks = self.blocks()
            first = self.draw.integer(0, len(blocks) - 1)
            loops = self.loops(block)
            block = self.sch.blockize(blocks[first:first + 2] if not loops or self.draw.chance(30)
                                      else self.draw.choice(loops))
            around = self.loops(block)
            self.sch.blockize(self.draw.choice(around) if around else [block])
        self.sch.unblockize(block)

    def tensorize(self):
        """By an intrinsic that is made for it, or by one that is there and hardly fits."""
        if self.draw.chance(10):
            self.sch.tensorize(self.loop(), self.draw.choice(["fuzz_fill_2", "fuzz_double_2",
                                                              "fuzz_add_2"]))
            return
        block = self.draw.choice(self.whole(self.blocks()))
        at = block
        if type(self.stmt(block).body) is BufferStore or self.draw.chance(30):
            at = self.draw.choice(self.loops(block)[-1:-4:-1] or [block])
        other = self.sch.copy()
        try:
            made = other.get(other.blockize(at) if at is not block else at)
        except ScheduleError:
            raise Nothing from None
        name = f"fuzz_made_{len(self.sch.steps)}"  # its own in this schedule
        if not made_from(made, name, self.draw):
            raise Nothing
        self.sch.tensorize(at, name)

    def transform_block_layout(self):
        block = self.block()
        self.sch.transform_block_layout(block, self.index_map(len(self.stmt(block).iter_vars)))

    def reorder_block_iter_var(self):
        block = self.block()
        self.sch.reorder_block_iter_var(block, self.draw.permutation(
            range(len(self.stmt(block).iter_vars))))

    def decompose_padding(self):
        blocks = self.blocks()
        found = [b for b in blocks if type(self.stmt(b).body) is BufferStore and getattr(getattr(
            self.stmt(b).body.value, "op", None), "name", "") == "tir.if_then_else"]
        if not found and not self.draw.chance(10):
            raise Nothing
        block = self.draw.choice(self.whole(found or blocks))
        loops = [lp for lp in self.loops(block) if len(self.sch.get_child_blocks(lp)) == 1]
        self.sch.decompose_padding(block, self.draw.choice(loops) if loops else self.loop(block))

    def pad_einsum(self):
        block = self.block()
        self.sch.pad_einsum(block, [self.draw.choice([1, 2, 3, 4])
                                    for _ in self.stmt(block).iter_vars])

    # ------------------------------------------------------------------ notes and samples

    def annotate(self):
        draw = self.draw
        kind = draw.choice(["note", "other", "note", "pipeline", "double"])
        if kind == "pipeline":
            loop = self.loop()
            count = len(getattr(self.stmt(loop).body, "seq", [None]))
            stages = [draw.integer(0, 2) for _ in range(count)]
            self.sch.annotate(loop, "software_pipeline_stage",
                              sorted(stages) if draw.chance(60) else stages)
            self.sch.annotate(loop, "software_pipeline_order",
                              draw.permutation(range(count)) if draw.chance(30)
                              else list(range(count)))
        elif kind == "double":
            self.sch.annotate(self.block(), "double_buffer_scope", 0)
        else:
            self.sch.annotate(self.block() if draw.chance(50) else self.loop(), kind,
                              draw.integer(0, 9))

    def unannotate(self):
        """Mostly a note that is there."""
        places = [*self.blocks(), *(loop for b in self.blocks() for loop in self.loops(b))]
        noted = [p for p in places if "note" in self.stmt(p).annotations]
        at = self.draw.choice(noted if noted and not self.draw.chance(20) else places)
        if not noted and self.draw.chance(50):
            self.sch.annotate(at, "note", 1)
        self.sch.unannotate(at, "note")

    def sample_perfect_tile(self):
        loop = self.loop()
        self.sch.split(loop, self.sch.sample_perfect_tile(loop, n=2, max_innermost_factor=4))

    def sample_categorical(self):
        self.sch.annotate(self.block(), "sampled",
                          self.sch.sample_categorical([1, 2, 4], [0.25, 0.25, 0.5]))

    def enter_postproc(self):
        self.sch.enter_postproc()


#: steps whose name is no primitive's own are those of the primitive they end with
PRIMITIVES = [name for name in vars(Steps) if not name.startswith("_") and name not in (
    "blocks", "block", "between", "loops", "loop", "whole", "apart", "scope", "stmt", "region",
    "written", "index_map")]
