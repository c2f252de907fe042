"""UnrollLoop: explicit, automatic and implicit."""

from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.transform import PassContext
from mlc_lab.lower import UnrollLoop, lower
from mlc_lab.script import tir as T
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from .programs import arguments, run


def unrolled(func, **config):
    mod = IRModule({"main": func})
    with PassContext(config={"tir.UnrollLoop": config} if config else {}):
        out = UnrollLoop()(mod)
    args = arguments(func)
    for a, b in zip(run(mod, args), run(out, args)):
        assert (a == b).all()
    return out["main"].body


def loops(body):
    return [s for s in pre_order(body) if isinstance(s, S.For)]


@T.prim_func
def explicit(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(4):
        for j in T.unroll(2):
            B[i * 2 + j] = A[i * 2 + j]


@T.prim_func
def written_out(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(4):
        B[i * 2] = A[i * 2]
        B[i * 2 + 1] = A[i * 2 + 1]


def test_unrolled_loops_are_written_out():
    assert structural_equal(unrolled(explicit), written_out.body, True) is True


@T.prim_func
def plain(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i in range(4):
        for j in range(4):
            B[i, j] = A[i, j]


def test_automatic_unrolling_by_steps():
    assert len(loops(unrolled(plain, auto_max_step=3))) == 2
    assert len(loops(unrolled(plain, auto_max_step=4))) == 1
    assert not loops(unrolled(plain, auto_max_step=16))


def test_implicit_unrolling_is_left_to_llvm():
    assert len(loops(unrolled(plain, auto_max_step=16, explicit_unroll=False))) == 2


def test_pragmas_of_a_loop():
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        T.func_attr({"global_symbol": "main"})
        for i in T.serial(4, annotations={"pragma_auto_unroll_max_step": 4,
                                          "pragma_unroll_explicit": 1}):
            for j in range(4):
                B[i, j] = A[i, j]

    mod = lower(f)
    assert len(loops(mod["main"].body)) == 1
    assert not any(isinstance(s, S.AttrStmt) for s in pre_order(mod["main"].body))


def test_a_symbolic_extent_stays_a_loop():
    @T.prim_func
    def f(a: T.handle):
        T.func_attr({"global_symbol": "main"})
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        for i in T.unroll(n):
            A[i] = T.float32(1)

    (loop,) = loops(lower(f)["main"].body)
    assert loop.kind is S.ForKind.SERIAL


def test_a_loop_that_is_left_early_stays_a_loop():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.unroll(8):
            B[i] = A[i]
            if i == 3:
                break

    assert len(loops(unrolled(f))) == 1
