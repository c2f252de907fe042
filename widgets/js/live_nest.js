// The loop nest on the page of choices: loops are boxes within boxes, and what is new is marked. The
// loops that an open order puts in order are dragged up and down, or moved with ↑ and ↓.

import { drag, h } from "./dom.js";
import { newLines } from "./diff.js";
import { t } from "./words.js";

/** @typedef {{ knob: number, label: number }} Place which label of which knob a loop is */

/**
 * What a box says, with how deep it lies: what is compared to tell whether it is new.
 * @param {Data.NestRow[]} rows
 */
const words = (rows) => rows.map(([depth, , head, tint]) => `${depth} ${head} ${tint}`);

/** @param {Data.NestRow} row the name of the loop of a row: "j_0" of "j_0 : 8" */
const nameOf = ([, , head]) => head.split(" : ")[0];

/**
 * The rows that are the loops of an order: those around one block that has most of their names. Of
 * several such blocks it is the one that the order was said of, or what has become of it.
 * @param {Data.NestRow[]} rows
 * @param {Data.Knob} knob
 * @returns {Map<number, number>} number of the row -> number of the label
 */
export function loopsOf(rows, knob) {
  /** @type {number[]} */
  const open = [];
  let best = { score: 0, found: new Map() };
  rows.forEach(([depth, kind, head], n) => {
    open.length = depth;
    open[depth] = n;
    if (kind !== "block") return;
    const found = new Map();
    for (const at of open) {
      const label = knob.labels.indexOf(at === undefined ? "" : nameOf(rows[at]));
      if (label >= 0 && rows[at][1] === "loop") found.set(at, label);
    }
    const mine = head === knob.where || head.startsWith(`${knob.where}_`);
    const score = 2 * found.size + (mine ? 1 : 0);
    if (found.size > 1 && score >= best.score) best = { score, found };
  });
  return best.found;
}

export class NestPane {
  /** @param {(knob: number, from: number, to: number) => void} onmove a label goes to the place of another */
  constructor(onmove) {
    this.onmove = onmove;
    this.element = h("div", {
      class: "pane nest-pane",
      role: "region",
      "aria-label": t("Loop nest"),
      tabindex: "0",
    });
  }

  /**
   * @param {Data.NestRow[]} rows
   * @param {Data.NestRow[] | undefined} before of the program that was shown before
   * @param {Data.Knob[]} knobs
   * @param {Data.KnobValue[]} state
   */
  draw(rows, before, knobs, state) {
    const focused = /** @type {HTMLElement | null} */ (this.element.querySelector(":focus"));
    const held = focused?.dataset.place;
    const top = this.element.scrollTop;
    const marked = before ? newLines(words(before), words(rows)) : new Set();
    /** @type {Map<number, Place>} */
    const places = new Map();
    knobs.forEach((knob, at) => {
      if (knob.kind !== "order" || (knob.forms?.length && !knob.forms.includes(Number(state[0]))))
        return;
      for (const [row, label] of loopsOf(rows, knob)) {
        if (!places.has(row)) places.set(row, { knob: at, label });
      }
    });
    /** @type {HTMLElement[]} */
    const open = [h("div", {})];
    rows.forEach((row, n) => {
      const [depth, kind, head, tint] = row;
      open.length = depth + 1;
      const place = places.get(n);
      const order = place && /** @type {number[]} */ (state[place.knob]);
      const note = kind === "loop" ? (tint === "serial" ? "" : tint) : kind === "block" ? kind : "";
      const sign = marked.has(n) ? "~ " : "";
      const said = [h("b", {}, `${sign}${head}`), note ? h("em", {}, note) : null];
      const bar =
        place && order
          ? h(
              "button",
              {
                type: "button",
                class: "head",
                "data-place": `${place.knob} ${place.label}`,
                "aria-label": t(
                  "loop {name}, place {at} of {count}: move it with arrow up and down",
                  {
                    name: nameOf(row),
                    at: order.indexOf(place.label) + 1,
                    count: order.length,
                  },
                ),
              },
              ...said,
            )
          : h("div", { class: "head" }, ...said);
      if (place && order) this.movable(bar, place, order);
      const box = h(
        "div",
        { class: `box ${kind} ${tint}${marked.has(n) ? " changed" : ""}`, title: head },
        bar,
      );
      open[depth].append(box);
      open.push(box);
    });
    this.element.replaceChildren(...open[0].childNodes);
    this.element.scrollTop = top;
    if (held)
      this.bars()
        .find((bar) => bar.dataset.place === held)
        ?.focus();
  }

  /** @returns {HTMLElement[]} the heads of loops that can be moved */
  bars() {
    return [...this.element.querySelectorAll("button.head")].map(
      (bar) => /** @type {HTMLElement} */ (bar),
    );
  }

  /**
   * @param {HTMLElement} bar
   * @param {Place} place
   * @param {number[]} order
   */
  movable(bar, { knob, label }, order) {
    const from = order.indexOf(label);
    bar.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      event.stopPropagation();
      this.onmove(knob, from, from + by);
    });
    bar.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const others = this.bars().filter((one) => one.dataset.place?.startsWith(`${knob} `));
      /** @type {HTMLElement} */
      let target = bar;
      /** @param {PointerEvent} now */
      const move = (now) => {
        const far = others.map((one) => {
          const box = one.getBoundingClientRect();
          return Math.abs(now.clientY - (box.top + box.height / 2));
        });
        target = others[far.indexOf(Math.min(...far))];
        bar.classList.add("held");
        for (const one of others) one.classList.toggle("drop", one === target && one !== bar);
      };
      /** @param {PointerEvent} last */
      const end = (last) => {
        bar.classList.remove("held");
        for (const one of others) one.classList.remove("drop");
        const to = order.indexOf(Number(target.dataset.place?.split(" ")[1]));
        if (last.type === "pointerup") this.onmove(knob, from, to);
      };
      drag(event, bar, move, end);
    });
  }
}
