"""Why a step is faster or slower: the facts of inner loops, and the sentences made of facts."""

import random
import re

import pytest

from mlc_lab.machine.caches import as_hierarchy
from mlc_lab.observe import why
from mlc_lab.observe.count_steps import counted
from mlc_lab.observe.inner_loop import inner_loops
from mlc_lab.observe.live import Choices
from mlc_lab.observe.live_pages import attention, matrix_product, transpose
from mlc_lab.observe.live_pages_softmax import softmax
from mlc_lab.observe.recording import Recording
from mlc_lab.observe.session import record
from mlc_lab.observe.why import Facts, explain, inner_facts, reasons
from mlc_lab.tir import Schedule

from .programs import matmul

X86 = "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"
ARM = "llvm -mtriple=aarch64-linux-gnu"
CACHES = [{"name": "L1", "line": 64}, {"name": "L2", "line": 64}]
MACHINE = {"caches": CACHES, "bandwidth": {"L1": 400.0, "L2": 200.0, "memory": 20.0}, "cores": 4}
INNER = {"instructions": 8, "operations": 8, "fma": 2, "loads": 2, "stores": 0, "shuffles": 0,
         "width": 0, "sums": 1, "carried": 0, "spills": 0, "reloads": 0, "registers": 4, "of": 16,
         "lines": [], "code": "a"}


def tiled(rows, columns):
    """A product of which a tile of so many rows and columns stays in registers."""
    sch = Schedule(matmul(64))
    block = sch.get_block("C")
    kept = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, rows])
    j0, j1 = sch.split(j, [None, columns])
    sch.reorder(i0, j0, k, i1, j1)
    sch.reverse_compute_at(kept, j0)
    sch.vectorize(j1)
    sch.unroll(i1)
    sch.decompose_reduction(block, k)
    return sch.mod


def product(**chosen):
    """The page "matrix product" as it stands when these numbers are chosen."""
    page = Choices(matrix_product(), begin=chosen)
    return page.module(page.point(page.first))


# ------------------------------------------------------------------------------------- inner loops


@pytest.mark.parametrize("target", [X86, ARM])
def test_the_inner_loop_of_a_tile_in_registers(target):
    facts = inner_facts(tiled(4, 8), target=target)
    lanes = facts["width"] // 32
    assert facts["width"] in (128, 256) and facts["fma"] % (4 * 8 // lanes) == 0
    assert facts["sums"] == 4 * 8 // lanes  # each with a register of its own
    assert facts["spills"] == facts["reloads"] == facts["carried"] == 0
    assert facts["operations"] == 2 * lanes * facts["fma"]


@pytest.mark.parametrize(("target", "rows"), [(X86, 16), (ARM, 32)])
def test_what_does_not_fit_into_the_registers_is_spilled(target, rows):
    facts = inner_facts(tiled(rows, 16), target=target)
    assert facts["spills"] > 0 and facts["reloads"] > 0
    assert facts["on_stack"] and max(facts["on_stack"]) < len(facts["text"])


def test_addresses_on_the_stack_are_no_vectors():
    """A product of which all rows and columns are written out, with an address for each row."""
    facts = inner_facts(product(rows=128, columns=128), target=AVX512)
    assert facts["general_reloads"] > 100 and facts["general_of"] == 16
    assert facts["registers"] < facts["of"] and facts["spills"] == facts["reloads"] == 0
    told = " ".join(reasons(Facts(counts(), INNER, (), MACHINE), Facts(counts(), facts, (), {})))
    assert "The 16 general registers, which hold addresses and counters, do not suffice" in told
    assert "vector registers do not suffice" not in told


@pytest.mark.parametrize(("line", "kind"), [
    ("movq %rax, 64(%rsp)", "general"), ("vmovups %ymm1, 64(%rsp)", "vector"),
    ("vmovss %xmm1, 64(%rsp)", "vector"), ("kmovw %k1, 64(%rsp)", "mask"),
    ("str x8, [sp, #64]", "general"), ("str q0, [sp, #64]", "vector"),
    ("str d8, [sp, #64]", "vector"), ("stp x8, x9, [sp, #64]", "general")])
def test_spills_are_counted_by_the_kind_of_register(line, kind):
    arm = "%" not in line
    note = f"    {line}    {'//' if arm else '#'} 8-byte Spill"
    text = f".LBB0_1: # =>This Inner Loop Header: Depth=1\n{note}\n"
    (found,) = inner_loops(text, {})
    assert dict(found.stored) == {kind: 1} and not found.loaded
    assert found.spills == (kind == "vector") and found.on_stack == {0}


def test_an_array_on_the_stack_is_no_spill():
    """Of attention, whose scores of a tile are such an array: its sums fit into the registers."""
    facts = inner_facts(attention().mod, target=X86)
    assert any("%rsp" in line for line in facts["text"])
    assert facts["spills"] == facts["reloads"] == 0 and facts["on_stack"] == []


def test_the_line_that_does_the_work_says_which_loop_is_the_inner_one():
    """Not the one over the init or over the copy, which have no loop inside either."""
    mod = tiled(4, 8)
    lines = record(Schedule(mod)).recording.text(0).split("\n")
    inner = [lines[n] for n in inner_facts(mod, target=X86)["lines"]]
    assert any("A[" in line and "B[" in line for line in inner)


def test_a_label_in_a_loop_does_not_end_it():
    """LLVM unrolls the two loops inside, and puts labels between the instructions for debuggers."""
    sch = Schedule(matmul(16))
    i, j, k = sch.get_loops("C")
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i, j0, k, j1)
    sch.vectorize(j1)
    sch.decompose_reduction("C", k)
    facts = inner_facts(sch.mod, target=X86)
    assert facts["instructions"] > 60 and facts["fma"] == 32, facts


