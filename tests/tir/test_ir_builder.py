"""Statements written as Python runs."""

import numpy as np
import pytest

from mlc_lab import te, tir
from mlc_lab.backend.interp import interpret


def test_loops_choices_and_memory():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        a, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        total = ib.allocate("float32", (1,), name="total", scope="local")
        total[0] = 0.0
        with ib.for_range(0, 6, name="i") as i:
            with ib.if_scope(a[i] < 0):
                total[0] = total[0] - a[i]
            with ib.else_scope():
                total[0] = total[0] + a[i]
            out[i] = total[0]
        return ib.get()

    x = te.placeholder((2, 3), name="x")
    func = te.create_prim_func([x, te.extern((2, 3), [x], body, name="running")])
    a = np.array([[1, -2, 3], [-4, 5, -6]], "float32")
    out = np.empty_like(a)
    interpret(func, a, out)
    np.testing.assert_allclose(out.ravel(), np.cumsum(abs(a)))


def test_while_let_and_attributes():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        out = ib.buffer_ptr(outs[0])
        one = ib.let("one", tir.const(1, "int32"))
        out[0] = 1
        ib.scope_attr(0, "pragma_note", "doubling")
        with ib.while_loop(out[0] < 100):
            out[0] = out[0] * 2 + one - 1
        return ib.get()

    func = te.create_prim_func([te.extern((1,), [], body, dtype="int32")])
    out = np.zeros(1, "int32")
    interpret(func, out)
    assert out[0] == 128


def test_mistakes():
    ib = tir.ir_builder.create()
    with pytest.raises(ValueError, match="directly after an if_scope"):
        ib.else_scope()
    with pytest.raises(ValueError, match='kind "fast"'):
        ib.for_range(0, 4, kind="fast")
    with pytest.raises(ValueError, match="loop i goes from .* must be integers"):
        ib.for_range(0, 2.5)
    buffer = ib.allocate("float32", (2, 3, 4))
    with pytest.raises(ValueError, match="3 dimensions and is read or written with 2"):
        buffer[0, 1]


def test_a_buffer_of_the_builder_is_a_parameter_and_has_a_pointer():
    ib = tir.ir_builder.create()
    data = ib.pointer("float32", name="data")
    with ib.for_range(0, 1, "i") as i:
        data[i] = data[i] + 0.5
    ib.emit(tir.call_extern("int32", "sees", data.asobject().access_ptr("r"), data))
    stmt = ib.get()
    func = tir.PrimFunc([data], stmt)
    assert func.buffers == [data.asobject()]
    call = stmt.seq[1].value
    assert call.args[1].args[1] is data.asobject().data is call.args[2]
    values = np.zeros(1, "float32")
    interpret(tir.PrimFunc([data], stmt.seq[0]), values)
    assert (values == 0.5).all()
    with pytest.raises(TypeError, match="variables and buffers"):
        tir.PrimFunc(["data"], stmt)
