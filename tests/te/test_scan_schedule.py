"""The stages of a scan are scheduled like any others, within its loop over time."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.backend.interp import interpret

RNG = np.random.default_rng(4)


def rand(*shape):
    return RNG.standard_normal(shape).astype("float32")


def running_sum(m, n):
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    return X, init, update, te.scan(init, update, state, inputs=[X])


def two_stages(m, n):
    """s[t] = s[t - 1] * 2 + (X[t] + 1), in two stages and one before the scan."""
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    more = te.compute((m, n), lambda t, i: X[t, i] + 1.0, name="more")
    init = te.compute((1, n), lambda _, i: more[0, i], name="init")
    u1 = te.compute((m, n), lambda t, i: state[t - 1, i] * 2.0, name="u1")
    u2 = te.compute((m, n), lambda t, i: u1[t, i] + more[t, i], name="u2")
    return X, more, init, u1, u2, te.scan(init, u2, state, inputs=[more])


def two_stages_numpy(x):
    want = x + 1
    for t in range(1, len(x)):
        want[t] += 2 * want[t - 1]
    return want


def check(s, args, inputs, want, gpu=False):
    mod = s.to_module(args)
    runs = [lambda *a: interpret(mod, *a), lambda *a: interpret(tvm.lower(mod), *a)]
    if not gpu:
        runs.append(tvm.build(s, args, "llvm"))
    for run in runs:
        out = np.full(want.shape, np.nan, "float32")
        run(*inputs, out)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
    return mod.script()


@pytest.mark.parametrize("m, n", [(5, 8), (4, 13), (1, 3), (2, 1)])
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("how", ["cpu", "gpu"])
def test_init_and_update_are_split_and_bound(m, n, symbolic, how):
    X, init, update, total = running_sum(*((te.var("m"), te.var("n")) if symbolic else (m, n)))
    s = te.create_schedule(total.op)
    for stage in (init, update):
        xo, xi = s[stage].split(stage.op.axis[1], factor=4)
        if how == "gpu":
            s[stage].bind(xo, te.thread_axis("blockIdx.x"))
            s[stage].bind(xi, te.thread_axis("threadIdx.x"))
        else:
            s[stage].parallel(xo)
            s[stage].vectorize(xi)
    x = rand(m, n)
    text = check(s, [X, total], [x], x.cumsum(0), how == "gpu")
    assert "T.axis.scan" in text
    if how == "gpu":
        assert "blockIdx.x" in tvm.lower(s, [X, total], simple_mode=True).script()


@pytest.mark.parametrize("m, n", [(5, 64), (3, 50)])
@pytest.mark.parametrize("u1_at", ["inner", "time", "root", "inline"])
@pytest.mark.parametrize("more_at", ["root", "inline"])
def test_the_stages_of_a_step(m, n, u1_at, more_at):
    X, more, init, u1, u2, total = two_stages(m, n)
    s = te.create_schedule(total.op)
    xo, xi = s[u2].split(u2.op.axis[1], factor=32)
    if u1_at == "inner":
        s[u1].compute_at(s[u2], xo)
    elif u1_at == "time":
        s[u1].compute_at(s[u2], u2.op.axis[0])
    elif u1_at == "inline":
        s[u1].compute_inline()
    if more_at == "inline":
        s[more].compute_inline()
    x = rand(m, n)
    text = check(s, [X, total], [x], two_stages_numpy(x))
    assert ('T.block("u1")' not in text) == (u1_at == "inline")
    assert ('T.block("more")' not in text) == (more_at == "inline")


@pytest.mark.parametrize("steps, size", [(4, 16), (3, 10)])
def test_a_recurrent_network(steps, size):
    X, W = te.placeholder((steps, size), name="X"), te.placeholder((size, size), name="W")
    h = te.placeholder((steps, size), name="h")
    k = te.reduce_axis((0, size), name="k")
    init = te.compute((1, size), lambda _, i: te.tanh(X[0, i]), name="init")
    product = te.compute((steps, size), lambda t, i: te.sum(h[t - 1, k] * W[k, i], axis=k),
                         name="product")
    update = te.compute((steps, size), lambda t, i: te.tanh(product[t, i] + X[t, i]),
                        name="update")
    out = te.scan(init, update, h)
    s = te.create_schedule(out.op)
    ko, ki = s[product].split(product.op.reduce_axis[0], factor=4)
    io, ii = s[product].split(product.op.axis[1], factor=4)
    s[product].reorder(io, ko, ki, ii)
    s[product].vectorize(ii)
    s[product].parallel(io)
    s[update].vectorize(s[update].split(update.op.axis[1], factor=4)[1])
    x, w = rand(steps, size), rand(size, size)
    want = np.tanh(x)
    for t in range(1, steps):
        want[t] = np.tanh(want[t - 1] @ w + x[t])
    check(s, [X, W, out], [x, w], want)


def test_the_result_is_used_by_a_scheduled_stage():
    X, init, update, total = running_sum(4, 10)
    Y = te.compute((4, 10), lambda i, j: total[i, j] * 3.0, name="Y")
    Z = te.compute((4, 10), lambda i, j: Y[i, j] + 1.0, name="Z")
    s = te.create_schedule(Z.op)
    s[Y].compute_at(s[Z], Z.op.axis[0])
    s[Z].parallel(Z.op.axis[0])
    s[update].parallel(update.op.axis[1])
    x = rand(4, 10)
    check(s, [X, Z], [x], x.cumsum(0) * 3 + 1)


def test_the_loop_over_time_stays():
    X, init, update, total = running_sum(4, 8)
    s = te.create_schedule(total.op)
    with pytest.raises(ValueError, match="t is the time of stage.scan.*the others are: i"):
        s[update].split(update.op.axis[0], factor=2)
    s[total].parallel(total.op.scan_axis)
    with pytest.raises(tvm.tir.ScheduleError, match="iterator v_t is scan"):
        s.to_module([X, total])


def test_what_the_steps_read_is_computed_row_by_row():
    X, state = te.placeholder((4, 10), name="X"), te.placeholder((4, 10), name="state")
    twice = te.compute((4, 10), lambda t, i: X[t, i] * 2.0, name="twice")
    init = te.compute((1, 10), lambda _, i: X[0, i] * 2.0, name="init")
    update = te.compute((4, 10), lambda t, i: state[t - 1, i] + twice[t, i], name="update")
    total = te.scan(init, update, state)
    s = te.create_schedule(total.op)
    s[twice].compute_at(s[total], total.op.scan_axis)
    x = rand(4, 10)
    text = check(s, [X, total], [x], 2 * x.cumsum(0))
    assert text.index("for scan_t") < text.index('T.block("twice")')


def test_a_row_that_reads_itself_cannot_run_in_parallel():
    X, state = te.placeholder((4, 8), name="X"), te.placeholder((4, 8), name="state")
    init = te.compute((1, 8), lambda _, i: X[0, i], name="init")
    update = te.compute((4, 8), lambda t, i: te.if_then_else(
        i > 0, state[t, te.max(i - 1, 0)], state[t - 1, i]), name="update")
    total = te.scan(init, update, state)
    s = te.create_schedule(total.op)
    s[update].parallel(update.op.axis[1])
    with pytest.raises(tvm.tir.ScheduleError):
        s.to_module([X, total])


def test_memory_of_a_symbolic_row_is_its_size():
    X, more, init, u1, u2, total = two_stages(te.var("m"), te.var("n"))
    s = te.create_schedule(total.op)
    text = tvm.lower(s, [X, total], simple_mode=True).script()
    assert "2147483647" not in text and "u1 = T.allocate([n]" in text
