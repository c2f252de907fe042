"""TensorIR, the language of tensor programs. Its whole grammar (a test keeps it in step):

    Expr   = Var(name, dtype) | SizeVar | IntImm(dtype, value) | FloatImm | StringImm(value)
           | Add(a, b) | Sub | Mul | Div | Mod | FloorDiv | FloorMod | Min | Max
           | EQ(a, b) | NE | LT | LE | GT | GE | And(a, b) | Or | Not(a)
           | Select(condition, true_value, false_value) | Cast(dtype, value)
           | BufferLoad(buffer, indices, predicate?) | ProducerLoad(producer, indices)
           | Ramp(base, stride, lanes) | Broadcast(value, lanes) | Shuffle(vectors, indices)
           | Let(var, value, body) | Call(dtype, op, args)
           | Reduce(combiner, source, axis, condition, value_index, init)

    Stmt   = For(loop_var, min, extent, kind, body, thread_binding?, annotations)
           | BlockRealize(iter_values, predicate, block)
           | Block(iter_vars, reads, writes, name_hint, alloc_buffers, match_buffers,
                   annotations, init?, body)
           | BufferStore(buffer, value, indices, predicate?) | SeqStmt(seq) | Evaluate(value)
           | IfThenElse(condition, then_case, else_case?) | While(condition, body)
           | LetStmt(var, value, body) | AttrStmt(node, attr_key, value, body)
           | AssertStmt(condition, message, body) | DeclBuffer(buffer, body)
           | Allocate(buffer_var, dtype, extents, condition, body, annotations)
           | AllocateConst(buffer_var, dtype, extents, data, body, annotations)

    Parts  = Buffer(data, dtype, shape, strides, elem_offset, name, ...) | Range(min, extent)
           | IterVar(dom, var, iter_type, thread_tag) | BufferRegion(buffer, region)
           | MatchBufferRegion(buffer, source) | CommReducer(lhs, rhs, result, identity_element)
           | PrimType(dtype) | PointerType(element_type, storage_scope) | Op(name)

    Func   = PrimFunc(params, buffer_map, attrs, ret_type, body)

Read `expr.py`, `buffer.py`, `stmt.py`, `function.py`, then `op/` (building expressions) and
`functor.py` (walking and rewriting). What a program means is `backend/meaning.py`.
"""

from ..above import name_above
from . import expr, function, functor, ir_builder, op, stmt
from . import layout as _layout  # noqa: F401  # pyright: ignore[reportUnusedImport]  (before the function of that name)
from .buffer import Buffer, decl_buffer
from .data_layout import BijectiveLayout, Layout, bijective_layout, layout
from .expr import *  # noqa: F403
from .function import IndexMap, PrimFunc, TensorIntrin
from .functor import (
    Mutator, Visitor, free_vars, ir_transform, post_order_visit, pre_order, pre_order_visit,
    substitute, uses_var,
)
from .op import *  # noqa: F403
from .op.registering import CallEffectKind
from .stmt import *  # noqa: F403
from .well_formed import verify_well_formed


def __getattr__(name: str) -> object:
    """A name that TVM has here and that stands above (`Schedule`, `transform`, ...)."""
    value = globals()[name] = name_above("tir", name)
    return value


__all__: list[str] = [
    "BijectiveLayout", "Buffer", "CallEffectKind", "IndexMap", "Layout", "Mutator", "PrimFunc",
    "TensorIntrin", "Visitor", "bijective_layout", "decl_buffer", "expr", "free_vars", "function",
    "functor", "ir_builder", "ir_transform", "layout", "op", "post_order_visit", "pre_order",
    "pre_order_visit", "stmt", "substitute", "uses_var", "verify_well_formed",
]
__all__ += expr.__all__
__all__ += stmt.__all__
__all__ += op.__all__
# names that would hide Python's own in `from mlc_lab.tir import *`
__all__.remove("abs")
__all__.remove("all")
__all__.remove("any")
__all__.remove("max")
__all__.remove("min")
__all__.remove("pow")
__all__.remove("round")
