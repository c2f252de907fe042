"""Follows the links of the site's pages: each leads to a page or a place that is there, and no page
asks another host for anything."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: what a page loads by itself; a link that a reader clicks may lead anywhere
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"),
          ("object", "data"), ("embed", "src")}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, bool]] = []  # where to, and whether the page loads it
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name in ("id", "name"):
            self.places.add(given.get(name) or "")
        if tag == "a" and given.get("href"):
            self.links.append((given["href"] or "", False))
        if tag == "link" and given.get("rel") not in ("canonical", "author"):
            self.links.append((given.get("href") or "", True))
        for name, value in given.items():
            if (tag, name) in LOADED:
                self.links.append((value or "", True))


def check(folder: Path) -> list[str]:
    """What is wrong, a line each: `page: what`."""
    pages: dict[Path, _Page] = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    wrong = []
    for path, page in pages.items():
        for target, loaded in page.links:
            parts = urlsplit(target)
            here = path.relative_to(folder)
            if parts.scheme or parts.netloc:
                if loaded and parts.scheme != "data":
                    wrong.append(f"{here}: loads {target} from another host")
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if to.is_dir():
                to /= "index.html"
            if not to.exists():
                wrong.append(f"{here}: {target} is not there")
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].places:
                wrong.append(f"{here}: {target} names a place that is not there")
    return wrong
