"""`function_pass` and `dataflowblock_pass`: passes from functions or classes of one's own.

    @relax.transform.function_pass(opt_level=1)
    class CountCalls:
        def transform_function(self, func, mod, ctx):
            ...
            return func

    mod = CountCalls()(mod)
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ...ir.transform import PassInfo
from .rewriting import (
    DataflowBlock, IRModule, Pass, PassContext, map_blocks, map_functions,
)


def function_pass(pass_func: Callable[..., Any] | None = None, opt_level: int = 0,
                  name: str | None = None, required: Sequence[str] = (), traceable: bool = False
                  ) -> Any:
    """Decorator: a function (func, mod, ctx) -> Function, or a class with `transform_function`, as
    a pass over every Relax function."""
    def over_functions(transform: Callable) -> Callable:
        def run(mod: IRModule, ctx: PassContext) -> IRModule:
            return map_functions(mod, lambda func: transform(func, mod, ctx))

        return run

    return _decorator(pass_func, over_functions, "transform_function", opt_level, name, required)


def dataflowblock_pass(pass_func: Callable[..., Any] | None = None, opt_level: int = 0,
                       name: str | None = None, required: Sequence[str] = (),
                       traceable: bool = False) -> Any:
    """Decorator: a function (block, mod, ctx) -> DataflowBlock, or a class with
    `transform_dataflowblock`, as a pass over every dataflow block."""
    def over_blocks(transform: Callable) -> Callable:
        def run(mod: IRModule, ctx: PassContext) -> IRModule:
            def block(b: Any) -> Any:
                return transform(b, mod, ctx) if type(b) is DataflowBlock else b

            return map_functions(mod, lambda func: map_blocks(func, block))

        return run

    return _decorator(pass_func, over_blocks, "transform_dataflowblock", opt_level, name, required)


def _decorator(pass_func: Callable[..., Any] | None, lift: Callable, method: str, opt_level: int,
               name: str | None, required: Sequence[str]) -> Any:
    def decorate(target: Any) -> Any:
        info = PassInfo(name or target.__name__, opt_level, tuple(required or ()))
        if not isinstance(target, type):
            made = Pass(lift(target), info)
            made.__doc__ = target.__doc__
            return made

        def make(*args: object, **kwargs: object) -> Pass:
            instance = target(*args, **kwargs)
            made = Pass(lift(getattr(instance, method)), info)
            made.instance, made.__doc__ = instance, target.__doc__
            return made

        make.__name__, make.__doc__ = target.__name__, target.__doc__
        return make

    return decorate if pass_func is None else decorate(pass_func)


FunctionPass = DataflowBlockPass = Pass

__all__ = ["DataflowBlockPass", "FunctionPass", "dataflowblock_pass", "function_pass"]
