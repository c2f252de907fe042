"""autotvm's spaces: knobs that a template defines, and configurations that decide them.

The first time a template runs, `define_split` and the like note what may be chosen; afterwards
`cfg["name"]` is what one configuration chose. A configuration is a number from 0 to the size of the
space less one, its digits the choices.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Sequence

from ...reading import MISTAKES, DataError, reason, shown
from ...schedule.primitive.sample_perfect_tile import divisors
from ...tir.op import as_int

if TYPE_CHECKING:
    pass


class InstantiationError(ValueError):
    """A configuration under which a template makes no schedule."""


class SplitEntity:
    """Sizes of the parts of a loop, outermost first (-1: what is left)."""

    def __init__(self, size: Sequence[int]) -> None:
        self.size = list(size)

    def apply(self, sch: Any, op: Any, axis: Any) -> list[Any]:
        """Split a loop of `sch[op]`: the parts, outermost first."""
        parts, rest = [], axis
        for size in reversed(self.size[1:]):
            rest, inner = sch[op].split(rest, int(size))
            parts.append(inner)
        return [rest, *reversed(parts)]

    def as_json(self) -> list:
        """As it stands in a log."""
        return ["sp", self.size]

    def __repr__(self) -> str:
        return str(self.size)


class ReorderEntity:
    """An order of loops."""

    def __init__(self, perm: Sequence[int]) -> None:
        self.perm = list(perm)

    def apply(self, sch: Any, op: Any, axes: Sequence[Any]) -> list[Any]:
        """Reorder loops of `sch[op]`: the loops in their new order."""
        new = [axes[i] for i in self.perm]
        if len(new) > 1:
            sch[op].reorder(*new)
        return new

    def as_json(self) -> list:
        """As it stands in a log."""
        return ["re", self.perm]

    def __repr__(self) -> str:
        return str(self.perm)


class AnnotateEntity:
    """How each of several loops runs: "none", "unroll" or "vec"."""

    def __init__(self, anns: Sequence[str]) -> None:
        self.anns = list(anns)

    def apply(self, sch: Any, op: Any, axes: Sequence[Any], **_: object) -> list[Any]:
        """Annotate loops of `sch[op]`."""
        for how, axis in zip(self.anns, axes):
            if how == "unroll":
                sch[op].unroll(axis)
            elif how == "vec":
                sch[op].vectorize(axis)
        return list(axes)

    def as_json(self) -> list:
        """As it stands in a log."""
        return ["an", self.anns]

    def __repr__(self) -> str:
        return str(self.anns)


class OtherOptionEntity:
    """One of several values: `cfg["name"].val`."""

    def __init__(self, val: Any) -> None:
        self.val = val

    def as_json(self) -> list:
        """As it stands in a log."""
        return ["ot", self.val]

    def __repr__(self) -> str:
        return str(self.val)


_KINDS = {"sp": SplitEntity, "re": ReorderEntity, "an": AnnotateEntity, "ot": OtherOptionEntity}
#: the types of what is in the list of each kind; a value of "ot" is any
_ITEMS: dict[str, tuple[type, ...] | None] = {"sp": (int,), "re": (int,), "an": (str,), "ot": None}


def _extent(axis: Any) -> int:
    value = axis if isinstance(axis, int) else as_int(getattr(axis, "dom", axis).extent) \
        if hasattr(axis, "dom") else None
    if value is None:
        raise ValueError(f"define_split needs an axis with a constant extent, or a number, not "
                         f"{axis!r}")
    return value


def _tiles(extent: int, parts: int) -> list[list[int]]:
    if parts == 1:
        return [[extent]]
    return [[*rest, d] for d in divisors(extent) for rest in _tiles(extent // d, parts - 1)]


class ConfigSpace:
    """The knobs of a template, in the order in which they were defined.

    `space_map` maps names to lists of what may be chosen. While the space is gathered, `cfg[name]`
    is the first choice.
    """

    is_fallback = False

    def __init__(self) -> None:
        self.space_map: dict[str, list[Any]] = {}
        self.flop = 0
        self.errors: list[str] = []

    # ------------------------------------------------------------------ defining

    def _define(self, name: str, choices: list[Any]) -> None:
        if not choices:
            raise ValueError(f"the knob {name!r} has nothing to choose from")
        self.space_map.setdefault(name, choices)

    def define_split(self, name: str, axis: Any, policy: str = "factors", **options: Any
                     ) -> None:
        """All ways to cut an axis into `num_outputs` parts by its divisors.

        `max_factor` bounds the innermost part, `filter(entity)` drops ways; policy "verbose" also
        has sizes that do not divide, "candidate" takes those in `candidate`.
        """
        parts = options.get("num_outputs", 2)
        if policy == "candidate":
            sizes = [list(c) for c in options["candidate"]]
        else:
            extent = _extent(axis)
            if policy == "power2":
                powers = [1 << p for p in range(extent.bit_length()) if 1 << p <= extent]
                sizes = [[-1, *t] for t in itertools.product(powers, repeat=parts - 1)
                         if math.prod(t) <= extent]
            elif policy == "verbose":
                sizes = [[-1, *t] for t in itertools.product(range(1, extent + 1),
                                                             repeat=parts - 1)
                         if math.prod(t) <= extent]
            elif policy == "factors":
                sizes = [[-1, *t[1:]] for t in _tiles(extent, parts)]
            else:
                raise ValueError(f"define_split knows the policies factors, power2, verbose and "
                                 f"candidate, not {policy!r}")
        limit = options.get("max_factor")
        entities = [SplitEntity(s) for s in sizes if limit is None or s[-1] <= limit]
        keep = options.get("filter")
        self._define(name, [e for e in entities if keep is None or keep(e)])

    def define_reorder(self, name: str, axes: Sequence[Any], policy: str = "all", **options: Any
                       ) -> None:
        """Orders of loops: "all", "interval_all" (a part of them, `interval`), "candidate", or
        "identity"."""
        count = len(axes)
        if policy == "all":
            orders = [list(p) for p in itertools.permutations(range(count))]
        elif policy in ("interval_all", "interval"):
            begin, end = options["interval"]
            end = count if end == -1 else end
            orders = [[*range(begin), *p, *range(end, count)]
                      for p in itertools.permutations(range(begin, end))]
        elif policy == "candidate":
            places = {id(a): i for i, a in enumerate(axes)}
            orders = [[places[id(a)] for a in order] for order in options["candidate"]]
        elif policy == "identity":
            orders = [list(range(count))]
        else:
            raise ValueError(f"define_reorder does not know the policy {policy!r}")
        self._define(name, [ReorderEntity(o) for o in orders])

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str = "try_unroll_vec",
                        **_: object) -> None:
        """How loops run: policies try_vec, try_unroll and try_unroll_vec."""
        count = len(axes)
        unrolls = [["none"] * (count - u) + ["unroll"] * u for u in range(count + 1)]
        if policy == "try_vec":
            choices = [["none"] * count, ["none"] * (count - 1) + ["vec"]]
        elif policy == "try_unroll":
            choices = unrolls
        elif policy == "try_unroll_vec":
            choices = [["none"] * (count - 1 - u) + ["unroll"] * u + [last]
                       for u in range(count) for last in ("none", "vec")]
        else:
            raise ValueError(f"define_annotate does not know the policy {policy!r}")
        self._define(name, [AnnotateEntity(c) for c in choices])

    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        """One of several values."""
        self._define(name, [OtherOptionEntity(c) for c in candidate])

    @staticmethod
    def axis(var: Any) -> Any:
        """An axis, as define_split takes it."""
        return var

    reduce_axis = axis

    def add_flop(self, flop: int) -> None:
        """Note how many operations the template computes."""
        self.flop += int(flop)

    def raise_error(self, message: str) -> None:
        """Note that the configuration in use is not valid, and why."""
        self.errors.append(str(message))

    def valid(self) -> bool:
        """Whether no error was noted."""
        return not self.errors

    # ------------------------------------------------------------------ choosing

    @property
    def dims(self) -> list[int]:
        """How many choices each knob has."""
        return [len(choices) for choices in self.space_map.values()]

    def __len__(self) -> int:
        return math.prod(self.dims)

    def get(self, index: int) -> "ConfigEntity":
        """A configuration by number."""
        if not 0 <= index < len(self):
            raise IndexError(f"the space has {len(self)} configurations, there is none {index}")
        choices, rest = {}, index
        for name, entities in self.space_map.items():
            choices[name] = entities[rest % len(entities)]
            rest //= len(entities)
        return ConfigEntity(index, choices)

    def genes(self, index: int) -> list[int]:
        """The choice of each knob, by number."""
        out = []
        for size in self.dims:
            out.append(index % size)
            index //= size
        return out

    def index_of(self, genes: Sequence[int]) -> int:
        """The number of a configuration by its choices."""
        index = 0
        for gene, size in zip(reversed(list(genes)), reversed(self.dims)):
            index = index * size + gene
        return index

    def __getitem__(self, name: str | int) -> Any:
        return self.get(name) if isinstance(name, int) else self.space_map[name][0]

    def __repr__(self) -> str:
        lines = [f"ConfigSpace (len={len(self)}, space_map="]
        for number, (name, choices) in enumerate(self.space_map.items()):
            lines.append(f"  {number:2d} {name}: {type(choices[0]).__name__[:-6]}, "
                         f"{len(choices)} choices, e.g. {choices[0]!r}")
        return "\n".join([*lines, ")"])


class ConfigEntity:
    """One configuration; `cfg[name]` is what it chose. Its `define_*` do nothing any more."""

    is_fallback = False

    def __init__(self, index: int, choices: dict[str, Any]) -> None:
        self.index, self.choices = index, choices
        self.errors: list[str] = []

    def __getitem__(self, name: str) -> Any:
        return self.choices[name]

    def _nothing(self, *_: object, **__: object) -> None:
        """Defined already."""

    define_split = define_reorder = define_annotate = define_knob = add_flop = _nothing
    axis = reduce_axis = staticmethod(ConfigSpace.axis)
    raise_error, valid = ConfigSpace.raise_error, ConfigSpace.valid

    def as_json(self) -> dict:
        """As it stands in a log."""
        return {"index": self.index, "code_hash": None,
                "entity": [[n, *e.as_json()] for n, e in self.choices.items()]}

    @staticmethod
    def from_json(data: dict) -> "ConfigEntity":
        """A configuration of a log. Raises DataError."""
        try:
            if type(data["index"]) is not int:
                raise DataError(f"its number is {shown(data['index'])}")
            choices = {}
            for name, kind, value in data["entity"]:
                cls, kinds = _KINDS[kind], _ITEMS[kind]
                if kinds is not None and not (isinstance(value, list) and all(
                        type(item) in kinds for item in value)):
                    raise DataError(f"{shown(name)} is {shown(value)}")
                choices[name] = cls(value)
        except MISTAKES as error:
            raise DataError(f"this is no configuration: {reason(error)}") from None
        return ConfigEntity(data["index"], choices)

    def __repr__(self) -> str:
        return f"{list(self.choices.items())},{self.index}"


__all__ = ["AnnotateEntity", "ConfigEntity", "ConfigSpace", "InstantiationError",
           "OtherOptionEntity", "ReorderEntity", "SplitEntity"]
