"""A run of the virtual machine as data: steps, registers, and the life of memory."""

import json

import numpy as np
import pytest

import mlc_lab
from mlc_lab import relax

from .pipelines import module


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    vm = relax.VirtualMachine(relax.build(module(), "llvm"), mlc_lab.cpu())
    args = [rng.standard_normal(s).astype("float32") for s in ((1, 64), (64, 32), (32, 10))]
    trace = vm.trace("main", *args)
    assert np.allclose(trace.result.numpy(), vm["main"](*args).numpy())
    return trace.show()


def test_every_instruction_of_the_run_is_a_step(run):
    data = run.to_dict()
    (code,) = data["code"]
    assert code["function"] == "main" and len(code["lines"]) > len(data["steps"]) - 1
    for step in data["steps"]:
        assert step["name"] in code["lines"][step["at"]]
    kernels = [s["name"] for s in data["steps"] if s["kernel"]]
    assert kernels[0].startswith("fused_matmul") and len(kernels) >= 3


def test_registers_can_be_followed(run):
    held = {}
    for step in run.to_dict()["steps"]:
        if step["kernel"]:
            assert set(step["reads"]) <= set(held)
        for name in step["unset"]:
            del held[name]
        held.update(step["set"])
    assert "1x10 float32" in held.values()


def test_memory_is_held_as_long_as_it_lives(run):
    data = run.to_dict()
    for number, held in enumerate(data["live"]):
        assert held == sum(s["size"] for s in data["storages"]
                           if s["from"] <= number < s["to"])
    for storage in data["storages"]:
        for tensor in storage["tensors"]:
            assert storage["from"] <= tensor["from"] < tensor["to"] <= storage["to"]
            assert tensor["offset"] + tensor["size"] <= storage["size"]
    assert data["peak"] == max(data["live"]) <= data["unshared"][-1]


def test_it_is_plain_data(run):
    assert json.loads(run.to_json()) == run.to_dict()
    assert "memory at the peak" in run.table()
