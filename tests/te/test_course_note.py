"""The listings of a course note on tensor expressions, as they stand."""

import numpy as np

LISTINGS = ['''
import tvm
import tvm.testing
from tvm import te
import numpy as np

target = tvm.target.Target(target="llvm", host="llvm")
tgt = target
n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
s = te.create_schedule(C.op)
fadd = tvm.build(s, [A, B, C], target, name="myadd")
dev = tvm.device(tgt.kind.name, 0)

n = 1024
a = tvm.nd.array(np.random.uniform(size=n).astype(A.dtype), dev)
b = tvm.nd.array(np.random.uniform(size=n).astype(B.dtype), dev)
c = tvm.nd.array(np.zeros(n, dtype=C.dtype), dev)

fadd(a, b, c)
''', '''
s = te.create_schedule(C.op)
s[C].parallel(C.op.axis[0])
fadd = tvm.build(s, [A, B, C], tgt, name="myadd_parallel")
fadd(a, b, c)
''', '''
s = te.create_schedule(C.op)
factor = 4
outer, inner = s[C].split(C.op.axis[0], factor=factor)
s[C].parallel(outer)
s[C].vectorize(inner)
fadd_vector = tvm.build(s, [A, B, C], tgt, name="myadd_vector")
fadd_vector(a, b, c)
''', '''
target = tvm.target.Target(target="cuda", host="llvm")
s = te.create_schedule(C.op)
bx, tx = s[C].split(C.op.axis[0], factor=64)
s[C].bind(bx, te.thread_axis("blockIdx.x"))
s[C].bind(tx, te.thread_axis("threadIdx.x"))
text = s.to_module([A, B, C]).script()
fadd = tvm.build(s, [A, B, C], target, name="myadd")
dev = tvm.device(target.kind.name, 0)
a, b, c = (tvm.nd.array(x.numpy(), dev) for x in (a, b, c))
c.copyfrom(np.zeros(n, dtype=C.dtype))
fadd(a, b, c)
''']


def test_listings_run(names_of_tvm):
    scope = {}
    for listing in LISTINGS:
        exec(listing, scope)
        a, b, c = (scope[x].numpy() for x in "abc")
        np.testing.assert_allclose(c, a + b)
    assert 'thread="blockIdx.x"' in scope["text"] and 'thread="threadIdx.x"' in scope["text"]
