"""Collects the texts that are translated, brings the catalogues up to date, and compiles them.

    python dev.py texts                        after a text has changed, or a translation
    python dev.py texts 04_traces_and_replay   begin a catalogue that there is not yet

A text that has changed keeps its old translation, marked `fuzzy`: it is not used until a translator
has looked at it and has taken the mark away. `tests/language` fails for the catalogues of COMPLETE
as long as there is one.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from mlc_lab import lower
from mlc_lab.cli import _parser
from mlc_lab.exercises.catalogue import catalogue
from mlc_lab.language import FOLDER, LANGUAGES, lessons
from mlc_lab.language.command import texts_of
from mlc_lab.observe.doctor import TOOLS
from mlc_lab.observe.passes import doc_of
from mlc_lab.relax import transform
from mlc_lab.relax.transform import PASSES
from mlc_lab.schedule.error import RULE
from mlc_lab.schedule.instruction import InstructionKind

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "translations"
#: catalogues in which nothing may be missing
COMPLETE: dict[str, tuple[str, ...]] = {"zh": (
    "00_start_here", "00_tour_in_ten_minutes", "01_tensor_program_abstraction",
    "02_tensorir_and_blocks", "03_schedule_primitives", "04_traces_and_replay",
    "05_memory_and_caches", "06_end_to_end_model", "07_te_schedules", "08_random_search",
    "09_evolutionary_search", "10_tuning_a_model", "11_frameworks", "12_graph_optimization",
    "13_threads_and_blocks", "14_shared_memory", "15_reductions_across_threads",
    "16_tuning_for_a_gpu", "17_blocks_to_machine_code", "18_why_a_split_is_legal",
    "19_vectors_and_the_pipeline", "20_all_cores", "21_extend_the_lab",
    "22_convolution_and_attention", "23_a_small_language_model", "exercises", "checks", "command",
    "views", "rules", "meanings")}
#: lines of a head that say nothing here
_UNSAID = tuple(b'"' + name for name in (b"Project-Id", b"Report-", b"Last-", b"Language-Team",
                                        b"Generated-By"))
#: files say no time: they change when texts do
_TIME = datetime(2026, 1, 1, tzinfo=timezone.utc)


def of_lessons() -> Iterator[tuple[str, str, str]]:
    """(domain, text, where it stands) of all lessons."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell, message in lessons.messages(notebook):
            yield path.stem, message, f"notebooks/{path.name}#{cell}"


def of_exercises() -> Iterator[tuple[str, str, str]]:
    """The same of exercises: titles, statements, hints."""
    for exercise in catalogue():
        for message in (exercise.title, exercise.statement, *exercise.hints):
            yield "exercises", message, f"exercise {exercise.id}"
    yield from of_checks()


#: words that are drawn, and stand in a statement or a hint
_DRAWN = re.compile(r"[\w,' ]+( [a-z]+){3,}[\w,' ]*")


