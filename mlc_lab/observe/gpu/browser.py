"""Kernels made ready to run in the reader's browser, as WGSL, with all that a run needs.

    >>> kernels = mlc_lab.in_browser(tiled, naive)                       # doctest: +SKIP
    >>> kernels = mlc_lab.in_browser(make, choices={"tile": [8, 16]})    # doctest: +SKIP
    >>> kernels.show()                                                   # doctest: +SKIP
    >>> kernels.html("product.html")                                     # doctest: +SKIP

A page has no compiler, so each program that a reader may choose is compiled beforehand. Plain data:

    {"title": text, "flop": operations of a run, or null, "gpu": whose figures the model takes,
     "arrays": [{"name", "dtype", "shape", "seed"     numbers as `numbers` makes them, or
                 "data"                               the bytes, in base 64,
                 "expected": null                     for an array that is only read, else
                   {"scale": the largest magnitude of the right result, "tolerance": relative to it,
                    "every": number, "values": [...]  each so many elements, or all of few
                    "group": number, "sums": [...]}}] and the sum of each so many
     "choices": {name: [values]},
     "variants": [{"name": text, "picked": {name: value}, "error": why it cannot be, or "",
                   "buffers": [bytes of memory]       the arrays first
                   "kernels": [{"name", "text", "read_only": [bool], "block", "shared"}],
                   "launches": [{"kernel": number, "grid", "buffers": [numbers], "scalars": text}],
                   "counts": [[name, text]], "seconds": of the model, or null, "note": text}]}

The right result is that of the first variant on the simulated device: machine code of the CPU made
from the same kernels. Sums take part so that no element goes unlooked at in a large result.
"""

from __future__ import annotations

import base64
import itertools
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...above import above
from ...backend.device import simulated
from ...ir import dtype as dt
from ...ir.diagnostics import MLCError
from ...lower.pipeline import as_module
from ...target import Target
from ...target.gpus import gpu_of
from .. import flops
from ..measure import TOLERANCE, Unmeasurable
from .counts import count_gpu
from .steps import rows_of
from .launching import Launch, Program
from .watching import Memory

#: elements of a result that are compared one by one, and sums of the others
_ELEMENTS, _SUMS = 4096, 1024
#: variants that a page may have
MOST = 64
_PACK = {"i32": "i", "u32": "I", "f32": "f", "bool": "I", "f16": "e"}


def numbers(dtype: str, count: int, seed: int) -> np.ndarray:
    """Numbers that a page makes too, bit for bit (`inputs` of `widgets/js/webgpu_device.js`):
    float32 in [-1, 1), integers below 8."""
    x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9)
    x += np.uint32(seed * 0x85EBCA6B & 0xFFFFFFFF)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    x ^= x >> np.uint32(16)
    if dtype == "float32":
        return ((x >> np.uint32(8)).astype(np.float32) / np.float32(2 ** 23)) - np.float32(1)
    return (x & np.uint32(7)).astype(dt.numpy_dtype(dtype))


_MADE = ("float32", "int32", "uint32")


