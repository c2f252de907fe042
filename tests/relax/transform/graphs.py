"""Random small computation graphs of operators, for tests that passes keep the meaning."""

import numpy as np
from hypothesis import strategies as st

from mlc_lab import relax
from mlc_lab.relax import op as R

SHAPES = [(4, 6), (6, 4), (4, 4), (6,), (4, 1)]
UNARY = [R.exp, R.negative, R.nn.relu, R.abs, R.sigmoid, R.tanh]
BINARY = [R.add, R.multiply, R.subtract, R.maximum]


def shape_of(expr):
    return tuple(int(d) for d in expr.struct_info.dims)


def broadcastable(a, b):
    try:
        return np.broadcast_shapes(a, b) is not None
    except ValueError:
        return False


@st.composite
def graphs(draw, size=8, constants=True, parts=True):
    """(module, input arrays): one function of a few operators, one to three results.

    With `parts` a second dataflow block and ordinary bindings may follow.
    """
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    bb = relax.BlockBuilder()
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    params = [relax.Var(f"x{i}", relax.TensorStructInfo(s, "float32"))
              for i, s in enumerate(shapes)]
    arrays = [rng.uniform(-1, 1, s).astype("float32") for s in shapes]
    with bb.function("main", params):
        pool = list(params)
        with bb.dataflow():
            pool += emit_some(draw, bb, list(pool), size, constants, rng)
            count = draw(st.integers(1, 3))
            outs = [bb.emit_output(v) for v in pool[-count:]]
        if parts and draw(st.booleans()):
            outs += emit_some(draw, bb, [*params, *outs], 2, constants, rng)[-1:]
        if parts and draw(st.booleans()):
            with bb.dataflow():
                more = emit_some(draw, bb, [*params, *outs], 3, constants, rng)
                outs = [outs[0], bb.emit_output(more[-1])]
        bb.emit_func_output(outs[0] if len(outs) == 1 else relax.Tuple(outs))
    return bb.get(), arrays


def emit_some(draw, bb, pool, size, constants, rng):
    """Emit up to `size` operators on values of the pool; the variables they are bound to."""
    made = []
    for _ in range(draw(st.integers(1, size))):
        x = draw(st.sampled_from(pool))
        value = step(draw, bb, x, pool, constants, rng)
        if isinstance(value.struct_info, relax.TupleStructInfo):
            t = bb.emit(value)
            parts = [bb.emit(t[0]), bb.emit(t[1])]
            made += parts
            pool += parts
            continue
        var = bb.emit(value)
        made.append(var)
        pool.append(var)
    return made


def step(draw, bb, x, pool, constants, rng):
    """One random operator on x."""
    shape = shape_of(x)
    kind = draw(st.sampled_from(["unary", "binary", "binary", "matmul", "reduce", "transpose",
                                 "constant", "softmax", "split", "alias", "concat"]))
    if kind == "binary":
        others = [v for v in pool if broadcastable(shape, shape_of(v))]
        return draw(st.sampled_from(BINARY))(x, draw(st.sampled_from(others)))
    if kind == "matmul" and len(shape) == 2:
        others = [v for v in pool if len(shape_of(v)) == 2 and shape_of(v)[0] == shape[1]]
        if others:
            return R.matmul(x, draw(st.sampled_from(others)))
    if kind == "reduce" and len(shape) == 2:
        return R.sum(x, axis=draw(st.integers(0, 1)), keepdims=draw(st.booleans()))
    if kind == "transpose" and len(shape) == 2:
        return R.permute_dims(x)
    if kind == "constant" and constants:
        c = relax.const(rng.uniform(-1, 1, shape if draw(st.booleans()) else ()).astype("float32"))
        if draw(st.booleans()):
            return R.add(x, bb.emit(R.exp(c)))
        return R.multiply(x, c)
    if kind == "softmax" and shape:
        return R.nn.softmax(x)
    if kind == "split" and shape and shape[-1] % 2 == 0:
        return R.split(x, 2, axis=len(shape) - 1)
    if kind == "alias":
        return x
    if kind == "concat" and shape:
        others = [v for v in pool if shape_of(v) == shape]
        return R.concat([x, draw(st.sampled_from(others))], axis=0)
    return draw(st.sampled_from(UNARY))(x)
