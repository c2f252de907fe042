"""The workbench as a widget and as a page: schedule by clicking, every attempt kept in a tree."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from mlc_lab.language import text
from mlc_lab.observe.alignment import slots_of

from . import export, picture
from .static import cost_text, pre
from .view import View, traitlets

#: lines of a preview that are sent to the view
PREVIEW = 80


class Workbench(View):
    """Shows a tree of attempts and what can be done with the block or loop that is picked.

    >>> view = mlc_lab.workbench(mod)            # doctest: +SKIP
    >>> view.pick("Y/j")                         # as a click does
    >>> view.apply("split", loop="Y/j", factors=[None, 8])
    >>> view.node, view.python()
    >>> view.on_node(lambda n: print(n))         # called when the place changes
    >>> view.bench                               # the tree itself, see mlc_lab.observe.workbench
    >>> sch = view.bench.schedule                # a Schedule, to go on with in code

    Traits
    ------
    node       number of the attempt shown; set it to go there.
    selection  what is picked: {"key", "kind" ("loop" or "block"), "name"}; empty at first.
    palette    what was listed for it: {"node", "key", "kind", "name", "ms", "entries"}.
    measuring  whether a measurement is running.
    tree, costs  the attempts and what was measured, as plain data.
    left       for a GPU as target what programs take of its limits, by their numbers: see
               `mlc_lab.observe.gpu.left`.

    Changes that code makes to `bench` are shown too.
    """

    _entry, _styles = "workbench.js", ("stepper.css", "workbench.css")
    _alone = {"palette": {}, "measuring": False, "live": False}

    tree = traitlets.Dict().tag(sync=True)
    node = traitlets.Int(0).tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)
    palette = traitlets.Dict().tag(sync=True)
    costs = traitlets.Dict().tag(sync=True)
    left = traitlets.Dict().tag(sync=True)
    measuring = traitlets.Bool(False).tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)

    def __init__(self, bench: Any, **traits: Any) -> None:
        """`bench` is an `mlc_lab.observe.workbench.Workbench`."""
        self.bench = bench
        self._thread: threading.Thread | None = None
        self._stop = False
        self._following = False
        super().__init__(tree=packed(bench.to_dict()), node=bench.at.id, **traits)
        self._show_left()
        bench.listeners.append(self._follow)
        self.on_msg(self._message)

    # ------------------------------------------------------------------------------ from Python

    def pick(self, selection: Any) -> None:
        """Pick a block or loop, by key, name ("Y", "Y/j") or random variable."""
        self.selection = self._picked(self.bench.find(selection))

    def apply(self, op: str, **args: Any) -> Any:
        """Try a primitive here: see `mlc_lab.observe.workbench.Workbench.apply`."""
        return self.bench.apply(op, **args)

    def undo(self) -> None:
        """One attempt back."""
        self.bench.undo()

    def redo(self) -> None:
        """Forward again."""
        self.bench.redo()

    def python(self, program: bool = True) -> str:
        """The Python of the schedule shown; without `program`, from the Schedule on."""
        return self.bench.python(program=program)

    def measure(self, wait: bool = True) -> None:
        """Time and check all attempts that have no time yet, in a process of their own."""
        if self._thread is None or not self._thread.is_alive():
            self._stop = False
            self._thread = threading.Thread(target=self._measure, daemon=True)
            self._thread.start()
        if wait:
            self._thread.join()

    def on_node(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call `callback(number)` whenever the place changes. Calling the result stops it."""
        return self._on("node", callback)

    def on_select(self, callback: Callable[[dict], None]) -> Callable[[], None]:
        """Call `callback(selection)` whenever something is picked. Calling the result stops it."""
        return self._on("selection", callback)

    def html(self, path: Any = None, title: str | None = None) -> str:
        """All attempts as one HTML page with no kernel; written to `path` if given."""
        return self.bench.html(path, title)

    # --------------------------------------------------------------------- keeping in step

    def _follow(self) -> None:
        """Show what has changed in the tree."""
        if self._following:
            return
        self._following = True
        try:
            with self.hold_sync():
                known, at = self.tree.get("nodes", ()), self.bench.at
                if (len(self.bench.attempts) != len(known)
                        or at.began != known[at.id].get("began")):
                    self.tree = packed(self.bench.to_dict())
                self.node = self.bench.at.id
                self._show_costs()
                self._keep_selection()
                self._list()
            self._show_left()  # not waited for: the program is lowered for it
        finally:
            self._following = False

    @traitlets.validate("node")
    def _clamp(self, proposal: Any) -> int:
        return max(0, min(len(self.bench.attempts) - 1, proposal["value"]))

    @traitlets.observe("node")
    def _went(self, change: Any) -> None:
        if not self._following and change["new"] != self.bench.at.id:
            self.bench.goto(change["new"])

    @traitlets.observe("selection")
    def _selected(self, change: Any) -> None:
        if not self._following:
            self._list()

    def _picked(self, sref: Any) -> dict[str, Any]:
        key = self.bench.key_of(sref.stmt)
        kind, name = self.bench.recording.keys[key]
        return {"key": key, "kind": kind, "name": name}

    def _keep_selection(self) -> None:
        """What is picked stays picked; where it is gone, what the last step made of it is."""
        from mlc_lab.observe.workbench import WorkbenchError

        if not self.selection:
            return
        try:
            self.bench.find(self.selection["key"])
        except WorkbenchError:
            steps = self.bench.at.reached.steps
            made = steps[-1].instruction if steps else None
            for rv in reversed(made.output_list if made is not None else []):
                try:
                    self.selection = self._picked(self.bench.find(rv))
                    return
                except (WorkbenchError, TypeError):
                    continue
            self.selection = {}

    def _list(self) -> None:
        """List what can be done with what is picked."""
        from mlc_lab.observe.workbench import WorkbenchError

        if not self.selection:
            self.palette = {}
            return
        start = time.perf_counter()
        try:
            sref = self.bench.find(self.selection["key"])
        except (WorkbenchError, KeyError, TypeError):
            self.palette = {}
            return
        picked = self._picked(sref)
        entries = [entry.to_dict() for entry in self.bench.legal(self.selection["key"])]
        self.palette = {"node": self.bench.at.id, **picked, "key": self.selection["key"],
                        "ms": round(1e3 * (time.perf_counter() - start), 1),
                        "entries": entries}  # fmt: skip

    def _show_costs(self) -> None:
        found = {str(n): p.cost for n, p in enumerate(self.bench.recording.programs) if p.cost}
        if found != self.costs:
            self.costs = found

    def _show_left(self) -> None:
        found = self.bench.what_is_left()
        if found is not None:
            self.left = {**self.left, str(self.bench.at.program): found}

    # ------------------------------------------------------------------------- from the reader

    def _message(self, _: Any, content: Any, buffers: Any) -> None:
        """Answer a request of the view; whatever goes wrong is told there."""
        if not isinstance(content, dict) or content.get("do") not in _REQUESTS:
            return
        try:
            answer = _REQUESTS[content["do"]](self, content)
        except Exception as error:  # the view waits for an answer, whatever it is
            answer = {"ok": False, "error": str(error) or type(error).__name__}
        self.send({"answer": content.get("id"), **answer})

    def _asked_apply(self, content: dict[str, Any]) -> dict[str, Any]:
        from mlc_lab.schedule import ScheduleError

        try:
            made = self.bench.apply(content["op"], **content["args"])
        except ScheduleError as error:
            return {"ok": False, "rule": error.rule.replace("_", " "), "error": error.reason,
                    "node": error.attempt}  # fmt: skip
        return {"ok": True, "node": made.id}

    def _asked_check(self, content: dict[str, Any]) -> dict[str, Any]:
        refusal = self.bench.check(content["op"], **content["args"])
        if refusal is None:
            told = {"ok": True, "legal": True}
            if content.get("preview"):
                lines = self.bench.preview(content["op"], **content["args"])
                told["preview"] = lines[:PREVIEW] + [("@", "...")] * (len(lines) > PREVIEW)
            return told
        return {"ok": True, "legal": False, "rule": refusal[0], "reason": refusal[1]}

    def _asked_python(self, content: dict[str, Any]) -> dict[str, Any]:
        from mlc_lab.ir.diagnostics import DiagnosticError
        from mlc_lab.schedule import ScheduleError

        try:
            made = self.bench.load_python(str(content["text"]))
        except DiagnosticError as error:
            return {"ok": False, "error": str(error), "line": error.line}
        except ScheduleError as error:
            told = f"line {error.line}: {error.call} was refused: {error.reason}"
            return {"ok": False, "error": told, "line": error.line}
        return {"ok": True, "node": made.id}

    def _asked_measure(self, content: dict[str, Any]) -> dict[str, Any]:
        self.measure(wait=False)
        return {"ok": True}

    def _asked_stop(self, content: dict[str, Any]) -> dict[str, Any]:
        self._stop = True
        return {"ok": True}

    def _measure(self) -> None:
        """Measure one program after the other, showing each as it is known."""
        self.measuring = True
        try:
            for attempt in list(self.bench.attempts):
                if self._stop:
                    break
                if attempt.error is None and self.bench.cost(attempt) is None:
                    self.bench.measure([attempt.id], quiet=True)
                    self._show_costs()
        finally:
            self.measuring = False
            self.tree = packed(self.bench.to_dict())

    def _static(self) -> tuple[str, str]:
        said = text("Workbench of {title}: {count} attempts", "views").format(
            title=self.bench.recording.title, count=len(self.bench.attempts))
        return said, static_html(self.bench.to_dict())

    def _pictures(self) -> list[str]:
        return [picture.program_nest(self.bench.recording, self.bench.at.program)]


