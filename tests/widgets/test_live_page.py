"""The page of choices, exported: it has what was computed, and works without a kernel."""

import json
import re

import pytest
from browser import open_page
from observe.programs import matmul
from observe.test_live import tiled

from mlc_lab.observe.live import Choices
from mlc_lab.observe.live_pages import transpose
from mlc_lab.schedule import Schedule
from mlc_lab_widgets import export, live
from mlc_lab_widgets.live import compute, nearest, write

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def lab():
    made = Choices(tiled([4, 8, 16]), caches="1K:2, 8K:4", title="product")
    compute(made, made.first, 120.0)
    yield made
    made.close()


@pytest.fixture(params=["light", "dark"])
def page(chromium, lab, tmp_path, request):
    (tmp_path / "live.html").write_text(write(lab, lab.first), encoding="utf-8")
    with open_page(chromium, scheme=request.param) as page:
        page.goto((tmp_path / "live.html").as_uri())
        page.wait_for_selector(".mlc.live .program .l")
        yield page


def program(page):
    return "\n".join(page.locator(".program .l code").all_text_contents())


def test_a_number_is_dragged_and_all_follows(page, lab):
    assert program(page) == "\n".join(lab.lines(lab.point(lab.first)))
    slider = page.get_by_role("slider", name="tile")
    slider.focus()
    page.keyboard.press("ArrowRight")
    after = lab.point([2, *lab.first[1:]])
    assert program(page) == "\n".join(lab.lines(after))
    assert page.locator(".program .l.changed").count() >= 3
    assert page.locator(".knob output").first.inner_text() == "16"
    assert slider.get_attribute("aria-valuetext") == "16"
    misses = lab.cost(after)["counts"]["levels"][0]["misses"]
    told = page.locator(".fact", has_text="L1 misses").locator("strong").get_attribute("title") or (
        page.locator(".fact", has_text="L1 misses").get_attribute("title"))
    assert f"{misses:,} of" in told
    said = page.locator(".why li").all_inner_texts()
    assert said == lab.why(lab.point(lab.first), after)
    text = lab.cost(after)["inner"]["text"]
    assert page.locator(".asm pre").inner_text().splitlines()[0].split() == text[0].split()


def test_a_drag_over_several_places_is_told_from_where_it_began(page, lab):
    slider = page.get_by_role("slider", name="tile")
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(600)  # the hand rests
    at = slider.evaluate("(e) => e.valueAsNumber")
    slider.evaluate("""async (slider) => {
        for (let to = slider.valueAsNumber + 1; to <= slider.max; ++to) {
            slider.value = to;
            slider.dispatchEvent(new Event("input"));
            await new Promise((done) => setTimeout(done, 50));
        }
    }""")
    last = slider.evaluate("(e) => e.valueAsNumber")
    assert last - at > 1
    rest = lab.first[1:]
    said = page.locator(".why li").all_inner_texts()
    before, after = (lab.point([n, *rest]) for n in (at, last))
    assert said == lab.why(before, after) and said != lab.why(lab.point([last - 1, *rest]), after)
    # what is marked is what differs from there, too
    assert "changed" in page.locator(".program .l.changed s").first.inner_text()


def why(page):
    return page.locator(".why").inner_text()


def test_what_a_reset_does_is_said_where_several_numbers_change_at_once(page, lab):
    page.get_by_role("slider", name="tile").press("End")
    page.wait_for_timeout(600)  # the hand rests
    page.get_by_label("vectorize").uncheck()
    page.wait_for_timeout(600)
    after = lab.point([2, lab.first[1], False, True])
    expected = lab.why(after, lab.point(lab.first)) if after.counted else []
    assert expected, "compute() counts what differs in two choices"
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".why li").all_inner_texts() == expected


def test_a_page_does_not_claim_what_was_not_compared(page, lab):
    near, far = [2, lab.first[1], False, True], [0, *lab.first[1:]]  # in two choices
    for state in (near, far):
        assert lab.cost(lab.point(state))["counts"]
        page.evaluate("state => { location.hash = encodeURIComponent(state) }",
                      json.dumps(state, separators=(",", ":")))
        becomes(page, "16" if state is near else "4")
    assert why(page) == "Not in this page."


