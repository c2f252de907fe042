// Lines of two programs aligned by what they stand for, and what came from what.

import assert from "node:assert/strict";
import { test } from "node:test";
import { align, changedWords, folds, heaviestChain } from "../../widgets/js/diff.js";
import { Lineage } from "../../widgets/js/lineage.js";
import { marksOf, Programs } from "../../widgets/js/program.js";

const line = (/** @type {string} */ text, /** @type {number[]} */ ...keys) => ({ text, keys });

test("the heaviest chain rises on both sides", () => {
  assert.deepEqual(
    heaviestChain(
      [
        [0, 2, 1],
        [1, 0, 1],
        [2, 1, 1],
        [3, 3, 5],
      ],
      4,
    ).map(([a, b]) => [a, b]),
    [
      [1, 0],
      [2, 1],
      [3, 3],
    ],
  );
  assert.deepEqual(heaviestChain([], 0), []);
});

test("equal programs have no marks", () => {
  const program = [line("for i in range(8):", 1), line("A[i] = 0", 2)];
  assert.deepEqual(align(program, program), [
    { left: 0, right: 0, leftMark: "", rightMark: "" },
    { left: 1, right: 1, leftMark: "", rightMark: "" },
  ]);
});

test("a line is known by its key and not by its text", () => {
  const before = [line("for i in range(8):", 1), line("x", 2)];
  const after = [line("for i in T.parallel(8):", 1), line("x", 2)];
  assert.deepEqual(align(before, after)[0], {
    left: 0,
    right: 0,
    leftMark: "changed",
    rightMark: "changed",
  });
  const other = [line("for i in range(8):", 9), line("x", 2)];
  const marks = align(before, other).flatMap((row) => [row.leftMark, row.rightMark]);
  assert.ok(marks.includes("removed") && marks.includes("new"));
});

test("a line that changed places is moved, not removed and new", () => {
  const before = [line("a", 1), line("b", 2), line("c", 3)];
  const after = [line("c", 3), line("a", 1), line("b", 2)];
  const rows = align(before, after);
  assert.deepEqual(
    rows.filter((row) => row.rightMark).map((row) => [row.right, row.rightMark]),
    [[0, "moved"]],
  );
  assert.deepEqual(
    rows.filter((row) => row.leftMark).map((row) => [row.left, row.leftMark]),
    [[2, "moved"]],
  );
});

test("each line stands in one row, in order", () => {
  const texts = "abcdefgh".split("");
  const before = texts.map((text, i) => line(text, i));
  const after = [...before.slice(4), line("new", 99), ...before.slice(0, 3)];
  const rows = align(before, after);
  const left = rows.map((row) => row.left).filter((n) => n >= 0);
  const right = rows.map((row) => row.right).filter((n) => n >= 0);
  assert.deepEqual(left, [...before.keys()]);
  assert.deepEqual(right, [...after.keys()]);
});

test("changed words of a line", () => {
  assert.deepEqual(changedWords(["for", "i", "in", "range"], ["for", "j", "in", "range"]), [
    [false, true, false, false],
    [false, true, false, false],
  ]);
});

test("long unchanged runs are folded, but for the lines around a change", () => {
  /** @type {Data.Row[]} */
  const rows = Array.from({ length: 40 }, (_, i) => ({
    left: i,
    right: i,
    leftMark: "",
    rightMark: i === 20 ? "changed" : "",
  }));
  assert.deepEqual(folds(rows), [
    [0, 16],
    [24, 39],
  ]);
  assert.deepEqual(folds(rows.slice(0, 10)), []);
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
