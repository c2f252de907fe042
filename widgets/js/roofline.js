// The roofline: how fast each step is against how many operations it does for each byte moved.
//
// Roofs are the measured peak and the measured bandwidth of each level; a point stands at the exact
// counts of its step. Points are buttons: a click, or Enter on the focused one, goes to the step.

import { MARGIN, digits, escapeHTML } from "./dom.js";
import { logarithmic, marksOf } from "./scale.js";
import { t } from "./words.js";

const EDGES = { left: 58, right: 14, top: 14, bottom: 38 };
const ROOF_TALL = 260;
/** About how wide a letter of a name is, in pixels. */
const LETTER = 6.5;
const ROOF_DASHES = ["", "8 3", "3 3", "10 3 2 3", "1 3"];

/**
 * A value at an axis, of one digit: "0.01", "1,000".
 * @param {number} value
 */
const marked = (value) =>
  value < 1 ? value.toFixed(Math.ceil(-Math.log10(value))) : value.toLocaleString("en-US");

/**
 * Bytes that each level's bandwidth carries: L1 serves the core, memory the misses of the last.
 * @param {Data.Counts} counts
 * @returns {Record<string, number>}
 */
export function bytesByLevel(counts) {
  const names = counts.levels.map((level) => level.name);
  const out = { [names[0]]: counts.bytes_read + counts.bytes_written };
  counts.levels.forEach((level, i) => {
    out[names[i + 1] || "memory"] = level.bytes_in + level.bytes_out;
  });
  return out;
}

/**
 * The points of a recording at a level: one a program, with the steps that lead to it.
 * @param {Data.Recording} recording
 * @param {string} level
 */
export function rooflinePoints(recording, level) {
  const points = new Map();
  recording.steps.forEach((step, i) => {
    const cost = step.error ? null : recording.programs[step.after].cost;
    const counts = cost && cost.counts;
    if (!cost || !cost.gflops || !counts || !counts.levels || !counts.flops) return;
    const bytes = bytesByLevel(counts)[level];
    if (!bytes) return;
    const known = points.get(step.after);
    if (known) known.steps.push(i);
    else
      points.set(step.after, {
        steps: [i],
        op: step.op,
        gflops: cost.gflops,
        untimed: cost.untimed,
        intensity: counts.flops / bytes,
      });
  });
  return [...points.values()];
}

/**
 * Why a point lies above its roof, which was measured again for it (mlc_lab/observe/roofs.py); ""
 * where none does.
 * @param {{ gflops: number, intensity: number }[]} points
 * @param {number} peak
 * @param {number} speed the bandwidth of the level
 */
export function saidOfAbove(points, peak, speed) {
  const above = (/** @type {number} */ bytes) =>
    points.some((p) => p.gflops > MARGIN * Math.min(peak, p.intensity * bytes));
  if (above(Infinity)) return t("Above the peak: it was measured while the machine was busy.");
  return above(speed) ? t("Above its roof: bytes are counted from empty caches.") : "";
}

/**
 * Draw the roofline at a level as HTML text; "" where there is nothing to draw yet.
 * @param {Data.Recording} recording
 * @param {string} level
 * @param {number} current
 * @param {number} width
 * @param {string} [word] what the points are: steps of a schedule
 */
