// What the view of a browser's GPU computes without one: inputs, comparisons, choices.

import assert from "node:assert/strict";
import { test } from "node:test";
import { find, nameOf, verdict } from "../../widgets/js/webgpu.js";
import { compare, half, inputs } from "../../widgets/js/webgpu_device.js";

test("inputs are the numbers of numpy", () => {
  assert.deepEqual(
    [...inputs("float32", 3, 1)],
    [-0.7578458786010742, 0.7927230596542358, -0.8372061252593994],
  );
  assert.deepEqual([...inputs("int32", 6, 2)], [1, 3, 7, 0, 6, 6]);
});

test("a float16 is read from its bits", () => {
  assert.deepEqual([0x3c00, 0xc000, 0x0001, 0x7c00, 0x3555].map(half), [
    1,
    -2,
    2 ** -24,
    Infinity,
    1365 / 4096,
  ]);
  assert.ok(Number.isNaN(half(0x7e00)));
});

test("elements are compared, and sums of those between", () => {
  const right = {
    scale: 4,
    tolerance: 1e-4,
    every: 2,
    values: [1, "nan"],
    group: 2,
    sums: [3, "nan"],
  };
  assert.equal(compare([1, 2, NaN, 4], right).fault, "");
  assert.match(compare([1.1, 2, NaN, 4], right).fault, /element 0 is 1.1 and should be 1/);
  assert.match(compare([1, 3, NaN, 4], right).fault, /sum of elements 0 to 1 is 4/);
  assert.match(compare([1, 2, 3, 4], right).fault, /element 2 is 3 and should be NaN/);
});

test("a choice finds its variant, or the nearest", () => {
  /** @type {[string, Record<string, number>][]} */
  const made = [
    ["a", {}],
    ["b", { tile: 8, inner: 1 }],
    ["b", { tile: 16, inner: 2 }],
  ];
  const variants = made.map(([name, picked]) => ({
    name,
    picked,
    error: "",
    buffers: [],
    kernels: [],
    launches: [],
    counts: [],
    seconds: null,
    note: "",
  }));
  assert.equal(find(variants, "a", { tile: 16 }), 0);
  assert.equal(find(variants, "b", { tile: 16, inner: 2 }), 2);
  assert.equal(find(variants, "b", {}), 1);
  assert.equal(nameOf(variants[2]), "b, tile 16, inner 2");
});

test("a verdict is in words", () => {
  const run = { variant: 0, device: "", seconds: 1, clock: "", fault: "", error: 0, failure: "" };
  assert.equal(verdict(run), "✓ equal");
  assert.equal(verdict({ ...run, fault: "x" }), "✗ wrong: x");
  assert.equal(verdict({ ...run, failure: "y" }), "failed: y");
});
