"""How a node of the IR is declared: once, as a class with annotated fields.

From the declaration follow the constructor, immutability, `replace`, traversal (`children`,
`map_children`), structural equality and hash (`ir/structural.py`), JSON (`ir/serialize.py`) and the
fallback repr.

    @node
    class For(Stmt):
        loop_var: Var = defines()        # binds a variable: compared up to renaming
        min: PrimExpr                    # no tag: a child, visited and compared
        kind: ForKind = plain()          # data: compared with ==
        body: Stmt

Tags
----
(none)     a child node, or a tuple of them, or None; traversed by functors.
`defines`  binds the Vars and Buffers in it; not traversed as an expression.
`uses`     refers to a Buffer (or other definition) made elsewhere; not traversed by default.
`plain`    data that is not a node: str, int, enum, dict of attributes (whose values may be nodes).
`ignored`  carried along, but no part of what the node means (never compared).

To a type checker a node class is a frozen dataclass, whose tags are field specifiers; that is why
they are called.

Fields are stored in slots and set once, in the constructor. Construction stays well under a
microsecond because the generated `__init__` calls the slots' own setters.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Callable, Iterable

from ..above import above

if TYPE_CHECKING:
    from typing import TypeVar, overload

    from typing_extensions import Self, dataclass_transform

    C = TypeVar("C", bound=type)
    _Item = TypeVar("_Item")
else:
    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        return lambda decorator: decorator


class _Tag:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __call__(self) -> Any:
        return self


Fields = tuple[tuple[str, _Tag], ...]
child = _Tag("child")
if TYPE_CHECKING:
    def defines() -> Any: ...
    def uses() -> Any: ...
    def plain() -> Any: ...
    def ignored() -> Any: ...
else:
    defines, uses, plain, ignored = map(_Tag, ("defines", "uses", "plain", "ignored"))

#: every declared node class by name, for JSON and for the test that checks the grammar
NODE_TYPES: dict[str, type[Node]] = {}


class Node:
    """Base of everything immutable in the IR. Identity is `is`; sameness is `structural_equal`."""

    __slots__ = ("__weakref__",)
    #: (field name, tag), in constructor order
    fields: Fields = ()
    #: the name in NODE_TYPES: the class name, with the language's name before it where it has one
    node_key: str = "Node"
    #: of a node that others bind (a variable): the fields that two such must agree in
    bound_parts: tuple[str, ...] | None = None
    #: slots that are no fields -> how they follow from the fields
    derived: dict[str, str] = {}
    #: fields of which a caller may give a Python number: the constructor has `fit_numbers` make
    #: nodes of them
    numbers: tuple[str, ...] = ()

    if TYPE_CHECKING:
        #: the fields that are children
        child_names: tuple[str, ...]
        #: set every field of a node under construction, in order (see `node`)
        def _init(self, *values: Any) -> None: ...

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} is immutable: build a new node, "
            f"for example with .replace({name}=...)"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very object."""
        return self is other

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self).from_fields(**changes)

    @classmethod
    def fit_numbers(cls, *values: Any) -> Any:
        """The fields named in `numbers` as nodes, where one of them was given as a number."""
        raise NotImplementedError(cls)

    @classmethod
    def from_fields(cls, *values: Any, **named: Any) -> Self:
        """Construct from field values in declaration order, without conversions."""
        return cls(*values, **named)

    def children(self) -> list[Any]:
        """The child nodes in field order, tuples flattened and None left out."""
        return []

    def map_children(self, fn: Callable[[Any], Any]) -> Self:
        """This node with `fn` applied to each child; the same object when none changed."""
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), tuple(getattr(self, n) for n, _ in type(self).fields))

    def __repr__(self) -> str:
        return script_or_fields(self)

    def script(self, **options: Any) -> str:
        """The node as it is written in a script; see `IRModule.script` for the options."""
        return above("script")(self, **options)

    def show(self, **options: Any) -> None:
        """Print the script, highlighted where that can be shown."""
        above("show")(self, **options)

    def fallback_repr(self) -> str:
        """The node as a constructor call: what is printed where no printer knows it."""
        args = ", ".join(f"{n}={getattr(self, n)!r}" for n, t in type(self).fields
                         if t is not ignored)
        return f"{type(self).__name__}({args})"


def script_or_fields(obj: Any) -> str:
    """What `repr` of a node says: its script where it can be printed, its fields otherwise."""
    try:
        return above("script")(obj)
    except Exception:  # a repr must never raise, whatever half-built node it is shown
        return obj.fallback_repr()


