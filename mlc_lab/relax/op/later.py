"""`te`, `topi` and modules of it, loaded when an operator is first computed.

A graph is written without them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ... import te, topi
    from ...topi import convolution, utils
else:
    class _Later:
        """A package that is loaded when a name of it is first asked for."""

        def __init__(self, path: str) -> None:
            self.path = path

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self.path), name)
            setattr(self, name, value)
            return value

    te, topi, convolution, utils = map(_Later, (
        "mlc_lab.te", "mlc_lab.topi", "mlc_lab.topi.convolution", "mlc_lab.topi.utils"))

__all__ = ["convolution", "te", "topi", "utils"]
