"""JSON is read with its depth, numbers and keys checked first."""

import json

import pytest

from mlc_lab.reading import DataError, LimitError, MLCError, limits, read_json


def test_values_come_as_json_has_them():
    value = {"a": [1, 2.5, None, True, "[{" * 300], "b": {"c": "\\\"["}}
    assert read_json(json.dumps(value), "it") == value
    assert read_json(json.dumps(value).encode(), "it") == value
    assert read_json("[1e308, 1e-999, -2.5E100]", "it") == [1e308, 0.0, -2.5e100]
    deep = "[" * limits.JSON_DEPTH + "]" * limits.JSON_DEPTH
    assert read_json(deep, "it")
    wide = "[" + ",".join(["[]"] * 10_000) + "]"
    assert len(read_json(wide, "it")) == 10_000


@pytest.mark.parametrize("text, words", [
    ("", "not JSON"), ("[1, 2", "line 1, column 6"), ("{\n  'a': 1}", "line 2, column 3"),
    (b"\xff\xfe", "UTF-8"), ("[NaN]", "finite"), ("[-Infinity]", "finite"),
    ('{"a": 1, "b": 2, "a": 3}', "'a' twice"), ("9" * 5000, "fits no type"),
    ("[" * 100_000, "levels deep"), ("[" * 100_000 + "]" * 100_000, "levels deep"),
    ('{"a":' * 100_000, "levels deep"), ('[{"a": "]]]"}, ' * 300, "levels deep"),
    (17, "expected a text"), ("[1e999]", "fits no type"), ("-1.5E+1000", "fits no type"),
    ("9" * 400 + ".5", "fits no type"),
], ids=lambda v: repr(v)[:20])
def test_what_is_no_json_is_refused(text, words):
    with pytest.raises(DataError, match=words) as raised:
        read_json(text, "this trace")
    assert isinstance(raised.value, MLCError) and isinstance(raised.value, ValueError)
    assert "this trace" in str(raised.value)


def test_brackets_and_digits_in_strings_do_not_count():
    assert read_json(json.dumps({"s": "[" * 1000 + "9" * 1000, "t": [[]] * 300}), "it")
    with pytest.raises(LimitError):
        read_json('{"s": "' + "[" * 1000 + '", "n": ' + "9" * 5000 + "}", "it")
    with pytest.raises(LimitError):
        read_json('{"n": ' + "9" * 78 + "}", "it")
    assert read_json('{"n": ' + "9" * 76 + ', "s": "' + "9" * 80 + '"}', "it")
    with pytest.raises(LimitError):
        read_json('{"s": "\\\\", "n": ' + "[" * 1000, "it")
