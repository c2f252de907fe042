"""Operators of Relax: what fits gives what is inferred and what numpy gives; the rest is refused.

A case draws the arguments of one operator, and sometimes changes one: a dimension, the rank, the
dtype, a count, an index, an axis or a size. numpy or torch say whether they still fit. What does
not fit must be refused by an error of the project when the call is made; in a function of symbolic
sizes, when it runs.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

import mlc_lab
from mlc_lab import relax, tir
from mlc_lab.reading.errors import MLCError
from mlc_lab.relax.op.declare import CONSTRUCTORS
from mlc_lab.relax.op.registry import OPERATORS
from mlc_lab.relax.vm.builtins import MatchError
from mlc_lab.relax.vm.codegen import VMCodegenError
from mlc_lab.tir.functor import substitute

from .harness import Draw, counts, note
from .operator_numbers import FITS, given_to, numbers_of
from .operator_numbers import changed as other_number
from .operator_samples import (
    ALL, FLOATS, NUMBERS, SAMPLES, Maker, Sample, data, shape_of,
)

#: operators that compute nothing with tensors: they call, allocate, check, or move values about
NOT_DRAWN = {name for name in OPERATORS if name.startswith((
    "relax.call_", "relax.memory.", "relax.builtin.", "relax.vm.", "relax.invoke_",
    "relax.grad."))} | {  # gradients: tests/relax/test_gradients.py compares them with torch
    "relax.make_closure", "relax.null_value", "relax.print", "relax.assert_op", "relax.shape_of",
    "relax.tensor_to_shape", "relax.shape_to_tensor", "relax.to_vdevice", "relax.hint_on_device"}
#: operators that may give their argument on as it is
PASS_ON = {"relax.split", "relax.nn.dropout"}
_DTYPES = {"Tensor": ALL, "FloatTensor": FLOATS, "NumberTensor": NUMBERS,
           "IntegerTensor": ("int32", "int64"), "BitsTensor": ("int32", "bool")}
_ATTRIBUTES = {"Axis": lambda draw: draw.integer(-1, 0), "Flag": lambda draw: draw.chance(50),
               "Whole": lambda draw: draw.integer(1, 3), "Float": lambda draw: draw.integer(1, 3)}


def _by_its_kinds(name: str) -> Maker | None:
    """The maker of an operator that has none of its own: tensors of one shape, of the dtypes that
    its declaration takes. None where that does not say enough."""
    declared = getattr(CONSTRUCTORS.get(name), "__wrapped__", None)
    kinds = dict(getattr(declared, "__annotations__", {}))
    kinds.pop("return", None)
    if not kinds or not {*kinds.values()} <= {*_DTYPES, *_ATTRIBUTES}:
        return None

    def make(draw: Draw) -> Sample:
        shape = shape_of(draw, 1)
        arrays = [data(draw, shape, draw.choice(_DTYPES[k])) for k in kinds.values()
                  if k in _DTYPES]
        attrs = {n: _ATTRIBUTES[k](draw) for n, k in kinds.items() if k in _ATTRIBUTES}
        return Sample(arrays, lambda *xs: CONSTRUCTORS[name](*xs, **attrs))

    return make


#: operators of which only their declaration says what fits, which may be refused
UNSURE = {name: maker for name in set(OPERATORS) - NOT_DRAWN - set(SAMPLES)
          if (maker := _by_its_kinds(name)) is not None}
SAMPLES.update(UNSURE)
_NAMES = sorted(SAMPLES)
_ONLY = os.environ.get("MLC_LAB_FUZZ_OPERATOR")
_TOLERANCE = {"float16": 2e-2, "float32": 2e-4, "float64": 1e-6}


def case(draw: Draw) -> None:
    """One operator on some arguments."""
    name = _ONLY or draw.choice(_NAMES)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = SAMPLES[name](draw)
        changed = name in FITS and draw.chance(30) and _change_number(draw, made)
        if not changed:
            changed = bool(made.arrays) and draw.chance(35) and _change(draw, made)
        symbolic = bool(made.arrays) and draw.chance(25)
        note(f"{name} {made.text} of " + ", ".join(f"{a.dtype}{list(a.shape)}"
                                                   for a in made.arrays)
             + (", changed" if changed else "") + (", symbolic" if symbolic else ""))
        _check(made, changed or name in UNSURE, symbolic, name in PASS_ON)


def _change(draw: Draw, made: Sample) -> bool:
    """Another dimension, rank or dtype of one argument."""
    k = draw.integer(0, len(made.arrays) - 1)
    shape, dtype = list(made.arrays[k].shape), str(made.arrays[k].dtype)
    kind = draw.integer(0, 3)
    if kind == 0:
        dtype = draw.choice([t for t in ALL if t != dtype])
    elif kind == 1 and shape:
        shape.pop(draw.integer(0, len(shape) - 1))
    elif kind == 2:
        shape.insert(draw.integer(0, len(shape)), draw.integer(1, 3))
    elif shape:
        d = draw.integer(0, len(shape) - 1)
        shape[d] = max(1, shape[d] + draw.choice((1, -1, 3)))
    made.arrays[k] = data(draw, shape, dtype, 0, 3)
    return True


def _change_number(draw: Draw, made: Sample) -> bool:
    """Another count, index, axis or size."""
    try:
        built = made.call(*(relax.Var(f"x{k}", _info(a, False, {}))
                            for k, a in enumerate(made.arrays)))
    except MLCError:  # it did not fit as it was
        return False
    within = isinstance(built, relax.TupleGetItem)
    call = built.tuple_value if within else built
    name = call.op.name if isinstance(call, relax.Call) else ""
    other = other_number(draw, name, call) if name in FITS else {}
    if not other:
        return False
    numbers = numbers_of(given_to(name, call) | other)
    build = made.call

    def again(*args: Any) -> Any:
        value = build(*args)
        given = given_to(name, value.tuple_value if within else value) | other
        call = CONSTRUCTORS[name](**given)
        return relax.TupleGetItem(call, value.index) if within else call

    made.text += " with " + ", ".join(f"{p}={v}" for p, v in other.items())
    made.call, made.reference = again, lambda *arrays: FITS[name](numbers, *arrays)
    return True


def _check(made: Sample, changed: bool, symbolic: bool, passed_on: bool) -> None:
    wanted, fits, late = None, True, False
    if made.reference is not None:
        try:
            wanted = made.reference(*made.arrays)
        except NotImplementedError:  # torch has no kernel for this dtype, which says nothing here
            pass
        except Exception as error:
            # an index that another dtype gave another value is not known when the call is made
            fits = late = isinstance(error, IndexError) and "out of bounds" in str(error) and (
                type(error).__name__ != "AxisError")  # numpy's, of an axis
            note(f"the reference says: {type(error).__name__}: {error}")
    sizes: dict[tir.Var, int] = {}
    params = [relax.Var(f"x{k}", _info(a, symbolic, sizes)) for k, a in enumerate(made.arrays)]
    builder = relax.BlockBuilder()
    try:
        with builder.function("main", params):
            value = builder.emit(made.call(*params))
            builder.emit_func_output(value)
    except MLCError as error:
        counts["refused"] += 1
        assert changed or symbolic or not fits, f"refused what fits: {error}"
        return
    assert fits or symbolic, "accepted what does not fit"
    mod = builder.get()
    try:
        vm = relax.VirtualMachine(relax.build(mod, "llvm"), mlc_lab.cpu())
    except VMCodegenError:
        assert symbolic, "accepted, and there is no code for it"
        counts["shapes not known"] += 1
        return
    try:
        got = vm["main"](*made.arrays)
    except ZeroDivisionError:
        divisor = made.arrays[-1]
        assert divisor.dtype.kind in "iu" and not divisor.all()
        counts["division by zero"] += 1
        return
    except (MatchError, MLCError, ValueError) as error:
        assert symbolic or late or not fits, f"refused what fits, at run time: {error}"
        counts["refused at run time"] += 1
        return
    assert fits, f"computed what does not fit: {got}"
    counts["computed"] += 1
    _as_inferred(got, value.struct_info, sizes)
    _is_its_own(got, made.arrays, passed_on)
    if wanted is not None:
        _as_wanted(got, wanted)


def _info(array: np.ndarray, symbolic: bool, sizes: dict) -> relax.TensorStructInfo:
    dims: list[Any] = list(array.shape)
    if symbolic:
        for k, extent in enumerate(array.shape):
            dims[k] = var = tir.Var(f"n{len(sizes)}", "int64")
            sizes[var] = extent
    return relax.TensorStructInfo(dims, str(array.dtype))


def _is_its_own(got: Any, arrays: list, passed_on: bool) -> None:
    """Results are memory of their own (docs/numbers.md, "Memory of results")."""
    tensors = [np.from_dlpack(t) for t in _tensors(got) if str(t.dtype) != "bfloat16"]
    for k, one in enumerate(tensors):
        assert passed_on or not any(np.shares_memory(one, a) for a in arrays), "it is an argument"
        assert not any(np.shares_memory(one, other) for other in tensors[:k]), "results are one"


def _tensors(value: Any) -> list:
    return [value] if hasattr(value, "numpy") else [t for one in value for t in _tensors(one)]


def _as_inferred(got: Any, info: Any, sizes: dict) -> None:
    """A value has the shape and dtype that were inferred."""
    if isinstance(info, relax.TupleStructInfo):
        assert len(got) == len(info.fields_), (len(got), info)
        for one, field in zip(got, info.fields_):
            _as_inferred(one, field, sizes)
        return
    assert info.dtype in ("", str(got.dtype)), f"inferred {info.dtype}, computed {got.dtype}"
    assert info.ndim in (-1, len(got.shape)), f"inferred {info}, computed {got.shape}"
    if info.dims is not None:
        table = {v: tir.IntImm("int64", n) for v, n in sizes.items()}
        dims = [mlc_lab.arith.Analyzer().simplify(substitute(d, table)) for d in info.dims]
        assert [getattr(d, "value", d) for d in dims] == list(got.shape), (
            f"inferred {info}, computed {got.shape}")


def _as_wanted(got: Any, wanted: Any) -> None:
    """The numbers of the reference."""
    if isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted):
            _as_wanted(one, other)
        return
    value, wanted = got.numpy(), np.asarray(wanted)
    assert value.shape == wanted.shape, f"shape {value.shape}, the reference has {wanted.shape}"
    assert value.dtype == wanted.dtype, f"dtype {value.dtype}, the reference has {wanted.dtype}"
    tolerance = _TOLERANCE.get(str(value.dtype), 0)
    np.testing.assert_allclose(value, wanted, rtol=tolerance, atol=tolerance)
