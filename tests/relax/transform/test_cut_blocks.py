"""A pass keeps to scopes: what holds in one block holds when its bindings are spread over two.

The example of each pass is cut between any two bindings, or at any two places: into two dataflow
blocks, and into one with bindings outside of dataflow behind it, before it and on both sides. A
variable that is used after the cut is then an output of the first block, and what it was computed
from is seen by nothing outside. So it is with what the example takes, which is first given to a sum
that only the first block sees. After the pass the program is well formed, its text parses back to
it, and it gives the same results where it takes and returns the same.
"""

from itertools import combinations

import numpy as np
import pytest

from laws import check_roundtrip
from mlc_lab import relax
from mlc_lab.relax.expr import (
    BindingBlock, DataflowBlock, DataflowVar, Function, MatchCast, SeqExpr, Var, VarBinding,
)
from mlc_lab.relax import BlockBuilder
from mlc_lab.relax.gradients.common import GradientError
from mlc_lab.relax.transform.rewriting import Replacer, is_exported, used_vars, with_body
from mlc_lab.runtime import cpu

from .test_examples import MODULES, as_module, example, scope

#: examples that the virtual machine does not run: they only show a rewrite
NOT_RUN = {"combine_parallel_matmul"}
CASES = [m for m in MODULES if example(m) is not None]


def rebound(binding, replace, outputs):
    """A binding whose variable is seen outside if it is one of the outputs."""
    var = binding.var
    if type(var) is DataflowVar and var in outputs:
        replace.vars[var] = Var(var.name_hint, var.struct_info_)
    value = replace(binding.value)
    var = replace.vars.get(var, var)
    return (MatchCast(var, value, binding.struct_info) if type(binding) is MatchCast
            else VarBinding(var, value))


def cut(func, number, points, kinds):
    """The function with one of its blocks cut at some points into blocks of some kinds."""
    blocks = func.body.blocks
    replace, bindings = Replacer(), blocks[number].bindings
    parts = []
    for start, end, kind in zip((0, *points), (*points, len(bindings)), kinds):
        later = set().union(*(used_vars(b.value) for b in bindings[end:]))
        seen = later | {b.var for b in bindings[start:end]} if kind is BindingBlock else later
        parts.append(kind([rebound(b, replace, seen) for b in bindings[start:end]]))
    after = [type(x)([rebound(b, replace, ()) for b in x.bindings]) for x in blocks[number + 1:]]
    return with_body(func, SeqExpr([*blocks[:number], *parts, *after], replace(func.body.body)))


#: a block is cut into blocks of these kinds
KINDS = [(DataflowBlock, DataflowBlock), (DataflowBlock, BindingBlock),
         (BindingBlock, DataflowBlock), (BindingBlock, DataflowBlock, BindingBlock)]


def cuts(func):
    """The function with one of its dataflow blocks cut, in every way."""
    body = func.body
    if type(func) is not Function or type(body) is not SeqExpr:
        return
    for number, block in enumerate(body.blocks):
        if type(block) is DataflowBlock:
            for kinds in KINDS:
                for points in combinations(range(1, len(block.bindings)), len(kinds) - 1):
                    yield cut(func, number, points, kinds)


def with_local_inputs(func):
    """A function of one dataflow block with each tensor that it takes doubled there; or None."""
    kinds = [type(block) for block in func.body.blocks]
    if kinds != [DataflowBlock] or "Primitive" in (func.attrs or {}):
        return None
    block = func.body.blocks[0]
    replace, sums = Replacer(), []
    for param in func.params:
        if isinstance(param.struct_info, relax.TensorStructInfo) and param.struct_info.dims:
            value = BlockBuilder().normalize(relax.op.add(param, param))
            local = DataflowVar(f"{param.name_hint}_twice", value.struct_info)
            sums.append(VarBinding(local, value))
            replace.vars[param] = local
    rest = [rebound(b, replace, ()) for b in block.bindings]
    return with_body(func, SeqExpr([DataflowBlock([*sums, *rest])], func.body.body))


def cut_modules(mod):
    """The module with one of its functions cut, in every way."""
    for name, func in mod.functions.items():
        if type(func) is Function and type(func.body) is SeqExpr:
            local = with_local_inputs(func)
            for new in (*cuts(func), *(cuts(local) if local is not None else ())):
                made = mod.clone()
                made[name] = new
                yield made


def run(mod, arguments):
    """What `main` computes."""
    got = relax.VirtualMachine(relax.build(mod, "llvm"), cpu())["main"](*arguments)
    return [x.numpy() for x in (got if isinstance(got, (list, tuple)) else [got])]


def arguments_of(mod):
    """Random arguments of `main`; None if it takes anything but tensors of a known shape."""
    rng, out = np.random.default_rng(0), []
    if "main" not in mod:
        return None
    for param in mod["main"].params:
        info = param.struct_info
        dims = getattr(info, "dims", None)
        if not isinstance(info, relax.TensorStructInfo) or dims is None or any(
                not hasattr(d, "value") for d in dims):
            return None
        out.append(rng.uniform(0.5, 1.5, [d.value for d in dims]).astype(info.dtype))
    return out


def signature(mod):
    """The functions of Relax, and what `main` takes and returns."""
    names = sorted(v.name_hint for v, f in mod.functions.items() if is_exported(f))
    infos = [*(p.struct_info for p in mod["main"].params), mod["main"].ret_struct_info]
    return names + [str(info) for info in infos]


@pytest.mark.parametrize("module", CASES)
def test_scopes_are_kept_where_a_block_is_cut(module):
    before, call, _ = example(module)
    for mod in cut_modules(as_module(before)):
        assert relax.analysis.verify_well_formed(mod), mod.script()
        try:
            made = eval(call, scope())(mod)
        except GradientError:  # asks for one block
            continue
        assert relax.analysis.verify_well_formed(made), f"{mod.script()}\n{made.script()}"
        check_roundtrip(made, show_meta=True)
        arguments = arguments_of(mod)
        if arguments is None or signature(mod) != signature(made):
            continue
        if module in NOT_RUN:
            continue
        for a, b in zip(run(made, arguments), run(mod, arguments), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-5, err_msg=made.script())
