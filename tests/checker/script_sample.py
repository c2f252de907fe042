"""Scripts as people write them: a checker that knows the package has nothing to say about them."""

import mlc_lab as tvm
from mlc_lab import tir
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R
from mlc_lab.script import tir as T


@T.prim_func
def double(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in T.serial(128):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = A[vi] * T.float32(2)


@I.ir_module
class Module:
    @T.prim_func
    def mm_relu(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"),
                C: T.Buffer((128, 128), "float32")):
        Y = T.alloc_buffer((128, 128), "float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor(("n", 128), "float32")) -> R.Tensor(("n", 128), "float32"):
        n = T.int64()
        with R.dataflow():
            y = R.add(x, R.const(1.0))
            gv = R.call_tir(Module.mm_relu, (x, y), R.Tensor((n, 128), "float32"))
            R.output(gv)
        return gv


# What scripts give is no function and no class any more.
print(double.params, double.script(), Module["main"], Module.script())
sch = tir.Schedule(double)
block = sch.get_block("C")
outer, middle = sch.split(sch.get_loops(block)[0], factors=[None, 32])
sch.vectorize(middle)
tile = sch.sample_perfect_tile(outer, n=2, decision=[2, 2])
built = tvm.build(sch.mod, target="llvm")