_REQUESTS: dict[str, Callable[[Workbench, dict[str, Any]], dict[str, Any]]] = {
    "apply": Workbench._asked_apply, "check": Workbench._asked_check,
    "python": Workbench._asked_python, "measure": Workbench._asked_measure,
    "stop": Workbench._asked_stop,
}  # fmt: skip


def page(trees: Sequence[dict[str, Any]], title: str = "Attempts") -> str:
    """One HTML page with a workbench for each tree, readable where scripts do not run."""
    views = [
        ({"tree": packed(tree), "node": tree["at"], "selection": {}, "costs": {},
          "left": {}, **Workbench._alone}, static_html(tree))
        for tree in trees
    ]  # fmt: skip
    return export.write(views, title, "workbench.js", Workbench._styles)


def packed(tree: dict[str, Any]) -> dict[str, Any]:
    """A tree of attempts as a view takes it: with the `slots` that align its programs."""
    nodes = tree["nodes"]
    made = [(nodes[node["parent"]]["program"], node["program"])
            for node in nodes if node["parent"] is not None]  # fmt: skip
    return {**tree, "slots": slots_of(tree, made)}


def _program(tree: dict[str, Any], number: int) -> str:
    lines = tree["programs"][number]["lines"]
    return "\n".join(tree["lines"][i][0] for i in lines)


