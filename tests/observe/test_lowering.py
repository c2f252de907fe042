"""A program on its way down: every stage, LLVM IR and assembly know the lines they came from."""

import re

import pytest

from mlc_lab.lower import stages
from mlc_lab.observe.assembly import kind_of, machine_code, mix, width_of
from mlc_lab.observe.lowering import lower_traced
from mlc_lab.observe.recording import Recording, RecordingError
from mlc_lab.observe.session import record
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.tir import BufferStore
from mlc_lab.tir.functor import Mutator, following, pre_order

from .schedules import module, schedule


def lines_of(text, stage):
    """Numbers of the lines of a stage that contain a text."""
    return [i for i, (line, _) in enumerate(stage.lines) if text in line]


def test_the_stages_are_those_of_lowering():
    traced = lower_traced(schedule().mod)
    plain = stages(schedule().mod)
    assert [stage.name for stage in traced.stages] == [name for name, _ in plain]
    for stage, (_, before), (name, after) in zip(traced.stages[1:], plain, plain[1:]):
        assert stage.changed == (after is not before), name
    assert traced.stages[-1].lines[0][0].startswith("@")


def test_every_statement_of_the_last_stage_knows_a_line():
    sch = schedule()
    loops = sch.get_loops(sch.get_block("C"))
    sch.unroll(loops[-1])
    traced = lower_traced(sch.mod)
    for func in traced.module.functions.values():
        for node in pre_order(func.body):
            if type(node) is BufferStore:
                assert traced.origins[node]


def test_without_stages_the_origins_are_the_same():
    mod = schedule().mod

    def origins(stages):
        made = lower_traced(mod, stages=stages)
        assert bool(made.stages) == stages
        return [sorted(made.origins[node]) for func in made.module.functions.values()
                for node in pre_order(func.body) if type(node) is BufferStore]

    assert origins(stages=False) == origins(stages=True)


def test_a_line_of_each_stage_leads_back_to_its_statement():
    traced = lower_traced(schedule().mod)
    start = traced.stages[0]
    (update,) = lines_of("Y[vi, vj] + A[vi, vk]", start)
    for stage in traced.stages:
        found = [line for line, origins in stage.lines if update in origins]
        assert len(found) == 1 and " * " in found[0], stage.name
    (reduction,) = lines_of("for k in", start)
    assert any("for k in" in line and reduction in origins
               for line, origins in traced.stages[-1].lines)


def test_an_unrolled_statement_is_found_in_all_its_copies():
    sch = Schedule(module())
    k0, k1 = sch.split(sch.get_loops(sch.get_block("Y"))[2], [None, 4])
    sch.unroll(k1)
    traced = lower_traced(sch.mod)
    (update,) = lines_of("Y[vi, vj] + A[vi, vk]", traced.stages[0])
    assert sum(update in origins for _, origins in traced.stages[-1].lines) == 4


def test_following_hears_of_rewrites_only_while_it_lasts():
    class Same(Mutator):
        pass

    class Rename(Mutator):
        def visit_StringImm(self, node):
            return node

    heard = []
    func = next(iter(module().functions.values()))
    with following(lambda old, new: heard.append((old, new))):
        Same().visit(func.body)
        assert heard == []
    Rename().visit(func.body)
    assert heard == []


def test_assembly_and_llvm_ir_lead_back_to_the_statement():
    traced = lower_traced(schedule().mod)
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"
    code = machine_code(traced.module, traced.origins, target)
    (update,) = lines_of("Y[vi, vj] + A[vi, vk]", traced.stages[0])
    fused = [line for line, origins in code.assembly if update in origins and "vfmadd" in line]
    assert fused and all("ymm" in line for line in fused)
    assert [line for line, origins in code.llvm if update in origins and "load <8 x float>" in line]
    assert code.machine == "x86_64 haswell"
    assert code.mix["fma"] == len([line for line, _ in code.assembly if "fmadd" in line])
    assert code.mix["256-bit"] >= len(fused)
    noise = re.compile(r"\.loc|!dbg|#dbg|\.cfi|\.Ltmp")
    assert not [line for line, _ in code.llvm + code.assembly if noise.search(line)]


def test_the_marks_do_not_change_the_code():
    """The instructions are those of the program as it is built."""
    from mlc_lab import build

    sch = schedule()
    traced = lower_traced(sch.mod)
    marked = [line.split()[0] for line, _ in machine_code(traced.module, traced.origins).assembly
              if line.startswith(" ")]
    built = build(sch.mod).get_source("asm")
    body = built[built.index("\nmain_kernel:"):]
    body = body[: body.index(".Lfunc_end")]
    plain = [line.split()[0] for line in body.split("\n")[2:]
             if line.startswith("\t") and not line.strip().startswith((".", "#"))]
    assert marked[: len(plain)] == plain


@pytest.mark.parametrize("text, width, kind", [
    ("vfmadd231ps (%rax,%rcx,4), %zmm1, %zmm0", 512, "fma"),
    ("vmovups %ymm0, 32(%rdi)", 256, "store"),
    ("vmovups 32(%rdi), %ymm0", 256, "load"),
    ("vaddss %xmm1, %xmm0, %xmm0", 0, "arithmetic"),
    ("vbroadcastss -4(%r10), %ymm2", 256, "shuffle"),
    ("movq %rax, %rbx", 0, "move"),
    ("vmaxps %ymm0, %ymm1, %ymm1", 256, "compare"),
    ("jne .LBB0_3", 0, "branch"),
    ("leaq 8(%rax), %rbx", 0, "move"),
])
def test_x86_instructions_are_told_apart(text, width, kind):
    assert (width_of(text), kind_of(text)) == (width, kind)


