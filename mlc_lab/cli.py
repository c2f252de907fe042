"""The command `mlc-lab`: open the lab, run a file headless, explain its schedules, look around.

    mlc-lab lab                      open JupyterLab on the notebooks
    mlc-lab run FILE.py|FILE.ipynb   run a file without a screen; `import tvm` works in it
    mlc-lab explain FILE.py          write the steppers of the file's schedules as one HTML file
    mlc-lab doctor                   what is installed, what the machine is and what it can do
    mlc-lab exercise [ID [FILE]]     all exercises; one; the marks of an answer to it
    mlc-lab teach VERB               grade what was handed in, and more for teachers
    mlc-lab check FOLDER --json      the marks of what one student hands in

Every verb is a function here that returns the exit status. What a verb needs is imported inside
it, so `mlc-lab --help` is quick.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from .language import LANGUAGES, VARIABLE, chosen, text
from .language.command import translate

#: What coreutils' `timeout` exits with, so that scripts can tell a time limit from a failure.
EXIT_TIME_LIMIT = 124


def _fail(message: str) -> int:
    print(f"mlc-lab: {message}", file=sys.stderr)
    return 2


def _missing(module: str) -> bool:
    return importlib.util.find_spec(module) is None


# ---------------------------------------------------------------------------------------- lab


def find_notebooks() -> tuple[Path | None, bool]:
    """Where the lessons lie, and whether that is a checkout (and not an installed package)."""
    checkout = Path(__file__).resolve().parent.parent / "notebooks"
    if checkout.is_dir():
        return checkout, True
    installed = Path(sysconfig.get_path("data")) / "share" / "mlc-lab" / "notebooks"
    return (installed, False) if installed.is_dir() else (None, False)


def copy_notebooks(source: Path, target: Path, language: str = "en") -> int:
    """Copy lessons that are not in `target` yet; a copy the student has edited is left alone. In
    another language than English their text is translated, as far as there is a translation.

    Returns how many files were written.
    """
    from .language.lessons import in_language

    written = 0
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if not path.is_file() or copy.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".ipynb" and language != "en":
            made = in_language(json.loads(path.read_text(encoding="utf-8")), path.stem, language)
            copy.write_text(json.dumps(made, ensure_ascii=False, indent=1), encoding="utf-8")
        else:
            shutil.copyfile(path, copy)
        written += 1
    return written


#: settings of JupyterLab that a user has not set: it fetches nothing and does not ask whether to
_QUIET = {"@jupyterlab/apputils-extension:notification": {
    "fetchNews": "false", "checkForUpdates": False}}
#: what the folder of copied lessons ends with, by their language
_SUFFIX = {"en": "", "zh": "-zh"}
#: JupyterLab's name of a language, and the package that has its menus in it
_MENUS = {"zh": ("zh_CN", "jupyterlab_language_pack_zh_CN")}


def _menus(language: str) -> dict[str, Any]:
    """JupyterLab's menus in a language, where that is installed."""
    locale, package = _MENUS.get(language, ("", ""))
    if not locale or _missing(package):
        return {}
    return {"@jupyterlab/translation-extension:plugin": {"locale": locale}}


#: the notebook that JupyterLab opens with
START = "00_start_here.ipynb"


def lab(args: argparse.Namespace) -> int:
    """Open JupyterLab on the start page of the notebooks; from an installed package, of a copy."""
    if _missing("jupyterlab"):
        return _fail("JupyterLab is not installed. Install it with:  pip install 'mlc-lab[lab]'")
    source, checkout = find_notebooks()
    folder = Path(args.dir) if args.dir else None
    language = args.language or chosen()
    if source is None:
        print("mlc-lab:", text("this installation carries no notebooks; opening an empty lab",
                               "command"))
        folder = folder or Path.cwd()
    elif folder is None and checkout and language == "en":
        folder = source
    else:
        folder = folder or Path.cwd() / ("mlc-lab-notebooks" + _SUFFIX[language])
        folder.mkdir(parents=True, exist_ok=True)
        new = copy_notebooks(source, folder, language)
        print("mlc-lab:", text("{count} new notebooks copied to {folder}", "command").format(
            count=new, folder=folder))
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}", *args.rest]
    if (folder / START).is_file() and not any("default_url" in word for word in args.rest):
        command.append(f"--LabApp.default_url=/lab/tree/{START}")
    if getattr(os, "geteuid", lambda: 1)() == 0:  # in a container there is often nobody else
        command.append("--allow-root")
    with tempfile.TemporaryDirectory() as config:
        settings = Path(config, "labconfig", "default_setting_overrides.json")
        settings.parent.mkdir()
        settings.write_text(json.dumps({**_QUIET, **_menus(language)}), encoding="utf-8")
        path = os.pathsep.join(filter(None, (os.environ.get("JUPYTER_CONFIG_PATH"), config)))
        try:
            return subprocess.call(command, env={
                **os.environ, "JUPYTER_CONFIG_PATH": path, VARIABLE: language})
        except KeyboardInterrupt:
            return 0


