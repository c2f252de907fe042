"""Random tensor expressions become the same TensorIR here and in apache-tvm."""

import random

import pytest

from .bridge import needs_oracle
from .expressions import ours, theirs

pytestmark = needs_oracle

UNARY = ["te.exp({})", "te.tanh({})", "{} * 2.0", "{} + 1.0", "te.max({}, 0.0)", "te.sqrt({})",
         "te.if_then_else({i} < 3, {}, 0.0)",
         "te.min({}, 6.0)", "{}.astype('float32') - 1.0"]
BINARY = ["{} + {}", "{} * {}", "{} - {}", "te.max({}, {})", "{} / {}"]
INDEX = ["{}", "{} // 2", "{} % 4", "({} + 1) % 5"]


class Program:
    """A random program over tensors of shape (6, 6) and (6,), as text for both compilers."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = ['A = P((6, 6), name="A")', 'B = P((6, 6), name="B")', 'v = P((6,), name="v")']
        self.matrices, self.vectors = ["A", "B"], ["v"]
        for n in range(self.rng.randint(1, 4)):
            self.stage(f"S{n}")
        self.lines.append(f"args = [A, B, v, {self.last}]")

    def element(self, i, j):
        """A read of some tensor."""
        pick = self.rng.choice
        if self.rng.random() < 0.25:
            return f"{pick(self.vectors)}[{pick(INDEX).format(pick([i, j]))}]"
        a, b = (i, j) if self.rng.random() < 0.8 else (j, i)
        if self.rng.random() < 0.3:
            a = pick(INDEX).format(a)
        return f"{pick(self.matrices)}[{a}, {b}]"

    def value(self, i, j):
        pick = self.rng.choice
        out = self.element(i, j)
        for _ in range(self.rng.randint(0, 2)):
            if self.rng.random() < 0.5:
                out = pick(UNARY).format(f"({out})", i=i)
            else:
                out = pick(BINARY).format(f"({out})", f"({self.element(i, j)})")
        return out

    def stage(self, name):
        kind = self.rng.choice(["map", "map", "sum", "max", "matmul", "row", "window"])
        self.last = name
        add = self.lines.append
        if kind == "map":
            add(f'{name} = te.compute((6, 6), lambda i, j: {self.value("i", "j")}, name="{name}")')
        elif kind == "matmul":
            x, y = self.rng.choice(self.matrices), self.rng.choice(self.matrices)
            add('k = te.reduce_axis((0, 6), name="k")')
            add(f'{name} = te.compute((6, 6), lambda i, j: te.sum({x}[i, k] * {y}[k, j], axis=k), '
                f'name="{name}")')
        elif kind == "window":
            x = self.rng.choice(self.matrices)
            add('rx = te.reduce_axis((0, 3), name="rx")')
            add('ry = te.reduce_axis((0, 2), name="ry")')
            add(f'{name}_w = te.compute((4, 5), lambda i, j: te.max({x}[i + rx, j + ry], '
                f'axis=[rx, ry]), name="{name}_w")')
            add(f'{name} = te.compute((6, 6), lambda i, j: {name}_w[te.min(i, 3), j % 5], '
                f'name="{name}")')
        else:
            how = {"sum": "te.sum", "max": "te.max", "row": "te.min"}[kind]
            add('k = te.reduce_axis((0, 6), name="k")')
            add(f'{name} = te.compute((6,), lambda i: {how}({self.value("i", "k")}, axis=k), '
                f'name="{name}")')
            self.vectors.append(name)
            return
        self.matrices.append(name)

    def text(self):
        return "\n".join(self.lines)


def test_random_programs():
    texts = [Program(seed).text() for seed in range(120)]
    wrong = []
    for text, answer in zip(texts, theirs(texts)):
        assert "error" not in answer, f"{text}\n{answer}"
        mine = ours(text)
        if mine != answer["script"]:
            wrong.append(f"{text}\n--- ours\n{mine}\n--- theirs\n{answer['script']}")
    if wrong:
        pytest.fail(f"{len(wrong)} of {len(texts)} differ\n\n" + "\n\n".join(wrong[:5]))


FIXED = {
    "a tuple of outputs": """
A = P((4, 5), name="A")
B, C = te.compute((4, 5), lambda i, j: (A[i, j] + 1.0, A[i, j] * 2.0), name="pair")
args = [A, B, C]""",
    "a reduction of pairs": """
x = P((6, 7), "int32", name="x")
red = te.comm_reducer(lambda a, b: (tir.Select(a[1] >= b[1], a[0], b[0]),
                                    tir.Select(a[1] >= b[1], a[1], b[1])),
                      lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)), name="argmax")
k = te.reduce_axis((0, 7), name="k")
i, v = te.compute((6,), lambda i: red((k.var, x[i, k]), axis=k), name="T")
args = [x, i, v]""",
    "no dimensions": """
A = P((8,), name="A")
k = te.reduce_axis((0, 8), name="k")
B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
args = [A, B]""",
    "names twice": """
A = P((4,), name="A")
B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
C = te.compute((4,), lambda i: B[i] + 1.0, name="B")
args = [A, C]""",
}


@pytest.mark.parametrize("name", FIXED)
def test_forms(name):
    answer = theirs([FIXED[name]])[0]
    assert ours(FIXED[name]) == answer["script"]
