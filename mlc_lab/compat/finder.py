"""The import hook behind `install()`: `tvm.a.b` is `mlc_lab.a.b`, the very same module object."""

from __future__ import annotations

from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .not_planned import missing, reason

#: names under `tvm` whose module is called otherwise here
ALIASES = {"tirx": "tir", "script.tirx": "script.tir", "script.parser.tir": "script.tir",
           "script.parser.ir": "script.ir", "script.relax": "relax.script.names",
           "script.parser.relax": "relax.script.names", "transform": "ir.transform",
           "runtime.ndarray": "runtime.ndarray", "tir.buffer": "tir.buffer",
           "script.ir_builder.relax": "relax.script.builder",
           "script.ir_builder.relax.ir": "relax.script.builder",
           "autotvm": "meta_schedule.legacy.autotvm",
           "autotvm.tuner": "meta_schedule.legacy.tuners",
           "autotvm.record": "meta_schedule.legacy.records",
           "auto_scheduler": "meta_schedule.legacy.auto_scheduler",
           "auto_scheduler._ffi_api": "meta_schedule.legacy.search_utils",
           "auto_scheduler.compute_dag": "meta_schedule.legacy.compute_dag",
           "auto_scheduler.loop_state": "meta_schedule.legacy.loop_state",
           "relax.transform.transform": "relax.transform",
           "relax.testing": "testing.relax",
           **{f"relax.testing.{name}": f"testing.relax.{name}" for name in ("nn", "vm")},
           "topi.testing": "testing.topi", "topi.nn.pooling": "topi.nn.pool",
           "contrib": "compat.contrib", "contrib.utils": "compat.contrib.utils",
           **{f"contrib.{name}": f"compat.contrib.{name}"
              for name in ("cblas", "cc", "clang", "tedd", "torch")},
           "relax.backend.patterns": "compat.backend_patterns",
           "relax.libraries.patterns": "compat.backend_patterns",
           "relax.libraries.pattern_registry": "relax.backend.pattern_registry",
           "te.hybrid": "compat.hybrid", "te.hybrid.runtime": "compat.hybrid.words",
           "s_tir.tensor_intrin": "compat.tensor_intrin",
           "tir.tensor_intrin": "compat.tensor_intrin",
           "tir.tensor_intrin.dot_product_common": "compat.tensor_intrin.dot_product",
           **{f"tir.tensor_intrin.{name}": f"compat.tensor_intrin.{name}"
              for name in ("arm_cpu", "hexagon", "rocm", "x86")},
           "meta_schedule.default_config": "compat.default_config",
           "meta_schedule.runner": "meta_schedule.measure.runner",
           "meta_schedule.builder": "meta_schedule.measure.builder",
           "meta_schedule.tune_context": "meta_schedule.context"}


class _AliasLoader(Loader):
    """Gives the module that exists already, and leaves it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.kept = {n: module.__dict__.get(n) for n in ("__spec__", "__loader__", "__package__")}

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(self.kept)  # the import system wrote the alias's name there
        if not hasattr(module, "__path__"):
            module.__path__ = []  # what TVM has below it is asked of the finder, and named by it


def not_here(fullname: str) -> ModuleNotFoundError:
    """The error of a name under `tvm` that is missing.

    `from tvm.tir.transform import X` passes over the error of a module X, and tells only that
    there is no X; over one that says no name it does not, so that the reason is read.
    """
    why = reason(*fullname.rpartition(".")[::2])
    return ModuleNotFoundError(missing(fullname), name=None if why else fullname)


class TvmFinder(MetaPathFinder):
    """Finds `tvm.*`."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> Any:
        """The spec of an alias; ModuleNotFoundError says what is not here."""
        base, _, dotted = fullname.partition(".")
        renamed = ALIASES.get(dotted, dotted) != dotted
        if base != "tvm" and not (base == "mlc_lab" and renamed):
            return None  # `from tvm.script import tirx` asks for mlc_lab.script.tirx
        module = self.resolve(ALIASES.get(dotted, dotted))
        if module is None:
            raise not_here(fullname)
        return ModuleSpec(fullname, _AliasLoader(module), is_package=hasattr(module, "__path__"))

    @staticmethod
    def resolve(dotted: str) -> ModuleType | None:
        """The module that `tvm.<dotted>` means."""
        from .namespaces import by_dotted_name

        found = by_dotted_name(dotted)
        if found is not None:
            return found
        name = f"mlc_lab.{dotted}"
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not (name + ".").startswith(error.name + "."):
                raise
        parent, _, last = name.rpartition(".")
        try:
            value = getattr(import_module(parent), last, None)
        except ModuleNotFoundError:
            return None
        return value if isinstance(value, ModuleType) else None


class Explainer(MetaPathFinder):
    """Asked last, for what nobody found: says of a name that is not planned why that is so."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> Any:
        """None; ModuleNotFoundError for a name that is not planned."""
        module, _, name = fullname.rpartition(".")
        base, _, dotted = module.partition(".")
        if base != "mlc_lab":
            return None
        for there, here in {**ALIASES, dotted: dotted}.items():
            where = f"tvm.{there}".rstrip(".")
            if here == dotted and reason(where, name):
                raise not_here(f"{where}.{name}")
        return None
