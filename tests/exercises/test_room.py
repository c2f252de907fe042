"""A class in a room: who may do what, what is kept, and what is not lost."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

pytest.importorskip("tornado")

from room_client import HANDMADE, Student, Teacher, recording, served

from mlc_lab.cli import main
from mlc_lab.exercises.room import journal as journal_module
from mlc_lab.exercises.room.questions import questions_of, recordings_in, truth_of
from mlc_lab.exercises.room.room import Refused, Room
from mlc_lab.exercises.room.slow import Slow
from mlc_lab.reading import DataError


@pytest.fixture(autouse=True)
def no_loop_of_a_browser():
    """A browser that an earlier test has opened keeps its event loop running in this thread, where
    none of another can run then (`asyncio.run` refuses): it is set aside meanwhile."""
    browsers = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(browsers)


FIRST, SECOND = "recording 0, step 1", "recording 0, step 2"
LEGAL = {"legal": "legal"}


@pytest.fixture
def room(tmp_path):
    made = Room([recording()], tmp_path / "class.jsonl")
    yield made
    made.close()


def voted(question=FIRST, id="1", **answers):
    return {"id": id, "question": question, "answers": answers or LEGAL}


def refused(status, coroutine):
    with pytest.raises(Refused) as error:
        asyncio.run(coroutine)
    assert error.value.status == status
    return error.value


def seat(room):
    return room.seat_of(asyncio.run(room.join(room.pin, "here")))


# ---------------------------------------------------------------------------- what is asked


def test_what_is_so_is_what_the_stepper_says():
    # the table of tests/widgets/test_guess_page.py, for the same recording
    truth = [("legal", "same"), ("legal", "faster"), ("legal", "faster"), ("refused", None),
             ("legal", "faster"), ("legal", "faster")]
    found = [truth_of(recording(), asked) for asked in questions_of([recording()])]
    assert [(one["legal"], one["speed"]) for one in found] == truth
    assert [one["factor"] for one in found] == ["0", "2", "0", None, "1", "2"]
    assert "6.56× faster" in found[1]["says"]


def test_a_change_within_noise_that_is_large_is_not_called_the_same():
    noisy = recording()
    cost = noisy.programs[noisy.steps[2].after].cost
    cost["spread"] = 8.0
    found = truth_of(noisy, questions_of([noisy])[1])
    assert found["legal"] == "legal" and found["speed"] is found["factor"] is None
    assert found["says"][-1] == "the times are too noisy to tell (6.56× faster)"


def test_a_question_tells_nothing_of_its_answer():
    asked = questions_of([recording()])
    assert [one["step"] for one in asked] == [1, 2, 3, 4, 5, 6]
    assert "j_0, j_1 =" not in asked[0]["call"] and "factors=[None, 8]" in asked[0]["call"]
    assert [ask["name"] for ask in asked[0]["asks"]] == ["legal", "speed", "factor"]
    plain = recording()
    for program in plain.programs:
        program.cost = None
    assert [ask["name"] for ask in questions_of([plain])[0]["asks"]] == ["legal"]


def test_which_factor_a_split_gets_is_asked_before_what_it_does():
    one = recording()
    asked = questions_of([one], factors=True)
    assert [q["step"] for q in asked] == [1, 1, 2, 3, 4, 5, 6]
    assert "factors=[None, ?]" in asked[0]["call"] and "factors=[None, 8]" in asked[1]["call"]
    assert len({q["key"] for q in asked}) == 7 and asked[1:] == questions_of([one])
    (ask,) = asked[0]["asks"]
    offered = [int(value) for value, _ in ask["choices"]]
    assert len(offered) == 4 and offered == sorted(offered) and 8 in offered
    assert truth_of(one, asked[0]) == {"split": "8", "says": ["its factor is 8"]}


@pytest.mark.parametrize("python, offered", [
    ("sch.split(loop=j, factors=[None, 6])", {2, 3, 4, 6, 8, 12, 16, 24, 48}),
    ("sch.split(loop=j, factors=[v1, 4, v2])", {2, 4, 8, 16, 32}),
    ("sch.split(loop=j, factors=[None, 64])", {8, 16, 32, 64, 128}),
    ("sch.split(loop=nobody, factors=[None, 16])", {2, 4, 8, 16, 32, 64, 128}),
    ("sch.split(loop=j, factors=[v1, v2])", None),
    ("sch.split(loop=j, factors=[None, 1])", None),
    ("sch.split(loop=j, factors=[None, None, 0])", None),
    ("sch.split(loop=j)", None),
    ("", None),
])
def test_numbers_that_are_offered_could_all_be_right(python, offered):
    one = recording()
    one.steps[1].python = python
    asked = [q for q in questions_of([one], factors=True) if q["key"].endswith("factor")]
    if offered is None:
        assert not asked
        return
    found = {int(value) for value, _ in asked[0]["asks"][0]["choices"]}
    right = int(truth_of(one, asked[0])["split"])
    assert right in found <= offered and f"{right}" in python


def test_a_refused_split_has_no_factor_to_guess():
    one = recording()
    one.steps[1].error = {"message": "no"}
    assert len(questions_of([one], factors=True)) == 6


def test_a_class_guesses_a_factor(tmp_path):
    room = Room([recording()], tmp_path / "class.jsonl", factors=True)
    one, key = seat(room), FIRST + ", factor"
    none = {"id": "0", "question": key, "answers": {}}
    assert "say first: Which factor" in str(refused(400, room.vote(one, none)))
    refused(400, room.vote(one, voted(key, legal="legal")))
    asyncio.run(room.vote(one, voted(key, split="8")))
    assert room.for_students([one])[one]["truth"] is None
    asyncio.run(room.act("reveal", key))
    state = room.for_students([one])[one]
    assert state["counts"] == {"split": {"8": 1}} and state["score"] == [1, 1]
    assert state["truth"]["split"] == "8" and room.for_teacher()["told"] == []
    asyncio.run(room.act("next", key))
    asyncio.run(room.vote(one, voted(legal="legal")))
    asyncio.run(room.act("reveal", FIRST))
    assert room.for_students([one])[one]["score"] == [2, 2] and room.for_teacher()["told"] == [1]
    room.close()
    with pytest.raises(DataError, match="a class with other steps"):
        Room([recording()], tmp_path / "class.jsonl")


def test_steppers_of_a_saved_notebook_are_found(tmp_path):
    pytest.importorskip("anywidget")
    import mlc_lab_widgets

    data, _ = mlc_lab_widgets.Stepper(recording(), guess=True)._repr_mimebundle_()
    output = {"output_type": "display_data", "metadata": {}, "data": data}
    path = tmp_path / "lecture.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "outputs": [output]}, 3]}))
    (found,) = recordings_in(path)
    assert [s.op for s in found.steps] == [s.op for s in recording().steps]
    data["application/vnd.mlc-lab.view+json"]["packed"] = "H4sIAAAA"
    path.write_text(json.dumps({"cells": [{"outputs": [output]}]}))
    with pytest.raises(DataError, match=r"a stepper in lecture\.ipynb is damaged"):
        recordings_in(path)
    path.write_text('{"cells": []}')
    with pytest.raises(DataError, match="has no stepper: run it in JupyterLab"):
        recordings_in(path)


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    assert main(["class", str(tmp_path / "none.ipynb")]) == 2
    (tmp_path / "a.py").write_text("")
    assert main(["class", str(tmp_path / "a.py")]) == 2
    assert "is no notebook" in capsys.readouterr().err
    (tmp_path / "other.jsonl").write_text("hello\n")
    assert main(["class", str(HANDMADE), "-o", str(tmp_path / "other.jsonl")]) == 2
    assert "other.jsonl is damaged" in capsys.readouterr().err
    assert (tmp_path / "other.jsonl").read_text() == "hello\n"
    assert main(["class", str(HANDMADE), "-o", str(tmp_path / "c.jsonl"), "--port", "99999"]) == 2
    assert "99999 is no port" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["class", str(HANDMADE), "-o", str(tmp_path / "c.jsonl"), "--port", port,
                     "--host", "127.0.0.1"]) == 2
    assert "cannot serve on 127.0.0.1" in capsys.readouterr().err


# ---------------------------------------------------------------------------- who may do what


def test_the_first_answer_counts_and_the_same_message_is_acknowledged_again(room):
    one = seat(room)
    asyncio.run(room.vote(one, voted(legal="legal", speed="faster")))
    asyncio.run(room.vote(one, voted(legal="legal", speed="faster")))  # sent again
    assert "answered" in str(refused(409, room.vote(one, voted(id="2", legal="refused"))))
    assert room.counts(0) == {"legal": {"legal": 1}, "speed": {"faster": 1}, "factor": {}}
    assert sum(line["do"] == "vote" for line in lines(room)) == 1


def lines(room):
    return [json.loads(line) for line in room.journal.path.read_text().splitlines()[1:]]


def test_two_messages_at_once_are_one_answer(room):
    one = seat(room)

    async def both():
        return await asyncio.gather(room.vote(one, voted()), room.vote(one, voted()),
                                    room.vote(one, voted(id="2")), return_exceptions=True)

    first, again, other = asyncio.run(both())
    assert first is None and again is None and isinstance(other, Refused)
    assert room.counts(0)["legal"] == {"legal": 1}


def test_no_answer_counts_after_the_step_was_revealed(room):
    one = seat(room)
    asyncio.run(room.act("reveal", FIRST))
    assert "revealed" in str(refused(409, room.vote(one, voted())))
    asyncio.run(room.act("next", FIRST))
    refused(409, room.vote(one, voted()))
    asyncio.run(room.vote(one, voted(SECOND)))


@pytest.mark.parametrize("message", [
    None, [], {}, {"id": "1"}, voted("recording 0, step 99"), voted(id=""), voted(id="x" * 65),
    voted(legal="maybe"), voted(speed="faster"), voted(other="x", legal="legal"),
    {"id": "1", "question": FIRST, "answers": {"legal": ["legal"]}},
    {"id": "1", "question": FIRST, "answers": {}}, {"id": 1, "question": 2, "answers": 3}])
def test_what_is_no_answer_is_refused(room, message):
    refused(400, room.vote(seat(room), message))


def test_before_it_is_revealed_a_student_sees_nothing_of_what_is_so(room):
    one, two = seat(room), seat(room)
    asyncio.run(room.vote(one, voted()))
    seen = room.for_students([two])[two]
    assert seen["truth"] is None and seen["counts"] is None and seen["mine"] is None
    asyncio.run(room.act("reveal", FIRST))
    seen = room.for_students([one])[one]
    assert seen["truth"]["speed"] == "same" and seen["counts"]["legal"] == {"legal": 1}
    assert seen["mine"] == LEGAL and seen["score"] == [1, 1]


def test_a_command_that_comes_twice_is_done_once(room):
    asyncio.run(room.act("reveal", FIRST))
    asyncio.run(room.act("next", FIRST))
    asyncio.run(room.act("next", FIRST))
    assert room.at == 1
    asyncio.run(room.act("back", SECOND))
    assert room.at == 0 and room.revealed
    refused(400, room.act("erase"))


def test_pins_cannot_be_tried_out(room):
    wrong = "000000" if room.pin != "000000" else "111111"
    for _ in range(10):
        refused(403, room.join(wrong, "there"))
    assert refused(429, room.join(wrong, "there")).wait > 1
    refused(429, room.join(room.pin, "there"))
    assert asyncio.run(room.join(f" {room.pin[:3]} {room.pin[3:]} ", "elsewhere"))
    for pin in (None, 3, [], "", "\ud800"):
        refused(403, room.join(pin, f"from {pin!r}"))
    for n in range(200):  # from many addresses at once
        with pytest.raises(Refused) as error:
            asyncio.run(room.join(wrong, f"address {n}"))
    assert error.value.status == 429


def test_who_has_a_seat_keeps_it_and_a_closed_door_keeps_others_out(room):
    token = asyncio.run(room.join(room.pin, "here"))
    asyncio.run(room.act("close"))
    assert asyncio.run(room.join("", "here", token)) == token
    assert "closed the door" in str(refused(403, room.join(room.pin, "here")))
    asyncio.run(room.act("open"))
    assert asyncio.run(room.join(room.pin, "here")) != token
    assert room.for_teacher()["joined"] == 2


ROSTER = ["Ada Lovelace", "Bob Stone"]


def test_with_a_roster_a_student_is_a_name_and_votes_once(tmp_path):
    path = tmp_path / "class.jsonl"
    room = Room([recording()], path, roster=ROSTER)
    assert "say your name" in str(refused(428, room.join(room.pin, "here")))
    assert "not on the list" in str(refused(403, room.join(room.pin, "here", name="Eve")))
    refused(403, room.join("000000" if room.pin != "000000" else "1", "here", name=ROSTER[0]))
    first = asyncio.run(room.join(room.pin, "here", name="Ada Lovelace"))
    asyncio.run(room.vote(room.seat_of(first), voted()))
    second = asyncio.run(room.join(room.pin, "there", name="  ada   LOVELACE "))
    assert room.seat_of(first) is None and room.seat_of(second) == 1
    refused(409, room.vote(room.seat_of(second), voted(id="2", legal="refused")))
    assert room.counts(0)["legal"] == {"legal": 1} and room.for_teacher()["joined"] == 1
    asyncio.run(room.join(room.pin, "here", name="Bob Stone"))
    assert room.for_teacher()["joined"] == 2
    asyncio.run(room.act("close"))  # who sits there may take another phone all the same
    third = asyncio.run(room.join(room.pin, "here", name="Ada Lovelace"))
    room.close()
    again = Room([recording()], path, roster=ROSTER)  # a server that is started again knows it
    assert again.seat_of(third) == 1 and again.seat_of(second) is again.seat_of(first) is None
    again.close()


def test_the_first_of_two_phones_is_told_that_the_second_has_its_seat(tmp_path):
    async def hour():
        async with served(tmp_path / "class.jsonl", roster=ROSTER) as server:
            pin, one, two = server.room.pin, Student(server.address), Student(server.address)
            assert await one.join(pin) == 428 and await one.join(pin, name=ROSTER[0]) == 200
            await one.listen()
            await one.until(lambda state: state["number"] == 1)
            assert await one.vote(FIRST, LEGAL) == 200
            assert await two.join(pin, name=ROSTER[0]) == 200
            while one.closed is None:
                one.news.clear()
                await asyncio.wait_for(one.news.wait(), 20)
            assert one.closed == 4410 and await one.vote(SECOND, LEGAL, tries=1) == 401
            await two.listen()
            state = await two.until(lambda state: True)
            assert state["mine"] == LEGAL and await two.vote(FIRST, LEGAL, id="other") == 409
            assert server.room.for_teacher()["answered"] == 1
            two.close()

    asyncio.run(hour())


def test_who_floods_has_to_wait(room):
    one = seat(room)
    for n in range(20):
        with pytest.raises(Refused):
            asyncio.run(room.vote(one, voted(id="")))
    assert refused(429, room.vote(one, voted())).wait > 0
    asyncio.run(room.vote(seat(room), voted()))  # others do not


def test_tries_come_back_with_time():
    now = [0.0]
    slow = Slow(2, 0.5, lambda: now[0])
    assert [slow.take("a"), slow.take("a"), slow.take("a")] == [0, 0, 2]
    assert slow.take("b") == 0
    now[0] = 2.0
    assert slow.take("a") == 0 and slow.wait("a") == 2


# ---------------------------------------------------------------------------- the file


def test_a_class_goes_on_after_a_restart(room):
    token = asyncio.run(room.join(room.pin, "here"))
    asyncio.run(room.vote(room.seat_of(token), voted()))
    asyncio.run(room.act("reveal", FIRST))
    asyncio.run(room.act("next", FIRST))
    asyncio.run(room.act("close"))
    path = room.journal.path
    assert token not in path.read_text() and os.stat(path).st_mode & 0o077 == 0
    with pytest.raises(DataError, match="in use"):
        Room([recording()], path)
    room.close()
    with open(path, "ab") as file:  # a line that was cut off
        file.write(b'{"do":"vote","seat":1,"id":"x","quest')
    again = Room([recording()], path)
    try:
        assert (again.pin, again.teacher, again.name) == (room.pin, room.teacher, room.name)
        assert again.seat_of(token) == 1 and again.at == 1 and again.told == {0}
        assert again.counts(0)["legal"] == {"legal": 1} and not again.door
        asyncio.run(again.vote(1, voted(SECOND)))
        assert path.read_bytes().endswith(b"}\n") and b'"quest\n' not in path.read_bytes()
    finally:
        again.close()
        room.journal._file = os.open(os.devnull, os.O_RDWR)


@pytest.mark.parametrize("line", ['{"do":"vote"}', "[]", "{", '{"do":"join","seat":"x","token":1}',
                                  '{"do":"ask","question":"recording 9, step 1"}'])
def test_a_damaged_file_is_refused_and_left_alone(tmp_path, line):
    path = tmp_path / "class.jsonl"
    Room([recording()], path).close()
    text = path.read_text() + line + "\n"
    path.write_text(text)
    with pytest.raises(DataError, match="damaged|no file of a class"):
        Room([recording()], path)
    assert path.read_text() == text


def test_a_class_with_other_steps_is_refused(tmp_path):
    Room([recording()], tmp_path / "class.jsonl").close()
    with pytest.raises(DataError, match="other steps: name another one"):
        Room([recording(), recording()], tmp_path / "class.jsonl")


def test_what_cannot_be_written_does_not_count(room, monkeypatch):
    one = seat(room)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal_module.os, "fsync", full)
    with pytest.raises(OSError):
        asyncio.run(room.vote(one, voted()))
    with pytest.raises(OSError):
        asyncio.run(room.join(room.pin, "here"))
    assert room.counts(0)["legal"] == {} and room.for_teacher()["joined"] == 1
    monkeypatch.undo()
    asyncio.run(room.vote(one, voted()))  # sent again
    assert [line["do"] for line in lines(room)] == ["join", "vote"]
    assert room.counts(0)["legal"] == {"legal": 1}


# ---------------------------------------------------------------------------- over the network


def test_twenty_students_answer_and_see_what_is_so(tmp_path):
    async def run():
        async with served(tmp_path / "class.jsonl") as server:
            teacher = await Teacher(server).listen()
            students = [Student(server.address, n) for n in range(20)]
            assert set(await asyncio.gather(
                *(s.join(server.room.pin) for s in students))) == {200}
            await asyncio.gather(*(s.listen() for s in students))
            await asyncio.gather(*(s.until(lambda d: d["question"]) for s in students))
            codes = await asyncio.gather(*(
                s.vote(FIRST, {"legal": "legal" if s.name % 4 else "refused"}) for s in students))
            assert codes == [200] * 20
            seen = await teacher.until(lambda d: d.get("answered") == 20)
            assert seen["counts"]["legal"] == {"legal": 15, "refused": 5} and not seen["truth"]
            assert not any(d["truth"] or d["counts"] for s in students for d in s.states)
            assert await teacher.act("reveal", FIRST) == 200
            for s in students:
                told = await s.until(lambda d: d["revealed"])
                assert told["counts"]["legal"]["legal"] == 15
            for one in (*students, teacher):
                one.close()
        return server.room.journal.path

    path = asyncio.run(run())
    done = [json.loads(line)["do"] for line in path.read_text().splitlines()[1:]]
    assert done == ["join"] * 20 + ["vote"] * 20 + ["reveal"]


def test_a_stranger_gets_nothing(tmp_path):
    async def run():
        async with served(tmp_path / "class.jsonl") as server:
            stranger = Student(server.address)
            await stranger.listen()
            await stranger.reading
            assert stranger.states == [] and stranger.closed == 4401
            assert await stranger.vote(FIRST, LEGAL) == 401
            for path in ("", "teacher", "student.js", "teacher.js", "nothing", "../class.jsonl"):
                reply = await stranger.http.fetch(server.address + path, raise_error=False)
                assert b"split" not in reply.body.replace(b".split(", b"") or path.endswith(".js")
                assert server.room.pin.encode() not in reply.body
                assert "frame-ancestors 'none'" in reply.headers["Content-Security-Policy"]
            # a student is no teacher
            await stranger.join(server.room.pin)
            false = {"Authorization": "Bearer x"}
            reveal = {"do": "reveal", "question": FIRST}
            assert (await stranger.post("act", reveal))[0] == 401
            assert (await stranger.post("act", reveal, **false))[0] == 401
            await stranger.listen({"teacher": "x"})
            await stranger.reading
            assert stranger.closed == 4401 and not server.room.revealed

    asyncio.run(run())


def test_messages_that_are_none_are_refused_and_the_server_goes_on(tmp_path):
    async def run():
        async with served(tmp_path / "class.jsonl") as server:
            one = Student(server.address)
            assert (await one.post("join", "x" * 10_000))[0] in (0, 400, 413)
            assert (await one.post("join", {"pin": server.room.pin},
                                   **{"Content-Type": "text/plain"}))[0] == 415
            assert (await one.post("join", [[[]]]))[0] == 403
            assert await one.join(server.room.pin) == 200
            assert (await one.post("vote", {"a": 1}))[0] == 400
            await one.listen()
            await one.until(lambda d: d["question"])
            await one.socket.write_message("x" * 100)  # nothing is to be said now
            await one.reading
            assert one.closed == 4400
            for _ in range(5):  # too many windows: the oldest are closed
                await one.listen()
            assert await one.vote(FIRST, LEGAL) == 200
            codes = [(await one.post("vote", {}))[0] for _ in range(40)]
            assert 429 in codes

    asyncio.run(run())


def test_an_address_that_floods_has_to_wait(tmp_path):
    async def run():
        async with served(tmp_path / "class.jsonl") as server:
            server.pace = Slow(5, 0.01)
            one = Student(server.address)
            codes = [(await one.http.fetch(server.address, raise_error=False)).code
                     for _ in range(7)]
            assert codes == [200] * 5 + [429] * 2
            assert await one.join(server.room.pin) == 429
            with pytest.raises(Exception, match="429"):
                await one.listen()

    asyncio.run(run())


def test_a_restart_loses_no_answer(tmp_path):
    """Students send until they are acknowledged, while the server goes and comes back."""
    async def run():
        path = tmp_path / "class.jsonl"
        async with served(path) as server:
            address, pin, port = server.address, server.room.pin, server.port
            students = [Student(address, n) for n in range(20)]
            for s in students:
                await s.join(pin)
            first = [await s.vote(FIRST, LEGAL) for s in students[:7]]
        rest = [asyncio.ensure_future(s.vote(FIRST, LEGAL)) for s in students]
        await asyncio.sleep(0.3)
        async with served(path, port=port) as server:
            assert server.room.pin == pin
            codes = await asyncio.gather(*rest)
            assert first == [200] * 7 and codes == [200] * 20
            assert server.room.counts(0)["legal"] == {"legal": 20}
            await students[0].listen()
            assert (await students[0].until(lambda d: d["question"]))["mine"] == LEGAL

    asyncio.run(run())
    votes = [json.loads(line) for line in (tmp_path / "class.jsonl").read_text().splitlines()[1:]]
    assert sorted(v["seat"] for v in votes if v["do"] == "vote") == list(range(1, 21))


def test_a_server_that_is_killed_loses_no_answer(tmp_path):
    """The command itself, ended without a word while answers come in, and started again."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlc_lab.cli", "class", str(HANDMADE), "--host", "127.0.0.1",
               "--port", str(port), "-o", str(tmp_path / "class.jsonl")]

    def started():
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = ""
        while "Ctrl-C" not in said:
            line = server.stdout.readline()
            assert line, said
            said += line
        return server, said

    async def run():
        server, said = started()
        assert "Only this machine can reach it" in said
        pin = re.search(r"PIN (\d{6})", said)[1]
        students = [Student(f"http://127.0.0.1:{port}/", n) for n in range(20)]
        for one in students:
            assert await one.join(pin) == 200
        early = [await one.vote(FIRST, LEGAL) for one in students[:5]]
        rest = [asyncio.ensure_future(one.vote(FIRST, LEGAL, tries=2000)) for one in students]
        await asyncio.sleep(0.01)
        server.kill()
        server.wait()
        server, said = await asyncio.to_thread(started)
        try:
            assert "an earlier one goes on" in said and f"PIN {pin}" in said
            assert early + list(await asyncio.gather(*rest)) == [200] * 25
        finally:
            server.send_signal(signal.SIGINT)
            assert "The same command goes on with it" in server.communicate(timeout=60)[0]
            assert server.returncode == 0

    asyncio.run(run())
    votes = [json.loads(line) for line in (tmp_path / "class.jsonl").read_text().splitlines()[1:]]
    assert sorted(v["seat"] for v in votes if v["do"] == "vote") == list(range(1, 21))
