"""What the machine can do at most: floating point operations and bytes a second, measured.

The speed of a kernel is compared with these numbers. Both kernels are LLVM IR written here: a loop
of independent fused multiply-adds in registers, and loops that read, or read and write, an array of
the size of each level of the memory.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections import Counter
from typing import Callable, Sequence

import numpy as np

from ..runtime import jit, linking
from .caches import cache_bytes
from .vectors import vector_bits

__all__ = ["bandwidth", "measure_bandwidth", "measure_peak", "peak"]

# Enough chains of dependent operations to fill two units with a latency of five cycles, and few
# enough for sixteen registers.
_CHAINS = 12
_TYPES = {"float32": ("float", 32), "float64": ("double", 64), "float16": ("half", 16)}


@functools.cache
def _fma_loop(dtype: str) -> tuple[Callable[..., None], int]:
    """A function of a count that runs ``count`` rounds, and the operations of one round."""
    ty, bits = _TYPES[dtype]
    lanes = vector_bits() // bits
    vector = f"<{lanes} x {ty}>"
    suffix = f"v{lanes}f{bits}"
    fused = any(f in jit.host_cpu()[2].split(",") for f in ("+fma", "+neon"))
    start = [f"%s{k} = fmul {vector} %x, splat ({ty} {_hex(1 + k / 16, bits)})"
             for k in range(_CHAINS)]
    phis, steps = [], []
    for k in range(_CHAINS):
        phis.append(f"%a{k} = phi {vector} [%s{k}, %entry], [%b{k}, %loop]")
        if fused:
            steps.append(
                f"%b{k} = call {vector} @llvm.fma.{suffix}({vector} %a{k}, {vector} %m, "
                f"{vector} %x)"
            )
        else:
            steps.append(f"%t{k} = fmul {vector} %a{k}, %m")
            steps.append(f"%b{k} = fadd {vector} %t{k}, %x")
    total, sums = "%b0", []
    for k in range(1, _CHAINS):
        sums.append(f"%z{k} = fadd {vector} {total}, %b{k}")
        total = f"%z{k}"
    text = f"""
declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})
define void @run(i64 %n, ptr %p) {{
entry:
  %x = load {vector}, ptr %p, align 64
  %q = getelementptr i8, ptr %p, i64 64
  %m = load {vector}, ptr %q, align 64
  {chr(10).join(start)}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  {chr(10).join(phis)}
  {chr(10).join(steps)}
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  {chr(10).join(sums)}
  store {vector} {total}, ptr %p, align 64
  ret void
}}
"""
    return _compile(text, [ctypes.c_int64, ctypes.c_void_p]), 2 * lanes * _CHAINS


def _hex(value: float, bits: int) -> str:
    import struct

    if bits == 16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


#: keeps the code of the compiled loops, of which there are a few, in memory
_libraries: list[linking.Library] = []


def _compile(text: str, argtypes: Sequence[type]) -> Callable[..., None]:
    library = linking.link(jit.compile_ir(text, unroll=False, vectorize=False).obj, ["run"], {})
    func = ctypes.CFUNCTYPE(None, *argtypes)(library.address("run"))
    _libraries.append(library)
    return func


def _aligned(nbytes: int) -> np.ndarray:
    raw = np.ones(nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 128
    return raw[start : start + nbytes]


def measure_peak(dtype: str = "float32", seconds: float = 0.1) -> float:
    """Floating point operations a second of one core, a fused multiply-add counting as two.

    The best of several runs; dtype is float16, float32 or float64.
    """
    if dtype not in _TYPES:
        raise ValueError(f"the peak is measured for {', '.join(_TYPES)}, not for {dtype!r}")
    run, operations = _fma_loop(dtype)
    data = _aligned(192)
    values = data.view(dtype)
    values[:] = 0.5
    count, best, runs = 20000, 0.0, 0
    end = time.perf_counter() + seconds
    # The best of many short runs: a long one is more likely to be interrupted.
    while runs < 8 or time.perf_counter() < end:
        start = time.perf_counter()
        run(count, data.ctypes.data)
        took = time.perf_counter() - start
        values[:] = 0.5
        if took < seconds / 50:
            count *= 2
            continue
        best = max(best, operations * count / took)
        runs += 1
    return best


#: the best of each peak and bandwidth that was measured in this process, and how often
_best: dict[tuple[str, str], float] = {}
_times: Counter[tuple[str, str]] = Counter()
#: measurements of one number in a process
_MOST = 4


def peak(dtype: str = "float32", reached: float = 0.0) -> float:
    """The best of what ``measure_peak(dtype)`` has found in this process.

    It is measured once; and once more where a program ``reached`` more operations a second, since
    the machine may have been busy with something else at that moment: four times at most.
    """
    return _best_of("peak", dtype, lambda: measure_peak(dtype), reached)


def bandwidth(level: str = "memory", reached: float = 0.0) -> float:
    """The best of what ``measure_bandwidth(level)`` has found in this process; see `peak`."""
    return _best_of("read", level, lambda: measure_bandwidth(level, "read", 0.05), reached)


def _best_of(what: str, which: str, measure: Callable[[], float], reached: float) -> float:
    key = what, which
    while not _times[key] or reached > _best[key] and _times[key] < _MOST:
        found = measure()  # or raises: then nothing is known
        _best[key] = max(found, _best.get(key, 0.0))
        _times[key] += 1
    return _best[key]


@functools.cache
def _stream(kind: str) -> Callable[..., None]:
    """A pass over ``n`` bytes of arrays, repeated: read them, or a = b + s * c."""
    lanes = vector_bits() // 32
    vector, step, wide = f"<{lanes} x float>", vector_bits() // 8, 8
    body, phis, ends = [], [], []
    for k in range(wide):
        body.append(f"%o{k} = add i64 %i, {k * step}")
        body.append(f"%p{k} = getelementptr i8, ptr %b, i64 %o{k}")
        body.append(f"%x{k} = load {vector}, ptr %p{k}, align 64")
        if kind == "read":
            phis.append(f"%s{k} = phi {vector} [zeroinitializer, %pass], [%t{k}, %loop]")
            body.append(f"%t{k} = fadd {vector} %s{k}, %x{k}")
            ends.append(f"store volatile {vector} %t{k}, ptr %a, align 64")
        else:
            body.append(f"%q{k} = getelementptr i8, ptr %c, i64 %o{k}")
            body.append(f"%y{k} = load {vector}, ptr %q{k}, align 64")
            body.append(f"%m{k} = fmul {vector} %y{k}, splat (float 3.0)")
            body.append(f"%t{k} = fadd {vector} %x{k}, %m{k}")
            body.append(f"%r{k} = getelementptr i8, ptr %a, i64 %o{k}")
            body.append(f"store {vector} %t{k}, ptr %r{k}, align 64")
    text = f"""
