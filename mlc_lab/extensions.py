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
    "index maps": "mlc_lab.arith.index_map",
    "show": "mlc_lab.script.show:show",
    "show_text": "mlc_lab.script.show:show_text",
    "explore": "mlc_lab.observe.session:explore",
    "explore_passes": "mlc_lab.observe.passes:record",
    "workbench": "mlc_lab.observe.workbench:open_workbench",
    "live": "mlc_lab.observe.live:explore_live",
    "graph": "mlc_lab.observe.graph:graph_of",
    "show_run": "mlc_lab.observe.machine_run:run_of",
    "accesses": "mlc_lab.observe.access:accesses",
    "count_accesses": "mlc_lab.observe.counts:count_accesses",
    # views of a notebook, and pages of them
    "view of accesses": "mlc_lab_widgets.access",
    "view of a browser's GPU": "mlc_lab_widgets.webgpu",
    "view of threads": "mlc_lab_widgets.threads",
    "view of a workbench": "mlc_lab_widgets.workbench",
    "view of choices": "mlc_lab_widgets.live",
    "view of an exercise": "mlc_lab_widgets.card",
    "view of a class": "mlc_lab_widgets.report",
    "pages of a class in a room": "mlc_lab_widgets.room",
    "view of typed text": "mlc_lab_widgets.typed",
    "view of a run": "mlc_lab_widgets.machine",
    "view of a recording": "mlc_lab_widgets.stepper",
    "picture of a recording": "mlc_lab_widgets.picture",
    "view of passes": "mlc_lab_widgets.passes",
    "view of a graph": "mlc_lab_widgets.graph",
    "view of a search": "mlc_lab_widgets.board",
    "comparison": "mlc_lab_widgets.comparison:compare",
    # devices
    "time of a model": "mlc_lab.observe.gpu.counts:time_of_call",
    "races of a call": "mlc_lab.observe.gpu.races:races_of_call",
    "driver of a real device": "mlc_lab.backend.device:real_driver",
    # languages
    "call of a function": "mlc_lab.relax.expr:call_global",
    "language of Relax": "mlc_lab.relax.script.names",
    "operators of tensors": "mlc_lab.topi",
    # other versions' words
    "names of T": "mlc_lab.compat.dialect:T_NAMES",
    "modules of scripts": "mlc_lab.compat.dialect:MODULE_NAMES",
    "methods of schedules": "mlc_lab.compat.dialect:METHODS",
    "parameters of schedules": "mlc_lab.compat.dialect:PARAMETERS",
    "names of relax": "mlc_lab.compat.relax_names:NAMES",
    "early operators": "mlc_lab.compat.early_operators:EARLY_OPERATORS",
    "early names of Relax": "mlc_lab.compat.early_relax:elsewhere",
    "struct info of an early Var": "mlc_lab.compat.early_relax:var_info",
    "names of R": "mlc_lab.compat.relax_names:R_NAMES",
    "search by one object of options": "mlc_lab.compat.tune_config:tune_tir",
    # files
    "savable parts of TensorIR": "mlc_lab.tir.saving",
    "savable parts of TE": "mlc_lab.te.saving",
    "nodes of Relax": "mlc_lab.relax",
    "load a virtual machine's file": "mlc_lab.relax.vm.saving:load",
    # what a file of a package asks of those that are built on it
    "is_base_of": "mlc_lab.relax.struct_info_check:is_base_of",
    "bind_params": "mlc_lab.relax.transform.bind_params:bind_params",
    "bind_symbolic_vars": "mlc_lab.relax.transform.bind_symbolic_vars:bind_symbolic_vars",
    "struct info of a PrimFunc": "mlc_lab.compat.analysis:struct_info_of",
    "get_static_type": "mlc_lab.relax.analysis:get_static_type",
    "inline_functions":
        "mlc_lab.relax.transform.inline_private_functions:inline_functions",
    "operators of Relax": "mlc_lab.relax.op",
    "shape_of": "mlc_lab.relax.op:shape_of",
    "attributes of a call": "mlc_lab.relax.op.registry:default_attrs",
    "infer_call": "mlc_lab.relax.op.registry:infer_call",
    "decorators of scripts": "mlc_lab.script.entry",
    "cast": "mlc_lab.tir.op:cast",
    "const": "mlc_lab.tir.op:const",
    "match_values": "mlc_lab.tir.op:match_values",
    "reductions of TE": "mlc_lab.tir.reduction",
    "rules of ONNX": "mlc_lab.relax.frontend.onnx.rules",
    "inline_cheap": "mlc_lab.dlight.stages:inline_cheap",
    "default rules": "mlc_lab.dlight.cpu:default_rules",
    "default rules of a GPU": "mlc_lab.dlight.gpu:default_rules",
    "machine of GPU rules": "mlc_lab.dlight.gpu.threads:GPUMachine",
    "schedule rules": "mlc_lab.meta_schedule.tvm_rules:rules_of",
    "postprocessors": "mlc_lab.meta_schedule.defaults:default_postprocs",
    "mutators": "mlc_lab.meta_schedule.defaults:default_mutators",
    "search strategies": "mlc_lab.meta_schedule.search_strategy:MAKERS",
    "space generators": "mlc_lab.meta_schedule.space_generator:MAKERS",
    "cost models": "mlc_lab.meta_schedule.cost_model:MAKERS",
    "module that runs": "mlc_lab.build:build",
    "task schedulers": "mlc_lab.meta_schedule.task_scheduler:MAKERS",
    "tuning board": "mlc_lab.meta_schedule.board:Board",
    "code of programs": "mlc_lab.observe.lowered:code_of",
    "read a tree of attempts": "mlc_lab.observe.workbench_file:read",
    "drawing of a graph": "mlc_lab.observe.graph_drawing",
    "DaskRunner": "mlc_lab.meta_schedule.measure.dask_runner:DaskRunner",
    "constructors of patterns": "mlc_lab.relax.dpl.make",
    "take of torch": "mlc_lab.relax.frontend.torch.indexing:taken",
    "exporter of nn": "mlc_lab.relax.frontend.nn.exporter:Exporter",
    "virtual machine": "mlc_lab.relax.vm.machine:VirtualMachine",
    "save a virtual machine's file": "mlc_lab.relax.vm.saving:save",
    "inspecting of a virtual machine": "mlc_lab.relax.vm.inspecting",
    "head of a Relax function": "mlc_lab.relax.script.parser:head_info",
    "words of R": "mlc_lab.relax.script.parser:WORDS",
    "script with marks": "mlc_lab.script.spans:script_with_marks",
    "export of a library": "mlc_lab.runtime.export:export_library",
    "load of a library": "mlc_lab.runtime.export:load_module",
    "BufferStore": "mlc_lab.tir.stmt:BufferStore",
    "BufferRegion": "mlc_lab.tir.stmt:BufferRegion",
    "specialize": "mlc_lab.tir.functor:specialize",
    "substitute": "mlc_lab.tir.functor:substitute",
    "a tensor of an array": "mlc_lab.runtime.ndarray:array",
    "eval_set": "mlc_lab.arith.interval_arithmetic:eval_set",
    "Target": "mlc_lab.target:Target",
    "Analyzer": "mlc_lab.arith.analyzer:Analyzer",
}

