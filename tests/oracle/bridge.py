"""Asks apache-tvm for its answer, in a process of its own, in its own dialect of TVMScript.

The interpreter to ask is named by MLC_LAB_ORACLE_PYTHON, or it is this one if tvm is installed in
it. Programs and traces go over as text in the dialect of TVM 0.18 and are translated there and
back, since apache-tvm 0.27 writes `T.sblock` for `T.block` and so on.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import lru_cache

import pytest

_WORKER = r'''
import json, sys, traceback
import tvm
from tvm import s_tir
from tvm.script import ir as I, tirx as T

def load(text):
    return tvm.script.from_source(text)

def run(case):
    mod = load(case["program"])
    for name, (desc, impl) in case.get("intrins", {}).items():
        s_tir.TensorIntrin.register(name, load(desc), load(impl), override=True)
    sch = s_tir.Schedule(mod)
    scope = {"sch": sch, "T": T, "tvm": tvm}
    refused = None
    for line in case["trace"]:
        try:
            exec(line, scope)
        except Exception as err:
            refused = f"{type(err).__name__}: {str(err)[-1500:]}"
            break
    answer = {"script": sch.mod.script(), "trace": str(sch.trace), "refused": refused}
    if case.get("lower"):
        answer["lowered"] = lowered(sch.mod)
    return answer

def lowered(mod):
    """Extents of thread axes, and how often a thread passes a barrier, in TVM's kernel."""
    from tvm import tirx
    L = s_tir.transform
    target = tvm.target.Target("nvidia/nvidia-a100")
    steps = [tirx.transform.BindTarget(target), L.CanonicalizeLoop(), L.LowerCrossThreadReduction(),
             L.LowerInitBlock(), L.PlanAndUpdateBufferAllocationLocation(),
             L.ConvertBlocksToOpaque(), L.LiftThreadBinding(), L.CompactBufferAllocation(),
             L.UnifyThreadBinding(), L.LowerMatchBuffer(), L.StmtSimplify(),
             L.InjectSoftwarePipeline(), L.LowerOpaqueBlock(), tirx.transform.FlattenBuffer(),
             L.LoopPartition(), tirx.transform.VectorizeLoop(True), L.InjectVirtualThread(),
             L.InjectDoubleBuffer(), tirx.transform.StorageRewrite(), L.HoistIfThenElse(),
             tirx.transform.UnrollLoop(), tirx.transform.StmtSimplify(),
             tirx.transform.RemoveNoOp(), L.ThreadSync("shared"),
             L.LowerThreadAllreduce()]
    with target:
        mod = tvm.ir.transform.Sequential(steps)(mod)
    extents = {}
    def count(s):
        kind = type(s).__name__
        if kind == "Evaluate":
            return int(getattr(getattr(s.value, "op", None), "name", "").endswith("storage_sync"))
        if kind == "AttrStmt" and s.attr_key == "thread_extent":
            extents[s.node.thread_tag] = int(s.value)
        parts = [getattr(s, key, None) for key in ("body", "then_case", "else_case")]
        inside = sum(map(count, [*getattr(s, "seq", ()), *filter(None, parts)]))
        return inside and inside * (int(s.extent) if kind == "For" else 1)
    return {"barriers": count(mod["main"].body), "extents": extents}

out = []
for case in json.load(sys.stdin):
    try:
        out.append(run(case))
    except BaseException:
        out.append({"error": traceback.format_exc()[-3000:]})
print("\n@@@" + json.dumps(out))
'''


def oracle_python() -> str | None:
    """The interpreter that has apache-tvm, or None."""
    named = os.environ.get("MLC_LAB_ORACLE_PYTHON")
    if named:
        return named
    return sys.executable if importlib.util.find_spec("tvm") is not None else None


needs_oracle = pytest.mark.skipif(oracle_python() is None,
                                  reason="apache-tvm is not installed (extra: oracle)")


@lru_cache(None)
def oracle_tensorizes() -> bool:
    """Whether this apache-tvm can tensorize: with apache-tvm-ffi 0.1.15 its own call crashes."""
    done = subprocess.run([oracle_python(), "-c", "from importlib.metadata import version\n"
                           "print(version('apache-tvm-ffi'))"], capture_output=True, text=True)
    return done.stdout.strip() < "0.1.15"


_TO = [(r"\bT\.block\(", "T.sblock("), (r"\bT\.block_attr\(", "T.sblock_attr("),
       (r"\bT\.alloc_buffer\(", "T.sblock_alloc_buffer("),
       (r"@T\.prim_func\(private=True\)", "@T.prim_func(private=True, s_tir=True)"),
       (r"@T\.prim_func\n", "@T.prim_func(s_tir=True)\n"),
       (r"from tvm\.script import tir as T", "from tvm.script import tirx as T"),
       (r"\bsch\.get_block\(", "sch.get_sblock("),
       (r"(?m)^( +\w+): (T\.\w+) = ", r"\1: T.let[\2] = "),
       (r'"tir\.noalias": T\.bool\(True\)', '"tirx.noalias": True')]
_FROM = [(r"\bT\.sblock\(", "T.block("), (r"\bT\.sblock_attr\(", "T.block_attr("),
         (r"\bT\.sblock_alloc_buffer\(", "T.alloc_buffer("),
         (r"@T\.prim_func\(private=True, s_tir=True\)", "@T.prim_func(private=True)"),
         (r"@T\.prim_func\(s_tir=True\)", "@T.prim_func"),
         (r"from tvm\.script import tirx as T", "from tvm.script import tir as T"),
         (r"# from tvm\.tirx\.layout import Axis\n", ""),
         (r"(?m)^( +\w+): T\.let\[(T\.\w+)\] = ", r"\1: \2 = "),
         (r"\bsch\.get_sblock\(", "sch.get_block("),
         (r'"tirx\.noalias": (T\.bool\(True\)|True)', '"tir.noalias": T.bool(True)'),
         (r"from tvm import s_tir", "from tvm import tir"), (r"s_tir\.Schedule", "tir.Schedule")]


def to_oracle(text: str) -> str:
    """Our dialect in apache-tvm 0.27's."""
    for pattern, new in _TO:
        text = re.sub(pattern, new, text)
    return text


def from_oracle(text: str) -> str:
    """apache-tvm 0.27's dialect in ours."""
    for pattern, new in _FROM:
        text = re.sub(pattern, new, text)
    return text


def ask(cases: list[dict]) -> list[dict]:
    """Run `program` (TVMScript of a module) and `trace` (lines of Python) of each case in TVM.

    `intrins` may name tensor intrinsics as {name: (description, implementation)}, both TVMScript.
    With `lower`, answers have `lowered` too: the barriers and the extents of TVM's kernel.
    Answers have `script` and `trace` in our dialect and `refused` (None or TVM's error), or
    `error` where TVM could not read the case.
    """
    sent = [{"program": to_oracle(c["program"]),
             "trace": [to_oracle(line) for line in c.get("trace", ())],
             "lower": c.get("lower", False),
             "intrins": {name: [to_oracle(text) for text in texts]
                         for name, texts in c.get("intrins", {}).items()}} for c in cases]
    done = subprocess.run([oracle_python(), "-c", _WORKER], input=json.dumps(sent), text=True,
                          capture_output=True, timeout=600)
    assert "@@@" in done.stdout, done.stderr[-3000:]
    answers = json.loads(done.stdout.rsplit("@@@", 1)[1])
    return [{k: from_oracle(v) if isinstance(v, str) else v for k, v in a.items()}
            for a in answers]
