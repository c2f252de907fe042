"""Optimizers: SGD, MomentumSGD, Adam. Each makes a Relax function

    (params, gradients, optim_states) -> (params, optim_states)

of tuples, in which a step of all parameters is taken. `opt.state` is what the states are at first;
the first of them counts the steps.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Sequence

import numpy as np

from ...ir.dtype import is_float, numpy_dtype
from ...runtime import NDArray, array
from ...tir.expr import IntImm
from .. import op as R
from ..block_builder import BlockBuilder
from ..expr import Expr, Function, Tuple, TupleGetItem, Var, const
from ..struct_info import TensorStructInfo, TupleStructInfo


class Optimizer:
    """A step of gradient descent. One of one's own overrides `start` and `step`."""

    def __init__(self, name: str) -> None:
        self.name = name
        #: the dtype of the parameters, of the states, and of what they are multiplied by
        self.dtype: str | None = None
        self.param_list: list[Var] | None = None
        self.state: tuple[NDArray, ...] | None = None

    def init(self, params: Var | Sequence[Var]) -> Any:
        """Say what is optimized: variables of float tensors, of one dtype. Gives itself back."""
        self._set_params_and_dtype([params] if isinstance(params, Var) else list(params))
        assert self.param_list is not None
        self.state = (array(np.zeros((), "int64")), *self.start())
        return self

    def _set_params_and_dtype(self, params: list[Var]) -> None:
        dtype: str | None = None
        for k, p in enumerate(params):
            if not isinstance(p, Var):
                raise ValueError(f"an optimizer takes variables; parameter {k} is {p!r}")
            info = p.struct_info
            if not isinstance(info, TensorStructInfo) or not info.dtype or not is_float(info.dtype):
                raise ValueError("an optimizer takes tensors of floats; parameter "
                                 f"{p.name_hint!r} is {info}")
            if dtype not in (None, info.dtype):
                raise ValueError(f"the parameters of an optimizer are of one dtype; {p.name_hint!r}"
                                 f" is {info.dtype}, those before it are {dtype}")
            if p in params[:k]:
                raise ValueError(f"parameter {p.name_hint!r} is twice in the list")
            dtype = info.dtype
        self.param_list, self.dtype = params, dtype

    def _zeros(self) -> list[NDArray]:
        """A state of zeros for each parameter."""
        return [array(np.zeros(_sizes(p), numpy_dtype(self._type))) for p in self._params]

    @property
    def _params(self) -> list[Var]:
        if self.param_list is None or self.state is None and self.dtype is None:
            raise RuntimeError(f"{self.name}: call init(params) before")
        return self.param_list

    @property
    def _type(self) -> str:
        return self.dtype or "float32"

    def _const(self, value: float) -> Expr:
        return const(value, self._type)

    def start(self) -> list[NDArray]:
        """The states after the number of steps, at first."""
        return []

    def step(self, bb: BlockBuilder, params: list[Var], grads: list[Var], state: list[Expr]
             ) -> tuple[list[Expr], list[Expr]]:
        """The new parameters and the new states (without the number of steps)."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a step is")

    def get_function(self) -> Function:
        """The function of a step; see the head of the file."""
        if self.param_list is None or self.state is None:
            raise RuntimeError(f"{self.name}: call init(params) before get_function()")
        infos = [p.struct_info for p in self.param_list]
        states = [TensorStructInfo(s.shape, str(s.dtype)) for s in self.state]
        given = [Var("params", TupleStructInfo(infos)), Var("gradients", TupleStructInfo(infos)),
                 Var("optim_states", TupleStructInfo(states))]
        bb = BlockBuilder()
        with bb.function(self.name, given):
            with bb.dataflow():
                steps = bb.emit(TupleGetItem(given[2], 0), "num_steps")
                steps = bb.emit(R.add(steps, const(1, "int64")), "num_steps_new")
                params, grads = [], []
                for k, p in enumerate(self.param_list):
                    params.append(bb.emit(TupleGetItem(given[0], k), p.name_hint))
                    grads.append(bb.emit(TupleGetItem(given[1], k), f"{p.name_hint}_grad"))
                rest: list[Expr] = [bb.emit(TupleGetItem(given[2], k), "state")
                                    for k in range(1, len(states))]
                new_params, new_state = self.step(bb, params, grads, rest)
                params_new = bb.emit_output(Tuple(new_params), "params_new")
                states_new = bb.emit_output(Tuple([steps, *new_state]), "optim_states_new")
            bb.emit_func_output((params_new, states_new))
        return bb.get()[self.name]

    def _decayed(self, bb: BlockBuilder, decay: float, p: Var, g: Var) -> Var:
        """The gradient, with what keeps parameters small."""
        if not decay:
            return g
        return bb.emit(R.add(R.multiply(self._const(decay), p), g), f"{p.name_hint}_grad_new")


def _sizes(p: Var) -> list[int]:
    info = p.struct_info
    dims = info.dims if isinstance(info, TensorStructInfo) else None
    if dims is None or not all(isinstance(d, IntImm) for d in dims):
        raise ValueError(f"the shape of parameter {p.name_hint!r} must be known in numbers, it is "
                         f"{info}")
    return [int(d.value) for d in dims]


def _one_minus(value: float) -> float:
    """1 - value as one would write it: 1 - 0.9 is 0.1."""
    return float(Decimal(1) - Decimal(str(value)))


class SGD(Optimizer):
    """p - lr * (gradient + weight_decay * p)"""

    def __init__(self, lr: float, weight_decay: float = 0) -> None:
        super().__init__("SGD")
        self.lr, self.weight_decay = float(lr), float(weight_decay)

    def step(self, bb: BlockBuilder, params: list[Var], grads: list[Var], state: list[Expr]
             ) -> tuple[list[Expr], list[Expr]]:
        """See the class."""
        out: list[Expr] = []
        for p, g in zip(params, grads):
            g = self._decayed(bb, self.weight_decay, p, g)
            out.append(bb.emit(R.subtract(p, R.multiply(self._const(self.lr), g)),
                               f"{p.name_hint}_new"))
        return out, []


class MomentumSGD(Optimizer):
    """v = momentum * v + (1 - dampening) * gradient, then p - lr * v; with `nesterov`
    p - lr * (gradient + momentum * v). v starts at 0."""

    def __init__(self, lr: float, momentum: float, dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False) -> None:
        super().__init__("MomentumSGD")
        self.lr, self.momentum = float(lr), float(momentum)
        self.dampening, self.weight_decay = float(dampening), float(weight_decay)
        self.nesterov = nesterov

    def start(self) -> list[NDArray]:
        """A velocity for each parameter."""
        return self._zeros()

    def step(self, bb: BlockBuilder, params: list[Var], grads: list[Var], state: list[Expr]
             ) -> tuple[list[Expr], list[Expr]]:
        """See the class."""
        out: list[Expr] = []
        kept: list[Expr] = []
        momentum = self._const(self.momentum)
        for p, g, v in zip(params, grads, state):
            name = p.name_hint
            g = self._decayed(bb, self.weight_decay, p, g)
            push = R.multiply(self._const(_one_minus(self.dampening)), g) if self.dampening else g
            v_new = bb.emit(R.add(R.multiply(momentum, v), push), f"{name}_v_new")
            go = bb.emit(R.add(g, R.multiply(momentum, v_new)), f"{name}_g_nest"
                         ) if self.nesterov else v_new
            out.append(bb.emit(R.subtract(p, R.multiply(self._const(self.lr), go)),
                               f"{name}_new"))
            kept.append(v_new)
        return out, kept


class Adam(Optimizer):
    """Running means of the gradient (m) and of its square (v), corrected for their start at 0:
    p - lr * m / (sqrt(v) + eps).

    The states are the number of steps, the two betas to the power of it, then m and v of each
    parameter.
    """

    def __init__(self, lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-08,
                 weight_decay: float = 0) -> None:
        super().__init__("Adam")
        self.lr, self.eps, self.weight_decay = float(lr), float(eps), float(weight_decay)
        self.beta1, self.beta2 = map(float, betas)

    def start(self) -> list[NDArray]:
        """Two powers of 1, and two means for each parameter."""
        ones = [array(np.ones((), numpy_dtype(self._type))) for _ in range(2)]
        return [*ones, *self._zeros(), *self._zeros()]

    def step(self, bb: BlockBuilder, params: list[Var], grads: list[Var], state: list[Expr]
             ) -> tuple[list[Expr], list[Expr]]:
        """See the class."""
        n = len(params)
        betas = self.beta1, self.beta2
        powers = [bb.emit(R.multiply(s, self._const(b)), f"beta{k}_prod")
                  for k, (s, b) in enumerate(zip(state, betas), 1)]
        out: list[Expr] = []
        means: list[Expr] = []
        squares: list[Expr] = []
        for p, g, m, v in zip(params, grads, state[2:2 + n], state[2 + n:]):
            name = p.name_hint
            g = self._decayed(bb, self.weight_decay, p, g)
            new = [bb.emit(R.add(R.multiply(self._const(beta), old),
                                 R.multiply(self._const(_one_minus(beta)), value)),
                           f"{name}_{letter}_new")
                   for beta, old, value, letter in zip(betas, (m, v), (g, R.multiply(g, g)), "mv")]
            m_hat, v_hat = (
                bb.emit(R.divide(value, R.subtract(self._const(1), power)), f"{name}_{letter}_hat")
                for value, power, letter in zip(new, powers, "mv"))
            by = R.divide(m_hat, R.add(R.sqrt(v_hat), self._const(self.eps)))
            out.append(bb.emit(R.subtract(p, R.multiply(self._const(self.lr), by)), f"{name}_new"))
            means.append(new[0])
            squares.append(new[1])
        return out, [*powers, *means, *squares]


__all__ = ["Adam", "MomentumSGD", "Optimizer", "SGD"]
