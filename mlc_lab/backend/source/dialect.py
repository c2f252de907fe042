"""What a language for kernels writes differently from the others: the rows of its table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from .generator import KernelGen

#: makes the lines that open a function and, after its body, those that close it
Frame = Callable[["KernelGen", "list[str]", "list[str]"], "list[str]"]


@dataclass(frozen=True)
class Dialect:
    """A language for kernels.

    Attributes
    ----------
    types : dict
        What a dtype is called; a dtype that is not there does not exist in the language.
    memory_types : dict
        Those that memory can hold under another name, or "" where it cannot hold them.
    functions : dict
        Names of math functions by TensorIR's intrinsic. A name with "{0}" in it is a template of
        the arguments.
    helpers : dict
        Functions that the language lacks, by the name that a row of `functions` calls; they stand
        before the kernels that use them. "{T}" is the type.
    constants : (str, str)
        How infinity and not-a-number are written.
    frame : function
        Writes a kernel around the lines of its body.
    vector_access : dict
        (lanes) -> templates of a load and a store of that many consecutive elements of float32:
        "{buffer}", "{index}", "{value}", "{type}"; an index must be a multiple of the lanes where
        `aligned_vectors` is set.
    async_copy, async_commit, async_wait : str
        Templates of a copy to shared memory that threads do not wait for ("{to}", "{source}",
        "{bytes}"), of the end of a group of them, and of a wait until at most "{count}" groups are
        under way; "" where there are none.
    shuffles : dict
        Templates of a value that another lane has, by what follows `tvm_warp_shuffle` in the name:
        "{mask}", "{value}", "{lane}", and "{group}", which is ", n" where lanes are parted into
        groups of n. Without "{group}" there are none but whole warps.
    shuffle_lines : tuple of str
        Lines that a source with shuffles begins with.
    """

    name: str
    title: str
    extension: str
    types: dict[str, str]
    functions: dict[str, str]
    constants: tuple[str, str]
    frame: Frame
    barrier: str
    reserved: frozenset[str]
    memory_types: dict[str, str] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    suffixes: dict[str, str] = field(default_factory=dict)
    c_like: bool = True
    unroll: str = "#pragma unroll"
    vector_types: tuple[str, ...] = ()
    vector_lanes: tuple[int, ...] = ()
    vector_load: str = ""
    vector_store: str = ""
    aligned_vectors: bool = True
    async_copy: str = ""
    async_commit: str = ""
    async_wait: str = ""
    shuffles: dict[str, str] = field(default_factory=dict)
    shuffle_lines: tuple[str, ...] = ()
    preamble: Callable[[set[str]], list[str]] = lambda used: []


#: words that a C-like language keeps for itself
C_WORDS = frozenset("""
auto bool break case char const constant continue default do double else enum extern float for
global goto half if inline int kernel local long private register restrict return short signed
sizeof static struct switch typedef union unsigned void volatile while device thread threadgroup
main vector vec_step event_t image2d_t sampler_t size_t ptrdiff_t uint ulong ushort uchar true false
and or not xor class namespace new delete operator template this throw try using virtual public
private protected friend typename asm bitand bitor compl
""".split())


__all__ = ["C_WORDS", "Dialect", "Frame"]
