"""The expressions, bindings and functions of Relax.

Nodes are immutable, as everywhere in the IR. An expression knows its struct info in `struct_info_`:
a leaf from the start, a call once its operator's rule was applied (the constructors in `relax.op`
do that when the arguments' struct info is known; `BlockBuilder.normalize` always).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Mapping, Sequence

from ..above import above
from ..ir.dtype import canonical, numpy_dtype
from ..ir.module import BaseFunc, GlobalVar, normalize_attrs
from ..ir.node import Node, defines, ignored, node, plain
from ..ir.structural import register_bindable
from ..tir import expr as E
from ..tir import op as O
from ..tir.expr import Op
from .struct_info import (
    MAKERS, OBJECT, Expr, FuncStructInfo, ItemsAsFields, ObjectStructInfo, PrimStructInfo,
    ShapeExpr, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo,
    erase_to_well_defined, is_base_of, struct_info_lca, tir_vars_in_struct_info,
)


if TYPE_CHECKING:
    #: a value (a GlobalVar may be one too, and has struct info as they do), and what is called
    Value = Expr
    Callee = Expr | GlobalVar | Op
else:
    Value = Callee = Node


class Attrs(dict):
    """The attributes of a call: a dict whose items can be read as `attrs.axis` too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            have = ", ".join(self) or "none"
            raise AttributeError(f"the call has no attribute {name!r}; it has: {have}") from None

    def __hash__(self) -> int:
        return hash(tuple(self))


# ------------------------------------------------------------------------------- leaves


@node(namespace="relax")
class Var(Expr):
    """A variable: a parameter or what a binding introduces. Two are the same only as objects."""

    bound_parts = ("struct_info_",)
    name_hint: str = plain()
    struct_info_: StructInfo | None = plain()

    def __init__(self, name_hint: str, struct_info: StructInfo | None = None,
                 span: object = None, **early: Any) -> None:
        if early or isinstance(span, StructInfo) or isinstance(struct_info, (tuple, list)):
            # Relax of 2022 has a shape and a type
            struct_info = above("struct info of an early Var")(struct_info, span, **early)
        if struct_info is not None and not isinstance(struct_info, StructInfo):
            struct_info = as_struct_info(struct_info)
        self._init(str(name_hint), struct_info)

    @property
    def name(self) -> str:
        """Other name for `name_hint`."""
        return self.name_hint

    @property
    def vid(self) -> "Var":
        """What identifies the variable: itself."""
        return self

    def with_name(self, name: str) -> "Var":
        """A new variable of the same struct info."""
        return type(self).from_fields(name, self.struct_info_)


@node(namespace="relax")
class DataflowVar(Var):
    """A variable seen only inside its dataflow block."""

    if TYPE_CHECKING:
        __init__ = Var.__init__


register_bindable(Var, DataflowVar)


@node(namespace="relax")
class Constant(Expr):
    """A tensor known when the program is built; `data` is an NDArray."""

    data: Any = plain()
    struct_info_: StructInfo | None = ignored()

    def __init__(self, data: Any, struct_info: StructInfo | None = None, span: object = None
                 ) -> None:
        if type(data).__name__ != "NDArray":
            from ..runtime import array

            data = array(data)
        if struct_info is None:
            struct_info = TensorStructInfo(tuple(data.shape), str(data.dtype))
        self._init(data, struct_info)

    @classmethod
    def from_saved(cls, data: Any, struct_info: Any) -> "Constant":
        """The constant of a saved array (what `ir.serialize` calls)."""
        return cls(data, struct_info)


@node(namespace="relax")
class PrimValue(Expr):
    """A scalar of the host program as a value."""

    value: E.PrimExpr = plain()

    def __init__(self, value: Any, span: object = None) -> None:
        if not isinstance(value, E.PrimExpr):
            value = O.const(value, "int64") if isinstance(value, int) and not isinstance(
                value, bool) else O.const(value)
        self._init(value)

    @property
    def struct_info_(self) -> PrimStructInfo:
        """Its own value."""
        return PrimStructInfo.from_fields(self.value.dtype, self.value)


@node(namespace="relax")
class StringImm(Expr):
    """A string as a value."""

    value: str = plain()

    def __init__(self, value: str, span: object = None) -> None:
        self._init(str(value))

    @property
    def struct_info_(self) -> ObjectStructInfo:
        """Any object."""
        return OBJECT


