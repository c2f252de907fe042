"""TVM's `tir.analysis`: what is asked about a program as it stands."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ..arith import Analyzer
from ..ir import dtype as dt
from ..ir.module import IRModule
from ..ir.transform import Pass, PassContext, PassInfo
from ..schedule.error import Refusal, ScheduleError
from ..tir.access import block_access_regions
from ..tir.expr import BufferLoad, Call, IntImm, Let, Op, PointerType, Var
from ..tir.function import PrimFunc
from ..tir.functor import Visitor, pre_order, substitute
from ..tir.op import as_int, effect_of
from ..tir.op.intrinsic import OPAQUE, UPDATES
from ..tir.stmt import (
    Allocate, AllocateConst, AttrStmt, Block, BlockRealize, BufferStore, DeclBuffer, For,
    IfThenElse, LetStmt, Stmt,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..tir.buffer import Buffer

#: calls that steer the function itself, or say what holds of it
_OWN = {"tir.ret", "tir.break_loop", "tir.continue_loop", "tir.assume"}

# ------------------------------------------------------------------------------- purity


def is_pure_function(func: PrimFunc) -> bool:
    """Whether a function only computes: it writes no memory but its own, and calls nothing that may
    do more."""
    return not _effect(func)


def assert_pure_function(func: PrimFunc) -> bool:
    """The same; AssertionError, with what is not pure, where it is not."""
    effect = _effect(func)
    if effect:
        raise AssertionError(f"the function is not pure: {effect}")
    return True


def _effect(func: PrimFunc) -> str:
    """What a function does to the world, "" if nothing."""
    outside = {*func.params, *(b.data for b in func.buffer_map.values())}
    nodes = list(pre_order(func.body))
    for node in nodes:  # other names of that memory
        if isinstance(node, Block):
            outside.update(m.buffer.data for m in node.match_buffers
                           if m.source.buffer.data in outside)
        elif isinstance(node, (Let, LetStmt)) and node.var.dtype == "handle":
            outside.add(node.var)
    for node in nodes:
        if isinstance(node, BufferStore) and node.buffer.data in outside:
            return f"it writes {node.buffer.name}"
        if isinstance(node, Call) and effect_of(node) in (OPAQUE, UPDATES) and not (
                isinstance(node.op, Op) and node.op.name in _OWN):
            return f"it calls {node!r}"
    return ""


def struct_info_of(func: PrimFunc) -> Any:
    """The FuncStructInfo of a function of TensorIR."""
    from .. import relax

    params = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            params.append(relax.TensorStructInfo(buffer.shape, buffer.dtype))
        elif param.dtype == "handle":
            params.append(relax.ObjectStructInfo())
        else:
            params.append(relax.PrimStructInfo(param.dtype))
    result = func.ret_type if isinstance(func.ret_type, str) else getattr(
        func.ret_type, "dtype", None)
    gives = relax.TupleStructInfo([]) if result in (None, "", "void") else (
        relax.PrimStructInfo(result) if result != "handle" else relax.ObjectStructInfo())
    return relax.FuncStructInfo(params, gives, is_pure_function(func))


# ------------------------------------------------------------------------------- definitions


def verify_ssa(func: PrimFunc) -> bool:
    """Whether every variable is bound once. A `Let` may stand twice, with the same value."""
    known: dict[Var, Any] = {}

    def bind(var: Var, by: Any) -> bool:
        before = known.setdefault(var, by)
        return before is by or isinstance(by, Let) and isinstance(before, Let) and (
            _same(before.value, by.value))

    if not all(bind(p, (i, p)) for i, p in enumerate(func.params)):
        return False
    return all(bind(var, node) for node in pre_order(func.body) for var in _bound_by(node))


def _same(a: Any, b: Any) -> bool:
    from ..ir.structural import structural_equal

    return bool(structural_equal(a, b))


def _bound_by(node: Any) -> list[Var]:
    if isinstance(node, For):
        return [node.loop_var]
    if isinstance(node, (Let, LetStmt)):
        return [node.var]
    if isinstance(node, (Allocate, AllocateConst)):
        return [node.buffer_var]
    if isinstance(node, Block):
        return [*(iv.var for iv in node.iter_vars), *(b.data for b in node.alloc_buffers)]
    return []


# ------------------------------------------------------------------------------- bounds


def OOBChecker() -> Pass:
    """A pass that raises ScheduleError where an access is outside of its buffer.

    An access counts where an iteration is found that makes it; one of which it is not known whether
    it is outside passes.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        for func in mod.functions.values():
            if isinstance(func, PrimFunc):
                checker = _Bounds()
                checker.visit(func.body)
                if checker.found is not None:
                    node, text = checker.found
                    raise ScheduleError("OOBChecker", "OOBChecker()", Refusal(
                        "access_is_inside", text, nodes=[node]), mod)
        return mod

    return Pass(run, PassInfo("OOBChecker", 0, ()))


