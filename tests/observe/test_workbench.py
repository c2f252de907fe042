"""The workbench: what is legal and why not, attempts as a tree, Python out and in, files."""

import json
import random
import re

import pytest

from mlc_lab.ir.diagnostics import DiagnosticError
from mlc_lab.ir.structural import structural_equal
from mlc_lab.observe import workbench_palette
from mlc_lab.observe.recording import Recording
from mlc_lab.observe.workbench import Workbench, WorkbenchError
from mlc_lab.observe.workbench_palette import Palette, statements_in_order
from mlc_lab.observe.workbench_table import listing
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source

from .schedules import module, schedule


@pytest.fixture(autouse=True)
def every_choice_is_tried(monkeypatch):
    """However busy the machine is: a choice that there was no time to try is offered unasked."""
    monkeypatch.setattr(workbench_palette, "BUDGET", float("inf"))


@pytest.fixture
def bench():
    return Workbench(module())


def entry(bench, selection, op):
    return next(e for e in bench.legal(selection) if e.op == op)


def parameter(found, name):
    return next(p for p in found.parameters if p.name == name)


# ------------------------------------------------------------------------------- what is legal


def test_every_primitive_for_a_loop_is_listed_legal_or_with_its_reason(bench):
    found = {e.op: e for e in bench.legal("Y/j")}
    assert {"split", "fuse", "reorder", "parallel", "vectorize", "unroll", "bind", "rfactor",
            "decompose_reduction", "blockize", "tensorize", "annotate"} <= set(found)  # fmt: skip
    for e in found.values():
        assert e.meaning and e.group
        assert e.legal or (e.rule and e.reason), e.op
    assert found["split"].legal and found["parallel"].legal
    assert not found["rfactor"].legal and not found["unannotate"].legal


def test_what_is_called_legal_can_be_applied_with_its_defaults(bench):
    for selection in ("Y", "C", "Y/i", "Y/j", "Y/k", "C/j"):
        for e in bench.legal(selection):
            if e.legal:
                bench.apply(e.op, **e.arguments())
                bench.undo()
            else:
                assert e.reason, (selection, e.op)


def test_a_refused_primitive_says_why(bench):
    refused = entry(bench, "Y/k", "vectorize")
    assert not refused.legal
    assert "k" in refused.reason and len(refused.reason) > 30
    assert "outlives the scope" in entry(bench, "C", "compute_inline").reason


def test_split_offers_the_divisors_of_the_extent(bench):
    factors = parameter(entry(bench, "Y/k", "split"), "factors")
    assert factors.extra["extent"] == 24
    assert factors.extra["divisors"] == [1, 2, 3, 4, 6, 8, 12, 24]
    assert factors.default == [None, 8]


def test_the_loops_to_compute_at_are_listed_legal_or_with_the_reason(bench):
    loop = parameter(entry(bench, "C", "reverse_compute_at"), "loop")
    legal = {c["label"]: c["legal"] for c in loop.choices}
    assert legal == {"i (16) of Y": True, "j (32) of Y": True, "k (24) of Y": False}
    assert loop.choices[2]["reason"]
    assert loop.default == loop.choices[0]["value"]


def test_a_reduction_is_decomposed_at_its_outermost_loop_by_default(bench):
    loop = parameter(entry(bench, "Y", "decompose_reduction"), "loop")
    assert loop.default == {"loop": bench.key_of(bench.find("k").stmt)}
    assert [c["legal"] for c in loop.choices] == [True, True, True]


def test_buffers_and_scopes_are_choices(bench):
    found = entry(bench, "Y", "cache_read")
    labels = [c["label"] for c in parameter(found, "read_buffer_index").choices]
    assert any(label.startswith("A[16, 24]") for label in labels)
    scopes = [c["value"] for c in parameter(found, "storage_scope").choices]
    assert scopes[:3] == ["global", "shared", "local"]
    threads = parameter(entry(bench, "Y/i", "bind"), "thread_axis")
    assert {"blockIdx.x", "threadIdx.x"} <= {c["value"] for c in threads.choices if c["legal"]}


def test_a_listing_changes_nothing(bench):
    before = bench.mod
    bench.legal("Y")
    bench.legal("Y/i")
    assert bench.mod is before and len(bench.attempts) == 1
    assert len(bench.at.schedule.steps) == 0 and len(bench.at.schedule.trace) == 0


