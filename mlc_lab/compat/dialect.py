"""Other vintages of TVMScript: names that later (or earlier) versions use for the same things.

The parser looks here for a name after `T.`, and for a module, that it does not know; a schedule for
a method and for a parameter. `releases.py` says which releases had each.
"""

from __future__ import annotations

#: name in another version -> name here
T_NAMES: dict[str, str] = {
    # 0.24 and later: blocks of schedulable programs are "sblocks"
    "sblock": "block", "sblock_attr": "block_attr", "sblock_alloc_buffer": "alloc_buffer",
    "alloc_sblock_buffer": "alloc_buffer",
    # 0.7 to 0.11
    "store": "buffer_store", "realize": "realize",
    "tvm_call_cpacked": "call_cpacked",
}
#: module that a text may import -> module here
MODULE_NAMES: dict[str, str] = {
    "tvm.script.tirx": "tvm.script.tir", "tvm.script.parser.tir": "tvm.script.tir",
    "tvm.script.parser.ir": "tvm.script.ir",
}
#: method of a schedule in another version -> its name here
METHODS: dict[str, str] = {
    "get_sblock": "get_block",  # 0.24 and later
}
#: method of a schedule -> name of a parameter in another version -> name here
PARAMETERS: dict[str, dict[str, str]] = {
    "Schedule": {"debug_mode": "debug_mask"},  # under development before 0.8
    "blockize": {"loop": "target"},  # 0.9 to 0.12
}


__all__ = ["METHODS", "MODULE_NAMES", "PARAMETERS", "T_NAMES"]
