"""InjectSoftwarePipeline: a loop computes the same whatever stages it is given, or is refused."""

import itertools
import random

import numpy as np
import pytest
from backend.gpu_programs import tiled_schedule

import mlc_lab as tvm
from mlc_lab.backend.interp import InterpError, interpret
from mlc_lab.lower import InjectSoftwarePipeline, LowerError
from mlc_lab.script import from_source
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import all_statements

TWO = '''
@T.prim_func
def main(A: T.Buffer(({n}, 4), "float32"), C: T.Buffer(({n}, 4), "float32")):
    for k in T.serial({n}, annotations={{"software_pipeline_stage": {stages},
                                         "software_pipeline_order": {orders}}}):
        with T.block(""):
            T.reads(A[k, 0:4])
            T.writes(C[k, 0:4])
            B = T.alloc_buffer((4,))
            for i in range(4):
                with T.block("B"):
                    B[i] = A[k, i] * T.float32(2)
            for i in range(4):
                with T.block("C"):
                    C[k, i] = B[3 - i] + T.float32(1)
'''


def loops(mod):
    return [s for s in all_statements(mod["main"].body) if type(s) is S.For]


def run(program, *arguments):
    held = [np.array(a) for a in arguments]
    interpret(program, *held, func_name="main")
    return held


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("stages, orders", [
    ([0, 1], [0, 1]), ([0, 1], [1, 0]), ([0, 2], [0, 1]), ([0, 3], [1, 0]), ([2, 3], [0, 1]),
    ([0, 0], [0, 1]),
])
def test_two_parts(n, stages, orders):
    func = from_source(TWO.format(n=n, stages=stages, orders=orders))
    after = InjectSoftwarePipeline()(tvm.IRModule({"main": func}))
    a = np.random.rand(n, 4).astype("float32")
    (_, want), (_, got) = (run(p, a, np.zeros_like(a)) for p in (func, after))
    np.testing.assert_array_equal(got, want)
    buffers = {b.name: b for s in all_statements(after["main"].body) if type(s) is S.Block
               for b in s.alloc_buffers}
    deep = stages[1] - stages[0]
    assert [int(d) for d in buffers["B"].shape] == ([deep + 1, 4] if deep else [4])
    assert not any("software" in key for loop in loops(after) for key in loop.annotations)
    np.testing.assert_array_equal(run(tvm.lower(func), a, np.zeros_like(a))[1], want)
    held = [a, np.zeros_like(a)]
    tvm.build(func, target="llvm")(*held)
    np.testing.assert_array_equal(held[1], want)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_size_that_is_not_known(n):
    text = TWO.format(n="n", stages=[0, 2], orders=[0, 1]).replace(
        'A: T.Buffer((n, 4), "float32"), C: T.Buffer((n, 4), "float32")',
        "a: T.handle, c: T.handle").replace("    for k in", """    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    C = T.match_buffer(c, (n, 4), "float32")
    for k in""", 1)
    func = from_source(text)
    after = InjectSoftwarePipeline()(tvm.IRModule({"main": func}))
    a = np.random.rand(n, 4).astype("float32")
    (_, want), (_, got) = (run(p, a, np.zeros_like(a)) for p in (func, after))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("stages, orders, why", [
    ([1, 0], [0, 1], "must run before statement 1 of the same iteration, since both touch B"),
    ([0, 0], [1, 0], "must run before"), ([0], [0], "has 2 statements"),
    ([0, 1], [0, 0], "a number of its own"), ([0, -1], [0, 1], "numbers from 0"),
])
def test_what_would_change_the_result_is_refused(stages, orders, why):
    func = from_source(TWO.format(n=4, stages=stages, orders=orders))
    with pytest.raises(LowerError, match=why):
        tvm.lower(func)


def test_memory_that_iterations_share_keeps_its_order():
    text = TWO.format(n=4, stages=[0, 2], orders=[0, 1]).replace("A[k, i]", "C[k, i]").replace(
        "T.reads(A", "T.reads(C")
    with pytest.raises(LowerError, match="of the next iteration, since both touch C"):
        tvm.lower(from_source(text))


