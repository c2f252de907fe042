"""A right answer that differs from the reference has all points too."""

import pytest

from mlc_lab import exercises, relax
from mlc_lab.exercises.judging import marks

WAYS = {}


def way(id):
    """Enter a function of what was drawn, which gives a right answer, as one of an exercise."""
    def enter(answer):
        WAYS.setdefault(id, []).append(answer)
        return answer
    return enter


@way("01.1")
def of_one_loop_more(v):
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), B: T.Buffer(({v.m},), "float32"),
         C: T.Buffer(({v.n}, {v.m}), "float32")):
    for j, i in T.grid({v.m}, {v.n}):
        with T.block("sum"):
            row, column = T.axis.remap("SS", [i, j])
            C[row, column] = B[column] + A[row, column]
"""


@way("01.4")
def backwards(v):
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), C: T.Buffer(({v.n}, {v.w}), "float32")):
    for i, j in T.grid({v.n}, {v.w}):
        with T.block("C"):
            vi = T.axis.spatial({v.n}, i)
            vj = T.axis.spatial({v.w}, {v.w - 1} - j)
            C[vi, vj] = -A[vi, vj] + A[vi, vj + {v.d}]
"""


@way("02.1")
def other_order(v):
    return f"""
@T.prim_func
def main(X: T.Buffer(({v.c}, {v.h}, {v.w}), "float32"),
         W: T.Buffer(({v.o}, {v.c}, {v.k}, {v.k}), "float32"),
         Y: T.Buffer(({v.o}, {v.rows}, {v.columns}), "float32")):
    for c, p, q, o, i, j in T.grid({v.c}, {v.k}, {v.k}, {v.o}, {v.rows}, {v.columns}):
        with T.block("conv"):
            c_, p_, q_, o_, i_, j_ = T.axis.remap("RRRSSS", [c, p, q, o, i, j])
            with T.init():
                Y[o_, i_, j_] = 0.0
            Y[o_, i_, j_] += W[o_, c_, p_, q_] * X[c_, p_ + {v.s} * i_, q_ + {v.s} * j_]
"""


@way("02.3")
def guarded_by_a_difference(v):
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.k}), "float32"), B: T.Buffer(({v.k}, {v.m}), "float32"),
         C: T.Buffer(({v.n}, {v.m}), "float32")):
    for i_0 in range({v.tiles}):
        for j, k, i_1 in T.grid({v.m}, {v.k}, {v.t}):
            with T.block("C"):
                T.where(i_1 < {v.n} - i_0 * {v.t})
                vi = T.axis.spatial({v.n}, i_1 + i_0 * {v.t})
                vj = T.axis.spatial({v.m}, j)
                vk = T.axis.reduce({v.k}, k)
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = B[vk, vj] * A[vi, vk] + C[vi, vj]
"""


@way("02.5")
def other_names(v):
    return f"""
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    rows = T.int64()
    A = T.match_buffer(a, (rows, {v.m}))
    B = T.match_buffer(b, ({v.m},))
    C = T.match_buffer(c, (rows,))
    for k in range({v.m}):
        for i in range(rows):
            with T.block("dot"):
                vk = T.axis.reduce({v.m}, k)
                vi = T.axis.spatial(rows, i)
                with T.init():
                    C[vi] = 0.0
                C[vi] += A[vi, vk] * B[vk]
"""


@way("03.1")
def factors_written_out(v):
    return f"""
