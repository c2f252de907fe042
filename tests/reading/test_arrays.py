"""Files of arrays: what savez wrote is read, everything else refused."""

import io
import zipfile

import numpy as np
import pytest

from mlc_lab.reading import DataError
from mlc_lab.reading.arrays import read_arrays


def test_what_numpy_wrote_is_read(tmp_path):
    a, b = np.arange(6.0).reshape(2, 3), np.array(["x", "yy"])
    np.savez(tmp_path / "a.npz", a=a, b=b, c=np.zeros((0, 0)), d=np.asfortranarray(a))
    for got, want in zip(read_arrays(tmp_path / "a.npz", "abcd"), (a, b, np.zeros((0, 0)), a)):
        assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all()


def test_other_files_are_refused_and_nothing_is_unpickled(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.array([{}, print], dtype=object))
    with pytest.raises(DataError, match="no arrays of object"):
        read_arrays(path, "a")
    whole = io.BytesIO()
    np.savez(whole, a=np.arange(100.0))
    whole = whole.getvalue()
    for data in (b"", b"PK", whole[:-30], whole[: len(whole) // 2], b"x" * 100):
        path.write_bytes(data)
        with pytest.raises(DataError):
            read_arrays(path, "a")
    path.write_bytes(whole)
    with pytest.raises(DataError, match="no file of arrays"):
        read_arrays(path, "b")


def test_a_head_that_promises_more_than_there_is_gets_no_memory(tmp_path):
    made = io.BytesIO()
    np.save(made, np.zeros(3))
    for shape in ("(10**15,)", "(1000000000000000,)", "(-1,)", "(1000000, 1000000)"):
        body = made.getvalue().replace(b"(3,)", shape.encode())
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
            file.writestr("a.npy", body)
        with pytest.raises(DataError):
            read_arrays(tmp_path / "a.npz", "a")
