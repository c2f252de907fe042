"""A small model and a pipeline, for tests of the pass view."""

import mlc_lab
from mlc_lab import relax

TEXT = '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 64), "float32"), w0: R.Tensor((64, 32), "float32"),
             w1: R.Tensor((32, 10), "float32")):
        with R.dataflow():
            lv0 = R.matmul(x, w0)
            lv1 = R.nn.relu(lv0)
            lv2 = R.matmul(lv1, w1)
            unused = R.nn.relu(lv2)
            out = R.nn.softmax(lv2)
            R.output(out)
        return out
'''


def module():
    return mlc_lab.script.from_source(TEXT)


def pipeline():
    """Dead code away, then a pipeline within the pipeline, in which nothing is left to fold."""
    t = relax.transform
    fused = mlc_lab.transform.Sequential(
        [t.LegalizeOps(), t.AnnotateTIROpPattern(), t.FoldConstant(), t.FuseOps(), t.FuseTIR()],
        name="zero_pipeline")
    return mlc_lab.transform.Sequential([t.DeadCodeElimination(), fused], name="my_pipeline")
