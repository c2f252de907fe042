"""Guess first: nothing of a step is in the page before it was guessed; right ones are counted."""

import handmade
import pytest
from browser import open_page
from test_stepper_page import CONTRAST

from mlc_lab_widgets import page as write_page

browser = pytest.mark.browser
# What steps 1 to 6 of the recording made by hand do: (refused or legal, faster / same / slower).
TRUTH = [("legal", "same"), ("legal", "faster"), ("legal", "faster"), ("refused", None),
         ("legal", "faster"), ("legal", "faster")]  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "guess.html"
    handmade.recording().html(path, "guess", guess=True)
    return path.as_uri()


@pytest.fixture
def page(chromium, url):
    with open_page(chromium) as page:
        page.goto(url)
        page.wait_for_selector(".guess-card")
        yield page


def guess(page, legal, speed=None):
    card = page.locator(".guess-card")
    card.get_by_role("radio", name=legal).check()
    if speed:
        card.get_by_role("radio", name=speed).check()
    card.get_by_role("button", name="Reveal").click()


def onward(page):
    page.locator(".guess-card button").first.click()


def names(truth):
    words = {"same": "about the same", None: None}
    legal, speed = truth
    return legal, words.get(speed, speed)


@browser
def test_nothing_of_a_step_is_in_the_page_before_it_is_guessed(page):
    for number, truth in enumerate(TRUTH, 1):
        seen = page.evaluate("document.documentElement.outerHTML")
        # Neither later times nor the lines that only later programs have.
        assert "410 µs" not in seen or number > 2
        assert "T.vectorized(8)" not in seen or number > 6
        assert 'Y_init")' not in seen or number > 5
        assert "no iteration may depend on another" not in seen or number > 4
        assert page.locator(".chart .dot").count() in (0, number)
        guess(page, *names(truth))
        onward(page)
    assert "T.vectorized(8)" in page.locator(".pane.after").text_content()


@browser
def test_the_next_step_is_asked_with_its_call(page):
    card = page.locator(".guess-card")
    assert "What would step 1 of 6 do?" in card.inner_text()
    assert "sch.split(loop=j, factors=[None, 8])" in card.inner_text()
    assert "j_0, j_1 =" not in card.inner_text()  # only what is legal has results
    assert page.locator(".count").inner_text() == "0 / 0"


@browser
def test_right_guesses_are_counted(page):
    guess(page, "legal", "slower")
    card = page.locator(".guess-card")
    assert "✓ right: it is legal" in card.inner_text()
    assert "✕ not so: about the same" in card.inner_text()
    assert "1 of 2 right" in card.inner_text()
    assert page.locator(".count").inner_text() == "1 / 1"
    onward(page)
    for truth in TRUTH[1:]:
        guess(page, *names(truth))
        onward(page)
    assert "10 of 11 right" in card.inner_text()
    assert "That was the last step." in card.inner_text()


@browser
def test_a_refused_step_shows_its_reason_once_guessed(page):
    for truth in TRUTH[:3]:
        guess(page, *names(truth))
        onward(page)
    card = page.locator(".guess-card")
    card.get_by_role("radio", name="refused").check()
    assert card.get_by_role("radio", name="faster").is_disabled()
    card.get_by_role("button", name="Reveal").click()
    assert "✓ right: it is refused" in card.inner_text()
    assert "no iteration may depend on another" in page.locator(".pane.after").text_content()


