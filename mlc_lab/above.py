"""What a layer asks of the layers above it: found by name in one table, loaded on first use.

Imports go one way (tests/test_layers.py says which). Where a lower layer needs what lies above, as
`node.show()` needs the printer, it asks here: `above("show")`. Which function answers is a row of
`extensions.py`, with which the package fills this table before anything else of it is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: what is asked for -> where it is: "module" or "module:name"
ROWS: dict[str, str] = {}
#: a namespace -> names that TVM has in it, and that stand above -> where they are
NAMES: dict[str, dict[str, str]] = {}

_loaded: dict[str, Any] = {}


def above(what: str) -> Any:
    """What a row of the table names."""
    if what not in _loaded:
        _loaded[what] = load(ROWS[what])
    return _loaded[what]


def name_above(namespace: str, name: str) -> Any:
    """A name of a namespace that stands above it. Raises AttributeError if there is none."""
    path = NAMES[namespace].get(name)
    if path is None:
        raise AttributeError(f"module 'mlc_lab.{namespace}' has no attribute {name!r}")
    return load(path)


def load(path: str) -> Any:
    """The module or object that "module" or "module:name" names."""
    module, _, name = path.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


__all__ = ["NAMES", "ROWS", "above", "load", "name_above"]
