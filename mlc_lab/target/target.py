"""Target: what code is generated for, from a string, a dict, or another target."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..reading import DataError, limits, read_json, shown, similar
from .kind import KINDS, TargetKind
from .tags import TAGS

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

    #: what a target is made from; None for this machine's default
    TargetLike: TypeAlias = "Target | str | Mapping[str, Any] | None"

#: the targets of the `with` statements that are open, innermost last
_entered: ContextVar[tuple[Target, ...]] = ContextVar("targets", default=())


class Target:
    """A kind of machine with options. Immutable; usable in a ``with`` statement.

    ``Target("llvm -mcpu=skylake -num-cores 4")``, ``Target({"kind": "llvm", "mcpu": "skylake"})``,
    ``Target("cuda", host="llvm")``. Options are read from ``attrs`` or as attributes
    (``target.mcpu``).
    """

    __slots__ = ("attrs", "host", "keys", "kind", "tag")

    kind: TargetKind
    attrs: dict[str, Any]
    keys: tuple[str, ...]
    host: Target | None
    tag: str

    def __new__(cls, target: TargetLike = "llvm", host: TargetLike = None
                ) -> Target:
        if isinstance(target, Target) and host is None:
            return target
        return super().__new__(cls)

    def __init__(self, target: TargetLike = "llvm", host: TargetLike = None
                 ) -> None:
        """Raises DataError (a ValueError) for an unknown kind or option, naming near ones."""
        if target is self:
            return
        options = dict(_read(target))
        if host is None:
            host = options.pop("host", None)
        else:
            options.pop("host", None)
        name = str(options.pop("kind", "llvm"))
        if name not in KINDS:
            raise DataError(
                f"unknown target kind {shown(name)}{_near(name, KINDS)} "
                f"(the kinds: {', '.join(sorted(KINDS))})"
            )
        kind = KINDS[name]
        tag = str(options.pop("tag", ""))
        attrs = dict(_typed(kind, key, value) for key, value in options.items())
        keys = tuple(attrs.pop("keys", ())) or kind.keys
        device = attrs.get("device")
        if device and device not in keys:
            keys = (device, *keys)
        for key, value in kind.defaults.items():
            attrs.setdefault(key, value)
        set_ = object.__setattr__
        set_(self, "kind", kind)
        set_(self, "attrs", attrs)
        set_(self, "keys", tuple(dict.fromkeys(keys)))
        set_(self, "tag", tag)
        set_(self, "host", None if host is None else Target(host))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a target cannot be changed; make a new one")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        kind = object.__getattribute__(self, "kind")
        attrs = object.__getattribute__(self, "attrs")
        for key in (name, name.replace("_", "-")):
            if key in attrs:
                return attrs[key]
            if key in kind.options:
                return [] if isinstance(kind.options[key], list) else None
        raise AttributeError(f"a target of kind {kind.name!r} has no option {name!r}")

    # -- what it says -----------------------------------------------------------------------------

    @property
    def num_cores(self) -> int | None:
        """How many cores the target has; None when not said."""
        return self.attrs.get("num-cores")

    @property
    def mcpu(self) -> str:
        """The processor, or ``""``."""
        return self.attrs.get("mcpu", "")

    @property
    def mattr(self) -> list[str]:
        """Features switched on and off, such as ``["+avx2"]``."""
        return list(self.attrs.get("mattr", ()))

    @property
    def libs(self) -> list[str]:
        """Libraries that code for the target may call."""
        return list(self.attrs.get("libs", ()))

    @property
    def max_num_threads(self) -> int:
        """How many threads a block of a GPU may have."""
        return int(self.attrs.get("max_num_threads", 1))

    @property
    def thread_warp_size(self) -> int:
        """How many threads of a GPU run in step."""
        return int(self.attrs.get("thread_warp_size", 1))

    @property
    def arch(self) -> str:
        """The architecture of a GPU, such as ``"sm_80"``."""
        return str(self.attrs.get("arch", ""))

    @property
    def device_name(self) -> str:
        """The option ``device``, or ``""``."""
        return self.attrs.get("device", "")

    def get_kind_attr(self, name: str) -> Any:
        """A fact about the kind: its name or its device."""
        return getattr(self.kind, name, None)

    def get_target_device_type(self) -> int:
        """DLPack's code of the device the target's code runs on."""
        codes = {"cpu": 1, "cuda": 2, "opencl": 4, "vulkan": 7, "metal": 8, "rocm": 10,
                 "ext_dev": 12, "webgpu": 15, "hexagon": 16}  # fmt: skip
        return codes[self.kind.device]

    # -- forms ------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """The target as a dict, from which an equal one can be made."""
        out: dict[str, Any] = {"kind": self.kind.name, "tag": self.tag, "keys": list(self.keys)}
        out.update({k: list(v) if isinstance(v, tuple) else v for k, v in self.attrs.items()})
        if self.host is not None:
            out["host"] = self.host.export()
        return out

    def __str__(self) -> str:
        words = [self.kind.name]
        if self.keys:
            words.append(f"-keys={','.join(self.keys)}")
        for key in sorted(self.attrs):
            value = self.attrs[key]
            if isinstance(value, bool):
                value = int(value)
            elif isinstance(value, (list, tuple)):
                value = ",".join(map(str, value))
            words.append(f"-{key}={value}")
        return " ".join(words)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            other = Target(other)
        if not isinstance(other, Target):
            return NotImplemented
        return self.export() == other.export()

    def __hash__(self) -> int:
        return hash((str(self), self.host))

    def __reduce__(self) -> Any:
        return Target, (self.export(),)

    def with_host(self, host: TargetLike) -> Target:
        """The same target with another host."""
        return Target(self.export(), host)

    def without_host(self) -> Target:
        """The same target with no host."""
        options = self.export()
        options.pop("host", None)
        return Target(options)

    # -- the current target -----------------------------------------------------------------------

    def __enter__(self) -> Target:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _entered.set(_entered.get()[:-1])

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost ``with``; None (or ValueError) outside of all."""
        targets = _entered.get()
        if targets:
            return targets[-1]
        if allow_none:
            return None
        raise ValueError('there is no current target; use `with Target("llvm"):`')

    @staticmethod
    def canon_target(target: TargetLike) -> Target | None:
        """``target`` as a Target, None as None."""
        return None if target is None else Target(target)

    @staticmethod
    def canon_target_and_host(target: TargetLike, host: TargetLike = None
                              ) -> tuple[Target, Target | None]:
        """A target and its host as Targets."""
        target = Target(target, host) if host is not None else Target(target)
        return target, target.host

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of all kinds."""
        return list(KINDS)

    @staticmethod
    def from_device(device: Any) -> Target:
        """The target of a device of this machine."""
        name = getattr(device, "type", None) or str(device).split("(")[0].split(":")[0]
        return Target({"cpu": "llvm"}.get(str(name), str(name)))


def _near(name: str, names: Any) -> str:
    found = similar(name, names)
    return f"; did you mean {found[0]!r}?" if found else ""


def _read(target: TargetLike) -> Mapping[str, Any]:
    """The options of a target in any of its forms."""
    if isinstance(target, Target):
        return target.export()
    if isinstance(target, Mapping):
        return target
    if not isinstance(target, str):
        raise TypeError(
            f"a target is a string or a dict, not {type(target).__name__}: "
            'for example "llvm -mcpu=skylake"'
        )
    if len(target) > limits.TARGET:
        raise DataError(f"this target has {len(target)} characters, the bound is {limits.TARGET}")
    text = target.strip()
    if text.startswith("{"):
        found = read_json(text, "this target")
        if not isinstance(found.get("host"), (str, dict, type(None))):
            raise DataError(f"the host of a target is a target, not {shown(found['host'])}")
        return found
    if text in TAGS:
        return {**TAGS[text], "tag": text}
    if not text:
        raise DataError('the target is empty; for this machine it is "llvm"')
    try:
        words = shlex.split(text)
    except ValueError as error:  # a quotation mark is missing
        raise DataError(f"the target {shown(text)} cannot be read: {error}") from None
    if words[0].startswith("-"):
        raise DataError(f"a target starts with its kind, as in 'llvm {text[:80]}'")
    options: dict[str, Any] = {"kind": words[0]}
    rest = words[1:]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            raise DataError(f"in the target {shown(text)}, {shown(word)} is no option; options "
                            "start with -")
        key, given, value = word.lstrip("-").partition("=")
        if not given and rest and not _is_option(rest[0]):
            value, given = rest.pop(0), "="
        options[key] = value if given else True
    return options


def _is_option(word: str) -> bool:
    """Whether a word starts an option, and is not a value such as ``-1``."""
    return word.startswith("-") and not word.lstrip("-")[:1].isdigit()


def _typed(kind: TargetKind, key: str, value: Any) -> tuple[str, Any]:
    """An option under its proper name, with its value in its type."""
    for spelling in (key, key.replace("_", "-"), key.replace("-", "_")):
        if spelling in kind.options:
            key = spelling
            break
    else:
        raise DataError(
            f"a target of kind {kind.name!r} has no option {shown(key)}{_near(key, kind.options)} "
            f"(its options: {', '.join(sorted(kind.options))})"
        )
    wanted = kind.options[key]
    if isinstance(wanted, list):
        if isinstance(value, str):
            value = [part for part in value.split(",") if part]
        if not isinstance(value, (list, tuple)):
            raise DataError(f"the option {key!r} of a target is a list, not {shown(value)}")
        try:
            return key, [wanted[0](part) for part in value]
        except (TypeError, ValueError):
            raise DataError(f"the option {key!r} of a target cannot be {shown(value)}") from None
    if wanted is bool:
        return key, not any(value == no for no in ("0", "false", "False", 0))
    if wanted is int:
        try:
            return key, int(value)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"the option {key!r} of a target is a whole number, not {shown(value)}"
            ) from None
    return key, str(value)


def llvm(options: str = "") -> Target:
    """A target of kind llvm with the options of a command line."""
    return Target(f"llvm {options}".strip())


def cuda(arch: str = "", **options: Any) -> Target:
    """A target of kind cuda."""
    return Target({"kind": "cuda", **({"arch": arch} if arch else {}), **options})


def detect_target() -> Target:
    """This machine: its processor as LLVM names it, and the cores this process may use."""
    import llvmlite.binding as binding

    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return Target({"kind": "llvm", "mcpu": binding.get_host_cpu_name(), "num-cores": cores})
