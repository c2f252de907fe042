// What a warp asks of memory, as the view of threads adds it up.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  banksOf,
  elements,
  inWords,
  lifting,
  nearest,
  ranges,
  sectorsOf,
  turns,
} from "../../widgets/js/threads_memory.js";

const all = Array.from({ length: 32 }, (_, n) => n);

/**
 * A recording of one access.
 * @param {(number | null)[]} lanes
 * @param {Record<string, any>} more
 * @returns {any}
 */
function recording(lanes, more = {}) {
  const { scope = "global", nbytes = 4, itemsize = 4, base = 256, shift = 0, asked = 1 } = more;
  return {
    warp: 32,
    buffers: [{ name: "A", scope, dtype: "float32", itemsize, size: 4096, base }],
    sites: [{ buffer: 0, text: "A[t]", statement: "B[t] = A[t]", write: false, nbytes }],
    lanes: [lanes],
    events: [[0, 0, shift, [asked]], [-1]],
  };
}

test("neighbours fill four sectors", () => {
  const found = sectorsOf(recording(all), 0, 0);
  assert.deepEqual(
    found.map(({ first, used }) => [first, used]),
    [
      [0, 32],
      [8, 32],
      [16, 32],
      [24, 32],
    ],
  );
  assert.match(inWords(recording(all), 0, 0), /4 sectors, 128 of 128 bytes used \(100 %\)/);
});

test("a stride leaves most of each sector unused", () => {
  const strided = recording(all.map((n) => n * 8));
  const found = sectorsOf(strided, 0, 0);
  assert.equal(found.length, 32);
  assert.ok(found.every(({ used }) => used === 4));
  assert.match(inWords(strided, 0, 0), /128 of 1024 bytes used \(13 %\)/);
});

test("a shift moves elements, and lanes that take no part ask for nothing", () => {
  const half = recording(
    all.map((n) => (n < 4 ? n : null)),
    { shift: 6 },
  );
  assert.deepEqual(elements(half, 0, 0).slice(0, 5), [6, 7, 8, 9, null]);
  const found = sectorsOf(half, 0, 0);
  assert.deepEqual(
    found.map(({ used }) => used),
    [8, 8],
  );
  assert.match(inWords(half, 0, 0), /4 of 32 lanes/);
});

test("lanes that want one word share it, and others in its bank come later", () => {
  const shared = { scope: "shared", base: 0, asked: 2 };
  const clash = recording(
    all.map((n) => n * 2),
    shared,
  );
  const banks = banksOf(clash, 0, 0);
  assert.deepEqual([turns(banks[0]), turns(banks[1])], [2, 0]);
  assert.match(inWords(clash, 0, 0), /2 passes over the banks, because a bank is asked for 2/);
  const same = recording(
    all.map(() => 5),
    { ...shared, asked: 1 },
  );
  assert.equal(turns(banksOf(same, 0, 0)[5]), 1);
  assert.match(inWords(same, 0, 0), /1 pass over the banks, no conflict/);
});

test("lanes of 16 bytes are served in four parts", () => {
  const wide = recording(
    all.map((n) => n * 4),
    { scope: "shared", base: 0, nbytes: 16, asked: 4 },
  );
  assert.ok(banksOf(wide, 0, 0).every((bank) => bank.length === 4 && turns(bank) === 1));
  assert.match(inWords(wide, 0, 0), /4 passes over the banks, no conflict/);
});

test("a barrier, ranges and the nearest row", () => {
  assert.match(inWords(recording(all), 1, 0), /^Barrier/);
  assert.equal(ranges([0, 1, 2, 5, 8, 9]), "0-2, 5, 8-9");
  assert.equal(ranges([]), "");
  const row = (/** @type {number} */ n) => /** @type {any} */ ([n, 1, 1, "warps"]);
  assert.equal(nearest([row(16), row(24), row(40)], 30)[0], 24);
  const rows = /** @type {any} */ ([
    [16, 4, 32, "warps"],
    [40, 2, 16, "registers"],
  ]);
  assert.equal(lifting(rows, 40, 16)?.[0], 16);
  assert.equal(lifting(rows, 40, 32), undefined);
});
