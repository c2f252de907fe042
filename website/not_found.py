"""The page for an address at which there is nothing, in each language: 404.html of the site's root.

It is shown at any depth, so its links start from where the site is published, and it needs no other
file: not the theme, which would be looked for beside the address that is wrong.
"""

from __future__ import annotations

from html import escape

#: where the site is published, on its host; notebooks lead to their pages there
PLACE = "/mlc-lab/"
#: by language: its code, the heading, what happened, and the pages from which one may go on
TOLD = (
    ("en", "No such page", "There is no page at this address. It may have been renamed.",
     (("index.html", "All lessons"), ("search.html", "Search"), ("gallery/index.html", "Gallery"))),
    ("zh-CN", "没有这个页面", "这个地址没有页面，它可能已经改名。",
     (("zh/index.html", "全部课程"), ("zh/search.html", "搜索"))),
)
_STYLE = """\
:root { color-scheme: light dark; }
body { font: 1.1rem/1.6 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1rem;
  color: #1b1f24; background: #fff; }
a { color: #0a58ca; display: inline-block; padding: 0.25rem 0; margin-right: 1.5rem; }
a:focus-visible { outline: 3px solid currentColor; outline-offset: 2px; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #131416; }
  a { color: #7cb7ff; } }"""


def page() -> str:
    """The page."""
    parts = []
    for number, (language, head, words, links) in enumerate(TOLD):
        level = "h2" if number else "h1"
        ways = "\n".join(f'<a href="{to}">{escape(name)}</a>' for to, name in links)
        parts.append(f'<section lang="{language}">\n<{level}>{escape(head)}</{level}>\n'
                     f"<p>{escape(words)}</p>\n<p>{ways}</p>\n</section>")
    titles = " · ".join(head for _, head, _, _ in TOLD)
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<title>{titles} - MLC Lab</title>\n<base href="{PLACE}">\n<style>\n{_STYLE}\n</style>'
            f"\n</head>\n<body>\n<main>\n" + "\n".join(parts) + "\n</main>\n</body>\n</html>\n")
