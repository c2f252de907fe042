// What a program takes of a GPU's limits, as facts of the workbench.

import { t } from "./words.js";

/**
 * [name, value, kind] of each; none for a program that is for no GPU.
 * @param {Data.Left | undefined} left
 * @returns {[string, string, string][]}
 */
export function leftFacts(left) {
  if (!left) return [];
  if (left.message) return [[t("GPU"), left.message, "none"]];
  /** @type {[string, [number, number] | undefined][]} */
  const rows = [
    [t("Threads a block"), left.threads],
    [t("Shared memory, bytes"), left.shared],
    [t("Registers a thread, about"), left.registers],
  ];
  /** @type {[string, string, string][]} */
  const found = [];
  for (const [name, row] of rows) {
    if (!row) continue;
    const [used, most] = row.map((n) => n.toLocaleString("en"));
    const over = row[0] > row[1];
    const text = t("{used} of {most}", { used, most });
    found.push([name, over ? `✕ ${text}` : text, over ? "bad" : ""]);
  }
  if (left.occupancy) {
    const { warps, most, limit } = left.occupancy;
    /** @type {Record<string, string>} */
    const limits = {
      warps: t("warps"),
      blocks: t("blocks"),
      registers: t("registers"),
      "shared memory": t("shared memory"),
    };
    const value = t("{warps} of {most} warps, limited by {limit}", {
      warps,
      most,
      limit: limits[limit] || limit,
    });
    found.push([t("Occupancy"), warps ? value : `✕ ${value}`, warps ? "" : "bad"]);
  }
  return found;
}
