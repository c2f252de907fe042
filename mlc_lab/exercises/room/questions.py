"""What is asked of each step, and what is so: from a recording, as the guess mode of the stepper.

    question = {"key": "recording 0, step 3", "recording": 0, "step": 3, "last": 6, "title": text,
                "call": text, "meaning": text, "program": text,
                "asks": [{"name", "text", "choices": [[value, text], ...]}, ...]}
    truth    = {name: value or null, ..., "says": [text, ...]}

`legal`: whether the step is legal or refused. `speed`: whether the program becomes faster, slower
or stays about the same; `factor`: by how much. The last two are asked only where the recording has
times, and of a step without one they are null: nobody's answer is right or wrong.

Where factors are asked for, a legal split with a number in its factors has a question of its own
before that, whose call has a "?" in the place of the number: `split`, which number stands there.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...language import text
from ...observe.recording import Recording, load_all
from ...reading import MISTAKES, DataError, read_json, reason

#: up to this ratio a change of time counts as about the same, as in `widgets/js/guess.js`
SAME = 1.1
#: the largest ratio that noise may explain of which that is said too: beyond it nobody can tell
SURE = 1.25
#: from which ratio on, to which: the choices of a factor
FACTORS = ((1.5, "1.5"), (3.0, "3"), (10.0, "10"))
#: bytes of a notebook, and of one of its views unpacked; steppers that are taken
MOST_BYTES, MOST_STEPPERS = 100 << 20, 50
_VIEW = "application/vnd.mlc-lab.view+json"

#: numbers that are offered where the factor of a split is asked
OFFERED = 4
#: the factors of a split, in its call
_SPLIT = re.compile(r"(?<=factors=\[)[^\]]*(?=\])")


def _asks(timed: bool) -> list[dict[str, Any]]:
    """What is asked of a step, in the chosen language."""
    legal = {"name": "legal", "text": text("Is it legal here?", "views"),
             "choices": [["legal", text("✓ legal", "views")],
                         ["refused", text("✕ refused", "views")]]}
    if not timed:
        return [legal]
    speed = [["faster", text("▲ faster", "views")], ["same", text("≈ about the same", "views")],
             ["slower", text("▼ slower", "views")]]
    between = [[str(n + 1), text("{low}× to {high}×", "views").format(low=low[1], high=high[1])]
               for n, (low, high) in enumerate(zip(FACTORS, FACTORS[1:]))]
    factor = [["0", text("less than {factor}×", "views").format(factor=FACTORS[0][1])], *between,
              [str(len(FACTORS)),
               text("more than {factor}×", "views").format(factor=FACTORS[-1][1])]]
    return [legal,
            {"name": "speed", "text": text("The program becomes", "views"), "choices": speed},
            {"name": "factor", "text": text("By which factor?", "views"), "choices": factor}]


def questions_of(recordings: list[Recording], factors: bool = False) -> list[dict[str, Any]]:
    """One question for each step, and with `factors` one before each split that has a number.

    Raises DataError where there is no step."""
    out = []
    for number, recording in enumerate(recordings):
        timed = any(p.cost and p.cost.get("time") for p in recording.programs)
        for at, step in enumerate(recording.steps[1:], 1):
            call = re.sub(r"^[\w, ]+ = (?=\w+\.)", "", step.python)  # a refused one has no results
            asked = {
                "key": f"recording {number}, step {at}", "recording": number, "step": at,
                "last": len(recording.steps) - 1, "title": recording.title,
                "call": "\n".join([*step.lead, call]),
                "meaning": recording.docs.get(step.op, {}).get("meaning", ""),
                "program": recording.text(step.before), "asks": _asks(timed),
            }
            if factors:
                out += _factor(recording, at, asked)
            out.append(asked)
    if not out:
        raise DataError("its recordings have no step to ask about")
    return out


def _factor(recording: Recording, at: int, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The question for the factor of a split, where there are numbers to choose from."""
    found = _number(recording, at)
    if found is None:
        return
    call, ((start, end), right) = asked["call"], found
    begin = call.rindex("factors=[") + len("factors=[")
    start, end = start + begin, end + begin
    near = _near(right, _extent(recording, at), at)
    if len(near) > 2:
        yield {**asked, "key": f"{asked['key']}, factor", "call": f"{call[:start]}?{call[end:]}",
               "asks": [{"name": "split", "text": text("Which factor does it get?", "views"),
                         "choices": [[str(n), str(n)] for n in near]}]}


def _number(recording: Recording, at: int) -> tuple[tuple[int, int], int] | None:
    """Of a legal split: where its last number stands within its factors, and which it is."""
    step = recording.steps[at]
    found = _SPLIT.search(step.python) if step.op == "split" and not step.error else None
    numbers = list(re.finditer(r"\b\d{1,9}\b", found[0])) if found else []
    return (numbers[-1].span(), int(numbers[-1][0])) if numbers else None