@node(namespace="relax")
class DataTypeImm(Expr):
    """A data type as a value."""

    value: str = plain()

    def __init__(self, value: str, span: object = None) -> None:
        self._init(canonical(str(value)))

    @property
    def struct_info_(self) -> ObjectStructInfo:
        """Any object."""
        return OBJECT


@node(namespace="relax")
class ExternFunc(Expr, BaseFunc):
    """A function registered under a global name, outside the module."""

    global_symbol: str = plain()
    struct_info_: StructInfo | None = ignored()
    attrs: dict | None = ignored()

    def __init__(self, global_symbol: str, struct_info: StructInfo | None = None,
                 span: object = None) -> None:
        if struct_info is None:
            struct_info = FuncStructInfo(None, OBJECT, False)
        self._init(str(global_symbol), struct_info, {})


# ------------------------------------------------------------------------------- compound


@node(namespace="relax")
class Tuple(Expr):
    """Several values as one."""

    fields_: tuple[Value, ...]
    struct_info_: StructInfo | None = ignored()
    if TYPE_CHECKING:
        fields: ClassVar[Any]  # of an object its items, see ItemsAsFields

    def __init__(self, fields: Sequence[Any], span: object = None) -> None:
        fields = tuple(map(as_expr, fields))
        infos = tuple([f.struct_info_ for f in fields])
        self._init(fields, None if None in infos else TupleStructInfo.from_fields(infos))

    def __getitem__(self, index: int) -> Expr:
        return self.fields_[index]

    def __len__(self) -> int:
        return len(self.fields_)

    def __iter__(self) -> Any:
        return iter(self.fields_)


Tuple.fields = ItemsAsFields(Tuple.fields)


@node(namespace="relax")
class TupleGetItem(Expr):
    """One item of a tuple."""

    tuple_value: Expr
    index: int = plain()
    struct_info_: StructInfo | None = ignored()

    def __init__(self, tuple_value: Expr, index: int, span: object = None) -> None:
        info = tuple_value.struct_info_
        item = None
        if isinstance(info, TupleStructInfo):
            if not 0 <= index < len(info.fields_):
                raise IndexError(f"item {index} of a tuple that has {len(info.fields_)} items")
            item = info.fields_[index]
        elif isinstance(info, ObjectStructInfo):
            item = OBJECT
        elif info is not None:
            raise TypeError(f"an item is taken of a value that is no tuple but {info}")
        self._init(tuple_value, int(index), item)


@node(namespace="relax")
class Call(Expr):
    """A call of an operator (Op), a function of the module (GlobalVar), or a function value.

    `sinfo_args` says what a call of a TIR or packed function returns; `attrs` are the operator's.
    """

    op: Callee
    if TYPE_CHECKING:
        args: tuple[Any, ...]  # of what class they are says the operator
        attrs: Attrs = plain()  # None where no operator is called
    else:
        args: tuple[Node, ...]
        attrs: dict | None = plain()
    sinfo_args: tuple[StructInfo, ...] = plain()
    struct_info_: StructInfo | None = ignored()

    def __init__(self, op: Any, args: Sequence[Any], attrs: Any = None,
                 sinfo_args: Sequence[StructInfo] | None = None, span: object = None,
                 struct_info: StructInfo | None = None) -> None:
        if type(op) is str:
            op = Op.get(op)
        if attrs is None and type(op) is Op:
            attrs = above("attributes of a call")(op, args)
        self._init(op, tuple(args), None if attrs is None else Attrs(attrs),
                   () if sinfo_args is None else tuple(sinfo_args), struct_info)


    @classmethod
    def from_saved(cls, op: Any, args: tuple, attrs: Any, sinfo_args: tuple,
                   struct_info: Any) -> "Call":
        """The call of saved fields (what `ir.serialize` calls)."""
        return cls(op, args, attrs, sinfo_args, struct_info=struct_info)


@node(namespace="relax")
class If(Expr):
    """The value of one branch or of the other."""

    cond: Expr
    true_branch: SeqExpr
    false_branch: SeqExpr
    struct_info_: StructInfo | None = ignored()

    def __init__(self, cond: Expr, true_branch: Expr, false_branch: Expr, span: object = None
                 ) -> None:
        true_branch, false_branch = as_body(true_branch), as_body(false_branch)
        a, b = true_branch.struct_info_, false_branch.struct_info_
        self._init(cond, true_branch, false_branch,
                   None if a is None or b is None else struct_info_lca(a, b))


# ------------------------------------------------------------------------------- bindings


