"""FoldConstant: what depends only on constants is computed now.

Calls of TensorIR functions are compiled and run; calls of operators are first turned into such
calls by the operator's legalization. The result takes the place of the variable, and the binding
goes. An operator that makes a large tensor of nothing (`R.zeros((4096, 4096), "float32")`) is not
folded, since that would only move work into memory.

before::

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            lv = R.add(R.const([1.0, 2.0], "float32"), R.const([1.0, 1.0], "float32"))
            gv = R.multiply(x, lv)
            R.output(gv)
        return gv

after `FoldConstant()`::

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            gv = R.multiply(x, R.const([2.0, 3.0], "float32"))
            R.output(gv)
        return gv
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from ...backend import llvm
from ...backend.interp import interpret
from ...ir.module import IRModule
from ...ir.structural import structural_equal
from ...lower import lower
from ...runtime import cpu, empty
from ...runtime.jit import host_machine
from ...tir import expr as E, op
from ...tir.expr import BufferLoad
from ...tir.function import PrimFunc
from ...tir.stmt import BlockRealize, BufferStore, For
from .in_order import InOrder
from .in_place import written_in_place
from .legalize_ops import LegalizeOps
from .rewriting import (
    CALL_TIR, Binding, BindingBlock, Call, Constant, Expr, Function, If, MatchCast,
    Pass, PassContext, Replacer, SeqExpr, ShapeExpr, TensorStructInfo, Tuple, TupleGetItem,
    TupleStructInfo, Var, VarBinding, is_call_of, is_pure_call, make_pass, map_functions, op_name,
    same_bindings, with_body,
)

if TYPE_CHECKING:
    from ..struct_info import StructInfo

#: elements of the largest tensor that is folded though it is made of nothing
LARGEST_FROM_NOTHING = 1024
#: elements that a kernel may touch for it not to be worth compiling
LARGEST_INTERPRETED = 1024
#: operators whose value is not a matter of their arguments, or that mark something
_KEEP = {"relax.call_dps_packed", "relax.call_pure_packed", "relax.builtin.stop_lift_params",
         "relax.hint_on_device", "relax.to_vdevice", "relax.call_tir_inplace",
         "relax.memory.view", "relax.nn.dropout"}


def FoldConstant() -> Pass:
    """Compute calls whose arguments are all constant."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        evaluator = Evaluator(mod)
        return map_functions(mod, lambda func: with_body(func, _Folder(
            evaluator, written_in_place(func)).expr(func.body)))

    return make_pass("FoldConstant", run, FoldConstant.__doc__)


