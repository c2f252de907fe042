"""`Module.jit`: a module that was built, called as it was written."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ....runtime import Device, NDArray, ShapeTuple, array, device
from ....target import Target
from ...building import build
from ...pipeline import get_pipeline
from ...vm import VirtualMachine
from . import spec as S


def jit(module: Any, raw: Any, where: Any, pipeline: Any, out_format: str, debug: bool) -> Any:
    """See `Module.jit`."""
    if out_format not in ("torch", "numpy"):
        raise ValueError(f"out_format is {out_format!r}; it can be 'torch' or 'numpy'")
    spec = S.ModuleSpec.from_raw(raw, module)
    missing = [name for name, p in module.named_parameters() if p.data is None]
    if missing:
        raise ValueError("these parameters have no numbers yet; give them with load_state_dict or "
                         f"`parameter.data = ...`: {', '.join(missing)}")
    where = where if isinstance(where, Device) else device(where)
    mod, params = module.export_tvm(spec, debug=debug)
    passes = get_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    executable = build(mod, Target("llvm"), relax_pipeline=passes)
    machine = VirtualMachine(executable, where)
    effects = machine["_initialize_effect"]() if debug else None
    return Jitted(spec, machine, [p.data for _, p in params], effects, out_format)


class Jitted:
    """The methods of a module, each a function of tensors; calling it calls `forward`."""

    def __init__(self, spec: S.ModuleSpec, machine: VirtualMachine, params: list[NDArray],
                 effects: Any, out_format: str) -> None:
        self.spec, self.vm, self._params = spec, machine, params
        self._effects = list(effects) if effects is not None else []
        self._format = out_format

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A method."""
        if name not in self.spec.method_names:
            raise KeyError(f"no method {name!r} was exported; there are: "
                           f"{', '.join(self.spec.method_names)}")
        method = self.spec.method_specs[self.spec.method_names.index(name)]
        return lambda *args: self._call(name, method, args)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self.spec.method_names:
            raise AttributeError(name)
        return self[name]

    def __call__(self, *args: Any) -> Any:
        """`forward`."""
        return self["forward"](*args)

    def _call(self, name: str, method: S.MethodSpec, args: tuple) -> Any:
        if len(args) != len(method.arg_specs):
            raise TypeError(f"{name} takes {len(method.arg_specs)} arguments "
                            f"({', '.join(method.arg_names)}), not {len(args)}")
        values = [_given(a, s, n) for a, s, n in zip(args, method.arg_specs, method.arg_names)]
        modes = {"plain": lambda items: items, "packed": lambda items: [items],
                 "none": lambda items: []}
        values += modes[method.effect_mode](self._effects) if self._effects else []
        values += modes[method.param_mode](self._params)
        result = self.vm[name](*values)
        if self._effects and method.effect_mode != "none":
            result, effects = result
            self._effects = list(effects)
        return self._wanted(result)

    def _wanted(self, value: Any) -> Any:
        """A result as the user asked for it."""
        if not hasattr(value, "dtype"):
            return tuple(map(self._wanted, value)) if hasattr(value, "__iter__") else value
        if self._format == "numpy":
            return np.from_dlpack(value)
        import torch

        return torch.from_dlpack(value)


def _given(value: Any, what: Any, name: str) -> Any:
    """An argument as the machine takes it."""
    if isinstance(what, S.Int):
        return ShapeTuple((int(value),))
    if isinstance(what, S.Tuple):
        return tuple(_given(v, s, name) for v, s in zip(value, what.elements))
    if isinstance(what, S.Tensor) and not hasattr(value, "__dlpack__"):
        return array(np.asarray(value, what.dtype))
    return value


__all__ = ["Jitted", "jit"]