@pytest.mark.parametrize(("rows", "kept"), [(16, 128), (128, 1024)])
def test_sums_that_are_kept_in_memory_are_told_by_number(rows, kept):
    """Of 128 rows the addresses come from the stack, the same in each iteration."""
    inner = [inner_facts(product(rows=n, columns=128), target=AVX512) for n in (1, rows)]
    assert [f["sums"] for f in inner] == [8, 0]
    assert inner[1]["accumulators"] == inner[1]["carried"] == kept
    told = " ".join(reasons(*(Facts(counts(), f, (), MACHINE) for f in inner)))
    assert f"{kept} accumulators, 32 vector registers: they are kept in memory." in told
    assert "independent sums" not in told


def test_sums_in_memory_are_carried_from_iteration_to_iteration():
    """LLVM writes out the loop over j, so that over k is the inner one, with a row in memory."""
    sch = Schedule(matmul(64))
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(i, k, j)
    assert inner_facts(sch.mod, target=X86)["carried"] == 64 * 32 // 256


def test_the_same_code_has_the_same_digest():
    one, two, other = (Schedule(matmul(64)) for _ in range(3))
    loops = two.get_loops("C")
    two.annotate(loops[0], "note", 1)
    other.vectorize(other.split(other.get_loops("C")[1], [None, 8])[1])
    facts = [inner_facts(s.mod, target=X86) for s in (one, two, other)]
    assert facts[0]["code"] == facts[1]["code"] != facts[2]["code"]


def test_the_digest_does_not_depend_on_which_register_is_taken_for_what():
    def digest(*lines):
        return why._digest([(line, ()) for line in lines])

    assert digest("addq $16, %rdx", "vmovaps %zmm17, (%rsp,%rdx,4)", "jne .LBB0_1") == digest(
        "addq $16, %r8", "vmovaps %zmm3, (%rsp,%r8,4)", "jne .LBB0_7")
    one = digest("incq %rdx", "movq %rdx, %rax")
    assert one == digest("incq %rcx", "movq %rcx, %rbx") != digest("incq %rdx", "movq %rax, %rdx")
    assert digest("vaddps %ymm1, %ymm1, %ymm2") != digest("vaddps %zmm1, %zmm1, %zmm2")
    assert digest("vaddps %ymm1, %ymm1, %ymm2") == digest("vaddps %ymm5, %ymm5, %ymm0")


