"""The stepper as a Python object: traits, callbacks, links to other widgets."""

import handmade
import pytest

pytest.importorskip("anywidget")
ipywidgets = pytest.importorskip("ipywidgets")

from mlc_lab_widgets import Stepper


@pytest.fixture
def view():
    return Stepper(handmade.recording())


def test_steps_are_clamped_and_callbacks_hear_of_them_until_ended(view):
    seen = []
    stop = view.on_step(seen.append)
    view.step = 3
    view.step = 99
    stop()
    view.step = 1
    assert seen == [3, 6] and view.step == 1


def test_another_widget_is_linked_in_python_and_in_the_browser(view):
    slider = ipywidgets.IntSlider(max=6)
    link = ipywidgets.link((slider, "value"), (view, "step"))
    slider.value = 4
    assert view.step == 4
    view.step = 2
    assert slider.value == 2
    link.unlink()
    there = ipywidgets.jslink((slider, "value"), (view, "step"))
    assert there.source == (slider, "value") and there.target == (view, "step")


def test_a_thing_is_selected_by_its_name(view):
    view.step = 1
    heard = []
    view.on_select(heard.append)
    view.select("loop", "j_0")
    assert heard[0]["text"] == "for i, j_0, j_1, k in T.grid(128, 16, 8, 128):"
    assert view.selection["name"] == "j_0" and view.selection["side"] == "after"
    view.select("loop", "j", "before")
    view.step = 5
    view.select("block", "Y_update")
    assert view.selection["text"] == 'with T.block("Y_update"):'
    view.step = 1
    with pytest.raises(ValueError, match="no loop 'j_9' in the program after step 1"):
        view.select("loop", "j_9")


def test_tabs_are_known_by_name(view):
    view.tab = "assembly"
    with pytest.raises(Exception, match="program"):
        view.tab = "microcode"


def test_code_is_made_when_the_view_asks_and_only_once(view, monkeypatch):
    sent = []
    monkeypatch.setattr(view, "send", sent.append)
    view._answer(view, {"type": "code", "program": 0}, [])
    view._answer(view, {"type": "code", "program": 0}, [])
    view._answer(view, {"type": "code", "program": 99}, [])
    view._answer(view, "nonsense", [])
    assert len(sent) == 2 and sent[0]["code"] is sent[1]["code"]
    assert "0" in sent[0]["code"]["programs"]


def test_the_kernel_itself_makes_no_code_ahead(view, monkeypatch):
    sent = []
    monkeypatch.setattr(view, "send", sent.append)
    view._answer(view, {"type": "code", "program": 0, "ahead": True}, [])
    assert sent == [] and not view._code


def test_what_a_kernel_cannot_lower_is_told_and_does_not_break_the_view(view, monkeypatch):
    sent = []
    monkeypatch.setattr(view, "send", sent.append)
    view.source.lines[0] = ("this is no program", [])
    view._answer(view, {"type": "code", "program": 0}, [])
    assert sent[0]["code"]["programs"]["0"]["error"]
