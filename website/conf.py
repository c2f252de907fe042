"""Sphinx's settings for the site; `python dev.py site` builds it (see build.py)."""

import re
from importlib import metadata

project = "MLC Lab"
author = "the authors of MLC Lab"
release = metadata.version("mlc-lab")
extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["**.ipynb_checkpoints"]

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
html_show_sphinx = False


def setup(app):
    """Stars in docstrings are those of `*args`, not emphasis."""
    def stars(app, what, name, obj, options, lines):
        lines[:] = [re.sub(r"(?<![\\*\w])\*{1,2}(?=\w)", lambda m: m.group().replace("*", r"\*"), x)
                    for x in lines]

    app.connect("autodoc-process-docstring", stars)
