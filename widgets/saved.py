"""What a notebook keeps of a view, so that it can be drawn again where no kernel has it.

An output has several forms of a view. That of the type `MIME` is its recording: the values that a
page of it has (see `export.py`). The JupyterLab extension (`js/labextension.js`) draws it with the
view's own script where the kernel does not know the view; other hosts pass over it.

    {"view": "stepper", "styles": ["stepper", "counts"], "version": 1,
     "values": {"step": 3},                short ones: what a reader changed is put there on saving
     "alone": {"live": false},             those of a view that no kernel follows
     "packed": "H4sI..."}                  the others: JSON, compressed, in base 64

`packed` is missing where it would be longer than `LIMIT`: then `html` of the output says so.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

MIME = "application/vnd.mlc-lab.view+json"
VERSION = 1
#: characters that `packed` has at most
LIMIT = 300_000
#: characters of a value, as JSON, that is not packed
SMALL = 1000


#: what is kept of a place that only the kernel fills
NOTHING: dict[str, Any] = {"empty": True, "version": VERSION}


def is_small(value: Any) -> bool:
    """Whether a value is kept as it is."""
    return not isinstance(value, (dict, list, str)) or len(_json(value)) <= SMALL


def gzipped(data: Any) -> dict[str, str]:
    """Plain data as {"gzip": text}: its JSON, compressed, in base 64."""
    return {"gzip": base64.b64encode(gzip.compress(_json(data).encode(), 6, mtime=0)).decode()}


def recorded(entry: str, styles: Sequence[str], values: Mapping[str, Any], alone: Mapping[str, Any]
             ) -> dict[str, Any]:  # fmt: skip
    """The recording of a view: of the script `entry`, with these values of its traits."""
    rest = {name: value for name, value in values.items() if name not in alone}
    small = {name: value for name, value in rest.items() if is_small(value)}
    large = {name: value for name, value in rest.items() if name not in small}
    made = {"view": entry.removesuffix(".js"), "styles": [s.removesuffix(".css") for s in styles],
            "version": VERSION, "values": small, "alone": dict(alone)}  # fmt: skip
    packed = gzipped(large)["gzip"]
    return made if len(packed) > LIMIT else {**made, "packed": packed}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
