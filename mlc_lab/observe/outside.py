"""What a program calls outside of itself: C functions, registered functions, code it imports.

Whoever runs such a program runs that code. So a view that runs programs as a matter of course, to
time them, runs those only if it is asked to (`trusted=True`). C's functions of mathematics do
nothing but compute, and count as the program's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..backend.interp_math import c_function
from ..ir.node import Node
from ..tir.expr import Call, StringImm
from ..tir.stmt import AttrStmt

#: operators that call something by its name -> what that is
_CALLS = {
    "tir.call_extern": "C function", "tir.call_pure_extern": "C function",
    "tir.tvm_call_packed": "registered function",
    "tir.tvm_call_packed_lowered": "registered function",
    "tir.tvm_call_cpacked": "C function",
}
#: attributes and annotations by which a program imports code
_IMPORTS = ("pragma_import_llvm", "pragma_import_c")
#: names listed in a message
_TOLD = 3


def calls_outside(program: object, known: Collection[str] = ()) -> list[str]:
    """What a module or function (or several) calls outside of itself, in words, each once. `known`
    are names of registered functions that do not count."""
    found: dict[str, None] = {}
    seen: set[int] = set()
    stack: list[Any] = [program]
    while stack:
        item = stack.pop()
        if isinstance(item, Node):
            if id(item) in seen:
                continue
            seen.add(id(item))
            stack += (getattr(item, name) for name, _ in type(item).fields)
            if type(item) is Call:
                _see_call(item, found)
            # by its name: programs without a graph are looked at without loading Relax
            elif type(item).__name__ == "ExternFunc":
                name = getattr(item, "global_symbol", "")
                if name not in known:
                    found[f"the registered function {name[:60]!r}"] = None
            elif type(item) is AttrStmt and item.attr_key in _IMPORTS:
                found[f"imported code ({item.attr_key})"] = None
        elif isinstance(item, (tuple, list)):
            stack += item
        elif isinstance(item, Mapping):
            found.update((f"imported code ({key})", None) for key in _IMPORTS if key in item)
            stack += item.keys()
            stack += item.values()
        elif hasattr(item, "functions"):
            stack += item.functions.values()
    return list(found)


def _see_call(call: Call, found: dict[str, None]) -> None:
    what = _CALLS.get(getattr(call.op, "name", ""))
    if what is None:
        return
    first = call.args[0] if call.args else None
    name = first.value if isinstance(first, StringImm) else ""
    if what != "C function" or c_function(name) is None:
        found[f"the {what} {name[:60]!r}"] = None


def why_not(program: object) -> str:
    """Why a program is not run unless that is asked for; "" if nothing speaks against it."""
    found = calls_outside(program)
    if not found:
        return ""
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return (f"it calls {', '.join(found[:_TOLD])}{more}: that is code from outside of the program; "
            "if you trust it, ask with trusted=True")


__all__ = ["calls_outside", "why_not"]
