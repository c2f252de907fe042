"""Programs that several exercises start from: products of matrices."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ...script import from_source

if TYPE_CHECKING:
    from ...ir.module import IRModule

#: what a result may be called, and the block that makes it
RESULTS = ("C", "D", "P", "Q", "Y", "Z")


def drawn(rng: random.Random, orders: tuple[str, ...] = ("ijk", "jik")) -> dict[str, str]:
    """The name of a result, and the order of the loops: an answer to one variant names what
    another does not have, or takes its loops for others."""
    order = rng.choice(orders)
    return {"C": rng.choice(RESULTS), "order": order, "loops": ", ".join(order)}


def product(n: int, m: int, k: int, order: str = "ijk", out: str = "C") -> IRModule:
    """`out` = A @ B, n by k times k by m, in float32; the loops stand in an order."""
    extent = {"i": n, "j": m, "k": k}
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({n}, {k}), "float32"), B: T.Buffer(({k}, {m}), "float32"),
             {out}: T.Buffer(({n}, {m}), "float32")):
        for {', '.join(order)} in T.grid({', '.join(str(extent[x]) for x in order)}):
            with T.block("{out}"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    {out}[vi, vj] = T.float32(0)
                {out}[vi, vj] = {out}[vi, vj] + A[vi, vk] * B[vk, vj]
""")


def product_and_relu(n: int, m: int, k: int) -> IRModule:
    """Y = A @ B, then C = max(Y, 0), n by k times k by m, in float32."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({n}, {k}), "float32"), B: T.Buffer(({k}, {m}), "float32"),
             C: T.Buffer(({n}, {m}), "float32")):
        Y = T.alloc_buffer(({n}, {m}), "float32")
        for i, j, k in T.grid({n}, {m}, {k}):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid({n}, {m}):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
""")


__all__ = ["RESULTS", "drawn", "product", "product_and_relu"]
