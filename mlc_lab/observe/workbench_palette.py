"""What can be done with a block or loop: every primitive, its parameters, and whether it may act.

Legality is found out by trying: the primitive is applied to a copy of the schedule (which costs
next to nothing, because programs are immutable) and the copy is thrown away. So the palette never
disagrees with the primitives, and the reasons it gives are theirs.

Arguments are plain data, so that a view can fill them in: a loop or block is {"loop": key} or
{"block": key} with the key of the recording, an index map is {"map": "lambda i, j: (j, i)"}, a
value of any kind {"python": "text of a literal"}.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..language import chosen, text
from ..reading.python_text import parse_expression
from ..schedule.error import Accepted, ScheduleError, rule_in_words
from ..schedule.instruction import InstructionKind
from ..schedule.schedule import Schedule
from ..schedule.state import StmtSRef, child_realizes, sub_statements
from ..schedule.trace import Trace
from ..schedule.trace_values import ValueReader
from ..tir import op
from ..tir.stmt import Block, For

if TYPE_CHECKING:
    from ..target.target import TargetLike
    from ..tir.stmt import Stmt

#: seconds that a listing may spend on trying the choices of one parameter
BUDGET = 0.04


@dataclass
class Parameter:
    """One argument of a primitive.

    `kind` says what a form shows: "fixed" (the thing that was picked), "choice", "order" (a
    permutation of `items`), "factors" (of a loop of `extent`), "int", "ints", "bool", "text",
    "map" (a Python lambda), "value" (a Python literal). `choices` are {"value", "label"} and, where
    they were tried, "legal" and "reason"; "note" says why one is suggested. Parameters that one
    seldom changes are `advanced`.
    """

    name: str
    kind: str
    default: Any
    choices: list[dict[str, Any]] = field(default_factory=list)
    advanced: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        data = {"name": self.name, "kind": self.kind, "default": self.default, **self.extra}
        if self.choices:
            data["choices"] = self.choices
        if self.advanced:
            data["advanced"] = True
        return data


@dataclass
class Entry:
    """One primitive on the thing that was picked: what it means, what it takes, if it may act."""

    op: str
    group: str
    meaning: str
    legal: bool
    parameters: list[Parameter]
    rule: str = ""
    reason: str = ""

    def arguments(self) -> dict[str, Any]:
        """The default of every argument."""
        return {p.name: p.default for p in self.parameters}

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        data = vars(self).copy()
        data["parameters"] = [p.to_dict() for p in self.parameters]
        return data


class NotHere(Exception):
    """There is nothing on which the primitive could act: (rule, reason)."""


def statements_in_order(state: Any) -> list[Any]:
    """Every block and loop of a schedule's state, in the order of the program."""
    found: list[Any] = []

    def walk(stmt: Stmt) -> None:
        if type(stmt) in (For, Block):
            found.append(stmt)
        for item in sub_statements(stmt):
            walk(item)

    for root in state.roots.values():
        walk(root.stmt)
    return found


