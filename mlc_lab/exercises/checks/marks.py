"""marks: the places that are marked in a picture are just those that were counted or proven.

All points are for exactly the right places. Otherwise each right mark counts and each wrong one
takes as much away: of `r` places, `a` right marks and `b` wrong ones have (a - b) / r of the
points, rounded down, and not less than none (`pictures.share`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..pictures import marks_in, share
from ..result import Found

if TYPE_CHECKING:
    from ..answers import Answer
    from ..exercise import Variant


def marks(answer: Answer, variant: Variant, *, field: str, equals: Any, why: Any = "",
          about: Any = None) -> Found:
    """Whether just the right places are marked. `equals`: their names, or a text as an answer
    writes them; `why`: what explains them; `about`: what to tell of a place that is marked and
    should not be, or should be and is not, by its name. Each may be a function without parameters
    that computes it. Told are the first wrong mark and the first one that is missing.
    """
    assert answer.values is not None
    given = answer.values.get(field)
    if given is None:
        return Found(False, "nothing was marked")
    picture = next(f.picture for f in variant.fields if f.name == field)
    assert picture is not None
    equals, why, about = (f() if callable(f) else f for f in (equals, why, about))
    right = marks_in(picture, equals)
    more, less = ([p for p in a if p not in set(b)] for a, b in ((given, right), (right, given)))
    if not more and not less:
        return Found(True, why)
    says = [*(is_wrong(name, about) for name in more[:1]),
            *(is_missing(name, about) for name in less[:1])]
    counts = f"{len(given) - len(more)} of {len(right)} are right, {len(more)} wrong"
    return Found(False, f"{'; '.join(says)}. {counts}",
                 {"field": field, "wrong": more[0] if more else "",
                  "missing": less[0] if less else ""},
                 part=share(right, given))


def is_wrong(name: str, about: Mapping[str, str] | None) -> str:
    """What is told of a place that is marked and should not be."""
    return f"{name} is marked, and should not be{_because(about, name)}"


def is_missing(name: str, about: Mapping[str, str] | None) -> str:
    """What is told of a place that should be marked and is not."""
    return f"{name} is missing{_because(about, name)}"


def _because(about: Any, name: str) -> str:
    known = (about or {}).get(name)
    return f" ({known})" if known else ""


__all__ = ["is_missing", "is_wrong", "marks"]
