"""TVM's namespaces that are no packages here, made from a table: `tvm.nd`, `tvm.tir.transform`.

A name in the table is where the thing is, "module:name"; it is loaded when first used. A namespace
may also pass on whatever a module has (`"*"`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from .not_planned import missing, reason

#: namespace -> name -> "module:name"; "*" names a module whose public names all belong to it
TABLE: dict[str, dict[str, str]] = {
    "nd": {
        "NDArray": "mlc_lab.runtime:NDArray", "array": "mlc_lab.runtime:array",
        "empty": "mlc_lab.runtime:empty", "cpu": "mlc_lab.runtime:cpu",
        "cuda": "mlc_lab.runtime:cuda", "gpu": "mlc_lab.runtime:cuda",
        "metal": "mlc_lab.runtime:metal", "opencl": "mlc_lab.runtime:opencl",
        "webgpu": "mlc_lab.runtime:webgpu",
        "device": "mlc_lab.runtime:device", "from_dlpack": "mlc_lab.runtime.ndarray:from_dlpack",
    },
    "instrument": {
        "PassInstrument": "mlc_lab.ir.transform:PassInstrument",
        "PassTimingInstrument": "mlc_lab.ir.transform:PassTimingInstrument",
        "PrintBeforeAll": "mlc_lab.ir.transform:PrintBeforeAll",
        "PrintAfterAll": "mlc_lab.ir.transform:PrintAfterAll",
        "PassPrintingInstrument": "mlc_lab.ir.transform:PassPrintingInstrument",
        "DumpIR": "mlc_lab.ir.transform:DumpIR",
        "pass_instrument": "mlc_lab.ir.transform:pass_instrument",
    },
    "error": {
        "DiagnosticError": "mlc_lab.ir:DiagnosticError", "TVMError": "mlc_lab.ir:MLCError",
    },
    "_ffi": {
        "*": "mlc_lab.runtime.registry", "base": "mlc_lab.compat.namespaces:ffi_base",
        "convert": "mlc_lab.runtime:convert",
    },
    "ffi_base": {
        "*": "mlc_lab.compat.python_types", "TVMError": "mlc_lab.ir:MLCError",
    },
    "container": {  # lists and dicts are Python's own here
        "Array": "collections.abc:Sequence", "Map": "collections.abc:Mapping",
    },
    "driver": {
        "build_module": "mlc_lab.compat.namespaces:driver_build_module",
        "build": "mlc_lab.build:build", "lower": "mlc_lab.lower:lower",
    },
    "driver_build_module": {
        "build": "mlc_lab.build:build", "lower": "mlc_lab.lower:lower",
        "schedule_to_module": "mlc_lab.compat.passes:schedule_to_module",
    },
    "s_tir": {  # 0.25 and later
        **{name: f"mlc_lab.compat.namespaces:s_tir_{name}" for name in (
            "meta_schedule", "dlight", "schedule", "transform")},
        "*": "mlc_lab.schedule", "TensorIntrin": "mlc_lab.tir:TensorIntrin",
        "SBlockRV": "mlc_lab.schedule:BlockRV",
    },
    "tir_schedule": {
        "*": "mlc_lab.schedule",
    },
    "tir_schedule_schedule": {"*": "mlc_lab.schedule"},
    "tir_schedule_state": {"*": "mlc_lab.schedule.state"},
    "tir_schedule_trace": {"*": "mlc_lab.schedule.trace"},
    "tir_schedule_instruction": {"*": "mlc_lab.schedule.instruction"},
    "tir_schedule_testing": {
        "verify_trace_roundtrip": "mlc_lab.compat.passes:verify_trace_roundtrip",
        "assert_structural_equal_ignore_global_symbol":
            "mlc_lab.compat.passes:assert_structural_equal_ignore_global_symbol",
    },
    "tir_transform": {
        "*": "mlc_lab.lower",
        "prim_func_pass": "mlc_lab.compat.passes:prim_func_pass",
        "Apply": "mlc_lab.compat.passes:Apply", "PrimFuncPass": "mlc_lab.ir.transform:Pass",
        "StorageFlatten": "mlc_lab.compat.passes:StorageFlatten",
        "VerifyMemory": "mlc_lab.compat.analysis:VerifyMemory",
        "DefaultGPUSchedule": "mlc_lab.dlight.gpu.default_gpu_schedule:DefaultGPUSchedule",
    },
    "tir_analysis": {
        "verify_well_formed": "mlc_lab.tir:verify_well_formed",
        "verify_memory": "mlc_lab.compat.analysis:verify_memory",
        "get_block_access_region": "mlc_lab.compat.passes:get_block_access_region",
        "expr_deep_equal": "mlc_lab.compat.passes:expr_deep_equal",
        "undefined_vars": "mlc_lab.compat.passes:undefined_vars",
        "estimate_tir_flops": "mlc_lab.compat.passes:estimate_tir_flops",
        **{name: f"mlc_lab.compat.analysis:{name}" for name in (
            "OOBChecker", "assert_pure_function", "calculate_allocated_bytes",
            "calculate_constant_bytes", "calculate_workspace_bytes", "detect_buffer_access_lca",
            "find_anchor_block", "get_block_read_write_region", "is_pure_function", "verify_ssa")},
    },
    "tir_stmt_functor": {
        "ir_transform": "mlc_lab.tir:ir_transform",
        "post_order_visit": "mlc_lab.tir:post_order_visit",
        "pre_order_visit": "mlc_lab.tir:pre_order_visit",
        "renew_defs": "mlc_lab.compat.passes:renew_defs",
        "substitute": "mlc_lab.tir:substitute",
    },
    "script_parser_tir_entry": {
        "prim_func": "mlc_lab.script.tir:prim_func", "macro": "mlc_lab.script.tir:macro",
        "Buffer": "mlc_lab.script.tir:Buffer", "BufferProxy": "mlc_lab.script.tir:Buffer",
        "Ptr": "mlc_lab.script.tir:handle", "PtrProxy": "mlc_lab.script.tir:handle",
        "TIRMacro": "mlc_lab.script.macro:Macro",
    },
    "script_parser_ir_entry": {"ir_module": "mlc_lab.script:ir_module"},
    "script_ir_builder_base": {
        "IRBuilder": "mlc_lab.script.ir_builder:IRBuilder",
        "IRBuilderFrame": "mlc_lab.script.ir_builder.frames:Frame"},
    "relax_backend_patterns": {
        name: f"mlc_lab.relax.libraries:{name}" for name in (
            "get_pattern", "get_patterns_with_prefix", "register_patterns")},
    "s_tir_meta_schedule": {"*": "mlc_lab.meta_schedule"},
    "s_tir_dlight": {"*": "mlc_lab.dlight"},
    "s_tir_schedule": {"*": "mlc_lab.schedule"},
    "s_tir_transform": {"*": "mlc_lab.lower"},
    "script_parser_relax_entry": {
        "*": "mlc_lab.relax.script.words",
        "function": "mlc_lab.relax.script.names:function",
        "macro": "mlc_lab.relax.script.names:macro",
        "ObjectProxy": "mlc_lab.relax.script.names:Object",
        "TensorProxy": "mlc_lab.relax.script.names:Tensor",
        "CallableProxy": "mlc_lab.relax.script.names:Callable",
        "TupleProxy": "mlc_lab.relax.script.names:Tuple",
        "ShapeProxy": "mlc_lab.relax.script.names:Shape",
        "PrimProxy": "mlc_lab.relax.script.names:Prim",
    },
    "ir_base": {
        "*": "mlc_lab.ir",
        "Node": "mlc_lab.ir:Node",
        "assert_structural_equal": "mlc_lab.ir:assert_structural_equal",
        "structural_equal": "mlc_lab.ir:structural_equal",
        "structural_hash": "mlc_lab.ir:structural_hash",
        "get_first_structural_mismatch": "mlc_lab.compat.passes:get_first_structural_mismatch",
        "load_json": "mlc_lab.ir.serialize:load_json",
        "save_json": "mlc_lab.ir.serialize:save_json",
    },
}
#: the dotted name each namespace has under `tvm`
DOTTED = {name: name.replace("tir_", "tir.") if name != "s_tir" else name for name in TABLE}
DOTTED.update((name, name.replace("_", ".")) for name in TABLE if name.startswith(
    ("tir_schedule_", "script_", "ir_", "driver_")))
DOTTED.update((f"s_tir_{name}", f"s_tir.{name}") for name in (
    "meta_schedule", "dlight", "schedule", "transform"))
DOTTED["script_ir_builder_base"] = "script.ir_builder.base"
DOTTED["relax_backend_patterns"] = "relax.backend.pattern_registry"


class Namespace(ModuleType):
    """A module made from a row of the table."""

    def __init__(self, name: str, rows: dict[str, str]) -> None:
        super().__init__(f"mlc_lab.{DOTTED[name]}", f"TVM's namespace {DOTTED[name]}.")
        self.__dict__["_rows"] = rows
        self.__dict__["__path__"] = []  # lets `import tvm.tir.transform` treat it as a package

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # `from tvm.tir.transform import *`
            return dir(self)
        path = self._rows.get(name)
        if path is None and "*" in self._rows and not name.startswith("_"):
            path = f"{self._rows['*']}:{name}"
        if path is None:
            raise self._lacks(name)
        module, _, attribute = path.partition(":")
        try:
            value = getattr(import_module(module), attribute)
        except AttributeError:
            raise self._lacks(name) from None
        self.__dict__[name] = value
        return value

    def _lacks(self, name: str) -> AttributeError:
        tvm_name = self.__name__.replace("mlc_lab.", "tvm.", 1)
        why = reason(tvm_name, name)
        return AttributeError(missing(f"{tvm_name}.{name}") if why else
                              f"{self.__name__} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        names = {n for n in self._rows if n != "*"}
        if "*" in self._rows:
            names |= {n for n in dir(import_module(self._rows["*"])) if not n.startswith("_")}
        return sorted(names)


def __getattr__(name: str) -> Any:
    """The namespace of that name, made when first asked for."""
    rows = TABLE.get(name)
    if rows is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = Namespace(name, rows)
    # `from tvm.tir.transform import X` looks for a module X below the namespace's own name, and
    # says that X is missing only if the namespace is found there
    sys.modules.setdefault(made.__name__, made)
    return made


def by_dotted_name(dotted: str) -> Any:
    """The namespace called `dotted` under tvm ("tir.transform"), or None."""
    for name, text in DOTTED.items():
        if text == dotted:
            return globals().get(name) or __getattr__(name)
    return None


__all__ = ["DOTTED", "Namespace", "TABLE", "by_dotted_name"]
