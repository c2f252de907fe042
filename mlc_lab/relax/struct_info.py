"""What is known of a Relax value before it is computed: its struct info.

A tensor's struct info holds its shape and dtype, as far as they are known; a shape may name
symbolic dimensions. Here also: when one struct info is at least as general as another, what two
have in common, and equality of shapes, proved by `arith.Analyzer` where dimensions are symbolic.
`ShapeExpr` stands here because a tensor's struct info holds one.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Callable, Iterable, Mapping, Sequence

from ..arith import Analyzer
from ..ir.dtype import canonical
from ..ir.node import Node, ignored, node, plain
from ..ir.structural import structural_equal
from ..tir import expr as E
from ..tir import op as O
from ..tir.functor import free_vars, substitute


@node(namespace="relax")
class Expr(Node):
    """Base of Relax expressions. `struct_info_` is None as long as nothing inferred it."""

    __hash__ = object.__hash__

    @property
    def struct_info(self) -> "StructInfo":
        """What is known of the value. Raises ValueError where nothing inferred it yet."""
        info = self.struct_info_
        if info is None:
            raise ValueError(
                f"the struct info of this {type(self).__name__} is not known yet: emit it through "
                "a BlockBuilder, or call bb.normalize(expr)")
        return info

    @property
    def ty(self) -> "StructInfo":
        """Later TVM's name for `struct_info`."""
        return self.struct_info

    def __call__(self, *args: Any, attrs: Any = None) -> "Expr":
        return _maker("call_expr")(self, args, attrs)

    def __getitem__(self, index: int) -> "Expr":
        return _maker("tuple_item")(self, index)

    def __iter__(self) -> Any:
        info = self.struct_info_
        if not isinstance(info, TupleStructInfo):
            raise TypeError("only a value known to be a tuple can be unpacked; this one is "
                            f"{info if info is not None else 'of unknown struct info'}")
        return iter([self[i] for i in range(len(info.fields))])

    def __bool__(self) -> bool:
        return True

    def astype(self, dtype: str) -> "Expr":
        """The value converted to `dtype`."""
        return _maker("astype")(self, dtype)


#: constructors that stand above this file, by name: filled by `relax/expr.py` and `relax/op`
MAKERS: dict[str, Callable[..., Any]] = {}


def _maker(name: str) -> Callable[..., Any]:
    if name not in MAKERS:
        import importlib

        importlib.import_module("mlc_lab.relax.op")
    return MAKERS[name]


def _operator(name: str, swap: bool = False) -> Callable[[Any, Any], Any]:
    def apply(self: Expr, other: Any) -> Any:
        return _maker(name)(other, self) if swap else _maker(name)(self, other)

    return apply


for _python, _name in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"),
                       ("truediv", "divide"), ("floordiv", "floor_divide"), ("pow", "power"),
                       ("mod", "mod")):
    setattr(Expr, f"__{_python}__", _operator(_name))
    setattr(Expr, f"__r{_python}__", _operator(_name, True))
for _python, _name in (("lt", "less"), ("gt", "greater"), ("le", "less_equal"),
                       ("ge", "greater_equal")):
    setattr(Expr, f"__{_python}__", _operator(_name))
Expr.__neg__ = lambda self: _maker("negative")(self)


def as_dim(value: Any) -> E.PrimExpr:
    """A dimension or other shape value as an int64 expression."""
    if type(value) is E.IntImm:
        return value if value.dtype == "int64" else E.IntImm("int64", value.value)
    if isinstance(value, E.PrimExpr):
        if value.dtype == "int64":
            return value
        if value.dtype.startswith(("int", "uint")):
            return O.cast(value, "int64")
        raise TypeError(f"a dimension is an int64 expression, {value} has dtype {value.dtype}")
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"a dimension is an integer or a symbolic expression, got {value!r}")
    return E.IntImm("int64", value.__index__())


# ------------------------------------------------------------------------------- the kinds


