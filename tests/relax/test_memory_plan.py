"""The memory planner: which tensors take turns, and where pieces lie in their block."""

from mlc_lab.relax.memory_plan import Piece, pack, share
from mlc_lab.tir import Var


def shared(*tensors):
    """The number of the piece of each tensor (size, first, last), and the sizes of the pieces."""
    pieces = share((size, "float32", first, last) for size, first, last in tensors)
    order = list(dict.fromkeys(pieces))
    return [order.index(p) for p in pieces], [p.size for p in order]


def test_tensors_take_turns_after_the_last_use():
    assert shared((64, 0, 1), (64, 1, 2), (64, 2, 3)) == ([0, 1, 0], [64, 64])


def test_the_size_that_fits_best_is_taken():
    tensors = (1000, 0, 0), (70, 0, 0), (900, 0, 0), (64, 1, 2), (800, 1, 2)
    assert shared(*tensors) == ([0, 1, 2, 1, 2], [1000, 70, 900])


def test_a_piece_grows_for_a_tensor_that_is_not_much_larger():
    assert shared((64, 0, 0), (1024, 1, 1)) == ([0, 0], [1024])
    assert shared((64, 0, 0), (1040, 1, 1)) == ([0, 1], [64, 1040])
    assert shared((1040, 0, 0), (64, 1, 1)) == ([0, 1], [1040, 64])


def test_unknown_sizes_are_shared_where_they_are_equal():
    n = Var("n", "int64")
    numbers, _ = shared((n * 4, 0, 0), (64, 0, 0), (n * 8, 1, 1), (n * 4, 2, 2))
    assert numbers == [0, 1, 2, 0]


def test_pieces_lie_over_each_other_where_their_uses_do_not_overlap():
    a, b, c = Piece(1000, 0, 1), Piece(300, 2, 3), Piece(200, 3, 4)
    assert pack([a, b, c]) == 1024
    assert (a.offset, b.offset, c.offset) == (0, 0, 384)
    n = Var("n", "int64")
    lanes = Piece(n, 0, 1), Piece(n, 1, 2), Piece(n, 2, 3)
    assert pack(lanes) == 0 and [p.lane for p in lanes] == [0, 1, 0]
