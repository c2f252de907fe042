"""Evaluates the expressions of a script over its syntax tree, without ever running them.

Values are IR expressions, buffers, and the Python values a script mentions. Only functions of this
package, arithmetic on numbers and a few harmless builtins are called; a function of the user's is
interpreted from its own source.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import inspect
import math
import operator
import types
from typing import Any, Callable, Mapping

from ..ir.diagnostics import DiagnosticError, MLCError
from ..ir.module import GlobalVar
from ..tir import expr as E
from ..tir import op as O
from ..tir.buffer import Buffer
from . import helper_function
from . import tir as T
from .indexing import buffer_indices, load
from .source import Source, find_function
from .values import Hidden, ModuleRef, Pending, described, is_floating, is_number

#: builtins that a script may call on Python values
_BUILTINS = {f: f for f in (len, int, float, bool, str, abs, min, max, sum, tuple, list, range,
                            enumerate, zip, sorted, reversed, divmod, round, slice, dict, pow)}
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
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}
_WRAPPED = (TypeError, ValueError, ZeroDivisionError, AttributeError, KeyError, IndexError,
            OverflowError, MLCError)
#: packages whose functions may be called from a script
_CALLABLE_PACKAGES = ("mlc_lab.tir", "mlc_lab.script", "mlc_lab.ir", "mlc_lab.relax",
                      "mlc_lab.compat.")


class Evaluator:
    """Expressions. `scopes` are the script's own names, `env` those of the place it stands in."""

    #: how the language being parsed writes a call of a function of the module, if not as TensorIR
    make_global_call: Callable[[GlobalVar, list], Any] | None = None

    def __init__(self, source: Source, env: Mapping[str, Any]) -> None:
        self.source = source
        self.env = env
        self.scopes: list[dict[str, Any]] = [{}]

    # --------------------------------------------------------------------------- errors, names

    def error(self, node: Any, message: str, hint: str = "") -> DiagnosticError:
        """The error for a mistake at a node of the syntax tree."""
        return self.source.error(node, message, hint)

    def define(self, name: str, value: Any) -> None:
        """Bind a name in the innermost scope."""
        self.scopes[-1][name] = value

    def lookup(self, node: ast.Name) -> Any:
        """The value of a name."""
        name = node.id
        for scope in reversed(self.scopes):
            if name in scope:
                value = scope[name]
                if type(value) is Hidden:
                    raise self.error(node, value.reason, value.hint)
                return value
        if name in self.env:
            return self.env[name]
        found = getattr(builtins, name, self)
        if found is not self:
            return found
        if name == "metadata":
            raise self.error(node, "the constants are not in this text",
                             "print the program with script(show_meta=True) to keep them")
        known = {n for s in self.scopes for n in s} | set(self.env)
        close = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 3)
        hint = f"did you mean {' or '.join(close)}?" if close else (
            "define it before this line, or in the scope around the function")
        raise self.error(node, f"undefined name {name!r}", hint)

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
        except _WRAPPED as error:
            raise self.error(node, _message(error)) from None

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
        if isinstance(node.value, (bytes, complex)):
            raise self.error(node, f"{type(node.value).__name__} has no meaning in a script")
        return node.value

    def eval_attribute(self, node: ast.Attribute) -> Any:
        base = self.eval(node.value)
        name = node.attr
        if isinstance(base, Pending):
            base = self.settle(base, "v")
        if isinstance(base, ModuleRef):
            if name in base.functions:
                return base.functions[name]
            have = ", ".join(base.functions) or "none"
            raise self.error(node, f"the module has no function {name!r}", f"it has: {have}")
        if name.startswith("_"):
            raise self.error(node, f"names such as {name!r} cannot be used in a script")
        try:
            return getattr(base, name)
        except AttributeError:
            names = getattr(base, "NAMES", None) if isinstance(base, types.ModuleType) else None
            names = names or [n for n in dir(base) if not n.startswith("_")]
            close = difflib.get_close_matches(name, names, 3)
            prefix = ast.unparse(node.value)
            hint = f"did you mean {' or '.join(f'{prefix}.{c}' for c in close)}?" if close else ""
            what = (f"{prefix} has no name {name!r}" if isinstance(base, types.ModuleType)
                    or isinstance(base, type) else
                    f"{prefix} ({described(base)}) has no attribute {name!r}")
            end = types.SimpleNamespace(
                lineno=node.end_lineno, end_lineno=node.end_lineno,
                col_offset=node.end_col_offset - len(name), end_col_offset=node.end_col_offset)
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
            return fn(a, b)
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
            return O.logical_not(value) if isinstance(value, E.PrimExpr) else not value
        if isinstance(node.op, ast.USub):
            return -value
        return ~value if isinstance(node.op, ast.Invert) else value

    def eval_boolop(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)
        build = O.logical_and if is_and else O.logical_or
        result = self.operand(node.values[0])
        for item in node.values[1:]:
            if not isinstance(result, E.PrimExpr):
                if bool(result) is not is_and:
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
                part = _COMPARE_PLAIN[type(op)](left, right)
            if result is None:
                result = part
            elif isinstance(result, E.PrimExpr) or isinstance(part, E.PrimExpr):
                result = O.logical_and(result, part)
            else:
                result = result and part
            left = right
        return result

    def eval_ifexp(self, node: ast.IfExp) -> Any:
        test = self.operand(node.test)
        if not isinstance(test, E.PrimExpr):
            return self.eval(node.body if test else node.orelse)
        return O.if_then_else(test, self.operand(node.body), self.operand(node.orelse))

    # --------------------------------------------------------------------------- containers

    def items(self, nodes: list[ast.expr]) -> list[Any]:
        """Values of a list of expressions, `*x` spread."""
        out: list[Any] = []
        for item in nodes:
            if isinstance(item, ast.Starred):
                out.extend(self.eval(item.value))
            else:
                out.append(self.eval(item))
        return out

    def eval_dict(self, node: ast.Dict) -> Any:
        out: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                out.update(self.eval(value))
            else:
                out[self.eval(key)] = self.eval(value)
        return out

    def eval_joinedstr(self, node: ast.JoinedStr) -> str:
        parts = []
        for item in node.values:
            if isinstance(item, ast.Constant):
                parts.append(str(item.value))
            else:
                spec = self.eval_joinedstr(item.format_spec) if item.format_spec else ""
                parts.append(format(self.eval(item.value), spec))
        return "".join(parts)

    def eval_comprehension(self, node: Any) -> list[Any]:
        """[f(x) for x in values if test], over Python values."""
        out: list[Any] = []

        def run(index: int) -> None:
            if index == len(node.generators):
                out.append(self.eval(node.elt))
                return
            part = node.generators[index]
            for value in self.eval(part.iter):
                self.assign_names(part.target, value)
                if all(self.eval(test) for test in part.ifs):
                    run(index + 1)

        self.scopes.append({})
        run(0)
        self.scopes.pop()
        return out

    def assign_names(self, target: ast.AST, value: Any) -> None:
        """Bind plain Python values to a target, without any IR."""
        if isinstance(target, ast.Name):
            self.define(target.id, value)
            return
        values = list(value)
        if len(values) != len(target.elts):
            raise self.error(target, f"{len(values)} values for {len(target.elts)} names")
        for item, part in zip(target.elts, values):
            self.assign_names(item, part)

    def eval_lambda(self, node: ast.Lambda) -> Callable:
        names = [a.arg for a in node.args.args]
        scopes = list(self.scopes)

        def call(*args: Any) -> Any:
            saved, self.scopes = self.scopes, [*scopes, dict(zip(names, args))]
            try:
                return self.eval(node.body)
            finally:
                self.scopes = saved

        call.__signature__ = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])
        call.from_script = True
        return call

    # --------------------------------------------------------------------------- subscripts

    def eval_subscript(self, node: ast.Subscript) -> Any:
        base = self.eval(node.value)
        if isinstance(base, Pending):
            base = self.settle(base, "v")
        if isinstance(base, Buffer):
            return load(self, node, base, buffer_indices(self, node, base))
        index = self.eval(node.slice)
        if isinstance(index, E.IntImm):
            index = index.value
        if isinstance(base, E.PrimExpr):
            raise self.error(node, f"{ast.unparse(node.value)} is a scalar of type {base.dtype} "
                                   "and has no elements")
        if isinstance(base, E.Var):
            raise self.error(node, "a variable has no elements")
        return base[index]

    def eval_slice(self, node: ast.Slice) -> slice:
        part = lambda n: None if n is None else self.operand(n)
        return slice(part(node.lower), part(node.upper), part(node.step))

    # --------------------------------------------------------------------------- calls

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of a call."""
        kwargs: dict[str, Any] = {}
        for item in node.keywords:
            if item.arg is None:
                kwargs.update(self.eval(item.value))
            else:
                kwargs[item.arg] = self.eval(item.value)
        return self.items(node.args), kwargs

    def range_over(self, node: ast.Call, args: list[Any]) -> Any:
        """What `range` gives; the statement parser makes a loop of it."""
        return range(*args)

    def eval_call(self, node: ast.Call) -> Any:
        fn = self.eval(node.func)
        if isinstance(fn, T.Form):
            return self.call_form(node, fn)
        args, kwargs = self.arguments(node)
        args = [self.settle(a, "v") if isinstance(a, Pending) else a for a in args]
        if isinstance(fn, GlobalVar):
            return self.call_global(node, fn, args)
        try:
            known = fn in _BUILTINS
        except TypeError:
            known = False
        if known:
            if fn is range:
                return self.range_over(node, args)
            return fn(*args, **kwargs)
        expand = getattr(fn, "expand_in_script", None)
        if expand is not None:
            return expand(self, node, args, kwargs)
        if self.may_call(fn):
            try:
                return fn(*args, **kwargs)
            except TypeError as error:
                if "positional argument" in str(error) or "keyword" in str(error):
                    text = ast.unparse(node.func)
                    raise self.error(node, f"{text}: {_arity(error)}") from None
                raise
        if isinstance(fn, types.FunctionType):
            return self.interpret(node, fn, args, kwargs)
        raise self.error(
            node, f"{ast.unparse(node.func)} cannot be called in a script: scripts are parsed and "
            "never executed", "compute the value outside and mention it by name, or use T.macro")

    def may_call(self, fn: Any) -> bool:
        """Whether calling a function builds IR or computes with numbers, and does nothing else."""
        if getattr(fn, "from_script", False) or isinstance(fn, T.DtypeName):
            return True
        owner = getattr(fn, "__self__", None)
        if isinstance(owner, (E.Node, str)) or type(owner).__name__ == "_CallableStr":
            return True
        if type(fn).__name__ == "_CallableStr":
            return True
        if isinstance(owner, types.ModuleType) and owner is math:
            return True
        module = getattr(fn, "__module__", None) or ""
        if module == "math" or (module.startswith("numpy") and isinstance(fn, type)):
            return True
        return (module + ".").startswith(tuple(p + "." for p in _CALLABLE_PACKAGES)) or (
            module.startswith(_CALLABLE_PACKAGES[-1]))

    def interpret(self, node: ast.AST, fn: types.FunctionType, args: list[Any],
                  kwargs: dict[str, Any]) -> Any:
        """A function of the user's: assignments, conditions on Python values and a return."""
        source, tree = find_function(fn)
        if tree is None:
            raise self.error(node, f"the source of {fn.__name__} is not available, and scripts "
                                   "never execute functions")
        bound = inspect.signature(fn).bind(*args, **kwargs)
        bound.apply_defaults()
        inner = Evaluator(source, source.environment_of(fn))
        inner.scopes.append(dict(bound.arguments))
        return helper_function.run(inner, tree.body)[1]

    def call_form(self, node: ast.Call, form: T.Form) -> Any:
        """A word of the script language; the statement parser overrides this."""
        if isinstance(form, T.BufferName):
            args, kwargs = self.arguments(node)
            return form(*args, **kwargs)
        raise self.error(node, f"T.{form.name} has no meaning here")

    def call_global(self, node: ast.AST, var: GlobalVar, args: list[Any]) -> Any:
        """A call of a function of the module."""
        if self.make_global_call is not None:
            return self.make_global_call(var, args)
        values = [a.data if isinstance(a, Buffer) else O.convert(T.as_expr(a)) for a in args]
        return E.Call("void", var, values)


def _message(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, KeyError) and error.args:
        return f"no key {error.args[0]!r}"
    return text or type(error).__name__


def _arity(error: TypeError) -> str:
    text = str(error)
    return text.split("() ", 1)[1] if "() " in text else text


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
