"""What `build` gives for a GPU: the host's functions, which import the kernels' source."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...ir.module import IRModule
from ...lower import LowerError
from ...lower.origins import lower_with_blocks
from ...lower.scalarize_vectors import ScalarizeVectors
from ...lower.split_host_device import is_kernel
from ...lower.verify_gpu_code import VerifyGPUCode
from ...runtime.device import Device, device
from ...runtime.driver import Driver, SimulatedDriver, driver_of
from ...runtime.module import Module
from ...runtime.ndarray import NDArray, from_dlpack
from ...tir.function import PrimFunc
from ..llvm import entry_of
from ..source import DIALECTS, KernelSource, module_text, sources
from . import simulated
from .host import HostFunction
from .real import RealDriver

if TYPE_CHECKING:
    from ...target.target import Target


class GPUModule(Module):
    """The host's functions of a program for a GPU. `imported_modules[0]` has the kernels."""

    def __init__(self, functions: Mapping[str, Any], sources: Mapping[str, Any], kernels: Module,
                 driver: Driver, entry: str | None) -> None:
        super().__init__(functions, "llvm", entry, sources, None, [kernels])
        self.device_type = driver.kind
        if driver.simulated:
            self.clock = f"time of the simulation of {driver.kind} on this CPU, not of a GPU"

    def export_library(self, file_name: Any, **options: object) -> str:
        """Raises ValueError: the code of kernels is not part of libraries."""
        raise ValueError(
            "a module for a GPU cannot be exported as a library; its kernels' source can be "
            "written to a file: rt.imported_modules[0].save(\"kernels.txt\", \"source\")")


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
        """A tensor as the host's code takes it."""
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


def build(mod: IRModule, target: Target) -> Module:
    """A program for a GPU: its kernels' source, and functions that run it on the device.

    Raises LowerError for what the target cannot run; the text says what to change.
    """
    kind = target.kind.name
    dialect = DIALECTS[kind]
    scalars = ScalarizeVectors(dialect.vector_types, dialect.vector_lanes, dialect.aligned_vectors)
    lowered, written, blocks = lower_with_blocks(mod, target, [VerifyGPUCode(target), scalars])
    hosts = {str((f.attrs or {}).get("global_symbol", v.name_hint)): f
             for v, f in lowered.functions.items() if type(f) is PrimFunc and not is_kernel(f)}
    if not hosts:
        raise LowerError("the module has no PrimFunc to build")
    kernels = sources(written, kind, blocks)
    entry = entry_of(mod)
    driver = driver_of(kind)
    if isinstance(driver, RealDriver):
        compiled = {name: driver.compile(kernel) for name, kernel in kernels.items()}
        runs: dict[str, Any] = {name: HostFunction(name, func, written, kernels, compiled, driver)
                                for name, func in hosts.items()}
        own: Mapping[str, Any] = {"tir": lambda: lowered.script()}
    else:
        host = simulated.build(lowered, entry)
        runs = {name: host[name] for name in hosts if name in host.function_names}
        own = {fmt: functools.partial(host.get_source, fmt) for fmt in ("ll", "asm", "obj")}
    functions = {name: DeviceFunction(name, run, _params(hosts[name]), driver)
                 for name, run in runs.items()}
    return GPUModule(functions, own, _kernel_module(kernels, kind), driver, entry)


__all__ = ["DeviceFunction", "GPUModule", "build"]
