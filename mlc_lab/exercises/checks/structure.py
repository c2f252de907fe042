"""structure: what the answer's program consists of, and which primitives made it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...ir import dtype as dt
from ...ir.structural import structural_equal
from ...script.spans import script_with_marks
from ...tir.expr import IntImm
from ...tir.function import PrimFunc
from ...tir.functor import all_statements
from ...tir.op import as_int
from ...tir.stmt import Block, BlockRealize, For, ForKind, Stmt
from ..result import Found

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ..answers import Answer
    from ..exercise import Variant

#: words of a nest for the kinds of loops
KINDS = {ForKind.SERIAL: "serial", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized",
         ForKind.UNROLLED: "unrolled", ForKind.THREAD_BINDING: "thread"}
#: primitives that only look something up
_LOOKUPS = {"GetBlock", "GetLoops", "GetChildBlocks", "GetProducers", "GetConsumers",
            "GetOutputBlocks"}


def structure(answer: Answer, variant: Variant, *, nest: Mapping[str, Sequence[Any]] | None = None,
              kinds: Mapping[str, int] | None = None, matches: Any = None,
              most_steps: int | None = None, uses: Collection[str] = (),
              without: Collection[str] = (), allocates: Mapping[str, str] | None = None,
              bytes_held: int | None = None, no_predicate: bool = False, blocks: int | None = None,
              iterators: Mapping[str, str] | str | None = None) -> Found:
    """Whether the answer's program is as asked.

    `nest`: for a block its loops from the outside, each an extent, a kind ("vectorized") or both
    ("vectorized 8"), None for any; `kinds`: at least so many loops of a kind; `matches`: a program
    that it is to equal, but for names; `most_steps`: primitives at most, look-ups do not count;
    `uses`, `without`: primitives by method, in `uses` as often as they are to be
    used at least; `allocates`: scopes of buffers that there must be, by
    the beginning of their names; `bytes_held`: of intermediate results, at most; `no_predicate`:
    no `T.where`; `blocks`: how many; `iterators`: for a block its kinds, as in "SSR", or of the
    only block.
    """
    mod = answer.mod
    assert mod is not None
    for found in (
        _nests(mod, nest or {}), _kinds(mod, kinds or {}), _same(mod, matches),
        _steps(answer, most_steps, uses, without), _allocated(mod, allocates or {}, bytes_held),
        _predicate(mod) if no_predicate else None, _blocks(mod, blocks, iterators or {}),
    ):
        if found is not None:
            return found
    return Found(True)


def statements(mod: IRModule) -> Iterator[Stmt]:
    """All statements of a module's tensor programs."""
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            yield from all_statements(func.body)


def loops_of(mod: IRModule) -> dict[str, list[For]]:
    """The loops around each block, from the outside, by the block's name."""
    found: dict[str, list[For]] = {}
    stack: list[tuple[Stmt, list[For]]] = [
        (f.body, []) for f in mod.functions.values() if isinstance(f, PrimFunc)]
    while stack:
        stmt, above = stack.pop()
        if type(stmt) is For:
            above = [*above, stmt]
        if type(stmt) is Block:
            found.setdefault(stmt.name_hint, above)
        stack += [(child, above) for child in stmt.children() if isinstance(child, Stmt)]
    return found


def _loop_text(loop: For) -> str:
    kind = KINDS[loop.kind]
    return f"{loop.extent}" if kind == "serial" else f"{kind} {loop.extent}"


def _nests(mod: IRModule, wanted: Mapping[str, Sequence[Any]]) -> Found | None:
    have = loops_of(mod)
    for block, nest in wanted.items():
        if block not in have:
            return Found(False, f"there is no block {block}; there are {', '.join(have)}")
        loops = have[block]
        shown = ", ".join(map(_loop_text, loops)) or "none"
        asked = ", ".join("any" if w is None else str(w) for w in nest)
        fits = len(loops) == len(nest) and all(map(_fits, loops, nest))
        if not fits:
            return Found(False, f"the loops around block {block} are {shown}; asked for: {asked}",
                         _place(mod, loops[-1:]))
    return None


def _fits(loop: For, wanted: Any) -> bool:
    if wanted is None:
        return True
    words = str(wanted).split()
    kind = next((w for w in words if not w.isdigit()), None)
    extent = next((int(w) for w in words if w.isdigit()), None)
    return (kind is None or KINDS[loop.kind] == kind) and (
        extent is None or as_int(loop.extent) == extent)


def _place(mod: IRModule, nodes: Sequence[Any]) -> dict[str, Any]:
    return {"text": script_with_marks(mod, nodes, {}, 1)} if nodes else {}


