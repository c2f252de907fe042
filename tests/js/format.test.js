// Numbers, times and texts as the views write them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { amount, countFacts } from "../../widgets/js/counts.js";
import {
  bytesText,
  digits,
  duration,
  escapeHTML,
  percent,
  small,
  spreadOf,
  sure,
} from "../../widgets/js/dom.js";
import { codeTokens, tokens } from "../../widgets/js/highlight.js";
import { splitPreview } from "../../widgets/js/palette.js";

test("three digits stand for a number", () => {
  assert.deepEqual([0, 1234.4, 99.96, 12.34, 1.234, 0.1234].map(digits), [
    "0",
    "1234",
    "100.0",
    "12.3",
    "1.23",
    "0.123",
  ]);
  assert.equal(digits(-12.34), "-12.3");
});

test("a time has the unit that suits it, and does not read 1000 of the one below", () => {
  assert.deepEqual([2, 0.0123, 4.56e-6, 7.8e-9, 0.9999, 0.99951].map(duration), [
    "2.00 s",
    "12.3 ms",
    "4.56 µs",
    "7.80 ns",
    "1.000 s",
    "1.000 s",
  ]);
});

test("fractions and small errors", () => {
  assert.deepEqual([0, 0.00001, 0.0004, 0.047, 0.47].map(percent), [
    "0 %",
    "< 0.01 %",
    "0.04 %",
    "4.7 %",
    "47 %",
  ]);
  assert.deepEqual([0, 2.4e-7, 0.5].map(small), ["0", "2.4e-7", "0.500"]);
});

test("counts and sizes", () => {
  assert.deepEqual([999, 12345, 134.5e6, 2e9, 3e12].map(amount), [
    "999",
    "12.3 k",
    "135 M",
    "2.00 G",
    "3.00 T",
  ]);
  assert.deepEqual([null, 12, 36864, 4e6, 2.5e9].map(bytesText), [
    "unknown",
    "12 B",
    "36.9 kB",
    "4 MB",
    "2.5 GB",
  ]);
});

test("a number of bytes is apart from its unit among the counts", () => {
  const cost = {
    counts: { levels: [{ name: "L1", misses: 48, lookups: 96, bytes_in: 3072, bytes_out: 0 }] },
  };
  const found = countFacts(/** @type {any} */ (cost));
  assert.equal(found.find(({ name }) => name === "From memory")?.value, "3.07 kB");
});

test("text cannot become elements", () => {
  assert.equal(escapeHTML('<a b="c">&'), "&lt;a b=&quot;c&quot;&gt;&amp;");
});

test("what is missing is told", () => {
  assert.equal(sure(0), 0);
  assert.throws(() => sure(new Map().get("x")), /missing/);
});

test("why there are no counts is told in their place", () => {
  assert.deepEqual(countFacts(null), []);
  /** @type {any} */
  const cost = { counts: { message: "too long" } };
  assert.deepEqual(countFacts(cost), [{ name: "Cache misses", value: "too long", kind: "none" }]);
});

for (const line of [
  'for i, j in T.grid(128, 64):  # a "comment"',
  '    with T.block("Y\\"s"): pass',
  "@T.prim_func",
  "C[vi] = A[vi] * T.float32(1.5e-3) - 0x1F",
]) {
  test(`the tokens of ${line} are the line`, () => {
    assert.equal(
      tokens(line)
        .map(([, text]) => text)
        .join(""),
      line,
    );
  });
}

test("tokens have the classes of the style", () => {
  assert.deepEqual(tokens("for i in T.serial(8):"), [
    ["keyword", "for"],
    ["", " "],
    ["name", "i"],
    ["", " "],
    ["keyword", "in"],
    ["", " "],
    ["builtin", "T.serial"],
    ["op", "("],
    ["number", "8"],
    ["op", ")"],
    ["op", ":"],
  ]);
  const [head, , register] = codeTokens("vmovaps %ymm0, (%rax)");
  assert.deepEqual(head, ["keyword", "vmovaps"]);
  assert.deepEqual(register, ["builtin", "%ymm0"]);
  assert.deepEqual(codeTokens("// 2 registers"), [["comment", "// 2 registers"]]);
});

test("how a loop comes apart is told before it does", () => {
  assert.equal(splitPreview("i", 128, [null, 8]), "128 → 16 × 8");
  assert.match(splitPreview("i", 100, [null, 8]), /^100 → 13 × 8 = 104: the last 4 iterations/);
  assert.match(splitPreview("i", 100, [4, 8]), /68 iterations would be lost$/);
  assert.equal(splitPreview("i", null, [null, 8]), "i_0 (the rest), i_1 (8)");
  assert.match(splitPreview("i", 128, [null, 0]), /whole number/);
});

test("times that lie far apart are unsteady, not plus or minus more than they are", () => {
  assert.deepEqual([null, undefined, 0.02, 0.51, 8.14].map(spreadOf), [
    "",
    "",
    " ± 2.0 %",
    " ± 51 %",
    ", unsteady",
  ]);
});