def of_checks() -> Iterator[tuple[str, str, str]]:
    """The same of what exercises check and ask: `row(...)` and `Field(...)`, choices in words."""
    for path in sorted((ROOT / "mlc_lab" / "exercises" / "catalogue").glob("ex_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("row"), args=[_, _, said, *_]) | ast.Call(
                        func=ast.Name("Field"), args=[_, said, *_]):
                    message = _template(said)
                    if lessons.has_words(re.sub(r"\{\w+\}", "", message)):
                        yield "exercises", message, path.relative_to(ROOT).as_posix()
    for exercise in catalogue():
        for name, value in (pair for seed in range(8)
                            for pair in vars(exercise.variant(seed).values).items()):
            if (isinstance(value, str) and _DRAWN.fullmatch(value)
                    and "{" + name + "}" in "".join((exercise.statement, *exercise.hints))):
                yield "exercises", value, f"exercise {exercise.id}"
        asked = [{choice for field in exercise.variant(seed).fields for choice in field.choices}
                 for seed in range(4)] if exercise.fields else [set()]
        for choice in sorted(set.intersection(*asked)):  # others are names of the variant
            named = choice.isidentifier() and not re.fullmatch("[a-z]{4,}", choice)
            if re.search(r"[a-z]{2}", choice) and not named:
                message = re.sub(r"\d+$", "{value}", choice)  # "line 3": all lines alike
                yield "exercises", message, f"exercise {exercise.id}"


#: a place for a value in a text
_PLACE = re.compile(r"\{\w*\}")
#: what is no name, pattern or setting: words and places with spaces between them
_PHRASE = re.compile(r"(?!.* -)[A-Za-z0-9{][\w{}.'()[\]/,\"=@-]*"
                     r"([;:]? [\w{}.'()[\]/,\"=@%*+-]+)+[;:?]?")


#: what exercises say before there is an answer, or in tests: by call, which arguments; all by None
_BEFORE: dict[str, tuple[object, ...] | None] = {
    "row": (0, 1, 2), "Field": None, "Wrong": None,
    "Exercise": ("id", "title", "kind", "statement", "hints", "reference", "program")}
#: a word of a sentence and something else, and no code of a program
_SENTENCE = re.compile(r"(?!.*\b(T|R|sch)\.\w+\()(?!.*\w = [\w.]+\()(?!def |for )"
                       r"(.* )?[A-Za-z]?[a-z']+[,;:?]? .*")


def of_marks() -> Iterator[tuple[str, str, str]]:
    """What checks of exercises say of an answer, and exercises whose checks are their own: the
    parts of which they put it together."""
    folder = ROOT / "mlc_lab" / "exercises"
    limits = ROOT / "mlc_lab" / "lower" / "verify_gpu_code.py"  # why a kernel cannot be counted
    for path in [limits, folder / "judging.py", folder / "answers.py",
                 *sorted((folder / "checks").glob("*.py")),
                 *sorted((folder / "catalogue").glob("ex_*.py"))]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {id(part) for node in ast.walk(tree) for part in _unsaid(node)}
        for node in ast.walk(tree):
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in inside:
                # several lines are a program's, but in a message with places for values
                apart = path == limits or (path.parent.name != "catalogue"
                                           and isinstance(node, ast.JoinedStr))
                lines = (line for form in _forms(node)
                         for line in (form.split("\n") if apart else [form]))
                for message in (part for line in lines if not line.startswith("    ")
                                for part in line.split(". ")):
                    message = re.sub(r"(?<!\.)\.$", "", message.strip("; ").lstrip(".;: "))
                    message = re.sub(r"^\(([^()]*)\)$", r"\1", message)  # `told` looks inside
                    if _PHRASE.fullmatch(message) and lessons.has_words(
                            _PLACE.sub("", message)) and (
                            path.parent.name in ("checks", "lower")
                            or _SENTENCE.fullmatch(message)):
                        yield "checks", message, path.relative_to(ROOT).as_posix()


def _unsaid(node: ast.AST) -> Iterator[ast.AST]:
    """What is no text of its own under a node: parts of a text, docstrings, what is said before."""
    match node:
        case ast.JoinedStr(values=parts):
            yield from parts
        case ast.Expr(value=value):
            yield value
        case ast.Call(func=ast.Name(name)) if name in _BEFORE:
            which = _BEFORE[name]
            for at, part in [*enumerate(node.args), *((k.arg, k.value) for k in node.keywords)]:
                if which is None or at in which:
                    yield from ast.walk(part)


def _forms(said: ast.expr) -> list[str]:
    """The templates of a text: one for each of the words that a place of it chooses between."""
    if not isinstance(said, ast.JoinedStr):
        numbers = iter(range(9))
        return [re.sub(r"\{\}", lambda _: f"{{value{next(numbers)}}}", _template(said))]
    made: list[tuple[str, ...]] = [()]
    for part in said.values:
        match part:
            case ast.Constant(str(words)):
                made = [(*m, words) for m in made]
            case ast.FormattedValue(ast.IfExp(body=ast.Constant(str(a)),
                                              orelse=ast.Constant(str(b)))):
                made = [(*m, words) for m in made for words in (a, b)]
            case _:
                made = [m if m[-1:] == ("",) else (*m, "") for m in made]  # two places are one
    return [_places(m) for m in made]


def _places(parts: tuple[str, ...]) -> str:
    """Words and places ("") as a template."""
    count = parts.count("")
    numbers = iter(range(count))
    return "".join(part or f"{{value{next(numbers) if count > 1 else ''}}}" for part in parts)


def _template(said: ast.expr) -> str:
    """A literal, or an f-string with a place for each value: {v.most:,} is {most}."""
    match said:
        case ast.Constant(str(message)):
            return message
        case ast.JoinedStr(values=parts):
            places = [p for p in parts if isinstance(p, ast.FormattedValue)]
            return "".join(str(p.value) if isinstance(p, ast.Constant) else
                           f"{{value{places.index(p) if len(places) > 1 else ''}}}"
                           for p in parts)
    return ""


def of_commands() -> Iterator[tuple[str, str, str]]:
    """The same of the help of the command line, and of what it prints."""
    for holder, name in texts_of(_parser()):
        yield "command", getattr(holder, name), "mlc-lab --help"
    for _, use in TOOLS.values():
        yield "command", use, "mlc-lab doctor"
    yield from _of_python("command", sorted((ROOT / "mlc_lab").rglob("*.py")))


#: a call of `t` in a script, and the literal (or the sum of several) that is its text
_SAID = re.compile(r"""\bt\(\s*((?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\s|\+)+)""")
_LITERAL = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")


def said_in(script: str) -> Iterator[str]:
    """The texts of the calls of `t` in a script of the views."""
    for call in _SAID.findall(script):
        yield "".join(ast.literal_eval(part) for part in _LITERAL.findall(call))


def of_views() -> Iterator[tuple[str, str, str]]:
    """The same of the views: what their scripts say, and Python with `text(..., "views")`."""
    for path in sorted((ROOT / "widgets" / "js").glob("*.js")):
        for message in said_in(path.read_text(encoding="utf-8")):
            yield "views", message, f"widgets/js/{path.name}"
    python = [*(ROOT / "widgets").glob("*.py"), *(ROOT / "mlc_lab").rglob("*.py")]
    yield from _of_python("views", sorted(python))


def _of_python(domain: str, paths: list[Path]) -> Iterator[tuple[str, str, str]]:
    """What Python says with `text(..., domain)`."""
    for path in paths:
        source = path.read_text(encoding="utf-8")
        if f'"{domain}"' not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(func=ast.Name("text"), args=[ast.Constant(str(message)),
                                                           ast.Constant(of), *_]) if of == domain:
                    yield domain, message, path.relative_to(ROOT).as_posix()


def of_meanings() -> Iterator[tuple[str, str, str]]:
    """What primitives and passes do, in the first sentence of their docstrings: views show it."""
    yield "meanings", "The program as it was.", "mlc_lab/observe/session.py"
    for kind in InstructionKind.by_method.values():
        yield "meanings", kind.meaning, f"sch.{kind.method}"
    for name in sorted(PASSES):
        if isinstance(getattr(transform, name), type):
            continue  # what passes are made of
        yield "meanings", doc_of(name)["meaning"], f"relax.transform.{name}"
    for name in lowering_passes():
        yield "meanings", doc_of(f"tir.{name}")["meaning"], f"tir.{name}"


def lowering_passes() -> list[str]:
    """The names of the passes that lower tensor programs."""
    return sorted(name for name, found in vars(lower).items()
                  if inspect.isfunction(found) and found.__annotations__.get("return") == "Pass")


def of_rules() -> Iterator[tuple[str, str, str]]:
    """The rules that refusals name: a translation says what a rule asks for."""
    yield "rules", RULE, "mlc_lab/schedule/error.py"
    for path in sorted((ROOT / "mlc_lab").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "Refusal(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(func=ast.Name("Refusal"), args=[rule, *_]):
                    for name in _values(rule):
                        yield "rules", name, path.relative_to(ROOT).as_posix()


def _values(rule: ast.expr) -> Iterator[str]:
    """What the name of a rule may be: it is a literal, or one with the word of a place in it."""
    match rule:
        case ast.Constant(str(name)):
            yield name
        case ast.JoinedStr(values=parts):
            for word in ("consumer", "producer"):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else word
                              for part in parts)


def templates() -> dict[str, Catalog]:
    """The texts of each domain, without translations."""
    made: dict[str, Catalog] = {}
    for source in (of_lessons(), of_exercises(), of_marks(), of_commands(), of_views(),
                   of_meanings(), of_rules()):
        for domain, message, where in source:
            if domain not in made:
                made[domain] = Catalog(domain=domain, creation_date=_TIME, fuzzy=False)
            if message.strip():
                made[domain].add(message, auto_comments=[where])
    return made


def read(language: str, domain: str) -> Catalog | None:
    """The catalogue as it lies in its file; None where there is none."""
    path = PLACE / language / f"{domain}.po"
    if not path.exists():
        return None
    with path.open("rb") as file:
        return read_po(file, locale=language, domain=domain)


def updated(language: str, template: Catalog) -> Catalog:
    """The catalogue of a language with the texts of today."""
    known = read(language, str(template.domain))
    catalog = known if known is not None else Catalog(
        locale=language, domain=template.domain, fuzzy=False, header_comment=(
            f"# Texts of MLC Lab in another language ({language}): {template.domain}."))
    catalog.update(template)
    catalog.creation_date = catalog.revision_date = _TIME
    catalog.obsolete.clear()
    return catalog


def po(catalog: Catalog) -> bytes:
    """The file that translators work on."""
    out = io.BytesIO()
    write_po(out, catalog, width=0, ignore_obsolete=True)
    lines = out.getvalue().split(b"\n")
    return b"\n".join(line for line in lines if not line.startswith(_UNSAID))


def mo(catalog: Catalog) -> bytes:
    """The file that is read while the lab runs."""
    out = io.BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def compiled(language: str, domain: str) -> Path:
    """Where the compiled form of a catalogue lies."""
    return FOLDER / language / "LC_MESSAGES" / f"{domain}.mo"


def missing(catalog: Catalog) -> list[str]:
    """The texts that have no translation which a translator has looked at."""
    return [str(m.id) for m in catalog if m.id and (not m.string or m.fuzzy)]


def main(*begun: str) -> None:
    """Write all catalogues, and those that are begun, and say how far each is."""
    for language in LANGUAGES:
        if language == "en":
            continue
        for domain, template in templates().items():
            if domain not in begun and read(language, domain) is None:
                continue
            catalog = updated(language, template)
            (PLACE / language).mkdir(parents=True, exist_ok=True)
            (PLACE / language / f"{domain}.po").write_bytes(po(catalog))
            done = len(catalog) - len(missing(catalog))
            target = compiled(language, domain)
            if done:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(mo(catalog))
            print(f"{language} {domain}: {done} of {len(catalog)} texts")


if __name__ == "__main__":
    main(*sys.argv[1:])
