"""SpecializeKernels: a kernel of symbolic sizes, called with fixed ones, is compiled for those.

before::

    @T.prim_func(private=True)
    def double(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,))
        Y = T.match_buffer(y, (n,))
        for i in range(n):
            with T.block("Y"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] + X[vi]

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(y)
        return y

after `SpecializeKernels()`::

    @T.prim_func(private=True)
    def double(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,))
        Y = T.match_buffer(y, (n,))
        for i in range(n):
            with T.block("Y"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] + X[vi]

    @T.prim_func(private=True)
    def double1(X: T.Buffer((T.int64(8),), "float32"), Y: T.Buffer((T.int64(8),), "float32")):
        for i in range(T.int64(8)):
            with T.block("Y"):
                vi = T.axis.spatial(T.int64(8), i)
                Y[vi] = X[vi] + X[vi]

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.double1, (x,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(y)
        return y

Loops of known length can be tiled without remainders. A kernel of the module that is called by its
name, with `R.call_dps_packed("double", ...)`, is treated alike. What nobody calls any more goes
with DeadCodeElimination.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.module import GlobalVar, IRModule
from ...ir.serialize import load_json, save_json
from ...ir.transform import Pass, PassContext
from ...tir.expr import IntImm
from ...tir.expr import Var as TirVar
from ...tir.function import PrimFunc
from ...tir.op import as_int
from ..expr import Call, ExternFunc, Function, SeqExpr, VarBinding
from ..struct_info import ShapeExpr, TensorStructInfo
from .lowering import flat_items, tensors_of
from .rewriting import (
    CALL_DPS_PACKED, CALL_TIR, fresh_name, is_call_of, make_pass, map_blocks, replace_functions,
    with_body,
)

if TYPE_CHECKING:
    from ..expr import Binding


class _Specialize:
    """Specialises the calls of one module."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.added: dict[GlobalVar, PrimFunc] = {}
        self.made: dict[tuple, GlobalVar] = {}
        self.taken = {v.name_hint for v in mod.functions}

    def block(self, block: Any) -> Any:
        """The bindings of a block."""
        new = tuple(self.binding(b) for b in block.bindings)
        return block if all(a is b for a, b in zip(new, block.bindings)) else type(block)(new)

    def binding(self, binding: Binding) -> Any:
        """One binding: a call of a symbolic kernel with fixed sizes calls another."""
        call = binding.value
        if type(binding) is not VarBinding or not is_call_of(call, CALL_TIR, CALL_DPS_PACKED):
            return binding
        var = self.kernel(call.args[0])
        if var is None or len(call.args) > 2:
            return binding
        shapes = self.shapes(call)
        if shapes is None:
            return binding
        special = self.special(var, shapes)
        if special is None:
            return binding
        return VarBinding(binding.var, Call(
            CALL_TIR, (special, *call.args[1:]), None, call.sinfo_args,
            struct_info=call.struct_info_))

    def kernel(self, callee: Any) -> GlobalVar | None:
        """The kernel of the module that a call calls."""
        if type(callee) is ExternFunc and callee.global_symbol in self.mod:
            callee = self.mod.get_global_var(callee.global_symbol)
        return callee if type(callee) is GlobalVar and isinstance(
            self.mod.functions.get(callee), PrimFunc) else None

    def shapes(self, call: Call) -> tuple | None:
        """The shapes of all tensors of a call; None where one is not fixed."""
        infos = [item.struct_info_ for item in flat_items(call.args[1])]
        out = []
        for info in (*infos, *tensors_of(call.struct_info_)):
            if not isinstance(info, TensorStructInfo) or type(info.shape) is not ShapeExpr:
                return None
            shape = tuple(as_int(d) for d in info.shape.values)
            if None in shape:
                return None
            out.append(shape)
        return tuple(out)

    def special(self, var: GlobalVar, shapes: tuple) -> GlobalVar | None:
        """The kernel for these shapes, made on first use; None where there is nothing to fix."""
        func = self.mod.functions[var]
        if len(func.params) != len(shapes) or len(func.buffer_map) != len(shapes):
            return None
        if (var, shapes) not in self.made:
            sizes: dict[Any, Any] = {}
            for param, shape in zip(func.params, shapes):
                buffer = func.buffer_map[param]
                if len(buffer.shape) != len(shape) or buffer.strides:
                    return None
                for dim, size in zip(buffer.shape, shape):
                    if isinstance(dim, TirVar):
                        known = sizes.setdefault(dim, IntImm(dim.dtype, size))
                        if known.value != size:
                            return None  # a misfit: let it be found as the program runs
            if not sizes:
                return None
            fixed = func.specialize(sizes).without_attr("global_symbol")
            fixed = PrimFunc(fixed.buffers, fixed.body, fixed.ret_type, attrs=fixed.attrs)
            new = load_json(save_json(fixed))  # with variables of its own
            name = fresh_name(self.taken, var.name_hint)
            self.taken.add(name)
            self.made[var, shapes] = GlobalVar(name)
            self.added[self.made[var, shapes]] = new
        return self.made[var, shapes]


def _rewrite(mod: IRModule, ctx: PassContext) -> IRModule:
    specialize = _Specialize(mod)
    changes = {}
    for var, func in mod.functions.items():
        if isinstance(func, Function) and type(func.body) is SeqExpr:
            new = with_body(func, map_blocks(func.body, specialize.block))
            if new is not func:
                changes[var] = new
    return replace_functions(mod, changes, specialize.added)


def SpecializeKernels() -> Pass:
    """Compile kernels of symbolic sizes for the fixed sizes they are called with."""
    return make_pass("SpecializeKernels", _rewrite, SpecializeKernels.__doc__)


__all__ = ["SpecializeKernels"]