define void @run(i64 %repeat, i64 %n, ptr noalias %a, ptr noalias %b, ptr noalias %c) {{
entry:
  br label %pass
pass:
  %k = phi i64 [0, %entry], [%k2, %next]
  br label %loop
loop:
  %i = phi i64 [0, %pass], [%j, %loop]
  {chr(10).join(phis)}
  {chr(10).join(body)}
  %j = add i64 %i, {wide * step}
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %next
next:
  {chr(10).join(ends)}
  %k2 = add i64 %k, 1
  %again = icmp ult i64 %k2, %repeat
  br i1 %again, label %pass, label %done
done:
  ret void
}}
"""
    return _compile(text, [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 3)


def measure_bandwidth(level: str = "memory", kind: str = "read", seconds: float = 0.1) -> float:
    """Bytes a second that one core moves to or from a level of the memory.

    ``level`` is L1, L2, L3 or memory; ``kind`` is read, or triad (a = b + s * c, counting two reads
    and a write). The best of several passes.
    """
    sizes = cache_bytes()
    if kind not in ("read", "triad"):
        raise ValueError(f"bandwidth is measured for 'read' and 'triad', not for {kind!r}")
    if level == "memory":
        size = min(max(4 * sizes.get("L3", 0), 128 << 20), 256 << 20)
    elif level in sizes:
        size = sizes[level] // 2  # half of it stays in the cache
    else:
        raise ValueError(f"the memory has levels {', '.join(sizes)} and memory, not {level!r}")
    arrays = 1 if kind == "read" else 3
    block = vector_bits() // 8 * 8
    nbytes = max(size // arrays // block * block, block)
    a, b, c = (_aligned(nbytes if kind == "triad" or at == 1 else 128) for at in range(3))
    run = _stream(kind)
    pointers = [x.ctypes.data for x in (a, b, c)]
    repeat, best = max(1, (1 << 20) // nbytes), 0.0
    run(1, nbytes, *pointers)
    end = time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        run(repeat, nbytes, *pointers)
        took = time.perf_counter() - start
        best = max(best, repeat * nbytes * arrays / took)
        if took < seconds / 8:
            repeat *= 2
        elif time.perf_counter() > end:
            return best
