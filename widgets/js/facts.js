// What a step cost, in words, and the Python of a schedule: what several views say of a step.

import { digits, duration, ofPeak, small, spreadOf } from "./dom.js";
import { gpuFacts } from "./gpu_counts.js";
import { t } from "./words.js";

/**
 * The measurement that belongs to the program a step leads to, or null.
 * @param {Data.Recording} recording
 * @param {Data.Step} step
 * @returns {Data.Cost | null}
 */
export const costOf = (recording, step) =>
  step.error ? null : recording.programs[step.after].cost || null;

/**
 * Index of the last step before `at`, from `first` on, that has a time, or -1.
 * @param {Data.Recording} recording
 * @param {number} at
 */
function previousTimed(recording, at, first = 0) {
  for (let i = at - 1; i >= first; i--) {
    const cost = costOf(recording, recording.steps[i]);
    if (cost && cost.time) return i;
  }
  return -1;
}

/**
 * What a step changed in time, in words: { text, kind } or null.
 * @param {Data.Recording} recording
 * @param {number} at
 * @returns {{ text: string, kind: string } | null}
 */
export function change(recording, at, first = 0) {
  const cost = costOf(recording, recording.steps[at]);
  const from = previousTimed(recording, at, first);
  if (!cost || !cost.time || from < 0) return null;
  const before = /** @type {Data.Cost & { time: number }} */ (
    costOf(recording, recording.steps[from])
  );
  const ratio = before.time / cost.time;
  const noise = 1 + (before.spread || 0) + (cost.spread || 0);
  const against = from === at - 1 ? "" : t(" than step {at}", { at: from - first });
  if (ratio < noise && 1 / ratio < noise)
    return { text: t("no change beyond noise"), kind: "same" };
  if (ratio > 1)
    return {
      text: t("{ratio}× faster{against}", { ratio: digits(ratio), against }),
      kind: "faster",
    };
  return {
    text: t("{ratio}× slower{against}", { ratio: digits(1 / ratio), against }),
    kind: "slower",
  };
}

/**
 * The facts of a step's cost: [{ name, value, kind, title }]; its schedule starts at `first`.
 * @param {Data.Recording} recording
 * @param {number} at
 * @returns {Data.Fact[]}
 */
export function facts(recording, at, first = 0) {
  const step = recording.steps[at];
  const cost = costOf(recording, step);
  if (step.error) return [{ name: t("Result"), value: t("refused: nothing changed"), kind: "bad" }];
  if (!cost) return [{ name: t("Time"), value: t("not measured"), kind: "none" }];
  if (cost.gpu && !cost.time) return gpuFacts(recording, at);
  const found = [];
  if (cost.time) {
    const title = t("median of {runs} runs; half of them lie within the spread", {
      runs: cost.runs,
    });
    found.push({ name: t("Time"), value: duration(cost.time) + spreadOf(cost.spread), title });
    const step = change(recording, at, first);
    if (step) found.push({ name: t("Change"), value: step.text, kind: step.kind });
    if (cost.gflops) {
      const peak = ofPeak(cost.peak_fraction);
      found.push({ name: t("Speed"), value: `${digits(cost.gflops)} GFLOP/s${peak}` });
    }
  } else {
    found.push({ name: t("Time"), value: cost.message || t("not measured"), kind: "none" });
  }
  const error =
    cost.max_error == null ? "" : t(" (max error {error})", { error: small(cost.max_error) });
  const [value, kind] =
    cost.equal === true
      ? [t("equals the original{error}", { error }), "good"]
      : cost.equal === false
        ? [t("differs from the original{error}", { error }), "bad"]
        : [t("not checked"), "none"];
  return [...found, { name: t("Result"), value, kind }];
}

/**
 * The Python of steps, the first of which is the program as it was, as one would write it.
 * @param {string} prelude
 * @param {Data.Step[]} steps
 */
export function pythonOf(prelude, steps) {
  const lines = prelude ? prelude.split("\n") : [];
  for (const step of steps.slice(1)) {
    lines.push(...(step.lead || []));
    if (!step.error) lines.push(step.python);
    else lines.push(...step.python.split("\n").map((line) => `# refused: ${line}`));
  }
  return lines.join("\n");
}

/**
 * The Python of the schedule up to and with a step.
 * @param {Data.Recording} recording
 * @param {number} at
 */
export function pythonUpTo(recording, at) {
  return pythonOf(recording.prelude, recording.steps.slice(0, at + 1));
}
