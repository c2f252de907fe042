"""The graph-level listings of course notes: end-to-end models, registered functions, BlockBuilder.

What the notes download (an image, the weights of a small network) is made up here. Listings that
lost their indentation on the way got it back.
"""

import pickle
import re
import sys
import types

import numpy as np
import pytest

from .seeds import MIXTURE, SYMBOLIC

IMPORTS = """
import IPython
import numpy as np
import pickle as pkl
import torch
import torch.nn as nn
from torch import fx
import tvm
from tvm import relax
from tvm.script import tir as T
from tvm.script import relax as R
classes = class_names = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                         "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
"""

MY_MODULE = '''
import tvm
from tvm.script import tir as T
from tvm.script import relax as R
''' + SYMBOLIC + '''
    @R.function
    def main(x: R.Tensor((1, "m"), "float32"),
             w0: R.Tensor(("n", "m"), "float32"),
             b0: R.Tensor(("n", ), "float32"),
             w1: R.Tensor(("k", "n"), "float32"),
             b1: R.Tensor(("k", ), "float32")):
        m, n, k = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            lv0 = R.call_dps_packed("linear0", (x, w0, b0), R.Tensor((1, n), "float32"))
            lv1 = R.call_dps_packed("relu0", (lv0, ), R.Tensor((1, n), "float32"))
            out = R.call_dps_packed("linear0", (lv1, w1, b1), R.Tensor((1, k), "float32"))
            R.output(out)
        return out
'''

WITH_EXTERN = '''
@tvm.script.ir_module
class MyModuleWithExternCall:
    @R.function
    def main(x: R.Tensor((1, "m"), "float32"),
             w0: R.Tensor(("n", "m"), "float32"),
             b0: R.Tensor(("n", ), "float32"),
             w1: R.Tensor(("k", "n"), "float32"),
             b1: R.Tensor(("k", ), "float32")):
        # block 0
        m, n, k = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            lv0 = R.call_dps_packed("env.linear", (x, w0, b0), R.Tensor((1, n), "float32"))
            lv1 = R.call_dps_packed("env.relu", (lv0, ), R.Tensor((1, n), "float32"))
            out = R.call_dps_packed("env.linear", (lv1, w1, b1), R.Tensor((1, k), "float32"))
            R.output(out)
        return out
'''

REGISTER = '''
@tvm.register_func("env.linear", override=True)
def torch_linear(x: tvm.nd.NDArray,
                 w: tvm.nd.NDArray,
                 b: tvm.nd.NDArray,
                 out: tvm.nd.NDArray):
    x_torch = torch.from_dlpack(x)
    w_torch = torch.from_dlpack(w)
    b_torch = torch.from_dlpack(b)
    out_torch = torch.from_dlpack(out)
    torch.mm(x_torch, w_torch.T, out=out_torch)
    torch.add(out_torch, b_torch, out=out_torch)
@tvm.register_func("env.relu", override=True)
def lnumpy_relu(x: tvm.nd.NDArray,
                out: tvm.nd.NDArray):
    x_torch = torch.from_dlpack(x)
    out_torch = torch.from_dlpack(out)
    torch.maximum(x_torch, torch.Tensor([0.0]), out=out_torch)
'''

RUN = '''
vm = relax.VirtualMachine(ex, tvm.cpu())
data_nd = tvm.nd.array(img.reshape(1, 784))
nd_params = {k: tvm.nd.array(v) for k, v in mlp_params.items()}
nd_res = vm["main"](data_nd,
nd_params["w0"],
nd_params["b0"],
nd_params["w1"],
nd_params["b1"])
pred_kind = np.argmax(nd_res.numpy(), axis=1)
print("预测的类别:", classes[pred_kind[0]])
'''

TE = '''
from tvm import te
A = te.placeholder((128, 128), name="A", dtype="float32")
B = te.placeholder((128, 128), name="B", dtype="float32")
def te_matmul(A: te.Tensor, B: te.Tensor) -> te.Tensor:
    assert A.shape[1] == B.shape[0]
    n = A.shape[0]
    m = B.shape[1]
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="matmul")
C = te_matmul(A, B)
te.create_prim_func([A, B, C]).show()
def te_relu(A: te.Tensor) -> te.Tensor:
    return te.compute(A.shape, lambda i, j: te.max(A[i, j], 0), name="relu")
X1=te.placeholder((1,128),name="X1",dtype="float32")
Y1=te_relu(X1)
te.create_prim_func([X1,Y1]).show()
C = te_matmul(A, B)
D = te_relu(C)
te.create_prim_func([A, B, D]).show()
te.create_prim_func([A, B, C, D]).show()
'''

