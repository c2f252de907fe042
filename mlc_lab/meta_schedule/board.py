"""The tuning board: what one or several searches found, as plain data that charts can be drawn of.

`database.board()` gives a `Board`. Its JSON, version 1:

    format    "mlc-lab/board"
    version   1
    title     for a heading
    sessions  [{"key", "label", "task", "target", "seed", "state", "trials_wanted", "flop",
                "peak_s" (what the program would take at the machine's peak, or null), "numpy_s"
                (what numpy takes, or null), "baselines" ({name: seconds} of other schedules of
                it), "modelled" (whether its times are those of a model)}, ...]: the searches that
                are laid over each other
    trials    [trial, ...] in the order they were made
    axes      names of the decisions, in the order of the trace: what the space is drawn over
    words     [{name of a decision: {"label" ("tiles of j"), "choices" (of which the decision is the
              number of one, or null)}}, ...]: what decisions are about, once for all traces that
              differ in nothing else
    axis_labels  {axis: what it is about}
    rounds    [{"session": key, "round", "trials", "correlation" (rank correlation of predicted
                speed and that by "time", null where fewer than three were predicted)}, ...]
    lines     every distinct line of all traces, once; [] while a search runs

A **trial** is {"key" ("<database>.<id>"), "session", "trial", "round", "generation", "parent" (key
or null), "mutation", "strategy", "status", "reason", "time" (seconds or null), "low", "high" (least
and greatest of the times that count), "predicted" (score, higher is faster, or null), "error",
"at" ({axis: number}), "decisions" ({name: decision}), "words" (index into words),
"trace" ([index into lines, ...])}.

Times are in seconds. The correlation is Spearman's: 1 if the model put the trials of a round in
the order in which their times then were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..above import above
from ..ir.diagnostics import MLCError
from ..language import text
from ..schedule.trace import Trace
from ..target import Target
from ..target.gpus import gpu_of
from .defaults import is_gpu
from .measure.runner import MODELLED
from .board_words import said, without_decisions, words_of

if TYPE_CHECKING:
    from .database.database import Database

FORMAT = "mlc-lab/board"
VERSION = 1


class BoardError(MLCError, ValueError):
    """There is nothing to draw, or an edited decision does not fit: the message says why."""


class Board:
    """The trials of searches, ready to be drawn.

    Parameters
    ----------
    databases: a database or several, whose searches are laid over each other.
    task: only the searches of this task; by default all.
    numpy_s: seconds that numpy takes for the same, drawn as a line.
    peak_gflops: the machine's peak for another line; measured once if not given (False: no line).
    baselines: seconds of other schedules by their names, each a line; `measure_baselines` adds the
        program as it is written and its default schedule.
    """

    def __init__(self, databases: Any, task: str | None = None, numpy_s: float | None = None,
                 peak_gflops: float | bool | None = None, title: str | None = None,
                 baselines: Mapping[str, float] | None = None) -> None:
        given = databases if isinstance(databases, (list, tuple)) else [databases]
        self.databases = [part for d in given for part in getattr(d, "databases", [d])]
        self.task, self.numpy_s, self.peak_gflops = task, numpy_s, peak_gflops
        tuning = text("Tuning", "views")
        self.title = title or (f"{tuning} {task}" if task else tuning)
        self.baselines = dict(baselines or {})
        self._measured: dict[str, dict[str, float]] = {}  # of each program that was
        self._words: dict[tuple[str, str], dict[str, Any]] = {}

    # -- data

    def to_dict(self, traces: bool = True) -> dict[str, Any]:
        """The board as plain data; without traces where `traces` is False."""
        sessions, trials, lines, words = [], [], _Lines(), []
        for number, database in enumerate(self.databases):
            rows = database.records(task=self.task)
            sessions += self._sessions(number, database, rows)
            for row in rows:
                trial = _trial(number, row, lines if traces else None)
                about = self._about(database, row)
                if not any(about is one for one in words):
                    words.append(about)
                trial["words"] = next(n for n, one in enumerate(words) if one is about)
                trials.append(trial)
        labels = [s["label"] for s in sessions]
        for item in sessions:
            if labels.count(item["label"]) > 1:
                item["label"] += f", search {item['key']}"
        known = {s["key"] for s in sessions}
        for trial in trials:
            if trial["session"] not in known:
                known.add(trial["session"])
                sessions.append({"key": trial["session"], "label": "measured by hand", "task": "",
                                 "target": "", "seed": None, "state": "done", "flop": 0.0,
                                 "trials_wanted": 0, "peak_s": None, "numpy_s": None,
                                 "baselines": {}, "modelled": False})
        axes = _axes(trials)
        return {"format": FORMAT, "version": VERSION, "title": self.title, "sessions": sessions,
                "trials": trials, "axes": axes, "axis_labels": _axis_labels(axes, words),
                "words": words, "rounds": _rounds(trials), "lines": lines.all}

    def _about(self, database: Database, row: dict[str, Any]) -> dict[str, Any]:
        """What the decisions of a trial are about, the same dict for all traces of its kind."""
        key = str(row["workload"]), without_decisions(row["trace"])
        if key not in self._words:
            self._words[key] = words_of(Trace.from_json(row["trace_json"]),
                                        database.module(row["workload"]))
        return self._words[key]

    def _sessions(self, number: int, database: Database, rows: Sequence[dict]) -> list[dict]:
        flop = {}
        modelled = {row["session"] for row in rows if row["reason"] == MODELLED}
        for row in rows:
            flop[row["session"]] = row["flop"] or flop.get(row["session"], 0.0)
        out = []
        for item in database.sessions():
            if self.task is not None and item["task"] != self.task:
                continue
            machine = item["machine"]
            peak = self._peak(machine, item["target"], item["id"] in modelled)
            work = flop.get(item["id"], 0.0)
            out.append({
                "key": f"{number}.{item['id']}", "task": item["task"], "target": item["target"],
                "label": text("{task}, {search}seed {seed}", "views").format(
                    task=item["task"], search=_search(item, rows), seed=item["seed"])
                         + (", modelled times" if item["id"] in modelled else ""),
                "seed": item["seed"],
                "state": item["state"], "trials_wanted": item["trials_wanted"], "flop": work,
                "peak_s": work / (peak * 1e9) if peak and work else None,
                "numpy_s": self.numpy_s or machine.get("numpy_s"),
                "baselines": {**self.baselines, **self._measured.get(str(item["workload"]), {})},
                "modelled": item["id"] in modelled})
        return out

    def _peak(self, machine: dict, name: str, modelled: bool) -> float | None:
        """GFLOP/s of what the times are of. Of a GPU that is here they are not known, of one whose
        times are modelled they are in its data sheet."""
        target = Target(name) if name else None
        if target is not None and is_gpu(target):
            wanted = modelled and self.peak_gflops is not False
            return gpu_of(target).peak_flops / 1e9 if wanted else None
        if machine.get("peak_gflops"):
            return machine["peak_gflops"]
        if self.peak_gflops is None:
            from ..machine.peak import peak

            self.peak_gflops = peak() / 1e9
        return self.peak_gflops * machine.get("cores", 1) if self.peak_gflops else None

    def to_json(self) -> str:
        """The JSON text of `to_dict`."""
        return json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False)

    # -- one trial

    def record(self, key: str) -> Any:
        """The TuningRecord of a trial, by its key. Raises BoardError if there is none."""
        number, _, ident = key.partition(".")
        try:
            database = self.databases[int(number)]
            (found,) = database._records("WHERE id=?", (int(ident),))
        except (ValueError, IndexError):
            raise BoardError(f"the board has no trial {key!r}") from None
        return found

    def schedule(self, key: str, decisions: dict[str, Any] | None = None) -> Any:
        """The schedule of a trial, with other decisions where they are given.

        `decisions` maps the names of a trial's decisions ("v4, v5") to what is to be taken instead.
        Raises BoardError for a name that the trace lacks, ScheduleError for a decision that the
        program does not admit.
        """
        from ..schedule import Schedule

        record = self.record(key)
        trace = record.trace
        if decisions:
            names = trace.names()
            where = {", ".join(names[o] for o in trace.insts[i].output_list): i
                     for i in trace.decisions}
            wrong = [name for name in decisions if name not in where]
            if wrong:
                raise BoardError(f"the trace has no decision {wrong[0]!r}; it has: "
                                 f"{'; '.join(where) or 'none'}")
            for name, value in decisions.items():
                trace = trace.with_decision(trace.insts[where[name]], _as_decision(name, value),
                                            remove_postproc=False)
        sch = Schedule(record.workload.mod)
        trace.apply_to_schedule(sch)
        for name, value in (decisions or {}).items():
            taken = sch.trace.decisions[where[name]]
            if _as_decision(name, value) != _as_decision(name, taken):
                raise BoardError(f"{name} = {value} does not fit this loop; the nearest that does "
                                 f"is {taken}")
        return sch

    def stepper(self, key: str, measure: bool = False) -> Any:
        """The steps of a trial's schedule in the stepper."""
        return self.schedule(key).explore(measure=measure)

    def measure(self, key: str, decisions: dict[str, Any], trusted: bool = False) -> str:
        """Measure a trial with other decisions and put it into its database; the new trial's key.

        It is measured as the search does it: in a worker process, checked and timed. Raises
        BoardError for a program that calls code outside of itself, unless it is `trusted`.
        """
        from ..observe.outside import why_not
        from .measure_by_hand import measure_record

        record = self.record(key)
        sch = self.schedule(key, decisions)
        if not trusted and (reason := why_not([record.workload.mod, sch.mod])):
            raise BoardError(f"not measured: {reason}")
        number = key.partition(".")[0]
        words = words_of(record.trace, record.workload.mod)
        changed = "; ".join(
            f"{words[name]['label'] if name in words else name} = {said(value, words.get(name))}"
            for name, value in decisions.items())
        made = measure_record(record, sch, changed)
        return f"{number}.{self.databases[int(number)].commit_tuning_record(made)}"

    def measure_baselines(self, trusted: bool = False) -> dict[str, float]:
        """Time each program as it is written, and with its default schedule, as `measure` times a
        trial: they become lines of the board. The times that were found, by "<what>, <program>"
        where there is more than one program.

        Raises BoardError for a program that calls code outside of itself, unless it is `trusted`.
        """
        from ..observe.outside import why_not
        from ..schedule import Schedule
        from .measure_by_hand import measure_record
        from .space_generator.post_order_apply import default_schedule

        first: dict[str, Any] = {}  # a trial of each program
        for number, database in enumerate(self.databases):
            for row in database.records(task=self.task):
                first.setdefault(str(row["workload"]), f"{number}.{row['id']}")
        found: dict[str, float] = {}
        for workload, key in first.items():
            record, times = self.record(key), {}
            mod = record.workload.mod
            if not trusted and (reason := why_not([mod])):
                raise BoardError(f"not measured: {reason}")
            ways = {"as written": Schedule(mod),
                    "default schedule": default_schedule(mod, str(record.target))}
            for name, sch in ways.items():
                time = None if sch is None else measure_record(record, sch, name).time
                if time:
                    times[name] = time
            self._measured[workload] = times
            found |= {name if len(first) == 1 else f"{name}, {record.task}": time
                      for name, time in times.items()}
        return found

    def compare(self, one: str, other: str) -> Any:
        """The schedules of two trials side by side, as a notebook widget."""
        return above("comparison")(self.schedule(one), self.schedule(other),
                                   names=[f"trial {key}" for key in (one, other)])

    # -- shown

    def show(self, running: bool = False) -> Any:
        """The board as a notebook widget; `running` while a search still adds to it."""
        TuningBoard = above("view of a search").TuningBoard
        return TuningBoard(self, running=running)

    def html(self, path: str | Path | None = None, title: str | None = None) -> str:
        """The whole board as one HTML page without a kernel; written to `path` if given."""
        page = above("view of a search").page
        text = page([self], title or self.title)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def figure(self, chart: str = "progress", axes: Sequence[str] | None = None) -> Any:
        """A chart as a matplotlib Figure: "progress", "model", "space" (parallel coordinates, or a
        heat map of two decisions if `axes` names two), "family"."""
        from .board_figures import figure

        return figure(self.to_dict(traces=False), chart, axes)

    def table(self, count: int = 10) -> str:
        """The best trials as text."""
        every = self.to_dict(traces=False)["trials"]
        trials = [t for t in every if t["time"] is not None]
        trials.sort(key=lambda t: t["time"])
        rows = [f"{t['key']:>8}  {t['time'] * 1e6:12.2f} us  trial {t['trial']:>4}  {t['strategy']}"
                for t in trials[:count]]
        if any(t["reason"] == MODELLED for t in trials):
            rows.append(f"times are {MODELLED}")
        return "\n".join(rows) or (
            f"none of {len(every)} trials succeeded" if every else
            "no trial was measured when this was written: run the cell again for what is there now")

    def _repr_mimebundle_(self, **kwargs: object) -> Any:
        try:
            return self.show()._repr_mimebundle_(**kwargs)
        except ImportError:
            return {"text/plain": repr(self), "text/html": f"<pre>{escape(self.table())}</pre>"}

    def __repr__(self) -> str:
        counts = [len(d.records(task=self.task)) for d in self.databases]
        return f"<tuning board: {sum(counts)} trials>"


