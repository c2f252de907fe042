"""Where scripts come from, what names they see, and every form they can take."""

import linecache
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import mlc_lab.compat.dialect  # noqa: F401  (the other vintages of the language)
import mlc_lab.script.tir as Tensor
from laws import check_program, check_roundtrip
from mlc_lab import tir
from mlc_lab.backend.interp import interpret
from mlc_lab.ir.diagnostics import DiagnosticError
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.script import from_source, ir as I, ir_module, tir as T
from mlc_lab.script import tir as TT
from mlc_lab.tir.functor import pre_order

ROWS, SHAPE = 16, (16, 8)


def body(text, args='A: T.Buffer((16, 16), "float32")', **extra):
    """The function whose body is `text`."""
    return from_source(f"@T.prim_func\ndef f({args}):\n" + textwrap.indent(
        textwrap.dedent(text), "    "), extra)


def lines(func):
    """The printed lines of a body, without indentation."""
    return [line.strip() for line in func.script().split("\n")][4:]


# --------------------------------------------------------------------- where the source is


@T.prim_func
def at_module_level(A: T.Buffer((ROWS,), "float32")):
    for i in range(ROWS):
        A[i] = 0.0


def test_a_function_at_module_level_sees_globals():
    assert "T.Buffer((16,), " in check_program(at_module_level)


def test_aliases_of_the_namespace_and_values_of_the_enclosing_function():
    n, shape = 12, (12, 4)

    @TT.prim_func
    def f(A: TT.Buffer(shape, "float32"), B: Tensor.Buffer((n,), "float32")):
        for i in range(n // 2 + len(shape)):
            B[i] = A[i, 0] * n

    text = check_program(f)
    assert "range(8)" in text and "T.float32(12.0)" in text


def test_a_class_in_a_function_and_private_functions():
    n = 4

    @I.ir_module
    class Mod:
        """A docstring."""

        @T.prim_func(private=True)
        def helper(A: T.Buffer((n,), "float32")):
            A[0] = 1.0

        @T.prim_func
        def main(A: T.Buffer((n,), "float32")):
            """A docstring of the function."""
            Mod.helper(A.data)

    text = check_program(Mod)
    assert isinstance(Mod, IRModule) and "private=True" in text
    assert "Module.helper(A.data)" in text
    assert Mod["main"].attrs["global_symbol"] == "main" and not Mod["helper"].attrs


def test_two_classes_of_one_name_are_told_apart():
    @ir_module
    class Mod:
        @T.prim_func
        def main(A: T.Buffer((1,), "float32")):
            A[0] = 1.0

    first = Mod

    @ir_module
    class Mod:
        @T.prim_func
        def main(A: T.Buffer((2,), "float32")):
            A[0] = 2.0

    assert "(1,)" in first.script() and "(2,)" in Mod.script()


def test_annotations_may_be_strings(tmp_path):
    path = tmp_path / "future.py"
    path.write_text(textwrap.dedent('''
        """A module whose annotations are not evaluated."""
        from __future__ import annotations
        from mlc_lab.script import tir as T

        def make(n):
            @T.prim_func
            def f(A: T.Buffer((n, 4), "float32"), m: "T.int32"):
                A[m, 0] = 1.0
            return f

        print(make(3).script())
    '''))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True,
                          cwd=Path(__file__).parents[2],
                          env={"PYTHONPATH": str(Path(__file__).parents[2])})
    assert 'def f(A: T.Buffer((3, 4), "float32"), m: T.int32):' in done.stdout, done.stderr


def test_a_notebook_cell():
    cell = textwrap.dedent('''
        @I.ir_module
        class Cell:
            @T.prim_func
            def main(A: T.Buffer((4,), "float32")):
                for i in range(4):
                    A[i] = 1.0
    ''')
    name = "<ipython-input-7-abc>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    scope = {"T": T, "I": I, "__name__": "__main__"}
    exec(compile(cell, name, "exec"), scope)
    assert "range(4)" in check_program(scope["Cell"])


def test_a_cell_that_python_cannot_parse_as_a_whole():
    cell = ('%time 1\n@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    A[0] = 1.0\n')
    name = "<ipython-input-8-abc>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    scope = {"T": T}
    exec(compile(cell.replace("%time 1", "0"), name, "exec"), scope)
    check_program(scope["f"])


def test_source_that_is_not_available():
    from mlc_lab.ir import DiagnosticError

    with pytest.raises(DiagnosticError, match="from_source"):
        exec("@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    A[0] = 1.0\n", {"T": T})


