"""The models that are timed, written once for whoever has Relax's BlockBuilder and operators.

A model is a function of a `Library` (this compiler's names, or another's) that gives
`(module, arguments, others)`: `others` names what to compare with, and how to make a function of
the arguments that computes the same. Numbers are random from a fixed seed, so that two processes
build the same model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np


@dataclass
class Library:
    """The names that the models are written in."""

    relax: Any
    op: Any
    topi: Any
    tensor_type: Callable  # (shape, dtype) -> what is known of a tensor
    symbol: Callable  # (name, dtype) -> a dimension


class Net:
    """A function under construction: `net(op(x, ...))` emits."""

    def __init__(self, lib: Library):
        self.lib, self.bb = lib, lib.relax.BlockBuilder()
        self.rng = np.random.default_rng(0)

    def __call__(self, value):
        return self.bb.emit(value)

    def rand(self, *shape, scale=1.0):
        """Random float32 numbers."""
        return (self.rng.standard_normal(shape) * scale).astype("float32")

    def tensor(self, name, *shape):
        """A parameter."""
        return self.lib.relax.Var(name, self.lib.tensor_type(shape, "float32"))

    def const(self, array):
        """These numbers as a constant."""
        return self.lib.relax.const(array)

    def weight(self, *shape):
        """A constant of random numbers."""
        fan = int(np.prod(shape[1:])) or 1
        return self.const(self.rand(*shape, scale=fan ** -0.5))

    def build(self, params, body):
        """The module of a function `main` of these parameters."""
        with self.bb.function("main", params):
            with self.bb.dataflow():
                out = self.bb.emit_output(body())
            self.bb.emit_func_output(out)
        return self.bb.get()


def perceptron(lib, body):
    """784-128-10 on one image; `body(net, x, (w0, b0, w1, b1))` gives its result."""
    net = Net(lib)
    weights = net.rand(128, 784), net.rand(128), net.rand(10, 128), net.rand(10)
    x = net.tensor("x", 1, 784)

    def numpy():
        w0, b0, w1, b1 = weights
        return lambda x: np.maximum(x @ w0.T + b0, 0) @ w1.T + b1

    consts = [net.const(w) for w in weights]
    return net.build([x], lambda: body(net, x, consts)), [net.rand(1, 784)], {"numpy": numpy}


def mlp(lib):
    """784-128-10 on one image, of Relax's operators."""
    R = lib.op

    def body(net, x, weights):
        w0, b0, w1, b1 = weights
        h = net(R.matmul(x, net(R.permute_dims(w0))))
        h = net(R.nn.relu(net(R.add(h, b0))))
        return net(R.add(net(R.matmul(h, net(R.permute_dims(w1)))), b1))

    return perceptron(lib, body)


def dense_te(lib):
    """The same network as the course's importer builds it: topi.nn.dense, weights as they are."""
    topi = lib.topi

    def body(net, x, weights):
        w0, b0, w1, b1 = weights
        te = net.bb.emit_te
        h = te(topi.nn.relu, te(topi.add, te(topi.nn.dense, x, w0), b0))
        return te(topi.add, te(topi.nn.dense, h, w1), b1)

    return perceptron(lib, body)


def chain(lib):
    """A hundred additions of ten numbers, each a kernel of its own."""
    net = Net(lib)
    x = net.tensor("x", 10)

    def body():
        y = x
        for _ in range(100):
            y = net(lib.op.add(y, x))
        return y

    return net.build([x], body), [net.rand(10)], {}


def convnet(lib):
    """Convolution, relu, pooling, dense: what is timed to build."""
    net, R = Net(lib), lib.op
    x = net.tensor("x", 1, 3, 32, 32)

    def body():
        y = net(R.nn.relu(net(R.nn.conv2d(x, net.weight(16, 3, 3, 3), padding=1))))
        y = net(R.nn.max_pool2d(y, pool_size=[2, 2], strides=[2, 2]))
        y = net(R.reshape(y, (1, 16 * 16 * 16)))
        return net(R.matmul(y, net.weight(16 * 16 * 16, 10)))

    return net.build([x], body), [net.rand(1, 3, 32, 32)], {}


