// The pass view: a pipeline of passes, and before and after each the program and its graph.
//
// Draws a recording of passes (see mlc_lab/observe/passes.py) and knows nothing of compilers.

import { bytesText, closest, duration, h, later, sure } from "./dom.js";
import { GraphDrawing } from "./graph.js";
import { PageModel } from "./page.js";
import { PaneTools } from "./panes.js";
import { Programs, SideBySide } from "./program.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

const PASS_TABS = ["program", "graph"];

class PassView {
  /** @type {GraphDrawing[]} */
  drawings;
  /** @type {HTMLElement} */
  title = later();
  /** @type {HTMLSpanElement} */
  facts = later();
  /** @type {HTMLButtonElement} */
  fold = later();
  /** @type {HTMLOListElement} */
  list = later();
  /** @type {HTMLHeadingElement} */
  name = later();
  /** @type {HTMLParagraphElement} */
  meaning = later();
  /** @type {HTMLParagraphElement} */
  change = later();
  /** @type {HTMLPreElement} */
  error = later();
  /** @type {HTMLDivElement} */
  tabs = later();
  /** @type {HTMLDivElement} */
  place = later();
  /** @type {HTMLDivElement} */
  live = later();
  /** @type {() => void} */
  unfollow = later();
  /** @type {Data.Passes} */
  passes = later();
  /** @type {Data.Step[]} */
  steps = later();
  /** @type {Programs} */
  programs = later();
  /** @type {SideBySide} */
  sides = later();
  /** @type {boolean} */
  hasGraphs = later();
  /** @type {number} */
  at = later();
  /** @type {string} */
  mark = later();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} root
   */
  constructor(model, root) {
    this.model = model;
    this.tab = "program";
    this.showIdle = false;
    this.drawings = [];
    this.view = h("section", { class: "mlc mlc-passes", role: "group", "aria-label": t("Passes") });
    this.panes = new PaneTools(model, this.view, () => this.sides?.draw(false));
    this.build(root);
    this.onStep = () => this.show(this.model.get("step"), false);
    this.onPasses = () => this.load();
    model.on("change:step", this.onStep);
    model.on("change:passes", this.onPasses);
    this.load();
  }

  close() {
    this.panes.remove();
    this.model.off("change:step", this.onStep);
    this.model.off("change:passes", this.onPasses);
    for (const drawing of this.drawings) drawing.close();
    this.unfollow();
  }

  /** @param {HTMLElement} root */
  build(root) {
    this.title = h("b", {});
    this.facts = h("span", { class: "dim" });
    this.fold = h("button", {
      type: "button",
      class: "small",
      "aria-pressed": "false",
      onclick: () => {
        this.showIdle = !this.showIdle;
        this.fold.setAttribute("aria-pressed", String(this.showIdle));
        this.drawList();
      },
    });
    this.list = h("ol", {
      class: "passes",
      role: "listbox",
      "aria-label": t("Passes"),
      tabindex: "0",
    });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => {
      const item = closest(event, "[data-step]");
      if (item) this.show(Number(item.dataset.step), true);
    });
    this.name = h("h3", {});
    this.meaning = h("p", { class: "meaning" });
    this.change = h("p", { class: "dim change" });
    this.error = h("pre", { class: "refusal" });
    this.tabs = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": t("Ways to look at a pass") },
      PASS_TABS.map((id) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            "data-tab": id,
            onclick: () => this.open(id),
            onkeydown: (event) => this.tabKey(event),
          },
          id === "graph" ? t("Graph") : t("Program"),
        ),
      ),
    );
    this.place = h("div", { class: "place" });
    this.live = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.view.append(
      h("div", { class: "bar" }, this.title, this.facts, this.fold, this.panes.tools),
      h(
        "div",
        { class: "columns" },
        this.list,
        h(
          "div",
          { class: "of-pass" },
          this.name,
          this.meaning,
          this.change,
          this.error,
          this.tabs,
          this.place,
          this.panes.grip,
        ),
      ),
      this.live,
    );
    root.append(this.view);
    this.unfollow = followTheme(this.view);
  }

  load() {
    this.passes = this.model.get("passes");
    this.steps = this.passes.recording.steps;
    this.programs = new Programs(this.passes.recording);
    this.sides = new SideBySide(this.programs, () => {});
    const total = this.passes.seconds.reduce((a, b) => a + b, 0);
    const changed = this.steps.filter((_, i) => !this.idle(i)).length - 1;
    this.title.textContent = this.passes.title;
    this.facts.textContent = t("{count} passes, {changed} changed the module, {time}", {
      count: this.steps.length - 1,
      changed,
      time: duration(total),
    });
    const idle = this.steps.length - 1 - changed;
    this.fold.textContent = t("Show the {count} that changed nothing", { count: idle });
    this.fold.hidden = idle === 0;
    this.hasGraphs = this.passes.graphs.some(Boolean);
    this.tabs.hidden = !this.hasGraphs;
    this.at = -1;
    this.drawList();
    this.show(Math.min(this.model.get("step") || 0, this.steps.length - 1), false);
  }

  /**
   * Whether a pass left the module as it was; one that failed counts as a change.
   * @param {number} at
   */
  idle(at) {
    const step = this.steps[at];
    return at > 0 && step.before === step.after && !step.error;
  }

  drawList() {
    const slowest = Math.max(...this.passes.seconds, 1e-9);
    const shown = this.steps
      .map((_, i) => i)
      .filter((i) => this.showIdle || !this.idle(i) || i === this.at);
    let pipeline = "";
    const items = [];
    for (const i of shown) {
      const within = (this.passes.within[i] || [])
        .filter((name) => name !== "pipeline")
        .join(" › ");
      if (within !== pipeline && within)
        items.push(h("li", { class: "within", role: "presentation" }, within));
      pipeline = within;
      const seconds = this.passes.seconds[i];
      const state = this.steps[i].error ? t("failed") : this.idle(i) ? t("no change") : "";
      items.push(
        h(
          "li",
          {
            role: "option",
            id: `${this.id()}-${i}`,
            "data-step": i,
            "aria-selected": String(i === this.at),
            class: `${this.idle(i) ? "idle" : ""}${this.steps[i].error ? " bad" : ""}`,
          },
          h("span", { class: "pass-name" }, i === 0 ? t("as it was") : this.steps[i].op),
          h("span", { class: "pass-state" }, state || (i ? duration(seconds) : "")),
          h("span", {
            class: "pass-bar",
            style: `width:${(100 * seconds) / slowest}%`,
            "aria-hidden": "true",
          }),
        ),
      );
    }
    this.list.replaceChildren(...items);
    this.list.setAttribute("aria-activedescendant", `${this.id()}-${this.at}`);
  }

  id() {
    this.mark = this.mark || `pass-${Math.random().toString(36).slice(2)}`;
    return this.mark;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const shown = [...this.list.querySelectorAll("[data-step]")].map((item) =>
      Number(item.dataset.step),
    );
    const at = shown.indexOf(this.at);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.show(shown[Math.max(0, Math.min(shown.length - 1, to))], true);
  }

  /** @param {KeyboardEvent} event */
  tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = PASS_TABS.indexOf(this.tab);
    this.open(PASS_TABS[(at + step + PASS_TABS.length) % PASS_TABS.length]);
    this.tabs.querySelector('[aria-selected="true"]')?.focus();
  }

  /** @param {string} tab */
  open(tab) {
    this.tab = tab;
    this.drawPlace();
  }

  /**
   * @param {number} at
   * @param {boolean} tell
   */
  show(at, tell) {
    at = Math.max(0, Math.min(this.steps.length - 1, at));
    if (at === this.at) return;
    this.at = at;
    this.drawList();
    this.list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
    const step = this.steps[at];
    const doc = this.passes.recording.docs[step.op] || {};
    this.name.textContent = at === 0 ? t("The module as it was") : step.op;
    this.meaning.replaceChildren(
      ...(doc.meaning || "").split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part)),
    );
    const [before, after] = [this.passes.moved[step.before], this.passes.moved[step.after]];
    const parts = at === 0 ? [] : [duration(this.passes.seconds[at])];
    if (this.idle(at)) parts.push(t("the module is the same"));
    if (after !== null && after !== undefined) {
      parts.push(
        before === after || before === null
          ? t("{bytes} moved by the calls", { bytes: bytesText(after) })
          : t("bytes moved by the calls: {before} before, {after} after ({part} %)", {
              before: bytesText(before),
              after: bytesText(after),
              part: Math.round((100 * after) / before),
            }),
      );
    }
    this.change.textContent = parts.join(t("; "));
    this.error.hidden = !step.error;
    this.error.textContent = step.error ? step.error.message : "";
    this.drawPlace();
    this.live.textContent = t("{name}. {change}", {
      name: this.name.textContent,
      change: this.change.textContent,
    });
    if (tell) {
      this.model.set("step", at);
      this.model.save_changes();
    }
  }

  drawPlace() {
    for (const tab of this.tabs.children) {
      const on = tab.dataset.tab === this.tab;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
    }
    for (const drawing of this.drawings) drawing.close();
    this.drawings = [];
    const step = this.steps[this.at];
    if (this.tab === "program" || !this.hasGraphs) {
      this.place.replaceChildren(this.sides.element);
      const same = step.before === step.after;
      const caption = this.at === 0 ? t("The program") : t("Before and after");
      this.sides.show(step.before, step.after, null, {
        captions: same ? [caption, null] : [t("Before"), t("After")],
        step: this.at,
      });
      return;
    }
    /** @type {[string, number][]} */
    const sides =
      step.before === step.after
        ? [["", step.after]]
        : [
            [t("Before"), step.before],
            [t("After"), step.after],
          ];
    this.place.replaceChildren(
      h(
        "div",
        { class: `graphs${sides.length > 1 ? " two" : ""}` },
        sides.map(([caption, program]) => {
          const graph = this.passes.graphs[program];
          const element = h(
            "div",
            { class: "one-graph" },
            caption ? h("div", { class: "cap" }, caption) : null,
          );
          if (graph) element.dataset.program = String(program);
          else element.append(h("p", { class: "dim" }, t("This program has no graph.")));
          return element;
        }),
      ),
    );
    /** @type {NodeListOf<HTMLElement>} */
    const places = this.place.querySelectorAll("[data-program]");
    for (const element of places) {
      const graph = sure(this.passes.graphs[Number(element.dataset.program)]);
      this.drawings.push(
        new GraphDrawing(
          new PageModel({ graph, drawing: graph.layouts.closed, opened: [], selected: "" }),
          element,
          null,
        ),
      );
    }
    for (const drawing of this.drawings) drawing.peers = this.drawings;
    this.drawings[0]?.fit(true); // both in one scale
  }
}

/** @param {Data.Host} host */
export function renderPasses({ model, el }) {
  speak(model, el);
  const view = new PassView(model, el);
  return () => view.close();
}

export default { render: renderPasses };
