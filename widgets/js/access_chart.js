// The pictures of the access view that are no grid: the accesses over time, and how far apart the
// uses of a line are.

import { escapeHTML, h, heads, sure } from "./dom.js";
import { t } from "./words.js";

/** @import { Result } from "./access_view.js" */

/** @typedef {{ from: number, to: number, found: number[] }} Bin accesses of some reuse distances */

/** A sign for each level where an access was found, the last one for memory. */
export const LEVEL_SIGNS = ["●", "▲", "◆", "■"];

/**
 * The class that colours a level, of so many places where an access can be found.
 * @param {number} level
 * @param {number} places
 */
export function levelClass(level, places) {
  return level === places - 1 ? "at-m" : `at-${Math.min(level, 2)}`;
}

/**
 * One bar for each few accesses: as tall and in the colour of the farthest place they went to.
 * @param {HTMLCanvasElement} canvas
 * @param {Result} result
 * @param {number} position
 */
export function drawTimeline(canvas, result, position) {
  const width = Math.floor(canvas.clientWidth);
  if (!width) return;
  const tall = 34;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(tall * scale);
  const context = sure(canvas.getContext("2d"));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  const style = getComputedStyle(canvas);
  const places = result.names.length;
  const colours = result.names.map((_, i) => style.getPropertyValue(`--${levelClass(i, places)}`));
  const n = result.found.length;
  for (let x = 0; x < width; x++) {
    const from = Math.floor((x * n) / width);
    const to = Math.max(from + 1, Math.floor(((x + 1) * n) / width));
    let worst = 0;
    for (let i = from; i < to && i < n; i++) worst = Math.max(worst, result.found[i]);
    context.fillStyle = colours[worst];
    const height = 6 + ((tall - 8) * worst) / Math.max(1, places - 1);
    context.fillRect(x, tall - height, 1, height);
  }
  const here = n > 1 ? (position * (width - 1)) / (n - 1) : 0;
  context.fillStyle = style.getPropertyValue("--fg");
  context.fillRect(Math.round(here), 0, 2, tall);
  const misses = n - result.upTo[0][n];
  canvas.setAttribute(
    "aria-label",
    t("Over time: {count} accesses, of which {misses} missed {level}", {
      count: n,
      misses,
      level: result.names[0],
    }),
  );
}

/**
 * Accesses by reuse distance in powers of two, and by where they were found.
 * @param {Result} result
 * @returns {Bin[]}
 */
export function reuseBins(result) {
  /** @type {Bin[]} */
  const bins = [];
  /**
   * @param {number} number
   * @param {number} from
   * @param {number} to
   */
  const bin = (number, from, to) =>
    (bins[number] ??= { from, to, found: result.names.map(() => 0) });
  const { reuse, found } = result;
  let far = 0;
  for (let i = 0; i < found.length; i++) {
    const d = reuse[i];
    if (d < 0) continue;
    const number = d === 0 ? 0 : Math.floor(Math.log2(d)) + 1;
    far = Math.max(far, number);
    bin(number, d === 0 ? 0 : 2 ** (number - 1), d === 0 ? 0 : 2 ** number - 1).found[found[i]]++;
  }
  for (let n = 0; n <= far; n++) bin(n, n === 0 ? 0 : 2 ** (n - 1), n === 0 ? 0 : 2 ** n - 1);
  const first = { from: -1, to: -1, found: result.names.map(() => 0) };
  for (let i = 0; i < found.length; i++) if (reuse[i] < 0) first.found[found[i]]++;
  return [...bins, first];
}

/** @param {Bin} bin */
const binName = (bin) =>
  bin.from < 0 ? "first" : bin.from === bin.to ? `${bin.from}` : `${bin.from}–${bin.to}`;
/** @param {Bin} bin */
const binTotal = (bin) => bin.found.reduce((a, b) => a + b, 0);

/**
 * The histogram as SVG text; a dashed line says how many lines each level holds.
 * @param {Bin[]} bins
 * @param {Result} result
 * @param {number} width
 */
export function reuseChart(bins, result, width) {
  const [left, right, top, tall] = [48, 8, 12, 120];
  const most = Math.max(1, ...bins.map(binTotal));
  const step = (width - left - right) / bins.length;
  const places = result.names.length;
  let svg = "";
  for (const part of [0, 0.5, 1]) {
    const y = top + tall * (1 - part);
    svg +=
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${y}" y2="${y}"/>` +
      `<text x="${left - 6}" y="${y + 4}" text-anchor="end">${Math.round(most * part).toLocaleString("en-US")}</text>`;
  }
  bins.forEach((bin, i) => {
    const x = left + i * step;
    let y = top + tall;
    let parts = "";
    bin.found.forEach((count, level) => {
      if (!count) return;
      const height = Math.max(1, (tall * count) / most);
      y -= height;
      const sign = LEVEL_SIGNS[level === places - 1 ? LEVEL_SIGNS.length - 1 : level];
      parts += `<rect class="${levelClass(level, places)}" x="${x + 2}" y="${y}" width="${Math.max(1, step - 4)}" height="${height}"/>`;
      if (height > 13 && step > 16) {
        parts += `<text class="sign" x="${x + step / 2}" y="${y + height / 2 + 4}" text-anchor="middle">${sign}</text>`;
      }
    });
    svg += `<g>${parts}<title>${escapeHTML(`distance ${binName(bin)}: ${binTotal(bin)} accesses`)}</title></g>`;
    const name = step > 40 || bin.from < 0 ? binName(bin) : `${bin.from}`;
    svg += `<text x="${x + step / 2}" y="${top + tall + 15}" text-anchor="middle">${name}</text>`;
  });
  const last = bins.length - 1;
  for (const level of result.data.levels) {
    const lines = Math.floor(level.size / result.line);
    const at = Math.log2(lines) + 1;
    if (at >= last) continue;
    const x = left + at * step;
    svg +=
      `<line class="capacity" x1="${x}" x2="${x}" y1="${top - 8}" y2="${top + tall}"/>` +
      `<text class="capacity" x="${x + 3}" y="${top}">${escapeHTML(level.name)} holds ${lines}</text>`;
  }
  return (
    `<svg viewBox="0 0 ${width} ${top + tall + 20}" width="${width}" height="${top + tall + 20}" role="img" ` +
    `aria-label="${t("Accesses by reuse distance; the same as a table below")}">${svg}</svg>`
  );
}

/**
 * The same as a table.
 * @param {Bin[]} bins
 * @param {Result} result
 */
export function reuseTable(bins, result) {
  const names = [
    t("distance in lines"),
    "accesses",
    ...result.names.map((name) => t("found in {level}", { level: name })),
  ];
  return h(
    "table",
    {},
    heads(names),
    h(
      "tbody",
      {},
      bins.map((bin) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, bin.from < 0 ? t("first use") : binName(bin)),
          [binTotal(bin), ...bin.found].map((n) => h("td", {}, n.toLocaleString("en-US"))),
        ),
      ),
    ),
  );
}
