"""`import tvm` in a process where `mlc_lab.compat.install()` was called."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(code):
    """The output of a program in a process of its own."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True,
                          text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_every_import_form_of_the_course_resolves():
    run("""
        import mlc_lab
        mlc_lab.compat.install()
        mlc_lab.compat.install()
        import tvm
        import tvm.testing, tvm.nd, tvm.script.tir, tvm.tir.transform, tvm.runtime, tvm.target
        import tvm.script.tir as T1
        from tvm.script import tir as T2, ir as I
        from tvm.script.parser import tir as T3
        from tvm.tir import Schedule
        from tvm import tir, arith, nd, runtime, ir
        from tvm.ir import IRModule, structural_equal, assert_structural_equal
        from tvm.ir.module import IRModule as again
        from tvm.tir.schedule import Trace, BlockRV
        from tvm.tir.stmt_functor import post_order_visit
        from tvm.tir.analysis import verify_well_formed
        from tvm.ir.transform import PassContext
        from tvm.target import Target
        assert tvm is mlc_lab and T1 is T2 is T3 is mlc_lab.script.tir and again is IRModule
        assert tvm.tir.Schedule is Schedule is mlc_lab.schedule.Schedule
        assert mlc_lab.script.tir.__spec__.name == "mlc_lab.script.tir"
        import mlc_lab.tir.expr, tvm.tir.expr
        assert tvm.tir.expr is mlc_lab.tir.expr
        for name in ("array", "empty", "NDArray"):
            getattr(tvm.nd, name)
        for name in ("cpu", "cuda", "device", "build", "lower", "register_func",
                     "get_global_func", "IRModule", "transform", "instrument"):
            getattr(tvm, name)
        assert callable(tvm.build) and callable(tvm.lower)
    """)


def test_what_is_not_there_says_so():
    out = run("""
        import mlc_lab.compat
        mlc_lab.compat.install()
        try:
            import tvm.relay
        except ModuleNotFoundError as error:
            print(error)
        try:
            import tvm
            tvm.no_such_name
        except AttributeError as error:
            print(error)
    """)
    assert "tvm.relay is not part of MLC Lab" in out and "no_such_name" in out


def test_a_real_tvm_is_not_replaced():
    out = run("""
        import sys, types
        real = sys.modules["tvm"] = types.ModuleType("tvm")
        real.__version__ = "0.27.0"
        import mlc_lab.compat
        try:
            mlc_lab.compat.install()
        except ImportError as error:
            print(error)
        assert sys.modules["tvm"] is real
    """)
    assert "a real TVM is imported already (version 0.27.0" in out
    assert "import mlc_lab as tvm" in out


def test_uninstall_gives_the_name_back():
    run("""
        import sys, mlc_lab.compat
        mlc_lab.compat.install()
        import tvm.script.tir
        mlc_lab.compat.uninstall()
        assert not [n for n in sys.modules if n.split(".")[0] == "tvm"]
        assert not [f for f in sys.meta_path if type(f).__name__ == "TvmFinder"]
        import mlc_lab.script.tir as T
        assert T.float32(1).value == 1.0
    """)


def test_the_extension_of_ipython():
    pytest.importorskip("IPython")
    run("""
        import textwrap
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "mlc_lab")
        result = shell.run_cell(textwrap.dedent('''
            import tvm
            from tvm.script import ir as I, tir as T
            @I.ir_module
            class Cell:
                @T.prim_func
                def main(A: T.Buffer((4,), "float32")):
                    for i in range(4):
                        A[i] = 1.0
        '''))
        result.raise_error()
        assert "T.float32(1.0)" in shell.user_ns["Cell"].script()
        bad = shell.run_cell(textwrap.dedent('''
            @T.prim_func
            def wrong(A: T.Buffer((4,), "float32")):
                A[0] = missing
        '''))
        error = bad.error_in_exec
        assert error.line == 3 and error.source_line.strip() == "A[0] = missing", error
        shell.run_line_magic("unload_ext", "mlc_lab")
    """)


def test_importing_is_cheap_and_loads_nothing():
    out = run("""
        import sys, time
        start = time.perf_counter()
        import mlc_lab
        print(time.perf_counter() - start)
        loaded = [n for n in ("numpy", "llvmlite", "tvm_ffi") if n in sys.modules]
        assert not loaded, loaded
        assert "Schedule" not in dir(mlc_lab) and "tir" in dir(mlc_lab)
    """)
    assert float(out) < 0.35


