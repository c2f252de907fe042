"""Runs a module of Relax in any state between passes: graph, fused functions, kernels, libraries.

The reference for tests of passes: as simple as can be. Operators run with numpy, kernels compiled
by LLVM.
"""

import numpy as np

import mlc_lab

from mlc_lab import relax
from mlc_lab.runtime import get_global_func

from mlc_lab import tir
from mlc_lab.ir import IRModule
from relax.evaluate import Evaluator




def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def matmul(a, b, out_dtype):
    dtype = a.dtype if out_dtype == "void" else out_dtype
    return np.matmul(a.astype("float32"), b.astype("float32")).astype(dtype)


#: operator -> what it means, called with (arguments, attributes)
NUMPY = {
    "add": lambda a, _: a[0] + a[1], "multiply": lambda a, _: a[0] * a[1],
    "subtract": lambda a, _: a[0] - a[1], "maximum": lambda a, _: np.maximum(a[0], a[1]),
    "divide": lambda a, _: a[0] / a[1], "sqrt": lambda a, _: np.sqrt(a[0]),
    "exp": lambda a, _: np.exp(a[0]), "negative": lambda a, _: -a[0],
    "abs": lambda a, _: np.abs(a[0]), "tanh": lambda a, _: np.tanh(a[0]),
    "sigmoid": lambda a, _: 1 / (1 + np.exp(-a[0])), "nn.relu": lambda a, _: np.maximum(a[0], 0),
    "matmul": lambda a, k: matmul(a[0], a[1], k.out_dtype),
    "sum": lambda a, k: a[0].sum(axis=k.axis if k.axis is None else tuple(
        np.atleast_1d(k.axis)), keepdims=k.keepdims),
    "permute_dims": lambda a, k: np.transpose(a[0], k.axes),
    "reshape": lambda a, _: np.reshape(a[0], a[1]),
    "nn.softmax": lambda a, k: softmax(a[0], k.axis),
    "split": lambda a, k: np.split(a[0], k.indices_or_sections, axis=k.axis),
    "concat": lambda a, k: np.concatenate(a[0], axis=k.axis),
    "expand_dims": lambda a, k: np.expand_dims(a[0], tuple(np.atleast_1d(k.axis))),
    "astype": lambda a, k: a[0].astype(k.dtype),
}


class Run(Evaluator):
    """`Run(mod)(*arrays)` is the value of main: an array, or a list for a tuple."""

    def __init__(self, mod):
        self.mod = mod
        kernels = {v.name_hint: f.with_attr("global_symbol", v.name_hint)
                   for v, f in mod.functions.items() if isinstance(f, tir.PrimFunc)}
        self.lib = mlc_lab.build(IRModule(kernels), target="llvm") if kernels else None

    def __call__(self, *args, func="main"):
        self.sizes = {}
        return self.function(self.mod[func], list(args), {})

    def function(self, fn, args, outer):
        saved, self.env = getattr(self, "env", {}), dict(outer)
        sizes, self.sizes = self.sizes, dict(self.sizes)
        assert len(args) == len(fn.params), (len(args), len(fn.params))
        for param, arg in zip(fn.params, args):
            self.bind(param, param.struct_info_, arg)
        result = self.seq(fn.body)
        self.env, self.sizes = saved, sizes
        return result

    def seq(self, body):
        if not isinstance(body, relax.SeqExpr):
            return self.value(body)
        for block in body.blocks:
            for binding in block.bindings:
                value = self.value(binding.value)
                info = getattr(binding, "struct_info", None) or binding.var.struct_info_
                self.bind(binding.var, info, value)
        return self.value(body.body)

    def learn(self, info, value):
        if not isinstance(info, relax.FuncStructInfo):
            super().learn(info, value)

    def value(self, e):
        if isinstance(e, relax.Function):
            return e, dict(self.env)
        if isinstance(e, relax.If):
            return self.seq(e.true_branch if bool(self.value(e.cond)) else e.false_branch)
        if isinstance(e, relax.Call):
            if isinstance(e.op, relax.GlobalVar):
                return self.function(self.mod[e.op], [self.value(a) for a in e.args], {})
            if isinstance(e.op, relax.Var):
                func, env = self.env[e.op]
                return self.function(func, [self.value(a) for a in e.args], env)
            if getattr(e.op, "name", "") == "relax.call_dps_packed":
                return self.packed(e)
            known = NUMPY.get(getattr(e.op, "name", "").removeprefix("relax."))
            if known is not None:
                out = known([self.value(a) for a in e.args], e.attrs)
                return list(out) if isinstance(out, (list, tuple)) else np.asarray(out)
        return super().value(e)

    def packed(self, e):
        info = e.sinfo_args[0]
        several = isinstance(info, relax.TupleStructInfo)
        outs = [np.zeros([self.size(d) for d in i.dims], i.dtype)
                for i in (info.fields_ if several else [info])]
        get_global_func(e.args[0].global_symbol)(*self.value(e.args[1]), *outs)
        return outs if several else outs[0]


def same_results(a, b, rtol=1e-5, atol=1e-5):
    """Two results agree: arrays, or lists of them."""
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same_results(x, y, rtol, atol)
        return
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)


__all__ = ["Run", "same_results"]
