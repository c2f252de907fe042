// Lines of two programs aligned by what they stand for, and what came from what.

import assert from "node:assert/strict";
import { test } from "node:test";
import { changedWords, folds, numbersOf, rows } from "../../widgets/js/diff.js";
import { Lineage } from "../../widgets/js/lineage.js";
import { marksOf, Programs } from "../../widgets/js/program.js";

const line = (/** @type {string} */ text, /** @type {number[]} */ ...keys) => ({ text, keys });

test("runs stand for the numbers in them", () => {
  assert.deepEqual(numbersOf([0, 2, 5, 3]), [0, 1, 5, 6, 7]);
  assert.deepEqual(numbersOf([]), []);
});

test("lines that share a slot face each other, the others are marked by what they stand for", () => {
  const before = [line("a", 1), line("b", 2), line("c", 3), line("d", 4)];
  const after = [line("c", 3), line("a!", 1), line("new", 9), line("b", 2)];
  const found = rows(before, after, [
    [1, 3, 4, 5],
    [0, 1, 2, 3],
  ]);
  assert.deepEqual(found, [
    { left: -1, right: 0, leftMark: "", rightMark: "moved" },
    { left: 0, right: 1, leftMark: "changed", rightMark: "changed" },
    { left: -1, right: 2, leftMark: "", rightMark: "new" },
    { left: 1, right: 3, leftMark: "", rightMark: "" },
    { left: 2, right: -1, leftMark: "moved", rightMark: "" },
    { left: 3, right: -1, leftMark: "removed", rightMark: "" },
  ]);
});

test("changed words of a line", () => {
  assert.deepEqual(changedWords(["for", "i", "in", "range"], ["for", "j", "in", "range"]), [
    [false, true, false, false],
    [false, true, false, false],
  ]);
});

test("long unchanged runs are folded, but for the lines around a change", () => {
  /** @type {Data.Row[]} */
  const forty = Array.from({ length: 40 }, (_, i) => ({
    left: i,
    right: i,
    leftMark: "",
    rightMark: i === 20 ? "changed" : "",
  }));
  assert.deepEqual(folds(forty), [
    [0, 16],
    [24, 39],
  ]);
  assert.deepEqual(folds(forty.slice(0, 10)), []);
});

/**
 * i is split into i_0 and i_1, and then i_1 is unrolled.
 * @returns {any}
 */
const recording = () => ({
  keys: [
    ["loop", "i"],
    ["loop", "i_0"],
    ["loop", "i_1"],
    ["statement", ""],
  ],
  lines: [
    ["for i in range(8):", [0]],
    ["    A[i] = 0", [3]],
    ["for i_0, i_1 in T.grid(4, 2):", [1, 2]],
    ["    A[i_0 * 2 + i_1] = 0", [3]],
  ],
  parts: [
    [["loop", "i", "8", "serial", ""]],
    [],
    [
      ["loop", "i_0", "4", "serial", ""],
      ["loop", "i_1", "2", "serial", ""],
    ],
    [],
  ],
  slots: [
    [0, 1, 2, 1],
    [1, 2],
  ],
  programs: [
    { lines: [0, 1], cost: null },
    { lines: [2, 3], cost: null },
  ],
  steps: [
    { op: "start", python: "", before: 0, after: 0 },
    {
      op: "split",
      python: "",
      before: 0,
      after: 1,
      origins: [
        [1, [0]],
        [2, [0]],
      ],
    },
    { op: "annotate", python: "", before: 1, after: 1 },
  ],
});

test("what a step made is found from what it came from, and the other way", () => {
  const data = recording();
  const lineage = new Lineage(data, new Programs(data));
  assert.deepEqual(lineage.before(1, 2), new Set([0]));
  assert.deepEqual(lineage.after(1, 0), new Set([1, 2]));
  assert.deepEqual(lineage.related(1, "before", [0]).after, new Set([1, 2]));
  assert.deepEqual(lineage.between(0, 2, "after", [1]).before, new Set([0]));
  assert.deepEqual(lineage.history(2, "after", 1), [
    { step: 0, keys: [0] },
    { step: 1, keys: [1] },
  ]);
});

test("a name in the text is the thing of that name that can be seen there", () => {
  const data = recording();
  const lineage = new Lineage(data, new Programs(data));
  assert.equal(lineage.resolve(1, 1, "i_1"), 2);
  assert.equal(lineage.resolve(1, 1, "i"), null);
  assert.deepEqual(lineage.symbols(1, 1), [1, 2]);
  assert.equal(lineage.nameIn(1, 2), "i_1");
});

test("rows are folded, opened and counted", () => {
  const data = recording();
  const programs = new Programs(data);
  assert.deepEqual(programs.counts(0, 1), { new: 1, removed: 1, changed: 1, moved: 0 });
  assert.deepEqual(marksOf(programs, 0, 1, "after").get(0), "new");
  assert.ok(programs.shownRows(0, 1, new Set()).every((row) => row.fold === undefined));
});