def _rebuild(cls: type[Node], values: tuple[object, ...]) -> Node:
    return cls.from_fields(*values)


def map_tuple(items: tuple[_Item, ...], fn: Callable[[_Item], _Item]) -> tuple[_Item, ...]:
    """Items with `fn` applied to each; the same tuple when none changed."""
    out = None
    for index, item in enumerate(items):
        new = fn(item)
        if out is not None:
            out.append(new)
        elif new is not item:
            out = list(items[:index])
            out.append(new)
    return items if out is None else tuple(out)


#: types that are no nodes, and which constructors take in the place of one: see `Node.numbers`
TAKEN_FOR_NODES: set[type] = {int, float, bool}

#: stands for a field that `replace` leaves as it is
_KEPT = object()


def _no_fields(self: Node, names: Iterable[str]) -> None:
    raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(names))}")


def _generate(cls: type[Node], own_init: bool) -> None:
    """Write the constructor of a node class; what else follows is written when it is called."""
    names = [name for name, _ in cls.fields]
    scope: dict[str, Any] = {**vars(sys.modules[cls.__module__]), "cls": cls}
    for klass in reversed(cls.__mro__):
        for name in klass.__dict__.get("__slots__", ()):
            if name != "__weakref__":
                scope[f"_set_{name}"] = klass.__dict__[name].__set__
    scope["_taken"] = TAKEN_FOR_NODES
    lines = [f"def __init__(self, {', '.join(names)}{', span=None' if cls.numbers else ''}):"]
    if cls.numbers:
        given, number = ", ".join(cls.numbers), " or ".join(
            f"{name}.__class__ in _taken" for name in cls.numbers)
        lines.append(f"    if {number}: {given} = self.fit_numbers({given})")
    lines += [f"    _set_{name}(self, {name})" for name in names] or ["    pass"]
    lines += [f"    _set_{d}(self, {src})" for d, src in cls.derived.items()]
    if not own_init:
        exec("\n".join(lines), scope)
        cls.__init__ = scope["__init__"]
    # raw construction, for rewriting: skips conversions of a hand-written constructor
    setters = "; ".join(f"_set_{name}(self, {name})" for name in names) or "pass"
    extra = ""
    for derived, source in cls.derived.items():
        extra += f"\n    _set_{derived}(self, {source})"
    body = f"    self = new(cls)\n    {setters}{extra}\n    return self"
    out: dict[str, Any] = {}
    exec(f"def raw({', '.join(names)}):\n{body}", {**scope, "new": object.__new__}, out)
    cls.from_fields = staticmethod(out["raw"])
    for name in ("replace", *(("children", "map_children") if cls.child_names else ())):
        if name not in cls.__dict__:
            setattr(cls, name, _WRITTEN_LATER[name])


def _written_later(name: str) -> Callable[..., Any]:
    """Stands for a method until it is called first: most classes are never asked for theirs, and a
    program that starts should not wait for them."""

    def first(self: Node, *args: Any, **kwargs: Any) -> Any:
        cls = type(self)
        setattr(cls, name, _WRITERS[name](cls))
        return getattr(self, name)(*args, **kwargs)

    return functools.wraps(getattr(Node, name))(first)


def _write(cls: type[Node], name: str, head: str, body: list[str]) -> Callable[..., Any]:
    scope: dict[str, Any] = {"map_tuple": map_tuple, "_kept": _KEPT, "_no_fields": _no_fields,
                             "raw": cls.from_fields}
    exec(f"def {name}(self{head}):\n" + "\n".join(f"    {line}" for line in body), scope)
    return functools.wraps(getattr(Node, name))(scope[name])


def _write_replace(cls: type[Node]) -> Callable[..., Any]:
    names = [name for name, _ in cls.fields]
    star = "*, " if names else ""
    given = "".join(f"{name}=_kept, " for name in names)
    args = ", ".join(f"self.{name} if {name} is _kept else {name}" for name in names)
    return _write(cls, "replace", f", {star}{given}**others", [
        "if others: _no_fields(self, others)", f"return raw({args})"])


def _write_children(cls: type[Node]) -> Callable[..., Any]:
    body = ["out = []"]
    for name in cls.child_names:
        body.append(f"{name} = self.{name}")
        body.append(f"if type({name}) is tuple: out += {name}")
        body.append(f"elif {name} is not None: out.append({name})")
    return _write(cls, "children", "", [*body, "return out"])


