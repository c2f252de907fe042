"""PrimFunc: a function over buffers, and TensorIntrin: a pair of them for tensorize."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Mapping, Sequence

from ..above import above
from ..ir import module as ir_module
from ..ir.containers import is_sequence
from ..ir.module import BaseFunc, normalize_attrs
from ..ir.node import Node, defines, node, plain
from .buffer import Buffer
from .expr import IntImm, Var
from .stmt import Block, BlockRealize, Stmt, annotation_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, overload

    from ..arith.analyzer import Analyzer
    from .expr import PrimExpr, Range

ir_module.attr_converter = annotation_value


@node
class PrimFunc(BaseFunc):
    """A tensor program: parameters, the buffers some of them stand for, and a body.

    `params` are Vars; `buffer_map` maps handle params to Buffers; `attrs` holds `global_symbol`,
    `tir.noalias` and the like; `ret_type` is a dtype string or None.
    """

    params: tuple[Var, ...] = defines()
    buffer_map: Mapping[Var, Buffer] = defines()
    attrs: Mapping[str, Any] = plain()
    ret_type: Any = plain()
    body: Stmt

    def __init__(self, params: Sequence[Any], body: Stmt, ret_type: object = None,
                 buffer_map: Mapping[Var, Buffer] | None = None,
                 attrs: Mapping[str, Any] | None = None, span: object = None) -> None:
        buffers = dict(buffer_map or {})
        variables: list[Var] = []
        for param in params:
            if not isinstance(param, (Var, Buffer)) and hasattr(param, "asobject"):
                param = param.asobject()  # a buffer of the builder
            if isinstance(param, Buffer):
                var = Var(f"{param.name}_handle", "handle")
                buffers[var] = param
                param = var
            elif not isinstance(param, Var):
                raise TypeError("the parameters of a PrimFunc are variables and buffers, and "
                                f"{param!r} is a {type(param).__name__}")
            variables.append(param)
        self._init(tuple(variables), buffers, normalize_attrs(attrs), ret_type, body)

    @property
    def struct_info(self) -> Any:
        """What Relax knows of it: a tensor for each buffer, a number for each other parameter, and
        whether it writes memory of its caller's."""
        return above("struct info of a PrimFunc")(self)

    @property
    def __name__(self) -> str:
        """The name under which it is known outside; "main" where it has none."""
        return str(self.attrs.get("global_symbol", "main"))

    def with_body(self, body: Stmt) -> "PrimFunc":
        """The same function around another body."""
        return self if body is self.body else PrimFunc.from_fields(
            self.params, self.buffer_map, self.attrs, self.ret_type, body)

    def specialize(self, param_map: Mapping[Var, Any]) -> "PrimFunc":
        """The function with symbolic parameters fixed.

        `param_map` maps parameter Vars (or shape Vars) to integers or expressions, or handle
        parameters to Buffers whose concrete shapes fix the symbolic ones.
        """
        return above("specialize")(self, param_map)

    @property
    def buffers(self) -> list[Buffer]:
        """The buffers of the parameters, in order."""
        return [self.buffer_map[p] for p in self.params if p in self.buffer_map]

    @property
    def root(self) -> Block:
        """The block that is the body of a function of blocks."""
        assert type(self.body) is BlockRealize, "a function of blocks has one around all"
        return self.body.block

    def outline(self) -> tuple[tuple[Any, ...], ...]:
        """What structurally equal functions share and is quickly told: dtypes and extents."""
        return tuple((p.dtype,) if p not in self.buffer_map else (
            self.buffer_map[p].dtype,
            *(d.value if type(d) is IntImm else None for d in self.buffer_map[p].shape))
            for p in self.params)


class TensorIntrin:
    """A tensor intrinsic: `desc` says what it computes, `impl` how the machine does it."""

    _registry: ClassVar[dict[str, "TensorIntrin"]] = {}

    def __init__(self, desc: PrimFunc, impl: PrimFunc) -> None:
        self.desc = desc
        self.impl = impl

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> None:
        """Make the pair known as `name`. Raises ValueError if taken and not `override`."""
        if name in TensorIntrin._registry and not override:
            raise ValueError(f"a tensor intrinsic {name!r} is registered already; "
                             "pass override=True to replace it")
        if len(desc.params) != len(impl.params):
            raise ValueError(f"desc of {name!r} has {len(desc.params)} parameters and impl "
                             f"{len(impl.params)}: they must be the same")
        TensorIntrin._registry[name] = TensorIntrin(desc, impl)

    @staticmethod
    def registered() -> Mapping[str, "TensorIntrin"]:
        """The intrinsics that are known, by name."""
        return TensorIntrin._registry

    if TYPE_CHECKING:
        @overload
        @staticmethod
        def get(name: str, allow_missing: Literal[False] = False) -> "TensorIntrin": ...
        @overload
        @staticmethod
        def get(name: str, allow_missing: bool) -> "TensorIntrin | None": ...

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> "TensorIntrin | None":
        """The intrinsic of that name. Raises ValueError with the known names."""
        found = TensorIntrin._registry.get(name)
        if found is None and not allow_missing:
            known = ", ".join(sorted(TensorIntrin._registry)) or "none"
            raise ValueError(f"no tensor intrinsic {name!r} is registered; known: {known}")
        return found


