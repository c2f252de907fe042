"""The statements of a script: bodies, loops, conditions, blocks and the other scopes.

Statements are collected in a list a body; an entry that is a function instead of a statement opens
a scope over all that follows it (a let, an allocation), and is applied when the body ends.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Mapping, Sequence

from ..ir import dtype as dt
from ..ir.diagnostics import DiagnosticError
from ..reading import MISTAKES, limits
from ..tir import access
from ..tir import expr as E
from ..tir import op as O
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.functor import pre_order
from . import tir as T
from .assignments import AssignmentParser
from .bounded import Budget, truth
from .evaluator import Evaluator
from .forms import FORMS, BlockScope, InitScope, Loops
from .macro import Macro
from .source import Source
from .values import Pending


def _name_of(target: ast.expr) -> str:
    """The name that a target of a loop binds (`loop_names` refuses those that bind none)."""
    inner = target.value if isinstance(target, ast.Starred) else target
    return inner.id if isinstance(inner, ast.Name) else ""


class BlockContext:
    """What is known of the block being parsed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.iter_vars: list[Any] = []
        self.iter_values: list[Any] = []
        self.predicate: Any = None
        self.reads: Any = None
        self.writes: Any = None
        self.annotations: dict[str, Any] = {}
        self.annotated = False
        self.allocs: list[Buffer] = []
        self.matches: list[S.MatchBufferRegion] = []
        self.init: Any = None


