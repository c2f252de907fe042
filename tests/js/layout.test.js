// Where things stand: scales, grids, trees, nests, memory over time, charts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { reuseBins } from "../../widgets/js/access_chart.js";
import { gridOf } from "../../widgets/js/access_grid.js";
import { drawChart } from "../../widgets/js/chart.js";
import { curve } from "../../widgets/js/graph.js";
import { placesOf } from "../../widgets/js/machine.js";
import { drawNest, drawNests, nestOf } from "../../widgets/js/nest.js";
import {
  bytesByLevel,
  drawRoofline,
  rooflinePoints,
  saidOfAbove,
} from "../../widgets/js/roofline.js";
import { linear, logarithmic, marksOf, powersOfTen, scaleOf } from "../../widgets/js/scale.js";
import { layoutTree } from "../../widgets/js/tree.js";

test("a linear scale is even and its ticks are round", () => {
  const scale = scaleOf(0, 100, 0, 500);
  assert.equal(scale.at(0), 0);
  assert.equal(scale.at(50), 250);
  assert.deepEqual(
    scale.ticks.map(([value]) => value),
    [0, 20, 40, 60, 80, 100],
  );
});

test("scales run both ways, and decades are the powers of ten within a range", () => {
  assert.equal(linear(0, 10, 100, 0)(2.5), 75);
  assert.ok(Math.abs(logarithmic(1, 100, 0, 10)(10) - 5) < 1e-12);
  assert.deepEqual(powersOfTen(0.005, 1000), [0.01, 0.1, 1, 10, 100, 1000]);
  assert.deepEqual(powersOfTen(2, 9), []);
  assert.deepEqual(marksOf(0.005, 1000), [0.01, 0.1, 1, 10, 100, 1000]);
  assert.deepEqual(marksOf(26, 518), [30, 50, 100, 200, 300, 500]);
  for (let low = 0.001; low < 1000; low *= 1.07) assert.ok(marksOf(low, 4 * low).length > 1);
});

test("a logarithmic scale gives each decade the same room", () => {
  const scale = scaleOf(1e-6, 1e-3, 300, 0, { log: true });
  assert.ok(Math.abs(scale.at(1e-5) - 200) < 1e-9);
  for (const [value] of scale.ticks) assert.ok(value >= 0.999e-6 && value <= 1.001e-3);
});

test("a scale of one value has room around it, and whole numbers stay whole", () => {
  assert.ok(scaleOf(5, 5, 0, 100).at(5) === 50);
  const scale = scaleOf(0, 3, 0, 100, { whole: true, text: String });
  assert.deepEqual(
    scale.ticks.map(([, text]) => text),
    ["0", "1", "2", "3"],
  );
});

test("the elements of a buffer have a cell each", () => {
  for (const dims of [
    [],
    [7],
    [128],
    [100],
    [6, 5],
    [2, 3, 4],
    [16, 42, 42],
    [65536],
    [2, 3, 4, 5],
    [1024, 16],
    [1021, 16],
    [1000, 1],
  ]) {
    const grid = gridOf(dims);
    const cells = new Set();
    for (let e = 0; e < grid.count; e++) {
      assert.ok(grid.row(e) < grid.rows && grid.column(e) < grid.columns, `${dims}: ${e}`);
      cells.add(`${grid.row(e)},${grid.column(e)}`);
    }
    assert.equal(cells.size, grid.count, String(dims));
  }
});

test("four dimensions are a matrix of tiles", () => {
  const grid = gridOf([2, 2, 3, 4]);
  assert.deepEqual([grid.rows, grid.columns, grid.tall, grid.wide], [6, 8, 3, 4]);
  assert.deepEqual([grid.row(12), grid.column(12)], [0, 4]);
});

test("what would be a high column is about square", () => {
  for (const [dims, rows, columns] of /** @type {[number[], number, number][]} */ ([
    [[16, 42, 42], 168, 168],
    [[17, 42, 42], 714, 42], // a prime number of them
    [[2, 42, 42], 84, 42],
    [[65536], 256, 256],
    [[4096], 64, 64],
    [[1024, 16], 128, 128],
    [[1021, 16], 128, 128], // the last strip is shorter
    [[256, 16], 256, 16],
  ])) {
    const grid = gridOf(dims);
    assert.deepEqual([grid.rows, grid.columns], [rows, columns]);
  }
});

