"""How long it takes from a vote in a class to the teacher's picture.

    python benchmarks/room.py [--clients 200]

Serves a class with `mlc-lab class` on this machine, opens the teacher's page in a Chromium (see
tests/browser.py for where it is looked for), and lets 200 students join, listen and vote: first
one after the other, 20 times a second, then all at the same moment. Prints the times from a vote
to its acknowledgement, which is after it is on the disk, and to the picture that has it. Figure:
300 ms. Server, browser and students share this machine; the load is printed with the times.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from browser import FLAGS, chromium_path
from playwright.async_api import async_playwright
from room_client import HANDMADE, Student
from tornado.httpclient import AsyncHTTPClient

#: notes, in the page, when each number of answers was first drawn
WATCH = """() => {
  window.drawn = {};
  const look = () => {
    const at = document.querySelector(".answered")?.dataset.answered;
    if (at !== undefined && !(at in window.drawn))
      requestAnimationFrame(() => (window.drawn[at] ??= Date.now() / 1000));
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""


def told(name: str, seconds: list[float]) -> None:
    """Print the median and the worst."""
    print(f"  {name:<34} {1e3 * statistics.median(seconds):6.0f} ms median "
          f"{1e3 * max(seconds):6.0f} ms worst")


async def vote(student: Student, key: str, sent: dict[int, float]) -> float:
    """Vote, and note when; the seconds until it is acknowledged."""
    sent[student.name] = time.time()
    start = time.perf_counter()
    status = await student.vote(key, {"legal": "legal", "speed": "faster"})
    assert status == 200, status
    return time.perf_counter() - start


async def measure(address: str, teacher: str, pin: str, clients: int) -> None:
    """Let a class answer two questions."""
    AsyncHTTPClient.configure(None, max_clients=clients)
    http = AsyncHTTPClient()
    students = [Student(address, n, http) for n in range(clients)]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        page = await browser.new_page()
        await page.goto(teacher)
        start = time.perf_counter()
        assert set(await asyncio.gather(*(s.join(pin) for s in students))) == {200}
        await asyncio.gather(*(s.listen() for s in students))
        print(f"{clients} students joined in {time.perf_counter() - start:.1f} s; load of the "
              f"machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for at, title in enumerate(("20 votes a second", "all votes at once")):
            key = f"recording 0, step {at + 1}"
            await asyncio.gather(*(s.until(lambda d, key=key: d["question"]["key"] == key, 60)
                                   for s in students))
            await page.get_by_text(f"Question {at + 1} of").wait_for()
            await page.evaluate(WATCH)
            sent: dict[int, float] = {}
            waiting = []
            for student in students:
                waiting.append(asyncio.ensure_future(vote(student, key, sent)))
                if at == 0:
                    await asyncio.sleep(0.05)
            acknowledged = await asyncio.gather(*waiting)
            await page.get_by_text(f"{clients} of {clients} have answered").wait_for()
            await asyncio.sleep(0.2)
            drawn = {int(n): when for n, when in (await page.evaluate("window.drawn")).items()}
            print(title)
            told("until it is on the disk", acknowledged)
            told("until it is in the picture", until_drawn(sorted(sent.values()), drawn))
            await page.get_by_role("button", name="Reveal").click()
            start = time.perf_counter()
            await asyncio.gather(*(s.until(lambda d, key=key: d["revealed"] and
                                           d["question"]["key"] == key, 60) for s in students))
            print(f"  {'revealed on all phones':<34} {1e3 * (time.perf_counter() - start):6.0f} ms")
            await page.get_by_role("button", name="Next question").click()
        await browser.close()
    for student in students:
        student.close()


def until_drawn(sent: list[float], drawn: dict[int, float]) -> list[float]:
    """For the n-th vote the seconds until a picture had n or more."""
    return [min(when for count, when in drawn.items() if count >= n) - at
            for n, at in enumerate(sent, 1)]


def main() -> None:
    """Serve a class, and measure it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clients", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command: list[Any] = [sys.executable, "-m", "mlc_lab.cli", "class", HANDMADE, "--host",
                              "127.0.0.1", "--port", "0", "-o", Path(folder) / "class.jsonl"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            text = ""
            while "Ctrl-C" not in text:
                text += server.stdout.readline()
            teacher = re.search(r"http\S+#\S+", text)[0]
            address = re.search(r"students +(\S+)", text)[1]
            pin = re.search(r"PIN (\d+)", text)[1]
            asyncio.run(measure(address, teacher, pin, args.clients))
        finally:
            server.terminate()
            server.wait(10)


if __name__ == "__main__":
    main()
