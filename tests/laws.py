"""Laws that hold for every program, checked the same way everywhere."""

from mlc_lab.ir.module import IRModule
from mlc_lab.ir.serialize import load_json, save_json
from mlc_lab.ir.structural import assert_structural_equal, structural_hash
from mlc_lab.script import from_source, print_with_spans
from mlc_lab.tir import verify_well_formed


def check_roundtrip(obj, **options):
    """Print and parse give the same program back, with and without syntax sugar, and as JSON.

    Options are those of `script` (`show_meta=True` where there are large constants). Returns the
    script.
    """
    text = obj.script(**options)
    again = from_source(text, check_well_formed=False)
    assert_structural_equal(obj, again)
    assert again.script(**options) == text
    assert structural_hash(obj) == structural_hash(again)
    assert_structural_equal(obj, from_source(
        obj.script(syntax_sugar=False, **options), check_well_formed=False))
    loaded = load_json(save_json(obj))
    assert_structural_equal(obj, loaded)
    assert loaded.script(**options) == text
    assert print_with_spans(obj, exprs=True, **options).text == text
    return text


def check_program(obj):
    """`check_roundtrip`, of a program that is well formed."""
    assert verify_well_formed(obj)
    if not isinstance(obj, IRModule):
        check_roundtrip(IRModule.from_expr(obj))
    return check_roundtrip(obj)
