"""Saving and loading nodes and modules as JSON, from their declarations.

The text is a list of records, one a node, that refer to each other by number: a node that is shared
(a variable, a buffer) is written once and is one object again after loading. Loading only builds
declared node classes; it runs nothing.
"""

from __future__ import annotations

import base64
import enum
import json
import math
from typing import Any, Callable, Mapping

from .diagnostics import MLCError
from .module import GlobalVar, IRModule
from .node import NODE_TYPES, Node

#: version of the format; a loader refuses a newer one
FORMAT = 1

#: other classes: name -> (class, object to plain fields, plain fields to object)
_OTHERS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {}
_ENUMS: dict[str, type] = {}


class SerializeError(MLCError, ValueError):
    """A value that cannot be saved, or a text that is no saved value."""


def register_json(name: str, cls: type, to_fields: Callable[[Any], Any],
                  from_fields: Callable[[Any], Any]) -> None:
    """Make objects of a class that is no node savable under `name`.

    `to_fields` gives what describes an object (nodes, tuples, dicts and plain values);
    `from_fields` makes the object from it.
    """
    _OTHERS[name] = (cls, to_fields, from_fields)


def register_enum(cls: type) -> None:
    """Make the members of an enum savable."""
    _ENUMS[cls.__name__] = cls


def _register_tir() -> None:
    """Let `tir` register its parts, by name since it lies above this package."""
    if "ForKind" not in _ENUMS:
        import importlib

        importlib.import_module("mlc_lab.tir.saving")


def save_json(obj: Any, escape: bool = False) -> str:
    """The JSON text of a node, module, or container of them.

    With `escape` the text may stand in a Python string literal in triple quotes.
    """
    _register_tir()
    saver = _Saver()
    root = saver.value(obj)
    saver.run()
    text = json.dumps({"format": FORMAT, "root": root, "nodes": saver.records},
                      separators=(",", ":"))
    return text.replace("\\", "\\\\").replace('"', '\\"') if escape else text


