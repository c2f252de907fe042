"""`relax.testing.nn`: modules that emit into the builder at work.

    bb = relax.BlockBuilder()
    with bb.function("main"):
        model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        data = nn.Placeholder((1, 784), name="data")
        bb.emit_func_output(model(data), params=[data, *model.parameters()])
    mod = bb.get()

Placeholders and parameters are plain `relax.Var`s: a module's parameters are the variables that it
holds, in order.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from mlc_lab import relax, topi
from mlc_lab.ir.module import IRModule
from mlc_lab.relax.frontend.nn import SubroutineMixin
from mlc_lab.relax.op.grad import end_checkpoint, start_checkpoint
from mlc_lab.runtime import array
from mlc_lab.tir import PrimExpr


def _builder() -> relax.BlockBuilder:
    builder = relax.BlockBuilder.current()
    if builder is None:
        raise RuntimeError("modules of relax.testing.nn emit into a builder: call them in "
                           '`with bb.function("main"):` of a relax.BlockBuilder')
    return builder


def emit(expr: relax.Expr, name_hint: str = "") -> relax.Var:
    """Bind a value in the function that is being built."""
    return _builder().emit(expr, name_hint)


def emit_te(func: Callable[..., Any], *args: object, **kwargs: Any) -> relax.Var:
    """Bind what a tensor expression gives, in the function that is being built."""
    return _builder().emit_te(func, *args, **kwargs)


def _variable(shape: object, dtype: str, name: str) -> relax.Var:
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"the shape of {name!r} must be a list or a tuple, it is {shape!r}")
    builder = relax.BlockBuilder.current()
    if builder is not None:
        name = builder.get_unique_name(name)
    return relax.Var(name, relax.TensorStructInfo(shape, dtype))


class _Variables(type):
    """Calling the class gives a relax.Var, so isinstance holds for these."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, relax.Var)


class Placeholder(metaclass=_Variables):
    """A variable for an input of a model."""

    def __new__(cls, shape: object, dtype: str = "float32", name: str = "data") -> Any:
        return _variable(shape, dtype, name)


class Parameter(metaclass=_Variables):
    """A variable for a parameter of a model."""

    def __new__(cls, shape: object, dtype: str = "float32", name: str = "param") -> Any:
        return _variable(shape, dtype, name)


def _parameters(value: object) -> list[relax.Var]:
    if isinstance(value, relax.Var):
        return [value]
    if isinstance(value, Module):
        return value.parameters()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [p for item in value for p in _parameters(item)]
    return []


class Module(SubroutineMixin):
    """A part of a model: it holds parameters and modules, and `forward` says what it computes."""

    def parameters(self) -> Any:
        """The parameters of it and of the modules in it."""
        return _parameters(vars(self))

    def forward(self, input: relax.Expr) -> Any:
        """What the module makes of its input."""
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)


class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *modules: Module) -> None:
        self.modules = modules

    def forward(self, input: relax.Expr) -> Any:
        for module in self.modules:
            input = module(input)
        return input


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, input: relax.Expr) -> relax.Var:
        return emit_te(topi.nn.relu, input)


class LogSoftmax(Module):
    """The logarithm of softmax along the last axis."""

    def forward(self, input: relax.Expr) -> relax.Var:
        return emit_te(topi.nn.log_softmax, input)


class Linear(Module):
    """input @ weight + bias."""

    def __init__(self, in_features: int | PrimExpr, out_features: int | PrimExpr,
                 bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input: relax.Expr) -> relax.Var:
        out = emit_te(topi.matmul, input, self.weight)
        return out if self.bias is None else emit_te(topi.add, out, self.bias)


def init_params(mod: IRModule) -> list[Any]:
    """Zeros for every parameter of `main` whose name does not begin with "data"."""
    params = []
    for var in mod["main"].params:
        if var.name_hint.startswith("data"):
            continue
        dims = getattr(var.struct_info, "dims", None)
        if dims is None or not all(hasattr(d, "value") for d in dims):
            raise TypeError(f"parameter {var.name_hint} has the shape {var.struct_info}: only one "
                            "of fixed size can be filled")
        params.append(array(np.zeros([int(d) for d in dims], "float32")))
    return params


def _each(value: object, func: Callable[[Any], Any]) -> Any:
    """`func` of an expression, or of those in a list."""
    if isinstance(value, (list, tuple)):
        return [func(v) if isinstance(v, relax.Expr) else v for v in value]
    return func(value) if isinstance(value, relax.Expr) else value


def checkpoint(func: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """What `func` gives, computed again by the gradient and not kept for it."""
    result = func(*_each(args, start_checkpoint),
                  **{k: _each(v, start_checkpoint) for k, v in kwargs.items()})
    return _each(result, end_checkpoint)


def emit_checkpoint(func: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """`checkpoint`, its borders bound to variables whose names end in _scp and _ecp."""
    def begin(value: object) -> object:
        if not isinstance(value, relax.Var):
            return value
        return emit(start_checkpoint(value), f"{value.name_hint}_scp")

    def end(value: relax.Expr) -> relax.Var:
        var = value if isinstance(value, relax.Var) else emit(value)
        return emit(end_checkpoint(var), f"{var.name_hint}_ecp")

    return _each(func(*map(begin, args), **{k: begin(v) for k, v in kwargs.items()}), end)


def emit_checkpoint_sequential(functions: Sequence[Callable[[Any], Any]],
                               segments: int | Sequence[int], input: relax.Var,
                               checkpoint_last: bool = False) -> Any:
    """Functions one after the other, in segments that are computed again by the gradient.

    `segments` says how many, or where each begins; the last one is a checkpoint only where
    `checkpoint_last` says so.
    """
    count = len(functions)
    if isinstance(segments, int):
        if not 1 <= segments <= count:
            raise ValueError(f"{count} functions cannot be divided into {segments} segments")
        segments = range(0, count, count // segments)
    starts = [*segments] if segments and segments[-1] == count else [*segments, count]
    if starts != sorted(set(starts)) or starts[0] != 0:
        raise ValueError(f"segments begin at 0 and rise to {count}, they are {list(segments)}")

    for begin, end in zip(starts, starts[1:]):
        def run(value: object, part: Sequence[Callable[[Any], Any]] = functions[begin:end]
                ) -> Any:
            for function in part:
                value = function(value)
            return value

        last = end == count and not checkpoint_last
        input = run(input) if last else emit_checkpoint(run, input)
    return input if isinstance(input, relax.Var) else emit(input)


__all__ = ["Linear", "LogSoftmax", "Module", "Parameter", "Placeholder", "ReLU", "Sequential",
           "checkpoint", "emit", "emit_checkpoint", "emit_checkpoint_sequential", "emit_te",
           "init_params"]
