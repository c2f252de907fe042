"""TVMScript's parser: from the syntax tree of a Python function or class to a PrimFunc or IRModule.

Nothing of the script is executed. `Parser` handles statements; expressions are in `evaluator.py`,
the words of the language (T.block, T.grid, ...) in `forms.py`. Statements are collected in a list a
body; an entry that is a function instead of a statement opens a scope over all that follows it
(a let, an allocation), and is applied when the body ends.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from typing import Any, Callable, Mapping

from ..ir import dtype as dt
from ..ir.diagnostics import DiagnosticError, WellFormedError
from ..ir.module import GlobalVar, IRModule
from ..ir.node import Node
from ..tir import access
from ..tir import expr as E
from ..tir import op as O
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.function import PrimFunc
from ..tir.well_formed import verify_well_formed
from . import ir as I_names
from . import tir as T
from .evaluator import Evaluator, ModuleRef, Pending
from .forms import FORMS, BlockScope, InitScope, Loops
from .source import Source

#: parsers of other function dialects: kind of decorator -> function(parser, node, options)
FUNCTION_PARSERS: dict[str, Callable[["Parser", ast.FunctionDef, dict], Any]] = {}
#: what a module must know of a function before any body is parsed: kind -> function(parser, node)
FUNCTION_DECLARERS: dict[str, Callable[["Parser", ast.FunctionDef], None]] = {}
#: checks of other dialects' functions: type -> function(func, module or None)
FUNCTION_CHECKERS: dict[type, Callable[[Any, IRModule | None], None]] = {}
# TVM's own names for what this module offers: `from tvm.script.parser import tir as T`
tir, ir, prim_func, ir_module = T, I_names, T.prim_func, I_names.ir_module



def __getattr__(name: str) -> Any:
    """`relax` (R), whose language lies above this package."""
    if name != "relax":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module("mlc_lab.relax.script.names")


T.prim_func.script_kind = "tir"
T.macro.script_kind = "macro"
I_names.ir_module.script_kind = "module"


class FuncContext:
    """What is known of the function being parsed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.params: list[E.Var] = []
        self.buffer_map: dict[E.Var, Buffer] = {}
        self.attrs: dict[str, Any] = {}
        self.ret_type: Any = None
        self.allocs: list[Buffer] = []


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
        self.allocs: list[Buffer] = []
        self.matches: list[S.MatchBufferRegion] = []
        self.init: Any = None


