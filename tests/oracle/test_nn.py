"""Models written with relax.frontend.nn become the program that apache-tvm writes for them."""

import pytest

from mlc_lab.ir.structural import structural_equal
from mlc_lab.relax.frontend import nn

from .bridge import needs_oracle
from .relax_bridge import ask_passes

pytestmark = needs_oracle

#: name -> (what forward does with its inputs, their shapes, modules it has)
OPERATORS = {
    "elementwise": ("nn.op.silu(x) + nn.op.gelu(x) * nn.op.relu(x) - nn.op.exp(x) / nn.op.sqrt(x)",
                    [(3, 4)], {}),
    "approximate gelu": ("nn.op.gelu(x, approximate='tanh')", [(3, 4)], {}),
    "scalars": ("(2 - x) / (x * 3 + 1)", [(3, 4)], {}),
    "compared": ("nn.op.where(x < y, x, nn.op.maximum(x, y))", [(3, 4), (3, 4)], {}),
    "shapes": ("nn.op.unsqueeze(x.reshape(4, 6).permute_dims(1, 0), 1).repeat(2, axis=0)",
               [(2, 12)], {}),
    "joined": ("nn.op.concat([x, y], dim=1)", [(2, 3), (2, 4)], {}),
    "parted": ("nn.op.split(x, 3, axis=1)", [(2, 9)], {}),
    "reduced": ("nn.op.sum(x, 1), nn.op.max(x, -1, keepdims=True), nn.op.min(x)", [(2, 3, 4)], {}),
    "softmax": ("nn.op.softmax(x, axis=1)", [(2, 5)], {}),
    "products": ("nn.op.matmul(x, y)", [(2, 3, 4), (4, 5)], {}),
    "symbolic": ("nn.op.softmax(nn.op.matmul(x, y.permute_dims(1, 0)))", [("n", 4), ("m", 4)], {}),
    "made": ("x + nn.op.ones((2, 1)) * nn.op.full((3,), 0.5) + nn.op.zeros([1])", [(2, 3)], {}),
    "triangle": ("nn.op.triu(x, 1)", [(4, 5)], {}),
    "types": ("nn.op.astype(x, 'float16')", [(4, 5)], {}),
    "attention": ("nn.op.scaled_dot_product_attention(x, y, z)", [(2, 5, 3, 4)] * 3, {}),
    "grown": ("nn.op.interpolate(x, size=(5, 7), mode='bilinear')", [(1, 2, 3, 4)], {}),
    "padded": ("nn.op.pad(x, [1, 2, 0, 3])", [(2, 3)], {}),
    "linear": ("self.a(x)", [("n", 4)], {"a": "nn.Linear(4, 3)"}),
    "linear, wider": ("self.a(x)", [("n", 4)], {"a": "nn.Linear(4, 3, out_dtype='float32')"}),
    "convolutions": ("self.b(self.a(x))", [(1, 3, 8, 8)],
                     {"a": "nn.Conv2D(3, 4, 3, padding=1)",
                      "b": "nn.Conv2D(4, 4, 3, stride=2, groups=2, bias=False)"}),
    "conv1d": ("self.a(x)", [(1, 3, 8)], {"a": "nn.Conv1D(3, 4, 3, dilation=2)"}),
    "transposed": ("self.a(x)", [(1, 3, 8)], {"a": "nn.ConvTranspose1D(3, 4, 3, stride=2)"}),
    "norms": ("self.c(self.b(self.a(x)))", [(2, 4, 8)],
              {"a": "nn.LayerNorm(8)", "b": "nn.RMSNorm(8, axes=-1)", "c": "nn.GroupNorm(2, 4)"}),
    "table": ("self.a(nn.op.astype(x, 'int32'))", [(2, 3)], {"a": "nn.Embedding(7, 4)"}),
    "within": ("self.b(self.a(x)) + x", [(2, 4)],
               {"a": "nn.ModuleList([nn.Linear(4, 6), nn.ReLU()])", "b": "nn.Linear(6, 4)"}),
}


def source(body: str, shapes: list, parts: dict) -> str:
    """A module whose forward gives `body`."""
    names = "xyz"[:len(shapes)]
    made = "".join(f"        self.{name} = {text}\n" for name, text in parts.items())
    spec = ", ".join(f"{n!r}: nn.spec.Tensor({s!r}, 'float32')" for n, s in zip(names, shapes))
    return (f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n{made}"
            f"    def forward(self, {', '.join(names)}):\n        return {body}\n\n"
            f"module, spec = Model(), {{'forward': {{{spec}}}}}\n")


@pytest.fixture(scope="module")
def theirs():
    texts = {name: source(*case) for name, case in OPERATORS.items()}
    return dict(zip(texts, ask_passes([{"model": text} for text in texts.values()])))


@pytest.mark.parametrize("name", OPERATORS)
def test_a_model_is_written_as_theirs(name, theirs):
    want = theirs[name]
    assert not isinstance(want, str), want
    scope = {"nn": nn}
    exec(source(*OPERATORS[name]), scope)
    got, _ = scope["module"].export_tvm(scope["spec"])
    assert structural_equal(got, want) is True, f"{got.script()}\n{want.script()}"
