"""Parse of print is the identity on random programs."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laws import check_roundtrip
from mlc_lab.tir import IterVar, Range, access, decl_buffer, expr, op, stmt
from mlc_lab.tir.function import PrimFunc

DTYPES = ["int32", "int64", "float32", "float16", "bool", "uint8"]
NAMES = ["A", "B", "i", "i_1", "x", "in", "T", "buffer", "a.b"]


class Maker:
    """Draws a program, statement by statement; remembers what is defined where."""

    def __init__(self, draw):
        self.draw = draw
        self.vars = []
        self.buffers = []
        self.lets = True

    def pick(self, items):
        return self.draw(st.sampled_from(list(items)))

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def expr(self, dtype, depth):
        """An expression of a type; leaves are constants, variables and loads."""
        leaves = [v for v in self.vars if v.dtype == dtype]
        loads = [b for b in self.buffers if b.dtype == dtype]
        kind = self.number(0, 12) if depth > 0 else self.number(0, 2)
        if kind == 0 and leaves:
            return self.pick(leaves)
        if kind == 1 and loads:
            return self.load(self.pick(loads), depth)
        if kind <= 2:
            if dtype.startswith("float"):
                value = self.draw(st.floats(-100, 100, width=32))
                return expr.FloatImm(dtype, value)
            return expr.IntImm(dtype, self.number(0, 1) if dtype == "bool" else self.number(
                0, 9) if dtype == "uint8" else self.number(-9, 9))
        if dtype == "bool":
            other = self.pick(["int32", "float32"])
            if kind < 6:
                cls = self.pick([expr.LT, expr.LE, expr.EQ, expr.NE, expr.GT, expr.GE])
                return cls(self.expr(other, depth - 1), self.expr(other, depth - 1))
            if kind < 10:
                cls = self.pick([expr.And, expr.Or])
                return cls(self.expr("bool", depth - 1), self.expr("bool", depth - 1))
            return expr.Not(self.expr("bool", depth - 1))
        if kind == 3:
            return expr.Cast(dtype, self.expr(self.pick(DTYPES), depth - 1))
        if kind == 4:
            return expr.Select(self.expr("bool", depth - 1), self.expr(dtype, depth - 1),
                               self.expr(dtype, depth - 1))
        if kind == 5:
            return expr.Call(dtype, "tir.if_then_else", (
                self.expr("bool", depth - 1), self.expr(dtype, depth - 1),
                self.expr(dtype, depth - 1)))
        if kind == 6 and self.lets:
            var = expr.Var(self.pick(NAMES), self.pick(["int32", "float32"]))
            value = self.expr(var.dtype, depth - 1)
            self.vars.append(var)
            body = self.expr(dtype, depth - 1)
            self.vars.pop()
            return expr.Let(var, value, body)
        if kind == 7 and dtype.startswith("float"):
            name = self.pick(["exp", "sqrt", "tanh", "floor", "fabs"])
            return expr.Call(dtype, f"tir.{name}", (self.expr(dtype, depth - 1),))
        classes = [expr.Add, expr.Sub, expr.Mul, expr.Min, expr.Max, expr.Div]
        if not dtype.startswith("float"):
            classes += [expr.FloorDiv, expr.FloorMod, expr.Mod]
        return self.pick(classes)(self.expr(dtype, depth - 1), self.expr(dtype, depth - 1))

    def load(self, buffer, depth):
        return expr.BufferLoad(buffer, self.indices(buffer, min(depth - 1, 1)))

    def indices(self, buffer, depth):
        """Indices, without lets: the regions of a block copy them, and a let binds only once."""
        self.lets, before = False, self.lets
        made = [self.expr("int32", depth) for _ in buffer.shape]
        self.lets = before
        return made

    def stmt(self, depth):
        """A statement and what is under it."""
        kind = self.number(0, 9) if depth > 0 else 0
        if kind <= 1:
            buffer = self.pick(self.buffers)
            return stmt.BufferStore(buffer, self.expr(buffer.dtype, 3),
                                    self.indices(buffer, 1))
        if kind <= 4:
            var = expr.Var(self.pick(NAMES), "int32")
            low = 0 if self.number(0, 2) else self.expr("int32", 1)
            extent = self.number(1, 9) if self.number(0, 2) else self.expr("int32", 1)
            notes = {} if self.number(0, 3) else {"key": op.const(self.number(0, 5))}
            self.vars.append(var)
            body = self.stmt(depth - 1)
            self.vars.pop()
            return stmt.For(var, low, extent, self.pick([0, 0, 0, 1, 2, 3]), body, None, notes)
        if kind == 5:
            other = self.stmt(depth - 1) if self.number(0, 1) else None
            return stmt.IfThenElse(self.expr("bool", 2), self.stmt(depth - 1), other)
        if kind == 6:
            var = expr.Var(self.pick(NAMES), self.pick(["int32", "float32"]))
            value = self.expr(var.dtype, 2)
            self.vars.append(var)
            body = self.stmt(depth - 1)
            self.vars.pop()
            return stmt.LetStmt(var, value, body)
        if kind == 7:
            return self.block(depth)
        if kind == 8:
            var = expr.Var(self.pick(NAMES), expr.PointerType("float32", self.pick(
                ["", "shared"])))
            buffer = decl_buffer((16,), "float32", self.pick(NAMES), data=var)
            self.buffers.append(buffer)
            body = self.stmt(depth - 1)
            self.buffers.pop()
            return stmt.Allocate(var, "float32", (expr.int32(16),), stmt.TRUE,
                                 stmt.DeclBuffer(buffer, body), {})
        return stmt.seq(*[self.stmt(depth - 1) for _ in range(self.number(2, 3))])

    def block(self, depth):
        """A block with iterators bound to loops and expressions."""
        iters, values = [], []
        for _ in range(self.number(0, 3)):
            extent = self.pick([4, 8, 16])
            low = self.pick([0, 0, 0, 2])
            iters.append(IterVar(Range.from_min_extent(low, extent),
                                 expr.Var(self.pick(["vi", "vj", "vk"]), "int32"),
                                 self.pick([0, 0, 2, 3, 4])))
            values.append(self.expr("int32", 2))
        self.vars += [iv.var for iv in iters]
        allocs = []
        if self.number(0, 3) == 0:
            allocs.append(decl_buffer((4, 4), self.pick(["float32", "float16"]), "tmp",
                                      scope=self.pick(["", "local"])))
            self.buffers += allocs
        body = self.stmt(depth - 1)
        init = self.stmt(0) if any(iv.iter_type == 2 for iv in iters) else None
        made = stmt.Block(iters, (), (), self.pick(["b", "C", 'quote"d']), body, init, allocs)
        reads, writes, _ = access.block_access_regions(made)
        made = made.replace(reads=reads, writes=writes)
        if self.number(0, 3) == 0:
            made = made.replace(annotations={"text": "x", "list": (op.const(1), op.const(2))})
        del self.vars[len(self.vars) - len(iters):]
        del self.buffers[len(self.buffers) - len(allocs):]
        where = self.expr("bool", 2) if self.number(0, 3) == 0 else True
        return stmt.BlockRealize(values, where, made)


@st.composite
def functions(draw):
    """A random PrimFunc with two buffer parameters and a scalar."""
    maker = Maker(draw)
    n = expr.Var("n", "int32")
    maker.buffers = [decl_buffer((16, 16), "float32", "A"),
                     decl_buffer((8,), draw(st.sampled_from(DTYPES)), "B")]
    maker.vars = [n]
    params = [*maker.buffers, n]
    body = maker.stmt(4)
    if any(isinstance(s, stmt.BlockRealize) for s in _under(body)):
        body = stmt.BlockRealize((), True, stmt.Block((), (), (), "root", body))
    return PrimFunc(params, body, attrs={"global_symbol": "main", "tir.noalias": True})


def _under(node):
    yield node
    for kid in node.children():
        yield from _under(kid)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(functions())
def test_random_programs_come_back(func):
    check_roundtrip(func)
