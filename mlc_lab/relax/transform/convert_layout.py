"""ConvertLayout: convolutions in the layout that one asks for, with as few transposes as possible.

A value is kept in the layout in which it was computed; elementwise operators, pooling, batch_norm,
reductions and the like take it as it comes, with their axes renumbered. Only where an operator does
not know layouts, and where a value leaves the dataflow block, it is put back.

before::

    @R.function
    def main(x: R.Tensor((1, 3, 8, 8), "float32"),
             w: R.Tensor((4, 3, 3, 3), "float32")) -> R.Tensor((1, 4, 6, 6), "float32"):
        with R.dataflow():
            lv = R.nn.conv2d(x, w)
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv

after `ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})`::

    @R.function
    def main(x: R.Tensor((1, 3, 8, 8), "float32"),
             w: R.Tensor((4, 3, 3, 3), "float32")) -> R.Tensor((1, 4, 6, 6), "float32"):
        with R.dataflow():
            x_1 = R.permute_dims(x, axes=[0, 2, 3, 1])
            w_1 = R.permute_dims(w, axes=[0, 2, 3, 1])
            lv = R.nn.conv2d(x_1, w_1, data_layout="NHWC", kernel_layout="OHWI",
                             out_layout="NHWC")
            gv_1 = R.nn.relu(lv)
            gv = R.permute_dims(gv_1, axes=[0, 3, 1, 2])
            R.output(gv)
        return gv

A layout is kept as a permutation: dimension i of what is stored is dimension p[i] of the value as
the program first had it.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ..op.registry import OPERATORS, infer_call
from ..op.reshaping import permute_dims
from .rewriting import (
    BindingBlock, Call, DataflowBlock, DataflowVar, Emitter, Expr, Pass, Replacer,
    TensorStructInfo, Tuple, TupleGetItem, TupleStructInfo, Var, VarBinding, make_function_pass,
    map_blocks, op_name, used_vars,
)

Permutation = tuple  # of int


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]],
                  layout_cb: Callable[[Call], Mapping[str, Sequence[str]]] | None = None) -> Pass:
    """Convert operators to layouts.

    `desired_layouts` maps an operator to the layouts of its data, its weight and (if given) its
    result: `{"relax.nn.conv2d": ["NHWC", "OHWI"]}`. `layout_cb(call)` may decide it for each call.
    """
    def convert(block: BindingBlock) -> BindingBlock:
        if type(block) is not DataflowBlock:
            return block
        return _Converter(desired_layouts, layout_cb).block(block)

    return make_function_pass("ConvertLayout", lambda func, mod: map_blocks(func, convert),
                              ConvertLayout.__doc__)


def permutation(initial: str, wanted: str) -> Permutation:
    """How to permute a tensor of layout `initial` to have layout `wanted`."""
    if sorted(initial) != sorted(wanted):
        raise ValueError(f"layout {wanted!r} is not made of the letters of {initial!r}")
    return tuple(initial.index(c) for c in wanted)


def _identity(n: int) -> Permutation:
    return tuple(range(n))


class _Converter:
    """Rewrites one dataflow block."""

    def __init__(self, desired: Mapping[str, Sequence[str]], decide: Callable | None) -> None:
        self.desired, self.decide = desired, decide
        #: how the value of a variable is stored; a list for a tuple
        self.layout: dict[Expr, Any] = {}
        self.stored: dict[Expr, Var] = {}
        self.cache: dict[tuple[Any, Permutation], Var] = {}
        self.out = Emitter()

    def block(self, block: DataflowBlock) -> BindingBlock:
        """The block with operators in their layouts; the same block where none has a wish."""
        wishes = set(self.desired)
        if self.decide is None and not any(op_name(b.value) in wishes for b in block.bindings):
            return block
        for b in block.bindings:
            if type(b) is VarBinding:
                self.binding(b)
            else:
                table = {v: self.as_is(v) for v in dict.fromkeys(used_vars(b))}
                self.out.bindings.append(Replacer(table)(b))
        return DataflowBlock(self.out.bindings)

    def binding(self, b: VarBinding) -> None:
        value = b.value
        row = OPERATORS.get(op_name(value))
        kind = None if row is None else row.layout
        found = None
        if kind != "conv" and not any(v in self.layout for v in used_vars(value)):
            self.out.bindings.append(b)
            return
        if kind is not None and isinstance(value, Call):
            found = _RULES[kind](self, value)
        elif type(value) is TupleGetItem and isinstance(self.layout.get(value.tuple_value), list):
            layout = self.layout[value.tuple_value][value.index]
            found = TupleGetItem(self.stored[value.tuple_value], value.index), layout
        elif isinstance(value, Var) and type(b.var) is DataflowVar and value in self.layout:
            self.layout[b.var], self.stored[b.var] = self.layout[value], self.stored[value]
            return
        if found is None:
            self.unchanged(b)
            return
        new, layout = found
        self.bind(b, new, layout)

    def unchanged(self, b: VarBinding) -> None:
        """An operator that takes its arguments in the program's own layout."""
        table = {v: self.as_is(v) for v in dict.fromkeys(used_vars(b.value))}
        table = {k: v for k, v in table.items() if k is not v}
        self.out.bindings.append(Replacer(table)(b) if table else b)

    def bind(self, b: VarBinding, value: Expr, layout: Any) -> None:
        """Bind a value computed in some layout; put it back if it leaves the block."""
        if type(value) is Call:
            bare = Call.from_fields(value.op, value.args, value.attrs, value.sinfo_args, None)
            value = Call.from_fields(value.op, value.args, value.attrs, value.sinfo_args,
                                     infer_call(bare))
        layouts = layout if isinstance(layout, list) else [layout]
        if all(p == _identity(len(p)) for p in layouts):
            self.out.bindings.append(VarBinding(b.var, value))
            return
        var = DataflowVar(b.var.name_hint, value.struct_info_)
        self.out.bindings.append(VarBinding(var, value))
        self.stored[b.var], self.layout[b.var] = var, layout
        if type(b.var) is DataflowVar:
            return
        if isinstance(layout, list):
            items = [self.out.emit(TupleGetItem(var, i)) for i in range(len(layout))]
            back = Tuple([self._back(v, p) for v, p in zip(items, layout)])
        else:
            back = permute_dims(var, _inverse(layout))
        self.out.bindings.append(VarBinding(b.var, back))
        del self.stored[b.var], self.layout[b.var]

    def _back(self, var: Var, p: Permutation) -> Var:
        return var if p == _identity(len(p)) else self.out.emit(permute_dims(var, _inverse(p)))

    # ------------------------------------------------------------------------- arguments

    def as_is(self, var: Var) -> Expr:
        """The variable's value in the program's own layout."""
        layout = self.layout.get(var)
        if layout is None:
            return var
        if isinstance(layout, list):
            key = (var, ())
            if key not in self.cache:
                items = [self.out.emit(TupleGetItem(self.stored[var], i))
                         for i in range(len(layout))]
                self.cache[key] = self.out.emit(Tuple(
                    [self._back(v, p) for v, p in zip(items, layout)]))
            return self.cache[key]
        return self.in_layout(var, _identity(len(layout)))

    def in_layout(self, expr: Expr, wanted: Permutation) -> Expr:
        """An argument stored with permutation `wanted`."""
        have = self.layout_of(expr)
        if have == wanted:
            return self.stored.get(expr, expr)
        key = (expr, wanted)
        if key not in self.cache:
            source = self.stored.get(expr, expr)
            back = _inverse(have)
            axes = [back[i] for i in wanted]
            hint = getattr(expr, "name_hint", "lv")
            self.cache[key] = self.out.emit(permute_dims(source, axes), hint)
        return self.cache[key]

    def layout_of(self, expr: Expr) -> Permutation:
        """How an argument is stored."""
        found = self.layout.get(expr)
        return found if found is not None else _identity(self.rank(expr))

    @staticmethod
    def rank(expr: Expr) -> int:
        info = expr.struct_info_
        return info.ndim if isinstance(info, TensorStructInfo) else -1

    # ------------------------------------------------------------------------- operators

    def conv(self, call: Call) -> Any:
        wanted = self.decide(call) if self.decide is not None else self.desired
        layouts = (wanted or {}).get(op_name(call))
        if not layouts:
            return None
        data, weight = call.args
        own = call.attrs
        if not (own.data_layout + own.kernel_layout + own.out_layout).isupper():
            return None  # packed by whoever wrote the program
        out = layouts[2] if len(layouts) > 2 else layouts[0]
        p_data = permutation(own.data_layout, layouts[0])
        p_weight = permutation(own.kernel_layout, layouts[1])
        p_out = permutation(own.out_layout, out)
        attrs = type(own)({**own, "data_layout": layouts[0], "kernel_layout": layouts[1],
                           "out_layout": out})
        args = (self.in_layout(data, p_data), self.in_layout(weight, p_weight))
        return Call.from_fields(call.op, args, attrs, (), None), p_out

    def pool(self, call: Call) -> Any:
        data = call.args[0]
        layout = self.layout_of(data)
        own = call.attrs
        if len(layout) != len(own.layout) or not own.layout.isupper():
            return None
        new = "".join(own.layout[i] for i in layout)
        attrs = {**own, "layout": new}
        if "out_layout" in own:
            if own.out_layout != own.layout:
                return None
            attrs["out_layout"] = new
        args = (self.stored.get(data, data), *call.args[1:])
        return Call.from_fields(call.op, args, type(own)(attrs), (), None), layout

    def elementwise(self, call: Call) -> Any:
        data = call.args[0]
        layout = self.layout_of(data)
        args = (self.stored.get(data, data), *call.args[1:])
        new = Call.from_fields(call.op, args, call.attrs, call.sinfo_args, None)
        return new, ([layout, layout] if op_name(call) == "relax.nn.dropout" else layout)

    def broadcast(self, call: Call) -> Any:
        """All operands in the layout of the first that has one of its own."""
        ranks = [self.rank(a) for a in call.args]
        top = max(ranks)
        if min(ranks) < 0 or any(r not in (0, top) for r in ranks):
            return None
        layout = next((self.layout[a] for a in call.args
                       if a in self.layout and not isinstance(self.layout[a], list)), None)
        if layout is None:
            return None
        args = tuple(a if r == 0 else self.in_layout(a, layout)
                     for a, r in zip(call.args, ranks))
        return Call.from_fields(call.op, args, call.attrs, call.sinfo_args, None), layout

    def reduction(self, call: Call) -> Any:
        data, own = call.args[0], call.attrs
        layout = self.layout_of(data)
        axis = own.axis if own.axis is None or isinstance(own.axis, (tuple, list)) else [own.axis]
        if axis is None:
            axes = None
            gone = set(layout)
        else:
            gone = {a % len(layout) for a in axis}
            axes = tuple(layout.index(a) for a in sorted(gone, key=layout.index))
        attrs = type(own)({**own, "axis": axes})
        new = Call.from_fields(call.op, (self.stored.get(data, data),), attrs, (), None)
        if own.keepdims:
            return new, layout
        left = [a for a in layout if a not in gone]
        return new, tuple(sorted(left).index(a) for a in left)

    def along(self, call: Call) -> Any:
        """Operators with one axis: concat and split of tensors of one layout, softmax."""
        own = call.attrs
        data = call.args[0]
        parts = data.fields_ if type(data) is Tuple else (data,)
        layout = next((self.layout[a] for a in parts if a in self.layout
                       and not isinstance(self.layout[a], list)), None)
        if layout is None or own.axis is None or (op_name(call) == "relax.concat"
                                                  and type(data) is not Tuple):
            return None
        attrs = type(own)({**own, "axis": layout.index(own.axis % len(layout))})
        args = tuple(self.in_layout(a, layout) for a in parts)
        first = Tuple(args) if type(data) is Tuple else args[0]
        new = Call.from_fields(call.op, (first, *call.args[1:]), attrs, (), None)
        if op_name(call) == "relax.split":
            assert isinstance(call.struct_info_, TupleStructInfo)
            return new, [layout] * len(call.struct_info_.fields_)
        return new, layout

    def batch_norm(self, call: Call) -> Any:
        data, own = call.args[0], call.attrs
        layout = self.layout_of(data)
        attrs = type(own)({**own, "axis": layout.index(own.axis % len(layout))})
        args = (self.stored.get(data, data), *map(self._plain, call.args[1:]))
        return Call.from_fields(call.op, args, attrs, (), None), [layout, (0,), (0,)]

    def _plain(self, expr: Expr) -> Expr:
        return self.as_is(expr) if isinstance(expr, Var) else expr


#: what an operator's declaration says of layouts -> how its calls are rewritten
_RULES: dict[str, Callable[[_Converter, Call], Any]] = {
    "conv": _Converter.conv,  # has layouts of its own, in its attributes
    "pool": _Converter.pool,  # takes the layout of its data, in its attributes
    "elementwise": _Converter.elementwise,  # one tensor, whatever the order of its dimensions
    "broadcast": _Converter.broadcast,  # several, in the same order
    "reduction": _Converter.reduction,  # of some axes
    "along": _Converter.along,  # one axis
    "batch_norm": _Converter.batch_norm,
}


def _inverse(p: Permutation) -> list[int]:
    return [p.index(i) for i in range(len(p))]


__all__ = ["ConvertLayout", "permutation"]
