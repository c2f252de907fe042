# ruff: noqa: E501
"""Programs as text, exactly as TVM 0.18 prints them: one for each thing a script can say."""

HEADER = "# from tvm.script import tir as T\n\n"

#: bodies of `main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"))` that
#: apache-tvm writes the same way
BODIES = {
    "grid": """
    # with T.block("root"):
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
""",
    "reduction": """
    # with T.block("root"):
    for i, k in T.grid(16, 16):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi, 0])
            with T.init():
                B[vi, 0] = T.float32(0.0)
            B[vi, 0] = B[vi, 0] + A[vi, vk]
""",
    "split_and_where": """
    # with T.block("root"):
    for i, j_0, j_1 in T.grid(16, 4, 5):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            vj = T.axis.spatial(16, j_0 * 5 + j_1)
            T.where(j_0 * 5 + j_1 < 16)
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj]
""",
    "two_groups_of_axes": """
    # with T.block("root"):
    for i, j, k, l in T.grid(4, 4, 4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            vf = T.axis.spatial(16, k * 4 + l)
            vk, vl = T.axis.remap("RR", [k, l])
            T.reads(A[vi, vf])
            T.writes(B[vj, vf])
            B[vj, vf] = A[vi, vf]
""",
    "domain_with_offset_and_other_kinds": """
    # with T.block("root"):
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi = T.axis.opaque(16, i)
            vj = T.axis.scan((2, 10), j + 2)
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj]
""",
    "kinds_of_loops": """
    for i in T.parallel(16):
        for j in T.vectorized(4):
            B[i, j] = A[i, j]
        for j in T.unroll(2, 10):
            B[i, j] = A[i, j]
        for j in range(1, 5):
            B[i, j] = A[i, j]
    for i in T.thread_binding(16, thread="blockIdx.x"):
        for j in T.thread_binding(16, thread="threadIdx.x"):
            B[i, j] = A[i, j]
""",
    "names_are_free_again": """
    for i in range(16):
        B[i, 0] = A[i, 0]
    for i in range(16):
        for i_1 in range(i):
            B[i, i_1] = A[i, i_1]
        for i_1 in range(16):
            B[i, i_1] = A[i, i_1]
""",
    "triangular_loops_are_no_grid": """
    for i, j in T.grid(4, 4):
        for k in range(i):
            for l in range(k):
                B[i, k] = A[j, l]
""",
    "alloc_buffer": """
    # with T.block("root"):
    C = T.alloc_buffer((16, 16))
    D = T.alloc_buffer((16,), "float16", scope="shared")
    E = T.alloc_buffer((), "int32")
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi, 0])
            T.writes(C[vi, 0], D[vi])
            C[vi, 0] = A[vi, 0]
            D[vi] = T.float16(1.0)
    with T.block("E"):
        T.reads()
        T.writes(E[()])
        E[()] = 3
""",
    "nested_blocks_and_match_buffer": """
    # with T.block("root"):
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 4:vi * 4 + 4, 0:16])
            T.writes(B[vi * 4:vi * 4 + 4, 0:16])
            A_1 = T.match_buffer(A[vi * 4:vi * 4 + 4, 0:16], (4, 16), strides=("s0", "s1"), offset_factor=1)
            for j, k in T.grid(4, 16):
                with T.block("inner"):
                    vj, vk = T.axis.remap("SS", [j, k])
                    T.reads(A_1[vj, vk])
                    T.writes(B[vi * 4 + vj, vk])
                    B[vi * 4 + vj, vk] = A_1[vj, vk]
""",
    "block_attributes": """
    # with T.block("root"):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi, 0:16])
            T.writes(B[vi, 0:16])
            T.block_attr({"list": [1, 2], "number": 3, "text": "value"})
            for j in range(16):
                B[vi, j] = A[vi, j]
""",
    "loop_annotations": """
    for i in T.serial(16, annotations={"pragma_auto_unroll_max_step": 16, "text": "x"}):
        for j in T.parallel(1, 5, annotations={"a": [1, "x"]}):
            B[i, j] = A[i, j]
        for j in T.thread_binding(16, thread="threadIdx.x", annotations={"a": 1}):
            B[i, j] = A[i, j]
""",
    "if_else_while": """
    for i in range(16):
        if i < 4:
            B[i, 0] = A[i, 0]
        else:
            if i == 8:
                B[i, 1] = A[i, 0]
            B[i, 2] = A[i, 0]
        while B[i, 0] < T.float32(10.0):
            B[i, 0] = B[i, 0] + T.float32(1.0)
""",
    "precedence": """
    for i, j in T.grid(16, 16):
        B[(i + j) * 2 % 16, (i - (j - 1)) // 2 % 16] = A[i * (j * 2) % 16, i * j * 2 % 16]
        B[i - j - 1 + 16, i // (j + 1) % 3] = A[i, 15 - (i + j) // 4]
        B[i, (i + 1) * -1 + 16] = A[i, -1 * i + 16]
""",
    "conditions": """
    for i, j in T.grid(16, 16):
        if i < 3 and (j < 2 or j == 2) and i != 1:
            B[i, j] = T.float32(1.0)
        if i < 3 and j < 2 or not j >= 4:
            B[i, j] = T.float32(2.0)
        if not (i <= 3 and j > 2):
            B[i, j] = T.float32(3.0)
""",
    "choices": """
    for i, j in T.grid(16, 16):
        B[i, j] = T.Select(i < 4, A[i, j], T.float32(0.0))
        B[i, j] = T.if_then_else(i < 4 and j < 4, A[i, j], T.max(A[i, j], T.float32(0.0)))
        B[i, j] = T.min(A[i, j], T.max(B[i, j], T.float32(0.5)))
""",
    "math": """
    for i, j in T.grid(16, 16):
        B[i, j] = T.exp(A[i, j]) + T.log(A[i, j]) + T.sqrt(A[i, j]) + T.rsqrt(A[i, j])
        B[i, j] = T.tanh(A[i, j]) * T.sigmoid(A[i, j]) / T.erf(A[i, j])
        B[i, j] = T.pow(A[i, j], T.float32(2.0)) - T.floor(A[i, j]) - T.ceil(A[i, j])
        B[i, j] = T.round(A[i, j]) + T.trunc(A[i, j]) + T.fabs(A[i, j]) + T.atan2(A[i, j], B[i, j])
        B[i, j] = T.fma(A[i, j], A[i, j], B[i, j]) + T.sin(A[i, j]) + T.cos(A[i, j])
""",
    "casts_and_constants": """
    for i, j in T.grid(16, 16):
        B[i, j] = T.Cast("float32", i) + T.Cast("float32", T.Cast("int64", j) + T.int64(5))
        B[i, j] = T.float32(0.10000000000000001) + A[i, j]
        B[i, j] = T.float32(10000000000.0) + A[i, j]
        B[i, j] = T.float32(1.0000000000000001e-05) + A[i, j]
        B[i, j] = T.float32("-inf") + A[i, j]
        B[i, j] = T.Cast("float32", T.Cast("float16", A[i, j]) * T.float16(0.5))
        B[i, j] = T.Cast("float32", T.Div(i, 3) + T.truncmod(i, 3))
        B[i, j] = T.reinterpret("float32", i)
""",
    "calls": """
    for i, j in T.grid(16, 16):
        T.call_extern("int32", "printf", i, A.data, T.address_of(A[i, j]))
        B[i, j] = T.call_pure_extern("float32", "sqrtf", A[i, j])
        T.call_packed("my.function", A[i, j], i)
        T.evaluate(i + j)
        T.evaluate(T.bool(True))
        T.tvm_access_ptr(T.type_annotation("float32"), A.data, i * 16, 16, 1)
        T.evaluate(T.popcount(i) + T.clz(i))
        B[i, j] = T.call_llvm_pure_intrin("float32", "llvm.sqrt", A[i, j])
        T.likely(i < 3)
""",
    "what_would_fold_is_kept": """
    T.evaluate(T.Add(1, 2))
    for i in range(16):
        T.evaluate(T.Mul(i, 1))
        T.evaluate(T.Add(i, 0))
        T.evaluate(T.LT(1, 2))
""",
    "dtypes": """
    # with T.block("root"):
    C = T.alloc_buffer((T.int64(4),), "int64")
    D = T.alloc_buffer((4,), "uint8")
    E = T.alloc_buffer((4,), "bool")
    for i in range(T.int64(4)):
        with T.block("C"):
            vi = T.axis.spatial(T.int64(4), i)
            T.reads()
            T.writes(C[vi])
            C[vi] = vi * T.int64(2) + T.int64(-1)
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            T.reads(D[vi])
            T.writes(D[vi], E[vi])
            D[vi] = D[vi] + T.uint8(3)
            E[vi] = D[vi] < T.uint8(9)
""",
}

