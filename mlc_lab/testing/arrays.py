"""Arrays, expressions and gradients compared; the tests of a file run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def assert_allclose(actual: object, desired: object, rtol: float = 1e-7, atol: float = 1e-7
                    ) -> None:
    """Raise AssertionError unless two arrays agree: |actual - desired| <= atol + rtol * |desired|.

    Tensors of this package, of torch and of anything with DLPack are taken as they are.
    """
    actual, desired = _array(actual), _array(desired)
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def _array(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "numpy"):
        value = value.numpy()
    return np.asanyarray(value)


def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """Raise AssertionError unless two expressions are proved to be of equal value."""
    from ..arith import Analyzer

    if not Analyzer().can_prove_equal(lhs, rhs):
        raise AssertionError(f"not proved to be equal: {lhs} and {rhs}")


def check_numerical_grads(
    function: Callable[..., Any], input_values: Mapping[str, Any] | Sequence[Any],
    grad_values: Mapping[str, Any] | Sequence[Any], function_value: Any = None,
    delta: float = 1e-3, atol: float = 1e-2, rtol: float = 0.1,
) -> None:
    """Raise AssertionError unless gradients agree with central differences of `function`.

    The inputs are given to `function` as they are given here, by name or by position; its result is
    a number, or an array that is summed up.
    """
    by_name = isinstance(input_values, Mapping)
    keys: Any = list(input_values) if by_name else range(len(input_values))
    inputs: dict[Any, np.ndarray] = {k: np.array(_array(input_values[k]), "float64") for k in keys}

    def value() -> float:
        result = function(**inputs) if by_name else function(*inputs.values())
        return float(np.sum(_array(result), dtype="float64"))

    for key in keys:
        given = np.asarray(_array(grad_values[key]), "float64")
        if given.shape != inputs[key].shape:
            raise AssertionError(f"the gradient of {key!r} has the shape {given.shape}, but the "
                                 f"input {inputs[key].shape}")
        found = np.empty_like(inputs[key])
        for at in np.ndindex(found.shape):
            here = inputs[key][at]
            inputs[key][at] = here + delta
            above = value()
            inputs[key][at] = here - delta
            found[at] = (above - value()) / (2 * delta)
            inputs[key][at] = here
        # one entry may be off by what the whole gradient is worth: differences are coarse
        most = atol + rtol * np.abs(found).mean() if found.size else atol
        np.testing.assert_allclose(given, found, rtol=rtol, atol=most,
                                   err_msg=f"the gradient of {key!r}")


def main() -> None:
    """Run the tests of the calling file with pytest."""
    import pytest

    frame = sys._getframe(1)
    if frame.f_globals.get("__name__") == "__main__":
        from . import plugin

        sys.exit(pytest.main([frame.f_globals["__file__"], *sys.argv[1:]], plugins=[plugin]))


__all__ = ["assert_allclose", "assert_prim_expr_equal", "check_numerical_grads", "main"]
