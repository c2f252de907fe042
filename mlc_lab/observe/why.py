"""Why a step made a program faster or slower, in sentences made from exact counts.

    explain(recording)          # fills in `why` of each step whose programs have facts
    recording.steps[3].why      # ["L1 misses 94 % fewer: each element of B that is ...", ...]

A program's facts are its cost's "counts" (cache misses by level and by buffer, see `counts.py`)
and its "inner" loop in machine code (`inner_facts`). Each rule below looks at the facts before and
after a step and says one thing, or nothing; what changed most comes first. Where the measured time
went another way than all that is said, changed and nothing else did, or changed by much more than
all of that could make, that is said too (`_left_over`).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..language import text
from ..machine.vectors import vector_unit
from .assembly import kind_of, machine_code, mix, width_of
from .inner_loop import InnerLoop, main_loop, work_by_line
from .lowering import Line, lower_traced
from .recording import Recording, Step
from .registers import accumulators, held, steady, stores_by_line, sums

if TYPE_CHECKING:
    from ..ir.module import IRModule
    from ..target.target import TargetLike

#: a change by less than this factor is not worth a sentence
_WORTH = 1.1
#: traffic that takes less than this share of the time, neither
_SHARE = 0.02
#: moves of lines between cores that are fewer than this share of the accesses, neither
_MOVED = 0.001
#: sentences of a step
_MOST = 3
#: instructions of the inner loop that are kept
_SHOWN = 120
#: sums that hide the latency of an add: it takes four cycles, and two start in each
_HIDES = 8
#: general registers, with that of the stack
_X86_GENERAL, _ARM_GENERAL = 16, 31


@dataclass(frozen=True)
class Facts:
    """What is known of a program: counts and inner loop as its cost has them (empty: unknown), its
    parallel loops as (name, iterations or None), the machine, its time and spread."""

    counts: Mapping[str, Any]
    inner: Mapping[str, Any]
    parallel: tuple[tuple[str, int | None], ...]
    machine: Mapping[str, Any]
    time: float | None = None
    spread: float = 0.0


@dataclass(frozen=True)
class Reason:
    """A sentence, whether what it says makes a program faster (1), slower (-1) or neither (0), and
    by how much something changed (the logarithm of its ratio)."""

    text: str
    way: int
    size: float


def inner_facts(mod: IRModule, sizes: Mapping[str, int] | None = None, target: TargetLike = "llvm"
                ) -> dict[str, Any]:
    """The inner loop of a program in machine code, as plain data:

    "instructions", and of them "vector" (they name more of a vector register than one element),
    "fma", "loads" (those of other instructions' operands, too), "stores", "shuffles"; the floating
    point "operations" that they do, in elements of 32 bits;
    "width" of its widest vectors in bits (0: one element at a time); "sums" in registers that do
    not wait for each other, and with those in memory all "accumulators"; places in
    memory "carried" from one iteration to the next; "spills" and "reloads" of vector registers, and
    of general ones "general_spills" and "general_reloads", of which there are "general_of"; vector
    "registers" that are named, "of" so many there are, and what is "held" in them (see
    `registers.py`); "lines" of the program that it came from; its "text", an instruction a line, of
    a long loop the beginning; which of these lines spill or reload ("on_stack"); and "code", a
    digest of the whole assembly.
    Without a loop the counts are those of all instructions. Raises what the lowering and the code
    generator raise.
    """
    lowered = lower_traced(mod, target, stages=False)
    code = machine_code(lowered.module, lowered.origins, target, ir=False)
    loop = main_loop(code.loops, work_by_line(mod, lowered.origins, sizes), width_of)
    if loop is None:
        loop = InnerLoop([line.strip() for line, _ in code.assembly if line.startswith(" ")])
    found = mix([f" {line}" for line in loop.instructions])
    working = ("fma", "arithmetic", "compare", "load", "store")
    return {
        "instructions": found["instructions"],
        "vector": found["instructions"] - found.get("scalar", 0), "operations": _operations(loop),
        "fma": found.get("fma", 0),
        "loads": found.get("load", 0) + found.get("memory operands", 0) - sum(loop.loaded.values()),
        "stores": found.get("store", 0) - sum(loop.stored.values()),
        "shuffles": found.get("shuffle", 0),
        "width": max((width_of(line) for line in loop.instructions if _kind(line) in working),
                     default=0),
        "sums": len(sums(loop)), "accumulators": len(accumulators(loop)),
        "carried": _carried(loop), "spills": loop.spills, "reloads": loop.reloads,
        "general_spills": loop.stored["general"],
        "general_reloads": loop.loaded["general"],
        "general_of": _X86_GENERAL if any("%" in line for line in loop.instructions) else
        _ARM_GENERAL, "registers": loop.registers, "of": vector_unit(target).registers,
        "held": held(loop, stores_by_line(lowered)), "lines": sorted(loop.lines),
        "text": [line.expandtabs(8) for line in loop.instructions[:_SHOWN]],
        "on_stack": sorted(n for n in loop.on_stack if n < _SHOWN),
        "code": _digest(code.assembly),
    }  # fmt: skip


_LABEL = re.compile(r"\.?L[A-Z]\w*\d+(_\d+)?")
_X86_REGISTER = re.compile(r"%([xyz]mm|k)(\d+)|%([er]?)(\w+)")


def _digest(assembly: Sequence[Line]) -> str:
    """The same for assembly that differs in the numbers of its labels alone, or for x86 in which
    register is taken for what."""
    labels: dict[str, str] = {}
    registers: dict[str, str] = {}

    def register(m: re.Match[str]) -> str:
        if m[1]:
            name, width = ("k" if m[1] == "k" else "mm") + m[2], m[1]
        else:
            name, width = re.sub(r"(?<=\d)[dwb]$", "", m[4]), m[3]
            if name != m[4]:  # %r8d is as wide as %eax
                width = m[4][-1].replace("d", "e")
        return f"%{width}{registers.setdefault(name, str(len(registers)))}"

    text = _LABEL.sub(lambda m: labels.setdefault(m[0], f"L{len(labels)}"),
                      "\n".join(line for line, _ in assembly))
    return hashlib.sha256(_X86_REGISTER.sub(register, text).encode()).hexdigest()[:16]


_FLOATS = re.compile(r"v?(fn?m(add|sub)|(add|sub|mul|div|max|min)[sp][sdh])|fml[as]"
                     r"|f(add|sub|mul|div|max|min)|fn?m(add|sub)")


def _kind(line: str) -> str:
    return kind_of(line, "%" in line)


def _operations(loop: InnerLoop) -> int:
    """Floating point operations of an iteration, counted in elements of 32 bits."""
    return sum(max(width_of(line) // 32, 1) * (2 if _kind(line) == "fma" else 1)
               for line in loop.instructions if _FLOATS.match(line))


def _carried(loop: InnerLoop) -> int:
    """The places in memory that each iteration of a loop for x86 loads from and stores to after
    that, spills apart: their addresses do not change in the loop."""
    loaded, stored = set(), set()
    for n, (line, parts) in enumerate(zip(loop.instructions, steady(loop))):
        if n in loop.on_stack or line.startswith("lea"):
            continue
        places = [part if "(" in part else "" for part in parts]
        loaded |= {place for place in places[_kind(line) == "store":] if place not in stored}
        if places and _kind(line) not in ("compare", "branch"):
            stored.add(places[0])
    return len((loaded & stored) - {""})


# ------------------------------------------------------------------------------------- the rules


def _number(value: float) -> str:
    """Three digits, as people read them."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _compared(before: float, after: float) -> str:
    """How a count changed: "33 % fewer", "50 % more", "16 times fewer", "16 times as many"."""
    return _in_words(
        before, after, text("{share} % fewer", "views"), text("{share} % more", "views"),
        text("{times} times fewer", "views"), text("{times} times as many", "views"))


def _often(before: float, after: float) -> str:
    """The same of how often something is done: "33 % less often", "16 times as often"."""
    return _in_words(
        before, after, text("{share} % less often", "views"), text("{share} % more often", "views"),
        text("{times} times less often", "views"), text("{times} times as often", "views"))


def _in_words(before: float, after: float, share_less: str, share_more: str, times_less: str,
             times_more: str) -> str:
    """A change in words: a share up to twice, then a factor, spoken of alike in both directions."""
    ratio, less = max(before, after) / min(before, after), after < before
    if ratio < 1.995:
        share = f"{100 * (1 - 1 / ratio if less else ratio - 1):.0f}"
        return (share_less if less else share_more).format(share=share)
    return (times_less if less else times_more).format(times=_number(ratio))


def _fewer(before: float, after: float, what: str) -> str:
    """How a count of something changed: "16 times fewer L1 misses"."""
    if not before:
        return text("{count} {what}, none before", "views").format(count=_number(after), what=what)
    if not after:
        return text("No {what} any more", "views").format(what=what)
    return text("{change} {what}", "views").format(change=_compared(before, after), what=what)


def _size(before: float, after: float) -> float:
    """The logarithm of a ratio, with one added so that nothing is not infinitely less than one."""
    return abs(math.log((after + 1) / (before + 1)))


def _changed(before: float, after: float) -> bool:
    return max(before, after) > _WORTH * min(before, after)


def _misses(a: Facts, b: Facts) -> Iterator[Reason]:
    """The level of the caches at which the change costs or saves the most time."""
    worst: tuple[float, int] | None = None
    told = a.machine.get("bandwidth", {})
    times = [f.time for f in (a, b) if f.time]
    below = [level["name"] for level in a.counts["levels"][1:]] + ["memory"]
    for k, (old, new) in enumerate(zip(a.counts["levels"], b.counts["levels"])):
        moved = abs(old["bytes_in"] + old["bytes_out"] - new["bytes_in"] - new["bytes_out"])
        cost = moved / told.get(below[k], 100.0 / 3 ** k)
        if times and cost < _SHARE * min(times) * 1e9:
            continue
        if _changed(old["misses"], new["misses"]) and (worst is None or cost > worst[0]):
            worst = cost, k
    if worst is None:
        return
    k = worst[1]
    old, new = a.counts["levels"][k], b.counts["levels"][k]
    what = text("{level} misses", "views").format(level=new["name"])
    sentence = _fewer(old["misses"], new["misses"], what)
    name = _most_changed(a, b, lambda buffer: buffer["misses"][k])
    if name is not None:
        sentence += _reuse(name, new["name"], _uses(a, name, k), _uses(b, name, k))
    way = 1 if new["misses"] < old["misses"] else -1
    yield Reason(_ended(sentence), way, _size(old["misses"], new["misses"]))


def _whose(a: Facts, b: Facts) -> Iterator[Reason]:
    """Misses that are as many as before, but of other buffers: what was read along its lines is
    now read across them, and the other way round."""
    told = a.machine.get("bandwidth", {})
    times = [f.time for f in (a, b) if f.time]
    below = [level["name"] for level in a.counts["levels"][1:]] + ["memory"]
    before, after = (f.counts.get("buffers", {}) for f in (a, b))
    both = sorted(before.keys() & after.keys())
    for k, (old, new) in enumerate(zip(a.counts["levels"], b.counts["levels"])):
        if not both or _changed(old["misses"], new["misses"]):
            return  # `_misses` tells of it
        gained = {name: after[name]["misses"][k] - before[name]["misses"][k] for name in both}
        more, less = (pick(both, key=lambda name: gained[name]) for pick in (max, min))
        moved, most = min(gained[more], -gained[less]), max(old["misses"], new["misses"])
        cost = moved * a.machine["caches"][k]["line"] / told.get(below[k], 100.0 / 3 ** k)
        little = times and cost < _SHARE * min(times) * 1e9
        if moved <= (_WORTH - 1) * most or little:
            continue
        sentence = text("As many {level} misses as before, but more of {more} and fewer of {less}",
                        "views").format(level=new["name"], more=more, less=less)
        sentence += _reuse(more, new["name"], _uses(a, more, k), _uses(b, more, k))
        yield Reason(_ended(sentence), 0, math.log(1 + moved / most))
        return


def _ended(sentence: str) -> str:
    return text("{sentence}.", "views").format(sentence=sentence)


def _most_changed(a: Facts, b: Facts, of: Callable[[Any], int]) -> str | None:
    """The buffer of which a count changed most; None where no buffer is there before and after."""
    old, new = a.counts.get("buffers", {}), b.counts.get("buffers", {})
    both = sorted(name for name in old if name in new)
    return max(both, key=lambda name: abs(of(old[name]) - of(new[name])), default=None)


def _uses(facts: Facts, name: str, level: int) -> float | None:
    """How often an element is used for each time that it is brought into a level."""
    buffer = facts.counts["buffers"][name]
    brought = buffer["misses"][level] * facts.machine["caches"][level]["line"]
    return buffer["bytes"] / brought if brought else None


def _times(count: float) -> str:
    return text("once", "views") if count < 1.05 else text(
        "{count} times", "views").format(count=_number(count))


def _reuse(name: str, level: str, before: float | None, after: float | None) -> str:
    if after is None:
        return text(": {name} is in {level} whenever it is used", "views").format(
            name=name, level=level)
    if after < 0.95:
        said = text(": of what comes into {level} of {name}, only {share} % is used",
                    "views").format(level=level, name=name, share=f"{100 * after:.2g}")
    else:
        said = text(": each element of {name} is used {times} before it leaves {level}",
                    "views").format(name=name, times=_times(after), level=level)
    if before is not None and not _changed(before, after):
        # it is asked for more or less often, not used otherwise
        return text(", mostly those of {name}", "views").format(name=name)
    if before is None:
        return said
    if before < 0.95:
        share = f"{100 * before:.2g}"
        return said + (text(", {share} % before", "views") if after < 0.95 else
                       text("; before, {share} % of what came in was used", "views")).format(
                           share=share)
    if after < 0.95:
        return said + text("; before, each element was used {times}", "views").format(
            times=_times(before))
    return said + (text(", once before", "views") if before < 1.05 else
                   text(", {count} before", "views").format(count=_number(before)))


def _traffic(a: Facts, b: Facts) -> Iterator[Reason]:
    """Bytes that the program asks for: values that stay in registers need not be asked for."""
    old, new = (f.counts["bytes_read"] + f.counts["bytes_written"] for f in (a, b))
    if not _changed(old, new):
        return
    said = text("The program asks memory for {bytes}, {old} before", "views").format(
        bytes=_bytes(new), old=_bytes(old))
    name = _most_changed(a, b, lambda buffer: buffer["bytes"])
    if name is not None:
        x, y = (f.counts["buffers"][name]["bytes"] for f in (a, b))
        if 0 < y <= x / 2:
            said += text(": elements of {name} are used {count} times from a register for each "
                         "time they are loaded or stored", "views").format(
                             name=name, count=_number(x / y))
        elif 0 < min(x, y) and _changed(x, y):
            said += text(": elements of {name} are loaded and stored {often}", "views").format(
                name=name, often=_often(x, y))
    yield Reason(_ended(said), 1 if new < old else -1, _size(old, new))


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError


def _work(a: Facts, b: Facts) -> Iterator[Reason]:
    """Operations: a step that computes values again makes more of them."""
    old, new = a.counts.get("flops") or 0, b.counts.get("flops") or 0
    if old and new and _changed(old, new):
        change = _fewer(old, new, text("operations", "views"))
        said = (text("It does {change}: values are computed again.", "views") if new > old else
                text("It does {change}: fewer values are computed again.", "views"))
        yield Reason(said.format(change=change), 1 if new < old else -1, _size(old, new))


def _vectors(a: Facts, b: Facts) -> Iterator[Reason]:
    old, new = a.inner["width"], b.inner["width"]
    if old != new:
        said = [text("vectors of {bits} bits", "views").format(bits=w) if w else
                text("one element at a time", "views") for w in (new, old)]
        yield Reason(text("The inner loop works on {now}, on {old} before.", "views").format(
            now=said[0], old=said[1]), 1 if new > old else -1, _size(old / 32, new / 32))


def _spills(a: Facts, b: Facts) -> Iterator[Reason]:
    old, new = (f.inner["spills"] + f.inner["reloads"] for f in (a, b))
    values = {"registers": b.inner["of"], "stored": b.inner["spills"],
              "loaded": b.inner["reloads"], "stored_before": a.inner["spills"],
              "loaded_before": a.inner["reloads"], "old": old}
    values["accumulators"] = _accumulators(b)
    one = b.inner["spills"] == 1
    if new > old and _changed(old, new) and values["accumulators"] >= values["registers"]:
        said, way = (text("{accumulators} accumulators, {registers} vector registers: the inner "
                          "loop stores 1 value to the stack and loads {loaded} from it.", "views")
                     if one else
                     text("{accumulators} accumulators, {registers} vector registers: the inner "
                          "loop stores {stored} values to the stack and loads {loaded} from it.",
                          "views")), -1
    elif new > old and _changed(old, new):
        said, way = (text("The {registers} vector registers do not suffice: the inner loop stores "
                          "1 value to the stack and loads {loaded} from it.", "views") if one else
                     text("The {registers} vector registers do not suffice: the inner loop stores "
                          "{stored} values to the stack and loads {loaded} from it.", "views")), -1
    elif new and _changed(old, new):
        said, way = text("More values of the inner loop fit into the {registers} vector registers: "
                         "it stores {stored} to the stack and loads {loaded} from it, "
                         "{stored_before} and {loaded_before} before.", "views"), 1
    elif old > 0 and new == 0:
        said, way = text("All values of the inner loop fit into the {registers} vector registers; "
                         "{old} went to or came from the stack before.", "views"), 1
    else:
        return
    yield Reason(said.format(**values), way, _size(old, new))


def _addresses(a: Facts, b: Facts) -> Iterator[Reason]:
    """Spills of general registers: a loop that is written out for many rows has an address each."""
    stored, loaded = (tuple(f.inner.get(name, 0) for f in (a, b))
                      for name in ("general_spills", "general_reloads"))
    old, new = (stored[n] + loaded[n] for n in (0, 1))
    if not _changed(old, new):
        return
    if new > old:
        said = text("The {registers} general registers, which hold addresses and counters, do not "
                    "suffice: the inner loop stores {stored} of these to the stack and loads "
                    "{loaded} from it.", "views")
    elif new:
        said = text("More addresses and counters of the inner loop fit into the {registers} "
                    "general registers: it stores {stored} to the stack and loads {loaded} from "
                    "it, {stored_before} and {loaded_before} before.", "views")
    else:
        said = text("All addresses and counters of the inner loop fit into the {registers} general "
                    "registers; {old} went to or came from the stack before.", "views")
    yield Reason(said.format(
        registers=b.inner.get("general_of", _X86_GENERAL), stored=stored[1], loaded=loaded[1],
        stored_before=stored[0], loaded_before=loaded[0], old=old),
        -1 if new > old else 1, _size(old, new))


def _accumulators(facts: Facts) -> int:
    """How many sums the inner loop adds to, in registers and in memory."""
    return facts.inner.get("accumulators", facts.inner["sums"])


def _carries(a: Facts, b: Facts) -> Iterator[Reason]:
    """A sum in memory: its next addition waits until the store can be read again."""
    old, new = a.inner["carried"], b.inner["carried"]
    count, registers = _accumulators(b), b.inner["of"]
    kept = count - b.inner["sums"]
    if new and not old:
        if kept < 1:
            said = text("Each iteration of the inner loop loads what the one before it has "
                        "stored: the sums go through memory, and each addition waits for that.",
                        "views")
        elif count <= registers:
            said = text("{kept} of {count} accumulators are kept in memory: each iteration of the "
                        "inner loop loads what the one before it has stored, and each addition to "
                        "them waits for that.", "views")
        elif kept < count:
            said = text("{count} accumulators, {registers} vector registers: {kept} are kept in "
                        "memory. Each iteration of the inner loop loads what the one before it has "
                        "stored, and each addition to them waits for that.", "views")
        else:
            said = text("{count} accumulators, {registers} vector registers: they are kept in "
                        "memory. Each iteration of the inner loop loads what the one before it has "
                        "stored, and each addition waits for that.", "views")
        yield Reason(said.format(count=count, registers=registers, kept=kept), -1, math.log(4))
    elif old and not new:
        yield Reason(text("The sums of the inner loop do not go through memory any more: no "
                          "addition waits for a store.", "views"), 1, math.log(4))


def _latency(a: Facts, b: Facts) -> Iterator[Reason]:
    old, new = a.inner["sums"], b.inner["sums"]
    if bool(a.inner["carried"]) != bool(b.inner["carried"]):
        return  # sums have gone to memory or come from there: what waits for that hides nothing
    if old and new and min(old, new) < _HIDES and max(old, new) >= 2 * min(old, new):
        effect = text("each addition waits for the one before it", "views") if new == 1 else \
            text("less of the latency of the add is hidden", "views") if new < old else \
            text("the latency of the add is hidden", "views") if new >= _HIDES else \
            text("more of the latency of the add is hidden", "views")
        said = (text("The inner loop adds to 1 independent sum, to {old} before: {effect}.",
                     "views") if new == 1 else
                text("The inner loop adds to {new} independent sums, to {old} before: {effect}.",
                     "views"))
        yield Reason(said.format(new=new, old=old, effect=effect),
                     1 if new > old else -1, _size(old, new))


def _effort(a: Facts, b: Facts) -> Iterator[Reason]:
    """Instructions for each operation: what remains are addresses, conditions, copies."""
    if a.inner["operations"] and b.inner["operations"]:
        old, new = (f.inner["instructions"] / f.inner["operations"] for f in (a, b))
        if _changed(old, new):
            said = text("The inner loop takes {new} instructions for each operation, {old} before.",
                        "views").format(new=f"{new:.2g}", old=f"{old:.2g}")
            yield Reason(said, 1 if new < old else -1, abs(math.log(new / old)))


def _loads(a: Facts, b: Facts) -> Iterator[Reason]:
    if a.inner["fma"] and b.inner["fma"]:
        old, new = (f.inner["loads"] / f.inner["fma"] for f in (a, b))
        if _changed(old, new) and abs(old - new) > 0.05:
            said = text("The inner loop loads {new} times for each multiply-add, {old} times "
                        "before.", "views").format(new=f"{new:.2g}", old=f"{old:.2g}")
            yield Reason(said, 1 if new < old else -1,
                         abs(math.log((new + 0.05) / (old + 0.05))) / 2)


def _threads(a: Facts, b: Facts) -> Iterator[Reason]:
    if set(a.parallel) == set(b.parallel):
        return
    cores = b.machine.get("cores") or 1
    old, new = (_busy(f, cores) for f in (a, b))
    way = (new > old) - (new < old)
    size = abs(math.log(new / old)) or math.log(2)
    if not b.parallel:
        yield Reason(text("It runs on one core now.", "views"), way, size)
        return
    name, count = b.parallel[0]
    if count is None or cores < 2:
        said = text("The iterations of {name} run on several cores at once.", "views")
    elif count < cores:
        said = text("Of {cores} cores only {count} have work: {name} has {count} iterations.",
                    "views")
    else:
        said = text("The {count} iterations of {name} are shared by {cores} cores.", "views")
    yield Reason(said.format(name=name, count=count, cores=cores), way, size)


def _busy(facts: Facts, cores: int) -> int:
    """How many cores have work; two where that is not known."""
    if not facts.parallel:
        return 1
    count = facts.parallel[0][1]
    return 2 if count is None else max(1, min(count, max(cores, 2)))


def _sharing(a: Facts, b: Facts) -> Iterator[Reason]:
    """Lines of the cache that threads take from each other (`sharing.py`)."""
    old, new = (f.counts.get("sharing") or {"shared": 0, "moves": 0} for f in (a, b))
    accesses = max(f.counts["reads"] + f.counts["writes"] for f in (a, b))
    before, now = old["moves"], new["moves"]
    if max(before, now) < _MOVED * accesses or not _changed(before, now):
        return
    size = _size(before, now)
    if not now:
        yield Reason(text("No cache line that a thread writes is used by another one any more; "
                          "before, {moved}.", "views").format(moved=_moved(old)), 1, size)
    elif not before:
        yield Reason(text("Threads use lines that others write to: {moved}, each time at the price "
                          "of a miss.", "views").format(moved=_moved(new)), -1, size)
    else:
        said = text("Cache lines move between cores {often}: {moved}; before, {old}.", "views")
        yield Reason(said.format(often=_often(before, now), moved=_moved(new), old=_moved(old)),
                     1 if now < before else -1, size)


def _moved(sharing: Mapping[str, Any]) -> str:
    """How many lines, mostly of which buffer, moved how often."""
    buffers = sharing["buffers"]
    name = max(buffers, key=lambda name: buffers[name]["moves"])
    lines, moves = buffers[name]["shared"], buffers[name]["moves"]
    said = (text("{lines} lines of {name} moved between cores {times}", "views") if lines > 1 else
            text("1 line of {name} moved between cores {times}", "views"))
    return said.format(lines=f"{lines:,}", name=name,
                       times=text("once", "views") if moves == 1 else
                       text("{count} times", "views").format(count=f"{moves:,}"))


_OF_COUNTS = (_misses, _whose, _traffic, _work, _sharing)
_OF_CODE = (_vectors, _spills, _addresses, _carries, _latency, _effort, _loads)
#: each says of a change what it says of the change back, the other way round
RULES = (*_OF_COUNTS, *_OF_CODE, _threads)


#: what the same instructions may differ in: where they come from and go to
_WHERE = {"code", "text", "held", "lines", "on_stack"}


def _same_loop(a: Facts, b: Facts) -> bool:
    """Whether two inner loops consist of the same instructions, as far as their facts tell."""
    one, other = ({k: v for k, v in f.inner.items() if k not in _WHERE} for f in (a, b))
    names = [sorted(line.split()[0] for line in f.inner.get("text", ())) for f in (a, b)]
    return one == other and names[0] == names[1]


def _left_over(a: Facts, b: Facts, said: Sequence[Reason]) -> Iterator[str]:
    """What the counts leave unexplained of a measured difference: all of it where none of them went
    that way, the rest where they are too small for it.

    What changes by a factor changes the time by that factor at most, even if all time is spent on
    it; what makes a program wait, as a sum in memory, has a sentence and a size of its own. So the
    factors of all causes, multiplied, bound what they explain. That is too much rather than too
    little, for one cause may be told by several counts; below the root of the difference, which the
    measurement's spread is taken from, it is said.
    """
    assert a.time and b.time
    way = 1 if b.time < a.time else -1
    ratio = max(a.time / b.time, b.time / a.time)
    sure = ratio / (1.05 + a.spread + b.spread)
    if sure <= 1:
        return
    causes = [r.size for r in said if r.way == way]
    if not causes:
        left = (text("It is {ratio} times as fast, which these counts do not explain.", "views")
                if way > 0 else
                text("It is {ratio} times as slow, which these counts do not explain.", "views"))
    elif sum(causes) < math.log(sure) / 2:
        left = (text("It is {ratio} times as fast: these counts explain only a part of that, and "
                     "not the rest.", "views") if way > 0 else
                text("It is {ratio} times as slow: these counts explain only a part of that, and "
                     "not the rest.", "views"))
    else:
        return
    yield left.format(ratio=_number(ratio))


def reasons(a: Facts, b: Facts, op: str = "") -> list[str]:
    """What changed from program `a` to program `b`, the largest change first; `op` is the
    primitive between them."""
    said: list[Reason] = []
    if a.inner and b.inner and a.inner["code"] == b.inner["code"] and a.parallel == b.parallel:
        told = [text("LLVM had done this by itself: the machine code is the same as before.",
                     "views") if op in ("vectorize", "unroll") else
                text("The machine code is the same as before.", "views")]
    else:
        if a.counts and b.counts:
            said += [reason for rule in _OF_COUNTS for reason in rule(a, b)]
        if a.inner and b.inner:
            said += [reason for rule in _OF_CODE for reason in rule(a, b)]
        said += _threads(a, b)
        said.sort(key=lambda reason: -reason.size)
        told = [reason.text for reason in said[:_MOST]]
        if not told and a.counts and a.counts == b.counts:
            told.append(text("The accesses and the cache misses are the same as before.",
                             "views"))
        if op in ("vectorize", "unroll") and a.inner and b.inner and _same_loop(a, b):
            told.insert(0, text("The inner loop consists of the same instructions as before: LLVM "
                                "had done this by itself, or it is another loop that changed.",
                                "views"))
    if a.time and b.time:
        told += _left_over(a, b, said)
    return told


# --------------------------------------------------------------------------------- in recordings


def facts_of(recording: Recording, program: int) -> Facts:
    """What a recording knows of a program."""
    cost = recording.programs[program].cost or {}
    parallel = []
    for line in recording.programs[program].lines:
        for part in recording.parts_of(line):
            if part[0] == "loop" and part[3] == "parallel":
                parallel.append((part[1], int(part[2]) if part[2].isdecimal() else None))
    counts, inner = cost.get("counts") or {}, cost.get("inner") or {}
    return Facts(counts if "levels" in counts else {}, inner if "code" in inner else {},
                 tuple(parallel),
                 recording.machine, cost.get("time"), cost.get("spread") or 0.0)


def _why(recording: Recording, step: Step) -> list[str]:
    if step.error or step.before == step.after:
        return []
    a, b = facts_of(recording, step.before), facts_of(recording, step.after)
    known = a.inner and b.inner or a.counts and b.counts
    return reasons(a, b, step.op) if known else []


def explain(recording: Recording) -> Recording:
    """Say of each step what it changed, as far as its programs' facts tell. Returns the
    recording."""
    for step in recording.steps:
        step.why = _why(recording, step)
    return recording


__all__ = ["Facts", "explain", "facts_of", "inner_facts", "reasons"]
