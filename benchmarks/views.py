"""How quick and how small the views are: the stepper on long schedules and long programs.

    python benchmarks/views.py

Needs the extra `lab` and a Chromium (see tests/browser.py for where it is looked for). Prints, for
50 steps of a module of about 200 lines, what the notebook has to store and how long a step takes in
the browser in each tab, layout included; for a module of 2,000 lines, how long a step and a frame
of scrolling take; for the page of choices of a matrix product, how long it takes after 50 changes
until the program, the counts with the machine code, and the time are there, and how large it is;
for typed text, how long it takes from a key press in the browser to the program; for the
ready-made page of a matrix product in the browser, how long 50 changes take from the hand to what
is drawn (the program with its nest, counts, accesses, machine code, time), what moves meanwhile,
and how many frames a second the accesses play with.

Times on a busy machine say little: the load is printed with them.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "widgets"))

from browser import FLAGS, chromium_path, open_page
from observe.programs import matmul
from typed_page import serve

import mlc_lab as tvm
from mlc_lab.observe.live import Choices, key_of
from mlc_lab.observe.session import record
from mlc_lab.script import from_source
from mlc_lab_widgets import Stepper, live, static
from mlc_lab_widgets.stepper import packed

STAGE = """\
        for i, j, k in T.grid(64, 64, 64):
            with T.block("Y{n}"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y{n}[vi, vj] = T.float32(0)
                Y{n}[vi, vj] = Y{n}[vi, vj] + {source}[vi, vk] * W[vk, vj]
        for i, j in T.grid(64, 64):
            with T.block("R{n}"):
                vi, vj = T.axis.remap("SS", [i, j])
                R{n}[vi, vj] = T.max(Y{n}[vi, vj], T.float32(0))
"""


def program(stages: int):
    """A module of `stages` matrix products, each followed by a ReLU."""
    head = ['@I.ir_module', 'class Module:', '    @T.prim_func',
            '    def main(A: T.Buffer((64, 64), "float32"), W: T.Buffer((64, 64), "float32"),',
            f'             R{stages - 1}: T.Buffer((64, 64), "float32")):']
    head += [f"        Y{n} = T.alloc_buffer((64, 64))" for n in range(stages)]
    head += [f"        R{n} = T.alloc_buffer((64, 64))" for n in range(stages - 1)]
    body = [STAGE.format(n=n, source=f"R{n - 1}" if n else "A") for n in range(stages)]
    return from_source("\n".join(head) + "\n" + "".join(body))


def recording(stages: int, steps: int):
    """`steps` instructions on the products in turn: tile, reorder, move, vectorize, decompose."""
    sch = tvm.tir.Schedule(program(stages))
    n = 0
    while len([s for s in sch.steps if not s.instruction.kind.pure]) < steps:
        block, relu = sch.get_block(f"Y{n % stages}"), sch.get_block(f"R{n % stages}")
        i, j, k = sch.get_loops(block)
        j0, j1 = sch.split(j, [None, 8])
        sch.reorder(i, j0, k, j1)
        sch.reverse_compute_at(relu, j0)
        sch.vectorize(j1)
        sch.decompose_reduction(block, k)
        n += 1
    return record(sch).recording


STEP = """async () => {
  const slider = document.querySelector(".mlc input[type=range]");
  const last = Number(slider.max);
  const times = [];
  for (let step = 1; step <= last; step++) {
    const start = performance.now();
    slider.value = step;
    slider.dispatchEvent(new Event("input"));
    document.body.offsetHeight;
    times.push(performance.now() - start);
    await new Promise((done) => setTimeout(done, 0));
  }
  return times;
}"""
SCROLL = """async () => {
  const pane = document.querySelector(".mlc .pane.after");
  const times = [];
  let last = performance.now();
  for (let i = 0; i < 120; i++) {
    pane.scrollTop += 240;
    await new Promise((done) => requestAnimationFrame(done));
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times;
}"""


def spread(times: list[float]) -> str:
    """Median and slowest of some times."""
    return f"{statistics.median(times):6.1f} ms median, {max(times):6.1f} ms slowest"


def processor(session) -> float:
    """Seconds that the main thread of a page has used."""
    found = session.send("Performance.getMetrics")["metrics"]
    return next(m["value"] for m in found if m["name"] == "TaskDuration")


def steps_of(page) -> str:
    """Walk all steps: time of each, and the processor's time of one, which a busy machine does not
    stretch, all the browser does in its main thread included (drawing too)."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    start = processor(session)
    times = page.evaluate(STEP)
    each = 1e3 * (processor(session) - start) / len(times)
    return f"{spread(times)}, {each:5.1f} ms of the processor"


def row(name: str, value: str, asked: str = "") -> None:
    """Print one figure."""
    print(f"{name:<52} {value:<68} {asked}", flush=True)


def sizes(made) -> None:
    """What a saved notebook stores of one stepper."""
    data = len(made.to_json().encode())
    fallback = len(static.html(made).encode())
    script = sum(len(text.encode()) for text in (Stepper._esm, Stepper._css))
    row("recording as JSON", f"{data / 1e3:6.0f} kB")
    row("static HTML for where scripts do not run", f"{fallback / 1e3:6.0f} kB")
    row("script and style of the view", f"{script / 1e3:6.0f} kB")
    row("together, in the notebook", f"{(data + fallback + script) / 1e3:6.0f} kB", "<= 1000 kB")
    start = time.perf_counter()
    made.add_code()
    each = 1e3 * (time.perf_counter() - start) / len(made.programs)
    code = len(json.dumps(packed(made)["code"]))
    row("stages, LLVM IR and assembly, in a page only", f"{code / 1e3:6.0f} kB, {each:.0f} ms each")


def open_product(n: int) -> Choices:
    """A product of n x n whose tile has two open numbers."""
    sch = tvm.tir.Schedule(matmul(n))
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, factors=[None, tvm.live("rows", 2)])
    j0, j1 = sch.split(j, factors=[None, tvm.live("columns", 16)])
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)
    sch.unroll(i1)
    sch.decompose_reduction("C", k)
    return Choices(sch)


