"""Whether a program keeps the rules of TensorIR, and where it breaks one.

Each rule has a name:

undefined_variable    a variable is used where nothing defines it
bound_twice           a variable is bound again inside its own scope
undeclared_buffer     a buffer is used that nothing allocates, matches or declares
wrong_rank            an access has more or fewer indices than the buffer has dimensions
index_type            an index is no integer
store_type            a stored value has another type than the buffer's elements
loop_type             a loop's bounds and its variable differ in type, or are no integers
extent_type           an extent, a stride or an offset of a buffer is no integer
iterator_type         a block iterator and its domain differ in type, or its value is no integer
iterator_count        a block gets more or fewer values than it has iterators
loop_variable_inside  a block with iterators uses a loop variable from outside directly
init_without_reduce   a block has an init but no reduction iterator
condition_type        a condition is no bool
unknown_function      a call of a function that the module does not have
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..above import above
from ..ir import dtype as dt
from ..ir.diagnostics import WellFormedError
from ..ir.module import GlobalVar, IRModule
from ..ir.node import Node
from ..ir.recursion import grows_stack
from .buffer import Buffer
from .expr import BufferLoad, Call, IterVar, Let, PrimExpr, Reduce, SizeVar, Var, load_dtype
from .function import PrimFunc
from .stmt import (
    Allocate, AllocateConst, AssertStmt, AttrStmt, Block, BlockRealize, BufferRegion, BufferStore,
    DeclBuffer, For, IfThenElse, LetStmt, Stmt, While,
)

if TYPE_CHECKING:
    from ..ir.module import BaseFunc


@grows_stack
def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Whether a function or module is well formed.

    With `assert_mode` a broken rule raises WellFormedError, which names the rule, shows the program
    with the place underlined and has the offending node; otherwise the answer is False.
    """
    functions = obj.functions.values() if isinstance(obj, IRModule) else [obj]
    module = obj if isinstance(obj, IRModule) else None
    for func in functions:
        if isinstance(func, PrimFunc):
            try:
                _Checker(func, module).run()
            except Broken as broken:
                if not assert_mode:
                    return False
                raise broken.error(func) from None
    return True


class Broken(Exception):
    """A broken rule, on its way out of the walk; Relax's checker raises it too.

    `node` is what offends, `place` the statement or binding it stands in.
    """

    def __init__(self, rule: str, node: Node | None, message: str, place: Node | None, hint: str
                 ) -> None:
        super().__init__(message)
        self.rule, self.node, self.message, self.hint = rule, node, message, hint
        self.place = place

    def error(self, func: BaseFunc) -> WellFormedError:
        """The error for whoever asked: the rule, the program with the place underlined, a hint."""
        shown = None
        for candidate in (self.node, self.place):
            if candidate is None:
                continue
            try:
                text = above("script_underlined")(func, [candidate], 4)
            except Exception:  # the message matters more than the picture
                continue
            if "^" in text:
                shown = text
                break
        out = f"the program is not well formed: {self.message}\n  rule: {self.rule}"
        if self.hint:
            out += f"\n  try:  {self.hint}"
        if shown:
            out += "\n" + "\n".join("    " + line for line in shown.split("\n"))
        error = WellFormedError(out, self.rule, self.node)
        error.statement, error.reason, error.hint = self.place, self.message, self.hint
        return error


