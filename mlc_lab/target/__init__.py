"""What code is generated for: `Target("llvm -mcpu=skylake -num-cores=4")`."""

from .kind import KINDS, TargetKind
from .target import Target, cuda, detect_target, llvm

__all__ = ["KINDS", "Target", "TargetKind", "cuda", "detect_target", "llvm"]
