"""The grammar at the top of `mlc_lab.relax` names every class, and only classes that exist."""

import re

import mlc_lab.relax as relax
from mlc_lab.ir.node import NODE_TYPES

_BASES = {"Expr", "Binding", "StructInfo"}
_LOWER = {"GlobalVar"}  # declared by `ir`


def _grammar():
    text = relax.__doc__
    return text[text.index("Expr    ="):text.index("Values are in normal form")]


def test_grammar_and_classes_agree():
    named = set(re.findall(r"\b([A-Z][A-Za-z]+)\b", _grammar())) - {"Block", "Info", "Expr",
                                                                    "Binding"}
    declared = {cls.__name__ for key, cls in NODE_TYPES.items() if key.startswith("relax.")}
    assert declared - _BASES == named - _LOWER


def test_fields_in_the_grammar_are_the_fields_of_the_class():
    for name, fields in re.findall(r"\b([A-Z][A-Za-z]+)\(([^)]*)\)", _grammar()):
        wanted = [f.strip() for f in fields.replace("\n", " ").split(",")]
        cls = NODE_TYPES.get(f"relax.{name}") or NODE_TYPES[name]
        assert wanted == [f for f, _ in cls.fields][:len(wanted)], name
