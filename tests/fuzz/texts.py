"""Texts and files that were changed at random: each loads, or is refused with the project's error.

Of every kind of text that is read there are samples. A case changes one: bytes, tokens, values and
subtrees of JSON, numbers, names, nesting. Loading it runs no code (an audit hook watches, and the
words that are put in would be heard), ends within seconds, and takes bounded memory.
"""

from __future__ import annotations

import builtins
import json
import re
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlc_lab.reading import MLCError

from .harness import Draw, counts, note
from .text_samples import SAMPLES

#: seconds of the processor that one text may take
SECONDS = 5.0
#: bytes that a text may make the process grow
MEMORY = 1 << 30

#: what stands where it should not: code that would be heard, and values that hold processes
CODE = ('canary()', '__import__("os").system("true")', 'eval("canary()")', 'exec("canary()")',
        'max(["canary()"], key=eval)', '(lambda: canary())()', '[canary() for _ in range(3)]',
        '"{0.__class__}".format(A)', 'f"{canary()}"', 'open("canary.txt", "w")', 'T.__class__',
        'A.__class__.__subclasses__()', 'globals()', 'getattr(T, "x")', 'print(1)', 'breakpoint()',
        '().__class__.__base__', 'T.meta_var(canary)', 'sorted([1], key=canary)', '*[1] * 10**9',
        '9**9**9', '"a" * 10**10', 'range(10**12)', '1 << 10**9', '-1 << -1', '0 ** -1',
        '"%999999999d" % 1', 'f"{1:999999999}"', '[[1] * 1000] * 1000', 'sum([[]] * 10**6, [])',
        '1 // 0', '1e999', 'float("nan")', '[x for x in range(10**5) for y in range(10**5)]',
        'canary', 'type', 'T', 'tvm.ir.load_json("[]")', 'not', 'lambda x: x', '(yield)',
        'await x', '(x := 5)', '**{}', '...', 'None', '"\\ud800"', "b'x'", '1j', '@canary')
VALUES = (None, True, -1, 0, 1 << 31, 1 << 63, 10**30, 10**400, 0.5, 1e308, "", "x", "canary()",
          "T.int64(4)", "i + " * 300 + "1", "lambda i: (" * 50, [], {}, [[]], [None] * 5,
          {"$": 0}, {"$": 10**9}, {"t": []}, {"l": [1]}, {"d": [[1, 2]]}, {"e": ["ForKind", 1]},
          {"f": "nan"}, {"a": ["object", [1], ""]}, {"rv": "b0"}, {"expr": "canary()"},
          {"map": "lambda i: i // 0"}, "a" * 5000, "\ud800", "\0", "../../etc/passwd")

_heard: list[str] = []
_watching = False
_FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.remove",
              "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.putenv",
              "subprocess.Popen", "pickle.find_class", "marshal.loads", "socket.", "shutil.",
              "urllib.", "ftplib.", "ctypes.dlopen", "ctypes.call_function", "code.__new__",
              "sys.addaudithook", "sys.setprofile", "sys.settrace", "builtins.breakpoint",
              "builtins.input", "webbrowser.", "tempfile.")
_ROOT = str(Path(__file__).resolve().parent.parent.parent)
_PLACES = (_ROOT, sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())
_FOLDER = tempfile.TemporaryDirectory(prefix="texts")


def _hook(event: str, args: tuple) -> None:
    if not _watching:
        return
    if event == "exec":
        name = getattr(args[0], "co_filename", "")
        if name.startswith((*_PLACES, "<frozen", "<rules of")) or _made_here():
            return
        _heard.append(f"exec of code from {name!r}")
    elif event == "open":
        path, mode = str(args[0]), args[1] or "r"
        reads = "r" in str(mode) and "+" not in str(mode)
        if not (path.startswith((_FOLDER.name, "<")) or reads and path.startswith(
                (*_PLACES, "/proc/self", "/dev/null"))):
            _heard.append(f"open({path!r}, {mode!r})")
    elif event.startswith(_FORBIDDEN) and not str(args[:1]).startswith(f"('{_FOLDER.name}"):
        _heard.append(f"{event}{args!r}"[:300])


def _made_here() -> bool:
    """Whether the code that is about to run is one that the compiler writes for itself, or what a
    module that is imported late makes of its named tuples and data classes."""
    file = sys._getframe(2).f_code.co_filename
    return file.startswith(_PLACES) and file.endswith((
        "ir/node.py", "arith/pattern.py", "collections/__init__.py", "dataclasses.py"))


sys.addaudithook(_hook)
builtins.canary = lambda *_: _heard.append("canary was called")  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------- changing


def change_bytes(draw: Draw, data: bytes) -> bytes:
    """Flip, delete, insert, repeat or move some bytes."""
    if not data:
        return b"x"
    at = draw.integer(0, len(data) - 1)
    end = min(len(data), at + draw.choice((1, 4, 64, 1000)))
    how = draw.integer(0, 5)
    if how == 0:
        return data[:at] + bytes([data[at] ^ (1 << draw.integer(0, 7))]) + data[at + 1:]
    if how == 1:
        return data[:at] + data[end:]
    if how == 2:
        return data[:at] + bytes([draw.integer(0, 255)]) * draw.choice((1, 3, 100)) + data[at:]
    if how == 3:
        return data[:at] + data[at:end] * 3 + data[end:]
    if how == 4:
        return data[:at]
    other = draw.integer(0, len(data) - 1)
    return data[:other] + data[at:end] + data[other:]


_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+|\s+|[^\w\s]')


