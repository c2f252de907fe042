"""The hour as a file: a JSON object a line, added to and never changed.

The first line says what is asked and holds the PIN and the teacher's secret, so that a server that
is started again goes on: the file is its owner's alone (mode 600). Then, in the order in which they
were acknowledged:

    {"do": "join", "seat": 3, "token": digest, "name": where there is a roster, "at": seconds}
    {"do": "vote", "seat": 3, "id": text, "question": key, "answers": {name: value}, "at": ...}
    {"do": "reveal" or "ask", "question": key, "at": ...}
    {"do": "door", "open": false, "at": ...}

A second join of a seat is another phone of the student's, and ends the first one's.
What stands in the file was on the disk before anybody was told that it counts. A last line that is
cut off was never acknowledged: it is taken away when the file is opened.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

from ...reading import DataError, read_json

FORMAT, VERSION = "mlc-lab class", 1
#: bytes of a file that is gone on with
MOST_BYTES = 200 << 20
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class Journal:
    """A file that is added to; several lines that come at once go to the disk together."""

    def __init__(self, path: str | Path) -> None:
        """Opens the file, or makes it. Raises DataError for one that is no such file, is damaged,
        or is in use by another server."""
        self.path = Path(path)
        self.records: list[dict[str, Any]] = []  # what stood in it
        self._file = os.open(self.path, _FLAGS, 0o600)
        try:
            _lock(self._file, self.path)
            self._read()
        except BaseException:
            os.close(self._file)
            raise
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writing = False
        self._one = threading.Lock()

    def _read(self) -> None:
        if os.fstat(self._file).st_size > MOST_BYTES:
            raise DataError(f"{self.path} has more than {MOST_BYTES >> 20} MB: name another file")
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        lines = data[:whole].split(b"\n")[:-1]
        for number, line in enumerate(lines, 1):
            try:
                record = read_json(line, f"line {number}")
            except DataError as error:
                raise DataError(f"{self.path} is damaged: {error}") from None
            if not isinstance(record, dict) or (
                    number == 1 and record.get("format") != FORMAT):
                raise DataError(f"{self.path} is no file of a class: name another one with -o")
            self.records.append(record)
        if not lines and data.strip():
            raise DataError(f"{self.path} is no file of a class: name another one with -o")
        if whole < len(data):
            os.ftruncate(self._file, whole)

    async def add(self, record: dict[str, Any]) -> None:
        """Write a line; returns when it is on the disk. Raises OSError where it cannot be."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((_line(record), future))
        if not self._writing:
            self._writing = True
            try:
                await self._write_all()
            finally:
                self._writing = False
        await future

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            error: OSError | None = None
            try:
                await asyncio.shield(loop.run_in_executor(
                    None, self._put, b"".join(line for line, _ in batch)))
            except OSError as caught:
                error = caught
            for _, future in batch:
                if not future.done():
                    future.set_exception(error) if error else future.set_result(None)

    def put(self, record: dict[str, Any]) -> None:
        """Write a line now, before there is a server."""
        self._put(_line(record))

    def _put(self, data: bytes) -> None:
        with self._one:
            size = os.fstat(self._file).st_size
            try:
                done = 0
                while done < len(data):
                    done += os.write(self._file, data[done:])
                os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, size)  # no half line before the next one
                raise

    def close(self) -> None:
        """Close the file."""
        with self._one:
            os.close(self._file)


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _lock(file: int, path: Path) -> None:
    """Keep a second server from the file, where the system has locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise DataError(f"{path} is in use: another server writes to it") from None


__all__ = ["FORMAT", "VERSION", "Journal"]
