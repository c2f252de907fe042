import assert from "node:assert/strict";
import { test } from "node:test";
import { parts } from "../../widgets/js/prose.js";

test("a text has numbers where it names them", () => {
  assert.deepEqual(parts("A tile of {live:tile} columns"), ["A tile of ", ["tile"], " columns"]);
  assert.deepEqual(parts("{live: part of the sum }{live:b}"), [["part of the sum"], ["b"]]);
  assert.deepEqual(parts("{live:} and {x:y}"), ["{live:} and {x:y}"]);
  assert.deepEqual(parts(""), []);
});
