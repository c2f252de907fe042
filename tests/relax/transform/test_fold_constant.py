"""FoldConstant: constants that a kernel only moves are moved by numpy, as the kernel would."""

import numpy as np
import pytest

from mlc_lab import cpu, relax
from mlc_lab.relax import op as R
from mlc_lab.relax.transform import FoldConstant, fold_constant

MOVES = {
    "transposed": lambda x: R.permute_dims(x, [2, 0, 1]),
    "reshaped": lambda x: R.reshape(x, (5, 6, 8)),
    "flat": lambda x: R.flatten(x),
    "strided": lambda x: R.strided_slice(x, [1, 2], [0, 3], [6, 8], [2, 1]),
    "backwards": lambda x: R.flip(x, 1),
    "broadcast": lambda x: R.broadcast_to(R.expand_dims(x, 1), (4, 7, 6, 10)),
    "repeated": lambda x: R.repeat(x, 3, 2),
    "tiled": lambda x: R.tile(x, (2, 1, 2)),
    "sliced": lambda x: R.split(x, 2, 2)[1],
}


def folded(made):
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        with bb.dataflow():
            out = bb.emit_output(bb.normalize(made))
        bb.emit_func_output(out)
    func = FoldConstant()(bb.get())["main"]
    constants = [func.body.body, *(b.value for block in func.body.blocks for b in block.bindings)]
    return next(c.data.numpy() for c in constants if isinstance(c, relax.Constant))


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16"])
@pytest.mark.parametrize("name", MOVES)
def test_what_is_moved_is_what_the_kernel_would_make(name, dtype, monkeypatch):
    x = (np.arange(4 * 6 * 10).reshape(4, 6, 10) % 100).astype(dtype)
    moved, tried = fold_constant._move, []
    monkeypatch.setattr(fold_constant, "_move", lambda *a: tried.append(moved(*a)) or tried[-1])
    got = folded(MOVES[name](relax.const(x)))
    monkeypatch.setattr(fold_constant, "_move", lambda *a: False)
    np.testing.assert_array_equal(got, folded(MOVES[name](relax.const(x))))
    assert all(tried) or name not in ("transposed", "strided", "broadcast")


def test_what_computes_is_not_moved():
    x = np.random.default_rng(0).random((40, 50), "float32")
    np.testing.assert_array_equal(folded(R.add(relax.const(x), relax.const(x))), x + x)


def test_the_constant_takes_the_place_of_a_result_too():
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        x = bb.emit(R.add(relax.const([1.0], "float32"), relax.const([2.0], "float32")))
        bb.emit_func_output(x)
    func = FoldConstant()(bb.get())["main"]
    assert not func.body.blocks and func.body.body.data.numpy().tolist() == [3.0]
    vm = relax.VirtualMachine(relax.build(bb.get(), "llvm"), cpu())
    assert vm["main"]().numpy().tolist() == [3.0]