@node(namespace="relax")
class StructInfo(Node):
    """Base of the kinds of struct info. `==` compares structurally."""

    # type tests are frequent: the kind of a struct info is its class
    def __eq__(self, other: Any) -> bool:
        return self is other or (isinstance(other, StructInfo)
                                 and structural_equal(self, other) is True)

    def __hash__(self) -> int:
        from ..ir.structural import structural_hash

        return structural_hash(self)

    def is_base_of(self, derived: "StructInfo") -> bool:
        """Whether every value of struct info `derived` also has this one."""
        return struct_info_base_check(self, derived) is BaseCheck.PASS


@node(namespace="relax")
class ObjectStructInfo(StructInfo):
    """Any value at all."""

    def __init__(self, span: Any = None) -> None:
        self._init()


@node(namespace="relax")
class PrimStructInfo(StructInfo):
    """A scalar of the host program; `value` where it is known."""

    dtype: str = plain
    value: E.PrimExpr = plain

    def __init__(self, dtype: Any = None, value: Any = None, span: Any = None) -> None:
        if isinstance(dtype, E.PrimExpr):
            dtype, value = dtype.dtype, dtype
        if value is not None and not isinstance(value, E.PrimExpr):
            value = E.IntImm("bool", value) if isinstance(value, bool) else (
                E.IntImm(dtype or "int64", value) if isinstance(value, int)
                else O.const(value, dtype))
        if dtype is None:
            if value is None:
                raise TypeError("PrimStructInfo needs a dtype or a value")
            dtype = value.dtype
        self._init(canonical(dtype), value)


@node(namespace="relax")
class ShapeStructInfo(StructInfo):
    """A shape: its values where they are known, else its number of dimensions (-1: unknown)."""

    values: tuple = plain
    ndim: int = plain

    def __init__(self, values: Any = None, ndim: int = -1, span: Any = None) -> None:
        if values is not None:
            values = tuple(map(as_dim, values))
            ndim = len(values)
        self._init(values, ndim)


@node(namespace="relax")
class ShapeExpr(Expr):
    """A shape as a value."""

    values: tuple = plain

    def __init__(self, values: Sequence[Any], span: Any = None) -> None:
        self._init(tuple(map(as_dim, values)))

    @property
    def struct_info_(self) -> ShapeStructInfo:
        """Its own values."""
        return ShapeStructInfo.from_fields(self.values, len(self.values))

    def __getitem__(self, index: Any) -> E.PrimExpr:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return iter(self.values)


@node(namespace="relax")
class TensorStructInfo(StructInfo):
    """A tensor. `shape` is a ShapeExpr, a variable that holds a shape, or None (unknown).

    `dtype` is "" where it is unknown, `ndim` -1 where that is. `vdevice` is carried along.
    """

    shape: Expr = plain
    dtype: str = plain
    ndim: int = plain
    vdevice: Any = ignored

    def __init__(self, shape: Any = None, dtype: Any = "float32", vdevice: Any = None,
                 ndim: int = -1, span: Any = None) -> None:
        if shape is not None and not isinstance(shape, Expr):
            if isinstance(shape, (int, E.PrimExpr)):
                raise TypeError("the shape of a tensor is a tuple of dimensions, write "
                                f"({shape},)")
            shape = ShapeExpr(shape)
        if type(shape) is ShapeExpr:
            if ndim not in (-1, len(shape.values)):
                raise ValueError(f"ndim={ndim} does not agree with a shape of "
                                 f"{len(shape.values)} dimensions")
            ndim = len(shape.values)
        elif shape is not None:
            info = shape.struct_info_
            if info is not None and not isinstance(info, ShapeStructInfo):
                raise TypeError("the variable that holds the shape of a tensor must have "
                                f"ShapeStructInfo, this one has {info}")
            if ndim == -1 and info is not None:
                ndim = info.ndim
        dtype = "" if dtype in (None, "", "void") else canonical(str(dtype))
        self._init(shape, dtype, ndim, vdevice)

    @property
    def dims(self) -> tuple | None:
        """The dimensions, where they are known: those of the shape, or of the shape's variable."""
        shape = self.shape
        if shape is None:
            return None
        if type(shape) is ShapeExpr:
            return shape.values
        info = shape.struct_info_
        return info.values if isinstance(info, ShapeStructInfo) else None

    def is_unknown_ndim(self) -> bool:
        """Whether not even the number of dimensions is known."""
        return self.ndim == -1

    def is_unknown_dtype(self) -> bool:
        """Whether the dtype is unknown."""
        return self.dtype == ""

    def get_shape(self) -> tuple | None:
        """TVM's name for `dims`."""
        return self.dims