class _Checker:
    def __init__(self, func: PrimFunc, module: IRModule | None) -> None:
        self.func, self.module = func, module
        self.defined: dict[Var, int] = {}
        self.left: set[Var] = set()
        self.buffers: set[Buffer] = set()
        self.loops: dict[Var, int] = {}
        self.depth = 0  # how many blocks with iterators are around
        self.stmt: Any = None
        self.seen: set[Buffer] = set()

    def fail(self, rule: str, node: Any, message: str, hint: str = "") -> None:
        raise Broken(rule, node, message, self.stmt, hint)

    # ------------------------------------------------------------------------- scopes

    def bind(self, var: Var, node: Node) -> None:
        if var in self.defined:
            self.fail("bound_twice", node, f"variable {var.name} is bound again inside its own "
                                           "scope", "give each loop and iterator its own variable")
        self.defined[var] = self.depth

    def unbind(self, var: Var) -> None:
        del self.defined[var]
        self.left.add(var)

    def declare(self, buffer: Buffer, match: bool) -> list[Var]:
        """Make a buffer known; returns the variables that its declaration defines."""
        new: list[Var] = []

        def take(var: object) -> None:
            if isinstance(var, Var) and var not in self.defined:
                self.defined[var] = self.depth
                new.append(var)

        self.buffers.add(buffer)
        take(buffer.data)
        if match:
            for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
                take(part)
        for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            if part is not None:
                self.expr(part)
                self.whole(part, f"buffer {buffer.name}")
        return new

    def whole(self, extent: PrimExpr, where: str) -> None:
        if not dt.is_integer(extent.dtype):
            self.fail("extent_type", extent, f"{where} has {extent!r} of type {extent.dtype} as an "
                                             "extent, a stride or an offset: it must be an integer")

    def forget(self, buffer: Buffer, new: list[Var]) -> None:
        self.buffers.discard(buffer)
        for var in new:
            self.unbind(var)

    def run(self) -> None:
        func = self.func
        for param in func.params:
            self.bind(param, func)
        for buffer in func.buffer_map.values():  # shapes may mention each other's variables
            for part in (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset):
                if isinstance(part, Var):
                    self.defined.setdefault(part, 0)
        for buffer in func.buffer_map.values():
            self.declare(buffer, True)
        self.visit(func.body)

    # ------------------------------------------------------------------------- expressions

    def expr(self, node: Any) -> None:
        kind = node.__class__
        if kind is Var or kind is SizeVar:
            self.use(node)
            return
        if kind is BufferLoad:
            self.access(node)
        elif kind is Let:
            self.expr(node.value)
            self.bind(node.var, node)
            self.expr(node.body)
            self.unbind(node.var)
            return
        elif kind is Call and type(node.op) is GlobalVar and self.module is not None:
            if node.op.name_hint not in self.module:
                self.fail("unknown_function", node,
                          f"the module has no function {node.op.name_hint!r}")
        elif kind is Reduce:
            for iv in node.axis:
                self.bind(iv.var, node)
        for item in node.children():
            if isinstance(item, PrimExpr):
                self.expr(item)
        if kind is Reduce:
            for iv in node.axis:
                self.unbind(iv.var)

    def use(self, var: Var) -> None:
        if var not in self.defined:
            if var in self.left:
                self.fail("undefined_variable", var, f"variable {var.name} is used outside of the "
                                                     "scope that binds it")
            self.fail("undefined_variable", var, f"variable {var.name} is used but nothing defines "
                                                 "it")
        if self.loops.get(var, self.depth) < self.depth:
            self.fail("loop_variable_inside", var,
                      f"loop variable {var.name} is used directly inside a block, which may only "
                      "use its own iterators",
                      f"bind an iterator to it, v{var.name} = T.axis.spatial(..., {var.name}), and "
                      "use that")

    def access(self, node: BufferLoad | BufferStore) -> None:
        buffer = node.buffer
        self.known(buffer, node)
        if len(node.indices) != len(buffer.shape):
            self.fail("wrong_rank", node, f"buffer {buffer.name} has {len(buffer.shape)} "
                                          f"dimension(s), the access has {len(node.indices)}")
        for index in node.indices:
            if not (dt.is_int(index.dtype) or dt.is_uint(index.dtype)):
                self.fail("index_type", node, f"an index of {buffer.name} has type {index.dtype}",
                          "an index must be an integer")

    def known(self, buffer: Buffer, node: Node) -> None:
        if buffer in self.buffers:
            return
        if buffer.data not in self.defined:
            self.fail("undeclared_buffer", node,
                      f"buffer {buffer.name} is used where nothing allocates or declares it",
                      "make it with T.alloc_buffer, or use it inside the block that allocates it")

    def condition(self, node: PrimExpr, what: str) -> None:
        self.expr(node)
        if not dt.is_bool(node.dtype):
            self.fail("condition_type", node, f"the condition of {what} has type {node.dtype}")

    # ------------------------------------------------------------------------- statements

    def visit(self, node: Stmt) -> None:
        method = _METHODS.get(type(node))
        if method is None:
            for item in node.children():
                self.visit(item) if isinstance(item, Stmt) else self.expr(item)
            return
        before, self.stmt = self.stmt, node
        method(self, node)
        self.stmt = before

    def visit_for(self, node: For) -> None:
        self.expr(node.min)
        self.expr(node.extent)
        kind = node.loop_var.dtype
        if node.min.dtype != kind or node.extent.dtype != kind:
            self.fail("loop_type", node, f"loop {node.loop_var.name} has type {kind}, its bounds "
                                         f"{node.min.dtype} and {node.extent.dtype}")
        elif not dt.is_integer(kind):
            self.fail("loop_type", node, f"loop {node.loop_var.name} counts in {kind}: its bounds "
                                         "must be integers")
        self.bind(node.loop_var, node)
        self.loops[node.loop_var] = self.depth
        self.visit(node.body)
        del self.loops[node.loop_var]
        self.unbind(node.loop_var)

    def visit_realize(self, node: BlockRealize) -> None:
        block = node.block
        if len(node.iter_values) != len(block.iter_vars):
            self.fail("iterator_count", node, f"block {block.name_hint} has "
                      f"{len(block.iter_vars)} iterators and gets {len(node.iter_values)} values")
        for iv, value in zip(block.iter_vars, node.iter_values):
            self.expr(value)
            if not dt.is_int(value.dtype) and not dt.is_uint(value.dtype):
                self.fail("iterator_type", node, f"iterator {iv.var.name} of block "
                          f"{block.name_hint} gets a value of type {value.dtype}")
        self.condition(node.predicate, f"block {block.name_hint}")
        self.visit(block)

    def visit_block(self, node: Block) -> None:
        for iv in node.iter_vars:
            self.expr(iv.dom.min)
            self.expr(iv.dom.extent)
            if not iv.dom.min.dtype == iv.dom.extent.dtype == iv.var.dtype:
                self.fail("iterator_type", node, f"iterator {iv.var.name} has type {iv.var.dtype}, "
                          f"its domain {iv.dom.extent.dtype}")
        deeper = 1 if node.iter_vars else 0
        self.depth += deeper
        for iv in node.iter_vars:
            self.bind(iv.var, node)
        if node.init is not None and not any(
                iv.iter_type == IterVar.CommReduce for iv in node.iter_vars):
            self.fail("init_without_reduce", node, f"block {node.name_hint} has an init but no "
                      "reduction iterator", "make one with T.axis.reduce, or store the initial "
                                            "value in a block of its own")
        new = [(buffer, self.declare(buffer, False)) for buffer in node.alloc_buffers]
        for match in node.match_buffers:
            self.visit_region(match.source)
            new.append((match.buffer, self.declare(match.buffer, True)))
        if node.init is not None:
            self.visit(node.init)
        self.visit(node.body)
        for region in (*node.reads, *node.writes):  # after the body: its error points better
            self.visit_region(region)
        for buffer, variables in reversed(new):
            self.forget(buffer, variables)
        for iv in node.iter_vars:
            self.unbind(iv.var)
        self.depth -= deeper

    def visit_region(self, node: BufferRegion) -> None:
        self.known(node.buffer, node)
        if len(node.region) != len(node.buffer.shape):
            self.fail("wrong_rank", node, f"buffer {node.buffer.name} has "
                      f"{len(node.buffer.shape)} dimension(s), the region has {len(node.region)}")
        for r in node.region:
            self.expr(r.min)
            self.expr(r.extent)

    def visit_store(self, node: BufferStore) -> None:
        self.access(node)
        for index in node.indices:
            self.expr(index)
        self.expr(node.value)
        wanted = load_dtype(node.buffer, node.indices)
        if node.value.dtype != wanted:
            self.fail("store_type", node, f"a value of type {node.value.dtype} is stored to "
                      f"{node.buffer.name}, which takes {wanted}", "convert it with T.cast")

    def visit_let(self, node: LetStmt) -> None:
        self.expr(node.value)
        self.bind(node.var, node)
        self.visit(node.body)
        self.unbind(node.var)

    def visit_attr(self, node: AttrStmt) -> None:
        self.expr(node.value)
        subject = node.node
        var = subject.var if type(subject) is IterVar else None
        if var is None or var in self.defined:
            self.visit(node.body)
            return
        self.defined[var] = self.depth
        self.visit(node.body)
        self.unbind(var)

    def visit_allocate(self, node: Any) -> None:
        for extent in node.extents:
            self.expr(extent)
            self.whole(extent, f"the allocation of {node.buffer_var.name}")
        if type(node) is Allocate:
            self.condition(node.condition, "an allocation")
        self.bind(node.buffer_var, node)
        self.visit(node.body)
        self.unbind(node.buffer_var)

    def visit_decl(self, node: DeclBuffer) -> None:
        if node.buffer.data not in self.defined:
            self.fail("undefined_variable", node, f"the data pointer of {node.buffer.name} is not "
                                                  "defined", "allocate it with T.allocate")
        new = self.declare(node.buffer, False)
        self.visit(node.body)
        self.forget(node.buffer, new)

    def visit_if(self, node: IfThenElse) -> None:
        self.condition(node.condition, "an if")
        self.visit(node.then_case)
        if node.else_case is not None:
            self.visit(node.else_case)

    def visit_while(self, node: While) -> None:
        self.condition(node.condition, "a while")
        self.visit(node.body)

    def visit_assert(self, node: AssertStmt) -> None:
        self.condition(node.condition, "an assert")
        self.visit(node.body)

    def visit_plain(self, node: Node) -> None:
        for item in node.children():
            self.visit(item) if isinstance(item, Stmt) else self.expr(item)


_METHODS: dict[type[Stmt], Callable[[_Checker, Any], None]] = {
    For: _Checker.visit_for, BlockRealize: _Checker.visit_realize, Block: _Checker.visit_block,
    BufferStore: _Checker.visit_store, LetStmt: _Checker.visit_let, AttrStmt: _Checker.visit_attr,
    Allocate: _Checker.visit_allocate, AllocateConst: _Checker.visit_allocate,
    DeclBuffer: _Checker.visit_decl, IfThenElse: _Checker.visit_if, While: _Checker.visit_while,
    AssertStmt: _Checker.visit_assert,
}

__all__ = ["verify_well_formed"]
