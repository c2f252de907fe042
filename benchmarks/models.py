"""Whole models through relax.build and the virtual machine, beside numpy and torch, in one run.

    python benchmarks/models.py [--only resnet] [--json FILE]

One thread each. Times are medians of several rounds in which the contestants take turns, so that
what else the machine does meets all of them. Printed are the time here, the others' times, the
ratio (below 1: faster here), the time to build, and for ResNet-18 the memory of its intermediate
results with and without planning, the kernels' fraction of the measured peak of fused
multiply-adds where that says something.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

for _name in ("MLC_LAB_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402

import mlc_lab as tvm  # noqa: E402
from mlc_lab import relax  # noqa: E402
from mlc_lab.relax import op as R  # noqa: E402

TARGET = "llvm -num-cores=1"
RNG = np.random.default_rng(0)


def rand(*shape, scale=1.0):
    """Random float32 numbers."""
    return (RNG.standard_normal(shape) * scale).astype("float32")


def tensor(name, *shape):
    """A parameter."""
    return relax.Var(name, relax.TensorStructInfo(shape, "float32"))


class Net:
    """A function under construction: `net(op(x, ...))` emits."""

    def __init__(self):
        self.bb = relax.BlockBuilder()
        self.flops = 0

    def __call__(self, value):
        return self.bb.emit(value)

    def weight(self, *shape):
        """A constant."""
        fan = int(np.prod(shape[1:])) or 1
        return relax.const(rand(*shape, scale=fan ** -0.5))

    def build(self, params, body):
        """The module of a function `main` of these parameters."""
        with self.bb.function("main", params):
            with self.bb.dataflow():
                out = self.bb.emit_output(body())
            self.bb.emit_func_output(out)
        return self.bb.get()


# ------------------------------------------------------------------------------ models


def mlp():
    """784-128-10 on one image."""
    w0, b0, w1, b1 = rand(128, 784), rand(128), rand(10, 128), rand(10)
    net, x = Net(), tensor("x", 1, 784)

    def body():
        h = net(R.matmul(x, net(R.permute_dims(relax.const(w0)))))
        h = net(R.nn.relu(net(R.add(h, relax.const(b0)))))
        h = net(R.matmul(h, net(R.permute_dims(relax.const(w1)))))
        return net(R.add(h, relax.const(b1)))

    def numpy(x):
        return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1

    return net.build([x], body), [rand(1, 784)], {"numpy": numpy}


def dense_te():
    """The same network as the course's importer builds it: topi.nn.dense, weights as they are."""
    from mlc_lab import topi

    w0, b0, w1, b1 = rand(128, 784), rand(128), rand(10, 128), rand(10)
    net, x = Net(), tensor("x", 1, 784)
    bb = net.bb

    def body():
        h = bb.emit_te(topi.add, bb.emit_te(topi.nn.dense, x, relax.const(w0)), relax.const(b0))
        h = bb.emit_te(topi.nn.relu, h)
        return bb.emit_te(topi.add, bb.emit_te(topi.nn.dense, h, relax.const(w1)),
                          relax.const(b1))

    def numpy(x):
        return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1

    return net.build([x], body), [rand(1, 784)], {"numpy": numpy}


def chain():
    """A hundred additions of ten numbers, each a kernel of its own."""
    net, x = Net(), tensor("x", 10)

    def body():
        y = x
        for _ in range(100):
            y = net(R.add(y, x))
        return y

    return net.build([x], body), [rand(10)], {}


def convnet():
    """Convolution, relu, pooling, dense: what is timed to build."""
    net, x = Net(), tensor("x", 1, 3, 32, 32)

    def body():
        y = net(R.nn.relu(net(R.nn.conv2d(x, net.weight(16, 3, 3, 3), padding=1))))
        y = net(R.nn.max_pool2d(y, pool_size=[2, 2], strides=[2, 2]))
        y = net(R.reshape(y, (1, 16 * 16 * 16)))
        return net(R.matmul(y, net.weight(16 * 16 * 16, 10)))

    return net.build([x], body), [rand(1, 3, 32, 32)], {}


