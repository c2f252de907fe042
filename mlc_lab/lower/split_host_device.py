"""SplitHostDevice: each kernel becomes a function of its own, which the host launches.

Before::

    @T.prim_func
    def main(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        blockIdx_x = T.launch_thread("blockIdx.x", (n + 255) // 256)
        threadIdx_x = T.launch_thread("threadIdx.x", 256)
        if blockIdx_x * 256 + threadIdx_x < n:
            B[blockIdx_x * 256 + threadIdx_x] = A[blockIdx_x * 256 + threadIdx_x]

After::

    @T.prim_func
    def main(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        Module.main_kernel(B.data, A.data, n, (n + 255) // 256)

    @T.prim_func
    def main_kernel(B: T.handle("float32"), A: T.handle("float32"), n: T.int32, grid_x: T.int32):
        blockIdx_x = T.launch_thread("blockIdx.x", grid_x)
        threadIdx_x = T.launch_thread("threadIdx.x", 256)
        ...

A kernel is the outermost statement on an axis of threads, with all in it. It takes pointers, then
numbers. Extents of axes that are not constant are computed on the host, and are the last of its
parameters. Its attribute `tir.kernel_launch_params` lists its axes, and `calling_conv` is 2, as in
TVM.
"""

from __future__ import annotations

from typing import Any

from ..ir.module import GlobalVar, IRModule
from ..ir.transform import Pass, PassContext, PassInfo
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Call, IntImm, IterVar, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, free_vars, pre_order, substitute
from ..tir.stmt import (
    Allocate, AllocateConst, AttrStmt, BufferStore, DeclBuffer, Evaluate, Stmt,
)
from .unify_thread_binding import is_axis

#: the attribute of a kernel that lists its axes
LAUNCH_PARAMS = "tir.kernel_launch_params"
_SHORT = {"blockIdx": "grid", "threadIdx": "block"}


def is_kernel(func: object) -> bool:
    """Whether a function is a kernel, which the host launches."""
    return type(func) is PrimFunc and LAUNCH_PARAMS in (func.attrs or {})


def axes_of(kernel: PrimFunc) -> tuple[list[AttrStmt], Stmt]:
    """The statements that name a kernel's axes, outermost first, and the body inside of them."""
    found: list[AttrStmt] = []
    body: Any = kernel.body
    while type(body) in (DeclBuffer, AttrStmt):
        if is_axis(body):
            found.append(body)
        body = body.body
    return found, body


def launch_extents(kernel: PrimFunc) -> dict[str, PrimExpr]:
    """How many threads a kernel has on each axis, by tag: constants, or parameters of it."""
    return {s.node.thread_tag: s.value for s in axes_of(kernel)[0]}


