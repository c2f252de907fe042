"""How long each pass takes on a graph of ResNet-18's size, and what it leaves.

    python benchmarks/passes.py [--json FILE]

Medians of several runs of the processor's time, so that what else the machine does counts little.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from mlc_lab import relax
from mlc_lab.relax import op as R
from mlc_lab.relax import transform as X

ROUNDS = 3


def resnet18():
    """The graph of ResNet-18 for one image of 3x224x224, with random weights."""
    rng = np.random.default_rng(0)
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 3, 224, 224), "float32"))

    def weight(*shape):
        return relax.const((rng.standard_normal(shape) * 0.05).astype("float32"))

    def conv(v, cin, cout, kernel, stride):
        made = bb.emit(R.nn.conv2d(v, weight(cout, cin, kernel, kernel), strides=stride,
                                   padding=kernel // 2))
        norm = bb.emit(R.nn.batch_norm(
            made, weight(cout), weight(cout), weight(cout),
            relax.const(np.ones(cout, "float32")), axis=1, training=False))
        return bb.emit(norm[0])

    with bb.function("main", [x]):
        with bb.dataflow():
            h = bb.emit(R.nn.relu(conv(x, 3, 64, 7, 2)))
            h = bb.emit(R.nn.max_pool2d(h, (3, 3), (2, 2), (1, 1)))
            channels = 64
            for stage, width in enumerate((64, 128, 256, 512)):
                for block in range(2):
                    stride = 2 if stage and block == 0 else 1
                    same = stride == 1 and channels == width
                    short = h if same else conv(h, channels, width, 1, stride)
                    inner = bb.emit(R.nn.relu(conv(h, channels, width, 3, stride)))
                    h = bb.emit(R.nn.relu(bb.emit(R.add(conv(inner, width, width, 3, 1), short))))
                    channels = width
            h = bb.emit(R.reshape(bb.emit(R.nn.adaptive_avg_pool2d(h, (1, 1))), (1, 512)))
            out = bb.emit_output(R.add(bb.emit(R.matmul(h, weight(512, 1000))), weight(1000)))
        bb.emit_func_output(out)
    return bb.get()


def pipeline():
    """The passes that are timed, in order."""
    return [X.Normalize(), X.DecomposeOpsForInference(), X.CanonicalizeBindings(),
            X.EliminateCommonSubexpr(), X.DeadCodeElimination(), X.FoldConstant(),
            X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(3), X.FuseTIR()]


def measure(mod):
    """[(pass, seconds, bindings of main after it, functions after it)], times are medians."""
    rows = []
    for step in pipeline():
        times = []
        for _ in range(ROUNDS):
            start = time.process_time()
            new = step(mod)
            times.append(time.process_time() - start)
        mod = new
        count = sum(len(b.bindings) for b in mod["main"].body.blocks)
        rows.append((step.info.name, statistics.median(times), count, len(mod.functions)))
    return rows


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write the rows to a file too")
    options = parser.parse_args()
    rows = measure(resnet18())
    print(f"{'pass':28}{'ms':>10}{'bindings':>10}{'functions':>11}")
    for name, seconds, bindings, functions in rows:
        print(f"{name:28}{1e3 * seconds:10.1f}{bindings:10}{functions:11}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
