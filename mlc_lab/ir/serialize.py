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
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..above import above
from ..reading import DataError, limits, read_json
from ..reading.collector import makes_many
from .field_types import misfit
from .module import BaseFunc, GlobalVar, IRModule
from .node import NODE_TYPES, Node

if TYPE_CHECKING:
    import numpy as np

    Json = str | float | None | list[Any] | dict[str, Any]
    Savable = (Node | IRModule | tuple[Any, ...] | list[Any] | Mapping[Any, Any] | enum.Enum
               | np.ndarray[Any, np.dtype[np.generic]] | str | float | None)

#: version of the format; a loader refuses a newer one
FORMAT = 1

#: other classes: name -> (class, object to plain fields, plain fields to object)
_OTHERS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {}
_ENUMS: dict[str, type[enum.Enum]] = {}


class SerializeError(DataError):
    """A value that cannot be saved, or a text that is no saved value."""


def register_json(name: str, cls: type, to_fields: Callable[[Any], Any],
                  from_fields: Callable[[Any], Any]) -> None:
    """Make objects of a class that is no node savable under `name`.

    `to_fields` gives what describes an object (nodes, tuples, dicts and plain values);
    `from_fields` makes the object from it.
    """
    _OTHERS[name] = (cls, to_fields, from_fields)


def register_enum(cls: type[enum.Enum]) -> None:
    """Make the members of an enum savable."""
    _ENUMS[cls.__name__] = cls


@makes_many
def save_json(obj: Any, escape: bool = False) -> str:
    """The JSON text of a node, module, or container of them.

    With `escape` the text may stand in a Python string literal in triple quotes.
    """
    above("savable parts of TensorIR")
    saver = _Saver()
    root = saver.value(obj)
    saver.run()
    text = json.dumps({"format": FORMAT, "root": root, "nodes": saver.records},
                      separators=(",", ":"))
    return text.replace("\\", "\\\\").replace('"', '\\"') if escape else text


@makes_many
def load_json(text: str) -> Any:
    """What `save_json` saved. Raises SerializeError for a text that is no such thing."""
    above("savable parts of TensorIR")
    try:
        data: Json = read_json(text, "this saved IR", unique=False)
        if not isinstance(data, dict) or not {"format", "root", "nodes"} <= data.keys():
            raise SerializeError("this is no saved IR: an object with \"format\", \"root\" and "
                                 "\"nodes\" is expected")
        if not isinstance(data["format"], int) or data["format"] > FORMAT:
            raise SerializeError(f"the text has format {data['format']!r}, this version reads up "
                                 f"to {FORMAT}")
        return _Loader(data["nodes"]).load(data["root"])
    except SerializeError:
        raise
    except DataError as error:
        raise SerializeError(str(error)) from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise SerializeError(f"this saved IR is damaged: {error}") from error


class _Saver:
    def __init__(self) -> None:
        self.records: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.work: list[tuple[int, Any]] = []
        self.keep: list[Any] = []  # ids stay unique while what they name is alive

    def refer(self, obj: object) -> Json:
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

    def record(self, obj: object) -> Json:
        if isinstance(obj, IRModule):
            return ["IRModule", [self.value(obj.functions), self.value(obj.attrs),
                                 self.value(obj.global_infos)]]
        if isinstance(obj, Node):
            name = type(obj).node_key
            if NODE_TYPES.get(name) is not type(obj):
                raise SerializeError(f"{name} is no declared node")
            return [name, [self.value(getattr(obj, f)) for f, _ in type(obj).fields]]
        for name, (cls, to_fields, _) in _OTHERS.items():
            if type(obj) is cls:
                return [f"+{name}", self.value(to_fields(obj))]
        raise SerializeError(f"cannot save a {type(obj).__name__}")

    def value(self, obj: Savable) -> Json:
        if obj is None or isinstance(obj, (bool, str)):
            return obj
        if isinstance(obj, Node):
            return self.refer(obj)
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
        if isinstance(obj, IRModule) or any(type(obj) is c for c, _, _ in _OTHERS.values()):
            return self.refer(obj)
        if hasattr(obj, "__array__"):
            import numpy as np

            return _saved_array(np.asarray(obj))
        raise SerializeError(f"cannot save a {type(obj).__name__}")


def _saved_array(array: Any) -> Json:
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return {"a": [str(array.dtype), list(array.shape), base64.b64encode(array.tobytes()).decode()]}


def _module(functions: Any, attrs: Any, infos: Any) -> IRModule:
    for part in (functions, attrs, infos):
        if not isinstance(part, dict):
            raise SerializeError("the parts of a module are dicts")
    for var, func in functions.items():
        if not isinstance(var, GlobalVar) or not isinstance(func, BaseFunc):
            raise SerializeError("a module maps names to functions")
    return IRModule(functions, attrs, infos)