BUILDER = '''
A = relax.Var("A", relax.TensorStructInfo((128, 128), "float32"))
B = relax.Var("B", relax.TensorStructInfo((128, 128), "float32"))
bb = relax.BlockBuilder()
with bb.function("main"):
    with bb.dataflow():
        C = bb.emit_te(te_matmul, A, B)
        D = bb.emit_te(te_relu, C)
        R = bb.emit_output(D)
    bb.emit_func_output(R, params=[A, B])
MyModule = bb.get()
MyModule.show()
'''

IMPORTER = '''
def map_param(param: nn.Parameter):
    return relax.const(
        param.data.cpu().numpy(), relax.TensorStructInfo(param.data.shape, "float32")
    )
def fetch_attr(fx_mod, target: str):
    """Helper function to fetch an attr"""
    target_atoms = target.split('.')
    attr_itr = fx_mod
    for i, atom in enumerate(target_atoms):
        if not hasattr(attr_itr, atom):
            raise RuntimeError(f"Node referenced nonexistant target {'.'.join(target_atoms[:i])}")
        attr_itr = getattr(attr_itr, atom)
    return attr_itr
def from_fx(fx_mod, input_shapes, call_function_map, call_module_map):
    input_index = 0
    node_map = {}
    named_modules = dict(fx_mod.named_modules())
    bb = relax.BlockBuilder()
    fn_inputs = []
    fn_output = None
    with bb.function("main"):
        with bb.dataflow():
            for node in fx_mod.graph.nodes:
                if node.op == "placeholder":
                    # create input placeholder
                    shape = input_shapes[input_index]
                    input_index += 1
                    input_var = relax.Var(
                        node.target, relax.TensorStructInfo(shape, "float32")
                    )
                    fn_inputs.append(input_var)
                    node_map[node] = input_var
                elif node.op == "get_attr":
                    node_map[node] = map_param(fetch_attr(fx_mod, node.target))
                elif node.op == "call_function":
                    node_map[node] = call_function_map[node.target](bb, node_map, node)
                elif node.op == "call_module":
                    named_module = named_modules[node.target]
                    node_map[node] = call_module_map[type(named_module)](bb, node_map, node, named_module)
                elif node.op == "output":
                    output = node_map[node.args[0]]
                    assert fn_output is None
                    fn_output = bb.emit_output(output)
        # output and finalize the function
        bb.emit_func_output(output, fn_inputs)
    return bb.get()
def map_matmul(bb, node_map, node: fx.Node):
    A = node_map[node.args[0]]
    B = node_map[node.args[1]]
    return bb.emit_te(te_matmul, A, B)
def map_relu(bb, node_map, node: fx.Node):
    A = node_map[node.args[0]]
    return bb.emit_te(te_relu, A)
'''  # noqa: E501

MY_MODEL = '''
class MyModel(nn.Module):
    def __init__(self):
        super(MyModel, self).__init__()
        self.weight = nn.Parameter(torch.randn(128, 128))
    def forward(self, x):
        x = torch.matmul(x, self.weight)
        x = torch.relu(x)
        return x
model = MyModel()
fx_module = fx.symbolic_trace(model)
type(fx_module)
for node in fx_module.graph.nodes:
    print(node)
    print(node.op)
MyModule = from_fx(
    fx_module,
    input_shapes = [(1, 128)],
    call_function_map = {
        torch.matmul: map_matmul,
        torch.relu: map_relu,
    },
    call_module_map={},
)
MyModule.show()
'''

MLP = '''
class MLP(nn.Module):
    def __init__(self):
        super(MLP, self).__init__()
        self.linear0 = nn.Linear(784, 128, bias=True)
        self.relu = nn.ReLU()
        self.linear1 = nn.Linear(128, 10, bias=True)
    def forward(self, x):
        x = self.linear0(x)
        x = self.relu(x)
        x = self.linear1(x)
        return x
mlp_model = MLP()
mlp_model.linear0.weight.data = torch.from_numpy(mlp_params["w0"])
mlp_model.linear0.bias.data = torch.from_numpy(mlp_params["b0"])
mlp_model.linear1.weight.data = torch.from_numpy(mlp_params["w1"])
mlp_model.linear1.bias.data = torch.from_numpy(mlp_params["b1"])
torch_res = mlp_model(torch.from_numpy(img.reshape(1, 784)))
pred_kind = np.argmax(torch_res.detach().numpy(), axis=1)
print("Torch Prediction:", class_names[pred_kind[0]])
from tvm import topi
def map_nn_linear(bb, node_map, node, nn_mod):
    x = node_map[node.args[0]]
    w = map_param(nn_mod.weight)
    if nn_mod.bias is not None:
        b = map_param(nn_mod.bias)
    y = bb.emit_te(topi.nn.dense, x, w)
    return bb.emit_te(topi.add, y, b)
def map_nn_relu(bb, node_map, node, nn_mod):
    return map_relu(bb, node_map, node)
MLPModule = from_fx(
    fx.symbolic_trace(mlp_model),
    input_shapes = [(1, 784)],
    call_function_map={
    },
    call_module_map={
        torch.nn.Linear: map_nn_linear,
        torch.nn.ReLU: map_nn_relu,
    },
)
MLPModule.show()
'''


