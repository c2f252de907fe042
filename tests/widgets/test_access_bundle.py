"""The script of the access view: one module that asks for nothing."""

import re

from mlc_lab_widgets import bundle
from mlc_lab_widgets.access_page import ENTRY, STYLES


def test_top_level_names_are_distinct_across_its_modules():
    seen = {}
    for name in bundle.modules(ENTRY):
        text = (bundle.FOLDER / name).read_text(encoding="utf-8")
        pattern = r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)"
        for found in re.findall(pattern, text, re.M):
            assert found not in seen, f"{found} is in {seen.get(found)} and in {name}"
            seen[found] = name


def test_it_is_one_module_without_imports_and_addresses():
    text = bundle.script(ENTRY) + "".join(bundle.style(name) for name in STYLES)
    assert "import {" not in text and "import(" not in text and "@import" not in text
    assert text.count("export default { render }") == 1
    assert "http://" not in text and "https://" not in text
    assert len(bundle.script(ENTRY)) < 50_000
