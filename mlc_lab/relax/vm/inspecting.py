"""Looking into the machine: how long each call takes, and every step of a run as data.

A run that is looked into goes by the bytecode, also where a function has a compiled form.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tvm_ffi

from ...above import above
from ...ir.dtype import bytes_of
from ...runtime import NDArray
from .builtins import BUILTINS, Storage
from .bytecode import VOID_REGISTER, CallInstr, Executable, Ret, register_name
from .values import Summaries

if TYPE_CHECKING:
    from .machine import VirtualMachine


@dataclass
class CallTime:
    """One call of a run: what, how long, on which shapes."""

    name: str
    seconds: float
    shapes: str

    @property
    def is_kernel(self) -> bool:
        """Whether it is work of the program, not of the machine."""
        return self.name not in BUILTINS


class Report:
    """The calls of one run with their times; prints as a table by function. `clock` says whose
    times they are, where they are not those of the device the kernels are for."""

    def __init__(self, func_name: str, calls: list[CallTime], seconds: float, clock: str = ""
                 ) -> None:
        self.func_name, self.calls, self.seconds, self.clock = func_name, calls, seconds, clock

    def table(self, sort: bool = True, aggregate: bool = True, kernels_only: bool = False) -> str:
        """Name, duration, share of the whole, number of calls, argument shapes."""
        rows: dict[tuple, list] = {}
        for at, call in enumerate(self.calls):
            if kernels_only and not call.is_kernel:
                continue
            key = (call.name, call.shapes) if aggregate else (call.name, call.shapes, at)
            row = rows.setdefault(key, [0.0, 0])
            row[0] += call.seconds
            row[1] += 1
        items = sorted(rows.items(), key=lambda r: -r[1][0]) if sort else list(rows.items())
        total = sum(call.seconds for call in self.calls) or 1e-12
        width = max([4, *(len(key[0]) for key, _ in items)])
        lines = [f"{'Name':<{width}}  {'Duration (us)':>13}  {'Percent':>7}  {'Count':>5}  "
                 "Argument Shapes"]
        for key, (seconds, count) in items:
            lines.append(f"{key[0]:<{width}}  {seconds * 1e6:>13.2f}  "
                         f"{100 * seconds / total:>7.2f}  {count:>5}  {key[1]}")
        lines.append("-" * 10)
        lines.append(f"{'Sum':<{width}}  {total * 1e6:>13.2f}  {100:>7.2f}  {len(self.calls):>5}")
        lines.append(f"{'Total':<{width}}  {self.seconds * 1e6:>13.2f}")
        if self.clock:
            lines.append(f"({self.clock})")
        return "\n".join(lines)

    def csv(self) -> str:
        """The calls, one a line."""
        rows = ["Name,Duration (us),Argument Shapes"]
        rows += [f'{c.name},{c.seconds * 1e6:.3f},"{c.shapes}"' for c in self.calls]
        return "\n".join(rows) + "\n"

    def json(self) -> str:
        """The calls as JSON."""
        import json

        return json.dumps({"function": self.func_name, "seconds": self.seconds, "calls": [
            {"name": c.name, "seconds": c.seconds, "shapes": c.shapes} for c in self.calls]})

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__


@dataclass
class Step:
    """One instruction of a run.

    Attributes
    ----------
    depth : int
        How many calls of bytecode functions stand around it.
    function, at : str, int
        Where the instruction stands.
    text : str
        The instruction, printed.
    name : str
        What it calls.
    reads : list of str
        The registers it reads.
    writes : str
        The register it writes, or "".
    seconds : float
        How long it took.
    registers : dict
        Every register that holds something after the step, described (`describe`).
    storages : list of dict
        The memory allocated so far: `id`, `size`, `alive`, and its `tensors` as
        `{"register", "offset", "size"}`.
    values : dict
        With `values=True`: copies of tensors written, by register.
    wrote : dict
        What the tensors that the step wrote hold, by register: summaries (`values.py`), None where
        a tensor was not looked at.
    """

    depth: int
    function: str
    at: int
    text: str
    name: str
    reads: list[str]
    writes: str
    seconds: float
    registers: dict[str, dict]
    storages: list[dict]
    values: dict[str, Any] = field(default_factory=dict)
    wrote: dict[str, dict | None] = field(default_factory=dict)


@dataclass
class Trace:
    """A recorded run: its steps, its result, and the bytes of memory at its peak."""

    func_name: str
    steps: list[Step]
    result: Any
    peak_bytes: int
    #: the bytecode of the functions that ran, a text for each instruction
    code: dict[str, list[str]] = field(default_factory=dict)
    #: what the arguments hold, by register, as in `Step.wrote`
    given: dict[str, dict | None] = field(default_factory=dict)
    #: what ran
    executable: Executable | None = None

    def show(self) -> Any:
        """The run as a view: step the bytecode, see registers and memory; `.html(path)` writes it
        as a page."""
        return above("show_run")(self)

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Any:
        return iter(self.steps)

    def __getitem__(self, at: int) -> Step:
        return self.steps[at]


def describe(value: object) -> dict[str, Any]:
    """A value of the machine in a few words, as JSON can hold it."""
    if isinstance(value, NDArray):
        return {"kind": "tensor", "shape": [int(d) for d in value.shape],
                "dtype": str(value.dtype)}
    if isinstance(value, Storage):
        return {"kind": "storage", "size": value.size}
    if isinstance(value, tvm_ffi.Shape):
        return {"kind": "shape", "values": [int(d) for d in value]}
    if isinstance(value, (tuple, list)):
        return {"kind": "tuple", "items": [describe(v) for v in value]}
    if isinstance(value, (bool, int, float, str)):
        return {"kind": type(value).__name__, "value": value}
    return {"kind": type(value).__name__}


def _shapes(values: list) -> str:
    parts = []
    for value in values:
        if isinstance(value, NDArray):
            dims = ", ".join(map(str, value.shape))
            parts.append(f"{value.dtype}[{dims}]")
    return ", ".join(parts)


def profile(vm: VirtualMachine, func_name: str, args: tuple) -> Report:
    """Run by bytecode, timing each call."""
    from .machine import to_value

    calls: list[CallTime] = []

    def watch(function: Any, at: int, step: tuple, values: list, registers: list) -> Any:
        start = time.perf_counter()
        result = step[1](*values)
        spent = time.perf_counter() - start
        if step[5] not in vm.executable.functions:
            calls.append(CallTime(step[5], spent, _shapes(values)))
        return result

    values = tuple(map(to_value, args))
    vm.call(func_name, *values)  # once unmeasured
    started = time.perf_counter()
    with _watching(vm, watch):
        vm.call(func_name, *values)
    return Report(func_name, calls, time.perf_counter() - started,
                  getattr(vm.executable.lib, "clock", ""))


class _watching:
    def __init__(self, vm: VirtualMachine, watch: Any) -> None:
        self.vm, self.watch = vm, watch

    def __enter__(self) -> None:
        self.before, self.vm._watch = self.vm._watch, self.watch

    def __exit__(self, *exc: object) -> None:
        self.vm._watch = self.before


def trace(vm: VirtualMachine, func_name: str, args: tuple, keep_values: bool) -> Trace:
    """Run by bytecode, recording each call."""
    from .machine import to_value

    steps: list[Any] = []
    storages: list[dict] = []
    numbers: dict[int, int] = {}
    alive: dict[int, Any] = {}
    summaries = Summaries()
    unwritten: dict[int, Any] = {}  # tensors that were allocated and that nothing wrote yet
    peak = 0
    depth = 0

    def wrote(name: str, dst: int, instruction: Any, values: list, result: Any) -> dict:
        """What a step wrote: its result, or, of a kernel, those of its arguments that were new; of
        one that writes into what there was, all of them."""
        if isinstance(result, NDArray):
            if name == "vm.builtin.alloc_tensor":
                unwritten[id(result)] = result
                return {}
            return {register_name(dst): summaries.of(result)} if dst >= 0 else {}
        if name in BUILTINS or name in vm.executable.functions:
            return {}
        tensors = [(register_name(a.value), v) for a, v in zip(instruction.args, values)
                   if a.kind == "r" and isinstance(v, NDArray)]
        new = [(r, v) for r, v in tensors if unwritten.pop(id(v), None) is not None]
        return {r: summaries.of(v) for r, v in new or tensors}

    def watch(function: Any, at: int, step: tuple, values: list, registers: list) -> Any:
        nonlocal peak, depth
        name, dst = step[5], step[4]
        here = len(steps)
        steps.append(None)  # its place: calls of functions record their own steps after it
        before, depth = depth, depth + 1
        start = time.perf_counter()
        result = step[1](*values)
        spent = time.perf_counter() - start
        depth = before
        instruction = function.code[at]
        after = list(registers)
        if dst >= 0:
            after[dst] = result
        if isinstance(result, Storage):
            numbers[id(result)] = len(storages)
            alive[len(storages)] = result
            storages.append({"id": len(storages), "size": result.size, "alive": True,
                             "tensors": []})
        elif name == "vm.builtin.alloc_tensor" and id(values[0]) in numbers:
            row = storages[numbers[id(values[0])]]
            row["tensors"] = [t for t in row["tensors"] if t["register"] != register_name(dst)]
            row["tensors"].append({"register": register_name(dst), "offset": int(values[1]),
                                   "size": _bytes(result)})
        if name == "vm.builtin.null_value" and dst >= 0:
            for row in storages:
                row["tensors"] = [t for t in row["tensors"] if t["register"] != register_name(dst)]
            held = {id(r) for r in after}
            for number, storage in list(alive.items()):
                if id(storage) not in held and not storages[number]["tensors"]:
                    storages[number]["alive"] = False
                    del alive[number]
        peak = max(peak, sum(row["size"] for row in storages if row["alive"]))
        described = {register_name(k): describe(v) for k, v in enumerate(after) if v is not None}
        copies = {}
        if keep_values:
            written = [(register_name(a.value), v) for a, v in zip(instruction.args, values)
                       if a.kind == "r" and isinstance(v, NDArray)]
            copies = {r: v.numpy() for r, v in written}
        steps[here] = Step(
            before, function.name, at, vm.executable.instruction_text(instruction), name,
            [register_name(a.value) for a in instruction.args if a.kind == "r"],
            register_name(dst) if dst != VOID_REGISTER else "", spent, described,
            [{**row, "tensors": list(row["tensors"])} for row in storages], copies,
            wrote(name, dst, instruction, values, result))
        return result

    taken = [to_value(arg) for arg in args]
    given = {register_name(n): summaries.of(value) for n, value in enumerate(taken)
             if isinstance(value, NDArray)}
    with _watching(vm, watch):
        result = vm.call(func_name, *taken)
    ran = dict.fromkeys(step.function for step in steps)
    code = {name: [vm.executable.instruction_text(i) for i in vm.executable.functions[name].code]
            for name in ran}
    return Trace(func_name, steps, result, peak, code, given, vm.executable)


def memory_plan(executable: Executable, func_name: str) -> dict[str, Any]:
    """Where the intermediate tensors of a function of fixed shapes lie, and when, as data.

    Gives ``{"steps": [text of each instruction], "storages": [{"id", "size", "first", "last"}],
    "tensors": [{"storage", "offset", "size", "shape", "dtype", "register", "first", "last"}],
    "planned": bytes of all storages, "unplanned": bytes of all tensors, "peak": the most bytes of
    tensors alive at once}``. `first` and `last` are numbers of instructions, both included. Raises
    ValueError where a size is not fixed.
    """
    function = executable.functions[func_name]
    storages: list[dict] = []
    tensors: list[dict] = []
    holds: dict[int, Any] = {}  # register -> the storage or tensor it holds
    for at, instruction in enumerate(function.code):
        if type(instruction) is Ret:
            _use(holds.get(instruction.value), at)
            continue
        if type(instruction) is not CallInstr:
            continue
        name = executable.names[instruction.func]
        constants = [executable.constants[a.value] if a.kind == "c" else None
                     for a in instruction.args]
        used: list[Any] = [holds.get(a.value) for a in instruction.args if a.kind == "r"]
        for row in used:
            _use(row, at)
        if name == "vm.builtin.alloc_storage":
            if not isinstance(constants[1], tuple):
                raise ValueError(f"{func_name}: the size of a storage is known only as it runs")
            row = {"id": len(storages), "size": int(constants[1][0]), "first": at, "last": at}
            storages.append(row)
            holds[instruction.dst] = row
        elif name == "vm.builtin.alloc_tensor":
            if not isinstance(constants[2], tuple):
                raise ValueError(f"{func_name}: the shape of a tensor is known only as it runs")
            shape, dtype = constants[2], str(constants[3])
            row = {"storage": used[0]["id"], "offset": instruction.args[1].value,
                   "size": math.prod(shape) * bytes_of(dtype), "shape": list(shape),
                   "dtype": dtype, "register": register_name(instruction.dst),
                   "first": at, "last": at}
            tensors.append(row)
            holds[instruction.dst] = row
        elif name == "vm.builtin.make_tuple":
            holds[instruction.dst] = {"items": [row for row in used if row]}
        elif name in ("vm.builtin.copy", "vm.builtin.reshape", "vm.builtin.tuple_getitem"):
            holds[instruction.dst] = used[0] if used else None
        elif instruction.dst >= 0:
            holds.pop(instruction.dst, None)
    for tensor in tensors:  # a storage lives as long as what lies in it
        storage = storages[tensor["storage"]]
        storage["last"] = max(storage["last"], tensor["last"])
    alive = [sum(t["size"] for t in tensors if t["first"] <= at <= t["last"])
             for at in range(len(function.code))]
    return {
        "steps": [executable.instruction_text(i) for i in function.code], "storages": storages,
        "tensors": tensors, "planned": sum(s["size"] for s in storages),
        "unplanned": sum(t["size"] for t in tensors), "peak": max(alive, default=0),
    }


def _use(row: dict | None, at: int) -> None:
    """Note that what a register holds is used."""
    if row is None:
        return
    for item in row.get("items", ()):
        _use(item, at)
    if "last" in row:
        row["last"] = at


def _bytes(tensor: NDArray) -> int:
    return tensor._view().nbytes


__all__ = ["CallTime", "Report", "Step", "Trace", "describe", "memory_plan", "profile",
           "trace"]