def test_a_switch_that_leaves_the_inner_loop_as_it_was_says_so():
    """Of softmax the loop over the powers does most of the work; the result is another loop, in
    vectors of LLVM's choice where the schedule does not ask for some."""
    page = Choices(softmax())
    knob = [k.name for k in page.knobs].index("vectorize j_1")
    states = [[on if n == knob else choice for n, choice in enumerate(page.first)]
              for on in (True, False)]
    inner = [inner_facts(page.module(page.point(state)), target=AVX512) for state in states]
    assert inner[0]["code"] != inner[1]["code"]
    a, b = (Facts(counts(), f, (), MACHINE) for f in inner)
    assert reasons(a, b, "vectorize") == reasons(b, a, "vectorize") == [
        "The inner loop consists of the same instructions as before: LLVM had done this by itself, "
        "or it is another loop that changed.",
        "The accesses and the cache misses are the same as before."]
    assert reasons(a, b) == ["The accesses and the cache misses are the same as before."]


# --------------------------------------------------------------------------------------- sentences


def counts(misses=(100, 100), bytes_read=1000, uses=6400, flops=100, moves=None):
    """Counts of a program with one buffer, B."""
    levels = [{"name": c["name"], "lookups": 1000, "misses": n, "bytes_in": 64 * n, "bytes_out": 0}
              for c, n in zip(CACHES, misses)]
    sharing = None if moves is None else {
        "shared": int(moves > 0), "moves": moves,
        "buffers": {"S": {"shared": 1, "moves": moves}} if moves else {}}
    return {"sharing": sharing, "levels": levels, "reads": 1, "writes": 0, "bytes_read": bytes_read,
            "bytes_written": 0, "flops": flops,
            "buffers": {"B": {"reads": 1, "writes": 0, "bytes": uses, "misses": list(misses)}}}


def facts(time=None, parallel=(), inner=None, **given):
    made = {**INNER, "code": repr((time, inner, given)), **(inner or {})}
    return Facts(counts(**given), made, parallel, MACHINE, time)


