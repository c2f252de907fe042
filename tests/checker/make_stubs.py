"""Writes the stubs of modules whose names are made while they load, for editors and checkers.

`T`, `R`, the functions of intrinsics and the methods of Schedule are filled from tables: a checker
that reads their source sees none of their names. Signatures and docstrings are taken from the
objects; what a word of a script gives is in `GIVES` and `WORDS`. `python dev.py types` runs this,
`test_stubs.py` compares.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mlc_lab.tir.op.intrinsic import INTRINSICS

HEAD = "# Written by `python dev.py types`, as tests/checker/make_stubs.py says.\n"

#: what words of T give to a script, by the form's name
GIVES = {
    **dict.fromkeys(("block", "init", "If", "Then", "Else", "While", "attr", "Assert"), "Scope"),
    **dict.fromkeys(("serial", "parallel", "vectorized", "unroll", "thread_binding"),
                    "_Iterable[_Var]"),
    **dict.fromkeys(("buffer_decl", "match_buffer", "preflattened_buffer", "alloc_buffer",
                     "decl_buffer"), "_Buffer"),
    **dict.fromkeys(("axis.spatial", "axis.reduce", "axis.scan", "axis.opaque", "allocate",
                     "allocate_const", "launch_thread", "LetStmt"), "_Var"),
    "grid": "_Iterable[_Any]", "axis.remap": "_Any", "env_thread": "_IterVar", "Let": "_PrimExpr",
}
#: what words of R are to a script
WORDS = {
    "dataflow": "() -> Scope", "output": "(*vars: _Expr) -> None",
    "func_attr": "(attrs: dict[_builtins.str, _Any]) -> None",
    "func_name": "(name: _builtins.str) -> None",
    "match_cast": "(value: _Expr, struct_info: _Any) -> _Var",
    "emit": "(value: _Any) -> _Var",
    "emit_te": "(func: _Function[..., _Any], *args: _Any, **kwargs: _Any) -> _Var",
}
#: functions of mathematics and of bits -> how many arguments they take
ARITIES = {row.name: row.arity for row in INTRINSICS if row.arity and row.result != "given"}
SCOPE = '''
class Scope:
    """What a `with` of a script opens."""

    def __enter__(self) -> _Any: ...
    def __exit__(self, *_: object) -> None: ...
'''


def first_paragraph(doc: str | None) -> str:
    """What a docstring says first, on one line."""
    text = inspect.cleandoc(doc or "").partition("\n\n")[0].replace("\n", " ")
    return text.replace("\\", "\\\\").replace('"""', "'''").rstrip('"')


