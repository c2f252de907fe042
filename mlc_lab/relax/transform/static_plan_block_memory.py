"""StaticPlanBlockMemory: tensors that are not alive at the same time share their storage.

before::

    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        a = R.builtin.alloc_tensor(R.shape([8]), R.dtype("float32"), R.prim_value(0))
        R.call_packed("env.f", x, a, sinfo_args=(R.Tuple,))
        b = R.builtin.alloc_tensor(R.shape([8]), R.dtype("float32"), R.prim_value(0))
        R.call_packed("env.f", a, b, sinfo_args=(R.Tuple,))
        c = R.builtin.alloc_tensor(R.shape([8]), R.dtype("float32"), R.prim_value(0))
        R.call_packed("env.f", b, c, sinfo_args=(R.Tuple,))
        d = R.builtin.alloc_tensor(R.shape([8]), R.dtype("float32"), R.prim_value(0))
        R.call_packed("env.f", c, d, sinfo_args=(R.Tuple,))
        return d

after `StaticPlanBlockMemory()`::

    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        storage = R.memory.alloc_storage(
            R.shape([32]), R.prim_value(0), R.str("global"), R.dtype("float32"))
        a = R.memory.alloc_tensor(
            storage, R.prim_value(0), R.shape([8]), R.dtype("float32"), R.prim_value(0))
        R.call_packed("env.f", x, a, sinfo_args=(R.Tuple,))
        storage1 = R.memory.alloc_storage(
            R.shape([32]), R.prim_value(0), R.str("global"), R.dtype("float32"))
        b = R.memory.alloc_tensor(
            storage1, R.prim_value(0), R.shape([8]), R.dtype("float32"), R.prim_value(0))
        R.call_packed("env.f", a, b, sinfo_args=(R.Tuple,))
        c = R.memory.alloc_tensor(
            storage, R.prim_value(0), R.shape([8]), R.dtype("float32"), R.prim_value(0))
        R.call_packed("env.f", b, c, sinfo_args=(R.Tuple,))
        d = R.builtin.alloc_tensor(R.shape([8]), R.dtype("float32"), R.prim_value(0))
        R.call_packed("env.f", c, d, sinfo_args=(R.Tuple,))
        return d

A tensor that the function returns, that a branch sees, or that goes to a function which may keep
it, has memory of its own. Which of the others share storage is the planner's decision
(`relax/memory_plan.py`). Symbolic sizes are taken at the bounds the function states
(`tir_var_upper_bound`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir.module import GlobalVar, IRModule
from ...ir.transform import Pass
from ...tir import expr as E
from ...tir.function import PrimFunc
from ...tir.functor import substitute
from ...tir.op import as_int
from ..expr import (
    Binding, Call, Expr, ExternFunc, Function, If, SeqExpr, Tuple, TupleGetItem, Var, VarBinding,
)
from ..memory_plan import Piece, share
from ..op import memory
from ..struct_info import OBJECT, TupleStructInfo
from .lowering import byte_size, expand_bindings
from .rewriting import attr, make_function_pass, op_name, used_vars

_ALLOC = "relax.builtin.alloc_tensor"
#: calls whose result is the memory of their first argument
VIEWS = {"relax.reshape", "relax.flatten", "relax.memory.view", "relax.expand_dims",
         "relax.squeeze", "relax.memory.ensure_zero_offset"}


class Lifetime(NamedTuple):
    """One planned tensor: its variable, bytes, storage, and the bindings (by number) between which
    it is alive, both included."""

    var: Var
    size: Any
    storage: Piece
    first: int
    last: int


class _Liveness:
    """Which allocations each variable may stand for, where each is used last, which escape."""

    def __init__(self, func: Function, mod: IRModule) -> None:
        self.mod = mod
        self.memory: dict[Var, frozenset[Var]] = {}
        self.made: dict[Var, int] = {}
        self.last: dict[Var, int] = {}
        self.escaped: set[Var] = set()
        self.at = 0
        body = func.body
        for block in body.blocks if type(body) is SeqExpr else ():
            for binding in block.bindings:
                self.binding(binding)
                self.at += 1
        self.escape(body.body if type(body) is SeqExpr else body)

    def allocations(self, expr: Expr) -> frozenset[Var]:
        """The allocations that an expression may refer to."""
        found: set[Var] = set()
        for var in used_vars(expr):
            found |= self.memory.get(var, frozenset())
        return frozenset(found)

    def escape(self, expr: Expr) -> None:
        """What `expr` refers to lives longer than can be seen."""
        self.escaped |= self.allocations(expr)

    def binding(self, binding: Binding) -> None:
        """Follow one binding."""
        value, var = binding.value, binding.var
        for allocation in self.allocations(value):
            self.last[allocation] = self.at
        if op_name(value) == _ALLOC:
            self.memory[var] = frozenset([var])
            self.made[var] = self.last[var] = self.at
        elif type(value) is If:
            self.escape(value)
        elif type(value) is Call:
            self.call(value, var)
        else:  # another name, a tuple, an item of one
            self.memory[var] = self.allocations(value)

    def call(self, call: Call, var: Var) -> None:
        """A call: it may fill its arguments, give a view of them, or keep them."""
        name = op_name(call)
        if name in VIEWS:
            self.memory[var] = self.allocations(call.args[0])
        elif isinstance(call.op, E.Op):
            if name not in _HARMLESS:
                self.escape(call)
        elif type(call.op) is GlobalVar:
            if not isinstance(self.mod.functions.get(call.op), PrimFunc):
                self.escape(call)
        elif type(call.op) is ExternFunc:
            info = call.struct_info_
            if not (isinstance(info, TupleStructInfo) and not info.fields_):
                self.escape(call)  # the result may be an argument
        else:
            self.escape(call)


#: operators that use their arguments and keep nothing of them
_HARMLESS = {"relax.vm.call_tir_dyn", "relax.print", "relax.assert_op", "relax.shape_of",
             "relax.tensor_to_shape", "relax.memory.kill_tensor", "relax.memory.kill_storage"}


def plan(func: Function, mod: IRModule) -> list[Lifetime]:
    """The tensors of a function that can share storage, with the storage of each, in the order in
    which they are made."""
    live = _Liveness(func, mod)
    bounds = _upper_bounds(func)
    made = []
    for var, at in live.made.items():
        if var not in live.escaped:
            info: Any = var.struct_info_  # of a tensor whose shape is written out
            size = _bounded(byte_size(info.shape, info.dtype), bounds)
            made.append((var, size, info.dtype, at, live.last[var]))
    storages = share(row[1:] for row in made)
    return [Lifetime(var, size, storage, first, last)
            for (var, size, _, first, last), storage in zip(made, storages)]


def _upper_bounds(func: Function) -> dict[str, int]:
    """The largest values of symbolic dimensions, by name, as the function's attributes say."""
    stated = (func.attrs or {}).get("tir_var_upper_bound") or {}
    bounds = {}
    for name, value in dict(stated).items():
        bound = as_int(value)
        if bound is None:
            raise ValueError(f"tir_var_upper_bound: {name} is at most {value}, which is no whole "
                             "number")
        bounds[str(name)] = bound
    return bounds