class Loops:
    """A random loop of parts that read and write a few buffers."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        self.n = rng.choice([1, 2, 3, 4, 6])
        count = rng.randint(2, 4)
        private = [f"P{i}" for i in range(rng.randint(1, 3))]
        body = []
        for number in range(count):
            target = rng.choice([*private, *private, "C", "D"])
            body.append(f"for i{number} in range(4):")
            body += [f"    {self.at(target, number)} = {self.value(private, number)}"]
        stages = [rng.randint(0, 3) for _ in range(count)]
        if rng.random() < 0.7:
            stages.sort()
        orders = list(range(count))
        if rng.random() < 0.5:
            rng.shuffle(orders)
        lines = [f'{p} = T.alloc_buffer((4,), "int32")' for p in private]
        self.text = "\n".join([
            "@T.prim_func",
            f'def main(A: T.Buffer(({self.n}, 4), "int32"), C: T.Buffer(({self.n}, 4), "int32"), '
            'D: T.Buffer((4,), "int32")):',
            f"    for k in T.serial({self.n}, annotations={{",
            f'        "software_pipeline_stage": {stages},',
            f'        "software_pipeline_order": {orders}}}):',
            '        with T.block(""):', *("            " + line for line in (*lines, *body)), ""])

    def at(self, name, number):
        i = f"i{number}"
        return {"C": f"C[k, {i}]", "D": f"D[{i}]", "A": f"A[k, 3 - {i}]"}.get(name, f"{name}[{i}]")

    def value(self, private, number):
        sources = self.rng.choices(["A", "A", *private, "C", "D"], k=2)
        return " + ".join(self.at(s, number) for s in sources) + f" * {self.rng.randint(1, 3)}"


def outcome(program, loop):
    rng = np.random.default_rng(0)
    shapes = [(loop.n, 4), (loop.n, 4), (4,)]
    held = [rng.integers(-3, 4, s).astype("int32") for s in shapes]
    interpret(program, *held, func_name="main", check_uninitialized=True)
    return held


def test_random_loops():
    accepted = refused = 0
    for seed in itertools.count():
        if accepted >= 60 and refused >= 60:
            break
        loop = Loops(seed)
        func = from_source(loop.text)
        try:
            want = outcome(func, loop)
        except InterpError:
            continue  # it reads what nobody wrote
        try:
            after = InjectSoftwarePipeline()(tvm.IRModule({"main": func}))
        except LowerError:
            refused += 1
            continue
        accepted += 1
        for mod in (after, tvm.lower(func)):
            for a, b in zip(outcome(mod, loop), want):
                np.testing.assert_array_equal(a, b, err_msg=f"{loop.text}\n{after.script()}")


def product(how):
    """A product whose tiles are fetched while the ones before are multiplied."""
    sch = tiled_schedule()
    k0 = next(rv for rv in sch.get_loops(sch.get_block("C_update"))
              if sch.get(rv).loop_var.name == "k_0")
    if how == "double buffers":
        for name in ("A_shared", "B_shared"):
            sch.annotate(sch.get_block(name), "double_buffer_scope", 0)
    elif how is not None:
        stages, orders = how
        sch.annotate(k0, "software_pipeline_stage", stages)
        sch.annotate(k0, "software_pipeline_order", orders)
    return sch.mod


@pytest.mark.parametrize("target", ["cuda", "opencl"])
@pytest.mark.parametrize("how", [([0, 0, 1], [0, 1, 2]), ([0, 0, 2], [1, 2, 0]),
                                 ([0, 1, 2], [2, 1, 0]), "double buffers"])
def test_tiles_are_fetched_ahead_of_a_product(how, target):
    mod = product(how)
    a, b = (np.random.rand(32, 32).astype("float32") for _ in range(2))
    kernels = tvm.lower(mod, target=target)
    np.testing.assert_allclose(run(kernels, a, b, np.zeros_like(a))[2], a @ b, rtol=1e-4)
    device = tvm.device(target, 0)
    held = [tvm.nd.array(x, device) for x in (a, b, np.zeros_like(a))]
    tvm.build(mod, target=target)(*held)
    np.testing.assert_allclose(held[2].numpy(), a @ b, rtol=1e-4)
    assert not tvm.find_races(mod, target)
    (before,), (after,) = (tvm.count_gpu(product(h), "cuda") for h in (None, how))
    assert after.shared_bytes == before.shared_bytes * (how[0][2] + 1 if how[0] == [0, 0, 2]
                                                        else 2 if how != ([0, 1, 2], [2, 1, 0])
                                                        else 2.5)
    assert after.barriers <= before.barriers


def test_marks_of_double_buffers_are_hints():
    """On the processor they change nothing, and where they cannot be followed neither."""
    mod = product("double buffers")
    assert InjectSoftwarePipeline(double_buffers=False)(mod) is mod
    marked = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), D: T.Buffer((1,), "float32")):
    for k in range(4):
        with T.block(""):
            B = T.alloc_buffer((1,))
            with T.block("fetch"):
                T.reads(A[k], D[0])
                T.writes(B[0])
                T.block_attr({"double_buffer_scope": 0})
                B[0] = A[k] + D[0]
            with T.block("use"):
                T.reads(B[0])
                T.writes(D[0])
                D[0] = B[0]
""")
    after = InjectSoftwarePipeline()(tvm.IRModule({"main": marked}))
    assert [loop.loop_var.name for loop in loops(after)] == ["k"]
    asked = marked.script().replace("in range(4)", """in T.serial(4, annotations={
        "software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]})""")
    with pytest.raises(LowerError, match="of the next iteration, since both touch D"):
        tvm.lower(from_source(asked))