class Evaluator:
    """Runs calls of constants, each TensorIR function compiled once."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self._built: dict[tuple, list[tuple[PrimFunc, Any]]] = {}

    def call(self, call: Call) -> Expr | None:
        """The constant (or tuple of constants) that a call gives; None where it stays."""
        name = op_name(call)
        if name == CALL_TIR:
            return self.call_tir(self.mod, call)
        if not name or name in _KEEP or not is_pure_call(call):
            return None
        if not _constant_args(call.args) or not _small_enough(call):
            return None
        var = Var("gv", call.struct_info)
        func = Function((), SeqExpr([BindingBlock([VarBinding(var, call)])], var))
        with PassContext():  # no instrument is to see this
            mod = LegalizeOps()(IRModule({"main": func}))
        body = mod["main"].body
        steps = [b for block in body.blocks for b in block.bindings]
        if any(b.value is call for b in steps):
            return None  # there is no row for it
        return self.steps(mod, steps, body.body)

    def steps(self, mod: IRModule, bindings: list[Binding], result: Expr) -> Expr | None:
        """Evaluate what a legalization emitted."""
        replace = Replacer()
        for binding in bindings:
            value = self.value(mod, replace(binding.value))
            if value is None:
                return None
            replace.vars[binding.var] = value
        return self.value(mod, replace(result))

    def value(self, mod: IRModule, value: Expr) -> Expr | None:
        """A constant expression's value."""
        if _constant_args((value,)):
            return value
        if type(value) is TupleGetItem and type(value.tuple_value) is Tuple:
            return value.tuple_value.fields_[value.index]
        if is_call_of(value, CALL_TIR):
            return self.call_tir(mod, value)
        return None

    def call_tir(self, mod: IRModule, call: Call) -> Expr | None:
        """The value of a call_tir whose arguments are constants and whose shapes are known."""
        func = mod.functions.get(call.args[0])
        given = call.args[1].fields_ if type(call.args[1]) is Tuple else None
        if not isinstance(func, PrimFunc) or given is None or len(call.args) > 2:
            return None
        tensors = [t for t in given if isinstance(t, Constant)]
        if len(tensors) != len(given):
            return None
        info = call.sinfo_args[0]
        infos = info.fields_ if isinstance(info, TupleStructInfo) else (info,)
        if not all(_static(i) for i in infos) or not tensors and not _small_enough(call):
            return None
        outputs = [empty(_sizes(i), i.dtype, cpu()) for i in infos if _static(i)]
        self.run(func, [t.data for t in tensors], outputs)
        values = [Constant(out) for out in outputs]
        return Tuple(values) if isinstance(info, TupleStructInfo) else values[0]

    def run(self, func: PrimFunc, inputs: list[Any], outputs: list[Any]) -> None:
        """Run a kernel: one that moves elements by numpy, a tiny one by the interpreter, others
        compiled."""
        if _move(func, inputs, outputs):
            return
        sizes = [int(np.prod(t.shape, dtype=np.int64)) for t in (*inputs, *outputs)]
        plain = all(t.dtype in ("float32", "float64", "int32", "int64", "bool")
                    for t in (*inputs, *outputs))
        if sum(sizes) <= LARGEST_INTERPRETED and plain:
            arrays = [np.zeros(out.shape, out.dtype) for out in outputs]
            interpret(func, *[t.numpy() for t in inputs], *arrays)
            for out, value in zip(outputs, arrays):
                out.copyfrom(value)
        else:
            self.kernel(func)(*inputs, *outputs)

    def kernel(self, func: PrimFunc) -> Any:
        """The function compiled for this machine; equal functions are compiled once."""
        known = self._built.setdefault(func.outline(), [])
        for other, built in known:
            if structural_equal(other, func) is True:
                return built
        mod = IRModule({"main": func.with_attr("global_symbol", "main")})
        # it runs once: compiling it well would take longer than it takes to run
        built = llvm.build(lower(mod), host_machine(0), "main", level=0)
        known.append((func, built))
        return built


def _move(func: PrimFunc, inputs: list[Any], outputs: list[Any]) -> bool:
    """Run a kernel that is ``out[i, j, ...] = source[f(i, j, ...), ...]``, as a transposition is;
    False where it is something else."""
    at: Any = func.root.body
    loops: dict[Any, For] = {}
    while type(at) is For:
        loops[at.loop_var] = at
        at = at.body
    params = dict(zip((func.buffer_map.get(p) for p in func.params), (*inputs, *outputs)))
    if type(at) is not BlockRealize or len(outputs) != 1 or not op.is_const_int(at.predicate, 1):
        return False
    block, store = at.block, at.block.body
    if type(store) is not BufferStore or type(store.value) is not BufferLoad or block.init or (
            block.match_buffers or params.get(store.buffer) is not outputs[0]):
        return False
    load = store.value
    source = params.get(load.buffer)
    if source is None or source is outputs[0] or load.dtype not in _OF_NUMPY or any(
            b.strides or not op.is_const_int(b.elem_offset, 0)
            for b in (load.buffer, store.buffer)):
        return False
    shape = outputs[0].shape
    values: dict[Any, np.ndarray] = {}
    for axis, (index, iv, value) in enumerate(zip(store.indices, block.iter_vars, at.iter_values)):
        loop = loops.pop(value, None)
        if index is not iv.var or loop is None or not op.is_const_int(loop.min, 0) or (
                op.as_int(loop.extent) != shape[axis]):
            return False
        values[index] = np.arange(shape[axis]).reshape(
            [-1 if d == axis else 1 for d in range(len(shape))])
    if loops or len(values) != len(shape) or len(block.iter_vars) != len(shape):
        return False
    places = [_numbers(index, values) for index in load.indices]
    if any(p is None for p in places):
        return False
    given = source.numpy()
    if any((p < 0).any() or (p >= n).any() for p, n in zip(places, given.shape)):
        return False
    outputs[0].copyfrom(np.ascontiguousarray(np.broadcast_to(given[tuple(places)], shape)))
    return True


