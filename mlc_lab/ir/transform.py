"""Passes: named functions from IRModule to IRModule, run in a PassContext with instruments."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any, Callable, ClassVar, Iterable, Mapping, NamedTuple, Sequence

from ..above import above
from .module import IRModule
from .recursion import grows_stack


class PassInfo(NamedTuple):
    """Name, optimisation level at which it runs, and the names of passes it needs before it."""

    name: str
    opt_level: int = 0
    required: tuple[str, ...] = ()


class PassInstrument:
    """Watches passes run; override what you need."""

    def enter_pass_ctx(self) -> None:
        """The PassContext was entered."""

    def exit_pass_ctx(self) -> None:
        """The PassContext was left."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass may run."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called with the module that goes in."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called with the module that comes out."""


class PassTimingInstrument(PassInstrument):
    """Measures how long each pass takes; `render()` gives the table."""

    def __init__(self) -> None:
        self.times: list[tuple[int, str, float]] = []
        self._stack: list[tuple[int, float]] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._stack.append((len(self.times), time.perf_counter()))
        self.times.append((len(self._stack) - 1, info.name, 0.0))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        index, start = self._stack.pop()
        depth, name, _ = self.times[index]
        self.times[index] = (depth, name, time.perf_counter() - start)

    def render(self) -> str:
        """One line a pass, nested passes indented."""
        return "\n".join(f"{'  ' * depth}{name}: {1e3 * seconds:.3f} ms"
                         for depth, name, seconds in self.times)


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        print(f"# Before {info.name}\n{mod.script()}")


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        print(f"# After {info.name}\n{mod.script()}")


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the passes of the given names."""

    def __init__(self, print_before_pass_names: Iterable[str] = (),
                 print_after_pass_names: Iterable[str] = ()) -> None:
        self.before, self.after = set(print_before_pass_names), set(print_after_pass_names)

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name in self.before:
            print(f"# Before {info.name}\n{mod.script()}")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name in self.after:
            print(f"# After {info.name}\n{mod.script()}")


class DumpIR(PassInstrument):
    """Writes the module after each pass to a numbered file of `dump_dir`.

    Files of an earlier run are removed first where `refresh` is set.
    """

    def __init__(self, dump_dir: Any, refresh: bool = False) -> None:
        self.folder = Path(dump_dir)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.count = 0
        if refresh:
            for old in self.folder.glob("[0-9][0-9][0-9]_*.py"):
                old.unlink()

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        name = "".join(c if c.isalnum() else "_" for c in info.name)
        (self.folder / f"{self.count:03}_{name}.py").write_text(mod.script(), encoding="utf-8")
        self.count += 1


def pass_instrument(pi_cls: type | None = None) -> Any:
    """Class decorator: a class with any of the methods of PassInstrument as an instrument."""
    def make(cls: type[Any]) -> type[Any]:
        return cls if issubclass(cls, PassInstrument) else type(
            cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__})

    return make if pi_cls is None else make(pi_cls)


class PassContext:
    """The setting passes run in: optimisation level, options, disabled passes, instruments."""

    _stack: ClassVar[list["PassContext"]] = []

    def __init__(self, opt_level: int = 2, required_pass: Iterable[str] | None = None,
                 disabled_pass: Iterable[str] | None = None,
                 instruments: Sequence[PassInstrument] | None = None,
                 config: Mapping[str, Any] | None = None, trace: Any = None) -> None:
        self.opt_level = opt_level
        self.required_pass = set(required_pass or ())
        self.disabled_pass = set(disabled_pass or ())
        self.instruments = list(instruments or ())
        self.config = dict(config or {})

    @staticmethod
    def current() -> "PassContext":
        """The innermost active context, or the default one."""
        return PassContext._stack[-1] if PassContext._stack else _DEFAULT

    def __enter__(self) -> "PassContext":
        PassContext._stack.append(self)
        for instrument in self.instruments:
            instrument.enter_pass_ctx()
        return self

    def __exit__(self, *exc: object) -> None:
        PassContext._stack.pop()
        for instrument in self.instruments:
            instrument.exit_pass_ctx()

    def override_instruments(self, instruments: Sequence[PassInstrument] | None) -> None:
        """Leave the present instruments and enter others."""
        for instrument in self.instruments:
            instrument.exit_pass_ctx()
        self.instruments = list(instruments or ())
        for instrument in self.instruments:
            instrument.enter_pass_ctx()

    def enabled(self, info: PassInfo) -> bool:
        """Whether a pass runs under this context."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or info.opt_level <= self.opt_level


