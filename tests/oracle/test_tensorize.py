"""tensorize gives the same program and trace as apache-tvm's."""

import pytest

from mlc_lab.schedule import Schedule
from mlc_lab.tir import TensorIntrin
from schedule.common import matmul, mm_relu
from schedule.test_tensorize import dot_desc, dot_impl, matmul_nt, tile_desc, tile_impl

from .bridge import ask, needs_oracle, oracle_python, oracle_tensorizes

INTRINS = {"oracle_tile": (tile_desc, tile_impl), "oracle_dot": (dot_desc, dot_impl)}


def tiled(block, *factors):
    return (f'b = sch.get_block("{block}"); i, j, k = sch.get_loops(b)\n'
            f"i0, i1 = sch.split(i, [None, {factors[0]}]); j0, j1 = sch.split(j, [None, "
            f"{factors[1]}])\nk0, k1 = sch.split(k, [None, {factors[2]}])\n"
            "sch.reorder(i0, j0, k0, i1, j1, k1)\n")


CASES = [
    (matmul, tiled("C", 4, 4, 4) + 'sch.decompose_reduction(b, k0)\n'
                                   'sch.tensorize(i1, "oracle_tile")'),
    (mm_relu, tiled("Y", 4, 4, 4) + 'sch.decompose_reduction(b, k0)\n'
                                    'sch.tensorize(i1, "oracle_tile")'),
    (matmul, tiled("C", 4, 4, 4) + "o = sch.blockize(i1)\nsch.decompose_reduction(o, k0)\n"
                                   'sch.tensorize(o, "oracle_tile")'),
    (matmul_nt, tiled("C", 8, 8, 4) + 'sch.decompose_reduction(b, k0)\n'
                                      'sch.tensorize(k1, "oracle_dot")'),
    (matmul_nt, tiled("C", 4, 8, 4) + 'sch.decompose_reduction(b, k0)\n'
                                      'sch.tensorize(k1, "oracle_dot")'),
]


@needs_oracle
@pytest.mark.skipif(oracle_python() is not None and not oracle_tensorizes(),
                    reason="this apache-tvm crashes in tensorize: it needs apache-tvm-ffi 0.1.14")
def test_tensorize_gives_tvms_script_and_trace():
    for name, (desc, impl) in INTRINS.items():
        TensorIntrin.register(name, desc, impl, override=True)
    intrins = {name: (desc.script(), impl.script()) for name, (desc, impl) in INTRINS.items()}
    answers = ask([{"program": Schedule(func).mod.script(), "trace": [steps], "intrins": intrins}
                   for func, steps in CASES])
    for (func, steps), answer in zip(CASES, answers):
        sch = Schedule(func)
        exec(steps, {"sch": sch})
        assert not answer.get("error") and not answer["refused"], (steps, answer)
        assert sch.mod.script() == answer["script"], steps
        assert str(sch.trace) == answer["trace"], steps
