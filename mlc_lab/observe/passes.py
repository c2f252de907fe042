"""What a pipeline of passes did, pass by pass: programs, graphs and times, as plain data.

`record(mod, pipeline)` runs it and gives a `PassRecording`. Its JSON, version 1:

    format     "mlc-lab/passes"
    version    1
    title      for a heading
    recording  the programs before and after each pass, in the form of `recording.py`: step 0 is
               the module as it was, an `op` is the name of a pass, and the keys of a line are the
               function and the variable that it binds, by name
    seconds    [number, ...]: what each step took, 0 for step 0
    within     [[name, ...], ...]: the pipelines each pass ran in, outermost first
    graphs     [graph or null, ...] of each program, in the form of `graph.py`; null where the
               program has no Relax function or no single one is meant
    moved      [number or null, ...]: bytes that the calls of each program's graph move

A pass that merely runs others, one after the other, is not a step of its own: its parts are.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..above import above
from ..ir.module import IRModule
from ..ir.transform import Pass, PassContext, PassInfo, PassInstrument, Sequential
from ..language import text as said
from .graph import Graph, GraphError, graph_of
from .recording import Program, Recording, Step

FORMAT = "mlc-lab/passes"
VERSION = 1
_BINDS = re.compile(r"\s*([\w, ]+?)(?:: R\..*)? = ")
_DEF = re.compile(r"\s*def (\w+)\(")


class _Event:
    """A pass that runs, or has run."""

    def __init__(self, info: PassInfo, before: IRModule) -> None:
        self.info, self.before, self.after = info, before, before
        self.started, self.seconds = time.perf_counter(), 0.0
        self.parts: list[_Event] = []
        self.error: BaseException | None = None

    def steps(self, above: tuple[str, ...] = ()) -> Iterable[tuple["_Event", tuple[str, ...]]]:
        """This pass, or its parts where it did nothing but run them."""
        chain = [self.before, *(p.after for p in self.parts)]
        only_parts = self.parts and all(
            p.before is was for p, was in zip(self.parts, chain)) and self.after is chain[-1]
        if only_parts or (self.parts and self.error is not None):
            for part in self.parts:
                yield from part.steps((*above, self.info.name))
        else:
            yield self, above


class PassRecorder(PassInstrument):
    """An instrument that keeps every pass with the module before and after it.

    Immutable modules are kept as they are; a pass that changes a module in place is seen by its
    functions: the module before is a copy that shares them.
    """

    def __init__(self) -> None:
        self.events: list[_Event] = []
        self._running: list[_Event] = []
        self._seen: tuple[IRModule, IRModule] | None = None

    def _copy(self, mod: IRModule) -> IRModule:
        """A copy, the same one as long as the module stays as it is."""
        if self._seen is not None and self._seen[0] is mod and _same(*self._seen):
            return self._seen[1]
        copy = IRModule(dict(mod.functions), attrs=mod.attrs)
        self._seen = (mod, copy)
        return copy

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        event = _Event(info, self._copy(mod))
        (self._running[-1].parts if self._running else self.events).append(event)
        self._running.append(event)
        event.started = time.perf_counter()

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        event = self._running.pop()
        event.seconds = time.perf_counter() - event.started
        event.after = self._copy(mod)

    def failed(self, error: BaseException) -> None:
        """The passes that were running ended with an error."""
        for event in self._running:
            event.seconds = time.perf_counter() - event.started
            event.error = error
        self._running.clear()


class PassRecording:
    """A pipeline that was run: `result` is the module that came out, None if a pass failed;
    `error` is then what it raised."""

    def __init__(self, start: IRModule, events: Sequence[_Event], result: IRModule | None,
                 error: BaseException | None = None, title: str = "Passes",
                 function: str | None = None) -> None:
        self.start, self.result, self.error, self.title = start, result, error, title
        self.function = function
        self.steps = [pair for event in events for pair in event.steps()]
        self._data: dict[str, Any] | None = None

    @property
    def modules(self) -> list[IRModule]:
        """The module at the beginning and after each pass."""
        return [self.start, *(event.after for event, _ in self.steps)]

    def to_dict(self) -> dict[str, Any]:
        """The recording as plain data, see the head of this file."""
        if self._data is None:
            self._data = self._write()
        return self._data

    def _write(self) -> dict[str, Any]:
        recording, texts = Recording(self.title), _Texts()
        recording.lines, recording.keys = texts.lines, texts.keys
        number = self._number(recording, texts)
        start = number(self.start)
        recording.steps.append(Step("start", "", start, start))
        for event, _ in self.steps:
            before, after = number(event.before), number(event.after)
            error = None
            if event.error is not None:
                error = {"message": f"{type(event.error).__name__}: {event.error}"}
                after = before
            name = event.info.name
            recording.steps.append(Step(name, f"{name}()", before, after, error=error))
            doc = doc_of(name)
            doc["meaning"] = said(doc["meaning"], "meanings")
            recording.docs.setdefault(name, doc)
        graphs = [_graph(mod, self.function) for mod in self._programs]
        return {
            "format": FORMAT, "version": VERSION, "title": self.title,
            "recording": recording.to_dict(),
            "seconds": [0.0, *(event.seconds for event, _ in self.steps)],
            "within": [[], *(list(above) for _, above in self.steps)],
            "graphs": [None if g is None else g.to_dict() for g in graphs],
            "moved": [None if g is None else g.bytes_moved() for g in graphs]}

    def _number(self, recording: Recording, texts: "_Texts") -> Callable[[IRModule], int]:
        """Numbers programs: those of one text, and those of the same functions, are one."""
        self._programs: list[IRModule] = []
        known: dict[tuple, int] = {}
        by_module: list[tuple[IRModule, int]] = []

        def number(mod: IRModule) -> int:
            for other, at in by_module[-3:]:
                if other is mod or _same(other, mod):
                    return at
            lines = tuple(texts.of(mod.script()))
            if lines not in known:
                known[lines] = len(recording.programs)
                recording.programs.append(Program(list(lines)))
                self._programs.append(mod)
            by_module.append((mod, known[lines]))
            return known[lines]

        return number

    def to_json(self) -> str:
        """The JSON text of `to_dict`."""
        return json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False)

    def table(self) -> str:
        """One line a pass: its time, and whether it changed the module."""
        data = self.to_dict()
        rows = []
        for at, step in enumerate(data["recording"]["steps"][1:], 1):
            what = ("failed: " + step["error"]["message"] if step["error"] else
                    "" if step["before"] != step["after"] else "no change")
            rows.append(f"{1e3 * data['seconds'][at]:9.2f} ms  {step['op']:<32} {what}".rstrip())
        return "\n".join(rows)

    def show(self) -> Any:
        """The pass view as a notebook widget."""
        PassView = above("view of passes").PassView
        return PassView(self)

    def html(self, path: str | Path | None = None, title: str | None = None) -> str:
        """The pass view as one HTML page without a kernel; written to `path` if given."""
        page = above("view of passes").page
        text = page([self], title or self.title)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_mimebundle_(self, **kwargs: object) -> Any:
        try:
            return self.show()._repr_mimebundle_(**kwargs)
        except ImportError:
            return {"text/plain": self.table()}

    def __repr__(self) -> str:
        state = "" if self.error is None else f", failed with {type(self.error).__name__}"
        return f"<{len(self.steps)} passes{state}>"


def record(mod: IRModule, passes: Any, title: str | None = None, function: str | None = None,
           ) -> PassRecording:
    """Run a pass, a Sequential or a list of passes on a module, and keep every step.

    The current PassContext is kept, with its instruments. A pass that raises ends the pipeline and
    is the last step; its exception is `error` of what is returned. `function` names the Relax
    function whose graph is drawn ("main", or the only one, if not given).
    """
    from .. import topi  # noqa: F401  (loaded now, so that no pass's time has it in it)

    steps = list(passes) if isinstance(passes, (list, tuple)) else [passes]
    pipeline = steps[0] if len(steps) == 1 and isinstance(steps[0], Pass) else Sequential(
        [_as_pass(step) for step in steps], name="pipeline")
    if title is None:
        name = pipeline.info.name
        title = "Passes" if name in ("sequential", "pipeline") else name
    current, recorder = PassContext.current(), PassRecorder()
    start = recorder._copy(mod)
    context = PassContext(current.opt_level, current.required_pass, current.disabled_pass,
                          [*current.instruments, recorder], current.config)
    result, error = None, None
    try:
        with context:
            result = pipeline(mod)
    except Exception as raised:  # a step of the recording, and at hand as `error`
        error = raised
        recorder.failed(raised)
    return PassRecording(start, recorder.events, result, error, title, function)


def _as_pass(step: Any) -> Pass:
    if isinstance(step, Pass):
        return step
    name = getattr(step, "__name__", type(step).__name__)
    return Pass(lambda mod, ctx: step(mod), PassInfo(name))


def _same(a: IRModule, b: IRModule) -> bool:
    """Whether two modules hold the same functions, by identity."""
    return len(a.functions) == len(b.functions) and all(
        b.functions.get(var) is func for var, func in a.functions.items()) and a.attrs == b.attrs


def _graph(mod: IRModule, function: str | None) -> Graph | None:
    try:
        return graph_of(mod, function)
    except GraphError:
        return None


def doc_of(name: str) -> dict[str, str]:
    """The first sentence of a pass's docstring, and the rest: of a pass of Relax, or of lowering
    (`tir.Simplify`)."""
    from .. import lower
    from ..relax import transform

    namespace = lower if name.startswith("tir.") else transform
    found = getattr(namespace, name.removeprefix("tir."), None)
    doc = (getattr(found, "__doc__", "") or "").strip()
    head, _, rest = doc.partition("\n\n")
    return {"meaning": " ".join(head.split()), "doc": rest}


class _Texts:
    """Lines of scripts, each kept once, with the keys of what they bind."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, list[int]]] = []
        self.keys: list[tuple[str, str]] = []
        self._line: dict[tuple, int] = {}
        self._key: dict[tuple[str, str], int] = {}

    def of(self, script: str) -> list[int]:
        out, function = [], ""
        for line in script.split("\n"):
            found = _DEF.match(line)
            if found:
                function = found.group(1)
                key = ("function", function)
            else:
                bound = _BINDS.match(line)
                key = ("binding", f"{bound.group(1)} in {function}") if bound else None
            keys = [] if key is None else [self._number(key)]
            entry = (line, tuple(keys))
            at = self._line.get(entry)
            if at is None:
                at = self._line[entry] = len(self.lines)
                self.lines.append((line, keys))
            out.append(at)
        return out

    def _number(self, key: tuple[str, str]) -> int:
        if key not in self._key:
            self._key[key] = len(self.keys)
            self.keys.append(key)
        return self._key[key]


__all__ = ["PassRecorder", "PassRecording", "record"]