def _search(session: dict, rows: Sequence[dict]) -> str:
    """The strategy of a session: that of its last trial, since the first ones are random in all."""
    names = [r["strategy"] for r in rows
             if r["session"] == session["id"] and r["strategy"] != "user"]
    return f"{names[-1]}, " if names else ""


class _Lines:
    """Lines of text, each kept once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._at: dict[str, int] = {}

    def of(self, text: str) -> list[int]:
        out = []
        for line in text.split("\n"):
            at = self._at.get(line)
            if at is None:
                at = self._at[line] = len(self.all)
                self.all.append(line)
            out.append(at)
        return out


def _trial(number: int, row: dict[str, Any], lines: _Lines | None) -> dict[str, Any]:
    times = sorted(row["times"])
    kept = times[: (len(times) + 1) // 2]
    ok = row["status"] == "ok"
    return {
        "key": f"{number}.{row['id']}", "session": f"{number}.{row['session']}",
        "trial": row["trial"], "round": row["round"], "generation": row["generation"],
        "parent": None if row["parent"] is None else f"{number}.{row['parent']}",
        "mutation": row["mutation"], "strategy": row["strategy"], "status": row["status"],
        "reason": row["reason"], "time": row["time"] if ok else None,
        "low": kept[0] if kept and ok else None, "high": kept[-1] if kept and ok else None,
        "predicted": row["predicted"], "error": row["error"],
        "at": _coordinates(row["decisions"]), "decisions": row["decisions"],
        "trace": [] if lines is None else lines.of(row["trace"])}


def _coordinates(decisions: dict[str, Any]) -> dict[str, float]:
    """A number for each result of a sampling instruction."""
    out: dict[str, float] = {}
    for names, decision in decisions.items():
        values = decision if isinstance(decision, (list, tuple)) else [decision]
        for name, value in zip(names.split(", "), values):
            if isinstance(value, (int, float)):
                out[name] = value
    return out


def _axes(trials: Iterable[dict]) -> list[str]:
    found: dict[str, set] = {}
    for trial in trials:
        for name, value in trial["at"].items():
            found.setdefault(name, set()).add(value)
    return [name for name, values in found.items() if len(values) > 1]


def _axis_labels(axes: Iterable[str], words: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What the axes are about: of tiles, which one of them."""
    found: dict[str, str] = {}
    for kind in words:
        for name, about in kind.items():
            parts = name.split(", ")
            for n, part in enumerate(parts):
                label = about["label"] + (f", {n + 1} of {len(parts)}" if len(parts) > 1 else "")
                found.setdefault(part, label)
    return {axis: found.get(axis, axis) for axis in axes}


