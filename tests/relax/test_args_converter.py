"""relax.args_converter: arguments of Python functions become expressions."""

from typing import List, Optional

import pytest

from mlc_lab import relax
from mlc_lab.relax import Expr
from mlc_lab.relax.utils import args_converter


def test_named_arguments():
    @args_converter.to_expr("x", "rest", "more")
    def f(x, *rest, **more):
        return [x, *rest, *more.values()]

    got = f(1, "a", (1, 2), key=relax.const(0))
    assert all(isinstance(v, Expr) for v in got) and isinstance(got[2], relax.Tuple)
    assert f(None) == [None]
    with pytest.raises(ValueError, match="f has no argument 'z'"):
        args_converter.to_expr("z")(f)


def test_lists():
    @args_converter.to_list_expr("x")
    def f(x):
        return x

    assert [type(v).__name__ for v in f((1, "a"))] == ["PrimValue", "StringImm"] and f(None) is None
    with pytest.raises(TypeError, match="argument 'x' of f: a list or tuple is needed"):
        f(1)


def test_by_annotations():
    @args_converter.auto
    def f(a: Expr, b: Optional[Expr], c: List[Expr], d: list[Expr] | None, e: int = 3):
        return a, b, c, d, e

    a, b, c, d, e = f(1, None, [1], [2, (3,)])
    assert isinstance(a, relax.PrimValue) and b is None and e == 3
    assert [type(v).__name__ for v in (*c, *d)] == ["PrimValue", "PrimValue", "Tuple"]
