"""Shared memory that is no longer needed is used again, and nothing else changes by it."""

import random

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.lower import MergeSharedMemory, ThreadSync
from mlc_lab.lower.pipeline import stages
from mlc_lab.observe.gpu.races import find_races
from mlc_lab.script import from_source
from mlc_lab.tir.functor import all_statements
from mlc_lab.tir.stmt import Allocate, Evaluate

HEAD = "@T.prim_func\ndef main(A: T.Buffer((4, 32), 'float32'), C: T.Buffer((4, 32), 'float32')):\n"


def stage(target, source, at="31 - vj", indent=8, op="+"):
    """A stage in which each thread stores one element of `target`."""
    lines = ["for t in T.thread_binding(32, thread='threadIdx.x'):",
             f"    with T.block('{target}_{random.getrandbits(40)}'):",
             "        vi, vj = T.axis.remap('SS', [b, t])",
             f"        {target}[vi, vj] = {source}[vi, {at}] {op} T.float32(1.5)"]
    return "".join(" " * indent + line + "\n" for line in lines)


def program(names, body, dtypes=None):
    """A kernel of four blocks with shared arrays of 32 elements a block."""
    made = "".join(f"    {n} = T.alloc_buffer((4, 32), '{(dtypes or {}).get(n, 'float32')}', "
                   "scope='shared')\n" for n in names)
    return from_source(
        f"{HEAD}{made}    for b in T.thread_binding(4, thread='blockIdx.x'):\n{body}")


def chain(names):
    steps = ["A", *names, "C"]
    return program(names, "".join(stage(t, s) for s, t in zip(steps, steps[1:])))


def shared_bytes(func, target="cuda"):
    """Bytes of shared memory of the kernels, and their barriers, after all."""
    body = dict(stages(func, target=target))["ThreadSync"]["main"].body
    found = [s for s in all_statements(body) if type(s) is Allocate
             and s.buffer_var.storage_scope == "shared"]
    barriers = [s for s in all_statements(body) if type(s) is Evaluate
                and "tvm_storage_sync" in repr(s)]
    return sum(int(s.extents[0]) for s in found) * 4, len(barriers)


def result(func, target="cuda"):
    device = tvm.device(str(tvm.target.Target(target).kind.name), 0)
    a = np.arange(128, dtype="float32").reshape(4, 32)
    built = tvm.build(func, target=target)
    out = tvm.nd.array(np.zeros((4, 32), "float32"), device)
    built["main"](tvm.nd.array(a, device), out)
    return out.numpy()


def expected(count):
    a = np.arange(128, dtype="float32").reshape(4, 32)
    for _ in range(count):
        a = a[:, ::-1] + np.float32(1.5)
    return a


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_a_chain_of_stages_needs_two_arrays(count):
    func = chain([f"S{n}" for n in range(count)])
    assert shared_bytes(func) == (2 * 128, count)
    np.testing.assert_array_equal(result(func), expected(count + 1))
    assert not find_races(func)


def test_the_pass_says_what_it_does():
    func = chain(["P", "Q", "R"])
    before = dict(stages(func, target="cuda"))["LowerWarpMemory"]
    after = MergeSharedMemory()(before)
    assert [s.buffer_var.name for s in all_statements(after["main"].body)
            if type(s) is Allocate] == ["P", "Q"]
    assert after["main"].script().count("R") < before["main"].script().count("R")
    assert MergeSharedMemory()(after) is after


@pytest.mark.parametrize("target", ["opencl", "webgpu", "metal", "nvptx"])
def test_every_target_has_it(target):
    assert shared_bytes(chain(["P", "Q", "R"]), target)[0] == 2 * 128


def test_arrays_of_other_types_keep_their_own():
    body = (stage("P", "A") + stage("Q", "P") + stage("R", "Q").replace("= Q[vi, 31 - vj] +",
            "= T.Cast('int32', Q[vi, 31 - vj]) +").replace("T.float32(1.5)", "1")
            + stage("C", "R").replace("= R[vi, 31 - vj]", "= T.Cast('float32', R[vi, 31 - vj])"))
    assert shared_bytes(program(["P", "Q", "R"], body, {"R": "int32"}))[0] == 3 * 128


def test_what_the_next_round_of_a_loop_needs_is_kept():
    """P is filled before the loop and read in each round: R, which is filled in it, is no heir."""
    body = stage("P", "A") + (
        " " * 8 + "for r in range(3):\n" + stage("Q", "P", indent=12)
        + stage("R", "Q", indent=12) + stage("C", "R", indent=12))
    func = program(["P", "Q", "R"], body)
    assert shared_bytes(func)[0] == 3 * 128
    np.testing.assert_array_equal(result(func), expected(4))


def straight():
    """R could lie in P's memory, but between the last use of P and R's first nothing waits."""
    body = (stage("P", "A") + stage("Q", "P", at="vj") + stage("C", "P")
            + stage("R", "A", at="vj") + stage("C", "R"))
    return program(["P", "Q", "R"], body)


def test_no_barrier_is_put_for_it_unless_a_block_would_have_too_much():
    func = straight()
    kept = shared_bytes(func)
    small = tvm.target.Target({"kind": "cuda", "max_shared_memory_per_block": 300})
    less = shared_bytes(func, small)
    assert kept[0] == 3 * 128 and less[0] < kept[0]
    assert less[1] >= kept[1]
    for target in ("cuda", small):
        np.testing.assert_array_equal(result(func, target), expected(1) + np.float32(1.5))


def test_arrays_used_by_their_pointer_keep_their_own():
    body = (stage("P", "A") + stage("Q", "P") + stage("R", "Q") + stage("C", "R")
            + " " * 8 + "T.evaluate(T.call_extern('int32', 'look', P.access_ptr('r')))\n")
    lowered = dict(stages(program(["P", "Q", "R"], body), target="cuda"))
    names = [s.buffer_var.name for s in all_statements(lowered["MergeSharedMemory"]["main"].body)
             if type(s) is Allocate]
    assert names == ["P", "Q", "R"]


@pytest.mark.parametrize("seed", range(25))
def test_random_stages_compute_the_same(seed):
    """Stages that read what some stage before has stored, in loops and out of them."""
    rng = random.Random(seed)
    names = [f"S{n}" for n in range(rng.randint(2, 6))]
    written, body, indent = ["A"], "", 8
    order = [*names, *rng.sample(names, rng.randint(0, 2)), "C"]
    for name in order:
        if indent == 8 and rng.random() < 0.25:
            body += " " * 8 + f"for r{len(body)} in range({rng.randint(1, 3)}):\n"
            indent = 12
        elif indent == 12 and rng.random() < 0.6:
            indent = 8
        source = rng.choice([w for w in written[-3:] if w != name])
        body += stage(name, source, rng.choice(["31 - vj", "vj", "vj // 2"]),
                      indent, rng.choice("+*"))
        if name not in written and name != "C":
            written.append(name)
    func = program(names, body)
    alone = dict(stages(func, target="cuda"))["LowerWarpMemory"]
    plain = sum(type(s) is Evaluate and "sync" in repr(s)
                for s in all_statements(ThreadSync()(alone)["main"].body))
    used, barriers = shared_bytes(func)
    assert used <= 128 * len(names) and barriers <= plain
    assert not find_races(func)
    a = np.arange(128, dtype="float32").reshape(4, 32)
    want = np.zeros((4, 32), "float32")
    interpret(func, a, want)
    for target in ("cuda", "opencl"):
        np.testing.assert_allclose(result(func, target), want, rtol=1e-6)
