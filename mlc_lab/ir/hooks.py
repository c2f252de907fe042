"""Where an upper layer plugs itself into a lower one, so that imports go one way.

`ir` and `tir` must be able to answer `repr(node)`, `mod.script()` and `mod.show()`, but the
printer lives above them in `script/`. The façade `mlc_lab/__init__.py` fills these hooks.
"""

from __future__ import annotations

from typing import Any, Callable

#: `script_printer(obj, **options) -> str`; set by `mlc_lab.script`
script_printer: Callable[..., str] | None = None
#: `show_printer(obj, **options) -> None`; set by `mlc_lab.script`
show_printer: Callable[..., None] | None = None


#: `script_underliner(obj, nodes, context) -> str`: the script with nodes underlined; set by
#: `mlc_lab.script`
script_underliner: Callable[..., str] | None = None
#: `text_shower(text, style=None)`: print Python text highlighted; set by `mlc_lab.script`
text_shower: Callable[..., None] | None = None
#: `explorer(schedule, **options)`: the stepper on a schedule; set by `mlc_lab.observe.session`
explorer: Callable[..., Any] | None = None
#: `access_tracer(schedule, **options)`; set by `mlc_lab.observe.access`
access_tracer: Callable[..., Any] | None = None
#: `access_counter(schedule, caches, **options)`; set by `mlc_lab.observe.counts`
access_counter: Callable[..., Any] | None = None
#: `workbench_opener(start, **options)`: schedule by clicking; set by `mlc_lab.observe.workbench`
workbench_opener: Callable[..., Any] | None = None


#: makes the call of a GlobalVar where an argument is of that type: (type, function(var, args))
global_callers: list[tuple[type, Callable[..., Any]]] = []


def call_global(var: Any, args: tuple) -> Any:
    """A call expression of a function of the module."""
    for kind, make in global_callers:
        if any(isinstance(a, kind) for a in args):
            return make(var, args)
    raise TypeError(f"cannot make a call of {var.name_hint!r} from these arguments: only Relax "
                    "expressions can be passed")


def _load_script() -> None:
    """Import the printer by name (not by import statement) the first time it is asked for."""
    import importlib

    importlib.import_module("mlc_lab.script")


def script(obj: Any, **options: Any) -> str:
    """TVMScript of a node or module."""
    if script_printer is None:
        _load_script()
    return script_printer(obj, **options)


def show(obj: Any, *args: Any, **options: Any) -> None:
    """Print TVMScript highlighted: HTML in a notebook, ANSI colours in a terminal."""
    if show_printer is None:
        _load_script()
    show_printer(obj, *args, **options)


def script_underlined(obj: Any, nodes: Any, context: int | None = 4) -> str:
    """The script of `obj` with `nodes` underlined, `context` lines around them."""
    if script_underliner is None:
        _load_script()
    return script_underliner(obj, nodes, context)


def show_text(text: str, style: str | None = None) -> None:
    """Print Python text highlighted."""
    if text_shower is None:
        _load_script()
    text_shower(text, style=style)


def explore(obj: Any, *args: Any, **options: Any) -> Any:
    """The stepper on a schedule."""
    if explorer is None:
        import importlib

        importlib.import_module("mlc_lab.observe.session")
    return explorer(obj, *args, **options)


def open_workbench(obj: Any, *args: Any, **options: Any) -> Any:
    """The workbench on a schedule."""
    if workbench_opener is None:
        import importlib

        importlib.import_module("mlc_lab.observe.workbench")
    return workbench_opener(obj, *args, **options)


def graph(obj: Any, name: str | None = None) -> Any:
    """The computation graph of a module's function, or of a function."""
    import importlib

    return importlib.import_module("mlc_lab.observe.graph").graph_of(obj, name)


def explore_passes(mod: Any, passes: Any, **options: Any) -> Any:
    """A pipeline run on a module, every step kept."""
    import importlib

    return importlib.import_module("mlc_lab.observe.passes").record(mod, passes, **options)


def show_run(trace: Any) -> Any:
    """A recorded run of the virtual machine as a view."""
    import importlib

    return importlib.import_module("mlc_lab.observe.machine_run").run_of(trace)


def accesses(obj: Any, *args: Any, **options: Any) -> Any:
    """The accesses of a schedule's program, in time order."""
    if access_tracer is None:
        import importlib

        importlib.import_module("mlc_lab.observe.access")
    return access_tracer(obj, *args, **options)


def count_accesses(obj: Any, *args: Any, **options: Any) -> Any:
    """Exact counts of a schedule's accesses in simulated caches."""
    if access_counter is None:
        import importlib

        importlib.import_module("mlc_lab.observe.counts")
    return access_counter(obj, *args, **options)


def repr_hook(obj: Any) -> str:
    """What `repr` of a node says: its script where it can be printed, its fields otherwise."""
    try:
        return script(obj)
    except Exception:  # a repr must never raise, whatever half-built node it is shown
        return obj.fallback_repr()