@pytest.mark.parametrize("step", range(0, 8, 2))
def test_what_was_refused_before_makes_no_difference(step, monkeypatch):
    """A listing tries many things on one copy while they are refused, and asks only whether they
    are: the answers are those of applying each to a new copy."""
    bench, trial = Workbench(schedule()), Palette.trial
    bench.goto(min(step, len(bench.attempts) - 1))

    def on_a_new_copy(self, kind, args, asking=False):
        return trial(Palette(self.sch, self.sref, self.key_of, self.target), kind, args)

    for stmt in statements_in_order(bench.at.reached.state):
        sref = bench.find(bench.key_of(stmt))
        answers = listing(bench.at.reached, sref, bench.key_of, "llvm")
        with monkeypatch.context() as patch:
            patch.setattr(Palette, "trial", on_a_new_copy)
            assert listing(bench.at.reached, sref, bench.key_of, "llvm") == answers


def test_arguments_can_be_checked_without_applying_them(bench):
    loop = bench.key_of(bench.find("Y/j").stmt)
    assert bench.check("split", loop={"loop": loop}, factors=[4, 8]) is None
    rule, reason = bench.check("split", loop={"loop": loop}, factors=[4, 4])
    assert rule == "factors cover extent" and "lost" in reason
    assert bench.check("split", loop={"loop": loop}, wrong=1)[0] == "arguments"
    assert bench.check("split", loop={"loop": 9999}, factors=[1])[0] == "arguments"
    assert len(bench.attempts) == 1


def test_what_would_change_is_shown_before_it_is_applied(bench):
    loop = {"loop": bench.key_of(bench.find("Y/j").stmt)}
    told = bench.preview("split", loop=loop, factors=[None, 8])
    assert ("-", "        for i, j, k in T.grid(16, 32, 24):") in told
    assert ("+", "        for i, j_0, j_1, k in T.grid(16, 4, 8, 24):") in told
    assert bench.preview("split", loop=loop, factors=[2, 2]) == []
    assert len(bench.attempts) == 1


# ------------------------------------------------------------------------------ what is picked


def test_a_loop_is_picked_by_key_name_or_variable(bench):
    sref = bench.find("Y/j")
    assert bench.find(bench.key_of(sref.stmt)) is sref
    assert bench.find({"loop": bench.key_of(sref.stmt)}) is sref
    assert bench.find("k").stmt.loop_var.name == "k"
    assert bench.find("Y").stmt.name_hint == "Y"
    with pytest.raises(WorkbenchError, match="name of 2 loops.*Y/i, C/i"):
        bench.find("i")
    with pytest.raises(WorkbenchError, match="no block or loop 'Z' here; there are"):
        bench.find("Z")


def test_keys_follow_things_through_the_steps(bench):
    k = bench.key_of(bench.find("k").stmt)
    bench.apply("split", loop="Y/j", factors=[None, 8])
    assert bench.find(k).stmt.loop_var.name == "k"
    bench.apply("split", loop=k, factors=[None, 4])
    with pytest.raises(WorkbenchError, match="loop k is not in the program"):
        bench.find(k)


# -------------------------------------------------------------------------------------- tree


def test_attempts_form_a_tree_one_can_walk(bench):
    one = bench.apply("split", loop="Y/j", factors=[None, 8])
    two = bench.apply("reorder", ordered_loops=["k", "j_1"])
    assert bench.undo() is one and bench.redo() is two
    bench.goto(0)
    assert bench.redo() is one and bench.redo() is two
    bench.goto(one.id)
    other = bench.apply("parallel", loop="Y/i")
    assert one.children == [two.id, other.id]
    assert [n.op for n in bench.path()] == ["start", "split", "parallel"]
    assert bench.undo() is one and bench.redo() is other
    assert bench.goto(two.id) is two and "T.parallel" not in bench.mod.script()
    with pytest.raises(WorkbenchError, match="no attempt 9"):
        bench.goto(9)


def test_undo_at_the_start_and_redo_at_the_end_stay(bench):
    assert bench.undo().id == 0 and bench.redo().id == 0


def test_the_same_attempt_twice_is_one_node(bench):
    one = bench.apply("split", loop="Y/j", factors=[None, 8])
    bench.undo()
    assert bench.apply("split", loop="Y/j", factors=[None, 8]) is one
    assert len(bench.attempts) == 2


