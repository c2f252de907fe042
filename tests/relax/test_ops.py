"""Operators: struct info on symbolic and unknown shapes, and misfits with both shapes.

What every operator gives is compared with apache-tvm in tests/oracle/test_relax.py; here stands
what that comparison cannot say.
"""

import inspect

import pytest

from mlc_lab import relax
from mlc_lab.relax import op
from mlc_lab.relax.op import OPERATORS, StructInfoError
from mlc_lab.script import relax as R
from mlc_lab.tir import Var

T = relax.TensorStructInfo
n, m = Var("n", "int64"), Var("m", "int64")


def var(*shape, dtype="float32"):
    return relax.Var("x", T(shape, dtype))


def whole(*shape):
    return var(*shape, dtype="int64")


def info(call):
    return call.struct_info


def test_every_constructor_has_a_row_and_a_docstring():
    for namespace, prefix in ((op, "relax."), (op.nn, "relax.nn."), (op.memory, "relax.memory."),
                              (op.vm, "relax.vm."), (op.builtin, "relax.builtin."),
                              (op.image, "relax.image."),
                              (op.grad, "relax.grad.")):
        for name in namespace.__all__:
            fn = getattr(namespace, name)
            if not inspect.isfunction(fn) or not fn.__module__.startswith("mlc_lab.relax.op"):
                continue
            assert fn.__doc__, name
            composed = {"linear", "relu6", "masked_fill", "attention_bias", "call_packed"}
            helpers = {"slice_extent", "parse_subscripts", "tensor_of_args", "out_struct_info",
                       "infer_call", "lookup", "make_call", "register_gradient",
                       "register_legalize", "register_op"}
            if name not in composed | helpers:
                assert prefix + name in OPERATORS, prefix + name


def test_every_operator_is_a_word_of_the_script():
    for full in OPERATORS:
        place = R
        for part in full.split(".")[1:]:
            place = getattr(place, part)
        assert callable(place), full


def test_only_effects_are_impure():
    assert {name for name, row in OPERATORS.items() if not row.pure} == {
        "relax.print", "relax.assert_op", "relax.call_builtin_with_ctx", "relax.invoke_closure",
        "relax.memory.kill_storage", "relax.memory.kill_tensor", "relax.vm.call_tir_dyn",
        "relax.vm.kill_object"}


