"""The layering of section 3 of the design, read from the source: imports go one way.

Reads every import of mlc_lab/ and widgets/ from the syntax tree, those inside functions too, and
every string that names a module, and fails on one that goes upward: what a lower layer needs of an
upper one is a row of `mlc_lab/extensions.py`. Imports under `if TYPE_CHECKING:` never run and do
not count.
"""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAB = ROOT / "mlc_lab"
WIDGETS = ROOT / "widgets"

# package -> the packages directly below it; what those may use, it may use too.
BELOW = {
    "above": (),
    "reading": ("above",),
    "language": (),
    "ir": ("reading",),
    "tir": ("ir",),
    "arith": ("tir",),
    "script": ("arith",),
    "schedule": ("arith", "target", "language"),
    "te": ("arith", "schedule"),
    "dlight": ("schedule", "machine"),
    "lower": ("arith", "target"),
    "topi": ("te",),
    "runtime": ("reading",),
    "workers": ("ir",),
    "target": ("reading",),
    "machine": ("runtime", "target"),
    "backend": ("tir", "arith", "lower", "runtime", "machine"),
    "relax": ("script", "topi", "dlight", "arith", "lower", "backend", "runtime"),
    "observe": ("script", "tir", "schedule", "backend", "lower", "relax", "workers"),
    "meta_schedule": ("schedule", "backend", "runtime", "observe", "te", "dlight",
                      "workers"),
}
# single files that may use more than their package
MORE = {"mlc_lab.meta_schedule.relax_integration": ("relax",)}
# On top of everything; nothing below may import them.
TOP = {"extensions", "compat", "cli", "build", "exercises", "testing", ""}
# Parts that are used where they are present, or heavy: never imported while a module loads.
LAZY = {
    "IPython", "anywidget", "graphviz", "ipywidgets", "jupyterlab", "matplotlib", "ml_dtypes",
    "mlc_lab_widgets", "nbclient", "nbformat", "onnx", "sklearn", "torch", "tqdm", "tvm", "dask",
    "distributed", "segno",
}  # fmt: skip
# The methods through which a view is opened; only they may reach for the widgets.
VIEW_METHODS = {"show", "explore", "view", "html", "step_svg", "step_png", "_repr_mimebundle_",
                "_ipython_display_"}  # fmt: skip


def allowed(package, seen=None):
    """All packages below one, found by walking BELOW."""
    below = set()
    for lower in BELOW[package]:
        below |= {lower} | allowed(lower)
    return below


def sources():
    return sorted([*LAB.rglob("*.py"), *WIDGETS.rglob("*.py")])


