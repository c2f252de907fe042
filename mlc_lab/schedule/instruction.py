"""Primitives as instructions: how one function gives a method, a line of trace, JSON and replay.

A primitive is a function in `primitive/`, decorated with `@primitive("Split")`. Its first argument
is the ScheduleState; references arrive resolved (StmtSRefs and ints). The decorator registers an
`InstructionKind` made from the function's signature, from which everything else follows.
"""

from __future__ import annotations

import inspect
import math
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..above import above
from ..ir.containers import is_dict, is_sequence
from ..tir.expr import FloatImm, IntImm, PrimExpr, StringImm, Var
from ..tir.function import IndexMap
from .arguments import checks_of
from .methods import add_method

if TYPE_CHECKING:
    from collections.abc import Iterable
    import random
    from typing import Concatenate, Literal, ParamSpec, TypeVar, overload

    from .schedule import Schedule
    from .state import ScheduleState
    from .state import StmtSRef

    _P = ParamSpec("_P")
    _R = TypeVar("_R")
    #: (schedule, bound arguments): may change them
    Normalize = Callable[["Schedule", dict[str, Any]], None]

    class _Resolved(StmtSRef):
        """To a checker a random variable is the reference that it resolves to: then the signature
        of a primitive is that of its method."""

        def __init__(self) -> None: ...
else:
    _Resolved = object


class BlockRV(_Resolved):
    """A name for a block in a schedule; it follows the block through rewrites."""

    __slots__ = ("__weakref__",)

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very variable."""
        return self is other

    def __repr__(self) -> str:
        return f"BlockRV(0x{id(self) & 0xFFFFFF:06x})"


class LoopRV(_Resolved):
    """A name for a loop in a schedule; it follows the loop through rewrites."""

    __slots__ = ("__weakref__",)

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very variable."""
        return self is other

    def __repr__(self) -> str:
        return f"LoopRV(0x{id(self) & 0xFFFFFF:06x})"


class RangesMap(IndexMap):
    """An IndexMap whose final indices are (begin, end) pairs, written as such in a trace."""


#: a sampled integer is a TensorIR variable, so one can compute with it
ExprRV = Var