def where_named(module: str) -> dict[str, str]:
    """name -> the line that imports it, of all that a module's source imports or defines."""
    found = importlib.import_module(module)
    tree = ast.parse(Path(found.__file__).read_text(encoding="utf-8"))
    package = found.__name__ if found.__file__.endswith("__init__.py") else (
        found.__name__.rpartition(".")[0])
    lines = {}
    nodes = [*tree.body, *(n for top in tree.body if isinstance(top, ast.If) for n in top.body)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                lines[alias.asname or alias.name] = f"from {base} import {alias.name}"
        elif isinstance(node, (ast.ClassDef, ast.Assign, ast.AnnAssign)):
            for target in getattr(node, "targets", [getattr(node, "target", node)]):
                name = getattr(target, "name", getattr(target, "id", None))
                lines[name] = f"from {module} import {name}"
    return lines


class Stub:
    """The stub of one module. Types of functions are imported under names of their own: the names
    of a script hide builtins and classes."""

    def __init__(self, module: str) -> None:
        self.module = importlib.import_module(module)
        self.path = Path(self.module.__file__).with_suffix(".pyi")
        self.tree = ast.parse(Path(self.module.__file__).read_text(encoding="utf-8"))
        self.hidden = {n for n in vars(builtins) if n in vars(self.module)}
        self.imports: set[str] = set()
        self.body: list[str] = []
        self.done: set[str] = set()

    def need(self, module: str, *names: str) -> None:
        """Import names, with an underscore before each."""
        self.imports |= {f"from {module} import {n} as _{n}" for n in names}

    def annotation(self, text: str, names: dict[str, str] | None = None) -> str:
        """An annotation; names of builtins that the module hides, and those that it takes from
        where the function stands, get an underscore."""
        tree = ast.parse(text, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                return self.annotation(ast.unparse(tree).replace(repr(node.value), node.value),
                                       names)
            if isinstance(node, ast.Name) and node.id in self.hidden:
                self.need("builtins", node.id)
                node.id = f"_{node.id}"
            elif isinstance(node, ast.Name) and names is not None and node.id in names:
                self.imports.add(f"{names[node.id]} as _{node.id.lstrip('_')}")
                node.id = f"_{node.id.lstrip('_')}"
        return ast.unparse(tree)

    def function(self, name: str, fn: object, gives: str = "", skip: int = 0, indent: str = ""
                 ) -> None:
        """A function as it is; or a form of the parser (`skip=1`) as what it is to a script."""
        names = where_named(fn.__module__)
        signature = inspect.signature(fn)
        row = ARITIES.get(name) if signature.parameters.keys() >= {"args"} else None
        if row is not None:
            self.need("mlc_lab.tir.expr", "ExprLike", "PrimExpr")
            args = "".join(f"{letter}: _ExprLike, " for letter in "xyz"[:row])
            self.define(f"def {name}({args}**options: object) -> _PrimExpr:", fn.__doc__, indent)
            self.done.add(name)
            return
        out, starred = [], False
        for p in list(signature.parameters.values())[skip:]:
            if p.kind is p.KEYWORD_ONLY and not starred:
                out.append("*")
            starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
            text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
            if p.annotation is not p.empty:
                told = p.annotation if isinstance(p.annotation, str) else "Any"
                text += f": {self.annotation(told, names)}"
            if p.default is not p.empty:
                plain = isinstance(p.default, (str, int, float, type(None)))
                text += f" = {p.default!r}" if plain else " = ..."
            out.append(text)
        gives = gives or self.annotation(signature.return_annotation, names)
        self.define(f"def {name}({', '.join(out)}) -> {gives}:", fn.__doc__, indent)
        self.done.add(name)

    def define(self, head: str, doc: str | None, indent: str = "") -> None:
        """A function of a line, with what its docstring says first."""
        doc = first_paragraph(doc)
        self.body.append(f'{indent}{head}\n{indent}    """{doc}"""' if doc
                         else f"{indent}{head} ...")

    def source(self, leave_out: tuple[str, ...] = (), imports: bool = True) -> None:
        """What the module's source has in plain sight: imports, classes, functions, other names."""
        for node in self.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                line = ast.unparse(node)
                if "__future__" not in line and not line.endswith(" import *"):
                    self.body.append(line)
            elif isinstance(node, ast.If):
                self.body += [ast.unparse(n) for n in node.body]
            elif isinstance(node, ast.FunctionDef):
                if not node.name.startswith("_") and node.name not in leave_out:
                    self.body.append(ast.unparse(self._bare(node)))
                    self.done.add(node.name)
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                self.body.append(self._class(node))
                self.done.add(node.name)
            elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Tuple)):
                targets = getattr(node.targets[0], "elts", node.targets)
                values = getattr(node.value, "elts", [node.value])
                for target, value in zip(targets, values):
                    if isinstance(target, ast.Name) and isinstance(value, ast.Name):
                        self.body.append(f"{target.id} = {value.id}")
                        self.done.add(target.id)

    def _bare(self, fn: ast.FunctionDef) -> ast.FunctionDef:
        """A function without its body."""
        fn.body = [ast.Expr(ast.Constant(first_paragraph(ast.get_docstring(fn)) or ...))]
        for node in [n for n in ast.walk(fn.args) if isinstance(n, ast.arg) and n.annotation]:
            node.annotation = ast.parse(self.annotation(ast.unparse(node.annotation))).body[0].value
        if fn.returns is not None:
            fn.returns = ast.parse(self.annotation(ast.unparse(fn.returns))).body[0].value
        return fn

    def _class(self, node: ast.ClassDef) -> str:
        """A class with its methods, and the attributes that its constructor keeps."""
        body: list[ast.stmt] = node.body[:1] if ast.get_docstring(node) else []
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                if item.name == "__init__":
                    kept = {t.attr for n in ast.walk(item) if isinstance(n, ast.Assign)
                            for t in n.targets if isinstance(t, ast.Attribute)}
                    body += [ast.parse(f"{a.arg}: {self.annotation(ast.unparse(a.annotation))}"
                                       ).body[0] for a in item.args.args if a.arg in kept]
                body.append(self._bare(item))
        node.body = body or [ast.Pass()]
        return ast.unparse(node)

    def leave_out_unused_imports(self) -> None:
        """Without what the module imports for the bodies of its functions."""
        tree = ast.parse("\n".join(self.body))
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        for node in [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]:
            self.body.remove(ast.unparse(node))
            node.names = [a for a in node.names if (a.asname or a.name) in used]
            if node.names:
                self.body.insert(0, ast.unparse(node))

    def text(self) -> str:
        """The stub."""
        return "\n".join([HEAD + "\n".join(sorted(self.imports)), *self.body]) + "\n"


