"""Recurrences, and externs whose body is a statement."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te, tir
from mlc_lab.backend.interp import interpret


def check(func, arrays, *expected):
    outs = [np.empty_like(e) for e in expected]
    interpret(func, *arrays, *outs)
    for out, want in zip(outs, expected):
        np.testing.assert_allclose(out, want, rtol=1e-5)
    outs = [np.empty_like(e) for e in expected]
    tvm.build(func, target="llvm")(*arrays, *outs)
    for out, want in zip(outs, expected):
        np.testing.assert_allclose(out, want, rtol=1e-5)


def test_a_running_sum():
    m, n = te.var("m"), te.var("n")
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    total = te.scan(init, update, state, inputs=[X])
    func = te.create_prim_func([X, total])
    assert "T.axis.scan" in func.script()
    x = np.random.rand(5, 3).astype("float32")
    check(func, [x], x.cumsum(0))


def test_a_step_of_several_operations():
    """h[t] = tanh(h[t - 1] W + X[t]): a small recurrent network."""
    steps, size = 4, 3
    X, W = te.placeholder((steps, size), name="X"), te.placeholder((size, size), name="W")
    h = te.placeholder((steps, size), name="h")
    k = te.reduce_axis((0, size), name="k")
    init = te.compute((1, size), lambda _, i: te.tanh(X[0, i]), name="init")
    product = te.compute((steps, size), lambda t, i: te.sum(h[t - 1, k] * W[k, i], axis=k),
                         name="product")
    update = te.compute((steps, size), lambda t, i: te.tanh(product[t, i] + X[t, i]),
                        name="update")
    out = te.scan(init, update, h)
    x, w = (np.random.rand(*s).astype("float32") for s in ((steps, size), (size, size)))
    want = np.zeros_like(x)
    want[0] = np.tanh(x[0])
    for t in range(1, steps):
        want[t] = np.tanh(want[t - 1] @ w + x[t])
    check(te.create_prim_func([X, W, out]), [x, w], want)


def test_two_states_and_a_given_start():
    """Fibonacci numbers and their sums."""
    n = 8
    start = te.placeholder((2,), "int32", name="start")
    f, s = te.placeholder((n,), "int32", name="f"), te.placeholder((n,), "int32", name="s")
    sums = te.compute((2,), lambda i: te.if_then_else(i < 1, start[0], start[0] + start[1]),
                      name="sums")
    fib = te.compute((n,), lambda t: f[t - 1] + f[t - 2], name="fib")
    add = te.compute((n,), lambda t: s[t - 1] + f[t - 1] + f[t - 2], name="add")
    numbers, totals = te.scan([start, sums], [fib, add], [f, s])
    want = np.array([1, 1, 2, 3, 5, 8, 13, 21], "int32")
    check(te.create_prim_func([start, numbers, totals]), [want[:2].copy()], want,
          want.cumsum().astype("int32"))


def test_what_does_not_fit_is_refused():
    state = te.placeholder((4, 3))
    init = te.compute((1,), lambda i: 0.0)
    update = te.compute((4, 3), lambda t, i: state[t - 1, i])
    with pytest.raises(ValueError, match="as many dimensions"):
        te.scan(init, update, state)
    with pytest.raises(ValueError, match="1 init, 1 update and 2 state"):
        te.scan(init, update, [state, state])


def test_extern_with_a_statement_and_several_outputs():
    def body(ins, outs):
        ib = tir.ir_builder.create()
        x, low, high = map(ib.buffer_ptr, (*ins, *outs))
        low[0], high[0] = x[0], x[0]
        with ib.for_range(1, 6, name="i") as i:
            low[0] = te.min(low[0], x[i])
            high[0] = te.max(high[0], x[i])
        return ib.get()

    X = te.placeholder((6,), name="X")
    low, high = te.extern([(1,), (1,)], [X], body, name="ends", dtype=["float32", "float32"])
    both = te.compute((1,), lambda i: high[i] - low[i], name="both")
    x = np.random.rand(6).astype("float32")
    check(te.create_prim_func([X, both]), [x], np.array([np.ptp(x)]))


def test_a_step_that_is_no_compute_is_refused():
    X, state = te.placeholder((4, 3), name="X"), te.placeholder((4, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i])
    twice = te.extern([(4, 3)], [state], lambda ins, outs: tir.call_packed("twice", *ins, *outs),
                      name="twice", dtype="float32")
    total = te.scan(init, te.compute((4, 3), lambda t, i: twice[t - 1, i] + X[t, i]), state)
    with pytest.raises(ValueError, match="twice depends on a state"):
        te.create_prim_func([X, total])
