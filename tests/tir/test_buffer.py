"""Buffers: what they are declared with."""

from mlc_lab.tir import decl_buffer


def test_the_scope_of_another_buffer_is_a_scope_like_its_name():
    other = decl_buffer((4,), scope="local")
    made = decl_buffer((4,), scope=other.scope)
    assert type(made.data.type_annotation.storage_scope) is str