def test_text_with_imports_constants_and_several_functions():
    func = from_source('''
        # a comment
        import tvm
        from tvm.script import tir as TS, ir as IS
        N = 4
        M = N * 2

        @TS.macro
        def store(buffer, index):
            buffer[index] = 1.0

        @TS.prim_func
        def f(A: TS.Buffer((M,), "float32")):
            store(A, N)
    ''')
    assert lines(func)[0] == "A[4] = T.float32(1.0)"
    assert isinstance(from_source("@tvm.script.ir_module\nclass M:\n    pass"), IRModule)
    assert "range(3)" in from_source(
        "@T.prim_func\ndef f():\n    for i in range(n):\n        T.evaluate(i)",
        {"n": 3}).script()


def test_from_source_of_a_function_and_of_a_class():
    def plain(A: T.Buffer((4,), "float32")):
        A[0] = 1.0

    class Plain:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            A[0] = 1.0

    assert "A[0] = " in from_source(plain).script()
    assert "A[0] = " in from_source(Plain).script()


def test_nothing_of_a_text_is_executed(tmp_path):
    from mlc_lab.ir import DiagnosticError

    target = tmp_path / "made"
    for line in (f"open({str(target)!r}, 'w')", f"__import__('os').mkdir({str(target)!r})",
                 "T.prim_func.__globals__", "().__class__", "eval('1')", "print(1)",
                 "T.Any", "exec('1')", "getattr(T, 'x')", "T.prim_func(print)"):
        with pytest.raises(DiagnosticError):
            from_source(f"@T.prim_func\ndef f():\n    T.evaluate({line})")
    assert not target.exists()
    with pytest.raises(DiagnosticError):
        from_source("import os\nos.mkdir('x')\n@T.prim_func\ndef f():\n    T.evaluate(0)")


# --------------------------------------------------------------------- values of the scope


