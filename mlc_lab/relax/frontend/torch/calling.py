"""How a call of torch becomes a call of a rule: under which names a rule is looked for, how its
arguments are fitted to the rule's parameters, and how a refusal says where it comes from.

An argument is honoured or refused. What has no meaning for a program (where a tensor lies, who
computes gradients) is left out; what a rule has no parameter for must have the value that it has
where it is not given.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ..common import MissingOperators

if TYPE_CHECKING:
    from torch.fx import Node

#: arguments that say nothing about numbers
IGNORED = frozenset({"device", "pin_memory", "layout", "memory_format", "non_blocking", "inplace",
                     "requires_grad", "copy", "_stacklevel", "out", "generator"})

#: functions and layers that torch runs otherwise while it trains
ADVICE_EVAL = "call model.eval() before the model is exported or traced"


def names_of(target: Any) -> tuple[str, ...]:
    """The names a target may have a rule under: "aten.add.Tensor", "add.Tensor", "add"."""
    name = getattr(target, "__name__", str(target))
    base, _, overload = name.partition(".")
    plain = base.strip("_") if base.startswith("__") else base.rstrip("_") or base
    both = (f"{plain}.{overload}",) if overload else ()
    return tuple(dict.fromkeys((str(target), name, *both, base, plain)))


@functools.lru_cache(maxsize=None)
def parameters(fn: Callable) -> tuple[tuple[str, ...], frozenset[str], bool]:
    """The names of a rule's parameters after the importer, in order; all of them; whether it
    takes any number of positional ones."""
    given = list(inspect.signature(fn).parameters.values())[1:]
    several = any(p.kind is p.VAR_POSITIONAL for p in given)
    ordered = tuple(p.name for p in given if p.kind is p.POSITIONAL_OR_KEYWORD)
    named = frozenset(p.name for p in given if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    if any(p.kind is p.VAR_KEYWORD for p in given):
        raise TypeError(f"the rule {fn.__name__} takes any keyword: name those it knows")
    return ordered, named, several


def fitted(fn: Callable, target: Any, args: list[Any], kwargs: Mapping[str, Any]
           ) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call as the rule `fn` takes them.

    Raises ValueError where one would be lost: it is not what it is where it is not given.
    """
    ordered, named, several = parameters(fn)
    signature = _functional(target)
    if signature is not None:
        return _by_name(signature, named, args, kwargs)
    args = list(args)
    kwargs = {k: v for k, v in kwargs.items() if k not in IGNORED}
    strange = [k for k in kwargs if k not in named]
    if strange:
        args, kwargs = _by_position(target, args, kwargs)
        strange = [k for k in kwargs if k not in named]
    signatures = None
    for k in strange:
        signatures = signatures or _signatures(target)
        if not _is_default(signatures, k, kwargs[k]):
            raise _lost(k, kwargs[k])
        del kwargs[k]
    while len(args) > len(ordered) and not several:
        signatures = signatures or _signatures(target)
        name = _name_at(signatures, len(args) - 1)
        if name not in IGNORED and not _is_default(signatures, name, args[-1]):
            raise _lost(name or len(args), args[-1])
        args.pop()
    return args, kwargs


def _functional(target: Any) -> inspect.Signature | None:
    """The signature of a function of torch.nn.functional that is written in Python: its arguments
    have names, and an order of their own."""
    if getattr(target, "__module__", "") != "torch.nn.functional":
        return None
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return None
    kinds = [p.kind for p in signature.parameters.values()]
    return None if inspect.Parameter.VAR_POSITIONAL in kinds else signature


