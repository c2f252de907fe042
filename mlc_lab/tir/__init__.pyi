# Written by `python dev.py types`, as tests/checker/make_stubs.py says.
from typing import Any as _Any
from ..above import name_above as name_above
from . import expr as expr
from . import function as function
from . import functor as functor
from . import ir_builder as ir_builder
from . import op as op
from . import stmt as stmt
from .buffer import Buffer as Buffer
from .buffer import decl_buffer as decl_buffer
from .data_layout import BijectiveLayout as BijectiveLayout
from .data_layout import Layout as Layout
from .data_layout import bijective_layout as bijective_layout
from .data_layout import layout as layout
from .expr import *
from .function import IndexMap as IndexMap
from .function import PrimFunc as PrimFunc
from .function import TensorIntrin as TensorIntrin
from .functor import Mutator as Mutator
from .functor import Visitor as Visitor
from .functor import free_vars as free_vars
from .functor import ir_transform as ir_transform
from .functor import post_order_visit as post_order_visit
from .functor import pre_order as pre_order
from .functor import pre_order_visit as pre_order_visit
from .functor import substitute as substitute
from .functor import uses_var as uses_var
from .op import *
from .op.registering import CallEffectKind as CallEffectKind
from .stmt import *
from .well_formed import verify_well_formed as verify_well_formed
from mlc_lab.compat.passes import unknown_extent as _own_Any
Any = _own_Any
from mlc_lab.compat.block_dependence_info import BlockDependenceInfo as BlockDependenceInfo
from mlc_lab.schedule.instruction import BlockRV as BlockRV
from mlc_lab.tir.expr import Var as _ExprRV
ExprRV = _ExprRV
from mlc_lab.schedule.instruction import Instruction as Instruction
from mlc_lab.schedule.instruction import InstructionKind as InstructionKind
from mlc_lab.schedule.instruction import LoopRV as LoopRV
from mlc_lab.schedule.schedule import Schedule as Schedule
from mlc_lab.schedule.error import ScheduleError as ScheduleError
from mlc_lab.schedule.state import ScheduleState as ScheduleState
from mlc_lab.schedule.state import StmtSRef as StmtSRef
from mlc_lab.schedule.trace import Trace as Trace
analysis: _Any
from mlc_lab.compat import block_dependence_info as block_dependence_info
from mlc_lab.compat import block_dependence_info as _block_scope
block_scope = _block_scope
from mlc_lab.tir.reduction import comm_reducer as comm_reducer
from mlc_lab.tir.op.arithmetic import mul as _multiply
multiply = _multiply
schedule: _Any
stmt_functor: _Any
from mlc_lab.compat.passes import stmt_list as stmt_list
from mlc_lab.tir.stmt import seq as _stmt_seq
stmt_seq = _stmt_seq
from mlc_lab.tir.op.arithmetic import sub as _subtract
subtract = _subtract
from mlc_lab.tir.reduction import sum as sum
from mlc_lab.compat import tensor_intrin as tensor_intrin
transform: _Any