@pytest.fixture
def lab(notebook, monkeypatch):
    """A notebook with torch, an image, and weights."""
    pytest.importorskip("torch")
    ipython = types.ModuleType("IPython")
    ipython.display = types.SimpleNamespace(Code=lambda text, language: text)
    ipython.get_ipython = lambda: None
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    rng = np.random.default_rng(7)
    notebook(IMPORTS)
    notebook.scope["img"] = rng.random((1, 28, 28), dtype=np.float32)
    notebook.scope["mlp_params"] = {
        "w0": rng.standard_normal((128, 784)).astype("float32"),
        "b0": rng.standard_normal(128).astype("float32"),
        "w1": rng.standard_normal((10, 128)).astype("float32"),
        "b1": rng.standard_normal(10).astype("float32")}
    return notebook


def expected(lab):
    p, x = lab.scope["mlp_params"], lab.scope["img"].reshape(1, 784)
    return np.maximum(x @ p["w0"].T + p["b0"], 0) @ p["w1"].T + p["b1"]


def check(lab, name="nd_res"):
    np.testing.assert_allclose(lab.scope[name].numpy(), expected(lab), rtol=1e-3, atol=1e-3)


def test_end_to_end_execution(lab):
    lab(MY_MODULE)
    lab('ex = relax.build(MyModule, target="llvm")')
    said = lab(RUN)
    check(lab)
    assert lab.scope["classes"][int(expected(lab).argmax())] in said


def test_functions_of_the_environment(lab):
    lab(WITH_EXTERN)
    lab(REGISTER)
    lab('ex = relax.build(MyModuleWithExternCall, target="llvm")')
    lab(RUN)
    check(lab)


def test_mixing_tensorir_and_libraries_and_binding_parameters(lab):
    lab(REGISTER)
    mixture = MY_MODULE.replace("class MyModule", "class MyModuleMixture")
    mixture = mixture.replace('R.call_dps_packed("relu0"', 'R.call_dps_packed("env.relu"')
    mixture = mixture.replace('out = R.call_dps_packed("linear0"',
                              'out = R.call_dps_packed("env.linear"')
    lab(mixture)
    lab('nd_params = {k: tvm.nd.array(v) for k, v in mlp_params.items()}')
    lab('MyModuleWithParams = relax.transform.BindParams("main", nd_params)(MyModuleMixture)')
    lab('IPython.display.Code(MyModuleWithParams.script(), language="python")')
    said = lab("print(MyModuleWithParams.script())")
    line = ('lv0 = R.call_dps_packed("linear0", (x, metadata["relax.expr.Constant"][0], '
            'metadata["relax.expr.Constant"][1]), out_sinfo=R.Tensor((1, 128), dtype="float32"))')
    assert line in said
    assert "def main(x: R.Tensor((1, 784), dtype=\"float32\")) -> R.Tensor((1, 10)" in said
    assert "# Metadata omitted. Use show_meta=True in script() method to show it." in said
    lab("script_with_meta = MyModuleWithParams.script(show_meta=True)\nprint(script_with_meta)")
    lab('ex = relax.build(MyModuleWithParams, target="llvm")\n'
        "vm = relax.VirtualMachine(ex, tvm.cpu())\n"
        "nd_res = vm['main'](tvm.nd.array(img.reshape(1, 784)))")
    check(lab)