def test_helper_functions_are_interpreted_not_called():
    called = []

    def permuted(i, j):
        local = i // 8
        if called is None:
            return 0
        return local * 4 + j % 4, j // 4

    half = lambda x: x * 0.5

    @T.prim_func
    def f(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            B[permuted(i, j)] = half(A[i, j])

    assert "B[i // 8 * 4 + j % 4, j // 4] = A[i, j] * T.float32(0.5)" in check_program(f)


def test_python_values_of_many_kinds():
    import math

    import numpy as np

    table = {"size": 4, "offsets": [1, 2, 3]}
    flag = True

    class Config:
        rows = 4

    @T.prim_func
    def f(A: T.Buffer((16,), "float32")):
        A[table["size"]] = math.pi
        A[table["offsets"][-1]] = np.float32(2)
        A[sum([k * 2 for k in table["offsets"] if k > 1])] = Config.rows
        if flag:
            A[0] = 1.0
        else:
            A[0] = 2.0
        T.evaluate(T.call_extern("int32", f"kernel_{table['size']}"))
        A[1] = A[2] if flag else A[3]

    assert lines(f) == [
        "A[4] = T.float32(3.1415926535897931)", "A[3] = T.float32(2.0)", "A[10] = T.float32(4.0)",
        "A[0] = T.float32(1.0)", 'T.call_extern("int32", "kernel_4")', "A[1] = A[2]"]


# --------------------------------------------------------------------- forms


def test_every_way_to_write_a_block_axis():
    func = body("""
        for i, j, k, l in T.grid(16, 16, 16, 16):
            with T.block("x"):
                a = T.axis.spatial(16, i)
                b = T.axis.S(16, j)
                c = T.axis.reduce((0, 16), k)
                d = T.axis.R(16, l)
                with T.init():
                    A[a, b] = 0.0
                A[a, b] += A[c, d]
    """)
    assert "a, b, c, d = T.axis.remap(\"SSRR\", [i, j, k, l])" in check_program(func)


def test_reads_and_writes_may_be_lists_and_whole_buffers():
    func = body("""
        with T.block("x"):
            T.reads([A[0, 0:4], A[1:3, :]])
            T.writes(A)
            A[0, 0] = A[1, 1]
    """)
    assert "T.reads(A[0, 0:4], A[1:3, 0:16])" in func.script()
    assert "T.writes(A[0:16, 0:16])" in func.script()


def test_values_become_lets():
    func = body("""
        x = A[0, 0] + 1.0
        y: T.int32 = 3
        x = x * 2.0
        y += 1
        A[y, 0] = x
        A[y, 1] -= x
    """)
    assert lines(func) == [
        "x: T.float32 = A[0, 0] + T.float32(1.0)", "y: T.int32 = 3",
        "x_1: T.float32 = x * T.float32(2.0)", "y_1: T.int32 = y + 1", "A[y_1, 0] = x_1",
        "A[y_1, 1] = A[y_1, 1] - x_1"]
    check_program(func)


def test_numbers_take_the_type_of_what_they_meet():
    func = from_source("""
        @T.prim_func
        def f(H: T.Buffer((4,), "float16"), L: T.Buffer((4,), "int64"), B: T.Buffer((4,), "bool")):
            H[0] = 1
            H[1] = H[0] * 2
            L[0] = 3
            L[1] = L[0] + 1
            B[0] = True
            H[2] = T.max(H[0], 0.0)
            H[3] = T.float32(0.5)
    """)
    assert lines(func) == [
        "H[0] = T.float16(1.0)", "H[1] = H[0] * T.float16(2.0)", "L[0] = T.int64(3)",
        "L[1] = L[0] + T.int64(1)", "B[0] = T.bool(True)",
        "H[2] = T.max(H[0], T.float16(0.0))", "H[3] = T.float16(0.5)"]


def test_operators():
    func = body("""
        for i, j in T.grid(16, 16):
            if 0 <= i < 4 and not j == 2 or j > 5:
                A[i, j] = -A[i, j] if i % 2 == 0 else A[i, j] ** 2.0
            T.evaluate(i & 3 | j << 2 ^ ~i)
            T.evaluate(i >> 1)
    """)
    assert lines(func)[1] == "if 0 <= i and i < 4 and not j == 2 or j > 5:"
    assert lines(func)[2] == ("A[i, j] = T.if_then_else(i % 2 == 0, A[i, j] * T.float32(-1.0), "
                              "T.pow(A[i, j], T.float32(2.0)))")
    check_roundtrip(func)


def test_vectors():
    func = body("""
        for i in range(4):
            A[i, 0:8] = A[i, 8:16] + 1.0
            A[i, 0:8:2] = 2.0
            x = A[i, 0:4]
            A[i, T.Ramp(0, 1, 4)] = x * T.Broadcast(2.0, 4)
            A.vstore([i, 0], A.vload([i, 4], "float32x4"))
    """)
    assert lines(func)[1:] == [
        "A[i, 0:8] = A[i, 8:16] + T.Broadcast(T.float32(1.0), 8)",
        "A[i, 0:8:2] = T.Broadcast(T.float32(2.0), 4)",
        "x: T.float32x4 = A[i, 0:4]",
        "A[i, 0:4] = x * T.Broadcast(T.float32(2.0), 4)",
        "A[i, 0:4] = A[i, 4:8]"]
    check_program(func)


def test_loops_with_bounds():
    func = body("""
        for i in T.serial(2, n):
            T.evaluate(i)
        for i in T.serial(n, n + 4, annotations={"a": 1}):
            for j in range(i, i * 2):
                T.evaluate(j)
        for i in T.thread_binding(0, 4, "threadIdx.x"):
            T.evaluate(i)
        for i, *rest in T.grid(1, 2, 3):
            T.evaluate(i + rest[0] * rest[1])
        for i in range(T.int64(4)):
            T.evaluate(i)
    """, args="n: T.int32")
    assert [line for line in lines(func) if line.startswith("for")] == [
        "for i in range(2, 2 + (n - 2)):",
        'for i in T.serial(n, n + 4, annotations={"a": 1}):',
        "for j in range(i, i + (i * 2 - i)):",
        'for i in T.thread_binding(4, thread="threadIdx.x"):',
        "for i, rest_0, rest_1 in T.grid(1, 2, 3):",
        "for i in range(T.int64(4)):"]
    check_program(func)


def test_old_and_new_dialects():
    func = from_source("""
        from tvm.script import tirx as T

        @T.prim_func(s_tir=True)
        def f(A: T.Buffer[(16,), "float32"], B: T.Buffer[16, "float32"]):
            C = T.sblock_alloc_buffer((16,), "float32")
            for i in range(16):
                with T.sblock("C"):
                    vi = T.axis.spatial(16, i)
                    T.sblock_attr({"a": 1})
                    C[vi] = A[vi] + B[vi]
    """)
    assert 'with T.block("C")' in check_program(func)


def test_shapes_by_name():
    func = from_source("""
        @T.prim_func
        def f(n: T.int32, A: T.Buffer(("n", 4), "float32"), B: T.Buffer(("m",), "float32")):
            for i in range(n):
                B[i] = A[i, 0]
    """)
    assert func.buffers[0].shape[0] is func.params[0]
    check_program(func)


def test_the_root_block_is_added_where_tvm_adds_it():
    with_root = body("""
        for i in range(16):
            with T.block("x"):
                vi = T.axis.spatial(16, i)
                A[vi, 0] = 0.0
    """)
    assert isinstance(with_root.body, tir.BlockRealize) and (
        with_root.body.block.name_hint == "root")
    assert isinstance(body("A[0, 0] = 0.0").body, tir.BufferStore)
    lone = body('with T.block("x"):\n    A[0, 0] = 0.0')
    assert lone.body.block.name_hint == "x"
    assert isinstance(body("B = T.alloc_buffer((1,))\nB[0] = 0.0").body, tir.BlockRealize)
    assert isinstance(body('B = T.allocate([1], "float32")\nA[0, 0] = 0.0').body, tir.Allocate)


def test_decl_buffer_without_data_allocates():
    func = body("B = T.decl_buffer((4,))\nB[0] = A[0, 0]")
    assert isinstance(func.body, tir.Allocate) and isinstance(func.body.body, tir.DeclBuffer)
    check_program(func)


def test_data_types_of_symbolic_sizes():
    @I.ir_module
    class Mod:
        @T.prim_func
        def main(x: T.handle, y: T.handle):
            n, m = T.int64(), T.int64()
            X = T.match_buffer(x, (n, m), "float32")
            Y = T.match_buffer(y, (n,), "float32")
            for i, j in T.grid(n, m):
                with T.block("Y"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        Y[vi] = 0.0
                    Y[vi] += X[vi, vj]

    check_program(Mod)
    assert Mod["main"].body.block.body.loop_var.dtype == "int64"


def test_comm_reducer_and_lambda():
    func = body("""
        r = T.meta_var(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]))
        T.attr(0, "reduce_scope", T.reinterpret("handle", T.uint64(0)))
        T.evaluate(A[0, 0])
    """)
    check_roundtrip(func)


def test_equal_scripts_are_equal_programs():
    text = at_module_level.script()
    assert_structural_equal(from_source(text), at_module_level)


def test_a_call_has_the_type_its_function_returns():
    mod = from_source("""
        @I.ir_module
        class Mod:
            @T.prim_func(private=True)
            def add(a: T.int32, b: T.int32) -> T.int32:
                return a + b

            @T.prim_func
            def main(A: T.Buffer((4,), "int32")):
                for i in range(4):
                    A[i] = Mod.add(A[i], i)
    """)
    assert "A[i] = Module.add(A[i], i)" in check_program(mod)
    assert mod["main"].body.body.value.dtype == "int32"


def test_range_is_a_loop_under_any_name():
    text = """
        @T.prim_func
        def main(n: T.int32):
            for i in upto(n):
                T.evaluate(i)
    """
    func = from_source(text, extra_vars={"upto": range})
    assert "for i in range(n):" in check_program(func)
    with pytest.raises(DiagnosticError, match="the step of a loop must be 1"):
        from_source(text.replace("(n)", "(0, n, 2)"), extra_vars={"upto": range})


def test_a_module_under_the_decorator_may_have_attributes():
    @I.ir_module
    class Module:
        I.module_attrs({"system": 1, "names": ["a", "b"]})
        I.module_global_infos({"seen": []})

        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = T.float32(0)

    assert dict(Module.attrs) == {"system": 1, "names": ("a", "b")}
    assert_structural_equal(from_source(Module.script()), Module)
    assert repr(I.module_attrs) == "I.module_attrs"


def test_a_stored_number_takes_the_type_of_the_buffer():
    @T.prim_func
    def ramp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = i * 2

    assert "A[i] = T.Cast(\"float32\", i * 2)" in ramp.script()
    with pytest.warns(UserWarning, match="fraction is lost"):
        @T.prim_func
        def floor(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int32")):
            for i in range(4):
                B[i] = A[i]

    assert "B[i] = T.Cast(\"int32\", A[i])" in floor.script()


def test_calls_may_repeat_the_type_they_have():
    @T.prim_func
    def older(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.if_then_else(i < 2, T.exp(A[i], dtype="float32"), T.float32(0.0),
                                  dtype="float32")

    @T.prim_func
    def newer(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.if_then_else(i < 2, T.exp(A[i]), T.float32(0.0))

    assert_structural_equal(older.with_attr("global_symbol", "newer"), newer)


def test_one_name_may_stand_for_all_loops_and_all_indices():
    @T.prim_func(private=True)
    def short(A: T.Buffer((4, 5, 6), "int32"), B: T.Buffer((4, 5), "int32")):
        for at in T.grid(*A.shape):
            A[at] = 1
        for *outer, k in T.grid(*A.shape):
            B[outer] = B[outer] + A[(*outer, k)]

    @T.prim_func(private=True)
    def long(A: T.Buffer((4, 5, 6), "int32"), B: T.Buffer((4, 5), "int32")):
        for i, j, k in T.grid(4, 5, 6):
            A[i, j, k] = 1
        for i, j, k in T.grid(4, 5, 6):
            B[i, j] = B[i, j] + A[i, j, k]

    assert_structural_equal(short, long)
    assert short.__name__ == "main"


def test_a_helper_may_give_several_values_at_once():
    def swizzled(i, j):
        return T.meta_var((i % 4 * 2 + j // 4, j % 4))

    @T.prim_func(private=True)
    def short(A: T.Buffer((8, 4), "int32")):
        for i, j in T.grid(4, 8):
            a, b = swizzled(i, j)
            A[a, b] = 1

    assert "A[i % 4 * 2 + j // 4, j % 4] = 1" in short.script()


def test_a_variable_can_be_written_with_its_name_first():
    func = from_source("""
@T.prim_func
def f(a: T.handle):
    n = T.Var("rows", dtype="int64")
    m = T.Var("m")
    A = T.match_buffer(a, (n, m))
    A[0, 0] = T.float32(1)
""")
    rows, m = func.buffer_map[func.params[0]].shape
    assert (str(rows), rows.dtype, m.dtype) == ("rows", "int64", "int32")


def test_the_range_of_a_loop_has_annotations():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((16,), "float32")):
    for i in range(0, 16, annotations={"pragma_unroll": 1}):
        A[i] = T.float32(0)
    for i in range(4, annotations={"note": "four"}):
        A[i] = T.float32(1)
""")
    first, second = func.body.seq
    assert first.annotations["pragma_unroll"] == 1 and second.annotations["note"] == "four"
    check_roundtrip(func)
    with pytest.raises(DiagnosticError, match="range takes no step= here"):
        body("for i in range(4, step=2):\n    A[i, i] = T.float32(0)")


def test_an_init_without_reduction_runs_each_time():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            with T.init():
                B[v] = T.float32(7)
            if A[v] > T.float32(0):
                B[v] = A[v]
""")
    (block,) = (n for n in pre_order(func.body) if isinstance(n, tir.Block) and n.name_hint == "B")
    assert block.init is None and len(block.body.seq) == 2
    check_program(func)


def test_an_init_around_a_reduction_of_another_block_runs_each_time():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("outer"):
            v = T.axis.spatial(4, i)
            with T.init():
                B[v] = T.float32(0)
            for k in range(8):
                with T.block("inner"):
                    vk = T.axis.reduce(8, k)
                    B[v] = B[v] + A[v, vk]
""")
    check_program(func)
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.ones(4, "float32")
    interpret(func, a, b)
    np.testing.assert_array_equal(b, a.sum(1))


def test_a_second_name_of_a_region_has_its_type_and_shape():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((16, 64), "int32")):
    with T.block("b"):
        T.writes(A[8, 32:64])
        B = T.match_buffer(A[8, 32:64])
        C = T.match_buffer(A[8, 32:64], (32,), "int32")
        for i in range(32):
            B[0, i] = C[i] + 1
""")
    block = func.body.block
    assert [m.buffer.dtype for m in block.match_buffers] == ["int32", "int32"]
    a = np.zeros((16, 64), "int32")
    interpret(func, a)
    assert a[8, 32:].all() and a.sum() == 32


def test_a_whole_row_of_vectors_is_no_value():
    with pytest.raises(DiagnosticError, match="only the last index"):
        from_source("@T.prim_func\ndef main(A: T.Buffer((4, 4), 'float32')):\n"
                    "    A[0:2, 0:2] = A[2:4, 0:2]\n")
