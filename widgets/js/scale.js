// Scales of the charts: where a value stands in pixels, and the values that are written at an axis.

import { digits } from "./dom.js";

/** @typedef {{ at: (value: number) => number, ticks: [number, string][] }} Scale */

/**
 * From values to pixels, evenly.
 * @param {number} low
 * @param {number} high
 * @param {number} from where `low` stands
 * @param {number} to where `high` stands
 * @returns {(value: number) => number}
 */
export const linear = (low, high, from, to) => (value) =>
  from + ((value - low) / (high - low)) * (to - from);

/**
 * From values to pixels, the same room for each decade.
 * @param {number} low
 * @param {number} high
 * @param {number} from where `low` stands
 * @param {number} to where `high` stands
 * @returns {(value: number) => number}
 */
export const logarithmic = (low, high, from, to) => (value) =>
  from + (Math.log(value / low) / Math.log(high / low)) * (to - from);

/**
 * The powers of ten within a range.
 * @param {number} low
 * @param {number} high
 */
export function powersOfTen(low, high) {
  const found = [];
  for (let e = Math.ceil(Math.log10(low)); e <= Math.floor(Math.log10(high)); e++) {
    found.push(10 ** e);
  }
  return found;
}

/**
 * The values that are written at a logarithmic axis: powers of ten, and numbers between them where
 * there are fewer than two. There are two at least where the range spans a factor of 4.
 * @param {number} low
 * @param {number} high
 */
export function marksOf(low, high) {
  const tens = powersOfTen(low, high);
  if (tens.length > 1) return tens;
  const found = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
    for (const step of [1, 2, 3, 5]) {
      const value = Number(`${step}e${e}`);
      if (value >= low && value <= high) found.push(value);
    }
  return found;
}

/**
 * A scale from values to pixels: { at(value), ticks: [[value, text], ...] }.
 * @param {number} low
 * @param {number} high
 * @param {number} from
 * @param {number} to
 * @param {{ log?: boolean, text?: (value: number) => string, whole?: boolean }} [options]
 * @returns {Scale}
 */
export function scaleOf(low, high, from, to, { log = false, text = digits, whole = false } = {}) {
  if (!(high > low)) [low, high] = log ? [low / 1.5, high * 1.5] : [low - 1, high + 1];
  const at = (log ? logarithmic : linear)(low, high, from, to);
  /** @type {[number, string][]} */
  const ticks = [];
  if (log) {
    const decades = Math.log10(high / low);
    const steps = decades > 4 ? [1] : decades > 1.5 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const step of steps) {
        const value = step * 10 ** power;
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push([value, text(value)]);
      }
    }
  }
  if (!log || ticks.length < 2) {
    // of a narrow range one value would say nothing of how far it is to the others
    ticks.length = 0;
    const raw = (high - low) / 6;
    const unit = 10 ** Math.floor(Math.log10(raw));
    let step = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= raw) ?? 10 * unit;
    if (whole) step = Math.max(1, Math.round(step));
    for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) {
      ticks.push([value, text(Number(value.toPrecision(6)))]);
    }
  }
  return { at, ticks };
}
