"""What a worker process of a search does: builds candidates, or runs, checks and times them.

A service of `mlc_lab/workers`: `HANDLERS` is what a request may ask for.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import tempfile
import time
from typing import Any

PAGE = 4096


def build(request: dict) -> dict:
    """Lower and compile `module` for `target`: the object code and its description."""
    from ...target import Target
    from ...backend import llvm
    from ...backend.source import DIALECTS
    from ...machine.of_target import machine_of
    from ...lower import lower

    start = time.perf_counter()
    target = Target(request["target"])
    if target.kind.name in DIALECTS:
        return {**_build_gpu(request["module"], target), "seconds": time.perf_counter() - start}
    where = machine_of(target)
    refusal = llvm.why_not_here(where)
    if refusal:
        raise RuntimeError(refusal)
    compiled, meta = llvm.compile_module(lower(request["module"], target=target), where, "main")
    return {"status": "ok", "obj": compiled.obj, "meta": meta,
            "seconds": time.perf_counter() - start}


def _build_gpu(mod: Any, target: Any) -> dict:
    """A program for a GPU. Where the device is there, it goes to the runner as it is, and the
    program without threads, which others are compared with, as code for the CPU. Where the device
    is simulated, what there is to know of a candidate is the time of a model."""
    from ...backend import llvm
    from ...backend.device.real import RealDriver
    from ...lower import lower
    from ...lower.pipeline import has_thread_axes
    from ...observe.gpu.counts import count_gpu
    from ...runtime.driver import driver_of

    real = isinstance(driver_of(target.kind.name), RealDriver)
    if not has_thread_axes(mod):
        if not real:
            return {"status": "ok", "obj": b"", "meta": {"modelled": None}}
        compiled, meta = llvm.compile_module(lower(mod), None, "main")
        return {"status": "ok", "obj": compiled.obj, "meta": meta}
    if real:
        return {"status": "ok", "obj": b"", "meta": {"module": mod, "target": str(target)}}
    seconds = count_gpu(mod, target, quick=True).seconds
    return {"status": "ok", "obj": b"", "meta": {"modelled": seconds}}


def run_gpu(request: dict) -> dict:
    """Run a candidate on a GPU, check its results, time it by the device's clock."""
    from ...backend.device.gpu_module import build as build_gpu
    from ...runtime import array
    from ...runtime.device import device
    from ...target import Target

    task = _tasks.get(request["task"])
    if task is None:
        return {"status": "unprepared"}
    start = time.perf_counter()
    target = Target(request["target"])
    module, where = build_gpu(request["module"], target), device(target.kind.name)
    task.reset()
    host = task.tensors
    task.tensors = [array(t.numpy(), where) for t in host]
    try:
        function = module["main"]
        function(*task.tensors)
        fault, error = task.fault()
        if fault:
            return {"status": "wrong", "reason": fault, "error": error}
        config = request["config"]
        cold = (where.l2_cache_size_bytes or 0) if config.get("cache_flush") else 0
        timed = module.time_evaluator("main", where, number=config["number"],
                                      repeat=max(3, config["repeat"]),
                                      cache_flush_bytes=cold)(*task.tensors)
    finally:
        task.tensors = host
    return {"status": "ok", "times": list(timed.results), "error": error,
            "calls": config["number"] * max(3, config["repeat"]) + 1,
            "seconds": time.perf_counter() - start}


