"""FusePooling: a convolution and the pooling of its result become one kernel.

FuseOps ends a group at a pooling, since a result of the pooling needs several of the convolution.
But what the convolution gives is often the largest tensor of a network, four times what is left
after the pooling, and where nothing else uses it, it need not exist as a whole: the kernel that
this pass makes is scheduled in tiles of rows (`dlight/pooled.py`). The pass comes between FuseOps
and FuseTIR. The convolution may be one of FuseOps' functions, with the additions and activations
that follow it; so may the pooling. Only kernels that the schedule fits are joined.

before::

    @T.prim_func(private=True)
    def conv(x: T.Buffer((1, 3, 10, 10), "float32"), w: T.Buffer((4, 3, 3, 3), "float32"),
             c: T.Buffer((1, 4, 8, 8), "float32")):
        T.func_attr({"op_pattern": 4})
        for n, f, i, j, k, r, s in T.grid(1, 4, 8, 8, 3, 3, 3):
            with T.block("c"):
                vn, vf, vi, vj, vk, vr, vs = T.axis.remap("SSSSRRR", [n, f, i, j, k, r, s])
                with T.init():
                    c[vn, vf, vi, vj] = T.float32(0.0)
                c[vn, vf, vi, vj] = c[vn, vf, vi, vj] + x[vn, vk, vi + vr, vj + vs] * w[
                    vf, vk, vr, vs]

    @T.prim_func(private=True)
    def pool(x: T.Buffer((1, 4, 8, 8), "float32"), p: T.Buffer((1, 4, 4, 4), "float32")):
        T.func_attr({"op_pattern": 4})
        for n, f, i, j, r, s in T.grid(1, 4, 4, 4, 2, 2):
            with T.block("p"):
                vn, vf, vi, vj, vr, vs = T.axis.remap("SSSSRR", [n, f, i, j, r, s])
                with T.init():
                    p[vn, vf, vi, vj] = T.min_value("float32")
                p[vn, vf, vi, vj] = T.max(p[vn, vf, vi, vj], x[vn, vf, vi * 2 + vr, vj * 2 + vs])

    @R.function
    def main(x: R.Tensor((1, 3, 10, 10), "float32"),
             w: R.Tensor((4, 3, 3, 3), "float32")) -> R.Tensor((1, 4, 4, 4), "float32"):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.conv, (x, w), out_sinfo=R.Tensor((1, 4, 8, 8), "float32"))
            gv = R.call_tir(cls.pool, (lv,), out_sinfo=R.Tensor((1, 4, 4, 4), "float32"))
            R.output(gv)
        return gv

after `FusePooling()`::

    @T.prim_func(private=True)
    def conv(x: T.Buffer((1, 3, 10, 10), "float32"), w: T.Buffer((4, 3, 3, 3), "float32"),
             c: T.Buffer((1, 4, 8, 8), "float32")):
        T.func_attr({"op_pattern": 4})
        for n, f, i, j, k, r, s in T.grid(1, 4, 8, 8, 3, 3, 3):
            with T.block("c"):
                vn, vf, vi, vj, vk, vr, vs = T.axis.remap("SSSSRRR", [n, f, i, j, k, r, s])
                with T.init():
                    c[vn, vf, vi, vj] = T.float32(0.0)
                c[vn, vf, vi, vj] = c[vn, vf, vi, vj] + x[vn, vk, vi + vr, vj + vs] * w[
                    vf, vk, vr, vs]

    @T.prim_func(private=True)
    def pool(x: T.Buffer((1, 4, 8, 8), "float32"), p: T.Buffer((1, 4, 4, 4), "float32")):
        T.func_attr({"op_pattern": 4})
        for n, f, i, j, r, s in T.grid(1, 4, 4, 4, 2, 2):
            with T.block("p"):
                vn, vf, vi, vj, vr, vs = T.axis.remap("SSSSRR", [n, f, i, j, r, s])
                with T.init():
                    p[vn, vf, vi, vj] = T.min_value("float32")
                p[vn, vf, vi, vj] = T.max(p[vn, vf, vi, vj], x[vn, vf, vi * 2 + vr, vj * 2 + vs])

    @R.function(private=True)
    def fused_conv_pool(x: R.Tensor((1, 3, 10, 10), "float32"),
                        w: R.Tensor((4, 3, 3, 3), "float32")
                        ) -> R.Tensor((1, 4, 4, 4), "float32"):
        R.func_attr({"Primitive": 1})
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.conv, (x, w), out_sinfo=R.Tensor((1, 4, 8, 8), "float32"))
            gv = R.call_tir(cls.pool, (lv,), out_sinfo=R.Tensor((1, 4, 4, 4), "float32"))
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((1, 3, 10, 10), "float32"),
             w: R.Tensor((4, 3, 3, 3), "float32")) -> R.Tensor((1, 4, 4, 4), "float32"):
        cls = Module
        with R.dataflow():
            gv: R.Tensor((1, 4, 4, 4), "float32") = cls.fused_conv_pool(x, w)
            R.output(gv)
        return gv

The idea of computing a producer tile by tile under its consumer is Halide's; networks are fused
this way in M. Alwani et al., "Fused-Layer CNN Accelerators" (MICRO 2016).
"""