def test_a_page_compares_with_the_last_choice_that_was_not_refused(chromium, tmp_path):
    sch = Schedule(matmul(16))
    i, j, k = sch.get_loops("C")
    sch.reorder(j, i, k)
    sch.fuse(j, i)
    made = Choices(sch, caches="1K:2")
    refused, legal = [[0, 2, 1], True], [[2, 0, 1], True]
    for state in (made.first, refused, legal):
        made.count(made.point(state))
    assert made.point(refused).error and not made.point(legal).error
    said = made.why(made.point(made.first), made.point(legal))
    (tmp_path / "live.html").write_text(write(made, made.first), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "live.html").as_uri())

        def go(state):
            page.evaluate("state => { location.hash = encodeURIComponent(state) }",
                          json.dumps(state, separators=(",", ":")))
            page.wait_for_function(
                "yes => document.querySelector('.refusal').hidden !== yes", arg=state is refused)

        page.locator(".program .l").first.wait_for()
        go(refused)
        assert why(page) == "Refused: nothing to compare."
        go(legal)
        assert page.locator(".why li").all_inner_texts() == (
            said or ["The counts say nothing of this change."])
        page.wait_for_timeout(600)  # the hand rests
        go(refused)
        go(legal)
        assert why(page) == "Change something, and read here what it did."
    made.close()


def test_the_chart_has_each_choice_and_goes_there(page, lab):
    dots = page.locator(".dot.misses")
    assert dots.count() == 3
    dots.nth(0).click()
    assert page.locator(".knob output").first.inner_text() == "4"
    assert page.locator(".dot.misses.current title").text_content().startswith("4: ")
    assert page.locator(".roofline .point").count() == 2
    page.locator(".roofline .point").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".knob output").first.inner_text() == "8"
    assert page.locator(".roofline .point.current").evaluate("e => e === document.activeElement")


def test_the_accesses_go_on_where_the_reader_left_them(page, lab):
    page.get_by_text("Accesses in time order").click()
    view = page.locator(".mlc-access")
    view.get_by_role("slider", name="Access").fill("200")
    view.get_by_label("Speed").select_option("30")
    view.get_by_role("button", name="Play").click()
    slider = page.get_by_role("slider", name="tile")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert view.get_by_role("button", name="Pause").count() == 1  # it goes on playing
    view.get_by_role("button", name="Pause").click()
    at = int(view.locator("output.count").inner_text().split("/")[0].replace(",", ""))
    assert 200 < at < 320
    assert view.get_by_label("Speed").input_value() == "30"
    lowered = lab.watched(lab.point([2, *lab.first[1:]]))["trace"]["lines"]
    assert view.locator("pre.program .row").all_inner_texts()[3].strip() == lowered[3].strip()
    assert page.evaluate("document.activeElement.closest('.mlc-access') !== null")


#: elements within the accesses that are drawn otherwise than in a view of their own
DRAWN_OTHERWISE = """() => {
  const own = document.querySelector(".mlc.live .mlc-access");
  const alone = document.createElement("div");
  alone.className = "mlc"; alone.dataset.theme = own.dataset.theme ?? "";
  alone.append(own.cloneNode(true));
  document.querySelector(".mlc.live").parentElement.append(alone);
  const look = (element) => ["display", "color", "backgroundColor", "borderLeftWidth", "padding",
    "margin", "gap", "fontSize", "fontWeight", "fontFamily", "minHeight", "overflow", "whiteSpace"]
    .map((name) => `${name}: ${getComputedStyle(element)[name]}`);
  const within = (root) => [...root.querySelectorAll("*")];
  const others = within(alone.firstChild);
  return within(own).flatMap((element, at) => {
    const [here, there] = [look(element), look(others[at])];
    return here.filter((line, n) => line !== there[n])
      .map((line) => `${element.tagName}.${element.className} ${line}`);
  });
}"""


