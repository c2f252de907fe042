"""A page with a view and Python behind it, without a notebook around."""

import json

from mlc_lab_widgets import bundle
from mlc_lab_widgets.export import embed

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A view</title>
<link rel="icon" href="data:,"><style>
body {{ margin: 8px; background: Canvas; color-scheme: light dark }} {style}</style></head>
<body><main><button id="before">before</button><div id="view"></div></main>
<script type="module">
{script}
class Model extends mlcPage.PageModel {{
  changed = {{}};
  set(name, value) {{ this.changed[name] = value; super.set(name, value); }}
  async save_changes() {{
    const changed = this.changed;
    this.changed = {{}};
    const found = await window.sync(JSON.stringify(changed)); // texts are passed on quickest
    for (const [name, value] of Object.entries(JSON.parse(found))) super.set(name, value);
  }}
}}
const model = new Model({values});
mlcView.default.render({{ model, el: document.getElementById("view") }});
setInterval(() => model.save_changes(), 30);
</script></body></html>"""


def serve(page, view, path, ready=".mlc.typed .lines > div"):
    """Show a view in a page; what is done there comes to it, and what it finds goes there."""
    names = [n for n in view.trait_names(sync=True) if not n.startswith("_")]
    sent = {}

    def news():
        found = {}
        for name in names:
            value = json.dumps(getattr(view, name))
            if sent.get(name) != value:
                found[name] = sent[name] = value
        return "{" + ", ".join(f'"{name}": {value}' for name, value in found.items()) + "}"

    def sync(changed):
        for name, value in json.loads(changed).items():
            if name in names:
                sent[name] = json.dumps(value)
                setattr(view, name, value)
        return news()

    page.expose_function("sync", sync)
    script = bundle.script(view._entry) + bundle.script("page.js")
    names = [n for n in names if n not in ("layout", "tabbable", "tooltip")]
    text = PAGE.format(style=bundle.style(*view._styles), script=script,
                       values=embed(json.loads(news())))
    path.write_text(text, encoding="utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector(ready)