class Parser(Evaluator):
    """Statements of one module or function."""

    def __init__(self, source: Source, env: Mapping[str, Any],
                 functions: Mapping[str, GlobalVar] | None = None) -> None:
        super().__init__(source, env)
        self.items_of: list[list[Any]] = []
        self.blocks: list[BlockContext] = []
        self.func: FuncContext | None = None
        self.loops: dict[E.Var, E.Range] = {}
        self.buffers: dict[E.Var, Buffer] = {}
        #: where the statements (and the function) stand, for errors found after parsing
        self.places: dict[Any, tuple[Source, ast.AST]] = {}
        self.functions = dict(functions or {})
        #: functions that a dialect makes on the way
        self.extra_functions: dict[GlobalVar, Any] = {}
        #: result types of the module's functions, where their heads say one
        self.return_types: dict[GlobalVar, str] = {}

    # --------------------------------------------------------------------------- bodies

    def emit(self, stmt: Any) -> None:
        """Add a statement, or a function from the rest of the body to a statement."""
        self.items_of[-1].append(stmt)

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

    def macro_value(self) -> Any:
        """What the macro that was just inlined gives: nothing in TensorIR."""
        return None

    def _statement(self, node: ast.stmt) -> None:
        method = _STATEMENTS.get(type(node))
        if method is None:
            raise self.error(node, f"{type(node).__name__} is no statement of a script",
                             "a script holds assignments, for, while, if, with, assert and calls")
        try:
            method(self, node)
        except DiagnosticError:
            raise
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise self.error(node, str(error)) from None

    # --------------------------------------------------------------------------- binding

    def visit_assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "a chain of assignments cannot be used in a script")
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            buffer = self.eval(target.value)
            if isinstance(buffer, Buffer):
                self.store(target, buffer, self.eval(node.value), None, node.value)
                return
            raise self.error(target.value, f"{ast.unparse(target.value)} is no buffer: only "
                                           "buffers can be stored to")
        self.assign(target, self.eval(node.value), node)

    def assign(self, target: ast.AST, value: Any, node: ast.AST) -> None:
        """Bind a value to a name or to several."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, node)
        elif isinstance(target, ast.Subscript):
            buffer = self.eval(target.value)
            self.store(target, buffer, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, (tuple, list)):
                if isinstance(value, Pending) and len(target.elts) == 1:
                    value = [value]
                else:
                    raise self.error(target, f"one value cannot be bound to {len(target.elts)} "
                                             "names")
            if len(value) != len(target.elts):
                raise self.error(target, f"{len(value)} value(s) for {len(target.elts)} name(s)")
            for item, part in zip(target.elts, value):
                self.assign(item, part, node)
        else:
            raise self.error(target, "cannot assign to this")

    def bind(self, name: str, value: Any, node: ast.AST) -> None:
        """Bind one name as TVM does: definitions are named, values become lets."""
        if isinstance(value, Pending):
            self.define(name, self.settle(value, name))
        elif isinstance(value, E.Var) and value.name == "":
            self.define(name, value.with_name(name))
        elif isinstance(value, T.MetaVar):
            self.define(name, value.value)
        elif isinstance(value, S.BufferRegion):
            self.let(name, T.as_expr(value))
        elif isinstance(value, E.Var) and not any(
                known is value for scope in self.scopes for known in scope.values()):
            self.define(name, value)
        elif isinstance(value, (E.PrimExpr, bool, int, float)):
            self.let(name, O.convert(value))
        elif hasattr(value, "item") and hasattr(value, "dtype") and not isinstance(value, Buffer):
            self.let(name, O.const(value))
        else:
            self.define(name, value)

    def let(self, name: str, value: E.PrimExpr, var: E.Var | None = None) -> E.Var:
        """A LetStmt over the rest of the body."""
        if var is None:
            annotation = value.type_annotation if isinstance(value, E.Var) else None
            var = E.Var(name, annotation if annotation is not None else value.dtype)
        self.define(name, var)
        self.emit(lambda body: S.LetStmt(var, value, body))
        return var

    def visit_annassign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "only a name can be annotated")
        kind = self.annotation(node.annotation)
        name = node.target.id
        if isinstance(kind, Pending) or isinstance(kind, Buffer):
            raise self.error(node.annotation, "a buffer is not bound by an annotation",
                             f"write {name} = T.alloc_buffer(...) or T.decl_buffer(...)")
        if isinstance(kind, T.DtypeName):
            var = E.Var(name, kind.dtype)
        elif isinstance(kind, E.Var):
            var = kind.with_name(name)
        else:
            raise self.error(node.annotation, "expected a type such as T.int32")
        if node.value is None:
            self.define(name, var)
            return
        value = O.convert(T.as_expr(self.eval(node.value)), var)
        if value.dtype != var.dtype:
            if not isinstance(value, (E.IntImm, E.FloatImm)):
                raise self.error(node.value, f"{name} is declared {var.dtype} and gets a value of "
                                             f"type {value.dtype}", "convert it with T.cast")
            value = O.cast(value, var.dtype)
        self.let(name, value, var)

    def visit_augassign(self, node: ast.AugAssign) -> None:
        op, target = type(node.op), node.target
        if isinstance(target, ast.Subscript):
            buffer = self.eval(target.value)
            if not isinstance(buffer, Buffer):
                raise self.error(target.value, f"{ast.unparse(target.value)} is no buffer")
            parts = self.buffer_indices(target, buffer)
            old = T.as_expr(self.load(target, buffer, parts))
            value = self.binary(node, op, old, self.operand(node.value))
            self.store(target, buffer, value, parts)
        elif isinstance(target, ast.Name):
            old = T.as_expr(self.lookup(target))
            value = self.binary(node, op, old, self.operand(node.value))
            self.bind(target.id, value, node)
        else:
            raise self.error(target, "cannot assign to this")

    def store(self, target: ast.Subscript, buffer: Any, value: Any,
              parts: list[Any] | None = None, value_node: ast.AST | None = None) -> None:
        """`buffer[indices] = value`; Python numbers take the buffer's type."""
        if not isinstance(buffer, Buffer):
            raise self.error(target.value, f"{ast.unparse(target.value)} is no buffer")
        if parts is None:
            parts = self.buffer_indices(target, buffer)
        if any(isinstance(p, slice) for p in parts):
            parts = self.vector_indices(target, buffer, parts)
        if len(parts) != len(buffer.shape):
            raise self.error(target, f"{buffer.name} has {len(buffer.shape)} dimensions, it is "
                                     f"stored to with {len(parts)} indices")
        if isinstance(value, Pending):
            value = self.settle(value, "v")
        indices = tuple(map(E.const_index, parts))
        wanted = E.load_dtype(buffer, indices)
        value = self.converted(value_node or target, T.as_expr(value), wanted, buffer)
        self.emit(S.BufferStore(buffer, value, indices))

    def converted(self, node: ast.AST, value: Any, wanted: str, buffer: Buffer) -> E.PrimExpr:
        """A stored value in the buffer's type, where that is a conversion TVM makes silently."""
        if isinstance(value, (bool, int, float)) or (
                not isinstance(value, E.PrimExpr) and hasattr(value, "item")):
            kind = dt.element_of(wanted)
            if isinstance(value, float) and not dt.is_float(kind) and value != int(value):
                raise self.error(node, f"{value} does not fit a buffer of type {kind}")
            return O.const(value, wanted)
        if not isinstance(value, E.PrimExpr):
            raise self.error(node, f"cannot store a Python {type(value).__name__}")
        if value.dtype == wanted:
            return value
        lanes = dt.lanes_of(wanted)
        if dt.lanes_of(value.dtype) == 1 and lanes > 1:
            value = E.Broadcast(self.converted(node, value, dt.element_of(wanted), buffer), lanes)
            return value
        if dt.lanes_of(value.dtype) != lanes:
            raise self.error(node, f"{lanes} element(s) are stored to, the value has "
                                   f"{dt.lanes_of(value.dtype)}")
        a, b = dt.element_of(value.dtype), dt.element_of(wanted)
        if (dt.is_float(a) and dt.is_float(b)) or (
                dt.is_integer(a) and dt.is_integer(b)):
            return O.cast(value, wanted)
        raise self.error(node, f"a value of type {value.dtype} is stored to {buffer.name}, which "
                               f"holds {buffer.dtype}", f'convert it: T.cast(..., "{b}")')

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
            loops = Loops([(E.const_index(start), E.const_index(stop - start))])
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
            for target in targets:
                if isinstance(target, ast.Starred):
                    count = len(variables) - len(targets) + 1
                    self.define(target.value.id, rest[:count])
                    rest = rest[count:]
                else:
                    self.define(target.id, rest.pop(0))

        body = self.body(node.body, bind)
        for var, (low, extent) in zip(reversed(variables), reversed(loops.ranges)):
            body = S.For(var, low, extent, loops.kind, body, loops.thread_binding(extent.dtype),
                         loops.annotations)
        self.emit(body)

    def loop_names(self, node: ast.For, targets: list[ast.AST], count: int) -> list[str]:
        """The names of the loop variables; a starred target takes what is left."""
        names: list[str] = []
        for target in targets:
            if isinstance(target, ast.Starred) and isinstance(target.value, ast.Name):
                names += [f"{target.value.id}_{k}" for k in range(count - len(targets) + 1)]
            elif isinstance(target, ast.Name):
                names.append(target.id)
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
        value = O.convert(self.operand(node))
        if not dt.is_bool(value.dtype):
            raise self.error(node, f"expected a condition, got a value of type {value.dtype}",
                             "compare it, for example with != 0")
        return value

    def visit_if(self, node: ast.If) -> None:
        test = self.operand(node.test)
        if not isinstance(test, E.PrimExpr):  # known now: only the side taken exists
            for item in node.body if test else node.orelse:
                self.statement(item)
            return
        condition = self.condition(node.test)
        then_case = self.body(node.body)
        else_case = self.body(node.orelse) if node.orelse else None
        self.emit(S.IfThenElse(condition, then_case, else_case))

    def visit_assert(self, node: ast.Assert) -> None:
        condition = self.condition(node.test)
        message = self.eval(node.msg) if node.msg is not None else "assertion failed"
        message = O.convert(message)
        self.emit(lambda body: S.AssertStmt(condition, message, body))

    def visit_return(self, node: ast.Return) -> None:
        if node.value is None or (isinstance(node.value, ast.Constant)
                                  and node.value.value is None):
            return
        value = O.convert(self.operand(node.value))
        self.emit(S.Evaluate(O.ret(value)))

    def visit_pass(self, node: ast.Pass) -> None:
        pass

    def visit_jump(self, node: Any) -> None:
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
        block = S.Block(context.iter_vars, context.reads or (), context.writes or (), context.name,
                        body, context.init, context.allocs, context.matches, context.annotations)
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

    # --------------------------------------------------------------------------- functions

    def eval_call(self, node: ast.Call) -> Any:
        """range over expressions is a loop; every other call is the evaluator's."""
        if isinstance(node.func, ast.Name) and node.func.id == "range" and (
                self.lookup(node.func) is range):
            args, _ = self.arguments(node)
            args = [T.as_expr(a) for a in args]
            if any(isinstance(a, E.PrimExpr) for a in args):
                if len(args) > 2:
                    raise self.error(node, "the step of a loop must be 1",
                                     "loop over the count and scale the index")
                return FORMS.table["serial"](self, *args)
            return range(*args)
        return super().eval_call(node)

    def call_global(self, node: ast.AST, var: GlobalVar, args: list[Any]) -> Any:
        """A call of a function of the module, with the type its head says."""
        call = super().call_global(node, var, args)
        kind = self.return_types.get(var)
        return call if kind is None else E.Call(kind, call.op, call.args)

    def call_form(self, node: ast.Call, form: T.Form) -> Any:
        """A word of the language."""
        return FORMS.call(self, node, form)

    def eval_subscript(self, node: ast.Subscript) -> Any:
        """A subscript; a word of the language takes one only in another vintage of it."""
        base = self.eval(node.value) if isinstance(node.value, ast.Attribute) else None
        special = T.SUBSCRIPTS.get(type(base))
        if special is not None:
            return special(self, base, self.eval(node.slice))
        return super().eval_subscript(node)

    def annotation(self, node: ast.AST) -> Any:
        """A type; a string is parsed."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            inner = ast.parse(node.value, mode="eval").body
            for part in ast.walk(inner):
                if hasattr(part, "lineno"):
                    ast.copy_location(part, node)
            node = inner
        return self.eval(node)

    def prim_func(self, node: ast.FunctionDef, private: bool) -> PrimFunc:
        """A function under @T.prim_func."""
        context = self.func = FuncContext(node.name)
        self.scopes.append({})
        args = node.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
            raise self.error(node, "a prim_func has plain parameters only, without defaults")
        for arg in args.posonlyargs + args.args:
            self.parameter(arg)
        if node.returns is not None:
            kind = self.annotation(node.returns)
            if isinstance(kind, T.DtypeName):
                context.ret_type = kind.dtype
            elif isinstance(kind, E.Var):
                context.ret_type = kind.type_annotation or kind.dtype
            elif kind is not None:
                raise self.error(node.returns, "expected a return type such as T.int32")
        body = self.body(node.body)
        self.scopes.pop()
        self.func = None
        attrs = dict(context.attrs)
        if not private and "global_symbol" not in attrs:
            attrs = {"global_symbol": node.name, **attrs}
        func = PrimFunc(context.params, with_root(body, context.allocs), context.ret_type,
                        context.buffer_map, attrs)
        self.places[func] = self.source, node
        return func

    def check(self, obj: Any) -> Any:
        """Raise the error of a program that is not well formed, at its place in the source."""
        try:
            for func in obj.functions.values() if isinstance(obj, IRModule) else [obj]:
                self.current = func
                if isinstance(func, PrimFunc):
                    verify_well_formed(func)
                elif type(func) in FUNCTION_CHECKERS:
                    FUNCTION_CHECKERS[type(func)](func, obj if obj is not func else None)
        except WellFormedError as error:
            places = [p for p in (error.node, getattr(error, "statement", None), self.current)
                      if isinstance(p, Node)]
            found = next((self.places[p] for p in places if p in self.places), None)
            if found is None:
                raise
            hint = getattr(error, "hint", "") or (
                "pass check_well_formed=False to the decorator to build the program anyway")
            reason = getattr(error, "reason", None) or str(error)
            raise found[0].error(found[1], f"{reason} [{error.rule}]", hint) from None
        return obj

    def parameter(self, arg: ast.arg) -> None:
        """One parameter and its annotation."""
        context = self.func
        if arg.annotation is None:
            raise self.error(arg, f"parameter {arg.arg!r} has no type",
                             'write for example A: T.Buffer((128, 128), "float32"), n: T.int32 or '
                             "a: T.handle")
        kind = self.annotation(arg.annotation)
        if isinstance(kind, Pending):
            buffer = self.settle(kind, arg.arg)
            var = E.Var(f"{arg.arg}_handle", "handle")
            context.buffer_map[var] = buffer
            self.define(arg.arg, buffer)
        elif isinstance(kind, T.DtypeName):
            var = E.Var(arg.arg, kind.dtype)
            self.define(arg.arg, var)
        elif isinstance(kind, E.Var):
            var = kind.with_name(arg.arg)
            self.define(arg.arg, var)
        else:
            raise self.error(arg.annotation, "expected T.Buffer(...), T.handle or a type such as "
                                             "T.int32")
        context.params.append(var)

    def function(self, node: ast.FunctionDef) -> Any:
        """A decorated function, in whatever dialect its decorator says."""
        if not node.decorator_list:
            raise self.error(node, f"{node.name} has no decorator",
                             "put @T.prim_func above it")
        decorator = node.decorator_list[-1]
        options: dict[str, Any] = {}
        if isinstance(decorator, ast.Call):
            options = {k.arg: self.eval(k.value) for k in decorator.keywords if k.arg}
            decorator = decorator.func
        kind = getattr(self.eval(decorator), "script_kind", None)
        if kind == "tir":
            return self.prim_func(node, bool(options.get("private", False)))
        if kind == "macro":
            return Macro(node, self.source, self.env, bool(options.get("hygienic", True)),
                         list(self.scopes))
        if kind in FUNCTION_PARSERS:
            return FUNCTION_PARSERS[kind](self, node, options)
        raise self.error(decorator, f"{ast.unparse(decorator)} is no decorator of a script "
                                    "function", "use @T.prim_func")

    def kind_of(self, node: ast.FunctionDef) -> str | None:
        """Which dialect the decorator of a function says."""
        if not node.decorator_list:
            return None
        decorator = node.decorator_list[-1]
        if isinstance(decorator, ast.Call):
            decorator = decorator.func
        return getattr(self.eval(decorator), "script_kind", None)

    def module(self, node: ast.ClassDef) -> IRModule:
        """A class under @I.ir_module."""
        definitions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
        self.functions = {n.name: GlobalVar(n.name) for n in definitions}
        for item in definitions:
            plain = isinstance(item.returns, (ast.Attribute, ast.Name))
            kind = self.eval(item.returns) if plain else None
            if isinstance(kind, T.DtypeName):
                self.return_types[self.functions[item.name]] = kind.dtype
        reference = ModuleRef(self.functions)
        self.define(node.name, reference)
        self.define("cls", reference)
        for item in definitions:
            declare = FUNCTION_DECLARERS.get(self.kind_of(item))
            if declare is not None:
                declare(self, item)
        mod = IRModule()
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                result = self.function(item)
                if isinstance(result, Macro):
                    self.define(item.name, result)
                else:
                    mod.update_func(self.functions[item.name], result)
                    for var, extra in self.extra_functions.items():
                        mod.update_func(var, extra)
            elif isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
                self.module_form(item.value, mod)
            elif isinstance(item, ast.Assign):
                self.assign_names(item.targets[0], self.eval(item.value))
            elif not isinstance(item, ast.Pass) and not (
                    isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)):
                raise self.error(item, "a module holds functions only")
        return mod

    def module_form(self, node: ast.Call, mod: IRModule) -> None:
        """I.module_attrs({...}) and the like."""
        form = self.eval(node.func)
        if form is I_names.module_attrs:
            mod.attrs.update({k: S.annotation_value(v)
                              for k, v in self.eval(node.args[0]).items()})
        elif form is I_names.module_global_infos:
            mod.global_infos.update(self.eval(node.args[0]))
        else:
            raise self.error(node, "a module holds functions, I.module_attrs and "
                                   "I.module_global_infos")


class Macro:
    """A function under @T.macro: its body is parsed anew at every call."""

    def __init__(self, tree: ast.FunctionDef, source: Source, env: Mapping[str, Any],
                 hygienic: bool, scopes: list[dict]) -> None:
        self.tree, self.source, self.env = tree, source, env
        self.hygienic, self.scopes = hygienic, scopes

    def expand_in_script(self, parser: Parser, node: ast.Call, args: list[Any],
                         kwargs: dict[str, Any]) -> Any:
        """Inline the body at a call; its value, in a language whose macros have one."""
        params = [a.arg for a in self.tree.args.args]
        bound = dict(zip(params, args))
        bound.update(kwargs)
        if len(args) > len(params) or set(bound) != set(params):
            raise parser.error(node, f"macro {self.tree.name} takes ({', '.join(params)})")
        saved = parser.source, parser.env, parser.scopes
        outer = self.scopes if self.hygienic else parser.scopes
        parser.source, parser.scopes = self.source, [*outer, bound]
        parser.env = self.env if self.hygienic else ChainMap(dict(parser.env), dict(self.env))
        try:
            for item in self.tree.body:
                parser.statement(item)
        finally:
            parser.source, parser.env, parser.scopes = saved
        return parser.macro_value()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"macro {self.tree.name} can only be called in a script")


def fold(items: list[Any]) -> S.Stmt:
    """The statement of a body: each open scope takes what follows it."""
    rest: list[S.Stmt] = []
    for item in reversed(items):
        if isinstance(item, S.Stmt):
            rest.append(item)
        else:
            rest = [item(S.seq(*reversed(rest)))]
    return S.seq(*reversed(rest))


def with_root(body: S.Stmt, allocs: list[Buffer]) -> S.Stmt:
    """The body inside a root block, where there are blocks or buffers to hold."""
    if type(body) is S.BlockRealize:
        needed = bool(allocs) or bool(body.block.iter_vars)
    else:
        needed = bool(allocs) or access.contains_block(body)
    if not needed:
        return body
    root = S.Block((), (), (), "root", body, None, allocs)
    return S.BlockRealize((), S.TRUE, root)


_STATEMENTS: dict[type, Callable[[Parser, Any], None]] = {
    ast.Assign: Parser.visit_assign, ast.AnnAssign: Parser.visit_annassign,
    ast.AugAssign: Parser.visit_augassign, ast.Expr: Parser.visit_expr,
    ast.For: Parser.visit_for, ast.While: Parser.visit_while, ast.If: Parser.visit_if,
    ast.Assert: Parser.visit_assert, ast.Return: Parser.visit_return, ast.Pass: Parser.visit_pass,
    ast.With: Parser.visit_with, ast.FunctionDef: Parser.visit_functiondef,
    ast.Break: Parser.visit_jump, ast.Continue: Parser.visit_jump,
}


__all__ = ["FUNCTION_CHECKERS", "FUNCTION_DECLARERS", "FUNCTION_PARSERS", "Macro", "Parser", "fold",
           "with_root"]
