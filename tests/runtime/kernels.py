"""Small kernels written in LLVM IR, for testing the runtime without the compiler."""

import json

from mlc_lab.runtime import jit
from mlc_lab.runtime.abi import Arg, Symbol, declare_native, write_packed
from mlc_lab.runtime.export import meta_global, module_of
from mlc_lab.runtime.llir import ModuleText

F32 = (2, 32, 1)


def build(write, names, needs=()):
    """Compile what ``write(m)`` writes, with functions ``names``, into a runtime module."""
    where = jit.host_machine()
    m = ModuleText(where.triple, where.data_layout)
    write(m)
    needs = [*needs, "mlc_lab_check_args"]
    m.globals.append(meta_global(names, where.triple, needs, None))
    compiled = jit.compile_ir(str(m), where)
    meta = {"functions": names, "triple": where.triple, "needs": needs, "entry": None}
    return module_of(compiled.obj, json.loads(json.dumps(meta)), compiled)


def write_add(m):
    """``add(A: float32[n], B: float32[n], alpha: float32, shift: int32, C: float32[n])``."""
    n = Symbol(0)
    args = [
        Arg("A", "tensor", F32, (n,), align=4),
        Arg("B", "tensor", F32, (n,), align=4),
        Arg("alpha", "float", F32),
        Arg("shift", "int", (0, 32, 1)),
        Arg("C", "tensor", F32, (n,), align=4),
    ]
    params = [("ptr", "a"), ("ptr", "b"), ("float", "alpha"), ("i32", "shift"), ("ptr", "c")]
    with m.function("i32", "add_kernel", [*params, ("i64", "n")], "internal") as f:
        shift = f.op("sitofp i32 %shift to float")
        with f.for_range("0", "%n") as i:
            a = f.load("float", f.gep("float", "%a", i))
            b = f.load("float", f.gep("float", "%b", i))
            x = f.op(f"fadd float {a}, {f.op(f'fmul float %alpha, {b}')}")
            f.store("float", f.op(f"fadd float {x}, {shift}"), f.gep("float", "%c", i))
        f.ret("i32 0")
    write_packed(m, "add", args, ["n"], "add_kernel", [0, 1, 2, 3, 4, n])


def write_fill(m):
    """``fill(C: float32[n])``: element i becomes i, in a parallel loop."""
    declare_native(m, "mlc_lab_parallel_launch")
    params = [("ptr", "closure"), ("i64", "lo"), ("i64", "hi")]
    with m.function("i32", "fill_body", params, "internal") as f:
        with f.for_range("%lo", "%hi") as i:
            x = f.op(f"sitofp i64 {i} to float")
            f.store("float", x, f.gep("float", "%closure", i))
        f.ret("i32 0")
    with m.function("i32", "fill_kernel", [("ptr", "c"), ("i64", "n")], "internal") as f:
        code = f.call("i32", "mlc_lab_parallel_launch", ["ptr @fill_body", "ptr %c", "i64 %n"])
        f.ret(f"i32 {code}")
    args = [Arg("C", "tensor", F32, (Symbol(0),), align=4)]
    write_packed(m, "fill", args, ["n"], "fill_kernel", [0, Symbol(0)])


def write_shaped(m):
    """``shaped(A: float32[2, n], B: int8[n, 3] with strides (s, 1), p: handle, q: bool)``."""
    n, s = Symbol(0), Symbol(1)
    args = [
        Arg("A", "tensor", F32, (2, n), align=4),
        Arg("B", "tensor", (0, 8, 1), (n, 3), (s, 1)),
        Arg("p", "handle"),
        Arg("q", "bool", (6, 8, 1)),
        Arg("n", "int", (0, 64, 1), symbol=n),
    ]
    params = [("ptr", "p"), ("i1", "q"), ("i64", "n"), ("i64", "s")]
    with m.function("i32", "shaped_kernel", params, "internal") as f:
        f.store("i64", "%n", "%p")
        f.store("i64", "%s", f.gep("i64", "%p", 1))
        f.store("i64", f.op("zext i1 %q to i64"), f.gep("i64", "%p", 2))
        f.ret("i32 0")
    write_packed(m, "shaped", args, ["n", "s"], "shaped_kernel", [2, 3, n, s])