test("rows that are full have an element in each column", () => {
  for (const [dims, full] of /** @type {[number[], number][]} */ ([
    [[100], 10],
    [[70], 7],
    [[1024, 16], 128],
    [[1021, 16], 125],
    [[6, 5], 6],
  ])) {
    const grid = gridOf(dims);
    const cells = Array(grid.rows).fill(0);
    for (let e = 0; e < grid.count; e++) cells[grid.row(e)] += 1;
    assert.equal(grid.full, full, String(dims));
    assert.ok(cells.every((n, row) => (n === grid.columns) === row < full));
  }
});

test("in a tree of attempts branches never share a place", () => {
  const parents = [null, 0, 1, 1, 0, 4, 4];
  const nodes = parents.map((parent, id) => ({
    id,
    parent,
    op: "split",
    python: "",
    lead: [],
    program: 0,
    error: id === 1 ? { message: "no" } : null,
  }));
  const { places, rows } = layoutTree(nodes);
  assert.equal(new Set(places.map(({ column, row }) => `${column},${row}`)).size, nodes.length);
  assert.deepEqual(places[0], { column: 0, row: 0 });
  // The first child that was not refused goes on in its parent's row.
  assert.equal(places[4].row, 0);
  assert.equal(rows, 1 + Math.max(...places.map(({ row }) => row)));
});

test("memory that lives at the same time does not overlap, and what was freed is used again", () => {
  const storages = [
    { from: 0, to: 4, size: 100 },
    { from: 1, to: 3, size: 50 },
    { from: 3, to: 6, size: 40 },
    { from: 4, to: 6, size: 90 },
  ];
  const places = placesOf(storages);
  for (const a of places) {
    for (const b of places) {
      if (a === b || a.to <= b.from || b.to <= a.from) continue;
      assert.ok(a.at + a.size <= b.at || b.at + b.size <= a.at);
    }
  }
  assert.deepEqual(
    places.map(({ at }) => at),
    [0, 100, 100, 0],
  );
});

/** @type {Data.Line[]} */
const PROGRAM = [
  {
    text: "for i, j in T.grid(8, 4):",
    indent: 0,
    keys: [0, 1],
    parts: [
      ["loop", "i", "8", "serial", ""],
      ["loop", "j", "4", "vectorized", ""],
    ],
  },
  { text: 'with T.block("Y"):', indent: 4, keys: [2], parts: [["block", "Y"]] },
  {
    text: 'vi, vj = T.axis.remap("SR", [i, j])',
    indent: 8,
    keys: [3, 4],
    parts: [
      ["iterator", "vi", "spatial", "i", "8"],
      ["iterator", "vj", "reduce", "j", "4"],
    ],
  },
  { text: "T.reads(A[vi, vj])", indent: 8, keys: [5], parts: [["reads", "A[vi, vj]"]] },
  { text: "Y[vi] = Y[vi] + A[vi, vj]", indent: 8, keys: [6], parts: [] },
];

test("a program is a nest of loops around its blocks", () => {
  const [outer] = nestOf(PROGRAM).children;
  const [inner] = outer.children;
  const [block] = inner.children;
  assert.deepEqual([outer.head, inner.head, block.head], ["i : 8", "j : 4", "Y"]);
  assert.deepEqual([outer.note, inner.note], ["", "vectorized"]);
  assert.deepEqual(
    block.rows.map(({ text, role }) => [text, role]),
    [
      ["vi = i", "spatial"],
      ["vj = j", "reduce"],
      ["A[vi, vj]", "reads"],
    ],
  );
  assert.deepEqual(
    block.children.map(({ kind, line }) => [kind, line]),
    [["text", 4]],
  );
});

test("boxes of a nest lie within the drawing, from top to bottom", () => {
  const drawing = drawNest(nestOf(PROGRAM));
  let last = 0;
  for (const { y, h } of drawing.items) {
    assert.ok(y >= last && y + h <= drawing.height);
    last = y;
  }
  assert.equal(drawing.items.length, 7);
});

test("a loop that shares its line with another is marked for itself", () => {
  const before = PROGRAM;
  /** @type {Data.Line[]} */
  const after = [
    { ...PROGRAM[0], parts: [PROGRAM[0].parts[0], ["loop", "j", "2", "vectorized", ""]] },
    ...PROGRAM.slice(1),
  ];
  /** @type {Map<number, Data.Mark>} */
  const marks = new Map([[0, "changed"]]);
  const [, right] = drawNests(before, after, [marks, marks]);
  assert.deepEqual(
    right.items.slice(0, 2).map(({ mark }) => mark),
    ["", "changed"],
  );
});

