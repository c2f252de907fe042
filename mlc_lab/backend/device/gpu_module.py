"""What `build` gives for a GPU: the host's functions, which import the kernels' source."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...above import above
from ...ir.module import IRModule
from ...lower import LowerError, lower
from ...lower.origins import lower_with_blocks
from ...lower.split_host_device import is_kernel
from ...runtime.device import Device, device
from ...runtime.driver import Driver, SimulatedDriver, driver_of
from ...runtime.module import Module
from ...runtime.ndarray import NDArray, from_dlpack
from ...runtime.timing import BenchmarkResult, TimeEvaluator, measure
from ...target.limits import limits_of
from ...tir.function import PrimFunc
from .. import llvm
from ..llvm import entry_of
from ..source import DIALECTS, KernelSource, last_passes, module_text, sources, watched
from . import simulated
from .host import HostFunction
from .inside import reported
from .race_checks import looked_at
from .real import RealDriver, buffers_suffice

if TYPE_CHECKING:
    from ...target.target import Target


class GPUModule(Module):
    """The host's functions of a program for a GPU. `imported_modules[0]` has the kernels."""

    def __init__(self, functions: Mapping[str, Any], sources: Mapping[str, Any], kernels: Module,
                 driver: Driver, entry: str | None, program: tuple[IRModule, Target]) -> None:
        super().__init__(functions, "llvm", entry, sources, None, [kernels])
        self.device_type, self.program = driver.kind, program
        self.simulated = driver.simulated
        if driver.simulated:
            self.clock = f"time of the simulation of {driver.kind} on this CPU, not of a GPU"

    def time_evaluator(self, func_name: str, dev: Device | str | None = None, number: int = 10,
                       repeat: int = 1, *args: Any, **options: Any) -> TimeEvaluator:
        """As `Module.time_evaluator`. On the simulated device the time is that of a model of the
        GPU (`observe/gpu/model.py`), and the result says so."""
        measured = super().time_evaluator(func_name, dev, number, repeat, *args, **options)
        driver = driver_of(self.device_type)
        if isinstance(driver, RealDriver):
            return _OnDevice(measured, driver)
        return _Modelled(measured, repeat, *self.program)

    def add_functions(self, functions: Mapping[str, Any]) -> None:
        """Functions that run on the CPU, beside those here."""
        self._functions.update(functions)
        self._names = (*self._names, *functions)

    def export_library(self, file_name: Any, **options: object) -> str:
        """Raises ValueError: the code of kernels is not part of libraries."""
        raise ValueError(
            "a module for a GPU cannot be exported as a library; its kernels' source can be "
            "written to a file: rt.imported_modules[0].save(\"kernels.txt\", \"source\")")


#: the attribute of functions of a module for a GPU that run on the CPU
_OF_HOST = "tir.is_host_func"


class _OnDevice(TimeEvaluator):
    """Times by the device's clock, where it has one; else until all of its work is done."""

    def __init__(self, measured: TimeEvaluator, driver: RealDriver) -> None:
        super().__init__(measured.func, measured.func_name, measured.options)
        self.driver = driver

    def __call__(self, *args: Any) -> BenchmarkResult:
        with self.driver.clock(lambda: self.func(*args)) as clock:
            return measure(self.func, args, **self.options, flush=self.driver.flush_cache,
                           timer=lambda func, number, *rest: clock(number))


class _Modelled(TimeEvaluator):
    """Times of a model; the function is run too, once, so that its results are there."""

    def __init__(self, measured: TimeEvaluator, repeat: int, mod: IRModule, target: Target) -> None:
        super().__init__(measured.func, measured.func_name, {"repeat": repeat})
        if repeat < 1:
            raise ValueError(f"repeat must be at least 1, not {repeat}")
        self.mod, self.target = mod, target

    def __call__(self, *args: Any) -> BenchmarkResult:
        seconds, clock = above("time of a model")(self.mod, self.target, self.func_name, args)
        self.func(*args)
        return BenchmarkResult([seconds] * self.options["repeat"], clock)


