"""`create_shared`: object files into a shared library, by the C compiler of the machine."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...runtime.export import c_compiler, parts_of_object


def get_cc() -> str | None:
    """The path of a C compiler, or None."""
    try:
        return c_compiler()
    except RuntimeError:
        return None


def create_shared(output: str, objects: str | Sequence[str], options: Sequence[str] | None = None,
                  cc: str | None = None) -> None:
    """Link object files into the library `output`; RuntimeError with what the linker says.

    What an object file of `Module.save` needs of the runtime is linked with it.
    """
    files = [objects] if isinstance(objects, str) else list(objects)
    with tempfile.TemporaryDirectory() as folder:
        for file in list(files):
            parts = parts_of_object(Path(file).read_bytes()) if Path(file).is_file() else []
            for part in parts:
                files.append(str(Path(folder) / f"part{len(files)}.o"))
                Path(files[-1]).write_bytes(part)
        command = [c_compiler(cc), "-shared", "-fPIC", "-o", output, *files, *(options or ())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"linking failed: {' '.join(command)}\n{done.stderr}")


__all__ = ["create_shared", "get_cc"]
