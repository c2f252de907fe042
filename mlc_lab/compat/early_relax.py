"""Relax of 2022, before struct info: annotations without a prefix, `relax.` for `R.` in functions,
and variables with a shape and a type. Its operators are in `early_operators.py`.

    @R.function
    def main(x: Tensor((n, 784), "float32"), w: Tensor((128, 784), "float32")) -> Tensor:
        with relax.dataflow():
            lv = relax.nn.dense(x, w)
            relax.output(lv)
        return lv

Files of that year begin with `from __future__ import annotations`, so that Python does not look for
`Tensor`. A dimension that nothing defines is a symbol, `_` is one that is not known.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .. import relax
from ..ir.module import IRModule
from ..relax.building import link
from ..relax.expr import as_expr
from ..relax.script import names as R
from ..relax.script import words
from ..relax.script.parser import WORDS
from ..relax.script.statements import MatchCastValue
from ..relax.vm.codegen import generate, kernels_of
from ..script.allowed import LANGUAGES, OFFERED
from ..target import Target
from .early_operators import EARLY_OPERATORS


class _Unknown:
    """`_`: a dimension or shape that is not known."""

    def __repr__(self) -> str:
        return "_"


UNKNOWN = _Unknown()


class EarlyTensor(type(words.Tensor)):  # type: ignore[misc]
    """Tensor((n, 4), "float32"), Tensor(_, "float32", ndim=2), Tensor[(n, 4), "float32"]"""

    def __call__(self, shape: Any = None, dtype: Any = None, ndim: int = -1, **rest: object) -> Any:
        """A tensor; where a dimension is `_`, only how many there are is known."""
        if shape is UNKNOWN:
            shape = None
        elif isinstance(shape, (tuple, list)) and any(d is UNKNOWN for d in shape):
            shape, ndim = None, len(shape)
        return super().__call__(shape, dtype, ndim=ndim, **rest)

    def __getitem__(self, args: Any) -> Any:
        return self(*args) if isinstance(args, tuple) and len(args) == 2 and not isinstance(
            args[1], int) else self(args)


class EarlyShape(type(words.Shape)):  # type: ignore[misc]
    """Shape((n, 4)), Shape"""

    def __call__(self, values: Any = None, ndim: int = -1) -> Any:
        """A shape."""
        return super().__call__(None if values is UNKNOWN else values, ndim)


#: name without a prefix in a function of that year -> what it is
BARE: dict[str, Any] = {
    "Tensor": EarlyTensor(), "Shape": EarlyShape(), "Object": words.Object, "Tuple": words.Tuple,
    "Callable": words.Callable, "_": UNKNOWN,
}


def elsewhere(name: str, base: object = None) -> Any:
    """What a name of a Relax function is that is none of today's: alone, or after `relax.`; None
    for one that was never there."""
    if base is None:
        return BARE.get(name)
    return LANGUAGES[R].get(name, R_ONLY.get(name)) if base is relax else None


def var_info(shape: Any, kind: Any = None, *, shape_annotation: Any = None,
             type_annotation: Any = None) -> Any:
    """The struct info of `relax.Var(name, shape_annotation, type_annotation)`.

    The shape is a tuple or a ShapeExpr, or None; the type what `relax.DynTensorType` and its like
    make, or None.
    """
    shape = shape if shape_annotation is None else shape_annotation
    kind = kind if type_annotation is None else type_annotation
    if kind is not None and not isinstance(kind, relax.StructInfo):
        raise TypeError("the type of a relax.Var is relax.DynTensorType(ndim, dtype) or its like, "
                        f"got {kind!r}")
    if shape is None or isinstance(shape, RuntimeDepShape):
        return relax.ObjectStructInfo() if kind is None else kind
    if isinstance(kind, relax.TensorStructInfo):
        count = len(shape)
        if kind.ndim not in (-1, count):
            raise ValueError(f"relax.Var has a shape of {count} dimension(s) and a type of "
                             f"{kind.ndim}")
        return relax.TensorStructInfo(shape, kind.dtype)
    if kind is None:
        return relax.TensorStructInfo(shape, "")
    raise TypeError(f"only a tensor has a shape, the type of this relax.Var is {kind}")


class RuntimeDepShape:
    """A shape that is known only when the program runs."""


def match_shape(parser: Any, node: Any, value: Any, shape: Any) -> Any:
    """R.match_shape(x, (n, m)): a match_cast that gives the dimensions of a tensor names. As a
    statement it says them of x, from there on."""
    value = as_expr(value)
    info = value.struct_info
    name = getattr(node.args[0], "id", "") if node.args else ""
    if isinstance(info, relax.ShapeStructInfo):
        return MatchCastValue(value, relax.ShapeStructInfo(list(shape)), name)
    return MatchCastValue(value, relax.TensorStructInfo(list(shape), getattr(info, "dtype", "")),
                          name)


WORDS["match_shape"] = match_shape


#: what stood after `R.` or `relax.` in functions of that year, and no longer does
R_ONLY: dict[str, Any] = {
    "match_shape": words.Word("match_shape"),
    **{name.removeprefix("relax."): build for name, build in EARLY_OPERATORS.items()
       if name.count(".") == 1}}


def _vmcodegen(builder: Any, mod: Any, exec_mode: str = "bytecode") -> Any:
    """The bytecode of a lowered module, written to an ExecBuilder; gives the kernels."""
    executable = generate(mod, builder.get())
    executable.exec_mode = exec_mode
    return kernels_of(mod)


def _vmlink(builder: Any, target: Any, tir_mod: Any = None, *_: object, **options: object) -> Any:
    """The executable of an ExecBuilder, with its kernels compiled."""
    executable = builder.get()
    kernels = IRModule() if tir_mod is None else tir_mod
    link(executable, kernels, Target(target or "llvm"), executable.exec_mode)
    return executable


#: the module `relax.vm_build`
VM_BUILD = SimpleNamespace(build=lambda *args, **options: relax.vm.build(*args, **options),
                           Executable=relax.Executable, _vmcodegen=_vmcodegen, _vmlink=_vmlink)
for _value in (*BARE.values(), *R_ONLY.values()):
    OFFERED[id(_value)] = _value

__all__ = ["BARE", "RuntimeDepShape", "VM_BUILD", "elsewhere", "var_info"]
