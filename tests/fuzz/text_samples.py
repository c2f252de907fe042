"""One sample or more of every kind of text and file that is read, and how it is read.

SAMPLES: kind -> (samples, read, whether they are JSON). `read` uses what it loaded, as a view
would: prints it, replays it, draws it.
"""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.serialize import load_json, save_json
from mlc_lab.meta_schedule.database import Database, TuningRecord
from mlc_lab.meta_schedule.legacy import auto_scheduler, records
from mlc_lab.observe.recording import Recording
from mlc_lab.observe.session import record
from mlc_lab.observe.workbench import Workbench
from mlc_lab.reading.arrays import read_arrays
from mlc_lab.runtime import load_module
from mlc_lab.schedule import Schedule, Trace
from mlc_lab.script import from_source
from mlc_lab.target import Target

PRODUCT = '''
from tvm.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"),
             D: T.Buffer((16, 16), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        C = T.alloc_buffer((16, 16))
        for i, j, k in T.grid(16, 16, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(16, 16):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.max(C[vi, vj], T.float32(0))
'''
MANY = '''
from tvm.script import tir as T

N = 4
SIZES = [2 * x for x in range(3) if x]
NAME = f"block_{N:02d}" + "%d" % N
row = lambda i: (i // 2, i % 2)

@T.macro
def fill(buffer, value=0.0, *, n=4):
    for i in T.serial(n):
        with T.block("fill"):
            v = T.axis.spatial(n, i)
            buffer[v] = T.float32(value)

@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32, flag: T.bool):
    m = T.int32()
    A = T.match_buffer(a, (m, N), "float32", strides=[N, 1], offset_factor=1)
    B = T.match_buffer(b, (N,), "float32", scope="global")
    T.func_attr({"global_symbol": "main", "tir.noalias": T.bool(True)})
    fill(B, value=1.5)
    S = T.alloc_buffer((N, N), "float32", scope="shared")
    for i in T.thread_binding(m, thread="blockIdx.x", annotations={"x": [1, 2], "y": "z"}):
        for j in T.vectorized(N):
            with T.block(NAME):
                vi = T.axis.spatial(m, i)
                vj = T.axis.spatial(N, j)
                T.where(i < n and j + 1 <= max(SIZES))
                T.reads(A[vi, vj:vj + 1])
                T.writes(S[vj, 0:2])
                T.block_attr({"pragma": T.int32(1)})
                S[vj, row(vj)[1]] = T.if_then_else(flag, A[vi, vj], -A[vi, vj]) * T.exp(A[vi, vj])
    for k in T.unroll(2, 2 + N):
        x: T.int32 = k * 2
        if x > 0:
            if k > 2:
                B[k % N] = T.cast(x << 1, "float32") + T.Select(k == 3, B[0], B[1])
            else:
                T.evaluate(T.call_extern("int32", "f", B.data, x))
    while B[0] < T.float32(3):
        B[0] = B[0] + T.float32(1)
    T.attr(B.data, "pragma_x", 1)
    assert n > 0, "n is positive"
    T.evaluate(T.call_packed("f", T.tvm_stack_make_shape(n, m), B.access_ptr("r", offset=1)))
'''
GRAPH = '''
from tvm.script import ir as I, tir as T, relax as R

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(A: T.Buffer((T.int64(2), T.int64(3)), "float32"),
              B: T.Buffer((T.int64(2), T.int64(3)), "float32")):
        for i, j in T.grid(T.int64(2), T.int64(3)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor(("n", 3), "float32"),
             c: R.Tensor((), "bool")) -> R.Tensor((2, "n"), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((2, 3), "float32"))
            z = R.matmul(y, R.permute_dims(w, axes=[1, 0]))
            t = (z, R.const(1.5, "float32"), R.shape([n, 2]), R.prim_value(3))
            q = R.add(t[0], t[1])
            s = R.split(R.concat((q, q), axis=0), indices_or_sections=2, axis=0)
            R.output(q, s)
        if c:
            r = R.nn.relu(s[0])
        else:
            r = R.multiply(q, q)
        return r
'''


def _module() -> IRModule:
    return from_source(PRODUCT)