class BrowserKernels:
    """Programs for the reader's browser; `data` has them as at the head of this file."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return self.data

    def show(self) -> Any:
        """The view that runs them, as a notebook widget."""
        return above("view of a browser's GPU").WebGPUView(self)

    def html(self, path: str | Path | None = None) -> str:
        """The view as one HTML page with no kernel; written to `path` if given."""
        text = above("view of a browser's GPU").page(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def __str__(self) -> str:
        rows = [self.data["title"]]
        for v in self.data["variants"]:
            said = v["error"] or "; ".join(f"{name}: {text}" for name, text in v["counts"])
            rows.append(f"  {v['name']}: {said or v['note']}")
        return "\n".join(rows)


def in_browser(*programs: object, choices: Mapping[str, Sequence[Any]] | None = None,
               names: Sequence[str] | None = None, target: Any = "webgpu",
               arrays: Sequence[Any] | None = None, sizes: Mapping[str, int] | None = None,
               flop: int | None = None, title: str | None = None, count: bool = True
               ) -> BrowserKernels:
    """Make programs ready to run, and to race, on the GPU of whoever reads the page.

    Parameters
    ----------
    programs : PrimFunc, IRModule, Schedule or function
        Each computes the same of the same arguments; its loops are bound to blocks and threads. A
        function gets one value of each of `choices` by name and returns a program.
    choices : dict
        Values that a reader can choose from, by name. All combinations are compiled.
    names : list of str
        What the programs are called; by default "1", "2", or the names of functions.
    target : Target or str
        "webgpu", also with limits of its own.
    arrays, sizes
        The arguments (numbers of a fixed formula if not given), and symbolic sizes by name.
    flop : int
        Operations of a run, for GFLOP/s; by default those that the program has.
    count : bool
        Whether each is counted by the simulated device, which takes its time for large shapes.

    Raises
    ------
    ValueError
        For no program, more than 64 variants, other names or arguments than fit.
    LowerError, Unmeasurable
        For a program, given without choices, that the target cannot run; of those that choices make
        the page says why.
    """
    where = Target(target)
    if where.kind.name != "webgpu":
        raise ValueError(f"a browser runs kernels for the target \"webgpu\", not for "
                         f"{where.kind.name!r}")
    wanted = _variants(programs, dict(choices or {}), list(names) if names else None)
    kept: list[dict[str, Any]] = []
    first: _Compiled | None = None
    for name, picked, make in wanted:
        entry: dict[str, Any] = {
            "name": name, "picked": picked, "error": "", "buffers": [], "kernels": [],
            "launches": [], "counts": [], "seconds": None, "note": ""}
        kept.append(entry)
        try:
            made = _Compiled(make(), where, sizes, arrays, first)
        except (MLCError, ValueError) as error:
            if not picked:
                raise
            entry["error"] = str(error)
            continue
        first = first or made
        entry.update(made.entry)
        if count:
            entry.update(_counted(made, where))
    if first is None:
        raise ValueError("none of the choices gives a program that can run: "
                         + kept[0]["error"])
    if flop is None:
        try:
            flop = flops.count(as_module(first.program), dict(sizes or {})) or None
        except flops.Uncountable:
            flop = None
    return BrowserKernels({
        "title": title or f"{first.name} in this browser", "flop": flop, "gpu": gpu_of(where).name,
        "arrays": first.described(), "choices": {k: list(v) for k, v in (choices or {}).items()},
        "variants": kept})


def _variants(programs: Sequence[Any], choices: dict[str, Sequence[Any]], names: list[str] | None
              ) -> list[tuple[str, dict[str, Any], Any]]:
    """Name, choices and maker of each variant."""
    if not programs:
        raise ValueError("there is nothing to run: give a program, or a function that makes one")
    if names is not None and len(names) != len(programs):
        raise ValueError(f"{len(programs)} programs take as many names, not {len(names)}")
    for key, values in choices.items():
        if not len(values) or not all(isinstance(v, (str, int, float)) for v in values):
            raise ValueError(f"choices[{key!r}] is a list of numbers or texts that is not empty, "
                             f"not {values!r}")
    out: list[tuple[str, dict[str, Any], Any]] = []
    for at, program in enumerate(programs):
        is_maker = callable(program) and not hasattr(program, "body")
        name = names[at] if names else (
            getattr(program, "__name__", str(at + 1)) if is_maker else str(at + 1))
        if not is_maker:
            out.append((name, {}, lambda program=program: program))
            continue
        for values in itertools.product(*choices.values()):
            picked = dict(zip(choices, values))
            out.append((name, picked, lambda f=program, picked=picked: f(**picked)))
    if len(out) > MOST:
        raise ValueError(f"these choices make {len(out)} programs, and a page has at most {MOST}")
    if len({(name, tuple(picked.values())) for name, picked, _ in out}) < len(out):
        raise ValueError("two programs have one name: give others, names=[...]")
    return out


class _Compiled:
    """One program, its launches, and what it is run on."""

    def __init__(self, program: Any, target: Target, sizes: Mapping[str, int] | None,
                 arrays: Sequence[Any] | None, first: _Compiled | None) -> None:
        self.program = program
        self.run = Program(program, target, sizes, arrays)
        self.name = self.run.name
        if first is not None and self._form() != first._form():
            raise ValueError(f"{self.name} takes {self._form()}, and the first program "
                             f"{first._form()}: programs of one page compute the same")
        self.arrays = first.arrays if first is not None else self._arguments()
        self.run.given = list(self.arrays)
        self.written: set[int] = set()
        self.entry = self._launches()

    def _form(self) -> str:
        rows = [self.run.func.buffer_map.get(p) for p in self.run.func.params]
        return ", ".join("a number" if b is None else f"{b.dtype}{list(map(str, b.shape))}"
                         for b in rows)

    def _arguments(self) -> list[Any]:
        """The arguments: those given, else of the formula."""
        self.given = self.run.given is not None
        out: list[Any] = []
        for at, param in enumerate(self.run.func.params):
            buffer = self.run.func.buffer_map.get(param)
            if self.run.given is not None and at < len(self.run.given):
                own = self.run.given[at]
                out.append(own if buffer is None else np.ascontiguousarray(
                    own.numpy() if hasattr(own, "numpy") else own))
            elif self.run.given is not None:
                raise ValueError(f"{self.name} takes {len(self.run.func.params)} arguments; "
                                 f"{len(self.run.given)} were given")
            elif buffer is None:
                out.append(1)
            else:
                try:
                    shape = [flops.integer(n, self.run.sizes) for n in buffer.shape]
                except flops.Uncountable as error:
                    raise Unmeasurable(f"{error}; name it, as in sizes={{'n': 128}}") from None
                kind = buffer.dtype if buffer.dtype in _MADE else "float32"
                made = numbers(kind, int(np.prod(shape, dtype=np.int64)), at + 1)
                out.append(made.reshape(shape).astype(dt.numpy_dtype(buffer.dtype)))
        return out

    def _launches(self) -> dict[str, Any]:
        """Kernels, memory and launches as plain data."""
        tensors = [n for n, p in enumerate(self.run.func.params) if p in self.run.func.buffer_map]
        order: dict[int, int] = {}  # address -> number of the buffer
        sizes = [self.arrays[n].nbytes for n in tensors]
        kernels: list[dict[str, Any]] = []
        numbers_: dict[str, int] = {}
        launches: list[dict[str, Any]] = []

        def launched(launch: Launch) -> None:
            source, used = launch.source, []
            if not launches:  # the arrays come first
                order.update((a, n) for n, a in enumerate(self.run.addresses))
            for p in source.pointers:
                memory = launch.given[p.var]
                assert isinstance(memory, Memory)
                at = order.setdefault(memory.base, len(order))
                if at == len(sizes):
                    sizes.append(memory.size * dt.bytes_of(memory.dtype))
                used.append(at)
                if not p.read_only:
                    self.written.add(at)
            written = [b for b, p in zip(used, source.pointers) if not p.read_only]
            if any(used.count(b) > 1 for b in written):
                raise Unmeasurable(f"{source.name}: an array that is written is passed twice, "
                                   "which WebGPU does not allow")
            if launch.name not in numbers_:
                numbers_[launch.name] = len(kernels)
                kernels.append({"name": source.name, "text": source.text,
                                "read_only": [p.read_only for p in source.pointers],
                                "block": list(launch.block), "shared": source.shared_bytes})
            scalars = struct.pack("<" + "".join(_PACK[s.type] for s in source.scalars), *(
                float(launch.given[s.var]) if _PACK[s.type] in "fe" else int(launch.given[s.var])
                for s in source.scalars))
            launches.append({"kernel": numbers_[launch.name], "grid": list(launch.grid),
                             "buffers": used, "scalars": base64.b64encode(scalars).decode()})

        self.run.run(launched)
        self.tensors = tensors
        return {"buffers": sizes, "kernels": kernels, "launches": launches}

    def described(self) -> list[dict[str, Any]]:
        """The arrays, and the right results, by the simulated device."""
        after = [a.copy() if isinstance(a, np.ndarray) else a for a in self.arrays]
        symbol = str((self.run.host.attrs or {}).get("global_symbol", self.name))
        simulated.build(self.run.lowered)[symbol](*after)
        out = []
        for n, at in enumerate(self.tensors):
            buffer = self.run.func.buffer_map[self.run.func.params[at]]
            row: dict[str, Any] = {"name": buffer.name, "dtype": buffer.dtype,
                                   "shape": list(self.arrays[at].shape), "expected": None}
            if not self.given and buffer.dtype in _MADE:
                row["seed"] = at + 1
            else:
                row["data"] = base64.b64encode(self.arrays[at].tobytes()).decode()
            if n in self.written:
                row["expected"] = _expected(after[at], buffer.dtype)
            out.append(row)
        return out


def _expected(right: np.ndarray, dtype: str) -> dict[str, Any]:
    """What is compared of a result."""
    flat = right.reshape(-1).astype(np.float64)
    every = max(1, -(-flat.size // _ELEMENTS))
    group = -(-flat.size // _SUMS)
    finite = flat[np.isfinite(flat)]
    sums = np.add.reduceat(flat, np.arange(0, flat.size, group)) if every > 1 else np.zeros(0)
    return {"scale": float(np.abs(finite).max()) if finite.size else 0.0,
            "tolerance": TOLERANCE.get(dtype, 0.0), "every": every,
            "values": _plain(flat[::every]), "group": group, "sums": _plain(sums)}


def _plain(values: np.ndarray) -> list[float | str]:
    """Numbers as JSON has them; those that it lacks as texts."""
    return [float(f"{v:.9g}") if np.isfinite(v) else str(v) for v in values.tolist()]


def _counted(made: _Compiled, target: Target) -> dict[str, Any]:
    """The counts of the simulated device, as rows of a table."""
    try:
        counts = count_gpu(made.program, target, sizes=made.run.sizes, arrays=made.arrays)
    except (MLCError, ValueError) as error:
        return {"note": f"not counted: {error}"}
    return {"counts": rows_of(counts), "seconds": counts.seconds, "note": " ".join(counts.notes)}


__all__ = ["MOST", "BrowserKernels", "in_browser", "numbers"]
