"""Random loop nests with random conditions: every lowering stage leaves the same numbers."""

from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlc_lab.lower import loop_partition
from mlc_lab.tir import expr as E
from mlc_lab.tir import op
from mlc_lab.tir import stmt as S
from mlc_lab.tir.buffer import decl_buffer
from mlc_lab.tir.expr import Var
from mlc_lab.tir.function import PrimFunc
from .programs import check_stages

KINDS = [S.ForKind.SERIAL, S.ForKind.SERIAL, S.ForKind.VECTORIZED, S.ForKind.UNROLLED,
         S.ForKind.PARALLEL]


class Nest:
    """Draws a program: loops of all kinds around stores to places of their own."""

    def __init__(self, draw):
        self.draw = draw
        self.a = decl_buffer((64,), "float32", "A")
        self.outputs = []
        self.loops = []

    def integer(self, low, high):
        return self.draw(st.integers(low, high))

    def affine(self, variables):
        """A random affine (or divided) expression."""
        e = op.const(self.integer(-20, 20))
        for v in variables:
            e = e + v * self.integer(-9, 9)
        if self.integer(0, 4) == 0:
            e = op.floordiv(e, self.integer(2, 5))
        elif self.integer(0, 4) == 0:
            e = op.floormod(e, self.integer(2, 7))
        return e

    def condition(self, variables):
        a, b = self.affine(variables), self.affine(variables[:self.integer(0, len(variables))])
        kind = self.draw(st.sampled_from(["<", "<", "<=", ">", ">=", "==", "!="]))
        e = {"<": op.less, "<=": op.less_equal, ">": op.greater, ">=": op.greater_equal,
             "==": op.equal, "!=": op.not_equal}[kind](a, b)
        if self.integer(0, 2) == 0:
            other = self.condition(variables)
            e = self.draw(st.sampled_from([op.logical_and, op.logical_or]))(e, other)
        return op.logical_not(e) if self.integer(0, 6) == 0 else e

    def value(self, variables):
        """A float value; it reads A inside of its bounds."""
        load = self.a[op.floormod(self.affine(variables), 64)]
        kind = self.integer(0, 5)
        if kind == 0:
            return op.if_then_else(self.condition(variables), load, op.const(1.5))
        if kind == 1:
            return op.select(self.condition(variables), load, op.const(2.5))
        if kind == 2:
            x = Var("x", "float32")
            return E.Let(x, load, x * x + 1.0)
        if kind == 3:
            return self.affine(variables).astype("float32") * load
        if kind == 4:
            return op.exp(load * 0.1) + self.value(variables)
        return load + 1.0

    def store(self, loops):
        """A store (or an update) of an element that no other iteration touches."""
        size = 1
        for _, extent in loops:
            size *= extent
        out = decl_buffer((max(size, 1),), "float32", f"B{len(self.outputs)}")
        self.outputs.append(out)
        index = op.const(0)
        for var, extent in loops:
            index = index * extent + var
        variables = [v for v, _ in loops]
        value = self.value(variables)
        if self.integer(0, 1):
            value = value + out[index]
        s = S.BufferStore(out, value, (index,))
        if self.integer(0, 5) == 0:
            y = Var("y", "int32")
            s = S.LetStmt(y, self.affine(variables), S.BufferStore(
                out, value + y.astype("float32"), (index,)))
        return self.guard(s, variables)

    def guard(self, s, variables):
        if self.integer(0, 2) == 0:
            return s
        other = None
        if self.integer(0, 4) == 0 and type(s) is S.BufferStore:
            other = S.BufferStore(s.buffer, op.const(7.0), s.indices)
        return S.IfThenElse(self.condition(variables), s, other)

    def body(self, depth, loops):
        kind = self.integer(0, 3)
        if depth == 0 or (kind == 0 and loops):
            return self.store(loops)
        if kind == 1 and loops:
            return S.seq(self.body(depth - 1, loops), self.body(depth - 1, loops))
        var, extent = Var(f"i{depth}_{len(loops)}"), self.integer(1, 6)
        body = self.body(depth - 1, [*loops, (var, extent)])
        kind = self.draw(st.sampled_from(KINDS))
        annotations = {}
        if self.integer(0, 5) == 0:
            annotations["pragma_auto_unroll_max_step"] = op.const(self.integer(1, 40))
        loop = S.For(var, 0, extent, kind, body, annotations=annotations)
        return self.guard(loop, [v for v, _ in loops]) if loops else loop

    def function(self):
        body = self.body(4, [])
        return PrimFunc([self.a, *self.outputs], body, attrs={"global_symbol": "main"})


@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True,
          suppress_health_check=list(HealthCheck))
def test_random_nests(data):
    check_stages(Nest(data.draw).function(), rtol=1e-5)


@given(data=st.data())
@settings(max_examples=150, deadline=None, derandomize=True,
          suppress_health_check=list(HealthCheck))
def test_random_nests_whose_parts_are_small(data):
    """LoopPartition doubles what takes a small part of a body, here from a handful of steps on."""
    func = Nest(data.draw).function()
    with mock.patch.multiple(loop_partition, _SMALL=1.5, _MANY=4):
        check_stages(func, rtol=1e-5)
