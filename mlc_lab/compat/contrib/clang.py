"""`create_llvm`: C or C++ as LLVM IR, by clang, or by that of the package ziglang."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path


def find_clang(required: bool = True) -> list[str]:
    """How to call clang, a list of words; RuntimeError where there is none and it is required."""
    found = shutil.which("clang")
    if found:
        return [found]
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "c++", "-g0"]
    if required:
        raise RuntimeError("there is no clang on the path; pip install ziglang brings one")
    return []


def create_llvm(inputs: str | Sequence[str], output: str | None = None,
                options: Sequence[str] | None = None, cc: Sequence[str] | str | None = None) -> str:
    """The LLVM IR of C++ code, given as text or as names of files; also written to `output`."""
    command = [cc] if isinstance(cc, str) else list(cc or find_clang())
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        for number, code in enumerate([inputs] if isinstance(inputs, str) else inputs):
            source = code
            if "\n" in code or not Path(code).is_file():
                source = str(Path(folder) / f"input{number}.cc")
                Path(source).write_text(code, encoding="utf-8")
            made = str(Path(folder) / f"made{number}.ll")
            words = [*command, "-S", "-emit-llvm", "-O3", "-o", made, *(options or ()), source]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"clang failed: {' '.join(words)}\n{done.stderr}")
            texts.append(Path(made).read_text(encoding="utf-8"))
    if len(texts) != 1:
        raise ValueError("create_llvm takes one text at a time: import each with its own pragma")
    if output is not None:
        Path(output).write_text(texts[0], encoding="utf-8")
    return texts[0]


__all__ = ["create_llvm", "find_clang"]
