"""speed: the answer beside the reference, in one run on this machine.

A clock is noisy, and another machine is another machine: so this row tells, and a teacher who
wants points for it says so by giving it some.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...build import build
from ...ir.module import IRModule
from ...observe.measure import only_function, random_arrays
from ..answers import read
from ..result import Found
from .work import too_large

if TYPE_CHECKING:
    from ..answers import Answer
    from ..exercise import Variant


def speed(answer: Answer, variant: Variant, *, of_reference: float = 0.8, seconds: float = 1.0
          ) -> Found:
    """Whether the answer reaches a part of the reference's speed. Both are run in turns until the
    best times decide it, for `seconds` at most."""
    assert answer.mod is not None
    problem = too_large(answer.mod)
    reference = read(variant, variant.reference).mod
    if problem or reference is None:
        return Found(False, problem)
    runs = [_runner(mod) for mod in (answer.mod, reference)]
    best = [float("inf")] * 2
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        for number, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[number] = min(best[number], time.perf_counter() - start)
        rounds += 1
        if rounds >= 5 and best[1] / best[0] > 1.3 * of_reference:
            break
    reached = best[1] / best[0]
    return Found(reached >= of_reference, f"{reached:.2f} of the reference's speed "
                 f"({best[0] * 1e3:.3g} ms, the reference {best[1] * 1e3:.3g} ms)")


def _runner(mod: IRModule) -> Any:
    name, func = only_function(mod)
    compiled, arrays = build(mod, "llvm")[name], random_arrays(func)
    compiled(*arrays)
    return lambda: compiled(*arrays)


__all__ = ["speed"]
