"""What operations on numbers give: numpy and torch agree where they say anything."""

import math

import numpy as np
import pytest

from mlc_lab.tir import Div, FloorDiv, FloorMod, Max, Min, Mod, Mul, Sub, Add
from mlc_lab.tir import numbers
from mlc_lab.tir.numbers import FLOAT_OPS, INT_OPS

NAN, INF = math.nan, math.inf
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, -0.1, 2.5, -2.5, 7.0, -7.0, 1e-40, 1e20, -1e20, INF, -INF,
           NAN]


def same(a, b):
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)


@pytest.mark.parametrize("kind, name", [
    (Div, "true_divide"), (FloorDiv, "floor_divide"), (FloorMod, "remainder"), (Mod, "fmod"),
    (Max, "maximum"), (Min, "minimum"), (Add, "add"), (Sub, "subtract"), (Mul, "multiply")])
def test_floats_compute_as_torch_does(kind, name):
    torch = pytest.importorskip("torch")
    for a in SPECIAL:
        for b in SPECIAL:
            got = FLOAT_OPS[kind](a, b)
            want = getattr(torch, name)(torch.tensor(a, dtype=torch.float64),
                                        torch.tensor(b, dtype=torch.float64)).item()
            if kind in (Max, Min) and a == b == 0:
                want = a  # torch gives either
            assert same(got, want), (kind, a, b, got, want)


def test_a_quotient_that_is_rounded_down_is_whole_and_goes_with_the_remainder():
    assert FLOAT_OPS[FloorDiv](1.0, 0.1) == 9 and FLOAT_OPS[FloorMod](1.0, 0.1) < 0.1
    assert FLOAT_OPS[FloorDiv](-1.0, INF) == -1 and FLOAT_OPS[FloorMod](-1.0, INF) == INF


def test_integer_divisions_at_the_ends():
    for kind, want in ((Div, 128), (FloorDiv, 128), (Mod, 0), (FloorMod, 0)):
        assert INT_OPS[kind](-128, -1) == want
        with pytest.raises(ZeroDivisionError):
            INT_OPS[kind](1, 0)
    assert numbers.fit("int8")(128) == -128


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
def test_floats_become_integers_as_in_torch(dtype):
    torch = pytest.importorskip("torch")
    values = [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.9, 128.0, 255.0, 256.0, 300.7, -1.0, -200.0,
              65535.0, 2147483520.0, -2147483648.0]
    if dtype in ("int32", "int64"):  # what is too large is left open for the others
        values += [2147483648.0, 1e10, -1e10, 1e20, -1e20, INF, -INF, NAN, 2 ** 63, -(2 ** 63)]
    for value in values:
        want = torch.tensor(value, dtype=torch.float32).to(getattr(torch, dtype)).item()
        assert numbers.float_to_int(float(np.float32(value)), dtype) == want, (value, dtype)


def test_what_no_integer_holds_is_the_smallest_of_the_word_on_the_way():
    for value in (NAN, INF, -INF, 1e30):
        assert numbers.float_to_int(value, "int32") == -2 ** 31
        assert numbers.float_to_int(value, "uint32") == 0
        assert numbers.float_to_int(value, "int8") == 0
        assert numbers.float_to_int(value, "uint64") == 2 ** 63
    assert numbers.float_to_int(1.5 * 2 ** 63, "uint64") == 3 * 2 ** 62


def test_large_integers_are_rounded_once():
    value = (1 << 60) + (1 << 36) + 1  # a tie for float32, but for its last bit
    assert numbers.int_to_float(value, "float32") == float(np.int64(value).astype(np.float32))
    assert numbers.int_to_float(value, "float32") != np.float32(float(value))


@pytest.mark.parametrize("count", [-1, 0, 3, 31, 32, 40, 10 ** 9])
def test_shifts_by_any_count_are_those_of_numpy(count):
    for x in (1, -5, 2 ** 31 - 1):
        left = numbers.fit("int32")(numbers.shift_left(32)(x, count))
        assert left == np.left_shift(np.int32(x), np.int32(count))
        assert numbers.shift_right(32)(x, count) == np.right_shift(np.int32(x), np.int32(count))


def test_powers_of_integers_wrap_around_and_negative_ones_are_those_of_torch():
    torch = pytest.importorskip("torch")
    for x in (0, 1, -1, 2, 3, -7, 2 ** 31 - 1):
        for n in (0, 1, 2, 5, 31, 33, -1, -2, -3):
            want = (torch.tensor(x, dtype=torch.int32) ** torch.tensor(n, dtype=torch.int32)).item()
            assert numbers.fit("int32")(numbers.int_power(32)(x, n)) == want, (x, n)
    assert numbers.int_power(32)(3, 10 ** 12) < 2 ** 32  # and takes no time
