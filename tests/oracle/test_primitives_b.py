"""Primitives that rewrite buffers and blocks: the same script and trace as apache-tvm's.

Where TVM's own result would compute something else (see `DIFFERS`), we refuse or add what is
missing, and the test says so.
"""

from functools import lru_cache

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import tir as T
from schedule.common import chain, matmul, mm_relu, row_sum
from schedule.test_blockize import with_unit
from schedule.test_padding import odd_matmul, pad2d
from schedule.test_reindex import conv2d
from schedule.test_rfactor import sum3
from schedule.test_transform_layout import fourteen

from .bridge import ask, needs_oracle


@T.prim_func
def transposed(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi] + T.float32(1)


PROGRAMS = {"chain": chain, "matmul": matmul, "mm_relu": mm_relu, "row_sum": row_sum,
            "with_unit": with_unit, "odd_matmul": odd_matmul, "pad2d": pad2d, "conv2d": conv2d,
            "sum3": sum3, "fourteen": fourteen, "transposed": transposed}

#: b, c are blocks; i, j, k the loops of b
Y = 'b = sch.get_block("Y"); c = sch.get_block("C"); i, j, k = sch.get_loops(b)\n'
MM = 'b = sch.get_block("C"); i, j, k = sch.get_loops(b)\n'
BC = 'b = sch.get_block("B"); c = sch.get_block("C"); i, j = sch.get_loops(b)\n'
BR = 'b = sch.get_block("B"); i, k = sch.get_loops(b)\n'
TILE = ("i0, i1 = sch.split(i, [None, 4]); j0, j1 = sch.split(j, [None, 4])\n"
        "sch.reorder(i0, j0, i1, j1)\n")
TILE3 = ("i0, i1 = sch.split(i, [None, 4]); j0, j1 = sch.split(j, [None, 4])\n"
         "k0, k1 = sch.split(k, [None, 4]); sch.reorder(i0, j0, k0, i1, j1, k1)\n")
CONV = 'b = sch.get_block("Y"); n, h, w, co, rh, rw, rc = sch.get_loops(b)\n'
PAD = 'b = sch.get_block("y"); i, j = sch.get_loops(b)\n'

