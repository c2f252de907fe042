"""VMShapeLower: symbolic dimensions become numbers in a table that the function fills as it runs.

Before::

    def main(x: R.Tensor((n, 4), "float32")):
        alloc = R.vm.alloc_tensor(storage, 0, R.shape([n * 2, 4]), R.dtype("float32"))

After::

    def main(x: R.Tensor((n, 4), "float32")):
        shape_heap = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (2,))
        R.call_packed("vm.builtin.check_tensor_info", x, 2, R.dtype("float32"), "...")
        R.call_packed("vm.builtin.match_shape", x, shape_heap, 2, 1, 0, 0, 4, "...")
        cls.shape_func(shape_heap)                # heap[1] = heap[0] * 2
        gv = R.call_packed("vm.builtin.make_shape", shape_heap, 2, 1, 1, 0, 4)
        alloc = R.vm.alloc_tensor(storage, 0, gv, R.dtype("float32"))

The arguments of a function are checked at its entry: kind, dtype, number of dimensions, and then
that dimensions agree. So is its result, where it is declared to be more than what is known of it
before. A dimension of `match_shape` is a code and a number: 0 must equal the number, 1 is stored to
that place of the heap, 2 may be anything, 3 must equal that place of the heap. A dimension of
`make_shape` is 0 with the number, or 1 with the place in the heap; a scalar may also be 2 with the
place of a float64.
"""

from __future__ import annotations

from typing import Any, Sequence

from ...ir.dtype import is_float
from ...ir.module import GlobalVar, IRModule
from ...ir.structural import structural_equal
from ...ir.transform import Pass, PassContext
from ...tir import expr as E
from ...tir.buffer import decl_buffer
from ...tir.function import PrimFunc
from ...tir.functor import free_vars, substitute
from ...tir.op import as_int, cast, reinterpret
from ...tir.stmt import BufferStore, seq
from ..expr import (
    Binding, BindingBlock, Call, DataTypeImm, Expr, ExternFunc, Function, If, MatchCast, PrimValue,
    SeqExpr, StringImm, Tuple, TupleGetItem, Var, VarBinding,
)
from ..op import null_value
from ..op.base import call_builtin_with_ctx
from ..struct_info import (
    FuncStructInfo, ObjectStructInfo, PrimStructInfo, ShapeExpr, ShapeStructInfo, StructInfo,
    TensorStructInfo, TupleStructInfo,
)
from ..struct_info_check import is_base_of
from .lowering import VOID, all_bindings, for_effect
from .rewriting import fresh_name, make_pass

ASSERT_IMM, STORE, SKIP, ASSERT_HEAP = range(4)
USE_IMM, LOAD, LOAD_FLOAT = range(3)
#: a value, the dimensions or the scalar that it is to have, and where that is said
_Match = tuple[Expr, Any, str]


