"""Nests under conditions, definitions and attributes, memory of two names: right or refused."""

import pytest

from mlc_lab.script import from_source, tir as T

from .common import kept, refused


def under(what, extent="8"):
    return from_source(f"""@T.prim_func
def main(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32"), L: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("Z"):
            v = T.axis.spatial(8, i)
            D[v] = T.float32(0)
    {what}
        for i in range({extent}):
            with T.block("D"):
                v = T.axis.spatial({extent}, i)
                D[v] = A[v] * T.float32(2)
""")


AROUND = ["if L[0] > 2:", "while L[0] > 5:", 'with T.attr(0, "note", 1):',
          'with T.allocate([8], "float32", "global") as unused:', "with T.LetStmt(L[0]) as unused:"]


@pytest.mark.parametrize("around", AROUND)
def test_a_nest_is_replaced_under_what_it_stands_in(around):
    kept(under(around), lambda s: s.transform_block_layout("D", lambda a: (a // 2, a % 2)))
    kept(under(around), lambda s: s.pad_einsum("D", [3]))


@pytest.mark.parametrize("around", AROUND)
def test_a_nest_is_reindexed_under_what_it_stands_in(around):
    kept(under(around), lambda s: s.reindex("D", ("read", 0)))


def test_the_size_of_a_copy_is_known_where_it_is_allocated():
    let = under("with T.LetStmt(L[0]) as n:", "n")
    refused(let, lambda s: s.pad_einsum("D", [3]), "sizes_are_known")
    refused(let, lambda s: s.reindex("D", ("read", 0)))


@T.prim_func
def two_names(A: T.Buffer((16,), "float32"), D: T.Buffer((8,), "float32")):
    E = T.decl_buffer((8,), "float32", data=A.data)
    for i in range(8):
        with T.block("E"):
            v = T.axis.spatial(8, i)
            T.reads(D[v])
            T.writes(E[v])
            E[v] = D[v] + T.float32(1)
    for i in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, i)
            T.reads(A[v])
            T.writes(D[v])
            D[v] = A[v] * T.float32(2)


def test_memory_that_is_written_by_another_name():
    def loop(s, name):
        return s.get_loops(name)[0]

    refused(two_names, lambda s: s.compute_at("E", loop(s, "D")), "stage_pipeline")
    refused(two_names, lambda s: s.reverse_compute_at("D", loop(s, "E")), "stage_pipeline")
    kept(two_names, lambda s: s.cache_read("D", 0, "global"))