@node(namespace="relax")
class Binding(Node):
    """Base of what introduces a variable."""

    var: Var = defines()
    value: Value


@node(namespace="relax")
class VarBinding(Binding):
    """var = value"""

    def __init__(self, var: Var, value: Expr, span: object = None) -> None:
        self._init(var, value)


@node(namespace="relax")
class MatchCast(Binding):
    """var = R.match_cast(value, struct_info): checked at run time, defines symbolic variables."""

    struct_info: StructInfo = plain()

    def __init__(self, var: Var, value: Expr, struct_info: StructInfo, span: object = None) -> None:
        self._init(var, value, as_struct_info(struct_info))


@node(namespace="relax")
class BindingBlock(Node):
    """Bindings in order; they may have effects."""

    bindings: tuple[Binding, ...]

    def __init__(self, bindings: Sequence[Binding], span: object = None) -> None:
        self._init(tuple(bindings))


@node(namespace="relax")
class DataflowBlock(BindingBlock):
    """Bindings without effects or control flow: a piece of a computation graph."""

    if TYPE_CHECKING:
        __init__ = BindingBlock.__init__


@node(namespace="relax")
class SeqExpr(Expr):
    """Blocks of bindings, then a value."""

    blocks: tuple[BindingBlock, ...]
    body: Value
    struct_info_: StructInfo | None = ignored()

    def __init__(self, blocks: Sequence[BindingBlock], body: Expr, span: object = None) -> None:
        self._init(tuple(blocks), body, body.struct_info_)


def as_body(expr: Expr) -> SeqExpr:
    """The body of a function or branch: a SeqExpr, made of a value if need be."""
    return expr if type(expr) is SeqExpr else SeqExpr((), expr)


# ------------------------------------------------------------------------------- functions


@node(namespace="relax")
class Function(BaseFunc, Expr):
    """A function of the graph level."""

    params: tuple[Var, ...] = defines()
    body: SeqExpr
    ret_struct_info: StructInfo = plain()
    is_pure: bool = plain()
    attrs: dict = plain()

    def __init__(self, params: Sequence[Var], body: Expr,
                 ret_struct_info: StructInfo | None = None, is_pure: bool = True,
                 attrs: Mapping[str, Any] | None = None, span: object = None) -> None:
        params = tuple(params)
        for p in params:
            if not isinstance(p, Var):
                raise TypeError(f"the parameters of a function are variables, got {p!r}")
            if p.struct_info_ is None:
                raise ValueError(f"parameter {p.name_hint!r} has no struct info")
        if ret_struct_info is None or body.struct_info_ is not None:
            known = {v for p in params for v in tir_vars_in_struct_info(p.struct_info_)}
            inferred = erase_to_well_defined(
                body.struct_info, known.__contains__, set(params).__contains__)
            if ret_struct_info is None or is_base_of(ret_struct_info, inferred) and not is_base_of(
                    inferred, ret_struct_info):
                ret_struct_info = inferred  # a declaration that says less is made precise
        self._init(params, as_body(body), ret_struct_info, bool(is_pure), normalize_attrs(attrs))

    @property
    def struct_info_(self) -> FuncStructInfo:
        """What it takes and gives."""
        return FuncStructInfo.from_fields(tuple([p.struct_info_ for p in self.params]),
                                          self.ret_struct_info, self.is_pure, None)

    @staticmethod
    def create_empty(params: Sequence[Var], ret_struct_info: StructInfo, is_pure: bool = True,
                     attrs: Any = None, span: object = None) -> "Function":
        """A function of which only the head is known, its body None."""
        return Function.from_fields(tuple(params), None, ret_struct_info, is_pure,
                                    normalize_attrs(attrs))

    def bind_params(self, binding_map: Mapping[Any, Any]) -> "Function":
        """The function with parameters (by name or Var) fixed to values."""
        return above("bind_params")(self, binding_map)

    def inline_functions(self, function_map: Mapping[Any, "Function"]) -> "Function":
        """The function with the bodies of functions of its module (by name or GlobalVar) in place
        of calls of them."""
        return above("inline_functions")(self, function_map)

    def bind_symbolic_vars(self, binding_map: Mapping[Any, Any]) -> "Function":
        """The function with symbolic dimensions (by name or tir.Var) fixed."""
        return above("bind_symbolic_vars")(self, binding_map)

    def graph(self) -> Any:
        """The computation graph: a view in a notebook, with `.svg(path)` and `.html(path)`."""
        return above("graph")(self)


# ------------------------------------------------------------------------------- conversions