def change_tokens(draw: Draw, text: str) -> str:
    """Put another word, number or piece of code in the place of a token, or move or nest some."""
    tokens = _TOKEN.findall(text)
    places = [i for i, t in enumerate(tokens) if not t.isspace()]
    if not places:
        return draw.choice(CODE)
    at = draw.choice(places)
    how = draw.integer(0, 7)
    if how == 0:
        tokens[at] = draw.choice(CODE)
    elif how == 1:
        tokens[at] = tokens[draw.choice(places)]
    elif how == 2:
        tokens[at] = str(draw.choice((0, -1, 1, 7, 1 << 31, 1 << 62, 10**40, "0.5", "1e400")))
    elif how == 3:
        del tokens[at]
    elif how == 4:
        tokens[at] *= draw.choice((2, 3, 50))
    elif how == 5:
        opened, closed = draw.choice(("()", "[]", "{}", ("f(", ")"), ("-", ""), ("not ", "")))
        deep = draw.choice((1, 3, 90, 3000, 40_000))
        tokens[at] = opened * deep + tokens[at] + closed * deep
    elif how == 6:
        start = draw.choice(places)
        piece = tokens[min(at, start):max(at, start)][:200]
        tokens[at:at] = piece
    else:
        word = draw.choice(("+", "*", "//", "%", "<<", "**", "if", ",", "=", ".", "\n", "\n    ",
                            "==", ":=", "and", "is"))
        tokens[at] += f" {word} {draw.choice(CODE)}"
    return "".join(tokens)


def change_line(draw: Draw, text: str) -> str:
    """Remove, repeat, move or indent lines."""
    lines = text.split("\n")
    at, other = draw.integer(0, len(lines) - 1), draw.integer(0, len(lines) - 1)
    how = draw.integer(0, 4)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines[at:at] = [lines[at]] * draw.choice((1, 5, 40))
    elif how == 2:
        lines.insert(other, lines.pop(at))
    elif how == 3:
        lines[at] = "    " * draw.integer(0, 3) + lines[at].lstrip()
    else:
        indent = re.match(" *", lines[at])[0]
        lines.insert(at, indent + draw.choice(CODE))
    return "\n".join(lines)


def change_json(draw: Draw, text: str) -> str:
    """Change a value of a JSON text: another one, another subtree, nested, removed, repeated."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return change_tokens(draw, text)
    slots: list[tuple[Any, Any]] = []
    stack = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, (dict, list)):
            for key in item if isinstance(item, dict) else range(len(item)):
                slots.append((item, key))
                stack.append(item[key])
    if not slots:
        return text
    holder, key = draw.choice(slots)
    how = draw.integer(0, 6)
    if how <= 1:
        holder[key] = draw.choice(VALUES)
    elif how == 2:
        other, at = draw.choice(slots)
        holder[key] = json.loads(json.dumps(other[at]))
    elif how == 3:
        del holder[key]
    elif how == 4:
        old = holder[key]
        if isinstance(old, bool) or not isinstance(old, (int, float, str)):
            holder[key] = [old]
        elif isinstance(old, str):
            holder[key] = change_tokens(draw, old)
        else:
            holder[key] = draw.choice((old + 1, old - 1, -old, old * 1000, old / 2 if abs(
                old) < 1e300 else 0.5))
    elif how == 5:
        for _ in range(draw.choice((1, 30, 150))):
            holder[key] = [holder[key]] if draw.chance(70) else {"t": [holder[key]]}
    elif isinstance(holder, list):
        holder[key:key] = [holder[key]] * draw.choice((1, 3, 200))
    else:
        holder[draw.choice(("x", "", "$", "format", "__class__"))] = holder[key]
    made = json.dumps(data)
    if draw.chance(3):
        made = made.replace(str(draw.choice((0, 1, 2))), "[" * draw.choice((300, 100_000)), 1)
    return made


def changed(draw: Draw, sample: str | bytes, is_json: bool) -> str | bytes:
    """A sample with one to four changes."""
    made = sample
    for _ in range(draw.integer(1, 4)):
        if isinstance(made, bytes):
            made = change_bytes(draw, made)
        elif draw.chance(8):
            made = change_bytes(draw, made.encode(errors="replace")).decode(errors="replace")
        elif is_json and draw.chance(80):
            made = change_json(draw, made)
        else:
            made = (change_tokens if draw.chance(65) else change_line)(draw, made)
    return made


# ------------------------------------------------------------------------------- the law


def load(read: Callable[[Any], Any], text: str | bytes) -> bool:
    """Whether a text loads; AssertionError where it is neither that nor refused as it should."""
    global _watching
    _heard.clear()
    before, start = _peak(), time.process_time()
    _watching = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(text)
        return True
    except MLCError as error:
        assert len(str(error)) < 20_000, f"a message of {len(str(error))} characters"
        return False
    finally:
        _watching = False
        assert not _heard, f"code was run: {_heard[:3]}"
        seconds = time.process_time() - start
        assert seconds < SECONDS, f"it took {seconds:.1f} s"
        assert _peak() - before < MEMORY, f"it took {(_peak() - before) >> 20} MiB"


def _peak() -> int:
    """The most memory that this process has had, in bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin"
                                                                  else 10)


_warm: set[str] = set()


def case(draw: Draw, only: str | None = None) -> None:
    """Change a sample of a kind (`only` that one) and load it."""
    kind = only or draw.choice([*SAMPLES])
    samples, read, is_json = SAMPLES[kind]
    if kind not in _warm:  # what is imported at first use
        for sample in samples():
            read(sample)
        _warm.add(kind)
    sample = draw.choice(samples())
    text = changed(draw, sample, is_json)
    shown = text if len(text) < 6000 else text[:3000] + (
        b"..." if isinstance(text, bytes) else "...") + text[-3000:]
    note(f"{kind}:\n{shown if isinstance(text, str) else shown.hex()}")
    counts[f"{kind} {'loaded' if load(read, text) else 'refused'}"] += 1
