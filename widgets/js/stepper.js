// The stepper: walk through the steps of a schedule and see what each one did and what it cost.
//
// Draws a recording (see mlc_lab/observe/recording.py) and knows nothing of compilers. The model
// is anywidget's in a notebook and an object with the same methods in an exported page.

import { closest, copyButton, h, iconButton, later, sure } from "./dom.js";
import { drawChart } from "./chart.js";
import { CountsPanel, countFacts } from "./counts.js";
import { CodeSource, CodeView, LANGUAGES } from "./code_tabs.js";
import { costOf, facts, pythonUpTo } from "./facts.js";
import { gpuTable } from "./gpu_counts.js";
import { guessing } from "./guess.js";
import { Lineage } from "./lineage.js";
import { drawNests } from "./nest.js";
import { PaneTools } from "./panes.js";
import { marksOf, Programs, SIDES, SideBySide } from "./program.js";
import { tokens } from "./highlight.js";
import { pictureOf, saveButtons } from "./picture.js";
import { followTheme } from "./theme.js";
import { Unmeasured } from "./unmeasured.js";
import { speak, t } from "./words.js";

const MARKS = ["new", "changed", "moved", "removed"];

/** @param {string} text */
const coloured = (text) =>
  text
    .split("\n")
    .flatMap((line, i) => [
      i ? "\n" : "",
      ...tokens(line).map(([kind, part]) => h("span", { class: kind ? `t-${kind}` : "" }, part)),
    ]);

/**
 * Both programs of a step as loop nests.
 * @param {Programs} programs
 * @param {number} before
 * @param {number} after
 */
const nests = (programs, before, after) =>
  drawNests(
    programs.programs[before],
    programs.programs[after],
    SIDES.map((side) => marksOf(programs, before, after, side)),
  );

/** @type {Record<string, string>} */
const SIGN = { good: "✓ ", bad: "✕ ", faster: "▲ ", slower: "▼ ", same: "≈ " };

/**
 * The programs that have a loop bound to a thread of a GPU (a virtual one needs none).
 * @param {Data.Recording} recording
 */
function threadedIn({ programs, parts = [] }) {
  const bound = parts.map((line) =>
    line.some(([kind, , , , thread]) => kind === "loop" && /^(thread|block)Idx/.test(`${thread}`)),
  );
  /** @type {Set<number>} */
  const found = new Set();
  programs.forEach(({ lines }, n) => lines.some((line) => bound[line]) && found.add(n));
  return found;
}

