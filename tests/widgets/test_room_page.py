"""The pages of a class in a room: a phone answers, the teacher sees it and reveals."""

import asyncio
import threading
from contextlib import contextmanager

import pytest

pytest.importorskip("tornado")
pytest.importorskip("segno")

from browser import open_page
from room_client import served

pytestmark = pytest.mark.browser
FIRST = "recording 0, step 1"


class Served:
    """A class that is served from a thread; it can be stopped and started again."""

    def __init__(self, path, factors=False):
        self.path, self.port, self.factors = path, 0, factors
        self.start()

    def start(self):
        ready = threading.Event()

        async def run():
            self.loop, self.ends = asyncio.get_running_loop(), asyncio.Event()
            async with served(self.path, port=self.port, factors=self.factors) as self.server:
                self.port = self.server.port
                ready.set()
                await self.ends.wait()

        self.thread = threading.Thread(target=lambda: asyncio.run(run()))
        self.thread.start()
        assert ready.wait(30)
        self.teacher = f"{self.server.address}teacher#{self.server.room.teacher}"

    def stop(self):
        self.loop.call_soon_threadsafe(self.ends.set)
        self.thread.join(30)


@contextmanager
def a_class(tmp_path, factors=False):
    made = Served(tmp_path / "class.jsonl", factors)
    try:
        yield made
    finally:
        made.stop()


def joined(page, one, heading="What would this step do?"):
    page.goto(one.server.address)
    page.get_by_label("The PIN").fill(one.server.room.pin)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=heading).wait_for()


def answer(page, *choices):
    for choice in choices:
        page.get_by_role("radio", name=choice).check()
    page.get_by_role("button", name="Send").click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_answers_and_the_teacher_reveals(chromium, tmp_path, scheme):
    with a_class(tmp_path) as one, open_page(chromium, scheme=scheme) as teacher, \
            open_page(chromium, scheme=scheme, width=360, height=740) as phone:
        teacher.goto(one.teacher)
        teacher.get_by_role("heading", name="What would this step do?").wait_for()
        code = teacher.get_by_role("img", name="QR code of http")
        assert code.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
        phone.goto(one.server.address)
        phone.get_by_label("The PIN").fill("12")
        phone.get_by_role("button", name="Join").click()
        phone.get_by_text("This is not the PIN.").wait_for()
        joined(phone, one)
        phone.get_by_role("button", name="Send").click()
        phone.get_by_text("Say first whether it is legal.").wait_for()
        phone.get_by_role("radio", name="refused").check()
        assert phone.get_by_role("radio", name="faster").is_disabled()
        answer(phone, "✓ legal", "about the same", "3× to 10×")
        phone.get_by_text("Your answer is in.").wait_for()
        teacher.get_by_text("1 of 1 have answered").wait_for()
        assert teacher.locator('[data-value="speed same"]').inner_text().split()[-1] == "1"
        for page in (teacher, phone):  # nothing of the step is told yet
            assert "so it is" not in page.locator("body").inner_text()
        assert "j_0, j_1" not in teacher.evaluate("document.documentElement.outerHTML")
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
        teacher.get_by_role("button", name="Reveal").press("Enter")
        phone.get_by_text("You had 2 of 3 right.").wait_for()
        assert "so it is" in phone.locator('[data-value="speed same"]').inner_text()
        teacher.get_by_role("heading", name="Step 1: it is legal; about the same").wait_for()
        assert "j_0, j_1 = sch.split" in teacher.locator(".stepper").inner_text()
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert teacher.evaluate("document.activeElement.textContent") == "Next question"
        teacher.keyboard.press("Enter")
        phone.get_by_text("Question 2 of 6").wait_for()
        phone.reload()
        phone.get_by_role("radio", name="✓ legal").wait_for()  # the seat is kept


def test_a_class_guesses_the_factor_of_a_split(chromium, tmp_path):
    """The number is nowhere on the pages before it is revealed; the step is asked about then."""
    with a_class(tmp_path, factors=True) as one, open_page(chromium) as teacher, \
            open_page(chromium, width=360, height=740) as phone:
        teacher.goto(one.teacher)
        joined(phone, one, "Which factor does this split get?")
        for page in (teacher, phone):
            page.get_by_text("factors=[None, ?]").first.wait_for()
            assert "[None, 8]" not in page.evaluate("document.documentElement.outerHTML")
        phone.get_by_role("button", name="Send").click()
        phone.get_by_role("alert").filter(has_text="Which factor does it get?").wait_for()
        phone.get_by_role("radio", name="8", exact=True).check()
        phone.get_by_role("button", name="Send").click()
        phone.get_by_text("Your answer is in.").wait_for()
        teacher.get_by_text("1 of 1 have answered").wait_for()
        teacher.get_by_role("button", name="Reveal").click()
        phone.get_by_text("You had 1 of 1 right.").wait_for()
        teacher.get_by_role("heading", name="Step 1: its factor is 8").wait_for()
        assert "j_0, j_1 = sch.split" not in teacher.locator(".stepper").inner_text()
        teacher.get_by_role("button", name="Next question").click()
        phone.get_by_role("heading", name="What would this step do?").wait_for()
        phone.get_by_text("factors=[None, 8]").first.wait_for()


def test_an_answer_given_without_a_connection_is_sent_when_there_is_one(chromium, tmp_path):
    with a_class(tmp_path) as one, open_page(chromium, width=360) as phone:
        joined(phone, one)
        one.stop()
        phone.get_by_text("No connection").wait_for()
        answer(phone, "✓ legal")
        phone.get_by_text("Your answer is being sent.").wait_for()
        one.start()
        phone.get_by_text("Your answer is in.").wait_for()
        assert one.server.room.counts(0)["legal"] == {"legal": 1}
        one.stop()
        one.start()  # the phone comes back by itself, and knows that it has answered
        phone.get_by_text("No connection").wait_for(state="hidden")
        assert phone.get_by_text("Your answer is in.").is_visible()


def test_a_page_without_the_secret_says_what_it_needs(chromium, tmp_path):
    with a_class(tmp_path) as one, open_page(chromium) as page:
        for address in (f"{one.server.address}teacher", f"{one.server.address}teacher#wrong"):
            page.goto("about:blank")
            page.goto(address)
            page.get_by_text("needs the whole address").wait_for()
            assert one.server.room.pin not in page.content()


def test_the_pages_are_clean_for_axe(chromium, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    for scheme in ("light", "dark"):
        (tmp_path / scheme).mkdir()
        with a_class(tmp_path / scheme) as one, open_page(chromium, scheme=scheme) as teacher, \
                open_page(chromium, scheme=scheme, width=360) as phone:

            def clean(page, scheme=scheme):
                page.wait_for_timeout(300)  # sizes and colours settle
                found = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
                told = [f"{v['id']}: {v['help']}: {n['html'][:160]}"
                        for v in found.response["violations"] for n in v["nodes"]]
                assert not told, f"{scheme}: " + "\n".join(told)

            phone.goto(one.server.address)
            phone.get_by_label("The PIN").wait_for()
            clean(phone)
            joined(phone, one)
            clean(phone)
            answer(phone, "✓ legal", "faster")
            phone.get_by_text("Your answer is in.").wait_for()
            clean(phone)
            teacher.goto(one.teacher)
            teacher.get_by_text("1 of 1 have answered").wait_for()
            clean(teacher)
            teacher.get_by_role("button", name="Reveal").click()
            teacher.get_by_role("heading", name="Step 1").wait_for()
            phone.get_by_role("heading", name="What it did").wait_for()
            clean(phone)
            clean(teacher)
