"""tir.transform.StorageFlatten: flat memory for what comes from a schedule of te."""

import mlc_lab as tvm
from mlc_lab import te, tir
from mlc_lab.compat.passes import StorageFlatten, schedule_to_module
from mlc_lab.script import tir as T
from mlc_lab.tir.functor import pre_order


@T.prim_func
def rows(A: T.Buffer((4, 4), "float32")):
    for i in range(4):
        A[i, 0] = T.float32(1)


def test_functions_of_schedules_are_flattened_and_others_are_not():
    A = te.placeholder((4, 4), name="A")
    B = te.compute((4, 4), lambda i, j: A[i, j] + 1.0, name="B")
    mod = schedule_to_module(te.create_schedule(B.op), [A, B], "of_te")
    mod.update_func(tvm.ir.GlobalVar("rows"), rows)
    new = StorageFlatten(64)(mod)
    stores = {v.name_hint: s for v, f in new.functions.items() for s in pre_order(f.body)
              if isinstance(s, tir.BufferStore)}
    assert len(stores["of_te"].indices) == 1 and len(stores["rows"].indices) == 2