@node(namespace="relax")
class TupleStructInfo(StructInfo):
    """A tuple of values."""

    fields_: tuple = plain

    def __init__(self, fields: Sequence[StructInfo], span: Any = None) -> None:
        self._init(tuple(fields))


class ItemsAsFields:
    """`fields` of a tuple node: of an object its items, as in TVM; of the class its declaration."""

    def __init__(self, declared: tuple) -> None:
        self.declared = declared

    def __get__(self, obj: Any, cls: Any = None) -> tuple:
        return self.declared if obj is None else obj.fields_


TupleStructInfo.fields = ItemsAsFields(TupleStructInfo.fields)


@node(namespace="relax")
class FuncStructInfo(StructInfo):
    """A function: what it takes and gives. `params` is None for a function of any parameters.

    `derive` then computes the struct info of a call (`derive(call) -> StructInfo`).
    """

    params: tuple = plain
    ret: StructInfo = plain
    purity: bool = plain
    derive: Any = ignored

    def __init__(self, params: Any, ret: StructInfo, purity: bool = True, derive: Any = None,
                 span: Any = None) -> None:
        self._init(None if params is None else tuple(params), ret, bool(purity), derive)

    @staticmethod
    def opaque_func(*, ret: StructInfo | None = None, derive_func: Any = None,
                    purity: bool = False, span: Any = None) -> "FuncStructInfo":
        """A function of which only the result is known."""
        return FuncStructInfo(None, ret if ret is not None else ObjectStructInfo(), purity,
                              derive_func)


OBJECT = ObjectStructInfo()


# ------------------------------------------------------------------------------- dimensions


def same_dim(a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer | None = None) -> bool:
    """Whether two dimensions are surely equal."""
    if a is b:
        return True
    if type(a) is E.IntImm and type(b) is E.IntImm:
        return a.value == b.value
    return (analyzer or Analyzer()).can_prove_equal(a, b)


def surely_different(a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer | None = None) -> bool:
    """Whether two dimensions can never be equal (n and n + 1)."""
    if type(a) is E.IntImm and type(b) is E.IntImm:
        return a.value != b.value
    if a is b:
        return False
    difference = (analyzer or Analyzer()).simplify(O.sub(a, b))
    return type(difference) is E.IntImm and difference.value != 0


def same_shape(a: Any, b: Any, analyzer: Analyzer | None = None) -> bool:
    """Whether two sequences of dimensions are surely equal."""
    return len(a) == len(b) and all(same_dim(x, y, analyzer) for x, y in zip(a, b))


# ------------------------------------------------------------------------------- lattice


class BaseCheck(IntEnum):
    """How one struct info relates to another, from surely unrelated to surely a subtype."""

    FAIL_L0 = 0  # no value has both
    FAIL_L1 = 1  # some value may have both, seen from the kinds
    FAIL_L2 = 2  # cannot be proved, a run-time check decides
    PASS = 3


BaseCheckResult = BaseCheck