@pytest.mark.parametrize(("before", "after", "said"), [
    (facts(), facts(misses=(10, 100)),
     "10 times fewer L1 misses: each element of B is used 10 times before it leaves L1, once "
     "before."),
    (facts(), facts(misses=(100, 800)),
     "8 times as many L2 misses: of what comes into L2 of B, only 12 % is used"),
    (facts(misses=(1600, 100)), facts(misses=(0, 100)),
     "No L1 misses any more: B is in L1 whenever it is used."),
    (facts(uses=8000, bytes_read=8000), facts(uses=1000, bytes_read=1000),
     "The program asks memory for 1 kB, 8 kB before: elements of B are used 8 times from a"),
    (facts(), facts(flops=300), "It does 3 times as many operations: values are computed again."),
    (facts(flops=1600), facts(),
     "It does 16 times fewer operations: fewer values are computed again."),
    (facts(), facts(flops=150), "It does 50 % more operations: values are computed again."),
    (facts(misses=(0, 100)), facts(misses=(1600, 100)),
     "1,600 L1 misses, none before: of what comes into L1 of B, only 6.2 % is used."),
    (facts(), facts(inner={"width": 256}),
     "The inner loop works on vectors of 256 bits, on one element at a time before."),
    (facts(), facts(inner={"spills": 8, "reloads": 9}),
     "The 16 vector registers do not suffice: the inner loop stores 8 values to the stack and "
     "loads 9 from it."),
    (facts(), facts(inner={"spills": 1, "reloads": 1}),
     "The 16 vector registers do not suffice: the inner loop stores 1 value to the stack and "
     "loads 1 from it."),
    (facts(inner={"spills": 8, "reloads": 9}), facts(inner={"spills": 2, "reloads": 1}),
     "More values of the inner loop fit into the 16 vector registers: it stores 2 to the stack and "
     "loads 1 from it, 8 and 9 before."),
    (facts(), facts(inner={"general_spills": 3, "general_reloads": 1027}),
     "The 16 general registers, which hold addresses and counters, do not suffice: the inner loop "
     "stores 3 of these to the stack and loads 1027 from it."),
    (facts(inner={"general_spills": 3, "general_reloads": 1027}),
     facts(inner={"general_reloads": 9}),
     "More addresses and counters of the inner loop fit into the 16 general registers: it stores 0 "
     "to the stack and loads 9 from it, 3 and 1027 before."),
    (facts(inner={"general_reloads": 9}), facts(),
     "All addresses and counters of the inner loop fit into the 16 general registers; 9 went to or "
     "came from the stack before."),
    (facts(inner={"spills": 8}), facts(), "All values of the inner loop fit into the 16 vector"),
    (facts(), facts(inner={"sums": 12}),
     "The inner loop adds to 12 independent sums, to 1 before: the latency of the add is hidden."),
    (facts(inner={"sums": 16}), facts(inner={"sums": 4}),
     "to 4 independent sums, to 16 before: less of the latency of the add is hidden."),
    (facts(inner={"sums": 16}), facts(),
     "to 1 independent sum, to 16 before: each addition waits for the one before it."),
    (facts(), facts(inner={"spills": 8, "accumulators": 24}),
     "24 accumulators, 16 vector registers: the inner loop stores 8 values to the stack and loads "
     "0 from it."),
    (facts(), facts(inner={"carried": 24, "sums": 0, "accumulators": 24}),
     "24 accumulators, 16 vector registers: they are kept in memory. Each iteration"),
    (facts(), facts(inner={"carried": 12, "sums": 12, "accumulators": 24}),
     "24 accumulators, 16 vector registers: 12 are kept in memory. Each iteration"),
    (facts(), facts(inner={"carried": 3, "sums": 1, "accumulators": 4}),
     "3 of 4 accumulators are kept in memory: each iteration"),
    (facts(), facts(inner={"carried": 2}), "the sums go through memory"),
    (facts(), facts(inner={"instructions": 80}),
     "The inner loop takes 10 instructions for each operation, 1 before."),
    (facts(), facts(inner={"loads": 0}), "The inner loop loads 0 times for each multiply-add"),
    (facts(), facts(parallel=(("i", 64),)), "The 64 iterations of i are shared by 4 cores."),
    (facts(), facts(parallel=(("i", 3),)),
     "Of 4 cores only 3 have work: i has 3 iterations."),
    (facts(parallel=(("i", 8),), moves=5000), facts(parallel=(("i", 8),), moves=4000),
     "Cache lines move between cores 20 % less often: 1 line"),
    (facts(parallel=(("i", 3),)), facts(), "It runs on one core now."),
    (facts(parallel=(("i", 8),), moves=0), facts(parallel=(("i", 8),), moves=5000),
     "Threads use lines that others write to: 1 line of S moved between cores 5,000 times, each "
     "time at the price of a miss."),
    (facts(parallel=(("i", 8),), moves=5000), facts(parallel=(("i", 8),), moves=0),
     "No cache line that a thread writes is used by another one any more; before, 1 line of S "
     "moved between cores 5,000 times."),
    (facts(parallel=(("i", 8),), moves=5000), facts(parallel=(("i", 8),), moves=1),
     "Cache lines move between cores 5,000 times less often: 1 line of S moved between cores once; "
     "before, 1 line of S moved between cores 5,000 times."),
])
def test_each_rule_says_what_changed(before, after, said):
    told = reasons(before, after)
    assert said in told[0] and len(told) == 1


