"""Large programs: thousands of stages, hundreds of loops, tens of thousands of terms."""

import numpy as np
import pytest
from mlc_lab import build, nd, relax, te, tir
from mlc_lab.arith import Analyzer
from mlc_lab.backend.interp import interpret
from mlc_lab.ir.serialize import load_json, save_json
from mlc_lab.ir.structural import assert_structural_equal, structural_hash
from mlc_lab.lower import lower
from mlc_lab.runtime import cpu
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source
from mlc_lab.tir import verify_well_formed

STAGES, LOOPS, TERMS, OPERATORS = 2_000, 500, 50_000, 2_000


def check_program(func, arguments, want):
    """Printing, parsing, saving, lowering, building and both ways to run give what they should."""
    assert verify_well_formed(func)
    text = func.script()
    again = from_source(text)
    assert_structural_equal(again, func)
    assert structural_hash(again) == structural_hash(func)
    assert_structural_equal(load_json(save_json(func)), func)
    check_runs(func, arguments, want)


def check_runs(program, arguments, want):
    func = program["main"] if not isinstance(program, tir.PrimFunc) else program
    for run in (build(program, target="llvm")["main"], lambda *args: interpret(func, *args)):
        out = np.full_like(want, -1)
        run(*arguments, out)
        np.testing.assert_allclose(out, want, rtol=1e-4)


def stages(count):
    lines = ["@T.prim_func",
             "def main(A: T.Buffer((4,), 'float32'), B: T.Buffer((4,), 'float32')):"]
    lines += [f"    X{s} = T.alloc_buffer((4,), 'float32')" for s in range(count - 1)]
    for s in range(count):
        source, result = f"X{s - 1}" if s else "A", f"X{s}" if s < count - 1 else "B"
        lines += ["    for i in range(4):", f"        with T.block('b{s}'):",
                  "            v = T.axis.spatial(4, i)",
                  f"            {result}[v] = {source}[v] + T.float32(1)"]
    return from_source("\n".join(lines))


def nest(count):
    names = ", ".join(f"i{k}" for k in range(count))
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for {names}, j in T.grid({"1, " * count}4):
        with T.block("b"):
            v = T.axis.spatial(4, j)
            B[v] = A[v] + T.float32(1)
""")


def a_sum(terms, dtype="float32"):
    A = te.placeholder((terms,), dtype, name="A")
    X = te.placeholder((4,), dtype, name="X")

    def total(i):
        out = X[i]
        for k in range(terms):
            out = out + A[k]
        return out

    return te.create_prim_func([A, X, te.compute((4,), total, name="B")])


X4 = np.arange(4, dtype="float32")


def chain(test):
    """Conditions within the `else` of each other, of the data or of a loop."""
    lines = ["@T.prim_func",
             "def main(A: T.Buffer((4,), 'float32'), B: T.Buffer((4,), 'float32')):",
             "    for i in range(4):"]
    for k in range(STAGES):
        lines += [f"        {'elif' if k else 'if'} {test.format(k=k)}:",
                  f"            B[i] = T.float32({k % 7})"]
    return from_source("\n".join([*lines, "        else:", "            B[i] = T.float32(-1)"]))


@pytest.mark.parametrize("test", ["A[i] == T.float32({k})", "A[i] < T.float32({k})",
                                  "T.Cast('int32', A[i]) < {k}"])
def test_thousands_of_nested_conditions(test):
    check_program(chain(test), [X4], (X4 + ("<" in test)) % 7)


def test_deep_programs_are_shown():
    """Operations and accesses are counted where Python's own stack would be too small."""
    blocks = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("b"):
            v = T.axis.spatial(4, i)
