"""Timing of calls, in native code so that the loop costs nothing beside the calls."""

from __future__ import annotations

from ..llir import FunctionText, ModuleText


def _now(f: FunctionText, triple: str) -> str:
    """A monotonic time in nanoseconds, as an i64 operand."""
    if "windows" in triple:
        ticks, rate = f.var("i64"), f.var("i64")
        f.call("i32", "QueryPerformanceCounter", [f"ptr {ticks}"])
        f.call("i32", "QueryPerformanceFrequency", [f"ptr {rate}"])
        seconds = f.op(f"uitofp i64 {f.load('i64', ticks)} to double")
        per_second = f.op(f"uitofp i64 {f.load('i64', rate)} to double")
        scale = f.op(f"fdiv double 1.0e9, {per_second}")
        return f.op(f"fptosi double {f.op(f'fmul double {seconds}, {scale}')} to i64")
    monotonic = 8 if "darwin" in triple or "macos" in triple else 1
    spec = f.var("i64", count=2)
    f.call("i32", "clock_gettime", [f"i32 {monotonic}", f"ptr {spec}"])
    seconds = f.op(f"mul i64 {f.load('i64', spec)}, 1000000000")
    return f.op(f"add i64 {seconds}, {f.load('i64', f.gep('i64', spec, 1))}")


def write(m: ModuleText, triple: str) -> None:
    """Define ``mlc_lab_time_calls``, a packed function of (function, count, arguments...).

    It calls the function ``count`` times and returns the nanoseconds that took.
    """
    if "windows" in triple:
        m.declare("i32", "QueryPerformanceCounter", ["ptr"])
        m.declare("i32", "QueryPerformanceFrequency", ["ptr"])
    else:
        m.declare("i32", "clock_gettime", ["i32", "ptr"])
    m.declare("i32", "TVMFFIObjectDecRef", ["ptr"])
    params = [("ptr", "self"), ("ptr", "args"), ("i32", "n"), ("ptr", "ret")]
    with m.function("i32", "mlc_lab_time_calls", params) as f:
        func = f.load("ptr", f.gep("i8", "%args", 8))
        number = f.load("i64", f.gep("i8", "%args", 24))
        call = f.load("ptr", f.gep("i8", func, 24))  # the function cell follows the object header
        rest = f.gep("i8", "%args", 32)
        count = f.op("sub i32 %n, 2")
        result = f.var("i64", count=2)
        start = _now(f, triple)
        with f.for_range("0", number):
            f.store("i64", "0", result)
            f.store("i64", "0", f.gep("i64", result, 1))
            code = f.op(f"call i32 {call}(ptr {func}, ptr {rest}, i32 {count}, ptr {result})")
            with f.if_(f.op(f"icmp ne i32 {code}, 0")):
                f.ret(f"i32 {code}")
            with f.if_(f.op(f"icmp sge i32 {f.load('i32', result)}, 64")):
                returned = f.load("ptr", f.gep("i64", result, 1))
                f.call("i32", "TVMFFIObjectDecRef", [f"ptr {returned}"])
        elapsed = f.op(f"sub i64 {_now(f, triple)}, {start}")
        f.store("i64", "1", "%ret")  # an integer
        f.store("i64", elapsed, f.gep("i8", "%ret", 8))
        f.ret("i32 0")
