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
from typing import TYPE_CHECKING, Any, Callable, ParamSpec, Sequence, TypeVar

from ...above import above
from ...tir import expr as E
from ...tir import op as O
from ...tir.op.arithmetic import exact_sizes
from ..expr import Call, Constant, DataTypeImm, Expr, PrimValue, StringImm, as_expr
from ..struct_info import (
    OBJECT, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, as_dim,
    tir_vars_in_struct_info,
)
from .common import (
    as_tuple_expr, axis_of, dtype_attr, misfit, need_bits, need_float, need_integer,
    need_number, operand, plain_int, real, shape_arg, shape_values, tensor_info, tensor_list,
    whole, whole_numbers,
)
from .later import te
from .registry import OPERATORS, make_call, register_op

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
Rule = Callable[..., StructInfo]

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


def shape_info(call: Call, index: int, name: str) -> ShapeStructInfo:
    """What is known of an argument that is a shape."""
    return shape_values(call, index)


def as_dtype(value: Any) -> Expr:
    """A data type as an argument."""
    return value if isinstance(value, Expr) else DataTypeImm(value)


def _as(literal: type) -> Callable[[Any], Expr]:
    return lambda value: value if isinstance(value, Expr) else literal(value)


class Kind:
    """What a parameter stands for: an argument of the call, or an attribute.

    One of your own is named in annotations as `Annotated[Any, Kind(...)]`.
    """

    __slots__ = ("convert", "check", "given", "base")

    def __init__(self, convert: Callable[..., Any] | None, check: Callable[..., Any] | None = None,
                 given: Callable[[Any], Any] | None = None) -> None:
        #: what the call holds, of what the constructor is given; None for the same
        self.convert = convert
        #: `check(call, index, name)`: what is known of an argument; None for an attribute
        self.check = check
        #: what the body gets of it; None for the same
        self.given = given
        #: the kind that this one is, where None may be given too
        self.base = self

    def __or__(self, none: None) -> "Kind":
        kind = Kind(self.convert, self.check, self.given)
        kind.base = self
        return kind


if TYPE_CHECKING:
    from builtins import bool as Flag
    from builtins import float as Float
    from builtins import int as Axis
    from builtins import int as Whole
    from builtins import str as Text
    from typing import Any as BitsTensor
    from typing import Any as DataType
    from typing import Any as Dtype
    from typing import Any as FloatTensor
    from typing import Any as IntegerTensor
    from typing import Any as Ints
    from typing import Any as NumberTensor
    from typing import Any as Operand
    from typing import Any as Plain
    from typing import Any as Scalar
    from typing import Any as Shape
    from typing import Any as Size
    from typing import Any as String
    from typing import Any as Tensor
    from typing import Any as Tensors
    from typing import Any as Value
else:
    # arguments
    Tensor = Kind(as_expr, tensor_info)
    FloatTensor = Kind(as_expr, _of_dtype(need_float))
    IntegerTensor = Kind(as_expr, _of_dtype(need_integer))
    NumberTensor = Kind(as_expr, _of_dtype(need_number))  # not of conditions
    BitsTensor = Kind(as_expr, _of_dtype(need_bits))  # whole numbers or conditions
    Tensors = Kind(as_tuple_expr, lambda call, index, name: tensor_list(call, index))
    Shape = Kind(shape_arg, lambda call, index, name: shape_values(call, index))
    Operand = Kind(None, any_info, immediate)  # a tensor or a number; there are two, of one dtype
    Scalar = Kind(prim_arg, any_info, prim)  # of the host program
    String, DataType = Kind(_as(StringImm), any_info), Kind(_as(DataTypeImm), any_info)
    Value = Kind(as_expr, any_info)  # of any kind
    # attributes
    Whole = Kind(whole)
    Axis = Kind(whole)  # of the first argument
    Ints = Kind(whole_numbers)  # one or several, kept as a tuple
    Size = Kind(plain_int)  # a whole number, or an expression of sizes
    Float = Kind(real)
    Flag, Text, Plain = Kind(bool), Kind(str), Kind(None)
    Dtype = Kind(dtype_attr, given=lambda value: None if value in ("", "void") else value)


