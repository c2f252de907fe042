"""The passes of Relax, one file each, under TVM's names: `relax.transform.FuseOps()(mod)`.

Each file says at its head what the pass means, shows a program before and after it (the tests run
these), and where its algorithm comes from. A pass is a value: calling it maps an IRModule to an
IRModule, and `Sequential([...])` puts several in a row. A name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: public name -> the module of this package that has it
PASSES: dict[str, str] = {
    "AnnotateTIROpPattern": "annotate_tir_op_pattern",
    "OpPatternKind": "annotate_tir_op_pattern",
    "BindParams": "bind_params",
    "BindSymbolicVars": "bind_symbolic_vars",
    "CanonicalizeBindings": "canonicalize_bindings",
    "ConvertToDataflow": "convert_to_dataflow",
    "DeadCodeElimination": "dead_code_elimination",
    "EliminateCommonSubexpr": "eliminate_common_subexpr",
    "FuseOps": "fuse_ops",
    "FuseTIR": "fuse_tir",
    "Normalize": "normalize",
    "ToNonDataflow": "to_non_dataflow",
}


def __getattr__(name: str) -> Any:
    """A pass, loaded the first time it is asked for."""
    module = PASSES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Everything that can be asked for."""
    return sorted({*globals(), *PASSES})
