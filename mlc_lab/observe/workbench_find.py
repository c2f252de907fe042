"""Finds blocks and loops in a schedule: by the key of a recording, by name, as random variables."""

from __future__ import annotations

from typing import Any

from ..ir.diagnostics import MLCError
from ..schedule.instruction import Instruction
from ..schedule.schedule import Schedule
from ..schedule.state import StmtSRef, child_realizes
from ..tir.stmt import Block, For
from .recording import Recorder
from .workbench_palette import statements_in_order


class WorkbenchError(MLCError, ValueError):
    """Something that cannot be done with this tree: the message says what, and what can."""


def by_key(sch: Schedule, recorder: Recorder, key: int) -> StmtSRef:
    """The block or loop that a key of the recording stands for, in a schedule."""
    keys = recorder.recording.keys
    if not 0 <= key < len(keys):
        raise WorkbenchError(f"there is no key {key}")
    kind, name = keys[key]
    identity = recorder.identity(key)
    for sref in sch.state.refs.values():
        stmt = sref.stmt
        if type(stmt) is For:
            if kind == "loop" and stmt.loop_var is identity:
                return sref
        elif kind == "iterator":
            if any(iv.var is identity for iv in stmt.iter_vars):
                return sref
        elif kind == "block":
            if isinstance(identity, tuple):
                if (sref.func.name_hint, stmt.name_hint) == identity and not stmt.iter_vars:
                    return sref
            elif stmt.iter_vars and stmt.iter_vars[0].var is identity:
                return sref
    raise WorkbenchError(f"the {kind} {name} is not in the program at this node")


def by_name(sch: Schedule, name: str) -> StmtSRef:
    """The block or loop of that name: "Y", "j", or "Y/j" for the loop j around block Y."""
    owner, _, loop = name.rpartition("/")
    refs = sch.state.refs
    if owner:
        block = by_name(sch, owner)
        found = [s for s in sch.state.loops_above(block) if s.stmt.loop_var.name == loop]
    else:
        found = [refs[s] for s in statements_in_order(sch.state)
                 if (s.name_hint if type(s) is Block else s.loop_var.name) == name]  # fmt: skip
        blocks = [s for s in found if type(s.stmt) is Block]
        found = blocks or found
    if len(found) == 1:
        return found[0]
    if not found:
        every = statements_in_order(sch.state)
        names = [s.name_hint if type(s) is Block else s.loop_var.name for s in every]
        have = ", ".join(dict.fromkeys(names))
        raise WorkbenchError(f"there is no block or loop {name!r} here; there are {have}")
    under = [f"{b.block.name_hint}/{name}" for s in found for b in child_realizes(s.stmt)[:1]]
    raise WorkbenchError(f"{name!r} is the name of {len(found)} loops; say which: "
                         + ", ".join(under))  # fmt: skip


def variable(sch: Schedule, sref: StmtSRef) -> Any:
    """The random variable of a block or loop in `sch`: one it has, or one looked up."""
    found = sch.rv_of(sref)
    if found is not None:
        return found
    if type(sref.stmt) is For:
        blocks = child_realizes(sref.stmt)
        if not blocks:
            raise WorkbenchError(f"there is no block inside loop {sref.stmt.loop_var.name}: "
                                 "it cannot be looked up")  # fmt: skip
        block = variable(sch, sch.state.refs[blocks[0].block])
        for rv in sch.get_loops(block):
            if sch.known_sref(rv) is sref:
                return rv
        raise WorkbenchError(f"loop {sref.stmt.loop_var.name} cannot be looked up")
    name, function = sref.stmt.name_hint, sref.func and sref.func.name_hint
    alike = [s for s, r in sch.state.refs.items()
             if type(s) is Block and s.name_hint == name and r.func is sref.func]  # fmt: skip
    if len(alike) == 1 or sref.parent is None:
        return sch.get_block(name=name, func_name=function)
    scope = variable(sch, sch.state.scope_root(sref))
    for rv in sch.get_child_blocks(scope):
        if sch.known_sref(rv) is sref:
            return rv
    raise WorkbenchError(f"block {name} cannot be looked up")


def home_of(sch: Schedule) -> str | None:
    """The function `get_block` looks in."""
    return None if sch.func_working_on is None else sch.func_working_on.name_hint


def name_for(sch: Schedule, rv: Any, inst: Instruction) -> str:
    """What a random variable would best be called: as what it stands for."""
    value = sch.known_sref(rv)
    if value is None or value.stmt is None:
        return inst.args.get("name", "v")
    return value.stmt.loop_var.name if type(value.stmt) is For else value.stmt.name_hint
