"""Files of numpy arrays (.npz): nothing in them is unpickled, and they get no more memory than they
hold."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

from . import limits
from .errors import DataError, LimitError, reason

_TROUBLE = (ValueError, KeyError, OSError, EOFError, TypeError, SyntaxError, OverflowError,
            MemoryError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error)


def read_arrays(path: Any, names: Sequence[str]) -> list[Any]:
    """The arrays of these names in a file that `numpy.savez` wrote.

    Raises FileNotFoundError, and DataError for what is no such file.
    """
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as found:
                sizes = sum(found.getinfo(f"{name}.npy").file_size for name in names)
                if sizes > limits.TEXT:
                    raise LimitError(f"{path} unfolds to {sizes} bytes, the bound is {limits.TEXT}")
                return [_array(found.read(f"{name}.npy")) for name in names]
        except LimitError:
            raise
        except _TROUBLE as error:
            raise DataError(f"{path} is no file of arrays, or is damaged: {reason(error)}"
                            ) from None


def _array(data: bytes) -> Any:
    """The array in the bytes of a .npy file: of numbers or texts, as long as its head says."""
    import numpy as np
    from numpy.lib import format as npy

    file = io.BytesIO(data)
    version = npy.read_magic(file)
    head = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = head(file)
    if dtype.kind not in "biufUS" or not all(d >= 0 for d in shape):
        raise DataError(f"there are no arrays of {dtype} here")
    if 0 in shape:
        return np.empty(shape, dtype)
    array = np.frombuffer(data, dtype, offset=file.tell())
    return array.reshape(shape, order="F" if by_columns else "C").copy()


__all__ = ["read_arrays"]
