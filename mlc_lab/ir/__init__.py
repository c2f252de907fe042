"""What every level of the IR shares: declaration, modules, dtypes, sameness, passes, errors."""

from importlib import import_module

from ..above import name_above
from .diagnostics import DiagnosticError, MLCError, WellFormedError, render_source
from .global_info import DummyGlobalInfo, GlobalInfo, VDevice
from .module import BaseFunc, GlobalVar, IRModule
from .node import Node, node
from .structural import assert_structural_equal, structural_equal, structural_hash

__all__ = ["BaseFunc", "DiagnosticError", "DummyGlobalInfo", "GlobalInfo", "GlobalVar", "IRModule",
           "MLCError", "Node", "VDevice", "WellFormedError", "assert_structural_equal", "node",
           "render_source", "structural_equal", "structural_hash"]

#: names that TVM has under `ir`, of modules that are loaded when asked for
_LATER = {"load_json": ".serialize", "save_json": ".serialize", "transform": ".transform",
          "instrument": ".transform"}


def __getattr__(name: str) -> object:
    """A name of TVM's `ir` that is loaded late, or stands above."""
    if name not in _LATER:
        found = name_above("ir", name)
    else:
        module = import_module(_LATER[name], __name__)
        found = module if name in ("transform", "instrument") else getattr(module, name)
    globals()[name] = found
    return found
