"""The registry of global functions."""

import numpy as np
import pytest

from mlc_lab.runtime import (
    NDArray,
    array,
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)


@pytest.fixture
def name():
    yield "test.registry.f"
    remove_global_func("test.registry.f")


def test_tensors_arrive_as_ndarray(name):
    seen = []

    @register_func(name, override=True)
    def f(a, b):
        seen.append(type(a))
        b[:] = a.numpy() * 2

    out = array(np.zeros(3, "float32"))
    get_global_func(name)(np.arange(3, dtype="float32"), out)
    assert seen == [NDArray] and out.numpy().tolist() == [0, 2, 4]
    assert name in list_global_func_names()


def test_a_taken_name_is_refused_unless_overridden(name):
    register_func(name, lambda: 1)
    with pytest.raises(ValueError, match="override=True"):
        register_func(name, lambda: 2)
    register_func(name, lambda: 2, override=True)
    assert get_global_func(name)() == 2


def test_a_missing_name_suggests_a_near_one(name):
    register_func(name, lambda: 1)
    with pytest.raises(ValueError, match="did you mean 'test.registry.f'"):
        get_global_func("test.registry.g")
    assert get_global_func("test.registry.g", allow_missing=True) is None


def test_errors_pass_through(name):
    @register_func(name)
    def f():
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        get_global_func(name)()
