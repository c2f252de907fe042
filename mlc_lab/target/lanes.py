"""Which targets let the lanes of a warp read each other's values, and values of which types.

CUDA, and PTX: warps of 32 lanes (CUDA C++ Programming Guide, "Warp Shuffle Functions"). Metal: the
GPUs of Apple, whose SIMD groups have 32 lanes, as the target says by its `thread_warp_size`; no
numbers of 64 bits (Metal Shading Language Specification, "SIMD-group Functions"). WebGPU and OpenCL
have it as an extension, and leave open how many lanes there are: a target has to say both, by
`-supports_subgroups=1` and `-thread_warp_size`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .target import Target

_WORDS = ("int32", "uint32", "float32")
_SHORT = ("int16", "uint16", "float16", "int8", "uint8")
_LONG = ("int64", "uint64", "float64")
_ALL = frozenset((*_WORDS, *_SHORT, *_LONG, "bfloat16", "bool"))
_TYPES: dict[str, frozenset[str]] = {
    "cuda": _ALL, "nvptx": _ALL, "metal": frozenset((*_WORDS, *_SHORT)),
    "webgpu": frozenset((*_WORDS, "float16")),
    "opencl": frozenset((*_WORDS, *_SHORT, *_LONG)),
}


def lanes_of_warp(target: Target | None, dtypes: Iterable[str] = ()) -> int:
    """How many threads can read each other's values without memory, where these have some types;
    0 where they cannot."""
    types = _TYPES.get(target.kind.name) if target is not None else None
    if target is None or types is None or not types.issuperset(dtypes):
        return 0
    if target.kind.name in ("cuda", "nvptx"):
        return 32
    says = target.attrs.get("supports_subgroups") or target.kind.name == "metal"
    lanes = target.thread_warp_size
    return lanes if says and (lanes == 32 or target.kind.name != "metal") and (
        lanes in (4, 8, 16, 32, 64, 128)) else 0


__all__ = ["lanes_of_warp"]
