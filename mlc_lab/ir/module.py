"""IRModule: the unit that is compiled, a set of functions by global name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping

from ..above import above
from .containers import is_sequence
from .node import Node, ignored, node, plain, script_or_fields

if TYPE_CHECKING:
    from typing_extensions import Self


@node
class GlobalVar(Node):
    """The name of a function of a module.

    `struct_info_` is what Relax knows of the function called (None where it knows nothing yet). It
    is the one field that is set after construction, since a function may call itself.
    """

    name_hint: str = plain()
    struct_info_: Any = ignored()
    __hash__ = object.__hash__

    def __init__(self, name_hint: str, struct_info: Any = None) -> None:
        self._init(name_hint, struct_info)

    @property
    def struct_info(self) -> Any:
        """What is known of the function. Raises ValueError where nothing is."""
        if self.struct_info_ is None:
            raise ValueError(f"the struct info of function {self.name_hint!r} is not known yet: it "
                             "is set when the function is added to a BlockBuilder or parsed")
        return self.struct_info_

    def set_struct_info(self, struct_info: Any) -> None:
        """Record what is known of the function."""
        type(self).__dict__["struct_info_"].__set__(self, struct_info)

    def __call__(self, *args: object) -> Any:
        """A call of the function, as an expression of the language of the arguments."""
        return above("call of a function")(self, args)

    @property
    def name(self) -> str:
        """TVM's other name for `name_hint`."""
        return self.name_hint


@node
class BaseFunc(Node):
    """Base of the functions a module can hold."""

    if TYPE_CHECKING:
        attrs: Mapping[str, Any] | None = plain()

    def with_attr(self, key: str | Mapping[str, Any], value: Any = None) -> Self:
        """A copy with attribute `key` set (or all of a dict)."""
        changes = key if isinstance(key, Mapping) else {key: value}
        return self.replace(attrs={**(self.attrs or {}), **normalize_attrs(changes)})

    with_attrs = with_attr  # TVM's name where there are several

    def without_attr(self, key: str) -> Self:
        """A copy without attribute `key`."""
        return self.replace(attrs={k: v for k, v in (self.attrs or {}).items() if k != key})

    def script(self, **options: object) -> str:
        """TVMScript of the function."""
        return above("script")(self, **options)

    def show(self, *args: object, **options: object) -> None:
        """Print the script highlighted."""
        above("show")(self, *args, **options)


#: turns Python values of attributes into IR constants; `tir` sets it
attr_converter: Any = None


def normalize_attrs(attrs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Attributes with Python numbers as IR constants, as TVM stores them."""
    if not attrs:
        return {}
    if attr_converter is None:
        return dict(attrs)
    return {k: attr_converter(v) for k, v in attrs.items()}


class IRModule:
    """A set of functions, each under a GlobalVar.

    The functions are immutable; the module itself is a thin dict that `update_func` may change,
    as in TVM. Whoever keeps a module (a Schedule, a recording) keeps its own copy.
    """

    __slots__ = ("functions", "attrs", "global_infos", "_by_name", "__weakref__")

    def __init__(self, functions: Mapping[Any, BaseFunc] | None = None,
                 attrs: Mapping[str, Any] | None = None,
                 global_infos: Mapping[str, Any] | None = None) -> None:
        self.functions: dict[GlobalVar, Any] = {}  # of BaseFunc, of whatever language
        self._by_name: dict[str, GlobalVar] = {}
        self.attrs = dict(attrs or {})
        self.global_infos = dict(global_infos or {})
        for var, func in (functions or {}).items():
            self.update_func(GlobalVar(var) if isinstance(var, str) else var, func)

    @staticmethod
    def from_expr(func: BaseFunc) -> "IRModule":
        """A module of one function, named by its `global_symbol` (or "main")."""
        name = (func.attrs or {}).get("global_symbol")
        return IRModule({str(name) if name is not None else "main": func})

    def __getitem__(self, var: Any) -> Any:
        """The function of a GlobalVar or a name."""
        if isinstance(var, str):
            var = self.get_global_var(var)
        return self.functions[var]

    def __setitem__(self, var: str | GlobalVar, func: BaseFunc) -> None:
        if isinstance(var, str):
            var = self._by_name.get(var) or GlobalVar(var)
        self.update_func(var, func)

    def __delitem__(self, var: str | GlobalVar) -> None:
        if isinstance(var, str):
            var = self.get_global_var(var)
        del self.functions[var]
        del self._by_name[var.name_hint]

    def __contains__(self, var: object) -> bool:
        return var in self._by_name if isinstance(var, str) else var in self.functions

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def functions_items(self) -> Any:
        """(GlobalVar, function) pairs."""
        return self.functions.items()

    def get_global_var(self, name: str) -> GlobalVar:
        """The GlobalVar called `name`. Raises ValueError with the names there are."""
        try:
            return self._by_name[name]
        except KeyError:
            have = ", ".join(repr(n) for n in self._by_name) or "none"
            raise ValueError(f"the module has no function {name!r}; it has: {have}") from None

    def get_global_vars(self) -> list[GlobalVar]:
        """All GlobalVars in order of definition."""
        return list(self.functions)

    def update_func(self, var: GlobalVar, func: BaseFunc) -> None:
        """Set the function of `var`, adding it if it is new."""
        if isinstance(var, str):
            var = self._by_name.get(var) or GlobalVar(var)
        known = self._by_name.get(var.name_hint)
        if known is not None and known is not var:
            func, var = func, known
        self.functions[var] = func
        self._by_name[var.name_hint] = var

    def update(self, other: "IRModule") -> None:
        """Take over every function of `other`."""
        for var, func in other.functions.items():
            self.update_func(var, func)

    def copy(self) -> "IRModule":
        """A module of its own with the same (shared, immutable) functions."""
        new = IRModule.__new__(IRModule)
        new.functions = dict(self.functions)
        new._by_name = dict(self._by_name)
        new.attrs = dict(self.attrs)
        new.global_infos = dict(self.global_infos)
        return new

    clone = copy

    def with_attr(self, key: str, value: Any) -> "IRModule":
        """A copy with a module attribute set."""
        new = self.copy()
        new.attrs[key] = value
        return new

    def with_attrs(self, attrs: Mapping[str, Any]) -> "IRModule":
        """A copy with several module attributes set."""
        new = self.copy()
        new.attrs.update(attrs)
        return new

    def without_attr(self, key: str) -> "IRModule":
        """A copy without a module attribute."""
        new = self.copy()
        new.attrs.pop(key, None)
        return new

    def update_global_info(self, name: str, global_info: object) -> None:
        """Set what the module knows under a name: a list of GlobalInfo."""
        infos: Any = global_info
        self.global_infos[name] = list(infos) if is_sequence(infos) else [infos]

    def get_attr(self, key: str) -> Any:
        """A module attribute, None where there is none."""
        return self.attrs.get(key)

    def script(self, **options: object) -> str:
        """TVMScript of the module."""
        return above("script")(self, **options)

    def show(self, *args: object, **options: object) -> None:
        """Print the script highlighted: HTML in a notebook, colours in a terminal."""
        above("show")(self, *args, **options)

    def graph(self, name: str | None = None) -> Any:
        """The computation graph of a Relax function, by default of "main": a view in a notebook,
        with `.svg(path)` and `.html(path)`. Raises GraphError where no function is meant."""
        return above("graph")(self, name)

    def __repr__(self) -> str:
        return script_or_fields(self)

    def fallback_repr(self) -> str:
        """The module when no printer is there."""
        return f"IRModule({list(self._by_name)})"

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very module."""
        return self is other
