"""Kernels have the launch parameters of apache-tvm's, and pass the same barriers or fewer."""

import random

import mlc_lab as tvm
from backend import gpu_programs as programs
from mlc_lab.schedule import Schedule
from mlc_lab.tir import stmt as S
from mlc_lab.tir.op import as_int

from .bridge import ask, needs_oracle


def passed(s):
    """How often a thread passes a barrier."""
    if type(s) is S.Evaluate:
        return int(getattr(s.value.op, "name", "") == "tir.tvm_storage_sync")
    times = as_int(s.extent) if type(s) is S.For else 1
    return times * sum(passed(c) for c in s.children() if isinstance(c, S.Stmt))


def lowered(mod):
    """What the bridge tells of TVM's kernel."""
    kernels = [f for v, f in tvm.lower(mod, target="cuda").functions.items()
               if v.name_hint.endswith("_kernel")]
    (func,) = kernels
    extents = {}
    s = func.body
    while not isinstance(s, (S.SeqStmt, S.For)) and hasattr(s, "body"):
        if type(s) is S.AttrStmt and s.attr_key == "thread_extent":
            extents[s.node.thread_tag] = as_int(s.value)
        s = s.body
    return {"barriers": passed(func.body), "extents": extents}


def pipelines():
    """Products with tiles in shared memory, as they are and with their loop as a pipeline."""
    rng = random.Random(0)
    for vthreads in (False, True):
        for how in (None, [0, 0, 1], [0, 0, 2], [0, 1, 2], [0, 0, 3]):
            sch = programs.tiled_schedule(k=64, vthreads=vthreads, vector=rng.choice([1, 2, 4]))
            loops = sch.get_loops(sch.get_block("C_update"))
            k0 = next(rv for rv in loops if sch.get(rv).loop_var.name == "k_0")
            if how is not None:
                sch.annotate(k0, "software_pipeline_stage", how)
                sch.annotate(k0, "software_pipeline_order", [0, 1, 2])
            yield sch.mod


@needs_oracle
def test_launch_parameters_and_barriers():
    mods = list(pipelines())
    cases = [{"program": Schedule(mod).mod.script(), "lower": True} for mod in mods]
    fewer = 0
    for mod, answer in zip(mods, ask(cases)):
        assert "error" not in answer, answer["error"]
        theirs, ours = answer["lowered"], lowered(mod)
        assert ours["extents"] == theirs["extents"]
        assert ours["barriers"] <= theirs["barriers"], (mod.script(), ours, theirs)
        fewer += ours["barriers"] < theirs["barriers"]
    assert fewer
