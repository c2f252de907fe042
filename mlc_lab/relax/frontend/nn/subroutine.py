"""Modules that become functions of their own: `define_subroutine = True`.

    class Layer(nn.Module):
        define_subroutine = True

        def forward(self, x): ...

Each call of such a module is a call of a private function `layer` of the arguments and the module's
parameters, where it would otherwise be written out again. Calls whose functions come out the same
share one.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from ....above import above
from ....ir.module import GlobalVar
from ...analysis import free_symbolic_vars
from ...expr import Call, Expr, ShapeExpr, Tuple, Var, as_expr
from ...struct_info import ShapeStructInfo
from ...utils import copy_with_new_vars
from .tensor import Object, Tensor, builder, wrap_nested


class SubroutineMixin:
    """Gives the methods `forward` of classes the choice to become functions of their own."""

    #: whether calls of the module are calls of a function
    define_subroutine: bool = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        forward = vars(cls).get("forward")
        if callable(forward):
            cls.forward = _choosing(forward)  # type: ignore[attr-defined]

    def parameters(self) -> Iterator[Any]:
        """The parameters, which the function takes behind the arguments."""
        return iter(())


def _choosing(forward: Callable[..., Any]) -> Callable[..., Any]:
    """`forward`, as a call of a function where the class asks for it."""
    @functools.wraps(forward)
    def choose(self: Any, *args: object, **kwargs: object) -> Any:
        if not self.define_subroutine or getattr(self, "_in_subroutine", False):
            return forward(self, *args, **kwargs)
        self._in_subroutine = True  # `super().forward(...)` is part of the function
        try:
            return _Subroutine(self, forward, args, kwargs).called()
        finally:
            del self._in_subroutine

    return choose


class _Subroutine:
    """One call of a module on its way to a function."""

    def __init__(self, module: Any, forward: Callable[..., Any], args: Sequence[object],
                 kwargs: Mapping[str, object]) -> None:
        self.bb = builder()
        self.module, self.forward = module, forward
        self.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_",
                           type(module).__name__).lower()
        self.params: list[Var] = []  # of the function
        self.given: list[Expr] = []  # what the call passes for them
        self.is_relax = False  # whether forward speaks of Relax expressions, not of nn.Tensors
        bound = inspect.signature(forward).bind(module, *args, **kwargs)
        values = list(bound.arguments.items())[1:]
        kinds = bound.signature.parameters
        self.args: list[Any] = []
        self.kwargs: dict[str, Any] = {}
        for name, value in values:
            if kinds[name].kind is inspect.Parameter.VAR_KEYWORD:
                self.kwargs.update((k, self.taken(k, v)) for k, v in value.items())
            elif kinds[name].kind is inspect.Parameter.VAR_POSITIONAL:
                self.args += [self.taken(f"{name}_{i}", v) for i, v in enumerate(value)]
            elif kinds[name].kind is inspect.Parameter.KEYWORD_ONLY:
                self.kwargs[name] = self.taken(name, value)
            else:
                self.args.append(self.taken(name, value))

    def taken(self, name: str, value: object) -> Any:
        """An argument as `forward` gets it: tensors are parameters of the function."""
        if isinstance(value, (Tensor, Object)):
            return wrap_nested(self.param(name, value._expr), name)
        if isinstance(value, (tuple, list)):
            return type(value)([self.taken(f"{name}_{i}", v) for i, v in enumerate(value)])
        if isinstance(value, dict):
            return {k: self.taken(f"{name}_{k}", v) for k, v in value.items()}
        if isinstance(value, Expr):
            return self.param(name, value)
        return value

    def param(self, name: str, value: Expr) -> Var:
        """A parameter of the function for a value of the caller's."""
        value = self.bb.as_leaf(self.bb.normalize(value))
        self.params.append(Var(name, value.struct_info_))
        self.given.append(value)
        return self.params[-1]

    def called(self) -> Any:
        """The result of the call."""
        var = self.function()
        out = self.bb.emit(Call(var, self.given), f"{self.name}_output")
        return out if self.is_relax else wrap_nested(out, f"{self.name}_output")

    def function(self) -> GlobalVar:
        """The function, or one that is the same."""
        bb, inner = self.bb, self.bb.current_block_is_dataflow()
        own = list({id(p): p for p in self.module.parameters()}.values())
        before = [p._expr if isinstance(p, Tensor) else p for p in own]
        names = {id(p): n.replace(".", "_") for n, p in _named(self.module)}
        variables = [self.param(names.get(id(p), "") or getattr(e, "name_hint", "param"), e)
                     for p, e in zip(own, before)]
        io = _printed()
        draft = f"{self.name}_draft"
        try:
            for p, v in zip(own, variables):
                if isinstance(p, Tensor):
                    p._expr = v
            with bb.function(draft, private=True):
                if inner:
                    with bb.dataflow():
                        out: Any = bb.emit_output(self.result())
                else:
                    out = self.result()
                var = bb.emit_func_output(out, self.params)
        finally:
            for p, e in zip(own, before):
                if isinstance(p, Tensor):
                    p._expr = e
        if _printed() is not io:
            raise ValueError(f"{type(self.module).__name__} has define_subroutine, and prints or "
                             "calls for an effect: a function of its own has no access to the "
                             "effects of the one that calls it. Leave define_subroutine out")
        func = bb.lookup_function(var)
        del bb._mod[var]
        bb._function_names.discard(draft)
        missing = free_symbolic_vars(func)
        if missing:  # sizes that no argument's shape gives
            func = func.replace(params=(*func.params, Var("sizes", ShapeStructInfo(missing))))
            self.given.append(ShapeExpr(missing))
        return bb.add_func(copy_with_new_vars(func), self.name)

    def result(self) -> Expr:
        """What `forward` gives."""
        value = self.forward(self.module, *self.args, **self.kwargs)
        self.is_relax = isinstance(value, Expr)
        return _expr(value, type(self.module).__name__)


def _named(module: Any) -> Iterable[tuple[str, Any]]:
    """The parameters with their names, where the module has names for them."""
    return module.named_parameters() if hasattr(module, "named_parameters") else ()


def _printed() -> Any:
    """The effects as they are now."""
    stack = above("exporter of nn")._stack
    effect = stack[-1].io_effect if stack else None
    return None if effect is None else effect.effect


def _expr(value: object, what: str) -> Expr:
    if isinstance(value, (Tensor, Object)):
        return value._expr
    if isinstance(value, (tuple, list)):
        return Tuple([_expr(v, what) for v in value])
    if isinstance(value, Expr):
        return as_expr(value)
    raise TypeError(f"{what} has define_subroutine, so it gives tensors or tuples of them, not "
                    f"{value!r}")


__all__ = ["SubroutineMixin"]
