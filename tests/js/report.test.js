// The report of a class: how points are counted in fifths, and which lines two texts share.

import assert from "node:assert/strict";
import test from "node:test";

import { lineDiff } from "../../widgets/js/line_diff.js";
import { bins } from "../../widgets/js/report.js";

test("points are counted in fifths", () => {
  const answers = [0, 1, 4, 5, 5].map((points) => ({ points }));
  assert.deepEqual(bins(answers, 5), [1, 1, 0, 0, 3]);
  assert.deepEqual(bins([{ points: 0 }], 0), [1, 0, 0, 0, 0]);
});

test("lines that both have, in the same order, are kept", () => {
  assert.deepEqual(lineDiff(["a", "b", "c"], ["a", "x", "c", "y"]), [
    [true, false, true],
    [true, false, true, false],
  ]);
  assert.deepEqual(lineDiff([], ["a"]), [[], [false]]);
});
