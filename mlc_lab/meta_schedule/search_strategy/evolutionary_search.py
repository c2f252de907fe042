"""Evolutionary search: traces are mutated, a cost model picks those that are worth a measurement.

Each batch: the best measured traces and the best predictions are parents; a few generations of
mutants follow, and some fresh ones; the best predictions that were not measured yet are proposed,
and a share `eps_greedy` of others. Whatever was made and not proposed stays in the pool and is
judged again when the model has learnt more. The first generation of the next batch is made while
this one is measured (`work_ahead`). Candidates are compared by what comes of their decisions
(`same_program.py`), and when they are chosen by their programs, so none is measured twice; the
steps that the model need not see, such as packing, are left until one is chosen.

After Zheng et al., "Ansor" (OSDI 2020), and Shao et al., "Tensor program optimization with
probabilistic programs" (NeurIPS 2022).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Iterator, Sequence

from ...ir.structural import structural_hash
from ...schedule import Trace
from ..cost_model.tree_model import TreeModel
from ..mutator.mutator import annotation_of, sampling
from ..postproc.postproc import Postproc
from ..same_program import effective_decisions
from ..trace_extents import drawn_tiles
from .candidate import MeasureCandidate
from .search_strategy import SearchStrategy

if TYPE_CHECKING:
    from ..cost_model.cost_model import CostModel
    from ..database.database import Database


#: candidates that are judged by their decisions alone cost nothing to make: so many times as many
_CHEAP = 8
#: sizes that were refused so often, and never accepted, are not tried again
_REFUSALS = 3


class EvolutionarySearch(SearchStrategy):
    """See the file's text.

    Parameters
    ----------
    population_size: candidates a generation.
    generations: how often the population is mutated before a batch is proposed.
    batch: measurements after which the model learns again; `num_trials_per_iter` is the most.
    eps_greedy: share of fresh candidates in a batch.
    elite: how many of the best measured, and of the best predicted, are parents.
    kept: candidates in the pool at most.
    early_stopping: the search ends after so many measurements without a better one; None: never.

    TVM's names, each None by default:

    genetic_num_iters: the same as `generations`.
    genetic_mutate_prob: the share of a generation that is mutated; all of it. The others stay in
        the pool, as all candidates do.
    genetic_max_fail_count: a generation ends where so many mutations after one another give
        nothing new; `max_fail_count` counts all of a generation.
    init_measured_ratio: `elite` of the measured, as a share of the population.
    init_min_unmeasured: the same as `first`.

    Raises ValueError for shares that are not between 0 and 1, and numbers below 1.
    """

    name = "evolutionary"

    def __init__(self, *, population_size: int = 40, generations: int = 3, batch: int = 12,
                 eps_greedy: float = 0.1, elite: int = 6, first: int = 64, kept: int = 256,
                 early_stopping: int | None = None, init_measured_ratio: float | None = None,
                 init_min_unmeasured: int | None = None, max_fail_count: int = 200,
                 genetic_num_iters: int | None = None, genetic_mutate_prob: float | None = None,
                 genetic_max_fail_count: int | None = None) -> None:
        for name, share in (("init_measured_ratio", init_measured_ratio),
                            ("genetic_mutate_prob", genetic_mutate_prob)):
            if share is not None and not 0 <= share <= 1:
                raise ValueError(f"{name} is a share between 0 and 1, not {share!r}")
        for name, number in (("early_stopping", early_stopping),
                             ("genetic_max_fail_count", genetic_max_fail_count)):
            if number is not None and number < 1:
                raise ValueError(f"{name} has to be at least 1, not {number!r}")
        self.population_size = population_size
        self.generations = genetic_num_iters or generations
        self.batch, self.eps_greedy, self.elite = batch, eps_greedy, elite
        self.first = first if init_min_unmeasured is None else max(1, init_min_unmeasured)
        self.kept, self.max_fail_count, self.early_stopping = kept, max_fail_count, early_stopping
        #: of each generation; of the measured ones that are parents; misses after one another
        self._mutated = population_size if genetic_mutate_prob is None else (
            math.ceil(population_size * genetic_mutate_prob))
        self._best = elite if init_measured_ratio is None else (
            math.ceil(population_size * init_measured_ratio))
        self._misses = genetic_max_fail_count or max_fail_count

    def pre_tuning(self, max_trials: int, num_trials_per_iter: int, design_spaces: list,
                   database: Database | None = None, cost_model: CostModel | None = None) -> None:
        """Load what the database knows of the program."""
        super().pre_tuning(max_trials, num_trials_per_iter, design_spaces, database, cost_model)
        self.spaces = [s.trace.simplified() for s in design_spaces]
        self._shapes = [_shape(t) for t in self.spaces]
        #: what can tell of a candidate that it is dropped before it is replayed
        self._early = [step for step in self.context.space_generator.postprocs
                       if type(step).admits is not Postproc.admits]
        cheap = bool(self._early) and isinstance(cost_model, TreeModel)
        self._times = _CHEAP if cheap else 1
        self.seen: set[tuple] = set()
        self.programs: set[int] = set()  # that were proposed, by their structural hash
        self.measured: list[tuple[float, MeasureCandidate]] = []
        self.fixed = [i for i, t in enumerate(self.spaces) if not _samples(t)]
        self.open = [i for i, t in enumerate(self.spaces) if _samples(t)]
        self._sizes = [[i for i, inst in sampling(t, "SampleCategorical")
                        if annotation_of(t, inst.outputs) is None] for t in self.spaces]
        self._refused: dict[tuple, float] = {}  # how often; never again after an acceptance
        self.pool: dict[tuple, MeasureCandidate] = {}  # made, and not measured yet
        self._coming: Iterator[MeasureCandidate] = iter(())
        self._made: list[MeasureCandidate] = []
        self._since = 0  # measurements without a better one
        if database is not None:
            self._recall(database)

    def _recall(self, database: Database) -> None:
        """Records of this program that lie in these spaces count as measured."""
        context = self.context
        recalled, results = [], []
        for record in database.query_all(context.mod, str(context.target))[-256:]:
            trace = record.trace.without_postproc()
            shape = _shape(trace)
            if shape not in self._shapes:
                continue
            space = self._shapes.index(shape)
            own = Trace(self.spaces[space].insts, trace.decisions)
            self.seen.add(self._key(space, own))
            if record.time is None:
                continue
            made = context.draft(own)
            if made is None:
                continue
            if made.judged is made.sch or context.postprocess(made.sch):
                self.programs.add(structural_hash(made.sch.mod))
            candidate = MeasureCandidate(made.judged, context.args_info, parent=record.parent,
                                         generation=record.generation)
            candidate.record_id, candidate.space, candidate.decided = record.id, space, own
            self.measured.append((record.time, candidate))
            recalled.append(candidate)
            results.append(record)
        self.recalled = len(recalled)
        if recalled and self.cost_model is not None:
            self.cost_model.update(context, recalled, results)

    # ------------------------------------------------------------------ proposing

    def room(self) -> int:
        """Small batches, so that the model learns often."""
        return min(super().room(), self.batch)

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next batch."""
        room = self.room()
        if room <= 0:
            return None
        if self.early_stopping and self._since >= self.early_stopping:
            self.ending = f"no better one was found in {self._since} measurements (early_stopping)"
            return None
        out = self._fixed_ones(room)
        if self.measured:
            out += self._evolve(room - len(out))
        else:
            out += self._begin(room - len(out))
        self.proposed += len(out)
        return out or None

    def _fixed_ones(self, room: int) -> list[MeasureCandidate]:
        """Spaces without choices are one candidate each."""
        out = []
        while self.fixed and len(out) < room:
            space = self.fixed.pop(0)
            made = self._make(space, self.spaces[space])
            if made is not None and made.origin_key not in self.seen:
                made.strategy = "default"
                self.seen.add(made.origin_key)
                self._predict([made])
                if self._finish(made):
                    out.append(made)
        return out

    def _begin(self, room: int) -> list[MeasureCandidate]:
        """The first batch: of many fresh ones, most by the model's prior, the others spread."""
        ranked = self._add(self._fresh(max(self.first * self._times, room)))
        best = math.ceil(room * 0.7)
        rest = ranked[best:]
        step = max(1, len(rest) // max(1, room - best))
        out = self._take(ranked[:best] + rest[::step] + rest, room)
        self._plan(ranked)
        return out

    def _evolve(self, room: int) -> list[MeasureCandidate]:
        """A batch from mutants of the best, see the file's text."""
        self.measured.sort(key=lambda m: m[0])
        ahead = self._made + list(self._coming)  # what there was no time for is made now
        ranked = self._add(ahead or self._fresh(self.first))
        for _ in range(1 if ahead else 0, self.generations):
            ranked = self._add(self._mutants(
                self._parents(ranked), self._mutated * self._times))
        explore = sum(self.context.rng.random() < self.eps_greedy for _ in range(room))
        out = self._take(ranked, room - explore)
        if explore:
            others = [c for c in ranked if c.origin_key in self.pool]
            self.context.rng.shuffle(others)
            out += self._take(others, room - len(out))
        if len(out) < room:
            out += self._take(self._add(self._fresh(room - len(out))), room - len(out))
        self._plan(ranked)
        return out

    def _parents(self, ranked: list[MeasureCandidate]) -> list[MeasureCandidate]:
        """The best measured and the best predicted in turn, the best first."""
        measured = [c for _, c in self.measured[: self._best] if c.space in self.open]
        predicted = ranked[: self.elite]
        return [c for pair in itertools.zip_longest(predicted, measured) for c in pair if c]

    def _add(self, made: list[MeasureCandidate]) -> list[MeasureCandidate]:
        """Put candidates into the pool; all of it, judged anew, the best prediction first."""
        for candidate in made:
            self.pool[candidate.origin_key] = candidate
        ranked = list(self.pool.values())
        self._predict(ranked)
        ranked.sort(key=lambda c: -(c.predicted or 0.0))
        for candidate in ranked[self.kept:]:
            del self.pool[candidate.origin_key]
        return ranked[: self.kept]

    # ------------------------------------------------------------------ making candidates

    def _plan(self, ranked: list[MeasureCandidate]) -> None:
        """What `work_ahead` makes: mutants of the best known now, and some fresh ones."""
        self._coming = itertools.chain(
            self._mutating(self._parents(ranked), self._mutated),
            self._drawing(max(4, self.population_size // 4)))
        self._made = []

    def work_ahead(self) -> bool:
        """Make one candidate of the next batch's first generation."""
        made = next(self._coming, None)
        if made is None:
            return False
        self._made.append(made)
        return True

    def _mutants(self, parents: list[MeasureCandidate], count: int) -> list[MeasureCandidate]:
        return list(self._mutating(parents, count))

    def _mutating(self, parents: list[MeasureCandidate], count: int
                  ) -> Iterator[MeasureCandidate]:
        """So many mutants, unless nothing new is found often."""
        rng, done, fails, misses = self.context.rng, 0, 0, 0
        weights = [1 / (1 + 0.5 * rank) for rank in range(len(parents))]
        mutators = self.context.space_generator.mutator_probs
        if not mutators or not parents:
            return
        tried: set[tuple] = set()
        while done < count and fails < self.max_fail_count and misses < self._misses:
            parent = rng.choices(parents, weights)[0]
            new, names = parent.decided, []
            for _ in range(rng.choice((1, 1, 2))):
                mutator = rng.choices(list(mutators), list(mutators.values()))[0]
                changed = mutator.changed(new)
                if changed is not None:
                    new = changed
                    names.append(type(mutator).__name__)
            key = self._key(parent.space, new)
            known = key in self.seen or key in self.pool or key in tried
            if not names or known or self._often_refused(parent.space, new):
                fails, misses = fails + 1, misses + 1
                continue
            tried.add(key)
            made = self._make(parent.space, new)
            if made is None:
                fails, misses = fails + 1, misses + 1
                self.seen.add(key)
                continue
            misses = 0
            made.source, made.mutation = parent, ", ".join(names)
            made.generation = parent.generation + 1
            done += 1
            yield made

    def _fresh(self, count: int) -> list[MeasureCandidate]:
        """So many with decisions drawn anew, or fewer."""
        return list(self._drawing(count))

    def _drawing(self, count: int) -> Iterator[MeasureCandidate]:
        """Candidates with decisions drawn anew."""
        fails, known = 0, set()
        while self.open and len(known) < count and fails < self.max_fail_count:
            space = self.context.rng.choice(self.open)
            made = self._make(space, self._drawn(space))
            if made is None or made.origin_key in known or (
                    made.origin_key in self.seen or made.origin_key in self.pool):
                fails += 1
                continue
            known.add(made.origin_key)
            yield made

    def _drawn(self, space: int) -> Trace:
        """A trace with its SampleCategorical instructions decided anew and no other decisions.

        These can be decided without a schedule, so candidates whose first decisions agree share
        the replay of these steps.
        """
        trace = self.spaces[space]
        lists = {i: [float(getattr(w, "value", w)) for w in inst.args["probs"]]
                 for i, inst in sampling(trace, "SampleCategorical")}
        for _ in range(self.max_fail_count):
            drawn = Trace(trace.insts, {
                i: self.context.rng.choices(range(len(weights)), weights)[0]
                for i, weights in lists.items()})
            if self._early:
                drawn = Trace(trace.insts, {**drawn.decisions,
                                            **drawn_tiles(trace, self.context.rng)})
                if not all(step.admits(drawn) for step in self._early):
                    continue
            if not self._often_refused(space, drawn):
                break
        return drawn

    def _size_key(self, space: int, trace: Trace) -> tuple:
        decisions = trace.decisions
        return space, tuple(decisions.get(i) for i in self._sizes[space])

    def _often_refused(self, space: int, trace: Trace) -> bool:
        """Whether candidates with these sizes from lists (mostly a register tile) are refused."""
        return self._refused.get(self._size_key(space, trace), 0) >= _REFUSALS

    def _make(self, space: int, trace: Trace) -> MeasureCandidate | None:
        if self._times > 1:
            return self._undrafted(space, trace)
        drafted = self.context.draft(trace)
        if self._sizes[space]:
            key = self._size_key(space, trace)
            if drafted is not None:
                self._refused[key] = -math.inf
            else:
                self._refused[key] = self._refused.get(key, 0) + 1
        if drafted is None:
            return None
        decided = Trace(trace.insts, drafted.decisions)
        made = MeasureCandidate(drafted.judged, self.context.args_info, self.name,
                                draft=drafted.sch if drafted.judged is not drafted.sch else None)
        made.space, made.decided = space, decided
        made.origin_key = self._key(space, decided)
        return made

    def _undrafted(self, space: int, trace: Trace) -> MeasureCandidate | None:
        """A candidate that is judged by its decisions, and replayed when it is chosen."""
        if not all(step.admits(trace) for step in self._early):
            return None
        made = MeasureCandidate(None, self.context.args_info, self.name)
        made.space, made.decided = space, trace
        made.origin_key = self._key(space, trace)
        return made

    def _key(self, space: int, trace: Trace) -> tuple:
        decided = effective_decisions(trace, self.context.product)
        values = tuple((i, tuple(d) if isinstance(d, (list, tuple)) else d)
                       for i, d in sorted(decided.items()))
        parallel = tuple(inst.args["ann_val"] for inst in trace.insts
                         if inst.kind.name == "Annotate"
                         and isinstance(inst.args["ann_val"], int))
        return space, values, parallel

    def _predict(self, candidates: list[MeasureCandidate]) -> None:
        if self.cost_model is None or not candidates:
            return
        scores = self.cost_model.predict(self.context, candidates)
        for candidate, score in zip(candidates, scores):
            candidate.predicted = float(score)

    def _take(self, ranked: Sequence[MeasureCandidate], room: int) -> list[MeasureCandidate]:
        out = []
        for candidate in ranked:
            if len(out) >= room:
                break
            if candidate.origin_key not in self.seen:
                self.seen.add(candidate.origin_key)
                self.pool.pop(candidate.origin_key, None)
                if candidate.source is not None:
                    parent, candidate.source = candidate.source, None
                    candidate.parent = parent.record_id or parent.parent
                if self._finish(candidate):
                    out.append(candidate)
        return out

    def _finish(self, candidate: MeasureCandidate) -> bool:
        """Postprocess a candidate that is to be measured; False if that rejects it, or where its
        program was proposed before."""
        if candidate.sch is None:
            drafted = self.context.draft(candidate.decided)
            if drafted is None:
                return False
            candidate.draft = drafted.sch
        if candidate.draft is not None:
            candidate.sch, candidate.draft = candidate.draft, None
            if not self.context.postprocess(candidate.sch):
                return False
        assert candidate.sch is not None
        program = structural_hash(candidate.sch.mod)
        if program in self.programs:
            self.context.reject("the same program as one before")
            return False
        self.programs.add(program)
        return True

    # ------------------------------------------------------------------ learning

    def notify_runner_results(self, measure_candidates: Sequence[MeasureCandidate],
                              results: Sequence[Any]) -> None:
        """The times become parents of the next batch."""
        best = min((time for time, _ in self.measured), default=math.inf)
        for candidate, result in zip(measure_candidates, results):
            self._since += 1
            if result.status == "ok" and result.time:
                self.measured.append((result.time, candidate))
                if result.time < best:
                    best, self._since = result.time, 0


def _samples(trace: Trace) -> bool:
    return any(inst.kind.sampling for inst in trace.insts)


def _shape(trace: Trace) -> str:
    """A trace without its decisions, as text."""
    import json

    plain = Trace(trace.simplified().insts)
    return json.dumps(plain.as_json(), sort_keys=True)
