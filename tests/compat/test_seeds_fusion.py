"""The chapter on computational graph optimization, as it stands: each listing is a notebook's cell.

A rewriter that makes fused multiply-adds, one that fuses matmul with add into functions marked
`Primitive`, their lowering to TensorIR by a map of one's own, FuseTIR, and the build.
"""

import numpy as np

from mlc_lab import relax, tir

IMPORTS = """
import numpy as np
import tvm
from tvm import relax, topi
from tvm.ir.module import IRModule
from tvm.script import relax as R
from tvm.script import tir as T
"""

MODULE = """
@tvm.script.ir_module
class MyModule:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            lv0 = relax.op.multiply(x, y)
            gv0 = relax.op.add(lv0, y)
            R.output(gv0)
        return gv0
relax_func = MyModule["main"]
type(relax_func)
relax_func.params
relax_func.body
relax_func.body.blocks
relax_func.body.blocks[0].bindings
binding = relax_func.body.blocks[0].bindings[0]
binding.var
binding.value
binding.value.op
binding.value.args
"""

FMA_REWRITER = """
@relax.expr_functor.mutator
class EwiseFMARewriter(relax.PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        add_op = tvm.ir.Op.get("relax.add")
        multiply_op = tvm.ir.Op.get("relax.multiply")
        ewise_fma_op = tvm.ir.Op.get("relax.ewise_fma")

        if call.op != add_op:
            return call

        value = self.lookup_binding(call.args[0])
        if value is None:
            return call

        if not isinstance(value, relax.Call) or value.op != multiply_op:
            return call

        fma_call = relax.Call(
            ewise_fma_op, [value.args[0], value.args[1], call.args[1]], None, None
        )
        return fma_call

updated_fn = EwiseFMARewriter().visit_expr(MyModule["main"])
updated_fn.show()
"""

MODEL = """
def create_model():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 784), "float32"))
    w0 = relax.const(mlp_params["w0"], "float32")
    b0 = relax.const(mlp_params["b0"], "float32")
    w1 = relax.const(mlp_params["w1"], "float32")
    b1 = relax.const(mlp_params["b1"], "float32")
    with bb.function("main", [x]):
        with bb.dataflow():
            lv0 = bb.emit(relax.op.matmul(x, relax.op.permute_dims(w0)))
            lv1 = bb.emit(relax.op.add(lv0, b0))
            lv2 = bb.emit(relax.op.nn.relu(lv1))
            lv3 = bb.emit(relax.op.matmul(lv2, relax.op.permute_dims(w1)))
            lv4 = bb.emit(relax.op.add(lv3, b1))
            gv = bb.emit_output(lv4)
        bb.emit_func_output(gv)

    return bb.get()

MLPModel = create_model()
MLPModel.show()
"""

FUSOR = '''
@relax.expr_functor.mutator
class MatmulAddFusor(relax.PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self.mod_ = mod
        # cache pre-defined ops
        self.add_op = tvm.ir.Op.get("relax.add")
        self.matmul_op = tvm.ir.Op.get("relax.matmul")
        self.counter = 0

    def transform(self) -> IRModule:
        for global_var, func in self.mod_.functions.items():
            if not isinstance(func, relax.Function):
                continue
            # avoid already fused primitive functions
            if (func.attrs is not None and "Primitive" in func.attrs.keys()
                    and func.attrs["Primitive"] != 0):
                continue
            updated_func = self.visit_expr(func)
            updated_func = relax.analysis.remove_all_unused(updated_func)
            self.builder_.update_func(global_var, updated_func)

        return self.builder_.get()

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)

        def match_call(node, op):
            if not isinstance(node, relax.Call):
                return False
            return node.op == op

        # pattern match matmul => add
        if not match_call(call, self.add_op):
            return call

        value = self.lookup_binding(call.args[0])
        if value is None:
            return call

        if not match_call(value, self.matmul_op):
            return call

        x = value.args[0]
        w = value.args[1]
        b = call.args[1]

        # construct a new fused primitive function
        param_x = relax.Var("x" ,relax.TensorStructInfo(x.struct_info.shape, x.struct_info.dtype))
        param_w = relax.Var("w" ,relax.TensorStructInfo(w.struct_info.shape, w.struct_info.dtype))
        param_b = relax.Var("b" ,relax.TensorStructInfo(b.struct_info.shape, b.struct_info.dtype))

        bb = relax.BlockBuilder()

        fn_name = "fused_matmul_add%d" % (self.counter)
        self.counter += 1
        with bb.function(fn_name, [param_x, param_w, param_b]):
            with bb.dataflow():
                lv0 = bb.emit(relax.op.matmul(param_x, param_w))
                gv = bb.emit_output(relax.op.add(lv0, param_b))
            bb.emit_func_output(gv)

        # Add Primitive attribute to the fused functions
        fused_fn = bb.get()[fn_name].with_attr("Primitive", 1)
        global_var = self.builder_.add_func(fused_fn, fn_name)

        # construct call into the fused function
        return relax.Call(global_var, [x, w, b], None, None)

@tvm.ir.transform.module_pass(opt_level=2, name="MatmulAddFuse")
class FuseDenseAddPass:
    """The wrapper for the LowerTensorIR pass."""
    def transform_module(self, mod, ctx):
        return MatmulAddFusor(mod).transform()


MLPFused = FuseDenseAddPass()(MLPModel)
MLPFused.show()
'''