def module_name(path):
    """Dotted name of a source file, without `__init__`."""
    base, prefix = (LAB, "mlc_lab") if LAB in path.parents else (WIDGETS, "mlc_lab_widgets")
    parts = [prefix, *path.relative_to(base).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_type_checking(node):
    test = node.test
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


def imported_by_name(call):
    """The module of ours that `import_module("...")` loads, or None for another call."""
    function = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if function.lstrip("_") not in ("import_module", "import__") or not call.args:
        return None
    name = call.args[0]
    ours = isinstance(name, ast.Constant) and str(name.value).startswith("mlc_lab.")
    return name.value if ours else None


def imports(tree, module, is_package):
    """Yields (line, dotted name imported, names of the functions it stands in).

    `import_module("...")` is an import too.
    """

    def resolve(node):
        if not node.level:
            return node.module or ""
        base = module.split(".")
        base = base[: len(base) - node.level + (1 if is_package else 0)]
        return ".".join([*base, *([node.module] if node.module else [])])

    def walk(node, functions):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and is_type_checking(child):
                for other in child.orelse:
                    yield from walk(other, functions)
            elif isinstance(child, ast.Import):
                for alias in child.names:
                    yield child.lineno, alias.name, functions
            elif isinstance(child, ast.ImportFrom):
                base = resolve(child)
                for alias in child.names:
                    yield child.lineno, f"{base}.{alias.name}", functions
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from walk(child, (*functions, child.name))
            else:
                if isinstance(child, ast.Call) and (name := imported_by_name(child)):
                    yield child.lineno, name, functions
                yield from walk(child, functions)

    yield from walk(tree, ())


def named_modules(tree):
    """Yields (line, module) of each string that names a module or something in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"mlc_lab(\.\w+)+(:\w*)?", node.value):
                yield node.lineno, node.value.partition(":")[0]


def package_of(dotted):
    """Which part of mlc_lab a dotted name lies in; "" is the façade itself."""
    parts = dotted.split(".")
    if len(parts) == 1:
        return ""
    part = parts[1]
    known = part in BELOW or part in TOP or (LAB / part).is_dir() or (LAB / f"{part}.py").exists()
    return part if known else ""


def complaints(path):
    text = path.read_text(encoding="utf-8")
    module = module_name(path)
    own = package_of(module) if module.startswith("mlc_lab.") or module == "mlc_lab" else None
    for line, dotted, functions in imports(ast.parse(text), module, path.name == "__init__.py"):
        root = dotted.split(".")[0]
        where = f"{path.relative_to(ROOT)}:{line} imports {dotted}"
        if own is not None and root in LAZY and not functions:
            yield f"{where} while the module loads; import it inside the function that needs it"
        if root == "mlc_lab_widgets" and own is not None and own not in TOP:
            if not VIEW_METHODS & set(functions):
                yield f"{where} outside a view method ({', '.join(sorted(VIEW_METHODS))})"
        if root != "mlc_lab":
            continue
        target = package_of(dotted)
        if own is None:
            if any(part.startswith("_") for part in dotted.split(".")):
                yield f"{where}: widgets use only the public API"
        elif own not in TOP and target != own and target not in allowed(own):
            more = MORE.get(module, ())
            if target not in more and not any(target in allowed(m) for m in more):
                yield f"{where}: {own} may use {sorted(allowed(own)) or 'no other package'}"
    for line, dotted in named_modules(ast.parse(text)):
        target = package_of(dotted)
        if own not in {None, *TOP, target} and target not in allowed(own):
            yield (f"{path.relative_to(ROOT)}:{line} names {dotted}, which lies above {own}: make "
                   "it a row of mlc_lab/extensions.py, and ask for it with above(...)")


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path):
    assert not list(complaints(path)), "\n".join(complaints(path))


def test_every_package_has_a_layer():
    packages = {p.parent.name for p in LAB.glob("*/__init__.py")}
    modules = {p.stem for p in LAB.glob("*.py")} - {"__init__", "__main__"}
    assert packages - set(BELOW) <= TOP, packages - set(BELOW) - TOP
    assert modules - set(BELOW) <= TOP, f"give these a place: {modules - set(BELOW) - TOP}"


def import_graph():
    """module -> the modules that it imports, wherever in it."""
    modules = {module_name(p): p for p in sources()}
    graph = {module: set() for module in modules}
    for module, path in modules.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for _, dotted, _ in imports(tree, module, path.name == "__init__.py"):
            target = dotted if dotted in modules else dotted.rpartition(".")[0]
            if target in modules and target != module:
                graph[module].add(target)
    return graph


def test_no_module_imports_one_that_imports_it():
    """Imports inside of functions count, and those by name: what a file asks of those that are
    built on it is a row of `extensions.py`."""
    try:
        tuple(graphlib.TopologicalSorter(import_graph()).static_order())
    except graphlib.CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_every_row_of_the_extensions_is_asked_for():
    from mlc_lab import extensions

    text = "".join(p.read_text(encoding="utf-8") for p in sources())
    assert [row for row in extensions.ROWS if f'above("{row}")' not in text] == []


def test_an_upward_import_is_found(tmp_path):
    source = (
        "def f():\n    from ..schedule import Schedule\n    from mlc_lab import build\n"
        "    importlib.import_module('mlc_lab.tir.op')\n"
    )
    found = {name for _, name, _ in imports(ast.parse(source), "mlc_lab.tir.expr", False)}
    assert found == {"mlc_lab.schedule.Schedule", "mlc_lab.build", "mlc_lab.tir.op"}
    assert "schedule" not in allowed("tir")
    (named,) = named_modules(ast.parse('x = "mlc_lab.schedule:Schedule"'))
    assert named == (1, "mlc_lab.schedule")
    assert "runtime" not in allowed("schedule")


@pytest.mark.parametrize(
    "path",
    [p for top in ("mlc_lab", "widgets", "tests", "benchmarks") for p in (ROOT / top).rglob("*.py")]
    + [ROOT / "dev.py"],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_every_file_says_what_it_is_for(path):
    text = path.read_text(encoding="utf-8")
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{path} opens without a docstring"


def test_importing_the_compiler_loads_no_views():
    code = f"import sys, mlc_lab; print([m for m in {sorted(LAZY)!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_every_extension_leads_somewhere():
    from mlc_lab import above, extensions

    for path in [*extensions.ROWS.values(),
                 *(p for names in extensions.NAMES.values() for p in names.values())]:
        assert above.load(path) is not None


def test_the_page_on_architecture_names_every_package():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [p for p in BELOW if f"`{p}/`" not in text and f"`{p}.py`" not in text] == []
