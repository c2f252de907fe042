"""What is tuned: a module with one program, recognised whatever its variables are called."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from ..ir.dtype import canonical
from ..ir.module import IRModule
from ..ir.structural import structural_equal
from ..reading import DataError, shown
from ..observe import flops
from ..tir.function import PrimFunc
from ..tir.functor import pre_order
from ..tir.stmt import Block, BufferStore


class TensorInfo(NamedTuple):
    """Type and shape of one argument."""

    dtype: str
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        return f'TensorInfo("{self.dtype}", {list(self.shape)})'

    def as_json(self) -> list:
        """["TENSOR", dtype, shape], as TVM writes it."""
        return ["TENSOR", self.dtype, list(self.shape)]

    @staticmethod
    def from_prim_func(func: PrimFunc) -> list["TensorInfo"]:
        """The arguments of a function. Raises ValueError where a shape is not known."""
        out = []
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is None:
                raise ValueError(f"the parameter {param.name} is no buffer: a program is tuned on "
                                 "random data, which only buffers can be filled with")
            try:
                shape = tuple(flops.integer(d, {}) for d in buffer.shape)
            except flops.Uncountable as error:
                raise ValueError(f"buffer {buffer.name}: {error}; specialize the function first") \
                    from None
            out.append(TensorInfo(buffer.dtype, shape))
        return out

    @staticmethod
    def from_json(json_obj: object) -> "TensorInfo":
        """What `as_json` wrote. Raises DataError for something else."""
        if not isinstance(json_obj, (list, tuple)) or len(json_obj) != 3 or (
                json_obj[0] != "TENSOR"):
            raise DataError('an argument is ["TENSOR", dtype, shape]; this is something else')
        _, dtype, shape = json_obj
        if not isinstance(shape, (list, tuple)) or not all(
                type(d) is int and 0 <= d < 1 << 63 for d in shape):
            raise DataError(f"the shape of an argument is a list of sizes, not {shown(shape)}")
        try:
            return TensorInfo(canonical(dtype), tuple(shape))
        except (ValueError, TypeError) as error:
            raise DataError(f"the type of an argument: {error}") from None


class ArgInfo:
    """TVM's name of what an argument is: here always a tensor, so what it makes are TensorInfos."""

    @staticmethod
    def from_prim_func(func: PrimFunc) -> list[TensorInfo]:
        """The arguments of a function. Raises ValueError where a shape is not known."""
        return TensorInfo.from_prim_func(func)

    @staticmethod
    def from_entry_func(mod: IRModule, remove_preproc: bool = True) -> list[TensorInfo]:
        """The arguments of a module's function to tune."""
        return TensorInfo.from_prim_func(as_workload(mod)["main"])

    @staticmethod
    def from_json(json_obj: object) -> TensorInfo:
        """What `as_json` wrote. Raises DataError for something else."""
        return TensorInfo.from_json(json_obj)


class Workload:
    """A module under one key.

    `mod` holds the function "main"; `shash` is the same in every process for the same text.
    """

    def __init__(self, mod: IRModule, shash: str | None = None) -> None:
        self.mod = mod
        self.shash = shash or text_key(mod)

    def as_json(self) -> list:
        """[key, the module's JSON text]."""
        from ..ir.serialize import save_json

        return [self.shash, save_json(self.mod)]

    @staticmethod
    def from_json(json_obj: Any) -> "Workload":
        """A workload of what `as_json` gave. Raises DataError for something else."""
        from ..ir.serialize import load_json

        try:
            key, text = json_obj
        except (TypeError, ValueError):
            raise DataError("a workload is [key, module]; this is something else") from None
        mod = load_json(text)
        if not isinstance(key, str) or not isinstance(mod, IRModule):
            raise DataError(f"a workload is [key, module]; this is {shown(key)} and a "
                            f"{type(mod).__name__}")
        return Workload(mod, key)

    def same(self, mod: IRModule) -> bool:
        """Whether a module is this one up to the names of its variables.

        Names of blocks count: records find blocks by them.
        """
        return block_names(self.mod) == block_names(mod) and bool(structural_equal(self.mod, mod))


def block_names(mod: IRModule) -> list[list[str]]:
    """The names of the blocks of each function, from the outside in."""
    return [[n.name_hint for n in pre_order(func.body) if type(n) is Block]
            for _, func in sorted(mod.functions.items(), key=lambda item: item[0].name_hint)
            if isinstance(func, PrimFunc)]


def text_key(mod: IRModule) -> str:
    """A key of the module's text."""
    return hashlib.sha256(mod.script().encode()).hexdigest()[:32]


def coarse_key(mod: IRModule) -> str:
    """A key that structurally equal modules share: argument types and kinds of nodes."""
    parts = []
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            parts += [f"{b.dtype}{b.shape}" for b in func.buffer_map.values()]
            parts += [type(n).__name__ for n in pre_order(func.body)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:32]


def as_workload(program: Any) -> IRModule:
    """A program (IRModule with one function, PrimFunc, Schedule) as a module with "main"."""
    if isinstance(program, PrimFunc):
        return IRModule({"main": program.with_attr("global_symbol", "main")})
    if not isinstance(program, IRModule) and isinstance(getattr(program, "mod", None), IRModule):
        program = program.mod
    if not isinstance(program, IRModule):
        raise TypeError("what is tuned is an IRModule or a PrimFunc, not a "
                        f"{type(program).__name__}")
    funcs = {v.name_hint: f for v, f in program.functions.items() if isinstance(f, PrimFunc)}
    if not funcs:
        raise ValueError("the module has no PrimFunc to tune")
    if len(funcs) > 1 and "main" not in funcs:
        raise ValueError(f"the module has the functions {', '.join(sorted(funcs))}: tune one at a "
                         'time, as IRModule.from_expr(mod["name"].with_attr("global_symbol", '
                         '"main"))')
    func = funcs.get("main") or next(iter(funcs.values()))
    return IRModule({"main": func.with_attr("global_symbol", "main")})


def arguments(func: PrimFunc) -> list[tuple]:
    """(shape, dtype, whether the program writes it) of each parameter."""
    stored = {n.buffer for n in pre_order(func.body) if type(n) is BufferStore}
    stored |= {b.data for b in stored}
    out = []
    for param, info in zip(func.params, TensorInfo.from_prim_func(func)):
        buffer = func.buffer_map[param]
        out.append((info.shape, info.dtype, buffer in stored or buffer.data in stored))
    return out


def count_flops(mod: IRModule) -> float:
    """Operations of one run, 0 where they cannot be counted."""
    try:
        return float(flops.count(mod["main"]))
    except flops.Uncountable:
        return 0.0


__all__ = ["TensorInfo", "Workload", "arguments", "as_workload", "block_names", "coarse_key",
           "count_flops", "text_key"]
