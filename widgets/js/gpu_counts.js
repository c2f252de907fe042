// Counts of a GPU in the stepper: among the facts of a step, and as columns over all steps. They are
// made in Python (mlc_lab/observe/gpu/steps.py).

import { digits, duration, h, heads } from "./dom.js";
import { t } from "./words.js";

/**
 * The counts of the program that a step leads to, or null.
 * @param {Data.Recording} recording
 * @param {Data.Step} step
 */
const gpuOf = (recording, step) =>
  (!step.error && recording.programs[step.after].cost?.gpu) || null;

/** @param {Data.GPUCounts | null} counts */
const secondsOf = (counts) => (counts && counts.seconds) || 0;

/**
 * The counts as facts of a step: [{ name, value, title }].
 * @param {Data.Recording} recording
 * @param {number} at
 * @returns {Data.Fact[]}
 */
export function gpuFacts(recording, at) {
  const counts = gpuOf(recording, recording.steps[at]);
  if (!counts) return [];
  if (counts.message) return [{ name: "GPU", value: counts.message, kind: "none" }];
  const seconds = secondsOf(counts);
  const title = t("by the model, for {name}; limited by {limit}", {
    name: counts.name,
    limit: counts.limit,
  });
  /** @type {Data.Fact[]} */
  const found = [{ name: t("Modelled time"), value: duration(seconds), title }];
  let from = at - 1;
  while (from >= 0 && !secondsOf(gpuOf(recording, recording.steps[from]))) from -= 1;
  const before = from < 0 ? 0 : secondsOf(gpuOf(recording, recording.steps[from]));
  if (before) {
    const ratio = before / seconds;
    const [text, kind] =
      Math.abs(ratio - 1) < 0.005
        ? [t("the same"), "same"]
        : ratio > 1
          ? [t("{ratio}× faster{against}", { ratio: digits(ratio), against: "" }), "faster"]
          : [t("{ratio}× slower{against}", { ratio: digits(1 / ratio), against: "" }), "slower"];
    found.push({ name: t("Change"), value: t("{change}, by the model", { change: text }), kind });
  }
  found.push({ name: t("Limited by"), value: counts.limit || "" });
  return [...found, ...(counts.rows || []).map(([name, value]) => ({ name, value }))];
}

/**
 * The folded table with the counts of every step; null where nothing was counted.
 * @param {Data.Recording} recording
 * @param {(step: number) => void} go
 */
export function gpuTable(recording, go) {
  const steps = recording.steps.map((step) => gpuOf(recording, step));
  const names = steps.find((counts) => counts?.rows)?.rows?.map(([name]) => name);
  if (!names) return null;
  const rows = steps.map((counts, at) => {
    const { op } = recording.steps[at];
    const button = h("button", { type: "button", class: "link", onclick: () => go(at) }, `${at}`);
    const cells = counts?.rows
      ? [duration(secondsOf(counts)), ...counts.rows.map(([, value]) => value)]
      : [counts?.message || "", ...names.map(() => "")];
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, button, ` ${op}`),
      ...cells.map((text) => h("td", {}, text)),
    );
  });
  return h(
    "details",
    { class: "gpu-counts" },
    h("summary", {}, t("GPU counts of every step")),
    h(
      "div",
      {
        class: "scroll",
        tabindex: "0",
        role: "region",
        "aria-label": t("GPU counts of every step"),
      },
      h(
        "table",
        { class: "counts" },
        heads([t("step"), t("modelled time"), ...names]),
        h("tbody", {}, ...rows),
      ),
    ),
  );
}
