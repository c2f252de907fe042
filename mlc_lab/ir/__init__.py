"""What every level of the IR shares: declaration, modules, dtypes, sameness, passes, errors."""

from .diagnostics import DiagnosticError, MLCError, WellFormedError, render_source
from .module import BaseFunc, GlobalVar, IRModule
from .node import Node, node
from .structural import assert_structural_equal, structural_equal, structural_hash

__all__ = ["BaseFunc", "DiagnosticError", "GlobalVar", "IRModule", "MLCError", "Node",
           "WellFormedError", "assert_structural_equal", "node", "render_source",
           "structural_equal", "structural_hash"]

#: names that TVM has under `ir` and that are defined elsewhere: loaded by name when asked for
_ELSEWHERE = {
    "Op": "mlc_lab.tir", "PrimExpr": "mlc_lab.tir", "Range": "mlc_lab.tir",
    "PrimType": "mlc_lab.tir", "PointerType": "mlc_lab.tir", "RelaxExpr": "mlc_lab.relax:Expr",
    "register_op_attr": "mlc_lab.tir.op", "register_intrin_lowering": "mlc_lab.tir.op",
    "load_json": "mlc_lab.ir.serialize", "save_json": "mlc_lab.ir.serialize",
    "transform": "mlc_lab.ir.transform:", "instrument": "mlc_lab.ir.transform:",
}


def __getattr__(name: str) -> object:
    """A name of TVM's `ir` that stands elsewhere."""
    path = _ELSEWHERE.get(name)
    if path is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, colon, attribute = path.partition(":")
    found: object = import_module(module)
    if not colon or attribute:
        found = getattr(found, attribute or name)
    globals()[name] = found
    return found
