import assert from "node:assert/strict";
import { test } from "node:test";

import { newLines } from "../../widgets/js/diff.js";
import { changeOf, drawChoices } from "../../widgets/js/live_chart.js";

test("lines that are not in the program before are marked", () => {
  assert.deepEqual([...newLines(["a", "b", "c"], ["a", "x", "c", "y"])], [1, 3]);
  assert.deepEqual([...newLines([], ["a"])], [0]);
  assert.deepEqual([...newLines(["a", "b"], ["b"])], []);
  assert.deepEqual([...newLines(["a", "a"], ["a", "a", "a"])].length, 1);
});

test("a change is told in percent or as a factor", () => {
  assert.equal(changeOf(200, 10, ["fewer", "more"]), "20.0× fewer");
  assert.equal(changeOf(12, 9, ["fewer", "more"]), "25.0 % fewer");
  assert.equal(changeOf(10, 12, ["fewer", "more"]), "20.0 % more");
  assert.equal(changeOf(10, 50, ["fewer", "more"]), "5.00× more");
  assert.equal(changeOf(10, 10, ["fewer", "more"]), "");
  assert.equal(changeOf(undefined, 10, ["fewer", "more"]), "");
});

test("the chart of choices leaves gaps, and says what is refused", () => {
  const choices = [
    { label: "1", misses: 900 },
    { label: "2", error: "does not fit" },
    { label: "4", misses: 10 },
    { label: "8" },
  ];
  const svg = drawChoices(choices, "misses", 2, 400, "L1 misses");
  assert.equal(svg.match(/data-choice=/g)?.length, 4);
  assert.match(svg, /refused: does not fit/);
  assert.match(svg, /not known yet/);
  assert.match(svg, /L1 misses, logarithmic: 1: 900, 4: 10/);
  assert.equal(svg.match(/d="M[^"]*"/)?.[0].match(/M/g)?.length, 2);
  assert.equal(drawChoices([{ label: "1" }], "time", 0, 400, "Time"), "");
});

test("the name of another form lies on no line", () => {
  const high = (/** @type {number[]} */ ...list) =>
    list.map((misses, n) => ({ label: String(n), misses }));
  const others = [{ label: "vectors of channels", choices: high(500, 500, 500) }];
  for (const mine of [high(500, 520, 540), high(900, 700, 500), high(0, 300, 560)]) {
    const svg = drawChoices(mine, "misses", 0, 400, "L1 misses", others);
    const low = Number(svg.match(/class="other" x="388" y="([\d.]+)"/)?.[1]);
    for (const [, d] of svg.matchAll(/<path class="\w+" d="M([^"]*)"/g)) {
      const points = d.split("L").map((point) => point.split(",").map(Number));
      for (let at = 388 - 100; at <= 388; at++) {
        const n = points.findIndex(([x]) => x >= at);
        const [[x0, y0], [x1, y1]] = [points[n - 1], points[n]];
        const y = y0 + ((y1 - y0) * (at - x0)) / (x1 - x0);
        assert.ok(y <= low - 9 || y >= low, `${y} in ${low}`);
      }
    }
  }
});

test("long words at the ends of a chart are not cut off", () => {
  const choices = [
    { label: "vectors of columns", misses: 900 },
    { label: "vectors of channels", misses: 10 },
  ];
  const svg = drawChoices(choices, "misses", 0, 400, "L1 misses");
  assert.match(svg, /<text x="0" y="\d+" text-anchor="start">vectors of columns/);
  assert.match(svg, /<text x="400" y="\d+" text-anchor="end">vectors of channels/);
});
