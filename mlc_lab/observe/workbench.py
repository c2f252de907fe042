"""The workbench: a schedule made by choosing, as a tree of attempts one can walk about in.

Every attempt is a node: an instruction, the schedule after it, its program, its cost once measured,
its error if it was refused. One can go back to any node and try something else from there, so
nothing that was tried is lost. A view draws the tree (`mlc_lab_widgets.Workbench`); everything it
can do is here, in Python.

    bench = Workbench(mod)
    bench.legal("Y")                              # what can be done with block Y, and what not
    bench.apply("split", loop="j", factors=[None, 8])
    bench.undo(); bench.redo(); bench.goto(0)
    print(bench.python())                         # complete: runs as it stands
    bench.load_python(text)                       # read, never executed

The tree is saved as JSON with Python texts in it that are read back by the same reader: a file from
anywhere can be opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..above import above
from ..ir.module import IRModule
from ..ir.structural import structural_equal
from ..reading import DataError, read_json
from ..schedule.error import ScheduleError
from ..schedule.instruction import BlockRV, InstructionKind, LoopRV
from ..schedule.schedule import Schedule
from ..schedule.state import StmtSRef
from ..tir.function import PrimFunc
from ..tir.stmt import For
from .gpu.left import what_is_left
from .program import keys_of, number_of, origins_of
from .recording import Recorder, Recording, Step
from .workbench_fetch import FETCH, apply_fetch, tried_fetch
from .workbench_find import WorkbenchError, by_key, by_name, home_of, name_for, variable
from .workbench_palette import Entry, Palette, bind, explain
from .workbench_python import ScheduleReader, call_text, fresh_name
from .workbench_replay import LOOKUPS, follow, replay_steps
from .workbench_table import listing
from .workbench_tree import Attempt, AttemptTree

if TYPE_CHECKING:
    from ..tir.stmt import Block

FORMAT = "mlc-lab/attempts"
VERSION = 1
#: parameters that are blocks or loops
_REFERENCES = {"loop", "loops", "ordered_loops", "block", "block_or_loop", "target",
               "consumer_blocks"}  # fmt: skip


class Workbench(AttemptTree):
    """A tree of attempts at scheduling one module.

    `start` is an IRModule, a PrimFunc, or a Schedule: then the steps it has made become the first
    branch, refused ones included. `target` and `sizes` (values of symbolic sizes by name) are for
    measuring.
    """

    def __init__(
        self, start: object, *, title: str | None = None, target: Any = "llvm",
        sizes: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        made = start if isinstance(start, Schedule) else None
        if made is not None:
            start = made.steps[0].before if made.steps else made.mod
        if not isinstance(start, (IRModule, PrimFunc)):
            raise TypeError("a workbench takes an IRModule, a PrimFunc or a Schedule, not "
                            f"{type(start).__name__}")  # fmt: skip
        first = Schedule(start)
        self.target, self.sizes = target, dict(sizes or {})
        names = [var.name_hint for var in first.mod.functions]
        self.recorder = Recorder(title or ", ".join(names[:3]), "sch = tvm.tir.Schedule(Module)")
        self.modules: list[IRModule] = []
        self.recorder.recording.modules = self.modules
        self._listings: dict[tuple[int, int], list[Entry]] = {}
        self._left: dict[int, dict[str, Any] | None] = {}
        self._measurement: Any = None
        self.recorder.doc("start", "The program as it was.")
        super().__init__(Attempt(0, None, "start", "", [], self._program(first.mod), first))
        if made is not None:
            replay_steps(self, made)

    # ------------------------------------------------------------------------------ the tree

    @property
    def recording(self) -> Recording:
        """Lines, keys and programs of the tree, with the costs measured so far."""
        return self.recorder.recording

    @property
    def schedule(self) -> Schedule:
        """A copy of the schedule at the current node, to go on with in code."""
        return self.at.reached.copy()

    @property
    def mod(self) -> IRModule:
        """The program at the current node."""
        return self.at.reached.mod

    def _program(self, mod: IRModule) -> int:
        number = number_of(mod, self.recorder)
        if number == len(self.modules):
            self.modules.append(mod)
        return number

    def steps(self, node: Attempt | int | None = None) -> Recording:
        """The way from the start to a node (the current one) as a recording, for the stepper.

        What was refused on the way is a step of it too.
        """
        node = self.node(node) if isinstance(node, int) else node or self.at
        path = self.path(node)
        made = copy(self.recording)
        made.steps = [Step("start", "", path[0].program, path[0].program)]
        for at, onward in zip(path, [*path[1:], None]):
            for child in map(self.node, at.children):
                if child.error is not None or child is onward:
                    made.steps.append(self._step(at, child))
        return made

    def _step(self, before: Attempt, after: Attempt) -> Step:
        origins: list[list[Any]] = []
        if after.program != before.program:
            keys = self.recorder.keys_in(before.program), self.recorder.keys_in(after.program)
            origins = origins_of(after.reached.steps[-1].origins, self.recorder, *keys)
        return Step(after.op, after.python, before.program, after.program, after.lead,
                    after.error, origins)  # fmt: skip

    # ------------------------------------------------------------------------- what is picked

    def key_of(self, stmt: Block | For) -> int:
        """The key of a block or loop of the current node's schedule: what a view names it by."""
        key = self.recorder.key
        if isinstance(stmt, For):
            return key("loop", stmt.loop_var.name, stmt.loop_var)
        if stmt.iter_vars:
            return key("block", stmt.name_hint, stmt.iter_vars[0].var)
        function = self.at.reached.state.refs[stmt].func.name_hint
        return key("block", stmt.name_hint, (function, stmt.name_hint))

    def find(self, selection: Any, node: Attempt | None = None) -> StmtSRef:
        """The block or loop that is meant, in the schedule of a node (the current one).

        `selection` is a key of the recording, a BlockRV or LoopRV, the name of a block, of a loop
        ("j"), or both ("Y/j": the loop j around block Y). Raises WorkbenchError if there is none,
        or more than one.
        """
        sch = (node or self.at).reached
        if isinstance(selection, (BlockRV, LoopRV)):
            sref = sch.known_sref(selection)
            if sref is None or sref.stmt is None:
                raise WorkbenchError("this block or loop is not in the program at this node")
            return sref
        if isinstance(selection, Mapping) and len(selection) == 1:
            (selection,) = selection.values()
        if isinstance(selection, int) and not isinstance(selection, bool):
            return by_key(sch, self.recorder, selection)
        if isinstance(selection, str):
            return by_name(sch, selection)
        raise TypeError(f"a block or loop is given by key, name or variable, not {selection!r}")

    def legal(self, selection: object) -> list[Entry]:
        """Every primitive for a block or loop: parameters with defaults, legal or why not."""
        sref = self.find(selection)
        key = self.key_of(sref.stmt)
        found = self._listings.get((self.at.id, key))
        if found is None:
            found = listing(self.at.reached, sref, self.key_of, self.target)
            self._listings[self.at.id, key] = found
        return found

    def check(self, op: str, **args: object) -> tuple[str, str] | None:
        """Whether a primitive may act with these arguments: None, or (rule, reason).

        Raises WorkbenchError where there is no such primitive.
        """
        if op == FETCH:
            return tried_fetch(self, args)[1]
        kind = _kind(op)
        args = {name: self._plain(value) for name, value in args.items()}
        root = next(iter(self.at.reached.state.roots.values()))
        return Palette(self.at.reached, root, self.key_of).attempt(kind, args)

    def preview(self, op: str, **args: object) -> list[tuple[str, str]]:
        """What a primitive would change: (" ", "+", "-" or "@", line) a line; [] if it is refused.

        The same arguments as `check`. Nothing is applied. Raises WorkbenchError where there is no
        such primitive.
        """
        if op == FETCH:
            trial, refusal = tried_fetch(self, args)
            return [] if refusal else difference(self.mod.script(), trial.mod.script())
        kind = _kind(op)
        args = {name: self._plain(value) for name, value in args.items()}
        root = next(iter(self.at.reached.state.roots.values()))
        trial, refusal = Palette(self.at.reached, root, self.key_of).trial(kind, args)
        return [] if refusal else difference(self.mod.script(), trial.mod.script())

    # ------------------------------------------------------------------------------ attempting

    def apply(self, op: str, **args: object) -> Attempt:
        """Try a primitive at the current node, and go to the new one.

        Arguments are those of the primitive; blocks and loops as in `find`, and as plain data (see
        `workbench_palette`). If it is refused, the refusal is kept as a node, the place stays, and
        ScheduleError is raised, with the node's number as `attempt`. What has been tried from here
        before is found again. "cooperative_fetch" applies several primitives, each a node; one
        `undo` takes them back.
        """
        if op == FETCH:
            return apply_fetch(self, args)
        kind = _kind(op)
        plain = {name: self._plain(value, kind, name) for name, value in args.items()}
        node, error = self.attempt(
            self.at, kind, lambda sch: bind(kind, plain, lambda _, key: variable(
                sch, by_key(sch, self.recorder, key))))  # fmt: skip
        if error is not None:
            error.attempt = node.id
            self._changed()
            raise error
        self.goto(node.id)
        return node

    def what_is_left(self, node: Attempt | int | None = None) -> dict[str, Any] | None:
        """What the program of a node (the current one) takes of the target's limits, where that is
        a GPU: see `gpu/left.py`."""
        node = self.node(node) if isinstance(node, int) else node or self.at
        if node.program not in self._left:
            self._left[node.program] = what_is_left(self.modules[node.program], self.target)
        return self._left[node.program]

    def _plain(self, value: object, kind: InstructionKind | None = None, name: str = "") -> Any:
        """An argument as plain data: blocks and loops by key."""
        if isinstance(value, (BlockRV, LoopRV)):
            return self.value_of(self.find(value).stmt)
        if isinstance(value, StmtSRef):
            return self.value_of(value.stmt)
        if isinstance(value, (list, tuple)):
            return [self._plain(v, kind, name) for v in value]
        named = name in _REFERENCES and type(value) in (str, int)
        return self.value_of(self.find(value).stmt) if named else value

    def value_of(self, stmt: Block | For) -> dict[str, int]:
        """A block or loop as an argument."""
        return {"loop" if type(stmt) is For else "block": self.key_of(stmt)}

    def attempt(
        self, parent: Attempt, kind: InstructionKind, arguments: Callable[[Schedule], dict],
    ) -> tuple[Attempt, ScheduleError | None]:  # fmt: skip
        """Add a node under `parent`, or find the one that is there: (node, its refusal)."""
        sch = parent.reached.copy()
        mark = len(sch.steps)
        names, refusal = dict(parent.names), None

        def name_new() -> None:
            for step in sch.steps[mark:]:
                for rv in step.instruction.output_list:
                    if rv not in names:
                        names[rv] = fresh_name(name_for(sch, rv, step.instruction), names.values())

        try:
            args = arguments(sch)
            name_new()  # while what was looked up is still there
            sch.apply(kind, args)
        except ScheduleError as error:
            refusal = error
        name_new()
        home = home_of(sch)
        texts = [call_text(step.instruction, names, step.decision, home)
                 for step in sch.steps[mark:]]  # fmt: skip
        lead, python = texts[:-1], texts[-1]
        for child in parent.children:
            known = self.attempts[child]
            if (known.lead, known.python) == (lead, python):
                return known, refusal
        error, program = None, parent.program
        if refusal is not None:
            error = self._refusal(refusal)
        elif sch.mod is not parent.reached.mod:
            program = self._program(sch.mod)
        node = Attempt(len(self.attempts), parent.id, kind.method, python, lead, program,
                       None if refusal else sch, error, names)  # fmt: skip
        self.recorder.doc(kind.method, kind.doc)
        self.attempts.append(node)
        parent.children.append(node.id)
        return node, refusal

    def _refusal(self, error: ScheduleError) -> dict[str, Any]:
        """A refusal as a recording has it."""
        rule, message = explain(error)
        refusal = {"rule": rule, "message": message, "keys": keys_of(error.nodes, self.recorder)}
        try:
            refusal["where"] = error.underlined()
        except Exception:  # the reason is wanted even if the program cannot be printed
            refusal["where"] = ""
        return refusal

    # --------------------------------------------------------------------------------- Python

    def python(self, node: Attempt | int | None = None, program: bool = True) -> str:
        """The Python of the schedule at a node (the current one).

        With `program` it is complete: imports, the module, the schedule; it runs as it stands.
        Without, it begins where the schedule does.
        """
        node = self.node(node) if isinstance(node, int) else node or self.at
        lines = []
        for at in self.path(node)[1:]:
            refused = "# refused: " if at.error else ""
            lines += [*(refused + line for line in at.lead), refused + at.python]
        return "\n".join([self.prelude() if program else self.recording.prelude, *lines]) + "\n"

    def prelude(self) -> str:
        """What stands before the schedule: imports, the program, the Schedule made of it."""
        program = self.recording.text(0).strip()
        return f"{self._imports()}\n\n\n{program}\n\n\n{self.recording.prelude}"

    def _imports(self) -> str:
        relax = "relax as R, " if "@R.function" in self.recording.text(0) else ""
        return ("import mlc_lab as tvm\n"
                f"from mlc_lab.script import ir as I, {relax}tir as T")  # fmt: skip

    def load_python(self, text: str) -> Attempt:
        """Read the Python of a schedule of this program as a branch from the start, and go there.

        The text is read from its syntax tree, never executed: calls of primitives on the schedule,
        literals and names bound before. Steps that the tree has already are found, not repeated.
        Raises DiagnosticError with line and column for anything else, and the place stays;
        ScheduleError (with `line`) where a primitive refuses: then the place is just before it.
        """
        shadow = self.attempts[0].reached.copy()
        place = [self.attempts[0]]

        def apply(kind: InstructionKind, bound: dict[str, Any], line: int) -> Any:
            if kind.method in LOOKUPS:
                return shadow.apply(kind, bound)
            node, results, refusal = follow(self, place[0], shadow, kind, bound)
            if refusal is not None:
                refusal.line = line
                raise refusal
            place[0] = node
            return results

        reader = ScheduleReader(text, apply, check_program=self._same_program,
                                work_on=shadow.work_on)  # fmt: skip
        try:
            reader.read()
        except ScheduleError:
            self.goto(place[0].id)
            raise
        return self.goto(place[0].id)

    def _same_program(self, source: str, line: int) -> None:
        """A program that stands in a text must be the one this tree started with."""
        from ..script import from_source

        found = from_source(source)
        if isinstance(found, PrimFunc):
            name = "main" if "main" in self.modules[0] else str(found.attrs.get("global_symbol"))
            found = IRModule({name: found})
        if not structural_equal(found, self.modules[0]):
            raise WorkbenchError(f"line {line}: this is a schedule of another program than the one "
                                 "on the workbench; open a workbench on that one")  # fmt: skip

    # ------------------------------------------------------------------------------- measuring

    def measure(
        self, nodes: Iterable[int] | None = None, *, budget_s: float = 30.0, isolate: bool = True,
        progress: bool = False, quiet: bool = False, trusted: bool = False,
    ) -> None:  # fmt: skip
        """Time and check the programs of some nodes (all of the current path if None).

        By default in a process of its own: a program that crashes or hangs costs its own
        measurement and nothing else (see `isolate.Isolated`). `quiet` tells no listener. What
        calls code outside of itself is run only with `trusted`.
        """
        from .measure import Measurement

        if nodes is None:
            nodes = [n.id for n in self.path()]
        wanted = sorted({0, *(self.node(n).program for n in nodes)})
        known = self._measurement
        if known is None or (known.isolate, known.trusted) != (isolate, trusted):
            self._measurement = Measurement(
                self.recording, self.modules, target=self.target, sizes=self.sizes, isolate=isolate,
                trusted=trusted)
        self._measurement.all(budget_s, progress, only=wanted)
        if not quiet:
            self._changed()

    def cost(self, node: Attempt | int | None = None) -> dict[str, Any] | None:
        """What the program of a node (the current one) cost; None where it was not measured."""
        node = self.node(node) if isinstance(node, int) else node or self.at
        return None if node.error else self.recording.programs[node.program].cost

    # -------------------------------------------------------------------------- saving, showing

    def to_dict(self) -> dict[str, Any]:
        """The whole tree as plain data: programs, attempts, costs, the place."""
        data = self.recording.to_dict()
        del data["steps"]
        return {**data, "format": FORMAT, "version": VERSION, "at": self.at.id,
                "imports": self._imports(), "sizes": self.sizes, "target": str(self.target),
                "nodes": [node.to_dict() for node in self.attempts],
                "left": {str(n): left for n, left in self._left.items() if left}}  # fmt: skip

    def to_json(self, indent: int | None = None) -> str:
        """The whole tree as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False,
                          separators=None if indent else (",", ":"))  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write the tree to a file that `load` reads."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Workbench:
        """Read a file that `save` wrote. Nothing in it is executed."""
        return cls.from_json(Path(path).read_bytes())

    @classmethod
    def from_json(cls, text: str | bytes) -> Workbench:
        """The tree that JSON text holds. Raises WorkbenchError if it holds none."""
        try:
            data = read_json(text, "this tree of attempts")
        except DataError as error:
            raise WorkbenchError(str(error)) from None
        return above("read a tree of attempts")(cls, data)

    def explore(self, node: Attempt | int | None = None, guess: bool = False) -> Any:
        """The stepper of the way to a node (the current one), as a notebook widget."""
        return self.steps(node).show(guess)

    def show(self) -> Any:
        """The workbench as a notebook widget."""
        View = above("view of a workbench").Workbench
        return View(self)

    def html(self, path: str | Path | None = None, title: str | None = None) -> str:
        """Everything tried so far as one HTML page without a kernel; written to `path` if given."""
        page = above("view of a workbench").page
        text = page([self.to_dict()], title or self.recording.title)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text


def difference(before: str, after: str, context: int = 1) -> list[tuple[str, str]]:
    """Unified difference of two texts, "@" between parts that are apart."""
    old, new = before.split("\n"), after.split("\n")
    found: list[tuple[str, str]] = []
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context)
    for number, group in enumerate(groups):
        if number:
            found.append(("@", "..."))
        for tag, a0, a1, b0, b1 in group:
            if tag == "equal":
                found += [(" ", line) for line in new[b0:b1]]
            else:
                found += [("-", line) for line in old[a0:a1]]
                found += [("+", line) for line in new[b0:b1]]
    return found


def _kind(op: str) -> InstructionKind:
    kind = InstructionKind.by_method.get(op)
    if kind is None:
        import difflib

        close = difflib.get_close_matches(op, InstructionKind.by_method, 1)
        raise WorkbenchError(f"there is no primitive {op!r}"
                             + (f"; did you mean {close[0]!r}?" if close else ""))  # fmt: skip
    return kind


def open_workbench(start: Any, **options: Any) -> Any:
    """The workbench of a module, a function or a schedule as a notebook widget.

    What `sch.workbench()` and `mlc_lab.workbench(mod)` show; `.bench` of the result is the
    `Workbench`. Options are those of `Workbench`. Raises ImportError where the notebook parts are
    not installed.
    """
    return Workbench(start, **options).show()