_DEFAULT = PassContext()


class Pass:
    """A named function IRModule -> IRModule. Calling it runs it with the context's instruments."""

    #: of a class that `module_pass` makes passes of: the object
    instance: Any = None

    def __init__(self, fn: Callable[[IRModule, PassContext], IRModule], info: PassInfo) -> None:
        self._fn = grows_stack(fn)
        self.info = info
        self.__doc__ = fn.__doc__

    def __call__(self, mod: IRModule) -> IRModule:
        ctx = PassContext.current()
        if not ctx.enabled(self.info):
            return mod
        if not ctx.instruments:
            return self._fn(mod, ctx)
        if not all(i.should_run(mod, self.info) for i in ctx.instruments):
            return mod
        for instrument in ctx.instruments:
            instrument.run_before_pass(mod, self.info)
        mod = self._fn(mod, ctx)
        for instrument in ctx.instruments:
            instrument.run_after_pass(mod, self.info)
        return mod

    def explore(self, mod: IRModule, **options: object) -> Any:
        """Run it on a module and keep the program and graph before and after every pass in it: a
        view in a notebook, with `.result`, `.table()` and `.html(path)`."""
        return above("explore_passes")(mod, self, **options)

    def __repr__(self) -> str:
        return f"Pass({self.info.name})"


class Sequential(Pass):
    """Passes one after the other."""

    def __init__(self, passes: Sequence[Callable[[IRModule], IRModule]] = (), opt_level: int = 0,
                 name: str = "sequential", required: Sequence[str] = ()) -> None:
        self.passes = list(passes)
        super().__init__(self._run, PassInfo(name, opt_level, tuple(required)))

    def _run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for step in self.passes:
            mod = step(mod)
        return mod


def module_pass(pass_func: Any = None, opt_level: int = 0, name: str | None = None,
                required: Sequence[str] = (), traceable: bool = False) -> Any:
    """Decorator: a function or class as a module pass.

    A function takes (mod, ctx); a class has `transform_module(self, mod, ctx)` and is called to
    make the pass.
    """

    def decorate(target: Any) -> Any:
        info = PassInfo(name or target.__name__, opt_level, tuple(required))
        if isinstance(target, type):
            def make(*args: object, **kwargs: object) -> Pass:
                instance = target(*args, **kwargs)
                made = Pass(lambda mod, ctx: instance.transform_module(mod, ctx), info)
                made.instance = instance
                made.__doc__ = target.__doc__
                return made

            make.__name__ = target.__name__
            make.__doc__ = target.__doc__
            return make
        return Pass(target, info)

    return decorate if pass_func is None else decorate(pass_func)


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """A pass that prints the module, after `header`, and leaves it as it is."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        print(f"PrintIR({header}):\n{mod.script(show_meta=show_meta_data)}")
        return mod

    return Pass(run, PassInfo("PrintIR"))


def ApplyPassToFunction(transform: Pass, func_name_regex: str,
                        error_if_no_function_matches_regex: bool = False) -> Pass:
    """`transform` on the functions whose whole name matches a regular expression; the others are
    there to be looked at, and stay as they are."""
    pattern = re.compile(func_name_regex)

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        chosen = [v for v in mod.functions if pattern.fullmatch(v.name_hint)]
        if not chosen:
            if error_if_no_function_matches_regex:
                have = ", ".join(v.name_hint for v in mod.functions) or "none"
                raise ValueError(f"no function matches {func_name_regex!r}; there are: {have}")
            return mod
        after = transform(mod)
        new = mod.copy()
        for var in chosen:
            if var.name_hint in after:
                new.update_func(var, after[var.name_hint])
            else:
                del new[var]
        for var, func in after.functions.items():
            if var.name_hint not in mod:
                new.update_func(var, func)
        return new

    return Pass(run, PassInfo(f"ApplyPassToFunction({transform.info.name})"))
