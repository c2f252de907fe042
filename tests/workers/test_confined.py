"""Functions that were handed in: what they compute arrives, and what else they try does no harm."""

import os
import sys
import time
from pathlib import Path

import pytest

from mlc_lab.workers.confined import Confined, Failed, Stopped
from mlc_lab.workers import confined, confinement
from mlc_lab.workers.confinement import program

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what Linux has")


def tried(body, *args, prelude="", **limits):
    """What a function `f` with this body gives."""
    text = "import os, sys\ndef f(*args):\n" + "\n".join("    " + n for n in body.split("\n"))
    with Confined(text, prelude, **limits) as run:
        return run.call("f", *args)


def test_plain_data_goes_in_and_comes_out():
    assert tried("return {'a': args, 'b': [1.5, None, 'é']}", 3, [True]) == {
        "a": [3, [True]], "b": [1.5, None, "é"]}


def test_time_without_a_processor_does_not_count(monkeypatch):
    body = "import time\ntime.sleep(1.5)\nreturn 3"
    with pytest.raises(Stopped, match="took too long"):
        tried(body, wall=0.5)
    monkeypatch.setattr(Confined, "_waited", lambda self: 60.0)
    assert tried(body, wall=0.5) == 3


@LINUX
def test_the_system_tells_how_long_a_process_has_waited():
    with Confined("def f():\n    return sum(range(3_000_000))") as run:
        before = run._waited()
        run.call("f")
        assert 0 <= before <= run._waited() < 600
        run.process.kill()
        run.process.wait()
        assert run._waited() >= before  # of one that is gone what was known


def test_calls_share_the_functions_of_a_text():
    with Confined("n = 0\ndef f():\n    global n\n    n += 1\n    return n") as run:
        assert [run.call("f"), run.call("f")] == [1, 2]


def test_a_function_may_ask_and_who_answers_counts():
    asked = []

    def measure(x):
        asked.append(x)
        if len(asked) > 3:
            raise Stopped("enough")
        return x * x

    prelude = "def call(names, name, n): return names[name](n, lambda x: ask('measure', x))"
    text = "def f(n, measure): return [measure(i) for i in range(n)]"
    with Confined(text, prelude) as run:
        assert run.call("f", 2, ask={"measure": measure}) == [0, 1]
        with pytest.raises(Stopped, match="enough"):
            run.call("f", 9, ask={"measure": measure})
    assert asked == [0, 1, 0, 1]


@pytest.mark.parametrize("body, says, line", [
    ("x = 1\nraise ValueError('no')", "ValueError: no", 4),
    ("sys.exit(0)", "SystemExit: 0", 3),
    ("return object()", "object is no plain data", 0),
    ("return float('nan')", "ValueError", 0),
    ("class E(Exception):\n    def __str__(self): raise E('x')\nraise E()", "E", 5),
    ("class E(Exception):\n    __str__ = lambda self: 'x' * 10**7\nraise E()", "E: xxx", 5),
    ("return b'x' * (10 << 30)", "more memory than it may use", 0),
    ("return f(1)", "RecursionError", 3),
    ("return g(1)", "NameError: name 'g' is not defined", 3),
])
def test_an_exception_is_told_with_its_line(body, says, line):
    with pytest.raises(Failed, match=says) as told:
        tried(body)
    assert told.value.line == line and len(str(told.value)) < 3000


def test_a_text_that_is_no_python_and_a_name_that_is_missing():
    with Confined("def f(:") as run, pytest.raises(Failed, match="SyntaxError") as told:
        run.call("f")
    assert told.value.line == 1
    with Confined("def g(): pass") as run, pytest.raises(Failed, match="no function f"):
        run.call("f")


@pytest.mark.parametrize("body, says", [
    ("os._exit(0)", "ended without a result"),
    ("os.closerange(0, 60)", "ended without a result"),
    ("import ctypes; ctypes.string_at(0)", "ended without a result: it crashed"),
    ("for n in range(3, 60):\n    try: os.write(n, b'garbage\\n')\n    except OSError: pass",
     "not JSON"),
    ("for n in range(3, 60):\n    try: os.write(n, b'[' * 9000 + b']' * 9000 + b'\\n')\n"
     "    except OSError: pass", "levels deep"),
    ("for n in range(3, 60):\n    try:\n        while True: os.write(n, b'x' * 65536)\n"
     "    except OSError: pass", "more than 4,194,304 bytes"),
    ("return 'x' * (5 << 20)", "more than 4,194,304 bytes"),
    ("for n in range(3, 60):\n    try: os.write(n, b'{\"ask\": \"points\", \"args\": []}\\n')\n"
     "    except OSError: pass", "wrote something else into its results"),
])
def test_what_spoils_the_results_ends_it(body, says):
    with pytest.raises(Stopped, match=says):
        tried(body)