def test_a_refused_attempt_is_kept_with_its_error(bench):
    with pytest.raises(ScheduleError):
        bench.apply("vectorize", loop="k")
    node = bench.attempts[1]
    assert node.schedule is None and node.error["rule"] and node.error["keys"]
    assert bench.at.id == 0 and node.parent == 0
    assert bench.goto(1).id == 0
    assert "# refused: sch.vectorize(k)" in bench.python(1)


def test_listeners_hear_of_changes(bench):
    heard = []
    bench.listeners.append(lambda: heard.append(bench.at.id))
    bench.apply("parallel", loop="Y/i")
    bench.undo()
    assert heard == [1, 0]


def test_an_unknown_primitive_or_argument_is_told(bench):
    with pytest.raises(WorkbenchError, match="did you mean 'split'"):
        bench.apply("splitt", loop="k")
    with pytest.raises(TypeError, match="it takes loop, factors"):
        bench.apply("split", lop="k", factors=[2])


def test_a_path_is_a_recording_for_the_stepper():
    bench = Workbench(schedule())
    bench.goto(2)
    bench.apply("parallel", loop="Y/i")
    found = bench.steps(6)
    assert [s.op for s in found.steps] == [
        "start", "split", "reorder", "reverse_compute_at", "vectorize", "vectorize",
        "decompose_reduction"]  # fmt: skip
    assert found.steps[4].error and found.steps[1].origins
    assert [s.op for s in bench.steps().steps][-1] == "parallel"
    Recording.from_dict(found.to_dict())


# ------------------------------------------------------------------------------------ Python


def run(text, tmp_path):
    """Run a text as a file and return its schedule."""
    path = tmp_path / "made.py"
    path.write_text(text)
    scope = {"__name__": "made", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), scope)
    return scope["sch"]


def test_the_python_runs_as_it_stands(tmp_path):
    bench = Workbench(schedule())
    text = bench.python()
    assert structural_equal(run(text, tmp_path).mod, bench.mod)
    assert structural_equal(run(text, tmp_path).mod, schedule().mod)


def test_the_python_reads_as_one_would_write_it(bench):
    bench.apply("split", loop="Y/j", factors=[None, 8])
    bench.apply("reorder", ordered_loops=["k", "j_1"])
    bench.apply("reverse_compute_at", block="C", loop="Y/j_0")
    assert bench.python(program=False).splitlines() == [
        "sch = tvm.tir.Schedule(Module)",
        'Y = sch.get_block("Y")',
        "i, j, k = sch.get_loops(Y)",
        "j_0, j_1 = sch.split(j, factors=[None, 8])",
        "sch.reorder(k, j_1)",
        'C = sch.get_block("C")',
        "sch.reverse_compute_at(C, j_0)",
    ]


def test_every_legal_default_survives_python_and_back(bench):
    for selection in ("Y", "C", "Y/j"):
        for e in bench.legal(selection):
            if not e.legal:
                continue
            bench.goto(0)
            node = bench.apply(e.op, **e.arguments())
            count = len(bench.attempts)
            bench.goto(0)
            assert bench.load_python(bench.python(node)) is node, e.op
            assert len(bench.attempts) == count


def test_a_schedule_written_in_code_is_the_first_branch():
    sch = schedule()
    bench = Workbench(sch)
    assert structural_equal(bench.mod, sch.mod)
    ops = [(n.op, bool(n.error)) for n in bench.attempts]
    assert ops == [("start", False), ("split", False), ("reorder", False),
                   ("reverse_compute_at", False), ("vectorize", True), ("vectorize", False),
                   ("decompose_reduction", False)]  # fmt: skip
    assert bench.attempts[4].error["rule"]


def test_sampled_numbers_are_kept_with_their_decisions():
    sch = Schedule(module(), seed=1)
    loops = sch.get_loops(sch.get_block("Y"))
    sch.split(loops[1], factors=sch.sample_perfect_tile(loops[1], n=2, decision=[4, 8]))
    bench = Workbench(sch)
    assert structural_equal(bench.mod, sch.mod)
    assert "decision=[4, 8]" in bench.python()
    again = Workbench(module())
    again.load_python(bench.python())
    assert structural_equal(again.mod, sch.mod)


COURSE = '''
import tvm
from tvm.script import tir as T

sch = tvm.tir.Schedule(MyModule)
block_Y = sch.get_block("Y", func_name="main")
i, j, *rest = sch.get_loops(block_Y)
tile = [None, 8]
j0, j1 = sch.split(j, factors=tile)   # a comment
sch.reorder(i, j0, rest[0], j1)
sch.mod.show()
sch.reverse_compute_at(sch.get_block("C"), j0)
print(sch.trace)
sch.vectorize(sch.get_loops(block_Y)[-1])
'''


