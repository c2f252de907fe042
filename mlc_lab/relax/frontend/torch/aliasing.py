"""Programs that write to tensors, made functional: which values share memory, and what a write
makes stale.

A tensor of torch is a view of a storage; a write through one view changes all others. A value of
Relax never changes. So a value whose storage is written to anywhere becomes a `Slot`: the value,
the slot it is a view of, how it is made again from that, and how a change of it is put back. A
write goes back from view to view to the storage's first value and raises the storage's version; a
slot of an older version is made again when it is read next.

    z = x * 1          # slot: the first value of a storage
    v = z[1:3]         # slot: again = slice, back = slice_scatter
    v.mul_(2)          # v = v * 2;  z = slice_scatter(z, v)
    return z           # the new z

Which values share a storage, and which nodes write to it, are facts of the traced graph (`Facts`):
torch's own, observed on tensors without data. Programs in which nothing is written have no slots.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping

if TYPE_CHECKING:
    from torch.fx import Node

#: what a storage is known by: the address of torch's object, or the node that makes it
Key = Any


@dataclass
class Facts:
    """What one node does to memory."""

    #: storage of the result; of several results a list; None for what is no tensor
    storage: Any = None
    #: nodes among the arguments whose tensors are written to
    written: list[Any] = field(default_factory=list)
    #: of those, the ones that have another shape afterwards: `x.squeeze_()`
    turned: list[Any] = field(default_factory=list)


class Storage:
    """Memory that several values may share; the version counts its writes."""

    __slots__ = ("key", "version")

    def __init__(self, key: Key) -> None:
        self.key, self.version = key, 0


class Slot:
    """A value that lies in a storage which is written to."""

    __slots__ = ("storage", "value", "version", "parent", "again", "back")

    def __init__(self, storage: Storage, value: Any, parent: "Slot | None" = None,
                 again: Callable[[Any], Any] | None = None,
                 back: Callable[[Any, Any], Any] | None = None) -> None:
        self.storage, self.value, self.version = storage, value, storage.version
        self.parent, self.again, self.back = parent, again, back

    def read(self) -> Any:
        """The value as it is now."""
        if self.version != self.storage.version:
            assert self.parent is not None and self.again is not None  # else nothing is newer
            self.value = self.again(self.parent.read())
            self.version = self.storage.version
        return self.value

    def write(self, value: Any) -> None:
        """Change the value, and with it what it is a view of."""
        slot: Slot = self
        changed: list[tuple[Slot, Any]] = [(slot, value)]
        while slot.parent is not None:
            assert slot.back is not None
            value = slot.back(slot.parent.read(), value)
            slot = slot.parent
            changed.append((slot, value))
        self.storage.version += 1
        for slot, value in changed:
            slot.value, slot.version = value, self.storage.version


def read(slots: Any) -> Any:
    """The values of a slot, or of a list with slots in it."""
    if isinstance(slots, Slot):
        return slots.read()
    return tuple(map(read, slots)) if isinstance(slots, (list, tuple)) else slots


class Values(dict):
    """The value of each node. Nodes with slots are read when they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.slots: dict[Any, Any] = {}

    def __missing__(self, node: Node) -> Any:
        if node not in self.slots:
            raise KeyError(node)
        return read(self.slots[node])


