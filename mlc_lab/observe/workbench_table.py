"""The primitives that act on a loop or a block, each with its parameters and sensible defaults.

One row a primitive: a function that says of the thing that was picked what the parameters are, or
raises NotHere where there is nothing on which the primitive could act. Sampling primitives and
look-ups are not in the tables: they do not change a program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from ..schedule.instruction import RangesMap, python_text
from ..schedule.schedule import Schedule
from ..schedule.state import StmtSRef, child_realizes, sub_statements
from ..tir import op
from ..tir.expr import IterVar
from ..tir.function import TensorIntrin
from ..tir.functor import uses_var
from ..tir.stmt import For, SeqStmt
from .workbench_fetch import fetch_entry
from .workbench_gpu import suggested_axes
from .workbench_palette import Entry, NotHere, Palette, Parameter, divisors, position

if TYPE_CHECKING:
    from ..target.target import TargetLike

THREADS = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z",
           "vthread.x", "vthread.y", "vthread.z")  # fmt: skip
SCOPES = ("global", "shared", "local", "warp", "shared.dyn", "wmma.matrix_a", "wmma.matrix_b",
          "wmma.accumulator")  # fmt: skip
DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64")
ANNOTATIONS = ("pragma_auto_unroll_max_step", "pragma_unroll_explicit", "software_pipeline_stage",
               "software_pipeline_order", "double_buffer_scope")  # fmt: skip


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


def _partition(p: Palette) -> list[Parameter]:
    extent = op.as_int(p.stmt.extent)
    if extent is None or extent < 2:
        raise NotHere("a loop of known extent", f"loop {p.stmt.loop_var.name} has no two "
                      "iterations of which it is known where to part them")  # fmt: skip
    return [p.picked("loop"), Parameter("factors", "ints", [extent // 2]),
            Parameter("preserve_unit_iters", "bool", True, advanced=True)]  # fmt: skip


def _fuse(p: Palette) -> list[Parameter]:
    chain = p.chain()
    below = chain[position(chain, p.stmt) :]
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


def _merge(p: Palette) -> list[Parameter]:
    parent = p.sref.parent
    around = list(sub_statements(parent.stmt)) if parent is not None else []
    if len(around) == 1 and type(around[0]) is SeqStmt:
        around = list(around[0].seq)
    at = position(around, p.stmt) if any(s is p.stmt for s in around) else len(around)
    following = []
    for other in around[at + 1 :]:
        if type(other) is not For:
            break
        following.append(other)
    if not following:
        raise NotHere("a loop that follows", f"directly behind loop {p.stmt.loop_var.name} there "
                      "is no other loop to merge with")  # fmt: skip
    choices = [
        {"value": [p.value_of(loop) for loop in (p.stmt, *following[:count])],
         "label": ", ".join(p.label(loop, True) for loop in (p.stmt, *following[:count]))}
        for count in range(1, len(following) + 1)
    ]  # fmt: skip
    return [Parameter("loops", "choice", choices[0]["value"], choices, extra={"probe": True})]


def _reorder(p: Palette) -> list[Parameter]:
    # Loops of one chain can be reordered, also where a block or statement stands between them
    # and the primitive says why not.
    chain = p.chain()
    if len(chain) < 2:
        raise NotHere("another loop in the nest", f"{p.stmt.loop_var.name} is alone: directly "
                      "around and inside it there is no other loop")  # fmt: skip
    at = position(chain, p.stmt)
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
    best, why = suggested_axes(p, p.target)
    choices = [{"value": tag, "label": tag, **({"note": why} if tag in best[:1] else {})}
               for tag in THREADS]
    return [p.picked("loop"),
            Parameter("thread_axis", "choice", "threadIdx.x", choices,
                      extra={"probe": True, "prefer": best})]


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
    names = sorted(TensorIntrin.registered())
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
    "loop_partition": _partition,
    "fuse": _fuse,
    "merge": _merge,
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


def _outside_reduction(p: Palette) -> list[Parameter]:
    """decompose_reduction: as a rule at the outermost loop that the reduction runs over."""
    block, loop = _with_loop(p)
    realize = p.state.realize_of(p.sref)
    reduced = [value for iv, value in zip(p.stmt.iter_vars, realize.iter_values)
               if iv.iter_type == IterVar.CommReduce]  # fmt: skip
    for around in p.loops_above():
        if any(uses_var(value, around.loop_var) for value in reduced):
            loop.extra["prefer"] = [p.value_of(around)]
            break
    return [block, loop]


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
    "decompose_reduction": _outside_reduction,
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
    "unblockize": lambda p: [p.picked("block")],
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
    ("Loops", ("split", "loop_partition", "fuse", "merge", "reorder", "parallel", "vectorize",
               "unroll", "bind", "add_unit_loop")),
    ("Where it is computed", ("compute_at", "reverse_compute_at", "compute_inline",
                              "reverse_compute_inline")),
    ("Reduction and padding", ("decompose_reduction", "rfactor", "decompose_padding",
                               "pad_einsum")),
    ("Copies and buffers", ("cache_read", "cache_write", "reindex", "reindex_cache_read",
                            "reindex_cache_write", "cache_inplace", "cache_index", "set_scope",
                            "transform_layout", "set_axis_separator", "storage_align",
                            "rolling_buffer", "unsafe_set_dtype", "annotate_buffer_access")),
    ("Blocks and tensor intrinsics", ("blockize", "unblockize", "tensorize",
                                      "transform_block_layout", "reorder_block_iter_var")),
    ("Notes", ("annotate", "unannotate")),
)  # fmt: skip


def listing(sch: Schedule, sref: StmtSRef, key_of: Callable[[Any], int],
            target: TargetLike = "llvm") -> list[Entry]:
    """Every primitive for a block or loop of a schedule, legal or with the reason why not; first
    what does several steps at once."""
    table = LOOP_TABLE if type(sref.stmt) is For else BLOCK_TABLE
    p = Palette(sch, sref, key_of, target)
    several = fetch_entry(p)
    return [*([several] if several is not None else []), *p.entries(table, GROUPS)]


__all__ = ["BLOCK_TABLE", "GROUPS", "LOOP_TABLE", "listing"]
