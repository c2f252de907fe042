"""machine_code: what the inner loop of the answer is compiled to, for a processor that is named.

The code is made for that processor on every machine, so marks do not depend on who looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...observe.why import inner_facts
from ..result import Found
from .work import too_large

if TYPE_CHECKING:
    from ..answers import Answer
    from ..exercise import Variant

#: a processor with 16 vector registers of 256 bits and multiply-adds
PROCESSOR = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell"


def machine_code(answer: Answer, variant: Variant, *, width: int = 0, fma: int = 0,
                 sums: int = 0, spills: int | None = None, shuffles: int | None = None,
                 target: str = PROCESSOR) -> Found:
    """Whether the inner loop has vectors of `width` bits at least, so many multiply-adds `fma` and
    independent `sums` at least, and so many `spills` and `shuffles` at most."""
    assert answer.mod is not None
    problem = too_large(answer.mod)
    if problem:
        return Found(False, problem)
    facts = inner_facts(answer.mod, target=target)
    wrong = [text for bad, text in (
        (facts["width"] < width, _width(facts["width"], width)),
        (facts["fma"] < fma, f"{facts['fma']} multiply-adds, {fma} are asked for"),
        (facts["sums"] < sums, f"{facts['sums']} sums that do not wait for each other, {sums} are "
                               "asked for"),
        (spills is not None and facts["spills"] + facts["reloads"] > spills,
         f"the {facts['of']} vector registers do not suffice: {facts['spills']} values are stored "
         f"to the stack and {facts['reloads']} loaded from it"),
        (shuffles is not None and facts["shuffles"] > shuffles,
         f"{facts['shuffles']} instructions only move elements within vectors"),
    ) if bad]
    if wrong:
        return Found(False, "in the inner loop: " + "; ".join(wrong), {"assembly": facts["text"]})
    return Found(True, f"the inner loop has {_code(facts)}")


def _width(have: int, wanted: int) -> str:
    return (f"vectors of {have} bits, {wanted} are asked for" if have else
            f"no vectors, one element at a time; {wanted} bits are asked for")


def _code(facts: dict[str, Any]) -> str:
    return (f"{facts['instructions']} instructions, {facts['fma']} of them multiply-adds, in "
            f"{facts['registers']} of {facts['of']} vector registers, "
            f"{facts['spills'] + facts['reloads']} on the stack")


__all__ = ["machine_code"]
