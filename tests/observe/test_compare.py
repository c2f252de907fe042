"""Two recordings as one: what stands for the same thing gets the same key."""

from mlc_lab.observe.compare import joined
from mlc_lab.observe.recording import Recording, validate
from mlc_lab.observe.session import record
from mlc_lab.schedule import Schedule, ScheduleError

from .schedules import module


def split_by(*factors, reorder=False):
    sch = Schedule(module())
    i, j, k = sch.get_loops(sch.get_block("Y"))
    j0, *_ = sch.split(j, factors)
    if reorder:
        sch.reorder(j0, i)
    return record(sch).recording


def key_of(data, name, program):
    """The key of what is called `name` in a program."""
    for line in data["programs"][program]["lines"]:
        for key in data["lines"][line][1]:
            if data["keys"][key][1] == name:
                return key
    raise AssertionError(name)


def test_a_comparison_holds_a_valid_recording_with_the_steps_of_both():
    first, second = split_by(None, 8), split_by(None, 4, reorder=True)
    made = joined(first, second)
    validate(made["recording"])
    both = Recording.from_dict(made["recording"])
    assert made["split"] == len(first.steps)
    assert both.text(both.steps[-1].after) == second.text(second.steps[-1].after)
    assert both.text(both.steps[1].after) == first.text(first.steps[1].after)


def test_the_start_of_both_and_what_both_made_of_it_is_the_same():
    made = joined(split_by(None, 8), split_by(None, 4, reorder=True))
    data = made["recording"]
    last = len(data["programs"]) - 1
    for name in ("i", "j_0", "j_1", "Y", "vi"):
        assert key_of(data, name, 1) == key_of(data, name, last), name


def test_what_only_one_made_stays_its_own():
    data = joined(split_by(None, 8), split_by(2, None, 4))["recording"]
    two = key_of(data, "j_2", len(data["programs"]) - 1)
    lines = data["programs"][1]["lines"]
    assert not any(two in data["lines"][line][1] for line in lines)


def test_faults_and_origins_move_with_their_keys():
    sch = Schedule(module())
    try:
        sch.vectorize(sch.get_loops(sch.get_block("Y"))[2])
    except ScheduleError:
        pass
    refused = record(sch).recording
    made = joined(split_by(None, 8), refused)
    both = Recording.from_dict(made["recording"])
    error = both.steps[-1].error
    assert [both.keys[key][1] for key in error["keys"]] == [
        refused.keys[key][1] for key in refused.steps[-1].error["keys"]]
