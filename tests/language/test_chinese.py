"""Chinese as an editor would have it: punctuation, spaces, nothing left in English, one word for
one term, which is that of docs/glossary.md."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = runpy.run_path(str(ROOT / "translations" / "build.py"))
TEXTS = [(path.stem, str(m.id), str(m.string))
         for path in sorted((ROOT / "translations" / "zh").glob("*.po"))
         for m in BUILD["read"]("zh", path.stem) if m.id and m.string and not m.fuzzy]
HAN = "\u3400-\u9fff"
FORMS = {
    "half-width punctuation behind Chinese": rf"[{HAN}][,;:!?]|[{HAN}]\.(?!\.)(?=\s|$)",
    "half-width brackets around Chinese": rf"(?<!\w)\([^()]*[{HAN}][^()]*\)",
    "half-width quotes around Chinese": rf'(?<![\w=])"[^",。，]*[{HAN}][^",。，]*"',
    "no space between Chinese and Latin": rf"[{HAN}][A-Za-z0-9`]|[A-Za-z0-9`%][{HAN}]",
    "a space beside full-width punctuation": r"\S [，。；：、？！）]|[，。；：、？！（] (?=\S)",
    "a line that ends within a sentence, which is read as a space":
        rf"[{HAN}，；：、]\n(?=[{HAN}（“])",
    "a word twice": "的的|了了|，，|。。|是是|在在",
    "English": r"[A-Za-z][a-z]+(?: [A-Za-z][a-z'-]*,?){3,}\b(?! \d| [A-Za-z])",
}
#: words of everyday English as well as terms; what they mean is for the translator to see
EVERYDAY = {"split, tiling", "fuse (loops)", "parallel", "unroll", "vectorize", "bind", "trace",
            "decision", "miss", "hit", "peak", "chain", "packing", "profile", "stage", "task",
            "trial", "race", "guard", "mutator", "primitive", "lane", "init", "pass", "block",
            "instruction", "kernel", "schedule", "binding", "region", "domain", "features",
            "reorder", "barrier", "grid, thread block", "refusal", "locality", "sector",
            "throughput", "workbench",
            # of a GPU, or what cores share
            "shared memory",
            "spill", "roofline", "prefetch", "tracing", "token", "stepper", "warp", "occupancy"}


#: where a value or a title stands: a letter of no language
PLACE = "\ue000"


def prose(text):
    """A text without code, formulas, addresses, places for values, and titles of papers."""
    text = re.sub(r"```.*?```|\$[^$]*\$|\]\([^)\s]*\)|<[^>]+>", "", text, flags=re.S)
    text = re.sub(r"(?<!\*)\*(?=\w)[^*\u3400-\u9fff]+(?<=\S)\*(?!\*)", PLACE, text)
    return re.sub(r"\{\w+\}", PLACE, re.sub(r"`[^`\n]+`", "`c`", text))


@pytest.mark.parametrize("form", FORMS)
def test_chinese_is_written_as_chinese(form):
    found = []
    for domain, _, said in TEXTS:
        if domain == "rules" or not re.search(f"[{HAN}]", said):
            continue  # rules show T.f(条件, 值) as code
        text = prose(said)
        found += [f"{domain}: …{text[max(0, m.start() - 20):m.end() + 20]!r}"
                  for m in re.finditer(FORMS[form], text)]
    assert found == []


def terms():
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and re.search(f"[{HAN}]", cells[1]):
            if cells[0] not in EVERYDAY | {"term"}:
                yield cells[0], re.split("[、（）]", cells[1])


@pytest.mark.parametrize("term, words", list(terms()),
                         ids=lambda x: x if isinstance(x, str) else "")
def test_a_term_has_its_word(term, words):
    names = [re.escape(name) for name in re.sub(r" *\(.*?\)", "", term).split(", ")]
    pattern = re.compile(rf"\b(?:{'|'.join(names)})s?\b", re.I)
    found = [f"{domain}: {message[:80]!r}: {said[:80]!r}" for domain, message, said in TEXTS
             if domain != "rules" and pattern.search(prose(message))
             and not any(word and word in said for word in words)]
    assert found == []
