"""Rules of recurrent layers (LSTM, GRU, RNN), step by step: the sequence has a known length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

import numpy as np

from ... import op
from ...op import nn
from .importer import Importer, rule

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Given

#: activations by their names: `f(importer, x, alpha, beta)`, and what alpha and beta are by default
_ACTIVATIONS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "sigmoid": (lambda im, x, a, b: op.sigmoid(x), 0.0, 0.0),
    "tanh": (lambda im, x, a, b: op.tanh(x), 0.0, 0.0),
    "relu": (lambda im, x, a, b: nn.relu(x), 0.0, 0.0),
    "leakyrelu": (lambda im, x, a, b: nn.leakyrelu(x, a), 0.01, 0.0),
    "affine": (lambda im, x, a, b: _affine(im, x, a, b), 1.0, 0.0),
    "hardsigmoid": (lambda im, x, a, b: op.clip(_affine(im, x, a, b), 0.0, 1.0), 0.2, 0.5),
    "scaledtanh": (lambda im, x, a, b: op.multiply(
        im.emit(op.tanh(_affine(im, x, b, 0.0))), _number(im, x, a)), 1.0, 1.0),
    "softsign": (lambda im, x, a, b: op.divide(x, im.emit(op.add(
        im.emit(op.abs(x)), _number(im, x, 1.0)))), 0.0, 0.0),
    "softplus": (lambda im, x, a, b: nn.softplus(x), 0.0, 0.0),
}


def _number(im: Importer, like: Expr, value: float) -> Any:
    return im.tensor(np.asarray(value, im.dtype(like)))


def _affine(im: Importer, x: Expr, a: float, b: float) -> Any:
    out = x if a == 1.0 else im.emit(op.multiply(x, _number(im, x, a)))
    return out if b == 0.0 else im.emit(op.add(out, _number(im, x, b)))


def _part(im: Importer, x: Given, k: int, axis: int = 0) -> Any:
    """One slice of a tensor, without its dimension."""
    if isinstance(x, np.ndarray) and not im.keep:
        return im.tensor(np.take(x, k, axis))
    cut = im.emit(op.strided_slice(im.tensor(x), [axis], [k], [k + 1]))
    return im.emit(op.squeeze(cut, [axis]))


def _split(im: Importer, x: Expr, count: int) -> list[Any]:
    parts = im.emit(op.split(x, count, -1))
    return [im.emit(parts[k]) for k in range(count)]


class Layer:
    """One recurrent node: its attributes, and the step of its kind; of the class itself, RNN."""

    #: the activations of a direction
    default: tuple[str, ...] = ("Tanh",)

    def __init__(self, im: Importer, inputs: Sequence[Any], attrs: dict[str, Any]) -> None:
        self.im, self.attrs = im, attrs
        self.inputs = [*inputs, *[None] * (8 - len(inputs))]
        way = attrs.get("direction", "forward")
        self.ways = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}[way]
        self.clip = attrs.get("clip")

    def activations(self, way: int) -> list[Callable[[Any], Any]]:
        """The activations of a direction. Raises ValueError for one that has no rule."""
        names = self.attrs.get("activations") or [*self.default] * len(self.ways)
        names = [n.decode() if isinstance(n, bytes) else n for n in names]
        given = {k: list(self.attrs.get(f"activation_{k}", ())) for k in ("alpha", "beta")}
        out = []
        for name in names:
            if name.lower() not in _ACTIVATIONS:
                raise ValueError(f"the activation {name} is not translated; these are: "
                                 f"{', '.join(_ACTIVATIONS)}")
            build, a, b = _ACTIVATIONS[name.lower()]
            # values stand in the lists for those activations that have such a number, in order
            a = given["alpha"].pop(0) if a and given["alpha"] else a
            b = given["beta"].pop(0) if b and given["beta"] else b
            out.append(lambda x, build=build, a=a, b=b: self.im.emit(build(self.im, x, a, b)))
        return out[way * len(self.default):(way + 1) * len(self.default)]

    def clipped(self, x: Expr) -> Any:
        """What goes into an activation, between the limits of the attribute `clip`."""
        return x if self.clip is None else self.im.emit(op.clip(x, -self.clip, self.clip))

    def product(self, x: Expr, weight: Expr, bias: Expr | None) -> Any:
        """x weight^T + bias"""
        out = self.im.emit(op.matmul(x, self.im.emit(op.permute_dims(weight))))
        return out if bias is None else self.im.emit(op.add(out, bias))

    def step(self, f: list[Callable], x: Expr, weight: Expr, bias: Expr | None, states: list[Any],
             way: int) -> list[Any]:
        """New states from a step's product with the input, and the states."""
        h = self.product(states[0], weight, bias)
        return [f[0](self.clipped(self.im.emit(op.add(x, h))))]

    def first(self, x: Expr, size: int, count: int) -> list[list[Any]]:
        """The states before the first step, by direction."""
        im, given = self.im, self.inputs[5:5 + count]
        axis = 1 if self.attrs.get("layout") else 0
        zeros = None
        out = []
        for way in range(len(self.ways)):
            states = []
            for g in given:
                if g is None and zeros is None:
                    zeros = im.emit(op.zeros([im.shape(x)[1], size], im.dtype(x)))
                states.append(zeros if g is None else _part(im, g, way, axis))
            out.append(states)
        return out

    def run(self, count: int = 1) -> list[Any]:
        """The results: those of all steps, and the last of each of `count` states."""
        im, layout = self.im, self.attrs.get("layout", 0)
        x, w, r, b, lengths = self.inputs[:5]
        x = im.tensor(x)
        if layout:
            x = im.emit(op.permute_dims(x, [1, 0, 2]))
        steps, size = im.shape(x)[0], im.shape(r)[2]
        if not isinstance(steps, int) or steps == 0:
            raise ValueError("the steps of a recurrent layer are written out: the length of the "
                             f"sequence must be known and 1 or more, and it is {steps}; give it "
                             "in shape_dict")
        firsts = self.first(x, size, count)
        every, last = [], []
        for way, direction in enumerate(self.ways):
            both = [None, None] if b is None else _split(im, _part(im, b, way), 2)
            f, weight = self.activations(way), _part(im, r, way)
            products = self.product(x, _part(im, w, way), both[0])
            states, outs = firsts[way], [None] * steps
            for t in list(range(steps))[::direction]:
                new = self.step(f, _part(im, products, t), weight, both[1], states, way)
                outs[t], states = self.within(lengths, t, new, states)
            every.append(im.emit(op.stack(outs, 0)))
            last.append(states)
        axis = 2 if layout else 1
        if layout:
            every = [im.emit(op.permute_dims(y, [1, 0, 2])) for y in every]
        axes = 1 if layout else 0
        return [im.emit(op.stack(every, axis)),
                *(im.emit(op.stack([s[k] for s in last], axes)) for k in range(count))]

    def within(self, lengths: Expr | None, t: int, new: list[Any], old: list[Any]
               ) -> tuple[Any, list[Any]]:
        """The result of a step and its states: zeros and the old states past a sequence's end."""
        if lengths is None:
            return new[0], new
        im = self.im
        there = im.emit(op.less(im.tensor(np.asarray(t, im.dtype(lengths))), im.tensor(lengths)))
        there = im.emit(op.expand_dims(there, [1]))
        kept = [im.emit(op.where(there, n, o)) for n, o in zip(new, old)]
        return im.emit(op.where(there, new[0], _number(im, new[0], 0.0))), kept


