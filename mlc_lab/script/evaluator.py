"""Evaluates the expressions of a script over its syntax tree, without ever running them.

Values are IR expressions, buffers, and the Python values a script mentions. What may be named, read
and called is on the lists of `allowed.py` and `bounded.py`; a function of the user's is interpreted
from its own source.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import types
from typing import Any, Callable

from ..ir.diagnostics import DiagnosticError
from ..ir.module import GlobalVar
from ..reading import MISTAKES, similar
from ..reading.python_text import written
from ..tir import expr as E
from ..tir import op as O
from ..tir.buffer import Buffer
from . import allowed, bounded, helper_function
from . import tir as T
from .allowed import LANGUAGES, OFFERED, PASSED, ScriptFunction
from .bounded import is_number
from .indexing import buffer_indices, load
from .scopes import Scopes
from .source import find_function
from .values import Expands, ModuleRef, Pending, described, is_floating

_BINARY: dict[type, tuple[str, Callable]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv), ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod), ast.Pow: ("**", operator.pow),
    ast.LShift: ("<<", operator.lshift), ast.RShift: (">>", operator.rshift),
    ast.BitAnd: ("&", operator.and_), ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor), ast.MatMult: ("@", operator.matmul),
}
_COMPARE: dict[type, Callable] = {
    ast.Eq: O.equal, ast.NotEq: O.not_equal, ast.Lt: O.less, ast.LtE: O.less_equal,
    ast.Gt: O.greater, ast.GtE: O.greater_equal,
}
_COMPARE_PLAIN: dict[type, Callable] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: operator.contains, ast.NotIn: operator.contains,
}


class Evaluator(Scopes):
    """Expressions."""

    #: how the language being parsed writes a call of a function of the module, if not as TensorIR
    make_global_call: Callable[[GlobalVar, list], Any] | None = None
    #: of a helper function: what reads the call of it
    caller: Evaluator | None = None

    # --------------------------------------------------------------------------- dispatch

    def eval(self, node: ast.AST) -> Any:
        """The value of an expression; errors point at the innermost part that fails."""
        method = _TABLE.get(type(node))
        if method is None:
            raise self.error(node, f"{type(node).__name__} cannot be used in a script")
        try:
            return method(self, node)
        except DiagnosticError:
            raise
        except RecursionError as error:
            vars(error).setdefault("place", (self.error, node))
            raise
        except MISTAKES as error:
            raise self.mistake(node, error) from None

    def operand(self, node: ast.AST) -> Any:
        """The value of an expression as an operand of arithmetic."""
        value = self.eval(node)
        if isinstance(value, Pending):
            value = self.settle(value, "v")
        return T.as_expr(value)

    def settle(self, pending: Pending, name: str) -> Any:
        """Complete a definition under a name."""
        if pending.done is None:
            pending.done = pending.finish(name)
        return pending.done

    def eval_constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, (bytes, complex)):
            raise self.error(node, f"{type(value).__name__} has no meaning in a script")
        return bounded.checked(value) if type(value) is int else value

    def looked_into(self, node: ast.AST) -> Any:
        """The value before a dot or a bracket."""
        return self.find(node) if type(node) is ast.Name else self.eval(node)

    def eval_attribute(self, node: ast.Attribute) -> Any:
        base = self.find(node.value) if type(node.value) is ast.Name else self.eval(node.value)
        name = node.attr
        if type(base) is types.ModuleType and base in LANGUAGES and name in LANGUAGES[base]:
            return LANGUAGES[base][name]
        if isinstance(base, Pending):
            base = self.settle(base, "v")
        if isinstance(base, ModuleRef):
            if name in base.functions:
                return base.functions[name]
            have = ", ".join(base.functions) or "none"
            raise self.error(node, f"the module has no function {name!r}", f"it has: {have}")
        try:
            return allowed.attribute(base, name)
        except AttributeError:
            other = None if self.elsewhere is None else self.elsewhere(name, base)
            if other is not None:
                return other
            close = similar(name, allowed.names_after(base), 3)
            prefix = written(node.value)
            hint = f"did you mean {' or '.join(f'{prefix}.{c}' for c in close)}?" if close else ""
            plain = (types.ModuleType, type, allowed.Names)
            what = (f"{prefix} has no name {name!r}" if isinstance(base, plain) else
                    f"{prefix} ({described(base)}) has no attribute {name!r}")
            end = types.SimpleNamespace(
                lineno=node.end_lineno, end_lineno=node.end_lineno,
                col_offset=(node.end_col_offset or 0) - len(name),
                end_col_offset=node.end_col_offset)
            raise self.error(end, what, hint) from None

    # --------------------------------------------------------------------------- operators

    def eval_binop(self, node: ast.BinOp) -> Any:
        a, b = self.operand(node.left), self.operand(node.right)
        return self.binary(node, type(node.op), a, b)

    def binary(self, node: ast.AST, op: type, a: Any, b: Any) -> Any:
        """a op b, on expressions or on Python values."""
        symbol, fn = _BINARY[op]
        ea, eb = isinstance(a, E.PrimExpr), isinstance(b, E.PrimExpr)
        if not ea and not eb:
            return bounded.binary(self.budget, op, fn, a, b)
        for side, is_expr in ((a, ea), (b, eb)):
            if not is_expr and not is_number(side):
                raise self.error(node, f"cannot apply {symbol} to {described(a)} and "
                                       f"{described(b)}")
        if op is ast.Div and not (is_floating(a) or is_floating(b)):
            raise self.error(node, "/ on integers is ambiguous",
                             "use // to round down, or T.truncdiv to round toward zero")
        if op is ast.Pow:
            return O.pow(a, b)
        return fn(a, b)

    def eval_unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.operand(node.operand)
        if isinstance(node.op, ast.Not):
            return O.logical_not(value) if isinstance(value, E.PrimExpr) else (
                not bounded.truth(value))
        if not bounded.computes(value):
            raise self.error(node, f"cannot compute with {described(value)}")
        if isinstance(node.op, ast.USub):
            return -value
        return ~value if isinstance(node.op, ast.Invert) else value

    def eval_boolop(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)
        build = O.logical_and if is_and else O.logical_or
        result = self.operand(node.values[0])
        for item in node.values[1:]:
            if not isinstance(result, E.PrimExpr):
                if bounded.truth(result) is not is_and:
                    return result
                result = self.operand(item)
            else:
                result = build(result, self.operand(item))
        return result

    def eval_compare(self, node: ast.Compare) -> Any:
        left = self.operand(node.left)
        result: Any = None
        for op, item in zip(node.ops, node.comparators):
            right = self.operand(item)
            if isinstance(left, E.PrimExpr) or isinstance(right, E.PrimExpr):
                build = _COMPARE.get(type(op))
                if build is None:
                    raise self.error(node, "`is` and `in` have no meaning on expressions")
                for side in (left, right):
                    if not isinstance(side, E.PrimExpr) and not is_number(side):
                        raise self.error(node, f"cannot compare {described(left)} with "
                                               f"{described(right)}")
                part = build(left, right)
            else:
                part = bounded.compare(type(op), _COMPARE_PLAIN[type(op)], left, right)
            if result is None:
                result = part
            elif isinstance(result, E.PrimExpr) or isinstance(part, E.PrimExpr):
                result = O.logical_and(result, part)
            else:
                result = bounded.truth(result) and part
            left = right
        return result

    def eval_ifexp(self, node: ast.IfExp) -> Any:
        test = self.operand(node.test)
        if not isinstance(test, E.PrimExpr):
            return self.eval(node.body if bounded.truth(test) else node.orelse)
        return O.if_then_else(test, self.operand(node.body), self.operand(node.orelse))

    # --------------------------------------------------------------------------- containers

    def items(self, nodes: list[ast.expr]) -> list[Any]:
        """Values of a list of expressions, `*x` spread."""
        out: list[Any] = []
        for item in nodes:
            if isinstance(item, ast.Starred):
                out.extend(self.spread(item))
            else:
                out.append(self.eval(item))
        return out

    def spread(self, node: ast.Starred) -> list[Any] | tuple:
        """What `*x` stands for."""
        found = bounded.items(self.eval(node.value))
        self.budget.spend(4 * len(found))  # each becomes a part of the program
        return found

    def eval_dict(self, node: ast.Dict) -> Any:
        out: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                out.update(self.mapping(value))
            else:
                out[self.eval(key)] = self.eval(value)
        return out

    def mapping(self, node: ast.AST) -> dict[Any, Any]:
        """The dict after `**`."""
        value = self.eval(node)
        if not isinstance(value, dict):
            raise self.error(node, f"** takes a dict, not {described(value)}")
        return value

    def eval_joinedstr(self, node: ast.JoinedStr) -> str:
        parts = []
        for item in node.values:
            if isinstance(item, ast.Constant):
                parts.append(str(item.value))
            elif isinstance(item, ast.FormattedValue):
                spec = self.eval(item.format_spec) if item.format_spec else ""
                parts.append(bounded.formatted(self.eval(item.value), spec, item.conversion))
        return bounded.checked("".join(parts))

    def eval_comprehension(self, node: Any) -> list[Any]:
        """[f(x) for x in values if test], over Python values."""
        out: list[Any] = []

        def run(index: int) -> None:
            if index == len(node.generators):
                out.append(self.eval(node.elt))
                return
            part = node.generators[index]
            for value in bounded.items(self.eval(part.iter)):
                self.budget.again(node)
                self.assign_names(part.target, value)
                if all(bounded.truth(self.eval(test)) for test in part.ifs):
                    run(index + 1)

        self.scopes.append({})
        run(0)
        self.scopes.pop()
        return bounded.checked(out)

    def assign_names(self, target: ast.AST, value: object) -> None:
        """Bind plain Python values to a target, without any IR."""
        if isinstance(target, ast.Name):
            self.define(target.id, value)
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.error(target, "cannot assign to this")
        values = bounded.items(value)
        if len(values) != len(target.elts):
            raise self.error(target, f"{len(values)} values for {len(target.elts)} names")
        for item, part in zip(target.elts, values):
            self.assign_names(item, part)

    def eval_lambda(self, node: ast.Lambda) -> ScriptFunction:
        spec = node.args
        if spec.vararg or spec.kwarg or spec.kwonlyargs or spec.defaults:
            raise self.error(node, "a lambda of a script has plain parameters only")
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        scopes = list(self.scopes)

        def call(*args: object) -> Any:
            if len(args) != len(names):
                raise TypeError(f"the lambda takes {len(names)} value(s), got {len(args)}")
            saved, self.scopes = self.scopes, [*scopes, dict(zip(names, args))]
            self.budget.again(node)
            self.budget.enter()
            try:
                return self.eval(node.body)
            finally:
                self.scopes = saved
                self.budget.leave()

        return ScriptFunction(names, call)

    # --------------------------------------------------------------------------- subscripts

    def eval_subscript(self, node: ast.Subscript) -> Any:
        base = self.looked_into(node.value)
        if isinstance(base, Pending):
            base = self.settle(base, "v")
        if isinstance(base, Buffer):
            return load(self, node, base, buffer_indices(self, node, base))
        index = self.one_value(self.eval(node.slice))
        if isinstance(index, E.IntImm):
            index = index.value
        if isinstance(base, E.PrimExpr):
            raise self.error(node, f"{written(node.value)} is a scalar of type {base.dtype} "
                                   "and has no elements")
        return bounded.element(self.budget, base, index)

    def eval_slice(self, node: ast.Slice) -> slice:
        part = lambda n: None if n is None else self.operand(n)
        return slice(part(node.lower), part(node.upper), part(node.step))

    # --------------------------------------------------------------------------- calls

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of a call."""
        kwargs: dict[str, Any] = {}
        for item in node.keywords:
            if item.arg is None:
                kwargs.update(self.mapping(item.value))
            else:
                kwargs[item.arg] = self.eval(item.value)
        args = self.items(node.args)
        for k, value in enumerate(args):
            if type(value) is Pending:
                args[k] = self.settle(value, "v")
        return args, kwargs

    def values(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call of a function that takes values, and no functions."""
        args, kwargs = self.arguments(node)
        for k, value in enumerate(args):
            if type(value) not in PASSED:
                args[k] = allowed.passed(value, self.interpreted)
        for name, value in kwargs.items():
            if type(value) not in PASSED:
                kwargs[name] = allowed.passed(value, self.interpreted)
        return args, kwargs

    def one_value(self, value: object) -> Any:
        """A value that the program or a function takes. Raises NotAllowed for what is none."""
        return value if type(value) in PASSED else allowed.passed(value, self.interpreted)

    def range_over(self, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What `range` gives; the statement parser makes a loop of it."""
        if kwargs:
            raise self.error(node, f"range takes no {next(iter(kwargs))}= here",
                             "only the range of a loop takes annotations={...}")
        return range(*args)

    def eval_call(self, node: ast.Call) -> Any:
        try:
            fn = self.looked_into(node.func)
        except DiagnosticError:
            name = getattr(node.func, "id", "")
            if hasattr(builtins, name):
                raise self.unknown(node, name) from None
            raise
        if isinstance(fn, T.Form):
            return self.call_form(node, fn)
        if id(fn) in OFFERED and not isinstance(fn, Expands):
            args, kwargs = self.values(node)
            try:
                return fn(*args, **kwargs)
            except TypeError as error:
                raise self.misfit(node, error) from None
        if isinstance(fn, GlobalVar):
            return self.call_global(node, fn, self.values(node)[0])
        builtin = bounded.CALLED.get(id(fn))
        if builtin is not None:
            args, kwargs = (self.arguments if fn is isinstance else self.values)(node)
            if fn is range:
                return self.range_over(node, args, kwargs)
            return self.called(node, builtin, [self.budget, *args], kwargs)
        if isinstance(fn, Expands):
            return fn.expand_in_script(self, node, *self.arguments(node))
        if allowed.may_call(fn):
            return self.called(node, fn, *self.values(node))
        if allowed.is_helper(fn):
            return self.interpret(node, fn, *self.arguments(node))
        raise self.error(
            node, f"{written(node.func)} cannot be called in a script: scripts are parsed "
            "and never executed", "compute the value outside and mention it by name, or use "
            "T.macro")

    def called(self, node: ast.Call, fn: Callable, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What a function gives; arguments that are not its own are a mistake at the call."""
        try:
            return fn(*args, **kwargs)
        except TypeError as error:
            raise self.misfit(node, error) from None

    def misfit(self, node: ast.Call, error: TypeError) -> BaseException:
        """The error of a call, which names the function where its arguments are not its own."""
        text = str(error)
        if "positional argument" in text or "keyword" in text:
            return self.error(node, f"{written(node.func)}: {text.partition('() ')[2] or text}")
        return self.mistake(node, error)

    def interpret(self, node: ast.AST, fn: types.FunctionType, args: list[Any],
                  kwargs: dict[str, Any]) -> Any:
        """A function of the user's: assignments, conditions on Python values and a return."""
        source, tree = find_function(fn)
        if tree is None:
            raise self.error(node, f"the source of {fn.__name__} is not available, and scripts "
                                   "never execute functions")
        bound = inspect.signature(fn).bind(*args, **kwargs)
        bound.apply_defaults()
        inner = Evaluator(source, source.environment_of(fn), self.budget)
        inner.caller = self
        inner.scopes.append(dict(bound.arguments))
        self.budget.again(tree)
        self.budget.enter()
        try:
            return helper_function.run(inner, tree.body)[1]
        finally:
            self.budget.leave()

    def interpreted(self, fn: types.FunctionType) -> ScriptFunction:
        """A function of the user's that is passed on, to be read where it is called."""
        names = list(inspect.signature(fn).parameters)
        here = ast.Pass(lineno=0, col_offset=0)
        return ScriptFunction(names, lambda *args: self.interpret(here, fn, list(args), {}))

    def call_form(self, node: ast.Call, form: T.Form) -> Any:
        """A word of the script language; the statement parser overrides this."""
        if isinstance(form, T.BufferName):
            args, kwargs = self.values(node)
            return form(*args, **kwargs)
        return self.form_in_helper(self, node, form)

    def form_in_helper(self, helper: Evaluator, node: ast.Call, form: T.Form) -> Any:
        """A word in a helper function: one that makes a buffer does so where the helper is called;
        the statement parser, which has such a place, overrides this."""
        if self.caller is not None:
            return self.caller.form_in_helper(helper, node, form)
        raise helper.error(node, f"T.{form.name} has no meaning here")

    def call_global(self, node: ast.AST, var: GlobalVar, args: list[Any]) -> Any:
        """A call of a function of the module."""
        if self.make_global_call is not None:
            return self.make_global_call(var, args)
        values = [a.data if isinstance(a, Buffer) else O.convert(T.as_expr(a)) for a in args]
        return E.Call("void", var, values)


_TABLE: dict[type, Callable[[Evaluator, Any], Any]] = {
    ast.Constant: Evaluator.eval_constant, ast.Name: Evaluator.lookup,
    ast.Attribute: Evaluator.eval_attribute, ast.BinOp: Evaluator.eval_binop,
    ast.UnaryOp: Evaluator.eval_unaryop, ast.BoolOp: Evaluator.eval_boolop,
    ast.Compare: Evaluator.eval_compare, ast.IfExp: Evaluator.eval_ifexp,
    ast.Tuple: lambda self, node: tuple(self.items(node.elts)),
    ast.List: lambda self, node: self.items(node.elts),
    ast.Dict: Evaluator.eval_dict, ast.JoinedStr: Evaluator.eval_joinedstr,
    ast.ListComp: Evaluator.eval_comprehension, ast.GeneratorExp: Evaluator.eval_comprehension,
    ast.Lambda: Evaluator.eval_lambda,
    ast.Subscript: lambda self, node: self.eval_subscript(node),
    ast.Slice: Evaluator.eval_slice,
    ast.Call: lambda self, node: self.eval_call(node),
}

__all__ = ["Evaluator"]