def _by_name(signature: inspect.Signature, named: frozenset[str], args: list[Any],
             kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The first argument by its place, the others by their names."""
    given = dict(signature.bind(*args, **kwargs).arguments)
    first = next(iter(signature.parameters))
    lead = [given.pop(first)] if first in given else []
    out = {}
    for name, value in given.items():
        if name in named:
            out[name] = value
        elif name not in IGNORED and not _is_default([signature], name, value):
            raise _lost(name, value)
    return lead, out


def _lost(name: Any, value: Any) -> ValueError:
    return ValueError(f"the argument {name}={_short(value)} is not translated: leave it out, or "
                      "write the model with other operators")


def _signatures(target: Any) -> list[inspect.Signature]:
    """What is known of the parameters of an operator, a function or a method of tensors."""
    schema = getattr(target, "_schema", None)
    if schema is not None:
        kinds = inspect.Parameter
        return [inspect.Signature([kinds(
            a.name if a.name != "self" else "input",
            kinds.KEYWORD_ONLY if a.kwarg_only else kinds.POSITIONAL_OR_KEYWORD,
            default=a.default_value if a.has_default_value() else kinds.empty)
            for a in schema.arguments])]
    import torch
    from torch.fx.operator_schemas import get_signature_for_torch_op

    if isinstance(target, str):
        target = getattr(torch, target.rstrip("_"), None) or getattr(torch.Tensor, target, None)
    try:
        plain = [inspect.signature(target)]
    except (TypeError, ValueError):
        plain = []
    try:
        return plain + list(get_signature_for_torch_op(target) or [])
    except (TypeError, ValueError, AttributeError):
        return plain


def _by_position(target: Any, args: list[Any], kwargs: dict[str, Any]
                 ) -> tuple[list[Any], dict[str, Any]]:
    """Arguments with those that were named, and have a place, put there."""
    for signature in _signatures(target):
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            continue
        kinds = [p.kind for p in signature.parameters.values()]
        if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.VAR_KEYWORD in kinds:
            continue
        last = max((k for k, name in enumerate(signature.parameters)
                    if name in bound.arguments and name not in bound.kwargs), default=-1)
        bound.apply_defaults()
        ordered = list(bound.args)[:last + 1]
        return ordered, dict(bound.kwargs)
    return args, kwargs


def _name_at(signatures: list[inspect.Signature], place: int) -> str:
    for signature in signatures:
        names = list(signature.parameters)
        if place < len(names):
            return names[place]
    return ""


def _is_default(signatures: list[inspect.Signature], name: str, value: Any) -> bool:
    if value is None:
        return True
    for signature in signatures:
        found = signature.parameters.get(name)
        if found is not None and found.default is not found.empty and type(value) in (
                bool, int, float, str, type(None)) and found.default == value:
            return True
    return False


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, (bool, int, float, str, list, tuple)) else str(value)
    return text if len(text) < 60 else text[:57] + "..."


# ------------------------------------------------------------------------------- refusals


def refuse(frontend: str, missing: list[tuple[str, str]]) -> None:
    """Raise MissingOperators unless the list is empty."""
    if missing:
        raise MissingOperators(frontend, missing, (
            "give rules of your own with custom_convert_map={name: f(node, importer)}, or write "
            "the model with other operators"))


def place_of(node: Node) -> str:
    """Where a node comes from: the module, the node, and the line of the model's source."""
    stack = node.meta.get("nn_module_stack") or {}
    last = list(stack.values())[-1] if stack else None
    module = ""
    if last is not None:
        path, kind = last if isinstance(last, tuple) else (str(last), "")
        kind = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
        module = f"in {path or 'the model itself'} ({kind.rpartition('.')[2]}), "
    trace = str(node.meta.get("stack_trace") or "").strip().split("\n")
    source = f": {trace[-1].strip()}" if trace[-1] else ""
    return f"{module}node {node.name}{_file_of(trace)}{source}"


def _file_of(trace: list[str]) -> str:
    """', FILE:LINE' of the innermost frame of a stack trace of torch."""
    frames = [line.strip() for line in trace if line.strip().startswith("File ")]
    if not frames:
        return ""
    parts = frames[-1].split('"')
    if len(parts) < 3:
        return ""
    line = parts[2].partition("line ")[2].partition(",")[0]
    return f", {parts[1].replace(chr(92), '/').rpartition('/')[2]}:{line}"


__all__ = ["ADVICE_EVAL", "IGNORED", "fitted", "names_of", "parameters", "place_of", "refuse"]
