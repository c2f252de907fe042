"""What lives in which vector register of an inner loop.

Told from the instructions that write a register and from the line of the program that each of them
came from: an addition to what the register had is a sum of what the line stores; a load is of what
the line reads in vectors, a broadcast of what it reads one element at a time. Where a line leaves
several buffers open, all are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from ..language import text
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad
from ..tir.function import PrimFunc
from ..tir.functor import all_statements, pre_order
from ..tir.stmt import BufferStore, LetStmt
from .assembly import kind_of, width_of
from .inner_loop import InnerLoop

if TYPE_CHECKING:
    from .lowering import Lowered

_ADDS = re.compile(r"v?(fn?m(?:add|sub)(?:132|213|231)?|add[sp][sdh]|mov(?:[au]p|s)[sd])"
                   r"|(fml[as]|fadd|fn?m(?:add|sub)|mov)\b")
#: instructions of x86 that write neither a register nor memory, and some that write unnamed ones
_ASKS = re.compile(r"f?cmp[bwlqe]?\s|test|v?u?comis|vp?test|bt[wlq]?\s|j|prefetch|push")
_IMPLIED = re.compile(r"cltq|cqto|cltd|cwtl|mul|div|idiv|imul[bwlq]?\s+[^,]*$|call|xchg")
#: what computes a value: a store, or a name for it
Work = BufferStore | LetStmt
_VECTOR = re.compile(r"^%?([xyz]mm\d+|[vq]\d+)\b")
_SPREADS = re.compile(r"v?p?broadcast|v?movddup|ld\dr|dup")


def operands(line: str) -> list[str]:
    """The operands of an instruction, the result first."""
    found = [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", line.partition(" ")[2])]
    if "%" in line:  # AT&T's order
        found.reverse()
    return [re.sub(r"^v(\d+)\.\w+$", r"v\1", part) for part in found]


def steady(loop: InnerLoop) -> list[list[str]]:
    """The operands of each instruction of a loop, a place in memory named for its address: the same
    in each iteration, as "64(%r13)" or "([8(%rsp)])" where a register has come from the stack, or
    "" where the address is another one in each. Of other processors than x86: registers alone."""
    lines = [line.expandtabs(1) for line in loop.instructions]
    found = [operands(line) for line in lines]
    if not any("%" in line for line in lines):
        return [[_of_arm(part) for part in parts] for parts in found]
    changed = {place for line, parts in zip(lines, found) for place in _written(line, parts)}
    address: dict[str, str] = {}

    def named(part: str) -> str:
        if "(" not in part:
            return part
        before, _, rest = part.partition("(")
        inside = [term.strip() for term in rest.partition(")")[0].split(",")]
        known = [term if "%" not in term or _whole(term) not in changed else
                 address.get(_whole(term), "") for term in inside]
        spread = rest.partition(")")[2]  # {1to8}: one element, not what is stored there
        return f"{before}({','.join(known)}){spread}" if all(
            new or not old for new, old in zip(known, inside)) else ""

    out = []
    for n, (line, parts) in enumerate(zip(lines, found)):
        out.append([named(part) for part in parts])
        for register in _written(line, parts):
            address.pop(register, None)
        if n in loop.on_stack and len(parts) == 2 and "(" in parts[1] and parts[1] not in changed:
            address[_whole(parts[0])] = f"[{parts[1]}]"
    return out


def _of_arm(register: str) -> str:
    """The name of a vector register of ARM without its width."""
    return re.sub(r"^[qdsh](\d+)$", r"v\1", register)


def _whole(register: str) -> str:
    """The name of a general register of x86 without its width."""
    return re.sub(r"^%[er]?|(?<=\d)[dwb]$", "", register)


def _written(line: str, parts: list[str]) -> Iterator[str]:
    """What an instruction for x86 writes: general registers without their widths, and places."""
    if _ASKS.match(line):
        return
    if _IMPLIED.match(line):
        yield from ("ax", "dx")
    if line.startswith("call"):
        yield from ("ax", "cx", "dx", "si", "di", "8", "9", "10", "11")
    elif parts:
        yield parts[0] if "(" in parts[0] else _whole(parts[0])


def accumulators(loop: InnerLoop) -> set[str]:
    """The registers and the places in memory (`steady`) that each iteration adds to, and that hold
    a sum of their own: an addition waits only for the one before it to the same sum."""
    lines = [line.expandtabs(1) for line in loop.instructions]
    parted = steady(loop)
    # of ARM a store names first what it reads
    stores = [("%" not in line and line.startswith("st")) or _ASKS.match(line) is not None
              for line in lines]
    written = {parts[0] for parts, store in zip(parted, stores) if parts and not store} - {""}
    # which value at the start of the iteration a register or a place is a sum to
    of = {register: register for register in written}
    added = set()
    for line, parts, store in zip(lines, parted, stores):
        if not parts or store:
            continue
        known = _ADDS.match(line)
        name: str = known[1] or known[2] if known else ""
        if not name:
            terms = []
        elif name.endswith("132"):
            terms = parts[1:2]
        elif name.endswith("213"):
            terms = parts[2:3]
        elif name.endswith("231") or name.startswith("fml"):
            terms = parts[:1]
        elif name.startswith("f") and "m" in name:
            terms = parts[3:4]
        else:
            terms = parts[1:]
        found = next((of[term] for term in terms if of.get(term)), "")
        if parts[0]:
            of[parts[0]] = found
        if line.startswith("ldp"):
            of[parts[1]] = ""
        if found and not name.startswith("mov"):
            added.add(found)
    return {place for place in added if of[place] == place}


def sums(loop: InnerLoop) -> set[str]:
    """The accumulators of a loop that are registers: those in memory wait for memory, too."""
    return {place for place in accumulators(loop) if "(" not in place}


def stores_by_line(lowered: Lowered) -> dict[int, list[Work]]:
    """The stores of a lowered program, and the values that it names first, by the lines of the
    program that they came from."""
    found: dict[int, list[Work]] = {}
    for func in lowered.module.functions.values():
        for s in all_statements(func.body) if type(func) is PrimFunc else ():
            if isinstance(s, (BufferStore, LetStmt)):
                for line in lowered.origins.get(s, ()):
                    found.setdefault(line, []).append(s)
    return found


def held(loop: InnerLoop, stores: Mapping[int, list[Work]]) -> list[dict[str, Any]]:
    """What the vector registers of a loop hold, as {"registers": [names], "what": text}, those with
    the same together. `stores` gives the stores on each line of the program."""
    adds = sums(loop)
    stores_to_memory = any(kind_of(line, "%" in line) == "store" and n not in loop.on_stack
                           for n, line in enumerate(loop.instructions))
    found: dict[int, list[str]] = {}
    names: dict[int, str] = {}
    said: dict[tuple[int, ...], _Said] = {}
    for n, (line, places) in enumerate(zip(loop.instructions, loop.places)):
        line = line.expandtabs(1)
        kind = kind_of(line, "%" in line)
        if kind in ("store", "branch", "compare") and "k" not in line.split()[-1][:2]:
            continue
        parts = operands(line)
        named = _VECTOR.match(parts[0]) if parts else None
        if named is None:
            continue
        if places not in said:  # once, not for each instruction: an unrolled line is long
            said[places] = _Said(s for place in places or sorted(loop.lines)
                                 for s in stores.get(place, ()))
        what = text("a value that was kept on the stack", "views") if n in loop.on_stack else (
            said[places].what(line, kind, _of_arm(parts[0]) in adds, stores_to_memory))
        name = re.sub(r"^q", "v", named[1])
        number = int(re.sub(r"\D", "", name))
        names[number] = max(names.get(number, ""), name)  # the widest: xmm1 is a part of ymm1
        known = found.setdefault(number, [])
        if what not in known:
            known.append(what)
    groups: dict[str, list[str]] = {}
    for number in sorted(found):
        groups.setdefault(text(", then ", "views").join(found[number]), []).append(names[number])
    return [{"registers": registers, "what": what} for what, registers in groups.items()]


class _Said:
    """The buffers that some statements name: `targets` are stored to; of what is read each is in
    `one` where one element is read at a time, and in `many` where it may be a vector."""

    def __init__(self, stores: Iterable[Work]) -> None:
        self.targets: dict[Buffer, None] = {}
        self.one: dict[Buffer, None] = {}
        self.many: dict[Buffer, None] = {}
        for s in stores:
            if type(s) is BufferStore:
                self.targets[s.buffer] = None
            wide = dt.lanes_of(s.value.dtype) > 1
            for n in pre_order(s.value):
                if type(n) is BufferLoad:
                    vector = any(dt.lanes_of(i.dtype) > 1 for i in n.indices)
                    (self.many if vector else self.one)[n.buffer] = None
                    if not wide:
                        self.many[n.buffer] = None

    def what(self, line: str, kind: str, adds: bool, stored: bool) -> str:
        """What an instruction that writes a register leaves in it; `stored`: whether the loop
        stores to memory."""
        if adds:
            return text("sums of {name}", "views").format(
                name=_named(self.targets) or text("the iterations", "views"))
        spreads = _SPREADS.match(line) is not None
        if kind != "load" and not (spreads and ("(" in line or "[" in line)):
            return (text("one value in every lane", "views") if spreads else
                    text("values on their way", "views"))
        one, many = (_named(b for b in read if stored or b not in self.targets)
                     for read in (self.one, self.many))
        memory = text("memory", "views")
        if spreads:
            return text("an element of {name} in every lane", "views").format(name=one or memory)
        if width_of(line):
            return text("vectors of {name}", "views").format(name=many or memory)
        return text("an element of {name}", "views").format(name=one or many or memory)


def _named(buffers: Iterable[Buffer]) -> str:
    """The names of some buffers, each once; nothing where there are many."""
    different = list(dict.fromkeys(buffer.name for buffer in buffers))
    return text(" or ", "views").join(different) if len(different) < 4 else ""


__all__ = ["accumulators", "held", "operands", "steady", "stores_by_line", "sums"]