@browser
def test_why_is_said_after_a_guess_and_not_before(chromium, tmp_path):
    """Whether the guess was right or wrong; of a step of which nothing is known, nothing."""
    recording = handmade.recording()
    recording.steps[1].why = ["The loops run <b>the same</b> way."]
    recording.steps[2].why = ["L1 misses 90 % fewer.", "A vector has 8 lanes."]
    recording.html(tmp_path / "why.html", guess=True)
    with open_page(chromium) as page:
        page.goto((tmp_path / "why.html").as_uri())
        page.wait_for_selector(".guess-card")
        reasons = page.locator(".why li")
        for n, truth in enumerate(TRUTH[:3], 1):
            wrong = {"faster": "slower", "same": "faster"}[truth[1]]
            for why in recording.steps[n].why:
                assert why.replace("<", "&lt;") not in page.content() and why not in page.content()
            assert reasons.count() == len(recording.steps[n - 1].why)  # of the step that is shown
            guess(page, "legal", wrong if n == 2 else names(truth)[1])
            assert reasons.all_inner_texts() == recording.steps[n].why
            assert page.locator(".why").is_visible()
            onward(page)


@browser
def test_one_has_to_say_something_first(page):
    page.get_by_role("button", name="Reveal").click()
    assert "Say first" in page.locator(".guess-note").inner_text()
    assert page.locator(".count").inner_text() == "0 / 0"


@browser
def test_by_keyboard_alone(page):
    page.locator(".guess-card input").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")  # the other answer, and not the next step
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    assert page.locator(".count").inner_text() == "1 / 1"
    assert page.evaluate("document.activeElement.textContent") == "Next step"
    page.keyboard.press("Enter")
    assert "step 2 of 6" in page.locator(".guess-card").inner_text()
    assert page.evaluate("document.activeElement.type") == "radio"


@browser
def test_the_mode_can_be_turned_off_and_on_again(page):
    guess(page, "legal", "faster")
    page.get_by_role("button", name="Guess first").click()
    assert not page.locator(".guess-card").is_visible()
    assert page.locator(".count").inner_text() == "1 / 6"
    page.get_by_role("button", name="Last step").click()
    page.get_by_role("button", name="Guess first").click()
    assert page.locator(".count").inner_text() == "1 / 1"
    assert "1 of 2 right" in page.locator(".guess-card").inner_text()


@browser
def test_starting_again_forgets_the_guesses(page):
    for truth in TRUTH:
        guess(page, *names(truth))
        onward(page)
    page.get_by_role("button", name="Start again").click()
    assert "0 of 0 right" in page.locator(".guess-card").inner_text()
    assert page.locator(".count").inner_text() == "0 / 0"


@browser
def test_each_view_counts_for_itself(chromium, tmp_path):
    path = tmp_path / "two.html"
    both = [handmade.recording(), handmade.recording(False)]
    path.write_text(write_page(both, guess=True), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        first, second = page.locator(".mlc").all()
        # Without times only legality is asked.
        assert second.locator(".guess-speed").count() == 0
        second.get_by_role("radio", name="refused").check()
        second.get_by_role("button", name="Reveal").click()
        assert "0 of 1 right" in second.locator(".guess-count").inner_text()
        assert "0 of 0 right" in first.locator(".guess-count").inner_text()


@browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_themes(chromium, url, scheme):
    with open_page(chromium, scheme=scheme) as page:
        page.goto(url)
        page.wait_for_function(f"document.querySelector('.mlc').dataset.theme === '{scheme}'")
        assert page.evaluate(CONTRAST) == []
        guess(page, "legal", "slower")
        assert page.evaluate(CONTRAST) == []


def test_a_page_without_scripts_gives_no_answer_away():
    text = write_page([handmade.recording()], guess=True)
    start, end = text.index("<noscript>"), text.index("</noscript>")
    told = text[start:end]
    assert "6 steps to guess" in told and "vectorize" not in told


def test_the_widget_hears_of_guesses_and_hides_its_text():
    pytest.importorskip("anywidget")
    view = handmade.recording().show(guess=True)
    heard = []
    view.on_guess(heard.append)
    view.guesses = {"answers": {"1": {"legal": "legal", "speed": None}}, "right": 1, "asked": 1}
    assert heard[0]["right"] == 1
    data, _ = view._repr_mimebundle_()
    assert "vectorize" not in data["text/html"]
