"""Scratch memory for kernels: aligned blocks from the C heap."""

from __future__ import annotations

from ..llir import ModuleText

ALIGNMENT = 128


def write(m: ModuleText, triple: str) -> None:
    """Define ``mlc_lab_alloc(size)`` (null when memory is out), ``mlc_lab_free(block)``, and
    ``mlc_lab_free_all(slots, count)``, which frees what lies in slots that others may take from.
    """
    m.declare("ptr", "malloc", ["i64"])
    m.declare("void", "free", ["ptr"])
    # The address that malloc gave is kept in the word before the aligned block.
    with m.function("ptr", "mlc_lab_alloc", [("i64", "size")]) as f:
        raw = f.call("ptr", "malloc", [f"i64 {f.op(f'add i64 %size, {ALIGNMENT}')}"])
        none = f.op(f"icmp eq ptr {raw}, null")
        with f.if_(none):
            f.ret("ptr null")
        address = f.op(f"ptrtoint ptr {raw} to i64")
        past = f.op(f"add i64 {address}, {ALIGNMENT}")
        block = f.op(f"inttoptr i64 {f.op(f'and i64 {past}, {-ALIGNMENT}')} to ptr")
        f.store("ptr", raw, f.gep("i8", block, -8))
        f.ret(f"ptr {block}")
    with m.function("void", "mlc_lab_free", [("ptr", "block")]) as f:
        f.call("void", "free", [f"ptr {f.load('ptr', f.gep('i8', '%block', -8))}"])
        f.ret()
    with m.function("void", "mlc_lab_free_all", [("ptr", "slots"), ("i64", "count")]) as f:
        at = f.var("i64", "0")
        head, body, done = (f.new_label(hint) for hint in ("head", "body", "done"))
        f.br(head)
        f.label(head)
        here = f.load("i64", at)
        f.cond_br(f.op(f"icmp slt i64 {here}, %count"), body, done)
        f.label(body)
        slot = f.gep("ptr", "%slots", here)
        block = f.op(f"atomicrmw xchg ptr {slot}, ptr null acq_rel")
        with f.if_(f.op(f"icmp ne ptr {block}, null")):
            f.call("void", "mlc_lab_free", [f"ptr {block}"])
        f.store("i64", f.op(f"add i64 {here}, 1"), at)
        f.br(head)
        f.label(done)
        f.ret()
