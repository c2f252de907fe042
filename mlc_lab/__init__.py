"""MLC Lab: a tensor compiler one can see through.

The way from a tensor program to machine code in readable Python, in the API of TVM 0.12 to 0.18:
`import mlc_lab as tvm` reads like the Machine Learning Compilation course, and after
`mlc_lab.compat.install()` (or `%load_ext mlc_lab`) `import tvm` itself finds this package.

A reader's path through the source:

1. `tir/expr.py`, `tir/stmt.py`: what a tensor program is made of; the whole grammar is in
   `tir/__init__.py`
2. `backend/meaning.py`: what it means
3. `script/`: TVMScript, printed (`printer.py`) and parsed (`parser.py`)
4. `schedule/primitive/split.py`, `schedule/state.py`, `schedule/trace.py`: how it is transformed
5. `arith/`: why a split is legal
6. `schedule/primitive/compute_at.py` with `schedule/compute_location.py`: much to prove
7. `lower/pipeline.py`: from blocks to flat loops
8. `backend/llvm.py`: machine code
9. `te/`, `topi/`: programs from expressions
10. `relax/expr.py`, `relax/transform/fuse_ops.py`, `relax/vm/`: whole models
11. `meta_schedule/`: searching for a schedule

Names are loaded when they are first used, so importing this package is cheap.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from . import above, extensions

__version__ = "0.1.0"

above.ROWS.update(extensions.ROWS)
above.NAMES.update(extensions.NAMES)

#: TVM's name -> where it is: a module, or "module:name"
_NAMES: dict[str, str] = {
    "arith": "mlc_lab.arith", "backend": "mlc_lab.backend", "compat": "mlc_lab.compat",
    "contrib": "mlc_lab.compat.contrib",
    "dlight": "mlc_lab.dlight",
    "ir": "mlc_lab.ir", "meta_schedule": "mlc_lab.meta_schedule",
    "autotvm": "mlc_lab.meta_schedule.legacy.autotvm",
    "auto_scheduler": "mlc_lab.meta_schedule.legacy.auto_scheduler",
    "observe": "mlc_lab.observe", "relax": "mlc_lab.relax", "runtime": "mlc_lab.runtime",
    "schedule": "mlc_lab.schedule", "script": "mlc_lab.script", "target": "mlc_lab.target",
    "te": "mlc_lab.te", "testing": "mlc_lab.testing", "tir": "mlc_lab.tir",
    "topi": "mlc_lab.topi", "build": "mlc_lab.build", "compile": "mlc_lab.build:compile",
    "lower": "mlc_lab.lower",
    "transform": "mlc_lab.ir.transform",
    "IRModule": "mlc_lab.ir:IRModule",
    "MLCError": "mlc_lab.ir:MLCError", "TVMError": "mlc_lab.ir:MLCError",
    "DiagnosticError": "mlc_lab.ir:DiagnosticError",
    "nd": "mlc_lab.compat.namespaces:nd", "instrument": "mlc_lab.compat.namespaces:instrument",
    "s_tir": "mlc_lab.compat.namespaces:s_tir", "tirx": "mlc_lab.tir",
    "error": "mlc_lab.compat.namespaces:error",
    "_ffi": "mlc_lab.compat.namespaces:_ffi", "driver": "mlc_lab.compat.namespaces:driver",
    "container": "mlc_lab.compat.namespaces:container",
    "DataType": "mlc_lab.compat.data_type:DataType", "Device": "mlc_lab.runtime:Device",
    "DataTypeCode": "mlc_lab.compat.data_type:DataTypeCode",
    "cpu": "mlc_lab.runtime:cpu",
    "cuda": "mlc_lab.runtime:cuda", "gpu": "mlc_lab.runtime:cuda",
    "metal": "mlc_lab.runtime:metal", "opencl": "mlc_lab.runtime:opencl",
    "webgpu": "mlc_lab.runtime:webgpu",
    "device": "mlc_lab.runtime:device",
    "register_func": "mlc_lab.runtime:register_func",
    "register_global_func": "mlc_lab.runtime:register_func",
    "get_global_func": "mlc_lab.runtime:get_global_func",
    "NDArray": "mlc_lab.runtime:NDArray",
    "count_gpu": "mlc_lab.observe.gpu.counts:count_gpu",
    "in_browser": "mlc_lab.observe.gpu.browser:in_browser",
    "record_threads": "mlc_lab.observe.gpu.threads:record_threads",
    "find_races": "mlc_lab.observe.gpu.races:find_races",
    "workbench": "mlc_lab.observe.workbench:open_workbench",
    "explore_live": "mlc_lab.observe.live:explore_live",
    "type_live": "mlc_lab.observe.typed:type_live",
    "live": "mlc_lab.schedule.open_number:live",
    "divisors": "mlc_lab.schedule.open_number:divisors",
    "load_ipython_extension": "mlc_lab.compat:load_ipython_extension",
    "unload_ipython_extension": "mlc_lab.compat:unload_ipython_extension",
}


def __getattr__(name: str) -> Any:
    """A public name, loaded the first time it is asked for."""
    path = _NAMES.get(name)
    if path is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = above.load(path)
    except ModuleNotFoundError as error:
        if error.name != path.partition(":")[0]:
            raise
        raise AttributeError(f"{name} is not part of this version of MLC Lab") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Everything that can be asked for."""
    return sorted({*globals(), *_NAMES})


class _CallableModule(ModuleType):
    """A module that is called like the function of its own name: `build(...)`, `lower(...)`."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **kwargs)


class _Facade(ModuleType):
    """This package. Importing a part of it passes by here."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType):
            if name in ("build", "lower") and type(value) is ModuleType:
                value.__class__ = _CallableModule
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
