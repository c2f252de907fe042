"""`tempdir()`: a folder for what a program exports, removed when nobody holds it any more."""

from __future__ import annotations

import os
import shutil
import tempfile


class TempDirectory:
    """A folder of its own; `path` says where. Also a context, which removes it at its end."""

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None) -> None:
        self._folder = None
        if custom_path is not None:
            os.makedirs(custom_path)
            self.path = str(custom_path)
        elif keep_for_debug:
            self.path = tempfile.mkdtemp()
        else:
            self._folder = tempfile.TemporaryDirectory()
            self.path = self._folder.name

    @property
    def temp_dir(self) -> str:
        """Where it is."""
        return self.path

    def relpath(self, name: str) -> str:
        """The path of a file in it."""
        return os.path.join(self.path, name)

    def listdir(self) -> list[str]:
        """The names in it."""
        return os.listdir(self.path)

    def remove(self) -> None:
        """Delete it with all that is in it; a folder with a path of its own, or kept, stays."""
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> "TempDirectory":
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def tempdir(custom_path: str | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """A new folder. Raises FileExistsError where `custom_path` exists."""
    return TempDirectory(custom_path, keep_for_debug)


def is_source_path(path: str) -> bool:
    """Whether a name ends as a source of C, C++ or CUDA does."""
    return str(path).lower().endswith((".cc", ".c", ".cpp", ".cu", ".cxx", ".c++"))


def which(exec_name: str) -> str | None:
    """The path of a program, or None."""
    return shutil.which(exec_name)


__all__ = ["TempDirectory", "is_source_path", "tempdir", "which"]