def _check_dims(base: Sequence[Any], derived: Sequence[Any], analyzer: Analyzer) -> BaseCheck:
    if len(base) != len(derived):
        return BaseCheck.FAIL_L0
    result = BaseCheck.PASS
    for a, b in zip(base, derived):
        if not same_dim(a, b, analyzer):
            if surely_different(a, b, analyzer):
                return BaseCheck.FAIL_L0
            result = BaseCheck.FAIL_L2
    return result


def _check_shape(base: Any, derived: Any, analyzer: Analyzer) -> BaseCheck:
    """Shapes as (dims or None, ndim)."""
    (dims_a, ndim_a), (dims_b, ndim_b) = base, derived
    if -1 not in (ndim_a, ndim_b) and ndim_a != ndim_b:
        return BaseCheck.FAIL_L0
    if ndim_b == -1 and ndim_a != -1:
        return BaseCheck.FAIL_L1
    if dims_a is None:
        return BaseCheck.PASS
    if dims_b is None:
        return BaseCheck.FAIL_L2
    return _check_dims(dims_a, dims_b, analyzer)


def struct_info_base_check(base: StructInfo, derived: StructInfo,
                           analyzer: Analyzer | None = None) -> BaseCheck:
    """Whether every value of `derived` has `base` too (PASS), or how far that is from true."""
    if base is derived:
        return BaseCheck.PASS
    analyzer = analyzer or Analyzer()
    kind = type(base)
    if kind is ObjectStructInfo:
        return BaseCheck.PASS
    if type(derived) is ObjectStructInfo:
        return BaseCheck.FAIL_L1
    if type(derived) is not kind:
        return BaseCheck.FAIL_L0
    if kind is TensorStructInfo:
        result = BaseCheck.PASS
        if base.dtype != derived.dtype and base.dtype:
            if derived.dtype:
                return BaseCheck.FAIL_L0
            result = BaseCheck.FAIL_L1
        if base.shape is not None and base.shape is derived.shape:
            return result
        return min(result, _check_shape((base.dims, base.ndim), (derived.dims, derived.ndim),
                                        analyzer))
    if kind is ShapeStructInfo:
        return _check_shape((base.values, base.ndim), (derived.values, derived.ndim), analyzer)
    if kind is PrimStructInfo:
        if base.dtype != derived.dtype:
            return BaseCheck.FAIL_L0
        if base.value is None:
            return BaseCheck.PASS
        if derived.value is None:
            return BaseCheck.FAIL_L2
        return _check_dims((base.value,), (derived.value,), analyzer)
    if kind is TupleStructInfo:
        if len(base.fields_) != len(derived.fields_):
            return BaseCheck.FAIL_L0
        return min((struct_info_base_check(a, b, analyzer)
                    for a, b in zip(base.fields_, derived.fields_)), default=BaseCheck.PASS)
    return _check_func(base, derived, analyzer)


def _check_func(base: FuncStructInfo, derived: FuncStructInfo, analyzer: Analyzer) -> BaseCheck:
    if base.purity and not derived.purity:
        return BaseCheck.FAIL_L0
    result = struct_info_base_check(base.ret, derived.ret, analyzer)
    if base.params is None:
        return result
    if derived.params is None:
        return min(result, BaseCheck.FAIL_L2)
    if structural_equal(base, derived) is True:
        return BaseCheck.PASS
    if len(base.params) != len(derived.params):
        return BaseCheck.FAIL_L0
    for a, b in zip(base.params, derived.params):  # parameters vary the other way
        result = min(result, struct_info_base_check(b, a, analyzer))
    return result


def is_base_of(base: StructInfo, derived: StructInfo) -> bool:
    """Whether every value of `derived` surely has `base` too."""
    return struct_info_base_check(base, derived) is BaseCheck.PASS