# ---------------------------------------------------------------------------------------- run


def _run_child(words: list[str], time_limit: float | None) -> int:
    """Run one of this module's hidden verbs in a process of its own, so a crash stays there."""
    process = subprocess.Popen([sys.executable, "-m", "mlc_lab.cli", *words])
    try:
        status = process.wait(time_limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        print(f"mlc-lab: stopped after {time_limit:g} seconds", file=sys.stderr)
        return EXIT_TIME_LIMIT
    except KeyboardInterrupt:
        process.kill()
        process.wait()
        return 130
    if status < 0:
        print(f"mlc-lab: the program was ended by signal {-status}", file=sys.stderr)
        return 128 - status
    return status


def run(args: argparse.Namespace) -> int:
    """Run a Python file or a notebook headless. The exit status says whether it went through."""
    path = Path(args.file)
    if not path.is_file():
        return _fail(f"there is no file {path}")
    if path.suffix == ".ipynb":
        return _run_notebook(path, args)
    if path.suffix != ".py":
        return _fail(f"{path} is neither a Python file (.py) nor a notebook (.ipynb)")
    if args.output:
        return _fail("--output keeps a notebook as run; a Python file has none")
    return _run_child(["_run", str(path), *args.rest], args.time_limit)


def _run_here(path: str, words: list[str]) -> None:
    """Execute a Python file in this process as `python FILE` would, with `import tvm` working.

    An error's traceback begins in the file; that of a refusal, which says all there is to say, ends
    before it enters the package.
    """
    import runpy
    import traceback

    from mlc_lab import compat
    from mlc_lab.reading import MLCError

    compat.install()
    sys.argv = [path, *words]
    sys.path[0] = str(Path(path).resolve().parent)
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception as error:
        told = traceback.TracebackException.from_exception(error)
        files = [frame.filename for frame in told.stack]
        first = files.index(path) if path in files else len(files)
        last = len(files)
        if isinstance(error, MLCError):
            home = str(Path(__file__).resolve().parent)
            while last > first and files[last - 1].startswith(home + os.sep):
                last -= 1
        told.stack[:] = told.stack[first:last]
        print(*told.format(), sep="", end="", file=sys.stderr)
        sys.exit(1)


def _run_notebook(path: Path, args: argparse.Namespace) -> int:
    """Execute every cell with nbclient; print the outputs that are text, and the error if any."""
    if _missing("nbclient") or _missing("nbformat"):
        return _fail("notebooks need nbclient. Install it with:  pip install 'mlc-lab[lab]'")
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = nbformat.read(path, as_version=4)
    known = notebook.metadata.get("kernelspec", {}).get("name", "python3")
    client = NotebookClient(
        notebook,
        timeout=args.time_limit,
        kernel_name="python3" if known.startswith("python") else known,
        resources={"metadata": {"path": str(path.resolve().parent)}},
        extra_arguments=["--IPKernelApp.exec_lines=import mlc_lab.compat as _c; _c.install()"],
    )
    status = 0
    try:
        client.execute()
    except CellTimeoutError:
        print(f"mlc-lab: a cell ran for more than {args.time_limit:g} seconds", file=sys.stderr)
        status = EXIT_TIME_LIMIT
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        status = 1
    except DeadKernelError:
        print("mlc-lab: the kernel died", file=sys.stderr)
        status = 1
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            shown = output.get("text") or output.get("data", {}).get("text/plain", "")
            if shown:
                print(shown, end="" if shown.endswith("\n") else "\n")
    if args.output:
        nbformat.write(notebook, args.output)
    return status


# ------------------------------------------------------------------------------------ explain


def explain(args: argparse.Namespace) -> int:
    """Run a file, keep every schedule it makes, and write their steppers as one HTML file."""
    path = Path(args.file)
    if not path.is_file() or path.suffix != ".py":
        return _fail(f"{path} is not a Python file")
    target = Path(args.output) if args.output else path.with_suffix(".html")
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "recordings.json"
        words = ["_record", str(path), str(kept), f"{args.budget:g}" if args.measure else "0"]
        status = _run_child([*words, *args.rest], args.time_limit)
        if not kept.exists():
            return status or _fail(f"{path} ended before its schedules could be recorded")
        from mlc_lab.observe.recording import load_all
        from mlc_lab_widgets import page

        recordings = load_all(kept)
        if not recordings:
            return _fail(f"{path} made no schedule: nothing to explain")
        if args.code:
            for recording in recordings:
                recording.add_code()
        target.write_text(page(recordings, path.name, args.guess), encoding="utf-8")
    steps = sum(len(recording.steps) for recording in recordings)
    print(f"{target}:", text("{schedules} schedule(s), {steps} step(s)", "command").format(
        schedules=len(recordings), steps=steps))
    if status:
        print("mlc-lab:", text("the file itself failed; what it had done until then is shown",
                               "command"))
    return status


def _record_here(path: str, kept: str, budget: float, words: list[str]) -> None:
    """Execute a file with recording on; write what its schedules did, also if the file fails."""
    from mlc_lab.observe.session import recording_schedules

    with recording_schedules() as session:
        try:
            _run_here(path, words)
        finally:
            # the file itself was run: what its programs call is as trusted as it is
            session.save(kept, measure=budget > 0, budget_s=budget, trusted=True)


# ------------------------------------------------------------------------------------- doctor


def doctor(args: argparse.Namespace) -> int:
    """Say what is installed, what the machine is and how fast it measures."""
    from mlc_lab.observe import doctor as examination

    report = examination.examine(measure=not args.quick)
    if args.json:
        import json

        print(json.dumps(report, indent=2))
    else:
        print(examination.as_text(report))
    return 0


# ------------------------------------------------------------------------------- command line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlc-lab", description="MLC Lab: a tensor compiler you can see through."
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    verbs = parser.add_subparsers(
        dest="verb", metavar="lab | run | explain | doctor | exercise | teach | class | check")

    verb = verbs.add_parser("lab", help="open JupyterLab on the notebooks")
    verb.add_argument("--dir", help="folder to work in (an installed package copies lessons there)")
    verb.add_argument("--language", choices=LANGUAGES,
                      help="of lessons and exercises (default: that of the system)")
    verb.set_defaults(act=lab, takes_rest=True)

    verb = verbs.add_parser("run", help="run a Python file or notebook headless")
    verb.add_argument("file", metavar="FILE.py|FILE.ipynb")
    verb.add_argument(
        "--time-limit", type=float, metavar="SECONDS",
        help=f"stop a file, or a cell of a notebook, after this long (exit status "
        f"{EXIT_TIME_LIMIT})",
    )  # fmt: skip
    verb.add_argument("-o", "--output", metavar="OUT.ipynb", help="keep the notebook as run")
    verb.set_defaults(act=run, takes_rest=True)

    verb = verbs.add_parser("explain", help="write the steppers of a file's schedules as HTML")
    verb.add_argument("file", metavar="FILE.py")
    verb.add_argument("-o", "--output", metavar="OUT.html", help="default: FILE.html")
    verb.add_argument(
        "--no-measure", dest="measure", action="store_false", help="do not time the steps"
    )
    verb.add_argument(
        "--budget", type=float, default=60.0, metavar="SECONDS",
        help="time to spend on measuring, all schedules together (default 60)",
    )  # fmt: skip
    verb.add_argument(
        "--no-code", dest="code", action="store_false",
        help="leave out the lowered stages, LLVM IR and assembly of each step",
    )  # fmt: skip
    verb.add_argument(
        "--guess", action="store_true",
        help="for a class: show each step once it was guessed whether it is legal and faster",
    )  # fmt: skip
    verb.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop after this long")
    verb.set_defaults(act=explain, takes_rest=True)

    verb = verbs.add_parser("doctor", help="what is installed, and what this machine can do")
    verb.add_argument("--json", action="store_true", help="the report as JSON")
    verb.add_argument("--quick", action="store_true", help="do not measure peak and bandwidth")
    verb.set_defaults(act=doctor, takes_rest=False)
    _add_exercise_verbs(verbs)
    return parser


def _of_exercises(name: str) -> Any:
    """A verb of the classroom, which is loaded when it is used."""
    def act(args: argparse.Namespace) -> int:
        from mlc_lab.exercises import command

        return getattr(command, name)(args)
    return act


def _add_exercise_verbs(verbs: Any) -> None:
    """The verbs of the classroom."""
    verb = verbs.add_parser("exercise", help="see an exercise, or check an answer to it")
    verb.add_argument("id", nargs="?", metavar="ID", help='as "03.2"; without it all are listed')
    verb.add_argument("answer", nargs="?", metavar="FILE",
                      help="the answer: Python of a schedule, TVMScript, or JSON; - for stdin")
    verb.add_argument("--seed", default="0", help="which variant: a number, or your name")
    verb.add_argument("--hint", type=int, choices=(1, 2, 3),
                      help="one of three hints; it is noted, as in the card")
    verb.add_argument("--solution", action="store_true",
                      help="an answer with all points, once it is solved")
    verb.add_argument("--give-up", action="store_true",
                      help="an answer with all points, before it is solved: it is noted")
    verb.add_argument("--folder", help="a teacher's folder of exercises")
    verb.add_argument("--json", action="store_true", help="the marks as JSON")
    verb.set_defaults(act=_of_exercises("exercise"), takes_rest=False)

    verb = verbs.add_parser("teach", help="grade what was handed in, and more for teachers")
    _add_teach_verbs(verb, _teach)

    verb = verbs.add_parser("class", help="ask a class what each step of a notebook will do")
    verb.add_argument("notebook", metavar="NOTEBOOK",
                      help="a notebook that was run and saved with steppers in it, or recordings "
                      "(.json); it is read and not run")
    verb.add_argument("--host", default="0.0.0.0",
                      help="the address to serve on; by default everyone on the local network can "
                      "reach it, with 127.0.0.1 only this machine")
    verb.add_argument("--port", type=int, default=8899, help="default 8899; 0: one that is free")
    verb.add_argument("-o", "--output", metavar="FILE.jsonl",
                      help="where the hour is kept, or goes on from (default NOTEBOOK.class.jsonl)")
    verb.add_argument("--roster", metavar="FILE", help="the class: names in lines (.txt), a table "
                      "(.csv), or JSON; students join by their names, each once")
    verb.add_argument("--factors", action="store_true",
                      help="ask of each split, before what it does, which factor it gets")
    verb.set_defaults(act=_class, takes_rest=False)

    verb = verbs.add_parser("check", help="check what one student hands in, for graders")
    verb.add_argument("path", metavar="FILE|FOLDER", help="files of answers, notebooks")
    verb.add_argument("--exercises", default="", help=_EXERCISES)
    verb.add_argument("--seed", help="the variant; by default the one that was answered")
    verb.add_argument("--own", metavar="FOLDER", help=_OWN)
    verb.add_argument("-o", "--output", metavar="FILE", help="a file instead of the screen")
    verb.set_defaults(act=_teach, takes_rest=False, form="text")
    for form, what in (("json", "the marks as JSON"), ("gradescope", "as Gradescope reads them"),
                       ("github", "as GitHub Classroom reads them")):
        verb.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=what)


