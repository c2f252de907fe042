"""One declaration makes an operator: a function of tensor expressions, and what is known of it.

    @operator("relax.flip", infer=like_first)
    def flip(data: Tensor, axis: Axis) -> Tensor:
        \"\"\"The elements in reverse order along `axis`.\"\"\"
        return topi.flip(data, axis)

The name is that of the operator in `relax.op` and in `R`. The parameters are what its constructor
takes: arguments of the call (`Tensor`, `Shape`, ...) and attributes (`Axis`, `Flag`, ...), by the
kinds below. The body is the tensor expression that computes it, and to which it is lowered.

What a call gives follows from the body too, run on tensors of the shapes of the arguments. A rule
`infer(call, *struct infos of the arguments)` takes its place where it is quicker, where ranks may
be unknown, where sizes must be compared at run time (`need_same` of `common.py`), or where a
refusal should say more.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Callable, ParamSpec, TypeVar, get_args

from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Constant, DataTypeImm, Expr, PrimValue, StringImm, as_expr
from ..struct_info import (
    OBJECT, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, as_dim,
    tir_vars_in_struct_info,
)
from .common import (
    as_tuple_expr, axis_of, dtype_attr, ints, misfit, need_bits, need_float, need_integer,
    need_number, number, operand, plain_int, shape_arg, shape_values, tensor_info, tensor_list,
    whole,
)
from .later import te
from .registry import OPERATORS, make_call, register_op

# ------------------------------------------------------------------------------- parameters


def immediate(value: Any) -> Any:
    """A constant of no dimensions as a number in the program; anything else as it is."""
    if isinstance(value, Constant) and not value.data.shape:
        return O.const(value.data.numpy().item(), str(value.data.dtype))
    return value


def prim(value: Any) -> Any:
    """A Python number where a value is a known scalar; else an expression of the host program."""
    if isinstance(value, Constant) and not value.data.shape:
        return value.data.numpy().item()
    if isinstance(value, PrimValue):
        value = value.value
    return value.value if isinstance(value, (E.IntImm, E.FloatImm)) else value


def prim_arg(value: Any) -> Expr:
    """A scalar of the host program as an argument; a Python float is float32."""
    if isinstance(value, Expr):
        return value
    return PrimValue(E.FloatImm("float32", value) if isinstance(value, float) else value)


def _of_dtype(need: Callable[..., None]) -> Callable[..., TensorStructInfo]:
    def check(call: Call, index: int, name: str) -> TensorStructInfo:
        info = tensor_info(call, index, name)
        need(call, info, name)
        return info

    return check


def any_info(call: Call, index: int, name: str) -> Any:
    """What is known of an argument that may be anything."""
    return call.args[index].struct_info_


def _as(literal: type) -> Callable[[Any], Expr]:
    return lambda value: value if isinstance(value, Expr) else literal(value)


class Kind:
    """What a parameter stands for: an argument of the call, or an attribute."""

    __slots__ = ("convert", "check", "given")

    def __init__(self, convert: Callable[..., Any] | None, check: Callable[..., Any] | None = None,
                 given: Callable[[Any], Any] | None = None) -> None:
        #: what the call holds, of what the constructor is given; None for the same
        self.convert = convert
        #: `check(call, index, name)`: what is known of an argument; None for an attribute
        self.check = check
        #: what the body gets of it; None for the same
        self.given = given


# arguments
Tensor = Annotated[Any, Kind(as_expr, tensor_info)]
FloatTensor = Annotated[Any, Kind(as_expr, _of_dtype(need_float))]
IntegerTensor = Annotated[Any, Kind(as_expr, _of_dtype(need_integer))]
NumberTensor = Annotated[Any, Kind(as_expr, _of_dtype(need_number))]  # not of conditions
BitsTensor = Annotated[Any, Kind(as_expr, _of_dtype(need_bits))]  # whole numbers or conditions
Tensors = Annotated[Any, Kind(as_tuple_expr, lambda call, index, name: tensor_list(call, index))]
Shape = Annotated[Any, Kind(shape_arg, lambda call, index, name: shape_values(call, index))]
_OPERAND = Kind(None, any_info, immediate)
Operand = Annotated[Any, _OPERAND]  # a tensor or a number; there are two, of one dtype
Scalar = Annotated[Any, Kind(prim_arg, any_info, prim)]  # of the host program
String = Annotated[Any, Kind(_as(StringImm), any_info)]
DataType = Annotated[Any, Kind(_as(DataTypeImm), any_info)]
Value = Annotated[Any, Kind(as_expr, any_info)]  # of any kind
# attributes
_WHOLE, _AXIS = Kind(whole), Kind(whole)
Whole = Annotated[int, _WHOLE]
Axis = Annotated[int, _AXIS]  # of the first argument
Ints = Annotated[Any, Kind(ints)]  # one or several, kept as a tuple
Size = Annotated[Any, Kind(plain_int)]  # a whole number, or an expression of sizes
Float = Annotated[float, Kind(lambda value: float(number(value)))]
Flag = Annotated[bool, Kind(bool)]
Text = Annotated[str, Kind(str)]
Dtype = Annotated[Any, Kind(  # the body gets None where none is given
    dtype_attr, given=lambda value: None if value in ("", "void") else value)]
Plain = Annotated[Any, Kind(None)]


def _kind(annotation: Any, names: dict[str, Any]) -> tuple[Kind, bool]:
    """The kind that an annotation names, and whether None may be given for it."""
    if isinstance(annotation, str):
        name = annotation.removesuffix(" | None")
        return names[name].__metadata__[0], name != annotation
    optional = type(None) in get_args(annotation)
    return (get_args(annotation)[0] if optional else annotation).__metadata__[0], optional


class Parameters:
    """What the function of a declaration takes, read when the operator is first called."""

    __slots__ = ("fn", "attrs_of", "names", "kinds", "rows", "defaults", "args", "axes", "pair")

    def __init__(self, fn: Callable[..., Any], attrs_of: Callable[..., dict] | None) -> None:
        self.fn, self.attrs_of = fn, attrs_of
        self.names: tuple[str, ...] = ()

    def read(self) -> "Parameters":
        """The same, read."""
        if self.names:
            return self
        fn, self.kinds, self.rows, self.args, self.axes = self.fn, {}, [], [], []
        names = fn.__code__.co_varnames[:fn.__code__.co_argcount]
        defaults = fn.__defaults__ or ()
        self.defaults = dict(zip(names[len(names) - len(defaults):], defaults))
        for name in names:
            kind, optional = _kind(fn.__annotations__[name], fn.__globals__)
            self.kinds[name] = kind
            convert = partial(whole, name) if kind in (_WHOLE, _AXIS) else kind.convert
            self.rows.append((name, convert, kind.check is None, optional))
            if kind.check is not None:
                self.args.append((name, kind.check))
            if kind is _AXIS:
                self.axes.append(name)
        pair = [k for k, (name, _) in enumerate(self.args)
                if self.kinds[name] is _OPERAND]
        self.pair = pair if len(pair) == 2 else None
        self.names = names
        return self

    def bound(self, name: str, given: tuple, named: dict[str, Any]) -> tuple[tuple, Any]:
        """What the constructor was called with, as arguments and attributes of the call."""
        if named or len(given) != len(self.names):
            given = self._filled(given, named)
        args: list[Any] = []
        attrs: dict[str, Any] = {}
        for (parameter, convert, is_attribute, optional), value in zip(self.rows, given):
            if optional and value is None:
                if is_attribute:
                    attrs[parameter] = None
                continue
            if convert is not None:
                value = convert(value)
            if is_attribute:
                attrs[parameter] = value
            else:
                args.append(value)
        if self.pair is not None:
            i, j = self.pair
            args[i], args[j] = operand(args[i], args[j]), operand(args[j], args[i])
        if self.attrs_of is not None:
            attrs = self.attrs_of(name.removeprefix("relax."), attrs)
        return tuple(args), attrs or None

    def _filled(self, given: tuple, named: dict[str, Any]) -> list[Any]:
        """A value for each parameter; TypeError as Python's own where they do not fit."""
        values = {**self.defaults, **dict(zip(self.names, given)), **named}
        if len(given) > len(self.names) or len(values) != len(self.names) or any(
                n in named for n in self.names[:len(given)]):
            self.fn(*given, **named)  # does not run: Python says what does not fit
            raise TypeError(f"the arguments do not fit {self.names}")
        return [values[n] for n in self.names]

    def checked(self, call: Call) -> list[Any]:
        """What is known of each argument, which fits its kind."""
        self.read()
        infos = [check(call, k, name)
                 for k, (name, check) in enumerate(self.args[:len(call.args)])]
        for name in self.axes:
            axis = call.attrs[name]
            if axis is not None and infos[0].ndim != -1:
                axis_of(call, axis, infos[0].ndim, name)
        return infos

    def compute(self, call: Call, values: Any) -> Any:
        """The body on tensors for the arguments, with the attributes of the call."""
        known = dict(zip((name for name, _ in self.args), values))
        attrs = call.attrs or {}
        for name, kind in self.kinds.items():
            if kind.check is None:
                value = attrs[name]
                known[name] = value if kind.given is None else kind.given(value)
        return self.fn(**known)

    def given(self, call: Call) -> list[Any]:
        """The arguments of a call as `call_te` takes them."""
        self.read()
        out = [arg if (give := self.kinds[name].given) is None else give(arg)
               for (name, _), arg in zip(self.args, call.args)]
        # a kernel reads at least one tensor
        return out if any(isinstance(a, Expr) for a in out) else list(call.args)


