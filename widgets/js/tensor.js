// What a tensor holds: its statistics, and its numbers, or, of a large one, a picture of means.
//
// Draws a summary (see mlc_lab/relax/vm/values.py). The colours are in the style (machine.css).

import { h } from "./dom.js";
import { svg } from "./svg.js";
import { t } from "./words.js";

const CELL = 9; // pixels
const LEVELS = 9;

/**
 * A number in few characters; "nan" and "inf" are words.
 * @param {number | string | null} value
 */
export function short(value) {
  if (value === null) return "none";
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  return size >= 1e6 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

/**
 * A tensor in a few words, for a row of a table.
 * @param {Data.Summary} value
 */
export function brief(value) {
  if (value.numbers && value.numbers.length <= 4) return `[${value.numbers.map(short).join(", ")}]`;
  const bad = [value.nan ? `${value.nan} NaN` : "", value.inf ? `${value.inf} inf` : ""];
  return [`${short(value.min)} … ${short(value.max)}`, ...bad].filter(Boolean).join(", ");
}

/**
 * The statistics of a tensor, in words.
 * @param {Data.Summary} value
 */
export function statistics(value) {
  const count = value.shape.reduce((a, b) => a * b, 1);
  return t(
    "min {min}, max {max}, mean {mean}; {zeros} of {count} are zero, {nan} NaN, {inf} infinite",
    {
      min: short(value.min),
      max: short(value.max),
      mean: short(value.mean),
      zeros: value.zeros,
      count,
      nan: value.nan,
      inf: value.inf,
    },
  );
}

/**
 * All numbers of a small tensor, a row for each of its last dimension.
 * @param {Data.Summary} value
 */
function table(value) {
  const numbers = value.numbers || [];
  const across = value.shape[value.shape.length - 1] || 1;
  const rows = [];
  for (let at = 0; at < numbers.length; at += across) {
    const row = numbers.slice(at, at + across);
    rows.push(
      h(
        "tr",
        {},
        row.map((v) => h("td", { class: typeof v === "string" ? "bad" : "" }, short(v))),
      ),
    );
  }
  return h("table", { class: "numbers" }, rows);
}

/**
 * Cells of one level as one path each.
 * @param {Data.Picture} picture
 */
function cells({ rows, columns, cells: text, low }) {
  /** @type {Map<string, string>} */
  const paths = new Map();
  [...text].forEach((level, n) => {
    const [x, y] = [(n % columns) * CELL, Math.floor(n / columns) * CELL];
    paths.set(level, `${paths.get(level) || ""}M${x},${y}h${CELL}v${CELL}h-${CELL}z`);
  });
  const [width, height] = [columns * CELL, rows * CELL];
  return svg(
    "svg",
    {
      class: `heat ${typeof low === "number" && low < 0 ? "both" : "one"}`,
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": t("Means of {rows} times {columns} blocks of the tensor", { rows, columns }),
    },
    ...[...paths].map(([level, d]) => svg("path", { class: `q${level}`, d })),
  );
}

/** @param {Data.Picture} picture */
function legend({ low, high, cells: text }) {
  const both = typeof low === "number" && low < 0;
  const ramp = svg(
    "svg",
    {
      class: `heat ${both ? "both" : "one"}`,
      width: 9 * LEVELS,
      height: 10,
      "aria-hidden": "true",
    },
    ...Array.from({ length: LEVELS }, (_, n) =>
      svg("rect", { class: `q${n}`, x: 9 * n, width: 9, height: 10 }),
    ),
  );
  return h(
    "div",
    { class: "dim" },
    `${short(low)} `,
    ramp,
    t(" {high}, means of blocks; rows are the last dimension", { high: short(high) }),
    text.includes("x") ? t("; dashed: not all are finite") : "",
  );
}

/**
 * What a tensor holds.
 * @param {string} name
 * @param {Data.Summary | null} value null where it was not looked at
 * @returns {HTMLElement[]}
 */
export function drawTensor(name, value) {
  if (!value) {
    return [
      h(
        "p",
        { class: "dim" },
        t("{name} was not looked at: there is a limit on time and size.", { name }),
      ),
    ];
  }
  const shape = `${value.shape.join("×") || t("scalar")} ${value.dtype}`;
  return [
    h("p", {}, h("code", {}, name), ` ${shape}: ${statistics(value)}`),
    h(
      "div",
      {
        class: "of-tensor",
        tabindex: "0",
        role: "region",
        "aria-label": t("Values of {name}", { name }),
      },
      value.picture ? cells(value.picture) : table(value),
    ),
    ...(value.picture ? [legend(value.picture)] : []),
  ];
}
