"""The language in which lessons, exercises, views and the command line are read.

Texts are written in English where they are used. A translation of them is a gettext catalogue: the
.po files that translators work on are in `translations/` of the repository, what is made of them
(`zh/LC_MESSAGES/*.mo`) is here. A text without a translation is read in English, so a catalogue may
be behind; a test says where it is.

    chosen()                         "en" or "zh": MLC_LAB_LANGUAGE, or else the system's language
    text("Start here", "command")    the text of a domain in that language
    filled("at most 3 misses", ...)  the same of a text in which "{most}" has become 3
    told("3 misses; 2 suffice", ...) the same of a text that was put together of several
    with speaking("en"): ...         in that language, whatever was chosen: for what is kept as data

A domain is a lesson by the name of its file, "exercises", "checks" (what they say of an answer),
"command", "views", "meanings" (what primitives and passes do), or "rules" (of refusals, by their
names).
"""

from __future__ import annotations

import gettext
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

#: the languages, by the names that they have for themselves
LANGUAGES = {"en": "English", "zh": "中文"}
#: the environment variable that names the language
VARIABLE = "MLC_LAB_LANGUAGE"
#: where the system says it, the first that is set
_SYSTEM = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
FOLDER = Path(__file__).parent
#: the language of a `speaking` block
_spoken: ContextVar[str] = ContextVar("language", default="")


def chosen() -> str:
    """The language that was asked for, or the system's; English where there are no texts in it."""
    return _spoken.get() or _known(
        os.environ.get(VARIABLE) or next(filter(None, map(os.environ.get, _SYSTEM)), ""))


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Another language is the chosen one inside of the block."""
    before = _spoken.set(language)
    try:
        yield
    finally:
        _spoken.reset(before)


@cache
def _known(wanted: str) -> str:
    short = re.split(r"[-_.:@]", wanted)[0].lower()
    return short if short in LANGUAGES else "en"


@cache
def _catalogue(domain: str, language: str) -> gettext.NullTranslations:
    return gettext.translation(domain, FOLDER, [language], fallback=True)


def text(message: str, domain: str, language: str | None = None) -> str:
    """A text in a language (the chosen one), as it is written where there is no translation."""
    language = language or chosen()
    if language == "en" or not message.strip():
        return message
    return _catalogue(domain, language).gettext(message)


@cache
def _templates(domain: str, language: str) -> list[tuple[re.Pattern[str], str, int]]:
    """The short texts of a domain that have places for values, as patterns of what they become,
    what is said for them, and the length of their own words: the longest first."""
    found = []
    for message, said in texts(domain, language).items():
        if "{" in message and "\n" not in message:
            places, words = re.findall(r"\{(\w+)\}", message), re.split(r"\{\w+\}", message)
            pattern = re.escape(words[0])
            for n, (place, word) in enumerate(zip(places, words[1:])):
                again = place in places[:n]  # the same value again
                pattern += (f"(?P={place})" if again else f"(?P<{place}>.*?)") + re.escape(word)
            found.append((re.compile(pattern), said, sum(map(len, words))))
    return sorted(found, key=lambda one: -one[2])


def filled(message: str, domain: str, language: str | None = None) -> str:
    """The same of a text whose values have been filled in already: it is known by its words."""
    language = language or chosen()
    said = text(message, domain, language)
    if language == "en" or said != message:
        return said
    for pattern, template, _ in _templates(domain, language):
        match = pattern.fullmatch(message)
        if match:
            return template.format(**match.groupdict())
    return message


#: characters of words that a text has which fits others by chance
_SHORT = 10
#: what ends a sentence and parts its clauses, in each language
PARTED = {"en": (". ", "; "), "zh": ("。", "；")}
_COLON = {"zh": "："}


def told(message: str, domain: str, language: str | None = None) -> str:
    """The same of a text that was put together of several, values in values: each part that is
    known, and others as they are. Of a text of several lines each is one; those that are indented
    are a program's, and stay."""
    language = language or chosen()
    if language == "en" or not message.strip():
        return message
    if domain != "rules" and (rule := text(message.replace(" ", "_"), "rules", language)) != (
            message.replace(" ", "_")):
        return rule.rstrip("。")  # the name of a rule, in words
    if "\n" in message:
        return "\n".join(line if line[:1].isspace() else told(line, domain, language)
                         for line in message.split("\n"))
    said = text(message, domain, language)
    if said != message:
        return said
    end, comma = PARTED[language]
    if message.endswith(".") and not message.endswith(".."):
        said = told(message[:-1], domain, language)
        return message if said == message[:-1] else said + end
    # sentence by sentence; then as one clause, clause by clause, and with clauses as its values
    return (_apart(message, ". ", end, domain, language)
            or _matched(message, domain, language, "; ")
            or _apart(message, "; ", comma, domain, language)
            or _matched(message, domain, language) or _headed(message, domain, language)
            or _bracketed(message, domain, language)
            or message)


def _apart(message: str, mark: str, there: str, domain: str, language: str) -> str | None:
    """A text part by part, if there are several and one is known."""
    parts = _outside(message, mark)
    if len(parts) == 1:
        return None
    made = [told(part, domain, language) for part in parts]
    return there.join(made) if made != parts else None


def _outside(message: str, mark: str) -> list[str]:
    """The parts of a text between marks, of which those in brackets part nothing."""
    parts = [""]
    for piece in message.split(mark):
        if parts[-1].count("(") > parts[-1].count(")"):
            parts[-1] += mark + piece
        else:
            parts.append(piece)
    balanced = parts[-1].count("(") <= parts[-1].count(")")
    return parts[1:] if balanced else message.split(mark)


def _matched(message: str, domain: str, language: str, without: str | None = None) -> str | None:
    """A text that one with places for values fits; values have nothing `without` in them."""
    for pattern, template, own in _templates(domain, language):
        match = pattern.fullmatch(message)
        values = match.groupdict() if match else {}
        if match and not any(
                without and without in value or own <= _SHORT and " " in value
                for value in values.values()):
            return template.format(**{place: told(value, domain, language)
                                      for place, value in values.items()})
    return None


def _headed(message: str, domain: str, language: str) -> str | None:
    """A text that begins with one that ends in a colon, or with one that a colon may follow, or
    with a name of which something known is said."""
    head, colon, rest = message.partition(": ")
    if not colon:
        return None
    said = text(head + ":", domain, language)
    if said == head + ":":
        said = (_matched(head, domain, language) or head) + _COLON[language]
    told_rest = told(rest, domain, language)
    if said == head + _COLON[language] and (" " in head or told_rest == rest):
        return None
    return said + told_rest


def _bracketed(message: str, domain: str, language: str) -> str | None:
    """A text with another one in brackets behind it."""
    match = re.fullmatch(r"(.*\S)? \((.*)\)", message)
    if match is None:
        return None
    made = [told(part or "", domain, language) for part in match.groups()]
    return f"{made[0]}（{made[1]}）" if made != [match[1] or "", match[2]] else None


def texts(domain: str, language: str) -> dict[str, str]:
    """All translations of a domain into a language, by the English texts."""
    known = _catalogue(domain, language)
    return {k: v for k, v in vars(known).get("_catalog", {}).items() if k and isinstance(k, str)}


__all__ = [
    "FOLDER", "LANGUAGES", "PARTED", "VARIABLE", "chosen", "filled", "speaking", "text", "texts",
    "told"]
