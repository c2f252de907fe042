"""Random computation graphs: printed, parsed, rewritten by passes, built in every way, and run.

The laws: a graph is well formed and prints to a text that parses back to it; what the virtual
machine computes, fused or not, compiled or as bytecode, before and after any passes, is what numpy
computes, and has the shape and type that was inferred.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laws import check_roundtrip
from mlc_lab import relax, tir
from mlc_lab.relax import op as R
from mlc_lab.relax import transform as X
from mlc_lab.relax.dpl import is_op, wildcard
from mlc_lab.runtime import cpu

from . import graph_networks, harness
from .graph_ops import DRAWN, EXACT, ROWS, Pool, Value
from .harness import Draw

def one_of(x: Any) -> Any:
    """A pattern of one of a few operators."""
    return is_op("relax.exp")(x) | is_op("relax.negative")(x) | is_op("relax.abs")(x)


#: passes over graphs of operators that keep what a graph computes
PASSES = {
    "Normalize": [X.Normalize()],
    "CanonicalizeBindings": [X.CanonicalizeBindings()],
    "DeadCodeElimination": [X.DeadCodeElimination()],
    "EliminateCommonSubexpr": [X.EliminateCommonSubexpr()],
    "FoldConstant": [X.FoldConstant()],
    "ToNonDataflow": [X.ToNonDataflow()],
    "ConvertToDataflow": [X.ConvertToDataflow()],
    "TopologicalSort": [X.TopologicalSort("depth-first", "from-outputs")],
    "TopologicalSort breadth": [X.TopologicalSort("breadth-first", "from-inputs")],
    "ConvertLayout": [X.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})],
    "DecomposeOpsForInference": [X.DecomposeOpsForInference()],
    "RemoveRedundantReshape": [X.RemoveRedundantReshape()],
    "CombineParallelMatmul": [X.CombineParallelMatmul()],
    "FuseTransposeMatmul": [X.FuseTransposeMatmul()],
    "InlinePrivateFunctions": [X.InlinePrivateFunctions()],
    "LambdaLift": [X.LambdaLift()],
    "ExpandTupleArguments": [X.ExpandTupleArguments()],
    "RemoveUnusedOutputs": [X.RemoveUnusedOutputs()],
    "RemoveUnusedParameters": [X.RemoveUnusedParameters()],
    "AttachGlobalSymbol": [X.AttachGlobalSymbol()],
    "FuseOpsByPattern": [X.FuseOpsByPattern([
        ("two", one_of(one_of(wildcard()))),
        ("sum", is_op("relax.add")(one_of(wildcard()), wildcard()))])],
    "LegalizeOps": [X.LegalizeOps()],
    "FuseOps": [X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(3)],
    "FuseTIR": [X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(3), X.FuseTIR()],
    "FusePooling": [X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(3), X.FusePooling(),
                    X.FuseTIR()],
    "SpecializeKernels": [X.LegalizeOps(), X.SpecializeKernels(), X.ShareKernels()],
    "RewriteDataflowReshape": [X.LegalizeOps(), X.RewriteDataflowReshape()],
    "FoldBatchnormToConv2D": [X.FoldBatchnormToConv2D()],
    "RemovePurityChecking": [X.RemovePurityChecking()],
}
assert graph_networks  # it adds its rows to the table
#: larger values are clipped, so that integers do not overflow and float32 holds them exactly
LARGE = 500


class Graph:
    """A graph under construction: the values that there are, in the order they were made."""

    def __init__(self, draw: Draw):
        self.draw = draw
        self.bb = relax.BlockBuilder()
        self.n = tir.Var("n", "int64")
        self.extent = draw.integer(1, 5)
        self.rng = np.random.default_rng(draw.integer(0, 999))
        self.inputs: list[Value] = []

    def input(self, number: int) -> Value:
        """A parameter: its type, shape and numbers."""
        draw = self.draw
        ndim = draw.choice([2, 1, 3, 4, 4, 0])
        dims: list[Any] = [draw.integer(1, 4) for _ in range(ndim)]
        symbolic = ndim > 0 and draw.chance(30)
        shape = list(dims)
        if symbolic:
            at = draw.integer(0, ndim - 1)
            dims[at], shape[at] = self.n, self.extent
        dtype = draw.choice(["float32", "float32", "float32", "int32", "int64", "float64", "bool",
                             "int8", "uint8"])
        values = self.rng.integers(0 if dtype == "uint8" else -3, 4, shape)
        array = (values > 0) if dtype == "bool" else values.astype(dtype)
        exact = dtype[0] != "f" or draw.chance(70)
        if not exact:
            array = (array + self.rng.uniform(-0.4, 0.4, shape)).astype(dtype)
        var = relax.Var(f"x{number}", relax.TensorStructInfo(dims, dtype))
        return Value(var, np.asarray(array), exact)

    def step(self, pool: Pool) -> None:
        """Emit one operator on a value of the pool and add its result."""
        draw = self.draw
        # the last value again and again: chains are what passes fuse
        x = pool[-1] if draw.chance(40) else draw.choice(pool)
        for _ in range(4):
            name = draw.choice(DRAWN)
            with np.errstate(all="ignore"):
                made = ROWS[name](draw, x, pool)
            if made is not None:
                break
        else:
            return
        expr, array, *exact = made
        keeps = name in EXACT and x.exact and all(exact)
        self.add(pool, expr, np.asarray(array), keeps)
        harness.counts[f"operator {name}"] += 1

    def add(self, pool: Pool, expr: Any, array: Any, exact: bool) -> None:
        """Bind an expression; clip what is large."""
        value = Value(self.bb.emit(expr), array, exact)
        pool.append(value)
        limit = min(LARGE, 20) if array.dtype.itemsize == 1 else LARGE
        if array.dtype != bool and array.size and np.abs(array.astype("float64")).max() > limit:
            clipped = relax.op.clip(value.var, -8, 8)
            pool[-1] = Value(self.bb.emit(clipped), np.clip(array, -8, 8), exact)

    def call(self, pool: Pool) -> None:
        """Emit a call of a private function of a few operators."""
        draw = self.draw
        x = draw.choice(pool)
        if not all(x.fixed):
            return
        param = Value(relax.Var("p", x.var.struct_info), x.array, x.exact)
        outside, self.bb = self.bb, relax.BlockBuilder()
        inner = [param]
        with self.bb.function("inner", [param.var], private=True):
            with self.bb.dataflow():
                for _ in range(draw.integer(1, 3)):
                    self.step(inner)
                out = self.bb.emit_output(inner[-1].var)
            self.bb.emit_func_output(out)
        func, self.bb = self.bb.get()["inner"], outside
        callee = self.bb.add_func(func, "inner")
        self.add(pool, relax.Call(callee, [x.var]), inner[-1].array, inner[-1].exact)
        harness.counts["calls"] += 1

    def pair(self, inner: Pool) -> tuple[relax.Var, list[Value]]:
        """Two values that leave the dataflow block as one tuple."""
        values = [self.draw.choice(inner) for _ in range(2)]
        harness.counts["tuples"] += 1
        return self.bb.emit_output(relax.Tuple([v.var for v in values])), values

    def item(self, pool: Pool, pair: relax.Var, values: list[Value]) -> Value:
        """Take one of a tuple's values outside."""
        number = self.draw.integer(0, 1)
        old = values[number]
        pool.append(Value(self.bb.emit(relax.TupleGetItem(pair, number)), old.array, old.exact))
        return pool[-1]

    def branch(self, pool: Pool) -> None:
        """Emit an If on a comparison of a value that has no rounding errors."""
        draw = self.draw
        conditions = [v for v in pool if v.exact and v.array.dtype.kind in "fi" and v.array.size]
        values = [v for v in pool if v.array.dtype.kind in "fi"]
        if not conditions or not values:
            return
        c, x = draw.choice(conditions), draw.choice(values)
        total = R.max(c.var)
        limit = relax.const(draw.integer(-1, 2), str(c.array.dtype))
        cond = self.bb.emit(R.greater(total, limit))
        taken = bool(c.array.max() > limit.data.numpy())
        self.add(pool, relax.If(cond, R.add(x.var, x.var), R.negative(R.abs(x.var))),
                 x.array + x.array if taken else -np.abs(x.array), x.exact)
        harness.counts["branches"] += 1


