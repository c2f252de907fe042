"""The help of the command line in another language."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from . import text


def texts_of(parser: argparse.ArgumentParser) -> Iterator[tuple[Any, str]]:
    """(an object, the attribute that holds one of its texts) of a parser and all below it."""
    if parser.description:
        yield parser, "description"
    for group in (parser._positionals, parser._optionals):
        yield group, "title"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield choice, "help"
            for below in action.choices.values():
                yield from texts_of(below)
        elif action.help and action.help is not argparse.SUPPRESS:
            yield action, "help"


class _Help(argparse.HelpFormatter):
    """Help whose first word is in the chosen language."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """The line with the usage."""
        super().add_usage(usage, actions, groups, prefix or text("usage: ", "command"))


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and all below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _parsers(below)


def translate(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """A parser whose help is in the chosen language."""
    for holder, name in texts_of(parser):
        setattr(holder, name, text(getattr(holder, name), "command"))
    for one in _parsers(parser):
        one.formatter_class = _Help
    return parser


__all__ = ["texts_of", "translate"]
