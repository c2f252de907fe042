"""The statements of a function under @R.function: each becomes bindings through a BlockBuilder.

Nested calls are bound to variables of their own, and misfits are refused at their place in the
source. Expressions are the script parser's.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Callable

from ...above import above
from ...ir.diagnostics import DiagnosticError
from ...ir.module import GlobalVar
from ...reading import MISTAKES, limits
from ...reading.python_text import parse_expression
from ...script import tir as T
from ...script.bounded import LEAVES, truth
from ...script.macro import Macro
from ...script.values import Hidden, Pending
from ...tir import expr as E
from ..analysis import is_impure_call
from ..block_builder import BlockBuilder
from ..expr import (
    BindingBlock, Call, DataflowVar, Expr, Function, If, MatchCast, SeqExpr, TupleGetItem, Var,
    VarBinding, as_expr, as_struct_info,
)
from ..op.common import show
from ..struct_info import (
    BaseCheck, ObjectStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, as_dim,
    is_base_of, struct_info_base_check,
)

if TYPE_CHECKING:
    from ...script.parser import Parser
    from ..expr import Binding

_INT64 = E.Var("", "int64")


class MatchCastValue:
    """R.match_cast(...), waiting for its name.

    `renames` is the name whose value it takes the place of where it gets none.
    """

    def __init__(self, value: Expr, info: StructInfo, renames: str = "") -> None:
        self.value, self.info, self.renames = value, info, renames


class DataflowWord:
    """What `with R.dataflow()` opens."""


class OutputWord:
    """What R.output(...) names: the variables seen outside the dataflow block."""


class RelaxFunction:
    """The state of one function being parsed."""

    def __init__(self, parser: Parser, builder: BlockBuilder, outer: "RelaxFunction | None"
                 ) -> None:
        self.parser, self.builder, self.outer = parser, builder, outer
        self.attrs: dict[str, Any] = {}
        self.blocks: list[BindingBlock] = []
        self.result: Expr | None = None
        self.symbols: dict[str, E.Var] = dict(outer.symbols) if outer is not None else {}
        self.in_head = True
        #: names that the dataflow block being parsed outputs, by the statement that binds them last
        self.outputs: dict[str, ast.stmt] | None = None
        #: whether R.output was met in that block
        self.gave_out = False
        self.ret: StructInfo | None = None
        #: whether the head says only that a tuple is given: `-> R.Tuple`
        self.any_tuple = False
        #: symbols that the body declares, for the head, which mentions them first
        self.declared: dict[str, E.Var] = {}

        #: whether it is written as in 2022
        self.early = False

    # --------------------------------------------------------------------------- symbols

    def elsewhere(self, name: str, base: Any = None) -> Any:
        """What a name is that is unknown today: a word of Relax of 2022, whose dimensions needed
        no strings. None for any other."""
        found = above("early names of Relax")(name, base)
        if found is not None:
            self.early = True
        elif base is None and (self.early if self.in_head else self.defines_shape()):
            return self.symbol(name)
        return found

    def defines_shape(self) -> bool:
        """Whether the statement being parsed gives dimensions names."""
        return self.line is not None and any(
            getattr(part, "attr", "") == "match_shape" for part in ast.walk(self.line))

    def resolve(self, text: str) -> E.PrimExpr:
        """A dimension written as a string."""
        known = self.symbols.get(text)
        if known is not None:
            return known
        if text.isidentifier():
            for scope in reversed(self.parser.scopes):
                if isinstance(scope.get(text), E.PrimExpr):
                    return as_dim(scope[text])
            if self.in_head:
                return self.symbol(text)
        tree = parse_expression(text)
        for part in ast.walk(tree):
            if isinstance(part, ast.Name) and self.in_head and part.id not in ("T", "R"):
                self.symbol(part.id)  # a later parameter may say what it is
            if isinstance(part, (ast.expr, ast.keyword, ast.arg)):
                part.lineno = part.end_lineno = self.line.lineno
                part.col_offset = self.line.col_offset
                part.end_col_offset = getattr(self.line, "end_col_offset", part.col_offset + 1)
        self.parser.scopes.append(dict(self.symbols))
        try:
            return as_dim(self.parser.eval(tree))
        finally:
            self.parser.scopes.pop()

    line: Any = None

    def symbol(self, name: str, var: E.Var | None = None) -> E.Var:
        """The symbolic variable of a name, made where it is new."""
        known = self.symbols.get(name)
        if known is None:
            if var is None:
                var = self.declared.get(name, _INT64).with_name(name)
            known = self.symbols[name] = var
            self.parser.define(name, known)
        return known

    # --------------------------------------------------------------------------- statements

    def body(self, nodes: list[ast.stmt]) -> None:
        """The statements of a function or block."""
        for item in nodes:
            if self.result is not None:
                raise self.parser.error(item, "there are statements after the return")
            if self.outputs is not None and self.gave_out:
                raise self.parser.error(item, "there are statements after R.output in this "
                                              "dataflow block", "R.output(...) is its last line, "
                                              "and names all that is seen outside")
            self.statement(item)

    def statement(self, node: ast.stmt) -> None:
        """Parse one statement; errors point at it or at the part that fails."""
        method = _STATEMENTS.get(type(node))
        if method is None:
            raise self.parser.error(
                node, f"{type(node).__name__} is no statement of a Relax function",
                "a Relax function holds assignments, `with R.dataflow():`, if, calls and return")
        self.line = node
        try:
            method(self, node)
        except (DiagnosticError, RecursionError):
            raise
        except MISTAKES as error:
            raise self.parser.mistake(node, error) from None

    def macro_value(self) -> Any:
        """What a macro returned, which is the value of its call."""
        value, self.result = self.result, None
        return value

    def visit_assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.parser.error(node, "a chain of assignments cannot be used in a script")
        self.assign(node.targets[0], self.parser.eval(node.value), node, None, node.value)

    def visit_annassign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.parser.error(node.target, "only a name can be annotated")
        info = self.annotation(node.annotation)
        if node.value is None:
            raise self.parser.error(node, "a declaration without a value has no meaning here")
        self.assign(node.target, self.parser.eval(node.value), node, info, node.value)

    def annotation(self, node: ast.AST) -> StructInfo:
        """The struct info that an annotation says."""
        value = self.parser.annotation(node)
        if value is None:  # -> None: nothing is given back
            return TupleStructInfo(())
        if isinstance(value, T.DtypeName):  # a scalar
            from ..struct_info import PrimStructInfo

            return PrimStructInfo(value.dtype)
        try:
            return as_struct_info(value)
        except TypeError as error:
            raise self.parser.error(node, str(error)) from None

    def assign(self, target: ast.AST, value: object, node: ast.stmt, info: StructInfo | None,
               value_node: ast.AST) -> None:
        """Bind a value to a name or to several."""
        parser = self.parser
        if isinstance(target, ast.Name):
            self.bind(target.id, value, node, info, value_node)
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise parser.error(target, "only names can be assigned to in a Relax function",
                               "tensors are values here: an operator gives a new one")
        if isinstance(value, Expr):
            known = value.struct_info_
            if not isinstance(known, TupleStructInfo):
                raise parser.error(target, f"one value cannot be bound to {len(target.elts)} names")
            value = self.builder.as_leaf(self.builder.normalize(value))
            value = [TupleGetItem(value, k) for k in range(len(known.fields_))]
        if not isinstance(value, (tuple, list)) or len(value) != len(target.elts):
            count = len(value) if isinstance(value, (tuple, list)) else 1
            raise parser.error(target, f"{count} value(s) for {len(target.elts)} name(s)")
        for item, part in zip(target.elts, value):
            self.assign(item, part, node, None, value_node)

    def bind(self, name: str, value: object, node: ast.stmt, info: StructInfo | None,
             value_node: ast.AST) -> None:
        """Bind one name: definitions are named, values become bindings."""
        parser = self.parser
        if isinstance(value, Pending):
            value = parser.settle(value, name)
        if isinstance(value, E.Var) and value.name in ("", name):
            self.symbol(name, value.with_name(name))
            parser.define(name, self.symbols[name])
        elif isinstance(value, MatchCastValue):
            self.define(name, self.emit_match_cast(name, value, info, node), node)
        elif isinstance(value, (Expr, tuple, list, bool, int, float, str, E.PrimExpr)) or (
                type(value) is GlobalVar):
            if isinstance(value, GlobalVar) or not self.is_value(value):
                parser.define(name, value)
                return
            self.define(name, self.emit(name, as_expr(value), info, node, value_node), node)
        else:
            parser.define(name, value)

    @staticmethod
    def is_value(value: object) -> bool:
        """Whether a Python container holds values of the program (not struct info and the like)."""
        if isinstance(value, (tuple, list)):
            return all(map(RelaxFunction.is_value, value))
        if type(value) is GlobalVar:  # a function of Relax; one of TensorIR is no value
            return value.struct_info_ is not None
        return isinstance(value, (Expr, bool, int, float, str, E.PrimExpr))

    def define(self, name: str, var: Var, node: ast.stmt) -> None:
        self.parser.define(name, var)

    def variable(self, name: str, info: StructInfo | None, node: ast.stmt) -> Var:
        """The variable that a binding introduces: of the dataflow block, or seen outside."""
        if info is not None and not _is_flat(info) and (
                self.parser.budget.size(info) > limits.TYPE_PARTS):
            raise self.parser.error(node, f"the type of {name} has more than {limits.TYPE_PARTS} "
                                    "parts", "a tuple of tuples, or a shape computed from shapes, "
                                    "that grows with each line: return its parts instead")
        self.builder.take_name(name)
        local = self.outputs is not None and self.outputs.get(name) is not node
        return (DataflowVar if local else Var).from_fields(name, info)

    def emit(self, name: str, value: Expr, info: StructInfo | None, node: ast.stmt,
             value_node: ast.AST) -> Var:
        """A binding of `value`; the annotation must fit what is known of it."""
        builder = self.builder
        value = builder.normalize(value)
        if isinstance(value, SeqExpr):
            value = builder._splice(value)
        have = value.struct_info_
        if info is not None and have is not None:
            check = struct_info_base_check(info, have)
            if check is BaseCheck.FAIL_L0:
                raise self.parser.error(value_node, f"{name} is declared {show(info)} and gets a "
                                                    f"value of {show(have)}",
                                        "correct the annotation or leave it out")
        var = self.variable(name, info if info is not None else have, node)
        return self.add(VarBinding(var, value), node)

    def add(self, binding: Binding, node: ast.AST) -> Var:
        """Add a finished binding."""
        self.parser.places[binding] = self.parser.source, node
        return self.builder.emit_normalized(binding)

    def emit_match_cast(self, name: str, value: MatchCastValue, info: StructInfo | None,
                        node: ast.stmt) -> Var:
        operand = self.builder.as_leaf(self.builder.normalize(value.value))
        if info is not None and not is_base_of(info, value.info):
            raise self.parser.error(node, f"{name} is declared {show(info)} and cast to "
                                          f"{show(value.info)}")
        var = self.variable(name, value.info if info is None else info, node)
        return self.add(MatchCast(var, operand, value.info), node)

    def visit_expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and (
                isinstance(node.value.value, str) or node.value.value is Ellipsis):
            return
        value = self.parser.eval(node.value)
        if isinstance(value, MatchCastValue):
            var = self.emit_match_cast("_", value, None, node)
            if value.renames:
                self.parser.define(value.renames, var)
        elif isinstance(value, Expr):
            self.emit_statement(value, node)
        elif isinstance(value, DataflowWord):
            raise self.parser.error(node, "a dataflow block opens a scope",
                                    "write `with R.dataflow():`")
        elif value is not None and not isinstance(value, OutputWord):
            raise self.parser.error(node, "this statement does nothing")

    def emit_statement(self, value: Expr, node: ast.Expr) -> Var:
        """A value that no name is given to: a call for its effect."""
        value = self.builder.normalize(value)
        if not is_void(value.struct_info_) and not (
                isinstance(value, Call) and is_impure_call(value)):
            raise self.parser.error(node, "the value of this statement is lost: it has no effect",
                                    "give it a name, as y = ...")
        return self.emit("_", value, None, node, node.value)

    def visit_return(self, node: ast.Return) -> None:
        if self.outputs is not None:
            raise self.parser.error(node, "a dataflow block cannot return",
                                    "return after the block; R.output(...) names what is seen "
                                    "outside it")
        value = self.parser.eval(node.value) if node.value is not None else ()
        if value is None:
            value = ()
        if not self.is_value(value):
            raise self.parser.error(node.value or node, "this cannot be returned: it is no value "
                                                        "of the program")
        body = self.builder.normalize(as_expr(value))
        if isinstance(body, SeqExpr):
            body = self.builder._splice(body)
        self.result = self.builder.as_leaf(body)
        info = self.result.struct_info_
        if self.any_tuple and not isinstance(info, TupleStructInfo):
            raise self.parser.error(node, "the function is declared to give a tuple, here it "
                                          f"gives {show(info)}",
                                    "correct the annotation after ->, or leave it out")
        if self.ret is not None and (info is None or struct_info_base_check(
                self.ret, info) is BaseCheck.FAIL_L0):
            raise self.parser.error(node, f"the function is declared to give {show(self.ret)}, "
                                          f"here it gives {show(info)}",
                                    "correct the annotation after ->, or leave it out")

    def visit_with(self, node: ast.With) -> None:
        item = node.items[0]
        value = self.parser.eval(item.context_expr)
        if not isinstance(value, DataflowWord) or len(node.items) != 1:
            raise self.parser.error(item.context_expr, "this cannot be used with `with` in a "
                                                       "Relax function",
                                    "the scope of a Relax function is R.dataflow()")
        if self.outputs is not None:
            raise self.parser.error(node, "a dataflow block inside a dataflow block")
        self.close_block()
        self.builder.begin_dataflow_block()
        self.parser.scopes.append({})
        self.outputs, self.gave_out = self.find_outputs(node.body), False
        names = dict(self.outputs)
        self.body(node.body)
        inner = self.parser.scopes.pop()
        self.outputs = None
        self.blocks.append(self.builder.end_block())
        self.builder.begin_binding_block()
        for name, value in inner.items():
            if not isinstance(value, DataflowVar) or name in names:
                self.parser.define(name, value)
            else:
                self.parser.define(name, Hidden(
                    f"{name} is seen only inside its dataflow block",
                    f"name it in the block's R.output(...), as R.output({name})"))

    def find_outputs(self, nodes: list[ast.stmt]) -> dict[str, ast.stmt]:
        """What R.output(...) names, with the statement that binds each last."""
        found: dict[str, ast.stmt] = {}
        for item in nodes:
            call = item.value if isinstance(item, ast.Expr) else None
            if not isinstance(call, ast.Call) or getattr(
                    call.func, "attr", getattr(call.func, "id", None)) != "output":
                continue
            for arg in call.args:
                if not isinstance(arg, ast.Name):
                    raise self.parser.error(arg, "R.output takes names of variables of the block")
                last = [s for s in nodes if _binds(s, arg.id)]
                if not last:
                    raise self.parser.error(arg, f"{arg.id} is not bound in this dataflow block")
                found[arg.id] = last[-1]
        return found

    def close_block(self) -> None:
        """Keep the open block where it holds something, and leave none open."""
        block = self.builder.end_block()
        if block.bindings:
            self.blocks.append(block)

    def visit_if(self, node: ast.If) -> None:
        parser = self.parser
        test = parser.eval(node.test)
        if not isinstance(test, (Expr, E.PrimExpr)):
            self.body(node.body if truth(test) else node.orelse)
            return
        if self.outputs is not None:
            raise parser.error(node, "a dataflow block holds no if: it is a graph without control "
                                     "flow", "put the if outside `with R.dataflow():`")
        cond = self.builder.as_leaf(self.builder.normalize(as_expr(test)))
        info = cond.struct_info_
        if getattr(info, "dtype", "bool") not in ("bool", "") or getattr(info, "ndim", 0) > 0:
            raise parser.error(node.test, f"the condition must be a bool scalar, it is "
                                          f"{show(info)}")
        name, value, note = self.if_value(node, cond)
        self.define(name, self.emit(name, value, note, node, node), node)

    def if_value(self, node: ast.If, cond: Expr) -> tuple[str, If, StructInfo | None]:
        """The two branches; both must end in an assignment to one name."""
        if not node.orelse:
            raise self.parser.error(node, "an if of a Relax function needs an else: it is a value",
                                    "both branches must assign the result to the same name")
        sides = [self.branch(nodes) for nodes in (node.body, node.orelse)]
        (a, true, note_a), (b, false, note_b) = sides
        if a != b:
            raise self.parser.error(node.orelse[-1], f"the branches must end in an assignment to "
                                                     f"the same name, not {a!r} and {b!r}")
        note = note_a if note_a is not None and note_b is not None and note_a == note_b else None
        return a, If(cond, true, false), note

    def branch(self, nodes: list[ast.stmt]) -> tuple[str, SeqExpr, StructInfo | None]:
        """One branch: its name, its value, and the annotation."""
        parser, builder = self.parser, self.builder
        last = nodes[-1]
        saved, self.blocks = self.blocks, []
        builder.begin_scope()
        builder.begin_binding_block()
        parser.scopes.append({})
        self.body(nodes[:-1])
        self.line = last
        note = None
        if isinstance(last, ast.If):
            cond = builder.as_leaf(builder.normalize(as_expr(parser.eval(last.test))))
            name, value, note = self.if_value(last, cond)
        elif isinstance(last, (ast.Assign, ast.AnnAssign)):
            target = last.targets[0] if isinstance(last, ast.Assign) else last.target
            if not isinstance(target, ast.Name):
                raise parser.error(target, "a branch ends in an assignment to one name")
            name = target.id
            if isinstance(last, ast.AnnAssign):
                note = self.annotation(last.annotation)
            if last.value is None:
                raise parser.error(last, f"{name} is declared and gets no value",
                                   f"write {name} = ... at the end of the branch")
            value = parser.eval(last.value)
            if isinstance(value, MatchCastValue):
                value = self.emit_match_cast(name, value, note, last)
        elif isinstance(last, ast.Expr):
            value = parser.eval(last.value)
            if not isinstance(value, Expr) or not is_void(builder.normalize(value).struct_info_):
                raise parser.error(last, "the value of the if is lost: its branches must end in "
                                         "assignments to one name")
            name = "_"
        else:
            raise parser.error(last, "a branch of a Relax function ends in an assignment: the "
                                     "value of the if")
        body = builder.normalize(as_expr(value))
        body = builder.as_leaf(builder._splice(body) if isinstance(body, SeqExpr) else body)
        parser.scopes.pop()
        self.close_block()
        builder.end_scope()
        blocks, self.blocks = self.blocks, saved
        return name, SeqExpr(blocks, body), note

    def visit_functiondef(self, node: ast.FunctionDef) -> None:
        recursive = any(isinstance(n, ast.Name) and n.id == node.name for n in ast.walk(node))
        if recursive and self.parser.kind_of(node) == "relax":
            self.recursive_function(node)
            return
        made = self.parser.function(node)
        if isinstance(made, Macro):
            self.parser.define(node.name, made)
            return
        if not isinstance(made, Function):
            raise self.parser.error(node, "a function inside a Relax function must be one of "
                                          "Relax", "put @R.function above it")
        var = self.variable(node.name, made.struct_info_, node)
        self.parser.define(node.name, self.add(VarBinding(var, made), node))

    def recursive_function(self, node: ast.FunctionDef) -> None:
        """A local function that mentions itself: its variable is known before its body."""
        info = above("head of a Relax function")(self.parser, node)
        if isinstance(info.ret, ObjectStructInfo):
            raise self.parser.error(node, f"{node.name} calls itself: what it gives must be "
                                          "declared", "write -> R.Tensor(...) after its parameters")
        var = Var(node.name, info)
        self.parser.define(node.name, var)
        self.add(VarBinding(var, self.parser.function(node)), node)

    def visit_pass(self, node: ast.Pass) -> None:
        pass


def _is_flat(info: StructInfo) -> bool:
    """Whether a type is that of a tensor with plain dimensions, as most are."""
    return type(info) is TensorStructInfo and (
        info.dims is None or all(type(d) in LEAVES for d in info.dims))


def is_void(info: StructInfo | None) -> bool:
    """Whether a value is the empty tuple: what a call for its effect gives."""
    return isinstance(info, TupleStructInfo) and not info.fields_


def _binds(node: ast.stmt, name: str) -> bool:
    """Whether a statement binds a name at its top level."""
    if isinstance(node, ast.FunctionDef):
        return node.name == name
    targets: list[Any] = []
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    while targets:
        item = targets.pop()
        if isinstance(item, ast.Name) and item.id == name:
            return True
        if isinstance(item, (ast.Tuple, ast.List)):
            targets += item.elts
    return False


_STATEMENTS: dict[type, Callable[[RelaxFunction, Any], None]] = {
    ast.Assign: RelaxFunction.visit_assign, ast.AnnAssign: RelaxFunction.visit_annassign,
    ast.Expr: RelaxFunction.visit_expr, ast.Return: RelaxFunction.visit_return,
    ast.With: RelaxFunction.visit_with, ast.If: RelaxFunction.visit_if,
    ast.FunctionDef: RelaxFunction.visit_functiondef, ast.Pass: RelaxFunction.visit_pass,
    ast.Nonlocal: RelaxFunction.visit_pass, ast.Global: RelaxFunction.visit_pass,
}


__all__ = ["DataflowWord", "MatchCastValue", "OutputWord", "RelaxFunction"]
