"""Modules of PyTorch: `as_torch` makes one of a TensorIR function, `optimize_torch` of a model.

    @as_torch
    @T.prim_func
    def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")): ...

    twice.tune()
    twice(a, b)                                # torch tensors; results are written to them

    fast = optimize_torch(model, example)      # imported, tuned, compiled
    fast(example)

Tensors are handed over without a copy (DLPack). The modules are made when the first is asked for:
only then torch is imported.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...build import build
from ...ir.module import IRModule
from ...tir.function import PrimFunc
from ..tune_config import TuneConfig, tune_tir

if TYPE_CHECKING:
    from ...target.target import TargetLike

#: trials of a search for which no number is given
TRIALS = 64


@cache
def _modules() -> tuple[Any, Any]:
    """The two classes: of a function, and of a model. ImportError without torch."""
    try:
        import torch
    except ImportError as error:
        raise ImportError("tvm.contrib.torch needs torch: pip install torch") from error

    class OperatorModule(torch.nn.Module):
        """A function of TensorIR that takes tensors of torch, its results among them."""

        def __init__(self, program: IRModule | PrimFunc) -> None:
            super().__init__()
            self.program = program
            self.target: TargetLike = "llvm"
            self._built: Any = None

        def tune(self, config: TuneConfig | None = None, target: TargetLike = None) -> None:
            """Look for a fast schedule, and take it. ValueError where the program has more than one
            function."""
            self.target = self.target if target is None else target
            config = config or TuneConfig(max_trials_global=TRIALS, num_trials_per_iter=16)
            with tempfile.TemporaryDirectory() as folder:
                found = tune_tir(config, self.program, self.target, folder)
            if found is not None:
                self.program, self._built = found.mod, None

        def script(self) -> str:
            """The program as TVMScript."""
            return self.program.script()

        def forward(self, *tensors: torch.Tensor) -> None:
            """Run it; it is built the first time."""
            if self._built is None:
                self._built = build(self.program, target=self.target)
            self._built(*[t.detach() for t in tensors])

    class OptimizedModule(torch.nn.Module):
        """A model that was imported and compiled."""

        def __init__(self, machine: Any) -> None:
            super().__init__()
            self._machine = machine

        def forward(self, *inputs: torch.Tensor) -> Any:
            """What the model gives, as torch tensors."""
            found = self._machine["main"](*[t.detach() for t in inputs])
            made = [torch.from_dlpack(x) for x in found]
            return made[0] if len(made) == 1 else tuple(made)

    return OperatorModule, OptimizedModule


def as_torch(program: IRModule | PrimFunc | Callable[..., Any]) -> Any:
    """A program as a module of torch; of a function that makes programs, one that makes modules.

    TypeError for anything else.
    """
    if isinstance(program, (IRModule, PrimFunc)):
        return _modules()[0](program)
    if callable(program):
        make = program
        return lambda *args, **kwargs: as_torch(make(*args, **kwargs))
    raise TypeError(f"as_torch takes a PrimFunc, an IRModule or a function that makes one, not "
                    f"{type(program).__name__}")


def optimize_torch(model: Any, example_inputs: Any, tuning_config: Any = None,
                   target: TargetLike = None, work_dir: str | None = None) -> Any:
    """A model of torch, imported at the shapes of the examples, tuned and compiled.

    Parameters
    ----------
    example_inputs : torch.Tensor or sequence of them
    tuning_config : TuneConfig
        How long to search; 64 trials if it is not given.
    work_dir : str
        Where the search keeps its records; a folder that is removed if not given.

    Raises
    ------
    MissingOperators
        For a model with operators that are not imported.
    """
    import torch

    from ... import relax
    from ...meta_schedule import relax_integration as tuning
    from ...relax.frontend.torch import from_exported_program
    from ...runtime import cpu
    from ...target import Target

    inputs: Sequence[Any] = ((example_inputs,) if isinstance(example_inputs, torch.Tensor)
                             else tuple(example_inputs))
    with torch.no_grad():
        program = torch.export.export(model.eval(), tuple(inputs))
    mod = from_exported_program(program)
    where = Target("llvm" if target is None else target)
    trials = getattr(tuning_config, "max_trials_global", None) or TRIALS
    with tempfile.TemporaryDirectory() as folder:
        database = tuning.tune_relax(mod, {}, where, work_dir or folder, trials)
        built = tuning.compile_relax(database, mod, where, {})
    return _modules()[1](relax.VirtualMachine(built, cpu()))


__all__ = ["as_torch", "optimize_torch"]
