"""HoistIfThenElse: conditions leave the loops that do not change them, and the meaning stays."""

from mlc_lab import tir
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import HoistIfThenElse
from mlc_lab.script import tir as T
from mlc_lab.tir import ir_builder
from mlc_lab.tir import stmt as S
from .test_simplify import apply


@T.prim_func
def nested(A: T.Buffer((8, 16), "int32")):
    T.func_attr({"global_symbol": "main"})
    for i, j, k in T.grid(8, 16, 2):
        if i < 4:
            A[i, j] = A[i, j] + k
        else:
            A[i, j] = A[i, j] * 2


def test_a_condition_leaves_the_loops_that_it_does_not_depend_on():
    after = apply(HoistIfThenElse(), nested)
    choice = after.body.body
    assert isinstance(choice, S.IfThenElse)
    first, second = choice.then_case, choice.else_case
    assert isinstance(first.body, S.For) and isinstance(second.body, S.For)
    assert first.loop_var is not second.loop_var  # each loop has a variable of its own


def test_a_condition_of_no_loop_is_decided_first():
    @T.prim_func
    def switch(A: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            if n > 3:
                A[i] = 1

    after = HoistIfThenElse()(IRModule.from_expr(switch))["switch"]
    assert isinstance(after.body, S.IfThenElse) and after.body.else_case is None


def test_what_the_loop_may_change_is_asked_each_time():
    @T.prim_func
    def counts(A: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
        T.func_attr({"global_symbol": "main"})
        for i in range(8):
            if A[0] < 3:
                A[0] = A[0] + 1
                B[i] = 1

    @T.prim_func
    def reads(A: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
        T.func_attr({"global_symbol": "main"})
        for i in range(8):
            if A[0] < 3:
                B[i] = 1

    assert isinstance(apply(HoistIfThenElse(), counts).body, S.For)
    assert isinstance(apply(HoistIfThenElse(), reads).body, S.IfThenElse)


def test_what_may_fail_is_not_asked_for_a_loop_that_does_not_run():
    @T.prim_func
    def divides(A: T.Buffer((8,), "int32"), n: T.int32, m: T.int32):
        for i in range(m):
            if 8 // n > 3:
                A[i] = 1

    @T.prim_func
    def leaves(A: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            if n > 3:
                A[i] = 1
                T.evaluate(T.break_loop())

    assert isinstance(HoistIfThenElse()(IRModule.from_expr(divides))["divides"].body, S.For)
    assert isinstance(HoistIfThenElse()(IRModule.from_expr(leaves))["leaves"].body, S.For)


def test_what_stands_beside_a_condition_keeps_it():
    @T.prim_func
    def beside(A: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            A[i] = 0
            if n > 3:
                A[i] = 1

    mod = IRModule.from_expr(beside)
    assert HoistIfThenElse()(mod)["beside"] is beside


def test_a_pointer_of_the_builder_is_read_and_written():
    ib = ir_builder.create()
    data = ib.pointer("float32", name="data", scope="shared")
    with ib.for_range(0, 4, "i") as i:
        data[i] = data[i] + 0.5
    stmt = ib.get()
    assert isinstance(stmt.body, S.BufferStore)
    assert data.asobject().name == "data" and tir.free_vars(stmt) == [data.asobject().data]
    assert stmt.body.buffer.scope() == "shared"
