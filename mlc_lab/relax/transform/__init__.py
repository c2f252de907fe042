"""The passes of Relax, one file each, under TVM's names: `relax.transform.FuseOps()(mod)`.

Each file says at its head what the pass means, shows a program before and after it (the tests run
these), and where its algorithm comes from. A pass is a value: calling it maps an IRModule to an
IRModule, and `Sequential([...])` puts several in a row. A name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...above import name_above

#: public name -> the module of this package that has it
PASSES: dict[str, str] = {
    "AlterOpImpl": "alter_op_impl",
    "AnnotateTIROpPattern": "annotate_tir_op_pattern",
    "AttachGlobalSymbol": "attach_global_symbol",
    "BindParams": "bind_params",
    "BindSymbolicVars": "bind_symbolic_vars",
    "BundleModelParams": "bundle_model_params",
    "CallTIRRewrite": "call_tir_rewrite",
    "CanonicalizeBindings": "canonicalize_bindings",
    "CombineParallelMatmul": "combine_parallel_matmul",
    "ConvertLayout": "convert_layout",
    "ConvertToDataflow": "convert_to_dataflow",
    "DataflowBlockPass": "decorators",
    "DeadCodeElimination": "dead_code_elimination",
    "DecomposeOpsForInference": "decompose_ops",
    "DecomposeOpsForTraining": "decompose_ops",
    "EliminateCommonSubexpr": "eliminate_common_subexpr",
    "ExpandTupleArguments": "expand_tuple_arguments",
    "FoldBatchnormToConv2D": "fold_batchnorm_to_conv2d",
    "FoldConstant": "fold_constant",
    "FunctionPass": "decorators",
    "FuseOps": "fuse_ops",
    "FuseOpsByPattern": "fuse_ops_by_pattern",
    "FusePooling": "fuse_pooling",
    "FuseTIR": "fuse_tir",
    "FuseTransposeMatmul": "fuse_transpose_matmul",
    "FusionPattern": "fuse_ops_by_pattern",
    "Gradient": "gradient",
    "InlinePrivateFunctions": "inline_private_functions",
    "KillAfterLastUse": "kill_after_last_use",
    "LambdaLift": "lambda_lift",
    "LegalizeOps": "legalize_ops",
    "LiftTransformParams": "lift_transform_params",
    "LowerAllocTensor": "lower_alloc_tensor",
    "LowerRuntimeBuiltin": "lower_runtime_builtin",
    "MergeCompositeFunctions": "merge_composite_functions",
    "Normalize": "normalize",
    "OpPatternKind": "annotate_tir_op_pattern",
    "PatternCheckContext": "fuse_ops_by_pattern",
    "RemovePurityChecking": "remove_purity_checking",
    "RemoveRedundantReshape": "remove_redundant_reshape",
    "RemoveUnusedOutputs": "remove_unused_outputs",
    "RemoveUnusedParameters": "remove_unused_parameters",
    "RewriteDataflowReshape": "rewrite_dataflow_reshape",
    "RunCodegen": "run_codegen",
    "ShareKernels": "share_kernels",
    "SpecializeKernels": "specialize_kernels",
    "StaticPlanBlockMemory": "static_plan_block_memory",
    "ToMixedPrecision": "to_mixed_precision",
    "ToNonDataflow": "to_non_dataflow",
    "TopologicalSort": "topological_sort",
    "UpdateParamStructInfo": "update_param_struct_info",
    "VMShapeLower": "vm_shape_lower",
    "dataflowblock_pass": "decorators",
    "function_pass": "decorators",
}


def __getattr__(name: str) -> Any:
    """A pass, loaded the first time it is asked for."""
    module = PASSES.get(name)
    if module is None:
        return name_above("relax.transform", name)
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Everything that can be asked for."""
    return sorted({*globals(), *PASSES})


__all__ = list(PASSES)  # for `from tvm.relax.transform import *`