class _Lower:
    """Lowers one function. `added` collects the functions that compute dimensions."""

    def __init__(self, name: str, func: Function, taken: set[str],
                 added: dict[GlobalVar, PrimFunc], contexts: bool) -> None:
        self.name, self.func, self.taken, self.added = name, func, taken, added
        self.contexts = contexts
        self.slots: list[E.PrimExpr] = []
        self.ready: set[int] = set()
        self.heap: Any = None
        self.out: list[Binding] = []

    # -- the heap ---------------------------------------------------------------------------------

    def slot(self, expr: E.PrimExpr) -> int:
        """The place of a dimension in the heap."""
        for at, have in enumerate(self.slots):
            if have is expr or structural_equal(have, expr) is True:
                return at
        self.slots.append(expr)
        return len(self.slots) - 1

    def collect(self) -> None:
        """Give a place to every dimension that is not a number."""
        def values(items: Any) -> None:
            for item in items or ():
                if not isinstance(item, (E.IntImm, E.FloatImm)):
                    self.slot(item)

        def info(i: Any) -> None:
            if isinstance(i, TensorStructInfo):
                values(i.shape.values if type(i.shape) is ShapeExpr else ())
            elif isinstance(i, ShapeStructInfo):
                values(i.values)
            elif isinstance(i, PrimStructInfo):
                values([i.value] if i.value is not None else ())
            elif isinstance(i, TupleStructInfo):
                for field in i.fields_:
                    info(field)

        def expr(e: Any) -> None:
            if type(e) is ShapeExpr:
                values(e.values)
            elif type(e) is PrimValue:
                values([e.value])
            elif type(e) is Tuple:
                for field in e.fields_:
                    expr(field)
            elif type(e) is Call:
                for arg in e.args:
                    expr(arg)
            elif type(e) is If:
                expr(e.cond)

        for param in self.func.params:
            info(param.struct_info_)
        for binding in all_bindings(self.func.body):
            expr(binding.value)
            if type(binding) is MatchCast:
                info(binding.struct_info)
        if type(self.func.body) is SeqExpr:
            expr(self.func.body.body)
        if self.returns_more():
            info(self.func.ret_struct_info)

    def emit(self, name: str, *args: object, out: StructInfo) -> Var:
        """What a function of the machine gives."""
        var = Var("gv", out)
        self.out.append(VarBinding(var, _builtin(name, args, out)))
        return var

    def do(self, name: str, *args: object) -> None:
        """A call of a function of the machine for its effect."""
        self.out.append(for_effect(_builtin(name, args, VOID)))

    def compute(self) -> None:
        """Compute the dimensions that are expressions of known ones and not computed yet."""
        known = {self.slots[at] for at in self.ready if isinstance(self.slots[at], E.Var)}
        todo = [at for at, e in enumerate(self.slots)
                if at not in self.ready and not isinstance(e, E.Var)
                and all(v in known for v in free_vars(e))]
        if not todo:
            return
        heap = decl_buffer((E.IntImm("int64", len(self.slots)),), "int64", "H")
        loads = {e: E.BufferLoad(heap, [E.IntImm("int64", at)])
                 for at, e in enumerate(self.slots) if isinstance(e, E.Var) and e in known}
        stores = [BufferStore(heap, _as_int64(substitute(self.slots[at], loads)),
                              [E.IntImm("int64", at)]) for at in todo]
        name = fresh_name(self.taken, "shape_func")
        self.taken.add(name)
        var = GlobalVar(name)
        self.added[var] = PrimFunc([heap], seq(*stores), attrs={"tir.is_host_func": 1})
        self.out.append(for_effect(Call(var, (self.heap,), struct_info=VOID)))
        self.ready.update(todo)

    # -- checks -----------------------------------------------------------------------------------

    def check(self, values: Sequence[tuple[Expr, StructInfo, str]]) -> None:
        """Check that values are of their kinds, and learn the dimensions that these determine."""
        matches: list[_Match] = []
        for value, info, context in values:
            self._check(value, info, context if self.contexts else "", matches)
        again = [match for match in matches if self._match(*match)]
        self.compute()
        for match in again:
            self._match(*match)

    def _check(self, value: Expr, info: StructInfo, context: str, matches: list[_Match]) -> None:
        """Check a kind; what there is to compare of dimensions goes to `matches`."""
        if isinstance(info, TensorStructInfo):
            dtype = DataTypeImm(info.dtype) if info.dtype else self.null()
            self.do("vm.builtin.check_tensor_info", value, info.ndim, dtype, context)
            if type(info.shape) is ShapeExpr:
                matches.append((value, info.shape.values, context))
        elif isinstance(info, ShapeStructInfo):
            self.do("vm.builtin.check_shape_info", value, info.ndim, context)
            if info.values is not None:
                matches.append((value, info.values, context))
        elif isinstance(info, TupleStructInfo):
            self.do("vm.builtin.check_tuple_info", value, len(info.fields_), context)
            for k, field in enumerate(info.fields_):
                if _says_something(field):
                    self._check(self._field(value, k, field), field, context, matches)
        elif isinstance(info, PrimStructInfo):
            self.do("vm.builtin.check_prim_value_info", value, DataTypeImm(info.dtype), context)
            if info.value is not None:
                matches.append((value, info.value, context))
        elif isinstance(info, FuncStructInfo):
            self.do("vm.builtin.check_func_info", value, context)

    def _field(self, value: Expr, k: int, field: StructInfo) -> Expr:
        if not isinstance(value.struct_info_, TupleStructInfo):  # known to be one when it runs
            return self.emit("vm.builtin.tuple_getitem", value, k, out=ObjectStructInfo())
        item = Var("item", field)
        self.out.append(VarBinding(item, TupleGetItem(value, k)))
        return item

    def _code(self, dim: E.PrimExpr) -> tuple[int, int]:
        number = as_int(dim)
        if number is not None:
            return ASSERT_IMM, number
        at = self.slot(dim)
        if at in self.ready:
            return ASSERT_HEAP, at
        if isinstance(dim, E.Var):
            self.ready.add(at)
            return STORE, at
        return SKIP, 0

    def _match(self, value: Expr, dims: Any, context: str) -> bool:
        """Compare dimensions, or a scalar; whether some are not known yet."""
        if isinstance(dims, E.PrimExpr):
            code, number = self._code(dims)
            self.do("vm.builtin.match_prim_value", value, self.heap, code, number, context)
            return code == SKIP
        codes = [self._code(dim) for dim in dims]
        flat = [n for pair in codes for n in pair]
        self.do("vm.builtin.match_shape", value, self.heap, len(codes), *flat, context)
        return any(code == SKIP for code, _ in codes)

    def null(self) -> Var:
        """A null object."""
        var = Var("gv", ObjectStructInfo())
        self.out.append(VarBinding(var, null_value()))
        return var

    # -- the program ------------------------------------------------------------------------------

    def leaf(self, expr: Expr) -> Any:
        """An argument, with symbolic shapes and scalars made from the heap."""
        if type(expr) is ShapeExpr:
            if all(as_int(v) is not None for v in expr.values):
                return expr
            codes = []
            for v in expr.values:
                number = as_int(v)
                codes += [USE_IMM, number] if number is not None else [LOAD, self.known(v)]
            return self.emit("vm.builtin.make_shape", self.heap, len(expr.values), *codes,
                             out=ShapeStructInfo(ndim=len(expr.values)))
        if type(expr) is PrimValue and not isinstance(expr.value, (E.IntImm, E.FloatImm)):
            code = LOAD_FLOAT if is_float(expr.value.dtype) else LOAD
            return self.emit("vm.builtin.make_prim_value", self.heap, code, self.known(expr.value),
                             out=PrimStructInfo(expr.value.dtype))
        if type(expr) is Tuple:
            new = tuple(map(self.leaf, expr.fields_))
            return expr if all(a is b for a, b in zip(new, expr.fields_)) else Tuple(new)
        return expr

    def known(self, dim: E.PrimExpr) -> int:
        """The place of a dimension that must be known by now."""
        at = self.slot(dim)
        if at not in self.ready:
            raise ValueError(
                f"{self.name}: the dimension {dim} is used before anything determines it; give it "
                "in the shape of a parameter, or by R.match_cast")
        return at

    def binding(self, binding: Binding) -> None:
        """One binding."""
        value = binding.value
        if type(binding) is MatchCast:
            value = self.leaf(value)
            self.check([(value, binding.struct_info,
                         f"ErrorContext(fn={self.name}, loc=match_cast, "
                         f"annotation={_text(binding.struct_info)})")])
            self.out.append(MatchCast(binding.var, value, binding.struct_info))
            return
        if type(value) is Call:
            args = tuple(map(self.leaf, value.args))
            if any(a is not b for a, b in zip(args, value.args)):
                value = Call.from_fields(value.op, args, value.attrs, value.sinfo_args,
                                         value.struct_info_)
        elif type(value) is If:
            value = If.from_fields(self.leaf(value.cond), self.branch(value.true_branch),
                                   self.branch(value.false_branch), value.struct_info_)
        else:
            value = self.leaf(value)
        self.out.append(binding if value is binding.value else VarBinding(binding.var, value))

    def branch(self, body: Any) -> Any:
        """A branch of an If; dimensions learnt in it are known in it only."""
        outer, ready = self.out, set(self.ready)
        self.out = []
        new = self.sequence(body)
        self.out, self.ready = outer, ready
        return new

    def sequence(self, body: Any, result: StructInfo | None = None) -> Any:
        """A body: its bindings, then its value, which is checked to be a `result`."""
        blocks = body.blocks if type(body) is SeqExpr else ()
        for block in blocks:
            for binding in block.bindings:
                self.binding(binding)
        value = self.leaf(body.body if type(body) is SeqExpr else body)
        if result is not None:
            self.check([(value, result, f"ErrorContext(fn={self.name}, loc=return, "
                                        f"annotation={_text(result)})")])
        return SeqExpr.from_fields((BindingBlock(self.out),), value, body.struct_info_)

    def run(self) -> Function:
        """The function lowered."""
        self.collect()
        if self.slots:
            heap = TensorStructInfo(None, "int64", ndim=1)
            self.heap = Var("shape_heap", heap)
            self.out.append(VarBinding(self.heap, call_builtin_with_ctx(
                "vm.builtin.alloc_shape_heap", (PrimValue(len(self.slots)),), sinfo_args=heap)))
        else:
            self.heap = self.null()
        self.check([(param, param.struct_info, (
            f"ErrorContext(fn={self.name}, loc=param[{k}], param={param.name_hint}, "
            f"annotation={_text(param.struct_info)})"))
            for k, param in enumerate(self.func.params)])
        result = self.func.ret_struct_info if self.returns_more() else None
        return self.func.replace(body=self.sequence(self.func.body, result))

    def returns_more(self) -> bool:
        """Whether the function is declared to give what is not known of its value before it runs.
        """
        body = self.func.body
        have = (body.body if type(body) is SeqExpr else body).struct_info_
        return have is not None and not is_base_of(self.func.ret_struct_info, have)