# ------------------------------------------------------------------------------- declarations

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
Rule = Callable[..., StructInfo]
#: the lowering of what the stages after LegalizeOps lower
LATER = object()
#: the constructors by the names of their operators, and those that are made of other operators
CONSTRUCTORS: dict[str, Callable[..., Any]] = {}
#: what is told of each further constructor: `listener(name, constructor)`
LISTENERS: list[Callable[[str, Callable[..., Any]], None]] = []


def constructor(name: str, infer: Callable[[Call], StructInfo] | None = None,
                **facts: Any) -> Callable[[F], F]:
    """Decorator: a constructor that is written out, and the row of its operator.

    `infer(call)` and the facts are those of the row; without them it is made of other operators.
    """
    def declare(build: F) -> F:
        if infer is not None:
            _row(name, infer, **facts)
        CONSTRUCTORS[name] = build
        for listener in LISTENERS:
            listener(name, build)
        return build

    return declare


def operator(name: str, infer: Rule | None = None, *, legalize: Any = None,
             attrs: Callable[[str, dict], dict] | None = None, then: Any = None,
             hint: str = "", pattern: int | None = None, **facts: Any
             ) -> Callable[[Callable[P, Any]], Callable[P, Expr]]:
    """Decorator: the function that computes an operator becomes its constructor.

    ========== ====================================================================================
    infer      a rule for what a call gives, see above
    legalize   `legalize(builder, call) -> Expr`: the lowering, in place of the body; or LATER
    attrs      `attrs(name, attributes)`: the attributes of the call, of those given
    then       `then(builder, call, result)`: what is done with the result of the body
    hint       the name of the TensorIR function, if not the operator's
    pattern    the OpPatternKind of the TensorIR function, if not what is found in its loops
    pure       whether a call has no effects (True)
    layout     how it takes other layouts, see `transform/convert_layout.py`
    precision  "always" or "follow", see `transform/to_mixed_precision.py`
    any_shape  whether it is legalised where the shape of its result is not known (False)
    ========== ====================================================================================
    """
    def declare(fn: Callable[P, Any]) -> Callable[P, Expr]:
        parameters = Parameters(fn, attrs)
        short = name.rpartition(".")[2]
        follow = infer or partial(_of_body, parameters)

        def rule(call: Call) -> StructInfo:
            return follow(call, *parameters.checked(call))

        def build(*given: P.args, **named: P.kwargs) -> Expr:
            return make_call(name, *parameters.read().bound(name, given, named))

        _row(name, rule, legalize or _lowering(parameters, hint or short, then, pattern), **facts)
        for function in (fn, build):
            function.__name__ = function.__qualname__ = short
        build.__doc__, build.__module__ = fn.__doc__, fn.__module__
        build.__wrapped__ = fn  # type: ignore[attr-defined]  # the signature
        return constructor(name)(build)

    return declare


