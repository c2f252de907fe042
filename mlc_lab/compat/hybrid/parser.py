"""Hybrid scripts read: the syntax tree of a Python function as loops over buffers.

Nothing is executed. What Python can say of numbers is worked out while reading; what it says of
elements becomes expressions.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...ir.diagnostics import DiagnosticError
from ...ir.recursion import grows_stack
from ...te import PlaceholderOp, Tensor, TensorSlice
from ...te.hybrid_op import HybridOp
from ...tir import op as O
from ...tir.buffer import Buffer, decl_buffer, extent_of
from ...tir.expr import (
    BufferLoad, IntImm, IterVar, PrimExpr, Range, StringImm, Var, const_index,
)
from ...tir.functor import free_vars, pre_order
from ...tir.stmt import (
    AssertStmt, Block, BlockRealize, BufferStore, Evaluate, For, ForKind, IfThenElse, Stmt, seq,
)
from .names import Uses, is_const_range, uses_of
from .words import IN_EXPRESSIONS, LOOPS

if TYPE_CHECKING:
    from ...script.source import Source

_BINARY: dict[type[ast.operator], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}
_COMPARED: dict[type[ast.cmpop], Any] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}
#: statements that one script may become, with const_range written out
MOST_STATEMENTS = 100_000
#: scripts that call each other, one in another
MOST_CALLS = 40


class Whole:
    """A tensor of the script, or a row of it: its buffer and the indices given so far."""

    def __init__(self, buffer: Buffer, indices: tuple[PrimExpr, ...] = ()) -> None:
        self.buffer, self.indices = buffer, indices

    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The extents of the dimensions that have no index yet."""
        return self.buffer.shape[len(self.indices):]

    @property
    def dtype(self) -> str:
        """The type of an element."""
        return self.buffer.dtype

    def __len__(self) -> int:
        return O.as_int(self.shape[0]) or 0

    def at(self, indices: Sequence[Any]) -> Any:
        """The element, or a row while indices are missing."""
        found = (*self.indices, *map(const_index, indices))
        if len(found) == len(self.buffer.shape):
            return BufferLoad(self.buffer, found)
        return Whole(self.buffer, found)


class Level:
    """A loop whose body is being read, or the function: its memory, and names that end with it.
    The iterations of a loop may run `at_once`."""

    def __init__(self, node: ast.For | None, at_once: bool = False) -> None:
        self.node, self.at_once = node, at_once
        self.allocated: list[Buffer] = []
        self.names: list[str] = []


class Program:
    """What all functions of one script share: the operation that is made."""

    def __init__(self) -> None:
        self.inputs: dict[Buffer, Tensor] = {}
        self.nests: list[list[IterVar]] = []
        self.statements = 0
        self.calls = 0  # scripts that are being read, one in another