def test_import_mlc_lab_as_tvm_reads_like_the_course():
    run("""
        import mlc_lab as tvm
        from mlc_lab.script import tir as T
        assert tvm.tir.Schedule.__name__ == "Schedule"
        assert tvm.tir.transform.Simplify and tvm.tir.analysis.verify_well_formed
        assert tvm.nd.array([1.0]).numpy()[0] == 1.0
        import mlc_lab.build, mlc_lab.lower.pipeline
        assert callable(tvm.build) and callable(tvm.lower)
        import mlc_lab.lower as package
        assert package.pipeline.__name__ == "mlc_lab.lower.pipeline"
        tvm.testing.assert_allclose(tvm.nd.array([1.0, 2.0]), [1.0, 2.0])
    """)


def test_contrib_is_found_by_its_names():
    out = run("""
        import mlc_lab.compat
        mlc_lab.compat.install()
        import tvm
        from tvm.contrib import cblas, utils
        from tvm.contrib.utils import tempdir
        print(bool(tvm.get_global_func("tvm.contrib.cblas.matmul")), tempdir().listdir())
    """)
    assert "True []" in out


def test_the_helpers_of_tvms_schedule_tests():
    run("""
        import mlc_lab
        mlc_lab.compat.install()
        from tvm import te
        from tvm.tir import Schedule
        from tvm.tir.schedule.schedule import BlockRV
        from tvm.tir.schedule.trace import Trace
        from tvm.topi.utils import get_const_int, get_const_tuple
        from tvm.tir.schedule.testing import (
            assert_structural_equal_ignore_global_symbol, verify_trace_roundtrip)

        A = te.placeholder((8,), name="A")
        f = te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1.0, name="B")])
        assert get_const_tuple(A.shape) == (8,) and get_const_int(A.shape[0] * 2) == 16
        sch = Schedule(f)
        sch.split(sch.get_loops("B")[0], factors=[None, 4])
        assert "i_0" in verify_trace_roundtrip(sch, f).mod.script()
        assert_structural_equal_ignore_global_symbol(f, f.with_attr("global_symbol", "g"))
        try:
            verify_trace_roundtrip(sch, f.with_attr("x", 1))
        except AssertionError:
            pass
        else:
            raise SystemExit("another program was taken for the same")
    """)


def test_what_is_missing_is_named_by_its_own_name():
    out = run("""
        import mlc_lab.compat
        mlc_lab.compat.install()
        for text in ("from tvm.tir.transform import Nothing", "from tvm.nd import nothing",
                     "import tvm.script.parser.nothing.more", "import tvm.relax.backend.contrib"):
            try:
                exec(text)
            except ImportError as error:
                print(error)
        from tvm.script.parser.relax.entry import TensorProxy
        from tvm.ir.base import structural_equal, IRModule
    """)
    said = out.splitlines()
    assert "'Nothing' from 'mlc_lab.tir.transform'" in said[0]
    assert "'nothing' from 'mlc_lab.nd'" in said[1]
    assert "tvm.script.parser.nothing is not part of MLC Lab" in said[2]
    assert "tvm.relax.backend.contrib is not part of MLC Lab" in said[3]


def test_tuples_of_types_that_old_code_asks_by():
    run("""
        import mlc_lab
        mlc_lab.compat.install()
        from tvm._ffi.base import TVMError, numeric_types, py_str, string_types
        import tvm
        assert isinstance("a", string_types) and isinstance(1.5, numeric_types)
        assert py_str(b"a") == "a" and TVMError is tvm.error.TVMError
    """)


def test_the_entries_of_the_parser():
    run("""
        import mlc_lab
        mlc_lab.compat.install()
        import tvm
        assert tvm.script.parser.relax.entry.ObjectProxy is tvm.script.relax.Object
        from tvm.script.parser.tir.entry import Buffer, macro, prim_func
        from tvm.script.parser.relax.entry import TensorProxy
        from tvm.script import tir as T
        assert prim_func is T.prim_func and Buffer is T.Buffer and macro is T.macro
    """)