export class Stepper {
  /** @type {Data.Model & { guess: any }} */
  model;
  /** @type {number} */
  chartWidth = later();
  /** @type {Data.Recording} */
  recording = later();
  /** @type {Programs} */
  programs = later();
  /** @type {HTMLButtonElement[]} */
  buttons = later();
  /** @type {HTMLInputElement} */
  slider = later();
  /** @type {boolean} */
  skipping = later();
  /** @type {HTMLButtonElement} */
  skip = later();
  /** @type {number} */
  baseline = later();
  /** @type {HTMLSelectElement} */
  base = later();
  /** @type {HTMLOutputElement} */
  count = later();
  /** @type {HTMLDivElement} */
  live = later();
  /** @type {HTMLDivElement} */
  chart = later();
  /** @type {HTMLPreElement} */
  now = later();
  /** @type {HTMLParagraphElement} */
  meaning = later();
  /** @type {HTMLDivElement} */
  more = later();
  /** @type {HTMLDivElement} */
  facts = later();
  /** @type {HTMLUListElement} */
  why = later();
  /** @type {Unmeasured} */
  unmeasured = later();
  /** @type {Lineage} */
  lineage = later();
  /** @type {SideBySide} */
  sides = later();
  /** @type {HTMLDivElement} */
  family = later();
  /** @type {CodeSource} */
  source = later();
  /** @type {CodeView} */
  code = later();
  /** @type {HTMLDivElement} */
  tabs = later();
  /** @type {HTMLDivElement} */
  legend = later();
  /** @type {HTMLButtonElement} */
  unfold = later();
  /** @type {CountsPanel} */
  counts = later();
  /** @type {HTMLPreElement} */
  python = later();
  /** @type {number} */
  step = later();
  /** @type {"" | Data.CodeKind} */
  kind = later();
  /** @type {Set<number>} */
  threaded = later(); // the programs that have loops bound to threads
  /** @type {[string, string, () => void][]} */
  views = later();
  /** @type {number} */
  view = later();
  /** @type {HTMLButtonElement[]} */
  tabButtons = later();
  /** @type {boolean} */
  stale = later();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} element
   */
  constructor(model, element) {
    this.model = guessing(model);
    this.controller = new AbortController();
    this.root = h("section", {
      class: "mlc",
      role: "group",
      "aria-roledescription": t("stepper"),
      tabindex: "-1",
    });
    element.replaceChildren(this.root);
    this.panes = new PaneTools(this.model, this.root, () => this.redraw());
    this.build();
    this.stopTheme = followTheme(this.root);
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.observer = new ResizeObserver(() => {
      this.chartWidth = Math.floor(this.chart.clientWidth);
      this.drawChart();
    });
    this.observer.observe(this.chart);
    this.onRecording = () => this.rebuild();
    this.onStep = () => this.show(this.model.get("step"), false);
    this.model.on("change:recording", this.onRecording);
    this.model.on("change:step", this.onStep);
    this.onTab = () => this.chooseTab(this.model.get("tab"), false);
    this.onBaseline = () => this.compareWith(this.model.get("baseline"), false);
    this.onSelection = () => this.follow(this.model.get("selection"));
    this.model.on("change:tab", this.onTab);
    this.model.on("change:baseline", this.onBaseline);
    this.model.on("change:selection", this.onSelection);
  }

  remove() {
    this.panes.remove();
    this.counts.remove();
    this.unmeasured.remove();
    this.source.remove();
    this.stopTheme();
    this.observer.disconnect();
    this.model.off("change:recording", this.onRecording);
    this.model.off("change:step", this.onStep);
    this.model.off("change:tab", this.onTab);
    this.model.off("change:baseline", this.onBaseline);
    this.model.off("change:selection", this.onSelection);
  }

  build() {
    // Costs that come in are written into a copy: a model that holds them already would not tell of
    // the recording that Python sends in the end.
    /** @type {Data.Recording} */
    const recording = this.model.get("recording");
    this.recording = {
      ...recording,
      programs: recording.programs.map((program) => ({ ...program })),
    };
    this.programs = new Programs(this.recording);
    this.threaded = threadedIn(this.recording);
    const last = this.recording.steps.length - 1;
    /**
     * @param {string} label
     * @param {string} path
     * @param {() => number} target
     */
    const button = (label, path, target) => iconButton(label, path, () => this.show(target()));
    this.buttons = [
      button(t("First step"), "M3 2v12M13 2v12L5 8z", () => 0),
      button(t("Previous step"), "M11 2v12L4 8z", () => this.next(-1)),
      button(t("Next step"), "M5 2v12L12 8z", () => this.next(1)),
      button(t("Last step"), "M13 2v12M3 2v12l8-6z", () => last),
    ];
    this.slider = h("input", {
      type: "range",
      min: 0,
      max: last,
      step: 1,
      "aria-label": t("Step"),
    });
    this.slider.addEventListener("input", () =>
      this.show(this.shownStep(Number(this.slider.value))),
    );
    const idle = this.recording.steps.filter((_, i) => this.isIdle(i)).length;
    this.skipping = false;
    this.skip = h(
      "button",
      {
        type: "button",
        class: "small",
        "aria-pressed": "false",
        title: t("Pass over steps that left the program as it was, refused ones too"),
        onclick: () => {
          this.skipping = !this.skipping;
          this.skip.setAttribute("aria-pressed", String(this.skipping));
          this.show(this.shownStep(this.step));
          this.drawChart();
        },
      },
      t("Skip {idle} idle", { idle }),
    );
    this.skip.hidden = !idle;
    this.baseline = this.model.get("baseline") ?? -1;
    this.base = h(
      "select",
      {
        "aria-label": t("Compare with"),
        class: "small",
        onchange: () => this.compareWith(Number(this.base.value)),
      },
      h("option", { value: -1 }, t("Before")),
      this.recording.steps.map((step, i) =>
        h("option", { value: i }, t("After step {at}: {op}", { at: i, op: step.op })),
      ),
    );
    if (this.baseline > last) this.baseline = -1;
    this.base.value = String(this.baseline);
    this.count = h("output", { class: "count" });
    this.live = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.chart = h("div", { class: "chart" });
    this.chart.addEventListener("click", (event) => {
      const point = closest(event, "[data-step]");
      if (point) this.show(Number(point.dataset.step));
    });
    this.now = h("pre", { class: "now", tabindex: "0" });
    this.meaning = h("p", { class: "meaning" });
    this.more = h("div");
    const instruction = h(
      "div",
      { class: "instruction" },
      h(
        "div",
        { class: "code" },
        this.now,
        copyButton(t("Copy this instruction"), () => {
          const { lead, python } = this.recording.steps[this.step];
          return [...(lead || []), python].join("\n");
        }),
      ),
      this.meaning,
      h("details", {}, h("summary", {}, t("More on this step")), this.more),
    );
    this.facts = h("div", { class: "facts", role: "list" });
    this.why = h("ul", { class: "why", "aria-label": t("Why") });
    this.why.hidden = !this.recording.steps.some((step) => step.why?.length || this.lacking(step));
    this.lineage = new Lineage(this.recording, this.programs);
    this.sides = new SideBySide(this.programs, (side, line, key) => this.select(side, line, key), {
      lineage: this.lineage,
      oncursor: (side, line, said) => (this.live.textContent = said),
    });
    this.family = h("div", {
      class: "family",
      role: "region",
      "aria-label": t("Origins"),
      tabindex: "0",
    });
    this.source?.remove();
    this.source = new CodeSource(this.model, this.recording);
    this.code = new CodeView(this.programs, this.source, (said) => (this.live.textContent = said));
    this.tabs = this.buildTabs();
    this.legend = h("div", { class: "legend" });
    this.unfold = h(
      "button",
      {
        type: "button",
        class: "unfold",
        "aria-pressed": "false",
        onclick: () => {
          const all = this.unfold.getAttribute("aria-pressed") !== "true";
          this.unfold.setAttribute("aria-pressed", String(all));
          this.sides.unfold(all);
        },
      },
      t("Show all lines"),
    );
    this.counts?.remove();
    this.counts = new CountsPanel(this.recording, this.model, (at) => this.show(at), this.counts);
    this.counts.onCounts = () => this.drawFacts();
    this.unmeasured?.remove();
    this.unmeasured = new Unmeasured(this.recording, this.model, () => {
      this.drawFacts();
      this.drawChart();
    });
    this.python = h("pre", { class: "python", tabindex: "0" });
    const copy = copyButton(t("Copy the Python so far"), () =>
      pythonUpTo(this.recording, this.step),
    );
    this.root.setAttribute("aria-label", t("Steps of {title}", { title: this.recording.title }));
    this.root.replaceChildren(
      h(
        "div",
        { class: "bar" },
        h("span", { class: "title" }, this.recording.title),
        h(
          "div",
          { class: "buttons", role: "group", "aria-label": t("Move between steps") },
          this.buttons.slice(0, 2),
          this.slider,
          this.buttons.slice(2),
        ),
        this.skip,
        this.model.guess.button,
        this.count,
        this.panes.tools,
      ),
      this.model.guess.card,
      this.chart,
      this.unmeasured.element,
      instruction,
      this.facts,
      this.why,
      this.tabs,
      this.sides.element,
      this.code.element,
      this.panes.grip,
      this.family,
      h(
        "div",
        { class: "foot" },
        this.legend,
        this.unfold,
        saveButtons(
          () => this.picture(),
          () => `${this.recording.title.replace(/\W+/g, "-")}-step-${this.step}`,
          (said) => (this.live.textContent = said),
        ),
      ),
      this.counts.element,
      gpuTable(this.recording, (at) => this.show(at)) ?? "",
      h(
        "details",
        { class: "so-far" },
        h("summary", {}, t("Python so far")),
        h("div", { class: "code" }, this.python, copy),
      ),
      this.live,
    );
    this.step = -1;
    this.show(this.model.get("step") || 0, false);
    if (this.model.get("tab")) this.chooseTab(this.model.get("tab"), false);
    this.follow(this.model.get("selection"));
  }

  /** The ways to look at a step: its programs as text or as pictures, and what they become. */
  buildTabs() {
    /** @param {import("./program.js").Picture | null} picture */
    const both = (picture) => () => {
      this.kind = "";
      this.sides.setPicture(picture, !this.stale);
      if (this.stale) this.drawPrograms();
      this.place();
    };
    /** @param {Data.CodeKind} kind */
    const code = (kind) => () => {
      this.kind = kind;
      this.place();
    };
    this.views = [
      ["program", t("Program"), both(null)],
      ["nest", t("Loop nest"), both(nests)],
      ["lowered", t("Lowered"), code("stages")],
      ["llvm", t("LLVM IR"), code("llvm")],
      ["assembly", t("Assembly"), code("assembly")],
    ];
    if (this.threaded.size)
      for (const [kind, name] of Object.entries(LANGUAGES))
        this.views.push([kind, name, code(/** @type {Data.CodeKind} */ (kind))]);
    this.kind = "";
    this.view = 0;
    const tabs = this.views.map(([name, label], i) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          "aria-selected": String(i === 0),
          tabindex: i === 0 ? "0" : "-1",
          onclick: () => this.chooseTab(name),
        },
        label,
      ),
    );
    this.tabButtons = tabs;
    const list = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": t("Ways to look at the step") },
      tabs,
    );
    list.addEventListener("keydown", (event) => {
      const turn = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!turn) return;
      event.preventDefault();
      event.stopPropagation();
      const at = (this.view + turn + tabs.length) % tabs.length;
      this.chooseTab(this.views[at][0]);
      tabs[at].focus();
    });
    return list;
  }

  /**
   * Show a tab by its name: see `views`.
   * @param {string} name
   */
  chooseTab(name, tell = true) {
    const at = this.views.findIndex(([known]) => known === name);
    if (at < 0) return;
    this.tabButtons.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === at));
      tab.tabIndex = i === at ? 0 : -1;
    });
    this.view = at;
    this.views[at][2]();
    if (this.kind) this.unfold.hidden = true;
    else if (this.sides.shown) {
      this.drawLegend(this.sides.shown[0], this.recording.steps[this.step]);
    }
    if (tell) {
      this.model.set("tab", name);
      this.model.save_changes();
    }
  }

  /**
   * Put the program after a step on the left; -1: the one before the step shown.
   * @param {number} at
   */
  compareWith(at, tell = true) {
    this.baseline = at >= 0 && at < this.recording.steps.length ? at : -1;
    this.base.value = String(this.baseline);
    this.drawPrograms();
    if (tell) {
      this.model.set("baseline", this.baseline);
      this.model.save_changes();
    }
  }

  /**
   * Show what Python selected.
   * @param {(Data.Selection & { side: Data.Side, line: number }) | undefined} selection
   */
  follow(selection) {
    const { pinned } = this.sides;
    if (!selection) return;
    const { key, side, line, step } = selection;
    if (key === undefined || step !== this.step || pinned?.key === key) return;
    this.sides.pinned = { side, key };
    this.drawFamily(side, line, key);
    this.sides.light();
    this.sides.reveal(side, line);
  }

  /** Draw the programs anew, at the same step, as after lines were wrapped. */
  redraw() {
    if (!this.sides) return; // the view is not built yet
    if (this.kind) this.code.redraw();
    else this.sides.draw(false);
    this.stale = Boolean(this.kind);
  }

  /** Show the code of the step's program, or its programs, as the tab says. */
  place() {
    this.code.element.hidden = !this.kind;
    this.sides.element.hidden = Boolean(this.kind);
    this.family.hidden = Boolean(this.kind);
    if (!this.kind || this.step < 0) return;
    const { before, after } = this.recording.steps[this.step];
    const marks = marksOf(this.programs, before, after, "after");
    const absent = this.kind in LANGUAGES && !this.threaded.has(after) ? this.noThreads() : null;
    this.code.show(after, this.kind, marks, absent);
  }

  /** Why the program shown has no source for a GPU, and the way to one that has. */
  noThreads() {
    const { steps } = this.recording;
    const has = steps.map((step) => this.threaded.has(step.after));
    const later = has.indexOf(true, this.step);
    const at = later < 0 ? has.lastIndexOf(true) : later;
    return h(
      "div",
      { class: "wait" },
      h(
        "p",
        {},
        t(
          "No loop of this program is bound to threads, and a kernel needs some. Step {at} has such loops:",
          { at },
        ),
      ),
      h("pre", { tabindex: "0" }, coloured(steps[at].python)),
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            this.show(at);
            this.code.right.focus();
          },
        },
        t("Go to step {at}: {op}", { at, op: steps[at].op }),
      ),
    );
  }

  /** Draw anew after the recording has changed, at the same step and with the same focus. */
  rebuild() {
    const within = this.root.contains(document.activeElement);
    this.build();
    this.observer.disconnect();
    this.observer.observe(this.chart);
    this.drawChart();
    if (within) this.root.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const pane = closest(event, ".pane");
    if (event.shiftKey) {
      if (pane && /^Arrow(Left|Right)$/.test(event.key)) {
        pane.scrollLeft += event.key === "ArrowLeft" ? -40 : 40;
        event.preventDefault();
      }
      return;
    }
    const last = this.recording.steps.length - 1;
    if (closest(event, "select")) return;
    /** @type {Record<string, number>} */
    const targets = { ArrowLeft: this.next(-1), ArrowRight: this.next(1), Home: 0, End: last };
    if (!(event.key in targets)) return;
    event.preventDefault();
    event.stopPropagation();
    this.show(targets[event.key]);
  }

  /**
   * @param {Data.Side} side
   * @param {number} line
   * @param {number | null} key
   */
  select(side, line, key) {
    if (line < 0) {
      this.drawFamily(side, line, null);
      this.live.textContent = t("Nothing is selected.");
      this.model.set("selection", {});
      this.model.save_changes();
      return;
    }
    const step = this.recording.steps[this.step];
    const program = side === "before" ? step.before : step.after;
    const found = this.programs.programs[program][line];
    const selection = { step: this.step, side, line, text: found.text, keys: found.keys };
    if (key !== null && key !== undefined) {
      const [kind] = this.lineage.key(key);
      Object.assign(selection, { key, kind, name: this.lineage.nameIn(program, key) });
    }
    this.drawFamily(side, line, key);
    this.model.set("selection", selection);
    this.model.save_changes();
  }

  /**
   * The ancestors and descendants of what was selected, across the steps.
   * @param {Data.Side} side
   * @param {number} line
   * @param {number | null | undefined} key
   */
  drawFamily(side, line, key) {
    if (key === null || key === undefined) {
      this.family.replaceChildren(
        h(
          "span",
          { class: "hint" },
          t(
            "Point at a loop, block, iterator or buffer to see what it came from and what it became; " +
              "select it to follow it through all steps.",
          ),
        ),
      );
      return;
    }
    const step = this.recording.steps[this.step];
    const program = side === "before" ? step.before : step.after;
    const others = line < 0 ? [] : this.lineage.symbols(program, line);
    /** @param {number} k */
    const chip = (k) => {
      const [kind] = this.lineage.key(k);
      const name = this.lineage.nameIn(program, k);
      return h(
        "button",
        {
          type: "button",
          class: "chip",
          "aria-pressed": String(k === key),
          onclick: () => {
            this.sides.pinned = { side, key: k };
            this.sides.light();
            this.select(side, line, k);
            this.family.querySelector('[aria-pressed="true"]')?.focus();
          },
        },
        h("span", { class: "kind" }, `${t(kind)} `),
        name,
      );
    };
    /**
     * @param {number} k
     * @param {number} at
     */
    const called = (k, at) => `${t(this.lineage.key(k)[0])} ${this.lineage.nameIn(at, k)}`;
    /** @param {{ step: number, keys: number[] }} row */
    const programOf = (row) => this.recording.steps[row.step].after;
    /** @param {{ step: number, keys: number[] }} row */
    const names = (row) => [...new Set(row.keys.map((k) => called(k, programOf(row))))].join(", ");
    const rows = this.lineage.history(this.step, side, key).map((row) => {
      const { op } = this.recording.steps[row.step];
      const text = row.keys.length ? names(row) : t("gone");
      return h(
        "li",
        {},
        h(
          "button",
          {
            type: "button",
            class: "chip",
            title: t("Go to step {at}: {op}", { at: row.step, op }),
            "aria-current": row.step === this.step ? "step" : null,
            onclick: () => this.show(row.step),
          },
          h("span", { class: "kind" }, `${row.step} ${op} `),
          text,
        ),
      );
    });
    this.family.replaceChildren(
      h("div", { class: "chips" }, (others.includes(key) ? others : [key]).map(chip)),
      h(
        "ol",
        { class: "chips", "aria-label": t("History of {name}", { name: called(key, program) }) },
        rows,
      ),
    );
    this.live.textContent =
      `${called(key, program)}: ` +
      this.lineage
        .history(this.step, side, key)
        .map((row) =>
          t("step {at}, {names}", {
            at: row.step,
            names: row.keys.length ? names(row) : t("gone"),
          }),
        )
        .join("; ");
  }

  /**
   * Show a step; `tell` says whether the model should hear of it.
   * @param {number} at
   */
  show(at, tell = true) {
    const { steps } = this.recording;
    at = Math.max(0, Math.min(steps.length - 1, at));
    if (at === this.step) return;
    this.step = at;
    const step = steps[at];
    this.slider.value = String(at);
    this.slider.setAttribute(
      "aria-valuetext",
      t("{at} of {last}: {op}", { at, last: steps.length - 1, op: step.op }),
    );
    this.count.textContent = `${at} / ${steps.length - 1}`;
    const ends = [at === 0, this.next(-1) === at, this.next(1) === at, at === steps.length - 1];
    // `aria-disabled` and not `disabled`: a button that vanishes from under the focus loses it.
    this.buttons.forEach((b, i) => b.setAttribute("aria-disabled", String(ends[i])));
    this.drawInstruction(step);
    this.drawFacts();
    this.counts.show(at);
    this.sides.pinned = this.keep(at);
    this.drawPrograms();
    this.place();
    this.python.replaceChildren(...coloured(pythonUpTo(this.recording, at)));
    this.drawChart();
    this.live.textContent = this.spoken();
    this.source.prepare([step.after, sure(steps[this.next(1)]).after]);
    if (tell) {
      this.model.set("step", at);
      this.model.save_changes();
    }
  }

  /**
   * What was selected stays so where it stands in the new step's programs too.
   * @param {number} at
   */
  keep(at) {
    const { pinned } = this.sides;
    const step = this.recording.steps[at];
    const key = pinned?.key ?? -1;
    for (const side of pinned
      ? /** @type {Data.Side[]} */ ([pinned.side, "after", "before"])
      : []) {
      const program = side === "before" ? step.before : step.after;
      if (!this.lineage.keysIn(program).has(key)) continue;
      const line = this.programs.programs[program].findIndex((l) => l.keys.includes(key));
      this.drawFamily(side, line, key);
      return { side, key };
    }
    this.drawFamily("after", -1, null);
    return null;
  }

  /**
   * Whether a step left the program as it was.
   * @param {number} at
   */
  isIdle(at) {
    const step = this.recording.steps[at];
    return at > 0 && step.before === step.after;
  }

  /**
   * The step nearest to one, from it on and else before it, that is not passed over.
   * @param {number} at
   */
  shownStep(at) {
    if (!this.skipping || !this.isIdle(at)) return at;
    for (let i = at; i < this.recording.steps.length; i++) if (!this.isIdle(i)) return i;
    for (let i = at; i > 0; i--) if (!this.isIdle(i)) return i;
    return 0;
  }

  /**
   * The step before or after this one; this one where there is none.
   * @param {number} turn
   */
  next(turn) {
    let at = this.step + turn;
    while (this.skipping && this.recording.steps[at] && this.isIdle(at)) at += turn;
    return this.recording.steps[at] ? at : this.step;
  }

  /** Both programs: of the step, or of it and another that was picked. */
  drawPrograms() {
    const step = this.recording.steps[this.step];
    const base = this.baseline;
    const before = base < 0 ? step.before : this.recording.steps[base].after;
    // Where the code of a program is shown, the programs are drawn when their tab is chosen.
    this.stale = Boolean(this.kind);
    if (this.stale) {
      this.drawLegend(before, step);
      return;
    }
    const after =
      base < 0 ? t("After") : t("After step {at}: {op}", { at: this.step, op: step.op });
    this.sides.show(before, step.after, step.error, {
      captions: [this.base, after],
      step: this.step,
      relate: base < 0 ? null : (side, keys) => this.lineage.between(base, this.step, side, keys),
    });
    this.drawLegend(before, step);
  }

  /** What is shown as SVG text, for slides: the instruction, its meaning, and both panes. */
  picture() {
    const step = this.recording.steps[this.step];
    const { meaning = "" } = this.recording.docs[step.op] || {};
    const cost = facts(this.recording, this.step)
      .map((f) => `${f.name}: ${f.value}`)
      .join("   ");
    const heading = [
      step.python.split("\n")[0] || t("the program as it was"),
      meaning,
      cost,
    ].filter(Boolean);
    const { sides, code } = this;
    for (const part of [...sides.drawings, ...sides.rows, code.leftRows, code.rightRows])
      part.whole();
    if (this.kind) return pictureOf([this.code.left, this.code.right], heading);
    return pictureOf(
      step.error || (step.before === step.after && this.baseline < 0)
        ? [this.sides.left]
        : [this.sides.left, this.sides.right],
      heading,
    );
  }

  spoken() {
    const step = this.recording.steps[this.step];
    const said = facts(this.recording, this.step)
      .map((f) => `${f.name}: ${f.value}`)
      .join(". ");
    const refused = step.error
      ? t(" refused, {rule}", { rule: step.error.rule || t("not legal") })
      : "";
    const why = (step.why || []).map((reason) => ` ${reason}`).join("");
    const last = this.recording.steps.length - 1;
    return t("Step {at} of {last}: {op}{refused}. {said}.{why}", {
      at: this.step,
      last,
      op: step.op,
      refused,
      said,
      why,
    });
  }

  /**
   * The elements stay and only their content changes, so that none loses the focus.
   * @param {Data.Step} step
   */
  drawInstruction(step) {
    const doc = this.recording.docs[step.op] || {};
    this.now.replaceChildren(...coloured(step.python));
    this.now.tabIndex = step.python ? 0 : -1; // nothing is scrolled in an empty line
    this.meaning.replaceChildren(
      ...(doc.meaning || "").split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part)),
    );
    const more = [];
    if (step.lead?.length) {
      more.push(h("div", { class: "sub" }, t("Asked before it")));
      more.push(h("pre", { tabindex: "0" }, coloured(step.lead.join("\n"))));
    }
    if (doc.doc) {
      more.push(
        h("div", { class: "sub" }, t("What {op} does", { op: step.op })),
        h("pre", { tabindex: "0" }, doc.doc),
      );
    }
    if (!more.length) more.push(h("div", { class: "sub" }, t("There is no more to say.")));
    this.more.replaceChildren(...more);
  }

  /**
   * What is said in the place of why a step changed the time; "" where nothing is missing there.
   * @param {Data.Step} step
   */
  lacking(step) {
    if (step.error || step.why?.length || step.before === step.after) return "";
    const costs = [step.before, step.after].map((at) => this.recording.programs[at].cost);
    if (!costs.every((cost) => cost?.counts || cost?.inner)) return ""; // nobody asked
    return costs.every((cost) => cost?.counts?.levels || cost?.inner?.instructions)
      ? t("The counts say nothing of this change.")
      : t("Not counted, so it is not known why.");
  }

  drawWhy() {
    const step = this.recording.steps[this.step];
    const lacking = this.lacking(step);
    const ask = h("button", { type: "button", class: "small" }, t("Count every step"));
    ask.addEventListener("click", () => this.counts.request());
    ask.hidden = this.counts.ask.hidden;
    this.why.replaceChildren(
      ...(step.why ?? []).map((reason) => h("li", {}, reason)),
      ...(lacking ? [h("li", { class: "none" }, lacking, " ", ask)] : []),
    );
  }

  drawFacts() {
    this.drawWhy();
    this.facts.replaceChildren(
      ...[
        ...facts(this.recording, this.step),
        ...countFacts(costOf(this.recording, this.recording.steps[this.step])),
      ].map((fact) =>
        h(
          "div",
          { class: `fact ${fact.kind || ""}`, role: "listitem", title: fact.title },
          h("span", {}, fact.name),
          h("strong", {}, (SIGN[fact.kind || ""] || "") + fact.value),
        ),
      ),
    );
  }

  /**
   * @param {number} before
   * @param {Data.Step} step
   */
  drawLegend(before, step) {
    const counts = this.programs.counts(before, step.after);
    const parts = MARKS.filter((mark) => counts[mark]).map((mark) =>
      h(
        "span",
        { class: `l ${mark}` },
        `${{ new: "+", removed: "−", changed: "~", moved: "↕" }[mark]} ` +
          `${counts[mark]} ${t(mark)}`,
      ),
    );
    const none = step.error ? "" : t("the program is the same");
    this.legend.replaceChildren(...(parts.length ? parts : [none]));
    this.unfold.hidden =
      this.view > 0 ||
      (!this.sides.element.querySelector(".fold") &&
        this.unfold.getAttribute("aria-pressed") !== "true");
  }

  drawChart() {
    // Asked of the page only when it changes: asking lays the page out.
    const width = this.chartWidth;
    if (!width) return;
    const { steps, machine } = this.recording;
    const points = steps.map((step, i) => {
      const cost = costOf(this.recording, step);
      const said = facts(this.recording, i)
        .map((f) => f.value)
        .join(", ");
      return {
        idle: this.skipping && this.isIdle(i),
        time: cost && cost.time,
        refused: Boolean(step.error),
        wrong: cost?.equal === false,
        label: `${i}: ${step.op}: ${said}`,
      };
    });
    const peak = machine && machine.peak_gflops;
    const floor = peak && this.recording.flops ? this.recording.flops / (peak * 1e9) : null;
    this.chart.innerHTML = drawChart(points, floor, this.step, width);
    this.chart.hidden = !this.chart.innerHTML;
  }
}

/**
 * What anywidget calls with an element to draw in; the return value takes the view down.
 * @param {Data.Host} host
 */
export function render({ model, el }) {
  speak(model, el);
  const stepper = new Stepper(model, el);
  return () => stepper.remove();
}

export default { render };
