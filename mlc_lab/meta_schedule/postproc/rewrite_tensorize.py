"""RewriteTensorize: put hardware intrinsics where `meta_schedule.auto_tensorize` asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schedule import ScheduleError
from ...tir.stmt import Block
from .common import statements
from .postproc import Postproc

if TYPE_CHECKING:
    from ...schedule.schedule import Schedule

KEY = "meta_schedule.auto_tensorize"


class RewriteTensorize(Postproc):
    """Tensorizes every block whose annotation names an intrinsic. Drops candidates it does not
    fit. With `vectorize_init_loop`, initialisations of such blocks become vectors."""

    stage = "judged"

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        """Whether every intrinsic that was asked for fits."""
        for var, func in sch.mod.functions.items():
            names = [b.name_hint for b in statements(func.body)
                     if type(b) is Block and KEY in b.annotations]
            for name in names:
                block = sch.get_block(name, func_name=var.name_hint)
                intrinsic = sch.get(block).annotations[KEY]
                sch.unannotate(block, KEY)
                try:
                    sch.tensorize(block, str(getattr(intrinsic, "value", intrinsic)))
                except ScheduleError:
                    return False
                if self.vectorize_init_loop and name.endswith("_update"):
                    self._init(sch, name.removesuffix("_update") + "_init", var.name_hint)
        return True

    def _init(self, sch: Schedule, name: str, func: str) -> None:
        try:
            sch.vectorize(sch.get_loops(sch.get_block(name, func_name=func))[-1])
        except ScheduleError:
            pass
