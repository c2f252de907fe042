"""Kernels as PTX: what stands in it, what NVIDIA's assembler says, and what the kernels compute.

What LLVM is given is run here, on the CPU: a thread of the system for each thread of a block, with
barriers between them. So all but LLVM's generator of PTX is compared with the interpreter.
"""

import ctypes
import importlib.util
import pathlib
import re
import shutil
import subprocess
import threading
from functools import partial

import llvmlite.binding as binding
import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend import ptx
from mlc_lab.backend.device.host import HostFunction
from mlc_lab.backend.interp import interpret
from mlc_lab.backend.llvm_emit import CodegenError
from mlc_lab.backend.meaning import value
from mlc_lab.ir import dtype as dt
from mlc_lab.lower import LowerError
from mlc_lab.lower.split_host_device import is_kernel, launch_extents
from mlc_lab.runtime import jit
from mlc_lab.script import from_source
from mlc_lab.target import Target

from lower.thread_sums import together

from .gpu_programs import PROGRAMS, arguments, elementwise, missing, tiled

#: as the program of this name, without what PTX does not have
EXTREMES = ("T.max(T.min(A[vi], T.float32(1)), T.float32(-1)) + T.round(A[vi]) "
            "+ T.Select(A[vi] > T.float32(0), T.float32(2), T.float32(3))")
KERNELS = {**PROGRAMS, "extremes": lambda: elementwise(EXTREMES),
           "logarithms": lambda: elementwise("T.log2(T.abs(A[vi])) + T.log10(T.abs(A[vi]))"),
           "remainders": lambda: elementwise(
               "T.floormod(A[vi], T.float32(0.75)) + T.floordiv(A[vi], T.float32(0.75))"),
           "half": lambda: elementwise("T.exp(A[vi]) * A[vi]", "float16"),
           **{f"{kind} of {dtype} in {threads} threads": partial(
               together, kind, dtype, 2, 50, threads)
              for kind, dtype, threads in (("sum", "float16", 8), ("sum", "int64", 32),
                                           ("max", "float64", 24), ("sum", "int8", 16),
                                           ("argmax", "float32", 40))}}


def text_of(mod, target="nvptx"):
    return tvm.build(mod, target=target).imported_modules[0].get_source("ptx")


def warp(body, dtype="float32", scope="local"):
    """A kernel of one warp, written as it runs; t is the lane."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((32,), "{dtype}"), B: T.Buffer((32,), "{dtype}")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        S = T.decl_buffer((32,), "{dtype}", scope="{scope}")
        {body}
""")


# -- what stands in it ----------------------------------------------------------------------------

def test_kernels_have_what_a_launch_needs():
    text = text_of(tiled(), "nvptx -mcpu=sm_75")
    for word in (".visible .entry main_kernel(", ".maxntid 16, 1, 1", ".target sm_75", "bar.sync",
                 "%tid.x", "%ctaid.x", "ld.shared.", "st.shared.v4", "ld.global.", "fma.rn.f32"):
        assert word in text, text[:2000]
    assert "\tld.b32" not in text  # LLVM knows of all memory where it lies


def test_a_module_of_ptx_is_to_be_read():
    rt = tvm.build(tiled(), target="nvptx")
    kernels = rt.imported_modules[0]
    assert kernels.type_key == "nvptx" and kernels.function_names == ("main_kernel",)
    assert kernels.get_source() == kernels.get_source("ptx") == rt.get_source("asm")
    assert "main_kernel(A.data" in rt.get_source("tir") and "ptx_kernel" in rt.get_source("ll")
    for call in (lambda: rt["main"], lambda: kernels["main_kernel"]):
        with pytest.raises(RuntimeError, match='cannot be called here.*build it for "cuda"'):
            call()


def test_dynamic_shared_memory_has_the_size_that_a_launch_gives():
    text = text_of(warp("S[t] = A[t]\n        B[31 - t] = S[t]", scope="shared.dyn"))
    assert ".extern .shared .align 16 .b8 main_kernel_dynamic[]" in text
    assert "// a launch of main_kernel gives 128 bytes of dynamic shared memory" in text


