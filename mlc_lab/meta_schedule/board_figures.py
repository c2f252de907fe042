"""The charts of the tuning board as matplotlib figures, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Okabe and Ito
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#aa508c", "#b58900", "#56b4e9"]
_MARKERS = ["o", "s", "D", "^", "v", "P"]


def figure(data: dict[str, Any], chart: str, axes: Sequence[str] | None = None) -> Any:
    """A chart of a board's data. Raises ValueError for a name that is none, ImportError where
    matplotlib is not installed."""
    charts = {"progress": _progress, "model": _model, "space": _space, "family": _family}
    if chart not in charts:
        raise ValueError(f"there is no chart {chart!r}; choose one of {', '.join(charts)}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures of the charts need matplotlib, which is not installed.\n"
                          "Install it with:  pip install 'mlc-lab[lab]'") from None
    made = Figure(figsize=(8, 4.2), layout="constrained")
    at = made.subplots()
    if chart == "space":
        _space(at, data, axes)
    else:
        charts[chart](at, data)
    at.set_title(data["title"])
    return made


def _by_session(data: dict[str, Any]) -> list[tuple[dict, list[dict], str, str]]:
    out = []
    for number, session in enumerate(data["sessions"]):
        trials = [t for t in data["trials"] if t["session"] == session["key"]]
        out.append((session, trials, _COLOURS[number % 6], _MARKERS[number % 6]))
    return out


def _how_known(data: dict[str, Any]) -> str:
    """Whether the times of a board are measured, modelled, or some of them either."""
    found = {"modelled" if session["modelled"] else "measured" for session in data["sessions"]}
    return " or ".join(sorted(found)) or "measured"


def _progress(at: Any, data: dict[str, Any]) -> None:
    for session, trials, colour, marker in _by_session(data):
        good = [(i, t) for i, t in enumerate(trials) if t["time"] is not None]
        xs, ys = [i for i, _ in good], [t["time"] * 1e6 for _, t in good]
        low = [(t["time"] - t["low"]) * 1e6 for _, t in good]
        high = [(t["high"] - t["time"]) * 1e6 for _, t in good]
        at.errorbar(xs, ys, yerr=[low, high], fmt=marker, color=colour, ms=4, alpha=0.6, lw=1,
                    label=session["label"])
        best, line = float("inf"), []
        for trial in trials:
            best = min(best, trial["time"] * 1e6 if trial["time"] is not None else best)
            line.append(best if best < float("inf") else None)
        at.step(range(len(line)), [float("nan") if v is None else v for v in line], where="post",
                color=colour)
        failed = [i for i, t in enumerate(trials) if t["time"] is None]
        if failed:
            at.plot(failed, [0.03] * len(failed), "x", color=colour,
                    transform=at.get_xaxis_transform())
        lines = {"machine's peak": session["peak_s"], "numpy": session["numpy_s"],
                 **session["baselines"]}
        for name, seconds in lines.items():
            if seconds:
                at.axhline(seconds * 1e6, color="0.3", ls="--", lw=1)
                at.annotate(name, (0.99, seconds * 1e6), ha="right", va="top",
                            xycoords=("axes fraction", "data"), fontsize=8)
    at.set_yscale("log")
    at.set_xlabel("trial")
    known = _how_known(data)
    at.set_ylabel("time (µs)" if known == "measured" else f"{known} time (µs)")
    if len(data["sessions"]) > 1:
        at.legend(fontsize=8)


def _model(at: Any, data: dict[str, Any]) -> None:
    for session, trials, colour, marker in _by_session(data):
        pairs = [(t["predicted"], 1e-6 / t["time"]) for t in trials
                 if t["predicted"] is not None and t["time"] is not None]
        if pairs:
            at.plot(*zip(*pairs), marker, color=colour, ms=4, alpha=0.6, label=session["label"])
    found = [r["correlation"] for r in data["rounds"] if r["correlation"] is not None]
    if found:
        text = ", ".join(f"{c:.2f}" for c in found)
        at.annotate(f"rank correlation by round: {text}", (0.02, 0.96), va="top", fontsize=8,
                    xycoords="axes fraction")
    at.set_xlabel("predicted score")
    at.set_ylabel(f"{_how_known(data)} speed (runs per µs)")


def _space(at: Any, data: dict[str, Any], axes: Sequence[str] | None) -> None:
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm

    good = [t for t in data["trials"] if t["time"] is not None]
    names = list(axes) if axes else data["axes"]
    unknown = [n for n in names if n not in data["axes"]]
    if unknown:
        raise ValueError(f"there is no decision {unknown[0]!r}; there are: "
                         f"{', '.join(data['axes']) or 'none that differ'}")
    times = [t["time"] * 1e6 for t in good] or [1.0]
    norm = LogNorm(min(times), max(times) * 1.0001)
    values = {n: sorted({t["at"][n] for t in good if n in t["at"]}) for n in names}
    if axes and len(names) == 2:
        a, b = names
        grid = np.full((len(values[b]), len(values[a])), np.nan)
        for trial in good:
            if a in trial["at"] and b in trial["at"]:
                spot = values[b].index(trial["at"][b]), values[a].index(trial["at"][a])
                grid[spot] = np.fmin(grid[spot], trial["time"] * 1e6)
        shown = at.imshow(grid, norm=norm, cmap="cividis", origin="lower", aspect="auto")
        at.set_xticks(range(len(values[a])), values[a])
        at.set_yticks(range(len(values[b])), values[b])
        at.set_xlabel(data["axis_labels"][a])
        at.set_ylabel(data["axis_labels"][b])
        at.figure.colorbar(shown, ax=at, label="best time (µs)")
        return
    shade = colormaps["cividis"]
    for trial in sorted(good, key=lambda t: -t["time"]):
        at.plot([i for i, n in enumerate(names) if n in trial["at"]],
                [values[n].index(trial["at"][n]) / max(1, len(values[n]) - 1) for n in names
                 if n in trial["at"]], color=shade(norm(trial["time"] * 1e6)), alpha=0.6)
    for i, n in enumerate(names):
        for j, v in enumerate(values[n]):
            at.annotate(f"{v:g}", (i, j / max(1, len(values[n]) - 1)), fontsize=7, ha="right")
    at.set_xticks(range(len(names)), [data["axis_labels"][n] for n in names], fontsize=7)
    at.set_yticks([])


def _family(at: Any, data: dict[str, Any]) -> None:
    by_key = {t["key"]: t for t in data["trials"]}
    for _, trials, colour, marker in _by_session(data):
        good = [t for t in trials if t["time"] is not None]
        for trial in good:
            parent = by_key.get(trial["parent"])
            if parent is not None and parent["time"] is not None:
                at.plot([parent["generation"], trial["generation"]],
                        [parent["time"] * 1e6, trial["time"] * 1e6], color="0.6", lw=0.8, zorder=1)
        at.plot([t["generation"] for t in good], [t["time"] * 1e6 for t in good], marker,
                color=colour, ms=4, alpha=0.7)
    at.set_yscale("log")
    at.set_xlabel("generation (mutations since a random trace)")
    at.set_ylabel("time (µs)")


__all__ = ["figure"]
