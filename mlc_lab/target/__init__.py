"""What code is generated for: `Target("llvm -mcpu=skylake -num-cores=4")`."""

from .kind import KINDS, TargetKind
from .tag import list_tags, register_tag
from .target import Target, cuda, detect_target, llvm

create = Target  # as TVM before 0.8 has it

__all__ = ["KINDS", "Target", "TargetKind", "create", "cuda", "detect_target", "list_tags", "llvm",
           "register_tag"]
