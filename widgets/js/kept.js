// What a notebook keeps of a view (saved.py writes it), read: for JupyterLab, and for the pages of the
// site.

import { gunzip } from "./dom.js";

export const KEPT = "application/vnd.mlc-lab.view+json";
/** What saved.py writes. */
const VERSION = 1;

/**
 * The address of a file in the folder `base`, of a name that came from a notebook.
 * @param {unknown} name
 * @param {string} suffix
 * @param {string} base
 */
export function address(name, suffix, base) {
  if (typeof name !== "string" || !/^[a-z]+$/.test(name)) throw new Error("it names no view");
  return new URL(name + suffix, base).href;
}

/** @type {Set<string>} */
const styles = new Set();

/**
 * Have the style sheets of some names on the page, once.
 * @param {unknown} names
 * @param {string} base
 */
export async function style(names, base) {
  if (!Array.isArray(names)) throw new Error("it names no styles");
  const missing = names
    .map((name) => address(name, ".css", base))
    .filter((href) => !styles.has(href));
  await Promise.all(
    missing.map((href) => {
      styles.add(href);
      const link = document.createElement("link");
      link.rel = "stylesheet";
      link.href = href;
      const done = new Promise((resolve) => (link.onload = link.onerror = resolve));
      document.head.append(link);
      return done;
    }),
  );
}

/**
 * The values of the traits of a view.
 * @param {any} kept
 */
export async function valuesOf(kept) {
  if (kept?.version !== VERSION) throw new Error("another version of MLC Lab wrote it");
  if (typeof kept.packed !== "string") throw new Error("it was too large to be kept");
  return { ...(await gunzip(kept.packed)), ...kept.values, ...kept.alone };
}