class _Host(Mutator):
    """What stays on the host, with a call in place of each kernel."""

    def __init__(self, name: str, func: PrimFunc, taken: set[str]) -> None:
        super().__init__()
        self.name, self.func, self.taken = name, func, taken
        self.kernels: dict[GlobalVar, PrimFunc] = {}

    def visit(self, node: Any) -> Any:
        """Expressions hold no kernels: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        """Views that only kernels use are declared there."""
        body = self.visit(node.body)
        if body is node.body:
            return node
        return DeclBuffer.from_fields(node.buffer, body) if _uses(body, node.buffer) else body

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        return self._launch(node) if is_axis(node) else self.default(node)

    def _launch(self, node: AttrStmt) -> Stmt:
        var = GlobalVar(self._new_name())
        arguments: list[PrimExpr] = []
        axes, inner = [], node
        while is_axis(inner):
            axes.append(inner)
            inner = inner.body  # type: ignore[assignment]
        body: Stmt = inner
        own = {s.node.var for s in axes}
        buffers = _buffers(body)
        free = [v for v in _free(body, buffers) if v not in own]
        order = {b.data: at for at, b in enumerate(self.func.buffer_map.values())}
        pointers = sorted((v for v in free if v.dtype == "handle"),
                          key=lambda v: order.get(v, len(order)))
        taken = [*pointers, *(v for v in free if v.dtype != "handle")]
        arguments.extend(taken)
        # each function has variables of its own
        params: list[Var] = [v.with_name(v.name) for v in taken]
        for s in reversed(axes):
            extent, word = s.value, s.node.thread_tag
            if type(extent) is not IntImm:
                kind, _, letter = word.partition(".")
                extent = Var(f"{_SHORT.get(kind, kind)}_{letter}", extent.dtype)
                params.append(extent)
                arguments.append(s.value)
            axis = IterVar(None, s.node.var, IterVar.ThreadIndex, word)
            body = AttrStmt(axis, s.attr_key, extent, body)
        for buffer in reversed([b for b in buffers if b.data in pointers]):
            body = DeclBuffer.from_fields(buffer, body)
        body = substitute(body, dict(zip(taken, params)))
        attrs = {k: v for k, v in (self.func.attrs or {}).items() if k in ("tir.noalias", "target")}
        self.kernels[var] = PrimFunc(params, body, None, {}, {
            **attrs, "global_symbol": var.name_hint, "calling_conv": 2, "tir.is_global_func": True,
            LAUNCH_PARAMS: [s.node.thread_tag for s in axes]})
        return Evaluate(Call("void", var, tuple(arguments)))

    def _new_name(self) -> str:
        base = name = f"{self.name}_kernel"
        number = 0
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name


def _uses(body: Stmt, buffer: Buffer) -> bool:
    return any(getattr(item, "buffer", None) is buffer for item in pre_order(body)
               if type(item) in (BufferLoad, BufferStore)) or any(
        type(a) is Buffer and a is buffer
        for item in pre_order(body) if type(item) is Call for a in item.args)


def _buffers(body: Stmt) -> list[Buffer]:
    """The buffers that a kernel uses and does not declare, in order of first use."""
    inside = {s.buffer for s in all_statements(body) if type(s) is DeclBuffer}
    inside_memory = {s.buffer_var for s in all_statements(body)
                     if isinstance(s, (Allocate, AllocateConst))}
    found: dict[Buffer, None] = {}
    for item in pre_order(body):
        if type(item) in (BufferLoad, BufferStore):
            if item.buffer not in inside and item.buffer.data not in inside_memory:
                found.setdefault(item.buffer)
    return list(found)


def _free(body: Stmt, buffers: list[Buffer]) -> list[Var]:
    """The variables that a kernel takes: what it uses, and what the sizes of its buffers say."""
    found = dict.fromkeys(free_vars(body))
    for buffer in buffers:
        found.setdefault(buffer.data)
        for e in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            if e is not None:
                found.update(dict.fromkeys(free_vars(e)))
    inner = {v for s in all_statements(body) if type(s) is AttrStmt and hasattr(s.node, "lhs")
             for v in (*s.node.lhs, *s.node.rhs)}
    return [v for v in found if v not in inner]


def _split(mod: IRModule, ctx: PassContext) -> IRModule:
    """The module with its kernels as functions."""
    out = mod
    taken = {var.name_hint for var in mod.functions}
    for var, func in list(mod.functions.items()):
        if type(func) is not PrimFunc or is_kernel(func):
            continue
        if not any(map(is_axis, all_statements(func.body))):
            continue
        name = str((func.attrs or {}).get("global_symbol", var.name_hint))
        host = _Host(name, func, taken)
        body = host.visit(func.body)
        if out is mod:
            out = mod.copy()
        out.update_func(var, func.with_body(body))
        for kernel, made in host.kernels.items():
            out.update_func(kernel, made)
    return out


def SplitHostDevice() -> Pass:
    """Make each kernel a function of its own, which the host launches."""
    return Pass(_split, PassInfo("tir.SplitHostDevice"))


__all__ = ["LAUNCH_PARAMS", "SplitHostDevice", "axes_of", "is_kernel", "launch_extents"]