class _Task:
    """The inputs of one program and the right results."""

    def __init__(self, request: dict) -> None:
        import numpy as np

        from ...runtime import array

        generator = np.random.default_rng(request["seed"])
        self.inputs = []
        for shape, dtype, written in request["args"]:
            if written:
                data = np.full(shape, _garbage(dtype), _numpy(dtype))
            else:
                data = _random(generator, shape, dtype)
            self.inputs.append(data)
        for at, given in (request.get("given") or {}).items():
            self.inputs[at] = np.asarray(given)
        self.written = [written for _, _, written in request["args"]]
        self.placement = 0
        self.tensors = [array(a) for a in self.inputs]
        self.expected: list[Any] | None = None
        if request.get("obj") is not None:
            run = _function(request["obj"], request["meta"])
            run(*self.tensors)
            self.expected = [t.numpy().copy() if w else None
                             for t, w in zip(self.tensors, self.written)]

    def place(self, placement: int) -> None:
        """Move the tensors: their offsets within pages are drawn anew.

        Conflict misses and false dependences of loads on stores (4 KiB aliasing) depend on these:
        the same machine code may be a fifth slower. Placement 0 is the first one.
        """
        import numpy as np

        from ...runtime import array
        from ...runtime.ndarray import ALIGNMENT, tensor_at

        if placement == self.placement:
            return
        self.placement = placement
        generator = np.random.default_rng(placement)
        self.tensors = []
        for data in self.inputs:
            if placement == 0 or data.nbytes == 0:
                self.tensors.append(array(data))
                continue
            memory = np.empty(data.nbytes + 2 * PAGE, np.uint8)
            start = -memory.ctypes.data % PAGE + ALIGNMENT * int(
                generator.integers(PAGE // ALIGNMENT))
            tensor = tensor_at(memory, start, data.shape, data.dtype.name)
            tensor.copyfrom(data)
            self.tensors.append(tensor)

    def reset(self) -> None:
        for tensor, data, written in zip(self.tensors, self.inputs, self.written):
            if written:
                tensor.copyfrom(data)

    def fault(self) -> tuple[str, float]:
        """What is wrong with the results ("" if nothing), and the largest error."""
        if self.expected is None:
            return "", 0.0
        worst = 0.0
        for at, (tensor, data) in enumerate(zip(self.tensors, self.inputs)):
            have = tensor.numpy()
            if not self.written[at]:
                if not _same_bits(have, data):
                    return f"argument {at} was changed, and the program only reads it", math.inf
                continue
            reason, error = difference(have, self.expected[at])
            worst = max(worst, error)
            if reason:
                return f"argument {at} {reason}", worst
        return "", worst


def difference(have: Any, right: Any) -> tuple[str, float]:
    """Why a result is not the right one ("" if it is), and the largest absolute error.

    Equal means within the tolerance of the type, relative to the largest magnitude of the result:
    sums may be taken in another order.
    """
    import numpy as np

    from ...observe.measure import TOLERANCE

    if right.size == 0:
        return "", 0.0
    if right.dtype.kind in "iub":
        wrong = int(np.count_nonzero(have != right))
        return (f"has {wrong} wrong elements of {right.size}", math.inf) if wrong else ("", 0.0)
    name = str(right.dtype)
    if name in ("bfloat16", "float16"):
        have, right = have.astype("float32"), right.astype("float32")
    with np.errstate(invalid="ignore", over="ignore"):
        error = float(np.max(np.abs(have - right)))
        if not math.isfinite(error):
            same = (have == right) | (np.isnan(have) & np.isnan(right))
            distance = np.nan_to_num(np.abs(have - right), nan=np.inf)
            error = float(np.max(np.where(same, 0, distance)))
        scale = float(np.max(np.abs(np.where(np.isfinite(right), right, 0))))
    if error <= TOLERANCE.get(name, 1e-5) * max(scale, 1e-30):
        return "", error
    return f"differs by {error:.3g} where results go up to {scale:.3g}", error


def _same_bits(a: Any, b: Any) -> bool:
    import numpy as np

    return bool(np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)))


def _numpy(dtype: str) -> Any:
    from ...ir.dtype import numpy_dtype

    return numpy_dtype(dtype)


def _garbage(dtype: str) -> float:
    """What outputs hold before a run, so that elements that are not written count as wrong."""
    return 1e30 if dtype in ("float32", "float64") else 77 if "int" in dtype else 1


def _random(generator: Any, shape: Any, dtype: str) -> Any:
    kind = _numpy(dtype)
    if "float" in dtype:
        return generator.uniform(-1, 1, shape).astype(kind)
    high = 2 if dtype == "bool" else 8  # small, since they may be indices
    return generator.integers(0, high, shape).astype(kind)


def _function(obj: bytes, meta: dict) -> Any:
    from ...runtime.export import module_of

    return module_of(obj, meta).entry_func


_tasks: dict[str, _Task] = {}


def prepare(request: dict) -> dict:
    """Make the inputs of a program and run its reference on them."""
    start = time.perf_counter()
    while len(_tasks) >= 4:
        _tasks.pop(next(iter(_tasks)))
    _tasks[request["task"]] = _Task(request)
    return {"status": "ok", "seconds": time.perf_counter() - start}


def run(request: dict) -> dict:
    """Run a candidate, check its results, time it."""
    from ...runtime import native_library

    task = _tasks.get(request["task"])
    if task is None:
        return {"status": "unprepared"}
    if native_library.num_threads() != request["threads"]:
        native_library.set_num_threads(request["threads"])
    function = _function(request["obj"], request["meta"])
    task.place(request.get("placement", 0))
    task.reset()
    with measuring_lock():
        start = time.perf_counter()
        begun = time.thread_time()
        function(*task.tensors)
        first = time.perf_counter() - start
        if request["threads"] == 1:
            first = min(first, max(time.thread_time() - begun, 1e-8))
        fault, error = task.fault()
        if fault:
            return {"status": "wrong", "reason": fault, "error": error}
        times, calls = measure(function, task.tensors, first, request["config"],
                               request.get("best"), request["threads"])
    return {"status": "ok", "times": times, "calls": calls, "error": error,
            "seconds": time.perf_counter() - start}


