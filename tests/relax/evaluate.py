"""Runs legalised Relax functions binding by binding, their TensorIR through LLVM.

This is no virtual machine: it is as simple as can be, so that tests of operators and importers do
not depend on one.
"""

from __future__ import annotations

import numpy as np

import mlc_lab
import mlc_lab.relax.vm  # registers what an ExternFunc calls
from mlc_lab import relax, tir
from mlc_lab.ir import IRModule
from mlc_lab.relax.transform import LegalizeOps
from mlc_lab.runtime import get_global_func
from mlc_lab.tir.functor import substitute


class Evaluator:
    """A legalised module, its kernels compiled."""

    def __init__(self, mod):
        self.mod = LegalizeOps()(mod)
        kernels = {}
        for var, func in self.mod.functions.items():
            if isinstance(func, tir.PrimFunc):
                kernels[var.name_hint] = func.with_attr("global_symbol", var.name_hint)
        self.lib = mlc_lab.build(IRModule(kernels), target="llvm") if kernels else None

    def __call__(self, *args, func="main"):
        fn = self.mod[func]
        self.env, self.sizes = {}, {}
        for param, arg in zip(fn.params, args):
            self.bind(param, param.struct_info_, arg)
        assert len(args) == len(fn.params), (len(args), len(fn.params))
        for block in fn.body.blocks:
            for binding in block.bindings:
                value = self.value(binding.value)
                info = getattr(binding, "struct_info", None) or binding.var.struct_info_
                self.bind(binding.var, info, value)
        return self.value(fn.body.body)

    def bind(self, var, info, value):
        """Remember a value and the sizes it gives to symbolic dimensions; check the others."""
        self.env[var] = value
        self.learn(info, value)

    def learn(self, info, value):
        if isinstance(info, relax.TupleStructInfo):
            for f, v in zip(info.fields_, value):
                self.learn(f, v)
            return
        dims = getattr(info, "dims", None) or getattr(info, "values", None)
        if isinstance(info, relax.TensorStructInfo):
            assert str(value.dtype) == info.dtype or not info.dtype, (value.dtype, info)
        if dims is None or value is None:
            return
        shape = value if isinstance(value, tuple) else value.shape
        assert len(shape) == len(dims), (shape, info)
        for d, n in zip(dims, shape):
            if isinstance(d, tir.Var):
                self.sizes.setdefault(d, int(n))
            assert self.size(d) == n, (shape, info)

    def size(self, dim):
        if isinstance(dim, int):
            return dim
        value = substitute(dim, {v: tir.IntImm(v.dtype, n) for v, n in self.sizes.items()})
        return mlc_lab.arith.Analyzer().simplify(value).value

    def value(self, e):
        if isinstance(e, relax.Var):
            return self.env[e]
        if isinstance(e, relax.Constant):
            return e.data.numpy()
        if isinstance(e, relax.Tuple):
            return [self.value(f) for f in e.fields_]
        if isinstance(e, relax.TupleGetItem):
            return self.value(e.tuple_value)[e.index]
        if isinstance(e, relax.ShapeExpr):
            return tuple(self.size(v) for v in e.values)
        if isinstance(e, relax.PrimValue):
            return self.size(e.value) if e.value.dtype.startswith("int") else e.value.value
        name = getattr(e.op, "name", "")
        if name == "relax.call_tir":
            return self.call_tir(e)
        if name == "relax.tensor_to_shape":
            return tuple(int(v) for v in self.value(e.args[0]))
        if isinstance(e.op, relax.ExternFunc):
            args = [mlc_lab.nd.array(v) if isinstance(v, np.ndarray) else v
                    for v in map(self.value, e.args)]
            out = get_global_func(e.op.global_symbol)(*args)
            return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]
        raise AssertionError(f"{name or e} was not legalised")

    def call_tir(self, e):
        args = self.value(e.args[1])
        infos = e.sinfo_args[0]
        several = isinstance(infos, relax.TupleStructInfo)
        outs = [np.empty([self.size(d) for d in i.dims], i.dtype)
                for i in (infos.fields_ if several else [infos])]
        rest = [self.size(v) for v in e.args[2].values] if len(e.args) > 2 else []
        self.lib[e.args[0].name_hint](*map(np.ascontiguousarray, args), *outs, *rest)
        return outs if several else outs[0]


def module_of(build, *infos):
    """A module whose `main` is `build(*variables)`, for arrays or struct infos of parameters."""
    params = []
    for k, info in enumerate(infos):
        if not isinstance(info, relax.StructInfo):
            info = relax.TensorStructInfo(info.shape, str(info.dtype))
        params.append(relax.Var(f"x{k}", info))
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(build(*params))
        bb.emit_func_output(out)
    return bb.get()


def check(build, arrays, expected, infos=None, rtol=1e-4, atol=1e-5):
    """A Relax expression, legalised and run, agrees with `expected`."""
    mod = module_of(build, *(infos or arrays))
    got = Evaluator(mod)(*arrays)
    if not isinstance(got, list):
        got, expected = [got], [expected]
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        e = np.asarray(e.detach().numpy() if hasattr(e, "detach") else e)
        assert g.shape == e.shape, (g.shape, e.shape)
        np.testing.assert_allclose(g, e, rtol=rtol, atol=atol)
