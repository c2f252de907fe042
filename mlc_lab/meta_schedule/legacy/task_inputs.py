"""Inputs of a task that must not be random, such as the places of a sparse matrix.

They are given by name, `SearchTask(task_inputs={"W_indptr": array})`, and may be kept in files
beside the records, so that a search goes on with them. Which tensor a name means: a placeholder of
that name, or what a function says that was registered with `register_task_input_check_func`.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ...reading import MISTAKES, DataError, reason
from ...te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor
from ...tir.expr import BufferLoad, ProducerLoad, Var
from ...tir.functor import pre_order
from ...tir.op import as_int
from ...tir.stmt import BufferStore, For

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from ...tir.function import PrimFunc

    CheckFunc = Callable[[Sequence[Tensor]], Mapping[Tensor, str]]

#: program -> name -> array
TASK_INPUT_BUFFER_TABLE: dict[str, dict[str, np.ndarray]] = {}
#: function's name -> function
TASK_INPUT_CHECK_FUNC_REGISTRY: dict[str, CheckFunc] = {}


def register_task_input_check_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Decorator: a function of the tensors of a program that says which of them take inputs of
    which name, {tensor: name}. ValueError for a name that is taken, unless `override`."""
    if callable(func_name):
        func_name, f = func_name.__name__, func_name
    if not isinstance(func_name, str):
        raise ValueError(f"a check function has a name, not {func_name!r}")

    def register(function: CheckFunc) -> CheckFunc:
        if func_name in TASK_INPUT_CHECK_FUNC_REGISTRY and not override:
            raise ValueError(f"there is a check function {func_name!r} already; override=True puts "
                             "this one in its place")
        TASK_INPUT_CHECK_FUNC_REGISTRY[func_name] = function
        return function

    return register(f) if f is not None else register


def register_task_input_buffer(workload_key: str, input_name: str, input_data: Any,
                               overwrite: bool = False, save_to_file: bool = False) -> np.ndarray:
    """Keep an input of a program by name, and with `save_to_file` in a file of this directory too.

    Raises ValueError where other data are known by that name, unless `overwrite`, and for a name
    that no file can have.
    """
    data = _array(input_data)
    table = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    known = table.get(input_name)
    if not overwrite and known is not None and not (
            known.dtype == data.dtype and np.array_equal(known, data)):
        raise ValueError(f"other data are known as task input {input_name} of this program: "
                         "task_inputs_overwrite=True puts these in their place")
    if save_to_file:
        _save(input_name, data)
    table[input_name] = data
    return data


def get_task_input_buffer(workload_key: str, input_name: str) -> np.ndarray:
    """An input of a program, registered or from a file. ValueError where there is none, DataError
    for a file that holds none."""
    table = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    if input_name not in table:
        found = _load(input_name)
        if found is None:
            raise ValueError(f"there are no data for task input {input_name}, registered or in a "
                             f"file {input_name}.*.npy of this directory")
        table[input_name] = found
    return table[input_name]


def _array(data: Any) -> np.ndarray:
    return np.array(data.numpy() if hasattr(data, "numpy") else data)


def _save(name: str, data: np.ndarray) -> None:
    if os.path.basename(name) != name or name in ("", ".", ".."):
        raise ValueError(f"task input {name!r} cannot be kept in a file of that name")
    for old in _files(name):
        os.remove(old)
    shape = "".join(f"{n}_" for n in data.shape)
    np.save(f"{name}.{shape}{data.dtype}.npy", data, allow_pickle=False)


def _files(name: str) -> list[str]:
    return sorted(f for f in os.listdir() if f.startswith(name + ".") and f.endswith(".npy")
                  and f.count(".") == name.count(".") + 2)


def _load(name: str) -> np.ndarray | None:
    for path in _files(name):
        try:
            with open(path, "rb") as file:
                return np.lib.format.read_array(file, allow_pickle=False)
        except (*MISTAKES, OSError, EOFError, MemoryError) as error:
            raise DataError(f"{path} holds no task input {name}: {reason(error)}") from None
    return None


# ------------------------------------------------------------------------- which tensor it is


def prepare_input_map(args: Sequence[Tensor], workload_key: str | None = None
                      ) -> dict[Tensor, str]:
    """The name of the input of each tensor that has one."""
    known = TASK_INPUT_BUFFER_TABLE.get(workload_key or "", {})
    found = {t: t.op.name for t in args if isinstance(t.op, PlaceholderOp) and t.op.name in known}
    for check in TASK_INPUT_CHECK_FUNC_REGISTRY.values():
        found.update(check(args))
    return found


