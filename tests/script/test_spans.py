"""Where nodes stand in the printed text."""

from mlc_lab import tir
from mlc_lab.script import from_source, print_with_spans
from mlc_lab.tir.functor import pre_order

from .programs import BODIES, FUNCTIONS, HEADER, SIGNATURE


def cut(printed, span):
    """The text of a span."""
    _, line0, col0, line1, col1 = span
    lines = printed.text.split("\n")[line0:line1 + 1]
    lines[-1] = lines[-1][:col1]
    lines[0] = lines[0][col0:]
    return "\n".join(lines)


def programs():
    for text in BODIES.values():
        yield from_source(HEADER + SIGNATURE + text)
    for text in FUNCTIONS.values():
        yield from_source(HEADER + text, check_well_formed=False)


def test_every_statement_has_a_place_that_starts_with_its_own_text():
    starts = {tir.BufferStore: None, tir.IfThenElse: "if ", tir.While: "while ",
              tir.LetStmt: None, tir.BlockRealize: None}
    for func in programs():
        printed = print_with_spans(func)
        assert printed.text == func.script()
        for node in pre_order(func.body):
            if isinstance(node, (tir.Block, tir.For)) or type(node) in starts:
                places = printed.of(node)
                assert places, f"{type(node).__name__} has no place in\n{printed.text}"
                text = cut(printed, places[0])
                assert text == text.strip()
                assert text.startswith(starts.get(type(node)) or "")


def test_expressions_have_places_with_their_text():
    func = from_source(HEADER + SIGNATURE + BODIES["split_and_where"])
    printed = print_with_spans(func, exprs=True)
    block = next(n for n in pre_order(func.body) if isinstance(n, tir.BufferStore))
    assert {cut(printed, s) for s in printed.of(block.value)} == {"A[vi, vj]"}
    realize = next(n for n in pre_order(func.body) if isinstance(n, tir.BlockRealize)
                   and n.iter_values)
    assert [cut(printed, s) for s in printed.of(realize.iter_values[1])] == ["j_0 * 5 + j_1"]
    assert [cut(printed, s) for s in printed.of(realize.predicate)] == ["j_0 * 5 + j_1 < 16"]


def test_loops_of_a_grid_have_their_own_places():
    func = from_source(HEADER + SIGNATURE + BODIES["split_and_where"])
    printed = print_with_spans(func)
    loops = [n for n in pre_order(func.body) if isinstance(n, tir.For)]
    assert [cut(printed, printed.of(loop, "loop")[0]) for loop in loops] == ["i", "j_0", "j_1"]
    assert [cut(printed, printed.of(loop, "extent")[0]) for loop in loops] == ["16", "4", "5"]
    assert cut(printed, printed.of(loops[0], "body")[0]).startswith("with T.block")
    assert cut(printed, printed.of(loops[0], "stmt")[0]).startswith("for i, j_0, j_1 in T.grid")


def test_buffers_have_their_definitions():
    func = from_source(HEADER + SIGNATURE + BODIES["alloc_buffer"])
    printed = print_with_spans(func)
    assert cut(printed, printed.of(func.buffers[0])[0]) == 'A: T.Buffer((16, 16), "float32")'
    allocs = func.body.block.alloc_buffers
    assert [cut(printed, printed.of(b)[0]) for b in allocs] == [
        "C = T.alloc_buffer((16, 16))", 'D = T.alloc_buffer((16,), "float16", scope="shared")',
        'E = T.alloc_buffer((), "int32")']
    assert printed.find(func.buffers[0]) == (3, 9, 3, 41)


def test_underlining_and_notes():
    func = from_source(HEADER + SIGNATURE + BODIES["reduction"])
    store = next(n for n in pre_order(func.body) if isinstance(n, tir.BufferStore))
    loop = func.body.block.body
    text = func.script(obj_to_underline=[store, loop.body], num_context_lines=1)
    lines = text.split("\n")
    at = next(k for k, line in enumerate(lines) if "B[vi, 0] = T.float32(0.0)" in line)
    assert lines[at + 1].strip() == "^" * len("B[vi, 0] = T.float32(0.0)")
    assert lines[0] == "..."
    at = next(k for k, line in enumerate(lines) if "T.grid" in line)
    assert lines[at + 1].split() == ["^", "^^"]
    noted = func.script(obj_to_annotate={store: "the start"})
    assert "B[vi, 0] = T.float32(0.0)  # the start" in noted