def _limits(tree: dict[str, Any], program: int) -> str:
    """What a program takes of a GPU's limits, where that was looked at."""
    left = tree.get("left", {}).get(str(program), {})
    words = {"threads": "threads a block", "shared": "bytes of shared memory",
             "registers": "registers a thread, about"}  # fmt: skip
    rows = [f"{left[name][0]:,} of {left[name][1]:,} {what}" for name, what in words.items()
            if name in left]  # fmt: skip
    return f"<p>{escape('; '.join(rows))}</p>" if rows else ""


def static_html(tree: dict[str, Any]) -> str:
    """A tree as HTML of which nothing is lost where scripts and styles are not allowed.

    An outline of the attempts with their times, each unfolding to its Python and what refused it,
    and the program at the place where the tree stands.
    """
    nodes = tree["nodes"]
    depth: list[int] = []
    for node in nodes:
        depth.append(0 if node["parent"] is None else depth[node["parent"]] + 1)
    children: dict[int | None, list[int]] = {}
    for number, node in enumerate(nodes):
        children.setdefault(node["parent"], []).append(number)
    rows = []
    waiting = [0]
    while waiting:
        number = waiting.pop()
        waiting += reversed(children.get(number, []))
        node = nodes[number]
        cost = None if node.get("error") else tree["programs"][node["program"]].get("cost")
        head = f"{'· ' * depth[number]}{number}. {node['python'] or 'the program as it was'}"
        told = cost_text(cost)
        summary = escape(head) + (f" <i>({escape(told)})</i>" if told else "")
        body = pre("\n".join([*node["lead"], node["python"]])) if node["python"] else ""
        if node.get("error"):
            summary += " <b>refused</b>"
            body += pre(node["error"]["message"])
        elif number == 0:
            body = pre(_program(tree, node["program"]))
        if number == tree["at"]:
            summary = f"<b>{summary}</b>"
        rows.append(f"<details><summary>{summary}</summary>{body}</details>")
    at = nodes[tree["at"]]
    lines: list[str] = []
    node = at
    while node["parent"] is not None:
        lines[:0] = [*node["lead"], node["python"]]
        node = nodes[node["parent"]]
    python = "\n".join([tree.get("prelude", ""), *lines])
    title = escape(text("Attempts at {title}", "views").format(title=tree["title"]))
    program = escape(text("The program at attempt {number}", "views").format(number=at["id"]))
    schedule = escape(text("Its schedule as Python", "views"))
    return (
        f"<div><p><b>{title}</b></p>{''.join(rows)}"
        f"<details><summary>{program}</summary>"
        f"{pre(_program(tree, at['program']))}{_limits(tree, at['program'])}</details>"
        f"<details><summary>{schedule}</summary>{pre(python)}</details></div>"
    )