def _row(name: str, infer: Callable[[Call], StructInfo], legalize: Any = None, pure: bool = True,
         layout: str | None = None, precision: str | None = None, any_shape: bool = False) -> None:
    register_op(name, infer, pure)
    row = OPERATORS[name]
    row.legalize = None if legalize is LATER else legalize
    row.layout, row.precision = layout, precision
    row.any_shape = any_shape


def _lowering(parameters: Parameters, hint: str, then: Any, pattern: int | None) -> Any:
    """The row of an operator whose body computes it."""
    words: dict[str, Any] = {"primfunc_name_hint": hint}
    if pattern is not None:
        words["primfunc_attrs"] = {"op_pattern": int(pattern)}

    def legalize(bb: Any, call: Call) -> Expr:
        out = bb.call_te(lambda *values: parameters.compute(call, values),
                         *parameters.given(call), **words)
        return out if then is None else then(bb, call, out)

    return legalize


# ------------------------------------------------------------------------------- rules


def like_first(call: Call, first: TensorStructInfo, *rest: Any) -> StructInfo:
    """A tensor as the first argument is."""
    return first


def _of_body(parameters: Parameters, call: Call, *infos: Any) -> StructInfo:
    """What the body gives for tensors like the arguments.

    Dimensions that are not known are variables of which nothing is known; a result that has them
    in its shape has no known shape.
    """
    made: set[E.Var] = set()

    def stand_in(info: Any, arg: Any = None) -> Any:
        if isinstance(info, TensorStructInfo):
            dims = info.dims
            if dims is None:
                dims = [E.Var("unknown", "int64") for _ in range(info.ndim)]
                made.update(dims)
            return te.placeholder(dims, info.dtype, getattr(arg, "name_hint", "x"))
        if isinstance(info, tuple):
            return list(map(stand_in, info))
        return list(info.values) if isinstance(info, ShapeStructInfo) else prim(arg)

    if any(map(_lacks, infos)):
        return TensorStructInfo(None, "") if parameters.fn.__annotations__.get(
            "return") in ("Tensor", Tensor) else OBJECT
    try:
        out = parameters.compute(call, [stand_in(i, a) for i, a in zip(infos, call.args)])
    except (ValueError, TypeError) as error:
        raise misfit(call, str(error)) from None

    def of(tensor: Any) -> TensorStructInfo:
        info = TensorStructInfo(list(map(as_dim, tensor.shape)), tensor.dtype)
        unknown = not made.isdisjoint(tir_vars_in_struct_info(info))
        return TensorStructInfo(None, info.dtype, ndim=info.ndim) if unknown else info

    return TupleStructInfo(list(map(of, out))) if isinstance(out, (list, tuple)) else of(out)


def _lacks(info: Any) -> bool:
    """Whether so little is known of an argument that the body cannot be run."""
    if isinstance(info, TensorStructInfo):
        return info.ndim == -1 or not info.dtype
    if isinstance(info, tuple):
        return any(map(_lacks, info))
    return isinstance(info, ShapeStructInfo) and info.values is None


__all__ = [
    "Axis", "BitsTensor", "CONSTRUCTORS", "DataType", "Dtype", "Flag", "Float", "FloatTensor",
    "IntegerTensor", "Ints", "Kind", "LATER", "LISTENERS", "NumberTensor", "Operand", "Plain",
    "Rule", "Scalar", "Shape", "Size", "String", "Tensor", "Tensors", "Text", "Value", "Whole",
    "any_info", "constructor", "immediate", "like_first", "operator", "prim", "prim_arg",
]
