"""Object files into libraries and programs, by the C compiler of the machine or another one."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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
        given = {file: Path(file).read_bytes() for file in files if Path(file).is_file()}
        there = set(given.values())
        for content in given.values():
            for part in parts_of_object(content):
                if part in there:  # `export_library(fcompile=)` gives the parts with the objects
                    continue
                there.add(part)
                files.append(str(Path(folder) / f"part{len(files)}.o"))
                Path(files[-1]).write_bytes(part)
        command = [c_compiler(cc), "-shared", "-fPIC", "-o", output, *files, *(options or ())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"linking failed: {' '.join(command)}\n{done.stderr}")


def create_executable(output: str, objects: str | Sequence[str],
                      options: Sequence[str] | None = None, cc: str | None = None,
                      cwd: str | None = None, ccache_env: object = None) -> None:
    """Link object files into the program `output`; RuntimeError with what the linker says."""
    files = [objects] if isinstance(objects, str) else list(objects)
    command = [c_compiler(cc), "-o", output, *files, *(options or ())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        raise RuntimeError(f"linking failed: {' '.join(command)}\n{done.stderr}")


def create_staticlib(output: str, inputs: str | Sequence[str], ar: str = "ar") -> None:
    """Gather object files in the library `output`; RuntimeError with what `ar` says."""
    files = [inputs] if isinstance(inputs, str) else list(inputs)
    command = [ar, "crs", output, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")


def cross_compiler(compile_func: Any, options: Sequence[str] | None = None,
                   output_format: str | None = None, get_target_triple: Any = None,
                   add_files: Sequence[str] | None = None) -> Callable[..., None]:
    """A function as `Module.export_library(fcompile=)` takes it: another compiler, by its name or
    as a function (outputs, objects, options), with options and files of its own.

    Its attribute `output_format` is how libraries are named, `so` by default.
    """
    base, more = list(options or ()), list(add_files or ())
    call = compile_func if callable(compile_func) else (
        lambda outputs, objects, options=None: create_shared(outputs, objects, options,
                                                             cc=compile_func))

    def compile(outputs: str, objects: str | Sequence[str],
                options: Sequence[str] | None = None) -> None:
        files = [objects] if isinstance(objects, str) else list(objects)
        call(outputs, files + more, options=base + list(options or ()))

    vars(compile)["output_format"] = output_format or "so"
    vars(compile)["get_target_triple"] = get_target_triple
    return compile


__all__ = ["create_executable", "create_shared", "create_staticlib", "cross_compiler", "get_cc"]
