// What the card of an exercise makes of its data.

import assert from "node:assert/strict";
import { test } from "node:test";
import { moved, setOut } from "../../widgets/js/card.js";

test("a thing of a list is moved, but not past the ends", () => {
  assert.deepEqual(moved(["a", "b"], 1, -1), ["b", "a"]);
  assert.deepEqual(moved(["a", "b"], 0, -1), ["a", "b"]);
});

test("a part of a program begins at the left, and its marks stay under what they mark", () => {
  assert.equal(setOut("...\n      a = 1\n        b\n      ^\n..."), "...\na = 1\n  b\n^\n...");
  assert.equal(setOut("a\n  b"), "a\n  b");
  assert.equal(setOut(""), "");
});