def random_graph(draw: Draw) -> tuple[Any, list[Any], list[Value]]:
    """(module, arguments, the results that it has to give)."""
    graph = Graph(draw)
    bb = graph.bb
    inputs = [graph.input(i) for i in range(draw.integer(1, 3))]
    if all(graph.n is not d for v in inputs for d in v.var.struct_info.dims):
        graph.extent = 0
    results: list[Value] = []
    with bb.function("main", [v.var for v in inputs]):
        pool = list(inputs)
        for _ in range(draw.integer(1, 2)):
            with bb.dataflow():
                inner = list(pool)
                for _ in range(draw.integer(1, 9)):
                    if draw.chance(8):
                        graph.call(inner)
                    else:
                        graph.step(inner)
                made = inner[len(pool):]
                keep = draw.sample(made, draw.integer(1, min(3, len(made)))) if made else []
                pair = graph.pair(inner) if draw.chance(15) else None
                for value in keep:
                    value.var = bb.emit_output(value.var)
            results += keep
            pool += keep
            if pair is not None:
                results.append(graph.item(pool, *pair))
            for _ in range(draw.choice([0, 0, 1, 2])):  # outside of dataflow
                before = len(pool)
                if draw.chance(25):
                    graph.branch(pool)
                else:
                    graph.step(pool)
                results += pool[before:]
        results = results[-3:] or [pool[-1]]
        if draw.chance(10):  # a value twice, or an input as it is
            results.append(draw.choice([*results, *inputs]))
        out = results[0].var if len(results) == 1 else relax.Tuple([v.var for v in results])
        bb.emit_func_output(out)
    return bb.get(), [v.array for v in inputs], results


