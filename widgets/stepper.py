"""The stepper as a widget and as a page: walk through a recording's steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc_lab.language import text
from mlc_lab.observe.alignment import slots_of
from mlc_lab.observe.code_ahead import SHARED
from mlc_lab.observe.why import explain

from . import export, picture, static
from .saved import gzipped
from .view import StepView, traitlets

#: the ways to look at a step, by the names of the trait `tab`
TABS = ("program", "nest", "lowered", "llvm", "assembly", "cuda", "opencl", "webgpu", "metal",
        "nvptx")
STYLES = ("stepper.css", "counts.css", "guess.css")


class Stepper(StepView):
    """Shows a recording step by step.

    >>> view = Stepper(recording)          # doctest: +SKIP
    >>> view.step = 3                      # go to a step; the slider follows
    >>> view.on_step(lambda n: print(n))   # called when the reader moves
    >>> view.selection                     # the line clicked last

    Traits
    ------
    step       number of the step shown, from 0 (the program as it was) to the last.
    selection  the line selected last: {"step", "side" ("before" or "after"), "line", "text",
               "keys"}, and of a loop, block, iterator or buffer its "key", "kind" and "name";
               empty at first.
    tab        what is shown of a step: "program", "nest", "lowered", "llvm" or "assembly"; where a
               step binds loops to threads, the source of a GPU too: "cuda", "opencl", "webgpu"
               (WGSL), "metal" or "nvptx" (PTX).
    baseline   number of a step whose program stands on the left; -1: the program before the step.
    guess      whether the viewer says what a step does before it is shown: see `on_guess`.
    guesses    what was guessed: {"answers": {step: {"legal", "speed"}}, "right", "asked"}.
    recording  the recording as plain data. To show another one, call `show_recording`.
    target     for which lowered code, LLVM IR and assembly are made when a reader asks for them.
    """

    _entry, _styles = "stepper.js", STYLES

    recording = traitlets.Dict().tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)
    tab = traitlets.Enum(TABS, TABS[0]).tag(sync=True)
    baseline = traitlets.Int(-1).tag(sync=True)
    guess = traitlets.Bool(False).tag(sync=True)
    guesses = traitlets.Dict().tag(sync=True)
    target = traitlets.Unicode("llvm")
    _code: Any = traitlets.Dict()

    def __init__(self, recording: Any, step: int = 0, **traits: Any) -> None:
        """`recording` is an `mlc_lab.observe.recording.Recording`; `step` the one shown first."""
        self.source = recording
        super().__init__(recording=packed(recording), step=step, **traits)
        self.on_msg(self._answer)

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """The view asks for counts, times, or the code of a program."""
        if isinstance(content, dict) and content.get("type") == "counts":
            self.count()
        if isinstance(content, dict) and content.get("type") == "measure":
            self.measure()
        if not isinstance(content, dict) or content.get("type") != "code":
            return
        program = content.get("program")
        if isinstance(program, int) and 0 <= program < len(self.source.programs):
            self._send_code(program, bool(content.get("ahead")))

    def _send_code(self, program: int, ahead: bool) -> None:
        """Lower and compile a program, and send the lines: those of a module in a process, ahead
        of time where nobody waits for them; what is known as text alone, here, when it is asked
        for: the kernel is not kept busy ahead."""
        modules = getattr(self.source, "modules", None) or []
        if program not in self._code and program >= len(modules):
            if ahead:
                return
            self._code[program] = self.source.code_of(program, self.target)
        if program in self._code:
            self.send({"type": "code", "code": self._code[program]})
            return
        source, mine = self.source, id(self)

        def done(made: dict[str, Any]) -> None:
            if self.source is not source:
                return
            if "programs" in made:
                self._code[program] = {**made, "programs": {str(program): made["programs"]["0"]}}
                self.send({"type": "code", "code": self._code[program]})
            else:
                self.send({"type": "code", "program": program, "error": made["message"]})

        SHARED.ask((mine, program), modules[program], self.target, done, ahead)

    def _steps(self) -> int:
        return len(self.recording.get("steps", ()))

    def show_recording(self, recording: Any) -> None:
        """Show another recording, or the same one after it has been measured."""
        self.source = recording
        self._code.clear()
        self.step = min(self.step, len(recording.steps) - 1)
        self.recording = packed(recording)

    def accesses(self, step: int | None = None, **options: Any) -> Any:
        """What the program after a step (the one shown) reads and writes, in time order.

        `.show()` of the result is the access view; options are those of
        `mlc_lab.observe.accesses`, as `sizes` or `limit`. Raises ValueError for a recording read
        from a file, which has no programs to run.
        """
        from mlc_lab.observe import accesses

        modules = getattr(self.source, "modules", None)
        if not modules:
            raise ValueError("a recording read from a file has no programs to run")
        at = self.source.steps[self.step if step is None else step]
        return accesses(modules[at.after], **options)

    def count(self, caches: Any = None, budget_s: float = 60.0) -> None:
        """Count the cache misses of every step, this machine's caches or `caches`, and show them.

        See `mlc_lab.observe.count_steps`. A recording that was read from a file cannot be counted:
        the view says so.
        """
        from mlc_lab.observe.count_steps import count_each

        recording, modules = self.source, getattr(self.source, "modules", None)
        if not modules:
            self.send({"type": "counts", "done": True, "error": "a recording read from a file has "
                       "no programs to run"})
            return
        made = recording.measurement
        options: dict[str, Any] = {"isolate": True} if made is None else {
            "sizes": made.sizes, "target": made.target, "trusted": made.trusted,
            "isolate": made.isolate}
        for number in count_each(recording, modules, caches, budget_s=budget_s, **options):
            cost = recording.programs[number].cost or {}
            self.send({"type": "counts", "program": number, "counts": cost.get("counts"),
                       "machine": recording.machine})
        self.send({"type": "counts", "done": True})
        self.recording = packed(recording)

    def measure(self, budget_s: float = 60.0) -> None:
        """Time and check the programs that were not measured yet, and show what comes of it.

        They are measured as those before were. A recording that was read from a file cannot be
        measured: the view says so.
        """
        from mlc_lab.observe.measure import Measurement

        recording, modules = self.source, getattr(self.source, "modules", None)
        if not modules:
            self.send({"type": "measure", "done": True, "error": "a recording read from a file has "
                       "no programs to run"})
            return
        if recording.measurement is None:
            recording.measurement = Measurement(recording, modules, isolate=True)
        recording.measurement.all(budget_s, progress=False, on_program=lambda number: self.send(
            {"type": "measure", "program": number, "cost": recording.programs[number].cost,
             "machine": recording.machine}))
        self.send({"type": "measure", "done": True})
        self.recording = packed(explain(recording))

    def select(self, kind: str, name: str, side: str = "after") -> None:
        """Select a loop, block, iterator or buffer by its name, as a reader does by clicking it.

        `kind` is "loop", "block", "iterator" or "buffer", `side` the program "before" or "after"
        the step shown. Raises ValueError if there is none of that name.
        """
        step = self.source.steps[self.step]
        program = self.source.programs[step.before if side == "before" else step.after]
        for line, index in enumerate(program.lines):
            program, keys = self.source.lines[index]
            renamed = any(part[:2] == [kind, name] for part in self.source.parts_of(index))
            for key in keys:
                known, called = self.source.keys[key]
                if known == kind and (called == name or renamed and kind == "block"):
                    self.selection = {"step": self.step, "side": side, "line": line,
                                      "text": program.strip(), "keys": list(keys), "key": key,
                                      "kind": kind, "name": name}  # fmt: skip
                    return
        raise ValueError(f"there is no {kind} {name!r} in the program {side} step {self.step}")

    def on_select(self, callback: Callable[[dict], None]) -> Callable[[], None]:
        """Call `callback(selection)` whenever a line is clicked. Calling the result stops it."""
        return self._on("selection", callback)

    def on_guess(self, callback: Callable[[dict], None]) -> Callable[[], None]:
        """Call `callback(guesses)` after each guess: {"answers", "right", "asked"}."""
        return self._on("guesses", callback)

    def html(self, path: Any = None, code: bool = False) -> str:
        """The same view as one HTML page with no kernel; written to `path` if given.

        `code` puts the lowered stages, LLVM IR and assembly of every step into it.
        """
        return self.source.html(path, code=code, guess=self.guess, target=self.target)

    def _static(self) -> tuple[str, str]:
        html = static.hidden(self.source) if self.guess else static.html(self.source)
        return text("Stepper of {title}: {count} steps", "views").format(
            title=self.source.title, count=len(self.source.steps)), html

    def _pictures(self) -> list[str]:
        last = self.source.steps[0 if self.guess else -1]
        return [picture.program_nest(self.source, last.after)]


def packed(recording: Any) -> dict[str, Any]:
    """A recording as plain data for a view: with the `slots` that align its programs, and its
    `code` compressed, since that is ten times the rest.

    The view takes {"gzip": text} in the place of `code`: JSON, compressed, in base 64.
    """
    data = recording.to_dict()
    data["slots"] = slots_of(data)
    if data.get("code"):
        data["code"] = gzipped(data["code"])
    return data


def page(recordings: Sequence[Any], title: str = "Schedules", guess: bool = False) -> str:
    """One HTML page with the stepper of each recording; readable text where scripts do not run.

    With `guess` the viewer says what a step does before it is shown.
    """
    fallback = static.hidden if guess else static.html
    views = [
        ({"recording": packed(recording), "step": 0, "selection": {}, "guess": guess},
         fallback(recording))
        for recording in recordings
    ]  # fmt: skip
    return export.write(views, title, "stepper.js", STYLES)