LOWER = '''
@relax.expr_functor.mutator
class LowerToTensorIR(relax.PyExprMutator):
    def __init__(self, mod: IRModule, op_map) -> None:
        super().__init__()
        self.mod_ = mod
        self.op_map = {
            tvm.ir.Op.get(k): v for k, v in op_map.items()
        }

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)

        if call.op in self.op_map:
            return self.op_map[call.op](self.builder_, call)
        return call

    def transform(self) -> IRModule:
        for global_var, func in self.mod_.functions.items():
            if not isinstance(func, relax.Function):
                continue
            updated_func = self.visit_expr(func)
            self.builder_.update_func(global_var, updated_func)

        return self.builder_.get()


def map_matmul(bb, call):
    x, w = call.args
    return bb.call_te(topi.nn.matmul, x, w)

def map_add(bb, call):
    a, b = call.args
    return bb.call_te(topi.add, a, b)

def map_relu(bb, call):
    return bb.call_te(topi.nn.relu, call.args[0])

def map_transpose(bb, call):
    return bb.call_te(topi.transpose, call.args[0], )

op_map = {
  "relax.matmul": map_matmul,
  "relax.add": map_add,
  "relax.nn.relu": map_relu,
  "relax.permute_dims": map_transpose
}

@tvm.ir.transform.module_pass(opt_level=0, name="LowerToTensorIR")
class LowerToTensorIRPass:
    """The wrapper for the LowerTensorIR pass."""
    def transform_module(self, mod, ctx):
        return LowerToTensorIR(mod, op_map).transform()


MLPModelTIR = LowerToTensorIRPass()(MLPFused)
MLPModelTIR.show()
'''

FINAL = """
MLPModelFinal = relax.transform.FuseTIR()(MLPModelTIR)
MLPModelFinal.show()
"""

BUILD = """
target = tvm.target.Target("llvm")
ex = relax.build(MLPModelFinal, target=target)
vm = relax.VirtualMachine(ex, tvm.cpu())
"""


def random_params():
    """Weights in place of the trained ones that the chapter downloads."""
    rng = np.random.default_rng(0)
    shapes = {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}
    return {n: rng.uniform(-0.1, 0.1, s).astype("float32") for n, s in shapes.items()}


def mlp(params, x):
    h = np.maximum(x @ params["w0"].T + params["b0"], 0)
    return h @ params["w1"].T + params["b1"]


def bindings(func):
    return [b for block in func.body.blocks for b in block.bindings]


def test_a_rewriter_makes_fused_multiply_adds(notebook):
    notebook(IMPORTS)
    notebook(MODULE)
    notebook(FMA_REWRITER)
    made = notebook.scope["updated_fn"]
    assert [b.value.op.name for b in bindings(made) if isinstance(b.value, relax.Call)] == [
        "relax.multiply", "relax.ewise_fma"]
    notebook("cleaned = relax.analysis.remove_all_unused(updated_fn)")
    cleaned = notebook.scope["cleaned"]
    assert [b.value.op.name for b in bindings(cleaned) if isinstance(b.value, relax.Call)] == [
        "relax.ewise_fma"]


def test_matmul_and_add_are_fused_lowered_and_run(notebook):
    notebook(IMPORTS)
    params = notebook.scope["mlp_params"] = random_params()
    for cell in (MODEL, FUSOR, LOWER, FINAL, BUILD):
        notebook(cell)
    fused = notebook.scope["MLPFused"]
    assert {v.name_hint for v in fused.functions} == {
        "main", "fused_matmul_add0", "fused_matmul_add1"}
    final = notebook.scope["MLPModelFinal"]
    kernels = {v.name_hint for v, f in final.functions.items() if isinstance(f, tir.PrimFunc)}
    assert kernels == {"fused_matmul_add0", "fused_matmul_add1", "relu", "transpose",
                       "transpose1"}
    x = np.random.default_rng(1).uniform(size=(1, 784)).astype("float32")
    notebook.scope["x"] = x
    notebook('nd_res = vm["main"](tvm.nd.array(x))')
    np.testing.assert_allclose(notebook.scope["nd_res"].numpy(), mlp(params, x), rtol=1e-4,
                               atol=1e-5)