export function drawRoofline(recording, level, current, width, word = "step") {
  const { peak_gflops: peak, bandwidth } = recording.machine || {};
  const points = rooflinePoints(recording, level);
  if (!points.length)
    return recording.programs.some(({ cost }) => cost?.counts?.flops === null)
      ? `<p class="note">${t("No roofline: no arithmetic counted.")}</p>`
      : "";
  if (!bandwidth || !peak || !width) return "";
  // One that is not timed yet stands where it is known to be across, and no higher than its roof.
  for (const p of points)
    if (p.untimed) p.gflops = Math.min(p.gflops, peak, p.intensity * bandwidth[level]);
  const speeds = Object.values(bandwidth);
  const xs = points.map((p) => p.intensity);
  const [x0, x1] = [Math.min(...xs, 0.1) / 2, Math.max(...xs, peak / Math.min(...speeds)) * 3];
  const ys = points.map((p) => p.gflops); // a peak measured on a busy machine may be below them
  const [y0, y1] = [Math.min(...ys) / 3, Math.max(peak, ...ys) * 2];
  const end = width - EDGES.right;
  const span = end - EDGES.left;
  const tall = ROOF_TALL - EDGES.top - EDGES.bottom;
  const bottom = ROOF_TALL - EDGES.bottom;
  const x = logarithmic(x0, x1, EDGES.left, end);
  const y = logarithmic(y0, y1, bottom, EDGES.top);
  let svg = "";
  for (const value of marksOf(x0, x1)) {
    svg +=
      `<line class="grid" x1="${x(value)}" x2="${x(value)}" y1="${EDGES.top}" y2="${bottom}"/>` +
      `<text x="${x(value)}" y="${bottom + 14}" text-anchor="middle">${marked(value)}</text>`;
  }
  for (const value of marksOf(y0, y1)) {
    svg +=
      `<line class="grid" x1="${EDGES.left}" x2="${end}" y1="${y(value)}" y2="${y(value)}"/>` +
      `<text x="${EDGES.left - 6}" y="${y(value) + 4}" text-anchor="end">${marked(value)}</text>`;
  }
  Object.entries(bandwidth).forEach(([name, speed], i) => {
    const start = Math.max(x0, y0 / speed);
    const ridge = Math.min(x1, peak / speed);
    if (start >= ridge) return;
    const mine = name === level ? " mine" : "";
    const [left, foot, right, top] = [x(start), y(start * speed), x(ridge), y(ridge * speed)];
    const slope = Math.atan2(top - foot, right - left);
    const label = `${name} ${digits(speed)} GB/s`;
    // Along its roof and just above it: the roofs lie closer together than their names are wide.
    // It ends before the peak, and lies further along where a point would cover it.
    const wide = LETTER * label.length * Math.cos(slope);
    /** @param {number} part */
    const along = (part) => start * (ridge / start) ** part;
    /** @param {number} part */
    const free = (part) =>
      !points.some((p) => {
        const [over, up] = [x(p.intensity) - x(along(part)), y(p.gflops) - y(along(part) * speed)];
        const above = -up - (over * (foot - top)) / (right - left);
        return over > -12 && over < wide && above > -12 && above < 22;
      });
    const last = 1 - wide / (right - left);
    const at = along([0.12, 0.3, 0.45, last].find((p) => p <= last && free(p)) ?? last);
    svg +=
      `<line class="roof roof-${i % 4}${mine}" stroke-dasharray="${ROOF_DASHES[i % 5]}" x1="${left}" y1="${foot}" x2="${right}" y2="${top}"/>` +
      `<text class="roof-${i % 4}${mine}" transform="translate(${x(at)} ${y(at * speed)}) rotate(${((slope * 180) / Math.PI).toFixed(1)})" dy="-4">${escapeHTML(label)}</text>`;
  });
  const flat = Math.max(x0, peak / Math.max(...speeds));
  svg +=
    `<line class="peak" x1="${x(flat)}" x2="${end}" y1="${y(peak)}" y2="${y(peak)}"/>` +
    `<text x="${end}" y="${y(peak) - 5}" text-anchor="end">${t("peak {speed} GFLOP/s", { speed: digits(peak) })}</text>` +
    `<text x="${EDGES.left + span / 2}" y="${ROOF_TALL - 6}" text-anchor="middle">${escapeHTML(t("operations for each byte that {level} delivers", { level }))}</text>` +
    `<text transform="translate(13 ${EDGES.top + tall / 2}) rotate(-90)" text-anchor="middle">GFLOP/s</text>`;
  // The current one last, so that it lies on top.
  const ordered = [...points].sort((a, b) => a.steps.includes(current) - b.steps.includes(current));
  const mine = points.find((p) => p.steps.includes(current));
  const named = mine ? [[x(mine.intensity), y(mine.gflops)]] : [];
  if (word === "state" && points.length > 1) {
    // Where the reader has been, in that order.
    const way = points.map((p) => `${x(p.intensity)},${y(p.gflops)}`).join("L");
    svg += `<path class="trail" d="M${way}"/>`;
  }
  for (const point of ordered) {
    const here = point.steps.includes(current);
    const name =
      recording.steps[point.steps[0]].name ??
      (point.steps.length > 1
        ? `${point.steps[0]}–${point.steps[point.steps.length - 1]}`
        : point.steps[0]);
    const bound = Math.min(peak, point.intensity * bandwidth[level]);
    const said = t(
      "{word} {steps}: {op}, {speed}, " +
        "{intensity} operations a byte; the roof here is {bound} GFLOP/s",
      {
        word: t(word),
        steps: point.steps.join(", "),
        op: point.op,
        speed: point.untimed ? t("not timed yet") : `${digits(point.gflops)} GFLOP/s`,
        intensity: digits(point.intensity),
        bound: digits(bound),
      },
    );
    const [px, py] = [x(point.intensity), y(point.gflops)];
    const left = typeof name === "string" && px + 12 + LETTER * name.length > width;
    // Where points crowd, one of them is named; the others say their name when pointed at.
    const alone = here || named.every(([u, v]) => Math.abs(u - px) > 26 || Math.abs(v - py) > 12);
    if (alone) named.push([px, py]);
    svg +=
      `<g class="point${here ? " current" : ""}${point.untimed ? " untimed" : ""}" role="button" tabindex="0" data-lm-suppress-shortcuts="true" data-step="${point.steps[0]}" aria-label="${escapeHTML(said)}"${here ? ' aria-current="step"' : ""}>` +
      `<circle class="halo" cx="${px}" cy="${py}" r="11"/><circle cx="${px}" cy="${py}" r="${here ? 6 : 4.5}"/>` +
      (alone
        ? `<text x="${left ? px - 9 : px + 9}" y="${py + 4}"${left ? ' text-anchor="end"' : ""}>${escapeHTML(name)}</text>`
        : "") +
      `<title>${escapeHTML(said)}</title></g>`;
  }
  const said = saidOfAbove(points, peak, bandwidth[level]);
  return (
    `<svg viewBox="0 0 ${width} ${ROOF_TALL}" width="${width}" height="${ROOF_TALL}" role="group" ` +
    `aria-label="${t("Roofline, logarithmic: one point a program")}">${svg}</svg>` +
    (said && `<p class="note">${said}</p>`)
  );
}