class Aliases:
    """The slots of one graph."""

    def __init__(self, values: Values, facts: Mapping[Any, Facts], back: Callable[..., Any],
                 filled: Callable[[Any, Any], Any]) -> None:
        self.values, self.facts, self.find_back, self.filled = values, facts, back, filled
        self.written: set[Key] = set()
        for fact in facts.values():
            for node in fact.written:
                self.written.update(_keys(facts[node].storage))
        self.roots: dict[Key, Slot] = {}
        #: values that the caller may see change: a name for each, in order
        self.outside: list[tuple[str, Slot]] = []

    def concerns(self, node: Node) -> bool:
        """Whether a node gives, or writes to, a value that is tracked."""
        fact = self.facts.get(node)
        return fact is not None and (bool(fact.written) or not self.written.isdisjoint(
            _keys(fact.storage)))

    def hold(self, node: Node, value: Any, name: str = "") -> bool:
        """Take an input or a parameter; whether it is tracked. `name` of one the caller sees."""
        if not self.concerns(node):
            return False
        key = self.facts[node].storage
        if key not in self.roots:
            self.roots[key] = Slot(Storage(key), value)
            if name:
                self.outside.append((name, self.roots[key]))
        self.values.slots[node] = self.roots[key]
        return True

    def hold_part(self, node: Node, whole: Callable[[], Any], name: str,
                  again: Callable[[Any], Any], back: Callable[[Any, Any], Any]) -> None:
        """Take a tensor of the model that is a part of the memory of another: `whole` makes all of
        that memory, `again` takes the part from it and `back` puts it there."""
        key = self.facts[node].storage
        if key not in self.roots:
            self.roots[key] = Slot(Storage(key), whole())
        root = self.roots[key]
        slot = self.values.slots[node] = Slot(root.storage, None, root, again, back)
        slot.version = -1  # made when it is read
        if all(name != other for other, _ in self.outside):
            self.outside.append((name, slot))

    def join(self, nodes: list[Any]) -> None:
        """Let tensors of the model that lie in one memory be known by one storage."""
        keys = {self.facts[n].storage: self.facts[nodes[0]].storage for n in nodes[1:]}
        for fact in self.facts.values():
            held = fact.storage
            fact.storage = [keys.get(k, k) for k in held] if isinstance(
                held, list) else keys.get(held, held)
        if not self.written.isdisjoint(keys):
            self.written.add(self.facts[nodes[0]].storage)

    def settle(self, node: Node, out: Any, again: Callable[[Any, Any], Any]) -> None:
        """Take the value of a call that is tracked.

        `again(of, value)` is the call with `value` in the place of the argument `of`, a node.
        """
        fact = self.facts[node]
        written = list(fact.written)
        news = list(out) if isinstance(out, (list, tuple)) and len(written) > 1 else [out]
        if len(news) != len(written) and written:
            raise ValueError(f"it writes to {len(written)} tensors, which is not translated")
        for target, new in zip(written, news):
            if target not in fact.turned:
                slot = self.slots_of(target)[0]
                before = slot.read() if slot.value is None else slot.value
                slot.write(self.filled(before, new))
        if node.target is operator.getitem and isinstance(
                self.values.slots.get(node.args[0]), list):
            self.values.slots[node] = self.values.slots[node.args[0]][node.args[1]]
        elif isinstance(fact.storage, list):
            self.values.slots[node] = self._several(node, list(out), again)
        elif fact.storage is not None:
            same = [w for w in written if w not in fact.turned
                    and fact.storage in _keys(self.facts[w].storage)]
            slot = self.slots_of(same[0])[0] if same else self._one(
                node, fact.storage, out, again)
            self.values.slots[node] = slot
            for target in fact.turned:
                self.values.pop(target, None)
                self.values.slots[target] = slot

    def slots_of(self, node: Node) -> list[Slot]:
        """The slots of a node's value."""
        found = self.values.slots.get(node)
        several = found if isinstance(found, list) else [found]
        return [s for s in several if isinstance(s, Slot)]

    def _one(self, node: Node, key: Key, out: Any, again: Callable[[Any, Any], Any]) -> Any:
        """The slot of a result: the first value of its storage, or a view of an argument."""
        if key not in self.written:
            return out
        of = self._source(node, key)
        if of is None:
            slot = Slot(Storage(key), out)
            self.roots.setdefault(key, slot)
            return slot
        parent = self._slot_in(of, key)
        back = self.find_back(node, of, None)
        return Slot(parent.storage, out, parent, lambda value: again(of, value), back)

    def _several(self, node: Node, outs: list[Any], again: Callable[[Any, Any], Any]
                 ) -> list[Any]:
        """Slots of several results, of which those that are made again are made together."""
        memo: dict[str, Any] = {}

        def pieces(of: Any, value: Any) -> Any:
            if memo.get("value") is not value:
                memo.update(value=value, pieces=again(of, value))
            return memo["pieces"]

        made: list[Any] = []
        for k, (out, key) in enumerate(zip(outs, self.facts[node].storage)):
            of = None if key is None or key not in self.written else self._source(node, key)
            if of is None:
                made.append(out if key not in self.written else Slot(Storage(key), out))
                continue
            parent = self._slot_in(of, key)
            made.append(Slot(parent.storage, out, parent,
                             lambda value, of=of, k=k: pieces(of, value)[k],
                             self.find_back(node, of, k)))
        return made

    def _source(self, node: Node, key: Key) -> Any:
        """The argument whose storage a result lies in."""
        for arg in node.all_input_nodes:
            if arg in self.facts and key in _keys(self.facts[arg].storage):
                return arg
        return None

    def _slot_in(self, node: Node, key: Key) -> Slot:
        return next(s for s in self.slots_of(node) if s.storage.key == key)


def _keys(storage: Any) -> Iterable[Key]:
    if isinstance(storage, list):
        return [k for k in storage if k is not None]
    return () if storage is None else (storage,)


# ------------------------------------------------------------------------------- facts

#: what ends in "_" and writes no numbers
HARMLESS = frozenset({"detach_", "requires_grad_",
                      # in training alone, which is refused
                      "_native_batch_norm_legit", "native_batch_norm"})

#: results that are memory of their own, whatever torch's tensors say
_COPIES = frozenset({"clone", "lift_fresh_copy"})


