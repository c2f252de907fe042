"""From a lowered Relax function to bytecode.

Each binding is a call of a kernel (a PrimFunc of the module), of a function of the module, of a
registered function, or of a builtin of the machine; the variable it binds gets a register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.diagnostics import MLCError
from ...ir.module import GlobalVar, IRModule
from ...ir.recursion import grows_stack
from ...tir import expr as E
from ...tir.function import PrimFunc
from ...tir.op import as_int
from ..expr import (
    Call, Constant, DataTypeImm, ExternFunc, Function, If, PrimValue, SeqExpr, ShapeExpr, StringImm,
    Tuple, TupleGetItem, Var,
)
from ..op.common import show
from ..op.registry import OPERATORS
from ..struct_info import TensorStructInfo, TupleStructInfo
from .bytecode import (
    VM_REGISTER, VOID_REGISTER, Arg, CallInstr, DType, Executable, Goto, Ret, VMFunction,
)
from .bytecode import If as IfInstr

if TYPE_CHECKING:
    from ...tir.expr import PrimExpr
    from ..expr import Binding

#: operators that stay until here -> the builtin that does it
_OPERATORS = {
    "relax.vm.alloc_tensor": "vm.builtin.alloc_tensor",
    "relax.vm.call_tir_dyn": "vm.builtin.call_tir_dyn",
}


#: what a call for its effect gives
_NOTHING = Arg("r", VOID_REGISTER)


class VMCodegenError(MLCError, ValueError):
    """A function that has no bytecode; the text says which part and what to do."""


@grows_stack
def generate(mod: IRModule, into: Executable | None = None) -> Executable:
    """The bytecode of every Relax function of a lowered module (without kernels), in an executable
    of its own or in one that is given.

    Raises VMCodegenError, naming every operator that has no implementation.
    """
    executable = Executable() if into is None else into
    _check_operators(mod)
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            executable.function_index(var.name_hint)
            executable.functions[var.name_hint] = _Function(executable, mod, var, func).run()
    return executable


def _check_operators(mod: IRModule) -> None:
    from ..transform.lowering import all_bindings

    missing: dict[str, list[str]] = {}
    for var, func in mod.functions.items():
        if not isinstance(func, Function):
            continue
        for binding in all_bindings(func.body):
            call, place = binding.value, f"{var.name_hint}: {binding.var.name_hint}"
            if isinstance(call, Call) and isinstance(call.op, E.Op) and call.op.name not in _KNOWN:
                name = call.op.name
                if getattr(OPERATORS.get(name), "legalize", None) and _lacks_dims(binding, call):
                    raise _no_dims(f"{name} (in {place})", binding, call)
                missing.setdefault(name, []).append(place)
    if missing:
        text = "; ".join(f"{name} (in {', '.join(places[:3])}{', ...' if len(places) > 3 else ''})"
                         for name, places in missing.items())
        raise VMCodegenError(
            f"these operators have no implementation: {text}. Legalise them first "
            "(relax.transform.LegalizeOps with customize_map={...} for operators of one's own), or "
            "call a function instead (R.call_tir, R.call_dps_packed)")


def _lacks_dims(binding: Binding, call: Call) -> bool:
    """Whether a tensor of a call, or its result, has dimensions that are not known."""
    infos = [binding.var.struct_info_, *(a.struct_info_ for a in call.args)]
    return any(isinstance(i, TensorStructInfo) and i.dims is None for i in infos)


def _no_dims(what: str, binding: Binding, call: Call) -> VMCodegenError:
    given = " and ".join(show(a.struct_info_) for a in call.args)
    return VMCodegenError(
        f"{what} of {given} gives "
        f"{show(binding.var.struct_info_)}, whose dimensions are not known when it is built, so "
        "there is no kernel for it. Where two sizes are one, use one variable for both, or say so "
        "with R.match_cast(x, R.Tensor((n,), ...)); where one is broadcast, use R.broadcast_to")


class _Function:
    """The bytecode of one function under construction."""

    def __init__(self, executable: Executable, mod: IRModule, var: GlobalVar,
                 func: Function) -> None:
        self.ex, self.mod, self.func = executable, mod, func
        self.out = VMFunction(var.name_hint, [p.name_hint for p in func.params])
        self.registers: dict[Var, Arg] = {}

    def run(self) -> VMFunction:
        """Generate the whole function."""
        for param in self.func.params:
            self.registers[param] = Arg("r", self.fresh())
        value = self.sequence(self.func.body)
        self.out.code.append(Ret(self.in_register(value)))
        return self.out

    def fresh(self) -> int:
        """A new register."""
        self.out.registers += 1
        return self.out.registers - 1

    def emit(self, name: str, args: Any, dst: int | None = None) -> Arg:
        """A call; gives its result's register."""
        dst = self.fresh() if dst is None else dst
        self.out.code.append(CallInstr(dst, self.ex.function_index(name), tuple(args)))
        return Arg("r", dst)

    def in_register(self, arg: Arg) -> int:
        """A value as a register."""
        if arg.kind == "r":
            return arg.value
        return self.emit("vm.builtin.copy", [arg]).value

    def sequence(self, body: Any) -> Arg:
        """The bindings of a body; gives its value."""
        if type(body) is not SeqExpr:
            return self.value(body)
        for block in body.blocks:
            for binding in block.bindings:
                self.binding(binding)
        return self.value(body.body)

    def binding(self, binding: Binding) -> None:
        """One binding."""
        value = binding.value
        if type(value) is If:
            self.registers[binding.var] = self.branch(value)
        elif type(value) is Call:
            self.call(value, binding.var)
        elif isinstance(value, Var):  # a register of its own, since registers are emptied
            self.registers[binding.var] = self.emit("vm.builtin.copy", [self.value(value)])
        else:
            self.registers[binding.var] = self.value(value)

    # -- values -----------------------------------------------------------------------------------

    def value(self, e: Any) -> Arg:
        """An expression as an argument."""
        kind = type(e)
        if isinstance(e, Var):
            found = self.registers.get(e)
            if found is None:
                raise VMCodegenError(f"{self.out.name}: variable {e.name_hint!r} is used where it "
                                     "is not bound; is the function well-formed?")
            return Arg("c", self.ex.constant_index(())) if found is _NOTHING else found
        if kind is Constant:
            return Arg("c", self.ex.constant_index(e.data))
        if kind is ShapeExpr:
            return Arg("c", self.ex.constant_index(tuple(self.number(v) for v in e.values)))
        if kind is PrimValue:
            if isinstance(e.value, E.FloatImm):
                return Arg("c", self.ex.constant_index(float(e.value.value)))
            return Arg("i", self.number(e.value))
        if kind is StringImm:
            return Arg("c", self.ex.constant_index(e.value))
        if kind is DataTypeImm:
            return Arg("c", self.ex.constant_index(DType(e.value)))
        if kind is Tuple:
            return self.emit("vm.builtin.make_tuple", [self.value(f) for f in e.fields_])
        if kind is TupleGetItem:
            return self.emit("vm.builtin.tuple_getitem",
                             [self.value(e.tuple_value), Arg("i", e.index)])
        if kind is GlobalVar:
            func = self.mod.functions.get(e)
            return Arg("f", self.ex.function_index(
                func.global_symbol if isinstance(func, ExternFunc) else e.name_hint))
        if kind is ExternFunc:
            return Arg("f", self.ex.function_index(e.global_symbol))
        if kind is Call:
            return self.call(e, None)
        raise VMCodegenError(f"{self.out.name}: a {kind.__name__} has no bytecode; run "
                             "relax.transform.Normalize() and the passes of relax.build first")

    def number(self, e: PrimExpr) -> int:
        """A dimension or scalar as a number."""
        value = as_int(e)
        if value is None:
            raise VMCodegenError(f"{self.out.name}: the dimension {e} is symbolic here; "
                                 "relax.transform.VMShapeLower() comes before bytecode")
        return value

    def branch(self, e: If) -> Arg:
        """Both branches, with jumps around them; the value of either ends in one register."""
        cond = self.emit("vm.builtin.read_if_cond", [self.value(e.cond)])
        at = len(self.out.code)
        self.out.code.append(None)
        result = self.fresh()
        value = self.sequence(e.true_branch)
        self.emit("vm.builtin.copy", [value], result)
        jump = len(self.out.code)
        self.out.code.append(None)
        self.out.code[at] = IfInstr(cond.value, len(self.out.code) - at)
        value = self.sequence(e.false_branch)
        self.emit("vm.builtin.copy", [value], result)
        self.out.code[jump] = Goto(len(self.out.code) - jump)
        return Arg("r", result)

    # -- calls ------------------------------------------------------------------------------------

    def call(self, call: Call, var: Var | None) -> Arg:
        """A call; binds `var` to its result."""
        name, args = self.callee(call)
        if name == "vm.builtin.null_value" and call.args:  # kill: the register is emptied
            register = self.registers.get(call.args[0])
            if register is not None and register.kind == "r":
                self.emit(name, [], register.value)
            return Arg("r", VOID_REGISTER)
        info = call.struct_info_
        nothing = isinstance(info, TupleStructInfo) and not info.fields_
        result = self.emit(name, args, VOID_REGISTER if nothing else None)
        if var is not None and not nothing:
            self.registers[var] = result
        elif var is not None:
            self.registers[var] = _NOTHING
        return result

    def callee(self, call: Call) -> tuple[str, list[Arg]]:
        """What a call calls, and with what."""
        op = call.op
        if type(op) is GlobalVar and type(self.mod.functions.get(op)) is ExternFunc:
            op = self.mod.functions[op]
        if type(op) is GlobalVar:
            if op not in self.mod.functions:
                raise VMCodegenError(f"{self.out.name}: it calls {op.name_hint!r}, which the "
                                     "module does not have")
            return op.name_hint, [self.value(a) for a in call.args]
        if type(op) is ExternFunc:
            args = [self.value(a) for a in call.args]
            if op.global_symbol in ("vm.builtin.make_closure", "vm.builtin.invoke_closure"):
                args.insert(0, Arg("r", VM_REGISTER))
            return op.global_symbol, args
        if isinstance(op, Var):
            args = [Arg("r", VM_REGISTER), self.value(op), *(self.value(a) for a in call.args)]
            return "vm.builtin.invoke_closure", args
        name = op.name if isinstance(op, E.Op) else type(op).__name__
        if name in ("relax.vm.kill_object", "relax.null_value"):
            return "vm.builtin.null_value", []
        if name == "relax.vm.alloc_storage":
            args = [self.value(a) for a in call.args]
            return "vm.builtin.alloc_storage", [Arg("r", VM_REGISTER), *args]
        if name == "relax.vm.alloc_tensor":
            return _OPERATORS[name], [self.value(a) for a in call.args[:4]]
        if name == "relax.call_builtin_with_ctx":
            args = [self.value(a) for a in call.args[1].fields_]
            return call.args[0].global_symbol, [Arg("r", VM_REGISTER), *args]
        if name == "relax.vm.call_tir_dyn":
            items = call.args[1].fields_
            return _OPERATORS[name], [self.value(call.args[0]), *(self.value(a) for a in items)]
        raise VMCodegenError(f"{self.out.name}: operator {name} has no bytecode")


_KNOWN = {*_OPERATORS, "relax.vm.kill_object", "relax.null_value", "relax.vm.alloc_storage",
          "relax.call_builtin_with_ctx"}


def kernels_of(mod: IRModule) -> IRModule:
    """The TensorIR functions of a module."""
    return IRModule({v: f for v, f in mod.functions.items() if isinstance(f, PrimFunc)})


__all__ = ["VMCodegenError", "generate", "kernels_of"]
