"""The site: it is built, all links lead somewhere, nothing is asked of another host, views live."""

import subprocess
import sys
from pathlib import Path

import pytest
from browser import open_page

pytest.importorskip("myst_nb")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site with the outputs of one lesson; the build follows all links."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "website/build.py", "--lessons", "02", "--output", str(folder)]
    made = subprocess.run([*command, "--quiet"], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "WARNING: " not in made.stderr, made.stderr
    return folder / "html"


def test_links_that_lead_nowhere_are_found(tmp_path):
    sys.path.insert(0, str(ROOT / "website"))
    import links

    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html">b</a><a href="#there">there</a><a href="#here">here</a>'
        '<a href="https://example.org">out</a><img src="https://example.org/x.png">')
    assert links.check(tmp_path) == [
        "a.html: b.html is not there", "a.html: #there names a place that is not there",
        "a.html: loads https://example.org/x.png from another host"]


def test_progress_is_shown_as_it_ended():
    sys.path.insert(0, str(ROOT / "website"))
    import build
    from nbformat.v4 import new_output

    def stream(text, name="stdout"):
        return new_output("stream", name=name, text=text)

    wiped = [stream("\r 20%"), stream("\r100%"), stream("\r    "), stream("\r")]
    assert build.printed(wiped) == []
    kept = build.printed([stream("a\n"), stream("\r 50%"), stream("\r100%\nb  \n"),
                          stream("c\n", "stderr"), new_output("display_data", {"text/plain": "v"})])
    assert [out.get("text") for out in kept] == ["a\n100%\nb  \n", "c\n", None]


def test_a_picture_says_what_it_shows_to_those_who_do_not_see_it():
    sys.path.insert(0, str(ROOT / "website"))
    import build
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    shown = new_output("display_data", {"image/png": "", "text/plain": "Figure"},
                       metadata={"image/png": {"alt": "two bars"}})
    plain = new_output("display_data", {"text/plain": "Figure"})
    cells = [new_code_cell(outputs=[output]) for output in (shown, plain)]
    made = build.with_places(new_notebook(cells=cells))
    said = {"mystnb": {"image": {"alt": "two bars"}}}
    assert [cell.metadata for cell in made.cells] == [said, {}]


def test_numbers_of_a_view_are_marked_for_its_script():
    sys.path.insert(0, str(ROOT / "website"))
    import build

    text = "[4](#live:chunks) chunks, [1](#live:floats%20apart) apart; [here](#other)"
    assert build.outward(text, "notebooks") == (
        '<span class="mlc-prose"><a data-live="chunks">4</a></span> chunks, '
        '<span class="mlc-prose"><a data-live="floats apart">1</a></span> apart; [here](#other)')


@pytest.mark.browser
def test_a_number_in_the_text_of_a_lesson_drives_its_page(chromium, tmp_path):
    """From a disk, with what the lesson's notebook has kept."""
    sys.path.insert(0, str(ROOT / "website"))
    import build
    from observe.test_live import tiled

    view = tiled([4, 8, 16]).live(caches="1K:2")
    view.wait()
    kept = view._repr_mimebundle_()[0]
    view.close()
    build.statics(tmp_path)
    text = build.outward("With [8](#live:tile) columns.", "notebooks")
    (tmp_path / "lesson.html").write_text(
        f'<meta charset="utf-8"><p>{text}</p>{build.place(kept)}'
        '<script defer src="_static/views/site.js"></script>', encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "lesson.html").as_uri())
        number = page.locator("p .mlc-live-number")
        number.wait_for()
        assert page.locator("p").first.inner_text() == "With 8 columns."
        number.press("ArrowRight")
        assert page.locator("p").first.inner_text() == "With 16 columns."
        page.locator(".program").get_by_text("T.vectorized(16)").first.wait_for()


@pytest.mark.browser
def test_a_chinese_page_has_no_words_of_the_theme_in_english(site):
    page = (site / "zh/notebooks/02_tensorir_and_blocks.html").read_text("utf-8")
    for words in ("Back to top", "Skip to content", "Toggle ", ">Next<", "On this page"):
        assert words not in page
    assert "回到顶部" in page and "Back to top" in (site / "index.html").read_text("utf-8")


@pytest.mark.browser
def test_a_lesson_of_the_site_does_not_lead_to_the_site(site):
    for folder in ("", "zh/"):
        page = (site / f"{folder}notebooks/02_tensorir_and_blocks.html").read_text("utf-8")
        assert "mlc-lab.github.io" not in page and "Copyright" not in page


@pytest.mark.browser
@pytest.mark.parametrize("width, scheme", [(1280, "dark"), (360, "light")])
@pytest.mark.parametrize("page_of", ["index", "notebooks/02_tensorir_and_blocks",
                                     "primitives/reorder", "gallery/matrix_product",
                                     "exercises", "zh/index",
                                     "zh/notebooks/02_tensorir_and_blocks"])
