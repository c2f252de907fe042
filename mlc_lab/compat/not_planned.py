"""Names of TVM that are not planned here, and why.

An import of one says so (`finder.py`), and `docs/compatibility.md` lists them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

#: (namespace, names, why they are not planned); the first row that fits counts
#: (namespace, names, why they are not planned); the first row that fits counts
NOT_PLANNED: list[tuple[str, str, str]] = [
    ("tvm.testing", "call_* initializer after_initializer register_ffi *_summation timeout_job "
     "device_test echo nop identity_* object_use_count run_check_signal test_* terminate_self "
     "ErrorTest FrontendTestModule install_request_hook requires_libtorch IS_IN_CI "
     "SKIP_SLOW_TESTS strtobool fetch_model_from_url *_span_filling DEFAULT_TEST_TARGETS *_run",
     "hooks of TVM's C++ core, and of its own build"),
    ("tvm.contrib.tedd", "*", "how TVM draws, step by step: its three `viz_*` functions are here"),
    ("tvm.relax.frontend.nn.llm*", "FlashInfer* check_thread_limits get_max_num_threads_per_block",
     "kernels of attention in CUDA"),
    ("tvm.relax.frontend.nn.llm*", "tree_attn*",
     "trees of draft tokens (speculative decoding): a cache has sequences of tokens in a row"),
    ("tvm.tir.transform", "BF16ComputeLegalize BF16StorageLegalize",
     "the code generator computes with bfloat16 in float32 and keeps it in 16 bits itself, so that "
     "programs stay as they are written"),
    ("tvm.tir.transform", "FP8ComputeLegalize FP8StorageLegalize",
     "numbers of 8 bits with a fraction have names here, and are not compiled"),
    ("tvm.script.parser*", "core _core dispatch doc doc_core utils",
     "how TVM reads Python: here a script is read by `mlc_lab.script`, and "
     "`tvm.script.from_source` parses a text"),
    ("tvm.tir.transform", "MakePackedAPI MakeUnpackedAPI LowerTVMBuiltin LegalizePackedCalls "
     "CombineContextCall LowerDeviceStorageAccessInfo LowerDeviceKernelLaunch CoProcSync "
     "AnnotateDeviceRegions DecorateDeviceScope LowerCustomDatatypes",
     "how TVM's kernels are called by its runtime: here it is apache-tvm-ffi's way, which the code "
     "generator writes"),
    ("tvm.contrib.torch", "*", "modules of Relay's time: `optimize_torch` and `as_torch` are here"),
    ("*", "*MemoryPools *PoolInfo PoolInfoProperties usmp calculate_* *_memory_constraints",
     "memory pools of microcontrollers"),
    ("*", "hexagon vpi ext_dev disco vulkan rocm mali bifrost adreno intel_graphics vta stm32 rasp "
     "riscv_cpu VerifyVTCMLimit get_vtcm_compaction_passes *VTCM* *AsyncStridedMemCopy",
     "devices for which nothing is compiled here"),
    ("*", "mtl cl", "`metal` and `opencl` are their names here"),
    ("tvm.topi*", "*_alter_layout *_legalize *_infer_layout *_preprocess add_alter_layout "
     "declaration_* SQNN_* Workload logger POOL_TYPE_CODE cpp softmax_common try_get_* "
     "get_*_indices get_*_pixel get_inx get_closest_index can_convert_* InvalidShapeError "
     "hybrid_argwhere_* binary_search ceil_log2", "parts of Relay's operators, or of TVM's code"),
    ("tvm.topi*", "*winograd* bitserial_* binar* *_pack *NCHWc* *nchwc *gemm_weight* conv2d_NCHWc*",
     "one operator written several times, each for a device or a layout"),
    ("tvm.topi*", "sparse_conv2d* sparse_reshape sparse_fill_empty_rows csr* sparse_to_dense "
     "vision simulated_* *deformable* *correlation* *lstm* fifo_buffer *roi_* *reorg* "
     "fixed_point_*", "operators that only Relay's importers used"),
    ("tvm.ir", "Constructor GlobalTypeVar IncompleteType Relay* Tensor*Type Type Type[A-Z]* "
     "Tuple*Type FuncType BaseExpr", "types of Relay, whose place struct info has taken"),
    ("*", "Array Map String Object* Attrs DictAttrs make_node EnvFunc register_object "
     "register_extension convert_to_object Scriptable container",
     "containers and objects of TVM's C++ core: Python's own are used"),
    ("*", "ptx_* *mma* *simdgroup* tvm_*_matrix_sync tvm_fill_fragment *Fragment *Mma* "
     "*TensorCore InjectPTXAsyncCopy create_barriers vector* dp4a get_vscale_expr "
     "get_active_lane_mask q_multiply_*", "instructions of single machines"),
    ("*", "RPC* *rpc* parser tvm_wrap_excepthook relay_integration executor compile_*",
     "parts of TVM that need its C++ core or Relay"),
    ("*", "distributed ccl ccl_* IPC* LowerGPUIPC* RewriteCUDAGraph",
     "programs over several devices"),
]


def reason(namespace: str, name: str) -> str:
    """Why a name of a namespace ("tvm.tir.transform") is not planned, or ""."""
    for where, patterns, why in NOT_PLANNED:
        if fnmatchcase(namespace, where) and any(fnmatchcase(name, p) for p in patterns.split()):
            return why
    return ""


def missing(fullname: str) -> str:
    """What is said of a name that is not here."""
    why = reason(*fullname.rpartition(".")[::2])
    return f"{fullname} is not part of MLC Lab" + (
        f", and not planned: {why}" if why else ", which stands in for tvm in this process")


__all__ = ["NOT_PLANNED", "missing", "reason"]
