"""Names that scripts import first, by the paths that TVM has for them."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import mlc_lab.compat

mlc_lab.compat.install()

import tvm
from tvm.script import tir as T


@pytest.fixture(autouse=True)
def installed():
    """Other tests take it away."""
    mlc_lab.compat.install()


LINES = [
    "from tvm.auto_scheduler import _ffi_api, loop_state, PreloadCustomSketchRule",
    "from tvm.auto_scheduler.loop_state import State",
    "from tvm.auto_scheduler._ffi_api import SearchPolicyUtilsGetConsumers",
    "from tvm.topi.sparse.utils import random_bsr_matrix",
    "from tvm.te.hybrid import script, build, HybridModule",
    "from tvm.te.hybrid.runtime import HYBRID_GLOBALS",
    "from tvm.relax.frontend.nn.llm import PagedKVCache, llama_rope, kv_cache, position_embedding",
    "from tvm.relax.frontend.nn.llm.kv_cache import RopeMode, TIRPagedKVCache",
    "from tvm.relax.backend import pattern_registry, patterns",
    "from tvm.relax.backend.patterns import make_conv2d_pattern, make_residual_block_pattern",
    "from tvm.relax.backend.pattern_registry import get_pattern, register_patterns",
    "from tvm.script.ir_builder.base import IRBuilder, IRBuilderFrame",
    "from tvm.script.ir_builder import IRBuilder, ir as I, relax as R, tir as T",
    "from tvm.script.ir_builder.relax import arg, emit, function",
    "from tvm.script.parser import from_source, ir as I, relax as R, tir as T",
    "from tvm.script.parser.ir.entry import ir_module",
    "from tvm.script.parser.tir.entry import *",
    "from tvm.script.parser.relax.entry import function, macro",
    "from tvm.dlight.gpu import LowBatchGEMV, RMSNorm, Matmul, Fallback",
    "from tvm.dlight.base import ScheduleRule, normalize_prim_func",
    "from tvm.relax.backend import DispatchSampling, DispatchSortScan",
    "from tvm.tir.transform import LiftAttrScope",
    "from tvm.contrib.cc import create_executable, create_staticlib, cross_compiler, get_cc",
    "from tvm.contrib.utils import is_source_path, which, tempdir",
    "from tvm.testing import skip_if_wheel_test, skip_if_no_reference_system",
    "from tvm.tir.transform import PrimFuncPass, ReduceBranchingThroughOvercompute",
    "from tvm.meta_schedule.tune import TuneConfig",
    "from tvm.s_tir import Schedule, meta_schedule, dlight",
    "from tvm.s_tir.schedule import Trace",
    "from tvm.s_tir.transform import Simplify",
    "import tvm.s_tir.tensor_intrin",
]


@pytest.mark.parametrize("line", LINES)
def test_a_name_is_where_tvm_has_it(line):
    found: dict = {}
    exec(line, found)
    assert all(value is not None for name, value in found.items() if name != "__builtins__")


def test_patterns_of_what_libraries_take_over():
    from tvm import relax
    from tvm.relax.backend.patterns import (
        make_fused_bias_activation_pattern, make_matmul_pattern, make_residual_block_pattern,
    )
    from tvm.script import relax as R

    @tvm.script.ir_module
    class Model:
        @R.function
        def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32"),
                 b: R.Tensor((8,), "float32")):
            with R.dataflow():
                wt = R.permute_dims(w)
                product = R.matmul(x, wt)
                biased = R.add(product, b)
                active = R.nn.relu(biased)
                out = R.add(x, active)
                R.output(out)
            return out

    pattern, parts = make_residual_block_pattern(
        make_matmul_pattern(True, "relax.nn.relu", transposed_rhs=True))
    assert set(parts) == {"lhs", "rhs", "root", "bias", "residual"}
    found = []

    def check(context):
        found.append({name: str(e) for name, e in context.annotated_expr.items()})
        return True

    mod = relax.transform.FuseOpsByPattern([("lib.block", pattern, parts, check)])(Model)
    assert found[0]["residual"] == "x" and found[0]["bias"] == "b" and found[0]["rhs"] == "w"
    assert any("Composite" in (f.attrs or {}) for f in mod.functions.values())
    plain, parts = make_fused_bias_activation_pattern("relax.matmul", activation="relax.nn.relu")
    assert set(parts) == {"lhs", "rhs", "root"}
    body = relax.transform.FuseOpsByPattern([("lib.matmul", plain)])(Model)
    assert len(body.functions) == 1  # the bias stands between


@pytest.mark.parametrize("line, name", [
    ("from tvm.te.hybrid import loom", "loom"), ("import tvm; tvm.te.loom", "loom"),
    ("from tvm.relax.frontend.nn.llm import tree_attn", "tree_attn"),
    ("from tvm.tir.transform import MakePackedAPI", "MakePackedAPI"),
    ("import tvm.relax.frontend.nn.llm.tree_attn", "tree_attn"),
    ("from tvm.meta_schedule.tune import Tuner", "Tuner"),
    ("from tvm.script.parser import loom", "loom")])
def test_a_missing_name_says_so_by_itself(line, name):
    with pytest.raises((ImportError, AttributeError), match=name):
        exec(line, {})


@pytest.mark.parametrize("line, words", [
    ("from tvm.tir.transform import MakePackedAPI", "transform.MakePackedAPI.*code generator"),
    ("import tvm; tvm.tir.transform.LowerTVMBuiltin", "LowerTVMBuiltin.*code generator"),
    ("from tvm.tir.transform import Simplify, LowerCustomDatatypes", "LowerCustomDatatypes"),
    ("from tvm.relax import distributed", "several devices"),
    ("from tvm.tir.transform import BF16ComputeLegalize", "BF16ComputeLegalize.*float32"),
    ("import tvm; tvm.tir.transform.FP8StorageLegalize", "FP8StorageLegalize.*8 bits"),
    ("from tvm.script.parser import core", "parser.core.*from_source"),
    ("import tvm.script.parser.core", "parser.core.*from_source"),
    ("from tvm.script.parser.core.entry import parse", "parser.core"),
    ("from tvm.script.parser._core import doc", "parser._core"),
    ("from tvm.topi.nn import bitserial_dense", "bitserial_dense.*several times"),
    ("import tvm.relax.distributed", "tvm.relax.distributed.*several devices"),
    ("from tvm import rpc", r"tvm\.rpc is not part.*C\+\+ core"),
    ("from tvm.ir import TensorAffineType", "TensorAffineType.*struct info"),
    ("from tvm.relax.frontend.nn.llm import tree_attn", "draft tokens")])
def test_a_name_that_is_not_planned_says_why(line, words):
    with pytest.raises((ImportError, AttributeError), match=f"(?s){words}"):
        exec(line, {})


def test_a_name_that_is_not_planned_is_not_there():
    assert not hasattr(tvm.tir.transform, "MakePackedAPI")
    with pytest.raises(ImportError, match="cannot import name 'loom'"):
        exec("from tvm.tir.transform import loom", {})
    mlc_lab.compat.uninstall()
    import sys

    assert all(type(f).__module__ != "mlc_lab.compat.finder" for f in sys.meta_path)
    mlc_lab.compat.install()


def test_another_compiler_with_files_of_its_own(tmp_path):
    from tvm.contrib import cc, utils

    if cc.get_cc() is None:
        pytest.skip("there is no C compiler")
    assert utils.is_source_path("a.cc") and not utils.is_source_path("a.py")
    source = tmp_path / "seven.c"
    source.write_text("int seven(void) { return 7; }\n")
    calls = []

    def compile(outputs, objects, options=None):
        calls.append((objects, options))
        cc.create_shared(outputs, objects, options)

    func = cc.cross_compiler(compile, ["-O1"], add_files=[str(source)])
    assert func.output_format == "so"

    @T.prim_func
    def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] * T.float32(2)

    path = str(tmp_path / "lib.so")
    tvm.build(twice, "llvm").export_library(path, fcompile=func)
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tvm.runtime.load_module(path)["twice"](a, b)
    np.testing.assert_array_equal(b, a * 2)
    assert calls[0][0][-1] == str(source) and calls[0][1][0] == "-O1"
    main = tmp_path / "main.c"
    main.write_text("int main(void) { return 3; }\n")
    cc.create_executable(str(tmp_path / "main"), [str(main)])
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 3
    with pytest.raises(RuntimeError, match="failed"):
        cc.create_executable(str(tmp_path / "none"), [str(tmp_path / "none.c")])
