# Written by `python dev.py types`, as tests/checker/make_stubs.py says.
from typing import Any as _Any
from . import above as above
from . import extensions as extensions
from mlc_lab.compat.data_type import DataType as DataType
from mlc_lab.compat.data_type import DataTypeCode as DataTypeCode
from mlc_lab.runtime.device import Device as Device
from mlc_lab.ir.diagnostics import DiagnosticError as DiagnosticError
from mlc_lab.ir.module import IRModule as IRModule
from mlc_lab.reading.errors import MLCError as MLCError
from mlc_lab.runtime.ndarray import NDArray as NDArray
from mlc_lab.reading.errors import MLCError as _TVMError
TVMError = _TVMError
_ffi: _Any
from mlc_lab import arith as arith
from mlc_lab.meta_schedule.legacy import auto_scheduler as auto_scheduler
from mlc_lab.meta_schedule.legacy import autotvm as autotvm
from mlc_lab import backend as backend
from mlc_lab.build import build as build
from mlc_lab import compat as compat
from mlc_lab.build import compile as compile
container: _Any
from mlc_lab.compat import contrib as contrib
from mlc_lab.observe.gpu.counts import count_gpu as count_gpu
from mlc_lab.runtime.device import cpu as cpu
from mlc_lab.runtime.device import cuda as cuda
from mlc_lab.runtime.device import device as device
from mlc_lab.schedule.open_number import divisors as divisors
from mlc_lab import dlight as dlight
driver: _Any
error: _Any
from mlc_lab.observe.live import explore_live as explore_live
from mlc_lab.observe.gpu.races import find_races as find_races
from mlc_lab.runtime.registry import get_global_func as get_global_func
from mlc_lab.runtime.device import cuda as _gpu
gpu = _gpu
from mlc_lab.observe.gpu.browser import in_browser as in_browser
instrument: _Any
from mlc_lab import ir as ir
from mlc_lab.schedule.open_number import live as live
from mlc_lab.compat import load_ipython_extension as load_ipython_extension
from mlc_lab.lower.pipeline import lower as lower
from mlc_lab import meta_schedule as meta_schedule
from mlc_lab.runtime.device import metal as metal
nd: _Any
from mlc_lab import observe as observe
from mlc_lab.runtime.device import opencl as opencl
from mlc_lab.observe.gpu.threads import record_threads as record_threads
from mlc_lab.runtime.registry import register_func as register_func
from mlc_lab.runtime.registry import register_func as _register_global_func
register_global_func = _register_global_func
from mlc_lab import relax as relax
from mlc_lab import runtime as runtime
s_tir: _Any
from mlc_lab import schedule as schedule
from mlc_lab import script as script
from mlc_lab import target as target
from mlc_lab import te as te
from mlc_lab import testing as testing
from mlc_lab import tir as tir
from mlc_lab import tir as _tirx
tirx = _tirx
from mlc_lab import topi as topi
from mlc_lab.ir import transform as transform
from mlc_lab.observe.typed import type_live as type_live
from mlc_lab.compat import unload_ipython_extension as unload_ipython_extension
from mlc_lab.runtime.device import webgpu as webgpu
from mlc_lab.observe.workbench import open_workbench as _workbench
workbench = _workbench
__version__: str
