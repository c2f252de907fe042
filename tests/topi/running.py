"""Runs operators on arrays through LLVM, for the tests of this folder."""

from __future__ import annotations

import numpy as np

import mlc_lab
from mlc_lab import te

RNG = np.random.default_rng(7)


def array(*shape, dtype="float32", low=-2.0, high=2.0):
    """Random numbers."""
    if dtype == "bool":
        return RNG.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        return RNG.integers(int(low), int(high), shape).astype(dtype)
    return RNG.uniform(low, high, shape).astype(dtype)


def run(operator, *arrays):
    """What the compiled operator gives on arrays: one array, or a list of them."""
    ins = [te.placeholder(a.shape, str(a.dtype), name=f"x{i}") for i, a in enumerate(arrays)]
    made = operator(*ins)
    outs = list(made) if isinstance(made, (list, tuple)) else [made]
    func = te.create_prim_func([*ins, *outs])
    results = [np.empty([int(d) for d in t.shape], t.dtype) for t in outs]
    mlc_lab.build(func, target="llvm")(*[np.ascontiguousarray(a) for a in arrays], *results)
    return results if isinstance(made, (list, tuple)) else results[0]


def check(operator, arrays, expected, rtol=1e-4, atol=1e-5):
    """The compiled operator agrees with `expected` on arrays, in values, shape and dtype."""
    got = run(operator, *arrays)
    if not isinstance(got, list):
        got, expected = [got], [expected]
    for g, e in zip(got, expected):
        e = np.asarray(e.detach().numpy() if hasattr(e, "detach") else e)
        assert g.shape == e.shape
        np.testing.assert_allclose(g, e, rtol=rtol, atol=atol)