def test_python_written_by_hand_is_read(bench):
    bench.load_python(COURSE)
    assert [n.op for n in bench.path()] == ["start", "split", "reorder", "reverse_compute_at",
                                            "vectorize"]  # fmt: skip
    sch = Schedule(module())
    y = sch.get_block("Y")
    i, j, k = sch.get_loops(y)
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.reorder(i, j0, k, j1)
    sch.reverse_compute_at(sch.get_block("C"), j0)
    sch.vectorize(j1)
    assert structural_equal(bench.mod, sch.mod)


def test_the_text_of_a_trace_is_read(bench):
    sch = schedule()
    bench.load_python(str(sch.trace))
    assert structural_equal(bench.mod, sch.mod)


def test_an_edited_text_shares_what_it_has_in_common_with_the_tree(bench):
    bench.load_python(COURSE)
    count = len(bench.attempts)
    bench.load_python(COURSE.replace("sch.vectorize", "sch.unroll"))
    assert len(bench.attempts) == count + 1
    assert bench.at.parent == 3


@pytest.mark.parametrize("text, line, message", [
    ("x = 1\nfor i in range(3):\n    pass", 2, "a for statement cannot be read"),
    ("import os\nos.system('true')", 2, "expected a call of a primitive"),
    ("b = sch.get_block('Y')\nsch.splitt(b)", 2, "no primitive 'splitt'"),
    ("sch.split(loop, factors=[1])", 1, "'loop' is not defined before this line"),
    ("b = sch.get_block('Y')\n\nl = sch.get_loops(b", 3, "not Python"),
    ("b = sch.get_block('Y')\nsch.split(b, 1, 2, 3, 4, 5)", 2, "too many positional"),
    ("b = sch.get_block('Y')\ni, j = sch.get_loops(b)", 2, "2 names for 3 results"),
    ("x = open('/etc/passwd')", 1, "cannot contain"),
    ("x = (lambda: 1)()", 1, "cannot contain"),
    ("x = [1][5]", 1, "out of range"),
    ("sch.mod = 3", 1, "assigned to plain names"),
    ("sch.split(**{})", 1, "cannot be read"),
    ("a = b = 3", 1, "one assignment a line"),
])  # fmt: skip
def test_a_text_that_is_no_schedule_is_refused_with_its_line(bench, text, line, message):
    with pytest.raises(DiagnosticError, match=re.escape(message)) as caught:
        bench.load_python(text)
    assert caught.value.line == line
    assert len(bench.attempts) == 1 and bench.at.id == 0


def test_a_refusal_in_a_text_keeps_what_came_before(bench):
    text = COURSE.replace("sch.vectorize(sch.get_loops(block_Y)[-1])", "sch.vectorize(rest[0])")
    with pytest.raises(ScheduleError) as caught:
        bench.load_python(text)
    assert caught.value.line == text.split("\n").index("sch.vectorize(rest[0])") + 1
    assert bench.at.op == "reverse_compute_at"
    assert bench.attempts[-1].error


def test_a_variable_whose_loop_is_gone_is_refused(bench):
    with pytest.raises(ScheduleError, match="gone"):
        bench.load_python("b = sch.get_block('Y')\ni, j, k = sch.get_loops(b)\n"
                          "sch.split(j, factors=[4, 8])\nsch.parallel(j)")  # fmt: skip
    assert bench.at.op == "split"


def test_a_schedule_of_another_program_is_told_apart(bench):
    text = bench.python().replace("(16, 24)", "(16, 12)").replace("24", "12")
    with pytest.raises(WorkbenchError, match="another program"):
        bench.load_python(text)
    bench.load_python(bench.python())  # its own is welcome


# ------------------------------------------------------------------------------------- files


def test_a_tree_is_saved_and_loaded(tmp_path):
    bench = Workbench(schedule())
    bench.goto(2)
    bench.apply("parallel", loop="Y/i")
    bench.recording.programs[1].cost = {"time": 1e-3}
    bench.save(tmp_path / "tree.json")
    again = Workbench.load(tmp_path / "tree.json")
    assert again.to_dict() == bench.to_dict()
    assert again.cost(1) == {"time": 1e-3}
    assert again.at.op == "parallel"
    again.apply("split", loop="Y/k", factors=[None, 4])  # and it goes on