def any_facts(rng):
    """Facts of a program by chance: some counts are nothing, most differ by small or large
    factors."""
    def some():
        return rng.choice([0, 0, rng.randrange(1, 20), int(100 * 2 ** rng.uniform(-1, 8))])

    inner = {name: some() for name in ("loads", "fma", "sums", "carried", "spills", "reloads",
                                    "general_spills", "general_reloads")}
    inner |= {"width": rng.choice([0, 128, 256]), "instructions": rng.randrange(8, 99),
              "operations": rng.randrange(8, 99)}
    parallel = rng.choice([(), (("i", rng.choice([2, 3, 4, 64])),), (("n", None),)])
    made = facts(rng.choice([None, 10 ** rng.uniform(-8, -5)]), parallel, inner,
                 misses=(some(), some()), bytes_read=some(), uses=some(), flops=some(),
                 moves=some() if parallel else None)
    all_of_b = made.counts["buffers"]["B"]
    mine = [rng.randrange(count + 1) for count in all_of_b["misses"]]
    rest = [count - part for count, part in zip(all_of_b["misses"], mine)]
    made.counts["buffers"] = {"A": {**all_of_b, "misses": mine}, "B": {**all_of_b, "misses": rest}}
    return made


def exchanged():
    """A transpose by rows and by columns, simulated: as many misses, of the other buffer."""
    sch = transpose(64)
    found = [counted(sch.mod, as_hierarchy("1K:2, 8K:4"))]
    i, j = sch.get_loops("B")[:2]
    sch.reorder(j, i)
    found.append(counted(sch.mod, as_hierarchy("1K:2, 8K:4")))
    return [Facts(f["counts"], {}, (), {"caches": CACHES}) for f in found]


