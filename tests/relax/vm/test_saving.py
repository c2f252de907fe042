"""Executables as files: complete, checked, without pickle."""

import hashlib
import json

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.reading import DataError
from mlc_lab.relax.vm import saving
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((1, 16), "float32"), w: R.Tensor((16, 8), "float32")):
        with R.dataflow():
            y = R.nn.relu(R.matmul(x, w))
            z = R.add(y, R.const(1.5, "float32"))
            R.output(z)
        return z


W = np.random.default_rng(0).standard_normal((16, 8)).astype("float32")
X = np.random.default_rng(1).standard_normal((1, 16)).astype("float32")


@pytest.fixture(scope="module", params=["compiled", "bytecode"])
def saved(request, tmp_path_factory):
    mod = relax.transform.BindParams("main", {"w": W})(Net)
    ex = relax.build(mod, "llvm", exec_mode=request.param)
    path = tmp_path_factory.mktemp("saved") / "net.vm"
    assert ex.export_library(path) == str(path)
    return path


@pytest.mark.parametrize("load", [relax.vm.load, tvm.runtime.load_module, lambda p: p])
def test_a_loaded_executable_gives_the_same_answer(saved, load):
    vm = relax.VirtualMachine(load(str(saved)), tvm.cpu())
    np.testing.assert_allclose(vm["main"](X).numpy(), np.maximum(X @ W, 0) + 1.5, rtol=1e-5)
    assert "float32[1, 16]" in str(vm.profile("main", X))


def test_a_loaded_executable_can_be_saved_again(saved, tmp_path):
    again = tmp_path / "again.vm"
    relax.vm.load(saved).export_library(again)
    vm = relax.VirtualMachine(relax.vm.load(again), tvm.cpu())
    np.testing.assert_allclose(vm["main"](X).numpy(), np.maximum(X @ W, 0) + 1.5, rtol=1e-5)


def test_every_damaged_byte_is_noticed(saved, tmp_path):
    raw = saved.read_bytes()
    bad = tmp_path / "bad.vm"
    rng = np.random.default_rng(0)
    for at in [0, 9, 13, 21, 40, *rng.integers(60, len(raw), 20)]:
        damaged = bytearray(raw)
        damaged[at] ^= 0x40
        bad.write_bytes(damaged)
        with pytest.raises(ValueError, match="bad.vm"):
            relax.vm.load(bad)


@pytest.mark.parametrize("change", [
    lambda d: d.pop("functions"), lambda d: d.update(constants=[{"kind": "x"}]),
    lambda d: d.update(functions=[1]), lambda d: d.update(names=3),
    lambda d: d.update(machine=None), lambda d: d.update(code=[0, 10**12]),
    lambda d: d.update(constants=[{"kind": "tensor", "dtype": "float32", "shape": [10**12],
                                   "at": [0, 4 * 10**12]}]),
    lambda d: d.update(constants=[{"kind": "tensor", "dtype": "O", "shape": [1], "at": [0, 8]}]),
    lambda d: d["functions"][0]["code"].append(["exec", "import os"]),
    lambda d: d["functions"][0]["code"].append(["goto", 1]),
    lambda d: d["functions"][0]["code"].insert(0, ["if", 10**6, 1]),
    lambda d: d["functions"][0]["code"].insert(0, ["call", 0, 10**6, []]),
    lambda d: d["functions"][0]["code"].insert(0, ["call", 0, 0, [["c", -1]]]),
    lambda d: d["functions"][0]["code"].clear(),
    lambda d: d["functions"][0].update(registers=0), lambda d: d["names"].append(3),
    lambda d: d["functions"][0]["params"].append(3), lambda d: d.update(memory={"main": "x"}),
    lambda d: d.update(not_compiled={"main": 1}),
    lambda d: d.update(constants=[{"kind": "tensor", "dtype": "float32", "shape": [-1],
                                   "at": [0, 8]}])])
def test_a_forged_description_is_refused_as_data(saved, tmp_path, change):
    raw = saved.read_bytes()
    magic, version, size, rest, _ = saving._HEAD.unpack_from(raw)
    body = raw[saving._HEAD.size:]
    description = json.loads(body[:size])
    change(description)
    text = json.dumps(description).encode()
    body = text + body[size:]
    (tmp_path / "forged.vm").write_bytes(saving._HEAD.pack(
        magic, version, len(text), rest, hashlib.sha256(body).digest()) + body)
    with pytest.raises(DataError, match="forged.vm"):
        relax.vm.load(tmp_path / "forged.vm")


@pytest.mark.parametrize("size", [0, 5, 30, 200, -1])
def test_a_file_cut_short_is_refused_with_the_reason(saved, tmp_path, size):
    bad = tmp_path / "short.vm"
    bad.write_bytes(saved.read_bytes()[:size])
    with pytest.raises(ValueError, match="damaged|no saved executable"):
        relax.vm.load(bad)


def test_a_newer_format_is_named(saved, tmp_path):
    raw = bytearray(saved.read_bytes())
    raw[8:12] = (saving.VERSION + 1).to_bytes(4, "little")
    bad = tmp_path / "newer.vm"
    bad.write_bytes(raw)
    with pytest.raises(ValueError, match=f"version {saving.VERSION + 1}"):
        relax.vm.load(bad)


def test_an_interrupted_export_leaves_nothing_behind(tmp_path, monkeypatch):
    ex = relax.build(Net, "llvm")
    monkeypatch.setattr("os.replace", lambda a, b: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError):
        ex.export_library(tmp_path / "net.vm")
    assert list(tmp_path.iterdir()) == []
