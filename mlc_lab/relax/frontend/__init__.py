"""Models as Relax: of other frameworks (`frontend.torch`, `frontend.onnx`), or written by hand in
the style of PyTorch (`frontend.nn`).

    from mlc_lab.relax.frontend.torch import from_exported_program
    mod = from_exported_program(torch.export.export(model, (example,)), keep_params_as_input=True)
    mod, params = relax.frontend.detach_params(mod)

torch and onnx are loaded only by their own frontends.
"""

from importlib import import_module as _import_module

from .common import MissingOperators, detach_params


def __getattr__(name: str) -> object:
    """`torch`, `onnx` and `nn`, loaded when first asked for."""
    if name in ("torch", "onnx", "nn"):
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["MissingOperators", "detach_params"]
