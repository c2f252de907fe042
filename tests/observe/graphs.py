"""Computation graphs for the tests of the graph view: made by hand, so that a test knows them."""

import numpy as np

from mlc_lab import relax, te
from mlc_lab.ir.module import GlobalVar, IRModule
from mlc_lab.te.create_prim_func import create_prim_func


def tensor(*shape):
    return relax.TensorStructInfo(shape, "float32")


class Bindings:
    """Bindings of one dataflow block, in order."""

    def __init__(self):
        self.found = []

    def emit(self, value, info, output=False):
        kind = relax.Var if output else relax.DataflowVar
        var = kind(f"lv{len(self.found)}", info)
        self.found.append(relax.VarBinding(var, value))
        return var

    def function(self, params, result, **attrs):
        body = relax.SeqExpr([relax.DataflowBlock(self.found)], result)
        return relax.Function(params, body, result.struct_info_, attrs=attrs)


def call_tir(var, *args):
    info = tensor(1, 128)
    return relax.Call("relax.call_tir", [var, relax.Tuple(args)], sinfo_args=[info])


def fused_module():
    """main(x): two calls of a fused function of two kernels, a relu, and a packed function."""
    a = te.placeholder((1, 128), name="A")
    kernel = create_prim_func([a, te.compute((1, 128), lambda i, j: a[i, j] + 1.0, name="T_add")])
    add, fused = GlobalVar("add"), GlobalVar("fused_add_add")
    info = tensor(1, 128)
    p, q = relax.Var("p", info), relax.Var("q", info)
    inner = Bindings()
    first = inner.emit(call_tir(add, p), info)
    second = inner.emit(call_tir(add, first), info, output=True)
    x = relax.Var("x", info)
    outer = Bindings()
    one = outer.emit(relax.Call(fused, [x, x]), info)
    two = outer.emit(relax.Call(fused, [one, x]), info)
    three = outer.emit(relax.op.nn.relu(two), info)
    weight = relax.Constant(np.zeros((128, 128), "float32"))
    four = outer.emit(relax.op.call_dps_packed("env.linear", (three, weight), info), info,
                      output=True)
    return IRModule({fused: inner.function([p, q], second, Primitive=1), add: kernel,
                     GlobalVar("main"): outer.function([x], four, global_symbol="main")})


def chain(length):
    """A function of `length` operators, each reading the two before it."""
    info = tensor(64, 64)
    x = relax.Var("x", info)
    block, before = Bindings(), [x, x]
    for number in range(length):
        last = number == length - 1
        before = [before[1], block.emit(relax.op.add(*before), info, last)]
    return block.function([x], before[1], global_symbol="main")