CASES = [
    # cache_read, cache_write
    ("mm_relu", Y + 'sch.cache_read(b, 0, "shared")'),
    ("mm_relu", Y + 'sch.cache_read(c, "Y", "shared")'),
    ("mm_relu", Y + 'sch.cache_write(b, 0, "local")'),
    ("mm_relu", Y + 'sch.cache_write(c, 0, "local")'),
    ("mm_relu", Y + 'sch.split(i, [None, 8]); sch.cache_read(b, 1, "local"); '
                    'sch.cache_read(b, 1, "local")'),
    ("mm_relu", Y + 'sch.reverse_compute_at(c, j); sch.cache_read(c, 0, "local")'),
    ("mm_relu", Y + 'sch.reverse_compute_at(c, i); sch.cache_write(b, 0, "local")'),
    ("mm_relu", Y + 'sch.reverse_compute_at(c, i); sch.cache_write(c, 0, "local")'),
    ("mm_relu", Y + 'sch.cache_write(b, 0, "shared.dyn"); sch.cache_read(c, 0, "shared")'),
    ("transposed", BC + 'sch.cache_read("C", "B", "shared", consumer_blocks=["C"])'),
    ("transposed", BC + TILE + 'sch.blockize(i1); sch.cache_write("B_o", 0, "local")'),
    ("transposed", BC + TILE + 'sch.blockize(i1); sch.cache_write("B", 0, "local")'),
    ("transposed", BC + TILE + 'sch.blockize(i1); sch.cache_read("B", 0, "local")'),
    # set_scope, storage_align, unsafe_set_dtype
    ("mm_relu", Y + 'sch.set_scope(b, 0, "shared"); sch.storage_align(b, 0, 0, 32, 8); '
                    'sch.storage_align(b, 0, 1, 4, 1); sch.storage_align(b, 0, -2, 32, 9)'),
    ("transposed", BC + 'sch.set_scope("B", "B", "shared.dyn")'),
    ("transposed", BC + 'sch.set_scope("B", 0, "global")'),
    ("transposed", BC + 'sch.unsafe_set_dtype("B", 0, "float16")'),
    # rfactor
    ("row_sum", BR + "sch.rfactor(k, 0)"),
    ("row_sum", BR + "sch.rfactor(k, -1)"),
    ("row_sum", BR + "k0, k1 = sch.split(k, [None, 6]); r = sch.rfactor(k0, 1); "
                     "sch.parallel(sch.get_loops(r)[1]); sch.rfactor(sch.get_loops(b)[-1], 0)"),
    ("row_sum", BR + 'k0, k1 = sch.split(k, [None, 6]); sch.parallel(i); '
                     'sch.annotate(k1, "x", 1); sch.rfactor(k0, 0)'),
    ("sum3", 'b = sch.get_block("B"); i, j, k = sch.get_loops(b); sch.rfactor(j, 1)'),
    ("mm_relu", Y + "sch.reverse_compute_at(c, i); k0, k1 = sch.split(k, [None, 4]); "
                    "sch.rfactor(k1, 2)"),
    # reindex
    ("transposed", BC + 'sch.reindex(c, ("read", 0)); sch.reindex(c, ("write", 0))'),
    ("conv2d", CONV + 'sch.reindex(b, ("read", 0)); sch.reindex(b, "W"); '
                      'sch.reindex(b, ("write", 0))'),
    ("transposed", BC + 'sch.reindex_cache_read(c, 0, "local", '
                        'lambda vi, vj: (vj // 4, vi, vj % 4))'),
    ("mm_relu", Y + 'sch.reindex_cache_read(b, 0, "local", lambda i, j, k: (k, i))'),
    ("mm_relu", Y + 'sch.reverse_compute_at(c, i); '
                    'sch.reindex_cache_write(b, 0, "local", lambda i, j, k: (j, i))'),
    ("mm_relu", Y + 'sch.fuse(i, j); '
                    'sch.reindex_cache_read(b, 0, "local", lambda i, j, k: (k, i))'),
    ("conv2d", CONV + 'sch.reindex_cache_read(b, 1, "shared", '
                      'lambda n, h, w, co, rh, rw, rc: (co // 2, rh, rw, rc, co % 2))'),
    # transform_layout, transform_block_layout, reorder_block_iter_var
    ("transposed", BC + 'sch.transform_layout(b, ("write", 0), '
                        'lambda m, n: (m // 4, n // 4, m % 4, n % 4))'),
    ("transposed", BC + 'sch.transform_layout(c, "C", lambda m, n: [m * 16 + n])'),
    ("matmul", MM + 'sch.transform_layout(b, ("read", 1), lambda k, j: (j // 8, k, j % 8))'),
    ("fourteen", 'sch.transform_layout("B", "B", lambda i: (i // 4, i % 4), pad_value=0.0)'),
    ("fourteen", 'sch.transform_layout("B", "B", lambda i: ((i + 2) // 4, (i + 2) % 4), '
                 'pad_value=0.0)'),
    ("fourteen", 'sch.transform_layout("C", "C", lambda i: (i // 4, i % 4), '
                 'pad_value=lambda i, j: T.float32(7))'),
    ("mm_relu", Y + 'sch.transform_layout(b, ("write", 0), lambda i, j: (j, i // 5, i % 5), '
                    'pad_value=0.0)'),
    ("mm_relu", Y + TILE3 + 'r = sch.blockize(i1); sch.transform_layout(r, ("write", 0), '
                            'lambda i, j: (i // 4, j, i % 4))'),
    ("transposed", BC + "sch.transform_block_layout(b, lambda i, j: (j, i // 4, i % 4))"),
    ("matmul", MM + "sch.transform_block_layout(b, lambda i, j, k: (i * 16 + j, k))"),
    ("conv2d", CONV + "sch.transform_block_layout(b, lambda n, h, w, co, rh, rw, rc: "
                      "(n * 16 + h * 4 + w, co, rh * 6 + rw * 2 + rc))"),
    ("matmul", MM + "sch.reorder_block_iter_var(b, [2, 0, 1])"),
    # blockize
    ("transposed", BC + TILE + "sch.blockize(i1)"),
    ("transposed", BC + TILE + "sch.blockize(j1, preserve_unit_iters=False)"),
    ("transposed", BC + TILE + "sch.blockize(i0)"),
    ("mm_relu", Y + "sch.blockize(i)"),
    ("mm_relu", Y + "sch.blockize(k)"),
    ("mm_relu", Y + TILE3 + "r = sch.blockize(i1); sch.decompose_reduction(r, k0)"),
    ("mm_relu", Y + TILE3 + "sch.decompose_reduction(b, k0); sch.blockize(j1)"),
    ("with_unit", BR + "sch.blockize(k)"),
    ("with_unit", BR + "sch.blockize(i, preserve_unit_iters=False)"),
    ("with_unit", BR + "sch.reorder(k, i); sch.blockize(i)"),
    ("conv2d", CONV + "w0, w1 = sch.split(w, [None, 2]); "
                      "sch.reorder(n, h, w0, rh, rw, w1, co, rc); sch.blockize(w1)"),
    # padding
    ("odd_matmul", 'sch.pad_einsum("C", [4, 4, 4])'),
    ("odd_matmul", 'sch.pad_einsum("C", [1, 1, 8])'),
    ("pad2d", PAD + "sch.decompose_padding(b, i)"),
    ("pad2d", PAD + "sch.decompose_padding(b, j)"),
    ("pad2d", PAD + "i0, i1 = sch.split(i, [None, 4]); sch.decompose_padding(b, i1)"),
    ("pad2d", PAD + "sch.decompose_padding(b, sch.fuse(i, j))"),
    # declared regions
    ("transposed", BC + 'sch.annotate_buffer_access(b, 0, "write", '
                        'lambda vi, vj: ((vi - 1, vi + 1), vj)); '
                        'sch.annotate_buffer_access(b, 0, "read", lambda vi, vj: (vi, vj))'),
]

