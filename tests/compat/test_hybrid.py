"""`te.hybrid`: computations written as loops, in numpy, compiled, scheduled, and as text."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import mlc_lab.compat

mlc_lab.compat.install()

import tvm
from tvm import te
from tvm.te.hybrid import script

from mlc_lab.compat.hybrid.words import HYBRID_GLOBALS

TABLE = [[1, 2, 3], [4, 5, 6]]


def tensors(*shapes, dtype="float32"):
    return [te.placeholder(s, dtype, name=f"p{i}") for i, s in enumerate(shapes)]


def data(tensor):
    made = np.random.default_rng(3).standard_normal([int(d) for d in tensor.shape]) * 4
    return made.astype(tensor.dtype)


def agrees(func, *args, steps=lambda sch, *outs: None, target="llvm"):
    """The function in numpy, compiled after some steps, and as text of the scheduled program."""
    outs = func(*args)
    outs = outs if isinstance(outs, list) else [outs]
    given = [data(a) if isinstance(a, te.Tensor) else a for a in args]
    expected = func(*[g.copy() if isinstance(g, np.ndarray) else g for g in given])
    expected = expected if isinstance(expected, tuple) else (expected,)
    sch = te.create_schedule([o.op for o in outs])
    steps(sch, *outs)
    inputs = [a for a in args if isinstance(a, te.Tensor)]
    arrays = [g for g in given if isinstance(g, np.ndarray)]
    results = [np.zeros([int(d) for d in o.shape], o.dtype) for o in outs]
    device = tvm.device(target)
    on = [tvm.nd.array(a, device) for a in (*arrays, *results)]
    tvm.build(sch, [*inputs, *outs], target)(*on)
    for found, want in zip(on[len(arrays) :], expected):
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-5, atol=1e-5)
    module = te.hybrid.build(sch, inputs, outs)
    again = module(*arrays)
    for found, want in zip(again if isinstance(again, list) else [again], expected):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    return module.get_source()


@script
def outer(a, b):
    """Text that is passed over."""
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            assert i < a.shape[0] and 0 <= j < b.shape[0], "out of range"
            c[i, j] = a[i] * b[j]
    return c


@script
def means(a):
    n = a.shape[1]
    most = output_tensor((a.shape[0],), a.dtype)
    mean = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        total = 0.0
        best = ninf("float32")
        for j in range(n):
            total += a[i, j]
            best = max(best, a[i, j])
        total = total / float32(n)
        mean[i] = total
        most[i] = best
    return most, mean


@script
def running(a):
    """A number that lives on from one iteration to the next, though it begins in a branch."""
    b = output_tensor(a.shape, "float32")
    for i in range(a.shape[0]):
        if i == 0:
            s = 0.0
        s = s + a[i]
        b[i] = s
    return b


@script
def window(a):
    b = output_tensor((10, 10), "float32")
    for i in range(2, 12):
        rows = allocate((3, 12), "float32", "local")
        for k in range(3):
            for j in range(12):
                rows[k, j] = a[i - k, j]
        for j in range(i - 2, 10):
            b[i - 2, j] = (rows[0, j] + rows[1, j + 1] + rows[2, j + 2]) / 3
        for j in range(i - 2):
            b[i - 2, j] = -1.0 if (i + j) % 2 == 0 else 0.5
    return b


@script
def with_table(a):
    c = output_tensor((2, 3), "float32")
    for i in const_range(len(TABLE)):
        for j in const_range(len(TABLE[0])):
            d = a[i, j] * TABLE[i][j]
            d += TABLE[i][2] - 1
            c[i, j] = d
    return c


@script
def kinds(a, b):
    d = output_tensor((16,), "int32")
    e = output_tensor((16,), "float32")
    for i in parallel(16):
        d[i] = int32(a[i]) // 3 * 2 + int32(a[i]) % 3
    for j in vectorize(16):
        e[j] = sqrt(abs(b[j])) + exp(b[j] * 0.1)
    for k in unroll(4):
        e[k] = min(e[k], sigmoid(b[k]), power(2.0, tanh(b[k])))
    return d, e


@script
def calls(a, b):
    c = outer(a, b)
    d = output_tensor(c.shape, c.dtype)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            d[i, j] = c[i, j] + i * j
    return d


PROGRAMS = {
    "outer": (outer, (5,), (7,)), "means": (means, (4, 9)), "running": (running, (6,)),
    "window": (window, (12, 12)), "with_table": (with_table, (2, 3)),
    "kinds": (kinds, (16,), (16,)), "calls": (calls, (4,), (5,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_numpy_the_compiled_program_and_its_text_agree(name):
    func, *shapes = PROGRAMS[name]
    agrees(func, *tensors(*shapes))


def test_the_loops_of_the_program_are_those_of_its_stage():
    a, b = tensors((64,), (64,))
    c = outer(a, b)
    assert [iv.var.name for iv in c.op.axis] == ["i", "j"] and isinstance(c.op, te.HybridOp)
    assert [iv.var.name for iv in means(*tensors((4, 9)))[0].op.axis] == ["i", "j"]

    def steps(sch, out):
        i, j = sch[out].op.axis
        io, ii = sch[out].split(i, 5)
        jo, ji = sch[out].split(j, nparts=16)
        sch[out].reorder(ii, jo, io, ji)
        sch[out].parallel(ii)
        sch[out].unroll(ji)

    text = agrees(outer, a, b, steps=steps)
    assert "in parallel(5):" in text and "in unroll(4):" in text

    def fused(sch, out):
        sch[out].vectorize(sch[out].split(sch[out].fuse(*sch[out].op.axis), 8)[1])

    @script
    def plain(a, b):
        c = output_tensor((64, 64), a.dtype)
        for i in range(64):
            for j in range(64):
                c[i, j] = a[i] * b[j]
        return c

    assert "vectorize(8)" in agrees(plain, a, b, steps=fused)


def test_a_step_that_changes_the_result_is_refused():
    @script
    def prefix(a):
        b = output_tensor((16,), "float32")
        for i in range(1, 16):
            b[i] = b[i - 1] + a[i]
        return b

    out = prefix(*tensors((16,)))
    sch = te.create_schedule(out.op)
    sch[out].parallel(out.op.axis[0])
    with pytest.raises(tvm.tir.ScheduleError, match="parallel"):
        tvm.lower(sch, [out.op.inputs[0], out])


def test_stages_before_and_after():
    (a,) = tensors((20,))

    @script
    def twice(x):
        y = output_tensor((20,), "float32")
        for i in range(20):
            y[i] = x[i] * 2.0 + i
        return y

    before = te.compute((20,), lambda i: a[i] + 1.0, name="before")
    doubled = twice(before)
    after = te.compute((20,), lambda i: before[i] - doubled[i], name="after")
    sch = te.create_schedule(after.op)
    sch[after].parallel(after.op.axis[0])
    x, y = np.arange(20, dtype="float32"), np.zeros(20, "float32")
    tvm.build(sch, [a, after])(x, y)
    np.testing.assert_allclose(y, x + 1 - ((x + 1) * 2 + np.arange(20)))


def test_threads():
    @script
    def scaled(a):
        b = output_tensor((a.shape[0],), "float32")
        total = allocate((1,), a.dtype, "local")
        for i in bind("threadIdx.x", a.shape[0]):
            total[0] = 0.0
            for k in const_range(4):
                total[0] += a[i, k]
            b[i] = total[0]
        return b

    a = te.placeholder((8, 4), "float32", name="a")
    out = scaled(a)
    mod = tvm.lower(te.create_schedule(out.op), [a, out])
    assert "threadIdx.x" in mod.script()
    agrees(scaled, a, target="cuda")
    text = te.hybrid.build(te.create_schedule(out.op), [a], [out]).get_source()
    assert 'in bind("threadIdx.x", 8):' in text


def test_sizes_numbers_and_lists_of_tensors():
    n = te.size_var("n")
    a = te.placeholder((n,), "float32", name="a")

    @script
    def shifted(n, a, by):
        b = output_tensor((n - 1,), a.dtype)
        for i in range(n - 1):
            b[i] = a[i + 1] + by
        return b

    out = shifted(n, a, tvm.tir.const(3, "int32"))
    x, y = np.arange(9, dtype="float32"), np.zeros(8, "float32")
    sch = te.create_schedule(out.op)
    tvm.build(sch, [n, a, out])(9, x, y)
    np.testing.assert_array_equal(y, shifted(9, x, 3))
    module = te.hybrid.build(sch, [n, a], out)
    np.testing.assert_array_equal(module(9, x), y)

    @script
    def total(parts):
        out = output_tensor((5,), parts[0].dtype)
        for i in range(5):
            s = 0.0
            for j in const_range(len(parts)):
                s += parts[j][i]
            out[i] = s
        return out

    parts = tensors((5,), (5,), (5,))
    for given in (parts, tvm.runtime.convert(parts)):
        assert list(total(given).op.inputs) == parts


def test_a_script_in_a_file_is_read_and_not_executed(tmp_path):
    out = running(*tensors((6,)))
    module = te.hybrid.build(te.create_schedule(out.op), list(out.op.inputs), [out])
    module.save(str(tmp_path / "kept"))
    again = te.hybrid.HybridModule()
    again.load(str(tmp_path / "kept.py"))
    x = np.arange(6, dtype="float32")
    assert again.name == "hybrid_func"
    np.testing.assert_allclose(again(x), np.cumsum(x))
    assert isinstance(again(*tensors((6,))), te.Tensor)
    (tmp_path / "bad.py").write_text("def f(a):\n    open('x', 'w')\n    return a\n")
    again.load(str(tmp_path / "bad.py"))
    with pytest.raises(tvm.error.DiagnosticError, match="not used"):
        again(x)
    assert not (tmp_path / "x").exists()


def refused(func, message, *args):
    with pytest.raises(tvm.error.DiagnosticError, match=message) as raised:
        func(*args)
    assert raised.value.line > 0 and raised.value.filename == __file__


def test_a_sum_of_a_thousand_terms_is_read(tmp_path, names_of_tvm):
    lines = ["from tvm.te.hybrid import script", "@script", "def long(a):",
             "    c = output_tensor((8,), 'float32')", "    for i in range(8):",
             "        c[i] = a[i]" + " + 1.0" * 1000, "    return c", ""]
    (tmp_path / "long_sum.py").write_text("\n".join(lines), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("long_sum", tmp_path / "long_sum.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (a,) = tensors((8,))
    assert module.long(a).shape[0] == 8


def test_what_hybrid_scripts_cannot_say_is_refused_at_its_place():
    a, b = tensors((8,), (8,))

    @script
    def widens(a):
        c = output_tensor((8,), "float32")
        for i in range(8):
            s = 0
            s += a[i]
            c[i] = s
        return c

    refused(widens, "s holds int32.*float32", a)

    @script
    def early(a):
        c = output_tensor((8,), "float32")
        for i in range(8):
            c[i] = t
            t = a[i] + 1.0
        return c

    refused(early, "t has no value here", a)

    @script
    def parameter(n, a):
        c = output_tensor((8,), "float32")
        for i in range(8):
            c[i] = a[i] * n
            n = n + 1
        return c

    refused(parameter, "n is a parameter", 3, a)

    @script
    def endless(a):
        c = output_tensor((8,), "float32")
        while a[0] > 0:
            c[0] = 1.0
        return c

    refused(endless, "While is no statement", a)

    @script
    def varying(a):
        c = output_tensor((8,), "float32")
        for i in range(8):
            c[i] = a[i] * TABLE[0][i]
        return c

    refused(varying, "known beforehand", a)

    @script
    def unknown(a):
        c = output_tensor((8,), "float32")
        for i in range(8):
            c[i] = fetch(a[i])
        return c

    refused(unknown, "fetch is no word", a)

    @script
    def local(a):
        c = allocate((8,), "float32")
        for i in range(8):
            c[i] = a[i]
        return c

    refused(local, "output_tensor", a)

    @script
    def changes(a):
        c = output_tensor((8,), "float32")
        for i in range(8):
            a[i] = 0.0
            c[i] = a[i]
        return c

    made = te.compute((8,), lambda i: b[i] * 2.0)
    refused(changes, "result of another stage", made)
    refused(outer, "takes 2 arguments", a)

    @script
    def races(a):
        c = output_tensor((8,), "float32")
        s = 0.0
        for i in parallel(8):
            s += a[i]
            c[i] = s
        return c

    refused(races, "s lives on", a)

    @script
    def many(a):
        c = output_tensor((8,), "float32")
        for i in const_range(1000000):
            c[0] = a[0]
        return c

    refused(many, "more than 100000 statements", a)

    @script
    def itself(a):
        c = itself(a)
        return c

    refused(itself, "more than 40 scripts call each other", a)


def test_words_of_numpy_and_of_expressions_agree():
    assert HYBRID_GLOBALS["popcount"](np.int32(-1)) == 32
    assert HYBRID_GLOBALS["ceil_div"](7, 2) == 4 and HYBRID_GLOBALS["inf"]("int8") == 127

    @script
    def bits(a):
        c = output_tensor((4,), "int32")
        for i in range(4):
            c[i] = popcount(a[i]) + ceil_div(a[i], 3) + (a[i] << 1 ^ 5) + round(2.6)
        return c

    agrees(bits, *tensors((4,), dtype="int32"))
