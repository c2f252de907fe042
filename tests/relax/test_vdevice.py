"""Virtual devices: what a module has, tensors that are on one, and copies between them."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.ir import VDevice, assert_structural_equal
from mlc_lab.relax import op as R
from mlc_lab.script import from_source
from mlc_lab.script import relax as R_words

TEXT = """
@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0),
                                       I.vdevice("cuda", 1, "shared")]})

    @R.function
    def main(x: R.Tensor((3,), "float32", "cuda:1"), y: R.Tensor((3,), "float32", "vdevice:0")):
        z = R.to_vdevice(y, "cuda:1")
        w = R.add(x, z)
        return w
"""


def test_a_script_names_the_devices_of_its_module():
    mod = from_source(TEXT)
    x, y = (p.struct_info.vdevice for p in mod["main"].params)
    assert (x.target.kind.name, x.vdevice_id, x.memory_scope) == ("cuda", 1, "shared")
    assert y == VDevice("llvm") and y != x
    assert mod["main"].ret_struct_info.vdevice == x
    assert 'w: R.Tensor((3,), dtype="float32", vdevice="cuda:1")' in mod.script()
    again = from_source(mod.script())
    assert_structural_equal(again, mod)
    assert again.global_infos == mod.global_infos
    assert again["main"].params[0].struct_info.vdevice == x


def test_a_module_that_has_no_such_device_is_refused():
    with pytest.raises(tvm.DiagnosticError, match=r"the module has 2 such device"):
        from_source(TEXT.replace('"float32", "cuda:1"', '"float32", "cuda:7"'))


def test_python_may_evaluate_annotations_before_the_module_is_known():
    info = R_words.Tensor((3,), "float32", "vdevice:9")
    with pytest.raises(ValueError, match="the module has 0 such device"):
        relax.Var("x", info)
    known = relax.Var("x", R_words.Tensor((3,), "float32", "cuda:1")).struct_info.vdevice
    assert (known.target.kind.name, known.vdevice_id) == ("cuda", 1)


def var(device):
    return relax.Var("x", relax.TensorStructInfo((3,), "float32", device))


def test_operands_are_on_one_device():
    cpu, gpu = VDevice("llvm"), VDevice("cuda")
    assert R.add(var(cpu), var(None)).struct_info.vdevice == cpu
    assert R.to_vdevice(var(cpu), "cuda").struct_info.vdevice == gpu
    with pytest.raises(ValueError, match="copy one with R.to_vdevice"):
        R.add(var(cpu), var(gpu))


def test_what_is_known_of_a_device_decides_which_info_is_more_general():
    cpu, gpu, none = (var(d).struct_info for d in (VDevice("llvm"), VDevice("cuda"), None))
    assert none.is_base_of(cpu) and not cpu.is_base_of(none) and not cpu.is_base_of(gpu)
    assert relax.analysis.struct_info_lca(cpu, gpu).vdevice is None
    assert relax.analysis.struct_info_lca(cpu, cpu).vdevice == VDevice("llvm")


def test_a_copy_to_a_device_runs():
    mod = from_source(TEXT.replace(', "cuda:1")', ', "llvm")').replace('"float32", "llvm"',
                                                                       '"float32"'))
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x = tvm.nd.array(np.ones(3, "float32"))
    assert vm["main"](x, x).numpy().tolist() == [2, 2, 2]


def test_global_infos_are_given_by_hand():
    mod = tvm.IRModule()
    mod.update_global_info("vdevice", [VDevice("llvm")])
    assert mod.global_infos["vdevice"] == [VDevice("llvm")]
    with pytest.raises(ValueError, match="0 or more"):
        VDevice("llvm", -1)
