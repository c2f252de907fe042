"""Modules: what has parameters and other modules, and methods that become functions."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping

from ....above import above
from . import tensor
from .subroutine import SubroutineMixin
from .tensor import Parameter

if TYPE_CHECKING:
    from ...block_builder import BlockBuilder


def get_default_dtype() -> str:
    """The type of a parameter that names none: float32, unless it was set."""
    return tensor.default_dtype()


def set_default_dtype(dtype: str) -> None:
    """Parameters that name no type are of this one from now on."""
    tensor._DEFAULT[-1] = dtype


class Effect:
    """Something a function changes besides its result, such as what was printed.

    It enters a method as values (`create`), is replaced by others as the method goes on, and leaves
    as part of the result (`finalize`). `emit_init` writes its values before the first call.
    """

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Any]:
        """Write the first values."""
        raise NotImplementedError(f"{type(self).__name__}.emit_init")

    def create(self, name_hint: str) -> list[Any]:
        """Variables that stand for the values at the start of a method."""
        raise NotImplementedError(f"{type(self).__name__}.create")

    def set_state(self, state_vars: list[Any]) -> None:
        """Use these variables from now on."""
        raise NotImplementedError(f"{type(self).__name__}.set_state")

    def finalize(self) -> list[Any]:
        """The values at the end of a method; nothing is kept."""
        raise NotImplementedError(f"{type(self).__name__}.finalize")

    def to(self, dtype: str | None = None) -> None:
        """Change the type of what it holds, where it holds any."""


class Module(SubroutineMixin):
    """A part of a model. Its attributes may be Parameters, Modules and Effects."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """What `forward` makes of the arguments."""
        forward = getattr(self, "forward", None)
        if forward is None:
            raise NotImplementedError(f"{type(self).__name__} has no method `forward`")
        return forward(*args, **kwargs)

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Every parameter with its name, such as "fc1.weight", in the order of the attributes."""
        yield from _members(self, prefix, lambda x: isinstance(x, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """Every parameter."""
        for _, parameter in self.named_parameters():
            yield parameter

    def state_dict(self, *, prefix: str = "",
                   destination: dict[str, Parameter] | None = None) -> dict[str, Parameter]:
        """Every parameter by its name."""
        out = OrderedDict() if destination is None else destination
        out.update(self.named_parameters(prefix))
        return out

    def load_state_dict(self, state_dict: Mapping[str, Any],
                        strict: bool = True) -> tuple[list[str], list[str]]:
        """Give the parameters their numbers: name -> Parameter, tensor or array.

        Gives (names that were not there, names that are no parameter); where `strict`, raises
        KeyError if there are any.
        """
        mine = self.state_dict()
        missing = [n for n in mine if n not in state_dict]
        unknown = [n for n in state_dict if n not in mine]
        if strict and (missing or unknown):
            raise KeyError(f"the numbers do not fit {type(self).__name__}: missing {missing}, "
                           f"unknown {unknown}")
        for name, parameter in mine.items():
            if name not in state_dict:
                continue
            value = state_dict[name]
            value = value.data if isinstance(value, Parameter) else value
            if value is None:
                raise ValueError(f"{name} is a parameter without numbers")
            try:
                parameter.data = value
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return missing, unknown

    def to(self, dtype: str | None = None) -> None:
        """Change the type of all parameters (and of what else holds numbers)."""
        for value in vars(self).values():
            _to(value, dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype

    def export_tvm(self, spec: Any, debug: bool = False, allow_extern: bool = False) -> Any:
        """The module as an IRModule, and its parameters as a list of (name, Parameter).

        `spec` says which methods, and what their arguments are (see `spec.py`). With `debug`,
        functions take and give what `nn.op.print_` needs, and `_initialize_effect` makes the first.
        With `allow_extern` a third value lists external modules: there are none here.
        """
        from .spec import ModuleSpec

        mod, params = above("exporter of nn")(debug=debug).build(ModuleSpec.from_raw(spec, self))
        return (mod, params, []) if allow_extern else (mod, params)

    def jit(self, spec: Any, device: object = "cpu", pipeline: object = "default",
            out_format: str = "torch", debug: bool = False) -> Any:
        """The module, built: an object with its methods, which take and give torch tensors.

        `pipeline` is a pass or a name for `relax.get_pipeline`; `out_format` "torch" or "numpy".
        Raises ValueError where a parameter has no numbers.
        """
        from .running import jit

        return jit(self, spec, device, pipeline, out_format, debug)


def _to(value: Any, dtype: str | None) -> None:
    if isinstance(value, (Module, Parameter, Effect)):
        value.to(dtype)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _to(item, dtype)
    elif isinstance(value, dict):
        for item in value.values():
            _to(item, dtype)


def _members(root: Any, prefix: str, wanted: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """What a module has, and the modules in it, by dotted names.

    Plain lists and dictionaries are looked through too; the containers' own attribute leaves no
    trace in names ("layers.0.weight").
    """
    if wanted(root):
        yield prefix, root
        return
    if isinstance(root, _Container):
        items: Iterable = root.named_items()
    elif isinstance(root, Module):
        items = vars(root).items()
    elif isinstance(root, (list, tuple)):
        items = ((str(i), x) for i, x in enumerate(root))
    elif isinstance(root, dict):
        items = root.items()
    else:
        return
    for name, item in items:
        yield from _members(item, f"{prefix}.{name}" if prefix else str(name), wanted)


# ------------------------------------------------------------------------------- containers


class _Container(Module):
    """A module that is a list or a dictionary of others, or of parameters."""

    item_type: type = Module

    def __init__(self, items: Any) -> None:
        self._items = items

    def _checked(self, item: Any) -> Any:
        if not isinstance(item, self.item_type):
            raise TypeError(f"{type(self).__name__} holds {self.item_type.__name__}s, "
                            f"not {item!r}")
        return item

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __setitem__(self, key: Any, item: Any) -> None:
        self._items[key] = self._checked(item)

    def named_items(self) -> Iterator[tuple[str, Any]]:
        """What it holds, by name or number."""
        raise NotImplementedError

    def to(self, dtype: str | None = None) -> None:
        for _, item in self.named_items():
            _to(item, dtype)


class _List(_Container):
    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__([self._checked(x) for x in items])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def append(self, item: Any) -> None:
        """Add at the end."""
        self._items.append(self._checked(item))

    def named_items(self) -> Iterator[tuple[str, Any]]:
        return ((str(i), x) for i, x in enumerate(self._items))


class _Dict(_Container):
    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        super().__init__(OrderedDict((k, self._checked(v)) for k, v in (items or {}).items()))

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> Any:
        """The names."""
        return self._items.keys()

    def values(self) -> Any:
        """What they name."""
        return self._items.values()

    def items(self) -> Any:
        """(name, item) pairs."""
        return self._items.items()

    def get(self, key: str, default: object = None) -> Any:
        """The item of that name, or `default`."""
        return self._items.get(key, default)

    def update(self, items: Mapping[str, Any]) -> None:
        """Add or replace items."""
        for key, item in items.items():
            self[key] = item

    def pop(self, key: str) -> Any:
        """Take an item out."""
        return self._items.pop(key)

    def clear(self) -> None:
        """Take all items out."""
        self._items.clear()

    def named_items(self) -> Iterator[tuple[str, Any]]:
        return iter(self._items.items())


class ModuleList(_List):
    """A list of modules; `forward` runs one after the other."""

    def forward(self, x: Any) -> Any:
        """What the last makes of what the ones before it made of `x`."""
        for module in self:
            x = module(x)
        return x


class Sequential(ModuleList):
    """`ModuleList` whose modules are given one by one: `Sequential(Linear(2, 3), ReLU())`."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)


class ModuleDict(_Dict):
    """Modules by name."""


class ParameterList(_List):
    """A list of parameters."""

    item_type = Parameter


class ParameterDict(_Dict):
    """Parameters by name."""

    item_type = Parameter


__all__ = ["Effect", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList",
           "Sequential", "get_default_dtype", "set_default_dtype"]
