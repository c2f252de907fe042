"""Runs the host's function of a program for a GPU, and has each launch looked at.

The program goes the way that `build` sends it (`backend/device/gpu_module.py`): what is looked at
is what a GPU of the target gets. Arguments lie at addresses that are multiples of `ALIGN`, as the
memory that a GPU hands out does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.device.host import HostFunction
from ...backend.device.real import RealDriver
from ...backend.source import DIALECTS, KernelSource, last_passes, sources
from ...ir import dtype as dt
from ...ir.module import IRModule
from ...lower.origins import lower_with_blocks
from ...lower.pipeline import as_module
from ...lower.split_host_device import is_kernel, launch_extents
from ...tir import expr as E
from ...tir.buffer import Buffer
from ...tir.function import PrimFunc
from .. import flops
from ..instrument import concrete
from ..measure import Unmeasurable, only_function
from .needed import needed_numbers
from .watching import Memory

if TYPE_CHECKING:
    from ...target.target import Target

#: cudaMalloc's alignment ("CUDA C++ Programming Guide", Device Memory Accesses: at least 256)
ALIGN = 256
#: launches of one call that are looked at: a loop of 1024 around a kernel may be a first attempt
MOST_LAUNCHES = 2048


@dataclass
class Launch:
    """One launch of a kernel: its program, threads, memory and numbers."""

    name: str
    func: PrimFunc
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    given: dict[E.Var, Any]
    source: KernelSource

    @property
    def extents(self) -> dict[str, int]:
        """Threads of each axis that the kernel has."""
        sizes = {f"{word}.{x}": n for word, row in (("blockIdx", self.grid),
                                                    ("threadIdx", self.block))
                 for x, n in zip("xyz", row)}
        return {tag: sizes[tag] for tag in launch_extents(self.func)}

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """How many threads a block has."""
        return self.block[0] * self.block[1] * self.block[2]


class _Array:
    """An argument, as the host's function looks at it."""

    def __init__(self, dtype: str, shape: tuple[int, ...], address: int) -> None:
        self.dtype, self.shape, self.address = dtype, shape, address

    def data_ptr(self) -> int:
        """Its address on the device."""
        return self.address