@functools.cache
def _schedule() -> Schedule:
    sch = Schedule(_module(), seed=1)
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, 2, decision=[4, 4]))
    i0, i1 = sch.split(i, [None, 4])
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)
    sch.annotate(i0, "unroll", sch.sample_categorical([0, 16], [0.5, 0.5], decision=1))
    sch.cache_read(block, 0, "global")
    sch.reverse_compute_at(sch.get_block("D"), j0)
    sch.transform_layout(block, ("read", 1), lambda a, b: (b // 4, a, b % 4))
    sch.decompose_reduction(block, k)
    return sch


@functools.cache
def scripts() -> list[str]:
    return [PRODUCT, MANY, GRAPH, _schedule().mod.script()]


def read_script(text: str) -> None:
    from_source(text).script()


@functools.cache
def saved_ir() -> list[str]:
    small = from_source(GRAPH)
    data = {"a": np.arange(4, dtype="float32"), "b": [1, 2.5, None, "x"]}
    return [save_json(_schedule().mod), save_json(small), save_json(data),
            save_json(from_source(MANY))]


def read_saved_ir(text: str) -> None:
    found = load_json(text)
    if hasattr(found, "script"):
        found.script()


@functools.cache
def json_traces() -> list[str]:
    return [json.dumps(_schedule().trace.as_json())]


def read_json_trace(text: str) -> None:
    trace = Trace.from_json(text)
    str(trace)
    trace.apply_to_schedule(Schedule(_module(), debug_mask="none"))


@functools.cache
def python_traces() -> list[str]:
    return [str(_schedule().trace)]


def read_python_trace(text: str) -> None:
    trace = Trace.from_python(text)
    json.dumps(trace.as_json())
    trace.apply_to_schedule(Schedule(_module(), debug_mask="none"))


def read_schedule(text: str) -> None:
    Workbench(_module()).load_python(text)


@functools.cache
def recordings() -> list[str]:
    made = record(_schedule()).recording
    made.programs[0].cost = {"time": 1e-3, "equal": True, "gflops": 1.0}
    return [made.to_json()]


def read_recording(text: str) -> None:
    found = Recording.from_json(text)
    for number in range(len(found.programs)):
        found.text(number)
    found.python_up_to(len(found.steps) - 1)
    found.to_json()


@functools.cache
def workbenches() -> list[str]:
    bench = Workbench(_module())
    bench.apply("split", loop="C/j", factors=[None, 4])
    bench.apply("parallel", loop="C/i")
    bench.goto(1)
    bench.apply("unroll", loop="C/i")
    return [bench.to_json()]


def read_workbench(text: str) -> None:
    bench = Workbench.from_json(text)
    bench.python()
    bench.to_json()


TARGETS = ["llvm -mcpu=skylake -num-cores=4 -mattr=+avx2,-avx512f", "cuda -arch=sm_80",
           '{"kind": "cuda", "tag": "", "keys": ["cuda", "gpu"], "max_num_threads": 1024, '
           '"host": {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "num-cores": 2}}']


def read_target(text: str) -> None:
    str(Target(text))


LOG = ('{"input": ["llvm -keys=cpu", "demo/matmul", [512, 512, "float32", ["TENSOR", [4, 4]]], {}],'
       ' "config": {"index": 5, "code_hash": null, "entity": [["tile_y", "sp", [-1, 8]], '
       '["order", "re", [0, 2, 1]], ["ann", "an", ["unroll", "vec"]], ["auto", "ot", 16]]}, '
       '"result": [[0.001, 0.002], 0, 0.5, 1700000000.0], "version": 0.2}')


def read_log(text: str) -> None:
    inp, result = records.decode(text)
    inp.task.workload, result.mean, records.encode(
        inp._replace(task=records.LoggedTask(inp.task.name, inp.task.args, inp.target)), result)


@functools.cache
def measured() -> list[str]:
    return [json.dumps({"workload": "0" * 32, "trace": _schedule().trace.as_json(),
                        "times": [1e-3, 2e-3], "status": "ok", "reason": ""})]


def read_measured(text: str) -> None:
    auto_scheduler._pair(auto_scheduler._decode(text))


# ------------------------------------------------------------------------------- files


@functools.cache
def _folder() -> Path:
    from .texts import _FOLDER

    return Path(_FOLDER.name)


def _file(name: str, data: bytes) -> str:
    path = _folder() / name
    path.write_bytes(data)
    return str(path)


@functools.cache
def databases() -> list[bytes]:
    path = Path(tempfile.mkdtemp(dir=_folder())) / "whole.db"
    database = Database.create("sqlite", path)
    workload = database.commit_workload(_module())
    session = database.begin_session("main", workload, "llvm", 8, 0, "", {
        "cpu": "a processor", "cores": 1, "peak_gflops": 10.0})
    for trial in range(3):
        database.commit_tuning_record(TuningRecord(
            _schedule().trace, workload, times=(1e-3, 2e-3 + trial), target="llvm", trial=trial,
            session=session))
    database._do("PRAGMA journal_mode=DELETE")
    database.close()
    return [path.read_bytes()]


def read_database(data: bytes) -> None:
    for name in ("read.db-wal", "read.db-shm", "read.db-journal"):
        (_folder() / name).unlink(missing_ok=True)
    database = Database.create("sqlite", _file("read.db", data))
    try:
        database.records()
        database.sessions()
        for found in database.get_all_tuning_records():
            found.as_schedule()
        database.board().to_dict()
        database.query_best(_module())
    finally:
        database.close()


@functools.cache
def objects() -> list[bytes]:
    path = tvm.build(_module(), target="llvm").export_library(str(_folder() / "whole.o"))
    return [Path(path).read_bytes()]


def read_object(data: bytes) -> None:
    load_module(_file("read.o", data))


@functools.cache
def executables() -> list[bytes]:
    built = [relax.build(from_source(GRAPH.replace('"n"', "4").replace("[n, 2]", "[4, 2]")), "llvm",
                         exec_mode=mode) for mode in ("bytecode", "compiled")]
    return [Path(one.export_library(str(_folder() / "whole.vm"))).read_bytes() for one in built]


def read_executable(data: bytes) -> None:
    relax.vm.load(_file("read.vm", data))


@functools.cache
def arrays() -> list[bytes]:
    np.savez(_folder() / "whole.npz", rows=np.arange(12.0).reshape(3, 4), names=np.array(["a"]))
    return [(_folder() / "whole.npz").read_bytes()]


def read_arrays_file(data: bytes) -> None:
    read_arrays(_file("read.npz", data), ("rows", "names"))


SAMPLES: dict[str, tuple[Any, Any, bool]] = {
    "script": (scripts, read_script, False),
    "saved IR": (saved_ir, read_saved_ir, True),
    "trace in JSON": (json_traces, read_json_trace, True),
    "trace in Python": (python_traces, read_python_trace, False),
    "schedule in Python": (python_traces, read_schedule, False),
    "recording": (recordings, read_recording, True),
    "workbench": (workbenches, read_workbench, True),
    "target": (lambda: TARGETS, read_target, False),
    "log of autotvm": (lambda: [LOG], read_log, True),
    "log of auto_scheduler": (measured, read_measured, True),
    "database": (databases, read_database, False),
    "object": (objects, read_object, False),
    "executable": (executables, read_executable, False),
    "arrays": (arrays, read_arrays_file, False),
}