class InstructionKind:
    """What there is to know about one primitive.

    `name` is TVM's name of the instruction ("Split"), `method` the method of Schedule ("split"),
    `pure` whether it leaves the program alone, `sampling` whether it takes a decision, `moves`
    whether blocks or memory get another place, so that what iterations of a loop share may change,
    `binds` whether loops get an axis of threads.
    """

    registry: dict[str, "InstructionKind"] = {}
    by_method: dict[str, "InstructionKind"] = {}

    def __init__(self, name: str, fn: Callable[..., Any], pure: bool, sampling: bool,
                 normalize: Normalize | None, positional: bool, traced: bool, moves: bool,
                 binds: bool) -> None:
        self.name, self.fn, self.method = name, fn, fn.__name__
        self.pure, self.sampling, self.normalize, self.moves = pure, sampling, normalize, moves
        self.positional, self.traced, self.binds = positional, traced, binds
        params = list(inspect.signature(fn).parameters.values())
        hidden = 2 if sampling else 1  # state, and the random generator of sampling
        self.params = params[hidden:]
        self.checks = checks_of(self.params)
        self.signature = inspect.Signature(
            [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *self.params])
        self._call_signature = inspect.Signature(self.params)
        #: whether it gives a list of results, however many
        self.many = "list[" in str(inspect.signature(fn).return_annotation)
        packed = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in self.params)
        #: how many arguments may be given by place; None where some are packed
        self._places = None if packed else sum(p.kind is not p.KEYWORD_ONLY for p in self.params)
        #: names and defaults, which `Parameter` computes each time it is asked
        self._defaults = [(p.name, p.default) for p in self.params]
        InstructionKind.registry[name] = self
        InstructionKind.by_method[self.method] = self

    @staticmethod
    def get(name: str) -> "InstructionKind":
        """The kind that TVM calls `name`, such as "Split". ValueError where there is none."""
        found = InstructionKind.registry.get(name)
        if found is None:
            near = get_close_matches(name, InstructionKind.registry, 1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"there is no instruction named {name!r}{hint}")
        return found

    @property
    def is_pure(self) -> bool:
        """TVM's name of `pure`."""
        return self.pure

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very kind."""
        return self is other

    @cached_property
    def doc(self) -> str:
        """The docstring of the primitive."""
        return inspect.getdoc(self.fn) or ""

    @cached_property
    def meaning(self) -> str:
        """The first sentence of the docstring: what the primitive does."""
        return self.doc.split("\n\n")[0].replace("\n", " ")

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by parameter name, defaults filled in."""
        found = self._bound(args, kwargs)
        if found is not None:
            return found
        older = above("parameters of schedules").get(self.method, {})
        if older and not kwargs.keys().isdisjoint(older):
            return self.bind(args, {older.get(name, name): v for name, v in kwargs.items()})
        try:
            bound = self._call_signature.bind(*args, **kwargs)
        except TypeError as err:
            raise TypeError(f"{self.method}(): {err}; it is called as "
                            f"sch.{self.method}{self._call_signature}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        """The same, quickly; None where arguments are packed (*args), and where they do not fit."""
        given, named = len(args), 0
        if self._places is None or given > self._places:
            return None
        out: dict[str, Any] = {}
        for number, (name, default) in enumerate(self._defaults):
            if number < given:
                out[name] = args[number]
            elif name in kwargs:
                out[name] = kwargs[name]
                named += 1
            elif default is not inspect.Parameter.empty:
                out[name] = default
            else:
                return None
        return out if named == len(kwargs) else None

    def arguments(self, inputs: list[Any], attrs: list[Any]) -> dict[str, Any]:
        """Arguments by name where they are given as TVM's instructions keep them: what it acts on,
        then the rest. A list that is acted on, such as factors, stands in the inputs item by item,
        and what is left out at the end has its default. TypeError where they do not fit."""
        acted = [p for p in self.params if _is_acted_on(self.name, p)]
        rest = [p for p in self.params
                if p not in acted and not (p.name == "decision" and self.sampling)]
        names = [p.name for p in acted]
        listed = bool(acted) and _is_list(acted[-1])
        if len(inputs) > len(acted) and not listed or len(attrs) > len(rest):
            raise TypeError(
                f"{self.name} takes inputs ({', '.join(names)}) and attrs "
                f"({', '.join(p.name for p in rest)}), got {len(inputs)} and {len(attrs)}")
        given: dict[str, Any] = dict(zip((p.name for p in rest), attrs))
        if listed:
            fixed = len(acted) - 1
            given.update(zip(names, inputs[:fixed]))
            given[names[-1]] = inputs[fixed:]
        else:
            given.update(zip(names, inputs))
        missing = [p.name for p in self.params if p.name not in given and p.default is p.empty
                   and p.kind is not p.VAR_POSITIONAL]
        if missing:
            raise TypeError(f"{self.name} lacks {', '.join(missing)}")
        positional, keyword = self.call(
            {p.name: given.get(p.name, () if p.kind == p.VAR_POSITIONAL else p.default)
             for p in self.params})
        return self.bind(positional, keyword)

    def call(self, args: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Bound arguments as positional and keyword arguments of the function."""
        if self._places is not None:
            return [], {name: args[name] for name, _ in self._defaults}
        positional: list[Any] = []
        keyword: dict[str, Any] = {}
        for param in self.params:
            value = args[param.name]
            if param.kind == param.VAR_POSITIONAL:
                positional += list(value)
            else:
                keyword[param.name] = value
        return positional, keyword

    def __repr__(self) -> str:
        return f"InstructionKind({self.name})"


#: arguments that TVM counts among what an instruction acts on, whatever their type
_INPUTS = {("Annotate", "ann_val"), ("Blockize", "target")}


def _is_acted_on(name: str, param: inspect.Parameter) -> bool:
    annotation = str(param.annotation)
    return "StmtSRef" in annotation or "PrimExpr" in annotation or (name, param.name) in _INPUTS


def _is_list(param: inspect.Parameter) -> bool:
    return param.kind is param.VAR_POSITIONAL or str(param.annotation).startswith("Sequence[")


if TYPE_CHECKING:
    @overload
    def primitive(name: str, *, pure: bool = False, sampling: Literal[False] = False,
                  normalize: Normalize | None = None,
                  positional: bool = False, traced: bool = True, moves: bool = False,
                  binds: bool = False
                  ) -> Callable[[Callable[Concatenate[ScheduleState, _P], _R]],
                                Callable[Concatenate[Schedule, _P], _R]]: ...
    @overload
    def primitive(name: str, *, pure: bool = False, sampling: Literal[True],
                  normalize: Normalize | None = None,
                  positional: bool = False, traced: bool = True, moves: bool = False,
                  binds: bool = False
                  ) -> Callable[[Callable[Concatenate[ScheduleState, random.Random, _P],
                                          tuple[_R, Any]]],
                                Callable[Concatenate[Schedule, _P], _R]]: ...


def primitive(name: str, *, pure: bool = False, sampling: bool = False,
              normalize: Normalize | None = None, positional: bool = False,
              traced: bool = True, moves: bool = False, binds: bool = False
              ) -> Callable[[Any], Any]:
    """Decorator: register a function as a schedule primitive.

    The result is a method of Schedule, which has it by the function's name. `normalize(sch, args)`
    may change bound arguments before they are recorded (e.g. a block's name to a BlockRV).
    ValueError: Schedule has a method of that name which is no primitive.
    """

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Schedule, *args: object, **kwargs: Any) -> Any:
            return self.apply(kind, kind.bind(args, kwargs))

        method.__name__ = fn.__name__
        method.__qualname__ = f"Schedule.{fn.__name__}"
        method.__doc__ = fn.__doc__
        method.__module__ = fn.__module__
        add_method(method)
        kind = InstructionKind(name, fn, pure, sampling, normalize, positional, traced, moves,
                               binds)
        vars(method).update(__signature__=kind.signature, kind=kind)
        return method

    return decorate


