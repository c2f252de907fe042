"""How quick and how small the views are: the stepper on long schedules and long programs.

    python benchmarks/views.py

Needs the extra `lab` and a Chromium (see tests/browser.py for where it is looked for). Prints, for
50 steps of a module of about 200 lines, what the notebook has to store and how long a step takes in
the browser in each tab, layout included; for a module of 2,000 lines, how long a step and a frame
of scrolling take.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from browser import FLAGS, chromium_path, open_page

import mlc_lab as tvm
from mlc_lab.observe.session import record
from mlc_lab.script import from_source
from mlc_lab_widgets import Stepper, static
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


def steps_of(page) -> str:
    """Walk all steps: time of each, and the processor's time of one, which a busy machine does not
    stretch, all the browser does in its main thread included (drawing too)."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in found if m["name"] == "TaskDuration")

    start = spent()
    times = page.evaluate(STEP)
    each = 1e3 * (spent() - start) / len(times)
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


def main() -> None:
    """Measure and print."""
    from playwright.sync_api import sync_playwright

    short, long = recording(10, 50), recording(100, 20)
    for name, made in (("short", short), ("long", long)):
        count, lines = len(made.steps) - 1, [len(p.lines) for p in made.programs]
        row(f"the {name} schedule", f"{count} steps of {min(lines)} to {max(lines)} lines")
    sizes(short)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
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