def _rounds(trials: Iterable[dict]) -> list[dict]:
    groups: dict[tuple, list[dict]] = {}
    for trial in trials:
        groups.setdefault((trial["session"], trial["round"]), []).append(trial)
    out = []
    for (session, number), members in groups.items():
        pairs = [(t["predicted"], -t["time"]) for t in members
                 if t["predicted"] is not None and t["time"] is not None]
        out.append({"session": session, "round": number, "trials": len(members),
                    "correlation": rank_correlation(pairs) if len(pairs) > 2 else None})
    return out


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rank correlation of pairs, ties sharing their rank; None where all are equal."""
    import numpy as np

    columns = []
    for column in zip(*pairs):
        values = np.asarray(column, dtype=float)
        distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        columns.append((ends - (counts - 1) / 2)[inverse])
    a, b = (c - c.mean() for c in columns)
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / size) if size else None


def _as_decision(name: str, value: Any) -> Any:
    """What a reader typed, as a decision: whole numbers only."""
    try:
        if isinstance(value, (list, tuple)):
            return [int(v) for v in value]
        return int(value)
    except (TypeError, ValueError):
        raise BoardError(f"the decision {name} has to be whole numbers, not {value!r}") from None


__all__ = ["Board", "BoardError", "rank_correlation"]
