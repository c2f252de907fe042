"""Tags: names that stand for a whole target. `tags.py` has those that are known."""

from __future__ import annotations

from typing import Any, Mapping

from ..reading import DataError
from .tags import TAGS
from .target import Target


def list_tags() -> dict[str, Target]:
    """The target of each tag."""
    return {name: Target(name) for name in TAGS}


def register_tag(name: str, config: Mapping[str, Any], override: bool = False) -> Target:
    """Let a name stand for a target: `register_tag("mine/gpu", {"kind": "cuda", "arch": "sm_86"})`.

    Raises DataError where the name is taken and not to be replaced, or the target is none.
    """
    if name in TAGS and not override:
        raise DataError(f"the tag {name!r} is known already; override=True replaces it")
    Target(dict(config))  # a mistake is told before the name is taken
    TAGS[name] = dict(config)
    return Target(name)


__all__ = ["list_tags", "register_tag"]