def resnet18(lib):
    """ResNet-18 for ImageNet, batch 1, batch norms folded into scale and shift."""
    net, R = Net(lib), lib.op
    x = net.tensor("x", 1, 3, 224, 224)
    program = []  # for torch: the convolutions' numbers

    def conv(y, c_in, c_out, k, stride, pad):
        w = net.rand(c_out, c_in, k, k, scale=(c_in * k * k) ** -0.5)
        scale, shift = net.rand(c_out, 1, 1) * 0.1 + 1, net.rand(c_out, 1, 1) * 0.1
        program.append((w, scale.ravel(), shift.ravel(), stride, pad))
        y = net(R.nn.conv2d(y, net.const(w), strides=stride, padding=pad))
        return net(R.add(net(R.multiply(y, net.const(scale))), net.const(shift)))

    def body():
        y = net(R.nn.relu(conv(x, 3, 64, 7, 2, 3)))
        y = net(R.nn.max_pool2d(y, pool_size=[3, 3], strides=[2, 2], padding=[1, 1]))
        c_in = 64
        for stage, c in enumerate((64, 128, 256, 512)):
            for block in range(2):
                stride = 2 if stage and not block else 1
                short = y
                z = net(R.nn.relu(conv(y, c_in, c, 3, stride, 1)))
                z = conv(z, c, c, 3, 1, 1)
                if stride != 1 or c_in != c:
                    short = conv(y, c_in, c, 1, stride, 0)
                y = net(R.nn.relu(net(R.add(z, short))))
                c_in = c
        y = net(R.mean(y, axis=[2, 3]))
        return net(R.matmul(y, net.const(head)))

    head = net.rand(512, 1000, scale=0.05)

    def torch_run():
        import torch
        import torch.nn.functional as F

        torch.set_num_threads(1)
        head_t = torch.from_numpy(head)
        convs = [(*map(torch.from_numpy, row[:3]), *row[3:]) for row in program]
        zeros = {c: torch.zeros(c) for c in (64, 128, 256, 512)}
        ones = {c: torch.ones(c) for c in (64, 128, 256, 512)}

        def run(a):
            rows = iter(convs)

            def step(y):
                w, scale, shift, stride, pad = next(rows)
                y = F.conv2d(y, w, None, stride, pad)
                c = w.shape[0]
                return F.batch_norm(y, zeros[c], ones[c], scale, shift, False, 0.0, 0.0)

            with torch.no_grad():
                y = torch.from_numpy(a)
                y = F.max_pool2d(F.relu(step(y)), 3, 2, 1)
                for stage in range(4):
                    for block in range(2):
                        z = step(F.relu(step(y)))
                        y = F.relu(z + (step(y) if stage and not block else y))
                return (y.mean((2, 3)) @ head_t).numpy()

        return run

    return net.build([x], body), [net.rand(1, 3, 224, 224)], {"torch": torch_run}


def gpt2_block(lib, symbolic=False):
    """One decoder block of GPT-2 small, 128 tokens."""
    t, d, heads = 128, 768, 12
    n = lib.symbol("n", "int64") if symbolic else t
    net, R = Net(lib), lib.op
    x = net.tensor("x", 1, n, d)
    names = {"ln1": (d,), "ln1b": (d,), "qkv": (d, 3 * d), "qkvb": (3 * d,), "proj": (d, d),
             "projb": (d,), "ln2": (d,), "ln2b": (d,), "fc": (d, 4 * d), "fcb": (4 * d,),
             "out": (4 * d, d), "outb": (d,)}
    w = {k: net.rand(*s, scale=0.02) + (1 if k in ("ln1", "ln2") else 0) for k, s in names.items()}
    c = {k: net.const(v.astype("float32")) for k, v in w.items()}
    mask = np.triu(np.full((t, t), -1e9, "float32"), 1)

    def body():
        h = net(R.nn.layer_norm(x, c["ln1"], c["ln1b"], axes=[-1]))
        qkv = net(R.add(net(R.matmul(h, c["qkv"])), c["qkvb"]))
        parts = net(R.split(qkv, 3, axis=2))
        q, k, v = (net(R.permute_dims(net(R.reshape(net(parts[i]), (1, n, heads, d // heads))),
                                      [0, 2, 1, 3])) for i in range(3))
        att = net(R.matmul(q, net(R.permute_dims(k, [0, 1, 3, 2]))))
        att = net(R.multiply(att, net.const(np.float32((d // heads) ** -0.5))))
        if not symbolic:
            att = net(R.add(att, net.const(mask)))
        att = net(R.nn.softmax(att, axis=-1))
        y = net(R.permute_dims(net(R.matmul(att, v)), [0, 2, 1, 3]))
        y = net(R.reshape(y, (1, n, d)))
        y = net(R.add(net(R.matmul(y, c["proj"])), c["projb"]))
        z = net(R.add(x, y))
        h = net(R.nn.layer_norm(z, c["ln2"], c["ln2b"], axes=[-1]))
        h = net(R.nn.gelu_tanh(net(R.add(net(R.matmul(h, c["fc"])), c["fcb"]))))
        return net(R.add(z, net(R.add(net(R.matmul(h, c["out"])), c["outb"]))))

    def torch_run():
        import torch
        import torch.nn.functional as F

        torch.set_num_threads(1)
        p = {k: torch.from_numpy(v.astype("float32")) for k, v in w.items()}
        m = torch.from_numpy(mask)

        def run(a):
            with torch.no_grad():
                a = torch.from_numpy(a)
                h = F.layer_norm(a, (d,), p["ln1"], p["ln1b"])
                q, k, v = torch.addmm(p["qkvb"], h[0], p["qkv"]).split(d, 1)
                q, k, v = (u.view(1, t, heads, d // heads).transpose(1, 2) for u in (q, k, v))
                att = q @ k.transpose(2, 3) * (d // heads) ** -0.5
                att = (att if symbolic else att + m).softmax(-1)
                y = (att @ v).transpose(1, 2).reshape(t, d)
                z = a + torch.addmm(p["projb"], y, p["proj"])
                h = F.layer_norm(z, (d,), p["ln2"], p["ln2b"])
                h = F.gelu(torch.addmm(p["fcb"], h[0], p["fc"]), approximate="tanh")
                return (z + torch.addmm(p["outb"], h, p["out"])).numpy()

        return run

    return net.build([x], body), [net.rand(1, t, d)], {"torch": torch_run}


MODELS = {
    "mlp": mlp, "mlp dense": dense_te, "chain": chain, "convnet": convnet, "resnet18": resnet18,
    "gpt2 block": gpt2_block, "gpt2 block n": lambda lib: gpt2_block(lib, True),
}