class _Memories(RealDriver):
    """The memory of a device that is not there, and what is done at each launch."""

    def __init__(self, kind: str, funcs: Mapping[str, PrimFunc],
                 launched: Callable[[Launch], None], sources_: Mapping[str, KernelSource]) -> None:
        super().__init__(kind, f"counted {kind} device")
        self.funcs, self.launched, self.sources = funcs, launched, sources_
        self.top = ALIGN
        self.launches = 0
        self.sizes: dict[int, int] = {}
        self.arrays: dict[int, np.ndarray] = {}

    def allocate(self, nbytes: int) -> int:
        """An address for so many bytes."""
        found, self.top = self.top, self.top + -(-max(nbytes, 1) // ALIGN) * ALIGN
        self.sizes[found] = nbytes
        return found

    def array(self, address: int) -> np.ndarray:
        """The bytes at an address, made when they are asked for first."""
        if address not in self.arrays:
            self.arrays[address] = np.zeros(self.sizes[address], np.uint8)
        return self.arrays[address]

    def launch(self, kernel: Any, pointers: Sequence[int], scalars: Sequence[Any],
               grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        """Look at a launch. Raises Unmeasurable for one too many."""
        self.launches += 1
        if self.launches > MOST_LAUNCHES:
            raise Unmeasurable(f"the host launches {kernel} in a loop, and kernels more than "
                               f"{MOST_LAUNCHES:,} times in all, which takes too long to follow: "
                               "bind the loop around the kernel to \"blockIdx.x\"")
        source, func = self.sources[kernel], self.funcs[kernel]
        given: dict[E.Var, Any] = {s.var: v for s, v in zip(source.scalars, scalars)}
        for pointer, address in zip(source.pointers, pointers):
            size = dt.bytes_of(pointer.dtype)
            given[pointer.var] = Memory(pointer.name, pointer.dtype, self.sizes[address] // size,
                                        "global", address)
        given.update({p: 0 for p in func.params if p not in given})  # of the grid: not read inside
        self.launched(Launch(kernel, func, grid, block, given, source))


class Program:
    """A program for a GPU, made ready to be run and looked at.

    Raises LowerError for what the target cannot run, Unmeasurable for arguments that do not fit;
    `run` for more than `MOST_LAUNCHES` launches.
    """

    def __init__(self, program: object, target: Target, sizes: Mapping[str, int] | None,
                 arrays: Sequence[Any] | None) -> None:
        self.target, kind = target, target.kind.name
        if kind not in DIALECTS:
            raise Unmeasurable(f"counts of a GPU are for the targets {', '.join(DIALECTS)} and "
                               f"their tags, not for {kind!r}; for the CPU there is "
                               "count_accesses")
        self.name, mod = concrete(as_module(program), sizes)
        self.func = only_function(mod)[1]
        symbol = str((self.func.attrs or {}).get("global_symbol", self.name))
        _, lowered, blocks = lower_with_blocks(mod, target, last_passes(target))
        host = next(f for v, f in lowered.functions.items()
                    if type(f) is PrimFunc and not is_kernel(f)
                    and str((f.attrs or {}).get("global_symbol", v.name_hint)) == symbol)
        self._lowered(host, lowered, sources(lowered, kind, blocks), arrays)
        self.sizes = dict(sizes or {})

    @classmethod
    def built(cls, name: str, func: PrimFunc, host: PrimFunc, lowered: IRModule,
              kernels: Mapping[str, KernelSource], target: Target, arrays: Sequence[Any]
              ) -> Program:
        """One that is built already: a function, what became of it on the host, and all kernels."""
        self = cls.__new__(cls)
        self.target, self.name, self.func, self.sizes = target, name, func, {}
        self._lowered(host, lowered, kernels, arrays)
        return self

    def _lowered(self, host: PrimFunc, lowered: IRModule, kernels: Mapping[str, KernelSource],
                 arrays: Sequence[Any] | None) -> None:
        self.host, self.lowered, self.sources = host, lowered, kernels
        self.kernels = {v.name_hint: f for v, f in lowered.functions.items() if is_kernel(f)}
        self.given = list(arrays) if arrays is not None else None
        #: where the arrays lie that are its arguments, once it runs
        self.addresses: list[int] = []

    def run(self, launched: Callable[[Launch], None], data: bool = False) -> None:
        """Run it once. `launched` is called at each launch, in order. With `data` the memory of its
        arguments has numbers; what indices and conditions depend on has them in any case."""
        driver = _Memories(self.target.kind.name, self.kernels, launched, self.sources)
        arguments: list[Any] = []
        self.addresses.clear()
        for at, param in enumerate(self.func.params):
            arguments.append(self._argument(at, param, driver))
        host = HostFunction(self.name, self.host, self.lowered, self.sources,
                            {name: name for name in self.kernels}, driver)
        inner = driver.launched

        def with_data(launch: Launch) -> None:
            needed = needed_numbers(launch.func.body)
            for var, value in launch.given.items():
                if isinstance(value, Memory) and (data or var in needed):
                    value.data = driver.array(value.base).view(dt.numpy_dtype(value.dtype))
            inner(launch)

        driver.launched = with_data
        host(*arguments)

    def _argument(self, at: int, param: E.Var, driver: _Memories) -> Any:
        buffer = self.func.buffer_map.get(param)
        if self.given is not None and at >= len(self.given):
            raise Unmeasurable(f"{self.name} takes {len(self.func.params)} arguments; "
                               f"{len(self.given)} were given")
        own = None if self.given is None else self.given[at]
        if buffer is None:
            return own if own is not None else 1
        array = self._random(buffer, at) if own is None else np.asarray(
            own.numpy() if hasattr(own, "numpy") else own, order="C")  # keeps having no dimensions
        address = driver.allocate(array.nbytes)
        self.addresses.append(address)
        driver.arrays[address] = array.reshape(-1).view(np.uint8).copy()
        return _Array(buffer.dtype, array.shape, address)

    def _random(self, buffer: Buffer, seed: int) -> np.ndarray:
        try:
            shape = [flops.integer(n, self.sizes) for n in buffer.shape]
        except flops.Uncountable as error:
            raise Unmeasurable(f"{error}; name it, as in sizes={{'n': 128}}") from None
        generator, kind = np.random.default_rng(seed), dt.numpy_dtype(buffer.dtype)
        if dt.is_float(buffer.dtype):
            return generator.uniform(-1, 1, shape).astype(kind)
        return generator.integers(0, 2 if dt.is_bool(buffer.dtype) else 8, shape).astype(kind)


__all__ = ["ALIGN", "Launch", "Program"]