@pytest.mark.parametrize("call, expected", [
    (lambda: op.add(var(n, 1), var(m)), T((n, m))),
    (lambda: op.add(var(n), var(m)), T(ndim=1)),
    (lambda: op.matmul(var(2, n, 4), var(4, m)), T((2, n, m))),
    (lambda: op.reshape(var(n, 4), (-1, 2)), T((n * 2, 2))),
    (lambda: op.reshape(var(n, 6), (0, 2, 3)), T((n, 2, 3))),
    (lambda: op.flatten(var(n, 6)), T((n * 6,))),
    (lambda: op.concat([var(n, 4), var(m, 4)], 0), T((n + m, 4))),
    (lambda: op.concat([var(n, 4), var(2)], None), T((n * 4 + 2,))),
    (lambda: op.logical_not(var(n)), T((n,), "bool")),
    (lambda: op.logical_and(whole(n), whole(n)), T((n,), "bool")),
    (lambda: op.split(var(n, 4), 2, 1).struct_info.fields[1], T((n, 2))),
    (lambda: op.split(var(n), [3]).struct_info.fields[0], T((3,))),
    (lambda: op.nn.conv2d(var(n, 3, 32, 32), var(8, 3, 3, 3), padding=1), T((n, 8, 32, 32))),
    (lambda: op.nn.max_pool2d(var(1, 3, n, n), 2, 2),
     T((1, 3, (n - 2) // 2 + 1, (n - 2) // 2 + 1))),
    (lambda: op.strided_slice(var(n, 4), [1], [1], [3]), T((n, 2))),
    (lambda: op.take(var(n, 4), var(m, dtype="int64"), 0), T((m, 4))),
    (lambda: op.arange(0, n), T((n,), "int64")),
    (lambda: op.zeros((n, 2), "int8"), T((n, 2), "int8")),
    (lambda: op.tile(var(n, 2), (3,)), T((n, 6))),
    (lambda: op.topk(var(n, 4), 2).struct_info.fields[1], T((n, 2), "int32")),
    (lambda: op.nn.attention(var(1, n, 8, 64), var(1, m, 8, 64), var(1, m, 8, 64)),
     T((1, n, 8, 64))),
    (lambda: op.linear(var(1, n, 4), var(8, 4), var(8)), T((1, n, 8))),
    (lambda: op.nn.relu6(var(2)), T((2,))),
    (lambda: op.shape_of(var(n, 2)), relax.ShapeStructInfo((n, 2))),
    (lambda: op.nn.pad(var(n, 4), [(1, 2), (0, 3)]), T((n + 3, 7))),
    (lambda: op.layout_transform(var(8, 4), lambda i, j: (j, i // 4, i % 4)), T((4, 2, 4))),
    (lambda: op.einsum([var(2, n, 3), var(2, 3, m)], "bij,bjk->bik"), T((2, n, m))),
    (lambda: op.einsum([var(2, n, 3), var(3, m)], "...j,jk"), T((2, n, m))),
])
def test_symbolic_dimensions(call, expected):
    result = call()
    result = getattr(result, "struct_info_", result)
    assert expected.is_base_of(result) and result.is_base_of(expected), result


@pytest.mark.parametrize("call, words", [
    (lambda: op.add(var(2, 3), var(4, 3)), [(2, 3), (4, 3)]),
    (lambda: op.matmul(var(2, 3), var(4, 5)), [(2, 3), (4, 5)]),
    (lambda: op.concat([var(2, 3), var(2, 4)], 0), [(2, 3), (2, 4)]),
    (lambda: op.reshape(var(2, 3), (4, 4)), [(2, 3), (4, 4)]),
    (lambda: op.nn.conv2d(var(1, 3, 8, 8), var(8, 4, 3, 3)), [(1, 3, 8, 8), (8, 4, 3, 3)]),
    (lambda: op.nn.conv2d(var(1, 3, 2, 2), var(8, 3, 5, 5)), [(1, 3, 2, 2), (8, 3, 5, 5)]),
    (lambda: op.nn.layer_norm(var(2, 3), var(4), var(4), -1), [(2, 3), (4,)]),
    (lambda: op.broadcast_to(var(2, 3), (2, 4)), [(2, 3), (2, 4)]),
    (lambda: op.nn.attention(var(1, 2, 3, 4), var(1, 2, 3, 5), var(1, 2, 3, 4)),
     [(1, 2, 3, 4), (1, 2, 3, 5)]),
    (lambda: op.einsum([var(2, 3), var(4, 5)], "ij,jk->ik"), [(2, 3), (4, 5)]),
])
def test_misfits_name_both_shapes(call, words):
    with pytest.raises(StructInfoError) as caught:
        call()
    for shape in words:
        assert str(shape) in str(caught.value)


@pytest.mark.parametrize("call, message", [
    (lambda: op.add(var(2), var(2, dtype="int8")), "dtype float32 and x2 has dtype int8"),
    (lambda: op.exp(var(2, dtype="int8")), "must have a float dtype"),
    (lambda: op.sum(var(2, 3), axis=2), "axis 2 is outside a tensor of 2 dimension"),
    (lambda: op.sum(var(2, 3), axis=[0, -2]), "named twice"),
    (lambda: op.permute_dims(var(2, 3), [0]), "axes names 1 dimension"),
    (lambda: op.reshape(var(2, 3), (-1, -1)), "only one dimension can be -1"),
    (lambda: op.reshape(var(2, 3), (-1, 4)), "do not fill"),
    (lambda: op.squeeze(var(2, 3), 0), "only extent 1 can be squeezed"),
    (lambda: op.nn.batch_norm(var(1, 4, 2, 2), var(3), var(3), var(3), var(3), 1), "gamma"),
    (lambda: op.nn.group_norm(var(1, 4, 2), var(4), var(4), 3, 1, [2]), "do not make 3 groups"),
    (lambda: op.where(var(2), var(2), var(2)), "condition must be bool"),
    (lambda: op.add(relax.Var("s", relax.ShapeStructInfo((1,))), var(2)), "x1 must be a tensor"),
    (lambda: op.take(var(2, 3), var(2), 0), "indices must be integers"),
    (lambda: op.topk(var(2), ret_type="all"), "ret_type is both, values or indices"),
    (lambda: op.topk(var(2, 3), 9), r"\(2, 3\).*k is 9, and dimension 1 has 3 element.*smaller k"),
    (lambda: op.nn.conv2d(var(1, 3, 8, 8), var(8, 3, 3, 3), padding=(-1, 0)),
     r"padding is \(-1, 0, -1, 0\), it cannot be less than 0"),
    (lambda: op.nn.conv1d_transpose(var(1, 3, 8), var(3, 8, 3), padding=-1), "padding is"),
    (lambda: op.nn.avg_pool1d(var(1, 3, 8), 2, padding=-1), "padding is"),
    (lambda: op.call_tir(relax.GlobalVar("f"), [], T(ndim=2)), "shape of every output"),
    (lambda: op.nn.conv2d(var(1, 3, 8, 8), var(8, 3, 3, 3), data_layout="NCWX"), "letters"),
    (lambda: op.arange(0, 10, 0), "step is 0"),
    (lambda: op.reshape(var(n, 2), (n * 2 + 1,)), r"\(n, 2\) with n \* 2 elements.*n \* 2 \+ 1"),
    (lambda: op.concat([var(n + 1, 4), var(n, 5)], 0), r"\(n \+ 1, 4\) and tensor 2 \(n, 5\)"),
    (lambda: op.nn.nll_loss(var(4, 5), whole(7)), "shape of predictions without the classes"),
    (lambda: op.nn.nll_loss(var(4, 5), var(4)), "targets must have an integer dtype"),
    (lambda: op.nn.nll_loss(var(4, 5), whole(4), var(4)), "a weight for each class"),
    (lambda: op.gather_elements(var(3, 4), var(3, 4)), "indices must have an integer dtype"),
    (lambda: op.gather_elements(var(3, 4), whole(4, 4), 1), "only dimension 1 is looked up"),
    (lambda: op.gather_elements(var(n, 4), whole(m, 4), 1), "m may be larger than n"),
    (lambda: op.gather_nd(var(3, 4), var(3, 1)), "indices must have an integer dtype"),
    (lambda: op.scatter_elements(var(3), var(3), var(3)), "indices must have an integer dtype"),
    (lambda: op.scatter_elements(var(3), whole(3), var(2)), "must have one shape"),
    (lambda: op.scatter_elements(var(3), whole(3), var(3), 0, "xor"), "must be one of 'update'"),
    (lambda: op.scatter_nd(var(3), var(3, 1), var(3)), "indices must have an integer dtype"),
    (lambda: op.slice_scatter(var(6), var(2), 0, 6, 2), r"the slice has shape \(3,\)"),
    (lambda: op.index_put(var(6), [whole(2)], var(3)), "cannot be broadcast to"),
    (lambda: op.index_tensor(var(6), [var(2)]), "index 1 must have an integer dtype"),
    (lambda: op.one_hot(var(3), relax.PrimValue(1), relax.PrimValue(0), 3), "indices must have"),
    (lambda: op.unique(var(2, 3), axis=3), "axis 3 is outside a tensor of 2"),
    (lambda: op.reshape(var(2, 3), (-2, -3)), "has a negative extent"),
    (lambda: op.zeros((2, -2), "int32"), "has a negative extent"),
    (lambda: op.collapse_sum_to(var(3, 4), (3,)), "cannot be broadcast to the shape of data"),
    (lambda: op.collapse_sum_like(var(3, 4), var(2, 3, 4)), "cannot be broadcast to the shape"),
    (lambda: op.concat([var(2, 3), whole(2)], None), "tensor 2 has dtype int64"),
    (lambda: op.nn.pad(var(2), [1, 1], "mirror"), "pad_mode is 'mirror'"),
    (lambda: op.nn.pad(var(3), [3, 0], "reflect"), "adds at most 2 element"),
    (lambda: op.tile(var(2), [-1]), "none can be negative"),
    (lambda: op.repeat(var(2), -1), "cannot be negative"),
    (lambda: op.meshgrid([var(2, 3)]), "must be a vector"),
    (lambda: op.einsum([var(3, 3)], "ij->ii"), "names a letter of the result twice"),
    (lambda: op.eye_like(var(3)), "x must have 2 dimension"),
    (lambda: op.bucketize(var(3), var(2, 2)), "boundaries must have 1 dimension"),
    (lambda: op.nn.prelu(var(1, 3, 4), var(4)), "dimension 1 of data must have alpha's extent"),
    (lambda: op.nn.pixel_shuffle(var(4, 4), 2), "three dimensions at the least"),
    (lambda: op.nn.attention(*[var(1, 2, 1, 4)] * 3, var(1, 1, 2, 2, dtype="float64")), "bias"),
    (lambda: op.nn.attention(var(1, 2, 1, 4), var(1, 2, 1, 4), var(1, 2, 1, 4),
                             causal_mask="Left"), "causal_mask is 'Left'"),
    (lambda: op.repeat(var(2), 2 ** 62), "a size of 9223372036854775808, which is past"),
    (lambda: op.tile(op.tile(var(2), [10 ** 18]), [10 ** 18]), "past the largest int64"),
    (lambda: op.concat([op.zeros((2 ** 62,), "int8")] * 2, 0), "past the largest int64"),
    (lambda: op.flatten(var(2 ** 32, 2 ** 32)), "past the largest int64"),
    (lambda: op.cumsum(var(2 ** 40, 2 ** 40)), "past the largest int64"),
])
def test_misfits_say_what_is_wrong(call, message):
    with pytest.raises(StructInfoError, match=message):
        call()


def test_calls_on_unknown_struct_info_wait_for_the_builder():
    y = relax.Var("y")
    call = op.add(y, y)
    assert call.struct_info_ is None
    assert op.add(relax.Var("u", T(ndim=3)), var(2)).struct_info == T(ndim=3)


def test_legalization_is_replaceable():
    row = op.lookup("relax.abs")
    saved = row.legalize
    try:
        @op.register_legalize("relax.abs")
        def legalize(bb, call):
            return call

        assert row.legalize is legalize
    finally:
        row.legalize = saved
    with pytest.raises(ValueError, match="no Relax operator"):
        op.lookup("relax.nothing")


def test_early_relax_calls():
    call = op.call_tir("env.linear", (var(2),), (1, 128), dtype="float32")
    assert call.op.name == "relax.call_dps_packed" and call.struct_info == T((1, 128))
    assert op.call_tir(relax.GlobalVar("f"), var(2), T((3,))).args[1].fields[0].struct_info == T(
        (2,))


@pytest.mark.parametrize("build", [
    lambda x, axis: op.argmax(x, axis=axis), lambda x, axis: op.cumsum(x, axis=axis),
    lambda x, axis: op.concat((x, x), axis=axis), lambda x, axis: op.split(x, 2, axis=axis),
    lambda x, axis: op.topk(x, 1, axis=axis), lambda x, axis: op.flip(x, axis=axis),
    lambda x, axis: op.take(x, relax.const(0), axis=axis)])
@pytest.mark.parametrize("axis", [[], 1.5, "1", [0, 1]])
def test_an_axis_is_a_whole_number(build, axis):
    with pytest.raises(TypeError, match="axis must be a whole number, it is "):
        build(relax.Var("x", relax.TensorStructInfo((2, 3), "float32")), axis)


@pytest.mark.parametrize("axis", [1.5, "1", [0.5]])
def test_axes_are_whole_numbers(axis):
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    for build in (op.sum, op.expand_dims, op.squeeze, lambda x, axis: op.permute_dims(x, axis)):
        with pytest.raises(TypeError, match="must be a whole number, it is "):
            build(x, axis=axis)


@pytest.mark.parametrize("build, what", [
    (lambda x: op.nn.leakyrelu(x, "half"), "alpha must be a number that is known, it is 'half'"),
    (lambda x: op.nn.leakyrelu(x, None), "alpha must be a number that is known, it is None"),
    (lambda x: op.nn.dropout(x, x), "rate must be a number that is known, it is "),
    (lambda x: op.nn.attention(x, x, x, scale=x), "scale must be a number that is known"),
    (lambda x: op.nn.max_pool1d(x, strides=None), "strides must be one or several whole numbers"),
    (lambda x: op.nn.conv1d(x, x, padding=None), "padding must be one or several whole numbers"),
    (lambda x: op.nn.pad(x, None), "pad_width must be one or several whole numbers, it is None"),
    (lambda x: op.nn.pad(x, -2.5), "a size or an axis must be a whole number, it is -2.5"),
    (lambda x: op.image.resize2d(x, (4, 4), roi="abc"), "roi must be a number that is known"),
    (lambda x: op.layout_transform(x, [1, 0]), r"index_map must be an IndexMap or a function"),
    (lambda x: op.strided_slice(x, 0, 1, 2), "tuples of whole numbers, not 0"),
    (lambda x: op.broadcast_to(x, 1.5), "a shape is a tuple of sizes, or a size, not 1.5"),
    (lambda x: op.unique(x, return_index="yes"), "a flag must be a whole number, it is 'yes'"),
    (lambda x: op.concat(3j), "cannot use a Python complex"),
])
def test_what_is_no_number_is_refused_by_name(build, what):
    with pytest.raises(TypeError, match=what):
        build(var(2, 3, 4))


def test_an_empty_layout_is_refused_as_any_other():
    with pytest.raises(ValueError, match="layout"):
        op.nn.max_pool1d(var(2, 3, 4), layout="")


def test_tensors_and_shapes_where_numbers_are_needed():
    x, shape = var(2, 3), relax.Var("s", relax.ShapeStructInfo(ndim=3))
    for build, what in ((lambda: op.arange(x), "end must be a scalar"),
                        (lambda: op.arange(0, x, dtype="int64"), "end must be a scalar"),
                        (lambda: op.eye(x), "n must be a scalar"),
                        (lambda: op.image.resize2d(var(1, 3, 8, 8), shape), "two values, it has 3")
                        ):
        with pytest.raises(StructInfoError, match=what):
            build()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
def test_places_need_a_dtype_that_has_numbers_for_them(dtype):
    x = relax.Var("x", relax.TensorStructInfo((300, 2), "float32"))
    for call in (lambda: op.argsort(x, 0, dtype=dtype), lambda: op.topk(x, 2, 0, dtype=dtype)):
        with pytest.raises(StructInfoError, match=dtype):
            relax.BlockBuilder().normalize(call())
    relax.BlockBuilder().normalize(op.topk(x, 2, 0, "values", dtype=dtype))
    if dtype != "bool":
        relax.BlockBuilder().normalize(op.argsort(x, 1, dtype=dtype))


@pytest.mark.parametrize("call", [
    lambda: op.nn.conv2d(var(1, 3, 8, 8), var(4, 3, 3, 3), out_layout="OHWN"),
    lambda: op.nn.conv1d_transpose(var(1, 3, 8), var(3, 4, 3), out_layout="OWN"),
    lambda: op.nn.max_pool2d(var(1, 3, 8, 8), out_layout="NCH"),
    lambda: op.nn.adaptive_avg_pool2d(var(1, 3, 8, 8), 1, out_layout="NKHW"),
])
def test_a_layout_of_the_result_of_other_letters_is_refused(call):
    with pytest.raises(StructInfoError, match="of the result must be made of the letters"):
        call()


def test_operands_of_two_dtypes_are_a_type_error():
    with pytest.raises(TypeError, match="convert one with R.astype"):
        op.add(var(3), whole(3))
