"""FuseTIR: a function of several TensorIR calls becomes one TensorIR function.

Each function with the attribute `Primitive` (FuseOps makes them) has its callees' bodies put one
after the other; what only they pass among themselves becomes a buffer allocated inside, named
`<output>_intermediate`. Calls of the function become `call_tir`. Functions and bindings that
nothing uses any more are dropped, and variables that only rename others. Scheduling then computes
the parts together, for example by `compute_inline` and `reverse_compute_inline`.

before::

    @T.prim_func(private=True)
    def exp(x: T.Buffer((T.int64(8),), "float32"), y: T.Buffer((T.int64(8),), "float32")):
        for i in range(T.int64(8)):
            with T.block("exp"):
                vi = T.axis.spatial(T.int64(8), i)
                y[vi] = T.exp(x[vi])

    @T.prim_func(private=True)
    def neg(x: T.Buffer((T.int64(8),), "float32"), z: T.Buffer((T.int64(8),), "float32")):
        for i in range(T.int64(8)):
            with T.block("neg"):
                vi = T.axis.spatial(T.int64(8), i)
                z[vi] = T.float32(0.0) - x[vi]

    @R.function(private=True)
    def fused_exp_neg(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        R.func_attr({"Primitive": 1})
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((8,), "float32"))
            gv = R.call_tir(cls.neg, (lv,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            gv: R.Tensor((8,), "float32") = cls.fused_exp_neg(x)
            R.output(gv)
        return gv

after `FuseTIR()`::

    @T.prim_func(private=True)
    def fused_exp_neg(x: T.Buffer((T.int64(8),), "float32"),
                      z_intermediate: T.Buffer((T.int64(8),), "float32")):
        T.func_attr({"tir.noalias": True})
        y_intermediate = T.alloc_buffer((T.int64(8),), "float32")
        for i in range(T.int64(8)):
            with T.block("exp"):
                vi = T.axis.spatial(T.int64(8), i)
                y_intermediate[vi] = T.exp(x[vi])
        for i in range(T.int64(8)):
            with T.block("neg"):
                vi = T.axis.spatial(T.int64(8), i)
                z_intermediate[vi] = T.float32(0.0) - y_intermediate[vi]

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.fused_exp_neg, (x,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(gv)
        return gv
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn, Sequence

from ...ir.diagnostics import MLCError
from ...tir import expr as E
from ...tir import op as O
from ...tir.buffer import Buffer, decl_buffer
from ...tir.function import PrimFunc
from ...tir.functor import _Substitute
from ...tir.stmt import Block, BlockRealize, Stmt, seq
from .canonicalize_bindings import canonicalize
from .dead_code_elimination import remove_all_unused, remove_unused_functions
from .normalize import normalize_functions
from .rewriting import (
    CALL_TIR, Call, Expr, Function, GlobalVar, IRModule, Pass, PassContext, PrimValue, Replacer,
    ShapeExpr, ShapeStructInfo, TensorStructInfo, Tuple, TupleGetItem, TupleStructInfo, Var,
    VarBinding, attr, bindings_of, is_call_of, is_exported, make_pass, map_functions, op_name,
    used_globals,
)

if TYPE_CHECKING:
    from ..expr import Binding
    from ..struct_info import StructInfo


class FuseTIRError(MLCError, ValueError):
    """A function marked `Primitive` that cannot be one TensorIR function."""


def FuseTIR() -> Pass:
    """Make one TensorIR function of each Relax function marked `Primitive`."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        new = _fuse_tir(mod)
        new = map_functions(new, lambda func: remove_all_unused(canonicalize(func)))
        return remove_unused_functions(new)

    return make_pass("FuseTIR", run, FuseTIR.__doc__)


def _fuse_tir(mod: IRModule) -> IRModule:
    fused: dict[GlobalVar, tuple[GlobalVar, Function, PrimFunc]] = {}
    uses = Counter(g for f in mod.functions.values() if isinstance(f, Function)
                   for g in used_globals(f))
    for var, func in mod.functions.items():
        if isinstance(func, Function) and attr(func, "Primitive") and not attr(func, "Codegen"):
            kernel = FusedKernel(mod, var.name_hint, func, uses).build()
            fused[var] = (GlobalVar(var.name_hint), func, kernel)
    if not fused:
        return mod
    new = mod.copy()
    new.functions, new._by_name = {}, {}
    for var, func in mod.functions.items():
        if var in fused:
            new.update_func(fused[var][0], fused[var][2])
        else:
            if isinstance(func, Function):
                func = _CallKernels(fused)(func)
            new.update_func(var, func)
    new = _drop_unused_kernels(new, mod)
    tuples = any(isinstance(p.struct_info_, TupleStructInfo)
                 for _, func, _ in fused.values() for p in func.params)
    return normalize_functions(new, mod) if tuples else new


