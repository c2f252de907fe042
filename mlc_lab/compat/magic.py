"""The cell magic `%%live`: what follows from a program or a schedule as one types it.

    %load_ext mlc_lab

    %%live                    the cell has TVMScript, and lines of a schedule of it, if any
    %%live Module             the cell has lines of a schedule of Module, or of a Schedule
    %%live Module --sizes n=128 --caches "32K:8, 1M:16" --target "llvm" --trusted

The text of the cell is read, never executed; it may mention the notebook's names.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from ..ir.module import IRModule
from ..reading import DataError, similar
from ..tir.function import PrimFunc


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise DataError(f"{message}\n{self.format_usage()}")


def _options() -> argparse.ArgumentParser:
    made = _Options(prog="%%live", add_help=False)
    made.add_argument("name", nargs="?", default="")
    made.add_argument("--sizes", nargs="+", default=[], metavar="NAME=SIZE")
    made.add_argument("--caches")
    made.add_argument("--target", default="llvm")
    made.add_argument("--trusted", action="store_true")
    return made


def live(line: str, cell: str, names: dict[str, Any]) -> Any:
    """What a cell under `%%live` shows. Raises DataError for a line that says nothing known."""
    from ..observe.typed import Typed
    from ..schedule import Schedule

    try:
        said = _options().parse_args(shlex.split(line))
        sizes = {name: int(size) for name, size in (one.split("=") for one in said.sizes)}
    except ValueError as error:
        raise DataError(f"%%live {line.strip()}: {error}") from None
    known = {name: value for name, value in names.items()
             if isinstance(value, (IRModule, PrimFunc, Schedule))}
    if said.name and said.name not in known:
        close = similar(said.name, known)
        raise DataError(f"%%live {said.name}: there is no module, function or schedule of this "
                        "name" + (f"; did you mean {close[0]}?" if close else ""))
    return Typed(cell.rstrip("\n"), known.get(said.name), names, name=said.name,
                 caches=said.caches, sizes=sizes, target=said.target, trusted=said.trusted).show()


def register(ipython: Any) -> None:
    """Give a notebook the magic."""
    ipython.register_magic_function(
        lambda line, cell: live(line, cell, ipython.user_ns), "cell", "live")


def unregister(ipython: Any) -> None:
    """Take it away again."""
    ipython.magics_manager.magics["cell"].pop("live", None)


__all__ = ["live", "register", "unregister"]
