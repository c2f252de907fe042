"""FuseOps: calls that can share one kernel become one call of a new function.

Only dataflow blocks are looked at. What may be fused follows from the `op_pattern` of each TensorIR
function (AnnotateTIROpPattern), by the partition in `fusion_graph.py`. The new functions carry the
attribute `Primitive`; FuseTIR makes one TensorIR function of each.

before::

    @T.prim_func(private=True)
    def exp(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        T.func_attr({"op_pattern": 0})
        for i in range(8):
            with T.block("exp"):
                vi = T.axis.spatial(8, i)
                y[vi] = T.exp(x[vi])

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((8,), "float32"))
            gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(gv)
        return gv

after `FuseOps()`::

    @T.prim_func(private=True)
    def exp(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        T.func_attr({"op_pattern": 0})
        for i in range(8):
            with T.block("exp"):
                vi = T.axis.spatial(8, i)
                y[vi] = T.exp(x[vi])

    @R.function(private=True)
    def fused_exp_exp(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        R.func_attr({"Primitive": 1})
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((8,), "float32"))
            gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            gv: R.Tensor((8,), "float32") = cls.fused_exp_exp(x)
            R.output(gv)
        return gv
"""

from __future__ import annotations

from ...ir.module import normalize_attrs
from ...tir.function import PrimFunc
from .annotate_tir_op_pattern import OpPatternKind as K
from .fusion_graph import GraphNode, Partitioner
from .grouping import Group, fuse_groups
from .rewriting import (
    CALL_TIR, DataflowBlock, DataflowVar, Expr, Function, IRModule, Pass, PassContext, SeqExpr,
    TupleGetItem, Var, attr, is_call_of, make_pass, replace_functions, used_vars,
)

#: the largest number of bindings in one function, unless `relax.FuseOps.max_depth` says otherwise
MAX_DEPTH = 256


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Fuse calls of TensorIR functions in dataflow blocks.

    `fuse_opt_level` 0 fuses nothing; -1 takes the level of the PassContext. The PassContext's
    option `relax.FuseOps.max_depth` limits how many calls become one (256).
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        level = ctx.opt_level if fuse_opt_level == -1 else fuse_opt_level
        if level < 1:
            return mod
        depth = ctx.config.get("relax.FuseOps.max_depth", MAX_DEPTH)
        new, changes = mod.copy(), {}
        for var, func in mod.functions.items():
            if isinstance(func, Function) and not is_kernel(func):
                groups = _groups(mod, func, int(depth))
                if groups:
                    changes[var] = fuse_groups(new, func, groups)
        return replace_functions(new, changes) if changes else mod

    return make_pass("FuseOps", run, FuseOps.__doc__)


def is_kernel(func: Function) -> bool:
    """Whether a function stands for one kernel already: nothing is fused inside."""
    return any(attr(func, key) is not None for key in ("Primitive", "Codegen", "Composite"))


def _groups(mod: IRModule, func: Function, max_depth: int) -> dict[Var, Group]:
    """The groups of more than one binding, by the variables that they bind."""
    nodes = graph_of(mod, func)
    roots = Partitioner(nodes, max_depth).run()
    made: dict[object, Group] = {}
    groups: dict[Var, Group] = {}
    for node, root in zip(nodes, roots):
        if root.size > 1:
            group = made.get(root)
            if group is None:
                group = made[root] = Group(normalize_attrs({"Primitive": 1}))
            group.bindings.append(node.ref)
            groups[node.ref.var] = group
    return groups


def graph_of(mod: IRModule, func: Function) -> list[GraphNode]:
    """The bindings of a function's dataflow blocks as a graph, in program order."""
    nodes: list[GraphNode] = []
    by_var: dict[Var, GraphNode] = {}
    if type(func.body) is not SeqExpr:
        return nodes
    for block in func.body.blocks:
        if type(block) is not DataflowBlock:
            continue
        for binding in block.bindings:
            pattern = _pattern(mod, binding.value)
            node = GraphNode(binding, len(nodes), pattern, type(binding.var) is not DataflowVar)
            for var in used_vars(binding):
                source = by_var.get(var)
                if source is not None:
                    source.outputs.append((node, pattern))
            nodes.append(node)
            by_var[binding.var] = node
    return nodes


def _pattern(mod: IRModule, value: Expr) -> K:
    if is_call_of(value, CALL_TIR):
        callee = mod.functions.get(value.args[0])
        if isinstance(callee, PrimFunc):
            return K(attr(callee, "op_pattern", K.OPAQUE))
    return K.INJECTIVE if type(value) is TupleGetItem else K.OPAQUE


__all__ = ["FuseOps", "graph_of", "is_kernel"]