class _Bounds(Visitor):
    """Looks for an access outside of its buffer in the corners of the iteration space."""

    def __init__(self) -> None:
        self.domains: dict[Var, tuple[int, int]] = {}
        self.values: dict[Var, Any] = {}
        self.conditions: list[Any] = []
        self.found: tuple[Any, str] | None = None

    def visit_For(self, node: For) -> None:
        low, extent = as_int(node.min), as_int(node.extent)
        if extent == 0:
            return
        if low is not None and extent is not None:
            self.domains[node.loop_var] = (low, low + extent - 1)
        self.visit(node.body)

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        for iv, value in zip(node.block.iter_vars, node.iter_values):
            self.values[iv.var] = substitute(value, self.values)
        self.under(node.predicate, lambda: self.visit(node.block))

    def visit_LetStmt(self, node: LetStmt) -> None:
        self.visit(node.value)
        self.values[node.var] = substitute(node.value, self.values)
        self.visit(node.body)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        from ..tir.op import logical_not

        self.visit(node.condition)
        self.under(node.condition, lambda: self.visit(node.then_case))
        if node.else_case is not None:
            other = node.else_case
            self.under(logical_not(node.condition), lambda: self.visit(other))

    def visit_Call(self, node: Call) -> None:
        from ..tir.op import logical_not

        if isinstance(node.op, Op) and node.op.name == "tir.if_then_else":
            self.visit(node.args[0])
            self.under(node.args[0], lambda: self.visit(node.args[1]))
            self.under(logical_not(node.args[0]), lambda: self.visit(node.args[2]))
        else:
            self.visit_children(node)

    def under(self, condition: Any, visit: Any) -> None:
        self.conditions.append(substitute(condition, self.values))
        visit()
        self.conditions.pop()

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self.check(node)
        self.visit_children(node)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.check(node)
        self.visit_children(node)

    def check(self, node: BufferLoad | BufferStore) -> None:
        analyzer = Analyzer()
        for axis, (index, size) in enumerate(zip(node.indices, node.buffer.shape)):
            extent = as_int(size)
            if self.found is not None or extent is None or dt.lanes_of(index.dtype) != 1:
                continue
            index = substitute(index, self.values)
            names = [n for n in pre_order(index) if isinstance(n, Var)]
            inner = list(dict.fromkeys(v for v in names if v in self.domains))[:8]
            for corner in itertools.product(*(set(self.domains[v]) for v in inner)):
                at = {v: IntImm(v.dtype, value) for v, value in zip(inner, corner)}
                value = as_int(analyzer.simplify(substitute(index, at)))
                if value is None or 0 <= value < extent or not all(
                        as_int(analyzer.simplify(substitute(c, at))) == 1
                        for c in self.conditions):
                    continue
                where = ", ".join(f"{v.name} = {n}" for v, n in zip(inner, corner))
                self.found = (node, f"buffer {node.buffer.name} has {extent} elements in dimension "
                              f"{axis}, and is accessed at {value}" + (f" where {where}"
                                                                       if where else ""))
                return


# ------------------------------------------------------------------------------- memory


