"""ToMixedPrecision: products in float16, sums in float32.

An operator's declaration says its `precision`. Those that gain much (matmul, convolution) always
take float16 and accumulate in `out_dtype`; those that only pass values on (elementwise, reshape,
pooling) follow: they compute in float16 where everything that uses their result wants that; all
others (softmax, reductions, norms) stay in float32. Values are converted where policies meet. What
a function takes and gives keeps its dtype.

before::

    @R.function
    def main(x: R.Tensor((4, 8), "float32"),
             w: R.Tensor((8, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            gv = R.matmul(x, w)
            R.output(gv)
        return gv

after `ToMixedPrecision()`::

    @R.function
    def main(x: R.Tensor((4, 8), "float32"),
             w: R.Tensor((8, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            x_1 = R.astype(x, dtype="float16")
            w_1 = R.astype(w, dtype="float16")
            gv = R.matmul(x_1, w_1, out_dtype="float32")
            R.output(gv)
        return gv

Micikevicius et al., "Mixed Precision Training" (2018); the policies are those of TVM's pass.
"""

from __future__ import annotations

from typing import Sequence

from ..normal import merge_blocks
from ..op.elementwise import astype
from ..op.registry import OPERATORS, infer_call
from .rewriting import (
    Binding, BindingBlock, Call, Constant, DataflowBlock, DataflowVar, Emitter, Expr, Function,
    Pass, Replacer, SeqExpr, StructInfo, TensorStructInfo, Tuple, TupleGetItem, TupleStructInfo,
    Var, VarBinding, make_function_pass, op_name, used_vars, with_body,
)

LOW = "float16"


def ToMixedPrecision(out_dtype: str = "float32",
                     fp16_input_names: Sequence[str] | None = None) -> Pass:
    """Compute products in float16 and accumulate in `out_dtype` ("float32" or "float16").

    Parameters named in `fp16_input_names` are taken as float16. Only float32 values in dataflow
    blocks are converted.
    """
    if out_dtype not in ("float32", "float16"):
        raise ValueError(f'out_dtype is "float32" or "float16", got {out_dtype!r}')
    names = set(fp16_input_names or ())
    return make_function_pass("ToMixedPrecision",
                              lambda func, mod: _Mixed(func, out_dtype, names).run(),
                              ToMixedPrecision.__doc__)


def _policy(value: Expr) -> str | None:
    """What the declaration of the operator that is called says of precision."""
    row = OPERATORS.get(op_name(value))
    return None if row is None else row.precision


def is_float32(info: StructInfo | None) -> bool:
    """Whether a value is a float32 tensor, or a tuple of such."""
    if isinstance(info, TupleStructInfo):
        return all(map(is_float32, info.fields_))
    return isinstance(info, TensorStructInfo) and info.dtype == "float32"


