// Draws the views on the pages of the site, from what the lessons' notebooks have kept of them.
//
// Pages work from a disk, where nothing can be fetched: the script of a view is loaded as a script,
// and leaves what it has in a variable.

import { address, style, valuesOf } from "./kept.js";
import { PageModel } from "./page.js";
import { PageCard } from "./page_card.js";

const BASE = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : "";

/** @type {Map<string, Promise<Data.View>>} */
const views = new Map();
/** Scripts are loaded one after the other: each uses the same variable.
 * @type {Promise<unknown>} */
let last = Promise.resolve();

/**
 * The view of a name.
 * @param {unknown} name
 * @returns {Promise<Data.View>}
 */
function viewOf(name) {
  const from = address(name, ".js", BASE);
  /** @returns {Promise<Data.View>} */
  const load = () =>
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = from;
      script.onload = () => resolve(/** @type {any} */ (globalThis).mlcView.default);
      script.onerror = () => reject(new Error(`the site has no view ${name}`));
      document.head.append(script);
    });
  const found = views.get(from) ?? last.then(load);
  last = found.catch(() => {});
  views.set(from, found);
  return found;
}

/**
 * Draw the view of a place from the recording inside of it.
 * @param {HTMLElement} place
 */
async function draw(place) {
  const text = place.querySelector("script")?.textContent ?? "null";
  const before = place.querySelector("div");
  try {
    const kept = JSON.parse(text);
    const [view, values] = await Promise.all([
      viewOf(kept?.view),
      valuesOf(kept),
      style(kept?.styles, BASE),
    ]);
    const el = document.createElement("div");
    view.render({ model: values.page ? new PageCard(values) : new PageModel(values), el });
    before?.replaceWith(el);
  } catch (error) {
    console.error(error); // what stands there without scripts stays
  }
}

/** Views are drawn when they come near to what is seen: a page may have many. */
const near = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      near.unobserve(entry.target);
      draw(/** @type {HTMLElement} */ (entry.target));
    }
  },
  { rootMargin: "800px" },
);

for (const place of document.querySelectorAll("[data-mlc-kept]")) near.observe(place);
