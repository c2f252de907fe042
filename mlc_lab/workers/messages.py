"""Messages between a process and its workers: JSON, with raw data behind it.

A message is values as JSON has them, and bytes, numpy arrays and IRModules among them. Reading one
executes nothing: a worker runs machine code that nobody has looked at, and what comes back from it
may be anything.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from ..ir.module import IRModule
from ..ir.serialize import load_json, save_json

LENGTH = struct.Struct("<Q")
#: the status of what a worker tells before its answer
EVENT = "event"
#: the key that marks what is no plain value
_KIND = "$"
#: more in one message is a mistake, or garbage that was read as a length
LARGEST = 1 << 36


def encode(value: object) -> bytes:
    """A value as bytes. Raises TypeError for what cannot be sent, such as a function."""
    data: list[bytes] = []
    text = json.dumps(_plain(value, data)).encode()
    return b"".join([LENGTH.pack(len(text)), text, *data])


def decode(message: bytes) -> Any:
    """The value of what `encode` gave; tuples have become lists. Raises ValueError for others."""
    if len(message) < LENGTH.size:
        raise ValueError("the message is too short")
    (size,) = LENGTH.unpack_from(message)
    start = LENGTH.size + size
    try:
        return _value(json.loads(message[LENGTH.size:start]), memoryview(message)[start:])
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the message makes no sense: {type(error).__name__}: {error}") from None


def send(file: Any, value: object) -> None:
    """Write one message."""
    data = encode(value)
    file.write(LENGTH.pack(len(data)) + data)
    file.flush()


def receive(file: Any) -> bytes:
    """Read one message, not decoded. EOFError when the other side is gone."""
    head = file.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (size,) = LENGTH.unpack(head)
    if size > LARGEST:
        raise ValueError(f"a message of {size} bytes")
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _plain(value: Any, data: list[bytes]) -> Any:
    """A value as JSON has it; raw data goes to `data`."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(v, data) for v in value]
    if isinstance(value, dict):
        if all(type(k) is str for k in value) and _KIND not in value:
            return {k: _plain(v, data) for k, v in value.items()}
        if all(k is None or isinstance(k, (str, int, float)) for k in value):
            return {_KIND: "dict", "items": [[k, _plain(v, data)] for k, v in value.items()]}
    if isinstance(value, IRModule):
        return {_KIND: "module", "text": save_json(value)}
    if isinstance(value, (bytes, bytearray)):
        return {_KIND: "bytes", **_put(bytes(value), data)}
    if hasattr(value, "__array__"):
        import numpy as np

        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            raise TypeError("an array of Python objects cannot be sent to a worker")
        raw = array.reshape(-1).view(np.uint8).tobytes()
        return {_KIND: "array", "dtype": array.dtype.name, "shape": list(np.asarray(value).shape),
                **_put(raw, data)}
    raise TypeError(f"{type(value).__name__} cannot be sent to a worker: what travels is text, "
                    "numbers, bytes, arrays, modules, lists of them, and dicts by names or numbers")


def _put(raw: bytes, data: list[bytes]) -> dict[str, int]:
    at = sum(map(len, data))
    data.append(raw)
    return {"at": at, "size": len(raw)}


def _value(plain: Any, data: memoryview) -> Any:
    if isinstance(plain, list):
        return [_value(v, data) for v in plain]
    if not isinstance(plain, dict):
        return plain
    kind = plain.get(_KIND)
    if kind is None:
        return {k: _value(v, data) for k, v in plain.items()}
    if kind == "dict":
        return {k: _value(v, data) for k, v in plain["items"]}
    if kind == "module":
        return load_json(plain["text"])
    at, size = int(plain["at"]), int(plain["size"])
    if not 0 <= at <= at + size <= len(data):
        raise ValueError("the message is cut off")
    raw = bytes(data[at:at + size])
    if kind == "bytes":
        return raw
    if kind == "array":
        import numpy as np

        from ..ir.dtype import numpy_dtype

        return np.frombuffer(raw, numpy_dtype(plain["dtype"])).reshape(plain["shape"]).copy()
    raise ValueError(f"a message holds a {kind!r}")


__all__ = ["decode", "encode", "receive", "send"]
