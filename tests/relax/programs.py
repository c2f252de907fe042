# ruff: noqa: E501 (TVM prints one statement a line)
"""Relax programs as TVM 0.18 prints them: the tests of printing, parsing and passes share them."""

DATAFLOW = '''
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(var_x: T.handle, var_y: T.handle):
        T.func_attr({"tir.noalias": T.bool(True)})
        n = T.int64()
        x = T.match_buffer(var_x, (n, T.int64(4)))
        y = T.match_buffer(var_y, (n, T.int64(4)))
        # with T.block("root"):
        for i, j in T.grid(n, T.int64(4)):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(x[vi, vj])
                T.writes(y[vi, vj])
                y[vi, vj] = x[vi, vj] * T.float32(2.0)

    @R.function
    def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
        n = T.int64()
        R.func_attr({"num_input": 1})
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
            lv1: R.Tensor((n, 4), dtype="float32") = R.add(lv, R.const(1.5, "float32"))
            gv: R.Tensor((n, 4), dtype="float32") = lv1
            R.output(gv)
        return gv
'''

EVERYTHING = '''
@I.ir_module
class Module:
    I.module_attrs({"a": 1})

    @T.prim_func(private=True)
    def f(x: T.Buffer((T.int64(4),), "float32"), y: T.Buffer((T.int64(4),), "float32")):
        # with T.block("root"):
        for i in range(T.int64(4)):
            with T.block("b"):
                vi = T.axis.spatial(T.int64(4), i)
                T.reads(x[vi])
                T.writes(y[vi])
                y[vi] = x[vi]

    @R.function(private=True)
    def helper(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        return x

    @R.function(pure=False)
    def main(x: R.Tensor((4,), dtype="float32"), c: R.Tensor((), dtype="bool"), s: R.Shape(["n", "m"]), t: R.Tuple(R.Tensor(("n",), dtype="float32"), R.Object), u: R.Tensor, v: R.Tensor(ndim=2), w: R.Tensor(dtype="int32", ndim=1), q: R.Prim("int64"), k: R.Prim(value="l"), fn: R.Callable((R.Tensor((4,), dtype="float32"),), R.Object, True), fo: R.Callable, sh: R.Shape(ndim=2), s1: R.Shape(ndim=-1), xx: R.Tensor(("n + 1", "n * 2"))) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32"))):
        n = T.int64()
        m = T.int64()
        l = T.int64()
        R.func_attr({"num_input": 1, "relax.force_pure": True})
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
            lv1 = R.call_dps_packed("aa", (x,), out_sinfo=[R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")])
            lv2: R.Tensor((4,), dtype="float32") = lv1[0]
            lv3: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.f, (x, x), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
            lv4: R.Tensor((4,), dtype="float32") = R.call_pure_packed("vm.builtin.copy", x, sinfo_args=(R.Tensor((4,), dtype="float32"),))
            gv: R.Tensor((4,), dtype="float32") = R.add(lv, lv2)
            R.output(gv)
        a: R.Tensor((4,), dtype="float32") = cls.helper(x)
        R.print(a, format=R.str("hi {}"))
        R.assert_op(c, a, format=R.str("oops"))
        d: R.Tensor((4,), dtype="float32") = R.call_packed("foo", a, R.prim_value(1), R.str("s"), R.dtype("float32"), sinfo_args=(R.Tensor((4,), dtype="float32"),))
        d2: R.Object = R.call_packed("foo", sinfo_args=(R.Object,))
        e: R.Tensor((m, 8), dtype="float32") = R.match_cast(u, R.Tensor((m, 8), dtype="float32"))
        gv1: R.Object = R.make_closure(cls.helper, R.tuple())
        z: R.Object = R.invoke_closure(gv1, (x,), sinfo_args=(R.Object,))
        nn: R.Object = R.call_builtin_with_ctx("vm.x", (x,), sinfo_args=(R.Object,))
        @R.function
        def inner(y: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
            g: R.Tensor((4,), dtype="float32") = R.add(y, y)
            return g

        i1: R.Tensor((4,), dtype="float32") = inner(x)
        if c:
            w1: R.Tensor((4,), dtype="float32") = R.add(x, x)
            gv2: R.Tensor((4,), dtype="float32") = R.multiply(w1, w1)
            r: R.Tensor((4,), dtype="float32") = gv2
        else:
            r: R.Tensor((4,), dtype="float32") = x
        al: R.Tensor((2, n), dtype="float32") = R.builtin.alloc_tensor(R.shape([2, n]), R.dtype("float32"), R.prim_value(0), R.str("global"))
        rr: R.Tensor((), dtype="int64") = R.const(1, "int64")
        tup: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = r, a
        tup1: R.Tuple(R.Tensor((4,), dtype="float32")) = (r,)
        st: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
        at: R.Tensor((2,), dtype="float32") = R.memory.alloc_tensor(st, R.prim_value(0), R.shape([2]), R.dtype("float32"), R.prim_value(0))
        R.memory.kill_tensor(at)
        nul: R.Object = R.null_value()
        so: R.Tensor((2,), dtype="float32") = R.strided_slice(x, (R.prim_value(0),), (R.prim_value(1),), (R.prim_value(3),), assume_inbound=False)
        sp: R.Tuple(R.Tensor((1,), dtype="float32"), R.Tensor((1,), dtype="float32"), R.Tensor((2,), dtype="float32")) = R.split(x, indices_or_sections=[1, 2], axis=0)
        oh: R.Tensor((4,), dtype="float32") = R.one_hot(R.const(1, "int32"), R.prim_value(T.float32(1.0)), R.prim_value(T.float32(0.0)), depth=4, axis=-1)
        tr: R.Tensor((n + 1, n * 2)) = R.tril(xx, k=0)
        return (r, tup)
'''

#: programs by name
PROGRAMS = {"dataflow": DATAFLOW, "everything": EVERYTHING}
