"""Rules of control flow: If, Loop, and Scan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ....tir.expr import SizeVar
from ... import op
from ...expr import If, MatchCast, SeqExpr, Tuple, Var, const
from ...struct_info import TensorStructInfo, same_dim, tir_vars_in_struct_info
from ..looping import while_loop, with_any_size
from .importer import Importer, Missing, Sizes, rule

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Given

#: the most turns of a Loop that are written out
MOST_TURNS = 1000
#: the most elements of a tensor that has room for all that a Loop may collect
MOST_COLLECTED = 1 << 24


@rule("If")
def _if(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The branch that is taken where the condition is known; else an If of Relax."""
    yes, no = attrs["then_branch"], attrs["else_branch"]
    if im.known(inputs[0]):
        return im.inlined(yes if bool(inputs[0].reshape(-1)[0]) else no, [])
    condition = im.emit(op.reshape(im.tensor(inputs[0]), []))
    sides, count = [], len(yes.output)
    for branch in (yes, no):
        im.builder.begin_binding_block()
        outs = [im.tensor(v) for v in im.inlined(branch, [])]
        value = im.emit(outs[0] if count == 1 else Tuple(outs))
        sides.append(SeqExpr([im.builder.end_block()], value))
    out = im.emit(If(condition, *sides))
    return out if count == 1 else [im.emit(out[k]) for k in range(count)]


