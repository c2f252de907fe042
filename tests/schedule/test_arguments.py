"""Arguments of the wrong kind are refused by name, and leave the schedule as it was."""

import json
import math

import numpy as np
import pytest
from mlc_lab import tir
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.schedule import Schedule, ScheduleError, Trace
from mlc_lab.schedule.instruction import InstructionKind
from mlc_lab.script import from_source

MODULE = IRModule({"main": from_source("""
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    C = T.alloc_buffer((16, 16), "float32")
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j, k in T.grid(16, 16, 16):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = T.float32(0)
            B[vi, vj] = B[vi, vj] + C[vi, vk] * T.float32(2)
""")})


def start():
    """A schedule, its blocks B and C, and the loops around them."""
    sch = Schedule(MODULE)
    b, c = sch.get_block("B"), sch.get_block("C")
    return sch, b, c, sch.get_loops(b), sch.get_loops(c)


#: arguments that each primitive takes; `b`, `c`: blocks, `l`, `m`: the loops around them
VALID = {
    "get_block": lambda b, c, l, m: {"name": "B", "func_name": "main"},
    "sample_perfect_tile": lambda b, c, l, m: {"loop": l[0], "n": 2, "decision": [4, 4]},
    "sample_categorical": lambda b, c, l, m: {"candidates": [1, 2], "probs": [0.5, 0.5],
                                              "decision": 0},
    "sample_compute_location": lambda b, c, l, m: {"block": c, "decision": -1},
    "split": lambda b, c, l, m: {"loop": l[0], "factors": [None, 4]},
    "fuse": lambda b, c, l, m: {"loops": l[:2]},
    "reorder": lambda b, c, l, m: {"ordered_loops": l[1::-1]},
    "add_unit_loop": lambda b, c, l, m: {"block_or_loop": l[0]},
    "bind": lambda b, c, l, m: {"loop": l[0], "thread_axis": "blockIdx.x"},
    "compute_at": lambda b, c, l, m: {"block": c, "loop": l[0]},
    "reverse_compute_at": lambda b, c, l, m: {"block": b, "loop": m[0]},
    "decompose_reduction": lambda b, c, l, m: {"block": b, "loop": l[2]},
    "rfactor": lambda b, c, l, m: {"loop": l[2], "factor_axis": 0},
    "cache_read": lambda b, c, l, m: {"block": b, "read_buffer_index": 0, "storage_scope": "local",
                                      "consumer_blocks": [b]},
    "cache_write": lambda b, c, l, m: {"block": b, "write_buffer_index": 0,
                                       "storage_scope": "local"},
    "set_scope": lambda b, c, l, m: {"block": c, "buffer_index": 0, "storage_scope": "shared"},
    "storage_align": lambda b, c, l, m: {"block": c, "buffer_index": 0, "axis": 0, "factor": 16,
                                         "offset": 1},
    "unsafe_set_dtype": lambda b, c, l, m: {"block": c, "buffer_index": 0, "dtype": "float64"},
    "reindex": lambda b, c, l, m: {"block": b, "buffer": ("read", 0)},
    "reindex_cache_read": lambda b, c, l, m: {
        "block": b, "read_buffer_index": 0, "storage_scope": "local",
        "index_map": lambda i, j, k: (i, k)},
    "transform_layout": lambda b, c, l, m: {"block": b, "buffer": ("read", 0), "pad_value": None,
                                            "index_map": lambda i, j: (j, i)},
    "set_axis_separator": lambda b, c, l, m: {"block": c, "buffer": ("write", 0),
                                              "axis_separators": [1]},
    "cache_index": lambda b, c, l, m: {"block": b, "storage_scope": "global", "cse_thresh": 0},
    "annotate_buffer_access": lambda b, c, l, m: {
        "block": b, "buffer_index": 0, "buf_type": "read",
        "gen_new_ranges": lambda i, j, k: [(i, i + 1), (0, 16)]},
    "rolling_buffer": lambda b, c, l, m: {"block": c, "write_buffer_index": 0},
    "blockize": lambda b, c, l, m: {"target": m[1]},
    "tensorize": lambda b, c, l, m: {"block_or_loop": m[1], "tensor_intrin": "none"},
    "transform_block_layout": lambda b, c, l, m: {"block": c,
                                                  "index_map": lambda i, j: (i * 16 + j,)},
    "reorder_block_iter_var": lambda b, c, l, m: {"block": c, "new_order": [1, 0]},
    "pad_einsum": lambda b, c, l, m: {"block": b, "padding": [2, 2, 2]},
    "annotate": lambda b, c, l, m: {"block_or_loop": b, "ann_key": "k", "ann_val": 1},
    "unannotate": lambda b, c, l, m: {"block_or_loop": b, "ann_key": "k"},
}
X = tir.Var("x", "int32")
ANYTHING = (
    None, True, -1, 1 << 70, 2.5, math.nan, "", "x", b"x", [], (), {"a": 1}, set(), range(3),
    [None], ["x"], [2.5], [[1]], [1 << 70], (None, None), ("read",), ("read", "x"), ("x", 0),
    ("read", 99),
    object(), X, X + 1, [X], tir.IntImm("int32", 4), tir.FloatImm("float32", 1.5),
    tir.StringImm("s"), type, MODULE, MODULE["main"], lambda: 1, lambda *a: None, lambda *a: [],
    lambda i, j: ("x", i), lambda i, j: i / j, lambda i, j: (i // 0, j), lambda i, j: [None])


@pytest.mark.parametrize("name", VALID)
def test_any_argument_is_taken_or_refused(name):
    kind = InstructionKind.by_method[name]
    for param in kind.params:
        for value in ANYTHING:
            sch, *rvs = start()
            args = VALID[name](*rvs)
            before, args[param.name] = sch.mod, value
            first = args.pop(param.name) if param.kind is param.VAR_POSITIONAL else ()
            if param.kind is param.VAR_POSITIONAL:
                first = first if isinstance(first, tuple) else (first,)
            elif kind.params[0].kind is param.VAR_POSITIONAL:
                first = args.pop(kind.params[0].name)
            try:
                getattr(sch, name)(*first, **args)
            except ScheduleError as error:
                assert len(str(error)) < 5_000
                assert sch.mod is before
                continue
            for trace in (Trace.from_json(json.dumps(sch.trace.as_json())),
                          Trace.from_python(str(sch.trace))):
                again = Schedule(MODULE)
                trace.apply_to_schedule(again)
                assert_structural_equal(again.mod, sch.mod)


@pytest.mark.parametrize("arguments, message", [
    ({"factors": 8}, r"factors= is 8: it must be a list of whole numbers"),
    ({"factors": [2.5, 8]}, r"factors= is \[2.5, 8\]"),
    ({"factors": ["4", None]}, r"factors= is \['4', None\]"),
    ({"factors": [None, 8], "preserve_unit_iters": "no"}, "preserve_unit_iters= is 'no'"),
])
def test_the_argument_and_what_it_must_be_are_named(arguments, message):
    sch, _, _, loops, _ = start()
    with pytest.raises(ScheduleError, match=message):
        sch.split(loops[0], **arguments)


def test_numbers_of_numpy_are_numbers():
    sch, _, _, loops, _ = start()
    sch.split(loops[0], np.array([4, 4]), preserve_unit_iters=np.bool_(True))
    sch.split(loops[1], [None, np.int64(8)])
    assert "factors=[4, 4], preserve_unit_iters=True" in str(sch.trace)
    json.dumps(sch.trace.as_json())


def test_an_error_in_a_function_of_the_users_is_the_cause():
    sch, b, *_ = start()
    with pytest.raises(ScheduleError, match="index_map= is a function that gives no indices: Zero"
                       ) as caught:
        sch.transform_layout(b, ("read", 0), lambda i, j: (i // (1 - 1), j))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("value", [X, X + 1, [1, X], {"a": X}])
def test_annotations_name_what_is_known(value):
    sch, b, _, loops, _ = start()
    with pytest.raises(ScheduleError, match="'k' names x, which is no loop"):
        sch.annotate(b, "k", value)
    sch.annotate(b, "k", sch.get(loops[1]).loop_var + 1)
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)


@pytest.mark.parametrize("separators", [[99], 7, X])
def test_a_layout_whose_separators_are_refused_stays_as_it_was(separators):
    sch, _, c, *_ = start()
    before, steps = sch.mod, str(sch.trace)
    with pytest.raises(ScheduleError, match="axis_separators="):
        sch.transform_layout(c, ("write", 0), lambda i, j: (j, i), axis_separators=separators)
    assert sch.mod is before and str(sch.trace) == steps


@pytest.mark.parametrize("dtype, value", [
    ("float32", math.nan), ("float32", -math.inf), ("float16", math.inf), ("float8_e5m2", 0.5),
    ("float32x4", 0.5), ("int32x2", 3), ("uint64", (1 << 63) - 1), ("float32", -0.0)])
@pytest.mark.parametrize("make", [lambda v: v, lambda v: lambda a, b: v, lambda v: lambda a, b: (
    tir.if_then_else(tir.And(a * 2 > b, b != 3), v, tir.Select(b << 1 <= a % 2, v, v)))])
def test_pad_values_of_every_kind_are_in_the_trace(dtype, value, make):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((7,), "{dtype}"), B: T.Buffer((7,), "{dtype}")):
    C = T.alloc_buffer((7,), "{dtype}")
    for i in range(7):
        with T.block("C"):
            v = T.axis.spatial(7, i)
            C[v] = A[v]
    for i in range(7):
        with T.block("B"):
            v = T.axis.spatial(7, i)
            B[v] = C[v]
""")
    sch = Schedule(func)
    sch.transform_layout("C", ("write", 0), lambda i: (i // 4, i % 4), pad_value=make(value))
    for trace in (Trace.from_json(json.dumps(sch.trace.as_json())),
                  Trace.from_python(str(sch.trace))):
        again = Schedule(func)
        trace.apply_to_schedule(again)
        assert_structural_equal(again.mod, sch.mod)


@pytest.mark.parametrize("value, message", [
    (X, "names x, which is not one of its indices"), (lambda a, b: X, "names x"),
    (lambda a: a, "takes 1 indices and gives 1 values"),
    (lambda a, b: (a, b), "takes 2 indices and gives 2"), ("x", "a number that fits float32")])
def test_a_pad_value_is_a_number_or_a_function_of_the_new_indices(value, message):
    sch, _, c, *_ = start()
    with pytest.raises(ScheduleError, match=message):
        sch.transform_layout(c, ("write", 0), lambda i, j: (i, j + 1), pad_value=value)
