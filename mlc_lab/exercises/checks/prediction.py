"""prediction: a field of the answer is what was counted, or what was proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..result import Found

if TYPE_CHECKING:
    from ..answers import Answer
    from ..exercise import Variant


def prediction(answer: Answer, variant: Variant, *, field: str, equals: Any, why: str = "",
               within: float = 0.0, says: dict[Any, str] | None = None) -> Found:
    """Whether a field has the right value. `within`: the part of it that a number may be off by;
    `why`: what explains the right value; `says`: what to tell those who gave a certain other one.
    """
    assert answer.values is not None
    given = answer.values.get(field)
    if given is None:
        return Found(False, "nothing was filled in")
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
        parts = [f"too many: {', '.join(sorted(more))}"] * bool(more)
        parts += [f"{len(less)} missing"] * bool(less)
        return Found(False, f"not these: {'; '.join(parts)}")
    if isinstance(given, (int, float)):
        return Found(False, f"{given} is too {'large' if given > equals else 'small'}")
    return Found(False, f"not {given if isinstance(given, str) else ', '.join(given)}")


__all__ = ["prediction"]
