// Building blocks that every view shares: elements, escaped text, numbers a person can read.

import { t } from "./words.js";

// JupyterLab looks at keys before the page does, and lets alone those of elements marked so. Its
// shortcuts match the focused element itself, so the mark must be on each that can have the focus.
export const OWN_KEYS = "data-lm-suppress-shortcuts";
const FOCUSABLE = new Set(["button", "input", "select", "summary"]);

/**
 * Make an element: h("button", { class: "x", onclick: f, "aria-label": "y" }, child, ...).
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Data.Attributes} [attributes]
 * @param {...(Data.Child | Data.Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  if (FOCUSABLE.has(tag) || "tabindex" in attributes) element.setAttribute(OWN_KEYS, "true");
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "html") element.innerHTML = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * A button with a picture, which says its name when pointed at.
 * @param {string} label
 * @param {string} path of the picture, in 16 by 16
 * @param {() => void} onclick
 */
export function iconButton(label, path, onclick) {
  const button = h("button", { type: "button", onclick });
  setIcon(button, label, path);
  return button;
}

/**
 * @param {HTMLElement} button
 * @param {string} label
 * @param {string} path
 */
export function setIcon(button, label, path) {
  button.setAttribute("aria-label", label);
  button.title = label;
  button.innerHTML = `<svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true"><path d="${path}"/></svg>`;
}

/**
 * The heads of the columns of a table.
 * @param {string[]} texts
 */
export const heads = (texts) =>
  h(
    "thead",
    {},
    h(
      "tr",
      {},
      texts.map((text) => h("th", { scope: "col" }, text)),
    ),
  );

/**
 * Follow a pointer that was pressed on an element until it is let go.
 * @param {PointerEvent} event
 * @param {HTMLElement} element
 * @param {(now: PointerEvent) => void} onmove
 * @param {(last: PointerEvent) => void} [onend] also where the pointer was taken away
 */
export function drag(event, element, onmove, onend) {
  const over = new AbortController();
  const { signal } = over;
  element.setPointerCapture(event.pointerId);
  element.addEventListener("pointermove", onmove, { signal });
  for (const name of /** @type {const} */ (["pointerup", "pointercancel"]))
    element.addEventListener(
      name,
      (last) => {
        over.abort();
        onend?.(last);
      },
      { signal },
    );
}

/**
 * The value of a field until `build` or `load` gives it one, which the constructor calls.
 * @returns {any}
 */
export const later = () => undefined;

/**
 * What must be there: of a table that has it, of a page that was drawn with it.
 * @template T
 * @param {T} value
 * @returns {NonNullable<T>}
 */
export function sure(value) {
  if (value === null || value === undefined) throw new Error("what must be there is missing");
  return value;
}

/**
 * The element around what an event is about, or it itself, that fits a selector; null for none.
 * @param {Event} event
 * @param {string} selector
 * @returns {any} an element, of a kind that the selector tells
 */
export function closest(event, selector) {
  return event.target instanceof Element ? event.target.closest(selector) : null;
}

/** @type {Record<string, string>} */
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/**
 * Text made safe to stand inside HTML or an attribute.
 * @param {unknown} text
 */
export function escapeHTML(text) {
  return String(text).replace(/[&<>"]/g, (c) => ESCAPES[c]);
}

/**
 * Three significant digits, without an exponent for the sizes that occur here.
 * @param {number} value
 */
export function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toString();
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** @type {[number, string][]} */
const UNITS = [
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
];

/**
 * A number of bytes as "37 kB".
 * @param {number | null | undefined} size
 */
export function bytesText(size) {
  if (size === null || size === undefined) return "unknown";
  for (const [unit, name] of UNITS) {
    if (size >= unit) return `${Number((size / unit).toPrecision(3))} ${name}`;
  }
  return `${size} B`;
}

/**
 * Seconds as "12.3 ms".
 * @param {number} seconds
 */
export function duration(seconds) {
  /** @type {[number, string][]} */
  const units = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
    [1e-9, "ns"],
  ];
  const [size, name] = units.find(([unit]) => seconds >= unit * 0.9995) || units[3];
  return `${digits(seconds / size)} ${name}`;
}

/** A speed is above what was measured if it is more than this above it (mlc_lab/observe/roofs.py). */
export const MARGIN = 1.03;

/**
 * How much of the machine's peak a speed is, as ", 87 % of peak"; "" where that is not known. What
 * is above it says so: the peak was measured at a busy moment.
 * @param {number | null | undefined} fraction
 */
export function ofPeak(fraction) {
  if (!fraction) return "";
  return fraction > MARGIN
    ? t(", above the measured peak")
    : t(", {part} of peak", { part: percent(fraction) });
}

/**
 * A fraction as "4.7 %".
 * @param {number} fraction
 */
export function percent(fraction) {
  const value = 100 * fraction;
  if (value > 0 && value < 0.005) return "< 0.01 %";
  return `${value.toFixed(value >= 10 || value === 0 ? 0 : value >= 0.095 ? 1 : 2)} %`;
}

/**
 * How far times lie apart, as " ± 12 %"; "" where that is not known. Where they differ by more than
 * the time itself, as at a busy moment, a number would say nothing.
 * @param {number | null | undefined} fraction
 */
export function spreadOf(fraction) {
  if (fraction === null || fraction === undefined) return "";
  return fraction < 1 ? ` ± ${percent(fraction)}` : t(", unsteady");
}

/**
 * A small number as "2.4e-7", an ordinary one in digits.
 * @param {number} value
 */
export function small(value) {
  return value === 0 ? "0" : value < 1e-3 ? value.toExponential(1) : digits(value);
}

/**
 * Put text on the clipboard; where the host forbids it, through a selection.
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { style: "position:fixed;opacity:0" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/**
 * Data that came compressed: JSON, by gzip, in base 64.
 * @param {string} text
 * @returns {Promise<any>}
 */
export async function gunzip(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/**
 * A button that copies what `text()` gives and says so for a moment.
 * @param {string} label
 * @param {() => string} text
 * @param {string} [word] on the button
 */
export function copyButton(label, text, word = t("Copy")) {
  const button = h("button", { type: "button", class: "copy", "aria-label": label }, word);
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(text())) ? t("Copied") : t("Not allowed here");
    setTimeout(() => (button.textContent = word), 1500);
  });
  return button;
}