@rule("Loop")
def _loop(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The body as many times as the loop turns. Where that is known it is written out; else it is
    a function that calls itself.

    Where no condition is given the first turn is taken, and what the body computes counts from
    then on, as onnxruntime has it.
    """
    body, (turns, going, *state) = attrs["body"], [*inputs, None, None][:max(2, len(inputs))]
    if turns is not None and im.known(turns):
        turns = int(np.reshape(turns, -1)[0])
    if going is None:
        going = np.asarray(True)
    out = None
    if im.known(going) and (turns is None or isinstance(turns, int)):
        out = _written_out(im, body, turns, going, state)
    return _counted_by_the_run(im, body, turns, going, state) if out is None else out


@rule("Scan")
def _scan(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The body for each slice of the sequences, one after the other."""
    if im.opset < 9:
        raise ValueError("Scan before version 9 has a batch and lengths of its own, which is not "
                         "translated: convert the model to a newer version")
    body, count = attrs["body"], attrs["num_scan_inputs"]
    given = list(inputs)
    state, sequences = given[:len(given) - count], given[len(given) - count:]
    made = len(body.output) - len(state)
    axes = attrs.get("scan_input_axes") or [0] * count
    axes = [a % im.ndim(x) for a, x in zip(axes, sequences)]
    back = attrs.get("scan_input_directions") or [0] * count
    out_axes = attrs.get("scan_output_axes") or [0] * made
    out_back = attrs.get("scan_output_directions") or [0] * made
    lengths = [im.shape(x)[a] for x, a in zip(sequences, axes)]
    turns = lengths[0]
    if not isinstance(turns, int) or not 0 < turns <= MOST_TURNS:
        raise ValueError(f"a Scan is written out: the length of its sequences must be known, 1 or "
                         f"more and at most {MOST_TURNS}, and it is {turns}; give it in "
                         "shape_dict, or write the model with Loop")
    if any(n != turns for n in lengths):
        raise ValueError(f"the sequences of a Scan have different lengths: {lengths}")
    collected: list[list[Any]] = [[] for _ in range(made)]
    for turn in range(turns):
        slices = [_slice_at(im, x, a, turns - 1 - turn if turned else turn)
                  for x, a, turned in zip(sequences, axes, back)]
        out = im.inlined(body, [*state, *slices])
        state = out[:len(state)]
        for parts, value in zip(collected, out[len(state):]):
            parts.append(value)
    rows = [im.emit(op.stack([im.tensor(v) for v in (parts[::-1] if turned else parts)], axis))
            for parts, axis, turned in zip(collected, out_axes, out_back)]
    return [*state, *rows]


def _slice_at(im: Importer, x: Given, axis: int, place: int) -> Any:
    if isinstance(x, np.ndarray):
        return np.take(x, place, axis)
    part = im.emit(op.strided_slice(im.tensor(x), [axis], [place], [place + 1]))
    return im.emit(op.squeeze(part, [axis]))


def _written_out(im: Importer, body: Any, most: int | None, going: np.ndarray, state: list[Any]
                 ) -> list[Any] | None:
    """The turns one after another; None where they are too many, or where what only the run knows
    ends the loop."""
    collected: list[list[Any]] = [[] for _ in body.output[1 + len(state):]]
    im.builder.begin_binding_block()
    turn = 0
    try:
        while (most is None or turn < most) and bool(np.reshape(going, -1)[0]):
            before = going
            going, *out = im.inlined(body, [np.asarray(turn, "int64"), going, *state])
            endless = going is before and (most is None or most > MOST_TURNS)
            if not im.known(going) or endless or turn == MOST_TURNS:
                return None
            state = out[:len(state)]
            for parts, value in zip(collected, out[len(state):]):
                parts.append(value)
            turn += 1
        if collected and not turn:
            return None
        rows = [np.stack(p) if im.known(*p) else im.emit(op.stack([im.tensor(v) for v in p], 0))
                for p in collected]
    finally:
        block = im.builder.end_block()
    for binding in block.bindings:
        im.builder.emit_normalized(binding)
    return [*state, *rows]


def _counted_by_the_run(im: Importer, body: Any, most: Any, going: Given,
                        state: list[Any]) -> list[Any]:
    """A function that calls itself. It carries the number of the turn, the condition, the loop's
    state, and what the turns collect: tensors of as many rows as there may be turns, from which
    those of the turns that were made are cut in the end; where that number is not known, or is too
    large, tensors that get a row in each turn."""
    count = len(state)
    start = [im.tensor(v) for v in state]
    first = im.emit(op.reshape(im.tensor(going), []))
    again, rows, inner, axes = _probed(im, body, first, start)
    fixed = bool(isinstance(going, np.ndarray) and np.all(going) and (
        again is first or im.known(again) and np.all(again)))
    limit = max(most, 0) if isinstance(most, int) else None
    if limit is not None and limit < np.iinfo("int64").max:
        most = const(np.int64(limit))
    elif limit is not None or most is None:
        most = None
    else:
        most = im.emit(op.astype(op.reshape(im.tensor(most), []), "int64"))
    if fixed and most is None:
        raise ValueError("this Loop never ends: it has no number of turns, and its condition is "
                         "always true")
    reasons = [_why_not(row, inner) for row in rows]
    rows = [row for row, why in zip(rows, reasons) if not why]
    room = [_room(im, row, limit) for row in rows]
    heaps = [im.emit(op.zeros([n, *im.shape(row)], im.dtype(row))) for row, n in zip(rows, room)]

    def more(values: list[Any]) -> Any:
        left = None if most is None else im.emit(op.less(values[0], most))
        if left is None:
            return values[1]
        return left if fixed else im.emit(op.logical_and(left, values[1]))

    def turn(values: list[Any]) -> list[Any]:
        number, now = values[:2]
        again, *out = im.inlined(body, [number, now, *values[2:2 + count]])
        out = [im.tensor(v) for v in out]
        new = [im.emit(op.expand_dims(v, 0)) for v, why in zip(out[count:], reasons) if not why]
        here = im.emit(op.equal(op.arange(0, limit, 1, "int64"), number)) if any(room) else None
        kept = [im.emit(op.where(op.reshape(here, [n, *[1] * (im.ndim(v) - 1)]), v, heap) if n
                        else op.concat([heap, v], 0))
                for v, heap, n in zip(new, values[2 + count:], room)]
        return [im.emit(op.add(number, const(np.int64(1)))),
                im.emit(op.reshape(im.tensor(again), [])), *out[:count], *kept]

    made, _, *out = while_loop(
        im.builder, [const(np.int64(0)), first, *start, *heaps], more, turn,
        ["the number of the turn", "the condition", *(repr(i.name) for i in body.input[2:])],
        [(), (), *axes, *(() if n else (0,) for n in room)])
    found = iter([heap if fixed or not n else _cut(im, heap, made)
                  for heap, n in zip(out[count:], room)])
    return [*out[:count], *(Missing(why) if why else next(found) for why in reasons)]


def _probed(im: Importer, body: Any, condition: Expr | None, start: list[Any]
            ) -> tuple[Any, list, set, list[set[int]]]:
    """What a turn says of the condition, what it collects, the symbols of sizes that are another in
    each turn, and the axes of the state that have such sizes. The code that is made for it is
    dropped."""
    axes: list[set[int]] = [set() for _ in start]
    while True:
        state = [Var("value", with_any_size(im.builder, v.struct_info, a))
                 for v, a in zip(start, axes)]
        im.builder.begin_binding_block()
        im.builder.begin_scope()
        try:
            turn = Var("turn", TensorStructInfo([], "int64"))
            again, *out = im.inlined(body, [turn, condition, *state])
            after, rows = ([im.tensor(v) for v in part]
                           for part in (out[:len(start)], out[len(start):]))
        finally:
            im.builder.end_scope()
            block = im.builder.end_block()
        more = [a | _changes(v.struct_info, w.struct_info)
                for a, v, w in zip(axes, state, after)]
        if more == axes:
            break
        axes = more
    inner = {v for b in block.bindings if type(b) is MatchCast
             for v in tir_vars_in_struct_info(b.struct_info)}
    inner.update(im.shape(v)[k] for v, a in zip(state, axes) for k in a)
    return again, rows, inner, axes


def _changes(before: Any, after: Any) -> set[int]:
    """The axes along which a turn changes the size of a tensor; none where it changes more."""
    if before.dims is None or after.dims is None or before.ndim != after.ndim:
        return set()
    return {k for k, (a, b) in enumerate(zip(before.dims, after.dims)) if not same_dim(a, b)}


def _why_not(row: Any, inner: set) -> str:
    """Why there is no tensor for what the turns collect; "" where there is one."""
    info = row.struct_info
    if info.dims is None or inner & set(tir_vars_in_struct_info(info)):
        return ("it is collected in a Loop whose turns the run counts, and its size differs from "
                "turn to turn: pad it to its largest size")
    return ""


def _room(im: Importer, row: Any, limit: int | None) -> int:
    """For how many rows there is a tensor from the first turn on; 0 where it grows."""
    size = math.prod(d for d in im.shape(row) if isinstance(d, int))
    return limit if limit is not None and limit * size <= MOST_COLLECTED else 0


def _cut(im: Importer, heap: Any, made: Any) -> Any:
    """The first `made` rows."""
    dims = im.shape(heap)
    rows = im.emit(op.reshape(made, [1]))
    rest = im.tensor(Sizes(dims[1:])) if dims[1:] else None
    end = rows if rest is None else im.emit(op.concat([rows, rest], 0))
    out = im.emit(op.dynamic_strided_slice(
        heap, const(np.zeros(len(dims), "int64")), end, const(np.ones(len(dims), "int64"))))
    turns = SizeVar(im.builder.get_unique_name("turns"), "int64")
    return im.builder.match_cast(out, TensorStructInfo([turns, *dims[1:]], im.dtype(heap)))
