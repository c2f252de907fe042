"""A pipeline recorded: which passes, what they changed, what they took, what failed."""

import inspect
import json

import pytest

import mlc_lab
from mlc_lab import lower, relax
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.ir.transform import PassContext, PassTimingInstrument, module_pass
from mlc_lab.observe.passes import doc_of, record

from .pipelines import module, pipeline
from .programs import matmul


@pytest.fixture(scope="module")
def found():
    return pipeline().explore(module())


def test_every_pass_is_a_step_and_pipelines_are_not(found):
    data = found.to_dict()
    names = [s["op"] for s in data["recording"]["steps"]]
    assert names == ["start", "DeadCodeElimination", "LegalizeOps", "AnnotateTIROpPattern",
                     "FoldConstant", "FuseOps", "FuseTIR"]
    assert data["within"][2] == ["my_pipeline", "zero_pipeline"]
    assert all(s > 0 for s in data["seconds"][1:]) and data["seconds"][0] == 0


def test_programs_before_and_after_are_those_of_the_passes(found):
    steps = found.to_dict()["recording"]["steps"]
    mod = module()
    mod = relax.transform.DeadCodeElimination()(mod)
    recording = found.to_dict()["recording"]
    text = "\n".join(recording["lines"][i][0]
                     for i in recording["programs"][steps[1]["after"]]["lines"])
    assert text == mod.script() and "unused" not in text
    idle = [s["op"] for s in steps[1:] if s["before"] == s["after"]]
    assert idle == ["FoldConstant"]
    assert [a["after"] for a in steps[:-1]] == [b["before"] for b in steps[1:]]
    assert_structural_equal(found.result, pipeline()(module()))


def test_each_pass_says_what_it_is_for(found):
    docs = found.to_dict()["recording"]["docs"]
    assert docs["FuseTIR"]["meaning"].startswith("Make one TensorIR function")


def test_fusion_moves_fewer_bytes(found):
    data = found.to_dict()
    steps = data["recording"]["steps"]
    fuse = next(s for s in steps if s["op"] == "FuseOps")
    before, after = (data["moved"][fuse[side]] for side in ("before", "after"))
    # the product's result is no longer written by one kernel and read by the next
    assert before - after == 2 * 32 * 4
    assert data["graphs"][fuse["after"]]["title"] == "main"


def test_a_pass_that_raises_is_the_last_step():
    @module_pass(opt_level=0)
    def Breaks(mod, ctx):
        """Never works."""
        raise ValueError("this operator is not known")

    found = record(module(), [relax.transform.LegalizeOps(), Breaks,
                              relax.transform.FoldConstant()])
    assert found.result is None and isinstance(found.error, ValueError)
    steps = found.to_dict()["recording"]["steps"]
    assert [s["op"] for s in steps] == ["start", "LegalizeOps", "Breaks"]
    assert steps[-1]["error"]["message"] == "ValueError: this operator is not known"
    assert steps[-1]["before"] == steps[-1]["after"]
    assert "failed: ValueError" in found.table()


def test_plain_functions_and_modules_changed_in_place_are_seen():
    def renamed(mod):
        func = mod["main"]
        mod["main"] = func.with_attr("touched", 1)
        return mod

    found = record(module(), [renamed, lambda mod: mod])
    steps = found.to_dict()["recording"]["steps"]
    assert steps[1]["op"] == "renamed" and steps[1]["before"] != steps[1]["after"]
    assert steps[2]["before"] == steps[2]["after"]


def test_the_context_is_kept():
    timing = PassTimingInstrument()
    with PassContext(opt_level=3, instruments=[timing], disabled_pass=["DeadCodeElimination"]):
        found = record(module(), pipeline())
    assert "DeadCodeElimination" not in found.table()
    assert "LegalizeOps" in timing.render()


def test_it_is_plain_data(found):
    assert json.loads(found.to_json())["format"] == "mlc-lab/passes"
    assert "no change" in found.table() and repr(found) == "<6 passes>"


def test_a_step_of_lowering_says_what_it_does(monkeypatch):
    monkeypatch.setenv("MLC_LAB_LANGUAGE", "en")
    steps = [lower.LowerInitBlock(), lower.ConvertBlocksToOpaque()]
    docs = record(mlc_lab.IRModule({"main": matmul(8)}), steps).to_dict()["recording"]["docs"]
    assert docs["tir.LowerInitBlock"]["meaning"].startswith("Make the init of a block a statement")
    monkeypatch.setenv("MLC_LAB_LANGUAGE", "zh")
    docs = record(mlc_lab.IRModule({"main": matmul(8)}), steps).to_dict()["recording"]["docs"]
    assert docs["tir.LowerInitBlock"]["meaning"].startswith("把块的初始化变成")


def test_each_pass_of_lowering_has_a_sentence_of_its_own():
    made = [found for found in vars(lower).values() if inspect.isfunction(found)
            and found.__annotations__.get("return") == "Pass"]
    assert len(made) > 30
    said = [doc_of(f"tir.{found.__name__}")["meaning"] for found in made]
    assert len(set(said)) == len(said)
    for meaning in said:
        assert meaning.endswith(".") and "the file's text" not in meaning
