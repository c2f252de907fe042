"""What a module knows beside its functions: `I.module_global_infos({"vdevice": [...]})`.

A VDevice is a place that tensors may be said to live in: a kind of machine, which of them, and
which memory of it.
"""

from __future__ import annotations

from typing import Any

from ..above import above
from .node import Node, node, plain
from .structural import structural_equal


@node
class GlobalInfo(Node):
    """Base of what a module knows."""

    def __eq__(self, other: object) -> bool:
        return self is other or type(self) is type(other) and structural_equal(self, other) is True

    def __hash__(self) -> int:
        return hash((type(self), getattr(self, "vdevice_id", 0)))

    def same_as(self, other: object) -> bool:
        """Whether it is this very one."""
        return self is other


@node
class DummyGlobalInfo(GlobalInfo):
    """Nothing: TVM's tests of global infos have it."""

    def __init__(self) -> None:
        self._init()


@node
class VDevice(GlobalInfo):
    """A virtual device: `target` is the kind of machine, None where it is not known."""

    target: Any = plain()
    vdevice_id: int = plain()
    memory_scope: str = plain()

    def __init__(self, target: Any = None, vdevice_id: int = 0, memory_scope: str = "global"
                 ) -> None:
        if target is not None:
            target = above("Target")(target)
        if vdevice_id < 0:
            raise ValueError(f"the number of a virtual device is 0 or more, got {vdevice_id!r}")
        self._init(target, int(vdevice_id), str(memory_scope))


#: what is known of the modules whose scripts are being read, the innermost last
MODULES: list[dict[str, Any]] = []


def find_vdevice(text: str) -> VDevice:
    """The virtual device that a script means by "llvm", "cuda:1" or "vdevice:3".

    The number counts those of that kind that the module has, or with "vdevice" all of them; where
    the module has none of that kind, it is a new one. Raises ValueError for what is no device.
    """
    kind, colon, number = text.partition(":")
    if colon and not number.isdecimal():
        raise ValueError(f'a device of the module is written as "llvm" or "cuda:1", got {text!r}')
    index = int(number) if colon else 0
    infos = MODULES[-1] if MODULES else {}
    known = [v for v in infos.get("vdevice", ()) if isinstance(v, VDevice)]
    if kind != "vdevice":
        same = [v for v in known if v.target is not None and v.target.kind.name == kind]
        if not same:
            return VDevice(kind, index)
        known = same
    if index >= len(known):
        raise ValueError(f"{text!r}: the module has {len(known)} such device(s): give them in "
                         "I.module_global_infos")
    return known[index]


__all__ = ["DummyGlobalInfo", "GlobalInfo", "VDevice", "find_vdevice"]
