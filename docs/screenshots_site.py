"""Makes the picture of the site in docs/images: lessons in both languages, light and dark, on a
desktop's and a phone's width.

    python dev.py site
    python docs/screenshots_site.py

Needs the `test` extra and a Chromium.
"""

import base64
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from browser import FLAGS, chromium_path  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

SITE = ROOT / "build" / "site" / "html"
HEIGHT = 760
#: page, which of its views is shown, theme, width
SHOWN = [("notebooks/05_memory_and_caches.html", 4, "light", 1280),
         ("zh/notebooks/13_threads_and_blocks.html", 0, "dark", 1280),
         ("notebooks/05_memory_and_caches.html", 0, "dark", 360),
         ("zh/notebooks/03_schedule_primitives.html", 0, "light", 360)]


def shot(browser, page, view, scheme, width):
    """A page with one of its views in the middle, as PNG."""
    context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto((SITE / page).as_uri())
    place = tab.query_selector_all("[data-mlc-kept]")[view]
    place.scroll_into_view_if_needed()
    place.wait_for_selector(".mlc")
    tab.wait_for_timeout(1000)
    place.evaluate("e => scrollTo(0, e.getBoundingClientRect().top + scrollY - 200)")
    tab.wait_for_timeout(500)
    made = tab.screenshot()
    context.close()
    return made


def main():
    """Take the four, and a picture of them together."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        made = [base64.b64encode(shot(browser, *row)).decode() for row in SHOWN]
        pictures = "".join(f'<img src="data:image/png;base64,{data}">' for data in made)
        page = browser.new_page(viewport={"width": 1640, "height": HEIGHT // 2})
        page.set_content("<style>body {margin: 0; display: flex; gap: 8px; background: #888; "
                         f"width: max-content}} img {{height: {HEIGHT // 2}px}}</style>{pictures}")
        page.locator("body").screenshot(path=ROOT / "docs" / "images" / "site.png")
        browser.close()


if __name__ == "__main__":
    main()
