"""Operators of one's own: the page on them, and struct info that follows from the body."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")

DERIVED = '''
import pytest
from mlc_lab import relax, tir, topi
from mlc_lab.relax.op import StructInfoError
from mlc_lab.relax.op.declare import Axis, Shape, Tensor, Tensors, operator
from mlc_lab.relax.transform import AnnotateTIROpPattern, LegalizeOps, OpPatternKind

T = relax.TensorStructInfo
n = tir.Var("n", "int64")


def var(info):
    return relax.Var("x", info)


@operator("relax.doubled", pattern=OpPatternKind.OPAQUE)
def doubled(x: Tensor, axis: Axis = 0) -> Tensor:
    """x twice along an axis."""
    return topi.concatenate([x, x], axis)


@operator("relax.halves")
def halves(x: Tensor):
    """Both halves."""
    return topi.split(x, 2)


@operator("relax.filled")
def filled(xs: Tensors, shape: Shape) -> Tensor:
    """The sum of tensors, broadcast to a shape."""
    return topi.broadcast_to(topi.elemwise_sum(xs), shape)


assert doubled(var(T((n, 3), "int8"))).struct_info == T((n * 2, 3), "int8")
assert doubled(var(T(ndim=2, dtype="int8")), 1).struct_info == T(ndim=2, dtype="int8")
assert doubled(var(T(ndim=2, dtype="int8"))).struct_info.shape is None
assert doubled(var(T(dtype="int8"))).struct_info == T(dtype="")
assert doubled(var(T((2,), ""))).struct_info == T(dtype="")
assert halves(var(T((4, 3), "int8"))).struct_info.fields[1] == T((2, 3), "int8")
assert isinstance(halves(var(T())).struct_info, relax.ObjectStructInfo)
x = var(T((3,), "float32"))
assert filled([x, x], (2, n, 3)).struct_info == T((2, n, 3), "float32")
for call, message in ((lambda: doubled(x, 1), "R.doubled: axis 1 is outside a tensor of 1"),
                      (lambda: filled([x], (2, 4)), "R.filled: .*cannot be broadcast"),
                      (lambda: halves(x), "R.halves: .*not divided by 2")):
    with pytest.raises(StructInfoError, match=message):
        call()
with pytest.raises(TypeError, match="missing 1 required positional argument"):
    filled([x])
with pytest.raises(ValueError, match="in no namespace"):
    operator("relax.mine.f")(lambda: None)

builder = relax.BlockBuilder()
with builder.function("main", [x]):
    builder.emit_func_output(builder.emit(doubled(x)))
mod = AnnotateTIROpPattern()(LegalizeOps()(builder.get()))
assert mod["doubled"].attrs["op_pattern"] == OpPatternKind.OPAQUE
'''


def run(program):
    """A program in a process of its own: what it declares stays there."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_on_operators_runs():
    run("\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)))


def test_struct_info_follows_from_the_body():
    run(DERIVED)
