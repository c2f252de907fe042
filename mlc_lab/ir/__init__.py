"""What every level of the IR shares: declaration, modules, dtypes, sameness, passes, errors."""

from .diagnostics import DiagnosticError, MLCError, WellFormedError, render_source
from .module import BaseFunc, GlobalVar, IRModule
from .node import Node, node
from .structural import assert_structural_equal, structural_equal, structural_hash

__all__ = ["BaseFunc", "DiagnosticError", "GlobalVar", "IRModule", "MLCError", "Node",
           "WellFormedError", "assert_structural_equal", "node", "render_source",
           "structural_equal", "structural_hash"]
