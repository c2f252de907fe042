"""TVM's tensor intrinsics under TVM's names: dot products of short rows of small integers.

    from tvm.tir.tensor_intrin.x86 import VNNI_DOT_16x4_INTRIN
    sch.tensorize(loop, VNNI_DOT_16x4_INTRIN)

The modules are called as the machines for which TVM has them. Importing one registers what it has.
The descriptions are TVM's shapes and data types. The implementations are vector code that any
machine runs and that is exact in all corners; LLVM chooses the instructions. TVM's own call an
instruction by its name: such programs run on one kind of processor only, and some of these
instructions saturate, so that they do not compute what their description says.
"""

from __future__ import annotations
