"""Kernels as source code: one generator (`generator.py`), a table a dialect.

    cuda.py     CUDA C        opencl.py   OpenCL C
    webgpu.py   WGSL          metal.py    Metal's shading language

`sources(mod, kind, blocks)` gives the text of each kernel of a lowered module.
"""

from .dialect import Dialect
from .generator import (
    DIALECTS, ENDED, KernelSource, dialect_of, guarded, kernel_source, module_lines, module_text,
    most_iterations, sources, watched,
)
from .last_passes import last_passes

__all__ = ["DIALECTS", "ENDED", "Dialect", "KernelSource", "dialect_of", "guarded", "kernel_source",
           "last_passes", "module_lines", "module_text", "most_iterations", "sources", "watched"]