def calculate_allocated_bytes(func_or_mod: PrimFunc | IRModule) -> dict[str, dict[str, int]]:
    """The most bytes that are allocated at one time, by function and by scope of memory.

    Of a single function under the name "main". What has a size that is not known is left out.
    """
    if isinstance(func_or_mod, PrimFunc):
        return {"main": _most(func_or_mod, 1, False)}
    return {var.name_hint: _most(func, 1, False) for var, func in func_or_mod.functions.items()
            if isinstance(func, PrimFunc)}


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """The most bytes that a function allocates at one time, each allocation aligned."""
    return sum(_most(func, workspace_byte_alignment, False).values())


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int) -> int:
    """The bytes of the constants in a function, each aligned."""
    return sum(_most(func, constant_byte_alignment, True).values())


def _most(func: PrimFunc, alignment: int, constants: bool) -> dict[str, int]:
    given = {*func.params, *(b.data for b in func.buffer_map.values())}
    now: dict[str, int] = {}
    most: dict[str, int] = {}

    def walk(node: Any, made: frozenset[Var]) -> None:
        taken = [(var, scope, -(-size // alignment) * alignment)
                 for var, scope, size in _allocations(node, constants) if var not in made]
        for _, scope, size in taken:
            now[scope] = now.get(scope, 0) + size
            most[scope] = max(most.get(scope, 0), now[scope])
        made = made.union(var for var, _, _ in taken)
        for child in node.children():
            if isinstance(child, Stmt):
                walk(child, made)
        for _, scope, size in taken:
            now[scope] -= size

    walk(func.body, frozenset(given))
    return most


def _allocations(node: Any, constants: bool) -> Iterator[tuple[Var, str, int]]:
    """(pointer, scope, bytes) of the memory that a statement makes."""
    if isinstance(node, AllocateConst if constants else Allocate):
        kind = node.buffer_var.type_annotation
        scope = kind.storage_scope if isinstance(kind, PointerType) else "global"
        yield from _sized(node.buffer_var, scope or "global", node.dtype, node.extents)
    elif not constants and isinstance(node, DeclBuffer):
        yield from _sized(node.buffer.data, node.buffer.scope(), node.buffer.dtype,
                          node.buffer.shape)
    elif not constants and isinstance(node, Block):
        for buffer in node.alloc_buffers:
            yield from _sized(buffer.data, buffer.scope(), buffer.dtype, buffer.shape)


def _sized(var: Var, scope: str, dtype: str, shape: Any) -> Iterator[tuple[Var, str, int]]:
    size = -(-dt.bits_of(dtype) * dt.lanes_of(dtype) // 8)
    for dim in shape:
        extent = as_int(dim)
        if extent is None:
            return
        size *= extent
    yield var, scope, size


# ------------------------------------------------------------------------------- places of access


def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, Stmt | None]:
    """Of each buffer the innermost loop or block with all accesses of it; None: the function.

    Memory outside of kernels, given or global, belongs above no loop over blocks of threads: such
    an access counts as made in the innermost of these loops.
    """
    found: dict[Buffer, tuple[Stmt, ...]] = {}
    buffers = {b.data: b for b in func.buffer_map.values()}
    for node in pre_order(func.body):
        if isinstance(node, Block):
            buffers.update((b.data, b) for b in node.alloc_buffers)
            buffers.update((m.buffer.data, buffers.get(m.source.buffer.data, m.source.buffer))
                           for m in node.match_buffers)

    def note(data: Var, path: tuple[Stmt, ...]) -> None:
        buffer = buffers.get(data)
        if buffer is None:
            return
        if buffer.scope() == "global":
            grid = [n for n, s in enumerate(path) if isinstance(s, For) and (
                s.thread_binding is not None and s.thread_binding.thread_tag[:8] == "blockIdx")]
            if grid:
                path = path[:grid[-1] + 1]
        before = found.get(buffer, path)
        shared = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(before, path))
        found[buffer] = tuple(a for a, _ in shared)

    def walk(node: Any, path: tuple[Stmt, ...]) -> None:
        if isinstance(node, Block):
            path = (*path, node)
            children = [node.init, node.body] if node.init is not None else [node.body]
        elif isinstance(node, For):
            walk(node.min, path)
            walk(node.extent, path)
            children, path = [node.body], (*path, node)
        else:
            if isinstance(node, (BufferLoad, BufferStore)):
                note(node.buffer.data, path)
            elif isinstance(node, Var):
                note(node, path)
            children = list(node.children())
        for child in children:
            walk(child, path)

    walk(func.body, ())
    return {buffer: path[-1] if path else None for buffer, path in found.items()}


def get_block_read_write_region(block: Block, buffer_var_map: Mapping[Var, Buffer]
                                ) -> list[list[Any]]:
    """[reads, writes] of a block: what is used by its pointer counts as both, or as what
    `tvm_access_ptr` says that it is used for."""
    reads, writes, opaque = map(list, block_access_regions(block, buffer_var_map))
    masks: dict[Var, int] = {}
    through: list[Call] = []
    for node in pre_order(block.body):
        if isinstance(node, Call) and isinstance(node.op, Op) and (
                node.op.name == "tir.tvm_access_ptr") and isinstance(node.args[1], Var):
            mask = as_int(node.args[4])
            masks[node.args[1]] = masks.get(node.args[1], 0) | (3 if mask is None else mask)
            through.append(node)
    for region in opaque:
        uses = sum(1 for n in pre_order(block.body) if n is region.buffer.data)
        said = sum(1 for n in through if n.args[1] is region.buffer.data)
        mask = masks.get(region.buffer.data, 3) if uses <= said else 3
        if mask & 1:
            reads.append(region)
        if mask & 2:
            writes.append(region)
    return [reads, writes]


def find_anchor_block(mod: IRModule) -> Block | None:
    """The reduction that most work is done in; None if there is none."""
    best: tuple[int, Block] | None = None
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            for node in pre_order(func.body):
                if isinstance(node, Block) and node.init is not None:
                    size = 1
                    for iv in node.iter_vars:
                        size *= as_int(iv.dom.extent) or 1
                    if best is None or size > best[0]:
                        best = (size, node)
    return best[1] if best else None


def VerifyMemory() -> Pass:
    """A pass that raises RuntimeError where a function for a GPU touches memory of the device
    outside of all loops over threads: there the host would have to run it."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        for var, func in mod.functions.items():
            if isinstance(func, PrimFunc) and not verify_memory(func):
                target, node = func.attrs["target"], _on_host(func.body)
                raise RuntimeError(
                    f"function {var.name_hint} is for {target.kind.name}, and accesses "
                    f"{node.buffer.name} outside of all loops that are bound to threads: bind a "
                    "loop around it with sch.bind")
        return mod

    return Pass(run, PassInfo("VerifyMemory", 0, ()))


def verify_memory(func: PrimFunc) -> bool:
    """Whether a function touches memory of a device only in loops over threads. A function for a
    CPU, or for no target in particular, always does right."""
    target = func.attrs.get("target")
    return target is None or "gpu" not in getattr(target, "keys", ()) or (
        _on_host(func.body) is None)


def _on_host(node: Any) -> Any:
    """The first access that no loop over threads is around, or None."""
    if isinstance(node, For) and node.thread_binding is not None or isinstance(
            node, AttrStmt) and node.attr_key in ("thread_extent", "virtual_thread"):
        return None
    if isinstance(node, (BufferLoad, BufferStore)):
        return node
    for child in node.children():
        found = _on_host(child)
        if found is not None:
            return found
    return None


__all__ = ["OOBChecker", "VerifyMemory", "assert_pure_function", "calculate_allocated_bytes",
           "calculate_constant_bytes", "calculate_workspace_bytes", "detect_buffer_access_lca",
           "find_anchor_block", "get_block_read_write_region", "is_pure_function", "verify_memory",
           "verify_ssa"]
