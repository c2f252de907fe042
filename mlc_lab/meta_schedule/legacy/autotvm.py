"""`tvm.autotvm`: tuning with templates, as the course notes write it.

    @autotvm.template("tutorial/matmul")
    def matmul(n): ...  cfg = autotvm.get_config(); cfg.define_split("tile_y", y, num_outputs=2)
    task = autotvm.task.create("tutorial/matmul", args=(512,), target="llvm")
    tuner = autotvm.tuner.XGBTuner(task)
    tuner.tune(n_trial=10, callbacks=[autotvm.callback.log_to_file("matmul.log")])
    with autotvm.apply_history_best("matmul.log"):
        with tvm.target.Target("llvm"):
            s, args = matmul(512)

`config_space.py` has the knobs, `tuners.py` the searches, `records.py` the log.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, Callable, Iterator, Sequence

from ...ir.module import IRModule
from ...schedule import Schedule
from ...target import Target
from ...te import create_prim_func
from ..measure.builder import LocalBuilder
from ..measure.runner import EvaluatorConfig
from ..measure.runner import LocalRunner as _LocalRunner
from ..workload import as_workload, count_flops
from . import config_space, records, tuners
from .config_space import ConfigEntity, ConfigSpace, InstantiationError

_templates: dict[str, Callable] = {}
_configs: list[Any] = []
_histories: list[Any] = []


def get_config() -> Any:
    """The configuration that the running template is to use (in its first run: its space)."""
    if _configs:
        return _configs[-1]
    return ConfigSpace()


@contextlib.contextmanager
def _using(config: Any) -> Iterator[Any]:
    _configs.append(config)
    try:
        yield config
    finally:
        _configs.pop()


def template(name: str, func: Callable | None = None) -> Any:
    """Decorator: a function that makes (te schedule, arguments), with choices from get_config().

    Called as it is, it uses the best configuration of `apply_history_best`, or the first one.
    """
    def decorate(fn: Callable) -> Callable:
        def call(*args: object, **kwargs: object) -> Any:
            if _configs:
                return fn(*args, **kwargs)
            config: Any = None
            target = Target.current() or "llvm"
            for history in reversed(_histories):
                config = config or records.best_of(history.records, target, name, args)
            with _using(config or ConfigSpace()):
                return fn(*args, **kwargs)

        call.__name__, call.__doc__ = fn.__name__, fn.__doc__
        _templates[name] = call
        return call

    return decorate(func) if func is not None else decorate


class Task:
    """A template with arguments, for a target. `config_space` is what its template defined."""

    def __init__(self, name: str, args: Sequence[Any], target: Any) -> None:
        if name not in _templates:
            raise ValueError(f"there is no template {name!r}; there are: "
                             f"{', '.join(sorted(_templates)) or 'none'}")
        self.name, self.args, self.target = name, tuple(args), Target(target)
        self.config_space = ConfigSpace()
        _, tensors = self.instantiate(self.config_space)
        self._program = IRModule({"main": create_prim_func(list(tensors))})
        self.flop = self.config_space.flop or count_flops(as_workload(self._program))

    @property
    def workload(self) -> tuple:
        """(name, arguments...)."""
        return (self.name, *self.args)

    def instantiate(self, config: Any) -> tuple[Any, Any]:
        """(te schedule, tensors) under a configuration."""
        with self.target, _using(config):
            return _templates[self.name](*self.args)

    def program(self) -> IRModule:
        """The program without a schedule."""
        return self._program

    def schedule(self, config: ConfigEntity) -> Schedule:
        """The schedule of a configuration.

        Raises InstantiationError, with what the template raised as its cause, where there is none.
        """
        try:
            sch, tensors = self.instantiate(config)
            if config.errors:
                raise InstantiationError("; ".join(config.errors))
            return sch.to_schedule(list(tensors))
        except InstantiationError:
            raise
        except Exception as error:  # a template is the user's code: it may raise anything
            raise InstantiationError(f"{type(error).__name__}: {error}") from error

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, target={self.target})"


def create(task_name: str, args: Sequence[Any], target: Target | str | None, target_host: Any = None
           ) -> Task:
    """The task of a template."""
    del target_host
    return Task(task_name, args, target)


class LocalRunner(_LocalRunner):
    """The runner of meta_schedule with the arguments autotvm knows."""

    def __init__(self, timeout: float = 10, n_parallel: int = 1, number: int = 0, repeat: int = 0,
                 min_repeat_ms: float = 0, cooldown_interval: float = 0,
                 enable_cpu_cache_flush: bool = False, **_: object) -> None:
        super().__init__(max(timeout, 10), EvaluatorConfig(
            number, repeat, min_repeat_ms, enable_cpu_cache_flush))


def measure_option(builder: object = "local", runner: object = "local") -> dict:
    """What a tuner measures with."""
    return {"builder": builder, "runner": runner}


class ApplyHistoryBest:
    """Templates called inside use the fastest configuration of a log.

    `records` is a log, several logs, or (MeasureInput, MeasureResult) pairs.
    """

    def __init__(self, records: Any = None) -> None:
        self.records: list = []
        if records is not None:
            self.load(records)

    def load(self, found: Any) -> None:
        """Add records."""
        self.records += records.load_any(found)

    def query(self, target: Target | str | None, workload: Sequence[Any]) -> Any:
        """The fastest configuration of (name, arguments...), an undecided one if there is none."""
        return records.best_of(self.records, target, workload[0], workload[1:]) or ConfigSpace()

    def __enter__(self) -> "ApplyHistoryBest":
        _histories.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _histories.remove(self)


apply_history_best = ApplyHistoryBest


class FallbackContext:
    """Templates called inside use their first configuration."""

    def __enter__(self) -> "FallbackContext":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callable:
    """A callback that prints one line for each batch."""
    done = 0

    def callback(tuner: Any, inputs: Any, results: Any) -> None:
        nonlocal done
        done += len(results)
        print(f"{prefix}{done}/{total}, best {tuner.best_flops / 1e9:.2f} GFLOPS")

    return callback


dispatcher = SimpleNamespace(ApplyHistoryBest=ApplyHistoryBest, FallbackContext=FallbackContext)
task = SimpleNamespace(create=create, Task=Task, ConfigSpace=ConfigSpace, ConfigEntity=ConfigEntity,
                       space=config_space, dispatcher=dispatcher, template=template,
                       get_config=get_config)
tuner = tuners
callback = SimpleNamespace(log_to_file=records.log_to_file, progress_bar=progress_bar)
record = records
RandomTuner, GridSearchTuner = tuners.RandomTuner, tuners.GridSearchTuner
GATuner, XGBTuner = tuners.GATuner, tuners.XGBTuner

__all__ = ["ApplyHistoryBest", "ConfigEntity", "ConfigSpace", "FallbackContext", "GATuner",
           "GridSearchTuner", "InstantiationError", "LocalBuilder", "LocalRunner", "RandomTuner",
           "Task", "XGBTuner", "apply_history_best", "callback", "create", "get_config",
           "measure_option", "record", "task", "template", "tuner"]
