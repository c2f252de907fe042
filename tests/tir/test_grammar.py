"""The grammar at the top of `mlc_lab.tir` names every class, and only classes that exist."""

import re

import mlc_lab.tir as tir
from mlc_lab.ir.node import NODE_TYPES

_BASES = {"PrimExpr", "BinaryOp", "CmpOp", "Stmt", "BaseFunc", "GlobalVar"}


def test_grammar_and_classes_agree():
    text = tir.__doc__
    grammar = text[text.index("Expr   ="):text.index("Read `expr.py`")]
    named = set(re.findall(r"\b([A-Z][A-Za-z]+)\b", grammar)) - {"Expr", "Parts", "Func"}
    declared = {name for name, cls in NODE_TYPES.items()
                if cls.__module__.startswith("mlc_lab.tir")} - _BASES
    assert declared == named - {"Stmt"}


def test_fields_in_the_grammar_are_the_fields_of_the_class():
    text = tir.__doc__
    for name, fields in re.findall(r"\b([A-Z][A-Za-z]+)\(([^)]*)\)", text):
        wanted = [f.strip().rstrip("?") for f in fields.replace("\n", " ").split(",")]
        wanted = [f for f in wanted if f and f != "..."]
        have = [f for f, _ in NODE_TYPES[name].fields]
        assert wanted == have[:len(wanted)], f"{name}: {wanted} against {have}"
