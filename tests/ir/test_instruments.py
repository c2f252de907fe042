"""Instruments watch passes; passes of one's own over modules, functions and dataflow blocks."""

import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.ir import transform as P
from mlc_lab.script import from_source

SOURCE = """
from mlc_lab.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = x
            z = R.exp(y)
            R.output(z)
        return z

    @R.function
    def other(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = x
            z = R.exp(y)
            R.output(z)
        return z
"""
PIPELINE = [relax.transform.CanonicalizeBindings(), relax.transform.LegalizeOps()]


@pytest.fixture
def mod():
    return from_source(SOURCE)


def count(func):
    return sum(len(block.bindings) for block in func.body.blocks)


def test_an_instrument_sees_every_pass_and_may_refuse_it(mod):
    seen = []

    @tvm.instrument.pass_instrument
    class Watch:
        def run_before_pass(self, mod, info):
            seen.append(("before", info.name))

        def run_after_pass(self, mod, info):
            seen.append(("after", info.name))

        def should_run(self, mod, info):
            return info.name != "LegalizeOps"

    with tvm.transform.PassContext(instruments=[Watch()]):
        new = tvm.transform.Sequential(PIPELINE, name="both")(mod)
    assert seen == [("before", "both"), ("before", "CanonicalizeBindings"),
                    ("after", "CanonicalizeBindings"), ("after", "both")]
    assert [v.name_hint for v in new.functions] == ["main", "other"]


def test_times_are_rendered_and_programs_printed(mod, capsys):
    timing = P.PassTimingInstrument()
    printing = P.PassPrintingInstrument(print_after_pass_names=["CanonicalizeBindings"])
    with P.PassContext(instruments=[timing, printing]):
        P.Sequential(PIPELINE)(mod)
    assert "  LegalizeOps: " in timing.render()
    out = capsys.readouterr().out
    assert "# After CanonicalizeBindings" in out and "LegalizeOps" not in out
    P.PrintIR("here")(mod)
    assert "PrintIR(here)" in capsys.readouterr().out


def test_programs_are_dumped_to_numbered_files(mod, tmp_path):
    with P.PassContext(instruments=[P.DumpIR(tmp_path)]):
        P.Sequential(PIPELINE)(mod)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["000_CanonicalizeBindings.py", "001_LegalizeOps.py", "002_sequential.py"]
    with P.PassContext(instruments=[P.DumpIR(tmp_path, refresh=True)]):
        PIPELINE[0](mod)
    assert [p.name for p in tmp_path.iterdir()] == ["000_CanonicalizeBindings.py"]


def test_a_pass_can_be_applied_to_some_functions(mod):
    new = P.ApplyPassToFunction(PIPELINE[0], "oth.*")(mod)
    assert count(new["main"]) == 2 and count(new["other"]) == 1
    with pytest.raises(ValueError, match="nothing.*main, other"):
        P.ApplyPassToFunction(PIPELINE[0], "nothing", True)(mod)


def test_a_function_pass_sees_functions_and_a_block_pass_blocks(mod):
    seen = []

    @relax.transform.function_pass(opt_level=0)
    class Look:
        def __init__(self, mark):
            self.mark = mark

        def transform_function(self, func, mod, ctx):
            seen.append((self.mark, count(func)))
            return func

    @relax.transform.dataflowblock_pass(opt_level=1, name="Drop")
    def drop(block, mod, ctx):
        return relax.DataflowBlock(block.bindings[-1:])

    assert Look("a")(mod) is mod and seen == [("a", 2), ("a", 2)]
    assert count(drop(mod)["main"]) == 1 and drop.info.name == "Drop"
    with P.PassContext(opt_level=0):
        assert drop(mod) is mod
    with P.PassContext(disabled_pass=["Drop"]):
        assert drop(mod) is mod


def test_fusion_depth_is_an_option_of_the_context(mod):
    chain = """
from mlc_lab.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.exp(a)
            c = R.exp(b)
            d = R.exp(c)
            R.output(d)
        return d
"""
    steps = [relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern()]
    ready = P.Sequential(steps)(from_source(chain))
    with P.PassContext(config={"relax.FuseOps.max_depth": 2}):
        assert count(relax.transform.FuseOps()(ready)["main"]) == 2
    assert count(relax.transform.FuseOps()(ready)["main"]) == 1
    with P.PassContext(opt_level=0):
        assert relax.transform.FuseOps()(ready) is ready
