"""Relax functions written as Python runs: `R` of TVM's `script.ir_builder`.

    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import relax as R

    with IRBuilder() as ib:
        with R.function():
            R.func_name("main")
            x = R.arg("x", relax.TensorStructInfo((128,), "float32"))
            y = R.emit(R.add(x, x))
            R.func_ret_value(y)
    func = ib.get()

Operators are those of the script. `IRBuilder.name("y", y)` may be called for its effect alone: a
variable that was emitted goes by its last name when the function is closed.
"""

from __future__ import annotations

import builtins
from types import TracebackType
from typing import Any, Callable, Mapping

from ...script.ir_builder.frames import Frame, IRBuilder
from ...script.ir_builder.ir import ModuleFrame
from .. import normal
from ..block_builder import BlockBuilder
from ..expr import (
    Binding, BindingBlock, Call, Expr, Function, If as _If, PrimExpr, SeqExpr as _SeqExpr, Var,
    VarBinding, as_expr, as_struct_info,
)
from ..expr_functor import PyExprMutator
from ..struct_info import StructInfo, definable_tir_vars
from . import names

py_print, py_tuple = builtins.print, builtins.tuple


class _Renamed(PyExprMutator):
    """Each variable by the name that it has in the end."""

    def __init__(self, called: Callable[[Any], Any]) -> None:
        super().__init__()
        self.called = called

    def visit_var_def_(self, var: Var) -> Var:
        new: Var = self.called(var)
        if new is not var:
            self.set_var_remap(var, new)
        return new

    visit_dataflow_var_def_ = visit_var_def_


class SeqExprFrame(Frame):
    """Bindings, and a value in the end."""

    word = "R.SeqExpr()"

    def __init__(self) -> None:
        super().__init__(lambda body: None)
        self.blocks: list[BindingBlock] = []
        self.output: Any = None

    def take(self, made: BindingBlock) -> None:
        """One more block."""
        self.blocks.append(made)

    def open(self) -> None:
        """Begin a block of bindings."""
        _builder().begin_binding_block()

    def close(self) -> None:
        """Keep the open block where it holds something."""
        block = _builder().end_block()
        if block.bindings:
            self.blocks.append(block)

    def __enter__(self) -> Any:
        found = super().__enter__()
        self.open()
        return found

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
        super().__exit__(kind, error, trace)

    def last(self) -> Binding:
        """The last binding. ValueError where there is none."""
        if not self.blocks:
            raise ValueError(f"{self.word} holds no binding, whose value it would be")
        return self.blocks[-1].bindings[-1]

    def seq(self) -> _SeqExpr:
        """The bindings, with the last variable as the value where none was said."""
        value = self.last().var if self.output is None else self.output
        return _SeqExpr(normal.merge_blocks(self.blocks), value)

    def made(self) -> Any:
        """The expression."""
        return self.seq()


class FunctionFrame(SeqExprFrame):
    """A function under construction."""

    word = "R.function()"

    def __init__(self, is_pure: bool, is_private: bool) -> None:
        super().__init__()
        self.is_pure, self.is_private, self.name = is_pure, is_private, ""
        self.params: list[Var] = []
        self.attrs: dict[builtins.str, Any] = {}
        self.ret_struct_info: StructInfo | None = None
        self.builder = BlockBuilder()
        self.builder.begin_scope()

    def made(self) -> Function:
        """The function. ValueError where it gives nothing."""
        if self.output is None:
            raise ValueError("the function gives nothing: R.func_ret_value(...) says what")
        attrs = dict(self.attrs)
        if self.name and not self.is_private and "global_symbol" not in attrs:
            attrs = {"global_symbol": self.name, **attrs}
        func = Function(self.params, self.seq(), self.ret_struct_info, self.is_pure, attrs)
        ib = IRBuilder.current()
        renamed: Function = _Renamed(ib.called).visit_expr(func)
        module = ib.enclosing(ModuleFrame)
        if module is not None:
            module.functions.update(self.builder.get().functions)
        return renamed


class BlockFrame(Frame):
    """A dataflow block under construction; `output_vars` are what is seen outside of it."""

    word = "R.dataflow()"

    def __init__(self) -> None:
        super().__init__(lambda body: None)
        self.output_vars: list[Var] = []

    def __enter__(self) -> Any:
        _sequence("R.dataflow()").close()
        _builder().begin_dataflow_block()
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.block = _builder().end_block()
        super().__exit__(kind, error, trace)
        _sequence("R.dataflow()").open()

    def made(self) -> BindingBlock:
        """The block."""
        return self.block


