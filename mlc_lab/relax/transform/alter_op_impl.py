"""AlterOpImpl: kernels are replaced by others, perhaps of other layouts.

A TensorIR function with the attribute `operator_name` is replaced by the function that the map has
for that name. Where the new function wants its buffers in other layouts, `R.layout_transform` puts
the arguments into them and the results back; a transform right after its inverse is left out.

before::

    @T.prim_func(private=True)
    def slow(x: T.Buffer((T.int64(8),), "float32"), y: T.Buffer((T.int64(8),), "float32")):
        T.func_attr({"operator_name": "double"})
        for i in range(T.int64(8)):
            with T.block("y"):
                vi = T.axis.spatial(T.int64(8), i)
                y[vi] = x[vi] + x[vi]

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.slow, (x,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(gv)
        return gv

after `AlterOpImpl({"double": fast})`::

    @T.prim_func(private=True)
    def slow(x: T.Buffer((T.int64(8),), "float32"), y: T.Buffer((T.int64(8),), "float32")):
        T.func_attr({"operator_name": "double"})
        for i in range(T.int64(8)):
            with T.block("y"):
                vi = T.axis.spatial(T.int64(8), i)
                y[vi] = x[vi] * T.float32(2.0)

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.slow, (x,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(gv)
        return gv
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ...arith.index_map import inverse, map_shape
from ...ir.structural import structural_equal
from ...tir.expr import IntImm
from ...tir.function import IndexMap, PrimFunc
from ..op.manipulate import layout_transform
from .dead_code_elimination import remove_all_unused
from .rewriting import (
    CALL_TIR, BindingBlock, Call, DataflowVar, Emitter, Expr, Function, GlobalVar,
    IRModule, Pass, PassContext, ShapeExpr, TensorStructInfo, Tuple, TupleGetItem, TupleStructInfo,
    Var, VarBinding, attr, is_call_of, make_pass, map_blocks, replace_functions, same_bindings,
)

if TYPE_CHECKING:
    from ..struct_info import StructInfo


def AlterOpImpl(op_impl_map: Mapping[str, PrimFunc],
                op_buffer_transforms: Mapping[str, Sequence[Any]] | None = None,
                op_buffer_axis_separators: Mapping[str, Any] | None = None,
                op_buffer_input_axis_separators: Mapping[str, Any] | None = None) -> Pass:
    """Replace kernels by their attribute `operator_name`.

    `op_buffer_transforms` maps a name to an IndexMap (or function of indices, or None) for each
    buffer of the new kernel, inputs then outputs. Axis separators, which say how machines with
    memory of two dimensions flatten a buffer, may be given as long as there are none. Raises
    ValueError where the number of transforms is wrong, a transform of a result has no inverse, and
    what a call passes does not fit the new kernel.
    """
    for given in (op_buffer_axis_separators, op_buffer_input_axis_separators):
        if any(any(s or ()) for s in (given or {}).values()):
            raise ValueError("AlterOpImpl: axis separators have no meaning for graphs, whose "
                             "tensors are flat in memory: leave them out")
    transforms = dict(op_buffer_transforms or {})

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        chosen = {v: attr(f, "operator_name") for v, f in mod.functions.items()
                  if isinstance(f, PrimFunc) and attr(f, "operator_name") in op_impl_map}
        if not chosen:
            return mod
        changes: dict[GlobalVar, Any] = {
            v: op_impl_map[n].with_attr("operator_name", n).without_attr("global_symbol")
            for v, n in chosen.items()}
        for var, func in mod.functions.items():
            if isinstance(func, Function):
                new = _Rewriter(chosen, transforms, op_impl_map).function(func)
                if new is not func:
                    changes[var] = new
        return replace_functions(mod, changes)

    return make_pass("AlterOpImpl", run, AlterOpImpl.__doc__)


class _Rewriter:
    """Fits the calls in one function."""

    def __init__(self, chosen: Mapping[GlobalVar, str], transforms: Mapping[str, Sequence],
                 kernels: Mapping[str, PrimFunc]) -> None:
        self.chosen, self.transforms, self.kernels = chosen, transforms, kernels
        #: a value that was put back: (its form before, the map that led there)
        self.before: dict[Expr, tuple[Expr, IndexMap]] = {}

    def function(self, func: Function) -> Function:
        new = map_blocks(func, self.block)
        return func if new is func else remove_all_unused(new)

    def block(self, block: BindingBlock) -> BindingBlock:
        out = Emitter(dataflow=any(type(b.var) is DataflowVar for b in block.bindings)
                      or type(block).__name__ == "DataflowBlock")
        for b in block.bindings:
            value = b.value
            if not is_call_of(value, CALL_TIR) or value.args[0] not in self.chosen:
                out.bindings.append(b)
                continue
            name = self.chosen[value.args[0]]
            maps = self.transforms.get(name)
            if maps and any(m is not None for m in maps):
                self.call(b.var, value, list(maps), out)
            else:
                infos = _infos(value.sinfo_args[0])
                self.fits(name, [*(a.struct_info for a in value.args[1].fields_), *infos])
                out.bindings.append(b)
        return same_bindings(block, out.bindings)

    def call(self, var: Var, value: Call, maps: list, out: Emitter) -> None:
        """One call with its arguments and results transformed."""
        args = value.args[1].fields_
        info = value.sinfo_args[0]
        infos = _infos(info)
        if len(maps) != len(args) + len(infos):
            raise ValueError(f"operator {self.chosen[value.args[0]]!r} has {len(args)} input(s) and"
                             f" {len(infos)} output(s), {len(maps)} transform(s) are given")
        new_args = [self.transformed(a, _as_map(m, a.struct_info), out)
                    for a, m in zip(args, maps)]
        out_maps = [_as_map(m, i) for m, i in zip(maps[len(args):], infos)]
        new_infos = [i if m is None else TensorStructInfo(
            ShapeExpr(map_shape(m, i.dims)), i.dtype) for i, m in zip(infos, out_maps)]
        self.fits(self.chosen[value.args[0]], [*(a.struct_info for a in new_args), *new_infos])
        several = isinstance(info, TupleStructInfo)
        result = TupleStructInfo(new_infos) if several else new_infos[0]
        made = out.emit(Call.from_fields(value.op, (value.args[0], Tuple(new_args),
                                                    *value.args[2:]), None, (result,), result),
                        var.name_hint)
        if several:
            back = [self.put_back(out.emit(TupleGetItem(made, k)), m, i, out)
                    for k, (m, i) in enumerate(zip(out_maps, infos))]
            out.bindings.append(VarBinding(var, Tuple([out.emit(v) for v in back])))
            return
        final = self.put_back(made, out_maps[0], infos[0], out)
        out.bindings.append(VarBinding(var, final))
        if out_maps[0] is not None:
            self.before[var] = made, out_maps[0]

    def fits(self, name: str, infos: Sequence[Any]) -> None:
        """What is passed must be what the new kernel declares."""
        buffers = list(self.kernels[name].buffer_map.values())
        for number, (info, buffer) in enumerate(zip(infos, buffers)):
            dims = getattr(info, "dims", None)
            if dims is None:
                continue
            same = len(dims) == len(buffer.shape) and all(
                not (type(a) is IntImm and type(b) is IntImm) or a.value == b.value
                for a, b in zip(dims, buffer.shape))
            if not same or info.dtype != buffer.dtype:
                raise ValueError(
                    f"AlterOpImpl: the new kernel of {name!r} takes {buffer.name} of shape "
                    f"({', '.join(map(repr, buffer.shape))}) and type {buffer.dtype}, and it would "
                    f"be passed {info!r}: give buffer {number} a transform that leads there")

    def transformed(self, arg: Expr, index_map: IndexMap | None, out: Emitter) -> Expr:
        """An argument in the layout of a map."""
        if index_map is None:
            return arg
        known = self.before.get(arg)
        if known is not None and _same_map(known[1], index_map):
            return known[0]
        return out.emit(layout_transform(arg, index_map))

    @staticmethod
    def put_back(made: Expr, index_map: IndexMap | None, info: TensorStructInfo,
                 out: Emitter) -> Expr:
        """A result in the layout that the program expects."""
        if index_map is None:
            return made
        assert info.dims is not None  # the map was applied to them
        return layout_transform(made, inverse(index_map, info.dims))


def _infos(info: StructInfo) -> Sequence[Any]:
    """The struct info of each result."""
    return info.fields_ if isinstance(info, TupleStructInfo) else (info,)


def _as_map(value: object, info: TensorStructInfo) -> IndexMap | None:
    """A transform as an IndexMap; None stays."""
    if value is None or isinstance(value, IndexMap):
        return value
    return IndexMap.from_func(value, info.ndim, index_dtype="int64")


def _same_map(a: IndexMap, b: IndexMap) -> bool:
    return structural_equal(a, b) is True


__all__ = ["AlterOpImpl"]