class Gru(Layer):
    """Gates in the order z, r, h."""

    default = ("Sigmoid", "Tanh")

    def step(self, f: list[Callable], x: Expr, weight: Expr, bias: Expr | None, states: list[Any],
             way: int) -> list[Any]:
        im, h = self.im, states[0]
        xz, xr, xh = _split(im, x, 3)
        if self.attrs.get("linear_before_reset", 0):
            hz, hr, hh = _split(im, self.product(h, weight, bias), 3)
        else:
            rows = im.emit(op.split(weight, 3, 0))
            biases = [None] * 3 if bias is None else _split(im, bias, 3)
            hz, hr = (self.product(h, im.emit(rows[k]), biases[k]) for k in (0, 1))
            hh = None
        z = f[0](self.clipped(im.emit(op.add(xz, hz))))
        r = f[0](self.clipped(im.emit(op.add(xr, hr))))
        if hh is None:
            hh = self.product(im.emit(op.multiply(r, h)), im.emit(rows[2]), biases[2])
        else:
            hh = im.emit(op.multiply(r, hh))
        new = f[1](self.clipped(im.emit(op.add(xh, hh))))
        away = im.emit(op.multiply(z, im.emit(op.subtract(h, new))))
        return [im.emit(op.add(new, away))]


class Lstm(Layer):
    """Gates in the order i, o, f, c; peepholes in the order i, o, f."""

    default = ("Sigmoid", "Tanh", "Tanh")

    def step(self, f: list[Callable], x: Expr, weight: Expr, bias: Expr | None, states: list[Any],
             way: int) -> list[Any]:
        im, (h, cell) = self.im, states
        i, o, g, c = _split(im, im.emit(op.add(x, self.product(h, weight, bias))), 4)
        peep = self.inputs[7]
        pi, po, pf = [None] * 3 if peep is None else _split(im, _part(im, peep, way), 3)

        def seen(gate: Expr, weight: Expr | None, state: Expr) -> Any:
            return gate if weight is None else im.emit(op.add(gate, im.emit(
                op.multiply(weight, state))))

        i = f[0](self.clipped(seen(i, pi, cell)))
        if self.attrs.get("input_forget"):
            g = im.emit(op.subtract(_number(im, i, 1.0), i))
        else:
            g = f[0](self.clipped(seen(g, pf, cell)))
        c = f[1](self.clipped(c))
        cell = im.emit(op.add(im.emit(op.multiply(g, cell)), im.emit(op.multiply(i, c))))
        o = f[0](self.clipped(seen(o, po, cell)))
        return [im.emit(op.multiply(o, f[2](cell))), cell]


@rule("RNN")
def _rnn(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return Layer(im, inputs, attrs).run()


@rule("GRU")
def _gru(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return Gru(im, inputs, attrs).run()


@rule("LSTM")
def _lstm(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return Lstm(im, inputs, attrs).run(2)
