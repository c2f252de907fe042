"""Imports tvm_ffi without the seconds it takes to import torch along with it.

Where torch is installed, tvm_ffi imports it at once, to exchange tensors faster and to keep an
order of loading that one Windows build needs. Exchange works without (torch's own DLPack methods
are used), so unless torch is loaded already, or this is Windows, it is kept out of the way while
tvm_ffi is imported and can be imported as usual afterwards.
"""

import os
import sys

if "tvm_ffi" not in sys.modules and "torch" not in sys.modules and os.name != "nt":
    modules: dict = sys.modules
    modules["torch"] = None  # makes `import torch` raise ImportError
    try:
        import tvm_ffi  # noqa: F401
    finally:
        del sys.modules["torch"]
