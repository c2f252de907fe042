"""Runtime modules: finding functions, timing, saving and loading."""

import hashlib
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

from mlc_lab.reading import DataError
from mlc_lab.runtime import cpu, load_module
from tests.runtime.kernels import build, write_add, write_fill


def write_both(m):
    write_add(m)
    write_fill(m)


@pytest.fixture(scope="module")
def module():
    return build(write_both, ["add", "fill"], ["mlc_lab_parallel_launch"])


def check(module):
    out = np.zeros(4, "float32")
    module["add"](out + 1, out + 2, 1.0, 0, out)
    assert out.tolist() == [3] * 4
    module["fill"](out)
    assert out.tolist() == [0, 1, 2, 3]
    with pytest.raises(TypeError, match="fill: expects 1 arguments, got 2"):
        module["fill"](out, out)


def test_functions_by_item_attribute_and_name(module):
    check(module)
    assert module.add is module["add"] is module.get_function("add")
    assert module.implements_function("fill") and not module.implements_function("x")
    with pytest.raises(AttributeError, match="no function 'ad'; did you mean 'add'"):
        module["ad"]


def test_functions_outlive_their_module():
    fill = build(write_fill, ["fill"], ["mlc_lab_parallel_launch"])["fill"]
    out = np.zeros(4, "float32")
    fill(out)
    assert out.tolist() == [0, 1, 2, 3]


def test_the_only_function_is_the_entry():
    out = np.zeros(4, "float32")
    build(write_fill, ["fill"], ["mlc_lab_parallel_launch"])(out)
    assert out[3] == 3


def test_imported_modules_are_searched(module):
    host = build(write_fill, ["other"][:0])
    host.import_module(module)
    assert host["add"] is module["add"] and host.imported_modules == [module]


def test_time_evaluator(module):
    out = np.zeros(1000, "float32")
    timer = module.time_evaluator("fill", cpu(), number=3, repeat=5)
    result = timer(out)
    assert len(result.results) == 5 and 0 < result.min <= result.median <= result.max
    assert "mean (ms)" in str(result) and "BenchmarkResult(min=" in repr(result)
    longer = module.time_evaluator("fill", cpu(), number=1, repeat=1, min_repeat_ms=5)(out)
    assert 0 < longer.mean < 5e-3
    with pytest.raises(TypeError, match="expects 1 arguments"):
        timer(out, out)


def test_sources(module):
    assert "define" in module.get_source("ll") and "__tvm_ffi_add" in module.get_source("asm")
    assert isinstance(module.get_source("obj"), bytes)
    with pytest.raises(ValueError, match="no source in the form 'cuda'"):
        module.get_source("cuda")


def test_object_files_load_without_a_linker(module, tmp_path):
    path = module.export_library(tmp_path / "lib.o")
    check(load_module(path))
    code = f"from mlc_lab.runtime import load_module\nprint(load_module({path!r}).function_names)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "('add', 'fill')"


def test_a_foreign_object_file_is_refused(tmp_path):
    (tmp_path / "x.o").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not written by export_library"):
        load_module(tmp_path / "x.o")
    with pytest.raises(FileNotFoundError):
        load_module(tmp_path / "y.o")


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_shared_libraries_load_here_and_in_plain_tvm_ffi(module, tmp_path):
    path = module.export_library(tmp_path / "lib.so")
    check(load_module(path))
    code = (
        "import numpy as np, tvm_ffi\n"
        f"m = tvm_ffi.load_module({path!r})\n"
        "x = np.zeros(4, 'float32'); m.fill(x); print(x.tolist())\n"
        "try: m.fill(3)\n"
        "except TypeError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "[0.0, 1.0, 2.0, 3.0]",
        "fill: argument 1 (C): expected a tensor, got an int",
    ]


def test_text_forms_can_be_saved(module, tmp_path):
    for ending in (".ll", ".s"):
        path = module.export_library(tmp_path / f"lib{ending}")
        assert "__tvm_ffi_fill" in open(path).read()
    with pytest.raises(ValueError, match="cannot tell"):
        module.export_library(tmp_path / "lib.zip")


@pytest.mark.parametrize("ending", [".o", pytest.param(".so", marks=pytest.mark.skipif(
    shutil.which("cc") is None, reason="no C compiler"))])
def test_a_damaged_file_is_refused(module, tmp_path, ending):
    path = module.export_library(tmp_path / f"lib{ending}")
    whole = open(path, "rb").read()
    rng = random.Random(0)
    for at in [rng.randrange(len(whole) - 100) for _ in range(40)]:
        broken = bytearray(whole)
        broken[at] ^= 0xFF
        (tmp_path / f"broken{ending}").write_bytes(broken)
        with pytest.raises(ValueError, match="is damaged"):
            load_module(tmp_path / f"broken{ending}")
    for size in [rng.randrange(70, len(whole) - 200) for _ in range(20)]:
        (tmp_path / f"short{ending}").write_bytes(whole[:size])
        with pytest.raises(ValueError, match="is damaged"):
            load_module(tmp_path / f"short{ending}")
    if ending == ".o":  # a linker may write a library; an object file is written here only
        (tmp_path / "broken.o").write_bytes(whole[:-79])
        with pytest.raises(DataError, match="checksum is missing"):
            load_module(tmp_path / "broken.o")
    check(load_module(path))


@pytest.mark.parametrize("old, new", [
    (b'"functions": ["', b'"functions": [7,"'), (b'"functions": [', b'"functions": {'),
    (b'"triple": "', b'"triple": ["'), (b'"needs": ', b'"need": ')])
def test_a_description_that_is_none_is_refused_although_its_checksum_agrees(
        module, tmp_path, old, new):
    whole = open(module.export_library(tmp_path / "lib.o"), "rb").read()[:-79]
    start = whole.index(b'{"functions": ')
    end = whole.index(b"\0", start)
    text = whole[start:end].replace(old, new)[: end - start].ljust(end - start)
    forged = whole[:start] + text + whole[end:]
    forged += b"mlc-lab sha256:" + hashlib.sha256(forged).hexdigest().encode()
    (tmp_path / "forged.o").write_bytes(forged)
    with pytest.raises(DataError, match="damaged|not written by|not JSON"):
        load_module(tmp_path / "forged.o")
