"""`relax.testing`: models put together in a builder (`nn`), and functions to call (`vm`).

Models were written with `relax.testing.nn` before `relax.frontend.nn` was there.
"""

from . import nn
from .nn import (
    Linear, LogSoftmax, Module, Parameter, Placeholder, ReLU, Sequential, checkpoint, emit,
    emit_checkpoint, emit_checkpoint_sequential, emit_te, init_params,
)

__all__ = ["Linear", "LogSoftmax", "Module", "Parameter", "Placeholder", "ReLU", "Sequential",
           "checkpoint", "emit", "emit_checkpoint", "emit_checkpoint_sequential", "emit_te",
           "init_params", "nn"]
