import assert from "node:assert/strict";
import test from "node:test";

import { loopsOf } from "../../widgets/js/live_nest.js";

/** @type {Data.Knob} */
const knob = {
  name: "order",
  text: "",
  start: [0, 1, 2],
  labels: ["i", "j", "k"],
  where: "C",
  kind: "order",
};

test("the loops of an order are those around its block", () => {
  /** @type {Data.NestRow[]} */
  const rows = [
    [0, "loop", "i : 8", "serial"],
    [1, "loop", "j : 8", "serial"],
    [2, "block", "A", "serial"],
    [1, "loop", "k : 4", "serial"],
    [2, "loop", "j : 8", "vectorized"],
    [3, "block", "C_update", "serial"],
    [4, "text", "C[0] = 1", "serial"],
  ];
  assert.deepEqual([...loopsOf(rows, knob)], [[0, 0], [3, 2], [4, 1]]); // prettier-ignore
});

test("of two blocks with the same loops it is the one that the order was said of", () => {
  /** @type {Data.NestRow[]} */
  const rows = [
    [0, "loop", "i : 8", "serial"],
    [1, "loop", "j : 8", "serial"],
    [2, "block", "D", "serial"],
    [0, "loop", "i : 8", "serial"],
    [1, "loop", "j : 8", "serial"],
    [2, "block", "C", "serial"],
  ];
  assert.deepEqual([...loopsOf(rows, knob).keys()], [3, 4]);
  assert.deepEqual([...loopsOf([...rows.slice(3), ...rows.slice(0, 3)], knob).keys()], [0, 1]);
});

test("a single loop has no other place", () => {
  assert.equal(loopsOf([[0, "loop", "i : 8", "serial"], [1, "block", "C", ""]], knob).size, 0); // prettier-ignore
});