class _Mixed:
    def __init__(self, func: Function, out_dtype: str, names: set[str]) -> None:
        self.func, self.out_dtype, self.names = func, out_dtype, names
        #: variables of which every use wants float16
        self.low: set[Var] = set()
        self.replace = Replacer()
        #: what holds a variable's value as float32 and as float16
        self.versions: dict[tuple[Var, str], Var] = {}

    def run(self) -> Function:
        """The function with products in float16."""
        func = self.func
        if type(func.body) is not SeqExpr:
            return func
        if not any(_policy(b.value) == "always" for block in func.body.blocks
                   if type(block) is DataflowBlock for b in block.bindings):
            return func
        self.decide()
        params = []
        for p in func.params:
            info = p.struct_info_
            if p.name_hint in self.names and isinstance(info, TensorStructInfo) and (
                    is_float32(info)):
                new = Var(p.name_hint, _as(info, LOW))
                self.versions[p, LOW] = new
                params.append(new)
            else:
                params.append(p)
        blocks = [self.block(b) if type(b) is DataflowBlock else self.plain(b)
                  for b in func.body.blocks]
        body = SeqExpr(merge_blocks(blocks), self.replace(func.body.body))
        new = with_body(func, body)
        return new.replace(params=tuple(params))

    def decide(self) -> None:
        """Find, from the results backwards, which variables are wanted in float16 only."""
        wants: dict[Var, set[str]] = {}

        def want(expr: Expr, dtype: str) -> None:
            for var in used_vars(expr):
                wants.setdefault(var, set()).add(dtype)

        want(self.func.body.body, "float32")
        for block in reversed(self.func.body.blocks):
            for b in reversed(block.bindings):
                inside = type(block) is DataflowBlock and type(b) is VarBinding
                policy = _policy(b.value)
                only_low = wants.get(b.var) == {LOW} and type(b.var) is DataflowVar and is_float32(
                    b.var.struct_info_)
                follows = policy == "follow" or type(b.value) in (Tuple, TupleGetItem)
                if only_low and (policy == "always" or follows):
                    self.low.add(b.var)
                if inside and policy == "always":
                    want(b.value, LOW)
                elif inside and follows and only_low:
                    want(b.value, LOW)
                else:
                    want(b.value, "float32")

    def block(self, block: DataflowBlock) -> BindingBlock:
        """A dataflow block, converted."""
        out = Emitter()
        for b in block.bindings:
            if type(b) is not VarBinding:
                out.bindings.append(self.replace(self.in_float32(b, out)))
                continue
            if _policy(b.value) == "always" and is_float32(b.var.struct_info_):
                self.product(b, out)
            elif b.var in self.low:
                value = _infer(self.converted(b.value, LOW, out))
                var = DataflowVar(b.var.name_hint, value.struct_info_)
                out.bindings.append(VarBinding(var, value))
                self.versions[b.var, LOW] = var
            else:
                value = self.converted(b.value, "float32", out)
                out.bindings.append(b if value is b.value else VarBinding(b.var, value))
        return DataflowBlock(out.bindings)

    def product(self, b: VarBinding, out: Emitter) -> None:
        """An operator that always takes float16."""
        value = self.converted(b.value, LOW, out)
        assert isinstance(value, Call)
        value = Call.from_fields(value.op, value.args,
                                 type(value.attrs)({**value.attrs, "out_dtype": self.out_dtype}),
                                 value.sinfo_args, None)
        value = _infer(value)
        if self.out_dtype == "float32" and b.var not in self.low:
            out.bindings.append(VarBinding(b.var, value))
            return
        var = DataflowVar(b.var.name_hint, value.struct_info_)
        out.bindings.append(VarBinding(var, value))
        if self.out_dtype == LOW:
            self.versions[b.var, LOW] = var
            if b.var not in self.low:
                out.bindings.append(VarBinding(b.var, astype(var, "float32")))
            return
        self.versions[b.var, LOW] = out.emit(astype(var, LOW), b.var.name_hint)

    def plain(self, block: BindingBlock) -> BindingBlock:
        """An ordinary block: it sees values as they were."""
        out = Emitter(dataflow=False)
        for b in block.bindings:
            out.bindings.append(self.replace(self.in_float32(b, out)))
        return BindingBlock(out.bindings)

    def in_float32(self, binding: Binding, out: Emitter) -> Binding:
        """A binding whose variables are all taken as they were."""
        table = {v: self.version(v, "float32", out) for v in dict.fromkeys(used_vars(binding))}
        table = {k: v for k, v in table.items() if k is not v}
        return Replacer(table)(binding) if table else binding

    def converted(self, value: Expr, dtype: str, out: Emitter) -> Expr:
        """A value with its float operands in `dtype`."""
        table: dict[Var, Expr] = {}
        for var in dict.fromkeys(used_vars(value)):
            new = self.version(var, dtype, out)
            if new is not var:
                table[var] = new
        if dtype == LOW:
            value = _LowConstants(table)(value)
        elif table:
            value = Replacer(table)(value)
        return value

    def version(self, var: Var, dtype: str, out: Emitter) -> Var:
        """A variable that holds the value in `dtype`, converted where there is none yet."""
        if not is_float32(var.struct_info_) or isinstance(var.struct_info_, TupleStructInfo):
            return self.versions.get((var, LOW), var)
        known = self.versions.get((var, dtype))
        if known is not None:
            return known
        low = self.versions.get((var, LOW))
        if dtype == "float32" and low is None:
            return var
        source = var if dtype == LOW else low
        made = out.emit(astype(source, dtype), var.name_hint)
        self.versions[var, dtype] = made
        return made


class _LowConstants(Replacer):
    """Replaces variables, and float32 constants by float16 ones."""

    def _constant(self, node: Constant) -> Expr:
        if not is_float32(node.struct_info_):
            return node
        from ..expr import const

        return const(node.data.numpy().astype("float16"), LOW)

    _METHODS = {**Replacer._METHODS, Constant: _constant}


def _as(info: TensorStructInfo, dtype: str) -> TensorStructInfo:
    return TensorStructInfo.from_fields(info.shape, dtype, info.ndim, info.vdevice)


def _infer(value: Expr) -> Expr:
    """A call with its struct info inferred from its present arguments."""
    if type(value) is not Call:
        return value
    bare = Call.from_fields(value.op, value.args, value.attrs, value.sinfo_args, None)
    return Call.from_fields(value.op, value.args, value.attrs, value.sinfo_args, infer_call(bare))


__all__ = ["ToMixedPrecision"]