def test_shuffles_and_masks():
    text = text_of(warp(
        "B[t] = T.tvm_warp_shuffle_down(T.tvm_warp_activemask(), A[t], 4, 32, 32)"
        " + T.tvm_warp_shuffle_up(T.tvm_warp_activemask(), A[t], 1, 8, 32)"
        " + T.tvm_warp_shuffle(T.tvm_warp_activemask(), A[t], 0, 32, 32)\n"
        '        T.evaluate(T.tvm_storage_sync("warp"))'))
    for word in ("activemask", "shfl.sync.down.b32", "shfl.sync.up.b32", "shfl.sync.idx.b32",
                 "bar.warp.sync", ", 4, 31,", ", 1, 6144,"):
        assert word in text, text


def test_memory_of_a_warp_is_shared_memory():
    text = text_of(warp("S[t] = A[t]\n        B[t] = S[31 - t]", scope="warp"))
    assert "st.shared" in text and "ld.shared" in text and "bar" in text


@pytest.mark.parametrize("program, words", [
    (lambda: elementwise("T.pow(A[vi], T.float32(1.5))"), "pow of float32 has no instruction"),
    (lambda: elementwise("T.sin(A[vi])"), 'sin of float32.*build for "cuda"'),
    (lambda: elementwise("T.log(A[vi])", "float64"), "log of float64"),
    (lambda: elementwise('T.call_extern("float32", "f", A[vi])'), "tir.call_extern cannot be"),
    (lambda: elementwise('T.call_llvm_intrin("float32", "llvm.cos.f32", A[vi])'), "llvm.nvvm"),
    (lambda: warp("B[t] = T.tvm_warp_shuffle(0, A[t], 0, 5, 32)"), "a power of two"),
])
def test_what_ptx_does_not_have_is_refused_by_name(program, words):
    with pytest.raises((CodegenError, LowerError), match=f"main_kernel: .*{words}"):
        text_of(program())


# -- what NVIDIA's assembler says -----------------------------------------------------------------