def _kind(annotation: Any, names: dict[str, Any]) -> tuple[Kind, bool]:
    """The kind that an annotation means, and whether None may be given for it."""
    optional = False
    if isinstance(annotation, str):
        name = annotation.removesuffix(" | None")
        annotation, optional = names[name], name != annotation
    kind = annotation if isinstance(annotation, Kind) else annotation.__metadata__[0]
    return kind.base, optional or kind.base is not kind


#: conversions that are given the name of the parameter first, for their refusals
_NAMED = (whole, real, whole_numbers)


class Declaration:
    """An operator that was declared: what its function takes, and what follows from it.

    The parameters are read when the operator is first called.
    """

    __slots__ = ("fn", "rule", "then", "hint", "pattern", "kinds", "args", "axes", "bound",
                 "attrs")

    def __init__(self, fn: Callable[..., Any], rule: Rule | None, then: Any, hint: str,
                 pattern: int | None) -> None:
        self.fn, self.rule, self.then, self.hint, self.pattern = fn, rule, then, hint, pattern
        self.kinds: dict[str, Kind] | None = None
        #: the attributes of a call, of those that are given; None for the same
        self.attrs: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def read(self) -> dict[str, Kind]:
        """Read the parameters, and write `bound`: what the constructor is given, as arguments and
        attributes of the call."""
        fn, kinds, self.args, self.axes = self.fn, {}, [], []
        names = fn.__code__.co_varnames[:fn.__code__.co_argcount]
        defaults = dict(zip(reversed(names), reversed(fn.__defaults__ or ())))
        scope: dict[str, Any] = {"operand": operand, **{f"default_{n}": defaults[n]
                                                        for n in defaults}}
        operands = [n for n in names if _kind(fn.__annotations__[n], fn.__globals__)[0] is Operand]
        args, attrs = "", ""
        for name in names:
            kind, optional = _kind(fn.__annotations__[name], fn.__globals__)
            kinds[name] = kind
            scope[f"convert_{name}"] = kind.convert
            value = name if kind.convert is None else f"convert_{name}({name})"
            if kind.convert in _NAMED:
                value = f"convert_{name}({name!r}, {name})"
            if kind is Operand:
                value = f"operand({name}, {operands[name == operands[0]]})"
            if kind.check is None:
                attrs += f"{name!r}: " + (f"None if {name} is None else " if optional else "")
                attrs += f"{value}, "
            else:
                args += f"*(() if {name} is None else ({value},)), " if optional else f"{value}, "
                self.args.append((name, kind.check))
            if kind is Axis:
                self.axes.append(name)
        head = ", ".join(f"{n}=default_{n}" if n in defaults else n for n in names)
        exec(f"def {fn.__name__}({head}):\n    return ({args}), "
             + (f"{{{attrs}}}" if attrs else "None"), scope)
        self.bound, self.kinds = scope[fn.__name__], kinds
        return kinds

    def default_attrs(self, args: Sequence[Expr]) -> dict[str, Any] | None:
        """The attributes of a call of which only the arguments are given; None where there are
        none, or where one of them has no default."""
        kinds = self.read() if self.kinds is None else self.kinds
        if len(kinds) == len(self.args) or len(args) > len(self.args):
            return None
        try:
            given: dict[str, Any]
            _, given = self.bound(**dict(zip((name for name, _ in self.args), args)))
        except TypeError:
            return None
        return given if self.attrs is None else self.attrs(given)

    def infer(self, call: Call) -> StructInfo:
        """What a call gives, whose arguments fit their kinds."""
        kinds = self.read() if self.kinds is None else self.kinds
        if call.attrs is None and len(kinds) > len(self.args):
            lacking = ", ".join(name for name, kind in kinds.items() if kind.check is None)
            raise misfit(call, f"the call has no attributes, and takes {lacking}")
        infos = [check(call, k, name) for (name, check), k in zip(self.args, range(len(call.args)))]
        for name in self.axes:
            axis = call.attrs[name]
            if axis is not None and infos[0].ndim != -1:
                axis_of(call, axis, infos[0].ndim, name)
        try:
            with exact_sizes():
                return _of_body(self, call, *infos) if self.rule is None else self.rule(
                    call, *infos)
        except OverflowError as error:
            raise misfit(call, str(error)) from None

    def compute(self, call: Call, values: Any) -> Any:
        """The body on tensors for the arguments, with the attributes of the call."""
        kinds = self.read() if self.kinds is None else self.kinds
        known = dict(zip((name for name, _ in self.args), values))
        for name, kind in kinds.items():
            if kind.check is None:
                value = call.attrs[name]
                known[name] = value if kind.given is None else kind.given(value)
        return self.fn(**known)

    def legalize(self, bb: Any, call: Call) -> Expr:
        """The call of a TensorIR function made of the body."""
        kinds = self.read() if self.kinds is None else self.kinds
        given = [arg if (give := kinds[name].given) is None else give(arg)
                 for (name, _), arg in zip(self.args, call.args)]
        if not any(isinstance(a, Expr) for a in given):  # a kernel reads at least one tensor
            given = list(call.args)
        attrs = None if self.pattern is None else {"op_pattern": int(self.pattern)}
        out = bb.call_te(lambda *values: self.compute(call, values), *given,
                         primfunc_name_hint=self.hint, primfunc_attrs=attrs)
        return out if self.then is None else self.then(bb, call, out)


