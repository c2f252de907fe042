"""From lowered TensorIR to a running module, through LLVM.

``generate`` writes the LLVM IR of a module of lowered functions: for each a kernel that takes plain
pointers and numbers (``<name>_kernel``), and the packed function of tvm-ffi's calling convention
(``__tvm_ffi_<name>``) that checks the arguments and calls it. ``build`` compiles that and links it
into the process. Read on in ``llvm_stmt`` (loops), ``llvm_expr``, ``llvm_index``, ``llvm_calls``,
``llvm_math``, ``llvm_packed`` and ``llvm_abi``.
"""

from __future__ import annotations

import os
from typing import Any

from .. import tir
from ..ir.module import IRModule
from ..ir.recursion import grows_stack
from ..machine.of_target import has_avx512, has_scalable_vectors, missing_features
from ..runtime import jit
from ..runtime.abi import write_packed
from ..runtime.export import META_SYMBOL, meta_global, module_of, sources_of
from ..runtime.llir import ModuleText
from ..runtime.module import Module
from ..runtime.native import SYMBOLS
from .llvm_abi import RETURN_SLOT, Signature, parameter_texts, signature_of
from .llvm_calls import CALL_LLVM
from .llvm_emit import CodegenError, Unit, checked_symbol
from .llvm_stmt import StmtGen

__all__ = ["CodegenError", "META_SYMBOL", "build", "compile_module", "generate", "why_not_here"]

# What compiled code may call of libtvm_ffi.
_FFI = (
    "TVMFFIErrorSetRaisedFromCStr",
    "TVMFFIFunctionCall",
    "TVMFFIFunctionGetGlobal",
    "TVMFFIObjectDecRef",
)
# A kernel that makes no more stores than this, and calls nothing, takes a few microseconds at most;
# it is called without releasing the GIL, which would take a good part of that.
_QUICK_STORES = 4096
_HALF = ("__truncsfhf2", "__truncdfhf2", "__extendhfsf2")


def function_name(var: Any, func: tir.PrimFunc) -> str:
    """The name under which a function is found: its global symbol, or its name in the module."""
    symbol = (func.attrs or {}).get("global_symbol")
    if symbol is None:
        return var.name_hint
    if not isinstance(symbol, (str, tir.StringImm)):
        raise CodegenError(f"{var.name_hint}: its global_symbol is {symbol!r}, which is no string")
    return checked_symbol(str(getattr(symbol, "value", symbol)))


def entry_of(mod: IRModule) -> str | None:
    """The name under which a caller finds the function that a module is built for: that of "main";
    None where the one function has another name in the module."""
    functions = {v.name_hint: (v, f) for v, f in mod.functions.items()
                 if isinstance(f, tir.PrimFunc)}
    if "main" in functions:
        return function_name(*functions["main"])
    return "main" if len(functions) != 1 else None


def _write_kernel(
    unit: Unit, signature: Signature, func: tir.PrimFunc, emitter: type[StmtGen]
) -> None:
    params = ", ".join(parameter_texts(signature, func))
    header = f"define internal i32 @{signature.kernel}({params}) #0"
    gen = emitter(unit, signature.name, header)
    noalias = bool(int((func.attrs or {}).get("tir.noalias", 0) or 0))
    for at, var in enumerate(signature.variables):
        if var.dtype in ("int32", "int64"):
            operand = f"%a{at}"
            if var.dtype == "int32":
                gen.env[var] = operand
                operand = gen.op(f"sext i32 {operand} to i64")
            gen.wide[var] = operand
        else:
            gen.env[var] = f"%a{at}"
        if noalias and signature.args[at].kind == "tensor":
            gen.objects.add(var)
    slots = {}
    for at, (var, symbol) in enumerate(signature.bound):
        slots[symbol] = f"%s{at}"
        if var is not None:
            gen.wide[var] = f"%s{at}"
    _mark_extents(gen, func)
    if signature.returns:
        gen.env[RETURN_SLOT] = "%ret"
    for symbol, expr, what in signature.checks:
        good, bad = gen.new_label("fits"), gen.new_label("differs")
        same = gen.op(f"icmp eq i64 {slots[symbol]}, {gen.index(expr)}")
        gen.cond_br(same, good, bad)
        gen.label(bad)
        gen.fail("ValueError", f"{signature.name}: {what} is not {expr!r} as it has to be")
        gen.label(good)
    gen.run(func.body)
    if not gen.terminated:
        gen.ret("i32 0")
    unit.text.functions.append(gen)
    if gen.work <= _QUICK_STORES:
        unit.quick.append(signature.name)


def _mark_extents(gen: StmtGen, func: tir.PrimFunc) -> None:
    """Extents of arguments are not negative."""
    for buffer in func.buffer_map.values():
        for e in buffer.shape:
            if isinstance(e, tir.Var):
                gen.nonneg.add(e)