class Instruction:
    """One applied primitive: its kind, bound arguments (with RVs in them) and output RVs.

    Made as TVM makes it: `inputs` are the blocks, loops and numbers that it acts on, `attrs` the
    other arguments, both in the order of the parameters. `args` has all of them by name, and
    `outputs` is None, one RV, or a list. An instruction is itself only: two that are written alike
    are two.
    """

    __slots__ = ("kind", "args", "outputs")

    def __init__(self, kind: InstructionKind, inputs: Sequence[Any], attrs: Sequence[Any],
                 outputs: Sequence[Any]) -> None:
        self.kind, self.args = kind, kind.arguments(list(inputs), list(attrs))
        found = list(outputs)
        self.outputs: Any = found[0] if len(found) == 1 and not kind.many else found

    @staticmethod
    def of(kind: InstructionKind, args: dict[str, Any], outputs: Any) -> "Instruction":
        """The instruction of arguments that are bound to their names."""
        new = Instruction.__new__(Instruction)
        new.kind, new.args, new.outputs = kind, args, outputs
        return new

    def with_args(self, args: dict[str, Any]) -> "Instruction":
        """The same instruction with other arguments."""
        return Instruction.of(self.kind, args, self.outputs)

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very instruction."""
        return self is other

    def __repr__(self) -> str:
        return self.as_python(_Unnamed())

    @property
    def output_list(self) -> list[Any]:
        """Outputs as a list, whatever their number."""
        if self.outputs is None:
            return []
        return [*self.outputs] if is_sequence(self.outputs) else [self.outputs]

    @property
    def inputs(self) -> list[Any]:
        """The RVs among the arguments."""
        return list(_rvs_in(list(self.args.values())))

    @property
    def attrs(self) -> list[Any]:
        """The arguments that are no RVs."""
        return [v for v in self.args.values() if not any(True for _ in _rvs_in([v]))]

    def as_python(self, names: Mapping[Any, str], decision: Any = None) -> str:
        """The call as Python text, `names` giving the names of RVs."""
        kind = self.kind
        parts: list[str] = []
        for param in kind.params:
            if param.name == "decision" and kind.sampling:
                continue
            value = self.args[param.name]
            if param.kind == param.VAR_POSITIONAL:
                parts += [python_text(v, names) for v in value]
            elif param.name in _OMIT_EMPTY.get(kind.name, ()) and (
                    value is None or is_sequence(value) and not value):
                continue
            elif kind.positional:
                parts.append(python_text(value, names))
            else:
                parts.append(f"{param.name}={python_text(value, names)}")
        if decision is not None:
            parts.append(f"decision={python_text(decision, names)}")
        call = f"sch.{kind.method}({', '.join(parts)})"
        outputs = self.outputs
        if outputs is None or (is_sequence(outputs) and not outputs):
            return call
        if is_sequence(outputs):
            left = ", ".join(names[o] for o in outputs) + ("," if len(outputs) == 1 else "")
        else:
            left = names[outputs]
        return f"{left} = {call}"


class _Unnamed(dict[Any, str]):
    """What RVs are called where no trace gives them names."""

    def __missing__(self, key: Any) -> str:
        return "_"

    def get(self, key: Any, default: Any = None) -> Any:
        return "_" if isinstance(key, (BlockRV, LoopRV)) else default


#: parameters that TVM leaves out of the trace when they are empty
_OMIT_EMPTY = {"CacheRead": ("consumer_blocks",), "CacheWrite": ("consumer_blocks",)}


def _rvs_in(values: Iterable[object]) -> Any:
    for value in values:
        if isinstance(value, (BlockRV, LoopRV)):
            yield value
        elif isinstance(value, PrimExpr):
            if isinstance(value, Var):
                yield value
            elif not isinstance(value, (IntImm, FloatImm, StringImm)):
                from ..tir.functor import free_vars

                yield from free_vars(value)
        elif is_sequence(value):
            yield from _rvs_in(value)


def python_text(value: object, names: Mapping[Any, str]) -> str:
    """A value of an argument as Python source."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, (BlockRV, LoopRV)):
        return names.get(value, "<unknown>")
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, (int, float)):
        return _float_text(value)
    if is_sequence(value):
        inner = ", ".join(python_text(v, names) for v in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if is_dict(value):
        return "{" + ", ".join(f"{python_text(k, names)}: {python_text(v, names)}"
                               for k, v in value.items()) + "}"
    if isinstance(value, IndexMap):
        left = ", ".join(v.name for v in value.initial_indices)
        own = {v: v.name for v in value.initial_indices}
        if isinstance(value, RangesMap):
            ends = [python_text(e, {**names, **own}) for e in value.final_indices]
            pairs = ", ".join(f"({a}, {b})" for a, b in zip(ends[::2], ends[1::2]))
            return f"lambda {left}: [{pairs}]"
        right = "".join(
            (f"T.{e.dtype}({_float_text(e.value)})" if isinstance(e, FloatImm)
             else python_text(e, {**names, **own})) + ", " for e in value.final_indices)
        return f"lambda {left}: ({right.rstrip()})"
    if isinstance(value, Var):
        return names.get(value) or _size_text(value)
    if isinstance(value, (IntImm, FloatImm)):
        if value.dtype in ("int32", "float32"):
            return _float_text(value.value)
        if value.dtype == "bool":
            return repr(bool(value.value))
        return f"T.{value.dtype}({_float_text(value.value)})"
    if isinstance(value, StringImm):
        return python_text(value.value, names)
    if isinstance(value, PrimExpr):
        from ..tir.functor import free_vars, substitute

        free = free_vars(value)
        sizes = {f"size_of_the_function_{n}": v for n, v in enumerate(free) if v not in names}
        renamed = {v: Var(names[v], v.dtype) for v in free if v in names}
        renamed.update((v, Var(name, v.dtype)) for name, v in sizes.items())
        text = repr(substitute(value, renamed))
        for name, var in sizes.items():
            text = text.replace(name, _size_text(var))
        return text
    return repr(value)


def _float_text(value: float) -> str:
    """A number; NaN and the infinities have no literal."""
    return repr(value) if isinstance(value, int) or math.isfinite(value) else f'float("{value}")'


def _size_text(var: Var) -> str:
    """A variable of the program, such as a size, which is found by its name at replay."""
    return f'T.Var("{var.name}", "{var.dtype}")'


__all__ = ["BlockRV", "ExprRV", "Instruction", "InstructionKind", "LoopRV", "RangesMap",
           "primitive", "python_text"]