def _drop_unused_kernels(mod: IRModule, before: IRModule) -> IRModule:
    """Leave out private TensorIR functions that nothing calls any more."""
    called_before = {g for f in before.functions.values() for g in used_globals(f)}
    called = {g for f in mod.functions.values() if isinstance(f, Function)
              for g in used_globals(f)}
    for var, func in list(mod.functions.items()):
        if (isinstance(func, PrimFunc) and var in called_before and var not in called
                and not is_exported(func)):
            del mod[var]
    return mod


class _CallKernels(Replacer):
    """Calls of fused functions as calls of their TensorIR functions."""

    def __init__(self, fused: dict) -> None:
        super().__init__()
        self.fused = fused

    def _call(self, node: Call) -> Expr:
        found = self.fused.get(node.op)
        if found is None:
            return super()._call(node)
        var, func, _ = found
        tensors: list[Expr] = []
        dims: dict[E.Var, E.PrimExpr] = {}
        for param, arg in zip(func.params, map(self, node.args)):
            _spread(param.struct_info_, arg, tensors, dims)
        args: tuple = (var, Tuple(tensors)) + ((ShapeExpr([*dims.values()]),) if dims else ())
        return Call.from_fields(E.Op.get(CALL_TIR), args, None, (node.struct_info_,),
                                node.struct_info_)

    _METHODS = {**Replacer._METHODS, Call: _call}


def _spread(info: StructInfo, arg: Expr, tensors: list, dims: dict) -> None:
    """Sort an argument of a fused function into tensors and numbers; tuples come apart."""
    if isinstance(info, TupleStructInfo):
        for index, item in enumerate(info.fields_):
            part = arg.fields_[index] if type(arg) is Tuple else TupleGetItem(arg, index)
            _spread(item, part, tensors, dims)
        return
    if isinstance(info, TensorStructInfo):
        tensors.append(arg)
        return
    if type(arg) is ShapeExpr:
        values = arg.values
    elif type(arg) is PrimValue:
        values = (arg.value,)
    elif isinstance(arg.struct_info_, ShapeStructInfo) and arg.struct_info_.values is not None:
        values = arg.struct_info_.values
    else:
        raise FuseTIRError(f"a fused function is called with {arg!r}, whose values are not known")
    for var, value in zip(_numbers(info), values):
        if isinstance(var, E.Var):
            dims.setdefault(var, value)


def _numbers(info: StructInfo) -> Sequence[E.PrimExpr]:
    """What is declared of the numbers of a parameter. Those that are a variable tell its value, and
    the kernel takes each of these once; a constant or a formula tells it nothing new."""
    if isinstance(info, ShapeStructInfo):
        return info.values or ()
    value = getattr(info, "value", None)
    return () if value is None else (value,)


class _Inliner(_Substitute):
    """The body of a callee with its buffers replaced, and variables of its own if asked for."""

    def __init__(self, table: dict, buffers: dict, names: set[str], renew: bool) -> None:
        super().__init__(table, buffers)
        self.own, self.names, self.renew = table, names, renew

    def visit_var_def(self, var: E.Var) -> E.Var:
        if not self.renew:
            return super().visit_var_def(var)
        new = self.own[var] = var.with_name(var.name)
        return new

    def visit_buffer_def(self, buffer: Buffer) -> Buffer:
        if not self.renew:
            return super().visit_buffer_def(buffer)
        new = super().visit_buffer(buffer)
        new = new.replace(data=new.data.with_name(new.data.name))
        self.buffers[buffer] = new
        return new

    def visit_Block(self, node: Block) -> Stmt:
        name = node.name_hint
        if name in self.names:
            stem = name.rstrip("0123456789")
            number = 1
            while f"{stem}{number}" in self.names:
                number += 1
            name = f"{stem}{number}"
            node = node.replace(name_hint=name)
        self.names.add(name)
        return super().visit_Block(node)


