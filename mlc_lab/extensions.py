"""The one table of what upper layers give to lower ones; `above.py` looks things up in it.

A row is loaded when it is asked for first. To extend a lower layer, add a row here and ask for it
there with `above(...)`; nothing else reaches upward, and tests/test_layers.py looks for it.
"""

from __future__ import annotations

#: what is asked for -> "module" or "module:name"
ROWS: dict[str, str] = {
    # methods of nodes, modules, schedules and passes
    "script": "mlc_lab.script.printer:script",
    "script_underlined": "mlc_lab.script.spans:script_underlined",
    "show": "mlc_lab.script.show:show",
    "show_text": "mlc_lab.script.show:show_text",
    "explore": "mlc_lab.observe.session:explore",
    "explore_passes": "mlc_lab.observe.passes:record",
    "workbench": "mlc_lab.observe.workbench:open_workbench",
    "graph": "mlc_lab.observe.graph:graph_of",
    "show_run": "mlc_lab.observe.machine_run:run_of",
    "accesses": "mlc_lab.observe.access:accesses",
    "count_accesses": "mlc_lab.observe.counts:count_accesses",
    # languages
    "call of a function": "mlc_lab.relax.expr:call_global",
    "language of Relax": "mlc_lab.relax.script.names",
    "operators of tensors": "mlc_lab.topi",
    # other versions' words
    "names of T": "mlc_lab.compat.dialect:T_NAMES",
    "modules of scripts": "mlc_lab.compat.dialect:MODULE_NAMES",
    "names of relax": "mlc_lab.compat.relax_names:NAMES",
    "names of R": "mlc_lab.compat.relax_names:R_NAMES",
    # files
    "savable parts of TensorIR": "mlc_lab.tir.saving",
    "nodes of Relax": "mlc_lab.relax",
    "load a virtual machine's file": "mlc_lab.relax.vm.saving:load",
}

_TUNING = "mlc_lab.meta_schedule.passes"

#: namespace -> names that TVM has in it and that stand above it here -> where they are
NAMES: dict[str, dict[str, str]] = {
    "ir": {
        "Op": "mlc_lab.tir:Op", "PrimExpr": "mlc_lab.tir:PrimExpr", "Range": "mlc_lab.tir:Range",
        "PrimType": "mlc_lab.tir:PrimType", "PointerType": "mlc_lab.tir:PointerType",
        "RelaxExpr": "mlc_lab.relax:Expr", "register_op_attr": "mlc_lab.tir.op:register_op_attr",
        "register_intrin_lowering": "mlc_lab.tir.op:register_intrin_lowering",
    },
    "tir": {
        **{name: f"mlc_lab.schedule:{name}" for name in (
            "Schedule", "ScheduleError", "Trace", "Instruction", "InstructionKind", "BlockRV",
            "LoopRV", "ExprRV", "ScheduleState", "StmtSRef")},
        **{name: f"mlc_lab.compat.namespaces:tir_{name}" for name in (
            "schedule", "transform", "analysis", "stmt_functor", "tensor_intrin")},
    },
    "relax.transform": {name: f"{_TUNING}:{name}" for name in (
        "MetaScheduleApplyDatabase", "MetaScheduleTuneIRMod", "MetaScheduleTuneTIR")},
    "relax.pipeline": {"static_shape_tuning": f"{_TUNING}:static_shape_tuning"},
}

__all__ = ["NAMES", "ROWS"]
