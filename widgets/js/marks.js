// A picture in which places are marked: elements of buffers, lines of a program, calls of a graph.
//
// The data is that of mlc_lab/exercises/pictures.py. A place is a checkbox, or a radio button where
// one is asked for; arrow keys go to the next place in their direction, the space bar marks it.

import { closest, h, later, OWN_KEYS, sure } from "./dom.js";
import { curve } from "./graph.js";
import { tokens } from "./highlight.js";
import { svg } from "./svg.js";
import { t } from "./words.js";

/** @type {Record<string, [number, number]>} */
const ARROWS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
/** How much farther than it is a place seems that does not lie straight in the direction of a key. */
const BESIDE = 4;

export class MarkedPicture {
  /** @type {Map<string, HTMLElement>} */
  places = new Map();
  /** @type {Set<string>} */
  marked = new Set();
  /** What the pointer does to the places that it is drawn over: marks them, or not. */
  paint = false;
  painting = false;
  /** Whether a click was seen as the pointer went down already. */
  seen = false;
  /** @type {HTMLElement} */
  count = later();

  /**
   * @param {Data.TaskField} field
   * @param {string[] | string | null | undefined} value
   * @param {boolean} disabled
   * @param {(value: string[] | string | null) => void} changed
   */
  constructor(field, value, disabled, changed) {
    this.field = field;
    this.one = field.kind === "choice";
    this.disabled = disabled;
    this.changed = changed;
    const picture = sure(field.picture);
    const drawing =
      picture.kind === "cells"
        ? this.cells(picture)
        : picture.kind === "lines"
          ? this.lines(picture)
          : this.calls(picture);
    drawing.addEventListener("keydown", (event) => this.key(event));
    drawing.addEventListener("pointerdown", (event) => this.down(event));
    drawing.addEventListener("pointerover", (event) => this.over(event));
    drawing.addEventListener("click", (event) => this.click(event));
    drawing.classList.add("picture", picture.kind);
    drawing.setAttribute("role", this.one ? "radiogroup" : "group");
    drawing.setAttribute("aria-label", field.question);
    this.count = h("span", { role: "status" });
    const clear = h(
      "button",
      { type: "button", class: "small", onclick: () => this.put([]) },
      t("Unmark all"),
    );
    const told = this.one
      ? t("One place: arrow keys and space, or a click.")
      : t("Right marks count, wrong ones take as much away. Arrow keys and space, or the pointer.");
    this.element = h(
      "div",
      { class: "marking" },
      drawing,
      h("p", { class: "hint" }, this.count, disabled ? null : clear, h("span", {}, told)),
    );
    const given = Array.isArray(value) ? value : value ? [value] : [];
    this.marked = new Set(given.filter((name) => this.places.has(name)));
    this.draw();
    const first = [...this.marked][0] ?? field.choices[0];
    this.places.get(first)?.setAttribute("tabindex", "0");
  }

  // ---------------------------------------------------------------------------- what is drawn

  /**
   * @param {string} name
   * @param {...(string | HTMLElement)} inside
   */
  place(name, ...inside) {
    const attributes = {
      class: "place",
      role: this.one ? "radio" : "checkbox",
      tabindex: "-1",
      title: name,
      "data-mark": name,
      "aria-disabled": this.disabled ? "true" : null,
      [OWN_KEYS]: "true",
    };
    const element = h("div", attributes, inside);
    this.places.set(name, element);
    return element;
  }

  /** @param {Data.Cells} picture */
  cells(picture) {
    const head = (/** @type {string | number} */ text) =>
      h("span", { class: "index", "aria-hidden": "true" }, String(text));
    return h(
      "div",
      {},
      picture.grids.map(({ name, shape }) => {
        const [rows, columns] = shape.length > 1 ? shape : [1, shape[0]];
        const numbers = [...Array(columns).keys()];
        const parts = [head(name), ...numbers.map(head)];
        for (let i = 0; i < rows; i++) {
          parts.push(head(shape.length > 1 ? i : ""));
          for (const j of numbers)
            parts.push(this.place(shape.length > 1 ? `${name}[${i}, ${j}]` : `${name}[${j}]`));
        }
        return h("div", { class: "cells", style: `--columns: ${columns}` }, parts);
      }),
    );
  }

  /** @param {Data.Lines} picture */
  lines(picture) {
    return h(
      "div",
      {},
      picture.lines.map((line, at) => {
        const parts = tokens(line).map(([kind, word]) =>
          h("span", kind ? { class: `t-${kind}` } : {}, word),
        );
        const number = h("span", { class: "index" }, String(at + 1));
        return line.trim()
          ? this.place(`${picture.word} ${at + 1}`, number, ...parts)
          : h("div", { class: "empty" }, number);
      }),
    );
  }