def made_functions(module: str) -> Stub:
    """A module of functions some of which it makes of a table."""
    stub = Stub(module)
    stub.source()
    stub.leave_out_unused_imports()
    for name in sorted(set(stub.module.__all__) - stub.done):
        value = getattr(stub.module, name)
        if inspect.isfunction(value):
            stub.function(name, value)
        else:
            kind, item = (type(v).__name__ for v in (value, next(iter(value))))
            stub.body.append(f"{name}: {kind}[{item}]")
    stub.body.append(f"__all__ = {sorted(stub.module.__all__)!r}")
    return stub


def language_of_tensorir() -> Stub:
    """T."""
    from mlc_lab.script import tir as T
    from mlc_lab.script.forms.table import FORMS
    from mlc_lab.tir import op

    stub = Stub("mlc_lab.script.tir")
    stub.need("typing", "Any", "Iterable")
    stub.need("mlc_lab.tir.expr", "Var", "IterVar", "PrimExpr")
    stub.body.append("from . import typing_extensions as _decorators")
    stub.source(leave_out=("prim_func", "macro"))
    stub.body += [SCOPE, "prim_func = _decorators.TensorIR.no_type_check",
                  "macro = _decorators.Macros.no_type_check"]
    for name in sorted((T.NAMES | {"MetaVar"}) - stub.done - {"prim_func", "macro", "axis"}):
        value = getattr(T, name)
        if isinstance(value, (T.DtypeName, T.BufferName)):
            stub.body.append(f"{name}: {type(value).__name__}")
        elif isinstance(value, T.Form):
            form = FORMS.table.get(name)
            if form is None:  # it reads the syntax tree, or is a word that is refused
                stub.body.append(f"def {name}(*args: _Any, **kwargs: _Any) -> "
                                 f"{GIVES.get(name, '_Any')}: ...")
            else:
                stub.function(name, form, GIVES.get(name, ""), skip=1)
        elif inspect.isfunction(value):
            written = getattr(op, name, None)
            plain = inspect.isfunction(written) and "*" not in str(inspect.signature(written))
            stub.function(name, written if plain else value)
    stub.body.append('class axis:\n    """The axes of a block."""')
    for word in ("spatial", "reduce", "scan", "opaque", "remap"):
        stub.body.append("    @staticmethod")
        stub.function(word, FORMS.table[f"axis.{word}"], GIVES[f"axis.{word}"], 1, "    ")
    stub.body += ["    S = spatial\n    R = reduce", "FORMS: tuple[str, ...]",
                  "NAMES: frozenset[str]", "def __getattr__(name: str) -> _Any: ..."]
    return stub


def language_of_relax() -> Stub:
    """R."""
    from mlc_lab.relax import op
    from mlc_lab.relax.script import names as R

    stub = Stub("mlc_lab.relax.script.names")
    stub.hidden |= {"str", "tuple"}
    stub.need("typing", "Any")
    stub.need("mlc_lab.relax.expr", "Expr", "Var")
    stub.body += ["from typing import Callable as _Function",
                  "from ...script import typing_extensions as _decorators"]
    stub.source(leave_out=("function", "macro"))
    stub.body += [SCOPE, "function = _decorators.Relax.no_type_check",
                  "macro = _decorators.Macros.no_type_check"]
    for name, signature in WORDS.items():
        stub.define(f"def {name}{signature}:", None)
    for name in sorted(n for n in op.__all__ if n in R.NAMES):
        value = getattr(op, name)
        if inspect.isfunction(value) and name not in stub.done:
            stub.function(name, value, "_Expr" if hasattr(value, "__wrapped__") else "")
    stub.body += ["NAMES: frozenset[_str]", "def __getattr__(name: _str) -> _Any: ..."]
    return stub