class FusedKernel:
    """Puts the TensorIR functions that one Relax function calls into one."""

    def __init__(self, mod: IRModule, name: str, func: Function, uses: Counter) -> None:
        self.mod, self.name, self.func = mod, name, func
        #: how often each function of the module is called: one that is called once, and by nobody
        #: outside, is moved in as it is; others get variables of their own
        self.uses = uses
        #: what a Relax variable stands for: a Buffer, or a list of them for a tuple
        self.values: dict[Var, Any] = {}
        self.dims: list[E.Var] = []
        self.allocated: list[Buffer] = []
        self.body: list[Stmt] = []
        self.blocks: set[str] = {"root"}
        self.buffer_names: dict[str, int] = {}

    def build(self) -> PrimFunc:
        """The fused function: inputs, then outputs, then symbolic dimensions."""
        inputs: list[Buffer] = []
        for param in self.func.params:
            self.values[param] = self.parameter(param.name_hint, param.struct_info, inputs)
        self.fix_index_types(inputs)
        for binding in bindings_of(self.func):
            self.binding(binding)
        outputs = self.outputs()
        taken = set(outputs)
        allocs = [b for b in self.allocated if b not in taken]
        root = Block((), (), (), "root", seq(*self.body), alloc_buffers=allocs)
        params: list[E.Var] = []
        buffer_map: dict[E.Var, Buffer] = {}
        for buffer in (*inputs, *outputs):
            handle = E.Var(f"p_{buffer.name}", "handle")
            params.append(handle)
            buffer_map[handle] = buffer
        return PrimFunc((*params, *self.dims), BlockRealize((), True, root), None, buffer_map,
                        {"tir.noalias": True})

    # ------------------------------------------------------------------------- parameters

    def parameter(self, name: str, info: StructInfo, inputs: list[Buffer]) -> Any:
        """Buffers for a parameter; numbers go to `dims`."""
        if isinstance(info, TensorStructInfo):
            if info.dims is None:
                self.refuse(f"the shape of its parameter {name!r} is not known")
            inputs.append(decl_buffer(info.dims, info.dtype, name))
            return inputs[-1]
        if isinstance(info, TupleStructInfo):
            return [self.parameter(f"{name}_{i}", f, inputs) for i, f in enumerate(info.fields_)]
        self.dims += dict.fromkeys(v for v in _numbers(info)
                                   if isinstance(v, E.Var) and v not in self.dims)
        return None

    def fix_index_types(self, inputs: list[Buffer]) -> None:
        """Let constant shapes have the index type that the first user of the buffer has."""
        for binding in bindings_of(self.func):
            if not is_call_of(binding.value, CALL_TIR):
                continue
            callee = self.mod.functions.get(binding.value.args[0])
            if not isinstance(callee, PrimFunc):
                continue
            for arg, buffer in zip(binding.value.args[1].fields_, callee.buffers):
                own = self.values.get(arg) if isinstance(arg, Var) else None
                if not isinstance(own, Buffer) or own not in inputs or any(
                        type(d) is not E.IntImm for d in (*buffer.shape, *own.shape)):
                    continue
                if buffer.shape and buffer.shape[0].dtype != own.shape[0].dtype and len(
                        buffer.shape) == len(own.shape):
                    new = decl_buffer(buffer.shape, own.dtype, own.name)
                    inputs[inputs.index(own)] = self.values[arg] = new

    # ------------------------------------------------------------------------- body

    def binding(self, binding: Binding) -> None:
        """Add what one binding computes."""
        value = binding.value
        if type(binding) is VarBinding and is_call_of(value, CALL_TIR):
            self.values[binding.var] = self.call(value)
        elif type(binding) is VarBinding:
            self.values[binding.var] = self.value_of(value)
        else:
            self.refuse(f"it binds {binding.var.name_hint!r} with match_cast")

    def value_of(self, expr: Expr) -> Any:
        """The buffers that an expression stands for."""
        if isinstance(expr, Var) and expr in self.values:
            return self.values[expr]
        if type(expr) is Tuple:
            return [self.value_of(f) for f in expr.fields_]
        if type(expr) is TupleGetItem:
            return self.value_of(expr.tuple_value)[expr.index]
        self.refuse(f"it computes {type(expr).__name__} {op_name(expr) or expr!r}, "
                    "which is no call_tir: run LegalizeOps before")

    def call(self, call: Call) -> Any:
        """Put the body of a callee in; the answer is its outputs."""
        var, args = call.args[0], call.args[1]
        callee = self.mod.functions.get(var)
        if not isinstance(callee, PrimFunc):
            self.refuse(f"it calls {var!r}, which is no TensorIR function of the module")
        given = self.value_of(args)
        given = _flat(given if isinstance(given, list) else [given])
        table: dict[E.Var, E.PrimExpr] = {}
        buffers: dict[Buffer, Buffer] = {}
        params = list(callee.params)
        handles = [p for p in params if p in callee.buffer_map]
        numbers = [p for p in params if p not in callee.buffer_map]
        if len(call.args) > 2:
            table.update(zip(numbers, call.args[2].values))
        for param, buffer in zip(handles, given):
            own = callee.buffer_map[param]
            self.unify(own, buffer, table)
            buffers[own] = buffer
        results = handles[len(given):]
        outs = self.make_outputs(call, [callee.buffer_map[p] for p in results], table, buffers)
        root = callee.body
        inliner = _Inliner(_cast_dims(table), buffers, self.blocks,
                           self.uses[var] > 1 or is_exported(callee))
        if isinstance(root, BlockRealize) and not root.block.iter_vars and (
                root.block.name_hint == "root") and not root.block.annotations:
            for buffer in root.block.alloc_buffers:
                self.allocated.append(inliner.visit_buffer_def(buffer))
            self.body.append(inliner.visit(root.block.body))
        else:
            self.body.append(inliner.visit(root))
        self.allocated += outs
        multiple = isinstance(call.sinfo_args[0], TupleStructInfo)
        return outs if multiple else outs[0]

    def make_outputs(self, call: Call, own: Sequence[Buffer], table: dict,
                     buffers: dict) -> list[Buffer]:
        """Fresh buffers for what a callee writes."""
        info = call.sinfo_args[0]
        infos = info.fields_ if isinstance(info, TupleStructInfo) else (info,)
        outs = []
        for item, buffer in zip(infos, own):
            for old, dim in zip(buffer.shape, getattr(item, "dims", None) or ()):
                if isinstance(old, E.Var):
                    table.setdefault(old, dim)
            shape = [_Substitute(_cast_dims(table), {}).visit(d) for d in buffer.shape]
            new = decl_buffer(shape, buffer.dtype, self.buffer_name(f"{buffer.name}_intermediate"))
            buffers[buffer] = new
            outs.append(new)
        return outs

    def buffer_name(self, name: str) -> str:
        """The name, numbered from its second use on."""
        count = self.buffer_names.get(name, 0)
        self.buffer_names[name] = count + 1
        return f"{name}_{count}" if count else name

    def unify(self, own: Buffer, given: Buffer, table: dict) -> None:
        """Learn the callee's symbolic dimensions from the shape of an argument."""
        if len(own.shape) != len(given.shape):
            self.refuse(f"it passes a buffer of {len(given.shape)} dimensions for {own.name!r}, "
                        f"which has {len(own.shape)}")
        for old, dim in zip(own.shape, given.shape):
            if isinstance(old, E.Var):
                table.setdefault(old, dim)

    def outputs(self) -> list[Buffer]:
        """The buffers of what the function gives."""
        found = self.value_of(self.func.body.body)
        found = _flat(found if isinstance(found, list) else [found])
        made = set(self.allocated)
        if not all(b in made for b in found) or len(set(found)) != len(found):
            self.refuse("it gives back an argument, or one result twice")
        return found

    def refuse(self, reason: str) -> NoReturn:
        raise FuseTIRError(f"FuseTIR cannot make one TensorIR function of {self.name!r}: {reason}")


def _flat(items: Any) -> list:
    out: list = []
    for item in items:
        if isinstance(item, list):
            out += _flat(item)
        elif item is not None:
            out.append(item)
    return out


def _cast_dims(table: dict[E.Var, Any]) -> dict[E.Var, Any]:
    """Values of the type that the callee's variables have."""
    return {v: e if getattr(e, "dtype", v.dtype) == v.dtype else O.cast(e, v.dtype)
            for v, e in table.items()}


__all__ = ["FuseTIR", "FuseTIRError", "FusedKernel"]