class DeviceFunction:
    """A function of the host. Its arrays are on the device, or there is an error that says so."""

    def __init__(self, name: str, run: Callable[..., Any], params: list[tuple[str, bool]],
                 driver: Driver) -> None:
        self.__name__, self.run, self.params, self.driver = name, run, params, driver
        self.where: Device = device(driver.kind)

    def __call__(self, *args: Any) -> Any:
        if isinstance(self.driver, SimulatedDriver):
            self.driver.announce()
        if len(args) != len(self.params):
            names = ", ".join(name for name, _ in self.params)
            raise TypeError(f"{self.__name__}({names}) takes {len(self.params)} arguments, got "
                            f"{len(args)}")
        return self.run(*(self._argument(at, value) if is_tensor else value
                          for at, (value, (_, is_tensor)) in enumerate(zip(args, self.params))))

    def _argument(self, at: int, value: Any) -> Any:
        """A tensor as the host's code takes it; another library's array is, where it lies there."""
        if not isinstance(value, NDArray) and hasattr(value, "__dlpack_device__"):
            if tuple(value.__dlpack_device__()) == (self.where.device_type, self.where.device_id):
                value = from_dlpack(value)
        if isinstance(value, NDArray) and value.device == self.where:
            return from_dlpack(value) if self.driver.host_memory else value
        name, what = self.params[at][0], type(value).__name__
        if isinstance(value, NDArray):
            what = f"a tensor on {value.device!r}"
        elif hasattr(value, "__dlpack_device__"):
            what = f"a {type(value).__module__.split('.')[0]} array, which is not on the device"
        raise ValueError(
            f"{self.__name__}: argument {at + 1} ({name}) is {what}, and this function runs on "
            f"{self.where!r}: copy it there, tvm.nd.array(x, device=tvm.{self.driver.kind}(0))")

    def __repr__(self) -> str:
        return f"<function {self.__name__} on {self.where!r}>"


def _params(func: PrimFunc) -> list[tuple[str, bool]]:
    """Name of each parameter, and whether it is a tensor."""
    return [(func.buffer_map[p].name, True) if p in func.buffer_map else (p.name, False)
            for p in func.params]


def _kernel_module(kernels: Mapping[str, KernelSource], kind: str) -> Module:
    """The kernels, to be looked at."""
    dialect = DIALECTS[kind]
    text = module_text(kernels, kind)
    return Module({}, kind, None, dict.fromkeys(("source", kind, dialect.extension), lambda: text),
                  names=kernels, refusal="it is a kernel, which the host's function launches")


def build(mod: IRModule, target: Target) -> Any:
    """A program for a GPU: its kernels' source, and functions that run it on the device. Functions
    with the attribute `tir.is_host_func` are for the CPU, and their tensors are there.

    Raises LowerError for what the target cannot run; the text says what to change.
    """
    of_host = {v: f for v, f in mod.functions.items()
               if type(f) is PrimFunc and (f.attrs or {}).get(_OF_HOST)}
    if of_host:
        mod = IRModule({v: f for v, f in mod.functions.items() if v not in of_host}, mod.attrs)
        on_cpu = llvm.build(lower(IRModule(of_host)), None, None)
        if not len(mod.functions):
            return on_cpu
        made = build(mod, target)
        made.add_functions({name: on_cpu[name] for name in on_cpu.function_names})
        return made
    kind = target.kind.name
    lowered, written, blocks = lower_with_blocks(mod, target, last_passes(target))
    hosts = {str((f.attrs or {}).get("global_symbol", v.name_hint)): f
             for v, f in lowered.functions.items() if type(f) is PrimFunc and not is_kernel(f)}
    if not hosts:
        raise LowerError("the module has no PrimFunc to build")
    kernels = sources(written, kind, blocks)
    entry = entry_of(mod)
    driver = driver_of(kind)
    if isinstance(driver, RealDriver):
        launched = {name: watched(kernel, kind, blocks) if driver.watches else kernel
                    for name, kernel in kernels.items()}
        compiled = {name: driver.compile(kernel) for name, kernel in launched.items()}
        runs: dict[str, Any] = {name: HostFunction(name, func, written, launched, compiled, driver)
                                for name, func in hosts.items()}
        own: Mapping[str, Any] = {"tir": lambda: lowered.script()}
    else:
        limits = limits_of(target)
        most = limits.buffers if limits is not None else None
        if most is not None:
            for kernel in kernels.values():
                buffers_suffice(kernel, most, f"the simulated device {kind}")
        host = simulated.build(lowered, entry)
        runs = {name: simulated.with_an_end(reported(host[name]), lowered) for name in hosts
                if name in host.function_names}
        originals = {str((f.attrs or {}).get("global_symbol", v.name_hint)): f
                     for v, f in mod.functions.items() if type(f) is PrimFunc}

        def races_of(name: str, args: Any, small: bool) -> Any:
            return above("races of a call")(name, originals[name], hosts[name], written, kernels,
                                            target, args, small)

        runs = {name: looked_at(name, run, functools.partial(races_of, name))
                if name in originals else run for name, run in runs.items()}
        own = {fmt: functools.partial(host.get_source, fmt) for fmt in ("ll", "asm", "obj")}
    functions = {name: DeviceFunction(name, run, _params(hosts[name]), driver)
                 for name, run in runs.items()}
    return GPUModule(functions, own, _kernel_module(kernels, kind), driver, entry,
                     (mod, target))


__all__ = ["DeviceFunction", "GPUModule", "build"]
