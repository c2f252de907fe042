// Numbers in prose that can be dragged: `[16](#live:tile)` or `{live:tile}` in the text of a notebook,
// or of the page, becomes the value of the open number of that name. Dragging it sideways, or the
// arrow keys, choose another one; it follows where the number is changed elsewhere. The first form is
// a link: where no view is it reads as a number, too.

import { drag, h } from "./dom.js";
import { t } from "./words.js";

const NOTE = /\{live:([^{}\n]{1,80})\}/g;
/** Where text is looked for: Markdown cells of JupyterLab, Notebook and exported notebooks. */
const TEXTS = ".jp-RenderedMarkdown, .jp-MarkdownOutput, .text_cell_render, .mlc-prose";
/** The links that are numbers; a page of the site has them without an address. */
const LINKS = 'a[href^="#live:"], a[data-live]';
/** What a view says of itself: the names of its numbers. Each view has a script of its own. */
const NAMES = "data-live-names";
/** Pixels of a drag for one choice. */
const STEP = 14;

/**
 * The parts of a text: strings, and names of numbers in arrays of one.
 * @param {string} text
 * @returns {(string | [string])[]}
 */
export function parts(text) {
  /** @type {(string | [string])[]} */
  const found = [];
  let from = 0;
  for (const match of text.matchAll(NOTE)) {
    if (match.index > from) found.push(text.slice(from, match.index));
    found.push([match[1].trim()]);
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push(text.slice(from));
  return found;
}

/**
 * Whether a change of the page is about a text, or puts a view into the page: a view is made before
 * it has a place there.
 * @param {MutationRecord} change
 */
function isNews({ target, addedNodes }) {
  if (target instanceof Element && target.closest(TEXTS)) return true;
  const either = `${TEXTS}, [${NAMES}]`;
  return [...addedNodes].some(
    (node) => node instanceof Element && (node.matches(either) || node.querySelector(either)),
  );
}

/**
 * The view that a number in a text is of: of those that have one of that name the nearest, and of two
 * as near the one above.
 * @param {Element} place
 * @param {Element} text
 * @param {string} name
 */
function nearest(place, text, name) {
  const all = [...place.querySelectorAll(`${TEXTS}, [${NAMES}]`)];
  const at = all.indexOf(text);
  /** @param {Element} view */
  const far = (view) => Math.abs(all.indexOf(view) - at);
  return all
    .filter((each) => JSON.parse(each.getAttribute(NAMES) ?? "[]").includes(name))
    .reduce(
      (best, each) => (!best || far(each) < far(best) ? each : best),
      /** @type {any} */ (null),
    );
}

/**
 * The name in the address of a link.
 * @param {any} link
 * @returns {string}
 */
function namedBy({ dataset, hash }) {
  try {
    return dataset.live ?? decodeURIComponent(hash.slice("#live:".length));
  } catch {
    return ""; // no text of an address
  }
}

/** @param {Data.Knob} knob */
const isNumber = (knob) => ["number", "form"].includes(knob.kind);

export class Prose {
  #choose;
  #home;
  #knobs;
  /** @type {{ element: HTMLElement, note: string, at: number }[]} */
  #numbers = [];
  #observer;
  /** @type {Data.KnobValue[]} */
  #state = [];
  /** @type {ReturnType<typeof setTimeout> | 0} */
  #waits = 0;

  /**
   * @param {HTMLElement} root the view; texts are looked for in its notebook, or on its page
   * @param {Data.Knob[]} knobs
   * @param {(at: number, choice: number) => void} choose
   */
  constructor(root, knobs, choose) {
    this.#knobs = knobs;
    this.#choose = choose;
    this.#home = root;
    root.setAttribute(NAMES, JSON.stringify(knobs.filter(isNumber).map((k) => k.name)));
    this.#observer = new MutationObserver((changes) => {
      // not for each node of a cell that is being drawn
      if (changes.some(isNews)) this.#waits ||= setTimeout(() => this.#scan(), 100);
    });
    this.#scan();
  }

  /** Make the notes in texts into numbers. */
  #scan() {
    this.#waits = 0;
    this.#observer.disconnect();
    const place = this.#home.closest(".jp-Notebook, .jp-NotebookPanel-notebook") ?? document.body;
    this.#numbers = this.#numbers.filter(({ element }) => element.isConnected);
    for (const text of place.querySelectorAll(TEXTS)) {
      // the text of another view is about its own numbers, which may have the same names
      const view = text.closest(".mlc");
      if (!view || view === this.#home) this.#read(place, text, view !== null);
    }
    this.follow(this.#state);
    this.#observer.observe(place, { childList: true, subtree: true });
  }

  /**
   * @param {Element} place
   * @param {Element} text
   * @param {boolean} own whether the text is of this view
   */
  #read(place, text, own) {
    /** @param {string} name */
    const find = (name) =>
      own || nearest(place, text, name) === this.#home
        ? this.#knobs.findIndex((k) => isNumber(k) && k.name === name)
        : -1;
    /** @type {NodeListOf<HTMLElement>} */
    const links = text.querySelectorAll(LINKS);
    for (const link of links) {
      const name = namedBy(link);
      const at = link.hidden ? -1 : find(name);
      // what it says is a choice: else it is of a view that is not here yet
      if (!this.#knobs[at]?.labels.includes(link.textContent ?? "")) continue;
      link.hidden = true;
      link.before(this.#number(at, name));
    }
    // what a view took that is further away
    for (const element of text.querySelectorAll(".mlc-live-number")) {
      const name = element.getAttribute("aria-label") ?? "";
      const mine = this.#numbers.some((number) => number.element === element);
      if (!mine && find(name) >= 0) element.replaceWith(this.#number(find(name), name));
    }
    const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
    /** @type {Text[]} */
    const nodes = [];
    while (walker.nextNode()) {
      const node = /** @type {Text} */ (walker.currentNode);
      if (node.data.includes("{live:") && !node.parentElement?.closest("code, pre")) {
        nodes.push(node);
      }
    }
    for (const node of nodes) {
      const made = parts(node.data).map((part) => {
        if (typeof part === "string") return part;
        const at = find(part[0]);
        return at < 0 ? `{live:${part[0]}}` : this.#number(at, part[0]);
      });
      if (made.some((part) => typeof part !== "string")) node.replaceWith(...made);
    }
  }

  /**
   * @param {number} at
   * @param {string} name
   */
  #number(at, name) {
    const { labels } = this.#knobs[at];
    const element = h("span", {
      class: "mlc-live-number",
      role: "slider",
      tabindex: "0",
      "aria-label": name,
      "aria-valuemin": "0",
      "aria-valuemax": String(labels.length - 1),
      title: t("Drag it, or use the arrow keys"),
    });
    /** @param {number} choice */
    const go = (choice) => this.#choose(at, Math.max(0, Math.min(labels.length - 1, choice)));
    element.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      const end = { Home: 0, End: labels.length - 1 }[event.key];
      if (by === undefined && end === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      go(end ?? Number(this.#state[at]) + (by ?? 0));
    });
    element.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      element.focus();
      const [from, start] = [event.clientX, Number(this.#state[at])];
      drag(event, element, (now) => go(start + Math.round((now.clientX - from) / STEP)));
    });
    this.#numbers.push({ element, note: `{live:${name}}`, at });
    return element;
  }

  /**
   * Show the values of a state.
   * @param {Data.KnobValue[]} state
   */
  follow(state) {
    this.#state = state;
    if (!state.length) return;
    for (const { element, at } of this.#numbers) {
      const choice = Number(state[at]);
      const label = this.#knobs[at].labels[choice];
      if (element.textContent !== label) element.textContent = label;
      element.setAttribute("aria-valuenow", String(choice));
      element.setAttribute("aria-valuetext", label);
    }
  }

  /** The texts as they were. */
  remove() {
    this.#observer.disconnect();
    clearTimeout(this.#waits);
    this.#home.removeAttribute(NAMES); // another view may take the texts
    for (const { element, note } of this.#numbers) {
      const link = /** @type {HTMLElement | null} */ (element.nextElementSibling);
      if (link?.hidden && link.matches(LINKS)) {
        link.hidden = false;
        element.remove();
      } else element.replaceWith(note);
    }
    this.#numbers = [];
  }
}
