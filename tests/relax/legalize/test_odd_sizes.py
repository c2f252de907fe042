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
    (lambda x: op.argmax(x, 0), (N, M), (1, 0), (0, 2)),
    (lambda x: op.nn.pad(x, [0, 2], "reflect"), (N,), (3,), (2,)),
    (lambda x: op.nn.pad(x, [-2, 1], "constant"), (N,), (1,), (0,)),
    (lambda x: op.nn.pixel_shuffle(x, 2), (1, N, 2, 2), (1, 4, 2, 2), (1, 3, 2, 2)),
    (lambda x: op.einsum([x], "ii->i"), (N, M), (2, 2), (2, 1)),
    (lambda x: op.image.resize2d(x, (3, 3)), (1, 1, N, M), (1, 1, 1, 2), (1, 1, 0, 2)),
    (lambda x: op.dequantize(x, relax.const([1, 2], "float32"), relax.const(0, "int8"), 0), (N,),
     (2,), (3,)),
    (lambda x: op.nn.group_norm(x, relax.const(np.ones(4, "float32")),
                                relax.const(np.ones(4, "float32")), 3, 1, [2]), (1, N, 2),
     None, (1, 4, 2)),
])
def test_what_does_not_fit_is_refused_when_the_program_runs(build, shape, fits, misfits):
    """Each read beyond the tensor, or wrote there."""
    main = machine(build, (shape, "float32"))
    if fits is not None:
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
    (op.argmax, (0, 2)), (lambda x: op.argmin(x, 1), (2, 0)),
    (lambda x: op.nn.pad(x, [-2, -2]), (3,)),
    (lambda x: op.strided_slice(x, [0, -2], [0, 1], [1, 2]), (3, 2)),
    (lambda x: op.einsum([x], "ii->i"), (3, 1)), (lambda x: op.einsum([x], "1j->j"), (3, 1)),
    (lambda x: op.nn.conv1d(x, x, strides=0), (3, 3, 3)),
    (lambda x: op.nn.conv1d(x, x, dilation=-1), (3, 3, 3)),
    (lambda x: op.nn.conv1d(x, x, groups=0), (N, N, N)),
    (lambda x: op.nn.conv1d(x, relax.const(np.ones((2, 3, 0), "float32"))), (3, 3, 3)),
    (lambda x: op.nn.conv1d_transpose(x, x, groups=2), (3, 3, 3)),
    (lambda x: op.nn.conv1d_transpose(x, x, strides=2, output_padding=-1), (3, 3, 3)),
    (lambda x: op.nn.max_pool1d(x, 0), (1, 1, 3)), (lambda x: op.nn.max_pool1d(x, 2, 0), (1, 1, 3)),
    (lambda x: op.nn.avg_pool1d(x, 2, dilation=0), (1, 1, 3)),
    (lambda x: op.nn.adaptive_avg_pool1d(x, 0), (1, 1, 3)),
    (lambda x: op.nn.group_norm(x, x, x, 0, 0, []), (3,)),
    (lambda x: op.nn.instance_norm(x, x, x, 0, [0]), (3,)),
    (lambda x: op.nn.layer_norm(x, op.permute_dims(x), op.permute_dims(x), [1, 0]), (3, 2)),
    (lambda x: op.image.resize2d(x, (0, 3)), (1, 1, 3, 3)),
    (lambda x: op.image.resize2d(x, (3, 3)), (1, 1, 3, 0)),
    (lambda x: op.quantize(x, relax.const([1, 1], "float32"), relax.const(0, "int8"), 0), (3, 2)),
    (lambda x: op.quantize(x, relax.const([1, 1], "float32"), relax.const(0, "int8"), 2), (3, 2)),
    (lambda x: op.eye(-1, 3), (1,)),
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


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("axis", [0, None])
def test_means_of_integers_do_not_wrap_around(dtype, axis):
    """They are cut off to the type, whose sums and squares they do not fit into."""
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min // 2 ** 30 if dtype == "int32" else max(
        info.min, -99), min(info.max, 2 ** 24), (300, 3)).astype(dtype)
    for name, wanted in (("mean", np.mean), ("std", np.std)):
        got = machine(lambda x, name=name: getattr(op, name)(x, axis), (x.shape, dtype))(x)
        np.testing.assert_array_equal(got.numpy(), np.trunc(wanted(x, axis)).astype(dtype))