i, j, k = sch.get_loops("Y")
j_0, j_1 = sch.split(j, factors=[{v.m // v.columns}, {v.columns}])
i_0, i_1 = sch.split(i, factors=[{v.n // v.rows}, {v.rows}])
sch.{v.kind}({v.loop})
sch.reorder({v.outer}, k, i_1, j_1)
sch.reverse_compute_at("C", {v.outer.split(", ")[1]})
"""


@way("03.2")
def of_other_tiles(v):
    return f"""
{v.loops} = sch.get_loops("{v.C}")
i0, i1 = sch.split(i, factors=[None, 16])
j0, j1 = sch.split(j, factors=[None, 16])
k0, k1 = sch.split(k, factors=[None, 8])
sch.reorder(i0, j0, k0, i1, k1, j1)
"""


@way("03.2")
def sums_inside(v):
    return f"""
{v.loops} = sch.get_loops("{v.C}")
i0, i1 = sch.split(i, factors=[None, 16])
j0, j1 = sch.split(j, factors=[None, 16])
k0, k1 = sch.split(k, factors=[None, 16])
sch.reorder(i0, j0, k0, i1, j1, k1)
"""


@way("03.5")
def a_step_earlier(v):
    lines = v.text.split("\n")
    return "\n".join([*lines[:-2], v.last, *lines[-2:]])


@way("04.1")
def as_a_trace(v):
    """The text of the trace with its own names, as `print(sch.trace)` shows it."""
    from mlc_lab.exercises.catalogue.ex_04_1 import text
    from mlc_lab.observe.typed_text import TextReader

    task = exercises.get("04.1")
    return str(TextReader({}, task.program(v)).read(text(v, *v.right)).sch.trace)


@way("04.2")
def reordered_with_less(v):
    return f"""
b = sch.get_block("C")
i, j, k = sch.get_loops(b)
j_0, j_1 = sch.split(j, factors=[{v.m // v.t}, {v.t}])
sch.{v.kind}(j_1)
sch.reorder({v.order}, j_1)
"""


@way("04.3")
def reordered_in_two_steps(v):
    return f"""
i, j, k = sch.get_loops("C")
k_0, k_1 = sch.split(k, factors=[{v.parts}, None])
j_0, j_1 = sch.split(j, factors=[None, {v.u}])
sch.vectorize(j_1)
i_0, i_1 = sch.split(i, factors=[None, {v.t}])
sch.reorder(i_1, k_1)
sch.reorder(i_0, j_0, k_0, i_1, k_1, j_1)
"""


@way("17.2")
def decomposed_first(v):
    return f"""
i, k = sch.get_loops("{v.C}")
sch.decompose_reduction("{v.C}", k)
i_0, i_1 = sch.split(i, factors=[{v.n // v.strip}, {v.strip}])
sch.compute_at("{v.Y}", i_0)
"""


@way("17.3")
def in_a_buffer_of_a_strip(v):
    def strip(count, first, pad):
        return f"""
{pad}for i, k in T.grid({count}, {v.m}):
{pad}    F[k * {v.strip} + i] = B[k] * A_1[{first} + i * {v.m} + k]
{pad}for i in range({count}):
{pad}    {v.C}[({first}) // {v.m} + i] = T.float32({v.start})
{pad}for k, i in T.grid({v.m}, {count}):
{pad}    {v.C}[({first}) // {v.m} + i] += F[k * {v.strip} + i] * F[k * {v.strip} + i]
"""

    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), B: T.Buffer(({v.m},), "float32"),
         {v.C}: T.Buffer(({v.n},), "float32")):
    A_1 = T.decl_buffer(({v.n * v.m},), data=A.data)
    F = T.alloc_buffer(({v.strip * v.m},))
    for s in range({v.whole}):{strip(v.strip, f"s * {v.strip * v.m}", "        ")}
{strip(v.rest, v.whole * v.strip * v.m, "    ")}"""


@way("18.2")
def with_other_names(v):
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), {v.C}: T.Buffer(({v.n},), "float32")):
    for strip in T.parallel({v.strips}):
        for step in range({v.rows}):
            for k in range({v.m}):
                with T.block("{v.C}"):
                    vi = T.axis.spatial({v.n}, {"strip + step * " + str(v.strips) if v.apart else
                                                "step + strip * " + str(v.rows)})
                    vk = T.axis.reduce({v.m}, k)
                    T.where({"strip + step * " + str(v.strips) if v.apart else
                             "step + strip * " + str(v.rows)} <= {v.n - 1})
                    with T.init():
                        {v.C}[vi] = 0.0
                    {v.C}[vi] += T.float32({v.c}) * A[vi, vk]
"""


@way("19.3")
def of_four_rows_with_two_vectors_each(v):
    from mlc_lab.exercises.catalogue.ex_19_3 import schedule

    return schedule(v, 4, 2)


@way("22.1")
def sums_one_after_the_other(v):
    return f"""
{", ".join(v.order)} = sch.get_loops("{v.Y}")
sch.reorder(i, o)
sch.reorder(i, o, j, c, p, q)
sch.compute_at("{v.P}", i)
"""


@way("22.3")
def in_blocks_of_sixteen(v):
    return f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), V: T.Buffer(({v.m},), "float32"),
         {v.Y}: T.Buffer(({v.n},), "float32")):
    S = T.alloc_buffer((16,))
    M = T.alloc_buffer((2,))
    sums = T.alloc_buffer((2,))
    for i in range({v.n}):
        M[0] = T.min_value("float32")
        sums[0] = 0.0
        sums[1] = 0.0
        for b in range({v.m // 16}):
            M[1] = M[0]
            for j in range(16):
                S[j] = A[i, b * 16 + j] * T.float32({v.c}) - T.float32({v.d})
            for j in range(16):
                M[0] = T.max(M[0], S[j])
            for j in range(2):
                sums[j] = sums[j] * T.exp(M[1] - M[0])
            for j in range(16):
                sums[0] = sums[0] + T.exp(S[j] - M[0])
                sums[1] = sums[1] + T.exp(S[j] - M[0]) * V[b * 16 + j]
        {v.Y}[i] = sums[1] / sums[0]
"""


@way("06.1")
def by_a_block_builder(v):
    def tensor(name, *shape):
        return relax.Var(name, relax.TensorStructInfo(shape, "float32"))

    x, w1, b1 = tensor("a", v.b, v.n), tensor("b", v.n, v.h), tensor("c", v.h)
    w2, b2 = tensor("d", v.h, v.m), tensor("e", v.m)
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w1, b1, w2, b2]):
        with bb.dataflow():
            hidden = bb.emit(relax.op.nn.relu(bb.emit(relax.op.add(relax.op.matmul(x, w1), b1))))
            out = bb.emit_output(relax.op.add(b2, bb.emit(relax.op.matmul(hidden, w2))))
        bb.emit_func_output(out)
    return bb.get()


@way("20.2")
def cards_are_made_first(v):
    return f"""
i, = sch.get_loops("{v.y}")
card, row = sch.split(i, factors=[None, {v.elements}])
turn, thread = sch.split(card, factors=[None, {v.threads}])
sch.reorder(thread, turn)
sch.parallel(thread)
"""


@way("20.3")
def a_line_for_each_part(v):
    from mlc_lab.exercises.catalogue.ex_20_3 import answer

    return answer(v, apart="padded")


@way("20.3")
def more_parts_than_threads(v):
    return f"""
part, rest = sch.split(sch.get_loops("{v.s}")[1], factors=[{2 * v.threads}, None])
partial = sch.rfactor(part, 1)
own = sch.cache_write(partial, 0, "local")
outer, inner = sch.split(sch.get_loops(partial)[1], factors=[{v.threads}, 2])
sch.reverse_compute_at(own, inner)
sch.parallel(outer)
"""


@way("21.1")
def one_block_and_other_names(v):
    from mlc_lab.exercises.catalogue.ex_21_1 import passed

    return (passed(v).script().replace("range(", "T.serial(").replace("vi", "at")
            .replace("T.float32(2.0)", "T.float32(2)"))


@way("21.2")
def of_where(v):
    """By topi, with operators of tensors."""
    from mlc_lab.exercises.catalogue.ex_21_2 import FORMULAS

    conditions = {"x if abs(x) > {c} else 0": "topi.abs(x) > {c}", "x if x > {c} else 0": "x > {c}",
                  "x if x > 0 else {c} * x": "x > 0"}
    values = {"x if x > 0 else {c} * x": "topi.multiply(x, {c})"}
    other = {"x / ({c} + abs(x))": "topi.divide(x, topi.add(topi.abs(x), {c}))",
             "min(max(x, -{c}), {c})": "topi.clip(x, -{c}, {c})",
             "x * min(max(x + {c}, 0), 1)": "topi.multiply(x, topi.clip(topi.add(x, {c}), 0, 1))"}
    assert v.formula in FORMULAS
    if v.formula in other:
        body = f"return {other[v.formula]}"
    else:
        body = (f"return te.compute(x.shape, lambda *i: tir.Select("
                f"{conditions[v.formula].replace('topi.abs(x)', 'tir.abs(x(*i))')} , x(*i), "
                f"{values.get(v.formula, 'topi.full_like(x, 0.0)')}(*i)))").replace(
                    "x >", "x(*i) >")
    return f"""
@operator("relax.{v.name}")
def declared(x: FloatTensor, {v.letter}: Float = {v.default}):
    {body.replace("{c}", v.letter)}
"""


@way("21.3")
def by_squares(v):
    return f"""
import tvm
POW = tvm.ir.Op.get("tir.pow")

def calls(e):
    count = [0]
    def look(node):
        count[0] += type(node) is tir.Call
    tir.stmt_functor.post_order_visit(e, look)
    return count[0]

def {v.name}(f):
    def change(e):
        if e.op.same_as(POW) and isinstance(e.args[1], tir.FloatImm) and (
                float(e.args[1]) == {v.k} and not calls(e.args[0])):
            x, n, out = e.args[0], {v.k}, None
            while n:
                if n % 2:
                    out = x if out is None else out * x
                x, n = x * x, n // 2
            return out
    new = tir.stmt_functor.ir_transform(f.body, change, None, ["tir.Call"])
    return tir.PrimFunc(f.params, new, f.ret_type, f.buffer_map, f.attrs)
"""


@way("23.2")
def sums_in_a_buffer_of_their_own(v):
    return f"""
j, k = sch.get_loops("{v.y}")
own = sch.cache_write("{v.y}", 0, "local")
tile, vector, lane = sch.split(j, factors=[None, {v.sums}, 8])
sch.reorder(tile, k, vector, lane)
sch.reverse_compute_at(own, tile)
sch.unroll(vector)
sch.vectorize(lane)
sch.decompose_reduction("{v.y}", k)
sch.vectorize(sch.split(sch.get_loops(own)[-1], factors=[None, 8])[1])
"""


@way("23.3")
def row_by_row(v):
    return f"""
@T.prim_func
def main(s: T.handle, p: T.handle):
    S = T.match_buffer(s, ({v.n}, {v.n}), "float32")
    P = T.match_buffer(p, ({v.n}, {v.n}), "float32")
    high = T.alloc_buffer((1,), "float32")
    total = T.alloc_buffer((1,), "float32")
    for i in range({v.n}):
        high[0] = T.float32("-inf")
        total[0] = T.float32(0)
        for j in range({v.n}):
            P[i, j] = T.float32(0)
        for back in range({v.window}):
            if back <= i:
                high[0] = T.max(high[0], S[i, i - back] * T.float32({v.scale}))
        if high[0] > T.float32("-inf"):
            for back in range({v.window}):
                if back <= i:
                    P[i, i - back] = T.exp(S[i, i - back] * T.float32({v.scale}) - high[0])
                    total[0] = total[0] + P[i, i - back]
            for back in range({v.window}):
                if back <= i:
                    P[i, i - back] = P[i, i - back] / total[0]
"""


CASES = [(id, answer) for id, answers in WAYS.items() for answer in answers]


@pytest.mark.parametrize("id, answer", CASES, ids=lambda x: getattr(x, "__name__", x))
def test_another_right_answer_has_all_points(id, answer):
    for seed in (0, 7):
        variant = exercises.get(id).variant(seed)
        found = marks(variant, answer(variant.values))
        assert found.solved, f"variant {seed}\n{found}"