def _bounded(size: Any, bounds: dict[str, int]) -> Any:
    """A size with symbolic dimensions at their bounds, where all of them have one."""
    if isinstance(size, int) or not bounds:
        return size
    from ...arith import Analyzer
    from ...tir.functor import free_vars

    names = {v: E.IntImm("int64", bounds[v.name]) for v in free_vars(size) if v.name in bounds}
    new = Analyzer().simplify(substitute(size, names))
    return as_int(new) if as_int(new) is not None else new


def _rewrite(func: Function, mod: IRModule) -> Function:
    lifetimes = {life.var: life for life in plan(func, mod)}
    names: dict[Piece, Var] = {}
    if not lifetimes:
        return func

    def one(binding: Binding) -> list[Binding]:
        life = lifetimes.get(binding.var)
        if life is None:
            return [binding]
        out: list[Binding] = []
        storage = life.storage
        if storage not in names:
            names[storage] = Var("storage", OBJECT)
            out.append(VarBinding(names[storage], memory.alloc_storage(
                [storage.size], 0, "global", storage.dtype)))
        assert isinstance(binding.value, Call)
        shape, dtype = binding.value.args[:2]
        out.append(VarBinding(binding.var, memory.alloc_tensor(names[storage], 0, shape, dtype, 0)))
        return out

    return expand_bindings(func, one)


def StaticPlanBlockMemory() -> Pass:
    """Tensors that are not alive at the same time share their storage.

    The file's text has an example.
    """
    return make_function_pass("StaticPlanBlockMemory", _rewrite, __doc__)


def memory_use(func: Function, mod: IRModule) -> dict[str, Any]:
    """Bytes of the intermediate results of a function after CallTIRRewrite, where shapes are fixed.

    ``"unplanned"``: each with memory of its own; ``"planned"``: the storages of the plan;
    ``"lower_bound"``: the most that is alive at once, which no plan can go below.
    """
    lives = [life for life in plan(func, mod) if isinstance(life.size, int)]
    steps = sorted({life.first for life in lives})
    return {
        "unplanned": sum(life.size for life in lives),
        "planned": sum(storage.size for storage in {life.storage for life in lives}),
        "lower_bound": max((sum(x.size for x in lives if x.first <= at <= x.last)
                            for at in steps), default=0),
        "tensors": len(lives),
        "storages": len({life.storage for life in lives}),
    }


__all__ = ["Expr", "Lifetime", "StaticPlanBlockMemory", "Tuple", "TupleGetItem", "VIEWS",
           "attr", "memory_use", "plan"]