/** @returns {any} */
const recording = () => ({
  machine: { peak_gflops: 100, bandwidth: { L1: 400, memory: 20 } },
  programs: [4, 2, 2].map((time, i) => ({
    cost: {
      time,
      gflops: 10 / time,
      counts: {
        flops: 1e9,
        bytes_read: 3e9,
        bytes_written: 1e9,
        levels: [{ name: "L1", lookups: 10, misses: 5, bytes_in: 3e8 * (i + 1), bytes_out: 1e8 }],
      },
    },
  })),
  steps: [0, 1, 1, 2].map((after) => ({ op: "split", after, error: null })),
});

test("each level carries the bytes of the one that misses into it", () => {
  assert.deepEqual(bytesByLevel(recording().programs[0].cost.counts), { L1: 4e9, memory: 4e8 });
});

test("a program is one point of the roofline, with all the steps that lead to it", () => {
  const points = rooflinePoints(recording(), "memory");
  assert.deepEqual(
    points.map(({ steps }) => steps),
    [[0], [1, 2], [3]],
  );
  assert.equal(points[0].intensity, 2.5);
  const svg = drawRoofline(recording(), "memory", 1, 600);
  assert.equal(svg.match(/class="point/g)?.length, 3);
  assert.equal(svg.match(/NaN|undefined/), null);
  assert.equal(drawRoofline({ ...recording(), machine: {} }, "memory", 1, 600), "");
});

test("a program that is not timed yet stands where it is across, under its roof", () => {
  const place = (/** @type {any} */ data) =>
    drawRoofline(data, "memory", 3, 600)
      .match(/class="point current( untimed)?".*?cx="([^"]*)" cy="([^"]*)"/)
      ?.slice(1);
  const timed = recording();
  timed.programs[2].cost.gflops = 20; // on the roof of memory, at one operation a byte
  const waits = recording();
  Object.assign(waits.programs[2].cost, { gflops: Infinity, untimed: true, time: undefined });
  const [mark, x, y] = place(waits) ?? [];
  assert.equal(mark, " untimed");
  assert.deepEqual([undefined, x, y], place(timed));
  waits.programs[2].cost.gflops = 2.5; // as fast as the one before
  assert.deepEqual([" untimed", x], place(waits)?.slice(0, 2));
  assert.notEqual(place(waits)?.[2], y);
  assert.match(drawRoofline(waits, "memory", 3, 600), /not timed yet, 1.00 operations a byte/);
});

test("points above the peak lie within the roofline", () => {
  const slow = { ...recording(), machine: { peak_gflops: 0.5, bandwidth: { memory: 20 } } };
  const svg = drawRoofline(slow, "memory", 1, 600);
  const heights = [...svg.matchAll(/<circle class="halo"[^>]*cy="([^"]*)"/g)].map((m) =>
    Number(m[1]),
  );
  assert.equal(heights.length, 3);
  assert.ok(heights.every((y) => y > 0));
  assert.match(svg, /<p class="note">Above the peak: it was measured while the machine was busy/);
});

test("a point above a roof says why, and one below it nothing", () => {
  const point = (/** @type {number} */ gflops) => [{ gflops, intensity: 2 }];
  assert.equal(saidOfAbove(point(39), 100, 20), "");
  assert.match(saidOfAbove(point(50), 100, 20), /^Above its roof/);
  assert.match(saidOfAbove(point(120), 100, 20), /^Above the peak/);
});

test("the chart of times has a point a step and a line over those that were timed", () => {
  const points = [1e-3, null, 1e-4].map((time, i) => ({
    time,
    refused: i === 1,
    wrong: false,
    idle: false,
    label: `step ${i} <`,
  }));
  const svg = drawChart(points, 1e-5, 2, 400);
  assert.equal(svg.match(/data-step/g)?.length, 3);
  assert.equal(svg.match(/<polyline[^>]*points="([^"]*)"/)?.[1].split(" ").length, 2);
  assert.ok(svg.includes("step 0 &lt;") && !svg.includes("NaN"));
  assert.equal(drawChart([{ ...points[1] }], null, 0, 400), "");
});

test("uses of a line are counted by powers of two of their distance", () => {
  /** @type {any} */
  const result = {
    names: ["L1", "memory"],
    reuse: [-1, 0, 1, 2, 3, 9],
    found: [1, 0, 0, 0, 0, 1],
  };
  assert.deepEqual(
    reuseBins(result).map(({ from, to, found }) => [from, to, ...found]),
    [
      [0, 0, 1, 0],
      [1, 1, 1, 0],
      [2, 3, 2, 0],
      [4, 7, 0, 0],
      [8, 15, 0, 1],
      [-1, -1, 0, 1],
    ],
  );
});

test("an edge goes through its points", () => {
  assert.equal(
    curve([
      [0, 0],
      [10, 20],
    ]),
    "M0,0C0,10 10,10 10,20",
  );
});
