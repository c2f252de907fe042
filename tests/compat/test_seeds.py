"""Course notes of several years, as they stand: each listing is a cell of a notebook.

The listings are those of public notes on the Machine Learning Compilation course; some lost their
indentation on the way and got it back here.
"""

import numpy as np
import pytest

from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.script import from_source

from .seeds import LINEAR, MATMUL, SYMBOLIC, TENSORS

MM_RELU = '''
@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def mm_relu(A: T.Buffer((128, 128), "float32"),
                B: T.Buffer((128, 128), "float32"),
                C: T.Buffer((128, 128), "float32")):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        # 存储数据的多维数组（缓冲区）
        Y = T.alloc_buffer((128, 128), dtype="float32")
        # 驱动张量计算的循环嵌套
        for i, j, k in T.grid(128, 128, 128):
            # 计算语句
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                vk = T.axis.reduce(128, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        # 驱动张量计算的循环嵌套
        for i, j in T.grid(128, 128):
            # 计算语句
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
'''


def test_mm_relu_is_shown_transformed_and_run(notebook):
    pytest.importorskip("IPython")
    notebook(MM_RELU)
    notebook('import IPython\nIPython.display.Code(MyModule.script(), language="python")')
    assert notebook("print(MyModule.script())") == AFTER_PARSING
    notebook("""
sch = tvm.tir.Schedule(MyModule)
# 获取对应的块及相应循环的引用
block_Y = sch.get_block("Y", func_name="mm_relu")
i, j, k = sch.get_loops(block_Y)
# 变换：将原有的j循环拆分成两个循环（4表示内部循环长度）
j0, j1 = sch.split(j, factors=[None, 4])
IPython.display.Code(sch.mod.script(), language="python")
""")
    assert "for i, j_0, j_1, k in T.grid(128, 32, 4, 128):" in notebook("print(sch.mod.script())")
    notebook("""
sch.reorder(j0, k, j1)
block_C = sch.get_block("C", "mm_relu")
sch.reverse_compute_at(block_C, j0)
IPython.display.Code(sch.mod.script(), language="python")
""")
    assert AFTER_COMPUTE_AT in notebook("print(sch.mod.script())")
    notebook("sch.decompose_reduction(block_Y, k)")
    assert 'with T.block("Y_init"):' in notebook("print(sch.mod.script())")
    notebook(TENSORS + """
rt_lib = tvm.build(MyModule, target="llvm")
func_mm_relu = rt_lib["mm_relu"]
func_mm_relu(a_nd, b_nd, c_nd)
# 将TVM与numpy的结果进行比较
np.testing.assert_allclose(c_mm_relu, c_nd.numpy(), rtol=1e-5)

rt_lib_after = tvm.build(sch.mod, target="llvm")
rt_lib_after["mm_relu"](a_nd, b_nd, c_nd)
np.testing.assert_allclose(c_mm_relu, c_nd.numpy(), rtol=1e-5)
""")


AFTER_PARSING = '''# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def mm_relu(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), \
C: T.Buffer((128, 128), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        # with T.block("root"):
        Y = T.alloc_buffer((128, 128))
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(Y[vi, vj])
                with T.init():
                    Y[vi, vj] = T.float32(0.0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(Y[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0.0))
'''

AFTER_COMPUTE_AT = '''
        for i, j_0 in T.grid(128, 32):
            for k, j_1 in T.grid(128, 4):
                with T.block("Y"):
                    vi = T.axis.spatial(128, i)
                    vj = T.axis.spatial(128, j_0 * 4 + j_1)
                    vk = T.axis.reduce(128, k)
                    T.reads(A[vi, vk], B[vk, vj])
                    T.writes(Y[vi, vj])
                    with T.init():
                        Y[vi, vj] = T.float32(0.0)
                    Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
            for ax0 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(128, i)
                    vj = T.axis.spatial(128, j_0 * 4 + ax0)
                    T.reads(Y[vi, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = T.max(Y[vi, vj], T.float32(0.0))
'''

AFTER_SCHEDULE_MM = '''        # with T.block("root"):
        for i, j_0 in T.grid(128, 32):
            for j_1_init in range(4):
                with T.block("C_init"):
                    vi = T.axis.spatial(128, i)
                    vj = T.axis.spatial(128, j_0 * 4 + j_1_init)
                    T.reads()
                    T.writes(C[vi, vj])
                    C[vi, vj] = T.float32(0.0)
            for k, j_1 in T.grid(128, 4):
                with T.block("C_update"):
                    vi = T.axis.spatial(128, i)
                    vj = T.axis.spatial(128, j_0 * 4 + j_1)
                    vk = T.axis.reduce(128, k)
                    T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
'''