@grows_stack
def generate(
    mod: IRModule, where: jit.Machine, entry: str | None = None, emitter: type[StmtGen] = StmtGen,
    extra: Any = None,
) -> tuple[str, dict[str, Any], list[str]]:
    """The LLVM IR of a module of lowered functions, written by `emitter`.

    ``extra(unit)`` may write further functions, which call the kernels by their signatures in
    ``unit.signatures``; it gives the names of those that are public, and notes in ``unit.inner``
    which kernels are called from there rather than from outside.

    Returns the text, the module's description (see ``runtime/export.py``), and LLVM IR that the
    program imports. Raises CodegenError for what has no machine code.
    """
    text = ModuleText(where.triple, where.data_layout)
    unit = Unit(text, has_scalable_vectors(where))
    functions = {}
    for var, func in mod.functions.items():
        if not isinstance(func, tir.PrimFunc):
            continue
        name = function_name(var, func)
        if name in functions:
            raise CodegenError(
                f"two functions of the module have the global_symbol {name!r}, one of them "
                f"{var.name_hint}: give each its own, as by "
                f'func.with_attr("global_symbol", "{var.name_hint}")')
        functions[name] = func
        unit.signatures[var.name_hint] = signature_of(name, func)
    if not functions:
        raise CodegenError("the module has no PrimFunc to build")
    for var, func in mod.functions.items():
        signature = unit.signatures.get(var.name_hint)
        if signature is not None:
            _write_kernel(unit, signature, func, emitter)
    public = extra(unit) if extra is not None else []
    for var, func in mod.functions.items():
        signature = unit.signatures.get(var.name_hint)
        if signature is None or _is_private(func, len(functions)):
            continue
        public.append(signature.name)
        write_packed(
            text, signature.name, signature.args, signature.symbols, signature.kernel,
            signature.takes, signature.returns, var.name_hint not in unit.inner,
        )
    text.attributes.append(_attributes(where))
    needs = [n for n in text.declarations if n in SYMBOLS or n in _FFI]
    needs += [n for n in ("TVMFFIErrorSetRaisedFromCStr",) if n not in needs]
    for line in text.functions:
        if any(" half" in part for part in (*line.lines, line.header)):
            needs += _HALF
            break
    meta = {"functions": public, "triple": where.triple, "needs": needs, "entry": entry}
    meta["quick"] = [name for name in unit.quick if name in public]
    meta["externs"] = [] if unit.imports else unit.externs
    text.globals.append(meta_global(**meta))
    return str(text), meta, unit.imports


def _is_private(func: tir.PrimFunc, count: int) -> bool:
    """A function of several that carries ``tir.is_private`` is called only from its module."""
    return count > 1 and bool((func.attrs or {}).get("tir.is_private"))


def _attributes(where: jit.Machine) -> str:
    extra = ""
    if has_avx512(where):
        # Let vectors of 512 bits stay whole where the program wrote them.
        extra = ' "min-legal-vector-width"="512" "prefer-vector-width"="512"'
    return f'attributes #0 = {{ noinline nounwind "no-trapping-math"="true"{extra} }}'


def _link_imports(imports: list[str]) -> list[str]:
    """The LLVM IR texts that a program imports by pragma_import_llvm: texts or file names."""
    out = []
    for item in imports:
        if os.path.exists(item):
            with open(item) as file:
                item = file.read()
        out.append(item)
    return out


def compile_module(
    mod: IRModule, where: jit.Machine | None = None, entry: str | None = None, extra: Any = None,
    level: int = 3,
) -> tuple[jit.Compiled, dict[str, Any]]:
    """Compile lowered functions for a machine (by default this one) without linking them.

    ``level`` 0 compiles in a fifth of the time, for a kernel that runs once.
    """
    where = where or jit.host_machine()
    try:
        text, meta, imports = generate(mod, where, entry, extra=extra)
    except UnicodeEncodeError as error:
        raise CodegenError(f"the program has the text {error.object[:60]!r}, which cannot be "
                           "written as UTF-8") from None
    try:
        compiled = jit.compile_ir(text, where, imports=_link_imports(imports), emit=where.is_host,
                                  level=level)
    except ValueError as error:
        named = {str(n.args[0].value) for f in mod.functions.values() if isinstance(f, tir.PrimFunc)
                 for n in tir.pre_order(f.body) if type(n) is tir.Call
                 and getattr(n.op, "name", "") in CALL_LLVM}
        raise CodegenError(f"LLVM refuses the program, which calls {', '.join(sorted(named))}: "
                           f"{error}" if named else str(error)) from None
    return compiled, meta


def why_not_here(where: jit.Machine) -> str:
    """Why code for ``where`` cannot run in this process; empty when it can."""
    advice = 'look at it with get_source("asm"), or export it and run it there'
    if not where.is_host:
        return f"the code is for {where.triple}, and this machine is {jit.host_cpu()[0]}; {advice}"
    missing = missing_features(where)
    if missing:
        return (
            f"the code may use {', '.join(missing)}, which this machine's processor "
            f"({jit.host_cpu()[1]}) does not have; {advice}"
        )
    return ""


def build(mod: IRModule, where: jit.Machine | None = None, entry: str | None = None,
          extra: Any = None, keep: tuple[Any, ...] = (), level: int = 3) -> Module:
    """Compile lowered functions into a runtime module. For ``extra`` see ``generate``; what is in
    ``keep`` lives as long as any of the functions; for ``level`` see ``compile_module``.

    For a machine other than this one the module can be looked at (``get_source``) and exported, and
    refuses to be called.
    """
    where = where or jit.host_machine()
    compiled, meta = compile_module(mod, where, entry, extra, level)
    refusal = why_not_here(where)
    if refusal:
        return Module({}, "llvm", entry, sources_of(None, compiled), compiled, (), refusal,
                      meta["functions"])
    return module_of(compiled.obj, meta, compiled, keep)
