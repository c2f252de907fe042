"""Rules of control flow: If, and Loop of a number of turns that is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import op
from ...expr import If, SeqExpr, Tuple
from .importer import Importer, rule

#: the most turns of a Loop that are written out
MOST_TURNS = 1000


@rule("If")
def _if(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The branch that is taken where the condition is known; else an If of Relax."""
    yes, no = attrs["then_branch"], attrs["else_branch"]
    if im.known(inputs[0]):
        return im.inlined(yes if bool(inputs[0].reshape(-1)[0]) else no, [])
    condition = im.emit(op.reshape(im.tensor(inputs[0]), []))
    sides, count = [], len(yes.output)
    for branch in (yes, no):
        im.builder.begin_binding_block()
        outs = [im.tensor(v) for v in im.inlined(branch, [])]
        value = im.emit(outs[0] if count == 1 else Tuple(outs))
        sides.append(SeqExpr([im.builder.end_block()], value))
    out = im.emit(If(condition, *sides))
    return out if count == 1 else [im.emit(out[k]) for k in range(count)]


@rule("Loop")
def _loop(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The body as many times as the loop turns; what it collects, stacked."""
    body, (turns, going, *state) = attrs["body"], inputs
    for what, value in (("the number of turns", turns), ("the condition", going)):
        if value is not None and not im.known(value):
            raise ValueError(f"{what} of a Loop is computed by the run, and a loop is written out: "
                             "give sizes in shape_dict, or make it a constant")
    most = None if turns is None else int(np.reshape(turns, -1)[0])
    collected: list[list[Any]] = [[] for _ in body.output[1 + len(state):]]
    turn = 0
    while (most is None or turn < most) and (going is None or bool(np.reshape(going, -1)[0])):
        if turn == MOST_TURNS:
            raise ValueError(f"a Loop of more than {MOST_TURNS} turns is not written out")
        now = np.asarray(True) if going is None else going
        going, *out = im.inlined(body, [np.asarray(turn, "int64"), now, *state])
        if not im.known(going):
            raise ValueError("the condition of a Loop is computed in its body from what only the "
                             "run knows; only the number of turns may end a loop")
        state = out[:len(state)]
        for parts, value in zip(collected, out[len(state):]):
            parts.append(value)
        turn += 1
    if collected and not turn:
        raise ValueError("a Loop of no turns collects nothing: the shape of what it gives is not "
                         "known")
    return [*state, *(np.stack(p) if im.known(*p) else im.emit(op.stack(
        [im.tensor(v) for v in p], 0)) for p in collected)]
