"""Source of kernels whose lines know the lines of the program that they are for."""

import pytest
from backend.gpu_programs import elementwise, tiled, tiled_schedule

import mlc_lab
from mlc_lab.observe.recording import Recording, RecordingError
from mlc_lab.observe.session import record
from mlc_lab.observe.source_lines import KINDS, source_lines
from mlc_lab.script import from_source


def texts(mod, kind):
    """(line of source, the lines of the program that it is for)."""
    recording = record(mlc_lab.tir.Schedule(mod)).recording
    program = recording.text(0).split("\n")
    return [(text.strip(), [program[n].strip() for n in at])
            for text, at in source_lines(mod, kind)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_is_that_of_the_module_that_is_built(kind):
    built = mlc_lab.build(tiled(), target=kind).imported_modules[0].get_source()
    assert "\n".join(text for text, _ in source_lines(tiled(), kind)) + "\n" == built


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "nvptx"])
def test_each_statement_leads_to_its_source(kind):
    found = texts(tiled(), kind)
    for program, source in [
            ("C_local[vi, vj] = T.float32(0", "C_local["),
            ("C_local[vi, vj] = C_local", "C_local["),
            ("A_shared[v0, v1] = A", "A_shared"), ("C[v0, v1] = C_local", "C[")]:
        lines = [text for text, at in found if any(line.startswith(program) for line in at)]
        assert len(lines) == 1 and source in lines[0], program
    assert [text for text, at in found if any("k_0 in range" in line for line in at)][-1] == "}"


@pytest.mark.parametrize("kind, axis, memory", [
    ("cuda", "const int threadIdx_x = threadIdx.x;",
     "__shared__ __align__(16) float A_shared[128];"),
    ("opencl", "const int threadIdx_x = get_local_id(0);", "__local float A_shared[128];"),
    ("webgpu", "let threadIdx_x = i32(threadIdx.x);",
     "var<workgroup> A_shared : array<f32, 128>;"),
    ("metal", "const int threadIdx_x = threadIdx.x;",
     "threadgroup alignas(16) float A_shared[128];")])
def test_axes_came_from_bound_loops_and_shared_memory_from_its_buffer(kind, axis, memory):
    found = dict(texts(tiled(), kind))
    assert len(found[axis]) == 3  # of the tile, and of both copies
    assert all('thread="threadIdx.x"' in line for line in found[axis])
    assert [line.split(" = ")[0] for line in found[memory]] == ["A_shared"]


def test_each_statement_leads_to_its_instructions_in_ptx():
    found = texts(tiled(), "nvptx")

    def of(program):
        return {text.split()[0] for text, at in found
                if any(line.startswith(program) for line in at)}

    assert of("C_local[vi, vj] = C_local") >= {"ld.shared.b32", "fma.rn.f32"}
    assert "bar.sync" not in of("C_local[vi, vj] = C_local")
    copy = of("A_shared[v0, v1] = A")
    assert "st.shared.v4.b32" in copy and any(op.startswith("ld.global") for op in copy)
    assert of("C[v0, v1] = C_local") & {"st.global.b32", "st.global.v4.b32"}
    assert "@%p1" in of("for k_0 in range")  # the jump back


def test_axes_and_shared_memory_in_ptx():
    found = texts(tiled(), "nvptx")
    (axis,) = [at for text, at in found if "%tid.x" in text]
    assert len(axis) == 3 and all('thread="threadIdx.x"' in line for line in axis)
    (memory,) = [at for text, at in found if text.startswith(".shared") and "A_shared" in text]
    assert [line.split(" = ")[0] for line in memory] == ["A_shared"]


def test_two_functions_keep_their_axes_apart():
    mod = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def one(A: T.Buffer((8,), "float32")):
        for first in T.thread_binding(8, thread="threadIdx.x"):
            A[first] = A[first] + T.float32(1)

    @T.prim_func
    def two(B: T.Buffer((8,), "float32")):
        for second in T.thread_binding(8, thread="threadIdx.x"):
            B[second] = B[second] * T.float32(2)
""")
    for kind in ("cuda", "webgpu"):
        lines = [at[0].split()[1] for text, at in texts(mod, kind) if "threadIdx_x = " in text]
        assert lines == ["first", "second"]
    lines = [at[0].split()[1] for text, at in texts(mod, "nvptx") if "%tid.x" in text]
    assert lines == ["first", "second"]


def test_the_code_of_a_recording_has_sources_where_threads_are_bound():
    recording = record(tiled_schedule()).recording
    code = recording.code_of(len(recording.programs) - 1)
    (at,) = code["programs"].values()
    assert set(at["sources"]) == set(KINDS)
    assert all(source["lines"] and not source["error"] for source in at["sources"].values())
    assert "sources" not in recording.code_of(0)["programs"]["0"]


def test_what_one_language_lacks_is_said_there_alone():
    recording = record(mlc_lab.tir.Schedule(elementwise("A[vi] + A[vi]", "float64"))).recording
    sources = recording.code_of(0)["programs"]["0"]["sources"]
    assert sources["cuda"]["lines"] and "float64" in sources["webgpu"]["error"]


def test_sources_of_a_file_are_checked():
    recording = record(tiled_schedule()).recording
    last = len(recording.programs) - 1
    recording.add_code(programs=[last])
    assert Recording.from_json(recording.to_json()).code == recording.code
    data = recording.to_dict()
    for wrong in ([], {"cuda": []}, {"cuda": {"lines": [-1]}}, {"cuda": {"lines": [10 ** 6]}}):
        data["code"] = {"lines": [], "programs": {str(last): {"sources": wrong}}}
        with pytest.raises(RecordingError, match="sources"):
            Recording.from_dict(data)
