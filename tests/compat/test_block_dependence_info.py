"""BlockDependenceInfo: which blocks depend on which."""

import mlc_lab as tvm
from mlc_lab.script import from_source
from mlc_lab.tir import Block, BlockDependenceInfo, pre_order

FUNC = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8))
    for i in range(8):
        with T.block("outer"):
            vo = T.axis.spatial(8, i)
            for j in range(8):
                with T.block("init"):
                    vj = T.axis.spatial(8, j)
                    B[vo, vj] = 0.0
                with T.block("update"):
                    vj = T.axis.spatial(8, j)
                    B[vo, vj] = B[vo, vj] + A[vo, vj]
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
"""


def test_dependences_are_found_by_source_and_by_destination():
    func = from_source(FUNC)
    blocks = {n.name_hint: n for n in pre_order(func.body) if isinstance(n, Block)}
    info = BlockDependenceInfo(tvm.IRModule({"main": func}))
    init, update, outer, last = (info.get_sref(blocks[n]) for n in ("init", "update", "outer", "C"))
    assert init.parent is update.parent is outer and outer.parent is last.parent
    assert outer.parent.stmt is func.root and outer.parent.parent is None
    scope = info.get_block_scope(outer)
    kinds = {d.kind.name for d in scope.get_deps_by_src(init) if d.dst is update}
    assert kinds == {"RAW", "WAW"} and not scope.get_deps_by_dst(init)
    (dep,) = info.get_block_scope(outer.parent).get_deps_by_dst(last)
    assert dep.src is outer and dep.kind == tvm.tir.block_scope.DepKind.RAW


def test_names_of_expressions_and_statements_that_tvm_has_in_tir():
    one, two = (tvm.tir.Evaluate(k) for k in (1, 2))
    assert tvm.tir.stmt_list(tvm.tir.stmt_seq(one, two)) == [one, two]
    x = tvm.tir.Var("x", "int32")
    assert isinstance(tvm.tir.subtract(x, 1), tvm.tir.Sub)
    assert isinstance(tvm.tir.multiply(x, 2), tvm.tir.Mul)
    k = tvm.te.reduce_axis((0, 4))
    assert isinstance(tvm.tir.sum(x + k, axis=k), tvm.tir.Reduce)
