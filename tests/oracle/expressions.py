"""Asks apache-tvm for the TensorIR of tensor expressions that are given as Python text."""

from __future__ import annotations

import json
import re
import subprocess

from mlc_lab import te, tir, topi

from .bridge import from_oracle, oracle_python

_WORKER = r'''
import json, sys, traceback
import tvm
from tvm import te, topi
try:
    from tvm import tirx as tir
except ImportError:
    from tvm import tir

out = []
for text in json.load(sys.stdin):
    scope = {"te": te, "topi": topi, "tir": tir, "P": te.placeholder}
    try:
        exec(text, scope)
        out.append({"script": te.create_prim_func(scope["args"]).script(show_meta=False)})
    except BaseException:
        out.append({"error": traceback.format_exc()[-1500:]})
print("\n@@@" + json.dumps(out))
'''


def theirs(texts: list[str]) -> list[dict]:
    """`script` or `error` for each text, which assigns the parameters to `args`."""
    done = subprocess.run([oracle_python(), "-c", _WORKER], input=json.dumps(texts), text=True,
                          capture_output=True, timeout=600)
    assert "@@@" in done.stdout, done.stderr[-3000:]
    answers = json.loads(done.stdout.rsplit("@@@", 1)[1])
    return [{k: same_dialect(from_oracle(v)) if k == "script" else v for k, v in a.items()}
            for a in answers]


def ours(text: str) -> str:
    """The script of our function."""
    scope = {"te": te, "topi": topi, "tir": tir, "P": te.placeholder}
    exec(text, scope)
    return same_dialect(te.create_prim_func(scope["args"]).script())


def same_dialect(script: str) -> str:
    """A script from `def` on, without what only one of the two dialects writes."""
    body = script[script.index("def main"):]
    body = re.sub(r" *T\.func_attr\(.*\)\n", "", body)
    body = re.sub(r", offset_factor=1\b", "", body)
    body = re.sub(r"(\w+): T\.let\[T\.(\w+)\] = ", r"\1: T.\2 = ", body)
    return re.sub(r"\n+", "\n", body).strip()
