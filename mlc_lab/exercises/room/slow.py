"""Who is too quick has to wait: buckets of tries that fill again with time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

#: who is remembered: those who came last
MOST = 10_000


class Slow:
    """`burst` tries at once for each, and then `rate` a second."""

    def __init__(self, burst: float, rate: float, clock: Callable[[], float] = time.monotonic
                 ) -> None:
        self.burst, self.rate, self._clock = burst, rate, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, who: str) -> float:
        """Seconds until there is a try again; 0 where there is one."""
        left = self._now(who)[0]
        return 0.0 if left >= 1 else (1 - left) / self.rate

    def take(self, who: str) -> float:
        """Use a try: 0, or the seconds until there is one."""
        left, now = self._now(who)
        if left < 1:
            return (1 - left) / self.rate
        self._left[who] = (left - 1, now)
        self._left.move_to_end(who)
        while len(self._left) > MOST:
            self._left.popitem(last=False)
        return 0.0

    def _now(self, who: str) -> tuple[float, float]:
        now = self._clock()
        left, since = self._left.get(who, (self.burst, now))
        return min(self.burst, left + (now - since) * self.rate), now


__all__ = ["Slow"]