from __future__ import annotations

from collections import Counter
from typing import TypeGuard

from ...dlight.pooled import pools_convolution
from ...ir.module import normalize_attrs
from ...ir.structural import structural_equal
from ...tir.function import PrimFunc
from .annotate_tir_op_pattern import OpPatternKind as K
from .dead_code_elimination import remove_unused_functions
from .fuse_ops import is_kernel
from .grouping import Group, fuse_groups
from .rewriting import (
    CALL_TIR, Binding, BindingBlock, Call, DataflowBlock, DataflowVar, Expr, Function, GlobalVar,
    IRModule, Pass, PassContext, Replacer, SeqExpr, ShapeExpr, TensorStructInfo, Tuple, Var, attr,
    is_call_of, make_pass, replace_functions, used_vars, with_body,
)

#: the call of a kernel, and the variable that it is bound to
_Step = tuple[Var, Call]


def FusePooling() -> Pass:
    """Join a convolution, with what FuseOps put to it, and the pooling that alone uses it."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        new, changes = mod.copy(), {}
        for var, func in mod.functions.items():
            if isinstance(func, Function) and not is_kernel(func) and type(func.body) is SeqExpr:
                done = _Fuser(mod, new).function(func)
                if done is not func:
                    changes[var] = done
        return _without_parts(replace_functions(new, changes), mod) if changes else mod

    return make_pass("FusePooling", run, FusePooling.__doc__)


def _without_parts(mod: IRModule, before: IRModule) -> IRModule:
    """Leave out FuseOps' functions whose bindings stand in others now."""
    kept = remove_unused_functions(mod)
    gone = [v for v, f in before.functions.items()
            if v not in kept.functions and isinstance(f, Function) and attr(f, "Primitive")]
    return replace_functions(mod, {}, removed=gone)