REFUSED = [
    ("mm_relu", Y + 'sch.cache_write(b, 1, "local")', "buffer_index_in_range"),
    ("mm_relu", Y + 'sch.set_scope(b, 0, "heap")', "storage_scope_exists"),
    ("mm_relu", Y + 'sch.set_scope(c, 0, "shared")', "buffer_is_allocated_here"),
    ("mm_relu", Y + "sch.storage_align(b, 0, 2, 32, 8)", "axis_in_range"),
    ("mm_relu", Y + "sch.storage_align(b, 0, 0, -32, 8)", "factor_is_positive"),
    ("mm_relu", Y + 'sch.decompose_reduction(b, k); sch.cache_write("Y_update", 0, "local")',
     "single_writer"),
    ("row_sum", BR + "sch.rfactor(i, 0)", "loop_is_a_reduction"),
    ("row_sum", BR + "sch.rfactor(k, 4)", "factor_axis_in_range"),
    ("row_sum", BR + "sch.rfactor(sch.fuse(i, k), 0)", "loops_drive_one_kind"),
    ("row_sum", BR + "sch.unroll(k); sch.rfactor(k, 0)", "loop_is_serial"),
    ("mm_relu", Y + 'sch.reverse_compute_at(c, i); sch.reindex(c, ("read", 0))',
     "alone_in_its_loops"),
    ("matmul", MM + 'sch.reindex_cache_read(b, 1, "local", lambda i, j, k: (k, i))',
     "map_uses_the_access"),
    ("fourteen", 'sch.transform_layout("B", "B", lambda i: (i // 4, i % 4))',
     "padding_has_a_value"),
    ("matmul", MM + "sch.transform_block_layout(b, lambda i, j, k: (i, j * 16 + k))",
     "iterators_of_one_kind"),
    ("transposed", BC + TILE + "sch.transform_block_layout(b, lambda i, j: (j, i))",
     "trivial_bindings"),
    ("transposed", BC + "sch.transform_block_layout(b, lambda i, j: (i,))", "map_is_bijective"),
    ("matmul", MM + "sch.reorder_block_iter_var(b, [2, 0])", "order_is_a_permutation"),
    ("fourteen", 'i, = sch.get_loops("B"); sch.blockize(sch.split(i, [None, 4])[1])',
     "subspace_is_divisible"),
    ("transposed", BC + "sch.blockize(sch.split(sch.fuse(i, j), [None, 24])[1])",
     "subspace_is_divisible"),
    ("mm_relu", Y + "sch.reverse_compute_at(c, j); sch.blockize(j)", "one_block_under_loop"),
]