@pytest.mark.parametrize("seed", range(10))
def test_whatever_is_clicked_survives_python_and_file(seed, tmp_path):
    """A random walk over what is listed as legal: every text and file gives the same programs."""
    rng = random.Random(seed)
    bench = Workbench(module())
    for _ in range(6):
        picked = rng.choice(statements_in_order(bench.at.schedule.state))
        legal = [e for e in bench.legal(bench.key_of(picked)) if e.legal]
        chosen = rng.choice(legal)
        bench.apply(chosen.op, **chosen.arguments())
        if rng.random() < 0.2:
            bench.undo()
    text = bench.python()
    assert structural_equal(run(text, tmp_path).mod, bench.mod)
    other = Workbench(module())
    other.load_python(text)
    assert structural_equal(other.mod, bench.mod)

    def told(tree):
        return [(n.op, n.lead, n.python, n.parent, tree.recording.text(n.program))
                for n in tree.attempts]  # fmt: skip

    assert told(Workbench.from_json(bench.to_json())) == told(bench)


def test_a_file_that_is_no_tree_is_refused():
    good = {**Workbench(schedule()).to_dict(), "at": 0}

    def broken(**changes):
        return json.dumps({**good, **changes})

    for text, message in [
        ("{", "not JSON"),
        ("[" * 100_000, "levels deep"),
        ("[]", "no JSON object"),
        (broken(sizes=[1]), "no object of sizes"),
        (broken(sizes={"n": 10**30}), "no object of sizes"),
        (broken(target=7), "target is no text"),
        (broken(target="llvm -nope"), "nope"),
        (broken(keys=[[1, 2]]), "no pair of kind and name"),
        (broken(machine=[]), "machine is of another type"),
        (broken(format="x"), "format is 'x'"),
        (broken(version=99), "a newer MLC Lab"),
        (broken(nodes=[]), "nodes is missing or empty"),
        (broken(at=99), "at is no attempt"),
        (broken(lines=[["import os", []]] * len(good["lines"])), "program cannot be read"),
        (broken(nodes=[good["nodes"][0], {**good["nodes"][1], "parent": 5}]), "no attempt before"),
        (broken(nodes=[good["nodes"][0], {**good["nodes"][1], "python": "import os"}]), "no step"),
        (broken(nodes=[good["nodes"][0], {**good["nodes"][1], "python": "exit()"}]), "expected"),
    ]:
        with pytest.raises(WorkbenchError, match=re.escape(message)):
            Workbench.from_json(text)


@pytest.mark.parametrize("text, message", [
    ("sch.split(" + "-" * 5000 + "1)", "deep"),
    ("x = [" + "1, " * 10 + "]\n" + "x = [*x, *x]\n" * 40, "elements"),
    ("x = [1]\n" + "x = [x, x]\n" * 40, "parts"),
    ("x = " + "9" * 500, "bits"),
    ("x = [1][7]", "out of range"), ("x = 5[0]", "subscriptable"), ("sch.work_on()", "work_on"),
    ("b = sch.get_block(" + "[" * 300, "not Python"), ("\0", "not Python"),
])
def test_python_made_to_hold_the_process_is_refused(bench, text, message):
    before = len(bench.attempts)
    with pytest.raises(DiagnosticError, match=re.escape(message)):
        bench.load_python(text)
    assert len(bench.attempts) == before


def test_a_module_of_two_functions_is_scheduled_in_both():
    source = module().script()
    head, body = source.split("    @T.prim_func\n", 1)
    two = from_source(f"{head}    @T.prim_func\n{body}\n\n    @T.prim_func\n"
                      + body.replace("def main", "def other"))  # fmt: skip
    bench = Workbench(two)
    loops = [s for s in bench.at.schedule.state.refs.values()
             if getattr(getattr(s.stmt, "loop_var", None), "name", "") == "k"]  # fmt: skip
    for sref in loops:
        bench.apply("split", loop={"loop": bench.key_of(sref.stmt)}, factors=[None, 4])
    assert bench.mod.script().count("k_0") >= 2
    again = Workbench(two)
    again.load_python(bench.python())
    assert structural_equal(again.mod, bench.mod)


def test_something_that_is_no_program_is_refused():
    with pytest.raises(TypeError, match="takes an IRModule, a PrimFunc or a Schedule"):
        Workbench("program")