class IndexMap:
    """A map from indices to indices: `lambda i, j: [i // 4, j, i % 4]`.

    `initial_indices` are Vars, `final_indices` expressions over them. A final index may be the
    marker `IndexMap.AXIS_SEPARATOR` when made with `from_func_with_separators`.
    """

    AXIS_SEPARATOR = "axis_separator"

    def __init__(self, initial_indices: Sequence[Var], final_indices: Sequence[Any],
                 inverse_index_map: IndexMap | Callable[..., Any] | None = None) -> None:
        from .expr import const_index

        self.initial_indices = tuple(initial_indices)
        self.final_indices = tuple(const_index(e) for e in final_indices)
        if inverse_index_map is not None and not isinstance(inverse_index_map, IndexMap):
            inverse_index_map = IndexMap.from_func(
                inverse_index_map, len(self.final_indices),
                index_dtype=self.initial_indices[0].dtype if initial_indices else "int32")
        self.inverse_index_map = inverse_index_map

    @staticmethod
    def from_func(mapping_function: Any, ndim: int | None = None,
                  inverse_index_map: IndexMap | Callable[..., Any] | None = None, *,
                  index_dtype: str = "int32") -> "IndexMap":
        """The map of a Python function; `ndim` is needed where it takes *args."""
        return IndexMap.from_func_with_separators(
            mapping_function, ndim, inverse_index_map, index_dtype=index_dtype)[0]

    @staticmethod
    def from_func_with_separators(mapping_function: Callable[..., Any], ndim: int | None = None,
                                  inverse_index_map: IndexMap | Callable[..., Any] | None = None, *,
                                  index_dtype: str = "int32") -> tuple["IndexMap", list[int]]:
        """The map and the places of axis separators in its result."""
        import inspect

        names: list[str] = []
        by_name: list[str] = []  # those after *args: the last indices
        params = inspect.signature(mapping_function).parameters.values()
        for param in params:
            if param.kind == param.VAR_POSITIONAL:
                if ndim is None:
                    raise ValueError("a mapping function with *args needs ndim=")
                names += [f"{param.name}_{i}" for i in range(ndim - len(params) + 1)]
            elif param.kind == param.KEYWORD_ONLY:
                by_name.append(param.name)
            else:
                names.append(param.name)
        initial = [Var(name, index_dtype) for name in [*names, *by_name]]
        result = mapping_function(*initial[:len(names)],
                                  **dict(zip(by_name, initial[len(names):])))
        final: list[Any] = []
        separators: list[int] = []
        for item in result if is_sequence(result) else [result]:
            if isinstance(item, str) and item == IndexMap.AXIS_SEPARATOR:
                separators.append(len(final))
            else:
                final.append(item)
        return IndexMap(initial, final, inverse_index_map), separators

    def structural_parts(self) -> tuple[Any, Any]:
        """What it binds and what it holds, for structural equality."""
        return self.initial_indices, (self.final_indices, self.inverse_index_map)

    def inverse(self, shape: Sequence[Any], analyzer: Analyzer | None = None) -> IndexMap:
        """The map back. Raises ValueError if the map is not bijective on a box of `shape`."""
        return above("index maps").inverse(self, shape, analyzer)

    def non_surjective_inverse(self, shape: Sequence[Any], analyzer: Analyzer | None = None
                               ) -> tuple[IndexMap, PrimExpr]:
        """The map back, and the condition on final indices that come from nowhere."""
        return above("index maps").non_surjective_inverse(self, shape, analyzer)

    def map_shape(self, shape: Sequence[Any], analyzer: Analyzer | None = None) -> list[PrimExpr]:
        """The shape of a buffer of `shape` after the map."""
        return above("index maps").map_shape(self, shape, analyzer)

    def map_ranges(self, ranges: Sequence[Any], analyzer: Analyzer | None = None) -> list[Range]:
        """The ranges of the final indices as the initial ones run over `ranges`."""
        return above("index maps").map_ranges(self, ranges, analyzer)

    def is_bijective(self, ranges: Sequence[Any], analyzer: Analyzer | None = None) -> bool:
        """Whether the map is one to one onto the box of its final ranges."""
        return above("index maps").is_bijective(self, ranges, analyzer)

    def is_equivalent_to(self, other_map: IndexMap) -> bool:
        """Whether two maps can be proved to give the same final indices for all initial ones."""
        return above("index maps").is_equivalent_to(self, other_map)

    def map_ndarray(self, arr_src: Any) -> Any:
        """A tensor laid out anew: 0 where no element comes to stand."""
        return above("a tensor of an array")(
            above("index maps").map_ndarray(self, arr_src.numpy()))

    def map_indices(self, indices: Sequence[Any]) -> list[Any]:
        """The final indices for given initial ones."""
        from .expr import const_index

        substitute = above("substitute")
        table = dict(zip(self.initial_indices, map(const_index, indices)))
        return [substitute(e, table) for e in self.final_indices]

    def __repr__(self) -> str:
        left = ", ".join(v.name for v in self.initial_indices)
        return f"lambda {left}: ({', '.join(map(repr, self.final_indices))},)"


__all__ = ["IndexMap", "Node", "PrimFunc", "TensorIntrin"]
