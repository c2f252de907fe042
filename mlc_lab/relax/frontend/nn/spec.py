"""What the arguments of a module's methods are: `nn.spec.Tensor((1, 784), "float32")`, `int`, ...

`export_tvm` takes a dictionary: method -> argument -> spec. A method's own entry "$" says how
parameters and effects are passed: `{"param_mode": "packed", "effect_mode": "none"}`, each "plain"
(one argument each), "packed" (one tuple) or "none".
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Sequence

_MODES = ("plain", "packed", "none")


class Int:
    """A number that the model is built for any value of, such as a position; also `int`."""

    def __repr__(self) -> str:
        return "int"


class Tensor:
    """A tensor. Names in `shape` are symbolic dimensions: one name is one size in the method."""

    def __init__(self, shape: Sequence[Any], dtype: str) -> None:
        self.shape, self.dtype = list(shape), str(dtype)

    def __repr__(self) -> str:
        return f'Tensor([{", ".join(map(repr, self.shape))}], {self.dtype!r})'


class Object:
    """A value that is no tensor; `object_type` is the class that the method gets it as."""

    def __init__(self, object_type: type) -> None:
        self.object_type = object_type

    def __repr__(self) -> str:
        return f"Object({self.object_type.__name__})"


class Tuple:
    """A tuple or list of values."""

    def __init__(self, name: str, elements: Sequence[Any]) -> None:
        if not isinstance(elements, (tuple, list)):
            raise TypeError(f"the elements of spec.Tuple are a tuple or a list, not {elements!r}")
        self.name = name
        self.elements = type(elements)(_as_spec(e, f"{name}[{i}]") for i, e in enumerate(elements))

    def __repr__(self) -> str:
        return f"Tuple({list(self.elements)!r})"


def _as_spec(raw: Any, where: str) -> Any:
    if raw is int:
        return Int()
    if isinstance(raw, str) and raw == "int":
        return Int()
    if isinstance(raw, (tuple, list)):
        return Tuple(where, raw)
    if isinstance(raw, (Int, Tensor, Object, Tuple)):
        return raw
    shape, dtype = getattr(raw, "shape", None), getattr(raw, "dtype", None)
    if shape is not None and dtype is not None:  # an example: an array of any library
        return Tensor([int(d) for d in shape], str(dtype).removeprefix("torch."))
    raise TypeError(f"the spec of {where} is {raw!r}; it can be int, nn.spec.Tensor(shape, dtype), "
                    "nn.spec.Object(type), a tuple of such, or an example array")


class MethodSpec:
    """A method with the specs of its arguments."""

    def __init__(self, method: Callable, arg_names: Sequence[str], arg_specs: Sequence[Any],
                 param_mode: str = "plain", effect_mode: str = "plain") -> None:
        for mode, what in ((param_mode, "param_mode"), (effect_mode, "effect_mode")):
            if mode not in _MODES:
                raise ValueError(f"{what} is {mode!r}; it can be {', '.join(map(repr, _MODES))}")
        self.method, self.arg_names = method, list(arg_names)
        self.arg_specs = list(arg_specs)
        self.param_mode, self.effect_mode = param_mode, effect_mode

    @staticmethod
    def from_raw(raw: Any, method: Callable, name: str = "forward") -> "MethodSpec":
        """From a dictionary argument -> spec.

        Raises TypeError where its names are not the arguments of the method.
        """
        if isinstance(raw, MethodSpec):
            return raw
        modes = dict(raw.get("$", {}))
        given = {k: v for k, v in raw.items() if k != "$"}
        wanted = inspect.signature(method).parameters
        missing = [n for n, p in wanted.items() if n not in given and p.default is p.empty
                   and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        unknown = [n for n in given if n not in wanted]
        if missing or unknown:
            problem = "; ".join(
                [f"{n!r} has no spec" for n in missing] + [f"there is no {n!r}" for n in unknown])
            raise TypeError(f"{name}({', '.join(wanted)}): {problem}")
        names = [n for n in wanted if n in given]
        return MethodSpec(method, names, [_as_spec(given[n], f"{name}: {n}") for n in names],
                          **modes)

    def __repr__(self) -> str:
        args = ", ".join(f"{n}: {s!r}" for n, s in zip(self.arg_names, self.arg_specs))
        return f"MethodSpec({args})"


class ModuleSpec:
    """The methods of a module that are exported."""

    def __init__(self, module: Any, method_names: Sequence[str],
                 method_specs: Sequence[MethodSpec]) -> None:
        self.module = module
        self.method_names, self.method_specs = list(method_names), list(method_specs)

    @staticmethod
    def from_raw(raw: Any, module: Any) -> "ModuleSpec":
        """From a dictionary method -> argument -> spec."""
        if isinstance(raw, ModuleSpec):
            return raw
        if not isinstance(raw, dict) or not raw:
            raise TypeError("a spec is a dictionary: {\"forward\": {\"x\": nn.spec.Tensor((1, 784),"
                            f" \"float32\")}}}}; this is {raw!r}")
        for name in raw:
            if not callable(getattr(module, name, None)):
                raise AttributeError(f"{type(module).__name__} has no method {name!r}")
        return ModuleSpec(module, list(raw), [
            MethodSpec.from_raw(methods, getattr(module, name), name)
            for name, methods in raw.items()])

    def __repr__(self) -> str:
        return "\n".join(f"{n}: {s!r}" for n, s in zip(self.method_names, self.method_specs))


__all__ = ["Int", "MethodSpec", "ModuleSpec", "Object", "Tensor", "Tuple"]
