"""No view has English sentences in Chinese: what it shows and says is looked through for them.

Three words of English beside each other are a sentence, unless they are code, an error (which stays
English, see CONTRIBUTING.md), or what the program of the test is called.
"""

import test_axe
from browser import open_page

import pytest

from mlc_lab import language

pytest.importorskip("anywidget")
pytestmark = pytest.mark.browser

#: code, what was typed, errors and what programs print
CODE = ("code, pre, textarea, script, style, noscript, .editor, .code, .bytecode, .program, .asm, "
        ".statement, .marks small, .groups small, .answer small, .answer li small, .fact.bad, "
        ".tree-box title")
#: attributes that are read aloud or shown
SAID = ["aria-label", "aria-valuetext", "aria-description", "aria-roledescription", "title", "alt"]
FIND = """([code, attributes]) => {
  const words = /[A-Za-z][a-z'’-]*[,;:.]?(?: [A-Za-z][a-z'’-]*[,;:.]?){2,}/;
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (words.test(node.data) && !node.parentElement.closest(code)) found.push(node.data.trim());
  }
  for (const element of document.querySelectorAll("*"))
    for (const name of attributes) {
      const said = element.getAttribute(name) ?? "";
      if (words.test(said) && !element.closest(code)) found.push(`${name}: ${said}`);
    }
  return found;
}"""
#: names that are not the view's: of the tests' programs, their errors, and of caches as they print
NAMES = ("fully associative", "-way, lru", "did not end within 10 s", "not possible: main_kernel",
         "不可行：main_kernel", "MutateTileSize", "decompose_reduction C, p")


def stepper():
    from observe.schedules import schedule

    import mlc_lab_widgets
    from mlc_lab.observe.session import record

    return mlc_lab_widgets.Stepper(record(schedule()).recording)


VIEWS = [stepper, *(view for view in test_axe.VIEWS if view.__name__ != "stepper")]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_a_view_in_chinese_has_no_english_sentence(chromium, view, tmp_path, monkeypatch):
    monkeypatch.setenv(language.VARIABLE, "zh")
    monkeypatch.setenv("MLC_LAB_HOME", str(tmp_path))
    path = tmp_path / "page.html"
    shown = view()
    shown.html(path)
    if hasattr(shown, "close"):
        shown.close()
    found = set()
    with open_page(chromium, width=1200) as page:

        def look():
            page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
            page.wait_for_timeout(100)
            found.update(page.evaluate(FIND, [CODE, SAID]))

        page.goto(path.as_uri())
        page.locator(".mlc").first.wait_for()
        look()
        for tab in page.get_by_role("tab").all():
            if tab.is_visible():
                tab.click()
                look()
        for slider in page.get_by_role("slider").all():
            if slider.is_visible():
                slider.press("End")
                look()
    assert sorted(text for text in found if not any(name in text for name in NAMES)) == []
