"""All rules of the importer from ONNX: importing a file registers its rules."""

from . import (  # noqa: F401
    control, elementwise, layers, picking, pooling, quantized, recurrent, resizing, sequences,
    tensors,
)
