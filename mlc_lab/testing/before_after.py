"""CompareBeforeAfter: a test of a pass, written as the program before and the program after."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import mlc_lab as tvm

from .fixtures import fixture


class CompareBeforeAfter:
    """A subclass says `before`, `expected` and `transform`, and is a test.

    Programs are functions without a decorator, whose text is parsed when the test runs; PrimFuncs,
    modules, classes of functions (a module), methods and fixtures that give one. `expected` may be
    an exception, which the transformation must raise. `transform` is a pass, or a method or fixture
    that gives one.
    """

    check_well_formed = True

    def __init_subclass__(cls) -> None:
        for name in ("before", "expected"):
            said = [n for n in (name, name.capitalize()) if n in vars(cls)]
            if len(said) > 1:
                raise TypeError(f"{cls.__name__} has both {' and '.join(said)}")
            if said:
                value = vars(cls)[said[0]]
                setattr(cls, name, value if _is_fixture(value) else fixture(_program(value)))
        if "transform" in vars(cls):
            value = vars(cls)["transform"]
            if _is_fixture(value):
                cls._given_transform = value
                cls.transform = fixture(lambda self, _given_transform: _on_any(_given_transform))
            elif isinstance(value, tvm.ir.transform.Pass):
                cls.transform = fixture(lambda self: _on_any(value))
            elif _is_method(value):
                cls.transform = fixture(lambda self: _on_any(value(self)))
            else:
                raise TypeError(f"{cls.__name__}.transform is a pass, or a method that gives one; "
                                f"it is {value!r}")

    def test_compare(self, before: Any, expected: Any, transform: Any) -> None:
        """The transformation of `before` is `expected`, or is refused as `expected`."""
        if inspect.isclass(expected) and issubclass(expected, BaseException):
            with pytest.raises(expected):
                transform(before)
            return
        after = transform(before)
        if isinstance(after, tvm.tir.PrimFunc) and isinstance(expected, tvm.tir.PrimFunc):
            # what they are called is not compared
            after = after.with_attr("global_symbol", "main")
            expected = expected.with_attr("global_symbol", "main")
        try:
            tvm.ir.assert_structural_equal(after, expected)
        except ValueError as error:
            texts = "\n".join(f"# {title}\n{program!r}" for title, program in (
                ("before", before), ("after", after), ("expected", expected)))
            raise ValueError(f"the program after is not the one expected: {error}\n{texts}"
                             ) from None


def _is_fixture(value: Any) -> bool:
    return type(value).__name__ == "FixtureFunctionDefinition" or hasattr(
        value, "_pytestfixturefunction")  # before pytest 8.4


def _is_method(value: Any) -> bool:
    return inspect.isfunction(value) and "self" in inspect.signature(value).parameters


def _program(value: Any) -> Callable[[Any], Any]:
    """The method of a fixture that gives the program (or the exception) that was said."""
    if isinstance(value, (tvm.tir.PrimFunc, tvm.IRModule)) or (
            inspect.isclass(value) and issubclass(value, BaseException)):
        return lambda self: value
    method: Any = value
    if _is_method(method):
        return lambda self: method(self)
    if inspect.isclass(value):
        return lambda self: tvm.IRModule({
            name: (member if isinstance(member, tvm.ir.BaseFunc)
                   else _parsed(member, self.check_well_formed)).with_attr("global_symbol", name)
            for name, member in vars(value).items() if not name.startswith("_")})
    return lambda self: _parsed(value, self.check_well_formed)


def _parsed(func: Any, check: bool) -> Any:
    """A plain function as a PrimFunc; names of its file are known."""
    text = "@T.prim_func\n" + textwrap.dedent(inspect.getsource(func))
    names = {**func.__globals__, **inspect.getclosurevars(func).nonlocals}
    return tvm.script.from_source(text, names, check_well_formed=check)


def _on_any(module_pass: Any) -> Callable[[Any], Any]:
    """A pass that takes functions too."""

    def apply(program: Any) -> Any:
        if isinstance(program, tvm.tir.PrimFunc):
            return module_pass(tvm.IRModule({"main": program}))["main"]
        return module_pass(program)

    return apply


__all__ = ["CompareBeforeAfter"]
