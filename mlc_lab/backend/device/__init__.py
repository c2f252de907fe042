"""Devices that kernels run on: one file a device, each behind `runtime/driver.py`'s interface.

    simulated.py   every kernel as code for the CPU; always there
    cuda.py        cuda-bindings and NVRTC (nvrtc.py), where they and a device are there
    opencl.py      pyopencl, where it is installed and finds a device
    webgpu.py      wgpu, where it is installed and finds an adapter

`gpu_module.py` makes the module that `build` gives for a GPU.
"""

from __future__ import annotations

from .real import real_driver

__all__ = ["real_driver"]