def written_by_schema(node: Node) -> list[Any]:
    """The arguments that an ATen operator writes to, as its schema says."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable or _base(node.target) in HARMLESS:
        return []
    out: list[Any] = []
    for k, arg in enumerate(schema.arguments):
        if arg.alias_info is not None and arg.alias_info.is_write:
            given = node.args[k] if k < len(node.args) else node.kwargs.get(arg.name)
            out += [g for g in (given if isinstance(given, (list, tuple)) else [given])
                    if hasattr(g, "op")]
    return out


class NotRun(ValueError):
    """torch cannot run a model on tensors without data."""


def recorded_facts(nodes: Iterable[Any]) -> dict[Any, Facts] | None:
    """Facts of a graph of ATen operators whose nodes keep torch's tensors, as they are after
    torch.export; None where those tensors no longer share memory, as in a program from a file."""
    facts: dict[Any, Facts] = {}

    def born(node: Node, address: Any, k: Any = None) -> Any:
        """The storage of a result: that of the argument with this address, or a new one."""
        if address is None:
            return None
        if _base(node.target) not in _COPIES:
            for arg in node.all_input_nodes:
                held = address_of(arg.meta.get("val"))
                if held == address:
                    return facts[arg].storage
                if isinstance(held, list) and address in held:
                    return facts[arg].storage[held.index(address)]
        return (node, k)

    for node in nodes:
        value = node.meta.get("val")
        where = address_of(value)
        storage = [born(node, a, k) for k, a in enumerate(where)] if isinstance(
            where, list) else born(node, where)
        fact = facts[node] = Facts(storage, written_by_schema(node))
        for target in fact.written:
            held = facts[target].storage
            if held is None or (where is not None and not isinstance(where, list)
                                and len(fact.written) == 1 and held != storage):
                return None
            if held == storage and _geometry(target.meta.get("val")) != _geometry(value):
                fact.turned.append(target)
    return facts


def address_of(value: Any) -> Any:
    """Where a tensor of torch lies; of a list of tensors a list, None for anything else."""
    if hasattr(value, "untyped_storage"):
        return value.untyped_storage()._cdata
    if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
        return [k if isinstance(k, int) else None for k in map(address_of, value)]
    return None


def _base(target: Any) -> str:
    return getattr(target, "__name__", str(target)).partition(".")[0]


def _geometry(value: Any) -> Any:
    return (tuple(value.shape), tuple(value.stride()), value.storage_offset()) if hasattr(
        value, "storage_offset") else None


def observed_facts(module: Any, inputs: list[Any], mode: Any,
                   values: dict[Any, Any] | None = None) -> dict[Any, Facts]:
    """Facts of any graph, from a run of it on tensors without data (of FakeTensorMode `mode`);
    these are put into `values`.

    A write is seen by torch's counters of versions, so what the functions and layers of the graph
    are called does not matter. An error of torch has the node as `at_node`.
    """
    import torch

    facts: dict[Any, Facts] = {}
    alive: list[Any] = []  # while a storage lives its address is its own

    class Watch(torch.fx.Interpreter):
        def run_node(self, node: Node) -> Any:
            before = {a: self.env.get(a) for a in node.all_input_nodes}
            state = {a: (_version(v), _geometry(v)) for a, v in before.items()}
            try:
                out = super().run_node(node)
            except Exception as error:
                vars(error)["at_node"] = node
                raise
            alive.append(out)
            if values is not None:
                values[node] = out.detach() if hasattr(out, "detach") else out
            fact = facts[node] = Facts(address_of(out))
            if _base(node.target) in HARMLESS:
                return out
            for a, v in before.items():
                turned = _geometry(v) != state[a][1]
                if turned or _version(v) != state[a][0]:
                    fact.written.append(a)
                if turned:
                    fact.turned.append(a)
            if node.kwargs.get("out") is not None:
                fact.written = [a for a in fact.written if a is node.kwargs["out"]]
            fact.written = _first_of_each(fact.written, facts)
            return out

        def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
            held = super().get_attr(target, args, kwargs)
            return mode.from_tensor(held) if isinstance(held, torch.Tensor) else held

    with mode, torch.no_grad():
        Watch(module, garbage_collect_values=False).run(*inputs)
    return facts


def _first_of_each(nodes: list[Any], facts: Mapping[Any, Facts]) -> list[Any]:
    """Of arguments that share a storage the first: the one that an operator writes to."""
    seen: set[Key] = set()
    out = []
    for node in nodes:
        keys = set(_keys(facts[node].storage))
        if not keys <= seen or not keys:
            out.append(node)
        seen |= keys
    return out


def _version(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_version, value))
    return value._version if hasattr(value, "_version") else None


__all__ = ["Aliases", "Facts", "NotRun", "Slot", "Values", "observed_facts", "read",
           "recorded_facts", "written_by_schema"]