# ------------------------------------------------------------------------------- declarations

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
        _publish(name, build)
        return build

    return declare


def _publish(name: str, build: Callable[..., Any]) -> None:
    CONSTRUCTORS[name] = build
    for listener in LISTENERS:
        listener(name, build)


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
        short = name.rpartition(".")[2]
        declared = Declaration(fn, infer, then, hint or short, pattern)
        if attrs is not None:
            declared.attrs = partial(attrs, name.removeprefix("relax."))

        def build(*given: P.args, **named: P.kwargs) -> Expr:
            if declared.kinds is None:
                declared.read()
            args, given_attrs = declared.bound(*given, **named)
            if declared.attrs is not None:
                given_attrs = declared.attrs(given_attrs)
            return make_call(name, args, given_attrs)

        _row(name, declared.infer, legalize or declared.legalize, **facts)
        OPERATORS[name].default_attrs = declared.default_attrs
        for function in (fn, build):
            function.__name__ = function.__qualname__ = short
        build.__doc__, build.__module__ = fn.__doc__, fn.__module__
        build.__wrapped__ = fn  # type: ignore[attr-defined]  # the signature
        _publish(name, build)
        return build

    return declare


def _row(name: str, infer: Callable[[Call], StructInfo], legalize: Any = None, pure: bool = True,
         layout: str | None = None, precision: str | None = None, any_shape: bool = False) -> None:
    register_op(name, infer, pure)
    row = OPERATORS[name]
    row.legalize = None if legalize is LATER else legalize
    row.layout, row.precision = layout, precision
    row.any_shape = any_shape


# ------------------------------------------------------------------------------- rules


def like_first(call: Call, first: TensorStructInfo, *rest: Any) -> StructInfo:
    """A tensor as the first argument is."""
    return first


def _of_body(declared: Declaration, call: Call, *infos: Any) -> StructInfo:
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
        return list(info.values or ()) if isinstance(info, ShapeStructInfo) else prim(arg)

    if any(map(_lacks, infos)):
        return TensorStructInfo(None, "") if declared.fn.__annotations__.get(
            "return") in ("Tensor", Tensor) else OBJECT
    try:
        out = declared.compute(call, [stand_in(i, a) for i, a in zip(infos, call.args)])
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


def of_other_versions(module: str, space: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of operators: those of `space` ("relax.nn") that other versions
    have. Raises AttributeError for what no version has."""
    def get(name: str) -> Any:
        found = None if name.startswith("_") else above("early operators").get(f"{space}.{name}")
        if found is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return found
    return get


__all__ = [
    "Axis", "BitsTensor", "CONSTRUCTORS", "DataType", "Dtype", "Flag", "Float", "FloatTensor",
    "IntegerTensor", "Ints", "Kind", "LATER", "LISTENERS", "NumberTensor", "Operand", "Plain",
    "Rule", "Scalar", "Shape", "Size", "String", "Tensor", "Tensors", "Text", "Value", "Whole",
    "any_info", "constructor", "immediate", "like_first", "of_other_versions", "operator", "prim",
    "prim_arg",
]
