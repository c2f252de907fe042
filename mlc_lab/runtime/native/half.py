"""Conversions to and from float16, for processors that have none.

LLVM calls these by the names that compiler-rt and libgcc give them. Rounding is to nearest, ties
to even; the algorithms work on the bit patterns (IEEE 754-2019, section 3.6 and 4.3).
"""

from __future__ import annotations

from ..llir import FunctionText, ModuleText

_MAGIC = 0x4330000000000000  # 2^52 as a double: adding it rounds away the fraction


def _narrow(f: FunctionText, bits: str) -> None:
    """Return the half nearest to the double with the bit pattern ``bits``."""
    sign = f.op(f"trunc i64 {f.op(f'lshr i64 {bits}, 48')} to i16")
    sign = f.op(f"and i16 {sign}, -32768")
    magnitude = f.op(f"and i64 {bits}, 9223372036854775807")

    def give(value: str) -> None:
        signed = f.op(f"or i16 {value}, {sign}")
        f.ret(f"half {f.op(f'bitcast i16 {signed} to half')}")

    with f.if_(f.op(f"icmp ugt i64 {magnitude}, {0x7FF0000000000000}")):
        give(str(0x7E00))  # not a number
    with f.if_(f.op(f"icmp uge i64 {magnitude}, {0x40EFFE0000000000}")):
        give(str(0x7C00))  # 65520 and above round to infinity
    with f.if_(f.op(f"icmp ult i64 {magnitude}, {0x3F10000000000000}")):
        # Below 2^-14 halves are multiples of 2^-24.
        value = f.op(f"bitcast i64 {magnitude} to double")
        scaled = f.op(f"fmul double {value}, 1.677721600000000000e+07")
        shifted = f.op(f"bitcast double {f.op(f'fadd double {scaled}, 0x{_MAGIC:016X}')} to i64")
        give(f.op(f"trunc i64 {shifted} to i16"))
    odd = f.op(f"and i64 {f.op(f'lshr i64 {magnitude}, 42')}, 1")
    rounded = f.op(f"add i64 {f.op(f'add i64 {magnitude}, {(1 << 41) - 1}')}, {odd}")
    kept = f.op(f"trunc i64 {f.op(f'lshr i64 {rounded}, 42')} to i16")
    give(f.op(f"sub i16 {kept}, {((1023 - 15) << 10) - (1 << 16)}"))


def write(m: ModuleText, triple: str) -> None:
    """Define ``__truncsfhf2``, ``__truncdfhf2`` and ``__extendhfsf2``."""
    with m.function("half", "__truncdfhf2", [("double", "x")]) as f:
        _narrow(f, f.op("bitcast double %x to i64"))
    with m.function("half", "__truncsfhf2", [("float", "x")]) as f:
        wide = f.op("fpext float %x to double")
        _narrow(f, f.op(f"bitcast double {wide} to i64"))
    with m.function("float", "__extendhfsf2", [("half", "x")]) as f:
        bits = f.op(f"zext i16 {f.op('bitcast half %x to i16')} to i32")
        sign = f.op(f"shl i32 {f.op(f'and i32 {bits}, 32768')}, 16")
        magnitude = f.op(f"and i32 {bits}, 32767")

        def give(value: str) -> None:
            signed = f.op(f"or i32 {value}, {sign}")
            f.ret(f"float {f.op(f'bitcast i32 {signed} to float')}")

        with f.if_(f.op(f"icmp ult i32 {magnitude}, 1024")):
            value = f.op(f"uitofp i32 {magnitude} to float")
            value = f.op(f"fmul float {value}, 0x3E70000000000000")  # 2^-24
            give(f.op(f"bitcast float {value} to i32"))
        wide = f.op(f"add i32 {f.op(f'shl i32 {magnitude}, 13')}, {112 << 23}")
        with f.if_(f.op(f"icmp uge i32 {magnitude}, 31744")):
            give(f.op(f"add i32 {wide}, {112 << 23}"))
        give(wide)
