"""prediction: a field of the answer is what was counted, or what was proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..result import Found

if TYPE_CHECKING:
    from ..answers import Answer
    from ..exercise import Variant


def prediction(answer: Answer, variant: Variant, *, field: str, equals: Any,
               why: Any = "", within: float = 0.0, says: Any = None, about: Any = None) -> Found:
    """Whether a field has the right value. `within`: the part of it that a number may be off by;
    `why`: what explains the right value; `says`: what to tell those who gave a certain other one;
    `about`: what to tell of a choice that should be chosen, or should not, by the choice.
    Each of `equals`, `why`, `says` and `about` may be a function without parameters that computes
    it: a truth that takes a while to find is found only when an answer is checked.
    """
    assert answer.values is not None
    given = answer.values.get(field)
    if given is None:
        return Found(False, "nothing was filled in")
    equals, why, says, about = (f() if callable(f) else f for f in (equals, why, says, about))
    is_set = any(f.name == field and f.kind == "several" for f in variant.fields)
    if isinstance(given, (int, float)):
        right = abs(given - equals) <= within * abs(equals)
    else:
        right = given == (sorted(equals) if is_set else equals)
    if right:
        return Found(True, why)
    known = (says or {}).get(tuple(given) if isinstance(given, list) else given)
    if known is not None:
        return Found(False, known)
    if isinstance(given, list) and is_set:
        more, less = set(given) - set(equals), set(equals) - set(given)
        parts = ["too many: " + ", ".join(sorted(more))] * bool(more)
        parts += [f"{len(less)} missing"] * bool(less)
        parts += [f"{name}: {about[name]}" for name in sorted(more) if name in (about or {})]
        return Found(False, f"not these: {'; '.join(parts)}")
    if isinstance(given, (int, float)):
        return Found(False, f"{given} is too {'large' if given > equals else 'small'}")
    if isinstance(given, list):
        return Found(False, f"not in this order: {', '.join(given)}")
    return Found(False, (about or {}).get(given) or f"not {given}")


__all__ = ["prediction"]
