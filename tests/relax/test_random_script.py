"""Random Relax functions print and parse back to themselves, and survive being rebuilt."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laws import check_roundtrip

from mlc_lab import relax
from mlc_lab.ir import assert_structural_equal
from mlc_lab.relax import op as R
from mlc_lab.relax.analysis import verify_well_formed
from mlc_lab.relax.utils import copy_with_new_vars
from mlc_lab.script import from_source
from mlc_lab.tir import SizeVar, Var

NAMES = ["x", "lv", "gv", "n", "R", "cls", "for", "str", "a.b", "1st"]
T = relax.TensorStructInfo


@st.composite
def functions(draw):
    """A module of one function: symbolic shapes, tuples, branches, casts, effects."""
    symbols = [draw(st.sampled_from([Var, SizeVar]))(draw(st.sampled_from(["n", "m", "x"])),
                                                     "int64") for _ in range(2)]
    n, m = symbols
    shapes = [(n, 4), (m,), (n, m), (n + 1, m * 2), (3, 4), ()]
    params = [relax.Var(draw(st.sampled_from(NAMES)), T(s, draw(st.sampled_from(
        ["float32", "float16", "int64", "bool"])))) for s in shapes]
    params.append(relax.Var("s", relax.ShapeStructInfo([n, m])))
    params.append(relax.Var("c", T((), "bool")))
    impure = draw(st.booleans())
    bb = relax.BlockBuilder()
    with bb.function("main", params, pure=not impure, private=draw(st.booleans())):
        pool = list(params[:6])
        for _ in range(draw(st.integers(0, 2))):
            with bb.dataflow():
                made = [emit(draw, bb, [*pool], n) for _ in range(draw(st.integers(1, 4)))]
                pool += [bb.emit_output(v, draw(st.sampled_from(NAMES))) for v in made[-1:]]
            pool += [emit(draw, bb, pool, n) for _ in range(draw(st.integers(0, 2)))]
            if impure:
                bb.emit(R.print(pool[-1], format="value {}"))
            if draw(st.booleans()):
                x = draw(st.sampled_from(pool))
                pool.append(bb.emit(relax.If(params[-1], x, R.astype(R.astype(x, "int8"), str(
                    x.struct_info.dtype)))))
        bb.emit_func_output(draw(st.sampled_from([pool[-1], relax.Tuple(pool[-2:]),
                                                  relax.ShapeExpr([n, m + 1])])))
    return bb.get()


def emit(draw, bb, pool, n):
    """One binding on a value of the pool."""
    x = draw(st.sampled_from(pool))
    ndim, hint = x.struct_info.ndim, draw(st.sampled_from(["", *NAMES]))
    kind = draw(st.sampled_from(["abs", "cast", "flat", "zeros", "tuple", "packed", "const",
                                 "alias", "add"]))
    if kind == "cast":
        if bb.current_block_is_dataflow():
            return bb.emit(R.astype(x, "float32"), hint)
        return bb.match_cast(x, T([Var(f"k{i}", "int64") for i in range(ndim)],
                                  x.struct_info.dtype), hint)
    if kind == "flat":
        return bb.emit(R.reshape(R.flatten(x), (-1,)), hint)
    if kind == "zeros":
        return bb.emit(R.full((n, 2), relax.const(1.5, "float32"), "float16"), hint)
    if kind == "tuple":
        return bb.emit(relax.Tuple([x, relax.Tuple([x])])[0], hint)
    if kind == "packed":
        return bb.emit(R.call_dps_packed("lib.f", (x,), T((n * 2, 3), "float32")), hint)
    if kind == "const":
        return bb.emit(relax.const([[1, 2], [3, 4]], "int32"), hint)
    if kind == "alias":
        return bb.emit(x, hint)
    if kind == "add":
        return bb.emit(R.equal(x, x), hint)
    return bb.emit((R.logical_not if x.struct_info.dtype == "bool" else R.abs)(x), hint)


@settings(max_examples=40, deadline=None,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(functions())
def test_random_functions_print_parse_and_are_rebuilt(mod):
    verify_well_formed(mod)
    if 'metadata["relax' in mod.script():
        assert_structural_equal(mod, from_source(mod.script(show_meta=True)))
    else:
        check_roundtrip(mod)
    assert_structural_equal(copy_with_new_vars(mod["main"]), mod["main"])