class Reader:
    """Reads one function. A script that another one calls is read into the same Program."""

    def __init__(self, program: Program, source: Source, node: ast.FunctionDef,
                 environment: Mapping[str, Any], levels: list[Level] | None = None) -> None:
        self.program, self.source, self.node = program, source, node
        self.environment = environment
        self.levels = levels or [Level(None)]
        self.depth = len(self.levels)  # the levels of its own begin here
        self.nested = levels is not None
        self.names: dict[str, Any] = {}
        self.parameters: frozenset[str] = frozenset()
        self.scalars: dict[str, Buffer] = {}
        self.outputs: list[Buffer] = []
        self.uses: dict[str, Uses] = uses_of(node.body)
        #: the loops around, of this function
        self.loops: tuple[ast.For, ...] = ()
        #: axes of loops whose block has not begun
        self.open: list[IterVar] = []
        self.returned: list[Whole] = []

    def error(self, node: Any, message: str, hint: str = "") -> DiagnosticError:
        """The error at a node."""
        return self.source.error(node, message, hint)

    # -------------------------------------------------------------------- functions

    def run(self, args: Sequence[Any]) -> Stmt:
        """The statements of the function for some arguments."""
        spec = self.node.args
        names = [a.arg for a in spec.args]
        if spec.vararg or spec.kwarg or spec.kwonlyargs or spec.defaults:
            raise self.error(self.node, "a hybrid script takes plain arguments")
        if len(names) != len(args):
            raise self.error(self.node, f"{self.node.name} takes {len(names)} arguments, "
                             f"got {len(args)}")
        self.parameters = frozenset(names)
        self.names.update(zip(names, args))
        body = [s for s in self.node.body if not (
            isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if not body or not isinstance(body[-1], ast.Return) or body[-1].value is None:
            raise self.error(self.node, "a hybrid script ends in `return` with its outputs")
        done = self.statements(body[:-1]) or _nothing()
        result = self.value(body[-1].value)
        self.returned = list(result) if isinstance(result, tuple) else [result]
        for one in self.returned:
            if not isinstance(one, Whole) or one.indices or one.buffer not in self.outputs:
                raise self.error(body[-1], "what is returned are tensors made by output_tensor()")
        return done

    def statements(self, body: Sequence[ast.stmt]) -> Stmt | None:
        """Statements in a row."""
        out: list[Stmt] = []
        for at, node in enumerate(body):
            self.program.statements += 1
            if self.program.statements > MOST_STATEMENTS:
                raise self.error(node, f"the script becomes more than {MOST_STATEMENTS} statements",
                                 "use range() or unroll() in place of const_range()")
            if isinstance(node, ast.Assert):
                message = "" if node.msg is None else self.value(node.msg)
                rest = self.statements(body[at + 1:]) or _nothing()
                out.append(AssertStmt(self.condition(node.test), StringImm(str(message)), rest))
                break
            method = getattr(self, f"do_{type(node).__name__}", None)
            if method is None:
                raise self.error(node, f"{type(node).__name__} is no statement of hybrid scripts",
                                 "they have loops, if, assignments, assert and return")
            done = method(node)
            if done is not None:
                out.append(done)
        return seq(*out) if out else None

    def do_Pass(self, node: ast.Pass) -> None:
        return None

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            raise self.error(node, "the result of this expression is not used")

    def do_Return(self, node: ast.Return) -> None:
        raise self.error(node, "return stands at the end of the script")

    # -------------------------------------------------------------------- assignments

    def do_Assign(self, node: ast.Assign) -> Stmt | None:
        if len(node.targets) != 1:
            raise self.error(node, "one name or element is assigned at a time")
        target = node.targets[0]
        called = self.called_script(node.value)
        if called is not None:
            return self.do_call(node, target, *called)
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and (
                node.value.func.id in ("allocate", "output_tensor")):
            return self.do_allocate(node, target, node.value)
        value = self.value(node.value)
        if isinstance(target, ast.Name):
            return self.bind(node, target.id, value)
        return self.store(target, value)

    def do_AugAssign(self, node: ast.AugAssign) -> Stmt | None:
        value = self.binary(node, node.op, self.value(node.target), self.value(node.value))
        if isinstance(node.target, ast.Name):
            return self.bind(node, node.target.id, value)
        return self.store(node.target, value)

    def bind(self, node: ast.stmt, name: str, value: Any) -> Stmt | None:
        """A name for a value, or memory that holds it."""
        if name in self.parameters:
            raise self.error(node, f"{name} is a parameter, which is not assigned",
                             "give the value another name")
        if isinstance(self.names.get(name), (Whole, Var)):
            raise self.error(node, f"{name} is a tensor or a loop here, which is not assigned")
        uses = self.uses[name]
        plain = not isinstance(value, PrimExpr)
        if uses.once and plain or uses.fixed and not _reads_memory(value):
            self.names[name] = value
            if not plain or not isinstance(value, (int, float)):
                self.level_of(uses).names.append(name)
            return None
        if not isinstance(value, (PrimExpr, int, float)):
            raise self.error(node, f"{name} is assigned more than once and can be a number only, "
                             f"got {type(value).__name__}")
        value = _expr(value)
        if name not in self.scalars:
            level = self.level_of(uses)
            buffer = decl_buffer((1,), value.dtype, name, scope="local")
            level.allocated.append(buffer)
            level.names.append(name)
            self.scalars[name] = buffer
            self.names[name] = buffer
        buffer = self.scalars[name]
        home = next(k for k, lv in enumerate(self.levels) if buffer in lv.allocated)
        if any(level.at_once for level in self.levels[home + 1:]):
            raise self.error(node, f"{name} lives on from one iteration to the next, and these run "
                             "at the same time", "assign it first in the loop itself, outside of "
                             "branches, or use range()")
        if value.dtype != buffer.dtype:
            value = self.fitted(node, name, value, buffer.dtype)
        return BufferStore(buffer, value, [0])

    def fitted(self, node: ast.stmt, name: str, value: PrimExpr, dtype: str) -> PrimExpr:
        """A value for a name that holds another type, if the type holds it."""
        if O.match_types(O.const(0, dtype), O.convert(value))[0].dtype != dtype:
            raise self.error(node, f"{name} holds {dtype}, as its first value says, and is given "
                             f"{value.dtype}", f"begin with a value of {value.dtype}, such as "
                             f"`{name} = {value.dtype}(0)`")
        return O.cast(value, dtype)

    def level_of(self, uses: Uses) -> Level:
        """The loop, or the function, in which the memory of a name is made."""
        home = uses.home
        return self.levels[self.depth - 1 + len(home)] if home else self.levels[self.depth - 1]

    def store(self, target: ast.expr, value: Any) -> Stmt:
        """A value stored to an element."""
        if not isinstance(target, ast.Subscript):
            raise self.error(target, "this can not be assigned", "assign a name or an element")
        place = self.value(target)
        if not isinstance(place, BufferLoad):
            raise self.error(target, "only an element can be assigned: give an index for each "
                             "dimension")
        if not isinstance(value, (PrimExpr, int, float)):
            raise self.error(target, f"an element is a number, not a {type(value).__name__}")
        given = self.program.inputs.get(place.buffer)
        if given is not None and not isinstance(given.op, PlaceholderOp):
            raise self.error(target, f"{given.name} is the result of another stage, and other "
                             "stages read it: it cannot be changed", "copy it to an "
                             "output_tensor() or to allocate() first")
        return BufferStore(place.buffer, O.cast(_expr(value), place.buffer.dtype), place.indices)

    def do_allocate(self, node: ast.stmt, target: ast.expr, call: ast.Call) -> None:
        assert isinstance(call.func, ast.Name)
        kind = call.func.id
        if not isinstance(target, ast.Name) or not self.uses[target.id].once:
            raise self.error(node, f"{kind}() is given a name of its own, once")
        given = {k.arg: self.value(k.value) for k in call.keywords}
        words = ("shape", "dtype", "scope")
        given.update(zip(words, map(self.value, call.args)))
        if not set(given) <= set(words[:2 if kind == "output_tensor" else 3]) or (
                not isinstance(given.get("shape"), (tuple, list))):
            raise self.error(call, f"{kind}() takes the shape as a tuple and the dtype" + (
                ", and the scope" if kind == "allocate" else ""))
        shape = [extent_of(d) for d in given["shape"]]
        buffer = decl_buffer(shape, given.get("dtype", "float32"), target.id,
                             scope=given.get("scope", "global"))
        level, uses = self.levels[self.depth - 1], self.uses[target.id]
        if kind == "output_tensor":
            if self.loops or uses.stores[0].maybe:
                raise self.error(node, "output_tensor() stands outside of loops and branches")
            self.outputs.append(buffer)
            if self.nested:
                level.allocated.append(buffer)
        else:
            level = self.level_of(uses)
            level.allocated.append(buffer)
            level.names.append(target.id)
        if any(uses_a_loop(d, level, self.levels) for d in shape):
            raise self.error(node, "the shape names a loop that does not stand around the memory")
        self.names[target.id] = Whole(buffer)

    # -------------------------------------------------------------------- calls of scripts

    def called_script(self, node: ast.expr) -> tuple[Any, list[Any]] | None:
        """The hybrid script that an expression calls, and its arguments."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            return None
        if isinstance(node.func, ast.Name):
            found = self.environment.get(node.func.id)
            read = getattr(found, "hybrid_source", None)
            if read is not None:
                return read(), [self.value(a) for a in node.args]
        return None

    def do_call(self, node: ast.Assign, target: ast.expr, read: Any, args: list[Any]) -> Stmt:
        if self.program.calls >= MOST_CALLS:
            raise self.error(node, f"more than {MOST_CALLS} scripts call each other",
                             "a script cannot call itself: write a loop")
        source, node_of, environment = read
        reader = Reader(self.program, source, node_of, environment, self.levels)
        reader.depth = len(self.levels)
        reader.open, saved = self.open, self.open
        self.program.calls += 1
        done = reader.run(args)
        self.program.calls -= 1
        self.open = saved
        results = reader.returned
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if len(names) != len(results):
            raise self.error(node, f"{len(results)} tensors are returned to {len(names)} names")
        for name, result in zip(names, results):
            if not isinstance(name, ast.Name):
                raise self.error(name, "what a script returns is given a name")
            self.names[name.id] = result
        return done

    # -------------------------------------------------------------------- loops, branches

    def do_If(self, node: ast.If) -> Stmt | None:
        test = self.condition(node.test)
        known = O.as_int(test)
        if known is not None:
            return self.statements(node.body if known else node.orelse)
        then = self.statements(node.body) or _nothing()
        return IfThenElse(test, then, self.statements(node.orelse) if node.orelse else None)

    def do_For(self, node: ast.For) -> Stmt | None:
        call = node.iter
        if not isinstance(node.target, ast.Name) or node.orelse or not (
                isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                and call.func.id in (*LOOPS, "const_range", "bind")) or call.keywords:
            raise self.error(node, "this is no loop of a hybrid script",
                             "write `for i in range(n):`, or parallel, vectorize, unroll, "
                             "const_range, or bind(\"threadIdx.x\", n)")
        args = [self.value(a) for a in call.args]
        name, kind = node.target.id, call.func.id
        if name in self.names:
            raise self.error(node.target, f"{name} is in use here: call the loop otherwise")
        if is_const_range(node):
            return self.repeated(node, name, args)
        tag = ""
        if kind == "bind":
            if len(args) != 2 or not isinstance(args[0], str):
                raise self.error(call, "bind() takes the name of a thread axis and an extent")
            tag = args.pop(0)
        if len(args) not in (1, 2):
            raise self.error(call, f"{kind}() takes an end, or a begin and an end")
        low, end = (const_index(_number(self, call, a)) for a in ([0, *args][-2:]))
        low, end = O.match_types(low, end)
        extent = end if O.is_const_int(low, 0) else O.sub(end, low)
        if kind == "unroll" and O.as_int(extent) is None:
            raise self.error(call, "how often an unrolled loop runs is known beforehand")
        return self.loop(node, name, low, extent, kind, tag)

    def repeated(self, node: ast.For, name: str, args: list[Any]) -> Stmt | None:
        """The iterations of const_range, one after another."""
        known = [O.as_int(O.convert(a)) for a in args]
        if len(args) not in (1, 2) or None in known:
            raise self.error(node.iter, "const_range() takes numbers that are known beforehand")
        out = []
        for value in range(*known):  # type: ignore[arg-type]
            self.names[name] = value
            done = self.statements(node.body)
            if done is not None:
                out.append(done)
        self.names.pop(name, None)
        return seq(*out) if out else None

    def loop(self, node: ast.For, name: str, low: PrimExpr, extent: PrimExpr, kind: str,
             tag: str) -> Stmt:
        """One loop. Its body is a block, unless it is one more loop."""
        var = Var(name, extent.dtype)
        thread = IterVar.from_fields(None, Var("", var.dtype), IterVar.ThreadIndex, tag)
        axis = IterVar(Range.from_min_extent(low, extent), var, IterVar.DataPar)
        level = Level(node, kind in ("parallel", "vectorize", "bind"))
        self.levels.append(level)
        self.loops = (*self.loops, node)
        self.names[name] = var
        around, self.open = self.open, [*self.open, axis]
        slot = len(self.program.nests)
        self.program.nests.append([])
        outermost = self.open
        one = len(node.body) == 1 and isinstance(node.body[0], ast.For) and not is_const_range(
            node.body[0])
        if not one:
            self.program.nests[slot] = outermost
            self.open = []
        body = self.statements(node.body) or _nothing()
        self.open = around
        self.levels.pop()
        self.loops = self.loops[:-1]
        for ended in level.names:
            self.names.pop(ended, None)
            self.scalars.pop(ended, None)
        self.names.pop(name)
        if one:
            del self.program.nests[slot]
        else:
            body = BlockRealize((), True, Block((), (), (), f"{self.node.name}_{name}", body,
                                                alloc_buffers=level.allocated))
        return For(var, low, extent, ForKind.THREAD_BINDING if tag else LOOPS[kind], body,
                   thread if tag else None)

    # -------------------------------------------------------------------- expressions

    def condition(self, node: ast.expr) -> PrimExpr:
        """A condition as an expression."""
        value = self.value(node)
        if isinstance(value, (PrimExpr, int, float)):
            return O.convert(value) if isinstance(value, PrimExpr) else O.const(bool(value), "bool")
        raise self.error(node, f"a {type(value).__name__} is no condition")

    def value(self, node: ast.expr) -> Any:
        """What an expression is: an expression, a number, a tensor, a list of such."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            raise self.error(node, f"{type(node).__name__} is no expression of hybrid scripts")
        found = method(node)
        if isinstance(found, IntImm):
            return bool(found.value) if found.dtype == "bool" else found.value
        return found

    def of_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (bool, int, float, str)):
            return _bounded(self, node, node.value)
        raise self.error(node, f"{node.value!r} is no value of hybrid scripts")

    def of_Name(self, node: ast.Name) -> Any:
        name = node.id
        if name in self.names:
            found = self.names[name]
            return BufferLoad(found, [0]) if isinstance(found, Buffer) else found
        if name in self.uses and self.uses[name].stores:
            raise self.error(node, f"{name} has no value here",
                             "assign it before, and outside of the loop if it is read there")
        found = self.environment.get(name)
        if isinstance(found, (bool, int, float, str, PrimExpr)) or _is_data(found):
            return found
        if found is None:
            raise self.error(node, f"nothing is called {name}")
        raise self.error(node, f"{name} is a {type(found).__name__}, which a hybrid script cannot "
                         "use", "it may use numbers, lists of numbers, and other hybrid scripts")

    def of_Tuple(self, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
        return tuple(map(self.value, node.elts))

    of_List = of_Tuple

    def of_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, Whole) and node.attr in ("shape", "dtype"):
            return getattr(owner, node.attr)
        raise self.error(node, f"only a tensor's .shape and .dtype are read, not .{node.attr}")

    def of_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.value(node.value)
        index = self.value(node.slice) if not isinstance(node.slice, ast.Slice) else None
        if isinstance(owner, (tuple, list)):
            return self.of_list(node, owner, index if isinstance(index, tuple) else (index,))
        if isinstance(owner, Whole):
            indices = index if isinstance(index, tuple) else (index,)
            for one in indices:
                _number(self, node, one)
            if len(indices) > len(owner.shape):
                raise self.error(node, f"{owner.buffer.name} has {len(owner.buffer.shape)} "
                                 "dimensions, which is fewer than there are indices")
            return owner.at(indices)
        raise self.error(node, f"a {type(owner).__name__} has no elements")

    def of_list(self, node: ast.Subscript, owner: Any, indices: tuple[Any, ...]) -> Any:
        """An item of a list of the user's, as numpy takes it from lists of lists."""
        for index in indices:
            if not isinstance(owner, (tuple, list)) or not isinstance(index, int) or (
                    not -len(owner) <= index < len(owner)):
                raise self.error(node, "an index into a list is a number that is known beforehand, "
                                 "and within the list", "use const_range() for the loop")
            owner = owner[index]
        return owner

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return O.logical_not(value) if isinstance(value, PrimExpr) else not value
        value = _number(self, node, value)
        return {ast.USub: operator.neg, ast.UAdd: lambda x: x, ast.Invert: operator.invert}[
            type(node.op)](value)

    def of_BinOp(self, node: ast.BinOp) -> Any:
        return self.binary(node, node.op, self.value(node.left), self.value(node.right))

    def binary(self, node: Any, kind: ast.operator, a: Any, b: Any) -> Any:
        """An operator of two numbers."""
        done = _BINARY.get(type(kind))
        if done is None:
            raise self.error(node, f"{type(kind).__name__} is no operator of hybrid scripts")
        a, b = _number(self, node, a), _number(self, node, b)
        if isinstance(kind, (ast.LShift, ast.RShift)) and isinstance(b, int) and not 0 <= b < 64:
            raise self.error(node, "a shift is by 0 to 63")
        if isinstance(kind, ast.Div):  # Python's is a division of real numbers
            a, b = (O.cast(x, "float32") if isinstance(x, PrimExpr) and x.dtype.startswith(
                ("int", "uint")) else float(x) if isinstance(x, int) else x for x in (a, b))
        try:
            return _bounded(self, node, done(a, b))
        except ZeroDivisionError:
            raise self.error(node, "this divides by zero") from None
        except TypeError as error:
            raise self.error(node, str(error)) from None

    def of_Compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        out: Any = True
        for kind, right in zip(node.ops, map(self.value, node.comparators)):
            if type(kind) not in _COMPARED:
                raise self.error(node, "numbers are compared by < <= > >= == !=")
            one = _COMPARED[type(kind)](_number(self, node, left), _number(self, node, right))
            out, left = self.both(out, one if isinstance(one, bool) else O.convert(one)), right
        return out

    @staticmethod
    def both(a: Any, b: Any) -> Any:
        """a and b; the second is not looked at where the first does not hold."""
        if not isinstance(a, PrimExpr):
            return b if a else False
        return O.logical_and(a, O.convert(b))

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        values = map(self.value, node.values)
        out = next(values)
        for value in values:
            if isinstance(node.op, ast.And):
                out = self.both(out, value)
            elif not isinstance(out, PrimExpr):
                out = out if out else value
            else:
                out = O.logical_or(out, O.convert(value))
        return out

    def of_IfExp(self, node: ast.IfExp) -> Any:
        test = self.condition(node.test)
        known = O.as_int(test)
        if known is not None:
            return self.value(node.body if known else node.orelse)
        then, other = self.value(node.body), self.value(node.orelse)
        return O.if_then_else(test, _expr(then), _expr(other))

    def of_Call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.error(node, "only the words of hybrid scripts are called, and other scripts")
        name = node.func.id
        if name == "len":
            return self.length(node)
        if name in ("allocate", "output_tensor") or self.called_script(node) is not None:
            raise self.error(node, f"what {name}() makes is given a name first")
        if name not in IN_EXPRESSIONS:
            raise self.error(node, f"{name} is no word of hybrid scripts",
                             f"they have {', '.join(sorted(IN_EXPRESSIONS))}")
        args = [self.value(a) for a in node.args]
        if name not in ("inf", "ninf", "max_num_threads"):
            args = [_expr(_number(self, node, a)) for a in args]
        try:
            return IN_EXPRESSIONS[name](*args)
        except (TypeError, ValueError) as error:
            raise self.error(node, str(error)) from None

    def length(self, node: ast.Call) -> Any:
        """len() of a list or a tensor."""
        owner = self.value(node.args[0]) if len(node.args) == 1 else None
        if isinstance(owner, Whole):
            return owner.shape[0]
        if isinstance(owner, (tuple, list)):
            return len(owner)
        raise self.error(node, "len() is that of a tensor or a list")


def _nothing() -> Stmt:
    return Evaluate(IntImm("int32", 0))


def _expr(value: Any) -> PrimExpr:
    return value if isinstance(value, PrimExpr) else O.convert(value)


def _reads_memory(value: Any) -> bool:
    return isinstance(value, PrimExpr) and any(isinstance(e, BufferLoad) for e in pre_order(value))


def _number(reader: Reader, node: Any, value: Any) -> Any:
    if isinstance(value, (PrimExpr, int, float)):
        return value
    what = f"tensor {value.buffer.name}" if isinstance(value, Whole) else type(value).__name__
    raise reader.error(node, f"a number is needed here, and this is a {what}")


def _bounded(reader: Reader, node: Any, value: Any) -> Any:
    if isinstance(value, int) and not -2 ** 63 <= value < 2 ** 64:
        raise reader.error(node, "a whole number has 64 bits at most")
    return value


def _is_data(value: Any) -> bool:
    """Whether a value of the user's is a list of numbers, however deep."""
    return isinstance(value, (tuple, list)) and all(
        isinstance(v, (bool, int, float, str, PrimExpr)) or _is_data(v) for v in value)


def uses_a_loop(extent: PrimExpr, level: Level, levels: Sequence[Level]) -> bool:
    """Whether an extent names a loop inside of a level."""
    inside = {lv.node.target.id for lv in levels[levels.index(level) + 1:]
              if lv.node is not None and isinstance(lv.node.target, ast.Name)}
    return any(v.name in inside for v in free_vars(extent))


@grows_stack
def read(source: Source, node: ast.FunctionDef | None, environment: Mapping[str, Any],
         args: Sequence[Any], name: str) -> HybridOp:
    """The operation that a hybrid script is for some arguments: tensors, numbers, variables, and
    lists of these. Raises DiagnosticError, which points into the script."""
    if node is None:
        raise DiagnosticError(f"the source of {name} cannot be found: write it in a file or in a "
                              "cell of a notebook", source.filename, 1)
    program = Program()

    def given(value: Any) -> Any:
        if isinstance(value, TensorSlice):
            value = value.asobject()
        if isinstance(value, Tensor):
            known = next((b for b, t in program.inputs.items() if t is value), None)
            if known is None:
                known = decl_buffer(value.shape, value.dtype, value.op.name)
                program.inputs[known] = value
            return Whole(known)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return tuple(map(given, value))
        if isinstance(value, IntImm):
            return value.value
        return value

    reader = Reader(program, source, node, environment)
    body = reader.run([given(a) for a in args])
    outputs = [w.buffer for w in reader.returned]
    if len(set(outputs)) != len(outputs):
        raise reader.error(node, "a tensor is returned twice")
    top = reader.levels[0]
    kept = [b for b in reader.outputs if b not in outputs]
    return HybridOp(name, list(program.inputs.values()), list(program.inputs), outputs, body,
                    program.nests, [*top.allocated, *kept])


__all__ = ["MOST_STATEMENTS", "Program", "Reader", "Whole", "read"]