def _builtin(name: str, args: Sequence[Any], out: StructInfo) -> Call:
    given = tuple(a if isinstance(a, Expr) else StringImm(a) if isinstance(a, str)
                  else PrimValue(a) for a in args)
    return Call.from_fields(ExternFunc(name), given, None, (out,), out)


def _as_int64(e: E.PrimExpr) -> E.PrimExpr:
    """What stands in the heap for a value: a float by its bits, as float64."""
    if is_float(e.dtype):
        return reinterpret("int64", cast(e, "float64"))
    return e if e.dtype == "int64" else E.Cast("int64", e)


def _says_something(info: StructInfo) -> bool:
    return not isinstance(info, ObjectStructInfo)


def _text(info: StructInfo) -> str:
    try:
        return str(info)
    except Exception:
        return type(info).__name__


def _rewrite(mod: IRModule, contexts: bool) -> IRModule:
    taken = {v.name_hint for v in mod.functions}
    added: dict[GlobalVar, PrimFunc] = {}
    functions: dict[Any, Any] = {}
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            func = _Lower(var.name_hint, func, taken, added, contexts).run()
        functions[var] = func
    functions.update(added)
    return IRModule(functions, mod.attrs, mod.global_infos)


def VMShapeLower(*, emit_err_ctx: bool = True) -> Pass:
    """Symbolic dimensions become numbers in a table that the function fills as it runs.

    emit_err_ctx: whether checks say where they stand, for the text of their errors. The file's
    text has an example.
    """

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return _rewrite(mod, emit_err_ctx)

    return make_pass("VMShapeLower", run, __doc__)
