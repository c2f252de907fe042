// What each choice of a number costs: misses and time, a small chart each over the same choices.

import { digits, duration, escapeHTML } from "./dom.js";
import { amount } from "./counts.js";
import { scaleOf } from "./scale.js";
import { t } from "./words.js";

/**
 * @typedef {{ label: string, misses?: number, moves?: number, time?: number, error?: string }} Choice
 */

const HIGH = 97;
/** How high the letters of another form's name are. */
const LABEL = 9;
/** Below there is room for the labels of the choices under that of the lowest value. */
const PAD = { left: 52, right: 12, top: 12, bottom: 23 };

/**
 * Draw one value of all choices as SVG text; "" where none is known.
 * @param {Choice[]} choices
 * @param {"misses" | "moves" | "time"} what
 * @param {number} current the choice that is shown
 * @param {number} width in pixels
 * @param {string} name of the value, for those who hear the chart
 * @param {{ label: string, choices: Choice[] }[]} [others] lines to compare with
 */
export function drawChoices(choices, what, current, width, name, others = []) {
  /** @param {Choice[]} list */
  const values = (list) => list.map((c) => c[what]).filter((v) => v !== undefined);
  const known = [...values(choices), ...others.flatMap((other) => values(other.choices))];
  if (!known.length || !width) return "";
  const say = what === "time" ? duration : amount;
  const most = Math.max(...known);
  const least = Math.min(...known);
  const log = least > 0 && most / least > 8;
  const bottom = HIGH - PAD.bottom;
  const y = scaleOf(log ? least / 1.3 : 0, most ? most * (log ? 1.3 : 1.12) : 1, bottom, PAD.top, {
    log,
    text: say,
  });
  const span = width - PAD.left - PAD.right;
  /** @param {number} i */
  const x = (i) => PAD.left + (choices.length > 1 ? (span * i) / (choices.length - 1) : span / 2);
  let svg = "";
  const ticks = y.ticks.filter((_, i, all) => i % Math.ceil(all.length / 3) === 0);
  for (const [value, text] of ticks) {
    svg +=
      `<line class="grid" x1="${PAD.left}" x2="${width - PAD.right}" y1="${y.at(value)}" y2="${y.at(value)}"/>` +
      `<text x="${PAD.left - 6}" y="${y.at(value) + 4}" text-anchor="end">${text}</text>`;
  }
  /**
   * The line through some values; what is not known is a gap.
   * @param {Choice[]} list
   */
  const path = (list) =>
    list
      .map((choice, i) => {
        const value = choice[what];
        if (value === undefined) return "";
        return `${i && list[i - 1][what] !== undefined ? "L" : "M"}${x(i)},${y.at(value)}`;
      })
      .join("");
  /**
   * Whether a line goes through a label that reaches from an abscissa to the right end.
   * @param {(number | undefined)[]} list
   * @param {number} left
   * @param {number} low
   */
  const crosses = (list, left, low) =>
    list.some((to, i) => {
      const from = i ? list[i - 1] : undefined;
      if (to === undefined || x(i) < left) return false;
      let a = y.at(from ?? to);
      const b = y.at(to);
      if (from !== undefined && x(i - 1) < left)
        a += ((b - a) * (left - x(i - 1))) / (x(i) - x(i - 1)); // only the part beside the label
      return Math.max(a, b) > low - LABEL - 3 && Math.min(a, b) < low + 3;
    });
  /** @type {[number, number][]} top and bottom of the labels so far */
  const labels = [];
  for (const other of others) {
    const last = values(other.choices).pop();
    if (last === undefined) continue;
    const end = width - PAD.right;
    const long = 5.6 * other.label.length;
    // Over its end, or where a line or a label goes through, at the nearest height that is free.
    /** @param {number} low */
    const free = (low) =>
      low <= bottom &&
      low >= 10 &&
      labels.every(([top, under]) => low <= top || low - LABEL >= under) &&
      [choices, ...others.map((each) => each.choices)].every(
        (list) =>
          !crosses(
            list.map((c) => c[what]),
            end - long,
            low,
          ),
      );
    const wish = y.at(last) - 4;
    const heights = Array.from(
      { length: HIGH },
      (_, n) => wish + (n % 2 ? 1 : -1) * Math.ceil(n / 2),
    );
    const low = heights.find(free) ?? wish;
    labels.push([low - LABEL, low]);
    svg +=
      `<path class="other" d="${path(other.choices)}"><title>${escapeHTML(other.label)}</title></path>` +
      `<text class="other" x="${end}" y="${low}" text-anchor="end">${escapeHTML(other.label)}</text>`;
  }
  svg += `<path class="${what}" d="${path(choices)}"/>`;
  const half = choices.length > 1 ? span / (choices.length - 1) / 2 : span / 2;
  const wide = Math.max(26, 8 + 6.2 * Math.max(...choices.map((c) => c.label.length)));
  const every = Math.max(1, Math.ceil(((choices.length - 1) * wide) / span));
  choices.forEach((choice, i) => {
    const value = choice[what];
    const here = i === current;
    const told = choice.error
      ? t("refused: {rule}", { rule: choice.error })
      : value === undefined
        ? t("not known yet")
        : say(value);
    const [cx, cy] = [x(i), value === undefined ? bottom : y.at(value)];
    // A long word at an end of the chart ends, or begins, there; the chosen one is bold.
    const long = (here ? 3.6 : 3.1) * choice.label.length;
    const [over, under] = [cx + long > width, cx - long < 0];
    const [at, anchor] = over ? [width, "end"] : under ? [0, "start"] : [cx, "middle"];
    const shape = choice.error
      ? `<path d="M${cx - 4},${cy - 4}l8,8m0,-8l-8,8"/>`
      : value === undefined
        ? `<circle class="untimed" cx="${cx}" cy="${cy}" r="2.5"/>`
        : `<circle cx="${cx}" cy="${cy}" r="${here ? 5.5 : 3.5}"/>`;
    svg +=
      `<g class="dot ${what}${choice.error ? " refused" : ""}${here ? " current" : ""}" data-choice="${i}">` +
      `<rect x="${cx - half}" y="0" width="${2 * half}" height="${HIGH}"/>` +
      (here ? `<line class="here" x1="${cx}" x2="${cx}" y1="${PAD.top}" y2="${bottom}"/>` : "") +
      shape +
      (i % every === 0 || here
        ? `<text x="${at}" y="${HIGH - 4}" text-anchor="${anchor}">${escapeHTML(choice.label)}</text>`
        : "") +
      `<title>${escapeHTML(`${choice.label}: ${told}`)}</title></g>`;
  });
  const said = choices
    .map((c) => {
      const value = c[what];
      return value === undefined ? "" : `${c.label}: ${say(value)}`;
    })
    .filter(Boolean);
  return (
    `<svg viewBox="0 0 ${width} ${HIGH}" width="${width}" height="${HIGH}" role="img" ` +
    `aria-label="${escapeHTML(`${name}${log ? t(", logarithmic") : ""}: ${said.join(", ")}`)}">${svg}</svg>`
  );
}

/**
 * How a value changed: "33 % fewer", "3.1× more"; "" where it did not, or one is not known.
 * @param {number | undefined} before
 * @param {number | undefined} after
 * @param {[string, string]} words for less and for more
 */
export function changeOf(before, after, [less, more]) {
  if (!before || !after) return "";
  const ratio = after / before;
  if (Math.abs(ratio - 1) < 0.005) return "";
  // A factor is spoken of alike in both directions, as in mlc_lab/observe/why.py.
  if (ratio >= 1.995) return `${digits(ratio)}× ${more}`;
  if (1 / ratio >= 1.995) return `${digits(1 / ratio)}× ${less}`;
  const part = Math.abs(ratio - 1) * 100;
  return `${digits(part)} % ${ratio < 1 ? less : more}`;
}
