"""Builds the site: lessons that were run, with their views alive, documents, and what to look up.

    python dev.py site                        all of it, into build/site/html
    python dev.py site --lessons 02 03        run these lessons only: others show no outputs, and
                                              the gallery no counts

Sources are gathered in build/site/source: the lessons with their outputs, the documents as they
are, and pages that are written here: one for each primitive, with the example of its docstring as a
stepper; a gallery of schedules; the exercises; the API from docstrings. Sphinx makes pages of them.
The lessons and exercises in each other language are a site of their own in a folder of the first
(`html/zh`): they are run in that language, and lead to the English pages for all else.
Each view's recording stands in its page, and widgets/js/site.js draws it: pages ask no other host
for anything, and work from a disk. Last, all links are followed (links.py).

A lesson is run once for each state of its notebook and of the package; build/site/lessons keeps the
results.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(HERE)]

import links  # noqa: E402
import nbformat  # noqa: E402
import not_found  # noqa: E402

from mlc_lab.language import LANGUAGES, VARIABLE  # noqa: E402
from mlc_lab.language.lessons import in_language  # noqa: E402

REPOSITORY = "https://github.com/mlc-lab/mlc-lab/blob/main"
#: the line of a notebook that leads to its page on the site
ITS_PAGE = re.compile(r"\[[^\]\n]*\]\(https://mlc-lab\.github\.io/[^)\s]*\)[.。]\n*")
VIEW = "application/vnd.mlc-lab.view+json"
#: the caches of the gallery's counts: those of a common core
CACHES = "32K:8, 1M:16"
#: Sphinx's name of each language that the site has besides English
LOCALES = {"zh": "zh_CN"}
#: what is documented from docstrings, and under which title
API = {
    "mlc_lab.ir": "Nodes and modules", "mlc_lab.tir": "Tensor programs",
    "mlc_lab.schedule": "Schedules", "mlc_lab.te": "Tensor expressions",
    "mlc_lab.topi": "Operators as tensor expressions", "mlc_lab.relax": "Relax",
    "mlc_lab.relax.transform": "Passes of Relax", "mlc_lab.lower": "Lowering",
    "mlc_lab.meta_schedule": "Search", "mlc_lab.runtime": "Running", "mlc_lab.target": "Targets",
    "mlc_lab.observe": "Views", "mlc_lab.exercises": "Exercises", "mlc_lab.compat": "Names of TVM",
}  # fmt: skip


# ------------------------------------------------------------------------------------ views


def place(data: dict[str, Any]) -> str | None:
    """The HTML of an output that is a view: its recording, and what is there without scripts. A
    card can be tried, in the language that is read."""
    from mlc_lab_widgets import page_card

    kept = data.get(VIEW)
    if kept is None:
        return None
    if kept.get("empty"):
        return ""
    fallback = data.get("text/html", "")
    fallback = fallback if isinstance(fallback, str) else "".join(fallback)
    before, behind = around(page_card.live(kept) if kept["view"] == "card" else kept)
    return before + fallback + behind


def around(kept: dict[str, Any]) -> tuple[str, str]:
    """The HTML of a view before and behind what is there without scripts."""
    text = json.dumps(kept, separators=(",", ":")).replace("<", "\\u003c")
    return ('<div class="mlc-place" data-mlc-kept>'
            f'<script type="application/json">{text}</script><div>', "</div></div>")


def shown(view: Any) -> str:
    """A view as HTML for a page."""
    found = view._repr_mimebundle_()
    data = found[0] if isinstance(found, tuple) else found
    return place(data) or ""


# ---------------------------------------------------------------------------------- lessons


def state_of_package() -> str:
    """A digest of all that a lesson's outputs depend on, but for the lesson."""
    digest = hashlib.sha256()
    for folder in ("mlc_lab", "widgets"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".js", ".css") and "__pycache__" not in path.parts:
                digest.update(path.read_bytes())
    return digest.hexdigest()


