"""Virtual threads: statement by statement, and what is the same for all of them once."""

import numpy as np
from backend.gpu_programs import tiled

from mlc_lab import build, lower, runtime
from mlc_lab.script import from_source
from mlc_lab.tir import expr as E
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order


def kernel_of(mod):
    return next(f for v, f in lower(mod, target="cuda").functions.items()
                if v.name_hint.endswith("_kernel"))


def around(body, wanted):
    """For each statement that `wanted` says, the names of the loops around it."""
    out = []

    def walk(s, names):
        if type(s) is S.For:
            names = [*names, s.loop_var.name.split("_")[0]]
        if wanted(s):
            out.append(names)
        for part in s.children():
            if isinstance(part, S.Stmt):
                walk(part, names)

    walk(body, [])
    return out


def stores_to(name):
    return lambda s: type(s) is S.BufferStore and s.buffer.data.name.startswith(name)


def test_tiles_are_loaded_once_and_results_lie_inside():
    body = kernel_of(tiled(32, 32, 32, vthreads=True)).body
    for shared in ("A_shared", "B_shared"):
        assert all("vthread" not in names for names in around(body, stores_to(shared)))
    for names in around(body, stores_to("C_local")):
        assert names[-1] == "vthread"
    (local,) = [s for s in pre_order(body)
                if type(s) is S.Allocate and s.buffer_var.name.startswith("C_local")]
    assert [int(n) for n in local.extents] == [64]  # 16 results of each of 4 virtual threads
    barriers = around(body, lambda s: type(s) is S.Evaluate and type(s.value) is E.Call
                      and s.value.op.name == "tir.tvm_storage_sync")
    assert barriers and all("vthread" not in names for names in barriers)


def runs(mod, *arrays):
    where = runtime.cuda(0)
    given = [runtime.array(a, where) for a in arrays]
    build(mod, target="cuda")["main"](*given)
    return given[-1].numpy()


def test_the_results_are_right():
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (32, 32)).astype("float32") for _ in "ab")
    have = runs(tiled(32, 32, 32, vthreads=True), a, b, np.zeros((32, 32), "float32"))
    np.testing.assert_allclose(have, a @ b, rtol=1e-4, atol=1e-5)


TWO = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for v in T.thread_binding(4, thread="vthread.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("row"):
                vv, vt = T.axis.remap("SS", [v, t])
                S = T.alloc_buffer((4, 8), scope="shared")
                with T.block("S"):
                    S[vv, vt] = A[vv, vt] * T.float32({factor})
                if {condition}:
                    with T.block("B"):
                        B[vv, vt] = S[vv, vt] + T.float32(1)
                else:
                    with T.block("other"):
                        B[vv, vt] = T.float32(0)
"""


def test_memory_that_differs_is_had_by_each():
    a = np.arange(32, dtype="float32").reshape(4, 8)
    for condition, keeps in (("vv < 2", np.arange(4)[:, None] < 2),
                             ("vt < 3", np.arange(8)[None, :] < 3)):
        mod = from_source(TWO.format(condition=condition, factor=2))
        have = runs(mod, a, np.full((4, 8), 7, "float32"))
        np.testing.assert_array_equal(have, np.where(keeps, 2 * a + 1, 0))


def test_memory_that_is_made_in_a_loop_of_each_virtual_thread_is_its_own():
    """How often the loop runs depends on the virtual thread, so the loop over these is around it,
    and around the memory that is made in it."""
    mod = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((2, 4), "int32")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for vx in T.thread_binding(2, thread="vthread.x"):
            for tx in T.thread_binding(4, thread="threadIdx.x"):
                for k in range(2 - vx):
                    with T.block("B"):
                        v, i = T.axis.remap("SS", [vx, tx])
                        r = T.axis.opaque(2, k)
                        S = T.alloc_buffer((4,), "int32", scope="shared")
                        S[i] = A[i] + r
                        B[v, i] = S[3 - i] * 10 + v
""")
    allocated = {s.buffer_var: int(s.extents[0]) for s in pre_order(kernel_of(mod).body)
                 if type(s) is S.Allocate}
    assert set(allocated.values()) == {4}
    for item in pre_order(kernel_of(mod).body):
        if isinstance(item, (E.BufferLoad, S.BufferStore)) and item.buffer.data in allocated:
            assert int(item.buffer.shape[0]) == 4
    a, b = np.arange(4, dtype="int32"), np.zeros((2, 4), "int32")
    np.testing.assert_array_equal(runs(mod, a, b), [(3 - a + 1) * 10, (3 - a) * 10 + 1])