def struct_info_lca(a: StructInfo, b: StructInfo, analyzer: Analyzer | None = None) -> StructInfo:
    """The most precise struct info that values of both have."""
    analyzer = analyzer or Analyzer()
    if struct_info_base_check(a, b, analyzer) is BaseCheck.PASS:
        return a
    if struct_info_base_check(b, a, analyzer) is BaseCheck.PASS:
        return b
    kind = type(a)
    if type(b) is not kind:
        return OBJECT
    if kind is TensorStructInfo:
        dtype = a.dtype if a.dtype == b.dtype else ""
        if a.ndim != b.ndim:
            return TensorStructInfo(None, dtype)
        if a.shape is not None and (a.shape is b.shape or (
                a.dims is not None and b.dims is not None
                and same_shape(a.dims, b.dims, analyzer))):
            return TensorStructInfo(a.shape, dtype)
        return TensorStructInfo(None, dtype, ndim=a.ndim)
    if kind is ShapeStructInfo:
        return ShapeStructInfo(ndim=a.ndim if a.ndim == b.ndim else -1)
    if kind is PrimStructInfo:
        return PrimStructInfo(a.dtype) if a.dtype == b.dtype else OBJECT
    if kind is TupleStructInfo:
        if len(a.fields_) != len(b.fields_):
            return OBJECT
        return TupleStructInfo([struct_info_lca(x, y, analyzer)
                                for x, y in zip(a.fields_, b.fields_)])
    if kind is FuncStructInfo:
        ret = struct_info_lca(a.ret, b.ret, analyzer)
        purity = a.purity and b.purity
        if a.params is None or b.params is None or len(a.params) != len(b.params):
            return FuncStructInfo(None, ret, purity)
        same = all(x == y for x, y in zip(a.params, b.params))
        return FuncStructInfo(a.params if same else None, ret, purity)
    return OBJECT


# ------------------------------------------------------------------------------- mapping


def map_struct_info(info: StructInfo, on_prim: Callable[[E.PrimExpr], E.PrimExpr],
                    on_expr: Callable[[Expr], Expr | None] | None = None) -> StructInfo:
    """`info` with its dimensions and shape variables replaced; the same object if none changed.

    `on_expr` may answer None for a shape's variable: then the shape is forgotten.
    """
    kind = type(info)
    if kind is TensorStructInfo:
        shape = info.shape
        if shape is None:
            return info
        if type(shape) is ShapeExpr:
            new = _map_values(shape.values, on_prim)
            return info if new is shape.values else TensorStructInfo.from_fields(
                ShapeExpr.from_fields(tuple(map(as_dim, new))), info.dtype, info.ndim,
                info.vdevice)
        new = on_expr(shape) if on_expr is not None else shape
        return info if new is shape else TensorStructInfo(new, info.dtype, info.vdevice, info.ndim)
    if kind is ShapeStructInfo:
        if info.values is None:
            return info
        new = _map_values(info.values, on_prim)
        return info if new is info.values else ShapeStructInfo(new)
    if kind is PrimStructInfo:
        if info.value is None:
            return info
        new = on_prim(info.value)
        return info if new is info.value else PrimStructInfo(info.dtype, new)
    if kind is TupleStructInfo:
        new = tuple(map_struct_info(f, on_prim, on_expr) for f in info.fields_)
        return info if all(a is b for a, b in zip(new, info.fields_)) else TupleStructInfo(new)
    if kind is FuncStructInfo:
        params = info.params if info.params is None else tuple(
            map_struct_info(p, on_prim, on_expr) for p in info.params)
        ret = map_struct_info(info.ret, on_prim, on_expr)
        if ret is info.ret and (params is None or all(
                a is b for a, b in zip(params, info.params))):
            return info
        return FuncStructInfo(params, ret, info.purity, info.derive)
    return info


def _map_values(values: tuple, on_prim: Callable[[E.PrimExpr], E.PrimExpr]) -> tuple:
    new = tuple(v if type(v) is E.IntImm else on_prim(v) for v in values)
    return values if all(a is b for a, b in zip(new, values)) else new


