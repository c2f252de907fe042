"""TopologicalSort: bindings of a dataflow block in another order that respects what needs what.

`order="depth-first"` follows one result as far as it can be computed before the next;
`"breadth-first"` computes everything of one distance before the next distance.
`direction="from-inputs"` puts a binding as early as what it needs allows, `"from-outputs"` as late
as its users allow: with it values live as short as possible.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.negative(x)
            c = R.add(a, a)
            d = R.add(b, b)
            e = R.add(c, d)
            R.output(e)
        return e

after `TopologicalSort(order="depth-first", direction="from-outputs")`::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.exp(x)
            c = R.add(a, a)
            b = R.negative(x)
            d = R.add(b, b)
            e = R.add(c, d)
            R.output(e)
        return e
"""

from __future__ import annotations

from collections import deque

from .rewriting import (
    Binding, BindingBlock, DataflowBlock, Pass, Var, make_function_pass, map_blocks, same_bindings,
    used_vars,
)

_ORDERS, _DIRECTIONS = ("depth-first", "breadth-first"), ("from-inputs", "from-outputs")


def TopologicalSort(order: str = "depth-first", direction: str = "from-inputs") -> Pass:
    """Reorder the bindings of dataflow blocks. Raises ValueError for an unknown order."""
    if order not in _ORDERS or direction not in _DIRECTIONS:
        raise ValueError(f"order is one of {_ORDERS}, direction one of {_DIRECTIONS}; got "
                         f"{order!r}, {direction!r}")

    def sort(block: BindingBlock) -> BindingBlock:
        if type(block) is not DataflowBlock:
            return block
        make = _from_outputs if direction == "from-outputs" else _from_inputs
        return same_bindings(block, make(block.bindings, order))

    return make_function_pass("TopologicalSort", lambda func, mod: map_blocks(func, sort),
                              TopologicalSort.__doc__)


def _needs(bindings: tuple[Binding, ...]) -> dict[Var, list[Var]]:
    """What each binding needs from the block, each once."""
    here = {b.var for b in bindings}
    return {b.var: [v for v in dict.fromkeys(used_vars(b)) if v in here] for b in bindings}


def _from_outputs(bindings: tuple[Binding, ...], order: str) -> list[Binding]:
    """What is used last comes last: a post-order walk from the results."""
    needs = _needs(bindings)
    where = {b.var: b for b in bindings}
    used = {v for vs in needs.values() for v in vs}
    roots = [b.var for b in bindings if b.var not in used]
    if order == "breadth-first":
        return _from_inputs(tuple(reversed(_reverse(bindings, needs))), "breadth-first")
    out: list[Binding] = []
    done: set[Var] = set()
    for root in roots:
        stack: list[tuple[Var, bool]] = [(root, False)]
        while stack:
            var, ready = stack.pop()
            if ready:
                out.append(where[var])
            elif var not in done:
                done.add(var)
                stack.append((var, True))
                stack.extend((v, False) for v in reversed(needs[var]) if v not in done)
    return out if len(out) == len(bindings) and _valid(out) else list(bindings)


def _reverse(bindings: tuple[Binding, ...], needs: dict[Var, list[Var]]) -> list[Binding]:
    """Users before what they use, breadth first from the results."""
    where = {b.var: b for b in bindings}
    users = {b.var: 0 for b in bindings}
    for vs in needs.values():
        for v in vs:
            users[v] += 1
    queue = deque(b.var for b in reversed(bindings) if not users[b.var])
    out = []
    while queue:
        var = queue.popleft()
        out.append(where[var])
        for v in needs[var]:
            users[v] -= 1
            if not users[v]:
                queue.append(v)
    return out


def _from_inputs(bindings: tuple[Binding, ...], order: str) -> list[Binding]:
    """As soon as everything that it needs is there."""
    needs = _needs(bindings)
    where = {b.var: b for b in bindings}
    users: dict[Var, list[Var]] = {b.var: [] for b in bindings}
    waiting = {}
    for var, vs in needs.items():
        waiting[var] = len(vs)
        for v in vs:
            users[v].append(var)
    ready = deque(b.var for b in bindings if not waiting[b.var])
    out: list[Binding] = []
    while ready:
        var = ready.popleft()
        out.append(where[var])
        freed = []
        for user in users[var]:
            waiting[user] -= 1
            if not waiting[user]:
                freed.append(user)
        if order == "depth-first":
            ready.extendleft(reversed(freed))
        else:
            ready.extend(freed)
    return out


def _valid(bindings: list[Binding]) -> bool:
    seen: set[Var] = set()
    here = {b.var for b in bindings}
    for b in bindings:
        if any(v in here and v not in seen for v in used_vars(b)):
            return False
        seen.add(b.var)
    return True


__all__ = ["TopologicalSort"]
