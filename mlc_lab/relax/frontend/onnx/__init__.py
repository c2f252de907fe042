"""ONNX models as Relax modules: `from_onnx`.

A rule is a function `(importer, inputs, attributes) -> value`, one an operator of ONNX. Read
`importer.py`, then the rules: `elementwise.py`, `tensors.py`, `layers.py`.
"""

from .importer import from_onnx

__all__ = ["from_onnx"]
