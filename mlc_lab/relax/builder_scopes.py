"""What `with bb.function(...)`, `with bb.dataflow()` and `with bb.testing_scope()` open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..tir import expr as E
from .expr import Binding, BindingBlock, DataflowBlock, Expr, Var
from .struct_info import ShapeStructInfo

if TYPE_CHECKING:
    from .block_builder import BlockBuilder


class Frame:
    """A block under construction."""

    __slots__ = ("bindings", "is_dataflow", "leaves")

    def __init__(self, is_dataflow: bool) -> None:
        self.bindings: list[Binding] = []
        self.is_dataflow = is_dataflow
        #: nested values that were bound in this block, so that a shared one is computed once
        self.leaves: dict[int, tuple[Expr, Expr]] = {}

    def finish(self) -> BindingBlock:
        return (DataflowBlock if self.is_dataflow else BindingBlock)(self.bindings)


class FunctionScope:
    """`with bb.function(name, params): ...`"""

    def __init__(self, builder: BlockBuilder, name: str, params: Any, attrs: Any,
                 is_pure: bool) -> None:
        self.builder, self.name, self.is_pure = builder, name, is_pure
        self.params = params
        self.attrs = dict(attrs or {})
        self.blocks: list[BindingBlock] = []
        self.finished = False

    def __enter__(self) -> None:
        builder = self.builder
        builder._functions.append(self)
        builder.begin_scope(self.params or ())
        builder.begin_binding_block()
        type(builder)._stack.append(builder)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        builder = self.builder
        type(builder)._stack.pop()
        builder._functions.pop()
        if kind is not None:
            builder._blocks.clear()
            return
        if not self.finished:
            raise RuntimeError(f"function {self.name!r} has no result: call "
                               "bb.emit_func_output(...) before its `with` ends")

    def close_block(self) -> None:
        """Keep the open block where it holds something."""
        block = self.builder.end_block()
        if block.bindings:
            self.blocks.append(block)


class DataflowScope:
    """`with bb.dataflow(): ...`"""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder

    def __enter__(self) -> None:
        builder = self.builder
        if builder._functions:
            builder._functions[-1].close_block()
        builder.begin_dataflow_block()

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if kind is not None:
            return
        builder = self.builder
        block = builder.end_block()
        if builder._functions:
            if block.bindings:
                builder._functions[-1].blocks.append(block)
            builder.begin_binding_block()


class TestingScope:
    """`with bb.testing_scope(def_vars=[n]): ...`: symbolic variables known without a function."""

    __test__ = False

    def __init__(self, builder: BlockBuilder, def_vars: Sequence[E.Var]) -> None:
        self.builder, self.variables = builder, def_vars

    def __enter__(self) -> None:
        self.builder.begin_scope([Var("shape", ShapeStructInfo(self.variables))])

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        self.builder.end_scope()


__all__ = ["DataflowScope", "Frame", "FunctionScope", "TestingScope"]
