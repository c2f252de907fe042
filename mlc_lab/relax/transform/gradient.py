"""Gradient: beside a function, one that also gives the gradients of its result.

The result must be a float of no dimensions (a loss), and the function one dataflow block. The new
function is called after the old one, `..._adjoint`; it gives what the old one gave, and a tuple
with the gradient of each parameter, or of each variable in `require_grads`. Bindings are visited
from the last to the first: the gradient of what a binding binds is passed on to the variables it is
computed from, by the rule of its operator (`relax/gradients/`), and what arrives at a variable in
several ways is added up.

What stands between `R.grad.start_checkpoint` and `R.grad.end_checkpoint` is not kept for the
gradients but computed a second time, which takes less memory.

before::

    @R.function
    def main(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32")
             ) -> R.Tensor((), "float32"):
        with R.dataflow():
            lv = R.multiply(x, w)
            gv = R.sum(lv)
            R.output(gv)
        return gv

after `Gradient("main")`::

    @R.function
    def main(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32")
             ) -> R.Tensor((), "float32"):
        with R.dataflow():
            lv = R.multiply(x, w)
            gv = R.sum(lv)
            R.output(gv)
        return gv

    @R.function
    def main_adjoint(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32")
                     ) -> R.Tuple(R.Tensor((), "float32"), R.Tuple(R.Tensor((3,), "float32"),
                                                                   R.Tensor((3,), "float32"))):
        with R.dataflow():
            lv = R.multiply(x, w)
            gv = R.sum(lv)
            gv_adjoint = R.ones(R.shape([]), dtype="float32")
            lv_adjoint = R.broadcast_to(gv_adjoint, R.shape([3]))
            x_adjoint = R.multiply(lv_adjoint, w)
            w_adjoint = R.multiply(lv_adjoint, x)
            x_adjoint_out = x_adjoint
            w_adjoint_out = w_adjoint
            R.output(gv, x_adjoint_out, w_adjoint_out)
        return (gv, (x_adjoint_out, w_adjoint_out))
"""

from __future__ import annotations

from typing import Any, Sequence

from ...ir.dtype import is_float
from .. import op as R
from ..block_builder import BlockBuilder
from ..expr import StringImm
from ..gradients.common import GradientError, dims_of
from ..op.registry import OPERATORS, lookup
from .dead_code_elimination import remove_all_unused
from .rewriting import (
    Call, Constant, DataflowBlock, DataflowVar, Expr, Function, IRModule, MatchCast, Pass,
    PassContext, PrimValue, Replacer, SeqExpr, ShapeExpr, StructInfo, TensorStructInfo, Tuple,
    TupleGetItem, TupleStructInfo, Var, VarBinding, bindings_of, make_pass, op_name, used_vars,
)

_START, _END = "relax.grad.start_checkpoint", "relax.grad.end_checkpoint"
_WITH_GRAD = "relax.call_tir_with_grad"
#: gradients of call_tir_with_grad: name -> function of the gradient and the arguments, as tensors
TE_GRADIENTS: dict[str, Any] = {}


def Gradient(func_name: str, require_grads: Var | Sequence[Var] | None = None,
             target_index: int = 0) -> Pass:
    """Add `{func_name}_adjoint`, which gives the result of the function and gradients of it.

    `require_grads` are parameters or other variables of the function (None for all parameters);
    of a function that gives several values, `target_index` says which is differentiated.
    """
    wanted = [require_grads] if isinstance(require_grads, Var) else require_grads

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        func = mod[func_name]
        if not isinstance(func, Function):
            raise GradientError(f"Gradient: {func_name!r} is no Relax function")
        return _Adjoint(mod, func, func_name, wanted, target_index).run()

    return make_pass("Gradient", run, Gradient.__doc__)


def _is_float(info: StructInfo | None) -> bool:
    """Whether it is a tensor of floats, or a tuple of such."""
    if isinstance(info, TupleStructInfo):
        return all(map(_is_float, info.fields_))
    return isinstance(info, TensorStructInfo) and bool(info.dtype) and is_float(info.dtype)