_OF_NUMPY = {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
             "float16", "float32", "float64"}
_OPERATORS = {E.Add: np.add, E.Sub: np.subtract, E.Mul: np.multiply, E.FloorDiv: np.floor_divide,
              E.FloorMod: np.mod}


def _numbers(e: E.PrimExpr, values: dict[Any, np.ndarray]) -> Any:
    """The values of an index for all values of the variables; None where it is no arithmetic on
    them."""
    if isinstance(e, E.Var):
        return values.get(e)
    if type(e) is E.IntImm:
        return np.asarray(e.value)
    apply = _OPERATORS.get(type(e))
    if apply is None or not isinstance(e, E.BinaryOp):
        return None
    a, b = _numbers(e.a, values), _numbers(e.b, values)
    if a is None or b is None or apply in (np.floor_divide, np.mod) and not b.all():
        return None
    return apply(a, b)


def _static(info: StructInfo) -> TypeGuard[TensorStructInfo]:
    return isinstance(info, TensorStructInfo) and info.dims is not None and bool(
        info.dtype) and all(type(d) is E.IntImm for d in info.dims)


def _sizes(info: TensorStructInfo) -> tuple[int, ...]:
    return tuple(d.value for d in info.dims or ())


def _constant_args(args: Any) -> bool:
    """Whether arguments are constants; shapes and numbers count where they are known."""
    for arg in args:
        kind = type(arg)
        if kind is Tuple:
            if not _constant_args(arg.fields_):
                return False
        elif kind is ShapeExpr:
            if not all(type(v) is E.IntImm for v in arg.values):
                return False
        elif hasattr(arg, "name_hint") or kind in (Call, If, Function, SeqExpr, TupleGetItem):
            return False
        elif kind.__name__ == "PrimValue" and not isinstance(
                arg.value, (E.IntImm, E.FloatImm)):
            return False
    return True


def _small_enough(call: Call) -> bool:
    """Whether a call takes a tensor constant, or else makes only a small tensor."""
    if any(type(a) is Constant and a.data.shape for a in _leaves(call.args)):
        return True
    info = call.struct_info_ if call.struct_info_ is not None else call.sinfo_args[0]
    infos = info.fields_ if isinstance(info, TupleStructInfo) else (info,)
    return all(_static(i) and int(np.prod(_sizes(i), initial=1)) <= LARGEST_FROM_NOTHING
               for i in infos)


def _leaves(args: Any) -> Any:
    for arg in args:
        if type(arg) is Tuple:
            yield from _leaves(arg.fields_)
        else:
            yield arg


class _Folder(InOrder):
    """Folds bindings in program order."""

    def __init__(self, evaluator: Evaluator, written: set[Var]) -> None:
        super().__init__()
        self.evaluator = evaluator
        #: what is written into in place: made anew in every run, not once
        self.written = written
        self.tuples: dict[Any, Tuple] = {}

    def block(self, block: BindingBlock) -> BindingBlock:
        out: list[Binding] = []
        for binding in block.bindings:
            value = self.expr(binding.value)
            if not isinstance(binding, MatchCast):
                folded = None if binding.var in self.written else self.fold(value)
                if folded is not None:
                    value = folded
                if type(value) is Constant and binding.var not in self.written:
                    self.replace.vars[binding.var] = value
                    continue
                if type(value) is Tuple:
                    self.tuples[binding.var] = value
                if value is not binding.value:
                    binding = VarBinding(binding.var, value)
            elif value is not binding.value:
                binding = MatchCast(binding.var, value, binding.struct_info)
            out.append(binding)
        return same_bindings(block, out)

    def fold(self, value: Expr) -> Expr | None:
        """The constant that a value is, None where it is none."""
        if type(value) is TupleGetItem:
            known = self.tuples.get(value.tuple_value)
            item = known.fields_[value.index] if known is not None else None
            return item if type(item) is Constant else None
        return self.evaluator.call(value) if type(value) is Call else None


__all__ = ["Evaluator", "FoldConstant"]
