"""How quick the workbench is: listing what is legal, applying, reading Python, opening a file.

    python benchmarks/workbench.py

Medians over a dozen runs on matmul and relu; what the browser adds is printed by
`pytest -s tests/widgets/test_workbench_lab.py -k soon`.
"""

from __future__ import annotations

import statistics
import time

from mlc_lab.observe.workbench import Workbench
from mlc_lab.script import from_source

SOURCE = """
@T.prim_func
def main(A: T.Buffer((512, 512), "float32"), B: T.Buffer((512, 512), "float32"),
         C: T.Buffer((512, 512), "float32")):
    Y = T.alloc_buffer((512, 512))
    for i, j, k in T.grid(512, 512, 512):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(512, 512):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""


def made() -> Workbench:
    """A tree with six attempts on one path."""
    bench = Workbench(from_source(SOURCE))
    bench.apply("split", loop="Y/i", factors=[None, 8])
    bench.apply("split", loop="Y/j", factors=[None, 16])
    bench.apply("reorder", ordered_loops=["i_0", "j_0", "k", "i_1", "j_1"])
    bench.apply("reverse_compute_at", block="C", loop="Y/j_0")
    bench.apply("vectorize", loop="Y/j_1")
    bench.apply("decompose_reduction", block="Y", loop="k")
    return bench


def row(name: str, action, wanted: str = "") -> None:
    """Print one figure: the median of a dozen runs."""
    times = []
    for _ in range(12):
        prepared = action()
        start = time.perf_counter()
        prepared()
        times.append(time.perf_counter() - start)
    print(f"{name:44} {1e3 * statistics.median(times):8.1f} ms  {wanted}")


def main() -> None:
    """Print the table."""
    def listing(selection, later):
        def prepare():
            bench = made() if later else Workbench(from_source(SOURCE))
            return lambda: bench.legal(selection)

        return prepare

    def applying():
        bench = Workbench(from_source(SOURCE))
        return lambda: bench.apply("split", loop="Y/j", factors=[None, 8])

    bench = made()
    text, saved = bench.python(), bench.to_json()
    row("what is legal for block Y, at first", listing("Y", False), "at most 150")
    row("what is legal for block C, after six steps", listing("C", True), "at most 150")
    row("what is legal for loop k, after six steps", listing("k", True), "at most 150")
    row("apply a split", lambda: applying())
    row("read the Python of six steps", lambda: lambda: Workbench(from_source(SOURCE))
        .load_python(text))
    row("open a saved tree of six attempts", lambda: lambda: Workbench.from_json(saved))
    print(f"{'the saved tree':44} {len(saved) / 1024:8.1f} KB")


if __name__ == "__main__":
    main()
