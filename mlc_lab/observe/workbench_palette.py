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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..ir import dtype as dt
from ..schedule.error import ScheduleError
from ..schedule.instruction import BlockRV, InstructionKind, LoopRV, RangesMap, python_text
from ..schedule.schedule import Schedule
from ..schedule.state import StmtSRef, child_realizes, sub_statements
from ..schedule.trace import ValueReader
from ..tir import op
from ..tir.expr import IterVar
from ..tir.function import TensorIntrin
from ..tir.functor import uses_var
from ..tir.stmt import Block, For

#: seconds that a listing may spend on trying the choices of one parameter
BUDGET = 0.04
THREADS = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z",
           "vthread.x", "vthread.y", "vthread.z")  # fmt: skip
SCOPES = ("global", "shared", "local", "warp", "shared.dyn", "wmma.matrix_a", "wmma.matrix_b",
          "wmma.accumulator")  # fmt: skip
DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64")
ANNOTATIONS = ("pragma_auto_unroll_max_step", "pragma_unroll_explicit", "software_pipeline_stage",
               "software_pipeline_order", "double_buffer_scope")  # fmt: skip


@dataclass
class Parameter:
    """One argument of a primitive.

    `kind` says what a form shows: "fixed" (the thing that was picked), "choice", "order" (a
    permutation of `items`), "factors" (of a loop of `extent`), "int", "ints", "bool", "text",
    "map" (a Python lambda), "value" (a Python literal). `choices` are {"value", "label"} and, where
    they were tried, "legal" and "reason". Parameters that one seldom changes are `advanced`.
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

    def walk(stmt: Any) -> None:
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


def explain(error: ScheduleError) -> tuple[str, str]:
    """(rule in words, reason with conflict and hint) of a refusal, as a recording has it."""
    parts = [error.reason]
    if error.conflict:
        parts.append(f"Two iterations that clash: {error.conflict}")
    if error.hint:
        parts.append(f"Try: {error.hint}")
    return error.rule.replace("_", " "), "\n\n".join(parts)


class Palette:
    """Lists what can be done with one block or loop of a schedule.

    `sref` is the thing picked, of `sch`; `key_of(stmt)` gives the key of a block or loop.
    """

    def __init__(self, sch: Schedule, sref: StmtSRef, key_of: Callable[[Any], int]) -> None:
        self.sch, self.state, self.sref = sch, sch.state, sref
        self.stmt = sref.stmt
        self.key_of = key_of
        self.is_loop = type(self.stmt) is For
        self.by_key = {key_of(s): s for s in statements_in_order(self.state)}

    # ------------------------------------------------------------------------------- listing

    def entries(self) -> list[Entry]:
        """Every primitive that acts on such a thing, legal ones first within their group."""
        table = LOOP_TABLE if self.is_loop else BLOCK_TABLE
        found = [self.entry(method, group, table[method]) for group, methods in GROUPS
                 for method in methods if method in table]  # fmt: skip
        return found

    def entry(self, method: str, group: str, build: Callable) -> Entry:
        """One primitive: its parameters, its choices tried."""
        kind = InstructionKind.by_method[method]
        try:
            parameters = build(self)
        except NotHere as nothing:
            return Entry(method, group, kind.meaning, False, [], *nothing.args)
        made = Entry(method, group, kind.meaning, False, parameters)
        probed = next((p for p in parameters if p.extra.pop("probe", False)), None)
        args = made.arguments()
        if probed is None:
            refusal = self.attempt(kind, args)
            made.legal = refusal is None
            made.rule, made.reason = refusal or ("", "")
            return made
        start, first = time.perf_counter(), None
        for choice in probed.choices:
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
            probed.default = next(c["value"] for c in probed.choices if "legal" not in c)
        elif not made.legal and first is not None:
            made.rule, made.reason = first
        return made

    def attempt(self, kind: InstructionKind, args: dict[str, Any]) -> tuple[str, str] | None:
        """Try a primitive on a copy: None if it may act, else (rule, reason)."""
        trial = self.sch.copy()
        trial.trace, trial.steps = None, []
        try:
            trial._apply(kind, bind(kind, args, lambda what, key: self._stand_in(trial, key)))
        except ScheduleError as error:
            return explain(error)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            return "arguments", str(error) or type(error).__name__
        return None

    def _stand_in(self, trial: Schedule, key: int) -> Any:
        """A random variable of the trial for a block or loop."""
        stmt = self.by_key[key]
        rv = LoopRV() if type(stmt) is For else BlockRV()
        trial._symbols[rv] = trial.state.refs[stmt]
        trial._names[rv] = stmt.loop_var.name if type(stmt) is For else stmt.name_hint
        return rv

    # -------------------------------------------------------------------- what is there to name

    def value_of(self, stmt: Any) -> dict[str, int]:
        """A block or loop as an argument."""
        return {"loop" if type(stmt) is For else "block": self.key_of(stmt)}

    def label(self, stmt: Any, owner: bool = False) -> str:
        """What a block or loop is called in a form."""
        if type(stmt) is Block:
            return stmt.name_hint
        extent = op.as_int(stmt.extent)
        text = f"{stmt.loop_var.name} ({extent if extent is not None else stmt.extent!r})"
        if owner:
            text += " of " + ", ".join(r.block.name_hint for r in child_realizes(stmt)[:3])
        return text

    def choice(self, stmt: Any, owner: bool = False) -> dict[str, Any]:
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

        def walk(stmt: Any) -> Iterator[Any]:
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
        found = []
        for kind in kinds:
            for index, region in enumerate(getattr(self.stmt, kind + "s")):
                shape = ", ".join(map(repr, region.buffer.shape))
                label = f"{region.buffer.name}[{shape}] {region.buffer.dtype}, {kind} {index}"
                found.append({"value": [kind, index], "label": label, "region": region})
        if not found:
            raise NotHere("buffer is accessed", f"block {self.stmt.name_hint} has no "
                          f"{' or '.join(k + ' region' for k in kinds)}")  # fmt: skip
        return found

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
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as err:
        raise ValueError(f"{text!r} is not Python: {err.msg}") from None
    if lambda_only and not isinstance(node, ast.Lambda):
        raise ValueError(f"{text!r} is no index map: write for example lambda i, j: (j, i)")
    return ValueReader({}).of(node)


# ------------------------------------------------------- the parameters of each primitive: loops


def _split(p: Palette) -> list[Parameter]:
    extent = op.as_int(p.stmt.extent)
    extra: dict[str, Any] = {"extent": extent, "loop": p.stmt.loop_var.name}
    inner = 8
    if extent is not None and extent > 0:
        extra["divisors"] = divisors(extent)
        inner = max((d for d in extra["divisors"] if d <= 8), default=1)
    return [p.picked("loop"), Parameter("factors", "factors", [None, inner], extra=extra),
            Parameter("preserve_unit_iters", "bool", True, advanced=True),
            Parameter("disable_predication", "bool", False, advanced=True)]  # fmt: skip


def _fuse(p: Palette) -> list[Parameter]:
    chain = p.chain()
    below = chain[_position(chain, p.stmt) :]
    if len(below) < 2:
        raise NotHere("another loop inside", f"directly inside {p.stmt.loop_var.name} there is no "
                      "other loop to fuse with")  # fmt: skip
    choices = [
        {"value": [p.value_of(loop) for loop in below[:count]],
         "label": ", ".join(loop.loop_var.name for loop in below[:count])}
        for count in range(2, len(below) + 1)
    ]  # fmt: skip
    return [Parameter("loops", "choice", choices[0]["value"], choices, extra={"probe": True}),
            Parameter("preserve_unit_iters", "bool", True, advanced=True)]  # fmt: skip


def _position(items: list[Any], item: Any) -> int:
    return next(i for i, other in enumerate(items) if other is item)


def _reorder(p: Palette) -> list[Parameter]:
    # Loops of one chain can be reordered, also where a block or statement stands between them
    # and the primitive says why not.
    chain = p.chain()
    if len(chain) < 2:
        raise NotHere("another loop in the nest", f"{p.stmt.loop_var.name} is alone: directly "
                      "around and inside it there is no other loop")  # fmt: skip
    at = _position(chain, p.stmt)
    other = at + 1 if at + 1 < len(chain) else at - 1
    order = list(chain)
    order[at], order[other] = order[other], order[at]
    return [Parameter("ordered_loops", "order", [p.value_of(loop) for loop in order],
                      extra={"items": [p.choice(loop) for loop in chain]})]  # fmt: skip


def _blocks_below(p: Palette) -> list[Any]:
    return [r.block for r in child_realizes(p.stmt)]


def _decompose_from_loop(p: Palette) -> list[Parameter]:
    blocks = [b for b in _blocks_below(p) if b.init is not None]
    if not blocks:
        raise NotHere("block has init", "no block inside this loop has an init to be split off")
    choices = [p.choice(b) for b in blocks]
    return [Parameter("block", "choice", choices[0]["value"], choices, extra={"probe": True}),
            p.picked("loop")]  # fmt: skip


def _padding_from_loop(p: Palette) -> list[Parameter]:
    choices = [p.choice(b) for b in _blocks_below(p)]
    if not choices:
        raise NotHere("a block inside", "there is no block inside this loop")
    return [Parameter("block", "choice", choices[0]["value"], choices, extra={"probe": True}),
            p.picked("loop")]  # fmt: skip


def _rfactor(p: Palette) -> list[Parameter]:
    blocks = _blocks_below(p)
    rank = len(blocks[0].writes[0].region) if blocks and blocks[0].writes else 0
    choices = [{"value": axis, "label": f"{axis}: before dimension {axis}" if axis < rank else
                f"{axis}: last"} for axis in range(rank + 1)]  # fmt: skip
    return [p.picked("loop"), Parameter("factor_axis", "choice", 0, choices)]


def _bind(p: Palette) -> list[Parameter]:
    choices = [{"value": tag, "label": tag} for tag in THREADS]
    return [p.picked("loop"),
            Parameter("thread_axis", "choice", "threadIdx.x", choices, extra={"probe": True})]


def _annotate(p: Palette) -> list[Parameter]:
    key = {"suggestions": list(ANNOTATIONS)}
    default = ANNOTATIONS[0] if p.is_loop else "double_buffer_scope"
    return [p.picked("block_or_loop"), Parameter("ann_key", "text", default, extra=key),
            Parameter("ann_val", "value", {"python": "16" if p.is_loop else "0"})]  # fmt: skip


def _unannotate(p: Palette) -> list[Parameter]:
    keys = list(p.stmt.annotations)
    if not keys:
        raise NotHere("annotation is there", "there is no annotation to take away")
    choices = [{"value": key, "label": key} for key in keys]
    return [p.picked("block_or_loop"), Parameter("ann_key", "choice", keys[0], choices)]


def _tensorize(p: Palette) -> list[Parameter]:
    names = sorted(TensorIntrin._registry)
    if not names:
        raise NotHere("intrinsic is registered", "no tensor intrinsic is registered: "
                      "tvm.tir.TensorIntrin.register(name, desc, impl) adds one")  # fmt: skip
    choices = [{"value": name, "label": name} for name in names]
    return [p.picked("block_or_loop"),
            Parameter("tensor_intrin", "choice", names[0], choices, extra={"probe": True}),
            Parameter("preserve_unit_iters", "bool", True, advanced=True)]  # fmt: skip


def _blockize(p: Palette) -> list[Parameter]:
    return [p.picked("target"), Parameter("preserve_unit_iters", "bool", True, advanced=True)]


LOOP_TABLE: dict[str, Callable[[Palette], list[Parameter]]] = {
    "split": _split,
    "fuse": _fuse,
    "reorder": _reorder,
    "parallel": lambda p: [p.picked("loop")],
    "vectorize": lambda p: [p.picked("loop")],
    "unroll": lambda p: [p.picked("loop")],
    "bind": _bind,
    "add_unit_loop": lambda p: [p.picked("block_or_loop")],
    "decompose_reduction": _decompose_from_loop,
    "rfactor": _rfactor,
    "decompose_padding": _padding_from_loop,
    "blockize": _blockize,
    "tensorize": _tensorize,
    "annotate": _annotate,
    "unannotate": _unannotate,
}


# ------------------------------------------------------ the parameters of each primitive: blocks


def _compute_at(p: Palette) -> list[Parameter]:
    choices = [p.choice(loop, owner=True) for loop in p.loops_in_scope()]
    if not choices:
        raise NotHere("a loop to go to", "there is no loop elsewhere in its scope to go under")
    return [p.picked("block"),
            Parameter("loop", "choice", choices[0]["value"], choices, extra={"probe": True}),
            Parameter("preserve_unit_loops", "bool", False, advanced=True),
            Parameter("index", "int", -1, advanced=True)]  # fmt: skip


def _with_loop(p: Palette) -> list[Parameter]:
    loops = p.loops_above()
    if not loops:
        raise NotHere("a loop around", "there is no loop around this block")
    choices = [p.choice(loop) for loop in loops]
    return [p.picked("block"),
            Parameter("loop", "choice", choices[0]["value"], choices, extra={"probe": True})]


def _scope_choice(default: str = "global") -> Parameter:
    choices = [{"value": s, "label": s} for s in SCOPES]
    return Parameter("storage_scope", "choice", default, choices)


def _cache(name: str, kind: str) -> Callable[[Palette], list[Parameter]]:
    return lambda p: [p.picked("block"), p.index(name, kind), _scope_choice()]


def _lambda(names: list[str], results: list[str]) -> dict[str, str]:
    """The text of an index map."""
    inner = ", ".join(results) + ("," if len(results) == 1 else "")
    return {"map": f"lambda {', '.join(names)}: ({inner})"}


def _reindex_cache(name: str, kind: str) -> Callable[[Palette], list[Parameter]]:
    def build(p: Palette) -> list[Parameter]:
        region = p.regions(kind)[0]["region"]
        iters = [iv.var for iv in p.stmt.iter_vars]
        used = [v for v in iters if any(uses_var(r.min, v) for r in region.region)]
        text = _lambda([v.name for v in iters], [v.name for v in used or iters])
        return [p.picked("block"), p.index(name, kind), _scope_choice(),
                Parameter("index_map", "map", text)]  # fmt: skip

    return build


def _layout(p: Palette) -> list[Parameter]:
    buffers = p.buffers("buffer", "write", "read")
    region = p.regions("write", "read")[0]["region"]
    names = [f"i{n}" for n in range(len(region.buffer.shape))]
    swapped = [*names[:-2], *reversed(names[-2:])]
    buffers.extra.pop("probe")
    return [p.picked("block"), buffers, Parameter("index_map", "map", _lambda(names, swapped)),
            Parameter("pad_value", "value", {"python": "None"}, advanced=True),
            Parameter("assume_injective_transform", "bool", False, advanced=True)]  # fmt: skip


def _separator(p: Palette) -> list[Parameter]:
    buffers = p.buffers("buffer", "write", "read")
    return [p.picked("block"), buffers, Parameter("axis_separators", "ints", [1])]


def _iters(p: Palette) -> list[IterVar]:
    if not p.stmt.iter_vars:
        raise NotHere("has iterators", f"block {p.stmt.name_hint} has no iterators")
    return list(p.stmt.iter_vars)


def _block_layout(p: Palette) -> list[Parameter]:
    names = [iv.var.name for iv in _iters(p)]
    return [p.picked("block"), Parameter("index_map", "map", _lambda(names, names))]


def _iter_order(p: Palette) -> list[Parameter]:
    names = [iv.var.name for iv in _iters(p)]
    items = [{"value": n, "label": name} for n, name in enumerate(names)]
    order = list(range(len(names)))
    order[-2:] = reversed(order[-2:])
    return [p.picked("block"), Parameter("new_order", "order", order, extra={"items": items})]


def _align(p: Palette) -> list[Parameter]:
    return [p.picked("block"), p.index("buffer_index", "write"), Parameter("axis", "int", -2),
            Parameter("factor", "int", 32), Parameter("offset", "int", 8)]  # fmt: skip


def _dtype(p: Palette) -> list[Parameter]:
    now = p.regions("write")[0]["region"].buffer.dtype
    choices = [{"value": d, "label": d} for d in DTYPES if d != now]
    default = "float16" if dt.is_float(now) and now != "float16" else choices[0]["value"]
    return [p.picked("block"), p.index("buffer_index", "write"),
            Parameter("dtype", "choice", default, choices)]  # fmt: skip


def _access(p: Palette) -> list[Parameter]:
    region = p.regions("write")[0]["region"]
    iters = [iv.var for iv in p.stmt.iter_vars]
    ends = [e for r in region.region for e in (r.min, op.add(r.min, r.extent))]
    text = python_text(RangesMap(iters, ends), {})
    return [p.picked("block"), Parameter("buffer_index", "int", 0),
            Parameter("buf_type", "choice", "write",
                      [{"value": k, "label": k} for k in ("read", "write")]),
            Parameter("gen_new_ranges", "map", {"map": text})]  # fmt: skip


def _pad(p: Palette) -> list[Parameter]:
    names = [iv.var.name for iv in _iters(p)]
    return [p.picked("block"),
            Parameter("padding", "ints", [16] * len(names), extra={"labels": names})]


BLOCK_TABLE: dict[str, Callable[[Palette], list[Parameter]]] = {
    "compute_at": _compute_at,
    "reverse_compute_at": _compute_at,
    "compute_inline": lambda p: [p.picked("block")],
    "reverse_compute_inline": lambda p: [p.picked("block")],
    "decompose_reduction": _with_loop,
    "cache_read": _cache("read_buffer_index", "read"),
    "cache_write": _cache("write_buffer_index", "write"),
    "cache_inplace": _cache("read_buffer_index", "read"),
    "cache_index": lambda p: [p.picked("block"), _scope_choice(),
                              Parameter("cse_thresh", "int", 0, advanced=True)],
    "reindex": lambda p: [p.picked("block"), p.buffers("buffer", "read", "write")],
    "reindex_cache_read": _reindex_cache("read_buffer_index", "read"),
    "reindex_cache_write": _reindex_cache("write_buffer_index", "write"),
    "set_scope": lambda p: [p.picked("block"), p.index("buffer_index", "write"),
                            _scope_choice("shared")],
    "transform_layout": _layout,
    "set_axis_separator": _separator,
    "storage_align": _align,
    "unsafe_set_dtype": _dtype,
    "rolling_buffer": lambda p: [p.picked("block"), p.index("write_buffer_index", "write")],
    "annotate_buffer_access": _access,
    "blockize": _blockize,
    "tensorize": _tensorize,
    "transform_block_layout": _block_layout,
    "reorder_block_iter_var": _iter_order,
    "pad_einsum": _pad,
    "decompose_padding": _with_loop,
    "add_unit_loop": lambda p: [p.picked("block_or_loop")],
    "annotate": _annotate,
    "unannotate": _unannotate,
}  # fmt: skip

#: how a view groups them
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Loops", ("split", "fuse", "reorder", "parallel", "vectorize", "unroll", "bind",
               "add_unit_loop")),
    ("Where it is computed", ("compute_at", "reverse_compute_at", "compute_inline",
                              "reverse_compute_inline")),
    ("Reduction and padding", ("decompose_reduction", "rfactor", "decompose_padding",
                               "pad_einsum")),
    ("Copies and buffers", ("cache_read", "cache_write", "reindex", "reindex_cache_read",
                            "reindex_cache_write", "cache_inplace", "cache_index", "set_scope",
                            "transform_layout", "set_axis_separator", "storage_align",
                            "rolling_buffer", "unsafe_set_dtype", "annotate_buffer_access")),
    ("Blocks and tensor intrinsics", ("blockize", "tensorize", "transform_block_layout",
                                      "reorder_block_iter_var")),
    ("Notes", ("annotate", "unannotate")),
)  # fmt: skip

__all__ = ["Entry", "GROUPS", "Palette", "Parameter", "bind", "explain", "statements_in_order"]
