// Two schedules side by side: a step of one beside a step of the other.
//
// Draws what mlc_lab/observe/compare.py makes of two recordings: one recording with the steps of
// both, in which the same things have the same keys.

import { copyButton, digits, duration, h, later } from "./dom.js";
import { Lineage } from "./lineage.js";
import { drawNests } from "./nest.js";
import { PaneTools } from "./panes.js";
import { marksOf, Programs, SIDES, SideBySide } from "./program.js";
import { facts, pythonOf } from "./facts.js";
import { followTheme } from "./theme.js";
import { Unmeasured } from "./unmeasured.js";
import { speak, t } from "./words.js";

/** @typedef {ReturnType<Compare["column"]>} Column */

/** @type {Record<string, string>} */
const SIGNS_OF = { new: "+", removed: "−", changed: "~", moved: "↕" };

export class Compare {
  /** @type {Data.Recording} */
  recording = later();
  /** @type {[number, number][]} */
  halves = later();
  /** @type {[string, string]} */
  preludes = later();
  /** @type {Programs} */
  programs = later();
  /** @type {Lineage} */
  lineage = later();
  /** @type {HTMLDivElement} */
  live = later();
  /** @type {SideBySide} */
  sides = later();
  /** @type {Column[]} */
  columns = later();
  /** @type {HTMLDivElement} */
  legend = later();
  /** @type {HTMLDivElement} */
  verdict = later();
  /** @type {[string, string]} */
  names = later();
  /** @type {Unmeasured} */
  unmeasured = later();
  /** @type {HTMLButtonElement} */
  nest = later();
  /** @type {number[]} */
  at = later();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} element
   */
  constructor(model, element) {
    this.model = model;
    this.root = h("section", {
      class: "mlc",
      role: "group",
      "aria-roledescription": t("comparison"),
      tabindex: "-1",
    });
    element.replaceChildren(this.root);
    this.panes = new PaneTools(model, this.root, () => this.sides?.draw(false));
    this.build();
    this.stopTheme = followTheme(this.root);
    this.onModel = () => this.show(this.model.get("left"), this.model.get("right"), false);
    this.onData = () => this.build();
    for (const name of ["left", "right"]) model.on(`change:${name}`, this.onModel);
    model.on("change:comparison", this.onData);
  }

  remove() {
    this.unmeasured.remove();
    this.panes.remove();
    this.stopTheme();
    for (const name of ["left", "right"]) this.model.off(`change:${name}`, this.onModel);
    this.model.off("change:comparison", this.onData);
  }

  build() {
    const { recording, split, title, preludes, names } = this.model.get("comparison");
    // Costs that come in are written into a copy, as in the stepper.
    this.recording = {
      ...recording,
      programs: recording.programs.map((/** @type {any} */ program) => ({ ...program })),
    };
    this.names = names || [t("Left"), t("Right")];
    this.unmeasured?.remove();
    this.unmeasured = new Unmeasured(this.recording, this.model, () => this.drawCosts(), true);
    this.halves = [
      [0, split],
      [split, recording.steps.length],
    ];
    this.preludes = preludes || ["", ""];
    this.programs = new Programs(recording);
    this.lineage = new Lineage(recording, this.programs);
    this.live = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.sides = new SideBySide(this.programs, (side, line, key) => this.select(side, line, key), {
      lineage: this.lineage,
      oncursor: (side, line, said) => (this.live.textContent = said),
    });
    this.columns = [0, 1].map((i) => this.column(i));
    this.legend = h("div", { class: "legend" });
    this.verdict = h("div", { class: "verdict" });
    this.nest = h(
      "button",
      {
        type: "button",
        "aria-pressed": "false",
        class: "small",
        onclick: () => {
          const on = this.nest.getAttribute("aria-pressed") !== "true";
          this.nest.setAttribute("aria-pressed", String(on));
          this.sides.setPicture(
            on
              ? (programs, a, b) =>
                  drawNests(
                    programs.programs[a],
                    programs.programs[b],
                    SIDES.map((side) => marksOf(programs, a, b, side)),
                  )
              : null,
          );
        },
      },
      t("Loop nests"),
    );
    this.root.setAttribute("aria-label", t("Comparison of {title}", { title }));
    this.root.replaceChildren(
      h(
        "div",
        { class: "bar" },
        h("span", { class: "title" }, title),
        this.verdict,
        this.nest,
        this.panes.tools,
      ),
      h(
        "div",
        { class: "panes columns" },
        this.columns.map((column) => column.element),
      ),
      this.unmeasured.element,
      this.sides.element,
      this.panes.grip,
      h("div", { class: "foot" }, this.legend),
      this.live,
    );
    this.at = [-1, -1];
    const last = this.halves.map(([from, to]) => to - from - 1);
    this.show(this.model.get("left") ?? last[0], this.model.get("right") ?? last[1], false);
  }

  /**
   * What stands above a pane: which step it shows, its instruction and what it cost.
   * @param {number} i
   */
  column(i) {
    const [from, to] = this.halves[i];
    const slider = h("input", {
      type: "range",
      min: 0,
      max: to - from - 1,
      step: 1,
      "aria-label": i ? t("Step of the right schedule") : t("Step of the left schedule"),
    });
    slider.addEventListener("input", () => {
      const at = [...this.at];
      at[i] = Number(slider.value);
      this.show(at[0], at[1]);
    });
    const count = h("output", { class: "count" });
    const now = h("pre", { class: "now", tabindex: "0" });
    const costs = h("div", { class: "facts", role: "list" });
    const copy = copyButton(
      i
        ? t("Copy the Python of the right schedule so far")
        : t("Copy the Python of the left schedule so far"),
      () => pythonOf(this.preludes[i], this.recording.steps.slice(from, from + this.at[i] + 1)),
    );
    const element = h(
      "div",
      { class: "half" },
      h("h4", { class: "of-schedule" }, this.names[i]),
      h("div", { class: "buttons" }, slider, count),
      h("div", { class: "code" }, now, copy),
      costs,
    );
    return { element, slider, count, now, costs };
  }

  /** @param {number} i */
  stepAt(i) {
    return this.recording.steps[this.halves[i][0] + this.at[i]];
  }

  /**
   * Show a step of each schedule, by their numbers in it.
   * @param {number} left
   * @param {number} right
   */
  show(left, right, tell = true) {
    const at = [left, right].map((n, i) =>
      Math.max(0, Math.min(this.halves[i][1] - this.halves[i][0] - 1, n)),
    );
    if (at[0] === this.at[0] && at[1] === this.at[1]) return;
    this.at = at;
    this.columns.forEach((column, i) => {
      const step = this.stepAt(i);
      const last = this.halves[i][1] - this.halves[i][0] - 1;
      column.slider.value = String(at[i]);
      column.slider.setAttribute(
        "aria-valuetext",
        t("{at} of {last}: {name}", { at: at[i], last, name: step.op }),
      );
      column.count.textContent = `${at[i]} / ${last}`;
      column.now.textContent = step.python || t("the program as it was");
    });
    this.drawCosts();
    const [a, b] = [this.stepAt(0), this.stepAt(1)];
    this.sides.show(a.after, b.after, null, {
      captions: [a, b].map((step, i) =>
        t("{name}: after step {at}, {op}", { name: this.names[i], at: at[i], op: step.op }),
      ),
      relate: (side, keys) => this.related(side, keys),
    });
    const counts = this.programs.counts(a.after, b.after);
    const parts = Object.keys(SIGNS_OF)
      .filter((mark) => counts[mark])
      .map((mark) =>
        h("span", { class: `l ${mark}` }, `${SIGNS_OF[mark]} ${counts[mark]} ${t(mark)}`),
      );
    this.legend.replaceChildren(...(parts.length ? parts : [t("both programs are the same")]));
    this.live.textContent = t("Left step {left}, {a}. Right step {right}, {b}. {faster}", {
      left: at[0],
      a: a.op,
      right: at[1],
      b: b.op,
      faster: this.faster(),
    });
    if (tell) {
      this.model.set("left", at[0]);
      this.model.set("right", at[1]);
      this.model.save_changes();
    }
  }

  /** What both programs cost, and which of them is the faster one. */
  drawCosts() {
    this.columns.forEach((column, i) => {
      const [from] = this.halves[i];
      column.costs.replaceChildren(
        ...facts(this.recording, from + this.at[i], from).map((fact) =>
          h(
            "div",
            { class: `fact ${fact.kind || ""}`, role: "listitem" },
            h("span", {}, fact.name),
            h("strong", {}, fact.value),
          ),
        ),
      );
    });
    this.verdict.textContent = this.faster();
  }

  /** Which of the two programs is the faster one, in words. */
  faster() {
    const shown = [0, 1].map((i) => this.stepAt(i).after);
    // Two measurements of one program differ by noise alone.
    if (!Object.values(this.programs.counts(shown[0], shown[1])).some(Boolean)) return "";
    const [a, b] = shown.map((program) => this.recording.programs[program].cost);
    if (!a?.time || !b?.time) return "";
    const ratio = a.time / b.time;
    const noise = 1 + (a.spread || 0) + (b.spread || 0);
    if (ratio < noise && 1 / ratio < noise) return t("≈ equally fast within noise");
    return ratio > 1
      ? t("▶ right is {ratio}× faster ({time} against {other})", {
          ratio: digits(ratio),
          time: duration(b.time),
          other: duration(a.time),
        })
      : t("◀ left is {ratio}× faster ({time} against {other})", {
          ratio: digits(1 / ratio),
          time: duration(a.time),
          other: duration(b.time),
        });
  }

  /**
   * The same thing in the other program, or what has an ancestor in common with it.
   * @param {Data.Side} side
   * @param {Iterable<number>} keys
   * @returns {Data.Related}
   */
  related(side, keys) {
    const i = side === "before" ? 0 : 1;
    const there = this.lineage.keysIn(this.stepAt(1 - i).after);
    const found = new Set();
    for (const key of keys) {
      if (there.has(key)) found.add(key);
      else for (const other of this.across(i, key)) if (there.has(other)) found.add(other);
    }
    const here = new Set(keys);
    return i ? { before: found, after: here } : { before: here, after: found };
  }

  /**
   * From a key of one schedule back to the beginning, and on in the other schedule.
   * @param {number} i
   * @param {number} key
   */
  across(i, key) {
    let found = new Set([key]);
    const [from] = this.halves[i];
    for (let s = from + this.at[i]; s > from; s--) {
      found = this.lineage.through(found, (k) => this.lineage.before(s, k));
    }
    const [other] = this.halves[1 - i];
    for (let s = other + 1; s <= other + this.at[1 - i]; s++) {
      found = this.lineage.through(found, (k) => this.lineage.after(s, k));
    }
    return found;
  }

  /**
   * @param {Data.Side} side
   * @param {number} line
   * @param {number | null} key
   */
  select(side, line, key) {
    if (line < 0) return;
    const i = side === "before" ? 0 : 1;
    const found = this.programs.programs[this.stepAt(i).after][line];
    /** @type {Data.Selection} */
    const selection = { side: i ? "right" : "left", step: this.at[i], line, text: found.text };
    if (key !== null) {
      [selection.kind] = this.lineage.key(key);
      selection.name = this.lineage.nameIn(this.stepAt(i).after, key);
    }
    this.model.set("selection", selection);
    this.model.save_changes();
  }
}

/**
 * What anywidget calls with an element to draw in; the return value takes the view down.
 * @param {Data.Host} host
 */
export function renderComparison({ model, el }) {
  speak(model, el);
  const view = new Compare(model, el);
  return () => view.remove();
}

export default { render: renderComparison };