def _extent(recording: Recording, at: int) -> int:
    """The extent of the loop that a step splits; 0 where that is not known."""
    step = recording.steps[at]
    name = re.search(r"\bloop=(\w+)", step.python)
    found = {str(part[2]) for line in recording.programs[step.before].lines
             for part in recording.parts_of(line)
             if part[0] == "loop" and name and part[1] == name[1]}
    only = found.pop() if len(found) == 1 else ""
    return int(only) if re.fullmatch(r"\d{1,5}", only) else 0


def _near(right: int, extent: int, at: int) -> list[int]:
    """Numbers that could stand in the place of a factor, in order, with the right one anywhere
    among them: divisors of the extent, or else halves and doubles."""
    if right and extent and extent % right == 0:
        known = [n for n in range(2, extent + 1) if extent % n == 0]
    else:
        known = sorted({right << n for n in range(OFFERED)} | {right >> n for n in range(OFFERED)})
    known = [n for n in known if n > 1]
    if right not in known:
        return []
    place = known.index(right)
    first = max(0, min(place - (right + at) % OFFERED, len(known) - OFFERED))
    return known[first:first + OFFERED]


def truth_of(recording: Recording, asked: dict[str, Any]) -> dict[str, Any]:
    """What is so, of all that a question asks."""
    at = asked["step"]
    step = recording.steps[at]
    if [ask["name"] for ask in asked["asks"]] == ["split"]:
        found = _number(recording, at)
        right = str(found[1]) if found else ""
        said = text("its factor is {factor}", "views").format(factor=right)
        return {"split": right, "says": [said]}
    if step.error:
        message = str(step.error.get("message", ""))
        return {"legal": "refused", "speed": None, "factor": None,
                "says": [text("it is refused", "views"), *filter(None, [message])]}
    out: dict[str, Any] = {"legal": "legal", "speed": None, "factor": None,
                           "says": [text("it is legal", "views")]}
    if step.before == step.after:
        return {**out, "speed": "same", "factor": "0",
                "says": [*out["says"], text("the program is the same", "views")]}
    before, after = (recording.programs[p].cost or {} for p in (step.before, step.after))
    if not before.get("time") or not after.get("time"):
        return out
    ratio = before["time"] / after["time"]
    factor = max(ratio, 1 / ratio)
    noise = max(SAME, 1 + (before.get("spread") or 0) + (after.get("spread") or 0))
    words = (text("{ratio}× faster", "views") if ratio >= 1 else text("{ratio}× slower", "views")
             ).format(ratio=f"{factor:.3g}")
    if factor < noise > SURE:
        out["says"].append(text("the times are too noisy to tell ({text})", "views").format(
            text=words))
        return out
    out["speed"] = "same" if factor < noise else "faster" if ratio > 1 else "slower"
    out["factor"] = str(sum(factor >= low for low, _ in FACTORS))
    out["says"].append(text("about the same ({text})", "views").format(text=words)
                       if factor < noise else words)
    return out


# ----------------------------------------------------------------------- where they come from


def recordings_in(path: str | Path) -> list[Recording]:
    """The recordings in a notebook that was run and saved, or in a file of recordings.

    Nothing in it is run. Raises DataError, which says what is wrong, or OSError for no file.
    """
    path = Path(path)
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"{path.name} has more than {MOST_BYTES >> 20} MB")
    if path.suffix == ".json":
        data = read_json(path.read_bytes(), path.name)
        return load_all(path) if isinstance(data, list) else [Recording.from_dict(data)]
    if path.suffix != ".ipynb":
        raise DataError(f"{path.name} is no notebook (.ipynb), and no file of recordings (.json)")
    data = read_json(path.read_bytes(), path.name)
    cells = data.get("cells") if isinstance(data, dict) else None
    found = []
    for cell in cells if isinstance(cells, list) else []:
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for output in outputs if isinstance(outputs, list) else []:
            kept = output.get("data") if isinstance(output, dict) else None
            kept = kept.get(_VIEW) if isinstance(kept, dict) else None
            if isinstance(kept, dict) and kept.get("view") == "stepper":
                found.append(_recording(kept, path.name))
    if not found:
        raise DataError(f"{path.name} has no stepper: run it in JupyterLab with "
                        "sch.explore(guess=True) in a cell, and save it")
    return found[:MOST_STEPPERS]


def _recording(kept: dict[str, Any], name: str) -> Recording:
    """The recording that a saved stepper was drawn from."""
    try:
        unpacked = zlib.decompressobj(31)
        text = unpacked.decompress(base64.b64decode(kept.get("packed", "")), MOST_BYTES)
        if unpacked.unconsumed_tail:
            raise DataError(f"a stepper in {name} has more than {MOST_BYTES >> 20} MB")
        values = {**read_json(text, f"a stepper in {name}"), **kept.get("values", {})}
        data = dict(values["recording"])
        data.pop("code", None)
        return Recording.from_dict(data)
    except (zlib.error, *MISTAKES) as error:
        raise DataError(f"a stepper in {name} is damaged: {reason(error)}") from None


__all__ = ["questions_of", "recordings_in", "truth_of"]
