"""The tensor programs that are timed and tuned, as TVMScript text for any size.

This file imports nothing, so that another compiler's process can read it too.
"""


def matmul(n):
    """C = A B of n x n matrices."""
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n}, {n}), "float32"),
         C: T.Buffer(({n}, {n}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, j, k in T.grid({n}, {n}, {n}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def matmul_packed(n, width):
    """The same over a copy of B in panels of `width` columns, each panel's rows side by side."""
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n}, {n}), "float32"),
         C: T.Buffer(({n}, {n}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    P = T.alloc_buffer(({n // width}, {n}, {width}), "float32")
    for p, k, j in T.grid({n // width}, {n}, {width}):
        with T.block("P"):
            vp, vk, vj = T.axis.remap("SSS", [p, k, j])
            P[vp, vk, vj] = B[vk, vp * {width} + vj]
    for i, j, k in T.grid({n}, {n}, {n}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * P[vj // {width}, vk, vj % {width}]
"""


def conv2d(channels, size):
    """A 3x3 convolution of `channels` to as many, NCHW, of a padded image to size x size."""
    c, n, padded = channels, size, size + 2
    return f"""
@T.prim_func
def main(X: T.Buffer((1, {c}, {padded}, {padded}), "float32"),
         W: T.Buffer(({c}, {c}, 3, 3), "float32"), Y: T.Buffer((1, {c}, {n}, {n}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for n, f, y, x, c, r, s in T.grid(1, {c}, {n}, {n}, {c}, 3, 3):
        with T.block("Y"):
            vn, vf, vy, vx, vc, vr, vs = T.axis.remap("SSSSRRR", [n, f, y, x, c, r, s])
            with T.init():
                Y[vn, vf, vy, vx] = T.float32(0)
            Y[vn, vf, vy, vx] = Y[vn, vf, vy, vx] + X[vn, vc, vy + vr, vx + vs] * W[vf, vc, vr, vs]
"""


def softmax(rows, columns):
    """Softmax over rows, in the four steps it is defined by."""
    return f"""
@T.prim_func
def main(X: T.Buffer(({rows}, {columns}), "float32"), Y: T.Buffer(({rows}, {columns}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    M = T.alloc_buffer(({rows},), "float32")
    E = T.alloc_buffer(({rows}, {columns}), "float32")
    S = T.alloc_buffer(({rows},), "float32")
    for i, k in T.grid({rows}, {columns}):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-3.4028234663852886e38)
            M[vi] = T.max(M[vi], X[vi, vk])
    for i, k in T.grid({rows}, {columns}):
        with T.block("E"):
            vi, vk = T.axis.remap("SS", [i, k])
            E[vi, vk] = T.exp(X[vi, vk] - M[vi])
    for i, k in T.grid({rows}, {columns}):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, k in T.grid({rows}, {columns}):
        with T.block("Y"):
            vi, vk = T.axis.remap("SS", [i, k])
            Y[vi, vk] = E[vi, vk] / S[vi]
"""


def layernorm(rows, columns):
    """Layer norm over rows from the sums of the numbers and of their squares."""
    mean = f"S[vi] * T.float32({1 / columns!r})"
    return f"""
@T.prim_func
def main(X: T.Buffer(({rows}, {columns}), "float32"), G: T.Buffer(({columns},), "float32"),
         B: T.Buffer(({columns},), "float32"), Y: T.Buffer(({rows}, {columns}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    S = T.alloc_buffer(({rows},), "float32")
    Q = T.alloc_buffer(({rows},), "float32")
    for i, k in T.grid({rows}, {columns}):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + X[vi, vk]
    for i, k in T.grid({rows}, {columns}):
        with T.block("Q"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Q[vi] = T.float32(0)
            Q[vi] = Q[vi] + X[vi, vk] * X[vi, vk]
    for i, k in T.grid({rows}, {columns}):
        with T.block("Y"):
            vi, vk = T.axis.remap("SS", [i, k])
            Y[vi, vk] = ((X[vi, vk] - {mean})
                         * T.rsqrt(Q[vi] * T.float32({1 / columns!r}) - {mean} * ({mean})
                                   + T.float32(1e-5))
                         * G[vk] + B[vk])
"""


def add(n):
    """C = A + B of n numbers."""
    return f"""
@T.prim_func
def main(A: T.Buffer(({n},), "float32"), B: T.Buffer(({n},), "float32"),
         C: T.Buffer(({n},), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i in range({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = A[vi] + B[vi]
"""


def transpose(n):
    """B = A transposed, n x n."""
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n}, {n}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, j in T.grid({n}, {n}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
"""


def stochastic_schedule_mm(sch):
    """The course's space of schedules for the product."""
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)
    j_0, j_1 = sch.split(loop=j, factors=j_factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block, k)
    return sch