def resnet18():
    """ResNet-18 for ImageNet, batch 1, batch norms folded into scale and shift."""
    import torch
    import torch.nn.functional as F

    net, x = Net(), tensor("x", 1, 3, 224, 224)
    program = []  # for torch: the same operators on the same numbers

    def conv(y, c_in, c_out, k, stride, pad, name):
        w = rand(c_out, c_in, k, k, scale=(c_in * k * k) ** -0.5)
        scale, shift = rand(c_out, 1, 1) * 0.1 + 1, rand(c_out, 1, 1) * 0.1
        program.append((name, torch.from_numpy(w), torch.from_numpy(scale.ravel()),
                        torch.from_numpy(shift.ravel()), stride, pad))
        y = net(R.nn.conv2d(y, relax.const(w), strides=stride, padding=pad))
        return net(R.add(net(R.multiply(y, relax.const(scale))), relax.const(shift)))

    def body():
        y = net(R.nn.relu(conv(x, 3, 64, 7, 2, 3, "stem")))
        y = net(R.nn.max_pool2d(y, pool_size=[3, 3], strides=[2, 2], padding=[1, 1]))
        c_in = 64
        for stage, c in enumerate((64, 128, 256, 512)):
            for block in range(2):
                stride = 2 if stage and not block else 1
                short = y
                z = net(R.nn.relu(conv(y, c_in, c, 3, stride, 1, "a")))
                z = conv(z, c, c, 3, 1, 1, "b")
                if stride != 1 or c_in != c:
                    short = conv(y, c_in, c, 1, stride, 0, "short")
                y = net(R.nn.relu(net(R.add(z, short))))
                c_in = c
        y = net(R.mean(y, axis=[2, 3]))
        return net(R.matmul(y, relax.const(head)))

    head = rand(512, 1000, scale=0.05)
    mod = net.build([x], body)
    torch.set_num_threads(1)
    head_t = torch.from_numpy(head)
    zeros = {c: torch.zeros(c) for c in (64, 128, 256, 512)}
    ones = {c: torch.ones(c) for c in (64, 128, 256, 512)}

    def torch_run(a):
        rows = iter(program)

        def step(y):
            _, w, scale, shift, stride, pad = next(rows)
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

    return mod, [rand(1, 3, 224, 224)], {"torch": torch_run}