def substitute_struct_info(info: StructInfo, tir_map: Mapping[E.Var, E.PrimExpr],
                           var_map: Mapping[Expr, Expr] | None = None) -> StructInfo:
    """`info` with symbolic dimensions (and shape variables) replaced by maps."""
    if not tir_map and not var_map:
        return info
    analyzer = Analyzer()

    def prim(e: E.PrimExpr) -> E.PrimExpr:
        new = substitute(e, tir_map)
        return e if new is e else as_dim(analyzer.simplify(new))

    return map_struct_info(info, prim, lambda v: (var_map or {}).get(v, v))


def prims_of(info: StructInfo | None) -> Iterable[E.PrimExpr]:
    """The dimensions and scalar values that `info` mentions, in order."""
    kind = type(info)
    if kind is TensorStructInfo:
        if type(info.shape) is ShapeExpr:
            yield from info.shape.values
    elif kind is ShapeStructInfo:
        yield from info.values or ()
    elif kind is PrimStructInfo:
        if info.value is not None:
            yield info.value
    elif kind is TupleStructInfo:
        for item in info.fields_:
            yield from prims_of(item)
    elif kind is FuncStructInfo:
        for item in info.params or ():
            yield from prims_of(item)
        yield from prims_of(info.ret)


def tir_vars_in_struct_info(info: StructInfo | None) -> list[E.Var]:
    """The symbolic variables that `info` mentions, each once, in order of appearance."""
    found: dict[E.Var, None] = {}
    for item in prims_of(info):
        if type(item) is not E.IntImm:
            found.update(dict.fromkeys(free_vars(item)))
    return list(found)


def definable_tir_vars(info: StructInfo | None) -> list[E.Var]:
    """The symbolic variables that a value of this struct info gives a value to.

    A dimension that is a plain variable defines it; `n + 1` does not define n.
    """
    if type(info) is FuncStructInfo:
        return []
    if type(info) is TupleStructInfo:
        found: dict[E.Var, None] = {}
        for item in info.fields_:
            found.update(dict.fromkeys(definable_tir_vars(item)))
        return list(found)
    return list(dict.fromkeys(p for p in prims_of(info) if isinstance(p, E.Var)))


def erase_to_well_defined(info: StructInfo, keep_tir: Callable[[E.Var], bool] | None = None,
                          keep_var: Callable[[Expr], bool] | None = None) -> StructInfo:
    """`info` with every shape forgotten that mentions a variable that is not kept."""
    def known(values: Iterable[E.PrimExpr]) -> bool:
        return keep_tir is None or all(
            type(v) is E.IntImm or all(keep_tir(x) for x in free_vars(v)) for v in values)

    kind = type(info)
    if kind is TensorStructInfo:
        shape = info.shape
        if shape is None:
            return info
        fine = known(shape.values) if type(shape) is ShapeExpr else (
            keep_var is None or keep_var(shape))
        return info if fine else TensorStructInfo(None, info.dtype, info.vdevice, info.ndim)
    if kind is ShapeStructInfo:
        return info if known(info.values or ()) else ShapeStructInfo(ndim=info.ndim)
    if kind is PrimStructInfo:
        return info if info.value is None or known((info.value,)) else PrimStructInfo(info.dtype)
    if kind is TupleStructInfo:
        return TupleStructInfo([erase_to_well_defined(f, keep_tir, keep_var)
                                for f in info.fields_])
    return info


__all__ = [
    "BaseCheck", "BaseCheckResult", "Expr", "FuncStructInfo", "ObjectStructInfo", "PrimStructInfo",
    "ShapeExpr", "ShapeStructInfo", "StructInfo", "TensorStructInfo", "TupleStructInfo", "as_dim",
    "definable_tir_vars", "erase_to_well_defined", "is_base_of", "map_struct_info", "prims_of",
    "same_dim", "same_shape", "struct_info_base_check", "struct_info_lca",
    "substitute_struct_info", "surely_different", "tir_vars_in_struct_info",
]
