# Written by `python dev.py types`, as tests/checker/make_stubs.py says.
from typing import Any as _Any
from ..above import name_above as name_above
from .diagnostics import DiagnosticError as DiagnosticError
from .diagnostics import MLCError as MLCError
from .diagnostics import WellFormedError as WellFormedError
from .diagnostics import render_source as render_source
from .global_info import DummyGlobalInfo as DummyGlobalInfo
from .global_info import GlobalInfo as GlobalInfo
from .global_info import VDevice as VDevice
from .module import BaseFunc as BaseFunc
from .module import GlobalVar as GlobalVar
from .module import IRModule as IRModule
from .node import Node as Node
from .node import node as node
from .structural import assert_structural_equal as assert_structural_equal
from .structural import structural_equal as structural_equal
from .structural import structural_hash as structural_hash
from mlc_lab.tir.expr import Op as Op
from mlc_lab.tir.expr import PointerType as PointerType
from mlc_lab.tir.expr import PrimExpr as PrimExpr
from mlc_lab.tir.expr import PrimType as PrimType
from mlc_lab.tir.expr import Range as Range
from mlc_lab.relax.struct_info_nodes import Expr as _RelaxExpr
RelaxExpr = _RelaxExpr
base: _Any
from mlc_lab.ir import transform as _instrument
instrument = _instrument
from mlc_lab.ir.serialize import load_json as load_json
from mlc_lab.tir.op.registering import register_intrin_lowering as register_intrin_lowering
from mlc_lab.tir.op.registering import register_op_attr as register_op_attr
from mlc_lab.ir.serialize import save_json as save_json
from mlc_lab.ir import transform as transform
