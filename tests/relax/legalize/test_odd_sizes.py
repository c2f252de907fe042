"""Sizes and indices that only the run knows, or that are 0: computed as numpy does, or refused."""

import numpy as np
import pytest

import mlc_lab
from mlc_lab import relax, tir
from mlc_lab.relax import op
from mlc_lab.relax.op.registry import StructInfoError

N, M = (tir.Var(name, "int64") for name in "nm")


def machine(build, *infos):
    """The program of one call; an info is a shape and a dtype."""
    params = [relax.Var(f"x{k}", relax.TensorStructInfo(*info)) for k, info in enumerate(infos)]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(build(*params)))
    return relax.VirtualMachine(relax.build(bb.get(), "llvm"), mlc_lab.cpu())["main"]


def ones(*shape):
    return np.ones(shape, "float32")


@pytest.mark.parametrize("build,shape,fits,misfits", [
    (lambda x: op.reshape(x, (6,)), (N, M), (2, 3), (3, 3)),
    (lambda x: op.reshape(x, (-1, 2)), (N, M), (2, 3), (3, 3)),
    (lambda x: op.reshape(x, (7, -1)), (N, M), (0, 3), (2, 3)),
    (lambda x: op.squeeze(x, 1), (N, M), (3, 1), (3, 2)),
    (lambda x: op.split(x, [2, 4], 0), (N, M), (4, 1), (3, 1)),
    (lambda x: op.split(x, 4, 0), (N, M), (7, 2), (5, 2)),
    (lambda x: op.topk(x, 3, 0, "values"), (N,), (3,), (2,)),
    (lambda x: op.take(x, relax.const([0, 0], "int64"), 0), (N, M), (1, 2), (0, 2)),
    (lambda x: op.gather_nd(x, relax.const([[0, 0]], "int64")), (N, M), (1, 1), (1, 0)),
    (lambda x: op.index_tensor(x, [relax.const([0], "int64")]), (N, M), (1, 2), (0, 2)),
])
def test_what_does_not_fit_is_refused_when_the_program_runs(build, shape, fits, misfits):
    """Each read beyond the tensor, or wrote there."""
    main = machine(build, (shape, "float32"))
    main(ones(*fits))
    with pytest.raises(ValueError, match=r"dimension \d is -?\d+ and (has to be|is declared as)"):
        main(ones(*misfits))


@pytest.mark.parametrize("build,shape", [
    (lambda x: op.split(x, [4], 0), (3, 2)), (lambda x: op.split(x, [2, 1], 0), (3, 2)),
    (lambda x: op.split(x, [-1], 0), (3, 2)), (lambda x: op.split(x, 4, 0), (5, 2)),
    (lambda x: op.split(x, [-1], 0), (N, 2)), (lambda x: op.reshape(x, (2 ** 62, 4)), (N, M)),
    (lambda x: op.take(x, relax.const([0], "int64"), 0), (0, 2)),
    (lambda x: op.gather_elements(x, relax.const([[0]], "int64"), 0), (0, 2)),
    (lambda x: op.gather_nd(x, relax.const([[0]], "int64")), (0, 2)),
    (lambda x: op.index_tensor(x, [relax.const([0], "int64")]), (0, 2)),
])
def test_what_does_not_fit_is_refused_when_the_call_is_made(build, shape):
    with pytest.raises(StructInfoError):
        relax.BlockBuilder().normalize(build(
            relax.Var("x", relax.TensorStructInfo(shape, "float32"))))


def test_nothing_is_taken_of_nothing():
    main = machine(lambda x, i: op.take(x, i, 0), ((N, 2), "float32"), ((M,), "int64"))
    assert main(ones(0, 2), np.zeros(0, "int64")).shape == (0, 2)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
def test_take_gives_nan_for_an_index_outside(dtype):
    """It read there; negative indices count from the end."""
    main = machine(lambda x, i: op.take(x, i, 0, "nan"), ((3, 2), "float32"), ((5,), dtype))
    got = main(np.arange(6, dtype="float32").reshape(3, 2), np.array([0, -1, 3, -4, 99], dtype))
    np.testing.assert_array_equal(got.numpy(), [[0, 1], [4, 5]] + [[np.nan] * 2] * 3)
    with pytest.raises(StructInfoError, match="float"):
        machine(lambda x, i: op.take(x, i, 0, "nan"), ((3,), "int32"), ((5,), dtype))