def test_a_schedule_its_trace_and_its_time(notebook):
    notebook(MATMUL)
    shown = notebook('''
def schedule_mm(sch: tvm.tir.Schedule, jfactor=4):
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_0, j_1 = sch.split(loop=j, factors=[None, jfactor])
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch

sch = tvm.tir.Schedule(MyModule)
sch = schedule_mm(sch)
sch.mod.show()
''')
    assert AFTER_SCHEDULE_MM in shown
    times = notebook(TENSORS + '''
# Before transformation
lib = tvm.build(MyModule, target= "llvm")
f_timer_before = lib.time_evaluator("main", tvm.cpu())
print("Time cost of MyModule: %.3f ms" % (f_timer_before(a_nd, b_nd, c_nd).mean * 1000))
# After transformation
lib = tvm.build(sch.mod, target="llvm")
f_timer_after = lib.time_evaluator("main", tvm.cpu())
print("Time cost of MyModule=>schedule_mm: %.3f ms" % (f_timer_after(a_nd, b_nd, c_nd).mean * 1000))
''')
    assert times.count("Time cost") == 2
    scope = notebook.scope
    np.testing.assert_allclose(scope["c_nd"].numpy(), scope["c_mm"], rtol=1e-5)
    assert notebook("print(sch.trace)") == '''# from tvm import tir
def apply_trace(sch: tir.Schedule) -> None:
  b0 = sch.get_block(name="C", func_name="main")
  l1, l2, l3 = sch.get_loops(block=b0)
  l4, l5 = sch.split(loop=l2, factors=[None, 4], preserve_unit_iters=True, \
disable_predication=False)
  sch.reorder(l1, l4, l3, l5)
  b6 = sch.decompose_reduction(block=b0, loop=l3)
'''


def test_symbolic_shapes(notebook):
    notebook(SYMBOLIC)
    out = notebook("print(MyModule.script())")
    assert "    m = T.int64()\n        X = T.match_buffer(x, (1, m))\n        n = T.int64()" in out
    notebook('''
lib = tvm.build(MyModule, target="llvm")
for m, n in [(784, 128), (128, 10)]:
    x, w, b = (np.random.randn(*s).astype("float32") for s in [(1, m), (n, m), (n,)])
    z, y = (tvm.nd.empty((1, n), dtype="float32") for _ in range(2))
    lib["linear0"](tvm.nd.array(x), tvm.nd.array(w), tvm.nd.array(b), z)
    lib["relu0"](z, y)
    tvm.testing.assert_allclose(y.numpy(), np.maximum(x @ w.T + b, 0), rtol=1e-4, atol=1e-4)
''')


def test_a_function_taken_out_of_its_module_and_put_back(notebook):
    notebook(LINEAR + '''
mod_linear = tvm.IRModule.from_expr(MyModuleMixture["linear0"].with_attr("global_symbol", "main"))
sch = tvm.tir.Schedule(mod_linear)
new_func = sch.mod["main"].with_attr("global_symbol", "linear0")
gv = MyModuleMixture.get_global_var("linear0")
MyModuleMixture.update_func(gv, new_func)
lib = tvm.build(MyModuleMixture, target="llvm")
x, w, b = (np.random.randn(*s).astype("float32") for s in [(1, 784), (128, 784), (128,)])
z = tvm.nd.empty((1, 128))
lib["linear0"](tvm.nd.array(x), tvm.nd.array(w), tvm.nd.array(b), z)
tvm.testing.assert_allclose(z.numpy(), x @ w.T + b, rtol=1e-3, atol=1e-3)
''')


PRINTED = [AFTER_PARSING, '''
# from tvm.script import ir as I
# from tvm.script import tir as T
@I.ir_module
class Module:
    @T.prim_func
    def mm_relu(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), \
C: T.Buffer((128, 128), "float32")):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        # with T.block("root"):
        Y = T.alloc_buffer((128, 128))
        for i, j_0, j_1, k in T.grid(128, 32, 4, 128):
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 4 + j_1)
                vk = T.axis.reduce(128, k)
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(Y[vi, vj])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(Y[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
''', '''
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def dense(x: T.Buffer((T.int64(1), T.int64(784)), "float32"), \
B: T.Buffer((T.int64(128), T.int64(784)), "float32"), \
T_matmul_NT: T.Buffer((T.int64(1), T.int64(128)), "float32")):
        T.func_attr({"layout_free_buffers": [1], "tir.noalias": T.bool(True)})
        # with T.block("root"):
        for i0, i1, k in T.grid(T.int64(1), T.int64(128), T.int64(784)):
            with T.block("T_matmul_NT"):
                v_i0, v_i1, v_k = T.axis.remap("SSR", [i0, i1, k])
                T.reads(x[v_i0, v_k], B[v_i1, v_k])
                T.writes(T_matmul_NT[v_i0, v_i1])
                with T.init():
                    T_matmul_NT[v_i0, v_i1] = T.float32(0.0)
                T_matmul_NT[v_i0, v_i1] = T_matmul_NT[v_i0, v_i1] + x[v_i0, v_k] * B[v_i1, v_k]

    @T.prim_func(private=True)
    def te_relu(lv: T.Buffer((T.int64(1), T.int64(128)), "float32"), \
relu: T.Buffer((T.int64(1), T.int64(128)), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        # with T.block("root"):
        for i, j in T.grid(T.int64(1), T.int64(128)):
            with T.block("relu"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(lv[v_i, v_j])
                T.writes(relu[v_i, v_j])
                relu[v_i, v_j] = T.max(lv[v_i, v_j], T.float32(0.0))
''']


@pytest.mark.parametrize("text", PRINTED, ids=["mm_relu", "split", "with_int64"])
def test_what_the_notes_show_as_printed_is_read_and_printed_alike(text):
    mod = from_source(text)
    printed = mod.script()
    assert_structural_equal(from_source(printed), mod)

    def core(script):  # versions differ in the header and in how they write constants
        return [line.replace("T.float32(0)", "T.float32(0.0)") for line in script.split("\n")
                if line.strip() and not line.startswith("#") and "func_attr" not in line]

    assert core(text) == core(printed)