  /** @param {Data.Calls} picture */
  calls(picture) {
    const { width, height, boxes, routes } = picture;
    const edges = svg(
      "svg",
      { width, height, "aria-hidden": "true" },
      ...routes.map((points) => svg("path", { class: "edge", d: curve(points) })),
      ...routes.map((points) => {
        const [x, y] = points[points.length - 1];
        return svg("path", { class: "head", d: `M${x - 4},${y - 8}L${x},${y}L${x + 4},${y - 8}z` });
      }),
    );
    const nodes = boxes.map(({ mark, at, words }) => {
      const lines = words.map((word) => h("span", {}, word));
      const box = mark ? this.place(mark, ...lines) : h("div", { class: "value" }, lines);
      box.style.cssText = `left:${at[0]}px;top:${at[1]}px;width:${at[2]}px;height:${at[3]}px`;
      return box;
    });
    const inside = h("div", { style: `width:${width}px;height:${height}px` }, nodes);
    inside.prepend(edges);
    return h("div", {}, inside);
  }

  /** Show what is marked. */
  draw() {
    for (const [name, element] of this.places) {
      element.setAttribute("aria-checked", String(this.marked.has(name)));
      this.call(element, name);
    }
    this.count.textContent = this.one
      ? ([...this.marked][0] ?? "")
      : t("{count} marked", { count: this.marked.size });
  }

  /**
   * @param {HTMLElement} element
   * @param {string} name
   */
  call(element, name) {
    const text = element.closest(".lines, .calls") ? element.innerText || element.textContent : "";
    const told = element.classList.contains("wrong")
      ? t("should not be marked")
      : element.classList.contains("missing")
        ? t("should be marked")
        : "";
    element.setAttribute("aria-label", [name, text, told].filter(Boolean).join(", "));
  }

  /**
   * Show the places that a check has named: one that is marked wrongly, one that is missing.
   * @param {string} [wrong]
   * @param {string} [missing]
   */
  flag(wrong, missing) {
    for (const [name, element] of this.places) {
      element.classList.toggle("wrong", name === wrong);
      element.classList.toggle("missing", name === missing);
      this.call(element, name);
    }
  }

  // ---------------------------------------------------------------------------- what is marked

  /** @param {string[]} names */
  put(names) {
    this.marked = new Set(names);
    this.draw();
    const marks = this.field.choices.filter((name) => this.marked.has(name));
    this.changed(this.one ? (marks[0] ?? null) : marks);
  }

  /**
   * @param {string} name
   * @param {boolean} on
   */
  set(name, on) {
    if (this.disabled || this.marked.has(name) === on) return;
    const rest = this.one ? [] : [...this.marked].filter((other) => other !== name);
    this.put(on ? [...rest, name] : rest);
  }

  /** @param {string} name */
  focus(name) {
    for (const element of this.places.values()) element.setAttribute("tabindex", "-1");
    const element = sure(this.places.get(name));
    element.setAttribute("tabindex", "0");
    element.focus();
  }

  /** @param {PointerEvent} event */
  down(event) {
    const name = closest(event, "[data-mark]")?.dataset.mark;
    if (!name || event.pointerType !== "mouse" || event.button) return; // a finger may scroll
    event.preventDefault();
    this.seen = this.painting = true;
    this.paint = !this.marked.has(name);
    this.focus(name);
    this.set(name, this.paint);
    const stop = () => {
      this.painting = false;
      setTimeout(() => (this.seen = false)); // after the click, if there is one
    };
    window.addEventListener("pointerup", stop, { once: true });
    window.addEventListener("pointercancel", stop, { once: true });
  }

  /** @param {PointerEvent} event */
  over(event) {
    const name = closest(event, "[data-mark]")?.dataset.mark;
    if (name && this.painting && !this.one) this.set(name, this.paint);
  }

  /** @param {MouseEvent} event */
  click(event) {
    const name = closest(event, "[data-mark]")?.dataset.mark;
    if (name && !this.seen) {
      this.focus(name);
      this.set(name, !this.marked.has(name));
    }
    this.seen = false;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const name = closest(event, "[data-mark]")?.dataset.mark;
    if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
    const { choices } = this.field;
    /** @type {string | null} */
    let to = null;
    if (event.key in ARROWS) to = this.beside(name, ARROWS[event.key]);
    else if (event.key === "Home") to = choices[0];
    else if (event.key === "End") to = choices[choices.length - 1];
    else if (event.key === " " || event.key === "Enter") this.set(name, !this.marked.has(name));
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (!to) return;
    this.focus(to);
    if (event.shiftKey && !this.one) this.set(to, this.marked.has(name));
  }

  /**
   * The nearest place in a direction; null where there is none.
   * @param {string} name
   * @param {[number, number]} direction
   */
  beside(name, [right, down]) {
    const here = sure(this.places.get(name)).getBoundingClientRect();
    /** @type {[number, string | null]} */
    let best = [Infinity, null];
    for (const [other, element] of this.places) {
      const there = element.getBoundingClientRect();
      const x = there.x + there.width / 2 - here.x - here.width / 2;
      const y = there.y + there.height / 2 - here.y - here.height / 2;
      const along = x * right + y * down;
      const aside = Math.abs(x * down + y * right);
      const room = down ? here.width + there.width : here.height + there.height;
      const far = along + BESIDE * Math.max(0, aside - room / 2) + aside / BESIDE;
      if (along > 1 && far < best[0]) best = [far, other];
    }
    return best[1];
  }
}