def measure(function: Any, tensors: list, first: float, config: dict, best: float | None,
            threads: int = 1) -> tuple[list[float], int]:
    """Seconds of one call, several times over, and how many calls that took.

    With `config["adaptive"]`, repeats until the lower half of the times lies within a hundredth,
    or `budget` seconds are spent; a candidate several times slower than `best` gets few repeats.
    """
    flush = _flush if config.get("cache_flush") else None
    clock = _Clock(function, tensors, threads, flush)
    if not config.get("adaptive"):
        number, need = max(1, config["number"]), config["min_repeat_ms"] / 1e3
        times = []
        for _ in range(max(1, config["repeat"])):
            while True:
                took = clock.one(number)
                if took * number >= need:
                    break
                grown = math.ceil(need / max(took, 1e-9) * 1.1)
                number = max(number + 1, min(number * 10, grown))
            times.append(took)
        return times, clock.calls
    budget, slice_s = config["budget"], config["slice"]
    warm = first
    if flush is None and first < 0.05:
        warm = min(clock.one(1), clock.one(1) if first < 0.01 else first)  # the first was cold
    slow = best is not None and warm > config["give_up"] * best
    if slow:
        if warm > 0.005:
            return [warm], clock.calls + 1
        budget, slice_s = budget / 8, slice_s / 4
    number = 1 if flush else max(1, math.ceil(slice_s / max(warm, 1e-8)))
    end = time.perf_counter() + budget
    times = []
    while True:
        times.append(clock.one(number))
        if len(times) < 3:
            if time.perf_counter() > end + budget:
                break
            continue
        low = sorted(times)[: (len(times) + 1) // 2 + 1]
        if (len(times) >= 5 and low[-1] <= low[0] * 1.01) or time.perf_counter() > end or slow:
            break
        if best is not None and len(times) >= 4 and low[0] > 1.15 * best:
            break  # it is clearly slower than the best
    return times, clock.calls


class _Clock:
    """Times calls. With one thread it leaves out what other processes took of the core.

    A repeat during which the thread had the core for less than 98 % of the time counts with the
    time that it had.
    """

    def __init__(self, function: Any, tensors: list, threads: int, flush: Any) -> None:
        self.function, self.tensors, self.flush = function, tensors, flush
        self.own = threads == 1 and hasattr(time, "thread_time")
        self.calls = 0

    def one(self, number: int) -> float:
        """Seconds of one call, the mean of `number`."""
        from ...runtime.timing import time_calls

        if self.flush:
            self.flush()
        self.calls += number
        begun = time.thread_time() if self.own else 0.0
        took = time_calls(self.function, number, *self.tensors)
        if self.own:
            had = time.thread_time() - begun
            if had < 0.98 * took:
                took = had
        return took / number


def robust(times: list[float]) -> float:
    """The time that a list of repeats stands for: the median of its lower half.

    Other work on the machine only ever makes a run longer, so the lower half is what the kernel
    itself takes; its median does not depend on a single reading of the clock.
    """
    ordered = sorted(times)
    return statistics.median(ordered[: (len(ordered) + 1) // 2])


_scratch: Any = None


def _flush() -> None:
    """Write more memory than the caches hold."""
    global _scratch
    if _scratch is None:
        import numpy as np

        from ...machine.caches import cache_bytes

        _scratch = np.zeros(2 * max(cache_bytes().values(), default=1 << 25), dtype="uint8")
    _scratch += 1


@contextlib.contextmanager
def measuring_lock() -> Any:
    """Holds the machine's measuring lock, so that two searches do not time at the same moment."""
    try:
        import fcntl
    except ImportError:  # where there is no such lock, searches share the machine as they can
        yield
        return
    who = os.getuid() if hasattr(os, "getuid") else 0
    path = os.path.join(tempfile.gettempdir(), f"mlc_lab_measure_{who}.lock")
    try:
        file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def load(role: str) -> None:
    """Load what building and running need, so that the first request does not wait for it.

    A CUDA device is opened here, before memory is limited: its driver reserves addresses for all
    the memory of the device and of the host.
    """
    from ...runtime import jit, native_library
    from ...runtime.driver import driver_of

    driver_of("cuda")
    jit.host_machine().target_machine  # noqa: B018  (makes it)
    if role == "build":
        from ... import lower, target
        from ...backend import llvm

        del lower, target, llvm
    else:
        from ...observe import measure as _  # noqa: F401

        native_library.native_address("mlc_lab_time_calls")


#: what a worker of a search does
HANDLERS = {"build": build, "prepare": prepare, "run": run, "run_gpu": run_gpu}
