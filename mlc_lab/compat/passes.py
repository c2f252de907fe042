"""Small functions of TVM's `tir.transform` and `tir.analysis` on top of what is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..build import as_module
from ..ir.module import IRModule
from ..ir.structural import Key, Mismatch, structural_equal
from ..ir.transform import Pass, PassInfo, PassContext
from ..lower import FlattenBuffer, lower
from ..runtime.object_path import ObjectPath
from ..tir.access import block_access_regions
from ..tir.expr import SizeVar
from ..tir.function import PrimFunc
from ..tir.functor import free_vars
from ..tir.renew import renew_defs
from ..tir.stmt import SeqStmt, Stmt

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..schedule.schedule import Schedule
    from ..tir.stmt import Block

#: the attribute of functions that come from a schedule of te
OF_TE = "from_legacy_te_schedule"


def prim_func_pass(pass_func: Callable[..., Any] | None = None, opt_level: int = 0,
                   name: str | None = None, required: Sequence[str] = (), traceable: bool = False
                   ) -> Any:
    """Decorator: a function (func, mod, ctx) -> PrimFunc as a pass over all PrimFuncs.

    A class has `transform_function(self, func, mod, ctx)` and is called to make the pass.
    """

    def make_pass(transform: Callable, title: str, doc: str | None) -> Pass:
        def run(mod: IRModule, ctx: PassContext) -> IRModule:
            new = mod.copy()
            for var, func in mod.functions.items():
                if isinstance(func, PrimFunc):
                    new.update_func(var, transform(func, mod, ctx))
            return new

        run.__doc__ = doc
        return Pass(run, PassInfo(title, opt_level, tuple(required)))

    def decorate(target: Any) -> Any:
        title = name or target.__name__
        if isinstance(target, type):
            def make(*args: object, **kwargs: object) -> Pass:
                return make_pass(target(*args, **kwargs).transform_function, title, target.__doc__)

            make.__name__, make.__doc__ = target.__name__, target.__doc__
            return make
        return make_pass(target, title, target.__doc__)

    return decorate if pass_func is None else decorate(pass_func)


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> Pass:
    """A pass that applies a function to every PrimFunc."""
    return prim_func_pass(lambda func, mod, ctx: ftransform(func), name="Apply")


def verify_trace_roundtrip(sch: Schedule, mod: IRModule | PrimFunc, *,
                           debug_mask: str | int = "all", text_format: Any = None) -> Any:
    """Replay a schedule's trace, by way of JSON, on the module it began with.

    Returns the new schedule; AssertionError where it comes to another program or another trace.
    """
    from ..schedule import Schedule, Trace

    again = Schedule(mod, debug_mask=debug_mask)
    assert sch.trace is not None and again.trace is not None
    Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    if not structural_equal(again.mod, sch.mod):
        raise AssertionError(f"the replayed trace comes to another program:\n{again.mod.script()}")
    if again.trace.as_python() != sch.trace.as_python():
        raise AssertionError("the replayed trace is written differently")
    return again


def assert_structural_equal_ignore_global_symbol(func1: IRModule | PrimFunc,
                                                 func2: Any, *args: Any) -> None:
    """ValueError where two functions differ in more than the name they are known by."""
    from ..ir.structural import assert_structural_equal

    assert_structural_equal(func1.with_attr("global_symbol", ""),
                            func2.with_attr("global_symbol", ""), *args)


def get_first_structural_mismatch(lhs: Any, rhs: Any, map_free_vars: bool = False
                                  ) -> tuple[ObjectPath, ObjectPath] | None:
    """The paths to where two programs first differ, in each of them; None where they do not."""
    found = structural_equal(lhs, rhs, map_free_vars)
    if not isinstance(found, Mismatch):
        return None
    return _object_path(found.steps, True), _object_path(found.steps, False)


def _object_path(steps: Sequence[Any], of_lhs: bool) -> ObjectPath:
    path: ObjectPath = ObjectPath.root()
    for step in steps:
        if isinstance(step, int):
            path = path.array_index(step)
        elif isinstance(step, str):
            path = path.attr(step.removeprefix("."))
        elif isinstance(step, Key):
            path = path.map_value(step.lhs if of_lhs else step.rhs)
        elif step.in_lhs == of_lhs:  # what is lacking here
            path = path.missing_map_entry() if step.is_key else path.missing_array_element(step.at)
        else:
            path = path.map_value(step.at) if step.is_key else path.array_index(step.at)
    return path


def get_block_access_region(block: Block, buffer_var_map: Any = None) -> list[list[Any]]:
    """[reads, writes, opaque] of a block, found from its body."""
    return [list(part) for part in block_access_regions(block, buffer_var_map)]


def expr_deep_equal(lhs: Any, rhs: Any) -> bool:
    """Whether two expressions are written the same, over the same variables."""
    return bool(structural_equal(lhs, rhs))


def undefined_vars(node: Node, defs: Sequence[Any] = ()) -> list[Any]:
    """Variables that are used but not bound in `node` and not among `defs`."""
    known = set(defs)
    return [v for v in free_vars(node) if v not in known]


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, those of sequences in it too; a statement by itself."""
    if isinstance(stmt, SeqStmt):
        return [s for part in stmt.seq for s in stmt_list(part)]
    return [stmt]


def unknown_extent() -> SizeVar:
    """`tir.Any()`: an extent of which nothing is known; here a size of its own each time."""
    return SizeVar("any_dim", "int32")


def schedule_to_module(sch: Any, args: Sequence[Any] | None = None, name: str = "main",
                       binds: Any = None, simple_mode: bool = False) -> IRModule:
    """A schedule of te as loops over memory of many dimensions; `args` are the parameters, and
    `binds` gives them buffers of one's own."""
    mod = lower(as_module(sch, args, name, binds), until="LowerOpaqueBlock")
    return IRModule({var: func.with_attr(OF_TE, True) for var, func in mod.functions.items()})


def StorageFlatten(cache_line_size: int = 64, create_bound_attributes: bool = False) -> Pass:
    """FlattenBuffer for the functions that schedules of te came to, and for these alone.

    Memory is aligned here where it is allocated, whatever `cache_line_size` says.
    """

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        flat, new = FlattenBuffer()(mod), mod.copy()
        for var, func in mod.functions.items():
            if isinstance(func, PrimFunc) and (func.attrs or {}).get(OF_TE):
                new.functions[var] = flat.functions[var]
        return new

    run.__doc__ = StorageFlatten.__doc__
    return Pass(run, PassInfo("tir.StorageFlatten"))


def estimate_tir_flops(mod: IRModule | PrimFunc) -> float:
    """The floating point operations that a program does."""
    from ..observe.flops import count

    return float(count(mod))


__all__ = ["Apply", "StorageFlatten", "estimate_tir_flops", "expr_deep_equal",
           "get_block_access_region", "get_first_structural_mismatch", "prim_func_pass",
           "renew_defs", "schedule_to_module", "stmt_list", "undefined_vars", "unknown_extent"]
