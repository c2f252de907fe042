"""What `mlc-lab doctor` looks at: the parts installed, the machine, and its measured peaks."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import unicodedata
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..language import text
from ..machine.caches import cache_bytes, system_caches

CORE = ("mlc-lab", "numpy", "llvmlite", "apache-tvm-ffi")
OPTIONAL = (
    "ipywidgets", "anywidget", "jupyterlab", "notebook", "matplotlib", "graphviz", "tqdm",
    "ml_dtypes", "torch", "onnx", "apache-tvm", "pytest", "hypothesis", "nbmake", "playwright",
)  # fmt: skip
#: name -> the commands that give it, and what the project does with it
TOOLS = {
    "chromium": (("chromium", "chromium-browser", "google-chrome"), "tests of the views"),
    "dot": (("dot",), "layout of large graphs; a built-in layout is used without it"),
    "cc": (("cc", "gcc", "clang"), "shared libraries; object files need none"),
    "cuda": (("nvidia-smi",), "running GPU kernels; they are simulated without it"),
    "nvcc": (("nvcc",), "nothing yet; shown because people ask"),
}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def cpu() -> dict[str, Any]:
    """Name and features as LLVM sees them, cores, and caches."""
    import llvmlite.binding as llvm

    features = [name for name, on in llvm.get_host_cpu_features().items() if on]
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "name": llvm.get_host_cpu_name(),
        "triple": llvm.get_process_triple(),
        "features": sorted(features),
        "cores": os.cpu_count(),
        "cores_usable": usable,
        "caches": system_caches(),
    }


def measured() -> dict[str, Any]:
    """Peaks of one core, measured now: multiply-adds by type, bytes read by level of memory."""
    from ..machine import peak

    levels = [*sorted(cache_bytes()), "memory"]
    return {
        "peak_gflops": {t: round(peak.measure_peak(t) / 1e9, 1) for t in ("float32", "float64")},
        "bandwidth_gbs": {at: round(peak.measure_bandwidth(at) / 1e9, 1) for at in levels},
    }


def examine(measure: bool = True) -> dict[str, Any]:
    """The whole report as plain data. `measure=False` leaves out what takes seconds."""
    tools = {}
    for name, (commands, use) in TOOLS.items():
        path = next(filter(None, map(shutil.which, commands)), None)
        tools[name] = {"path": path, "used_for": use}
    report = {
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
            "platform": platform.platform(),
        },
        "parts": {name: _version(name) for name in CORE},
        "optional": {name: _version(name) for name in OPTIONAL},
        "cpu": cpu(),
        "tools": tools,
        "measured": None,
        "advice": [],
    }
    if measure:
        try:
            report["measured"] = measured()
        except Exception as error:  # a report is wanted most where something is broken
            report["measured"] = {"error": f"{type(error).__name__}: {error}"}
    report["advice"] = list(advice(report))
    return report


def advice(report: dict[str, Any]):
    """Yields what the reader may want to do, one sentence each."""
    for name in CORE[1:]:
        if report["parts"][name] is None:
            yield text("{name} is missing, and nothing compiles without it: pip install {name}",
                       "command").format(name=name)
    if report["optional"]["anywidget"] is None or report["optional"]["jupyterlab"] is None:
        yield text("The lab is not installed: pip install 'mlc-lab[lab]'", "command")
    if importlib.util.find_spec("tqdm") is None:
        yield text("Long measurements show no progress without tqdm: pip install tqdm", "command")


def _bytes(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 and count % (1 << 20) == 0 else (
        f"{count / (1 << 20):.1f} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
    )


def _columns(words: str) -> int:
    """The columns of a terminal that a text takes: two for each Chinese character."""
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in words)


def as_text(report: dict[str, Any]) -> str:
    """The report for a person, one fact a line."""
    rows = [("Python", report["python"]["version"]), ("", report["python"]["platform"])]
    for group in ("parts", "optional"):
        for name, found in report[group].items():
            rows.append((name, found or "-"))
    chip = report["cpu"]
    vector = [f for f in chip["features"] if f in ("avx", "avx2", "fma", "avx512f", "neon", "sve")]
    rows += [
        ("CPU", f"{chip['name']} ({chip['triple']})"),
        (text("vectors", "command"), " ".join(vector) or "-"),
        (text("cores", "command"), text("{count} ({usable} usable)", "command").format(
            count=chip["cores"], usable=chip["cores_usable"])),
    ]
    for cache in chip["caches"]:
        detail = text(", {ways} ways, line {line} B", "command").format(
            ways=cache["ways"], line=cache["line"]) if "ways" in cache else ""
        rows.append((f"L{cache['level']} {cache['type']}", _bytes(cache["bytes"]) + detail))
    found = report["measured"]
    if found and "error" in found:
        rows.append((text("measured", "command"),
                     text("could not measure: {error}", "command").format(error=found["error"])))
    elif found:
        peaks = (f"{name} {value}" for name, value in found["peak_gflops"].items())
        speeds = (f"{name} {value}" for name, value in found["bandwidth_gbs"].items())
        rows.append((text("FMA peak", "command"), text("{peaks} GFLOP/s a core", "command").format(
            peaks=", ".join(peaks))))
        rows.append((text("bandwidth", "command"), text(
            "{speeds} GB/s read by one core", "command").format(speeds=", ".join(speeds))))
    for name, tool in report["tools"].items():
        rows.append((name, tool["path"] or f"- ({text(tool['used_for'], 'command')})"))
    width = max(_columns(name) for name, _ in rows)
    lines = [name + " " * (width + 2 - _columns(name)) + value for name, value in rows]
    return "\n".join(lines + [""] * bool(report["advice"]) + report["advice"])
