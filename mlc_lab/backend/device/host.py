"""The host's function of a program for a real device: it allocates, and launches kernels.

After `lower/split_host_device.py` such a function computes sizes and calls kernels; there is little
of it, so it is walked here, statement by statement (`backend/meaning.py` evaluates expressions).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...ir import dtype as dt
from ...ir.module import GlobalVar, IRModule
from ...lower import LowerError
from ...tir import expr as E
from ...tir import stmt as S
from ...tir.buffer import Buffer
from ...tir.function import PrimFunc
from ...tir.op import as_int
from ..interp_memory import AssertionFailed
from ..meaning import Env, value
from ..source import KernelSource
from .real import RealDriver


class HostFunction:
    """One function of the host, callable with tensors on the device and numbers."""

    def __init__(self, name: str, func: PrimFunc, mod: IRModule,
                 kernels: Mapping[str, KernelSource], compiled: Mapping[str, Any],
                 driver: RealDriver) -> None:
        self.name, self.func, self.mod, self.driver = name, func, mod, driver
        self.kernels, self.compiled = kernels, compiled

    def __call__(self, *args: Any) -> None:
        env = Env()
        env.module = self.mod
        checks: list[tuple[E.PrimExpr, int, str]] = []
        for at, (param, given) in enumerate(zip(self.func.params, args), 1):
            buffer = self.func.buffer_map.get(param)
            if buffer is None:
                env[param] = float(given) if dt.is_float(param.dtype) else int(given)
            else:
                what = f"{self.name}: argument {at} ({buffer.name})"
                for e, n, where in self._layout(buffer, given, what):
                    if isinstance(e, E.Var) and e not in env:
                        env[e] = n
                    else:
                        checks.append((e, n, f"{what}: {where}"))
                env[buffer.data] = given.data_ptr()
        for e, n, where in checks:  # when all sizes that arguments define are known
            wanted = value(e, env)
            if wanted != n:
                raise ValueError(f"{where} must be {wanted}, not {n}")
        self._run(self.func.body, env)

    @staticmethod
    def _layout(buffer: Buffer, given: Any, what: str) -> list[tuple[E.PrimExpr, int, str]]:
        """What a buffer says of its tensor, what the tensor has, and the name of that.

        Raises TypeError for another dtype, ValueError for another number of dimensions.
        """
        if str(given.dtype) != buffer.dtype:
            raise TypeError(f"{what} must have the dtype {buffer.dtype}, not {given.dtype}")
        shape = [int(n) for n in given.shape]
        if len(shape) != len(buffer.shape):
            raise ValueError(f"{what} must have {len(buffer.shape)} dimensions, not {len(shape)}")
        strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
        if not getattr(given, "is_contiguous", lambda: True)():
            strides = [int(n) for n in given.strides]
            if not buffer.strides:
                raise ValueError(f"{what} must be compact, and its strides are {strides}: pass a "
                                 "compact copy")
        rows = [(e, n, f"shape[{d}]") for d, (e, n) in enumerate(zip(buffer.shape, shape))]
        rows += [(e, n, f"strides[{d}]")
                 for d, (e, n) in enumerate(zip(buffer.strides, strides))]
        if buffer.elem_offset is not None:
            rows.append((buffer.elem_offset, 0, "elem_offset"))
        return rows

    def _run(self, s: S.Stmt, env: Env) -> None:
        if type(s) is S.SeqStmt:
            for item in s.seq:
                self._run(item, env)
        elif type(s) in (S.DeclBuffer, S.AttrStmt):
            self._run(s.body, env)  # type: ignore[attr-defined]
        elif type(s) is S.LetStmt:
            env[s.var] = value(s.value, env)
            self._run(s.body, env)
        elif type(s) is S.For:
            low = value(s.min, env)
            for i in range(low, low + value(s.extent, env)):
                env[s.loop_var] = i
                self._run(s.body, env)
        elif type(s) is S.IfThenElse:
            if value(s.condition, env):
                self._run(s.then_case, env)
            elif s.else_case is not None:
                self._run(s.else_case, env)
        elif type(s) is S.AssertStmt:
            if not value(s.condition, env):
                raise AssertionFailed(f"{self.name}: {getattr(s.message, 'value', s.message)}")
            self._run(s.body, env)
        elif type(s) is S.Allocate:
            self._allocate(s, env)
        elif type(s) is S.Evaluate:
            self._launch(s.value, env)
        else:
            raise LowerError(f"{self.name}: the host does {s!r}, which only a kernel can")

    def _allocate(self, s: S.Allocate, env: Env) -> None:
        nbytes = dt.bytes_of(s.dtype)
        for extent in s.extents:
            nbytes *= value(extent, env)
        memory = self.driver.allocate(max(nbytes, 4))
        env[s.buffer_var] = memory
        try:
            self._run(s.body, env)
        finally:
            self.driver.free(memory)

    def _launch(self, call: E.PrimExpr, env: Env) -> None:
        if type(call) is not E.Call:
            return
        if not isinstance(call.op, GlobalVar) or call.op.name_hint not in self.kernels:
            raise LowerError(f"{self.name}: the host calls {call!r}, which is no kernel")
        name = call.op.name_hint
        source = self.kernels[name]
        params = self.mod[name].params
        given = Env({p: value(a, env) for p, a in zip(params, call.args)})
        sizes: dict[str, int] = {}
        for tag, extent in source.extents.items():
            known = as_int(extent)
            sizes[tag] = int(value(extent, given)) if known is None else known
        grid = tuple(sizes.get(f"blockIdx.{x}", 1) for x in "xyz")
        block = tuple(sizes.get(f"threadIdx.{x}", 1) for x in "xyz")
        if 0 in grid or 0 in block:
            return  # no threads, nothing to do
        self.driver.launch(
            self.compiled[name], [given[p.var] for p in source.pointers],
            [given[s.var] for s in source.scalars], grid, block)  # type: ignore[arg-type]


__all__ = ["HostFunction"]
