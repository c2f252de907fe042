"""The recording: what a schedule did, step by step, as plain data that any view can draw.

One JSON object. Version 1:

    format    "mlc-lab/recording"
    version   1
    title     what is recorded, for a heading
    prelude   the Python before the first step, for example "sch = tvm.tir.Schedule(Module)"
    machine   {"cpu": name, "cores": count, "peak_gflops": number}: where the costs were measured;
              the peak is that of all cores the program may use; {} if nothing was measured
    flops     floating point operations that the program performs, or null if it cannot be counted
    lines     [[text, [key, ...]], ...]: every distinct line of all programs, once
    parts     [[part, ...], ...]: what stands in each line, as below; may be absent
    keys      [[kind, name], ...]: what a key (an index into this list) stands for
    programs  [{"lines": [index into lines, ...], "cost": cost or null}, ...]: each program once
    docs      {instruction: {"meaning": one sentence, "doc": the rest}}
    steps     [{"op": instruction, "python": text, "lead": [text, ...], "before": program,
                "after": program, "error": null or error,
                "origins": [[key, [key, ...]], ...], "why": [sentence, ...]}, ...]

A **key** is the identity of something in the program: a loop (by its variable), a block, an
iterator, a statement. The same key in two programs means the same object, because the IR is
immutable and a rewrite keeps what it does not change; so a view finds a moved loop again without
comparing text. Lines that stand for no object of their own (decorators) have no keys.

A **part** says what stands in a line, in the order of its keys, so that no view reads the text:

    ["loop", name, extent, kind, thread]         the extent is "16", "n * 2" or "1 .. n"; the kind
                                                 "serial", "parallel", "vectorized", "unrolled",
                                                 "thread"; the thread "threadIdx.x" or ""
    ["block", name]
    ["iterator", name, kind, value, extent]      the kind "spatial", "reduce", "scan", "opaque"
    ["reads" or "writes" or "where", text]       regions and predicate of a block
    ["buffer", name, [extent, ...], dtype, scope]
    ["group", title]                             the head of any other scope: "def main", "init"
    ["aside"]                                    a decorator or a comment

A line without parts is a statement. Extents and values are texts.

Step 0 is the program as it was: op "start". `lead` are instructions that only looked something up
(`get_block`, `get_loops`) since the step before. A refused primitive is a step whose `before` and
`after` are the same and whose `error` says why: {"rule": name, "message": text, "keys": [key, ...]
of the lines at fault, "where": the program with them underlined}, of which only the message must
be there.

`origins` say of what a step made where it came from, as the primitive itself noted it: of a key in
the program after, the keys in the program before. A split loop is the origin of its parts, a
buffer that of its copy and of the block and loops that copy it, an inlined block one of the block
it went into. A key without origins that the program before has too is unchanged.

`why` says, from exact counts, what the step changed and what follows from it (`why.py`); it is
absent where nothing was counted.

A **cost** is what measuring a program gave: {"time": median seconds, "spread": half the
interquartile range over the median, "runs": count, "gflops": number, "peak_fraction": number,
"equal": true, false or null (not checked), "max_error": number, "message": why there is no time,
"counts": exact counts of cache misses, or {"message": why there are none},
"inner": the inner loop in machine code, or {"message": why there is none},
"gpu": counts of a GPU (`gpu/steps.py`), or {"message": why there are none}}.
Every entry may be absent. What stands in "counts" and "inner", and in the machine's "caches" and
"bandwidth" beside them, is described at the head of `count_steps.py`.

`code`, which is there only when asked for, holds what programs become on their way down:

    code      {"lines": [[text, [n, ...], width], ...],
               "programs": {program: {"stages": [{"name", "changed", "lines": [index, ...]}, ...],
                                      "llvm": [index, ...], "assembly": [index, ...],
                                      "mix": {kind: count}, "machine": text, "error": text,
                                      "sources": {kind: {"lines": [index, ...], "error": text}}}}}

There n are the numbers, from 0, of the lines of the program that a line of code came from, and the
width is that of the vectors it works on, in bits (0: none). Each distinct line is stored once. What
could not be made is left out, and `error` says why. `sources` is there where loops are bound to
threads: the kernels in the language of each kind of target, "cuda", "opencl", "webgpu", "metal",
"nvptx".

Later versions may add entries; a reader ignores those it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..above import above
from ..language import chosen, text
from ..reading import DataError, read_json

if TYPE_CHECKING:
    from ..target.target import TargetLike

FORMAT = "mlc-lab/recording"
VERSION = 1


class RecordingError(DataError):
    """Data that is not a recording: the message names the entry that is wrong."""


@dataclass
class Program:
    """One program: indices of its lines, and what measuring it gave (None: not measured)."""

    lines: list[int]
    cost: dict[str, Any] | None = None


@dataclass
class Step:
    """One instruction: its Python, the programs before and after it, its error if refused."""

    op: str
    python: str
    before: int
    after: int
    lead: list[str] = field(default_factory=list)
    error: dict[str, Any] | None = None
    origins: list[list[Any]] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The step as plain data; origins and reasons only where there are any."""
        data = vars(self).copy()
        for name in ("origins", "why"):
            if not data[name]:
                del data[name]
        return data


