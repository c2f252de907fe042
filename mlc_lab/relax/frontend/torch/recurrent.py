"""Rules of recurrent layers (LSTM, GRU, RNN), step by step: the sequence has a known length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ... import op
from ...op import nn
from .calling import ADVICE_EVAL
from .importer import Importer, rule
from .joining import _cat, _stack
from .views import _select

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ...expr import Expr

#: `cell(importer, product with the input, product with the state, states) -> new states`
Cell = Callable[[Importer, Any, Any, list[Any]], list[Any]]


def _product(im: Importer, x: Expr, weight: Expr, bias: Expr | None) -> Any:
    out = im.emit(op.matmul(x, im.emit(op.permute_dims(weight))))
    return out if bias is None else im.emit(op.add(out, bias))


def _gates(im: Importer, value: Expr, count: int) -> list[Any]:
    parts = im.emit(op.split(value, count, -1))
    return [im.emit(parts[k]) for k in range(count)]


def _lstm(im: Importer, x: Expr, h: Expr, state: list[Any]) -> list[Any]:
    i, f, g, o = _gates(im, im.emit(op.add(x, h)), 4)
    i, f, o = (im.emit(op.sigmoid(v)) for v in (i, f, o))
    kept = im.emit(op.multiply(f, state[1]))
    new = im.emit(op.multiply(i, im.emit(op.tanh(g))))
    cell = im.emit(op.add(kept, new))
    return [im.emit(op.multiply(o, im.emit(op.tanh(cell)))), cell]


def _gru(im: Importer, x: Expr, h: Expr, state: list[Any]) -> list[Any]:
    (xr, xz, xn), (hr, hz, hn) = _gates(im, x, 3), _gates(im, h, 3)
    r = im.emit(op.sigmoid(im.emit(op.add(xr, hr))))
    z = im.emit(op.sigmoid(im.emit(op.add(xz, hz))))
    n = im.emit(op.tanh(im.emit(op.add(xn, im.emit(op.multiply(r, hn))))))
    away = im.emit(op.multiply(z, im.emit(op.subtract(state[0], n))))
    return [im.emit(op.add(n, away))]


def _plain(activation: Callable) -> Cell:
    def cell(im: Importer, x: Expr, h: Expr, state: list[Any]) -> list[Any]:
        return [im.emit(activation(im.emit(op.add(x, h))))]

    return cell


def _layers(im: Importer, cell: Cell, x: Expr, states: list[Any], weights: list[Any],
            has_biases: bool, num_layers: int, both_ways: bool, batch_first: bool
            ) -> tuple[Any, list[Any]]:
    """All layers; the result, and the last states, each [layers, batch, size]."""
    time = 1 if batch_first else 0
    length = im.shape(x)[time]
    if not isinstance(length, int):
        raise ValueError("the steps of a recurrent layer are written out: the length of the "
                         "sequence must be known")
    ways = 2 if both_ways else 1
    each = len(weights) // (num_layers * ways)
    projected = each in (3, 5)  # the output is made smaller by a product of its own
    last: list[list[Any]] = [[] for _ in states]
    for layer in range(num_layers):
        outs = []
        for way in range(ways):
            k = layer * ways + way
            w_x, w_h, *biases = weights[k * each:(k + 1) * each]
            smaller = biases.pop() if projected else None
            b_x, b_h = biases if has_biases else (None, None)
            state = [_select(im, s, 0, k) for s in states]
            products = _product(im, x, w_x, b_x)  # of all steps at once
            steps: list[Any] = [None] * length
            for t in (range(length) if way == 0 else reversed(range(length))):
                here = _select(im, products, time, t)
                state = cell(im, here, _product(im, state[0], w_h, b_h), state)
                if smaller is not None:
                    state[0] = _product(im, state[0], smaller, None)
                steps[t] = state[0]
            outs.append(_stack(im, steps, time))
            for all_last, one in zip(last, state):
                all_last.append(one)
        x = outs[0] if ways == 1 else _cat(im, outs, -1)
    return x, [_stack(im, s, 0) for s in last]


def _need_inference(dropout: float, train: bool) -> None:
    if dropout and train:
        raise ValueError(f"dropout between layers draws numbers by chance: {ADVICE_EVAL}")


@rule("lstm")
def _lstm_layer(im: Importer, x: Expr, states: Any, weights: Sequence[Any], has_biases: bool,
                num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool
                ) -> Any:
    _need_inference(dropout, train)
    out, last = _layers(im, _lstm, x, list(states), list(weights), has_biases, num_layers,
                        bidirectional, batch_first)
    return (out, *last)


@rule("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data")
def _packed(im: Importer, *args: Any) -> Any:
    raise ValueError("packed sequences have lengths that only the run knows: pad the sequences")


def _one_state(name: str, cell: Cell) -> None:
    @rule(name)
    def translate(im: Importer, x: Expr, state: Any, weights: Sequence[Any], has_biases: bool,
                  num_layers: int, dropout: float, train: bool, bidirectional: bool,
                  batch_first: bool) -> Any:
        _need_inference(dropout, train)
        out, last = _layers(im, cell, x, [state], list(weights), has_biases, num_layers,
                            bidirectional, batch_first)
        return (out, *last)


_one_state("gru", _gru)
_one_state("rnn_tanh", _plain(op.tanh))
_one_state("rnn_relu", _plain(nn.relu))
