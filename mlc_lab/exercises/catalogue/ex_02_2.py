"""02.2  An iterator that is declared as what it is not."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np

from ...backend.interp import AccessLog, interpret
from ...observe.measure import only_function, random_arrays
from ...script import from_source
from ..exercise import Exercise, Field, Values, Wrong, row

NAMES = ("vp", "vq", "vr", "vs", "vt")
KINDS = {"S": "spatial", "R": "a reduction"}


def program(v: Values):
    """A block of five iterators: three choose an element of Y, and two add to it."""
    a, b, c, d, e = v.roles
    size = dict(zip(NAMES, v.extents))
    loops = [name[1:] for name in NAMES]
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer(({size[d]}, {size[a]}, {size[e]}), "float32"),
             W: T.Buffer(({size[b]}, {size[e]}, {size[c]}, {size[d]}), "float32"),
             Y: T.Buffer(({size[a]}, {size[b] * size[c]}), "float32")):
        for {', '.join(loops)} in T.grid({', '.join(map(str, v.extents))}):
            with T.block("Y"):
                {', '.join(NAMES)} = T.axis.remap("{v.kinds}", [{', '.join(loops)}])
                with T.init():
                    Y[{a}, {b} * {size[c]} + {c}] = T.float32(0)
                Y[{a}, {b} * {size[c]} + {c}] = (Y[{a}, {b} * {size[c]} + {c}]
                    + X[{d}, {a}, {e}] * W[{b}, {e}, {c}, {d}])
""")


def draw(rng: random.Random) -> dict[str, object]:
    """Extents, which iterator does what, and which of them lies."""
    roles = rng.sample(NAMES, 5)
    liar = rng.choice(NAMES)
    honest = {name: "S" if name in roles[:3] else "R" for name in NAMES}
    kinds = "".join(("R" if honest[n] == "S" else "S") if n == liar else honest[n] for n in NAMES)
    return {"roles": roles, "extents": rng.sample([2, 3, 4, 5, 6], 5), "kinds": kinds}


def declared(v: Values) -> dict[str, str]:
    """What the program says that each iterator is."""
    return {name: KINDS[kind] for name, kind in zip(NAMES, v.kinds)}


def shared(v: Values) -> dict[str, Any]:
    """Of each iterator the first element of Y that two of its values write, the other iterators
    being the same, with these values; None where there is none."""
    return dict(_shared(tuple(v.roles), tuple(v.extents), v.kinds))


@functools.lru_cache(64)
def _shared(roles: tuple[str, ...], extents: tuple[int, ...], kinds: str) -> Any:
    mod = program(Values(roles=roles, extents=extents, kinds=kinds))
    stores: dict[tuple[int, ...], int] = {}

    class Log(AccessLog):
        def __call__(self, access: Any) -> None:
            if access.write:
                stores[tuple(access.iteration)] = access.index

    arrays = random_arrays(only_function(mod)[1])
    interpret(mod, *arrays, record=Log())
    columns = arrays[2].shape[1]
    found: dict[str, Any] = dict.fromkeys(NAMES)
    for number, name in enumerate(NAMES):
        writers: dict[tuple[Any, ...], int] = {}
        for iteration in sorted(stores):
            place = stores[iteration]
            rest = (place, *iteration[:number], *iteration[number + 1:])
            first = writers.setdefault(rest, iteration[number])
            if first != iteration[number]:
                at = tuple(int(i) for i in np.unravel_index(place, (extents[NAMES.index(roles[0])],
                                                                    columns)))
                found[name] = at, first, iteration[number]
                break
    return tuple(found.items())


def truth(v: Values) -> dict[str, str]:
    """What each iterator is, by what it writes."""
    return {name: KINDS["R" if hit else "S"] for name, hit in shared(v).items()}


def liar(v: Values) -> str:
    """The iterator that is not what it is declared."""
    return next(name for name in NAMES if truth(v)[name] != declared(v)[name])


def about(v: Values) -> dict[str, str]:
    """What to tell of each iterator."""
    out = {}
    for name, hit in shared(v).items():
        says = (f"{name} = {hit[1]} and {name} = {hit[2]} both write Y{list(hit[0])}" if hit else
                f"no two values of {name} write the same element of Y")
        out[name] = f"{says}, so it is {truth(v)[name]}, as it is declared"
    return out


def other(v: Values) -> str:
    """An iterator that does not lie."""
    return next(name for name in NAMES if name != liar(v))


EXERCISE = Exercise(
    id="02.2",
    title="The iterator that lies",
    level=2,
    minutes=10,
    kind="prediction",
    statement="""\
An iterator of a block is spatial if each of its values writes other elements, and a reduction if
its values add to one element. Of the five iterators of this block four are declared as what they
are. One is not.

Which one, and what is it?""",
    draw=draw,
    program=program,
    fields=lambda v: [
        Field("iterator", "Which iterator is declared wrongly?", "choice", NAMES),
        Field("kind", "What is it in truth?", "choice", tuple(KINDS.values())),
    ],
    checks=lambda v: [
        row("prediction", 3, "the iterator", field="iterator", equals=lambda: liar(v),
            about=lambda: about(v)),
        row("prediction", 1, "its kind", field="kind", equals=lambda: truth(v)[liar(v)],
            about=lambda: {declared(v)[liar(v)]: "that is what it is declared, and it is not "
                           "that"}),
    ],
    hints=(
        "What is declared stands in T.axis.remap. What an iterator is follows from the element "
        "that is written: look at the index of Y on the left of the equals sign.",
        "Keep four iterators and change the fifth: does the block write another element of Y? Then "
        "the fifth is spatial.",
        "Three iterators stand in the index of Y, and two do not. Compare with the letters in "
        'T.axis.remap("{kinds}", ...), which are in the order vp, vq, vr, vs, vt.',
    ),
    reference=lambda v: {"iterator": liar(v), "kind": truth(v)[liar(v)]},
    wrong=lambda v: [
        Wrong({"iterator": other(v), "kind": truth(v)[liar(v)]}, 1, "as it is declared"),
        Wrong({"iterator": liar(v), "kind": declared(v)[liar(v)]}, 3, "and it is not that"),
        Wrong({"iterator": other(v)}, 0, "nothing was filled in"),
    ],
)
