"""Why a primitive was refused, told so that one learns from it.

A guard raises `Refusal` with the rule it protects; the Schedule turns it into a `ScheduleError`
that names the primitive and its arguments and shows the program with the offending part underlined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..above import above
from ..ir.diagnostics import MLCError
from ..ir.module import IRModule
from ..language import chosen, text

#: how much an error tells, by TVM's names
LEVELS = ("detail", "fast", "none")

#: the line that says what a rule asks for in another language: errors are English
RULE = "rule: {rule}"


class Refusal(Exception):
    """A rule that a primitive would break.

    `rule`: its name; `message`: what is wrong and why it matters; `nodes`: the statements or
    expressions at fault; `hint`: what would make it legal; `conflict`: two iterations that would
    clash, as text or as a function that finds them: it is called when somebody reads the error.
    """

    def __init__(self, rule: str, message: str, nodes: Sequence[Any] = (), hint: str = "",
                 conflict: str | Callable[[], str] = "") -> None:
        super().__init__(message)
        self.rule, self.message, self.nodes = rule, message, tuple(nodes)
        self.hint, self.conflict = hint, conflict


class Accepted(Exception):
    """No rule refuses a primitive that was only asked about (`ScheduleState.accepted`)."""


def rule_in_words(rule: str, language: str | None = None) -> str:
    """What a rule asks for, in a language (the chosen one); "" in English, whose errors say it
    themselves, and for a rule of somebody else's primitive."""
    language = language or chosen()
    meaning = "" if language == "en" else text(rule, "rules", language)
    return "" if meaning in ("", rule) else text(RULE, "rules", language).format(rule=meaning)


class ScheduleError(MLCError, RuntimeError):
    """A refused primitive.

    Attributes: `primitive` (its name), `call` (the call as Python text), `rule`, `reason`, `nodes`,
    `hint`, `conflict`, `mod` (the program it was refused on); of one that a workbench met, the
    number of the `attempt`, and the `line` of the text that was read. The text is rendered when
    read, as far as `level` says.
    """

    attempt: int | None = None
    line: int | None = None
    #: "detail"; "fast": without what is looked for in the program; "none": that it was refused
    level = "detail"

    def __init__(self, primitive: str, call: str | Callable[[], str], refusal: Refusal,
                 mod: IRModule) -> None:
        super().__init__(primitive)
        self.primitive, self._call, self.mod = primitive, call, mod
        self.rule, self.reason, self.nodes = refusal.rule, refusal.message, refusal.nodes
        self.hint, self._conflict = refusal.hint, refusal.conflict

    @property
    def call(self) -> str:
        """The call that was refused, as Python text."""
        if callable(self._call):
            self._call = self._call()
        return self._call

    @property
    def conflict(self) -> str:
        """Two iterations that would clash, as text; "" where none is known."""
        if callable(self._conflict):
            self._conflict = self._conflict()
        return self._conflict

    def underlined(self, context: int | None = 4) -> str:
        """The program text with the offending part underlined; all of it if `context` is None."""
        return above("script_underlined")(self.mod, self.nodes, context)

    def __str__(self) -> str:
        out = [f"{self.call or self.primitive} was refused."]
        if self.level == "none":
            return out[0]
        out.append(f"  rule: {self.rule}")
        if said := rule_in_words(self.rule):
            out.append(f"  {said}")
        out.append(f"  why:  {self.reason}")
        if self.level == "detail" and self.conflict:
            out.append(f"  two iterations that clash: {self.conflict}")
        if self.hint:
            out.append(f"  try:  {self.hint}")
        if self.level == "fast":
            return "\n".join(out)
        try:
            where = self.underlined()
        except Exception as err:  # the reason must reach the user even if the program won't print
            where = f"(the program cannot be printed: {err})"
        if where:
            out += ["  where:", *("    " + line for line in where.split("\n"))]
        return "\n".join(out)


__all__ = ["LEVELS", "Refusal", "ScheduleError"]