"""
    total = " + ".join(["A[v]"] * 600)
    tests = "".join(f"            {'elif' if k else 'if'} A[v] == T.float32({k}):\n"
                    f"                B[v] = T.float32({k})\n" for k in range(600))
    for body in (f"            B[v] = {total}\n", tests):
        sch = Schedule(from_source(blocks + body))
        assert sch.explore().recording
        assert sch.accesses().total > 0


def choices(count):
    """A choice in a choice in a choice."""
    A = te.placeholder((4,), "float32", name="A")

    def chosen(i):
        out = tir.const(-1.0, "float32")
        for k in reversed(range(count)):
            out = tir.if_then_else(A[i] == tir.const(float(k), "float32"), float(k % 7), out)
        return out

    return te.create_prim_func([A, te.compute((4,), chosen, name="B")])


def test_thousands_of_nested_choices():
    check_program(choices(STAGES), [X4], X4)


def test_more_loops_than_are_vectorized():
    """LLVM's loop vectorizer takes time that grows with the square of a function's loops."""
    lines = ["@T.prim_func",
             "def main(A: T.Buffer((64,), 'float32'), B: T.Buffer((64,), 'float32')):",
             "    for i in range(64):", "        B[i] = A[i]"]
    lines += ["    for i in range(64):\n        B[i] = B[i] + A[63 - i]"] * 600
    x = np.arange(64, dtype="float32")
    check_program(from_source("\n".join(lines)), [x], x + 600 * x[::-1])


def test_thousands_of_stages():
    check_program(stages(STAGES), [X4], X4 + STAGES)


def test_thousands_of_stages_are_scheduled():
    sch = Schedule(stages(STAGES))
    sch.compute_inline(sch.get_block("b3"))
    sch.compute_at(sch.get_block("b8"), sch.get_loops(sch.get_block("b9"))[0])
    sch.parallel(sch.get_loops(sch.get_block("b20"))[0])
    loop, _ = sch.split(sch.get_loops(sch.get_block("b30"))[0], [None, 2])
    with pytest.raises(ScheduleError):
        sch.compute_at(sch.get_block("b31"), loop)
    assert "b3\"" not in sch.mod.script() and len(sch.trace.insts) > 4
    check_runs(sch.mod, [X4], X4 + STAGES)


def test_hundreds_of_loops():
    check_program(nest(LOOPS), [X4], X4 + 1)


def test_hundreds_of_loops_on_lines_of_their_own():
    """Python's own parser stops at 100 levels of indentation."""
    loops = "".join("    " * (n + 1) + f'for i{n} in T.serial(1, annotations={{"key": {n}}}):\n'
                    for n in range(LOOPS))
    check_program(from_source(
        '@T.prim_func\ndef main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n'
        + loops + "    " * (LOOPS + 1) + "for i in range(4):\n" + "    " * (LOOPS + 2)
        + "B[i] = A[i] + T.float32(1)\n"), [X4], X4 + 1)


@pytest.mark.parametrize("term", ["A[i] - ({})", "T.max(A[i], {})",
                                  "T.if_then_else(A[i] > T.float32(9), A[i], {})"])
def test_terms_in_brackets_of_their_own(term):
    """Python's own parser stops at 200 brackets."""
    expression = "A[i] + T.float32(1)"
    for _ in range(1_000):
        expression = term.format(expression)
    check_program(from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = {expression}
"""), [X4], X4 + 1)


def test_hundreds_of_loops_are_scheduled():
    sch = Schedule(nest(LOOPS))
    loops = sch.get_loops(sch.get_block("b"))
    sch.split(loops[-1], [None, 2])
    sch.fuse(*loops[:100])
    sch.reorder(*reversed(sch.get_loops(sch.get_block("b"))))
    sch.cache_read(sch.get_block("b"), 0, "local")
    sch.parallel(sch.get_loops(sch.get_block("b"))[0])
    check_runs(sch.mod, [X4], X4 + 1)


def test_tens_of_thousands_of_terms():
    func = a_sum(TERMS)
    check_program(func, [np.ones(TERMS, "float32"), X4], X4 + TERMS)
    sch = Schedule(func)
    _, inner = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 2])
    sch.vectorize(inner)
    assert lower(sch.mod)["main"] is not None


def test_thousands_of_integers_from_memory():
    func = a_sum(5_000, "int32")
    x = X4.astype("int32")
    check_runs(func, [np.full(5_000, 3, "int32"), x], x + 15_000)


def test_long_integer_expressions_are_simplified():
    i = tir.Var("i", "int32")
    e = i
    for k in range(TERMS):
        e = e + i * (k % 7)
    total = sum(k % 7 for k in range(TERMS)) + 1
    analyzer = Analyzer()
    assert repr(analyzer.simplify(e)) == f"i * {total}"
    assert analyzer.can_prove(e == i * total)
    assert analyzer.can_prove_equal(e, i * total)


def test_chains_of_tensor_expressions():
    out = A = te.placeholder((4,), name="A")
    for _ in range(OPERATORS):
        out = te.compute((4,), (lambda x: lambda i: x[i] + 1.0)(out))
    check_runs(te.create_prim_func([A, out]), [X4], X4 + OPERATORS)
    lowered = lower(te.create_schedule(out.op), [A, out])
    assert verify_well_formed(lowered)


def test_graphs_of_thousands_of_operators():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = x
            for _ in range(OPERATORS):
                out = builder.emit(relax.op.add(out, relax.const(1.0, "float32")))
            out = builder.emit_output(out)
        builder.emit_func_output(out)
    mod = builder.get()
    assert_structural_equal(from_source(mod.script()), mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), cpu())
    np.testing.assert_allclose(vm["main"](nd.array(X4)).numpy(), X4 + OPERATORS)


def test_deeply_nested_operators_become_bindings():
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    nested = x
    for _ in range(OPERATORS):
        nested = relax.op.add(nested, x)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(nested))
    mod = builder.get()
    assert len(mod["main"].body.blocks[0].bindings) == OPERATORS
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), cpu())
    np.testing.assert_allclose(vm["main"](nd.array(X4)).numpy(), X4 * (OPERATORS + 1))