def test_the_accesses_look_as_in_a_view_of_their_own(page):
    """No style of the page reaches into the view that it holds."""
    page.get_by_text("Accesses in time order").click()
    page.locator(".mlc-access .buffer").first.wait_for()
    assert page.locator(".mlc-access .said").first.is_visible()
    assert page.evaluate(DRAWN_OTHERWISE) == []


def test_what_lives_in_a_register_is_found_in_the_text(page, lab):
    held = lab.cost(lab.point(lab.first))["inner"]["held"]
    buttons = page.locator(".held button")
    assert buttons.count() == len(held)
    buttons.first.focus()
    page.keyboard.press("Enter")
    assert buttons.first.get_attribute("aria-pressed") == "true"
    lit = {re.sub(r"\D", "", text) for text in page.locator(".asm .lit").all_inner_texts()}
    assert lit == {re.sub(r"\D", "", name) for name in held[0]["registers"]}
    assert buttons.first.evaluate("e => e === document.activeElement")


def test_what_spills_is_marked_and_a_long_loop_says_how_long_it_is(chromium, lab, tmp_path):
    """Not what reads an array that lies on the stack."""
    values = live.values(lab, lab.first)
    cost = values["all"][lab.point(lab.first).key]["cost"]
    cost["inner"] = {
        **cost["inner"], "instructions": 165, "spills": 0, "reloads": 1, "on_stack": [1],
        "text": ["vmovups 64(%rsp,%rcx,4), %ymm0", "vmovups 32(%rsp), %ymm1"]}
    made = export.write([(values, "")], "page", "live.js", live.STYLES)
    (tmp_path / "live.html").write_text(made, encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "live.html").as_uri())
        assert page.locator(".asm .spill").all_inner_texts() == ["vmovups 32(%rsp), %ymm1"]
        page.get_by_text("the first 2 of 165 instructions").wait_for()
        assert "1 reloads" in page.locator(".fact", has_text="Registers").inner_text()


def test_numbers_in_prose_are_dragged(chromium, lab, tmp_path):
    lab.prose = "With {live:tile} columns, {live:nothing} <b>else</b>."
    try:
        text = write(lab, lab.first)
    finally:
        lab.prose = ""
    assert "With 8 columns" in text  # without scripts
    (tmp_path / "prose.html").write_text(text, encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "prose.html").as_uri())
        number = page.locator(".mlc-prose .mlc-live-number")
        assert page.locator(".mlc-prose").inner_text() == (
            "With 8 columns, {live:nothing} <b>else</b>.")
        assert number.get_attribute("aria-valuetext") == "8"
        box = number.bounding_box()
        page.mouse.move(box["x"] + 2, box["y"] + 5)
        page.mouse.down()
        page.mouse.move(box["x"] + 18, box["y"] + 5, steps=4)
        page.mouse.up()
        assert number.inner_text() == "16"
        assert page.locator(".knob output").first.inner_text() == "16"
        page.get_by_role("slider", name="tile").last.press("Home")
        assert number.inner_text() == "4"
        number.press("End")
        assert page.locator(".knob output").first.inner_text() == "16"
        # a text beside the views is about the number; that of another view is about its own
        page.evaluate("""document.body.insertAdjacentHTML("beforeend",
            `<p class="mlc-prose" id="beside">{live:tile}</p>
             <section class="mlc"><p class="mlc-prose" id="others">{live:tile}</p></section>`)""")
        page.locator("#beside .mlc-live-number").wait_for()
        assert page.locator("#beside").inner_text() == "16"
        assert page.locator("#others").inner_text() == "{live:tile}"


