// The time of each step as a small picture: one point a step, the scale logarithmic.

import { duration, escapeHTML } from "./dom.js";
import { logarithmic, marksOf } from "./scale.js";
import { t } from "./words.js";

/**
 * @typedef {{ time: number | null | undefined, refused: boolean, wrong: boolean, idle: boolean, label: string }} Point
 * a step in the chart
 */

const HEIGHT = 96;
const PAD = { left: 56, right: 16, top: 10, bottom: 20 };

/**
 * Gridlines inside [low, high], at most five of them.
 * @param {number} low
 * @param {number} high
 */
function gridlines(low, high) {
  const found = marksOf(low, high);
  const stride = Math.ceil(found.length / 4) || 1;
  return found.filter((_, i) => i % stride === 0);
}

/**
 * Draw the chart as SVG text.
 * `points`: one { label, time | null, refused, wrong, idle } a step; `floor`: time at the machine's
 * peak, or null; `current`: index of the step shown; `width`: in pixels.
 * @param {Point[]} points
 * @param {number | null} floor
 * @param {number} current
 * @param {number} width
 */
export function drawChart(points, floor, current, width) {
  const times = points.map((p) => p.time || 0).filter((t) => t > 0);
  if (!times.length) return "";
  let low = Math.min(...times, floor || Infinity) / 1.25;
  let high = Math.max(...times) * 1.25;
  if (high / low < 4) [low, high] = [low / 2, high * 2];
  const span = width - PAD.left - PAD.right;
  /** @param {number} i */
  const x = (i) => PAD.left + (points.length > 1 ? (span * i) / (points.length - 1) : span / 2);
  const bottom = HEIGHT - PAD.bottom;
  const y = logarithmic(low, high, bottom, PAD.top);

  let svg = "";
  for (const t of gridlines(low, high)) {
    svg += `<line class="grid" x1="${PAD.left}" x2="${width - PAD.right}" y1="${y(t)}" y2="${y(t)}"/>`;
    svg += `<text x="${PAD.left - 8}" y="${y(t) + 4}" text-anchor="end">${duration(t).replace(/\.0+ /, " ")}</text>`;
  }
  if (floor) {
    svg += `<line class="floor" x1="${PAD.left}" x2="${width - PAD.right}" y1="${y(floor)}" y2="${y(floor)}"/>`;
    svg += `<text class="floor" x="${PAD.left + 4}" y="${y(floor) - 4}">${t("peak: {time}", { time: duration(floor) })}</text>`;
  }
  // What was not measured is a gap; a refused step leaves the program, and its time, as it was.
  /** @type {string[][]} */
  const runs = [[]];
  points.forEach((p, i) => {
    if (p.time) runs[runs.length - 1].push(`${x(i)},${y(p.time)}`);
    else if (!p.refused) runs.push([]);
  });
  for (const run of runs)
    if (run.length > 1) svg += `<polyline class="line" points="${run.join(" ")}"/>`;

  const every = Math.max(1, Math.ceil((points.length * 24) / span));
  let last = bottom;
  points.forEach((point, i) => {
    const classes = [
      "dot",
      point.refused && "refused",
      point.wrong && "wrong",
      point.idle && "idle",
    ];
    if (i === current) classes.push("current");
    if (point.time) last = y(point.time);
    else if (!point.refused) last = bottom;
    const at = last;
    const shape =
      point.refused || point.wrong
        ? `<path d="M${x(i) - 4},${at - 4}l8,8m0,-8l-8,8"/>`
        : point.time
          ? `<circle cx="${x(i)}" cy="${at}" r="${i === current ? 5.5 : 3.5}"/>`
          : `<circle class="untimed" cx="${x(i)}" cy="${at}" r="2.5"/>`;
    const half = points.length > 1 ? span / (points.length - 1) / 2 : span / 2;
    svg +=
      `<g class="${classes.filter(Boolean).join(" ")}" data-step="${i}">` +
      `<rect x="${x(i) - half}" y="0" width="${2 * half}" height="${HEIGHT}"/>` +
      (i === current
        ? `<line class="here" x1="${x(i)}" x2="${x(i)}" y1="${PAD.top}" y2="${bottom}"/>`
        : "") +
      shape +
      (i % every === 0 || i === current
        ? `<text x="${x(i)}" y="${HEIGHT - 5}" text-anchor="middle">${i}</text>`
        : "") +
      `<title>${escapeHTML(point.label)}</title></g>`;
  });
  return (
    `<svg viewBox="0 0 ${width} ${HEIGHT}" width="${width}" height="${HEIGHT}" role="img" ` +
    `aria-label="${t("Time of each step, logarithmic")}">${svg}</svg>`
  );
}