#: what TVM accepts although the program then computes something else, or cannot run
DIFFERS = [
    # a copy of what the block itself accumulates into starts without it
    ("mm_relu", Y + 'i0, i1 = sch.split(i, [None, 4]); sch.reorder(i0, j, k, i1); '
                    'sch.blockize(i1); sch.cache_write("Y", 0, "local")', "writer_does_not_read"),
    # two elements at one place
    ("fourteen", 'sch.transform_layout("B", "B", lambda i: (i // 2,))', "map_is_injective"),
]


def ours(name, steps):
    """The schedule after `steps`, or the rule by which they were refused."""
    sch = Schedule(PROGRAMS[name])
    try:
        exec(steps, {"sch": sch, "T": T})
    except ScheduleError as err:
        return sch, err.rule
    return sch, None


@lru_cache(maxsize=None)
def answers():
    """TVM's answers to all cases, asked for once."""
    every = [c[:2] for c in (*CASES, *REFUSED, *DIFFERS)]
    got = ask([{"program": Schedule(PROGRAMS[n]).mod.script(), "trace": [steps]}
               for n, steps in every])
    return dict(zip(every, got))


def theirs(cases):
    return [answers()[c[:2]] for c in cases]


@needs_oracle
def test_each_primitive_gives_tvms_script_and_trace():
    wrong = []
    for (name, steps), answer in zip(CASES, theirs(CASES)):
        sch, refused = ours(name, steps)
        assert refused is None, (steps, refused)
        assert not answer.get("error") and not answer["refused"], (steps, answer)
        if sch.mod.script() != answer["script"]:
            wrong.append(f"{name}: {steps}\n{sch.mod.script()}\n--- TVM ---\n{answer['script']}")
        if not answer["trace"].startswith("Trace("):  # one that apache-tvm cannot print
            assert str(sch.trace) == answer["trace"], steps
    assert not wrong, "\n\n".join(wrong)


@needs_oracle
def test_what_tvm_refuses_is_refused():
    for (name, steps, rule), answer in zip(REFUSED, theirs(REFUSED)):
        assert answer.get("error") or answer["refused"], (steps, answer)
        assert ours(name, steps)[1] == rule, steps


@needs_oracle
def test_what_tvm_accepts_wrongly_is_refused():
    for (name, steps, rule), answer in zip(DIFFERS, theirs(DIFFERS)):
        assert not answer["refused"], (steps, answer)
        assert ours(name, steps)[1] == rule, steps


@pytest.mark.parametrize("name, steps", CASES)
def test_every_case_replays(name, steps):
    sch, refused = ours(name, steps)
    assert refused is None
    again = Schedule(PROGRAMS[name])
    again.apply_trace(str(sch.trace))
    assert again.mod.script() == sch.mod.script()
