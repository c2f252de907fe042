"""Programs written as Python runs, in the words of the script: TVM's `script.ir_builder`.

    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import tir as T

    with IRBuilder() as ib:
        with T.prim_func():
            T.func_name("main")
            A = T.arg("A", T.Buffer((128,), "float32"))
            with T.serial(128) as i:
                T.buffer_store(A, T.float32(0), [i])
    func = ib.get()

`frames.py` has what is open at a moment, `tir.py` and `ir.py` the words. Nodes cannot be changed:
`ib.name("i", i)` gives the variable under its new name, which is to be used from then on.
"""

from . import ir, tir
from .frames import IRBuilder

__all__ = ["IRBuilder", "ir", "tir"]