class StatementParser(AssignmentParser):
    """Statements, and the words of the language that make them."""

    def __init__(self, source: Source, env: Mapping[str, Any], budget: Budget | None = None
                 ) -> None:
        super().__init__(source, env, budget)
        self.blocks: list[BlockContext] = []
        self.loops: dict[E.Var, E.Range] = {}
        self.open_loops = 0
        self.buffers: dict[E.Var, Buffer] = {}
        #: where the statements (and the function) stand, for errors found after parsing
        self.places: dict[Any, tuple[Source, ast.AST]] = {}

    # --------------------------------------------------------------------------- bodies

    def body(self, nodes: list[ast.stmt], before: Callable[[], None] | None = None) -> S.Stmt:
        """The statement that a list of statements makes, in a scope of its own."""
        self.items_of.append([])
        self.scopes.append({})
        if before is not None:
            before()
        for item in nodes:
            self.statement(item)
        self.scopes.pop()
        return fold(self.items_of.pop())

    def statement(self, node: ast.stmt) -> None:
        """Parse one statement."""
        before = len(self.items_of[-1])
        self._statement(node)
        if len(self.items_of[-1]) > before:
            made = self.items_of[-1][-1]
            if isinstance(made, S.Stmt):
                self.places.setdefault(made, (self.source, node))

    def _statement(self, node: ast.stmt) -> None:
        method = _STATEMENTS.get(type(node))
        if method is None:
            raise self.error(node, f"{type(node).__name__} is no statement of a script",
                             "a script holds assignments, for, while, if, with, assert and calls")
        try:
            method(self, node)
        except (DiagnosticError, RecursionError):
            raise
        except MISTAKES as error:
            raise self.mistake(node, error) from None

    def axes(self) -> list[E.Var]:
        """The iterators of the block that is open."""
        return [iv.var for iv in self.blocks[-1].iter_vars if iv is not None] if self.blocks else []

    def macro_value(self) -> Any:
        """What the macro that was just inlined gives: nothing in TensorIR."""
        return None

    def call_form(self, node: ast.Call, form: T.Form) -> Any:
        """A word of the language."""
        return FORMS.call(self, node, form)

    def form_in_helper(self, helper: Evaluator, node: ast.Call, form: T.Form) -> Any:
        """A word in a helper function: it may make a buffer, which the caller gives a name."""
        if form.name not in ("alloc_buffer", "decl_buffer"):
            raise helper.error(node, f"T.{form.name} has no meaning here")
        return FORMS.call(helper, node, form, self)

    def eval_subscript(self, node: ast.Subscript) -> Any:
        """A subscript; a word of the language takes one only in another vintage of it."""
        base = self.eval(node.value) if isinstance(node.value, ast.Attribute) else None
        if isinstance(base, T.BufferName):
            return FORMS.buffer(self, *base.subscript(self.eval(node.slice)))
        return super().eval_subscript(node)

    def range_over(self, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`range` over expressions, or with annotations, is a loop."""
        args = [T.as_expr(a) for a in args]
        if set(kwargs) != {"annotations"} and not any(isinstance(a, E.PrimExpr) for a in args):
            return super().range_over(node, args, kwargs)
        if len(args) > 2:
            raise self.error(node, "the step of a loop must be 1",
                             "loop over the count and scale the index")
        return FORMS.table["serial"](self, *args, **kwargs)

    # --------------------------------------------------------------------------- statements

    def visit_expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # a docstring
        value = self.eval(node.value)
        if isinstance(value, Pending):
            self.settle(value, "v")
        elif isinstance(value, S.Stmt):
            self.emit(value)
        elif isinstance(value, E.PrimExpr):
            self.emit(S.Evaluate(value))
        elif isinstance(value, (bool, int, float)):
            self.emit(S.Evaluate(O.const(value)))
        elif isinstance(value, (BlockScope, InitScope)):
            raise self.error(node, "a block opens a scope", "write `with T.block(...):`")
        elif isinstance(value, Loops):
            raise self.error(node, "a loop needs `for i in ...:`")
        elif value is not None:
            raise self.error(node, "this statement does nothing")

    def visit_for(self, node: ast.For) -> None:
        if node.orelse:
            raise self.error(node.orelse[0], "for ... else cannot be used in a script")
        loops = self.eval(node.iter)
        if isinstance(loops, range):
            start, stop, step = loops.start, loops.stop, loops.step
            if step != 1:
                raise self.error(node.iter, "the step of a loop must be 1",
                                 "loop over the count and scale the index")
            loops = Loops([O.match_types(E.const_index(start), E.const_index(stop - start))])
        if not isinstance(loops, Loops):
            raise self.error(node.iter, "a script loops over range, T.grid, T.serial, T.parallel, "
                                        "T.vectorized, T.unroll or T.thread_binding")
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        names = self.loop_names(node, targets, len(loops.ranges))
        variables = []
        for name, (low, extent) in zip(names, loops.ranges):
            var = E.Var(name, extent.dtype)
            self.loops[var] = E.Range.from_min_extent(low, extent)
            variables.append(var)

        def bind() -> None:
            rest = list(variables)
            if len(targets) == 1 and len(variables) != 1:  # one name for all of the loops
                self.define(_name_of(targets[0]), tuple(variables))
                return
            for target in targets:
                if isinstance(target, ast.Starred):
                    count = len(variables) - len(targets) + 1
                    self.define(_name_of(target), rest[:count])
                    rest = rest[count:]
                else:
                    self.define(_name_of(target), rest.pop(0))

        self.open_loops += len(variables)
        if self.open_loops > limits.LOOPS:
            raise self.error(node, f"{self.open_loops} loops are nested here",
                             f"up to {limits.LOOPS} may be")
        body = self.body(node.body, bind)
        self.open_loops -= len(variables)
        for var, (low, extent) in zip(reversed(variables), reversed(loops.ranges)):
            body = S.For(var, low, extent, loops.kind, body, loops.thread_binding(extent.dtype),
                         loops.annotations)
        self.emit(body)

    def loop_names(self, node: ast.For, targets: Sequence[ast.expr], count: int) -> list[str]:
        """The names of the loop variables.

        A starred target takes what is left, a single name all of them.
        """
        names: list[str] = []
        self.different(targets)
        for target in targets:
            if isinstance(target, ast.Starred) and isinstance(target.value, ast.Name):
                names += [f"{target.value.id}_{k}" for k in range(count - len(targets) + 1)]
            elif isinstance(target, ast.Name):
                single = len(targets) == 1 and count != 1
                names += [f"{target.id}_{k}" for k in range(count)] if single else [target.id]
            else:
                raise self.error(target, "a loop variable is a plain name")
        if len(names) != count:
            raise self.error(node.target, f"{count} loop(s) and {len(names)} name(s)",
                             "give each loop of T.grid one name")
        return names

    def visit_while(self, node: ast.While) -> None:
        condition = self.condition(node.test)
        self.emit(S.While(condition, self.body(node.body)))

    def condition(self, node: ast.AST) -> E.PrimExpr:
        """A bool expression."""
        value = O.convert(self.one_value(self.operand(node)))
        if not dt.is_bool(value.dtype):
            raise self.error(node, f"expected a condition, got a value of type {value.dtype}",
                             "compare it, for example with != 0")
        return value

    def visit_if(self, node: ast.If) -> None:
        test = self.operand(node.test)
        if isinstance(test, float):
            raise self.error(node.test, "a number with a fraction is no condition",
                             "compare it, for example with != 0.0")
        if not isinstance(test, E.PrimExpr):  # known now: only the side taken exists
            for item in node.body if truth(test) else node.orelse:
                self.statement(item)
            return
        condition = self.condition(node.test)
        then_case = self.body(node.body)
        else_case = self.body(node.orelse) if node.orelse else None
        self.emit(S.IfThenElse(condition, then_case, else_case))

    def visit_assert(self, node: ast.Assert) -> None:
        condition = self.condition(node.test)
        message = "assertion failed" if node.msg is None else self.one_value(self.eval(node.msg))
        message = O.convert(message)
        self.emit(lambda body: S.AssertStmt(condition, message, body))

    def visit_return(self, node: ast.Return) -> None:
        if node.value is None or (isinstance(node.value, ast.Constant)
                                  and node.value.value is None):
            return
        value = O.convert(self.one_value(self.operand(node.value)))
        self.emit(S.Evaluate(O.ret(value)))

    def visit_pass(self, node: ast.Pass) -> None:
        pass

    def visit_jump(self, node: ast.AST) -> None:
        name = "tir.break_loop" if isinstance(node, ast.Break) else "tir.continue_loop"
        self.emit(S.Evaluate(E.Call("void", name, ())))

    def visit_functiondef(self, node: ast.FunctionDef) -> None:
        kinds = [getattr(self.eval(d.func if isinstance(d, ast.Call) else d), "script_kind", None)
                 for d in node.decorator_list]
        if kinds != ["macro"]:
            raise self.error(node, "a function inside a function must be a T.macro")
        self.define(node.name, Macro(node, self.source, self.env, True, list(self.scopes)))

    # --------------------------------------------------------------------------- with

    def visit_with(self, node: ast.With) -> None:
        self.with_items(node, list(node.items))

    def with_items(self, node: ast.With, items: list[ast.withitem]) -> None:
        """`with a as x, b as y:` is the one in the other."""
        item = items.pop(0)
        value = self.eval(item.context_expr)
        inside = (lambda: [self.with_items(node, items)]) if items else (
            lambda: [self.statement(s) for s in node.body])
        if isinstance(value, (BlockScope, InitScope)) and item.optional_vars is not None:
            raise self.error(item.optional_vars, "a block has nothing to name by `as`",
                             "bind its axes inside: vi = T.axis.spatial(128, i)")
        if isinstance(value, BlockScope):
            self.block(node, value, inside)
        elif isinstance(value, InitScope):
            self.init(node, inside)
        elif isinstance(value, Pending):
            self.items_of.append([])
            self.scopes.append({})
            name = item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else "v"
            result = self.settle(value, name)
            if item.optional_vars is not None:
                if not isinstance(item.optional_vars, ast.Name):
                    raise self.error(item.optional_vars, "the scope has one name")
                self.define(name, result)
            inside()
            self.scopes.pop()
            self.emit_folded(fold(self.items_of.pop()))
        else:
            raise self.error(item.context_expr, "this cannot be used with `with`",
                             "scopes are T.block, T.init, T.attr, T.LetStmt, T.allocate, "
                             "T.decl_buffer, T.Assert and T.launch_thread")

    def emit_folded(self, stmt: S.Stmt) -> None:
        """Add a finished scope."""
        self.emit(stmt)

    def block(self, node: ast.With, scope: BlockScope, inside: Callable[[], Any]) -> None:
        """with T.block(name): ..."""
        context = BlockContext(scope.name)
        outermost = not self.blocks
        known = dict(self.buffers)
        self.blocks.append(context)
        self.items_of.append([])
        self.scopes.append({})
        inside()
        self.scopes.pop()
        body = fold(self.items_of.pop())
        self.blocks.pop()
        if any(iv is None for iv in context.iter_vars):
            raise self.error(node, "a T.axis of this block is not assigned to a name")
        init = context.init
        if init is not None and _runs_each_time(context, body):
            body, init = S.seq(init, body), None
        block = S.Block(context.iter_vars, context.reads or (), context.writes or (), context.name,
                        body, init, context.allocs, context.matches, context.annotations)
        is_root = outermost and not context.iter_vars and context.name == "root"
        if (context.reads is None or context.writes is None) and not is_root:
            reads, writes, opaque = access.block_access_regions(block, self.buffers)
            if opaque:
                names = ", ".join(sorted({r.buffer.name for r in opaque}))
                raise self.error(
                    node.items[0].context_expr, "cannot tell what the block reads and writes: the "
                    f"data pointer of {names} is used directly",
                    "write T.reads(...) and T.writes(...)")
            block = block.replace(reads=reads if context.reads is None else block.reads,
                                  writes=writes if context.writes is None else block.writes)
        self.buffers = known
        predicate = context.predicate if context.predicate is not None else S.TRUE
        self.places[block] = self.source, node.items[0].context_expr
        if scope.realize:
            self.emit(S.BlockRealize(context.iter_values, predicate, block))
        else:
            self.emit(block)

    def init(self, node: ast.With, inside: Callable[[], Any]) -> None:
        """with T.init(): ..."""
        if not self.blocks:
            raise self.error(node.items[0].context_expr, "T.init() must be inside a block")
        if self.blocks[-1].init is not None:
            raise self.error(node.items[0].context_expr, "the block has a T.init() already")
        self.items_of.append([])
        self.scopes.append({})
        inside()
        self.scopes.pop()
        self.blocks[-1].init = fold(self.items_of.pop())


def _runs_each_time(context: BlockContext, body: S.Stmt) -> bool:
    """Whether an init stands before the body as any statement does: no axis is of a reduction.
    Where the body goes on from what it stored, one was meant to be, and the block is refused; but a
    block in it may reduce into that."""
    if any(iv.iter_type == E.IterVar.CommReduce for iv in context.iter_vars):
        return False
    stored = {n.buffer for n in pre_order(context.init) if isinstance(n, S.BufferStore)}
    return not _goes_on(body, stored)


def _goes_on(node: Any, stored: set[Buffer]) -> bool:
    """Whether a part that is no reduction of its own reads what was stored."""
    if isinstance(node, E.BufferLoad) and node.buffer in stored:
        return True
    if isinstance(node, S.Block) and any(
            iv.iter_type == E.IterVar.CommReduce for iv in node.iter_vars):
        return False
    return any(_goes_on(child, stored) for child in node.children())


def fold(items: list[Any]) -> S.Stmt:
    """The statement of a body: each open scope takes what follows it."""
    rest: list[S.Stmt] = []
    for item in reversed(items):
        if isinstance(item, S.Stmt):
            rest.append(item)
        else:
            rest = [item(S.seq(*reversed(rest)))]
    return S.seq(*reversed(rest))


_STATEMENTS: dict[type, Callable[[StatementParser, Any], None]] = {
    ast.Assign: StatementParser.visit_assign, ast.AnnAssign: StatementParser.visit_annassign,
    ast.AugAssign: StatementParser.visit_augassign, ast.Expr: StatementParser.visit_expr,
    ast.For: StatementParser.visit_for, ast.While: StatementParser.visit_while,
    ast.If: StatementParser.visit_if, ast.Assert: StatementParser.visit_assert,
    ast.Return: StatementParser.visit_return, ast.Pass: StatementParser.visit_pass,
    ast.Nonlocal: StatementParser.visit_pass, ast.Global: StatementParser.visit_pass,
    ast.With: StatementParser.visit_with, ast.FunctionDef: StatementParser.visit_functiondef,
    ast.Break: StatementParser.visit_jump, ast.Continue: StatementParser.visit_jump,
}


__all__ = ["BlockContext", "StatementParser", "fold"]
