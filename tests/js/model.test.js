// What the views keep: the model of a page, what a viewer guessed, the words for a cost.

import assert from "node:assert/strict";
import { test } from "node:test";
import { change, facts, pythonOf, pythonUpTo } from "../../widgets/js/facts.js";
import { answersOf, score, speedOf } from "../../widgets/js/guess.js";
import { PageModel } from "../../widgets/js/page.js";

test("a page's model tells its listeners of what changed, once", () => {
  const model = new PageModel({ step: 1 });
  let heard = 0;
  const listener = () => heard++;
  model.on("change:step", listener);
  model.set("step", 1);
  assert.equal(heard, 0);
  model.set("step", 2);
  assert.deepEqual([heard, model.get("step")], [1, 2]);
  model.off("change:step", listener);
  model.set("step", 3);
  assert.equal(heard, 1);
});

test("a page's model says that nobody answers", () => {
  assert.equal(new PageModel({}).send.length, 0);
});

/** @returns {any} */
const recording = () => ({
  prelude: "sch = Schedule(mod)",
  programs: [{ cost: { time: 4e-3 } }, { cost: { time: 1e-3, equal: true } }, { cost: null }],
  steps: [
    { op: "start", python: "", before: 0, after: 0 },
    { op: "split", python: "sch.split(i)", lead: ["i = sch.get_loop()"], before: 0, after: 1 },
    { op: "fuse", python: "sch.fuse()", before: 1, after: 1, error: { message: "no" } },
    { op: "unroll", python: "sch.unroll()", before: 1, after: 2 },
  ],
});

test("what a step did to the time is told against the last one that was timed", () => {
  assert.equal(change(recording(), 0), null);
  assert.deepEqual(change(recording(), 1), { text: "4.00× faster", kind: "faster" });
  const data = recording();
  data.programs[2].cost = { time: 1.01e-3, spread: 0.05 };
  assert.deepEqual(change(data, 3), { text: "no change beyond noise", kind: "same" });
  data.programs[2].cost.time = 2e-3;
  assert.deepEqual(change(data, 3), { text: "2.00× slower than step 1", kind: "slower" });
});

test("the facts of a step", () => {
  assert.deepEqual(facts(recording(), 2), [
    { name: "Result", value: "refused: nothing changed", kind: "bad" },
  ]);
  assert.deepEqual(
    facts(recording(), 1).map(({ name }) => name),
    ["Time", "Change", "Result"],
  );
  assert.equal(facts(recording(), 3)[0].value, "not measured");
});

test("the Python of a schedule has what was refused as a comment", () => {
  assert.equal(
    pythonUpTo(recording(), 2),
    "sch = Schedule(mod)\ni = sch.get_loop()\nsch.split(i)\n# refused: sch.fuse()",
  );
  assert.equal(pythonOf("", recording().steps.slice(0, 1)), "");
});

test("guesses are counted, and speed only where it was asked", () => {
  const data = recording();
  assert.deepEqual(answersOf(data, 1), { legal: "legal", speed: "faster" });
  assert.deepEqual(answersOf(data, 2), { legal: "refused", speed: null });
  assert.equal(speedOf(data, 3), null);
  const given = {
    1: { legal: "legal", speed: "slower" },
    2: { legal: "refused", speed: null },
    9: { legal: "legal", speed: null },
  };
  assert.deepEqual(score(data, given), { right: 2, asked: 3 });
});