def test_a_number_in_prose_is_of_the_nearest_view(chromium, lab, tmp_path):
    values = live.values(lab, lab.first)
    path = tmp_path / "two.html"
    text = export.write([(values, ""), (values, "")], "two", live.ENTRY, live.STYLES)
    path.write_text(text, encoding="utf-8")
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        views = page.locator(".mlc.live")
        views.nth(1).locator(".program .l").first.wait_for()
        views.nth(1).evaluate("""view => {
            view.insertAdjacentHTML("afterend", '<p class="mlc-prose" id="after">{live:tile}</p>');
        }""")
        number = page.locator("#after .mlc-live-number")
        number.press("End")
        end = number.inner_text()
        assert views.nth(1).locator(".knob output").first.inner_text() == end
        assert views.nth(0).locator(".knob output").first.inner_text() != end


def test_buttons_of_registers_are_not_cut(page):
    """Where they take two rows."""
    held = page.locator(".held").bounding_box()
    page.locator(".held").evaluate("""held => held.replaceChildren(
        ...["zmm0 to zmm23", "zmm24, zmm25"].map((name) => {
            const item = document.createElement("li");
            item.style.width = "100%";
            item.innerHTML = `<button type="button" class="small"><code>${name}</code></button>`;
            return item;
        }))""")
    last = page.locator(".held button").last.bounding_box()
    assert last["y"] + last["height"] <= held["y"] + held["height"]



def test_a_step_is_switched_off(page, lab):
    page.get_by_label("vectorize").uncheck()
    assert "T.vectorized" not in program(page)
    page.get_by_role("button", name="Reset").click()
    assert program(page) == "\n".join(lab.lines(lab.point(lab.first)))
    assert page.get_by_label("vectorize").is_checked()


def test_loops_are_put_in_order_by_keys_and_by_dragging(page, lab):
    chips = page.locator(".chip")
    assert chips.all_inner_texts() == ["i", "j_0", "p", "j_1"]
    chips.nth(0).focus()
    page.keyboard.press("ArrowRight")
    assert chips.all_inner_texts() == ["j_0", "i", "p", "j_1"]
    assert page.evaluate("document.activeElement.textContent") == "i"
    assert program(page) == "\n".join(lab.lines(lab.point([1, [1, 0, 2, 3], True, True])))
    chips.nth(1).drag_to(chips.nth(0))
    assert chips.all_inner_texts() == ["i", "j_0", "p", "j_1"]


def test_what_the_page_does_not_have_is_said(page):
    chips = page.locator(".chip")
    for place in (0, 1, 2):  # far from all that was computed
        chips.nth(place).focus()
        page.keyboard.press("ArrowRight")
    page.get_by_label("decompose_reduction").uncheck()
    page.get_by_role("slider", name="tile").focus()
    page.keyboard.press("ArrowLeft")
    assert "does not have" in page.locator(".refusal").inner_text()
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".refusal").is_hidden()


def test_the_address_holds_the_state(page, lab):
    page.get_by_role("slider", name="tile").focus()
    page.keyboard.press("ArrowRight")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector(".mlc.live .program .l")
    assert page.locator(".knob output").first.inner_text() == "16"
    assert program(page) == "\n".join(lab.lines(lab.point([2, *lab.first[1:]])))
    page.goto("about:blank")
    page.goto(address.split("#")[0] + "#%E0%A4%A")  # no text
    page.wait_for_selector(".mlc.live .program .l")
    assert page.locator(".knob output").first.inner_text() == "8"


FAR = [2, [3, 2, 1, 0], False, False]  # from all that was computed


def test_a_link_to_a_state_that_is_not_in_the_page_says_so(page, lab):
    assert lab.point(lab.first).state != FAR and json.dumps(FAR) not in lab.points
    address = f"{page.url}#{json.dumps(FAR, separators=(',', ':'))}"
    page.goto("about:blank")
    page.goto(address)
    page.get_by_text("This page does not have what follows").wait_for()
    assert page.locator(".knob output").first.inner_text() == "16"  # what the address has
    assert page.locator(".chip").all_inner_texts() == ["j_1", "p", "j_0", "i"]
    assert "stale" in page.locator(".nest-pane").get_attribute("class")
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".refusal").is_hidden()
    assert page.locator(".stale").count() == 0
    page.evaluate("address => { location.href = address }", address)  # in a page that is open
    page.get_by_text("This page does not have what follows").wait_for()