class _Adjoint:
    """The making of one adjoint function.

    The gradient of a variable is None (as yet nothing), an expression, or for a tuple a list with
    one for each item.
    """

    def __init__(self, mod: IRModule, func: Function, name: str, wanted: Sequence[Var] | None,
                 target_index: int) -> None:
        from .. import gradients  # noqa: F401  # the rules

        self.name = name
        self.mod, self.bb = mod, BlockBuilder(mod)
        self.grads: dict[Var, Any] = {}
        copy = Replacer(fresh=True)
        self.func = copy(func)
        self.values: dict[Var, Expr] = {b.var: b.value for b in bindings_of(self.func)}
        self.target = self._target(target_index)
        self.wanted = list(self.func.params) if wanted is None else self._mapped(wanted, copy)
        self.kept: set[Var] = set(self.func.params)
        self.again: dict[Var, Expr] = {}
        self.marked: dict[Var, Var] = {}

    def error(self, message: str) -> GradientError:
        """A refusal that says in which function."""
        return GradientError(f"Gradient of {self.name!r}: {message}")

    def _mapped(self, wanted: Sequence[Var], copy: Replacer) -> list[Var]:
        found: list[Var] = []
        for var in wanted:
            new = copy.vars.get(var, var)
            if not isinstance(new, Var) or (
                    new not in self.values and new not in self.func.params):
                raise self.error(f"require_grads has {getattr(var, 'name_hint', var)!r}, which is "
                                 "no variable of the function")
            if new in found:
                raise self.error(f"require_grads has {new.name_hint!r} twice")
            if not _is_float(new.struct_info_):
                raise self.error(f"{new.name_hint!r} is {new.struct_info_}: only tensors of "
                                 "floats, and tuples of such, have gradients")
            found.append(new)
        return found

    def _target(self, index: int) -> Var:
        body = self.func.body
        blocks = [b for b in body.blocks if b.bindings]
        if len(blocks) != 1 or type(blocks[0]) is not DataflowBlock:
            raise self.error("its body must be one dataflow block: write it in one "
                             "`with R.dataflow():`, or run relax.transform.ConvertToDataflow() "
                             "before")
        out = body.body
        if isinstance(out, Tuple):
            if not 0 <= index < len(out.fields_):
                raise self.error(f"target_index is {index}, and it gives {len(out.fields_)} "
                                 "value(s)")
            out = out.fields_[index]
        elif index != 0:
            raise self.error(f"target_index is {index}, and it gives one value")
        info = out.struct_info_
        if not isinstance(out, Var):
            raise self.error(f"what is differentiated must be a variable, it is {out}")
        if not (isinstance(info, TensorStructInfo) and info.ndim == 0 and _is_float(info)):
            raise self.error(f"{out.name_hint!r} is {info}: what is differentiated must be a float "
                             "of no dimensions, such as R.sum or R.mean gives")
        return out

    def run(self) -> IRModule:
        """The module with the new function."""
        bb, func = self.bb, self.func
        bb.begin_scope(func.params)
        for var in (*func.params, *self.values):
            bb.take_name(var.name_hint)
        bb.begin_dataflow_block()
        forward = self._forward()
        info = self.target.struct_info
        assert isinstance(info, TensorStructInfo)
        self._receive(self.target, R.ones(ShapeExpr(()), info.dtype))
        for var, value in reversed(forward):
            if self.grads.get(var) is not None:
                self._back(var, value)
        outs = [self._out(var) for var in self.wanted]
        block = bb.end_block()
        bb.end_scope()
        result = Replacer(self.marked)(func.body.body)
        body = SeqExpr([block], Tuple([result, Tuple(outs)]))
        name = f"{self.name}_adjoint"
        attrs = {**func.attrs, "global_symbol": name}
        made = remove_all_unused(Function(func.params, body, None, func.is_pure, attrs))
        module = bb.get()
        if name in module:
            raise self.error(f"the module has a function {name!r} already")
        bb.add_func(made, name)
        return bb.get()

    # --------------------------------------------------------------------------- forward

    def _forward(self) -> list[tuple[Var, Expr]]:
        """Emit the bindings as they are, without the marks of checkpoints; what remains."""
        done, ends = [], set()
        for binding in bindings_of(self.func):
            if isinstance(binding, MatchCast):
                raise self.error(f"{binding.var.name_hint!r} is bound by R.match_cast, through "
                                 "which no gradient goes: leave it to the caller")
            var, value = binding.var, Replacer(self.marked)(binding.value)
            if op_name(value) in (_START, _END):
                source = value.args[0]
                if not isinstance(source, Var):
                    raise self.error(f"{value.op.name} marks a variable, not {source}")
                if not isinstance(var, DataflowVar) and isinstance(source, DataflowVar):
                    self.bb.emit_normalized(VarBinding(var, source))
                    done.append((var, source))
                    self.kept.add(var)
                else:
                    self.marked[var] = source
                if op_name(value) == _START:
                    self.kept.add(source)
                else:
                    ends.add(var)
                continue
            # of what the part begins with, `var` of a start_checkpoint, nothing is kept
            if all(v in self.kept or v in ends for v in used_vars(binding.value)):
                self.kept.add(var)
            call = value
            if op_name(value) == _WITH_GRAD:  # what it computes is an ordinary call
                call = Call(lookup("relax.call_tir").op, value.args, None, value.sinfo_args,
                            struct_info=value.struct_info_)
            self.bb.emit_normalized(VarBinding(var, call))
            self.values[var] = value
            done.append((var, value))
        self.wanted = [self.marked.get(v, v) for v in self.wanted]
        return done

    def _kept(self, var: Var) -> Expr:
        """A variable for the way back: as it is, or computed again from what is kept."""
        if var in self.kept or var not in self.values:
            return var
        found = self.again.get(var)
        if found is None:
            value = self._from_kept(self.values[var])
            if op_name(value) == _WITH_GRAD:
                value = Call(lookup("relax.call_tir").op, value.args, None, value.sinfo_args)
            found = self.again[var] = self.bb.emit(value, f"{var.name_hint}_cp")
        return found

    def _from_kept(self, value: Any) -> Any:
        return Replacer({v: self._kept(v) for v in used_vars(value)})(value)

    # --------------------------------------------------------------------------- backward

    def _back(self, var: Var, value: Expr) -> None:
        """Pass the gradient of what a binding binds on to what it is computed from."""
        if isinstance(value, Call):
            self._through_call(var, value)
        elif isinstance(value, TupleGetItem):
            self._receive_item(value.tuple_value, value.index, self.grads[var])
        elif isinstance(value, (Var, Tuple)):
            self._receive(value, self.grads[var])
        elif not isinstance(value, (Constant, PrimValue, ShapeExpr, StringImm)):
            raise self.error(f"{var.name_hint!r} is bound to a {type(value).__name__}, through "
                             "which no gradient goes")

    def _through_call(self, var: Var, call: Call) -> None:
        name = op_name(call)
        row = OPERATORS.get(name)
        rule = None if row is None else row.gradient
        if rule is None and name != _WITH_GRAD:
            if not any(map(self._can_have, call.args)):
                return
            raise self.error(self._no_rule(name or str(getattr(call.op, "name_hint", call.op))))
        kept_var, kept_call = self._kept(var), self._from_kept(call)
        grad = self._whole(var)
        try:
            if name == _WITH_GRAD:
                parts = [Tuple(self._te_gradient(kept_call, grad))]
                targets: Any = [call.args[1]]
            else:
                assert rule is not None
                parts, targets = rule(kept_var, kept_call, grad, self.bb), call.args
        except GradientError as error:
            if str(error).startswith("Gradient of"):
                raise
            raise self.error(f"at {var.name_hint!r}: {error}") from None
        if len(parts) != len(targets):
            raise self.error(f"the gradient of {name} gives {len(parts)} value(s) for "
                             f"{len(targets)} argument(s)")
        for arg, part in zip(targets, parts):
            if part is not None and op_name(part) != "relax.grad.no_grad":
                self._receive(arg, part)

    def _no_rule(self, name: str) -> str:
        if name == "relax.call_tir":
            return ("it calls a TensorIR function, whose gradient is not known: differentiate "
                    "before LegalizeOps, or use R.call_tir_with_grad")
        if not name.startswith("relax."):
            return (f"it calls the function {name!r}: put its bindings here first, by "
                    "relax.transform.InlinePrivateFunctions()")
        return (f"there is no gradient of {name}: say what it is with "
                f"relax.op.register_gradient({name!r}, rule)")

    def _can_have(self, arg: object) -> bool:
        """Whether a gradient of an argument would be asked for."""
        if isinstance(arg, Tuple):
            return any(map(self._can_have, arg.fields_))
        if not isinstance(arg, Var):
            return False
        info = arg.struct_info_
        fields = info.fields_ if isinstance(info, TupleStructInfo) else [info]
        return any(map(_is_float, fields))

    def _te_gradient(self, call: Call, grad: Expr) -> list[Expr]:
        name = call.attrs.te_grad_name
        rule = TE_GRADIENTS.get(name)
        if rule is None:
            raise self.error(f"R.call_tir_with_grad names the gradient {name!r}: register it with "
                             "relax.training.utils.register_te_gradient")
        args = call.args[1].fields_
        out = self.bb.emit_te(rule, grad, *args, **call.attrs.te_grad_kwargs,
                              primfunc_name_hint=name)
        if isinstance(out.struct_info_, TupleStructInfo):
            return [TupleGetItem(out, k) for k in range(len(out.struct_info_.fields_))]
        return [out]

    # --------------------------------------------------------------------------- adding up

    def _receive(self, target: Any, part: Any) -> None:
        """Add a gradient to that of a variable, or of the items of a tuple."""
        if isinstance(target, Tuple):
            for k, item in enumerate(target.fields_):
                self._receive(item, self._item(part, k))
        elif isinstance(target, Var) and part is not None and self._can_have(target):
            self.grads[target] = self._sum(target, self.grads.get(target), part,
                                           target.struct_info_)

    def _receive_item(self, target: Expr, index: int, part: Any) -> None:
        info = target.struct_info
        assert isinstance(info, TupleStructInfo)
        items: list[Any] = [None] * len(info.fields_)
        items[index] = part
        self._receive(target, items)

    def _item(self, part: Any, index: int) -> Any:
        if part is None:
            return None
        if isinstance(part, (list, tuple)):
            return part[index]
        if isinstance(part, Tuple):
            return part.fields_[index]
        return TupleGetItem(self.bb.as_leaf(self.bb.normalize(part)), index)

    def _sum(self, var: Var, old: Any, part: Any, info: Any) -> Any:
        """The sum of two gradients of one variable, or of an item of it."""
        if part is None:
            return old
        if isinstance(info, TupleStructInfo):
            return [self._sum(var, None if old is None else old[k], self._item(part, k), field)
                    for k, field in enumerate(info.fields_)]
        if not _is_float(info):
            return old
        if old is not None:
            part = R.add(old, part)
        return self.bb.emit(part, f"{var.name_hint}_adjoint")

    def _whole(self, var: Var) -> Expr:
        """The gradient of a variable as a value; zero where nothing arrived."""
        def value(grad: Any, info: Any) -> Expr:
            if isinstance(info, TupleStructInfo):
                grad = [None] * len(info.fields_) if grad is None else grad
                return Tuple([value(g, f) for g, f in zip(grad, info.fields_)])
            if grad is not None:
                return grad
            like = Var(var.name_hint, info)
            return R.zeros(ShapeExpr(dims_of(like)), info.dtype)

        found = value(self.grads.get(var), var.struct_info_)
        if isinstance(found, Tuple):
            found = self.bb.emit(found, f"{var.name_hint}_adjoint")
        return found

    def _out(self, var: Var) -> Var:
        grad = self._whole(var)
        if not isinstance(grad, Var):
            grad = self.bb.emit(grad, f"{var.name_hint}_adjoint")
        return self.bb.emit_output(grad, f"{var.name_hint}_adjoint_out")


__all__ = ["TE_GRADIENTS", "Gradient", "GradientError"]