def gpt2_block(symbolic=False):
    """One decoder block of GPT-2 small, 128 tokens."""
    import torch
    import torch.nn.functional as F

    t, d, heads = 128, 768, 12
    n = tvm.tir.Var("n", "int64") if symbolic else t
    net, x = Net(), tensor("x", 1, n, d)
    names = {"ln1": (d,), "ln1b": (d,), "qkv": (d, 3 * d), "qkvb": (3 * d,), "proj": (d, d),
             "projb": (d,), "ln2": (d,), "ln2b": (d,), "fc": (d, 4 * d), "fcb": (4 * d,),
             "out": (4 * d, d), "outb": (d,)}
    w = {k: rand(*s, scale=0.02) + (1 if k in ("ln1", "ln2") else 0) for k, s in names.items()}
    c = {k: relax.const(v.astype("float32")) for k, v in w.items()}
    mask = np.triu(np.full((t, t), -1e9, "float32"), 1)

    def body():
        h = net(R.nn.layer_norm(x, c["ln1"], c["ln1b"], axes=[-1]))
        qkv = net(R.add(net(R.matmul(h, c["qkv"])), c["qkvb"]))
        parts = net(R.split(qkv, 3, axis=2))
        q, k, v = (net(R.permute_dims(net(R.reshape(net(parts[i]), (1, n, heads, d // heads))),
                                      [0, 2, 1, 3])) for i in range(3))
        att = net(R.matmul(q, net(R.permute_dims(k, [0, 1, 3, 2]))))
        att = net(R.multiply(att, relax.const(np.float32((d // heads) ** -0.5))))
        if not symbolic:
            att = net(R.add(att, relax.const(mask)))
        att = net(R.nn.softmax(att, axis=-1))
        y = net(R.permute_dims(net(R.matmul(att, v)), [0, 2, 1, 3]))
        y = net(R.reshape(y, (1, n, d)))
        y = net(R.add(net(R.matmul(y, c["proj"])), c["projb"]))
        z = net(R.add(x, y))
        h = net(R.nn.layer_norm(z, c["ln2"], c["ln2b"], axes=[-1]))
        h = net(R.nn.gelu_tanh(net(R.add(net(R.matmul(h, c["fc"])), c["fcb"]))))
        return net(R.add(z, net(R.add(net(R.matmul(h, c["out"])), c["outb"]))))

    p = {k: torch.from_numpy(v.astype("float32")) for k, v in w.items()}
    m = torch.from_numpy(mask)
    torch.set_num_threads(1)

    def torch_run(a):
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

    return net.build([x], body), [rand(1, t, d)], {"torch": torch_run}


MODELS = {
    "mlp": mlp, "mlp dense": dense_te, "chain": chain, "convnet": convnet, "resnet18": resnet18,
    "gpt2 block": gpt2_block, "gpt2 block n": lambda: gpt2_block(True),
}


# ------------------------------------------------------------------------------ measuring


def planned_memory(mod, pipeline):
    """Bytes of intermediate results of `main`: planned, unplanned, and the most alive at once."""
    from mlc_lab.relax import transform as T
    from mlc_lab.relax.pipeline import zero_passes
    from mlc_lab.relax.transform.static_plan_block_memory import memory_use

    passes = zero_passes() if pipeline == "default" else [T.LegalizeOps()]
    for step in (*passes, T.RewriteDataflowReshape(), T.ToNonDataflow(),
                 T.RemovePurityChecking(), T.CallTIRRewrite()):
        mod = step(mod)
    return memory_use(mod["main"], mod)


def seconds(func, args, least=0.05):
    """Seconds a call, over as many calls as take `least` seconds."""
    start = time.perf_counter()
    func(*args)
    once = max(time.perf_counter() - start, 1e-7)
    count = max(1, int(least / once))
    start = time.perf_counter()
    for _ in range(count):
        func(*args)
    return (time.perf_counter() - start) / count


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="part of a model's name")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="write the numbers to this file")
    options = parser.parse_args()
    numbers = {}
    print(f"{'model':<14} {'here us':>10} {'native us':>10} {'others':<24} {'ratio':>6} "
          f"{'build ms':>9} {'again':>6}  form")
    for name, make in MODELS.items():
        if options.only not in name:
            continue
        mod, args, others = make()
        pipeline = "default_build" if name == "chain" else "default"
        builds = []
        for _ in range(3 if name not in ("resnet18",) else 1):
            start = time.perf_counter()
            ex = relax.build(mod, TARGET, pipeline=pipeline)
            builds.append(time.perf_counter() - start)
        vm = relax.VirtualMachine(ex, tvm.cpu())
        tensors = [tvm.nd.array(a) for a in args]
        for label, other in others.items():
            want, have = other(*args), vm["main"](*tensors).numpy()
            np.testing.assert_allclose(have, want, rtol=2e-3, atol=2e-3, err_msg=label)
        times = {"here": [], "native": [], **{k: [] for k in others}}
        evaluator = vm.time_evaluator("main", number=1, min_repeat_ms=20)
        for _ in range(options.rounds):
            times["here"].append(seconds(vm["main"], tensors))
            times["native"].append(evaluator(*tensors).mean)
            for label, other in others.items():
                times[label].append(seconds(other, args))
        row = {k: statistics.median(v) for k, v in times.items()}
        shown = ", ".join(f"{k} {row[k] * 1e6:.1f}" for k in others)
        ratio = min((row["here"] / row[k] for k in others), default=0)
        form = "compiled" if "main" in ex.compiled and ex.exec_mode == "compiled" else (
            f"bytecode ({ex.not_compiled.get('main', '')})")
        print(f"{name:<14} {row['here'] * 1e6:>10.2f} {row['native'] * 1e6:>10.2f} {shown:<24} "
              f"{ratio:>6.2f} {builds[0] * 1e3:>9.0f} {min(builds) * 1e3:>6.0f}  {form}",
              flush=True)
        if name == "chain":
            print(f"    {row['native'] * 1e9 / 100:.1f} ns an operator")
        if name == "resnet18":
            for which in ("default", "default_build"):
                use = planned_memory(mod, which)
                label = "fused" if which == "default" else "one kernel an operator"
                print(f"    memory, {label}: planned {use['planned'] / 2**20:.2f} MiB, unplanned "
                      f"{use['unplanned'] / 2**20:.2f} MiB, ratio "
                      f"{use['planned'] / use['unplanned']:.2f}; alive at once "
                      f"{use['lower_bound'] / 2**20:.2f} MiB")
                row[f"memory {which}"] = use
            block, alone = ex.memory["main"], row["memory default_build"]["unplanned"]
            print(f"    memory of the compiled form: {block / 2**20:.2f} MiB, "
                  f"{block / row['memory default']['unplanned']:.2f} of its tensors apart, "
                  f"{block / alone:.2f} of those of one kernel an operator")
        numbers[name] = {**row, "builds": builds}
    if options.json:
        Path(options.json).write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