def _operator(cls: Any, name: Json) -> Node:
    if not isinstance(name, str):
        raise SerializeError("the name of an operator is a string")
    if name.startswith("relax."):
        above("nodes of Relax")
    return cls.get(name)


#: nodes that others mention where they use them: they are one part, whatever they hold
_DEFINITIONS = frozenset(("Var", "SizeVar", "Buffer", "GlobalVar", "Op", "relax.Var",
                          "relax.DataflowVar", "relax.Constant"))


def _is_record(item: Json) -> bool:
    return isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)


class _Loader:
    def __init__(self, records: Json) -> None:
        if not isinstance(records, list) or not all(map(_is_record, records)):
            raise SerializeError("this saved IR is damaged: its nodes are no list of names with "
                                 "fields")
        self.records: list[Any] = records
        self.made: dict[int, Any] = {}
        self.sizes: dict[int, int] = {}
        #: parts that what is loaded may have, those it holds twice counted twice
        self.most = limits.WORK + 100 * len(records)

    def load(self, root: Json) -> Any:
        stack = self.references(root)
        path: set[int] = set()
        known: dict[int, list[int]] = {}
        while stack:  # children before parents, without recursion
            number = stack[-1]
            if number in self.made:
                stack.pop()
                path.discard(number)
                continue
            name, fields = self.records[number]
            mentioned = known.get(number)
            if mentioned is None:
                mentioned = known[number] = self.references(fields)
            missing = [n for n in mentioned if n not in self.made]
            if not missing:
                try:
                    self.made[number] = self.make(name, fields)
                    self.sizes[number] = 1 if name in _DEFINITIONS else self.size(mentioned)
                except (LookupError, TypeError, ValueError, AttributeError) as error:
                    raise SerializeError(f"this saved IR is damaged: node {number}, a {name[:60]}: "
                                         f"{error}") from error
                continue
            if number in path:
                raise SerializeError(f"this saved IR is damaged: node {number}, a {name[:60]}, "
                                     "refers to itself")
            path.add(number)
            stack.extend(missing)
        return self.value(root)

    def references(self, value: Json) -> list[int]:
        """The numbers of the records that a value refers to."""
        found: list[int] = []
        stack, count = [value], len(self.records)
        while stack:
            item = stack.pop()
            if type(item) is dict:
                number = item.get("$", self)
                if number is self:
                    stack += item.values()
                elif type(number) is int and 0 <= number < count:
                    found.append(number)
                else:
                    raise SerializeError(f"this saved IR is damaged: it refers to node {number!r}, "
                                         f"and has {count}")
            elif type(item) is list:
                stack += item
        return found

    def size(self, mentioned: list[int]) -> int:
        """Parts of a node, from those of the nodes that it mentions."""
        sizes = self.sizes
        total = 1
        for number in mentioned:
            total += sizes[number]
        if total > self.most:
            raise SerializeError("it unfolds to too many parts, since nodes share their parts over "
                                 "and over")
        return total

    def make(self, name: str, fields: Json) -> Any:
        if name.startswith("+"):
            if name.startswith("+te."):
                above("savable parts of TE")
            if name[1:] not in _OTHERS:
                raise SerializeError(f"there is no {name[1:]!r}")
            return _OTHERS[name[1:]][2](self.value(fields))
        if not isinstance(fields, list):
            raise SerializeError("its fields are no list")
        values = [self.value(f) for f in fields]
        if name == "IRModule":
            return _module(*values)
        cls = NODE_TYPES.get(name)
        if cls is None and name.startswith("relax."):
            above("nodes of Relax")
            cls = NODE_TYPES.get(name)
        if cls is None:
            raise SerializeError("there is no such node")
        if name == "Op":
            return _operator(cls, *values)
        wrong = misfit(cls, values)
        if wrong:
            raise SerializeError(wrong)
        if cls is GlobalVar:
            return GlobalVar(*values)
        return getattr(cls, "from_saved", cls.from_fields)(*values)

    def value(self, item: Json) -> Any:
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
            return _array(*content)
        raise SerializeError(f"unknown tag {tag!r}")


def _array(dtype: str, shape: list[int], text: str) -> Any:
    import numpy as np

    from .dtype import numpy_dtype

    if not all(type(d) is int and d >= 0 for d in shape):
        raise SerializeError("the shape of an array is a list of sizes")
    kind = numpy_dtype(dtype)
    if kind.kind not in "biuf" and not dtype.startswith(("bfloat", "float8")):
        raise SerializeError(f"there are no arrays of {dtype}")
    return np.array(np.reshape(np.frombuffer(base64.b64decode(text), kind), shape))


__all__ = ["FORMAT", "SerializeError", "load_json", "register_enum", "register_json", "save_json"]
