"""A convolution and its pooling in one kernel: cut into tiles of rows, and scheduled under them."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import dlight, te, topi
from mlc_lab.dlight.base import Start
from mlc_lab.dlight.pooled import _cut
from mlc_lab.ir import IRModule
from mlc_lab.lower import lower
from mlc_lab.tir.functor import pre_order
from mlc_lab.tir.op import as_int
from mlc_lab.tir.stmt import Allocate

ONE = "llvm -num-cores=1"


def layer(rows=32, pool=(3, 2, 1), kind="max"):
    """conv2d of 4 channels to 16, relu, pooling, as one function; and the shapes it takes."""
    size, step, pad = pool
    x, w = te.placeholder((1, 4, rows, 24), name="x"), te.placeholder((16, 4, 3, 3), name="w")
    y = topi.nn.relu(topi.nn.conv2d(x, w, 1, 1, 1))
    out = topi.nn.pool2d(y, (size, size), (step, step), (1, 1), (pad,) * 4, kind)
    return te.create_prim_func([x, w, out]), [[int(d) for d in t.shape] for t in (x, w, out)]


def run(func, arrays):
    args = [tvm.nd.array(a) for a in arrays]
    tvm.build(IRModule({"main": func.with_attr("global_symbol", "main")}), target=ONE)["main"](
        *args)
    return args[-1].numpy()


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("target", [ONE, "llvm -num-cores=2"])
@pytest.mark.parametrize("pool", [(3, 2, 1), (2, 2, 0), (3, 1, 1)])
def test_as_written_cut_and_scheduled_give_the_same(pool, target, kind, monkeypatch):
    monkeypatch.setattr("mlc_lab.dlight.base.WORTH_THREADS", 1)
    func, shapes = layer(pool=pool, kind=kind)
    new = dlight.PooledContraction().apply(func, target).mod["main"]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype("float32") for s in shapes]
    want = run(func, arrays)
    for other in (_cut(Start(func)), new):
        np.testing.assert_allclose(run(other, arrays), want, rtol=1e-4, atol=1e-4)


def test_there_is_room_for_one_tile_only():
    func, _ = layer()
    new = dlight.PooledContraction().apply(func, ONE).mod["main"]
    sizes = [np.prod([as_int(d) for d in node.extents])
             for node in pre_order(lower(IRModule({"main": new}), target=ONE)["main"].body)
             if type(node) is Allocate]
    assert 16 * 17 * 24 in sizes  # eight pooled rows need seventeen of the convolution
    assert max(sizes) < 16 * 32 * 24


def test_tiles_are_shifted_inwards_at_the_border():
    func, _ = layer()
    assert "T.max(v_t * 16 - 1, 0)" in _cut(Start(func)).script().replace("T.int64(", "").replace(
        "16)", "16").replace(" - 1)", " - 1").replace("0))", "0)")


def test_a_prime_number_of_rows_is_not_cut():
    func, _ = layer(rows=26, pool=(2, 2, 0))
    assert _cut(Start(func)) is None


def test_a_hint_for_tuning_is_no_schedule():
    x = te.placeholder((1, 4, 32, 32), name="x")
    func = te.create_prim_func([x, topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0,) * 4, "max")])
    assert "schedule_rule" in func.script() and not dlight.is_scheduled(func)