class IfFrame(Frame):
    """A value of one branch or of the other; `var` is bound to it when it is closed."""

    word = "R.If(...)"

    def __init__(self, condition: Expr | PrimExpr) -> None:
        super().__init__(lambda body: None)
        self.condition, self.branches = condition, dict[builtins.str, SeqExprFrame]()
        self.var: Var | None = None
        self.var_name = ""

    def take(self, made: object) -> None:
        """A branch keeps itself."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        IRBuilder.current().frames.pop()
        if error is not None:
            return
        if set(self.branches) != {"R.Then()", "R.Else()"}:
            raise ValueError("R.If(...) has one R.Then() and one R.Else()")
        then, other = self.branches["R.Then()"], self.branches["R.Else()"]
        self.var_name = IRBuilder.current().called(then.last().var).name_hint
        self.var = emit(_If(as_expr(self.condition), then.seq(), other.seq()))
        IRBuilder.name(self.var_name, self.var)


class _Branch(SeqExprFrame):
    def __init__(self, word: builtins.str) -> None:
        super().__init__()
        self.word = word

    def made(self) -> Any:
        outer = IRBuilder.current().innermost(IfFrame, self.word)
        if self.word in outer.branches:
            raise ValueError(f"R.If(...) has an {self.word} already")
        outer.branches[self.word] = self


def _function(word: builtins.str) -> FunctionFrame:
    found: FunctionFrame | None = IRBuilder.current().enclosing(FunctionFrame)
    if found is None:
        raise ValueError(f"{word} stands in an R.function()")
    return found


def _builder() -> BlockBuilder:
    return _function("a binding").builder


def _sequence(word: builtins.str) -> SeqExprFrame:
    found: SeqExprFrame = IRBuilder.current().innermost(SeqExprFrame, word)
    return found


def function(is_pure: bool = True, is_private: bool = False) -> FunctionFrame:
    """A function."""
    return FunctionFrame(is_pure, is_private)


def arg(name: builtins.str, struct_info: StructInfo) -> Var:
    """The next parameter of the function."""
    frame = _function("R.arg")
    var = Var(name, as_struct_info(struct_info))
    frame.params.append(var)
    frame.builder.symbols().update(definable_tir_vars(var.struct_info))
    frame.builder.take_name(name)
    return var


def func_name(name: builtins.str) -> None:
    """The name of the function."""
    _function("R.func_name").name = name


def func_attr(attrs: Mapping[builtins.str, Any]) -> None:
    """Attributes of the function."""
    _function("R.func_attr").attrs.update(attrs)


def func_ret_struct_info(ret_sinfo: StructInfo) -> None:
    """What the function gives."""
    _function("R.func_ret_struct_info").ret_struct_info = as_struct_info(ret_sinfo)


def func_ret_value(value: Expr) -> None:
    """The value that the function gives."""
    frame = IRBuilder.current().innermost(FunctionFrame, "R.func_ret_value")
    builder = frame.builder
    frame.output = builder.as_leaf(builder.normalize(as_expr(value)))


def dataflow() -> BlockFrame:
    """A dataflow block."""
    return BlockFrame()


def output(*vars: Var) -> None:
    """The variables of the dataflow block that are seen outside of it: its `output_vars`."""
    ib = IRBuilder.current()
    frame = ib.innermost(BlockFrame, "R.output")
    for var in vars:
        last = ib.called(var)
        seen = Var(last.name_hint, last.struct_info)
        ib.renamed[last] = seen
        frame.output_vars.append(seen)


def emit(value: Expr, annotate_struct_info: StructInfo | None = None) -> Var:
    """A new variable for a value, of which more may be said than follows from it."""
    builder = _builder()
    if annotate_struct_info is None:
        return builder.emit(as_expr(value))
    plain = builder.emit(as_expr(value))
    known = type(plain)(plain.name_hint, as_struct_info(annotate_struct_info))
    bindings = builder._blocks[-1].bindings
    bindings[-1] = VarBinding(known, bindings[-1].value)
    return known


def emit_te(func: Callable[..., Any], *args: object, **kwargs: object) -> Call:
    """A call of the TensorIR function that a tensor expression makes, for R.emit. The module that
    is built, which there must be, has the function."""
    if IRBuilder.current().enclosing(ModuleFrame) is None:
        raise ValueError("R.emit_te adds a function to a module: open I.ir_module() around")
    return _builder().call_te(func, *args, **kwargs)


def emit_match_cast(value: Expr, struct_info: StructInfo) -> Var:
    """A new variable for a value that is checked at run time to be as `struct_info` says."""
    return _builder().match_cast(value, struct_info)


def emit_var_binding(value: VarBinding) -> Var:
    """A binding that is made already."""
    return _builder().emit_normalized(value)


def SeqExpr() -> SeqExprFrame:
    """Bindings and a value."""
    return SeqExprFrame()


def If(condition: Expr | PrimExpr) -> IfFrame:
    """A value of one branch or of the other."""
    return IfFrame(condition)


def Then() -> SeqExprFrame:
    """What is computed where the condition holds; the last variable is the value."""
    return _Branch("R.Then()")


def Else() -> SeqExprFrame:
    """What is computed where it does not hold; the last variable is the value."""
    return _Branch("R.Else()")


def __getattr__(name: builtins.str) -> Any:
    """Operators and struct infos, as scripts have them."""
    if not name.startswith("_"):
        return getattr(names, name)
    raise AttributeError(f"R of the builder has no name {name!r}")
