"""Cells of notebooks that were written for TVM: what they install and what they download.

A line that installs TVM (`!pip install mlc-ai-nightly -f https://mlc.ai/wheels`) installs what else
it names, and says that MLC Lab stands in for TVM. With `MLC_LAB_DOWNLOADS` set to a folder,
downloads of a file that lies there, by its name, are answered from it: through urllib, as
torchvision's data sets are, and by the lines `!wget URL` and `!curl -O URL`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import urllib.request
import urllib.response
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

_SHELL = re.compile(r"(\s*)[!%]\s*(.*?)\s*$", re.DOTALL)
_PIP = re.compile(r"((?:(?:\S*python[\d.]*|\{sys\.executable\})\s+-m\s+)?pip[\d.]*)\s+install\s")
_TVM = re.compile(r"(mlc-ai|apache-tvm|tlcpack)(-nightly)?(-cpu|-cu\d+|-rocm\d*)?"
                  r"(?=$|[=<>~!\[;@ ])", re.IGNORECASE)
_WHEELS = re.compile(r"https?://(\S*\.)?(mlc\.ai|tlcpack\.ai)(/|$)")
#: options of pip that take a value
_VALUED = {"-f", "--find-links", "-i", "--index-url", "--extra-index-url", "-r", "-c", "-t"}


def folder() -> Path | None:
    """Where downloads are answered from."""
    named = os.environ.get("MLC_LAB_DOWNLOADS", "")
    return Path(named).expanduser() if named else None


def kept(url: str) -> Path | None:
    """The file of the folder that a download is answered with."""
    home, parts = folder(), urlsplit(url)
    name = PurePosixPath(unquote(parts.path)).name
    if home is None or parts.scheme not in ("http", "https") or not name:
        return None
    return home / name if (home / name).is_file() else None


def fetch(url: str, to: str) -> None:
    """Copy the file that a download is answered with."""
    found = kept(url)
    if found is None:
        raise FileNotFoundError(f"{url}: the folder MLC_LAB_DOWNLOADS has no such file")
    shutil.copyfile(found, to)
    print(f"{to}: from {found}")


# ------------------------------------------------------------------------------- lines of a cell


def rewrite(lines: list[str]) -> list[str]:
    """The lines of a cell, without what would install TVM or download what is there."""
    if not lines or lines[0].startswith("%%"):
        return lines
    made: list[str] = []
    rest = list(lines)
    while rest:
        line = rest.pop(0)
        said = _SHELL.match(line)
        if said is None:
            made.append(line)
            continue
        whole = [line]
        while whole[-1].endswith("\\\n") and rest:
            whole.append(rest.pop(0))
        command = "".join(part.rstrip("\n").removesuffix("\\") for part in whole)
        found = _SHELL.match(command)
        new = None if found is None else _replaced(command[len(found[1]):][:1], found[2])
        made += whole if new is None or found is None else [f"{found[1]}{one}\n" for one in new]
    return made


def _replaced(sign: str, command: str) -> list[str] | None:
    """The lines in place of a command; None where it stays."""
    try:
        install = _PIP.match(command + " ")
        if install is not None:
            return _without_tvm(sign + install[1], shlex.split(command[install.end():]))
        words = shlex.split(command)
    except ValueError:  # an open quotation
        return None
    return _from_folder(words) if words and words[0] in ("wget", "curl") and sign == "!" else None


def _without_tvm(pip: str, words: list[str]) -> list[str] | None:
    """A call of pip that leaves out TVM, and the place where its wheels lie."""
    tvm = [word for word in words if _TVM.match(word)]
    if not tvm:
        return None
    left: list[str] = []
    others = False
    rest = [word for word in words if word not in tvm]
    while rest:
        word = rest.pop(0)
        if word in _VALUED and rest:
            value = rest.pop(0)
            if not _WHEELS.match(value):
                left += [word, value]
                others |= word == "-r"
        elif not _WHEELS.match(word.partition("=")[2]):
            left.append(word)
            others |= not word.startswith("-")
    text = f"{' '.join(tvm)}: not installed, MLC Lab stands in for TVM here"
    return [f"print({text!r})", *([f"{pip} install {shlex.join(left)}"] if others else [])]


def _from_folder(words: list[str]) -> list[str] | None:
    """A download by wget or curl of one file that is there."""
    urls = [word for word in words if word.startswith(("http://", "https://"))]
    if len(urls) != 1 or kept(urls[0]) is None:
        return None
    option = "-O" if words[0] == "wget" else "-o"
    to = PurePosixPath(unquote(urlsplit(urls[0]).path)).name
    if option in words[:-1]:
        to = words[words.index(option) + 1]
    elif words[0] == "curl" and not any(re.fullmatch(r"-[A-Za-z]*O[A-Za-z]*|--remote-name", word)
                                        for word in words):
        return None  # it prints what it gets
    if to == "-":
        return None
    return [f"__import__('importlib').import_module({__name__!r}).fetch({urls[0]!r}, {to!r})"]


# ------------------------------------------------------------------------------- urllib


class _Kept(urllib.request.BaseHandler):
    """Answers requests from the folder."""

    handler_order = 100  # before the network

    def default_open(self, req: urllib.request.Request) -> Any:
        """The file as a response; None leaves the request to others."""
        found = kept(req.full_url)
        if found is None:
            return None
        headers = Message()
        headers["Content-Length"] = str(found.stat().st_size)
        response = urllib.response.addinfourl(found.open("rb"), headers, req.full_url, 200)
        response.msg = "OK"  # type: ignore[attr-defined]
        return response


def register(ipython: Any) -> None:
    """Read the cells of a shell so, and answer its downloads."""
    transformers = ipython.input_transformers_cleanup
    if rewrite not in transformers:
        transformers.append(rewrite)
    if folder() is not None and getattr(urllib.request, "_opener", None) is None:
        urllib.request.install_opener(urllib.request.build_opener(_Kept()))


def unregister(ipython: Any) -> None:
    """Leave cells and downloads alone again."""
    if rewrite in ipython.input_transformers_cleanup:
        ipython.input_transformers_cleanup.remove(rewrite)
    opener = getattr(urllib.request, "_opener", None)
    if any(isinstance(one, _Kept) for one in getattr(opener, "handlers", ())):
        urllib.request.install_opener(None)  # type: ignore[arg-type]


__all__ = ["fetch", "folder", "kept", "register", "rewrite", "unregister"]