def test_the_mean_of_conditions_is_refused():
    with pytest.raises(StructInfoError, match="float"):
        machine(op.mean, ((3,), "bool"))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
def test_quantize_saturates_at_the_ends_of_the_type(dtype):
    """The largest int32 is no float: 3e9 became the smallest."""
    x, info = np.array([3e19, -3e19, np.inf, -np.inf, 5.5], "float32"), np.iinfo(dtype)
    got = machine(lambda x: op.quantize(x, relax.const(1, "float32"), relax.const(0, "int32"), 0,
                                        dtype), (x.shape, "float32"))(x)
    np.testing.assert_array_equal(got.numpy(), np.array(
        [info.max, info.min, info.max, info.min, 6], dtype))


@pytest.mark.parametrize("right", [False, True])
def test_nan_is_in_the_last_bucket(right):
    main = machine(lambda x, b: op.bucketize(x, b, False, right), ((3,), "float32"),
                   ((2,), "float32"))
    got = main(np.array([np.nan, 1, 2], "float32"), np.array([1, 2], "float32"))
    np.testing.assert_array_equal(got.numpy(), [2, 1, 2] if right else [2, 0, 1])


def test_a_slice_that_ends_before_it_begins_is_empty_where_the_size_is_symbolic():
    main = machine(lambda x: op.strided_slice(x, [0], [2], [1]), ((N,), "float32"))
    assert main(ones(4)).shape == main(ones(1)).shape == (0,)


def test_a_slice_of_a_stride_as_large_as_can_be():
    bounds = [np.array([v]) for v in (0, 5, 2 ** 63 - 1)]
    main = machine(op.dynamic_strided_slice, ((5,), "float32"), *[((1,), "int64")] * 3)
    np.testing.assert_array_equal(main(np.arange(5, dtype="float32"), *bounds).numpy(), [0])


def test_a_bias_of_a_known_shape_names_the_sizes_of_the_query():
    """The call was accepted, and could not be built."""
    info = ((1, N, 1, 4), "float32")
    main = machine(op.nn.attention, info, info, info, ((1, 1, 3, 3), "float32"))
    x = ones(1, 3, 1, 4)
    np.testing.assert_allclose(main(x, x, x, np.zeros((1, 1, 3, 3), "float32")).numpy(), x)
    with pytest.raises(ValueError, match="dimension 1 is 2"):
        x = ones(1, 2, 1, 4)
        main(x, x, x, np.zeros((1, 1, 3, 3), "float32"))


def test_output_padding_may_be_as_large_as_the_dilation():
    main = machine(lambda x, w: op.nn.conv1d_transpose(x, w, dilation=2, output_padding=1),
                   ((1, 1, 2), "float32"), ((1, 1, 2), "float32"))
    np.testing.assert_array_equal(main(ones(1, 1, 2), ones(1, 1, 2)).numpy(), [[[1, 1, 1, 1, 0]]])


def test_nothing_in_two_billion_rows_takes_no_time():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.full((2**31, 0), relax.const(1.0), "float32")))
    folded = relax.transform.FoldConstant()(bb.get())
    assert relax.analysis.verify_well_formed(folded)


def test_values_for_places_of_several_index_tensors_of_symbolic_length():
    """One of two values was put there."""
    main = machine(lambda x, v, i, j: op.index_put(x, [i, j], v), ((3, 3), "float32"),
                   ((N,), "float32"), ((M,), "int64"), ((tir.Var("k", "int64"),), "int64"))
    two = np.array([0, 1])
    np.testing.assert_array_equal(
        main(np.zeros((3, 3), "float32"), ones(2), two, two).numpy(), np.diag([1, 1, 0]))
    for values, i, j in ((2, 1, 1), (1, 2, 1), (3, 2, 2)):
        with pytest.raises(ValueError, match="has to be|is declared as"):
            main(np.zeros((3, 3), "float32"), ones(values), two[:i], two[:j])