def _kinds(mod: IRModule, wanted: Mapping[str, int]) -> Found | None:
    have: dict[str, int] = {}
    for stmt in statements(mod):
        if type(stmt) is For:
            have[KINDS[stmt.kind]] = have.get(KINDS[stmt.kind], 0) + 1
    for kind, count in wanted.items():
        if have.get(kind, 0) < count:
            return Found(False, f"{have.get(kind, 0)} loops are {kind}, {count} are asked for")
    return None


def _same(mod: IRModule, wanted: Any) -> Found | None:
    if wanted is None:
        return None
    mine, asked = mod.functions_items(), wanted.functions_items()
    if len(mine) != len(asked):
        have, names = (", ".join(gv.name_hint for gv, _ in each) for each in (mine, asked))
        return Found(False, f"it has the functions {have or 'none'}; asked for: {names}")
    for (_, ours), (_, theirs) in zip(mine, asked, strict=True):
        same = structural_equal(ours, theirs, map_free_vars=True)
        if not same:
            lines = [a.rstrip() for a in mod.script().split("\n")]
            other = [b.rstrip() for b in wanted.script().split("\n")]
            at = next((n for n, (a, b) in enumerate(zip(_unnamed(mod, lines),
                                                        _unnamed(wanted, other))) if a != b), 0)
            text = "\n".join([*lines[max(0, at - 2):at], "yours:  " + lines[at].strip(),
                              "wanted: " + other[at].strip()])
            return Found(False, "it is not the program that is asked for", {"text": text})
    return None


def _unnamed(mod: IRModule, lines: Sequence[str]) -> list[str]:
    """The lines of a program, its loops named in the order in which they stand."""
    names = dict.fromkeys(s.loop_var.name for s in statements(mod) if type(s) is For)
    number = {name: f"loop{n}" for n, name in enumerate(names)}
    return [re.sub(r"\w+", lambda m: number.get(m[0], m[0]), line) for line in lines]


def _steps(answer: Answer, most: int | None, uses: Collection[str], without: Collection[str]
           ) -> Found | None:
    if answer.sch is None:
        return None
    done = [inst.kind for inst in answer.sch.trace.insts if inst.kind.name not in _LOOKUPS]
    methods = [kind.method for kind in done]
    if most is not None and len(done) > most:
        return Found(False, f"{len(done)} primitives; {most} suffice")
    for method, times in Counter(uses).items():
        used = methods.count(method)
        if used < times:
            return Found(False, f"sch.{method} was not used" if not used else
                         f"sch.{method} was used {used} times; {times} are asked for")
    for method in without:
        if method in methods:
            return Found(False, f"sch.{method} is not to be used here")
    return None


def _allocated(mod: IRModule, wanted: Mapping[str, str], most: int | None) -> Found | None:
    buffers = [b for stmt in statements(mod) if type(stmt) is Block for b in stmt.alloc_buffers]
    for name, scope in wanted.items():
        if not any(b.name.startswith(name) and b.scope == scope for b in buffers):
            have = ", ".join(f"{b.name} ({b.scope})" for b in buffers) or "none"
            return Found(False, f"no buffer {name} in {scope} memory; allocated: {have}")
    held = 0
    for buffer in buffers:
        size = dt.bytes_of(buffer.dtype)
        for dim in buffer.shape:
            size *= as_int(dim) or 1
        held += size
    if most is not None and held > most:
        return Found(False, f"intermediate results take {held:,} bytes; {most:,} suffice")
    return None


def _predicate(mod: IRModule) -> Found | None:
    for stmt in statements(mod):
        if type(stmt) is BlockRealize and not (
                type(stmt.predicate) is IntImm and stmt.predicate.value):
            return Found(False, f"block {stmt.block.name_hint} has a predicate: "
                         f"T.where({stmt.predicate})", _place(mod, [stmt.predicate]))
    return None


def _blocks(mod: IRModule, count: int | None, iterators: Mapping[str, str] | str) -> Found | None:
    blocks = [s for s in statements(mod)
              if type(s) is Block and (s.iter_vars or s.reads or s.writes)]
    if count is not None and len(blocks) != count:  # two of one name are two
        return Found(False, f"blocks: {len(blocks)}; asked for: {count}")
    have = {block.name_hint: block for block in reversed(blocks)}
    if isinstance(iterators, str):
        iterators = dict.fromkeys([block.name_hint for block in blocks[:1]], iterators)
    for name, kinds in iterators.items():
        if name not in have:
            return Found(False, f"there is no block {name}; there are {', '.join(have) or 'none'}")
        found = "".join({0: "S", 2: "R"}.get(iv.iter_type, "?") for iv in have[name].iter_vars)
        if sorted(found) != sorted(kinds):
            return Found(False, f"the iterators of block {name} are {found or 'none'}; "
                         f"{kinds} are asked for (S spatial, R reduction)")
    return None


__all__ = ["loops_of", "statements", "structure"]
