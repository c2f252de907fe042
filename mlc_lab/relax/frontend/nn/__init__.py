"""Models written by hand in the style of PyTorch: `from tvm.relax.frontend import nn`.

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(784, 128)
            self.fc2 = nn.Linear(128, 10)

        def forward(self, x):
            return self.fc2(nn.op.relu(self.fc1(x)))

    mod, params = MLP().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 784), "float32")}})

A method is run once, with tensors that stand for its arguments: what it does to them is written
into a Relax function (`exporter.py`). Read `tensor.py`, `module.py`, then the layers in
`modules.py`, each a few lines of the operators in `op.py`.
"""

from . import llm, op, spec
from .exporter import Exporter
from .module import (
    Effect, Module, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential,
    get_default_dtype, set_default_dtype,
)
from .modules import (
    GELU, Conv1D, Conv2D, Conv3D, ConvTranspose1D, Embedding, GroupNorm, Identity, IOEffect,
    LayerNorm, Linear, ReLU, RMSNorm, SiLU,
)
from .op import *  # noqa: F403  `nn.relu` is `nn.op.relu`
from .subroutine import SubroutineMixin
from .tensor import Object, Parameter, Tensor, wrap_nested
from .visitor import Mutator

__all__ = [
    "GELU", "Conv1D", "Conv2D", "Conv3D", "ConvTranspose1D", "Effect", "Embedding", "Exporter",
    "GroupNorm", "IOEffect", "Identity", "LayerNorm", "Linear", "Module", "ModuleDict",
    "ModuleList", "Mutator", "Object", "Parameter", "ParameterDict", "ParameterList", "RMSNorm",
    "ReLU", "Sequential", "SiLU", "SubroutineMixin", "Tensor", "get_default_dtype", "llm", "op",
    "set_default_dtype", "spec", "wrap_nested",
]
