"""Times the programs of a recording and checks that they still compute the same.

Each distinct program is built, run once on random data and compared with the first program on the
same data, then timed. Measuring is bounded by a budget, can be interrupted, and keeps what it has
found; a program that cannot be built or run gets a cost that says why.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import dtype as dt
from ..ir.module import IRModule
from ..tir import stmt as s
from ..tir.expr import Call
from ..tir.function import PrimFunc
from ..tir.functor import pre_order
from . import flops
from .outside import why_not
from .recording import Recording
from .roofs import lift

if TYPE_CHECKING:
    from ..target.target import TargetLike

#: relative to the largest magnitude of the right result: what reassociated sums may differ by
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
#: seconds spent on timing one program, once it is built and checked
TIME_EACH = 0.25
_USED_UP = "not measured: the time for it was used up"


class Unmeasurable(ValueError):
    """A program that cannot be run on random data: the message says why."""


def only_function(mod: IRModule) -> tuple[str, PrimFunc]:
    """The function that is measured: the only one, or "main". Raises Unmeasurable if unclear."""
    found = {gv.name_hint: f for gv, f in mod.functions.items() if isinstance(f, PrimFunc)}
    if len(found) == 1:
        return next(iter(found.items()))
    if "main" in found:
        return "main", found["main"]
    raise Unmeasurable(f"which of the functions {sorted(found)} to run is not clear")


def under_its_key(mod: IRModule) -> IRModule:
    """The module in which the function that is measured is called as its key says, which need not
    be its symbol: `tir.Schedule(matmul)` holds `matmul` under "main"."""
    name, func = only_function(mod)
    if func.attrs.get("global_symbol", name) == name:
        return mod
    return IRModule({v: f if f is not func else func.with_attr("global_symbol", name)
                     for v, f in mod.functions.items()}, mod.attrs, mod.global_infos)


def random_arrays(
    func: PrimFunc, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> list[np.ndarray]:
    """One random array for each buffer parameter: floats in [-1, 1), integers in [0, 8).

    Integers are small because they may be used as indices. `sizes` gives the symbolic sizes by
    name. Raises Unmeasurable for a parameter that is no buffer, or a size that is not known.
    """
    generator = np.random.default_rng(seed)
    arrays = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            raise Unmeasurable(f"the parameter {param.name} is no buffer")
        try:
            shape = [flops.integer(dim, sizes or {}) for dim in buffer.shape]
        except flops.Uncountable as error:
            raise Unmeasurable(f"{error}; name it, as in sizes={{'n': 128}}") from None
        kind = dt.numpy_dtype(buffer.dtype)
        if dt.is_float(buffer.dtype):
            arrays.append(generator.uniform(-1, 1, shape).astype(kind))
        else:
            high = 2 if dt.is_bool(buffer.dtype) else 8
            arrays.append(generator.integers(0, high, shape).astype(kind))
    return arrays


def difference(results: Iterable[np.ndarray], right: Iterable[np.ndarray]) -> tuple[bool, float]:
    """Whether results equal the right ones within TOLERANCE, and the largest absolute error."""
    equal, worst = True, 0.0
    for ours, theirs in zip(results, right, strict=True):
        name = str(theirs.dtype)
        if theirs.size == 0:
            continue
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        both = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):  # infinity minus infinity, where both are equal
            error = float(np.max(np.where(both, 0.0, np.abs(a - b))))
        scale = float(np.max(np.abs(np.where(np.isfinite(b), b, 0.0))))
        worst = max(worst, error) if math.isfinite(error) else math.inf
        equal &= error <= TOLERANCE.get(name, 0.0) * max(scale, 1e-30)
    return equal, worst


def is_parallel(mod: IRModule) -> bool:
    """Whether a loop of the module runs on several cores."""
    return any(
        type(node) is s.For and node.kind == s.ForKind.PARALLEL
        for func in mod.functions.values()
        if isinstance(func, PrimFunc)
        for node in pre_order(func.body)
    )


def calls_python(mod: IRModule) -> bool:
    """Whether a program calls packed functions: those are registered in this process only."""
    return any(
        type(node) is Call and "packed" in getattr(node.op, "name", "")
        for func in mod.functions.values()
        if isinstance(func, PrimFunc)
        for node in pre_order(func.body)
    )


def dtype_of(mod: IRModule) -> str:
    """The type of what a program computes, with whose peak it is compared; "" if not known."""
    try:
        buffers = only_function(mod)[1].buffers
    except Unmeasurable:
        return ""
    return buffers[-1].dtype if buffers else ""


def _peak_of_one_core(dtype: str) -> float | None:
    """FMA peak of one core in GFLOP/s for a dtype, measured once a process; None if unknown."""
    from ..machine import peak

    if dtype not in ("float16", "float32", "float64"):
        return None
    try:
        return peak.peak(dtype) / 1e9
    except Exception:  # a step's time is worth showing where the machine's peak is not known
        return None


def _build(mod: IRModule, target: TargetLike) -> Any:
    """Compile for this machine: what `mlc_lab.build` does, which lies above this package."""
    from ..backend import llvm
    from ..machine.of_target import machine_of
    from ..lower import lower
    from ..target import Target

    target = Target(target)
    if target.kind.name != "llvm":
        raise Unmeasurable(f"programs for {target.kind.name} cannot be run here")
    mod = under_its_key(mod)
    return llvm.build(lower(mod, target=target), machine_of(target), only_function(mod)[0])


def time_program(run: Callable[..., Any], arrays: list[Any], seconds: float, first: float) -> dict:
    """Time `run(*arrays)` for about `seconds`; `first` is what one run took, roughly.

    Returns the part of a cost that times make: time (median), spread, runs.
    """
    from ..runtime.timing import measure

    number = max(1, math.ceil(2e-3 / max(first, 1e-7)))
    repeat = int(min(25, max(3, seconds / max(number * first, 1e-7))))
    if first > seconds:  # slow ones once
        return {"time": first, "runs": 1}
    found = measure(run, tuple(arrays), number=min(number, 10000), repeat=repeat).results
    cost = {"time": statistics.median(found), "runs": len(found) * number}
    if len(found) >= 3:
        low, _, high = statistics.quantiles(found, n=4, method="inclusive")
        cost["spread"] = (high - low) / 2 / cost["time"]
    return cost


class Measurement:
    """Measures the programs of one recording, one after the other.

    `modules` are the IRModules of the recording's programs, in their order. `sizes` gives symbolic
    sizes by name; `target` what to build for. With `isolate` the programs run in a process of their
    own, so that one that crashes or hangs costs only its own measurement (see `isolate.Isolated`).
    A program that calls code outside of itself is run only with `trusted` (see `outside.py`).
    """

    def __init__(
        self,
        recording: Recording,
        modules: list[IRModule],
        *,
        target: Any = "llvm",
        sizes: Mapping[str, int] | None = None,
        build: Callable[[IRModule, Any], Any] = _build,
        isolate: bool = False,
        timeout_s: float | None = None,
        trusted: bool = False,
    ) -> None:
        self.recording, self.modules, self.trusted = recording, modules, trusted
        self.target, self.sizes, self.build = target, sizes, build
        self.isolate, self.timeout_s = isolate, timeout_s
        self.arrays: list[np.ndarray] | None = None
        self.right: list[np.ndarray] | None = None
        self._child: Any = None

    def all(self, budget_s: float = 20.0, progress: bool = True,
            only: Iterable[int] | None = None,
            on_program: Callable[[int], None] | None = None) -> Recording:  # fmt: skip
        """Measure every program that has no time yet, for at most about `budget_s` seconds.

        The first and the last go first, then those that are likely to be quick: as quick as the
        nearest one whose time is known. `only` names the programs to measure, by number; None means
        all.

        An interrupt (Ctrl-C, or the stop button of a notebook) ends measuring; what was found
        stays in the recording. Returns the recording.
        """
        self._examine()
        start = time.perf_counter()
        wanted = range(len(self.recording.programs)) if only is None else sorted(set(only))
        programs = self.recording.programs
        todo = [i for i in wanted if is_left(programs[i].cost)]
        if todo and todo[0] != 0 and self.right is None and not self.isolate:
            self.reference()  # measuring goes on after a stop: the right result is needed again
        try:
            for _ in _with_progress(list(todo), progress):
                index = self._next(todo)
                todo.remove(index)
                if time.perf_counter() - start > budget_s:
                    found = {"message": _USED_UP}
                else:
                    found = self.one(index)
                kept = {k: v for k, v in (programs[index].cost or {}).items() if k != "message"}
                programs[index].cost = {**kept, **found}
                lift(self.recording, dtype_of(self.modules[0]))
                if on_program is not None:
                    on_program(index)
        except KeyboardInterrupt:
            pass
        return self.recording

    def _next(self, todo: list[int]) -> int:
        """Which of some programs to measure next."""
        known = {i: p.cost["time"] for i, p in enumerate(self.recording.programs)
                 if p.cost and p.cost.get("time")}
        ends = [i for i in (0, len(self.recording.programs) - 1) if i in todo]
        if ends or not known:
            return ends[0] if ends else todo[0]

        def likely(index: int) -> tuple[float, int]:
            near = min(known, key=lambda i: (abs(i - index), -i))
            return known[near], abs(near - index)

        return min(todo, key=likely)

    def _examine(self) -> None:
        """Fill in what the costs are compared with: the machine's peak, the operations."""
        recording = self.recording
        try:
            _, func = only_function(self.modules[0])
        except Unmeasurable:
            return  # each cost will say so
        if recording.flops is None:
            try:
                recording.flops = flops.count(func, self.sizes) or None
            except flops.Uncountable:
                recording.flops = None
        if recording.machine:
            return
        import llvmlite.binding as llvm

        cores = _usable_cores() if any(map(is_parallel, self.modules)) else 1
        dtype = dtype_of(self.modules[0])
        peak = _peak_of_one_core(dtype) if dtype else None
        recording.machine = {"cpu": llvm.get_host_cpu_name(), "cores": cores}
        if peak:
            recording.machine["peak_gflops"] = round(peak * cores, 1)

    def _run(self, index: int) -> tuple[Any, list[Any], float]:
        """Build and run one program on the common data: (function, its tensors, seconds)."""
        from ..runtime import array

        if not self.trusted and (reason := why_not(self.modules[index])):
            raise Unmeasurable(reason)
        name, func = only_function(self.modules[index])
        if self.arrays is None:
            self.arrays = random_arrays(func, self.sizes)
        run = self.build(self.modules[index], self.target)[name]
        tensors = [array(a) for a in self.arrays]
        start = time.perf_counter()
        run(*tensors)
        seconds = time.perf_counter() - start
        if index == 0:
            self.right = [t.numpy() for t in tensors]
        return run, tensors, seconds

    def reference(self) -> dict[str, Any]:
        """Run the first program to have its results; {} or the message of what went wrong."""
        try:
            self._run(0)
        except Unmeasurable as error:
            return {"message": f"not measured: {error}"}
        except Exception as error:
            return {"message": f"could not be built or run: {_first_line(error)}"}
        return {}

    def one(self, index: int) -> dict[str, Any]:
        """The cost of one program. Errors become its message."""
        isolated = self.isolate and not calls_python(self.modules[index])
        cost = self._isolated(index) if isolated else self._here(index)
        if not cost.get("time"):
            return cost
        operations, peak = self.recording.flops, self.recording.machine.get("peak_gflops")
        if operations:
            cost["gflops"] = operations / cost["time"] / 1e9
            if peak:
                cost["peak_fraction"] = cost["gflops"] / peak
        return cost

    def _here(self, index: int) -> dict[str, Any]:
        """Check and time one program in this process."""
        try:
            run, tensors, first = self._run(index)
        except Unmeasurable as error:
            return {"message": f"not measured: {error}"}
        except Exception as error:
            return {"message": f"could not be built or run: {_first_line(error)}"}
        cost: dict[str, Any] = {}
        if self.right is not None:
            equal, worst = difference([t.numpy() for t in tensors], self.right)
            cost["equal"] = equal
            cost["max_error"] = worst if math.isfinite(worst) else None
        cost.update(time_program(run, tensors, TIME_EACH, first))
        return cost

    def _isolated(self, index: int) -> dict[str, Any]:
        """Check and time one program in a process of its own."""
        if not self.trusted and (reason := why_not(self.modules[index])):
            return {"message": f"not measured: {reason}"}
        return self.child.cost(self.modules[index], TIME_EACH)

    @property
    def child(self) -> Any:
        """The process in which programs run if they run `isolated`."""
        from . import isolate

        if self._child is None:
            self._child = isolate.Isolated(
                self.modules[0], self.target, self.sizes,
                timeout_s=self.timeout_s or isolate.TIMEOUT, trusted=self.trusted,
            )  # fmt: skip
        return self._child


def is_left(cost: dict[str, Any] | None) -> bool:
    """Whether a program was not measured yet: one that could not be run is not tried again."""
    return not cost or "time" not in cost and cost.get("message", _USED_UP) == _USED_UP


def _usable_cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _with_progress(items: list[int], wanted: bool, what: str = "measuring") -> Iterable[int]:
    """`items` with a progress bar that appears if they take more than a second."""
    if not wanted or len(items) < 2:
        return items
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    # On stdout: some graders count anything on stderr as a failure.
    return tqdm(items, desc=what, unit="step", delay=1.0, leave=False, file=sys.stdout)