_EXERCISES = 'ids, as "03.2,03.3"; all by default'
_OWN = "your folder of exercises"
_CLASS = "the class: names in lines (.txt), a table (.csv), or JSON"


def _add_teach_verbs(verb: Any, act: Any) -> None:
    """The verbs of teachers; `act` is what they call."""
    acts = verb.add_subparsers(dest="what", required=True)

    def new(name: str, words: str) -> Any:
        made = acts.add_parser(name, help=words)
        made.set_defaults(act=act, takes_rest=False)
        return made

    one = new("new-exercise", "write a first exercise of your own, which works")
    one.add_argument("file", metavar="ex_NAME.py")
    one.add_argument("--id", default="90.1")

    one = new("release", "write a notebook of exercises for each student")
    one.add_argument("roster", metavar="ROSTER", nargs="?", help=_CLASS)
    one.add_argument("--for", dest="form", default="jupyter",
                     choices=("jupyter", "nbgrader", "otter", "gradescope", "github"),
                     help="what grades it; all but jupyter have one variant for all students")
    one.add_argument("--seed", default="0", help="that one variant")
    one.add_argument("--title", default="Exercises", help="the name of that one notebook")
    one.add_argument("-o", "--output", default="handed-out", metavar="FOLDER")
    one.add_argument("--exercises", default="", help=_EXERCISES)
    one.add_argument("--own", metavar="FOLDER", help=_OWN)
    one.add_argument("--hint-cost", type=int, default=0, metavar="POINTS",
                     help="what each hint costs")
    one.add_argument("--no-solutions", action="store_true", help="cards show no solution")

    one = new("collect", "find what was handed in: in a folder, or a download of Moodle or Canvas")
    one.add_argument("folder", metavar="FOLDER|FILE.zip")
    one.add_argument("-o", "--output", default="collected", metavar="FOLDER")
    one.add_argument("--roster", metavar="FILE", help=_CLASS)

    one = new("grade", "grade what was handed in")
    one.add_argument("folder", metavar="FOLDER|FILE.zip",
                     help="what `collect` wrote, files of answers, archives, or marks to redo")
    one.add_argument("-o", "--output", default="marks", metavar="FOLDER")
    one.add_argument("--exercises", default="", help=_EXERCISES)
    one.add_argument("--own", metavar="FOLDER", help=_OWN)
    one.add_argument("--roster", metavar="FILE", help="the class, with the seeds handed out")
    one.add_argument("--corrections", metavar="FILE.csv",
                     help="other points: columns exercise, student, row, points, why")
    one.add_argument("--hint-cost", type=int, default=0, metavar="POINTS",
                     help="what each hint costs that was shown before it was solved")
    one.add_argument("--jobs", type=int)

    one = new("marks", "the marks as a table, for Moodle, Canvas, spreadsheets")
    one.add_argument("marks", metavar="MARKS")
    one.add_argument("-o", "--output", default="marks.csv", metavar="FILE.csv")
    one.add_argument("--for", dest="form", default="plain", choices=("plain", "moodle", "canvas"))
    one.add_argument("--fill", metavar="FILE.csv",
                     help="a table that the platform has exported, to fill the points in")
    one.add_argument("--column", default="", metavar="NAME",
                     help="the column of the points, as the platform calls it")

    one = new("feedback", "a page of HTML for each student: the cards with their marks")
    one.add_argument("marks", metavar="MARKS")
    one.add_argument("-o", "--output", default="feedback", metavar="FOLDER")
    one.add_argument("--own", metavar="FOLDER", help=_OWN)
    one.add_argument("--solutions", action="store_true", help="with a solution of each exercise")


    one = new("report", "a page of HTML of the class: marks by check, the commonest mistakes")
    one.add_argument("marks", metavar="MARKS")
    one.add_argument("-o", "--output", default="class.html", metavar="FILE.html")
    one.add_argument("--own", metavar="FOLDER", help=_OWN)
    one.add_argument("--no-names", action="store_true", help="students are numbered, not named")


def _teach(args: argparse.Namespace) -> int:
    """A verb for teachers, which is loaded when it is used."""
    from mlc_lab.exercises.teach.command import teach_verb

    return teach_verb(args)


def _class(args: argparse.Namespace) -> int:
    """Serve a class; what it needs is loaded when it is used."""
    from mlc_lab.exercises.room.command import serve

    return serve(args)


def main(argv: list[str] | None = None) -> int:
    """Entry point of the command. Returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["_run"]:
        _run_here(argv[1], argv[2:])
        return 0
    if argv[:1] == ["_record"]:
        _record_here(argv[1], argv[2], float(argv[3]), argv[4:])
        return 0
    parser = translate(_parser())
    args, rest = parser.parse_known_args(argv)
    if args.version:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"mlc-lab {version('mlc-lab')}")
        except PackageNotFoundError:
            print("mlc-lab, from a folder that is not installed")
        return 0
    if args.verb is None:
        parser.print_help()
        return 2
    if rest and not args.takes_rest:
        parser.error(f"unknown words: {' '.join(rest)}")
    args.rest = rest[1:] if rest[:1] == ["--"] else rest
    try:
        return args.act(args)
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