def ptxas():
    """NVIDIA's assembler, on the path or of the package nvidia-cuda-nvcc-cu12; it needs no GPU."""
    found = shutil.which("ptxas")
    spec = importlib.util.find_spec("nvidia") if found is None else None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in pathlib.Path(folder).glob("*/bin/ptxas"):
            path.chmod(path.stat().st_mode | 0o100)  # pip leaves it without
            found = str(path)
    if found is None:
        missing("ptxas", "NVIDIA's assembler is not there")
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_ptxas_assembles_it(name, tmp_path):
    assembler = ptxas()
    for arch in ("sm_75", "sm_90"):
        source = tmp_path / f"{arch}.ptx"
        source.write_text(text_of(KERNELS[name](), f"nvptx -mcpu={arch}"))
        made = subprocess.run([assembler, f"-arch={arch}", "-o", str(tmp_path / "k"), str(source)],
                              capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr + source.read_text()


# -- what it computes -----------------------------------------------------------------------------

class OnTheCPU(HostFunction):
    """A function of the host whose kernels are run block by block, in threads of the system."""

    def __init__(self, mod):
        func = next(f for f in mod.functions.values() if not is_kernel(f))
        super().__init__("main", func, mod, {v.name_hint: f for v, f in mod.functions.items()
                                             if is_kernel(f)}, {}, self)
        self.at, self.kept = threading.local(), []
        text, _ = ptx.generate(mod, ptx.machine(Target("nvptx")))
        self.engine = self._compiled(text)

    def _compiled(self, text):
        text = re.sub(r"addrspacecast \(ptr addrspace\(3\) (@[\w.]+) to ptr\)", r"\1", text)
        text = text.replace("ptx_kernel ", "").replace("addrspace(3) ", "").replace(
            "@llvm.nvvm.", "@nvvm.")
        text = "\n".join(line for line in text.splitlines() if not line.startswith("target"))
        jit.binding()
        self.module = binding.parse_assembly(text)
        engine = binding.create_mcjit_compiler(self.module, jit.host_machine().linker_machine())
        for name in re.findall(r"^declare .*@(nvvm[\w.]+)\(", text, re.M):
            if "barrier0" in name:
                call = ctypes.CFUNCTYPE(None)(lambda: self.at.barrier.wait(10) and None)
            elif ".shfl." in name:
                kind = ctypes.c_float if name.endswith("f32") else ctypes.c_int32
                call = ctypes.CFUNCTYPE(kind, ctypes.c_int32, kind, ctypes.c_int32,
                                        ctypes.c_int32)(partial(self._shuffle, name))
            else:
                _, word, letter = name.rsplit(".", 2)
                at = "xyz".index(letter)
                call = ctypes.CFUNCTYPE(ctypes.c_int32)(
                    lambda word=word, at=at: getattr(self.at, word)[at])
            self.kept.append(call)
            engine.add_global_mapping(self.module.get_function(name),
                                      ctypes.cast(call, ctypes.c_void_p).value)
        engine.finalize_object()
        return engine

    def _shuffle(self, name, mask, own, by, bounds):
        """As the PTX ISA says of shfl.sync; all threads of the block come to it."""
        x, y, z = self.at.tid
        wide, high, _ = self.at.block
        number = x + wide * (y + high * z)
        self.at.told[number] = own
        self.at.barrier.wait(10)
        warp, lane = number - number % 32, number % 32
        assert mask & 1 << lane
        parted = bounds >> 8
        least = lane & parted
        most = least | bounds & 31 & ~parted
        way = name.split(".")[-2]
        source = lane - by if way == "up" else lane + by if way == "down" else (
            least | by & ~parted)
        inside = source >= most if way == "up" else source <= most
        found = self.at.told.get(warp + source, own) if inside else own
        self.at.barrier.wait(10)
        return found

    # the memory of the device
    def allocate(self, nbytes):
        memory = ctypes.create_string_buffer(nbytes)
        self.kept.append(memory)
        return ctypes.addressof(memory)

    def free(self, memory):
        pass

    def _launch(self, call, env):
        func = self.mod[call.op.name_hint]
        given = type(env)({p: value(a, env) for p, a in zip(func.params, call.args)})
        extents = {tag: int(value(e, given)) for tag, e in launch_extents(func).items()}
        grid, block = ([extents.get(f"{word}.{x}", 1) for x in "xyz"]
                       for word in ("blockIdx", "threadIdx"))
        types = [ctypes.c_void_p if dt.is_handle(p.dtype) else
                 np.ctypeslib.as_ctypes_type(dt.numpy_dtype(p.dtype)) for p in func.params]
        run = ctypes.CFUNCTYPE(None, *types)(self.engine.get_function_address(call.op.name_hint))
        arguments = [given[p] for p in func.params]
        for where in np.ndindex(*grid):
            barrier, told = threading.Barrier(int(np.prod(block))), {}

            def thread(at, where=where, barrier=barrier, told=told):
                self.at.ctaid, self.at.tid, self.at.barrier = where, at, barrier
                self.at.block, self.at.told = block, told
                run(*arguments)

            threads = [threading.Thread(target=thread, args=(at,)) for at in np.ndindex(*block)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()


@pytest.mark.parametrize("name", KERNELS)
def test_it_computes_what_the_interpreter_does(name):
    mod = KERNELS[name]()
    given = arguments(mod)
    want = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
    interpret(mod, *want)
    arrays = [tvm.nd.array(a) if isinstance(a, np.ndarray) else a for a in given]
    OnTheCPU(ptx.lowered(mod, Target("nvptx")))(*arrays)
    for got, right in zip(arrays, want):
        if isinstance(right, np.ndarray):
            tolerance = 2e-2 if right.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(got.numpy(), right, tolerance, tolerance)