def changes(n: int, count: int) -> None:
    """What `count` states of a page of choices take, one after the other, and what it weighs."""
    lab = open_product(n)
    lab.count(lab.point(lab.first))  # the process starts once, the machine is measured once
    lab.measure(lab.point(lab.first))
    rows, columns = (range(len(knob.labels)) for knob in lab.knobs[:2])
    states = [[r, c, *lab.first[2:]] for c in columns for r in rows
              if int(lab.knobs[0].labels[r]) <= 16 and [r, c] != lab.first[:2]]
    taken: dict[str, list[float]] = {"program": [], "counts, machine code": [], "time": []}
    for state in (states * 2)[:count]:
        point = None
        for what, times in taken.items():
            start = time.perf_counter()
            if what == "program":
                point = lab.point(state)
                json.dumps(lab.shown(point))
            elif point is not None:
                (lab.measure if what == "time" else lab.count)(point)
            times.append(time.perf_counter() - start)
    asked = {"program": "<= 100 ms", "counts, machine code": "<= 1000 ms", "time": "<= 3000 ms"}
    for what, times in taken.items():
        row(f"choices of {n} x {n}: {what}", spread([1e3 * t for t in times]), asked[what])
    page = live.write(lab, lab.first)
    first = json.dumps([lab.shown(lab.point(lab.first)), [k.to_dict() for k in lab.knobs],
                        {key: lab.short(p) for key, p in lab.points.items()}])
    code = sum(len(text) for text in (live.Live._esm, live.Live._css))
    row(f"choices of {n} x {n}: the page, {len(lab.points)} states", f"{len(page) / 1e6:6.2f} MB",
        "<= 10 MB")
    row(f"choices of {n} x {n}: in the notebook", f"{(len(first) + code) / 1e3:6.0f} kB",
        "<= 300 kB")
    lab.close()


#: moves a slider as a hand does, and waits until each part shows what follows; milliseconds
CHANGE = """async ([name, choice, seconds]) => {
  const input = document.querySelector(`.knob input[aria-label="${name}"]`);
  const fixed = ".knob, .pane, .facts, .chart, .asm, .roofline";
  const places = () => [...document.querySelectorAll(fixed)]
    .map((e) => Math.round(e.getBoundingClientRect().top));
  const before = places();
  const text = (where) => document.querySelector(where)?.textContent ?? "";
  const shown = {
    program: () => !document.querySelector(".program.stale"),
    counts: () => !document.querySelector(".facts.stale"),
    accesses: () => !document.querySelector(".accesses .stale"),
    code: () => !document.querySelector(".stale .asm"),
    time: () => !document.querySelector(".facts.stale") && /Time[^…]/.test(text(".facts")),
  };
  const start = performance.now();
  input.value = choice;
  input.dispatchEvent(new Event("input"));
  const took = {};
  while (Object.keys(took).length < 5 && performance.now() - start < 1000 * seconds) {
    await new Promise((done) => requestAnimationFrame(done));
    for (const [what, is] of Object.entries(shown))
      if (!(what in took) && (what === "program" || "program" in took) && is())
        took[what] = performance.now() - start;
  }
  return { took, moved: places().filter((top, n) => top !== before[n]).length };
}"""
FRAMES = """async (seconds) => {
  const times = [];
  const end = performance.now() + 1000 * seconds;
  let last = await new Promise((done) => requestAnimationFrame(done));
  while (last < end) {
    const now = await new Promise((done) => requestAnimationFrame(done));
    times.push(now - last);
    last = now;
  }
  return times;
}"""


