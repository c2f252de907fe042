"""Sphinx's settings for the site; `python dev.py site` builds it (see build.py)."""

import re
from importlib import metadata

from sphinx.search.zh import SearchChinese

project = "MLC Lab"
author = "the authors of MLC Lab"
release = metadata.version("mlc-lab")
extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["**.ipynb_checkpoints", "zh"]

# notebooks come with their outputs: build.py runs them
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

default_role = "code"  # docstrings mark code by one `
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# the pages of the API name modules as people import them
add_module_names = False
suppress_warnings = ["docutils", "ref", "myst.header", "mystnb.unknown_mime_type"]

html_theme = "furo"
html_title = "MLC Lab"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# the views' scripts stand in a folder of their own, beside their style sheets
html_js_files = [("views/site.js", {"defer": "defer"})]
html_copy_source = False
html_show_search_summary = False  # it fetches each page found, which a page on a disk may not
html_show_sphinx = False
html_show_copyright = False  # the licence says it


class ByTwoCharacters(SearchChinese):
    """Chinese is searched by each two characters that stand together: so no dictionary of words is
    needed, and what is typed need not be a word."""

    language_name = "English"  # of the stemmer, by which the page calls it
    pattern = re.compile("[\u4e00-\u9fff]+")

    def split(self, input):
        """The pairs of Chinese characters, and the words of other letters."""
        latin = self.latin1_letters.findall(input)
        self.latin_terms.update(latin)
        runs = self.pattern.findall(input)
        return [run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))] + latin

    js_splitter_code = """
var splitQuery = (query) => [
  ...query.split(/[^\\w]+/).filter((word) => word),
  ...(query.match(/[\\u4e00-\\u9fff]+/g) || []).flatMap((run) =>
    run.length < 2 ? [run] : [...run.slice(1)].map((_, i) => run.slice(i, i + 2))),
];
"""


def setup(app):
    """Search in Chinese; stars in docstrings are those of `*args`, not emphasis."""
    app.add_search_language(ByTwoCharacters)

    def stars(app, what, name, obj, options, lines):
        lines[:] = [re.sub(r"(?<![\\*\w])\*{1,2}(?=\w)", lambda m: m.group().replace("*", r"\*"), x)
                    for x in lines]

    app.connect("autodoc-process-docstring", stars)