def const(value: Any, dtype: Any = None) -> Constant:
    """A Constant of an array or Python number; `dtype` is a dtype or a TensorStructInfo.

    Without a dtype a Python number is float32, int32 or bool, and a float64 array stays float64, as
    in TVM.
    """
    import numpy as np

    info = None
    if isinstance(dtype, StructInfo):
        info, dtype = dtype, getattr(dtype, "dtype", None) or None
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        if type(value).__name__ == "NDArray" and dtype in (None, str(value.dtype)):
            return _checked_constant(value, info)
        value = value.numpy()
    if dtype is None and not hasattr(value, "dtype"):
        value = np.asarray(value)
        kind = {"float64": "float32", "int64": "int32"}.get(str(value.dtype))
        value = value.astype(kind) if kind else value
    elif dtype is not None:
        value = np.asarray(value).astype(numpy_dtype(canonical(str(dtype))))
    from ..runtime import array

    dtype = canonical(str(dtype)) if dtype is not None else None
    data = array(np.asarray(value)) if dtype != "bfloat16" else _as_bfloat16(value)
    return _checked_constant(data, info)


def _as_bfloat16(value: Any) -> Any:
    from ..runtime import cpu, empty

    out = empty(value.shape, "bfloat16", cpu())
    out.copyfrom(value)
    return out


def _checked_constant(data: Any, info: StructInfo | None) -> Constant:
    have = TensorStructInfo(tuple(data.shape), str(data.dtype))
    if info is not None and not info.is_base_of(have):
        raise ValueError(f"a constant of {have} cannot be declared as {info}")
    return Constant(data, have)


def as_expr(value: Any) -> Expr:
    """A Python value as a Relax expression: tuples, scalars, arrays, shapes, strings."""
    if isinstance(value, Expr) or type(value) in (Op, GlobalVar):
        return value
    if isinstance(value, (tuple, list)):
        return Tuple(value)
    if isinstance(value, E.StringImm):
        return StringImm(value.value)
    if isinstance(value, (E.PrimExpr, bool, int)):
        return PrimValue(value)
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, float):
        return PrimValue(E.FloatImm("float32", value))
    if hasattr(value, "__array__") or hasattr(value, "numpy"):
        return const(value)
    if value is None:
        raise TypeError("None is no Relax expression; an argument is missing")
    raise TypeError(f"cannot use a Python {type(value).__name__} as a Relax expression")


def as_struct_info(value: Any) -> StructInfo:
    """What `R.Tensor(...)` and the like mean, or a struct info itself."""
    if isinstance(value, StructInfo):
        return value
    convert = getattr(value, "as_struct_info", None)
    if convert is not None:
        return convert()
    if isinstance(value, (tuple, list)):
        return TupleStructInfo([as_struct_info(v) for v in value])
    raise TypeError(f"expected struct info such as R.Tensor((n, 4), \"float32\"), got {value!r}")


def extern(name: str, struct_info: StructInfo | None = None) -> ExternFunc:
    """A function registered under a global name."""
    return ExternFunc(name, struct_info)


def get_shape_of(expr: Expr) -> Expr:
    """The shape of a tensor as an expression: what is known of it, else R.shape_of."""
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo):
        raise TypeError(f"only a tensor has a shape, this is {info}")
    if info.shape is not None:
        return info.shape
    return above("shape_of")(expr)


def call_global(var: GlobalVar, args: tuple) -> Expr:
    """The call of a function of the module. Raises TypeError where nothing of Relax is passed."""
    if any(isinstance(a, Expr) for a in args):
        return Call(var, args)
    raise TypeError(f"cannot make a call of {var.name_hint!r} from these arguments: only Relax "
                    "expressions can be passed")


MAKERS["call_expr"] = lambda fn, args, attrs: Call(fn, [as_expr(a) for a in args], attrs)
MAKERS["tuple_item"] = TupleGetItem

PrimExpr = E.PrimExpr

__all__ = [
    "Attrs", "Binding", "BindingBlock", "Call", "Constant", "DataTypeImm", "DataflowBlock",
    "DataflowVar", "Expr", "ExternFunc", "Function", "GlobalVar", "If", "MatchCast", "Op",
    "PrimExpr", "PrimValue", "SeqExpr", "ShapeExpr", "ShapeStructInfo", "StringImm", "Tuple",
    "TupleGetItem", "Var", "VarBinding", "as_body", "as_expr", "as_struct_info", "const", "extern",
    "get_shape_of",
]