def bound(draw: Draw, mod: Any, arguments: list[Any]) -> tuple[Any, list[Any]]:
    """The graph and its arguments after a pass that changes what the caller gives."""
    params = mod["main"].params
    how = draw.choice(["as it is", "as it is", "constants", "sizes", "bundle", "lift"])
    first = draw.integer(0, len(params))  # of the weights
    if how == "constants":
        table = dict(zip((p.name_hint for p in params[first:]), arguments[first:]))
        mod, arguments = X.BindParams("main", table)(mod), arguments[:first]
    elif how == "sizes":
        sizes = {d.name: int(n) for p, a in zip(params, arguments)
                 for d, n in zip(p.struct_info.dims, a.shape) if isinstance(d, tir.Var)}
        mod = X.BindSymbolicVars(sizes)(mod) if sizes else mod
    elif how in ("bundle", "lift"):
        mod = mod.clone()
        mod.update_func(mod.get_global_var("main"), mod["main"].with_attr("num_input", first))
        if how == "bundle":
            mod = X.BundleModelParams()(mod)
            arguments = [*arguments[:first], tuple(arguments[first:])]
        else:
            mod = X.LiftTransformParams()(mod)
            weights = machine(mod)["main_transform_params"](tuple(arguments[first:]))
            arguments = [*arguments[:first], *weights]
    harness.counts[f"caller's side: {how}"] += 1
    return mod, arguments


def machine(mod: Any, pipeline: Any = "default", exec_mode: str = "compiled"
            ) -> relax.VirtualMachine:
    """A virtual machine with the functions of a module."""
    return relax.VirtualMachine(
        relax.build(mod, "llvm", pipeline=pipeline, exec_mode=exec_mode), cpu())


def run(mod: Any, arguments: list[Any], *way: str) -> list[Any]:
    """What the virtual machine computes, as numpy arrays."""
    got = machine(mod, *way)["main"](*arguments)
    return [v.numpy() for v in (got if isinstance(got, (list, tuple)) or hasattr(got, "__len__")
                                and not hasattr(got, "numpy") else [got])]


def compare(got: list[Any], results: list[Value], what: str) -> None:
    """Shapes, types and values are those of numpy."""
    assert len(got) == len(results), what
    for mine, want in zip(got, results):
        assert mine.shape == want.array.shape and mine.dtype == want.array.dtype, (
            what, mine.shape, mine.dtype, want.array.shape, want.array.dtype)
        if want.exact or want.array.dtype.kind not in "f":
            np.testing.assert_array_equal(mine, want.array, err_msg=what)
        else:
            scale = np.abs(want.array).max(initial=1.0)
            np.testing.assert_allclose(mine, want.array, rtol=2e-4, atol=2e-5 * scale,
                                       err_msg=what)


WAYS = {
    "fused": ("default", "compiled"), "as it is": ("default_build", "compiled"),
    "bytecode": ("default", "bytecode"),
}


def case(draw: Draw) -> None:
    """One graph under all laws."""
    made, arguments, results = random_graph(draw)
    mod = made
    names = [draw.choice([*PASSES]) for _ in range(draw.integer(0, 4))]
    way = draw.choice([*WAYS])
    harness.note(f"{mod.script()}\npasses {names}, then run {way}")
    assert relax.analysis.verify_well_formed(mod)
    check_roundtrip(mod, show_meta=True)
    for name in names:
        for step in PASSES[name]:
            mod = step(mod)
            assert relax.analysis.verify_well_formed(mod), name
        harness.counts[f"pass {name}"] += 1
    before = mod
    mod, arguments = bound(draw, mod, arguments)
    same = mod is before  # the parameters are those of the graph
    assert relax.analysis.verify_well_formed(mod)
    if mod is not made:
        harness.note(mod.script())
        check_roundtrip(mod, show_meta=True)
    compare(run(mod, arguments, *WAYS[way]), results, way)
    if same and draw.chance(50):
        check_other_size(draw, made, mod, results, way)


def check_other_size(draw: Draw, made: Any, mod: Any, results: list[Value], way: str) -> None:
    """The graph gives what it gave before the passes where its symbolic size is another one."""
    n = draw.choice([0, 1, 2, 3, 6, 9])
    rng = np.random.default_rng(draw.integer(0, 999))
    params = made["main"].params
    if not any(isinstance(d, tir.Var) for p in params for d in p.struct_info.dims):
        return
    arguments = []
    for p in params:
        info = p.struct_info
        shape = [n if isinstance(d, tir.Var) else int(d) for d in info.dims]
        values = rng.integers(0 if info.dtype == "uint8" else -3, 4, shape)
        arguments.append((values > 0) if info.dtype == "bool" else values.astype(info.dtype))
    harness.note(f"then with n = {n}")
    try:
        want = run(made, arguments, "default_build", "bytecode")
    except Exception as error:  # a shape that only some sizes have
        harness.counts[f"another size is refused: {type(error).__name__}"] += 1
        return
    harness.counts["another size"] += 1
    compare(run(mod, arguments, *WAYS[way]),
            [Value(r.var, w, False) for r, w in zip(results, want)], f"{way}, n = {n}")
