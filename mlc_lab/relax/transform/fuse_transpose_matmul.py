"""FuseTransposeMatmul: a product with a transposed matrix reads the matrix as it is.

torch keeps the weight of a linear layer as (out, in), so importers write
`R.matmul(x, R.permute_dims(w))`. Where w is no constant (that FoldConstant would transpose once),
the transpose would be computed for each input; the kernel `NT_matmul` reads w[j, k] instead.

before::

    @R.function
    def main(x: R.Tensor((4, 8), "float32"),
             w: R.Tensor((6, 8), "float32")) -> R.Tensor((4, 6), "float32"):
        with R.dataflow():
            lv = R.permute_dims(w)
            gv = R.matmul(x, lv)
            R.output(gv)
        return gv

after `FuseTransposeMatmul()`::

    @T.prim_func(private=True)
    def NT_matmul(x: T.Buffer((T.int64(4), T.int64(8)), "float32"),
                  w: T.Buffer((T.int64(6), T.int64(8)), "float32"),
                  NT_matmul: T.Buffer((T.int64(4), T.int64(6)), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        for i0, i1, k in T.grid(T.int64(4), T.int64(6), T.int64(8)):
            with T.block("NT_matmul"):
                v_i0, v_i1, v_k = T.axis.remap("SSR", [i0, i1, k])
                with T.init():
                    NT_matmul[v_i0, v_i1] = T.float32(0.0)
                NT_matmul[v_i0, v_i1] = NT_matmul[v_i0, v_i1] + x[v_i0, v_k] * w[v_i1, v_k]

    @R.function
    def main(x: R.Tensor((4, 8), "float32"),
             w: R.Tensor((6, 8), "float32")) -> R.Tensor((4, 6), "float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.NT_matmul, (x, w), out_sinfo=R.Tensor((4, 6), "float32"))
            R.output(gv)
        return gv
"""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeGuard

from ... import te
from ...topi.utils import rounded, sum_type
from ..block_builder import BlockBuilder
from .rewriting import (
    BindingBlock, Call, Constant, DataflowBlock, Expr, Function, IRModule, Pass, PassContext, Var,
    VarBinding, is_call_of, make_pass, map_blocks, replace_functions, same_bindings, used_vars,
)


def FuseTransposeMatmul() -> Pass:
    """Compute matmul(x, permute_dims(w)) by a kernel that reads w as it is.

    Only for a matrix w that is no constant and whose transpose nothing else uses.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        builder = BlockBuilder(mod)
        changes = {}
        for var, func in mod.functions.items():
            if isinstance(func, Function):
                new = map_blocks(func, lambda b: _fuse(builder, b))
                if new is not func:
                    changes[var] = new
        return replace_functions(builder.get(), changes) if changes else mod

    return make_pass("FuseTransposeMatmul", run, FuseTransposeMatmul.__doc__)


def _fuse(builder: BlockBuilder, block: BindingBlock) -> BindingBlock:
    if type(block) is not DataflowBlock:
        return block
    values: dict[Var, Expr] = {b.var: b.value for b in block.bindings if type(b) is VarBinding}
    uses = Counter(v for b in block.bindings for v in used_vars(b))
    gone: set[Var] = set()
    out = []
    for b in block.bindings:
        product = b.value
        if type(b) is VarBinding and is_call_of(product, "relax.matmul"):
            x, right = product.args
            transpose = values.get(right)
            if uses[right] == 1 and _is_transpose(transpose) and x.struct_info.dims is not None:
                gone.add(right)
                call = builder.call_te(_nt_matmul(product.attrs.out_dtype), x, transpose.args[0],
                                       primfunc_name_hint="NT_matmul")
                b = VarBinding(b.var, builder.normalize(call))
        out.append(b)
    return same_bindings(block, [b for b in out if b.var not in gone]) if gone else block


def _is_transpose(value: Expr | None) -> TypeGuard[Call]:
    """Whether a value is the transpose of a matrix of known shape that is no constant."""
    if not is_call_of(value, "relax.permute_dims") or type(value.args[0]) is Constant:
        return False
    info, axes = value.args[0].struct_info, value.attrs.axes
    return info.ndim == 2 and info.dims is not None and (
        axes is None or [int(a) % 2 for a in axes] == [1, 0])


def _nt_matmul(out_dtype: str) -> Any:
    """The tensor expression sum over k of a[..., k] * b[j, k]."""
    def NT_matmul(a: Any, b: Any) -> Any:
        k = te.reduce_axis((0, a.shape[-1]), "k")
        dtype = a.dtype if out_dtype == "void" else out_dtype

        wide = sum_type(dtype)

        def value(*i: Any) -> Any:
            return te.sum(a(*i[:-1], k).astype(wide) * b(i[-1], k).astype(wide), axis=k)

        shape = [*a.shape[:-1], b.shape[0]] if len(a.shape) > 1 else [b.shape[0]]
        return rounded(te.compute(shape, value, name="NT_matmul"), dtype)

    return NT_matmul


__all__ = ["FuseTransposeMatmul"]
