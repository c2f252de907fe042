"""ConvertToDataflow: what joins a dataflow block that stands beside it."""

import pytest

from mlc_lab.relax import DataflowBlock
from mlc_lab.relax.transform import ConvertToDataflow
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R


@I.ir_module
class Before:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            z = R.add(x, y)
            w = R.multiply(z, y)
            R.output(w)
        v = R.add(w, x)
        return v


@I.ir_module
class After:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        z = R.add(x, y)
        with R.dataflow():
            w = R.multiply(z, y)
            v = R.add(w, x)
            R.output(v)
        return v


@pytest.mark.parametrize("mod", [Before, After])
def test_a_single_binding_joins_its_neighbour(mod):
    (block,) = ConvertToDataflow(min_size=2)(mod)["main"].body.blocks
    assert type(block) is DataflowBlock and len(block.bindings) == 3


def test_a_small_run_by_itself_stays_as_it_is():
    @I.ir_module
    class Small:
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            y = R.add(x, x)
            _ = R.print(y, format="{}")
            z = R.add(y, y)
            return z

    assert not any(type(b) is DataflowBlock
                   for b in ConvertToDataflow(min_size=2)(Small)["main"].body.blocks)
    kinds = [type(b) is DataflowBlock
             for b in ConvertToDataflow(min_size=1)(Small)["main"].body.blocks]
    assert kinds == [True, False, True]
