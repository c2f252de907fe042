"""SetupTrainer: a model becomes a module that can be trained.

The module has a function `backbone(inputs, parameters, states) -> (results, new states)`, one
dataflow block, and says how many parameters and states it has: `I.module_attrs({"param_num": 2,
"state_num": 0})`. States are what training changes without a gradient, such as the running
statistics of R.nn.batch_norm. The result has, beside it,

    backbone_loss(inputs, parameters, states, targets) -> loss, new states
    backbone_loss_adjoint(...)                         -> the same, (gradients of the parameters)
    optimizer(params, gradients, optim_states)         -> params, optim_states

and the attributes `input_num`, `param_num`, `state_num`, and `optim_state`, the states of the
optimizer at first. `Trainer` runs it.
"""

from __future__ import annotations

from typing import Any, Sequence

from ...ir.transform import Pass, PassInfo
from ..expr import Function, Tuple
from ..struct_info import StructInfo
from ..transform.decompose_ops import DecomposeOpsForInference, DecomposeOpsForTraining
from ..transform.gradient import Gradient
from ..transform.legalize_ops import LegalizeOps
from ..transform.rewriting import IRModule, PassContext
from ..well_formed import well_formed
from .loss import Loss
from .optimizer import Optimizer
from .utils import AppendLoss

BACKBONE, BACKBONE_LOSS = "backbone", "backbone_loss"
ADJOINT, OPTIMIZER = "backbone_loss_adjoint", "optimizer"


class SetupTrainer(Pass):
    """The pass; see the head of the file. `loss_args` are the struct infos of the results of the
    model and of the targets, which the loss is called with; `legalize` runs LegalizeOps last."""

    def __init__(self, loss: Loss, optimizer: Optimizer, loss_args: Sequence[StructInfo],
                 legalize: bool = True) -> None:
        self._loss, self._optimizer = loss, optimizer
        self._loss_args, self._legalize = list(loss_args), legalize
        super().__init__(self._transform, PassInfo("SetupTrainer", 0))

    def _transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        func, param_num, state_num = _checked(mod)
        mod = AppendLoss(BACKBONE, self._loss(*self._loss_args), self._loss.num_backbone_outputs,
                         BACKBONE_LOSS)(mod)
        mod = DecomposeOpsForInference(BACKBONE)(mod)
        mod = DecomposeOpsForTraining(BACKBONE_LOSS)(mod)
        input_num = len(func.params) - param_num - state_num
        params = list(mod[BACKBONE_LOSS].params[input_num:input_num + param_num])
        mod = Gradient(BACKBONE_LOSS, params, 0)(mod)
        self._optimizer.init(params)
        made = self._optimizer.get_function().with_attr("global_symbol", OPTIMIZER)
        mod = mod.copy()
        mod[OPTIMIZER] = made
        mod = mod.with_attrs({"input_num": input_num, "optim_state": self._optimizer.state})
        return LegalizeOps()(mod) if self._legalize else mod


def _checked(mod: IRModule) -> tuple[Function, int, int]:
    """The model, and how many parameters and states it has."""
    if BACKBONE not in mod or not isinstance(mod[BACKBONE], Function):
        raise ValueError(f"SetupTrainer: the module has no Relax function {BACKBONE!r}")
    if not well_formed(mod):
        raise ValueError("SetupTrainer: the module is not well formed")
    func = mod[BACKBONE]
    param_num, state_num = (_number(mod, key) for key in ("param_num", "state_num"))
    if len(func.params) < param_num + state_num:
        raise ValueError(f"SetupTrainer: {BACKBONE!r} has {len(func.params)} parameter(s), the "
                         f"module says that it has {param_num} parameter(s) and {state_num} "
                         "state(s)")
    out = func.body.body
    if state_num and not (isinstance(out, Tuple) and len(out.fields_) > state_num):
        raise ValueError(f"SetupTrainer: {BACKBONE!r} must give its results and then {state_num} "
                         "new state(s), as a tuple")
    return func, param_num, state_num


def _number(mod: IRModule, key: str) -> int:
    value: Any = (mod.attrs or {}).get(key)
    value = getattr(value, "value", value)
    if not isinstance(value, int):
        raise ValueError(f"SetupTrainer: the module must say how many: "
                         f'I.module_attrs({{"param_num": 2, "state_num": 0}}); {key!r} is {value}')
    return value


__all__ = ["SetupTrainer"]
