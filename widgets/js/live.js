// The page of choices: change a number, a step or an order, and see all that follows from it.
//
// Python (widgets/live.py) says what can be chosen and what was found; here it is drawn. A state has
// a value for each knob. In a page without a kernel the states that were computed lie in the page.

import { renderAccesses } from "./access_view.js";
import { countFacts } from "./counts.js";
import { newLines } from "./diff.js";
import { closest, copyButton, drag, duration, escapeHTML, h, later, spreadOf } from "./dom.js";
import { tokens } from "./highlight.js";
import { InnerLoopPane } from "./inner_loop.js";
import { changeOf, drawChoices } from "./live_chart.js";
import { NestPane } from "./live_nest.js";
import { PageModel } from "./page.js";
import { drawRoofline } from "./roofline.js";
import { Prose } from "./prose.js";
import { PaneTools } from "./panes.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

/** Visited states whose points stay in the roofline. */
const TRAIL = 12;
/** Changes of one knob with less time between them are one motion of the hand (`still_s`). */
const STILL_MS = 400;

/** @param {unknown} one @param {unknown} other values of knobs, or states */
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export class Live {
  /** @type {Data.Knob[]} */
  knobs = later();
  /** @type {Data.KnobValue[]} */
  state = later();
  /** @type {Data.LivePoint} */
  point = later();
  /** @type {Data.LivePoint | null} */
  before = null;
  /** The last one that was not refused: what is refused has no counts to compare with. */
  #legal = /** @type {Data.LivePoint | null} */ (null);
  /** The knob that was moved last. */
  moved = 0;
  /** The knob that the program follows, and when it did last. */
  #motion = { knob: -1, at: 0 };
  /** @type {{ element: HTMLElement, draw: () => void }[]} */
  controls = later();
  /** @type {HTMLSpanElement} */
  busy = later();
  /** @type {HTMLUListElement} */
  #why = later();
  /** @type {HTMLDivElement} */
  program = later();
  /** @type {HTMLDivElement} */
  refusal = later();
  /** @type {HTMLDivElement} */
  #facts = later();
  /** @type {HTMLDivElement} */
  #charts = later();
  /** @type {HTMLDivElement} */
  key = later();
  /** @type {HTMLDivElement} */
  #roofline = later();
  innerLoop = new InnerLoopPane();
  nest = new NestPane((knob, from, to) => this.reorder(knob, from, to));
  /** Numbers in the prose around the view. @type {Prose} */
  prose = later();
  /** @type {Map<string, { label: string, cost: Data.Cost, state: Data.KnobValue[] }>} */
  trail = new Map();
  /** @type {HTMLDetailsElement} */
  #accesses = later();
  /** @type {HTMLParagraphElement} */
  #accessNote = later();
  /** @type {HTMLDivElement} */
  #accessPlace = later();
  /** What the access view draws; undefined until it is opened. @type {PageModel | undefined} */
  #watched;
  #soon = false;
  /** The choices that the charts are drawn over. @type {Data.KnobValue[]} */
  #drawn = [];
  /** Takes the access view down. */
  #unwatch = () => {};

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} element
   */
  constructor(model, element) {
    this.model = model;
    this.root = h("section", { class: "mlc live", role: "group", tabindex: "-1" });
    element.replaceChildren(this.root);
    this.knobs = model.get("knobs");
    const shared = this.#shared();
    const here = shared && model.get("all")[this.keyOf(shared)];
    this.state = structuredClone(here ? shared : model.get("state"));
    this.panes = new PaneTools(model, this.root);
    this.observer = new ResizeObserver(() => this.drawFigures());
    this.stopTheme = followTheme(this.root);
    /** @type {[string, () => void][]} */
    this.listeners = [];
    /** What the page shows without a state in its address. */
    this.own = structuredClone(model.get("state"));
    this.addressed = () => this.#goToAddress();
  }

  /** Draw it, and follow the model. */
  start() {
    this.build();
    this.listeners = Object.entries(this.followed());
    for (const [name, listener] of this.listeners) this.model.on(`change:${name}`, listener);
    this.observer.observe(this.#charts);
    window.addEventListener("hashchange", this.addressed);
    this.prose = new Prose(this.root, this.knobs, (at, choice) => this.set(at, choice));
    this.show();
    this.addressed(); // a link to a state that is not in the page
    this.drawBusy();
    return this;
  }

  /**
   * What is done when a value of the model changes.
   * @returns {Record<string, () => void>}
   */
  followed() {
    return {
      state: () => this.follow(this.model.get("state")),
      point: () => this.show(),
      points: () => this.figuresSoon(),
      machine: () => this.figuresSoon(),
      why: () => this.#drawWhy(),
      busy: () => this.drawBusy(),
      watched: () => this.#drawAccesses(),
    };
  }

  drawBusy() {
    this.busy.textContent = this.model.get("busy");
  }

  remove() {
    window.removeEventListener("hashchange", this.addressed);
    this.panes.remove();
    this.stopTheme();
    this.observer.disconnect();
    this.#unwatch();
    this.prose.remove();
    for (const [name, listener] of this.listeners) this.model.off(`change:${name}`, listener);
  }

  build() {
    this.busy = h("span", { class: "busy", role: "status", "aria-live": "polite" });
    this.#why = h("ul", { class: "why", "aria-live": "polite", tabindex: "-1" });
    this.program = h("div", {
      class: "pane program",
      role: "region",
      "aria-label": "Program",
      tabindex: "0",
    });
    this.refusal = h("div", { class: "refusal", role: "alert", tabindex: "0", hidden: true });
    this.#facts = h("div", { class: "facts", role: "list" });
    this.#charts = h("div", { class: "chart" });
    this.key = h("div", { class: "colours" });
    this.#roofline = h("div", { class: "roofline" });
    this.#accessNote = h("p", { class: "note", role: "status" });
    this.#accessPlace = h("div", {});
    this.#accesses = h(
      "details",
      { class: "accesses" },
      h("summary", {}, t("Accesses in time order, and the caches")),
      this.#accessNote,
      this.#accessPlace,
    );
    this.#accesses.addEventListener("toggle", () => {
      this.model.set("follow", this.#accesses.open);
      this.model.save_changes();
      this.#drawAccesses();
    });
    this.#charts.addEventListener("click", (event) => {
      const at = closest(event, "[data-choice]");
      if (at) this.set(this.moved, this.#drawn[Number(at.dataset.choice)]);
    });
    /** @param {Event} event */
    const back = (event) => {
      if (event instanceof KeyboardEvent && event.key !== "Enter" && event.key !== " ") return;
      const at = closest(event, "[data-step]");
      if (!at) return;
      event.preventDefault();
      this.goBack([...this.trail.keys()][Number(at.dataset.step)]);
    };
    this.#roofline.addEventListener("click", back);
    this.#roofline.addEventListener("keydown", back);
    this.root.append(
      h(
        "div",
        { class: "bar" },
        h("span", { class: "title" }, this.named()),
        this.buttons(),
        this.panes.tools,
        this.busy,
      ),
      ...(this.model.get("prose") ? [h("p", { class: "mlc-prose" }, this.model.get("prose"))] : []),
      h("div", { class: "did" }, h("h4", {}, t("What the last change did")), this.#why),
      h(
        "div",
        { class: "parts" },
        h("div", { class: "part knobs" }, this.chosen()),
        h(
          "div",
          { class: "part middle" },
          h(
            "div",
            { class: "views" },
            this.nest.element,
            h("div", { class: "over" }, this.program, this.refusal),
          ),
          this.panes.grip,
          this.#roofline,
        ),
        h(
          "div",
          { class: "part figures" },
          this.#facts,
          h("div", {}, this.key, this.#charts),
          this.innerLoop.element,
        ),
      ),
      this.#accesses,
    );
  }

  /** What the page is called. */
  named() {
    this.root.setAttribute("aria-roledescription", t("page of choices"));
    const name = t("Choices of {title}", { title: this.model.get("title") });
    this.root.setAttribute("aria-label", name);
    return name;
  }

  /** @returns {HTMLElement[]} */
  buttons() {
    const copy = copyButton(
      t("Copy the Python of this schedule"),
      () => this.point.python,
      t("Copy Python"),
    );
    const link = copyButton(
      t("Copy link"),
      () => new URL(this.#hash(), location.href).href,
      t("Copy link"),
    );
    for (const button of [copy, link]) button.classList.add("small");
    link.hidden = !this.model.get("addressed");
    const reset = h("button", { type: "button", class: "small" }, t("Reset"));
    reset.addEventListener("click", () => this.choose(this.knobs.map((k) => k.start)));
    return [reset, copy, link];
  }

  /**
   * What can be changed, on the left.
   * @returns {HTMLElement[]}
   */
  chosen() {
    this.controls = this.knobs.map((knob, at) => this.control(knob, at));
    return this.controls.map((control) => control.element);
  }

  // ------------------------------------------------------------------------------- the knobs

  /**
   * The control of a knob: { element, draw() }.
   * @param {Data.Knob} knob
   * @param {number} at
   */
  control(knob, at) {
    if (knob.kind === "number") return this.#slider(knob, at);
    if (knob.kind === "switch") return this.#checkbox(knob, at);
    if (knob.kind === "form") return this.#forms(knob, at);
    return this.#order(knob, at);
  }

  /**
   * @param {Data.Knob} knob
   * @param {number} at
   */
  #slider(knob, at) {
    const input = h("input", {
      type: "range",
      min: 0,
      max: knob.labels.length - 1,
      step: 1,
      "aria-label": knob.name,
    });
    const output = h("output", {});
    input.addEventListener("input", () => this.set(at, Number(input.value)));
    // under their places where they have room, else the first and the last
    const all = knob.labels.length <= 12 && knob.labels.join("").length <= 26;
    const shown = all ? knob.labels : [knob.labels[0], knob.labels[knob.labels.length - 1]];
    // so far apart that they do not touch on the narrowest slider, some 150 pixels wide
    const widest = Math.max(...shown.map((label) => label.length)) + 1;
    const wide = widest * 6.6 * (shown.length - 1);
    const every = Math.ceil(wide / 150) || 1;
    const dense = wide > 210 ? " dense" : "";
    const ticks = shown.map((label, n) =>
      h("span", { class: all && n % every ? "more" : "" }, label),
    );
    const element = h(
      "div",
      { class: "knob" },
      h("div", { class: "head" }, h("span", {}, knob.name), output),
      input,
      h("div", { class: `of ${all ? `ticks${dense}` : "ends"}`, "aria-hidden": "true" }, ...ticks),
    );
    const draw = () => {
      const value = Number(this.state[at]);
      input.value = String(value);
      input.setAttribute("aria-valuetext", knob.labels[value]);
      output.textContent = knob.labels[value];
      if (all) ticks.forEach((tick, n) => tick.classList.toggle("now", n === value));
    };
    return { element, draw };
  }

  /**
   * One of several forms of the program.
   * @param {Data.Knob} knob
   * @param {number} at
   */
  #forms(knob, at) {
    const name = `form-${Math.random().toString(36).slice(2)}`;
    const inputs = knob.labels.map((_, n) => {
      const input = h("input", { type: "radio", name, value: n });
      input.addEventListener("change", () => this.set(at, n));
      return input;
    });
    const element = h(
      "div",
      { class: "knob", role: "radiogroup", "aria-label": knob.name },
      h("div", { class: "head" }, h("span", {}, knob.name)),
      ...inputs.map((input, n) => h("label", {}, input, h("span", {}, knob.labels[n]))),
    );
    return {
      element,
      draw: () => inputs.forEach((input, n) => (input.checked = n === this.state[at])),
    };
  }

  /**
   * @param {Data.Knob} knob
   * @param {number} at
   */
  #checkbox(knob, at) {
    const input = h("input", { type: "checkbox" });
    input.addEventListener("change", () => this.set(at, input.checked));
    const element = h(
      "div",
      { class: "knob switch", title: knob.text },
      h("label", {}, input, h("span", {}, knob.name)),
    );
    const draw = () => (input.checked = Boolean(this.state[at]) && this.inForce(knob, this.state));
    return { element, draw };
  }

  /**
   * Boxes that are dragged, or moved with the arrow keys.
   * @param {Data.Knob} knob
   * @param {number} at
   */
  #order(knob, at) {
    const list = h("ul", {
      class: "chips",
      "aria-label": t("{name}, outermost first", { name: knob.name }),
    });
    const element = h(
      "div",
      { class: "knob" },
      h("div", { class: "head" }, h("span", {}, knob.name)),
      list,
      h("div", { class: "of" }, t("drag a loop, here or in the nest, or move it with ← →")),
    );
    /** @param {number} from @param {number} to */
    const move = (from, to) => {
      if (this.reorder(at, from, to)) list.querySelectorAll("button")[to]?.focus();
    };
    const draw = () => {
      const order = /** @type {number[]} */ (this.state[at]);
      list.replaceChildren(
        ...order.map((n, place) => {
          const chip = h(
            "button",
            {
              type: "button",
              class: "chip",
              "aria-label": t("loop {name}, place {at} of {count}", {
                name: knob.labels[n],
                at: place + 1,
                count: order.length,
              }),
            },
            knob.labels[n],
          );
          chip.addEventListener("keydown", (event) => {
            const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
            if (!by) return;
            event.preventDefault();
            event.stopPropagation();
            move(place, place + by);
          });
          chip.addEventListener("pointerdown", (event) => this.#drag(event, list, place, move));
          return h("li", {}, chip);
        }),
      );
    };
    return { element, draw };
  }

  /**
   * Drag a box to where another one is.
   * @param {PointerEvent} event
   * @param {HTMLElement} list
   * @param {number} from
   * @param {(from: number, to: number) => void} move
   */
  #drag(event, list, from, move) {
    const chips = [...list.querySelectorAll("button")];
    const chip = chips[from];
    chip.classList.add("held");
    /** @param {PointerEvent} now */
    const place = (now) => {
      const centres = chips.map((c) => {
        const box = c.getBoundingClientRect();
        return Math.hypot(now.clientX - (box.left + box.width / 2), now.clientY - box.top);
      });
      return centres.indexOf(Math.min(...centres));
    };
    /** @param {PointerEvent} last */
    const end = (last) => {
      chip.classList.remove("held");
      if (last.type === "pointerup") move(from, place(last));
    };
    drag(event, chip, () => {}, end);
  }

  // ------------------------------------------------------------------------------- the state

  /**
   * @param {number} at
   * @param {Data.KnobValue} value
   */
  set(at, value) {
    this.moved = at;
    this.choose(this.state.map((old, n) => (n === at ? value : old)));
  }

  /**
   * A loop goes to the place of another one. Whether there is such a place.
   * @param {number} at
   * @param {number} from
   * @param {number} to
   */
  reorder(at, from, to) {
    const order = [.../** @type {number[]} */ (this.state[at])];
    if (to < 0 || to >= order.length || from === to) return false;
    order.splice(to, 0, ...order.splice(from, 1));
    this.set(at, order);
    return true;
  }

  /**
   * Whether the form of the program that a state has has a knob.
   * @param {Data.Knob} knob
   * @param {Data.KnobValue[]} state
   */
  applies(knob, state) {
    return !knob.forms?.length || knob.forms.includes(Number(state[0]));
  }

  /**
   * The switches that a knob needs and that are off: it has no effect until they are on.
   * @param {Data.Knob} knob
   * @param {Data.KnobValue[]} state
   */
  missing(knob, state) {
    return (knob.needs ?? [])
      .filter(([form, at]) => (form < 0 || form === state[0]) && !state[at])
      .map(([, at]) => this.knobs[at]);
  }

  /**
   * Whether a knob has an effect in a state.
   * @param {Data.Knob} knob
   * @param {Data.KnobValue[]} state
   */
  inForce(knob, state) {
    return this.applies(knob, state) && !this.missing(knob, state).length;
  }

  /**
   * The key that the point of a state has: knobs that have no effect are as at first.
   * @param {Data.KnobValue[]} state
   */
  keyOf(state) {
    const plain = state.map((v, n) =>
      this.inForce(this.knobs[n], state) ? v : this.knobs[n].start,
    );
    return JSON.stringify(plain);
  }

  /**
   * To a state that was visited.
   * @param {string} key
   */
  goBack(key) {
    this.choose(JSON.parse(key));
  }

  /** @param {Data.KnobValue[]} state */
  choose(state) {
    if (same(state, this.state)) return;
    this.state = structuredClone(state);
    this.drawControls();
    // until the program of this state is here, if it is another one
    if (this.keyOf(state) !== this.point?.key)
      for (const pane of [this.program, this.nest.element]) pane.classList.add("stale");
    this.model.set("state", structuredClone(state));
    this.model.save_changes();
    if (!this.model.get("all")) return;
    // The address of a page holds its state: to share it, or to come back to it.
    if (this.model.get("addressed")) history.replaceState(null, "", this.#hash());
    this.show();
  }

  /** What the address of a page has of the state. */
  #hash() {
    return `#${encodeURIComponent(JSON.stringify(this.state))}`;
  }

  /**
   * The state in the address of a page, whether or not the page has it.
   * @returns {Data.KnobValue[] | null}
   */
  #shared() {
    if (!this.model.get("all") || !this.model.get("addressed")) return null;
    /** @param {Data.KnobValue} value */
    const sorted = (value) => [.../** @type {number[]} */ (value)].sort();
    try {
      const state = JSON.parse(decodeURIComponent(location.hash.slice(1)));
      const fits = this.knobs.every(({ kind, labels, start }, n) =>
        kind === "order"
          ? same(sorted(state[n]), sorted(start))
          : typeof state[n] === typeof start && labels[Number(state[n])],
      );
      return fits && state.length === this.knobs.length ? state : null;
    } catch {
      return null; // no text of an address
    }
  }

  /** Another address was given, or the reader went back: what is no state changes nothing. */
  #goToAddress() {
    const bare = this.model.get("all") && this.model.get("addressed") && !location.hash;
    /** @type {Data.KnobValue[] | null} */
    const state = bare ? this.own : this.#shared();
    if (!state || same(state, this.state)) return;
    this.moved = state.findIndex((v, n) => !same(v, this.state[n]));
    this.choose(state);
  }

  /**
   * The state was set elsewhere, in Python or in another view.
   * @param {Data.KnobValue[]} state
   */
  follow(state) {
    if (same(state, this.state)) return;
    this.moved = Math.max(
      0,
      state.findIndex((v, n) => !same(v, this.state[n])),
    );
    this.state = structuredClone(state);
    this.drawControls();
    if (this.model.get("all")) this.show();
  }

  /**
   * The value of a choice of a knob.
   * @param {number} at
   * @param {number} choice
   */
  #valueOf(at, choice) {
    return this.knobs[at].kind === "switch" ? choice === 1 : choice;
  }

  // ------------------------------------------------------------------------------- drawing

  drawControls() {
    this.controls.forEach((control, at) => {
      control.draw();
      control.element.classList.toggle("moved", at === this.moved);
      control.element.hidden = !this.applies(this.knobs[at], this.state);
      this.#drawNeeds(control.element, this.missing(this.knobs[at], this.state));
    });
    this.prose?.follow(this.state);
  }

  /**
   * A knob that has no effect says which switch it needs.
   * @param {HTMLElement} element
   * @param {Data.Knob[]} missing
   */
  #drawNeeds(element, missing) {
    element.classList.toggle("idle", missing.length > 0);
    for (const input of element.querySelectorAll("input, button.chip"))
      /** @type {HTMLInputElement} */ (input).disabled = missing.length > 0;
    const note = element.querySelector(".needs") ?? h("div", { class: "of needs" });
    // The nearest one: what that one needs, it says itself.
    note.textContent = missing.length
      ? t("needs {name}", { name: missing[missing.length - 1].name })
      : "";
    if (missing.length) element.append(note);
    else note.remove();
  }

  /** Show the point that belongs to the state, or say that it is not here. */
  show() {
    const all = this.model.get("all");
    const key = this.keyOf(this.state);
    /** @type {Data.LivePoint | undefined} */
    const point = all ? all[key] : this.model.get("point");
    this.drawControls();
    if (!point) return this.sayLacking();
    if (!all && point.key !== key) return; // the kernel is on its way
    const old = this.point;
    if (old && old.key !== point.key) this.#compareWith(old, point);
    if (!point.error || !this.#legal) this.#legal = point;
    this.point = point;
    this.drawPoint(old);
  }

  sayLacking() {
    this.refusal.hidden = false;
    this.refusal.textContent = t(
      "This page does not have what follows from these choices together. " +
        "With Python it is computed when it is asked for.",
    );
  }

  /**
   * What a point is compared with: one motion of the hand is one change, so the steps of a drag are
   * held against where it began, as `widgets/live.py` does; what is refused is never compared with.
   * @param {Data.LivePoint} old what was shown
   * @param {Data.LivePoint} point
   */
  #compareWith(old, point) {
    const now = performance.now();
    const changed = old.state.flatMap((value, n) => (same(value, point.state[n]) ? [] : [n]));
    const knob = changed.length === 1 ? changed[0] : -1;
    const goesOn = knob >= 0 && knob === this.#motion.knob && now - this.#motion.at < STILL_MS;
    this.#motion = { knob, at: now };
    if (!goesOn || point.key === this.before?.key) this.before = this.#legal;
  }

  /** @param {Data.LivePoint | undefined} old what was shown */
  drawPoint(old) {
    if (!this.model.get("all")) keepPoint(this.model, this.point);
    this.drawProgram(old);
    this.#drawFacts();
    this.#drawWhy();
    this.#drawAssembly();
    this.figuresSoon();
    this.#drawAccesses();
  }

  /** @param {Data.LivePoint | undefined} old what was shown */
  drawProgram(old) {
    const { lines, error } = this.point;
    for (const pane of [this.program, this.nest.element])
      pane.classList.toggle("stale", Boolean(error));
    this.refusal.hidden = !error;
    this.refusal.textContent = error
      ? `${error.call ? `${error.call}\n` : ""}${t("refused: {rule}", { rule: error.rule })}\n\n${error.message}`
      : "";
    if (old && old.key === this.point.key) return;
    const before = old && this.before;
    this.drawLines(lines, before?.lines);
    this.drawNest(before?.nest);
  }

  /** @param {Data.NestRow[]} [before] of the program that was shown before */
  drawNest(before) {
    const { nest, state } = this.point;
    this.nest.draw(nest ?? [], before, this.knobs, state);
  }

  /**
   * @param {string[]} lines
   * @param {string[]} [before] lines of the program before: what is not in it is marked
   */
  drawLines(lines, before) {
    const marked = before ? newLines(before, lines) : new Set();
    const top = this.program.scrollTop;
    this.program.innerHTML = lines
      .map((line, n) => {
        const code = tokens(line)
          .map(([kind, text]) =>
            kind ? `<span class="t-${kind}">${escapeHTML(text)}</span>` : escapeHTML(text),
          )
          .join("");
        const mark = marked.has(n);
        return (
          `<div class="l${mark ? " changed" : ""}" style="--in:${line.search(/\S|$/)}"><i aria-hidden="true">${mark ? "~" : ""}</i>` +
          `<s>${mark ? t("{mark}: ", { mark: t("changed") }) : ""}</s><code>${code}</code></div>`
        );
      })
      .join("");
    this.program.scrollTop = top;
  }

  #drawFacts() {
    const { cost, error } = this.point;
    const before = this.before?.cost;
    // Until the counts of this state are here the old ones stay, paler, so that nothing jumps.
    const waits = this.#waits() && !cost.counts;
    this.#facts.classList.toggle("stale", waits);
    if (waits && this.#facts.children.length) return;
    /** @type {Data.Fact[]} */
    const found = error
      ? [{ name: t("Result"), value: t("refused"), kind: "bad" }]
      : countFacts(cost);
    const inner = cost.inner;
    if (!inner && this.#waits()) {
      found.push({ name: t("Inner loop"), value: "…", kind: "none" });
    } else if (inner?.instructions !== undefined) {
      const { instructions, vector = 0, width } = inner;
      found.push({
        name: t("Inner loop"),
        value: width
          ? t("{vector} vector, {scalar} scalar instructions", {
              vector,
              scalar: instructions - vector,
            })
          : t("{scalar} scalar instructions", { scalar: instructions }),
        title: width ? t("vectors of at most {width} bits", { width }) : t("one element at a time"),
      });
      found.push({
        name: t("Registers"),
        value: inner.spills
          ? t("{count} of {of}, {spills} spills", {
              count: inner.registers,
              of: inner.of,
              spills: inner.spills,
            })
          : inner.reloads
            ? t("{count} of {of}, {reloads} reloads", {
                count: inner.registers,
                of: inner.of,
                reloads: inner.reloads,
              })
            : t("{count} of {of}", { count: inner.registers, of: inner.of }),
        kind: inner.spills || inner.reloads ? "bad" : "",
      });
    }
    if (cost.time) {
      const than = changeOf(before?.time, cost.time, [t("less"), t("more")]);
      found.push({
        name: t("Time"),
        value: duration(cost.time) + spreadOf(cost.spread),
        title: than,
      });
    } else if (cost.message || this.#waits()) {
      found.push({ name: t("Time"), value: cost.message ?? "…", kind: "none" });
    }
    if (cost.equal === false) found.push({ name: t("Result"), value: t("differs"), kind: "bad" });
    this.#facts.replaceChildren(
      ...(found.length ? found : [{ name: t("Counts"), value: this.#lacking(), kind: "none" }]).map(
        (fact) =>
          h(
            "div",
            { class: `fact ${fact.kind || ""}`, role: "listitem", title: fact.title },
            h("span", {}, fact.name),
            h("strong", {}, fact.value),
          ),
      ),
    );
  }

  /** What is said in the place of what is not known. */
  #lacking() {
    return this.model.get("all") ? t("not in this page") : t("not counted yet");
  }

  /** Whether Python is at what is not known of the program yet. */
  #waits() {
    return !this.point.error && !this.model.get("all");
  }

  /** Why the last change made it faster or slower. */
  #drawWhy() {
    const { before, point } = this;
    const reasons = this.model.get("reasons");
    const told = this.model.get("why");
    /** What the counts say; undefined where these two were not compared. @type {string[] | undefined} */
    let said;
    if (reasons) said = reasons[`${before?.key} ${point.key}`];
    else if (told?.known && told.to === point?.key) said = told.said;
    /** @param {Data.LivePoint} point whether it was counted */
    const known = ({ cost }) => cost.counts || cost.inner;
    const none = () => {
      if (point?.error || before?.error) return t("Refused: nothing to compare.");
      if (!before || before.key === point.key)
        return t("Change something, and read here what it did.");
      if (said) return t("The counts say nothing of this change.");
      if (!this.model.get("all")) return t("Being counted …");
      return known(before) && known(point)
        ? t("Not in this page.")
        : t("This page has no counts of both.");
    };
    this.#why.replaceChildren(
      ...(said?.length
        ? said.map((text) => h("li", {}, text))
        : [h("li", { class: "none" }, none())]),
    );
    this.#reachWhy();
  }

  /** What has to be scrolled can be reached by keys. */
  #reachWhy() {
    this.#why.tabIndex = this.#why.scrollHeight > this.#why.clientHeight ? 0 : -1;
  }

  #drawAssembly() {
    const { inner } = this.point.cost;
    this.innerLoop.draw(
      inner,
      this.#waits() ? t("compiling…") : this.#lacking(),
      this.#waits() && !inner,
    );
  }

  /** The accesses of the program, if the reader looks at them: the view goes on where it was. */
  #drawAccesses() {
    if (!this.#accesses.open || !this.point) return;
    const all = this.model.get("all");
    /** @type {Data.Watched | null | undefined} */
    const found = all ? this.point.watched : this.model.get("watched");
    const waits = !all && found?.key !== this.point.key;
    this.#accessPlace.classList.toggle("stale", waits || !found?.trace);
    let note = found?.message ?? found?.trace?.notes.join(" ");
    if (this.point.error) note = t("This step is refused: there is no program to watch.");
    else if (waits) note = t("watching the accesses…");
    this.#accessNote.textContent = note ?? t("This page does not have these accesses.");
    if (waits || !found?.trace) return;
    if (this.#watched) {
      if (this.#watched.get("trace") === found.trace) return;
      this.#watched.values.results = found.results; // drawn with the trace
      this.#watched.set("trace", found.trace);
      return;
    }
    this.#watched = new PageModel({
      ...{ trace: found.trace, results: found.results, configuration: found.results.length - 1 },
      ...{ position: 0, error: "", live: false },
    });
    this.#unwatch = renderAccesses({ model: this.#watched, el: this.#accessPlace }, PaneTools);
  }

  /** Draw the figures once for all that comes in one message. */
  figuresSoon() {
    if (!this.#soon) queueMicrotask(() => this.drawFigures());
    this.#soon = true;
  }

  /** The charts over the choices of the knob that was moved last, and the roofline. */
  drawFigures() {
    this.#soon = false;
    if (!this.point || !this.root.isConnected) return;
    this.#reachWhy();
    const width = Math.floor(this.#charts.clientWidth);
    const knob = this.knobs[this.moved];
    const points = this.model.get("points") ?? {};
    if (knob) {
      const level =
        Object.keys(Object.values(points).find((p) => p.misses)?.misses ?? { L1: 0 })[0] ?? "L1";
      const choices = this.#alongside(this.state, level);
      const current = choices.findIndex((c) => same(c.value, this.state[this.moved]));
      // What the other forms of the program cost, where the form is not what was moved.
      const several = this.knobs[0].kind === "form" && this.moved > 0 && knob.kind !== "order";
      const others = (several ? this.knobs[0].labels : [])
        .map((label, form) => ({
          label,
          choices: this.#alongside([form, ...this.state.slice(1)], level),
        }))
        .filter((_, form) => form !== this.state[0]);
      /** @type {["misses" | "moves" | "time", string][]} */
      const drawn = [["misses", t("{level} misses", { level })]];
      if (choices.some((c) => c.moves)) drawn.push(["moves", t("moves between cores")]);
      drawn.push(["time", "time"]);
      const charts = drawn.map(([what, name]) =>
        drawChoices(choices, what, current, width, name, others),
      );
      this.#charts.innerHTML = charts.join("");
      this.#drawn = choices.map((choice) => choice.value);
      this.key.replaceChildren(
        h("span", {}, t("over {name}:", { name: knob.name })),
        ...drawn
          .filter((_, n) => charts[n])
          .map(([what, name]) => h("span", { class: what }, `● ${name}`)),
      );
    }
    this.#drawTrail();
  }

  /**
   * What is known of the choices of the knob that was moved last, with all else as in a state.
   * @param {Data.KnobValue[]} state
   * @param {string} level of the caches
   */
  #alongside(state, level) {
    const points = this.model.get("points") ?? {};
    return this.#choicesOf(state).map(({ label, value }) => {
      const found = points[this.keyOf(state.map((v, n) => (n === this.moved ? value : v)))];
      return {
        ...{ label, value, misses: found?.misses?.[level], moves: found?.moves },
        ...{ time: found?.time, error: found?.error },
      };
    });
  }

  /**
   * The choices of the knob that was moved last. Of an order those that were looked at, called by
   * the loops that changed places.
   * @param {Data.KnobValue[]} state
   * @returns {{ label: string, value: Data.KnobValue }[]}
   */
  #choicesOf(state) {
    const at = this.moved;
    const { kind, labels } = this.knobs[at];
    if (kind !== "order") return labels.map((label, n) => ({ label, value: this.#valueOf(at, n) }));
    const now = /** @type {number[]} */ (state[at]);
    const found = Object.keys(this.model.get("points") ?? {})
      .map((key) => JSON.parse(key))
      .filter((other) => state.every((v, n) => n === at || same(v, other[n])))
      .map((other) => /** @type {number[]} */ (other[at]));
    return found.map((order) => {
      const other = order.map((n, place) => n !== now[place]);
      const moved = order.slice(other.indexOf(true), other.lastIndexOf(true) + 1);
      return { label: moved.map((n) => labels[n]).join(" ") || "now", value: order };
    });
  }

  /** What the state is called in the roofline. */
  label() {
    const label = this.knobs
      .filter((knob) => this.inForce(knob, this.state))
      .map((knob) => {
        const value = knob.labels[Number(this.state[this.knobs.indexOf(knob)])];
        if (knob.kind === "form") return value;
        return knob.kind === "number" ? `${knob.name} ${value}` : "";
      })
      .filter(Boolean)
      .join(", ");
    return label || t("this choice");
  }

  /**
   * What tells a state that was visited from the one that is shown; its number where that is long.
   * @param {{ label: string, state: Data.KnobValue[] }} visited
   */
  nameOf({ state }) {
    const other = this.knobs.flatMap((knob, n) => {
      const [one, now] = [state[n], this.point.state[n]];
      if (same(one, now) || !this.inForce(knob, state)) return [];
      if (knob.kind === "order") return [t("other order")];
      const label = knob.labels[Number(one)];
      return [knob.kind === "form" ? label : `${knob.name} ${label}`];
    });
    if (!other.length) return t("here");
    return other.length < 3
      ? other.join(", ")
      : t("{count} other choices", { count: other.length });
  }

  #drawTrail() {
    const { key, cost, error } = this.point;
    // As fast as the last one that was timed, until its own time is here.
    for (const [visited, { cost }] of this.trail) if (cost.untimed) this.trail.delete(visited);
    if (!error && cost.counts?.levels) {
      const last = [...this.trail.values()].at(-1)?.cost.gflops ?? Infinity;
      const known = cost.time ? cost : { ...cost, gflops: last, untimed: true };
      this.trail.delete(key);
      this.trail.set(key, { label: this.label(), cost: known, state: this.point.state });
      while (this.trail.size > TRAIL) this.trail.delete([...this.trail.keys()][0]);
    }
    const visited = [...this.trail.values()];
    const recording = /** @type {Data.Recording} */ (
      /** @type {unknown} */ ({
        machine: this.model.get("machine") ?? {},
        steps: visited.map((one, after) => ({ op: one.label, name: this.nameOf(one), after })),
        programs: visited.map((one) => ({ cost: one.cost })),
      })
    );
    const current = [...this.trail.keys()].indexOf(key);
    const held = this.#roofline.contains(document.activeElement);
    const width = this.#roofline.clientWidth;
    this.#roofline.innerHTML = drawRoofline(recording, "memory", current, width, "state");
    if (held) {
      const points = this.#roofline.querySelectorAll(".point");
      const here = [...points].find((point) => point.matches(".current")) ?? points[0];
      here?.focus({ preventScroll: true });
    }
  }
}

/**
 * What a kernel has told of each state, for when it has gone.
 * @type {WeakMap<Data.Model, Map<string, Data.LivePoint>>}
 */
const CAME = new WeakMap();

/**
 * @param {Data.Model} model
 * @param {Data.LivePoint} point
 */
function keepPoint(model, point) {
  const came = CAME.get(model) ?? new Map();
  came.delete(point.key); // the last one is what is shown
  CAME.set(model, came.set(point.key, point));
}

/**
 * The states that were shown, as a page has them, with the accesses that are known; the last one is
 * shown, also where another one was asked for.
 * @param {Data.Model} model
 */
export function pointsOf(model) {
  const came = CAME.get(model);
  const last = came && [...came.values()].at(-1);
  if (!last) return {};
  const all = Object.fromEntries(came);
  const watched = model.get("watched");
  if (watched?.key in all) all[watched.key] = { ...all[watched.key], watched };
  return { all, state: last.state };
}

/**
 * What anywidget calls with an element to draw in; the return value takes the view down.
 * @param {Data.Host} host
 */
export function renderLive({ model, el }) {
  speak(model, el);
  const view = new Live(model, el).start();
  return () => view.remove();
}

export default { render: renderLive, left: pointsOf };
