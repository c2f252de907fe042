"""Structural equality and hash: whether two trees are the same up to the names of what they bind.

Both are derived from the declarations: fields tagged `defines` bind variables and buffers pairwise,
other fields are compared one by one, `ignored` ones and the names of blocks not at all, as in TVM.
The answer of a comparison that fails is the path of the first mismatch, e.g.
`functions["main"].body.block.body[1].extent`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from .containers import is_sequence
from .module import GlobalVar, IRModule
from .node import NODE_TYPES, Node, defines, ignored
from .recursion import grows_stack

if TYPE_CHECKING:
    from .node import Fields

    #: what the fields of nodes hold
    Part = Node | IRModule | tuple[Any, ...] | list[Any] | Mapping[Any, Any] | str | float | None


class Key(NamedTuple):
    """A step of a path to the value of a key, which two mappings may know by different nodes."""

    lhs: Any
    rhs: Any

    def __str__(self) -> str:
        if isinstance(self.lhs, GlobalVar):
            return f'["{self.lhs.name_hint}"]'
        return f"[{getattr(self.lhs, 'name', self.lhs)!r}]"


class Lacking(NamedTuple):
    """The last step of a path to what only one of two containers has: an index, or a key."""

    at: Any
    is_key: bool
    in_lhs: bool

    def __str__(self) -> str:
        return ""


class Mismatch:
    """Where two structures first differ. False as a bool, so it reads like an answer.

    `path` is the text of `steps`: names of fields (".body"), indices, a `Key`, and at the end a
    `Lacking` where one side has more than the other.
    """

    __slots__ = ("steps", "lhs", "rhs", "reason")

    def __init__(self, steps: Sequence[Any], lhs: object, rhs: object, reason: str) -> None:
        self.steps, self.lhs, self.rhs, self.reason = tuple(steps), lhs, rhs, reason

    @property
    def path(self) -> str:
        """The way to it, as Python would write it."""
        return "".join(f"[{s}]" if isinstance(s, int) else str(s) for s in self.steps
                       ).removeprefix(".")

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (bool, Mismatch)) and not other

    def __hash__(self) -> int:
        return hash(False)

    def __repr__(self) -> str:
        return f"differ at {self.path or '<root>'}: {self.reason}"


#: types of plain data that is the same if it is equal
_PLAIN = frozenset({str, int, bool, type(None)})


class _Comparer:
    def __init__(self, map_free_vars: bool) -> None:
        self.forward: dict[Any, Any] = {}
        self.backward: dict[Any, Any] = {}
        self.map_free = map_free_vars
        self.path: list[Any] = []
        self.mismatch: Mismatch | bool = False

    def fail(self, a: Any, b: Any, reason: str) -> bool:
        if self.mismatch is False:
            self.mismatch = Mismatch(self.path, a, b, reason)
        return False

    def fail_at(self, step: Any, a: Any, b: Any, reason: str) -> bool:
        """A mismatch one step on."""
        self.path.append(step)
        return self.fail(a, b, reason)

    def bind(self, a: Any, b: Any) -> bool:
        """Pair two bound variables, buffers or global variables."""
        if a in self.forward or b in self.backward:
            return (self.forward.get(a) is b and self.backward.get(b) is a) or self.fail(
                a, b, "bound to different partners")
        self.forward[a] = b
        self.backward[b] = a
        return True

    def paired(self, a: Any, b: Any) -> bool | None:
        """Whether a and b are known to correspond; None when neither is known."""
        if a in self.forward:
            return self.forward[a] is b
        if b in self.backward:
            return False
        return None

    def same(self, a: Any, b: Any, define: bool = False) -> bool:
        ta = a.__class__
        if ta is not b.__class__:
            if isinstance(a, (int, float)) and isinstance(b, (int, float)) and a == b:
                return True
            if is_sequence(a) and is_sequence(b):
                return self.same(tuple(a), tuple(b), define)
            return self.fail(a, b, f"{_describe(a)} against {_describe(b)}")
        if isinstance(a, Node):
            return self.same_node(a, b, define)
        if ta in _PLAIN:  # most of what is no node
            return a == b or self.fail(a, b, f"{a!r} against {b!r}")
        if ta in (tuple, list):
            for index, (x, y) in enumerate(zip(a, b)):
                self.path.append(index)
                if not self.same(x, y, define):
                    return False
                self.path.pop()
            if len(a) != len(b):
                return self.fail_at(Lacking(min(len(a), len(b)), False, len(a) < len(b)), a, b,
                                    f"{len(a)} items against {len(b)}")
            return True
        if issubclass(ta, Mapping):
            return self.same_mapping(a, b, define)
        if ta is float:
            return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (
                math.isnan(a) and math.isnan(b)) or self.fail(a, b, f"{a!r} against {b!r}")
        if isinstance(a, IRModule):
            return self.same_module(a, b)
        parts = getattr(a, "structural_parts", None)
        if parts is not None:  # an object that is no node: what it binds, then what it holds
            (names_a, held_a), (names_b, held_b) = parts(), b.structural_parts()
            return self.same(names_a, names_b, True) and self.same(held_a, held_b)
        if hasattr(a, "__array__"):
            import numpy as np

            x, y = np.asarray(a), np.asarray(b)
            equal = x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
            return equal or self.fail(a, b, "different array contents")
        if isinstance(a, Sequence):  # such as the arrays of the runtime
            items: Sequence[Any] = a  # pyright: ignore[reportUnknownVariableType]
            return self.same(tuple(items), tuple(b), define)
        return bool(a == b) or self.fail(a, b, f"{a!r} against {b!r}")

    def same_node(self, a: Node, b: Node, define: bool) -> bool:
        ta = type(a)
        if ta in _BINDABLE:
            known = self.paired(a, b)
            if known is not None:
                return known or self.fail(a, b, f"{_describe(a)} against {_describe(b)}")
            if not define and not self.map_free:
                if a is b:
                    return True
                if ta is not _buffer_type:
                    return self.fail(a, b, f"{_describe(a)} against {_describe(b)}, "
                                           "neither of which is bound here")
            if ta.bound_parts is not None:
                for name in ta.bound_parts:
                    self.path.append("." + name)
                    if not self.same(getattr(a, name), getattr(b, name), define):
                        return False
                    self.path.pop()
                return self.bind(a, b)
            if ta is not _buffer_type:
                (of_a, note_a), (of_b, note_b) = _typing(a), _typing(b)
                if of_a != of_b:
                    return self.fail_at(".dtype", a, b, f"{_describe(a)} against {_describe(b)}")
                if not self.same(note_a, note_b):
                    return self.fail(a, b, f"{_describe(a)} against {_describe(b)}")
                return self.bind(a, b)
            # a buffer: compare what it is, defining what it introduces, then pair it
            for name, _ in a.fields:
                if name == "name":
                    continue
                self.path.append("." + name)
                if not self.same(getattr(a, name), getattr(b, name), define):
                    return False
                self.path.pop()
            return self.bind(a, b)
        if isinstance(a, GlobalVar) and isinstance(b, GlobalVar):
            known = self.paired(a, b)
            if known is None:
                known = a.name_hint == b.name_hint
            return known or self.fail(a, b, f"{a.name_hint} against {b.name_hint}")
        if a is b and not self.forward:
            return True
        if ta.__name__ == "Let":
            return self.same_let(a, b)
        for name, tag in _order(ta):
            if tag is ignored:
                continue
            self.path.append("." + name)
            if not self.same(getattr(a, name), getattr(b, name), define or tag is defines):
                return False
            self.path.pop()
        return True

    def same_let(self, a: Any, b: Any) -> bool:
        """Two expressions that bind a variable for their bodies alone: one expression may stand in
        several places, and another one bind a variable of its own in each."""
        self.path.append(".value")
        if not self.same(a.value, b.value):
            return False
        self.path.pop()
        around, beside = self.forward.pop(a.var, None), self.backward.pop(b.var, None)
        for name, define in (("var", True), ("body", False)):
            self.path.append("." + name)
            if not self.same(getattr(a, name), getattr(b, name), define):
                return False
            self.path.pop()
        del self.forward[a.var], self.backward[b.var]
        if around is not None:
            self.forward[a.var] = around
        if beside is not None:
            self.backward[b.var] = beside
        return True

    def same_mapping(self, a: Mapping[Any, Any], b: Mapping[Any, Any], define: bool) -> bool:
        keys = f"keys {_keys(a)} against {_keys(b)}"
        partners: dict[Any, Any] = {}
        for (ka, va), (kb, vb) in zip(a.items(), b.items()):
            if isinstance(ka, Node):  # buffer_map: keys are parameters, bound already
                partner = self.forward.get(ka)
                if partner is not None and partner in b:
                    kb, vb = partner, b[partner]
                if not self.same(ka, kb, define):
                    return False
            else:
                if ka not in b:
                    return self.fail_at(Lacking(ka, True, False), a, b, keys)
                kb, vb = ka, b[ka]
            partners[ka] = kb
            self.path.append(Key(ka, kb))
            if not self.same(va, vb, define):
                return False
            self.path.pop()
        if len(a) != len(b):
            more, known = (a, partners.keys()) if len(a) > len(b) else (b, partners.values())
            extra = next(k for k in more if not any(k is q or (
                not isinstance(k, Node) and k == q) for q in known))
            return self.fail_at(Lacking(extra, True, len(a) < len(b)), a, b, keys)
        return True

    def same_module(self, a: IRModule, b: IRModule) -> bool:
        names_a = {v.name_hint: v for v in a.functions}
        names_b = {v.name_hint: v for v in b.functions}
        if names_a.keys() != names_b.keys():
            return self.fail(a, b, f"functions {sorted(names_a)} against {sorted(names_b)}")
        for name, var in names_a.items():
            if not self.bind(var, names_b[name]):
                return False
        for name in sorted(names_a):
            self.path += [".functions", Key(names_a[name], names_b[name])]
            if not self.same(a[names_a[name]], b[names_b[name]]):
                return False
            del self.path[-2:]
        return self.same_mapping(a.attrs, b.attrs, False)


_ORDERS: dict[type[Node], Fields] = {}


def _order(cls: type[Node]) -> Fields:
    """Fields in comparison order: definitions before what uses them."""
    found = _ORDERS.get(cls)
    if found is None:
        found = tuple(sorted(cls.fields, key=lambda f: f[1] is not defines))
        if cls.__name__ == "LetStmt":  # the value is outside the binding's scope
            found = cls.fields
        if cls.__name__ == "Block":  # matched buffers are defined before they are read
            first = ("iter_vars", "alloc_buffers", "match_buffers")
            found = tuple(sorted((f for f in cls.fields if f[0] != "name_hint"),
                                 key=lambda f: f[0] not in first))
        _ORDERS[cls] = found
    return found


#: the node classes that stand for definitions; a language above adds its own (Relax's variables)
_BINDABLE: set[type[Node]] = set()
_buffer_type: type[Node] | None = None
#: what two variables must agree in
_typing = attrgetter("dtype", "type_annotation")


def register_bindable(*classes: type[Node]) -> None:
    """Let nodes of these classes be paired where they are bound; they say `bound_parts`."""
    _BINDABLE.update(classes)


def _load_bindable() -> None:
    """The node classes that stand for definitions; known once `tir` is imported."""
    global _buffer_type
    for name in ("Var", "SizeVar", "Buffer"):
        if name in NODE_TYPES:
            _BINDABLE.add(NODE_TYPES[name])
    _buffer_type = NODE_TYPES.get("Buffer")


def _keys(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(sorted(str(getattr(k, "name", k)) for k in mapping)) or "none"


def _describe(value: Any) -> str:
    if isinstance(value, Node):
        name = getattr(value, "name", None) or getattr(value, "name_hint", None)
        if name is not None:
            return f"{type(value).__name__} {name!r}"
        held = getattr(value, "value", value)
        if not isinstance(held, Node):
            return f"{type(value).__name__} {held!r}"
    return type(value).__name__


@grows_stack
def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool | Mismatch:
    """Whether two nodes or modules are the same up to renaming of what they bind.

    Free variables must be the same objects unless `map_free_vars` pairs them by first use.
    Returns True, or a `Mismatch` (false as a bool) that holds the path of the first difference.
    """
    if _buffer_type is None:
        _load_bindable()
    comparer = _Comparer(map_free_vars)
    return True if comparer.same(lhs, rhs) else comparer.mismatch


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """Raise ValueError with the path of the first difference and both scripts if not equal."""
    answer = structural_equal(lhs, rhs, map_free_vars)
    if answer is not True:
        raise ValueError(f"the two are not structurally equal: {answer!r}\n"
                         f"--- left ---\n{lhs!r}\n--- right ---\n{rhs!r}")


class _Hasher:
    def __init__(self, map_free_vars: bool) -> None:
        self.seen: dict[Any, int] = {}
        self.hidden = 0  # definitions around that an inner one of the same variable hides
        self.map_free = map_free_vars

    def of(self, a: Part, define: bool = False) -> int:
        if isinstance(a, Node):
            ta = type(a)
            if ta in _BINDABLE:
                if a in self.seen:
                    return self.seen[a]
                if not define and not self.map_free and ta is not _buffer_type:
                    return hash(a)
                parts = [ta.__name__, len(self.seen) + self.hidden]
                if ta is _buffer_type:
                    parts += [self.of(getattr(a, n), define) for n, _ in a.fields if n != "name"]
                elif ta.bound_parts is not None:
                    parts += [self.of(getattr(a, n), define) for n in ta.bound_parts]
                else:
                    parts.append(_typing(a)[0])
                self.seen[a] = value = hash(tuple(parts))
                return value
            if ta.__name__ == "Let":
                return self.of_let(a)
            if isinstance(a, GlobalVar):
                return hash(("GlobalVar", a.name_hint))
            return hash((ta.__name__, *(
                self.of(getattr(a, n), define or t is defines)
                for n, t in _order(ta) if t is not ignored)))
        if isinstance(a, (tuple, list)):
            return hash(tuple(self.of(x, define) for x in a))
        if isinstance(a, Mapping):
            if any(isinstance(k, Node) for k in a):
                order = {k: n for n, k in enumerate(self.seen)}
                items = sorted(a.items(), key=lambda item: order.get(item[0], len(order)))
                return hash(tuple((self.of(k, define), self.of(v, define)) for k, v in items))
            return hash(tuple((k, self.of(a[k], define)) for k in sorted(a)))
        if isinstance(a, IRModule):
            by_name = {v.name_hint: f for v, f in a.functions.items()}
            return hash((tuple((n, self.of(by_name[n])) for n in sorted(by_name)),
                         self.of(a.attrs)))
        parts = getattr(a, "structural_parts", None)
        if parts is not None:
            names, held = parts()
            return hash((type(a).__name__, self.of(names, True), self.of(held)))
        if hasattr(a, "__array__"):
            import numpy as np

            array = np.asarray(a)
            return hash((str(array.dtype), array.shape, array.tobytes()))
        return hash(a) if a == a else hash("nan")  # those of two NaNs differ


    def of_let(self, a: Any) -> int:
        """An expression that binds a variable for its body alone."""
        value, around = self.of(a.value), self.seen.pop(a.var, None)
        self.hidden += around is not None
        found = hash(("Let", value, self.of(a.var, True), self.of(a.body)))
        self.hidden -= around is not None
        del self.seen[a.var]
        if around is not None:
            self.seen[a.var] = around
        return found


@grows_stack
def structural_hash(value: Any, map_free_vars: bool = False) -> int:
    """A hash that agrees with `structural_equal`; the same only within one process."""
    if _buffer_type is None:
        _load_bindable()
    return _Hasher(map_free_vars).of(value)


__all__ = ["Key", "Lacking", "Mismatch", "assert_structural_equal", "structural_equal",
           "structural_hash"]