@dataclass
class Recording:
    """A recording in memory. See the head of this file for what each entry means."""

    title: str = "main"
    prelude: str = ""
    machine: dict[str, Any] = field(default_factory=dict)
    flops: float | None = None
    lines: list[tuple[str, list[int]]] = field(default_factory=list)
    parts: list[list[Any]] = field(default_factory=list)
    keys: list[tuple[str, str]] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    docs: dict[str, dict[str, str]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    code: dict[str, Any] = field(default_factory=dict)
    #: the modules that the programs are the text of, where they are at hand; not written
    modules: list[Any] = field(default_factory=list, compare=False, repr=False)
    #: what measures them, once they were to be measured; not written
    measurement: Any = field(default=None, compare=False, repr=False)

    def parts_of(self, line: int) -> list[Any]:
        """What stands in a line, by its index in `lines`; an older recording does not say."""
        return self.parts[line] if self.parts else []

    def text(self, program: int) -> str:
        """TVMScript of a program, by its number."""
        return "\n".join(self.lines[i][0] for i in self.programs[program].lines)

    def cost(self, step: int) -> dict[str, Any] | None:
        """What the program after a step cost; None for a refused step or where not measured."""
        at = self.steps[step]
        return None if at.error else self.programs[at.after].cost

    def python_up_to(self, step: int) -> str:
        """The schedule up to and with a step, as Python. Refused instructions are comments."""
        out = [self.prelude] if self.prelude else []
        for at in self.steps[1 : step + 1]:
            out += at.lead
            if at.error:
                out += [f"# refused: {line}" for line in at.python.split("\n")]
            else:
                out.append(at.python)
        return "\n".join(out)

    def code_of(self, program: int, target: TargetLike = "llvm") -> dict[str, Any]:
        """What becomes of a program on its way down to a target, in the form of `code`.

        Lowered stages, optimised LLVM IR, assembly and instruction mix, each line with the numbers
        of the program's lines that it came from.
        """
        return above("code of programs")(self, [program], target)

    def add_code(self, target: TargetLike = "llvm", programs: Iterable[int] | None = None
                 ) -> Recording:
        """Keep the stages, LLVM IR and assembly of all programs (or some) in `code`, so that an
        exported page can show them. About 0.1 s and 10 to 50 kB a program. Returns the recording.
        """
        chosen = range(len(self.programs)) if programs is None else programs
        self.code = above("code of programs")(self, chosen, target)
        return self

    # ------------------------------------------------------------------------ reading, writing

    def to_dict(self) -> dict[str, Any]:
        """The recording as plain data, ready for JSON."""
        return {
            **({"code": self.code} if self.code else {}),
            "format": FORMAT,
            "version": VERSION,
            "title": self.title,
            "prelude": self.prelude,
            "machine": self.machine,
            "flops": self.flops,
            "lines": [[text, list(keys)] for text, keys in self.lines],
            **({"parts": self.parts} if any(self.parts) else {}),
            "keys": [list(key) for key in self.keys],
            "programs": [{"lines": p.lines, "cost": p.cost} for p in self.programs],
            "docs": self.docs,
            "steps": [step.to_dict() for step in self.steps],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Recording:
        """The recording that plain data holds. Raises RecordingError where it is not one."""
        validate(data)
        return cls(
            title=data["title"],
            prelude=data.get("prelude", ""),
            machine=data.get("machine", {}),
            flops=data.get("flops"),
            lines=[(text, list(keys)) for text, keys in data["lines"]],
            parts=data.get("parts", []),
            keys=[(kind, name) for kind, name in data["keys"]],
            programs=[Program(list(p["lines"]), p.get("cost")) for p in data["programs"]],
            docs=data["docs"],
            code=data.get("code", {}),
            steps=[
                Step(s["op"], s["python"], s["before"], s["after"],
                     list(s.get("lead", ())), s.get("error"),
                     [[key, list(olds)] for key, olds in s.get("origins", ())],
                     list(s.get("why", ())))
                for s in data["steps"]
            ],
        )  # fmt: skip

    def to_json(self, indent: int | None = None) -> str:
        """The recording as JSON text."""
        separators = None if indent else (",", ":")
        return json.dumps(
            self.to_dict(), indent=indent, separators=separators, ensure_ascii=False,
            allow_nan=False,
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Recording:
        """Read JSON text. Raises RecordingError if it is no recording."""
        return cls.from_dict(_json(text, "this recording"))

    def save(self, path: str | Path) -> None:
        """Write the recording to a file as JSON."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Read a file that `save` wrote."""
        return cls.from_dict(_json(Path(path).read_bytes(), f"{path}"))

    def html(self, path: str | Path | None = None, title: str | None = None,
             code: bool = False, guess: bool = False, target: TargetLike = "llvm"
             ) -> str:  # fmt: skip
        """The stepper of this recording as one HTML page that needs no kernel and no network.

        Written to `path` if one is given. `code` puts the lowered stages, LLVM IR and assembly of
        every step into it, for a target (see `add_code`). With `guess` the viewer says what a step
        does before it is shown. Returns the page's text.
        """
        page = above("view of a recording").page
        if code and not self.code:
            self.add_code(target)
        text = page([self], title or self.title, guess)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def step_svg(self, step: int, picture: str = "program", theme: str = "light") -> str:
        """A step as SVG text, for slides.

        `picture` is "program" (both programs, changes marked, unchanged parts folded) or "nest"
        (their loop nests); `theme` "light" or "dark". Raises IndexError if there is no such step.
        """
        scene_of = above("picture of a recording").scene_of
        return scene_of(self, step, picture, theme).svg()

    def step_png(self, step: int, path: str | Path, picture: str = "program",
                 theme: str = "light", scale: float = 2.0) -> None:  # fmt: skip
        """A step as a PNG file; for the options see `step_svg`. Needs matplotlib.

        `scale` is how many pixels of the file a pixel of the picture takes in each direction.
        """
        scene_of = above("picture of a recording").scene_of
        scene_of(self, step, picture, theme).png(path, scale)

    def show(self, guess: bool = False) -> Any:
        """The stepper of this recording as a notebook widget.

        With `guess` the viewer says what a step does before it is shown.
        """
        Stepper = above("view of a recording").Stepper
        return Stepper(self, guess=guess)


def save_all(recordings: Iterable[Recording], path: str | Path) -> None:
    """Write several recordings to one file: a JSON list."""
    texts = ",\n".join(recording.to_json() for recording in recordings)
    Path(path).write_text(f"[{texts}]", encoding="utf-8")


def load_all(path: str | Path) -> list[Recording]:
    """Read a file that `save_all` wrote."""
    data = _json(Path(path).read_bytes(), f"{path}")
    if not isinstance(data, list):
        raise RecordingError(f"{path} holds no list of recordings")
    return [Recording.from_dict(item) for item in data]


def _json(text: str | bytes, what: str) -> Any:
    try:
        return read_json(text, what)
    except DataError as error:
        raise RecordingError(str(error)) from None


# ------------------------------------------------------------------------------------- checking


def _need(condition: bool, where: str, what: str) -> None:
    if not condition:
        raise RecordingError(f"not a recording: {where} {what}")


def _indices(values: Any, limit: int, where: str) -> None:
    _need(isinstance(values, list), where, "is no list")
    for value in values:
        _need(type(value) is int and 0 <= value < limit, where, f"has {value!r}, no valid index")


def validate(data: Any) -> None:
    """Check plain data against the format. Raises RecordingError naming the first wrong entry."""
    _need(isinstance(data, dict), "the whole", "is no JSON object")
    _need(data.get("format") == FORMAT, "format", f"is {data.get('format')!r}, not {FORMAT!r}")
    version = data.get("version")
    _need(isinstance(version, int), "version", "is no number")
    _need(version <= VERSION, "version",
          f"is {version}; this MLC Lab reads up to {VERSION}: a newer one wrote it")  # fmt: skip
    for name, kind in (("title", str), ("lines", list), ("keys", list), ("programs", list),
                       ("docs", dict), ("steps", list)):  # fmt: skip
        _need(isinstance(data.get(name), kind), name, f"is missing or no {kind.__name__}")
    for name, kind, none in (("prelude", str, ""), ("machine", dict, {}),
                             ("flops", (int, float), 0)):  # fmt: skip
        _need(data.get(name) is None or isinstance(data.get(name, none), kind), name,
              "is of another type")  # fmt: skip
    for op, doc in data["docs"].items():
        texts = isinstance(doc, dict) and all(isinstance(t, str) for t in doc.values())
        _need(texts, f"docs[{op!r}]", "is no object of texts")
    for i, key in enumerate(data["keys"]):
        pair = isinstance(key, (list, tuple)) and len(key) == 2 and all(
            isinstance(part, str) for part in key)  # fmt: skip
        _need(pair, f"keys[{i}]", "is no pair of kind and name")
    for i, line in enumerate(data["lines"]):
        pair = isinstance(line, (list, tuple)) and len(line) == 2 and isinstance(line[0], str)
        _need(pair, f"lines[{i}]", "is no pair of text and keys")
        _indices(line[1], len(data["keys"]), f"lines[{i}]")
    _parts(data.get("parts", []), len(data["lines"]))
    for i, program in enumerate(data["programs"]):
        _need(isinstance(program, dict), f"programs[{i}]", "is no object")
        _indices(program.get("lines"), len(data["lines"]), f"programs[{i}].lines")
        _cost(program.get("cost"), f"programs[{i}].cost")
    _code(data.get("code", {}), len(data["programs"]))
    _need(bool(data["steps"]), "steps", "is empty: step 0 is the program as it was")
    for i, step in enumerate(data["steps"]):
        where = f"steps[{i}]"
        _need(isinstance(step, dict), where, "is no object")
        for name in ("op", "python"):
            _need(isinstance(step.get(name), str), f"{where}.{name}", "is no text")
        for name in ("before", "after"):
            _indices([step.get(name)], len(data["programs"]), f"{where}.{name}")
        lead = step.get("lead", [])
        _need(isinstance(lead, list) and all(isinstance(x, str) for x in lead), f"{where}.lead",
              "is no list of texts")  # fmt: skip
        _need(isinstance(step.get("origins", []), list), f"{where}.origins", "is no list")
        for pair in step.get("origins", []):
            _need(isinstance(pair, (list, tuple)) and len(pair) == 2, f"{where}.origins",
                  "is no list of pairs")  # fmt: skip
            _indices([pair[0]], len(data["keys"]), f"{where}.origins")
            _indices(pair[1], len(data["keys"]), f"{where}.origins")
        why = step.get("why", [])
        _need(isinstance(why, list) and all(isinstance(x, str) for x in why), f"{where}.why",
              "is no list of texts")  # fmt: skip
        error = step.get("error")
        if isinstance(error, dict):
            _indices(error.get("keys", []), len(data["keys"]), f"{where}.error.keys")
        _need(error is None or isinstance(error, dict) and isinstance(error.get("message"), str),
              f"{where}.error", "has no message")  # fmt: skip
        _need(not error or step["before"] == step["after"], f"{where}.after",
              "is another program though the step was refused")  # fmt: skip


#: what follows the name of each kind of part
_PARTS: dict[str, tuple[type, ...]] = {
    "loop": (str, str, str, str), "block": (str,), "iterator": (str, str, str, str),
    "reads": (str,), "writes": (str,), "where": (str,), "buffer": (str, list, str, str),
    "group": (str,), "aside": (),
}  # fmt: skip


def _parts(parts: Any, lines: int) -> None:
    _need(isinstance(parts, list), "parts", "is no list")
    _need(not parts or len(parts) == lines, "parts", f"has {len(parts)} entries for {lines} lines")
    for i, line in enumerate(parts):
        _need(isinstance(line, (list, tuple)), f"parts[{i}]", "is no list")
        for part in line:
            kinds = _PARTS.get(part[0]) if isinstance(part, (list, tuple)) and part and isinstance(
                part[0], str) else None  # fmt: skip
            _need(kinds is not None and tuple(map(type, part[1:])) == kinds, f"parts[{i}]",
                  f"has {part!r}, which is no part")  # fmt: skip
            for size in part[2] if part[0] == "buffer" else ():
                _need(isinstance(size, str), f"parts[{i}]", "has a shape that is no list of texts")


def _code(code: Any, programs: int) -> None:
    _need(isinstance(code, dict), "code", "is no object")
    lines = code.get("lines", [])
    _need(isinstance(lines, list), "code.lines", "is no list")
    _need(isinstance(code.get("programs", {}), dict), "code.programs", "is no object")
    for name, at in code.get("programs", {}).items():
        where = f"code.programs[{name}]"
        number = name.isdecimal() and len(name) < 10 and int(name) < programs
        _need(number, where, "is no number of a program")
        _need(isinstance(at, dict), where, "is no object")
        _need(isinstance(at.get("stages", []), list), f"{where}.stages", "is no list")
        for stage in at.get("stages", []):
            _need(isinstance(stage, dict), f"{where}.stages", "has no object")
            _indices(stage.get("lines"), len(lines), f"{where}.stages")
        for kind in ("llvm", "assembly"):
            _indices(at.get(kind, []), len(lines), f"{where}.{kind}")
        sources = at.get("sources", {})
        _need(isinstance(sources, dict), f"{where}.sources", "is no object")
        for kind, source in sources.items():
            _need(isinstance(source, dict), f"{where}.sources", "has no object")
            _indices(source.get("lines"), len(lines), f"{where}.sources.{kind}")


def _cost(cost: Any, where: str) -> None:
    if cost is None:
        return
    _need(isinstance(cost, dict), where, "is no object")
    for name in ("time", "spread", "gflops", "peak_fraction", "max_error"):
        value = cost.get(name)
        number = value is None or isinstance(value, (int, float)) and not isinstance(value, bool)
        _need(number, f"{where}.{name}", "is no number")
    _need(cost.get("equal") in (True, False, None), f"{where}.equal", "is no truth value")
    gpu = cost.get("gpu", {})
    _need(isinstance(gpu, dict), f"{where}.gpu", "is no object")
    _need(isinstance(gpu.get("seconds", 0), (int, float)), f"{where}.gpu.seconds", "is no number")
    rows = gpu.get("rows", [])
    _need(isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == 2 and all(isinstance(x, str) for x in row)
        for row in rows), f"{where}.gpu.rows", "is no list of pairs of texts")


# ------------------------------------------------------------------------------------- building


_TEXTS = (str, int, tuple)


def _which(identity: object) -> Any:
    """Texts are the same when they are equal; objects, when they are one object."""
    return identity if isinstance(identity, _TEXTS) else id(identity)


class Recorder:
    """Builds a recording: gives each line, each key and each program its number, once.

    `identity` objects are kept alive for as long as the recorder, so that an identity is never
    used twice.
    """

    def __init__(self, title: str = "main", prelude: str = "") -> None:
        self.recording = Recording(title=title, prelude=prelude)
        self._keys: dict[Any, int] = {}
        self._lines: dict[tuple[str, tuple[int, ...]], int] = {}
        self._programs: dict[tuple[int, ...], int] = {}
        self._kept: list[Any] = []
        self.language = chosen()  # of the texts that it keeps
        #: names of the functions in the programs so far
        self.functions: set[str] = set()

    def key(self, kind: str, name: str, identity: object, role: str = "") -> int:
        """The number of the key of an object. `role` tells apart several lines of one object."""
        at = (kind, identity if isinstance(identity, _TEXTS) else id(identity), role)
        found = self._keys.get(at)  # `_which`, without a call: this runs for every line
        if found is None:
            found = self._keys[at] = len(self._kept)
            self.recording.keys.append((kind, name))
            self._kept.append(identity)
        return found

    def identity(self, key: int) -> Any:
        """What a key stands for: the object (or tuple of names) it was given for."""
        return self._kept[key]

    def known(self, kind: str, identity: object, role: str = "") -> int | None:
        """The key that an object already has, or None."""
        return self._keys.get((kind, _which(identity), role))

    def has_line(self, text: str, keys: tuple[int, ...]) -> bool:
        """Whether a line of some program is recorded, with its parts."""
        return (text, keys) in self._lines

    def program(self, lines: Sequence[tuple[str, tuple[int, ...]]], parts: Sequence[Any] = ()
                ) -> int:
        """The number of a program given as (text, keys) a line; the same program, the same one.

        `parts` of each line may be left out: then views show its lines, and no loop nest.
        """
        known = self._lines
        numbers = [known.get(line, -1) for line in lines]  # a step leaves most lines as they are
        for at, number in enumerate(numbers):
            if number < 0:
                numbers[at] = self._new_line(lines[at], parts[at] if parts else ())
        found = self._programs.setdefault(tuple(numbers), len(self._programs))
        if found == len(self.recording.programs):
            self.recording.programs.append(Program(numbers))
        return found

    def _new_line(self, line: tuple[str, tuple[int, ...]], parts: Iterable[Any]) -> int:
        found = self._lines.setdefault(line, len(self._lines))
        if found == len(self.recording.lines):
            self.recording.lines.append((line[0], list(line[1])))
            self.recording.parts.append([list(part) for part in parts])
        return found

    def step(self, op: str, python: str, before: int, after: int, lead: Iterable[str] = (),
             error: dict[str, Any] | None = None, origins: Iterable[list[Any]] = ()
             ) -> None:  # fmt: skip
        """Append a step."""
        made = Step(op, python, before, after, list(lead), error, list(origins))
        self.recording.steps.append(made)

    def keys_in(self, program: int) -> set[int]:
        """The keys of everything that stands in a program."""
        lines = self.recording.lines
        return {key for line in self.recording.programs[program].lines for key in lines[line][1]}

    def doc(self, op: str, docstring: str | None) -> None:
        """Keep the documentation of an instruction: its first sentence, and the rest."""
        if op in self.recording.docs or not docstring:
            return
        first, _, rest = docstring.strip().partition("\n\n")
        meaning = " ".join(line.strip() for line in first.split("\n"))
        self.recording.docs[op] = {"meaning": text(meaning, "meanings", self.language),
                                   "doc": rest.strip("\n")}
