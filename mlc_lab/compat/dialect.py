"""Other vintages of TVMScript: names that later (or earlier) versions use for the same things.

The parser looks here for a name after `T.` that it does not know.
"""

from __future__ import annotations

from typing import Any

from ..script import entry, forms, tir

#: name in another version -> name here
T_NAMES: dict[str, str] = {
    # 0.21 and later: blocks of schedulable programs are "sblocks"
    "sblock": "block", "sblock_attr": "block_attr", "sblock_alloc_buffer": "alloc_buffer",
    "alloc_sblock_buffer": "alloc_buffer",
    # before 0.10
    "store": "buffer_store", "realize": "realize",
    "tvm_call_cpacked": "call_cpacked", "Var": "var",
}
#: module that a text may import -> module here
MODULE_NAMES: dict[str, str] = {
    "tvm.script.tirx": "tvm.script.tir", "tvm.script.parser.tir": "tvm.script.tir",
    "tvm.script.parser.ir": "tvm.script.ir",
}


def _buffer_arguments(key: Any) -> tuple:
    """`(128,), "float32"` of `T.Buffer[(128,), "float32"]`, the form before TVM 0.11."""
    typed = isinstance(key, tuple) and key and isinstance(key[-1], (str, tir.DtypeName))
    return key if typed else (key,)


def _register() -> None:
    # Python evaluates an annotation before the parser sees it, and the parser reads it again
    tir.BufferName.__getitem__ = lambda self, key: self(*_buffer_arguments(key))
    tir.SUBSCRIPTS[tir.BufferName] = lambda parser, word, key: (
        forms.FORMS.buffer(parser, *_buffer_arguments(key)))
    for name, known in T_NAMES.items():
        if known in vars(tir):
            tir.OTHER_NAMES[name] = vars(tir)[known]
    for name, known in MODULE_NAMES.items():
        entry.MODULES.setdefault(name, entry.MODULES[known])


_register()

__all__ = ["MODULE_NAMES", "T_NAMES"]