def test_what_never_ends_is_ended():
    start = time.monotonic()
    with pytest.raises(Stopped, match="more than 1 s of processor time"):
        tried("import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
              seconds=0.2)
    with pytest.raises(Stopped, match="took too long"):
        tried("import time\ntime.sleep(1000)", wall=0.3)
    assert time.monotonic() - start < 30


def test_what_it_prints_is_not_a_result():
    assert tried("for n in range(200): print('x' * 100_000)\nreturn 1") == 1


@LINUX
@pytest.mark.parametrize("body", [
    "os.fork()",
    "import threading; threading.Thread(target=print).start()",
    "import subprocess; subprocess.run(['true'])",
    "os.execv('/bin/true', ['true'])",
    "import socket; socket.socket()",
    "os.kill(os.getppid(), 9)",
    "os.setsid()",
    "os.remove(args[0])",
    "os.rename(args[0], args[0] + 'x')",
    "os.truncate(args[0], 0)",
    "os.chmod(args[0], 0)",
    "os.utime(args[0])",
    "os.mkdir('d')",
    "open(args[0], 'a')",
    "open('new', 'w')",
    "open(args[0]).read()",
    "open(f'/proc/{os.getppid()}/mem', 'r+b')",
    "open(f'/proc/{os.getppid()}/environ').read()",
    "os.memfd_create('m')",
    "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
])
def test_it_changes_nothing_and_reaches_nobody(body, tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("here")
    with Confined(f"import os\ndef f(*args):\n    {body}\n    return 'done'") as run:
        if {"calls", "files"} - set(run.rights):
            pytest.skip("this system has not all that is asked for")
        with pytest.raises(Failed, match="PermissionError|Operation not permitted|start new thr"):
            run.call("f", str(kept))
        assert kept.read_text() == "here"


@LINUX
def test_a_fork_bomb_leaves_nothing_behind():
    bomb = ("def f():\n    import os\n    while True:\n        try: os.fork()\n"
            "        except OSError: return 'refused'")
    with Confined(bomb) as run:
        assert run.call("f") == "refused"
    with pytest.raises(ProcessLookupError):
        os.killpg(run.process.pid, 0)


def test_environment_and_folder_are_empty_and_the_folder_goes():
    text = "import os\ndef f(): return [dict(os.environ), os.getcwd(), os.listdir()]"
    with Confined(text) as run:
        environment, folder, files = run.call("f")
        assert files == [] and Path(folder).is_dir()
        assert not {n for n in environment if not n.endswith(("_NUM_THREADS", "LC_CTYPE"))}
    assert not Path(folder).exists()


def test_the_filter_is_well_formed():
    for machine in ("x86_64", "aarch64"):
        code = program(machine)
        count = len(code) // 8
        assert len(code) % 8 == 0 and count < 4096
        for at in range(count):
            kind, yes, no = code[8 * at] | code[8 * at + 1] << 8, code[8 * at + 2], code[8 * at + 3]
            assert kind == 6 or at + 1 + max(yes, no) < count


@LINUX
def test_references_of_exercises_cannot_be_read():
    folder = Path(confinement.__file__).parents[1]
    with Confined("def f(path): return len(open(path).read())") as run:
        if "files" not in run.rights:
            pytest.skip("this system has no Landlock")
        assert run.call("f", str(folder / "workers/confined.py")) > 0
        with pytest.raises(Failed, match="PermissionError"):
            run.call("f", str(folder / "exercises/catalogue/ex_01_1.py"))


def test_where_pipes_cannot_be_waited_for_a_thread_ends_what_is_late(monkeypatch):
    monkeypatch.setattr(confined, "SELECTS", False)  # as on Windows
    assert tried("return 'x' * 100_000") == "x" * 100_000
    with pytest.raises(Stopped, match="took too long"):
        tried("import time\ntime.sleep(1000)", wall=0.3)
    with pytest.raises(Stopped, match="ended without a result"):
        tried("os._exit(0)")
