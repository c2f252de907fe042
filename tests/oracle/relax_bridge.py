"""Asks apache-tvm what its Relax passes make of a program, as TVMScript in our dialect.

apache-tvm 0.27 writes `out_ty=` for `out_sinfo=`, symbolic dimensions as type variables of the
whole module, and constants under another name; all that is translated here.
"""

from __future__ import annotations

import json
import re
import subprocess

import numpy as np

from mlc_lab import relax
from mlc_lab.script import from_source

from .bridge import from_oracle, oracle_python, to_oracle

_WORKER = r'''
import json, re, sys, traceback
import tvm
from tvm import relax
from tvm.relax.dpl import is_op, wildcard
from tvm.script import ir as I, tirx as T

def run(case):
    if "model" in case:  # source that leaves a module of nn, and its spec
        made = {"nn": relax.frontend.nn}
        exec(case["model"], made)
        mod, _ = made["module"].export_tvm(made["spec"])
    else:
        mod = tvm.script.from_source(case["program"])
    scope = {n: getattr(relax.transform, n) for n in dir(relax.transform)}
    scope.update(relax=relax, is_op=is_op, wildcard=wildcard)
    with tvm.transform.PassContext(opt_level=3, config=case.get("config", {})):
        for text in case["passes"]:
            mod = eval(text, scope)(mod)
    text = mod.script(show_meta=True)
    found = re.search(r'metadata = tvm.ir.load_json\("""(.*?)"""\)\n', text, re.S)
    constants = {}
    if found:
        text = text.replace(found.group(0), "")
        for kind, items in tvm.ir.load_json(eval(f'"""{found.group(1)}"""')).items():
            constants[str(kind)] = [[i.value.numpy().tolist(), str(i.value.dtype)] for i in items]
    return {"script": text, "constants": constants}

out = []
for case in json.load(sys.stdin):
    try:
        out.append(run(case))
    except BaseException:
        out.append({"error": traceback.format_exc()[-3000:]})
print("\n@@@" + json.dumps(out))
'''

_TO = [(r"\bout_sinfo=", "out_ty="), (r"\bsinfo_args=", "ty_args="),
       (r"from mlc_lab\.script import .*\n", "")]
_FROM = [(r"\bout_ty=", "out_sinfo="), (r"\bty_args=", "sinfo_args="),
         (r'"Primitive": True', '"Primitive": 1'), (r"T\.let\[([^\]]*)\]", r"\1"),
         (r"\bT_split_sections", "T_split"),
         (r'"global_symbol": "[^"]*", ', "")]


def ask_passes(cases: list[dict]) -> list:
    """For each {"program": text, "passes": [text of a pass, ...]} the module that TVM makes.

    A case that TVM cannot read gives the text of its error. {"model": source} stands for a program:
    source that leaves a `module` of `nn` and its `spec`.
    """
    sent = []
    for case in cases:
        if "model" in case:
            sent.append({"passes": [], **case})
            continue
        text = to_oracle(case["program"])
        for pattern, new in _TO:
            text = re.sub(pattern, new, text)
        sent.append({**case, "program": text})
    done = subprocess.run([oracle_python(), "-c", _WORKER], input=json.dumps(sent), text=True,
                          capture_output=True, timeout=600)
    assert "@@@" in done.stdout, done.stderr[-3000:]
    return [a["error"] if "error" in a else _module(a)
            for a in json.loads(done.stdout.rsplit("@@@", 1)[1])]


def _module(answer: dict):
    text = from_oracle(answer["script"])
    for pattern, new in _FROM:
        text = re.sub(pattern, new, text)
    names = re.findall(r"^(\w+) = TypeVar\(", text, re.M)
    text = re.sub(r"^\w+ = TypeVar\(.*\)\n", "", text, flags=re.M)
    text = re.sub(r"^# from typing.*\n", "", text, flags=re.M)
    if names:
        text = _own_dims(text, names)
    constants = {kind: [relax.const(np.array(data, dtype)) for data, dtype in items]
                 for kind, items in answer["constants"].items()}
    return from_source(text, {"metadata": constants})


def _own_dims(text: str, names: list[str]) -> str:
    """Type variables of the module as symbolic dimensions of each function."""
    out = []
    in_prim = False
    for line in text.split("\n"):
        if line.strip().startswith("@"):
            in_prim = "prim_func" in line
        found = re.match(r"( *)def (\w+)\((.*)\)( -> .*)?:$", line)
        if not found:
            out.append(line)
            continue
        indent, name, params, ret = found.groups()
        used = [n for n in names if re.search(rf"\b{n}\b", params + (ret or ""))]
        body = [f"{indent}    {n} = T.int64()" for n in used
                if not re.search(rf"\b{n}: T\.int64", params)]
        if in_prim:
            parts = []
            for part in _split(params):
                own = re.match(r"(\w+): T\.Buffer\((.*)\)$", part)
                if own and any(re.search(rf"\b{n}\b", own.group(2)) for n in used):
                    parts.append(f"{own.group(1)}_handle: T.handle")
                    body.append(f"{indent}    {own.group(1)} = T.match_buffer("
                                f"{own.group(1)}_handle, {own.group(2)})")
                else:
                    parts.append(part)
            params = ", ".join(parts)
        else:
            for n in used:
                params = re.sub(rf'(?<![\w"]){n}(?![\w":])', f'"{n}"', params)
                ret = re.sub(rf'(?<![\w"]){n}(?![\w":])', f'"{n}"', ret) if ret else ret
        out += [f"{indent}def {name}({params}){ret or ''}:", *body]
    return "\n".join(out)


def _split(params: str) -> list[str]:
    """Parameters at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(params):
        depth += c in "([" and 1 or c in ")]" and -1 or 0
        if c == "," and depth == 0:
            parts.append(params[start:at].strip())
            start = at + 1
    return [*parts, params[start:].strip()] if params.strip() else []
