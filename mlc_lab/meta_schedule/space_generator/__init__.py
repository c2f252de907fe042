"""Spaces: the programs a search chooses from."""

from .post_order_apply import PostOrderApply
from .schedule_fn import ScheduleFn
from .space_generator import PySpaceGenerator, SpaceError, SpaceGenerator
from .space_generator_union import SpaceGeneratorUnion

create = SpaceGenerator.create
#: the generators by name; None: that of a function
MAKERS = {"post-order-apply": PostOrderApply, "union": SpaceGeneratorUnion, None: ScheduleFn}

__all__ = ["PostOrderApply", "PySpaceGenerator", "ScheduleFn", "SpaceError", "SpaceGenerator",
           "SpaceGeneratorUnion", "create"]