class _Fuser:
    """Finds the pairs of one function and joins them."""

    def __init__(self, mod: IRModule, new: IRModule) -> None:
        self.mod, self.new = mod, new
        #: pairs of kernels asked about before, by their functions
        self.known: dict[tuple[PrimFunc, PrimFunc], bool] = {}

    def function(self, func: Function) -> Function:
        """The function with its pairs as calls of new functions."""
        groups: dict[Var, Group] = {}
        blocks = tuple(self.block(b, groups) for b in func.body.blocks)
        if not groups:
            return func
        body = SeqExpr.from_fields(blocks, func.body.body, func.body.struct_info_)
        return fuse_groups(self.new, with_body(func, body), groups)

    def block(self, block: BindingBlock, groups: dict[Var, Group]) -> BindingBlock:
        """A block with the parts of its pairs as bindings of its own, put into `groups`."""
        if type(block) is not DataflowBlock or len(block.bindings) < 2:
            return block
        uses = Counter(v for b in block.bindings for v in used_vars(b))
        made = {b.var: b for b in block.bindings}
        parts: dict[Var, list[Binding]] = {}
        for pooling in block.bindings:
            pair = self.pair(pooling, made, uses)
            if pair is not None and pair[0].var not in parts:
                group = Group(normalize_attrs({"Primitive": 1}))
                for binding in pair:
                    parts[binding.var] = inner = self.inner(binding)
                    group.bindings += inner
                    groups.update((b.var, group) for b in inner)
        if not parts:
            return block
        return DataflowBlock([b for x in block.bindings for b in parts.get(x.var, [x])])

    def pair(self, pooling: Binding, made: dict, uses: Counter) -> tuple[Binding, Binding] | None:
        """(convolution, pooling) where a binding is a pooling that can be joined."""
        second = self.kernels(pooling)
        if second is None:
            return None
        taken = second[0][1].args[1].fields_
        source = made.get(taken[0]) if len(taken) == 1 else None
        if source is None or type(source.var) is not DataflowVar or uses[source.var] != 1:
            return None
        first = self.kernels(source)
        if first is None or not (_finishes(self.mod, first) and _finishes(self.mod, second)):
            return None
        kernels = self.callee(first[0][1]), self.callee(second[0][1])
        if kernels not in self.known:
            self.known[kernels] = pools_convolution(*kernels)
        return (source, pooling) if self.known[kernels] else None

    def callee(self, call: Call) -> PrimFunc:
        """The kernel that is called."""
        return self.mod.functions[call.args[0]]

    def kernels(self, binding: Binding) -> list[_Step] | None:
        """The calls of kernels that a binding stands for; None where it is something else. The
        arguments of the first are those that the binding gives it."""
        value = binding.value
        if type(value) is Call and type(value.op) is GlobalVar:
            callee = self.mod.functions.get(value.op)
            if not isinstance(callee, Function) or not attr(callee, "Primitive"):
                return None
            found = self.inner(binding)
        else:
            found = [binding]
        steps: list[_Step] = []
        for b in found:
            if not _calls_kernel(b.value, self.mod) or _shape(b.var) is None:
                return None
            steps.append((b.var, b.value))
        return steps

    def inner(self, binding: Binding) -> list[Binding]:
        """The bindings inside of the function that a binding calls, the last under its variable."""
        call = binding.value
        if not isinstance(call, Call) or not isinstance(call.op, GlobalVar):
            return [binding]
        callee = self.mod.functions[call.op]
        bindings = [b for block in callee.body.blocks for b in block.bindings]
        table = dict(zip(callee.params, call.args))
        replace = Replacer(table, fresh=True)
        replace.vars[callee.body.body] = binding.var
        return [replace(b) for b in bindings]


def _calls_kernel(value: Expr, mod: IRModule) -> TypeGuard[Call]:
    """Whether a value is a call of one of the module's kernels with tensors."""
    return (is_call_of(value, CALL_TIR) and len(value.args) == 2 and type(value.args[1]) is Tuple
            and isinstance(mod.functions.get(value.args[0]), PrimFunc))


def _shape(var: Var) -> ShapeExpr | None:
    """The shape of a tensor, where it is written out."""
    info = var.struct_info_
    return info.shape if isinstance(info, TensorStructInfo) and isinstance(
        info.shape, ShapeExpr) else None


def _finishes(mod: IRModule, calls: list[_Step]) -> bool:
    """Whether what follows the first call works on its result element by element, and each but the
    first result is used once, so that all of it can be computed at once."""
    first, shape = calls[0][0], _shape(calls[0][0])
    uses = Counter(v for _, call in calls for v in used_vars(call))
    for (before, _), (var, call) in zip(calls, calls[1:]):
        pattern = K(attr(mod.functions[call.args[0]], "op_pattern", K.OPAQUE))
        if pattern > K.BROADCAST or structural_equal(_shape(var), shape) is not True:
            return False
        if before is not first and uses[before] != 1:
            return False
    return True


__all__ = ["FusePooling"]
