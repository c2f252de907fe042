"""Paths from an object to a part of it."""

import pytest

from mlc_lab.runtime import ObjectPath
from mlc_lab.runtime.object_path import ArrayIndexPath, RootPath

PATHS = [
    (ObjectPath.root(), "<root>"), (ObjectPath.root("mod"), "mod"),
    (ObjectPath.root().attr("body"), "<root>.body"),
    (ObjectPath.root().attr(None), "<root>.<unknown attribute>"),
    (ObjectPath.root().array_index(2), "<root>[2]"),
    (ObjectPath.root().missing_array_element(2), "<root>[<missing element #2>]"),
    (ObjectPath.root().map_value("k"), '<root>["k"]'),
    (ObjectPath.root().missing_map_entry(), "<root>[<missing entry>]"),
]


def test_each_step_has_its_text_and_equals_only_itself():
    for i, (path, text) in enumerate(PATHS):
        assert str(path) == text
        for j, (other, _) in enumerate(PATHS):
            assert (path == other) == (i == j)
            assert (hash(path) == hash(other)) or i != j


def test_prefixes():
    path = ObjectPath.root().attr("body").array_index(3)
    assert isinstance(path, ArrayIndexPath) and len(path) == 3
    assert path.get_prefix(2) == path.parent == ObjectPath.root().attr("body")
    assert isinstance(path.get_prefix(1), RootPath) and path.get_prefix(1).parent is None
    assert path.parent.is_prefix_of(path) and not path.is_prefix_of(path.parent)
    with pytest.raises(IndexError, match="at least 1"):
        path.get_prefix(0)
    with pytest.raises(IndexError, match="longer than the path"):
        path.get_prefix(4)
