"""The names of module scripts: `from mlc_lab.script import ir as I`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..above import above
from ..ir.global_info import DummyGlobalInfo, VDevice
from ..ir.module import GlobalVar, IRModule
from .tir import Form, Range

if TYPE_CHECKING:
    from typing import overload


class ModuleForm(Form):
    """A word for the body of a module, whose meaning is in the parser. Python runs that body too,
    before the decorator has its source read: then it does nothing."""

    def __repr__(self) -> str:
        return f"I.{self.name}"

    def __call__(self, *args: object, **kwargs: object) -> None:
        """Nothing."""


module_attrs = ModuleForm("module_attrs")
module_get_attrs = ModuleForm("module_get_attrs")
module_global_infos = ModuleForm("module_global_infos")


def vdevice(target: Any = None, vdevice_id: int = 0, memory_scope: str = "global") -> VDevice:
    """A device that tensors of the module may live on."""
    return VDevice(target, vdevice_id, memory_scope)


def dummy_global_info() -> DummyGlobalInfo:
    """Nothing, as something that a module knows."""
    return DummyGlobalInfo()


if TYPE_CHECKING:
    @overload
    def ir_module(mod: type, check_well_formed: bool = True) -> IRModule: ...
    @overload
    def ir_module(mod: None = None, check_well_formed: bool = True
                  ) -> Callable[[type], IRModule]: ...


def ir_module(mod: type | None = None, check_well_formed: bool = True) -> Any:
    """Decorator: a class of functions as an IRModule.

    The class's source is parsed; nothing in it runs. Raises DiagnosticError at the place of a
    mistake.
    """
    entry = above("decorators of scripts")
    if mod is None:
        return lambda cls: entry.decorate_class(cls, 2, check_well_formed)
    return entry.decorate_class(mod, 2, check_well_formed)


ir_module.script_kind = "module"
#: TVM's older name
module = ir_module

__all__ = ["GlobalVar", "Range", "dummy_global_info", "ir_module", "module", "module_attrs",
           "module_get_attrs", "module_global_infos", "vdevice"]