def test_a_page_is_usable_and_clean_for_axe(chromium, site, page_of, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with open_page(chromium, scheme=scheme, width=width) as page:
        page.goto((site / f"{page_of}.html").as_uri())
        places = page.locator("[data-mlc-kept]")
        for n in range(places.count()):
            places.nth(n).scroll_into_view_if_needed()
            page.wait_for_function("n => document.querySelectorAll('[data-mlc-kept]')[n]"
                                   ".querySelector('button, input')", arg=n)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
        assert not found.response["violations"], found.generate_report()


@pytest.mark.browser
def test_a_stepper_is_stepped_on_a_page_from_a_disk(chromium, site):
    with open_page(chromium) as page:
        page.goto((site / "primitives" / "split.html").as_uri())
        page.get_by_role("button", name="Next").click()
        page.wait_for_function("document.querySelector('[data-mlc-kept]').innerText"
                               ".includes('sch.split')")


@pytest.mark.browser
def test_an_exercise_is_tried_in_its_lesson_by_keyboard_and_kept(chromium, site):
    """On a page from a disk; another page of the site has the same answer, in its own language."""
    from mlc_lab import exercises

    variant = exercises.get("02.2").variant(0)
    right = variant.reference
    with open_page(chromium) as page:
        page.goto((site / "notebooks/02_tensorir_and_blocks.html").as_uri())
        card = page.get_by_role("group", name="Exercise 02.2")
        page.locator("[data-mlc-kept]", has_text="02.2").first.scroll_into_view_if_needed()
        check = card.get_by_role("button", name="Check")
        check.press("Enter")
        assert card.locator(".marks li.no").count() == len(variant.checks)
        assert "nothing was filled in" in card.locator(".marks").inner_text()
        hint = card.get_by_role("button", name="Hint 1 of 3")
        hint.press("Enter")
        assert card.locator(".help").count() == 1 and variant.hints[0][:20] in (
            card.locator(".help").inner_text().replace("\n", " "))
        for field in variant.fields:
            card.get_by_role("radio", name=right[field.name], exact=True).first.focus()
            page.keyboard.press("Space")
        assert "marks of an answer before" in card.locator(".actions").inner_text()
        check.press("Enter")
        assert card.locator(".marks li.yes").count() == len(variant.checks)
        said = f"{variant.points} of {variant.points} points"
        assert said in card.locator(".points").inner_text()
        page.reload()
        page.locator("[data-mlc-kept]", has_text="02.2").first.scroll_into_view_if_needed()
        assert card.locator(".marks li.yes").count() == len(variant.checks)
        assert card.get_by_role("radio", checked=True).count() == len(variant.fields)
        assert card.locator(".help").count() == 1 and said in card.locator(".points").inner_text()
        page.goto((site / "zh/exercises.html").as_uri())
        page.get_by_role("heading", name="02.2").scroll_into_view_if_needed()
        here = page.locator(".mlc-card[aria-label*='02.2']")
        here.wait_for()
        assert here.locator(".marks li.yes").count() == len(variant.checks)
        assert f"{variant.points}" in here.locator(".points").inner_text()


@pytest.mark.browser
@pytest.mark.parametrize("folder, told", [("", "no compiler"), ("zh/", "没有编译器")])
def test_an_exercise_that_needs_a_compiler_says_where_it_is_checked(chromium, site, folder, told):
    with open_page(chromium) as page:
        page.goto((site / f"{folder}notebooks/02_tensorir_and_blocks.html").as_uri())
        page.locator("[data-mlc-kept]", has_text="02.1").first.scroll_into_view_if_needed()
        card = page.locator(".mlc-card[aria-label*='02.1']")
        card.get_by_role("textbox").fill("@T.prim_func")
        card.locator("button.check").click()
        assert told in card.locator(".marks").inner_text()
        assert 'exercise("02.1")' in card.locator(".marks").inner_text()
        assert "mlc-lab exercise 02.1" in card.locator(".marks").inner_text()
        assert "0 " not in card.locator(".points").inner_text()  # it is not judged
        for _ in range(4):
            card.locator(".helps > button").click()
        assert card.locator(".help").count() == 4
        assert "T.prim_func" in card.locator(".help").last.inner_text()
        page.reload()
        page.locator("[data-mlc-kept]", has_text="02.1").first.scroll_into_view_if_needed()
        assert card.get_by_role("textbox").input_value() == "@T.prim_func"


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 360])
def test_a_lesson_leads_to_itself_in_the_other_language(chromium, site, width):
    with open_page(chromium, width=width) as page:
        page.goto((site / "notebooks/02_tensorir_and_blocks.html").as_uri())
        page.locator("a.language:visible", has_text="中文").click()
        assert page.locator("html").get_attribute("lang") == "zh-CN"
        assert "块" in page.locator("h1").inner_text()
        page.locator("a.language:visible", has_text="English").click()
        assert page.url == (site / "notebooks/02_tensorir_and_blocks.html").as_uri()


@pytest.mark.browser
def test_chinese_is_searched_without_a_dictionary_of_words(chromium, site):
    with open_page(chromium) as page:
        page.goto((site / "zh/search.html").as_uri() + "?q=张量程序")
        page.locator("#search-results a").first.wait_for()
        assert "张量程序抽象" in page.locator("#search-results").inner_text()


def test_what_is_not_there_leads_on_in_both_languages(site):
    sys.path.insert(0, str(ROOT / "website"))
    import not_found

    page = (site / "404.html").read_text("utf-8")
    assert page == not_found.page() and "No such page" in page and "没有这个页面" in page
    notebook = (ROOT / "notebooks/02_tensorir_and_blocks.ipynb").read_text("utf-8")
    assert f"https://mlc-lab.github.io{not_found.PLACE}notebooks/02_" in notebook
    assert "<script" not in page and 'src="' not in page


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_wrong_address_is_clean_for_axe(chromium, site, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with open_page(chromium, scheme=scheme, width=360) as page:
        page.goto((site / "404.html").as_uri())
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "All lessons"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
        assert not found.response["violations"], found.generate_report()


@pytest.mark.browser
@pytest.mark.parametrize("folder", ["", "zh/"])
def test_what_has_the_focus_is_seen_on_a_phone(chromium, site, folder):
    where = """() => {
      const box = document.activeElement.getBoundingClientRect();
      return box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight;
    }"""
    with open_page(chromium, width=360, height=740) as page:
        page.goto((site / f"{folder}index.html").as_uri())
        for _ in range(12):  # past the skip link, into the list of pages
            page.keyboard.press("Tab")
            page.wait_for_function(where)