def whole_page(browser, folder: Path, count: int) -> None:
    """What `count` changes of the page of a matrix product take until each part is drawn."""
    view, rng = tvm.explore_live("matrix product"), random.Random(17)
    view.spare_s = 0.0  # what the other knobs would choose is not known yet: the worst case
    view.wait(120)
    lab, taken, moved = view.source, {}, 0
    sliders = [n for n, knob in enumerate(lab.knobs) if knob.kind == "number"]
    asked = {"program": "<= 100 ms", "counts": "<= 300 ms", "accesses": "<= 300 ms",
             "code": "<= 1000 ms", "time": "<= 3000 ms"}
    with open_page(browser, width=1600) as page:
        serve(page, view, folder / "page.html", ".mlc.live .program .l")
        page.locator(".accesses summary").click()
        page.locator(".mlc-access").wait_for()
        load = os.getloadavg()[0]
        for _ in range(count):
            while True:
                at = rng.choice(sliders)
                choice = rng.randrange(len(lab.knobs[at].labels))
                key = key_of(lab.plain([*view.state[:at], choice, *view.state[at + 1:]]))
                if key not in lab.points:  # the replay is part of what is measured
                    break
            found = page.evaluate(CHANGE, [lab.knobs[at].name, choice, 20])
            moved += found["moved"]
            for what, ms in found["took"].items():
                taken.setdefault(what, []).append(ms)
        for what, times in taken.items():
            lost = f", {count - len(times)} not within 20 s" if len(times) < count else ""
            row(f"page of a matrix product: {what}", spread(times) + lost, asked[what])
        row("parts that moved in these changes", str(moved), "0")
        row("load of the machine", f"{load:.1f} before, {os.getloadavg()[0]:.1f} after, "
            f"{os.cpu_count()} cores")
        text = live.write(lab, view.state)
        row(f"the page, {len(lab.points)} states", f"{len(text) / 1e6:6.2f} MB", "<= 10 MB")
        kept = len(json.dumps(view._repr_mimebundle_()[0]))
        row("in the notebook, text and picture included", f"{kept / 1e3:6.0f} kB", "<= 300 kB")
    view.close()
    (folder / "frames.html").write_text(text, encoding="utf-8")
    with open_page(browser, width=1600) as page:
        page.goto((folder / "frames.html").as_uri())
        page.locator(".accesses summary").click()
        page.get_by_role("button", name="Play").click()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        start = processor(session)
        times = page.evaluate(FRAMES, 5)
        each = 1e3 * (processor(session) - start) / len(times)
        row("accesses playing: a frame", f"{spread(times)}, {1e3 * len(times) / sum(times):.0f} a "
            f"second, {each:.1f} ms of the processor", ">= 60 a second")


TYPED = """\
i, j, k = sch.get_loops("C")
j0, j1 = sch.split(j, factors=[None, 8])
sch.reorder(i, j0, k, j1)
sch.vectorize(j1)
sch.decompose_reduction("C", k)"""
KEY = """async number => {
  const line = [...document.querySelectorAll(".lines > div")][1];
  const at = line.textContent.lastIndexOf(",") + 2;
  const end = line.textContent.lastIndexOf("]");
  getSelection().setBaseAndExtent(line.firstChild, at, line.firstChild, end);
  const start = performance.now();
  document.execCommand("insertText", false, String(number));
  const there = () => document.querySelector(".program").textContent.includes(`(${number})`);
  while (!there()) await new Promise((done) => requestAnimationFrame(done));
  return performance.now() - start;
}"""


def typing(browser, folder: Path, count: int) -> None:
    """What `count` key presses take until the program is drawn, with Python behind the page. Of
    that the page waits 150 ms for more keys."""
    view = tvm.type_live(TYPED, matmul(256))
    with open_page(browser) as page:
        serve(page, view, folder / "typed.html")
        page.locator(".lines").focus()
        numbers = [2 ** ((n + 2) % 6 + 2) for n in range(count)]
        times = []
        for number in numbers:
            times.append(page.evaluate(KEY, number))
            page.wait_for_timeout(100)
    view.close()
    row("typed text: from a key press to the program", spread(times[1:]), "<= 250 ms")


def main() -> None:
    """Measure and print."""
    from playwright.sync_api import sync_playwright

    short, long = recording(10, 50), recording(100, 20)
    for name, made in (("short", short), ("long", long)):
        count, lines = len(made.steps) - 1, [len(p.lines) for p in made.programs]
        row(f"the {name} schedule", f"{count} steps of {min(lines)} to {max(lines)} lines")
    sizes(short)
    for n in (64, 256):
        changes(n, 50)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        whole_page(browser, Path(folder), 50)
        typing(browser, Path(folder), 51)
        for name, made in (("short", short), ("long", long)):
            path = Path(folder) / f"{name}.html"
            made.html(path)
            with open_page(browser) as page:
                start = time.perf_counter()
                page.goto(path.as_uri())
                page.wait_for_selector(".mlc .l")
                row(f"{name}: the page opens", f"{1e3 * (time.perf_counter() - start):6.0f} ms")
                tabs = page.get_by_role("tab").all_inner_texts() if name == "short" else ["Program"]
                for tab in tabs:
                    page.get_by_role("tab", name=tab, exact=True).click()
                    row(f"{name}: a step, tab {tab}", steps_of(page),
                        "<= 60 ms" if name == "short" else "")
                if name == "long":
                    page.get_by_role("tab", name="Program").click()
                    page.get_by_role("button", name="Show all lines").click()
                    row("long: a step, all lines shown", steps_of(page))
                    row("long: a frame of scrolling", spread(page.evaluate(SCROLL)))
        browser.close()


if __name__ == "__main__":
    main()
