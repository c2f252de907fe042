"""Operators have the blocks and the names that apache-tvm gives them.

What is left out on purpose: where TVM divides toward zero where indices are not negative (we write
`//`), copies what needs no copy, or writes a count of elements that is constant.
"""

import pytest

from .bridge import needs_oracle
from .expressions import ours, theirs

pytestmark = needs_oracle

#: the inputs, and the operators on them
CASES: dict[str, list[str]] = {
    'y = P((4, 5), name="y")': [
        'topi.exp(y)', 'topi.tanh(y)', 'topi.sigmoid(y)', 'topi.sqrt(y)', 'topi.abs(y)',
        'topi.floor(y)', 'topi.sign(y)', 'topi.isinf(y)', 'topi.negative(y)', 'topi.identity(y)',
        'topi.trunc(y)', 'topi.round(y)', 'topi.rsqrt(y)', 'topi.erf(y)', 'topi.tan(y)',
        'topi.sum(y, 1)', 'topi.sum(y, 0, True)', 'topi.max(y, 1)', 'topi.max(y, 0, True)',
        'topi.min(y, 1)', 'topi.min(y, 0, True)', 'topi.prod(y, 1)', 'topi.prod(y, 0, True)',
        'topi.argmax(y, 1)', 'topi.argmax(y, 0, True)', 'topi.argmin(y, 1)',
        'topi.argmin(y, 0, True)', 'topi.sum(y)', 'topi.argmax(y)', 'topi.nn.log_softmax(y)',
        'topi.trilu(y, tir.const(0, "int32"), True)',
        'topi.trilu(y, tir.const(1, "int32"), False)',
    ],
    'y = P((4, 5), name="y"); z = P((5,), name="z")': [
        'topi.add(y, z)', 'topi.subtract(y, z)', 'topi.multiply(y, z)', 'topi.divide(y, z)',
        'topi.maximum(y, z)', 'topi.power(y, z)', 'topi.less(y, z)', 'topi.equal(y, z)',
        'topi.floor_mod(y, z)', 'topi.mod(y, z)',
    ],
    'a = P((4,), "bool", name="a"); b = P((4,), "bool", name="b")': [
        'topi.logical_or(a, b)',
    ],
    'a = P((4,), "bool", name="a"); y = P((4,), name="y")': [
        'topi.where(a, y, y)',
    ],
    'a = P((4,5), "bool", name="a")': [
        'topi.all(a, 1)', 'topi.any(a, 1)', 'topi.logical_not(a)',
    ],
    'x = P((1, 4, 8, 8), name="x")': [
        'topi.transpose(x)', 'topi.transpose(x, (0, 2, 3, 1))', 'topi.reshape(x, (4, 64))',
        'topi.squeeze(x)', 'topi.expand_dims(x, 1)', 'topi.flip(x, 2)', 'topi.nn.flatten(x)',
        'topi.repeat(x, 2, 1)', 'topi.strided_slice(x, [0, 1], [1, 3], [1, 1])',
        'topi.strided_slice(x, [0, 3], [1, 0], [1, -2])', 'list(topi.split(x, 2, 1))',
        'list(topi.split(x, [1, 3], 1))', 'topi.concatenate([x, x], 1)', 'topi.clip(x, 0, 6)',
        'topi.cast(x, "int32")', 'topi.nn.relu(x)', 'topi.nn.leaky_relu(x, 0.1)',
        'topi.nn.softmax(x)', 'topi.nn.softmax(x, 1)',
        'topi.nn.pad(x, [0, 0, 1, 1], [0, 0, 1, 2])',
        'topi.nn.mirror_pad(x, [0, 0, 1, 1], [0, 0, 1, 2], "REFLECT")',
        'topi.nn.dilate(x, [1, 1, 2, 2])', 'topi.broadcast_to(x, (3, 4, 8, 8))',
        'topi.full_like(x, 2.0)', 'topi.nn.softplus(x)',
        'topi.nn.pool2d(x, [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], "max")',
        'topi.nn.pool2d(x, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "max")',
        'topi.nn.adaptive_pool(x, (1, 1), "avg")', 'topi.nn.global_pool(x, "avg")',
    ],
    'x = P((1, 4, 8, 8), name="x"); w = P((6, 4, 3, 3), name="w")': [
        'topi.nn.conv2d_nchw(x, w, 1, 1, 1)', 'topi.nn.conv2d_nchw(x, w, 2, 0, 2)',
        'topi.nn.conv(x, w, 1, 1, 1, 1, "NCHW")',
    ],
    'x = P((1, 4, 8, 8), name="x"); w = P((6, 2, 3, 3), name="w")': [
        'topi.nn.group_conv2d_nchw(x, w, 2, 1, 1, 2)',
    ],
    'x = P((1, 4, 8, 8), name="x"); w = P((4, 1, 3, 3), name="w")': [
        'topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)',
    ],
    'x = P((1, 4, 8, 8), name="x"); w = P((4, 6, 3, 3), name="w")': [
        'topi.nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (1, 1))',
    ],
    'x = P((1, 4, 8, 8), name="x"); w = P((4, 3, 3, 3), name="w")': [
        'topi.nn.group_conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (1, 1), 2)',
    ],
    'x = P((1, 8, 8, 4), name="x"); w = P((3, 3, 4, 6), name="w")': [
        'topi.nn.conv2d_nhwc(x, w, 1, 1, 1)',
    ],
    'x = P((1, 8, 8, 4), name="x"); w = P((3, 3, 2, 6), name="w")': [
        'topi.nn.group_conv2d_nhwc(x, w, 2, 1, 1, 2)',
    ],
    'x = P((1, 8, 8, 4), name="x"); w = P((3, 3, 4, 1), name="w")': [
        'topi.nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1)',
    ],
    'x = P((1, 4, 8), name="x"); w = P((6, 4, 3), name="w")': [
        'topi.nn.conv1d_ncw(x, w, 1, 1, 1)',
    ],
    'x = P((1, 4, 8), name="x"); w = P((4, 6, 3), name="w")': [
        'topi.nn.conv1d_transpose_ncw(x, w, 2, 1, "float32", (1,))',
    ],
    'x = P((1, 4, 8, 8, 8), name="x"); w = P((6, 4, 3, 3, 3), name="w")': [
        'topi.nn.conv3d_ncdhw(x, w, 1, 1, 1, 1)',
    ],
    'a = P((2, 4, 5), name="a"); b = P((2, 6, 5), name="b")': [
        'topi.nn.batch_matmul(a, b)',
    ],
    'a = P((4, 5), name="a"); b = P((5, 6), name="b")': [
        'topi.matmul(a, b)', 'topi.nn.matmul(a, b)', 'topi.einsum("ij,jk->ik", a, b)',
        'topi.tensordot(a, b, 1)',
    ],
    'y = P((4, 5), name="y"); i = P((3,), "int32", name="i")': [
        'topi.take(y, i, 0)', 'topi.take(y, i, 1, mode="clip")',
        'topi.take(y, i, 0, mode="wrap")',
    ],
    'y = P((4, 5), name="y"); i = P((4, 3), "int64", name="i")': [
        'topi.gather(y, 1, i)',
    ],
    'y = P((4, 5), name="y"); i = P((2, 3), "int32", name="i")': [
        'topi.gather_nd(y, i)',
    ],
    'i = P((3,), "int32", name="i")': [
        'topi.one_hot(i, tir.const(1.0, "float32"), tir.const(0.0, "float32"), 6, -1, "float32")',
    ],
    'y = P((4, 5), name="y"); g = P((5,), name="g"); b = P((5,), name="b")': [
        'topi.nn.layer_norm(y, g, b, [1])',
    ],
    'y = P((4, 5), name="y"); g = P((5,), name="g")': [
        'topi.nn.prelu(y, g, 1)',
    ],
    'x = P((4, 5), name="x"); y = P((4, 5), name="y")': [
        'topi.stack([x, y], 1)', 'topi.concatenate([x, y], 0)', 'topi.stack([x, y], -1)',
    ],
    'a = P((4, 5), name="a"); b = P((6, 5), name="b")': [
        'topi.nn.dense(a, b)', 'topi.matmul(a, b, False, True)',
    ],
}


def _text(inputs, operator):
    names = ", ".join(d.split("=")[0].strip() for d in inputs.split(";"))
    return (f"{inputs}\nout = {operator}\n"
            f"args = [{names}, *(out if isinstance(out, (list, tuple)) else [out])]")


def test_scripts_are_those_of_tvm():
    texts = [_text(i, o) for i, operators in CASES.items() for o in operators]
    wrong = []
    for text, answer in zip(texts, theirs(texts)):
        assert "error" not in answer, f"{text}\n{answer}"
        mine = ours(text)
        if mine != answer["script"]:
            wrong.append(f"{text}\n--- ours\n{mine}\n--- theirs\n{answer['script']}")
    if wrong:
        pytest.fail(f"{len(wrong)} of {len(texts)} differ\n\n" + "\n\n".join(wrong))