def load_json(text: str) -> Any:
    """What `save_json` saved. Raises SerializeError for a text that is no such thing."""
    _register_tir()
    try:
        data = json.loads(text)
        nodes, root, version = data["nodes"], data["root"], data["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise SerializeError(f"this is no saved IR: {error}") from error
    if version > FORMAT:
        raise SerializeError(f"the text has format {version}, this version reads up to {FORMAT}")
    try:
        return _Loader(nodes).load(root)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise SerializeError(f"this saved IR is damaged: {error}") from error


class _Saver:
    def __init__(self) -> None:
        self.records: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.work: list[tuple[int, Any]] = []
        self.keep: list[Any] = []  # ids stay unique while what they name is alive

    def refer(self, obj: Any) -> dict:
        number = self.numbers.get(id(obj))
        if number is None:
            number = self.numbers[id(obj)] = len(self.records)
            self.records.append(None)
            self.work.append((number, obj))
            self.keep.append(obj)
        return {"$": number}

    def run(self) -> None:
        while self.work:
            number, obj = self.work.pop()
            self.records[number] = self.record(obj)

    def record(self, obj: Any) -> Any:
        if isinstance(obj, IRModule):
            return ["IRModule", [self.value(obj.functions), self.value(obj.attrs),
                                 self.value(obj.global_infos)]]
        if isinstance(obj, Node):
            name = type(obj).node_key
            if name == "Op":
                return ["Op", [obj.name]]
            if NODE_TYPES.get(name) is not type(obj):
                raise SerializeError(f"{name} is no declared node")
            return [name, [self.value(getattr(obj, f)) for f, _ in type(obj).fields]]
        for name, (cls, to_fields, _) in _OTHERS.items():
            if type(obj) is cls:
                return [f"+{name}", self.value(to_fields(obj))]
        raise SerializeError(f"cannot save a {type(obj).__name__}")

    def value(self, obj: Any) -> Any:
        if obj is None or isinstance(obj, (bool, str)):
            return obj
        if isinstance(obj, enum.Enum):
            return {"e": [type(obj).__name__, obj.value]}
        if isinstance(obj, int):
            return int(obj)
        if isinstance(obj, float):
            return obj if math.isfinite(obj) else {"f": repr(obj)}
        if isinstance(obj, tuple):
            return {"t": [self.value(v) for v in obj]}
        if isinstance(obj, list):
            return {"l": [self.value(v) for v in obj]}
        if isinstance(obj, Mapping):
            return {"d": [[self.value(k), self.value(v)] for k, v in obj.items()]}
        if isinstance(obj, (Node, IRModule)) or any(type(obj) is c for c, _, _ in
                                                    _OTHERS.values()):
            return self.refer(obj)
        if hasattr(obj, "__array__"):
            import numpy as np

            array = np.ascontiguousarray(obj)
            return {"a": [str(array.dtype), list(np.shape(obj)),
                          base64.b64encode(array.tobytes()).decode()]}
        raise SerializeError(f"cannot save a {type(obj).__name__}")


def _operator(cls: type, name: str) -> Any:
    if name.startswith("relax."):
        import importlib

        importlib.import_module("mlc_lab.relax")
    return cls.get(name)


class _Loader:
    def __init__(self, records: list) -> None:
        self.records = records
        self.made: dict[int, Any] = {}

    def load(self, root: Any) -> Any:
        stack = list(self.references(root))
        path: set[int] = set()
        while stack:  # children before parents, without recursion
            number = stack[-1]
            if number in self.made:
                stack.pop()
                path.discard(number)
                continue
            missing = [n for n in self.references(self.records[number][1])
                       if n not in self.made]
            if not missing:
                self.made[number] = self.make(*self.records[number])
                continue
            if number in path:
                raise SerializeError("this saved IR refers to itself")
            path.add(number)
            stack.extend(missing)
        return self.value(root)

    def references(self, value: Any) -> list[int]:
        found: list[int] = []
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, dict):
                if "$" in item:
                    found.append(item["$"])
                else:
                    stack.extend(item.values())
            elif isinstance(item, list):
                stack.extend(item)
        return found

    def make(self, name: str, fields: Any) -> Any:
        if name.startswith("+"):
            return _OTHERS[name[1:]][2](self.value(fields))
        values = [self.value(f) for f in fields]
        if name == "IRModule":
            functions, attrs, infos = values
            return IRModule(functions, attrs, infos)
        cls = NODE_TYPES.get(name)
        if cls is None and name.startswith("relax."):
            import importlib  # by name: Relax lies above this package

            importlib.import_module("mlc_lab.relax")
            cls = NODE_TYPES.get(name)
        if cls is None:
            raise SerializeError(f"there is no node {name!r}")
        if name == "Op":
            return _operator(cls, values[0])
        if cls is GlobalVar:
            return GlobalVar(*values)
        return getattr(cls, "from_saved", cls.from_fields)(*values)

    def value(self, item: Any) -> Any:
        if not isinstance(item, dict):
            return item
        (tag, content), = item.items()
        if tag == "$":
            return self.made[content]
        if tag == "t":
            return tuple(map(self.value, content))
        if tag == "l":
            return list(map(self.value, content))
        if tag == "d":
            return {self.value(k): self.value(v) for k, v in content}
        if tag == "e":
            return _ENUMS[content[0]](content[1])
        if tag == "f":
            return float(content)
        if tag == "a":
            import numpy as np

            dtype, shape, text = content
            if dtype == "bfloat16" or dtype.startswith("float8"):
                from .dtype import numpy_dtype

                kind = numpy_dtype(dtype)
            else:
                kind = np.dtype(dtype)
            return np.frombuffer(base64.b64decode(text), kind).reshape(shape).copy()
        raise SerializeError(f"unknown tag {tag!r}")


__all__ = ["FORMAT", "SerializeError", "load_json", "register_enum", "register_json", "save_json"]
