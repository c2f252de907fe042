"""Ending loops from outside: a number that they look at, and that another thread sets."""

from __future__ import annotations

from ..llir import ModuleText


def write(m: ModuleText, triple: str) -> None:
    """Define ``mlc_lab_stopped()``, which gives the number, and ``mlc_lab_stop(number)``."""
    m.globals.append("@mlc_lab_stop_number = internal global i32 0, align 4")
    with m.function("i32", "mlc_lab_stopped", []) as f:
        f.ret(f"i32 {f.op('load atomic i32, ptr @mlc_lab_stop_number monotonic, align 4')}")
    with m.function("void", "mlc_lab_stop", [("i32", "number")]) as f:
        f.do("store atomic i32 %number, ptr @mlc_lab_stop_number release, align 4")
        f.ret()