def methods_of_schedule() -> Stub:
    """The primitives, which become methods of Schedule as they are defined."""
    from mlc_lab.schedule import InstructionKind
    from mlc_lab.schedule.methods import Primitives

    stub = Stub("mlc_lab.schedule.methods")
    stub.source()
    stub.leave_out_unused_imports()
    for name, kind in sorted(InstructionKind.by_method.items()):
        if kind.fn.__module__.startswith("mlc_lab."):
            written = getattr(Primitives, name).__code__.co_name
            if written == "method":  # as the decorator has made it, not one in place of it
                written = name
            stub.imports.add(f"from {kind.fn.__module__} import {written} as _{name}")
            stub.body.append(f"    {name} = _{name}")
    return stub


def given_on(module: str, name: str, known: str) -> list[str]:
    """Lines of a stub that give on a name of a module; `import a as b` is for the stub itself."""
    if name == known:
        return [f"from {module} import {name} as {name}"]
    own = "_own_Any" if known == "Any" else f"_{known}"  # `_Any` is typing's
    return [f"from {module} import {name} as {own}", f"{known} = {own}"]


def facade(module: str, later: dict[str, str], others: bool = False) -> Stub:
    """A package with names that it loads when they are asked for: name -> "module:name"; `others`
    are names of other versions of it."""
    from mlc_lab import above

    stub = Stub(module)
    for node in stub.tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                name = alias.asname or alias.name
                if not name.startswith("_"):
                    known = "" if name == "*" else f" as {name}"
                    stub.body.append(f"from {'.' * node.level}{node.module or ''} import "
                                     f"{alias.name}{known}")
                    stub.done.add(name)
    for name, path in sorted(later.items()):
        value = above.load(path)
        if name in stub.done:
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            stub.body += given_on(value.__module__, value.__name__, name)
        elif inspect.ismodule(value) and hasattr(value, "__file__"):
            package, _, last = value.__name__.rpartition(".")
            stub.body += given_on(package, last, name)
        else:
            stub.need("typing", "Any")
            stub.body.append(f"{name}: _Any")
    if hasattr(stub.module, "__version__"):
        stub.body.append("__version__: str")
    if others:
        stub.need("typing", "Any")
        stub.body.append("def __getattr__(name: str) -> _Any: ...")
    return stub


def facades() -> list[Stub]:
    """The packages whose names are loaded when they are asked for."""
    import mlc_lab
    from mlc_lab import above, ir, meta_schedule, relax

    def of_package(package: str, rows: dict[str, str]) -> dict[str, str]:
        return {name: f"{package}.{path}" for name, path in rows.items()}

    passes = {name: f"{module}:{name}" for name, module in relax.transform.PASSES.items()}
    # build and lower are modules that are called as their functions are
    called = {"build": "mlc_lab.build:build", "lower": "mlc_lab.lower:lower"}
    return [
        facade("mlc_lab", {**mlc_lab._NAMES, **called}),
        facade("mlc_lab.ir", {**above.NAMES["ir"],
                              **of_package("mlc_lab.ir", {
                                  n: m[1:] if n in ("transform", "instrument") else f"{m[1:]}:{n}"
                                  for n, m in ir._LATER.items()})}),
        facade("mlc_lab.tir", above.NAMES["tir"]),
        facade("mlc_lab.relax", of_package("mlc_lab.relax", relax._LATER), others=True),
        facade("mlc_lab.relax.transform", {**above.NAMES["relax.transform"], **of_package(
            "mlc_lab.relax.transform", passes)}),
        facade("mlc_lab.meta_schedule", of_package("mlc_lab.meta_schedule", meta_schedule._NAMES)),
    ]


def written() -> dict[Path, str]:
    """path -> text of every stub."""
    stubs = [language_of_tensorir(), language_of_relax(), made_functions("mlc_lab.tir.op.math"),
             made_functions("mlc_lab.tir.op.given"), methods_of_schedule(), *facades()]
    return {stub.path: stub.text() for stub in stubs}


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