SIGNATURE = ('@T.prim_func\ndef main(A: T.Buffer((16, 16), "float32"), '
             'B: T.Buffer((16, 16), "float32")):')

#: whole functions in TVM 0.18's form that 0.27 writes otherwise or not at all
FUNCTIONS = {
    "handles_and_symbolic_shapes": """
@T.prim_func
def main(x: T.handle, w: T.handle, y: T.handle, s: T.float32, n: T.int32):
    m = T.int64()
    X = T.match_buffer(x, (1, m))
    k = T.int64()
    W = T.match_buffer(w, (k, m), "float16", strides=("s0", T.int64(1)), align=128, offset_factor=4)
    Y = T.match_buffer(y, (n,), "int8", elem_offset=8, scope="shared")
    for i, j in T.grid(k, m):
        X[T.int64(0), j] = X[T.int64(0), j] + T.Cast("float32", W[i, j]) * s
    for i in range(n):
        Y[i] = T.int8(0)
""",
    "attributes": """
@T.prim_func(private=True)
def main():
    T.func_attr({"bool": T.bool(True), "dict": {"a": 1, "b": [2]}, "float": T.float32(1.5), "int": 3, "list": ["a", "b"], "long": T.int64(4), "text": "a \\"quoted\\" word"})
    T.evaluate(0)
""",
    "lets": """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    x: T.float32 = A[0] * T.float32(2.0)
    y: T.int32 = 3
    A[y] = x
    for i in range(y):
        z: T.int32 = i * 2
        A[z] = T.Cast("float32", z)
    T.evaluate(T.Let(v + 1, where={v: y}))
""",
    "a_let_that_ends_early": """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    with T.LetStmt(A[0] * T.float32(2.0)) as x:
        A[1] = x
    A[2] = A[1]
    with T.attr(A.data, "my_key", 1):
        A[3] = T.float32(0.0)
    with T.Assert(A[0] < T.float32(3.0), "too large"):
        A[5] = T.float32(0.0)
    A[4] = T.float32(1.0)
    assert A[0] < T.float32(3.0), "too large"
    T.attr(A.data, "other_key", "value")
    A[5] = T.float32(0.0)
""",
    "flat_memory": """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    A_1 = T.decl_buffer((256,), data=A.data)
    B_1 = T.decl_buffer((256,), data=B.data)
    C = T.allocate([64], "float32", "global")
    C_1 = T.decl_buffer((64,), data=C)
    for i in range(64):
        C_1[i] = A_1[i * 4]
    for i in range(16):
        B_1[i * 16:i * 16 + 4] = C_1[i * 4:i * 4 + 4] + T.Broadcast(T.float32(1.0), 4)
        B_1[i * 16:i * 16 + 16:4] = A_1[T.Ramp(i, i, 4)]
        T.vectorlow("float32x2", A_1[0:4])
        B_1[0] = T.Shuffle([A_1[0:4]], [2])
""",
    "undeclared_views": """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), p: T.handle("float32", "shared"), q: T.handle("int8")):
    for i in range(256):
        A_1 = T.Buffer((256,), data=A.data)
        p_1 = T.Buffer((256,), data=p, scope="shared")
        A_1[i] = p_1[i]
    q_1 = T.Buffer((4,), "int8", data=q)
    q_1[0] = T.int8(1)
    q_1[1] = q_1[0]
""",
    "allocations": """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    c = T.allocate_const([1.0, 2.5, -3.0, 0.10000000149011612], "float32", [4])
    c_1 = T.decl_buffer((4,), data=c)
    with T.allocate([16], "float32", "shared", annotations={"key": 1}) as d:
        d_1 = T.decl_buffer((16,), data=d, scope="shared")
        d_1[0] = c_1[1]
    e = T.allocate([16], "bool", "global", condition=A[0] < T.float32(1.0))
    e_1 = T.decl_buffer((16,), "bool", data=e)
    e_1[0] = A[0] < c_1[0]
""",
    "threads": """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    T.func_attr({"target": "cuda"})
    with T.launch_thread("blockIdx.x", 4) as blockIdx_x:
        threadIdx_x = T.launch_thread("threadIdx.x", 4)
        A[blockIdx_x * 4 + threadIdx_x] = T.float32(0.0)
        T.tvm_storage_sync("shared")
    vthread = T.launch_thread("vthread.x", 2)
    A[vthread] = T.float32(1.0)
""",
    "shared_thread_axis": """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    tx = T.env_thread("threadIdx.x")
    with T.launch_thread(tx, 4):
        A[tx] = T.float32(0.0)
    T.launch_thread(tx, 8)
    A[tx] = T.float32(1.0)
""",
    "returns_a_value": """
@T.prim_func
def main(n: T.int32, A: T.Buffer((4,), "float32")) -> T.int32:
    return n + 1
""",
    "bits_and_structs": """
@T.prim_func
def main(n: T.int32, p: T.handle):
    T.evaluate(T.bitwise_and(n, 3) + T.bitwise_or(T.shift_left(n, 2), T.shift_right(n, 1)))
    T.bitwise_xor(n, T.bitwise_not(n))
    T.tvm_struct_get(p, 0, 1, "int32")
    T.q_multiply_shift(n, n, 31, n)
    T.call_intrin("float32", "tir.exp", n)
    return 0
""",
    "a_root_that_says_more": """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    with T.block("root"):
        T.reads()
        T.writes()
        T.block_attr({"key": 1})
        for i in range(16):
            with T.block("A"):
                vi = T.axis.spatial(16, i)
                T.reads()
                T.writes(A[vi])
                A[vi] = T.float32(0.0)
""",
    "a_lone_block": """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    with T.block("A"):
        T.reads()
        T.writes(A[0])
        A[0] = T.float32(0.0)
""",
    "layouts": """
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    # with T.block("root"):
    B = T.alloc_buffer((16, 16), strides=(32, 1), buffer_type="auto", axis_separators=[1])
    with T.block("A"):
        T.reads(A[0:16])
        T.writes(B[0, 0:16])
        T.block_attr({"inverse": T.index_map(lambda i: (i // 4, i % 4), inverse_index_map=T.index_map(lambda i_0, i_1: (i_0 * 4 + i_1,))), "layout": T.index_map(lambda i, j: (i // 4, j, i % 4))})
        for i in range(16):
            B[0, i] = A[i]
""",
}
