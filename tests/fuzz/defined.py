"""Whether a lowered program defines each variable before it is used: memory, sizes, loops."""

from mlc_lab.tir.function import PrimFunc
from mlc_lab.tir.functor import all_statements, free_vars
from mlc_lab.tir.stmt import AttrStmt

#: attributes that define the variable of a thread axis
_AXES = ("thread_extent", "virtual_thread")


def undefined(mod):
    """The variables that a function of the module uses where nothing has defined them yet."""
    found = []
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            known = set(func.params)
            for buffer in func.buffer_map.values():
                parts = (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset)
                known.update(v for part in parts if part is not None for v in free_vars(part))
            known.update(item.node.var for item in all_statements(func.body)
                         if isinstance(item, AttrStmt) and item.attr_key in _AXES)
            found += [v for v in free_vars(func.body) if v not in known]
    return found
