"""tvm.testing: a file of tests in TVM's manner, run by pytest in a process of its own."""

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import testing
from mlc_lab.testing import plugin

HEAD = """
import mlc_lab.compat
mlc_lab.compat.install()
import pytest
import tvm, tvm.testing
from tvm.script import tir as T
"""


def ran(tmp_path, text, **env):
    """Names and outcomes of the tests of a file that ends in tvm.testing.main()."""
    path = tmp_path / "test_file.py"
    path.write_text(HEAD + textwrap.dedent(text)
                    + "\nif __name__ == '__main__':\n    tvm.testing.main()\n")
    said = subprocess.run(
        [sys.executable, str(path), "-rA", "-q", "-p", "no:cacheprovider"], cwd=tmp_path, text=True,
        capture_output=True, timeout=120, env={**os.environ, "PYTEST_ADDOPTS": "", **env}).stdout
    lines = re.findall(r"(?m)^(PASSED|FAILED|SKIPPED|XFAIL|ERROR) test_file\.py::(\S+)", said)
    return said, {name: outcome for outcome, name in lines}


def test_parameters_are_combined_or_go_together(tmp_path):
    said, found = ran(tmp_path, """
        size = tvm.testing.parameter(1, 10)
        kind = tvm.testing.parameter(by_dict={"small": 1, "large": 2})
        n, dtype = tvm.testing.parameters((16, "float32"), (512, "float16"), ids=["a", "b"])

        def test_all(size, kind):
            assert size in (1, 10) and kind in (1, 2)

        def test_together(n, dtype):
            assert (n, dtype) in [(16, "float32"), (512, "float16")]
    """)
    assert set(found) == {"test_all[1-small]", "test_all[1-large]", "test_all[10-small]",
                          "test_all[10-large]", "test_together[a]", "test_together[b]"}, said
    assert set(found.values()) == {"PASSED"}, said


def test_targets_and_devices(tmp_path):
    said, found = ran(tmp_path, """
        def test_all(target, dev):
            assert tvm.target.Target(target) and dev.exist

        @tvm.testing.exclude_targets("llvm")
        def test_not_llvm(target): pass

        @tvm.testing.parametrize_targets("llvm", "cuda")
        def test_two(target): pass

        @tvm.testing.known_failing_targets("opencl")
        def test_fails(target):
            assert target == "llvm"
    """, TVM_TEST_TARGETS="llvm;opencl")
    assert found["test_all[llvm]"] == found["test_all[opencl]"] == "PASSED", said
    assert "test_not_llvm[llvm]" not in found and "test_not_llvm[opencl]" in found
    assert found["test_two[llvm]"] == "PASSED" and "1 skipped" in said
    assert found["test_fails[opencl]"] == "XFAIL"


def test_a_kept_fixture_is_computed_once_and_copied(tmp_path):
    said, found = ran(tmp_path, """
        made = []
        n = tvm.testing.parameter(1, 2)

        @tvm.testing.fixture(cache_return_value=True)
        def data(n):
            made.append(n)
            return [n]

        def test_first(data): data.append(0)
        def test_second(data): assert len(data) == 1
        def test_third(): assert sorted(made) == [1, 2]
    """)
    assert set(found.values()) == {"PASSED"}, said


def test_before_and_after(tmp_path):
    said, found = ran(tmp_path, """
        class TestIf(tvm.testing.CompareBeforeAfter):
            transform = tvm.tir.transform.Simplify()

            def before(A: T.Buffer(1, "int32")):
                if True:
                    A[0] = 42
                else:
                    A[0] = 5

            def expected(A: T.Buffer(1, "int32")):
                A[0] = 42

        class TestWrong(TestIf):
            def expected(A: T.Buffer(1, "int32")):
                A[0] = 43

        class TestRefused(TestIf):
            def transform(self):
                @tvm.tir.transform.prim_func_pass(opt_level=0)
                def refuse(func, mod, ctx):
                    raise ValueError("no")
                return refuse
            expected = ValueError

        class TestModule(TestIf):
            class before:
                def main(A: T.Buffer(1, "int32")):
                    A[0] = 1 + 1
            class expected:
                def main(A: T.Buffer(1, "int32")):
                    A[0] = 2
    """)
    assert found == {"TestIf::test_compare": "PASSED", "TestWrong::test_compare": "FAILED",
                     "TestRefused::test_compare": "PASSED", "TestModule::test_compare": "PASSED"
                     }, said
    assert "the program after is not the one expected" in said


def test_what_is_not_here_is_skipped_with_the_reason(request):
    plugin.pytest_configure(request.config)  # the marks are known
    marks = testing.requires_cudnn.marks()
    assert [m.name for m in marks] == ["cudnn", "skip"] and "cudnn" in marks[1].kwargs["reason"]
    assert [m.name for m in testing.requires_cudnn.marks("optional")] == ["cudnn"]
    assert [m.name for m in testing.requires_llvm.marks()] == ["llvm"]
    with pytest.raises(ValueError, match="compile-only"):
        testing.requires_cuda(support_required="sometimes")
    with pytest.raises(AttributeError, match="requires_nothing"):
        testing.requires_nothing


def test_targets_are_llvm_unless_others_are_named(monkeypatch):
    monkeypatch.delenv("TVM_TEST_TARGETS", raising=False)
    assert [t for t, _ in testing.enabled_targets()] == ["llvm"]
    assert testing.device_enabled("llvm -num-cores=4") and not testing.device_enabled("opencl")
    monkeypatch.setenv("TVM_TEST_TARGETS", "opencl; llvm ;opencl;nothing")
    assert [t for t, _ in testing.enabled_targets()] == ["opencl", "llvm"]


def test_gradients_and_expressions_are_compared():
    x = np.random.rand(3, 2).astype("float32")
    testing.check_numerical_grads(lambda x: (x * x).sum(), {"x": x}, {"x": 2 * x})
    testing.check_numerical_grads(lambda x, y: x * y, [x, x + 1], [x + 1, x])
    with pytest.raises(AssertionError, match="gradient of 'x'"):
        testing.check_numerical_grads(lambda x: (x * x).sum(), {"x": x}, {"x": 3 * x + 1})
    with pytest.raises(AssertionError, match="shape"):
        testing.check_numerical_grads(lambda x: x.sum(), [x], [x.T])
    n = tvm.tir.Var("n", "int32")
    testing.assert_prim_expr_equal(n + n, n * 2)
    with pytest.raises(AssertionError, match="not proved"):
        testing.assert_prim_expr_equal(n, n + 1)


def test_values_go_through_a_packed_function_and_come_back():
    most = (1 << 63) - 1
    assert tvm.testing.echo(np.int64(most)) == most
    device = tvm.opencl(3)
    assert tvm.testing.device_test(device, device.device_type, 3) == device
    with pytest.raises(AssertionError):
        tvm.testing.device_test(device, device.device_type, 2)
