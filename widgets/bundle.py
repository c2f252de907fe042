"""The scripts and styles of the views, as the hosts take them.

The files in `js/` are ECMAScript modules. `npm run build` joins those of each view into one script
in `bundles/` (see `build.mjs`), which is committed: using the views needs no node. The script makes
a variable `mlcView` with the exports of the view's file; a notebook widget gets it as a module,
together with `kernel.js`, a page has it inside (a notebook stores the text once for every view).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mlc_lab.language import chosen, texts

HERE = Path(__file__).resolve().parent


@lru_cache(maxsize=None)
def script(entry: str) -> str:
    """The bundled script of a view, or of `page.js`: it makes a variable and exports nothing."""
    return (HERE / "bundles" / entry).read_text(encoding="utf-8")


def module(entry: str, alone: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The bundle of a view as a module with a default export, as anywidget wants it.

    `alone` are the values of traits that the view has once its kernel has gone.
    """
    values = json.dumps(dict(alone))
    return (script(entry) + script("kernel.js")
            + f"export default mlcKernel.followed(mlcView.default, {values});\n")  # fmt: skip


def words(entry: str) -> dict[str, str]:
    """The texts of a view's script in the chosen language, by the English ones, and the language's
    name under ""; nothing in English. `t` of `js/words.js` looks them up."""
    language = chosen()
    return {} if language == "en" else dict(_words(entry, language))


@lru_cache(maxsize=None)
def _words(entry: str, language: str) -> dict[str, str]:
    # only what stands in it: a notebook keeps the words of each view
    made = script(entry) + script("kernel.js")
    found = {text: said for text, said in texts("views", language).items() if text in made}
    return {"": language, **found}


@lru_cache(maxsize=None)
def style(*names: str) -> str:
    """Text of some style sheets."""
    return "\n".join((HERE / "js" / name).read_text(encoding="utf-8") for name in names)