def test_a_tuned_function_takes_the_place_of_the_original(lab):
    lab(REGISTER)
    lab(MIXTURE)
    lab('nd_params={k:tvm.nd.array(v) for k,v in mlp_params.items()}\n'
        'data_nd=tvm.nd.array(img.reshape(1,784))')
    lab('MyModuleWithParams=relax.transform.BindParams("main",nd_params)(MyModuleMixture)')
    lab('ex = relax.build(MyModuleWithParams, target="llvm")\n'
        "vm = relax.VirtualMachine(ex, tvm.cpu())\n"
        'nd_res = vm["main"](data_nd)')
    check(lab)
    said = lab('ftimer=vm.module.time_evaluator("main",tvm.cpu(),number=100)\n'
               'print("==========Attempt %d,time-cost:%.9f ms======="'
               "%(0,ftimer(data_nd).mean*1000))")
    assert re.search(r"time-cost:\d+\.\d{9} ms", said)
    # what the notes tune, scheduled by hand here
    lab('mod_linear = tvm.IRModule.from_expr('
        'MyModuleMixture["linear0"].with_attr("global_symbol", "main"))\n'
        'sch = tvm.tir.Schedule(mod_linear)\n'
        'i, j, k = sch.get_loops(sch.get_block("Y"))\n'
        "sch.unroll(sch.split(k, [None, 8])[1])")
    lab('MyModuleWithParams2 = relax.transform.BindParams("main", nd_params)(MyModuleMixture)\n'
        'new_func = sch.mod["main"].with_attr("global_symbol", "linear0")\n'
        'gv = MyModuleWithParams2.get_global_var("linear0")\n'
        "MyModuleWithParams2.update_func(gv, new_func)")
    lab('ex = relax.build(MyModuleWithParams2, target="llvm")\n'
        "vm = relax.VirtualMachine(ex, tvm.cpu())\n"
        'nd_res = vm["main"](data_nd)\n'
        "pred_kind = np.argmax(nd_res.numpy(), axis=1)\n"
        'print("MyModuleWithParams2 Prediction:", class_names[pred_kind[0]])')
    check(lab)


def test_block_builder_with_tensor_expressions(lab):
    lab(TE)
    said = lab(BUILDER)
    for line in (
        "def te_relu(lv: T.Buffer((T.int64(128), T.int64(128)), \"float32\"), "
        "relu: T.Buffer((T.int64(128), T.int64(128)), \"float32\")):",
        "lv = R.call_tir(cls.te_matmul, (A, B), out_sinfo=R.Tensor((128, 128), dtype=\"float32\"))",
        "gv: R.Tensor((128, 128), dtype=\"float32\") = lv1",
    ):
        assert line in re.sub(r"\x1b\[[0-9;]*m", "", said)
    lab("type(C)\ntvm.relax.expr.DataflowVar\nassert isinstance(C, relax.Var)")
    lab('ex = relax.build(MyModule, target="llvm")\nvm = relax.VirtualMachine(ex, tvm.cpu())\n'
        'res = vm["main"](tvm.nd.array(a_np), tvm.nd.array(b_np))')
    np.testing.assert_allclose(lab.scope["res"].numpy(), lab.scope["c_mm_relu"], rtol=1e-4)


def test_the_hand_written_importer(lab):
    lab(TE)
    lab(IMPORTER)
    lab(MY_MODEL)
    lab('ex = relax.build(MyModule, target="llvm")\nvm = relax.VirtualMachine(ex, tvm.cpu())\n'
        "x = torch.randn(1, 128)\n"
        'res = vm["main"](x.numpy()).numpy()\n'
        "want = model(x).detach().numpy()")
    np.testing.assert_allclose(lab.scope["res"], lab.scope["want"], rtol=1e-4, atol=1e-4)
    said = re.sub(r"\x1b\[[0-9;]*m", "", lab(MLP))
    assert ('lv = R.call_tir(cls.dense, (x, metadata["relax.expr.Constant"][0]), '
            'out_sinfo=R.Tensor((1, 128), dtype="float32"))') in said
    lab('ex = relax.build(MLPModule, target="llvm")\nvm = relax.VirtualMachine(ex, tvm.cpu())\n'
        'nd_res = vm["main"](tvm.nd.array(img.reshape(1, 784)))')
    check(lab)
    assert "main" in lab.scope["ex"].compiled


def test_weights_come_out_of_a_pickle_as_they_went_in(lab, tmp_path):
    path = tmp_path / "fasionmnist_mlp_params.pkl"
    path.write_bytes(pickle.dumps(lab.scope["mlp_params"]))
    lab(f'mlp_params = pkl.load(open({str(path)!r}, "rb"))')
    lab(MY_MODULE)
    lab('ex = relax.build(MyModule, target="llvm")')
    lab(RUN)
    check(lab)