@pytest.mark.parametrize("state", [
    [99, [0, 1, 2, 3], True, True], [1, [0, 1, 2, 2], True, True], [1, [0, 1, 2, 3], 1, True],
    [1, [0, 1, 2, 3], True], [1.5, [0, 1, 2, 3], True, True], {"0": 1}, "text", None,
])  # fmt: skip
def test_an_address_with_no_state_changes_nothing(chromium, lab, tmp_path, state):
    (tmp_path / "live.html").write_text(write(lab, lab.first), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto(f"{(tmp_path / 'live.html').as_uri()}#{json.dumps(state)}")
        page.locator(".program .l").first.wait_for()
        assert page.locator(".knob output").first.inner_text() == "8"
        assert page.locator(".refusal").is_hidden()


def test_the_link_of_a_state_is_copied(page):
    page.evaluate("""() => { navigator.clipboard.writeText = async (text) => {
        window.copied = text; }; }""")
    page.get_by_role("slider", name="tile").press("End")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied").wait_for()
    link = page.evaluate("() => window.copied")
    assert link == page.url and link.endswith(
        "#%5B2%2C%5B0%2C1%2C2%2C3%5D%2Ctrue%2Ctrue%5D")


def becomes(page, tile):
    there = "tile => document.querySelector('.knob output').textContent === tile"
    page.wait_for_function(there, arg=tile)


def test_another_address_and_going_back_change_the_state(page, lab):
    tile = page.locator(".knob output").first
    own, address = tile.inner_text(), page.url.split("#")[0]
    states = [json.dumps([n, *lab.first[1:]], separators=(",", ":")) for n in (0, 2)]
    for state, shown in zip(states, ("4", "16")):
        page.evaluate("state => { location.hash = encodeURIComponent(state) }", state)
        becomes(page, shown)
        assert f"({shown})" in program(page)
    page.go_back()
    becomes(page, "4")
    page.evaluate("() => { location.hash = '#[99]' }")  # no state: nothing changes
    page.wait_for_timeout(100)
    assert tile.inner_text() == "4"
    page.evaluate("() => { location.hash = '' }")
    becomes(page, own)
    assert page.url.startswith(address)


def test_on_paper_nothing_is_cut_off(page):
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 1000})  # a sheet of A4
    for where in (".pane.program", ".nest-pane", ".asm"):
        over = "e => [e.scrollHeight - e.clientHeight, e.scrollWidth - e.clientWidth]"
        assert max(page.locator(where).evaluate(over)) <= 1, where


def test_controls_stand_beside_each_other_where_there_is_little_room(chromium, lab, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(write(lab, lab.first), encoding="utf-8")
    with open_page(chromium, width=600) as page:
        page.goto(path.as_uri())
        page.wait_for_selector(".program .l")
        left = page.locator(".knob").evaluate_all(
            "all => all.map(one => Math.round(one.getBoundingClientRect().left))")
        assert len(set(left)) > 1
        assert page.evaluate("document.documentElement.scrollWidth") <= 600


@pytest.mark.parametrize("width", [800, 1600])
def test_nothing_is_wider_than_the_page(chromium, lab, tmp_path, width):
    (tmp_path / "live.html").write_text(write(lab, lab.first), encoding="utf-8")
    with open_page(chromium, width=width) as page:
        page.goto((tmp_path / "live.html").as_uri())
        page.wait_for_selector(".mlc.live .program .l")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_of_many_choices_those_nearby_are_computed():
    made = Choices(tiled(range(1, 101), 50), caches="1K:2")
    near = [s[0] for s in nearest(made, made.first, 0)]
    assert len(near) == 32 and 49 in near and near == sorted(near)
    assert [s[0] for s in nearest(made, [99, *made.first[1:]], 0)][-1] == 99


def test_what_is_chosen_is_computed_first_and_then_the_nearest(monkeypatch):
    made, asked = Choices(tiled(range(1, 9), 4), caches="1K:2"), []
    for act in ("count", "accesses", "measure"):
        monkeypatch.setattr(made, act, lambda p, act=act: asked.append((act, p.state[0], p.key)))
    compute(made, made.first, 60.0)
    own = made.point(made.first)
    assert asked[:3] == [("count", 3, own.key), ("accesses", 3, own.key), ("measure", 3, own.key)]
    of_the_number = [at for act, at, key in asked if act == "count" and key.endswith(
        own.key.split(",", 1)[1])]
    far = [abs(at - 3) for at in of_the_number]
    assert far == sorted(far) and set(of_the_number) == set(range(8))
    with monkeypatch.context() as patched:  # no time at all: the state itself is in the page
        patched.setattr("time.monotonic", lambda: 0.0)
        compute(made, [7, *made.first[1:]], 0.0)
    assert made.point([7, *made.first[1:]]).key in made.points


def test_what_was_not_counted_is_said(chromium, tmp_path):
    made = Choices(tiled([4, 8, 16]), caches="1K:2")
    for state in nearest(made, made.first, 0):
        made.point(state)
    (tmp_path / "live.html").write_text(write(made, made.first), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "live.html").as_uri())
        page.get_by_role("slider", name="tile").press("ArrowRight")
        assert page.locator(".why").inner_text() == "This page has no counts of both."
        assert "not in this page" in page.locator(".facts").inner_text()
        assert page.locator(".asm").inner_text() == "not in this page"