def _write_map_children(cls: type[Node]) -> Callable[..., Any]:
    kids = cls.child_names
    body: list[str] = []
    for name in kids:
        body.append(f"{name} = self.{name}")
        body.append(f"if type({name}) is tuple: n_{name} = map_tuple({name}, fn)")
        body.append(f"else: n_{name} = {name} if {name} is None else fn({name})")
    same = " and ".join(f"n_{name} is {name}" for name in kids)
    args = ", ".join(f"n_{n}" if n in kids else f"self.{n}" for n, _ in cls.fields)
    return _write(cls, "map_children", ", fn", [
        *body, f"if {same}: return self", f"return raw({args})"])


_WRITERS = {"replace": _write_replace, "children": _write_children,
            "map_children": _write_map_children}
_WRITTEN_LATER = {name: _written_later(name) for name in _WRITERS}


if TYPE_CHECKING:
    @overload
    def node(cls: C) -> C: ...
    @overload
    def node(*, namespace: str) -> Callable[[C], C]: ...


@dataclass_transform(frozen_default=True, eq_default=False,
                     field_specifiers=(defines, uses, plain, ignored))
def node(cls: Any = None, *, namespace: str = "") -> Any:
    """Class decorator: make `cls` a node type from its annotated fields.

    `@node(namespace="relax")` declares it as "relax.<name>" in NODE_TYPES, for a language whose
    nodes are called as those of another.

    A class whose callers may give Python numbers says for which fields in `numbers`, and how they
    become nodes in `fit_numbers`. A class may write its own `__init__` to convert arguments; it
    must end by setting every field through `self._init(...)`, which takes the fields in order.
    `derived` maps a slot that is computed (not a field) to a Python expression over the field
    names.
    """
    if cls is None:
        return functools.partial(node, namespace=namespace)
    own: dict[str, _Tag] = {}
    for name in cls.__dict__.get("__annotations__", {}):
        if name in ("fields", "derived", "node_key", "bound_parts", "numbers"):
            continue
        tag = cls.__dict__.get(name, child)
        own[name] = tag if isinstance(tag, _Tag) else child
    inherited: dict[str, _Tag] = dict(cls.fields)
    for name in own:
        inherited.pop(name, None)
    fields = tuple(inherited.items()) + tuple(own.items())
    body = {k: v for k, v in cls.__dict__.items()
            if k not in ("__dict__", "__weakref__") and not (k in own and isinstance(v, _Tag))}
    have = {s for base in cls.__mro__[1:] for s in base.__dict__.get("__slots__", ())}
    extra = [name for name in cls.__dict__.get("derived", {}) if name not in have]
    body["__slots__"] = tuple(n for n in own if n not in have) + tuple(extra)
    body["fields"] = fields
    body["node_key"] = f"{namespace}.{cls.__name__}" if namespace else cls.__name__
    body["__match_args__"] = tuple(name for name, _ in fields)
    body["child_names"] = tuple(name for name, tag in fields if tag is child)
    # a subclass that adds no field keeps the hand-written constructor of its base
    own_init = "__init__" in cls.__dict__ or (not own and hasattr(cls, "_init"))
    new_cls = type(cls)(cls.__name__, cls.__bases__, body)
    new_cls.__qualname__ = cls.__qualname__
    _fix_closures(cls, new_cls)
    _generate(new_cls, own_init)
    if own_init:
        new_cls._init = _raw_setter(new_cls)
    NODE_TYPES[new_cls.node_key] = new_cls
    return new_cls


def _raw_setter(cls: type[Node]) -> Callable[..., None]:
    """`self._init(*fields)`: set every field (and derived slot) of a node under construction."""
    names = [name for name, _ in cls.fields]
    scope: dict[str, Any] = dict(vars(sys.modules[cls.__module__]))
    for klass in reversed(cls.__mro__):
        for name in klass.__dict__.get("__slots__", ()):
            if name != "__weakref__":
                scope[f"_set_{name}"] = klass.__dict__[name].__set__
    lines = [f"def _init(self, {', '.join(names)}):"]
    lines += [f"    _set_{name}(self, {name})" for name in names] or ["    pass"]
    lines += [f"    _set_{d}(self, {src})" for d, src in cls.derived.items()]
    exec("\n".join(lines), scope)
    return scope["_init"]


def _fix_closures(old: type, new: type) -> None:
    """Point the `__class__` cell of methods that use super() at the rebuilt class."""
    for value in new.__dict__.values():
        fn = getattr(value, "__func__", value)
        for cell in getattr(fn, "__closure__", None) or ():
            try:
                if cell.cell_contents is old:
                    cell.cell_contents = new
            except ValueError:
                pass
