"""Intrinsics of one's own, and what becomes of an intrinsic on a target.

`register_op_attr("tir.mylog", "TCallEffectKind", CallEffectKind.Pure)` makes the intrinsic;
`call_intrin("float32", "tir.mylog", x)` calls it. `register_intrin_lowering("tir.mylog", "llvm",
f=rule)` says what replaces such a call when the program is lowered for a target of that kind
("default": for every one without a rule of its own), here of tir.mylog as of tir.exp. A rule is a
function of the call; what it gives may contain calls with rules again, and the call itself means
that it has nothing to say.
"""

from __future__ import annotations

import enum
from typing import Any, Callable

from ..expr import OPS, Call, Op, PrimExpr
from .intrinsic import INTRINSIC_OF, OPAQUE, PURE, READS, UPDATES, Intrinsic


class CallEffectKind(enum.IntEnum):
    """What a call does to the world, in TVM's names."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    SpecialCallArg = 4
    EmbedInfo = 5
    ControlJump = 6
    Opaque = UpdateState


_EFFECTS = {CallEffectKind.ExprAnnotation: PURE, CallEffectKind.Pure: PURE,
            CallEffectKind.ReadState: READS, CallEffectKind.UpdateState: UPDATES}

#: op -> attribute -> (level, value)
_ATTRS: dict[str, dict[str, tuple[int, Any]]] = {}


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Set an attribute of an operator, which is made if there is none of that name.

    A decorator where no value is given. Of several values the one of the highest level counts; a
    second one of the same level raises ValueError. `TCallEffectKind` says what a call does;
    `KIND.FLowerIntrinsic` is a rule of lowering.
    """
    def register(given: Any) -> Any:
        attrs = _ATTRS.setdefault(op_name, {})
        before = attrs.get(attr_key)
        if before is not None and before[0] == level:
            raise ValueError(f"attribute {attr_key} of {op_name} is registered at level {level} "
                             "already; give a higher level to replace it")
        if before is None or before[0] < level:
            attrs[attr_key] = (level, given)
        if op_name.startswith("tir."):
            if op_name not in OPS:
                OPS[op_name] = Op(op_name)
                INTRINSIC_OF[op_name] = Intrinsic(op_name[4:], None, OPAQUE, "given", "registered")
            if attr_key == "TCallEffectKind":
                effect = _EFFECTS.get(CallEffectKind(int(given)), OPAQUE)
                INTRINSIC_OF[op_name] = INTRINSIC_OF[op_name]._replace(effect=effect)
        return given

    return register if value is None else register(value)


def register_intrin_lowering(op_name: str, target: str, *, f: Callable[[Call], PrimExpr] | None
                             = None, level: int = 10) -> Any:
    """Say what a call of an intrinsic is replaced by on targets of a kind; see the file's text.

    A decorator where `f` is not given. Levels as those of `register_op_attr`.
    """
    return register_op_attr(op_name, f"{target}.FLowerIntrinsic", f, level)


def get_op_attr(op_name: str, attr_key: str) -> Any:
    """An attribute that was registered, None if there is none."""
    return _ATTRS.get(op_name, {}).get(attr_key, (0, None))[1]


def intrin_lowerings(kind: str) -> dict[str, Callable[[Call], PrimExpr]]:
    """The rules for targets of a kind, by the intrinsic's name."""
    out: dict[str, Callable[[Call], PrimExpr]] = {}
    for key in ("default.FLowerIntrinsic", f"{kind}.FLowerIntrinsic"):
        out.update((name, attrs[key][1]) for name, attrs in _ATTRS.items() if key in attrs)
    return out


__all__ = ["CallEffectKind", "get_op_attr", "intrin_lowerings", "register_intrin_lowering",
           "register_op_attr"]