def divisors(extent: int) -> list[int]:
    """The divisors of a positive number, in order."""
    low = [d for d in range(1, int(extent**0.5) + 1) if extent % d == 0]
    return low + [extent // d for d in reversed(low) if d * d != extent]


def position(items: list[Any], item: Any) -> int:
    """Where an object stands in a list, by identity."""
    return next(i for i, other in enumerate(items) if other is item)


def explain(error: ScheduleError, language: str | None = None) -> tuple[str, str]:
    """(rule in words, reason with conflict and hint) of a refusal, as a recording has it; in a
    language, by default the chosen one."""
    parts = [said] if (said := rule_in_words(error.rule, language)) else []
    parts.append(error.reason)
    if error.conflict:
        parts.append(f"Two iterations that clash: {error.conflict}")
    if error.hint:
        parts.append(f"Try: {error.hint}")
    return error.rule.replace("_", " "), "\n\n".join(parts)


class Palette:
    """Lists what can be done with one block or loop of a schedule.

    `sref` is the thing picked, of `sch`; `key_of(stmt)` gives the key of a block or loop; `target`
    is what is scheduled for.
    """

    def __init__(self, sch: Schedule, sref: StmtSRef, key_of: Callable[[Any], int],
                 target: TargetLike = "llvm") -> None:
        self.sch, self.state, self.sref, self.target = sch, sch.state, sref, target
        self.stmt = sref.stmt
        self.key_of = key_of
        self.language = chosen()  # once: a listing has some forty entries
        self.is_loop = type(self.stmt) is For
        self.by_key = {key_of(s): s for s in statements_in_order(self.state)}
        self._regions: dict[str, list[dict[str, Any]]] = {}
        self._unchanged: Schedule | None = None  # a copy on which all was refused so far

    # ------------------------------------------------------------------------------- listing

    def entries(
        self,
        table: Mapping[str, Callable[[Palette], list[Parameter]]],
        groups: Iterable[tuple[str, Iterable[str]]],
    ) -> list[Entry]:
        """An entry for every primitive of `table`, which says what its parameters are here."""
        return [self.entry(method, group, table[method]) for group, methods in groups
                for method in methods if method in table]  # fmt: skip

    def entry(
        self, method: str, group: str, build: Callable[[Palette], list[Parameter]]
    ) -> Entry:
        """One primitive: its parameters, its choices tried."""
        kind = InstructionKind.by_method[method]
        meaning = text(kind.meaning, "meanings", self.language)
        try:
            parameters = build(self)
        except NotHere as nothing:
            return Entry(method, group, meaning, False, [], *nothing.args)
        made = Entry(method, group, meaning, False, parameters)
        probed = next((p for p in parameters if p.extra.pop("probe", False)), None)
        args = made.arguments()
        if probed is None:
            refusal = self.attempt(kind, args)
            made.legal = refusal is None
            made.rule, made.reason = refusal or ("", "")
            return made
        start, first = time.perf_counter(), None
        prefer = probed.extra.pop("prefer", [])  # the choices that suit best, the best first
        suits = {id(c): prefer.index(c["value"]) for c in probed.choices if c["value"] in prefer}
        order = sorted(probed.choices, key=lambda c: suits.get(id(c), len(prefer)))
        for choice in order:
            if time.perf_counter() - start > BUDGET:
                break  # the rest is tried when it is chosen
            refusal = self.attempt(kind, {**args, probed.name: choice["value"]})
            choice["legal"] = refusal is None
            if refusal is None:
                if not made.legal:
                    made.legal, probed.default = True, choice["value"]
            else:
                choice["reason"] = refusal[1].split("\n\n")[0]
                first = first or refusal
        if not made.legal and any("legal" not in c for c in probed.choices):
            made.legal = True  # not known: offered, and refused when applied
            probed.default = next(c["value"] for c in order if "legal" not in c)
        elif not made.legal and first is not None:
            made.rule, made.reason = first
        return made

    def attempt(self, kind: InstructionKind, args: dict[str, Any]) -> tuple[str, str] | None:
        """Try a primitive on a copy: None if it may act, else (rule, reason)."""
        return self.trial(kind, args, asking=True)[1]

    def trial(
        self, kind: InstructionKind, args: dict[str, Any], asking: bool = False
    ) -> tuple[Schedule, tuple[str, str] | None]:
        """Try a primitive on a copy: the copy, and (rule, reason) if it was refused.

        With `asking` only the second is wanted: a primitive may end when its rules hold.
        """
        trial, self._unchanged = self._unchanged or self.sch.copy(), None
        trial.trace, trial.steps, trial.state.asking = Trace(), [], asking
        try:
            trial.apply(kind, bind(kind, args, lambda what, key: self._stand_in(trial, key)))
        except Accepted:
            self._unchanged = trial
        except ScheduleError as error:
            self._unchanged = trial  # a refusal changes nothing: good for the next one
            return trial, explain(error, self.language)
        except Exception as error:  # half-typed arguments may be anything; the list must not fail
            return trial, ("arguments", str(error) or type(error).__name__)
        finally:
            self.state.learn(trial.state)
        return trial, None

    def _stand_in(self, trial: Schedule, key: int) -> Any:
        """A random variable of the trial for a block or loop."""
        stmt = self.by_key.get(key)
        if stmt is None:
            raise ValueError("this block or loop is not in the program here")
        return trial.new_rv(stmt)

    # -------------------------------------------------------------------- what is there to name

    def value_of(self, stmt: Stmt) -> dict[str, int]:
        """A block or loop as an argument."""
        return {"loop" if type(stmt) is For else "block": self.key_of(stmt)}

    def label(self, stmt: Block | For, owner: bool = False) -> str:
        """What a block or loop is called in a form."""
        if isinstance(stmt, Block):
            return stmt.name_hint
        extent = op.as_int(stmt.extent)
        text = f"{stmt.loop_var.name} ({extent if extent is not None else stmt.extent!r})"
        if owner:
            text += " of " + ", ".join(r.block.name_hint for r in child_realizes(stmt)[:3])
        return text

    def choice(self, stmt: Block | For, owner: bool = False) -> dict[str, Any]:
        """A block or loop as a choice."""
        return {"value": self.value_of(stmt), "label": self.label(stmt, owner)}

    def picked(self, name: str) -> Parameter:
        """The thing that was picked, as the argument `name`."""
        return Parameter(name, "fixed", self.value_of(self.stmt))

    def scope(self) -> StmtSRef:
        """The block that the picked thing is scheduled in."""
        if self.sref.parent is None:
            raise NotHere("has scope", "the root block is not scheduled itself: pick a block or "
                          "loop inside it")  # fmt: skip
        return self.state.scope_root(self.sref)

    def loops_above(self) -> list[Any]:
        """The loops around the picked thing, outermost first."""
        return [s.stmt for s in self.state.loops_above(self.sref)]

    def chain(self) -> list[Any]:
        """The loops nested directly in one another that the picked loop belongs to."""
        chain = [self.stmt]
        above = self.sref.parent
        while above is not None and type(above.stmt) is For and above.stmt.body is chain[0]:
            chain.insert(0, above.stmt)
            above = above.parent
        while type(chain[-1].body) is For:
            chain.append(chain[-1].body)
        return chain

    def loops_in_scope(self) -> Iterator[Any]:
        """The loops of the scope that are not around the picked block, in order."""
        around = set(map(id, self.loops_above()))

        def walk(stmt: Stmt) -> Iterator[Any]:
            if type(stmt) is Block:
                return
            if type(stmt) is For and id(stmt) not in around:
                yield stmt
            for item in sub_statements(stmt):
                yield from walk(item)

        for item in sub_statements(self.scope().stmt):
            yield from walk(item)

    def regions(self, *kinds: str) -> list[dict[str, Any]]:
        """The buffers that the picked block reads or writes, as choices of ("read", 0)."""
        found = [region for kind in kinds for region in self._regions_of(kind)]
        if not found:
            raise NotHere("buffer is accessed", f"block {self.stmt.name_hint} has no "
                          f"{' or '.join(k + ' region' for k in kinds)}")  # fmt: skip
        return found

    def _regions_of(self, kind: str) -> list[dict[str, Any]]:
        """The same of one kind; many primitives ask for it."""
        if kind not in self._regions:
            made = self._regions[kind] = []
            for index, region in enumerate(getattr(self.stmt, kind + "s")):
                shape = ", ".join(map(repr, region.buffer.shape))
                label = f"{region.buffer.name}[{shape}] {region.buffer.dtype}, {kind} {index}"
                made.append({"value": [kind, index], "label": label, "region": region})
        return self._regions[kind]

    def buffers(self, name: str, *kinds: str) -> Parameter:
        """A parameter that is ("read", 0), tried for each buffer."""
        choices = [{k: c[k] for k in ("value", "label")} for c in self.regions(*kinds)]
        return Parameter(name, "choice", choices[0]["value"], choices, extra={"probe": True})

    def index(self, name: str, kind: str) -> Parameter:
        """A parameter that is a number among the reads or writes, tried for each."""
        choices = [{"value": c["value"][1], "label": c["label"]} for c in self.regions(kind)]
        return Parameter(name, "choice", 0, choices, extra={"probe": True})


def bind(kind: InstructionKind, args: dict[str, Any], stand_in: Callable[[str, int], Any]
         ) -> dict[str, Any]:
    """Plain arguments as a primitive takes them; `stand_in("loop" | "block", key)` gives RVs."""

    def value(given: Any) -> Any:
        if isinstance(given, dict):
            if len(given) != 1:
                raise ValueError(f"{given!r} is no argument")
            ((tag, inner),) = given.items()
            if tag in ("loop", "block"):
                return stand_in(tag, inner)
            if tag == "map":
                return read_value(inner, lambda_only=True)
            if tag == "python":
                return read_value(inner)
            raise ValueError(f"{tag!r} is no kind of argument")
        if isinstance(given, (list, tuple)):
            return [value(v) for v in given]
        return given

    unknown = args.keys() - {p.name for p in kind.params}
    if unknown:
        raise TypeError(f"{kind.method} has no parameter {', '.join(sorted(unknown))}; it takes "
                        f"{', '.join(p.name for p in kind.params)}")  # fmt: skip
    positional: list[Any] = []
    keyword = {}
    for param in kind.params:
        if param.name not in args:
            continue
        made = value(args[param.name])
        if param.kind == param.VAR_POSITIONAL:
            positional += made
        else:
            keyword[param.name] = made
    return kind.bind(positional, keyword)


def read_value(text: str, lambda_only: bool = False) -> Any:
    """A Python literal or lambda read from its text; never executed. Raises ValueError."""
    node = _parsed(text)
    if lambda_only and not isinstance(node, ast.Lambda):
        raise ValueError(f"{text!r} is no index map: write for example lambda i, j: (j, i)")
    return ValueReader({}).of(node)


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.expr:
    """The same maps are offered for every block."""
    return parse_expression(text)


__all__ = ["Entry", "NotHere", "Palette", "Parameter", "bind", "divisors", "explain", "position",
           "read_value", "statements_in_order"]