def _named(args: Sequence[Tensor], names: Sequence[str]) -> dict[Tensor, str]:
    """Which of `names` each tensor is called by: its placeholder, or a registered function."""
    said = [{t: t.op.name for t in args if isinstance(t.op, PlaceholderOp)},
            *(check(args) for check in TASK_INPUT_CHECK_FUNC_REGISTRY.values())]
    out: dict[Tensor, str] = {}
    for table in said:
        for tensor, name in table.items():
            if name in names:
                out.setdefault(tensor, name)
    return out


def inputs_of(args: Sequence[Tensor], names: Sequence[str], workload_key: str
              ) -> dict[int, np.ndarray]:
    """The inputs called `names`, by the position of their tensors among `args`.

    Raises ValueError for data that do not fit the tensor, and where there are none; warns of a name
    that means no tensor.
    """
    table = _named(args, names)
    out = {}
    for at, tensor in enumerate(args):
        name = table.get(tensor)
        if name is None:
            continue
        data = get_task_input_buffer(workload_key, name)
        shape = tuple(as_int(d) for d in tensor.shape)
        if data.shape != shape or str(data.dtype) != tensor.dtype:
            raise ValueError(f"task input {name} is {data.dtype} of shape {data.shape}, and its "
                             f"tensor {tensor.name} is {tensor.dtype} of shape {shape}")
        out[at] = data
    unknown = [name for name in names if name not in table.values()]
    if unknown:
        warnings.warn(f"no tensor takes the task input {', '.join(unknown)}: inputs are named as "
                      "their placeholders, or by register_task_input_check_func", stacklevel=3)
    return out


def must_be_given(func: PrimFunc) -> list[int]:
    """The positions of parameters for which random values would not do: how often a loop runs is
    read from one; and those then that say where something is read or written."""
    bounds: set[Any] = set()
    places: set[Any] = set()
    for node in pre_order(func.body):
        if type(node) is For:
            bounds |= _read_in(node.min, node.extent)
        elif isinstance(node, (BufferLoad, BufferStore)):
            places |= _read_in(*node.indices)
    owners = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    if not any(b.data in bounds for b in owners):
        return []
    return [n for n, b in enumerate(owners) if b.data in bounds | places]


def _read_in(*exprs: Any) -> set[Var]:
    return {n.buffer.data for e in exprs for n in pre_order(e) if type(n) is BufferLoad}


@register_task_input_check_func
def sparse_dense_inputs(args: Sequence[Tensor]) -> dict[Tensor, str]:
    """The three tensors of the sparse matrix of `topi.nn.sparse_dense` in BSR:
    sparse_dense_bsr_<n>_<k>_<bs_r>_<bs_c>_<blocks>_<block rows + 1>_W_data and so on."""
    for op in _operations(args):
        if op.tag != "sparse_dense_sp_rhs_bsrmm" or len(op.input_tensors) != 1:
            continue
        block = op.input_tensors[0].op
        if not isinstance(block, ComputeOp) or not block.reduce_axis:
            continue
        indptr = {n.producer for n in pre_order(block.reduce_axis[0].dom.extent)
                  if type(n) is ProducerLoad}
        read = block.input_tensors
        data = [t for t in read if t.ndim == 3]
        dense = [t for t in read if t.ndim == 2]
        indices = [t for t in read if t.ndim == 1 and t not in indptr]
        if not len(data) == len(dense) == len(indices) == len(indptr) == 1:
            continue
        (rows,) = indptr
        sizes = [op.output(0).shape[1], dense[0].shape[1], *data[0].shape[1:],
                 indices[0].shape[0], rows.shape[0]]
        numbers = [as_int(n) for n in sizes]
        if None in numbers:
            continue
        prefix = "sparse_dense_bsr_" + "".join(f"{n}_" for n in numbers)
        return {data[0]: prefix + "W_data", indices[0]: prefix + "W_indices",
                rows: prefix + "W_indptr"}
    return {}


def _operations(args: Sequence[Tensor]) -> list[Operation]:
    from ...te.create_prim_func import operations

    return operations([t.op for t in args])


__all__ = ["TASK_INPUT_BUFFER_TABLE", "get_task_input_buffer", "inputs_of", "must_be_given",
           "prepare_input_map", "register_task_input_buffer", "register_task_input_check_func",
           "sparse_dense_inputs"]