def test_misses_that_went_from_one_buffer_to_another_are_told():
    rows, columns = exchanged()
    assert [[level["misses"] for level in f.counts["levels"]] for f in (rows, columns)] == \
        2 * [[64 * 64 + 64 * 64 // 16] * 2]
    assert reasons(rows, columns) == [
        "As many L1 misses as before, but more of A and fewer of B: of what comes into L1 of A, "
        "only 6.2 % is used; before, each element was used once."]
    assert "more of B and fewer of A" in reasons(columns, rows)[0]


def test_a_change_is_spoken_of_alike_in_both_directions():
    rng, spoken = random.Random(17), set()
    for _ in range(3000):
        a, b = any_facts(rng), any_facts(rng)
        for rule in why.RULES:
            there, back = list(rule(a, b)), list(rule(b, a))
            assert len(there) == len(back), (rule.__name__, a, b)
            for one, other in zip(there, back):
                spoken.add(rule.__name__)
                assert one.way == -other.way and one.size == pytest.approx(other.size), (
                    one, other)
                factors = [re.search(r"([\d,.]+) times (fewer|less|as|from)", r.text)
                           for r in (one, other)]
                assert [f and f[1] for f in factors] == 2 * [factors[0] and factors[0][1]]
                assert not any(f and float(f[1].replace(",", "")) < 1.9 for f in factors)
    assert len(spoken) == len(why.RULES)


def test_nothing_is_said_of_what_did_not_change():
    one = facts()
    assert reasons(one, Facts(one.counts, {**one.inner, "code": "b"}, (), MACHINE)) == [
        "The accesses and the cache misses are the same as before."]
    assert reasons(one, one) == ["The machine code is the same as before."]
    assert reasons(one, one, "vectorize") == [
        "LLVM had done this by itself: the machine code is the same as before."]


def test_the_same_machine_code_may_take_another_time():
    one, two = facts(1.0), Facts(counts(), {**INNER, "code": "b"}, (), MACHINE, 2.0)
    same = Facts(one.counts, {**one.inner, "code": "b"}, (), MACHINE, 1.0)
    assert reasons(same, two) == [
        "The machine code is the same as before.",
        "It is 2 times as slow, which these counts do not explain."]


def test_misses_that_cost_next_to_nothing_are_not_what_made_the_difference():
    assert not reasons(facts(1.0), facts(1.0, misses=(10, 100)))
    assert "L1" in reasons(facts(1e-8), facts(1e-8, misses=(10, 100)))[0]


@pytest.mark.parametrize(("after", "word"), [(0.5, "fast"), (2.0, "slow")])
def test_what_the_counts_do_not_explain_is_said(after, word):
    assert reasons(facts(1.0), facts(after)) == [
        "The accesses and the cache misses are the same as before.",
        f"It is 2 times as {word}, which these counts do not explain."]
    wider = facts(after, inner={"width": 256})
    explained = not any("do not explain" in text for text in reasons(facts(1.0), wider))
    assert explained is (word == "fast")  # wider vectors are no reason to be slower


@pytest.mark.parametrize(("times", "inner", "left"), [
    # 12 % more instructions make nothing 8 times as slow, nor 11 % fewer as fast
    ((1.0, 8.0), {"instructions": 9}, "It is 8 times as slow: these counts explain only a part of "
                                      "that, and not the rest."),
    ((8.0, 1.0), {"instructions": 7}, "It is 8 times as fast: these counts explain only a part of "
                                      "that, and not the rest."),
    ((1.0, 1.15), {"instructions": 9}, ""),     # as large as the difference
    ((1.0, 3.0), {"instructions": 16}, ""),     # more than its root
    ((1.0, 3.5), {"carried": 2}, ""),           # waiting is a cause with a size of its own
    ((1.0, 8.0), {"instructions": 9, "width": 256}, "It is 8 times as slow: these counts explain "),
])
def test_causes_that_are_too_small_for_the_difference_leave_a_rest(times, inner, left):
    told = reasons(facts(times[0]), facts(times[1], inner=inner))
    assert len(told) == len(inner) + bool(left)
    assert left in told[-1] and (bool(left) or "not the rest" not in told[-1])


def test_a_difference_within_the_spread_leaves_no_rest():
    a, b = facts(1.0), facts(2.0, inner={"instructions": 9})
    wide = [Facts(f.counts, f.inner, (), MACHINE, f.time, 0.5) for f in (a, b)]
    assert "not the rest" in reasons(a, b)[-1] and len(reasons(*wide)) == 1


def test_the_largest_change_comes_first_and_not_too_many_are_told():
    after = facts(misses=(1, 1), flops=300, bytes_read=10, uses=10,
                  inner={"width": 256, "spills": 3, "sums": 9})
    told = reasons(facts(), after)
    assert len(told) == 3 and told[0].startswith("The program asks memory for 10 B, 1 kB before")


# -------------------------------------------------------------------------------------- recordings


def test_every_step_of_a_counted_recording_says_why():
    sch = Schedule(matmul(32))
    i, j, k = sch.get_loops("C")
    sch.reorder(i, k, j)
    sch.split(j, [None, 8])
    made = record(sch)
    made.count("1K:2, 8K:4", progress=False, isolate=True)
    steps = made.recording.steps
    assert steps[0].why == [] and all(step.why for step in steps[1:])
    assert "only 35 % is used, 6.2 % before" in " ".join(steps[1].why)
    again = Recording.from_json(made.recording.to_json())
    assert [step.why for step in again.steps] == [step.why for step in steps]
    for step in steps:
        step.why = []
    assert [s.why for s in explain(again).steps] == [s.why for s in again.steps]


def test_a_program_without_machine_code_says_so_and_the_others_are_explained():
    sch = Schedule(matmul(8))
    sch.vectorize(sch.get_loops("C")[1])
    sch.bind(sch.get_loops("C")[0], "threadIdx.x")
    made = record(sch)
    made.count("1K:2", progress=False)
    assert "no machine code" in made.recording.programs[-1].cost["inner"]["message"]
    assert made.recording.steps[1].why and not made.recording.steps[2].why


def test_programs_that_take_long_to_simulate_are_counted_only_when_asked_to():
    made = record(Schedule(matmul(32)))
    made.count("1K:2", progress=False, most=1000)
    cost = made.recording.programs[0].cost
    assert "takes long" in cost["counts"]["message"] and "code" in cost["inner"]
    made.count("1K:2", progress=False)
    assert "levels" in made.recording.programs[0].cost["counts"]
