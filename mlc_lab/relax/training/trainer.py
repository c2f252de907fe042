"""Trainer: keeps parameters, states and the optimizer's states, and takes steps."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from ...ir.diagnostics import MLCError
from ...ir.dtype import numpy_dtype
from ...runtime import NDArray, array
from ..expr import Var
from ..gradients.common import tensor
from .optimizer import _sizes
from .setup_trainer import ADJOINT, BACKBONE, OPTIMIZER

_UNSET = object()


class Trainer:
    """Training of a module that SetupTrainer made, by a virtual machine it was built for.

    With `zero_init_param_state` parameters and states are zero at first; else they are given by
    `load_params` and `load_states`, or `xaiver_uniform_init_params`.
    """

    BACKBONE_FUNC, BACKBONE_LOSS_FUNC = BACKBONE, "backbone_loss"
    ADJOINT_FUNC, OPTIMIZER_FUNC = ADJOINT, OPTIMIZER

    def __init__(self, train_mod: Any, vm: Any, device: Any, zero_init_param_state: bool = True
                 ) -> None:
        attrs = train_mod.attrs or {}
        if "optim_state" not in attrs or ADJOINT not in train_mod:
            raise ValueError("Trainer takes a module that SetupTrainer has made")
        self.mod, self.vm, self.device = train_mod.without_attr("optim_state"), vm, device
        self._optim_state: Any = [self._on_device(s) for s in attrs["optim_state"]]
        self._input_num, self._param_num, self._state_num = (
            int(getattr(attrs[key], "value", attrs[key]))
            for key in ("input_num", "param_num", "state_num"))
        first = self._input_num + self._param_num
        params = train_mod[ADJOINT].params
        self._param_vars: list[Var] = list(params[self._input_num:first])
        self._state_vars: list[Var] = list(params[first:first + self._state_num])
        self._params: list[NDArray | None] = [None] * self._param_num
        self._states: list[NDArray | None] = [None] * self._state_num
        if zero_init_param_state:
            self.zero_init_params()
            self.zero_init_states()

    def _on_device(self, value: object) -> NDArray:
        return array(value if isinstance(value, NDArray) else np.asarray(value), self.device)

    # --------------------------------------------------------------------------- values

    def _zeros(self, variables: Sequence[Var]) -> list[NDArray | None]:
        return [self._on_device(np.zeros(_sizes(v), numpy_dtype(tensor(v).dtype)))
                for v in variables]

    def zero_init_params(self) -> None:
        """All parameters zero."""
        self._params = self._zeros(self._param_vars)

    def zero_init_states(self) -> None:
        """All states zero."""
        self._states = self._zeros(self._state_vars)

    def xaiver_uniform_init_params(self) -> None:
        """Parameters by chance, as Glorot and Bengio (2010) draw them; TVM's spelling. They come
        from numpy's generator: `np.random.seed` makes them the same again."""
        made: list[NDArray | None] = []
        for p in self._param_vars:
            shape = _sizes(p)
            bound = np.sqrt(6.0 / max(sum(shape), 1))
            made.append(self._on_device((bound * np.random.uniform(-1.0, 1.0, shape)).astype(
                numpy_dtype(tensor(p).dtype))))
        self._params = made

    def load_params(self, params: Sequence[Any] | Mapping[str, Any]) -> None:
        """Parameters in order, or some of them by name."""
        self._load(params, self._params, self._param_vars, "parameter")

    def load_states(self, states: Sequence[Any] | Mapping[str, Any]) -> None:
        """States in order, or some of them by name."""
        self._load(states, self._states, self._state_vars, "state")

    def _load(self, values: object, into: list, variables: Sequence[Var], what: str) -> None:
        names = [v.name_hint for v in variables]
        if isinstance(values, Mapping):
            unknown = [name for name in values if name not in names]
            if unknown:
                raise ValueError(f"the model has no {what} {unknown[0]!r}; it has "
                                 f"{', '.join(names) or 'none'}")
            pairs = [(names.index(name), value) for name, value in values.items()]
        elif isinstance(values, (list, tuple)):
            if len(values) != len(names):
                raise ValueError(f"the model has {len(names)} {what}(s), {len(values)} are given")
            pairs = list(enumerate(values))
        else:
            raise ValueError(f"{what}s are a list, or a dict by name; got a "
                             f"{type(values).__name__}")
        for k, value in pairs:
            into[k] = self._on_device(value)

    def export_params(self) -> dict[str, NDArray | None]:
        """The parameters by name."""
        return {v.name_hint: value for v, value in zip(self._param_vars, self._params)}

    def export_states(self) -> dict[str, NDArray | None]:
        """The states by name."""
        return {v.name_hint: value for v, value in zip(self._state_vars, self._states)}

    def _inputs(self, inputs: object, targets: object = _UNSET) -> list[Any]:
        for variables, values, what in ((self._param_vars, self._params, "parameter"),
                                        (self._state_vars, self._states, "state")):
            for v, value in zip(variables, values):
                if value is None:
                    raise MLCError(f"{what} {v.name_hint!r} has no value yet: load it, or let "
                                   "Trainer begin with zeros (zero_init_param_state=True)")
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(given) != self._input_num:
            raise ValueError(f"the model takes {self._input_num} input(s), {len(given)} are given")
        wanted = [] if targets is _UNSET else list(targets) if isinstance(
            targets, (list, tuple)) else [targets]
        return [*map(self._on_device, given), *self._params, *self._states,
                *map(self._on_device, wanted)]

    # --------------------------------------------------------------------------- running

    def predict(self, *input_instances: object) -> Any:
        """What the model gives for inputs, without its new states."""
        out = self.vm[BACKBONE](*self._inputs(list(input_instances)))
        if self._state_num:
            out = list(out)[:-self._state_num]
            return out[0] if len(out) == 1 else out
        return out

    def update(self, input_instances: object, targets: object) -> Any:
        """One step: the loss before it. Parameters and states are changed."""
        out, grads = self.vm[ADJOINT](*self._inputs(input_instances, targets))
        if self._state_num:
            out, *states = out
            self._states = list(states)
        params, self._optim_state = self.vm[OPTIMIZER](self._params, grads, self._optim_state)
        self._params = list(params)
        return out

    def profile_adjoint(self, input_instances: object, targets: object) -> Any:
        """How long each kernel of a step takes: `vm.profile` of the gradients."""
        return self.vm.profile(ADJOINT, *self._inputs(input_instances, targets))


__all__ = ["Trainer"]
