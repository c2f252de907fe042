"""Kernels that run on the GPU of the reader's browser: a widget, and an HTML page.

>>> view = mlc_lab.in_browser(tiled, naive).show()    # doctest: +SKIP
>>> view.on_runs(print)                               # called when something was measured
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from . import export, picture
from .static import pre
from .view import View, traitlets

ENTRY = "webgpu.js"
STYLES = ("stepper.css", "webgpu.css")


class WebGPUView(View):
    """Shows kernels beside each other and runs them in the browser, which needs no Python.

    Traits
    ------
    kernels      what can be run, as plain data (see `mlc_lab/observe/gpu/browser.py`).
    left, right  numbers of the variants that are shown.
    runs         what was measured: {"variant", "device", "seconds", "clock", "fault", "error",
                 "failure"} of each variant that was run; `fault` is what is wrong with the result,
                 `failure` why there is none.
    """

    _entry, _styles = ENTRY, STYLES

    kernels = traitlets.Dict().tag(sync=True)
    left = traitlets.Int(0).tag(sync=True)
    right = traitlets.Int(0).tag(sync=True)
    runs = traitlets.List().tag(sync=True)

    def __init__(self, kernels: Any, **traits: Any) -> None:
        """`kernels` is an `mlc_lab.observe.gpu.browser.BrowserKernels`."""
        self.source = kernels
        super().__init__(**{**_values(kernels), **traits})

    @traitlets.validate("left", "right")
    def _existing(self, proposal: Any) -> int:
        return max(0, min(len(self.source.data["variants"]) - 1, proposal["value"]))

    def on_runs(self, callback: Callable[[list[Any]], None]) -> Callable[[], None]:
        """Call `callback(runs)` when a variant was run. Calling the result stops it."""
        return self._on("runs", callback)

    def html(self, path: Any = None) -> str:
        """The same view as one HTML page with no kernel; written to `path` if given."""
        return self.source.html(path)

    def _static(self) -> tuple[str, str]:
        return str(self.source), static(self.source)

    def _pictures(self) -> list[str]:
        rows = [(_name(v), v["seconds"] * 1e9, f"{v['seconds'] * 1e6:.3g} us by the model")
                for v in self.source.data["variants"] if v["seconds"]]  # fmt: skip
        return [picture.bars(f"{self.source.data['title']}: time of a model", rows)] if rows else []


def _values(kernels: Any) -> dict[str, Any]:
    """The values of the traits at first: the first two variants that can be run."""
    variants = kernels.data["variants"]
    possible = [n for n, v in enumerate(variants) if not v["error"]] or [0]
    return {"kernels": kernels.data, "left": possible[0], "right": possible[:2][-1], "runs": []}


def _name(variant: Any) -> str:
    return ", ".join([variant["name"], *(f"{k} {v}" for k, v in variant["picked"].items())])


def page(kernels: Any) -> str:
    """The view as one HTML page that needs no kernel and no network."""
    view = {**_values(kernels), "wrap": False, "titled": True}, static(kernels)
    return export.write([view], kernels.data["title"], ENTRY, STYLES)


def static(kernels: Any) -> str:
    """What was counted, and the sources, as HTML without scripts."""
    parts = [f"<p><b>{escape(kernels.data['title'])}</b>. A browser with WebGPU runs these kernels "
             "on its own GPU, where scripts are allowed. The simulated device counts:</p>"]
    for variant in kernels.data["variants"]:
        rows = [f"{name:26}{text}" for name, text in variant["counts"]]
        if variant["seconds"] is not None:
            rows.append(f"{'time of a model':26}{variant['seconds'] * 1e6:.3g} us on "
                        f"{kernels.data['gpu']}")
        rows += [text for text in (variant["error"], variant["note"]) if text]
        rows += ["", *(k["text"].strip() for k in variant["kernels"])]
        body = pre("\n".join(rows))
        parts.append(f"<details><summary>{escape(_name(variant))}</summary>{body}</details>")
    return f"<div>{''.join(parts)}</div>"