_TUNING = "mlc_lab.meta_schedule.passes"

#: namespace -> names that TVM has in it and that stand above it here -> where they are
NAMES: dict[str, dict[str, str]] = {
    "ir": {
        "Op": "mlc_lab.tir:Op", "PrimExpr": "mlc_lab.tir:PrimExpr", "Range": "mlc_lab.tir:Range",
        "PrimType": "mlc_lab.tir:PrimType", "PointerType": "mlc_lab.tir:PointerType",
        "base": "mlc_lab.compat.namespaces:ir_base", "RelaxExpr": "mlc_lab.relax:Expr",
        "register_op_attr": "mlc_lab.tir.op:register_op_attr",
        "register_intrin_lowering": "mlc_lab.tir.op:register_intrin_lowering",
    },
    "tir": {
        **{name: f"mlc_lab.schedule:{name}" for name in (
            "Schedule", "ScheduleError", "Trace", "Instruction", "InstructionKind", "BlockRV",
            "LoopRV", "ExprRV", "ScheduleState", "StmtSRef")},
        **{name: f"mlc_lab.compat.namespaces:tir_{name}" for name in (
            "schedule", "transform", "analysis", "stmt_functor")},
        "tensor_intrin": "mlc_lab.compat.tensor_intrin",
        "Any": "mlc_lab.compat.passes:unknown_extent",
        "BlockDependenceInfo": "mlc_lab.compat.block_dependence_info:BlockDependenceInfo",
        "block_dependence_info": "mlc_lab.compat.block_dependence_info",
        "block_scope": "mlc_lab.compat.block_dependence_info",
        "comm_reducer": "mlc_lab.tir.reduction:comm_reducer",
        "sum": "mlc_lab.tir.reduction:sum",
        "subtract": "mlc_lab.tir.op:sub", "multiply": "mlc_lab.tir.op:mul",
        "stmt_list": "mlc_lab.compat.passes:stmt_list", "stmt_seq": "mlc_lab.tir.stmt:seq",
    },
    "tir.expr": {
        "BinaryOpExpr": "mlc_lab.tir.expr:BinaryOp", "CmpExpr": "mlc_lab.tir.expr:CmpOp",
        "EqualOp": "mlc_lab.tir.expr:EQ", "NotEqualOp": "mlc_lab.tir.expr:NE",
        "ExprOp": "mlc_lab.tir.expr:PrimExpr", "PrimExprWithOp": "mlc_lab.tir.expr:PrimExpr",
        "LogicalExpr": "mlc_lab.tir.expr:BinaryOp",
    },
    "te": {"hybrid": "mlc_lab.compat.hybrid"},
    "topi": {"testing": "mlc_lab.testing.topi"},
    "relax": {"testing": "mlc_lab.testing.relax"},
    "meta_schedule": {name: f"mlc_lab.compat.tune_config:{name}" for name in (
        "TuneConfig", "ReplayTraceConfig", "ReplayFuncConfig", "EvolutionarySearchConfig")} | {
            "default_config": "mlc_lab.compat.default_config"},
    "meta_schedule.tune": {"TuneConfig": "mlc_lab.compat.tune_config:TuneConfig"},
    "relax.transform": {name: f"{_TUNING}:{name}" for name in (
        "MetaScheduleApplyDatabase", "MetaScheduleTuneIRMod", "MetaScheduleTuneTIR")} | {
            "ToANF": "mlc_lab.relax.transform.normalize:Normalize"},
    "relax.pipeline": {"static_shape_tuning": f"{_TUNING}:static_shape_tuning"},
}

__all__ = ["NAMES", "ROWS"]
