"""The threads of a block and the memory they use: a widget, and an HTML page.

>>> view = mlc_lab.record_threads(sch).show()    # doctest: +SKIP
>>> view.event = 12                              # go to a memory instruction
>>> view.on_event(print)                         # called when the reader goes to another one
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlc_lab.language import text

from . import export, picture
from .static import pre
from .view import View, traitlets

ENTRY = "threads.js"
STYLES = ("stepper.css", "threads.css")


class ThreadsView(View):
    """Shows which lane of a warp touches which element, in time order.

    Traits
    ------
    recording  what was recorded, as plain data (see `mlc_lab/observe/gpu/threads.py`).
    event      number of the memory instruction or barrier shown, from 0.
    warp       number of the warp shown.
    lane       the lane that is marked, -1 for none.
    """

    _entry, _styles = ENTRY, STYLES

    recording = traitlets.Dict().tag(sync=True)
    event = traitlets.Int(0).tag(sync=True)
    warp = traitlets.Int(0).tag(sync=True)
    lane = traitlets.Int(-1).tag(sync=True)

    def __init__(self, recording: Any, **traits: Any) -> None:
        """`recording` is an `mlc_lab.observe.gpu.threads.ThreadRecording`."""
        self.source = recording
        super().__init__(**{**_values(recording), **traits})

    @traitlets.validate("event")
    def _existing_event(self, proposal: Any) -> int:
        return max(0, min(len(self.source) - 1, proposal["value"]))

    @traitlets.validate("warp")
    def _existing_warp(self, proposal: Any) -> int:
        return max(0, min(_warps(self.source.data) - 1, proposal["value"]))

    @traitlets.validate("lane")
    def _existing_lane(self, proposal: Any) -> int:
        return max(-1, min(self.source.data["warp"] - 1, proposal["value"]))

    def on_event(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call `callback(number)` when another one is shown. Calling the result stops it."""
        return self._on("event", callback)

    def html(self, path: Any = None) -> str:
        """The same view as one HTML page with no kernel; written to `path` if given."""
        return self.source.html(path)

    def _static(self) -> tuple[str, str]:
        return str(self.source), static(self.source)

    def _pictures(self) -> list[str]:
        data = self.source.data
        asked = [0] * len(data["sites"])
        for event in data["events"]:
            if event[0] >= 0:
                asked[event[0]] += sum(event[3])
        rows = [(_name(data, site), n, _unit(data, site, n))
                for site, n in zip(data["sites"], asked)]  # fmt: skip
        return [picture.bars(f"{data['kernel']}: memory of block {data['chosen']}", rows)]


def _warps(data: Any) -> int:
    threads = data["block"][0] * data["block"][1] * data["block"][2]
    return max(1, -(-threads // data["warp"]))


def _name(data: Any, site: Any) -> str:
    verb = "store" if site["write"] else "load"
    return f"{verb} {data['buffers'][site['buffer']]['name']}"


def _unit(data: Any, site: Any, n: int) -> str:
    shared = data["buffers"][site["buffer"]]["scope"] == "shared"
    return f"{n:,} {'passes over the banks' if shared else 'sectors of 32 bytes'}"


def _values(recording: Any) -> dict[str, Any]:
    """The values of the traits at first: the first memory instruction."""
    events = recording.data["events"]
    first = next((n for n, event in enumerate(events) if event[0] >= 0), 0)
    return {"recording": recording.data, "event": first, "warp": 0, "lane": -1}


def page(recording: Any) -> str:
    """The view as one HTML page that needs no kernel and no network."""
    view = {**_values(recording), "wrap": False}, static(recording)
    title = text("Threads of {name}", "views").format(name=recording.data["kernel"])
    return export.write([view], title, ENTRY, STYLES)


def static(recording: Any) -> str:
    """The counts, as HTML without scripts."""
    return f"<div>{pre(str(recording))}</div>"