def test_a_program_without_operations_says_why_there_is_no_roofline(chromium, tmp_path):
    made = Choices(transpose(16), caches="1K:2")
    made.count(made.point(made.first))
    (tmp_path / "live.html").write_text(write(made, made.first), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "live.html").as_uri())
        page.locator(".program .l").first.wait_for()
        assert page.locator(".roofline").inner_text().startswith("No roofline: ")
    made.close()


def test_the_page_is_small_and_reads_without_scripts(lab):
    text = write(lab, lab.first)
    assert len(text.encode()) < 10e6
    assert "<noscript><div><p><b>Choices of product" in text and "L1 misses" in text
    values = json.loads(text.split('type="application/json"')[1].split(">", 1)[1].split("<")[0])
    assert values["all"].keys() == values["points"].keys() == lab.points.keys()


def test_a_table_without_scripts_has_the_nearest_states(lab, monkeypatch):
    whole = live.static(lab, lab.first)
    assert whole.count("<tr>") > 3 and "not in this table" not in whole
    monkeypatch.setattr(live, "_KEPT", 3)
    few = live.static(lab, lab.first)
    assert few.count("<tr>") == 3 and "<b>shown: </b>" in few
    assert f"<p>{len(lab.points) - 3} other states are not in this table.</p>" in few


def test_a_page_that_would_be_too_large_leaves_out_what_is_farthest(lab, monkeypatch):
    def written(budget):
        """The values in a page, which is weighed as a whole."""
        monkeypatch.setattr(live, "BUDGET", budget)
        text = write(lab, lab.first)
        values = json.loads(text.split('type="application/json"')[1].split(">", 1)[1].split("<")[0])
        return values, len(text.encode())

    def far(key):
        return sum(a != b for a, b in zip(lab.points[key].state, lab.first))

    whole, size = written(10_000_000)
    less, smaller = written(size - 1)
    assert smaller < size and less["all"].keys() == whole["all"].keys()
    (without,) = [key for key, point in less["all"].items()
                  if "watched" in whole["all"][key] and "watched" not in point]
    assert far(without) == max(map(far, whole["all"]))
    own, least = written(1)
    (key,) = own["all"]
    assert far(key) == 0 and own["all"][key]["watched"] and not own["reasons"]
    for budget in (size // 2, least + (size - least) // 20):  # with few states, and hardly any
        some, fits = written(budget)
        assert budget * 0.8 < fits <= budget
        assert some["all"].keys() == some["points"].keys() <= whole["all"].keys()
        assert {key for pair in some["reasons"] for key in pair.split(" ")} <= some["all"].keys()
    assert len(own["all"]) <= len(some["all"]) < len(whole["all"])