def run_lesson(path: Path, cache: Path, state: str, language: str) -> nbformat.NotebookNode:
    """The notebook with its outputs. A cell that fails stops the build."""
    from nbclient import NotebookClient

    key = hashlib.sha256(path.read_bytes() + f"{state}{language}".encode()).hexdigest()[:24]
    kept = cache / f"{path.stem}-{language}-{key}.ipynb"
    if not kept.exists():
        print(f"running {path.name} in {language}", flush=True)
        notebook = nbformat.read(path, as_version=4)
        # a home of its own: cards show no answers of whoever builds the site
        with tempfile.TemporaryDirectory() as home:
            NotebookClient(notebook, timeout=900, kernel_name="python3",
                           resources={"metadata": {"path": str(path.parent)}}).execute(
                env={**os.environ, VARIABLE: language, "MLC_LAB_HOME": home})
        cache.mkdir(parents=True, exist_ok=True)
        for old in cache.glob(f"{path.stem}-{language}-*.ipynb"):
            old.unlink()
        nbformat.write(notebook, kept)
    return nbformat.read(kept, as_version=4)


def printed(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Outputs with what was printed as a terminal shows it in the end: of a line that was written
    over again and again (progress) the last state, and nothing of one that was wiped."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == "stream" == last.output_type and last.name == output.name:
            last["text"] += output.text
        else:
            joined.append(output)
    for output in joined:
        if output.output_type == "stream":
            lines = []
            for line in output.text.split("\n"):
                seen = ""
                for part in line.split("\r"):
                    seen = part + seen[len(part):]
                lines.append(seen.rstrip() if "\r" in line else line)
            output["text"] = "\n".join(lines)
    return [out for out in joined if out.output_type != "stream" or out.text.strip()]


def with_places(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Outputs that are views become places that the site's script fills."""
    notebook.metadata.pop("widgets", None)  # for hosts with a kernel
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        kept = []
        for output in printed(cell.outputs):
            html = place(output.get("data", {}))
            if html == "":
                continue
            if html is not None:
                output["data"] = {"text/html": html}
            elif "text/html" in output.get("data", {}):
                html = output["data"]["text/html"]
                html = re.sub(r'style="color:#(\w{6})"', r'class="tone-\1"', html)
                html = re.sub(r'href="([\w/]+)\.ipynb"', r'href="\1.html"', html)
                output["data"]["text/html"] = html
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
            said = output.get("metadata", {}).get("image/png", {}).get("alt")
            if said:  # myst-nb looks for it at the cell
                cell.metadata["mystnb"] = {"image": {"alt": said}}
            kept.append(output)
        cell.outputs = kept
    return notebook


def lessons(source: Path, cache: Path, only: list[str] | None, language: str = "en") -> None:
    """All lessons in a language, those of `only` (or all) with outputs."""
    (source / "notebooks").mkdir()
    state = state_of_package()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        runs = only is None or path.stem[:2] in only
        with reading(language):
            notebook = (with_places(run_lesson(path, cache, state, language)) if runs
                        else nbformat.read(path, as_version=4))
        notebook = nbformat.from_dict(in_language(notebook, path.stem, language))
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                text = ITS_PAGE.sub("", cell.source)
                cell.source = outward(text, "notebooks", inside_of=language)
        nbformat.write(notebook, source / "notebooks" / path.name)


# -------------------------------------------------------------------------------- documents


def outward(text: str, folder: str, inside_of: str = "en") -> str:
    """Relative links to files that the site does not have lead to the repository; those of another
    language to what is there in English only. Numbers of a view that stands nearby, which in a
    notebook are links, are marked for its script."""

    def link(found: re.Match) -> str:
        words, target = found.group(1), found.group(2)
        path, mark, anchor = target.partition("#")
        if target.startswith("#live:"):
            name = escape(unquote(anchor.removeprefix("live:")))
            return f'<span class="mlc-prose"><a data-live="{name}">{words}</a></span>'
        if "://" in target or target.startswith(("#", "mailto:")) or not path:
            return found.group(0)
        absolute = (ROOT / folder / path).resolve()
        inside = absolute.relative_to(ROOT).as_posix() if absolute.is_relative_to(ROOT) else path
        if inside.endswith(".ipynb"):
            return found.group(0)
        if re.match(r"docs/[\w/]+\.(md|png|svg)$|(CONTRIBUTING|CHANGELOG)\.md$", inside):
            if inside_of == "en":
                return found.group(0)
            page = re.sub(r"\.md$", ".html", inside)
            return f'<a href="../../{page}{mark}{anchor}">{words}</a>'
        return f"[{words}]({REPOSITORY}/{inside}{mark}{anchor})"

    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", link, text)


def documents(source: Path) -> None:
    """docs/, and the two files of the repository that readers look for."""
    shutil.copytree(ROOT / "docs", source / "docs", ignore=shutil.ignore_patterns("*.py"))
    for path in (source / "docs").rglob("*.md"):
        folder = (ROOT / "docs" / path.relative_to(source / "docs")).parent
        path.write_text(outward(path.read_text(encoding="utf-8"),
                                folder.relative_to(ROOT).as_posix()), encoding="utf-8")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        (source / name).write_text(outward(text, ""), encoding="utf-8")
    shutil.copy(HERE / "index.md", source / "index.md")


# ------------------------------------------------------------------------------- to look up


def primitives(source: Path) -> None:
    """A page for each primitive: what it does, and its example as a stepper."""
    import mlc_lab.schedule.primitive  # noqa: F401
    from mlc_lab.schedule import InstructionKind, Schedule
    from schedule.docstring_examples import as_function, example, names_for

    folder = source / "primitives"
    folder.mkdir()
    rows = []
    for kind in sorted(InstructionKind.registry.values(), key=lambda k: k.method):
        view = ""
        if example(kind):
            before, call, where, _ = example(kind)
            sch = Schedule(as_function(before)[0])
            eval(call, {"sch": sch, **names_for(sch, where)})  # the project's own docstring
            view = f"## Step through it\n\n```{{raw}} html\n{shown(sch.explore(False))}\n```\n"
        given = list(inspect.signature(kind.fn).parameters.values())[1:]
        words = ", ".join(str(p.replace(annotation=p.empty)) for p in given).replace("'", '"')
        text = inspect.cleandoc(kind.doc)
        (folder / f"{kind.method}.md").write_text(
            f"# {kind.method}\n\n```python\nsch.{kind.method}({words})\n```\n\n"
            f"```{{eval-rst}}\n{text}\n```\n\n{view}", encoding="utf-8")
        rows.append(f"| [{kind.method}]({kind.method}.md) | {kind.meaning} |")
    names = "\n".join(sorted(k.method for k in InstructionKind.registry.values()))
    (folder / "index.md").write_text(
        "# Schedule primitives\n\n| primitive | what it does |\n|---|---|\n" + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n", encoding="utf-8")


def gallery(source: Path, counts: str | bool) -> None:
    """The ready-made schedules, each as a stepper with the Python that its trace gives; `counts`
    says of which caches the misses are counted."""
    from mlc_lab.observe.live_pages import PAGES

    folder = source / "gallery"
    folder.mkdir()
    names = []
    for name, page in PAGES.items():
        file = name.replace(" ", "_")
        made = page.make()
        sch = next(iter(made.values())) if isinstance(made, dict) else made
        view = shown(sch.explore(False, counts=counts, progress=False))
        trace = "\n".join(sch.trace.as_python())
        about = inspect.cleandoc(page.make.__doc__ or "")
        (folder / f"{file}.md").write_text(
            f"# {name.capitalize()}\n\n{about}\n\n```{{raw}} html\n{view}\n```\n\n"
            f"## Its trace\n\n```python\n{trace}\n```\n\n"
            f"With its numbers as sliders: `mlc_lab.explore_live(\"{name}\")`.\n", encoding="utf-8")
        names.append(file)
    (folder / "index.md").write_text(
        "# Gallery of schedules\n\nWell-known programs, step by step.\n\n```{toctree}\n"
        + "\n".join(names) + "\n```\n", encoding="utf-8")


@contextlib.contextmanager
def reading(language: str):
    """The language in which texts are read."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = language
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


#: what stands above all exercises, and under the title of each
EXERCISES = {
    "en": ("# Exercises\n\nEach is checked on the spot in its lesson, in a notebook with "
           "`exercise(\"03.2\")`, or in a terminal with `mlc-lab exercise 03.2`.\n",
           "*Lesson {lesson}, level {level}.*"),
    "zh": ("# 练习\n\n每道练习都可以当场检查：在对应的课里，在 notebook 里用 "
           "`exercise(\"03.2\")`，或者在终端里用 `mlc-lab exercise 03.2`。\n",
           "*第 {lesson} 课，难度 {level}。*"),
}  # fmt: skip


def exercise_page(source: Path, language: str = "en") -> None:
    """The cards of all exercises; without scripts their statements."""
    from mlc_lab import exercises
    from mlc_lab_widgets import page_card

    head, place_of = EXERCISES[language]
    parts = [head]
    with reading(language):
        for one in exercises.catalogue():
            first = one.variant(0)
            before, behind = around(page_card.recorded(first))
            parts.append(f"## {one.id} {first.title}\n\n"
                         f"{place_of.format(lesson=one.lesson, level=one.level)}\n\n"
                         f"```{{raw}} html\n{before}\n```\n\n{first.statement}\n\n"
                         f"```{{raw}} html\n{behind}\n```\n")
    (source / "exercises.md").write_text("\n".join(parts), encoding="utf-8")


def api(source: Path) -> None:
    """A page for each package: the functions and classes that it defines and that people import."""
    from mlc_lab.ir import Node

    folder = source / "api"
    folder.mkdir()
    of_all_nodes = ", ".join([*(n for n in vars(Node) if not n.startswith("_")), "child_names"])
    rows = []
    for module, title in API.items():
        found = importlib.import_module(module)
        parts = []
        for name in sorted({*getattr(found, "__all__", ()), *dir(found)}):
            thing = None if name.startswith("_") else getattr(found, name, None)
            if not (inspect.isclass(thing) or inspect.isfunction(thing)) or module != max(
                    (m for m in API if f"{thing.__module__}.".startswith(f"{m}.")),
                    key=len, default=""):
                continue
            if inspect.isclass(thing):
                some = issubclass(thing, Node) and thing is not Node
                parts.append(f".. autoclass:: {module}.{name}\n   :members:\n"
                             + f"   :exclude-members: {of_all_nodes}\n" * some)
            else:
                parts.append(f".. autofunction:: {module}.{name}\n")
        about = inspect.cleandoc(found.__doc__ or "")  # blocks of code as in Markdown
        first = about.splitlines()[0].partition(" Its whole grammar")[0]
        rows.append(f"| [{title}]({module}.md) | `{module}` | {first} |")
        (folder / f"{module}.md").write_text(
            f"# {title}\n\n`{module}`: {about}\n\n"
            "```{eval-rst}\n" + "\n".join(parts) + "\n```\n", encoding="utf-8")
    (folder / "index.md").write_text(
        "# API\n\nEvery node has what [`Node`](mlc_lab.ir.md) has; its own entry says what it has "
        "besides.\n\n| page | package | what it is |\n|---|---|---|\n" + "\n".join(rows)
        + "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(API) + "\n```\n", encoding="utf-8")


# ------------------------------------------------------------------------------------- all


def statics(source: Path) -> None:
    """The views' scripts and style sheets, as the site's script asks for them."""
    folder = source / "_static" / "views"
    folder.mkdir(parents=True)
    for path in (ROOT / "widgets" / "bundles").glob("*.js"):
        shutil.copy(path, folder)
    for path in (ROOT / "widgets" / "js").glob("*.css"):
        shutil.copy(path, folder)
    shutil.copy(HERE / "site.css", source / "_static")
    shutil.copy(HERE / "conf.py", source / "conf.py")


#: what the theme leaves out, for those who use a keyboard or a screen reader
MENDED = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',
    '<pre style="': '<pre tabindex="0" style="',
}


#: what the theme says in English only, in each other language
THEME = {"zh": {
    "Back to top": "回到顶部", "Skip to content": "跳到正文", "Light mode": "浅色模式",
    "Dark mode": "深色模式", "Auto light/dark, in light mode": "自动，当前为浅色",
    "Auto light/dark, in dark mode": "自动，当前为深色", "Menu": "菜单", "Expand": "展开",
    "Next": "下一页", "Previous": "上一页", "On this page": "本页内容", "Made with ": "制作工具：",
    "Toggle Light / Dark / Auto color theme": "切换浅色、深色或自动配色",
    "Toggle site navigation sidebar": "打开或关闭站点导航",
    "Toggle table of contents sidebar": "打开或关闭本页目录",
}}  # fmt: skip


def mended(html: Path) -> None:
    """Give each page what it lacks: levels of headings, programs that a keyboard can scroll, and
    the words of the theme in the page's language."""
    for path in html.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for old, new in MENDED.items():
            text = text.replace(old, new)
        for old, new in THEME.get(path.relative_to(html).parts[0], {}).items():
            text = re.sub(rf'(>\s*|aria-label="|title="){re.escape(old)}(?=\s*[<"])',
                          lambda found, new=new: found.group(1) + new, text)
        path.write_text(text, encoding="utf-8")


def language_links(html: Path) -> None:
    """Each page names its other languages, at its head."""
    for path in html.rglob("*.html"):
        parts = path.relative_to(html).parts
        own = parts[0] if parts[0] in LOCALES else "en"
        page = Path(*parts[own != "en" :])
        made = []
        for language, name in LANGUAGES.items():
            other = html / page if language == "en" else html / language / page
            if language != own and other.exists():
                target = Path(os.path.relpath(other, path.parent)).as_posix()
                made.append(f'<a class="language" lang="{language}" hreflang="{language}" '
                            f'href="{target}">{name}</a>')
        text = path.read_text(encoding="utf-8")
        head = '<div class="content-icon-container">'
        path.write_text(text.replace(head, head + "".join(made), 1), encoding="utf-8")


def sphinx(source: Path, html: Path, quiet: bool, *options: str) -> int:
    """Make pages of the sources."""
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-j", "auto", *options,
               *(["-q"] if quiet else []), str(source), str(html)]  # fmt: skip
    return subprocess.call(command, cwd=ROOT)


def main() -> int:
    """Build, and follow the links."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lessons", nargs="*", metavar="NN", help="run only these lessons")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--quiet", action="store_true", help="print warnings and errors only")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    source, html = args.output / "source", args.output / "html"
    for folder in (source, html):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    for part in (statics, documents, primitives, exercise_page, api):
        part(source)
    gallery(source, CACHES if args.lessons is None else False)
    lessons(source, args.output / "lessons", args.lessons)
    failed = sphinx(source, html, args.quiet)
    for language, locale in LOCALES.items():
        if not failed:
            translated = source / language
            translated.mkdir()
            statics(translated)
            shutil.copy(HERE / f"index.{language}.md", translated / "index.md")
            exercise_page(translated, language)
            lessons(translated, args.output / "lessons", args.lessons, language)
            failed = sphinx(translated, html / language, args.quiet, "-D", f"language={locale}")
    if failed:
        return failed
    mended(html)
    language_links(html)
    (html / "404.html").write_text(not_found.page(), encoding="utf-8")
    wrong = links.check(html)
    for line in wrong:
        print(line)
    print(f"{html / 'index.html'}: {sum(1 for _ in html.rglob('*.html'))} pages"
          + (f", {len(wrong)} links lead nowhere" if wrong else ", all links lead somewhere"))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
