"""Constructors of intrinsics whose result type is given, and min and max of more than two."""

import numpy as np
import pytest

from mlc_lab import tir
from mlc_lab.ir import assert_structural_equal
from mlc_lab.script import tir as T

SHARED = tir.decl_buffer((16, 16), "float16", name="S", scope="shared")
LOCAL = tir.decl_buffer((8,), "float16", name="L", scope="local")


def test_the_type_is_written_first_last_or_fixed():
    assert tir.ptx_cp_async("float16", SHARED.data, 0, LOCAL.data, 0, 16).dtype == "float16"
    assert tir.tvm_struct_get(tir.Var("x", "handle"), 1, 2, dtype="int32").dtype == "int32"
    assert tir.tvm_struct_get(tir.Var("x", "handle"), 1, 2, "int64").dtype == "int64"
    assert tir.ptx_wait_group(8).dtype == "void"
    assert tir.lookup_param("p0").dtype == "handle"
    low = tir.vectorlow("int8x8", tir.Var("v", "int8x16"))
    assert low.dtype == "int8x8" and low.op.name == "tir.vectorlow"
    assert tir.dp4a(tir.Var("a", "int8x4"), tir.Var("b", "int8x4")).dtype == "int32"


def test_they_are_the_calls_that_a_script_makes():
    for ours, script in [
        (tir.ptx_commit_group(), T.ptx_commit_group()),
        (tir.create_barriers(16), T.create_barriers(16)),
        (tir.address_of(LOCAL[3]), T.address_of(LOCAL[3])),
        (tir.tvm_access_ptr("float16", LOCAL.data, 0, 8, 1),
         T.tvm_access_ptr(T.type_annotation("float16"), LOCAL.data, 0, 8, 1)),
        (tir.mma_fill("float16", 8, LOCAL.data, 0), T.mma_fill("float16", 8, LOCAL.data, 0)),
    ]:
        assert_structural_equal(ours, script)


def test_a_wrong_number_of_arguments_is_refused():
    with pytest.raises(TypeError, match="ptx_wait_group takes 1 argument"):
        tir.ptx_wait_group()
    with pytest.raises(TypeError, match="ptx_ldmatrix takes a dtype as its first"):
        tir.ptx_ldmatrix()
    with pytest.raises(TypeError, match="vectorlow takes 1 .* after the dtype, got 2"):
        tir.vectorlow("int8x8", tir.Var("v", "int8x16"), 1)


def test_min_and_max_take_all_their_arguments():
    for count in range(2, 7):
        assert tir.max(*range(count)) == count - 1
        assert tir.min(*reversed(range(count))) == 0
    x, y, z = (tir.Var(n, "int32") for n in "xyz")
    assert_structural_equal(tir.max(x, y, z), tir.Max(tir.Max(x, y), z))


def test_a_hint_takes_its_condition_by_name():
    x = tir.Var("x", "bool")
    assert tir.likely(cond=x).op.name == "tir.likely"
    assert tir.assume(cond=x).op.name == "tir.assume"


def test_index_maps_that_say_the_same_are_equivalent():
    flat = tir.IndexMap.from_func(lambda i, j: [4 * i + j])
    same = tir.IndexMap.from_func(lambda a, b: [b + a * 4])
    other = tir.IndexMap.from_func(lambda a, b: [b * 4 + a])
    assert flat.is_equivalent_to(same) and not flat.is_equivalent_to(other)
    assert not flat.is_equivalent_to(tir.IndexMap.from_func(lambda i: [i]))
    parts = tir.IndexMap.from_func(lambda i: [i // 4, i % 4])
    assert parts.inverse([16]).is_equivalent_to(flat)


def test_an_array_is_laid_out_by_an_index_map():
    from mlc_lab import nd

    data = np.arange(24, dtype="int8").reshape(2, 12)
    moved = tir.IndexMap.from_func(lambda i, j: [j // 4, i, j % 4]).map_ndarray(nd.array(data))
    np.testing.assert_equal(moved.numpy(), data.reshape(2, 3, 4).transpose(1, 0, 2))


@T.prim_func
def scaled(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, 8))
    B = T.match_buffer(b, (n, 8))
    for i, j in T.grid(n, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0


def test_all_definitions_are_renewed():
    from mlc_lab.compat.passes import renew_defs

    again = renew_defs(scaled)
    assert_structural_equal(again, scaled)
    assert not set(again.params) & set(scaled.params)
    assert not {b.data for b in again.buffer_map.values()} & {
        b.data for b in scaled.buffer_map.values()}
    old, new = tir.pre_order(scaled.body), tir.pre_order(again.body)
    loops = {n.loop_var for n in old if isinstance(n, tir.For)}
    assert loops and not loops & {n.loop_var for n in new if isinstance(n, tir.For)}


def test_a_reduction_by_name_and_by_place_is_the_same():
    from mlc_lab import te

    A = te.placeholder((8, 4), name="A")
    k = te.reduce_axis((0, 4), "k")
    by_name, by_place = tir.max(A[0, k], axis=k), tir.max(A[0, k], k, k.var > 1)
    assert isinstance(by_name, tir.Reduce) and isinstance(by_place, tir.Reduce)
    assert_structural_equal(by_place.condition, k.var > 1)


def test_a_number_that_no_float32_holds_is_a_float64():
    assert tir.const(3.4e38).dtype == "float32" and tir.const(float("inf")).dtype == "float32"
    assert tir.const(3.5e38).dtype == "float64" and tir.const(-3.5e38).dtype == "float64"


def test_floats_have_no_bit_operations():
    x = tir.Var("x", "float32")
    for operate in (lambda: x & x, lambda: x << 1, lambda: x ^ x, lambda: tir.bitwise_not(x),
                    lambda: tir.const(1.5) | tir.const(2.0)):
        with pytest.raises(ValueError, match="is a float: convert it first"):
            operate()
    assert (tir.Var("b", "bool") & tir.Var("c", "bool")).dtype == "bool"