@pytest.mark.parametrize("text, width, kind", [
    ("fmla v0.4s, v1.4s, v2.s[0]", 128, "fma"), ("ldp q0, q1, [x9]", 128, "load"),
    ("str s0, [x1]", 0, "store"), ("b.ne .LBB0_1", 0, "branch"),
    ("fadd s0, s1, s2", 0, "arithmetic"),
])  # fmt: skip
def test_aarch64_instructions_are_told_apart(text, width, kind):
    assert (width_of(text), kind_of(text, x86=False)) == (width, kind)


def test_the_mix_counts_each_instruction_once_by_kind_and_once_by_width():
    traced = lower_traced(schedule().mod)
    for target in ("llvm -mtriple=x86_64-linux-gnu", "llvm -mtriple=aarch64-linux-gnu"):
        found = machine_code(traced.module, traced.origins, target).mix
        widths = sum(n for name, n in found.items() if name == "scalar" or name.endswith("-bit"))
        kinds = sum(n for name, n in found.items() if name not in (
            "scalar", "instructions", "memory operands") and not name.endswith("-bit"))
        assert widths == kinds == found["instructions"] > 20
        assert found.get("other", 0) <= found["instructions"] // 20
    assert mix([]) == {"instructions": 0}


def test_code_is_the_same_from_a_recording_that_was_written_and_read():
    recording = record(schedule()).recording
    again = Recording.from_json(recording.to_json())
    assert again.modules == [] and again.code_of(1) == recording.code_of(1)


def test_code_travels_with_a_recording_when_asked_for():
    recording = record(schedule()).recording
    assert "code" not in recording.to_dict()
    recording.add_code(programs=[0, 1])
    again = Recording.from_json(recording.to_json())
    assert again.code == recording.code and set(again.code["programs"]) == {"0", "1"}
    data = recording.to_dict()
    data["code"] = {"lines": [], "programs": {"0": {"llvm": [3]}}}
    with pytest.raises(RecordingError, match=r"code.programs\[0\].llvm"):
        Recording.from_dict(data)


def test_a_program_of_gpu_threads_shows_the_stages_of_a_gpu_and_says_why_there_is_no_code():
    sch = Schedule(module())
    sch.bind(sch.get_loops(sch.get_block("C"))[0], "threadIdx.x")
    at = record(sch).recording.code_of(1)["programs"]["1"]  # the block Y is in no kernel yet
    assert at["stages"][-1]["name"] == "SplitHostDevice" and at["assembly"] == []
    assert "Y is written outside of a kernel" in at["error"]
    sch.bind(sch.get_loops(sch.get_block("Y"))[0], "threadIdx.x")
    at = record(sch).recording.code_of(2)["programs"]["2"]
    assert [stage["name"] for stage in at["stages"]][-3:] == [
        "SplitHostDevice", "VerifyGPUCode", "ScalarizeVectors"] and at["assembly"] == []
    assert "GPU threads" in at["error"]


def test_the_stages_and_the_source_are_those_of_the_target():
    sch = Schedule(module())
    for name, threads in ("Y", 256), ("C", 32):
        block, thread = sch.split(sch.fuse(*sch.get_loops(sch.get_block(name))[:2]),
                                  factors=[None, threads])
        sch.bind(block, "blockIdx.x")
        sch.bind(thread, "threadIdx.x")
    recording = record(sch).recording
    last = len(recording.programs) - 1

    def made(target):
        code = recording.code_of(last, target)
        program = code["programs"][str(last)]
        return program, {kind: "".join(code["lines"][n][0] for n in source["lines"])
                         for kind, source in program["sources"].items()}

    program, sources = made("webgpu")
    assert program["stages"][-1]["name"] == "ScalarizeVectors" and "@compute" in sources["webgpu"]
    limited, sources = made("webgpu -max_threads_per_block=128")
    assert "the limit of the target 'webgpu' is 128" in limited["error"]
    assert not sources["webgpu"] and sources["cuda"]


def test_what_cannot_be_lowered_keeps_the_stages_up_to_there_and_says_why(monkeypatch):
    from mlc_lab.observe import lowering

    def broken(mod):
        raise ValueError("this pass is broken")

    passes = lowering.default_passes("llvm")
    monkeypatch.setattr(lowering, "named_passes",
                        lambda _: [("LowerInitBlock", passes[1]), ("Broken", broken)])
    at = record(schedule()).recording.code_of(0)["programs"]["0"]
    assert [stage["name"] for stage in at["stages"]] == ["input", "LowerInitBlock"]
    assert at["error"] == "ValueError: this pass is broken"


def test_a_module_of_two_functions_shows_both():
    mod = from_source('''
@I.ir_module
class Module:
    @T.prim_func
    def one(A: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("A"):
                vi = T.axis.spatial(16, i)
                A[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def two(A: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("A"):
                vi = T.axis.spatial(16, i)
                A[vi] = A[vi] * T.float32(2)
''')
    traced = lower_traced(mod)
    code = machine_code(traced.module, traced.origins)
    labels = [line for line, _ in code.assembly if line.endswith("_kernel:")]
    assert labels == ["one_kernel:", "two_kernel:"]
