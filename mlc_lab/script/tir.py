"""The names of TensorIR's script: `from mlc_lab.script import tir as T`.

`T.prim_func` turns a Python function into a PrimFunc by parsing its source. Expression names
(`T.float32`, `T.exp`, `T.max`, ...) also work in plain Python. Names that only make sense inside a
script (`T.block`, `T.grid`, `T.reads`, ...) are `Form`s: the parser knows what they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..above import above
from ..ir import dtype as dt
from ..tir import expr as E
from ..tir import op as O
from ..tir.buffer import Buffer as _Buffer
from ..tir.buffer import decl_buffer as _decl_buffer
from ..tir.function import IndexMap
from ..tir.stmt import BufferRegion
from .intrinsics import CALL_NAMES, DTYPE_FIRST, DTYPE_LAST
from .intrinsics import PRIM_FUNC_OPTIONS as _OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..tir.expr import ExprLike


class Form:
    """A word of the script language whose meaning is in the parser."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"T.{self.name}"

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise TypeError(f"T.{self.name} only has a meaning inside a function under @T.prim_func, "
                        "whose source is parsed; it cannot be called from plain Python")


class DtypeName:
    """T.float32 and its like: an annotation, a constant `T.float32(0)`, a new var `T.int32()`."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"T.{self.dtype}"

    def __call__(self, expr: ExprLike | str | None = None, is_size_var: bool = False) -> Any:
        """`expr` as this type; without one, a new variable of it."""
        if expr is None:
            return (E.SizeVar if is_size_var else E.Var)("", self.dtype)
        if isinstance(expr, str):
            expr = float(expr)
        return O.const(as_expr(expr), self.dtype)


class HandleName(DtypeName):
    """T.handle: the type of pointers. T.handle("float32", "shared") is a new typed pointer."""

    def __call__(self, dtype: object = None, storage_scope: str = "global", *,
                 is_size_var: bool = False) -> Any:
        """A new pointer variable; an expression is cast."""
        if dtype is None:
            return E.Var("", "handle")
        if isinstance(dtype, (E.PrimExpr, int)):
            return O.const(dtype, "handle") if isinstance(dtype, int) else O.cast(dtype, "handle")
        if isinstance(dtype, DtypeName):
            dtype = dtype.dtype
        return E.Var("", E.PointerType(E.PrimType(dt.canonical(dtype)), storage_scope))


class BufferName(Form):
    """T.Buffer(shape, dtype): the annotation of a parameter, or a buffer over existing data."""

    def __call__(self, shape: Any, dtype: Any = "float32",
                 data: Any = None, strides: Any = None,
                 elem_offset: Any = None, scope: str = "global", align: int = -1,
                 offset_factor: int = 0, buffer_type: str = "",
                 axis_separators: Any = None, **_: object) -> _Buffer:
        """A buffer of `shape`; dimensions given by name become new variables."""
        shape = shape if isinstance(shape, (tuple, list)) else (shape,)
        shape = [E.Var(s, "int32") if isinstance(s, str) else s for s in shape]
        return _decl_buffer(shape, dtype_of(dtype), "buffer", data, _stride_vars(strides, shape),
                            elem_offset, scope, align, offset_factor, buffer_type, axis_separators)

    def __getitem__(self, key: Any) -> _Buffer:
        """T.Buffer[(128,), "float32"], the form before TVM 0.11."""
        return self(*self.subscript(key))

    @staticmethod
    def subscript(key: Any) -> tuple:
        """The arguments that a subscript stands for."""
        typed = isinstance(key, tuple) and key and isinstance(key[-1], (str, DtypeName))
        return key if typed else (key,)


def _stride_vars(strides: Sequence[Any] | None, shape: Any) -> Any:
    if not strides:
        return None
    first = shape[0] if shape else 0
    dtype = first.dtype if isinstance(first, E.PrimExpr) else "int32"
    made: dict[str, E.Var] = {}
    return [made.setdefault(s, E.Var(s, dtype)) if isinstance(s, str) else s for s in strides]


def dtype_of(value: Any) -> str:
    """A dtype given as string, as T.float32 or as a numpy dtype."""
    if isinstance(value, DtypeName):
        return value.dtype
    if isinstance(value, str):
        return dt.canonical(value)
    if isinstance(value, E.StringImm):
        return dt.canonical(value.value)
    name = getattr(value, "__name__", None) or str(value)
    return dt.canonical(name)


def as_expr(value: Any) -> Any:
    """A value as an operand: regions with constant extents become vector loads."""
    if type(value) is BufferRegion:
        indices = []
        for axis, r in enumerate(value.region):
            lanes = O.as_int(r.extent)
            if lanes is None:
                raise ValueError("a slice of symbolic length is no value: it can only stand in "
                                 "T.reads, T.writes or T.match_buffer")
            if lanes > 1 and axis < len(value.region) - 1:
                raise ValueError("only the last index of a value may be a range: elements that "
                                 "lie side by side are one vector")
            indices.append(r.min if lanes == 1 else E.Ramp(r.min, E.IntImm(r.min.dtype, 1), lanes))
        return E.BufferLoad(value.buffer, indices)
    if type(value) is _Buffer:
        if not value.shape:
            return E.BufferLoad(value, ())
        raise TypeError(f"buffer {value.name} is used as a value: read an element, "
                        f"{value.name}[{', '.join('ijklmn'[:len(value.shape)])}]")
    if isinstance(value, E.IterVar):
        return value.var
    return value


# ------------------------------------------------------------------------------- expressions


def _raw(cls: type) -> Callable:
    """The node itself, nothing folded: how the printer writes what folding would change."""

    def build(a: ExprLike, b: ExprLike) -> Any:
        a, b = as_expr(a), as_expr(b)
        if not isinstance(a, E.PrimExpr):
            a = O.convert(a, b if isinstance(b, E.PrimExpr) else None)
        if not isinstance(b, E.PrimExpr):
            b = O.convert(b, a)
        return cls(a, b)

    build.__name__ = cls.__name__
    build.__doc__ = f"The node {cls.__name__}(a, b), without folding."
    return build


def _value(v: Any, like: E.PrimExpr | None = None) -> Any:
    return O.convert(as_expr(v), like)


def Not(a: ExprLike) -> Any:
    """The node Not(a), without folding."""
    return E.Not(_value(a))


def Cast(dtype: Any, value: Any) -> Any:
    """The node Cast(dtype, value), without folding."""
    return E.Cast(dtype_of(dtype), _value(value))


def cast(value: Any, dtype: Any) -> Any:
    """`value` as `dtype`; constants are converted."""
    return O.cast(_value(value), dtype_of(dtype))


def Select(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Any:
    """true_value where condition holds, else false_value; both sides may be evaluated."""
    a, b = as_expr(true_value), as_expr(false_value)
    a, b = _value(a, b if isinstance(b, E.PrimExpr) else None), _value(
        b, a if isinstance(a, E.PrimExpr) else None)
    return E.Select(_value(condition), *O.match_types(a, b))


def Ramp(base: Any, stride: Any, lanes: Any) -> Any:
    """The vector base, base + stride, ... of `lanes` elements."""
    base = _value(base)
    return E.Ramp(base, _value(stride, base), int(lanes))


def Broadcast(value: Any, lanes: Any) -> Any:
    """The vector of `lanes` times `value`."""
    return E.Broadcast(_value(value), int(lanes))


def Shuffle(vectors: Sequence[ExprLike], indices: Sequence[ExprLike]) -> Any:
    """Lanes picked by constant `indices` out of the concatenation of `vectors`."""
    return E.Shuffle(tuple(map(_value, vectors)), tuple(map(_value, indices)))


ramp, broadcast = Ramp, Broadcast


def _folding(fn: Callable) -> Callable:
    def build(*args: Any, dtype: object = None, **options: Any) -> Any:
        # older scripts write the result type: T.exp(x, dtype="float32"); it follows from the rest
        return fn(*[as_expr(a) for a in args], **options)

    build.__name__ = fn.__name__
    build.__doc__ = fn.__doc__
    return build


def _two(fn: Callable, plain: Callable) -> Callable:
    def build(a: ExprLike, b: ExprLike, *rest: ExprLike) -> Any:
        out = as_expr(a)
        for other in (b, *rest):
            other = as_expr(other)
            if isinstance(out, E.PrimExpr) or isinstance(other, E.PrimExpr):
                out = fn(out, other)
            else:
                out = O.convert(plain(out, other))
        return out

    build.__name__ = plain.__name__
    build.__doc__ = fn.__doc__
    return build


def _given(op: str, short: str) -> Callable:
    """The function of an intrinsic whose result type its row does not fix."""
    def build(*args: object, dtype: Any = None, annotations: Mapping[str, Any] | None = None
              ) -> Any:
        values = list(args)
        if dtype is None and values and op in DTYPE_FIRST | DTYPE_LAST:
            dtype = values.pop(0 if op in DTYPE_FIRST else -1)
        return O.given.call_given(
            op, [_value(a) if not isinstance(a, _Buffer) else a.data for a in values],
            None if dtype is None else dtype_of(dtype), annotations)

    build.__name__ = short
    build.__doc__ = f"{O.INTRINSIC_OF[op].doc} (the intrinsic {op})"
    return build


def call_intrin(dtype: Any, func_name: str | E.PrimExpr, *args: Any,
                annotations: Any = None) -> Any:
    """A call of an intrinsic by name with the result type given."""
    name = func_name.value if isinstance(func_name, E.StringImm) else func_name
    if not isinstance(name, str):
        raise TypeError('T.call_intrin takes a dtype and the name of an intrinsic, such as '
                        '"tir.exp"')
    return E.Call(dtype_of(dtype), name, [_value(a) for a in args], annotations)


def address_of(load: E.PrimExpr | _Buffer, *indices: ExprLike, dtype: object = None) -> Any:
    """The pointer to an element, T.address_of(A[i, j]); `dtype` may say that it is a handle."""
    if isinstance(load, _Buffer):
        load = E.BufferLoad(load, indices or [0] * len(load.shape))
    return E.Call("handle", "tir.address_of", (as_expr(load),))


def call_packed(*args: object) -> Any:
    """A call of a registered function by name."""
    return E.Call("int32", "tir.tvm_call_packed", [
        _value(a) if not isinstance(a, _Buffer) else a.data for a in args])


tvm_call_packed = call_packed


def type_annotation(dtype: Any) -> Any:
    """A dtype as an argument of an intrinsic."""
    return E.Call(dtype_of(dtype), "tir.type_annotation", ())


def let(var: E.Var, value: ExprLike, body: ExprLike) -> Any:
    """body with var standing for value."""
    return O.let(var, as_expr(value), as_expr(body))


def comm_reducer(combiner: Callable, identity: Any) -> Any:
    """A commutative reducer: T.comm_reducer(lambda x, y: x + y, [T.float32(0)])"""
    import inspect

    identity = tuple(map(_value, identity))
    names = list(inspect.signature(combiner).parameters)
    count = len(identity)
    variables = [E.Var(n, identity[i % count].dtype) for i, n in enumerate(names)]
    result = combiner(*variables)
    result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return E.CommReducer(tuple(variables[:count]), tuple(variables[count:]),
                         tuple(map(_value, result)), identity)


_ITER_TYPES = {"DataPar": 0, "ThreadIndex": 1, "CommReduce": 2, "Ordered": 3, "DimInfo": 4,
               "Opaque": 4, "Unrolled": 5, "Vectorized": 6, "Parallelized": 7, "Tensorized": 8}


def iter_var(var: E.Var | str, dom: E.Range | None, iter_type: str, thread_tag: str = "") -> Any:
    """An iterator: T.iter_var(i, I.Range(0, 8), "DataPar", "")"""
    return E.IterVar(dom, var, _ITER_TYPES[iter_type], thread_tag)


def reduce(combiner: E.CommReducer, source: Sequence[ExprLike], init: Sequence[ExprLike],
           axis: Sequence[E.IterVar], condition: ExprLike = True, value_index: int = 0) -> Any:
    """A reduction expression."""
    return E.Reduce(combiner, tuple(map(_value, source)), tuple(axis), _value(condition),
                    value_index, tuple(map(_value, init)))


def index_map(mapping: Callable, *, inverse_index_map: Callable[..., Any] | None = None,
              index_dtype: str = "int32") -> IndexMap:
    """A map of indices: T.index_map(lambda i, j: (i // 4, j, i % 4))"""
    return IndexMap.from_func(mapping, inverse_index_map=inverse_index_map,
                              index_dtype=index_dtype)


def target(config: object, host: object = None) -> Any:
    """A target in a function's attributes: T.target("llvm"), T.target({"kind": "cuda"})"""
    return above("Target")(config, host)


def Range(begin: ExprLike, end: ExprLike | None = None) -> Any:
    """The integers begin .. end - 1."""
    if end is None:
        return E.Range(begin)
    from .regions import extent_between

    begin = E.const_index(begin)
    return E.Range.from_min_extent(begin, extent_between(begin, E.const_index(end)))


def meta_var(value: ExprLike) -> Any:
    """A value that a script's assignment binds as it is, without a let."""
    return MetaVar(value)


class MetaVar:
    """What T.meta_var returns."""

    def __init__(self, value: Any) -> None:
        self.value = value


def var(dtype: Any, name: str = "") -> Any:
    """A new variable."""
    return E.Var(name, dtype_of(dtype))


def Var(name: str, dtype: Any = "int32") -> Any:
    """A new variable, its name first, as `tir.Var` makes it."""
    return E.Var(name, dtype_of(dtype))


# ------------------------------------------------------------------------------- the table

#: words whose meaning is in the parser: the functions of `forms/`
FORMS = (
    "func_name", "func_attr", "func_ret", "match_buffer", "alloc_buffer", "block", "init", "where",
    "reads", "writes", "block_attr", "grid", "serial", "parallel", "vectorized", "unroll",
    "thread_binding", "Assert", "LetStmt", "Let", "allocate", "allocate_const", "decl_buffer",
    "attr", "While", "If", "Then", "Else", "launch_thread", "env_thread", "evaluate",
    "buffer_store", "realize", "preflattened_buffer", "buffer_decl", "BufferStore",
)


class _Axis:
    """T.axis.spatial and its like."""


def _fill() -> None:
    scope = globals()
    for cls in (E.Add, E.Sub, E.Mul, E.Div, E.Mod, E.FloorDiv, E.FloorMod, E.Min, E.Max, E.EQ,
                E.NE, E.LT, E.LE, E.GT, E.GE, E.And, E.Or):
        scope[cls.__name__] = _raw(cls)
    for name in ("floordiv", "floormod", "truncdiv", "truncmod", "ceildiv", "div", "indexdiv",
                 "indexmod", "abs", "pow", "round", "if_then_else", "likely", "min_value",
                 "max_value", "infinity", "ret", "all", "any"):
        if hasattr(O, name):
            scope[name] = _folding(getattr(O, name))
    scope["power"] = scope["pow"]
    scope["min"], scope["max"] = _two(O.min_value_of, min), _two(O.max_value_of, max)
    for row in O.INTRINSICS:
        op = f"tir.{row.name}"
        short = CALL_NAMES.get(op, row.name)
        for name in {short, row.name}:
            if name in scope:
                continue
            scope[name] = _given(op, name) if row.result == "given" or row.arity is None or (
                row.arity == 0) or not hasattr(O, row.name) else _folding(getattr(O, row.name))
    dtypes = ["bool", "void", "float8_e4m3fn", "float8_e5m2", "bfloat16"]
    for base in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float16", "float32", "float64", "bfloat16", "int4", "uint4", "bool"):
        dtypes.append(base)
        dtypes += [f"{base}x{lanes}" for lanes in (2, 4, 8, 16, 32, 64)]
    for name in dtypes:
        scope[name] = DtypeName(name)
    scope["boolean"] = scope["bool"]
    scope["handle"] = HandleName("handle")
    scope["Buffer"] = BufferName("Buffer")
    for name in FORMS:
        scope[name] = Form(name)
    for name, other in (("spatial", "S"), ("reduce", "R"), ("scan", ""), ("opaque", ""),
                        ("remap", "")):
        form = Form(f"axis.{name}")
        setattr(_Axis, name, form)
        if other:
            setattr(_Axis, other, form)
    scope["axis"] = _Axis


def _options_of(word: str, func: object, options: Mapping[str, object], known: Sequence[str]
                ) -> None:
    """TypeError for an option that a decorator does not have, ValueError for one without a name."""
    for name in options:
        if name not in known:
            raise TypeError(f"T.{word} has no option {name!r}: there are {', '.join(known)}")
    if func is not None and not callable(func):
        raise ValueError(f"T.{word} takes its options by name, got {func!r}")


def prim_func(func: Callable[..., Any] | None = None, private: bool = False,
              check_well_formed: bool = True, **options: object) -> Any:
    """Decorator: a Python function as a PrimFunc. `private` leaves out `global_symbol`.

    The function's source is parsed and never executed; the program is checked to be well formed
    unless `check_well_formed` is False. Inside a class (under @I.ir_module) the
    class's decorator does the parsing. Raises DiagnosticError at the place of a mistake.
    """
    entry = above("decorators of scripts")
    _options_of("prim_func", func, options, _OPTIONS)
    if func is None:
        return lambda f: entry.decorate_function(f, private, 2, check_well_formed)
    return entry.decorate_function(func, private, 2, check_well_formed)


def macro(func: Callable[..., Any] | None = None, *, hygienic: bool = True) -> Any:
    """Decorator: a function whose body is inlined where a script calls it.

    A hygienic macro sees the names of the place where it is defined, another one those of the
    place where it is called.
    """
    entry = above("decorators of scripts")
    _options_of("macro", func, {}, ())
    if func is None:
        return lambda f: entry.decorate_macro(f, hygienic, 2)
    return entry.decorate_macro(func, hygienic, 2)


_fill()
prim_func.script_kind = "tir"
macro.script_kind = "macro"

#: T.exp, T.float32, ...: what a script may use after the dot
NAMES = frozenset(name for name in globals() if not name.startswith("_")) - {
    "annotations", "dt", "E", "O", "Any", "Callable", "Form", "DtypeName", "HandleName",
    "BufferName", "CALL_NAMES", "DTYPE_FIRST", "DTYPE_LAST", "FORMS", "NAMES",
    "dtype_of", "as_expr", "above", "BufferRegion", "MetaVar"}


def __getattr__(name: str) -> Any:
    """A name of another version, a dtype of unusual lanes, or an error that helps."""
    if not name.startswith("_"):
        known = above("names of T").get(name)
        if known in NAMES:
            return globals()[known]
        try:
            return DtypeName(dt.canonical(name))
        except ValueError:
            import difflib

            close = difflib.get_close_matches(name, NAMES, 3)
            hint = f"; did you mean {' or '.join('T.' + c for c in close)}?" if close else ""
            raise AttributeError(f"T has no name {name!r}{hint}") from None
    raise AttributeError(name)
