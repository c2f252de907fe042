"""What calls code outside of itself is found, and is run by a view only when that is asked for."""

import json

import pytest

from mlc_lab.ir.module import IRModule
from mlc_lab.observe.outside import calls_outside
from mlc_lab.observe.session import record, recording_schedules
from mlc_lab.observe.workbench import Workbench
from mlc_lab.runtime import register_func
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

HEAD = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
"""
PLAIN = """    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
"""
CALL = '    T.evaluate(T.call_packed("test_outside.touch", A))\n'


def program(body, head=HEAD):
    return IRModule({"main": from_source(head + body)})


@pytest.fixture
def called():
    found = []
    register_func("test_outside.touch", lambda *args: found.append(1), override=True)
    return found


@pytest.mark.parametrize("body, words", [
    ('    T.evaluate(T.call_extern("int32", "system", A.data))\n', "C function 'system'"),
    ('    T.evaluate(T.call_pure_extern("int32", "getpid"))\n', "'getpid'"),
    (CALL, "registered function 'test_outside.touch'"),
    ('    T.evaluate(T.tvm_call_cpacked("int32", "f", A.data))\n', "'f'"),
    ('    T.attr(A.data, "pragma_import_llvm", "x.ll")\n', "imported code"),
    ('    T.attr(A.data, "pragma_import_c", "int f() {}")\n', "imported code"),
    ('    for i in T.serial(4, annotations={"pragma_import_llvm": "x"}):\n        T.evaluate(i)\n',
     "imported code"),
    ('    C = T.alloc_buffer((T.call_extern("int32", "size"),))\n    T.evaluate(C[0])\n', "'size'"),
    ('    for i in range(T.call_extern("int32", "count")):\n        T.evaluate(i)\n', "'count'"),
    ('    with T.block("b"):\n        T.where(T.call_extern("bool", "where"))\n'
     '        T.evaluate(0)\n', "'where'"),
])
def test_calls_are_found_wherever_they_stand(body, words):
    (told,) = calls_outside(program(body + PLAIN))
    assert words in told


def test_a_call_in_another_function_or_in_the_shape_of_a_parameter_is_found():
    mod = program(PLAIN)
    mod = IRModule({**{v.name_hint: f for v, f in mod.functions.items()},
                    "other": program(CALL + PLAIN)["main"]})
    assert calls_outside(mod) == ["the registered function 'test_outside.touch'"]
    head = """
@T.prim_func
def main(a: T.handle):
    A = T.match_buffer(a, (T.call_extern("int32", "size"),))
"""
    assert calls_outside(program("    T.evaluate(A[0])\n", head)) == ["the C function 'size'"]


def test_programs_that_only_compute_call_nothing():
    sines = """    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.call_extern("float32", "sinf", A[vi]) + T.exp(A[vi])
"""
    assert calls_outside(program(PLAIN)) == calls_outside(program(sines)) == []


def test_explore_and_the_workbench_run_such_a_program_only_when_asked_to(called):
    mod = program(CALL + PLAIN)
    sch = Schedule(mod)
    sch.unroll(sch.get_loops(sch.get_block("B"))[0])
    for isolate in (True, False):
        made = record(sch)
        recording = made.measure(isolate=isolate, progress=False)
        made.count("1K:2:32", progress=False)
        cost = recording.cost(1)
        assert "trusted=True" in cost["message"] and "trusted=True" in cost["counts"]["message"]
    bench = Workbench(mod)
    bench.measure()
    assert "test_outside.touch" in bench.cost()["message"] and not called
    recording = record(sch).measure(isolate=False, progress=False, trusted=True)
    assert recording.cost(1)["equal"] is True and called


def test_a_loaded_tree_of_attempts_runs_nothing(called):
    text = Workbench(program(CALL + PLAIN)).to_json()
    bench = Workbench.from_json(json.dumps(json.loads(text)))
    bench.measure()
    assert not called and "registered function" in bench.cost()["message"]


def test_what_a_file_made_is_as_trusted_as_the_file(called):
    with recording_schedules() as session:
        sch = Schedule(program(CALL + PLAIN))
        sch.unroll(sch.get_loops(sch.get_block("B"))[0])
    assert "message" in session.recordings(measure=True)[0].cost(1) and not called
    assert "time" in session.recordings(measure=True, trusted=True)[0].cost(1) and called
