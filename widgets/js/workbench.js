// The workbench: pick a block or loop, choose a primitive, apply it; every attempt stays in a tree.
//
// Draws a tree of attempts (mlc_lab/observe/workbench.py, `to_dict`) and what the kernel listed for
// the thing that was picked. All that is compiled, checked or measured happens in the kernel; with
// none, as in an exported page, one can walk about in what was tried.

import { closest, digits, duration, h, iconButton, later, ofPeak, small, spreadOf } from "./dom.js";
import { PaletteView } from "./palette.js";
import { Programs } from "./program.js";
import { PaneTools } from "./panes.js";
import { ProgramPane } from "./program_pane.js";
import { PythonPanel } from "./python_panel.js";
import { leftFacts } from "./left.js";
import { followTheme } from "./theme.js";
import { TreeView } from "./tree.js";
import { speak, t } from "./words.js";

const PATIENCE = 8000; // ms after which a kernel that says nothing is called silent

/**
 * @param {[string, string, string]} fact name, value and kind
 */
const fact = ([name, value, kind]) =>
  h(
    "div",
    { class: `fact ${kind}`, role: "listitem" },
    h("span", {}, name),
    h("strong", {}, value),
  );

export class WorkbenchView {
  /** @type {Map<number, (answer: Data.Answered) => void>} */
  waiting;
  /** @type {Map<number, number>} */
  onward;
  /** @type {number | null} */
  refused;
  /** @type {Record<string, (message: any) => void>} */
  heard;
  /** @type {HTMLButtonElement} */
  back = later();
  /** @type {HTMLButtonElement} */
  forth = later();
  /** @type {HTMLSpanElement} */
  title = later();
  /** @type {HTMLElement} */
  now = later();
  /** @type {HTMLButtonElement} */
  measureButton = later();
  /** @type {HTMLInputElement} */
  auto = later();
  /** @type {HTMLLabelElement} */
  autoLabel = later();
  /** Whether a measurement was running when the view was drawn last. */
  measured = false;
  /** @type {HTMLDivElement} */
  status = later();
  /** @type {HTMLDivElement} */
  facts = later();
  /** @type {HTMLDivElement} */
  limits = later(); // of a GPU
  /** @type {ProgramPane} */
  program = later();
  /** @type {HTMLDivElement} */
  refusal = later();
  /** @type {PaletteView} */
  palette = later();
  /** @type {TreeView} */
  tree = later();
  /** @type {PythonPanel} */
  python = later();
  /** @type {Data.Tree} */
  data = later();
  /** @type {Data.Attempt[]} */
  nodes = later();
  /** @type {Programs} */
  programs = later();
  /** @type {number} */
  at = later();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  patience = later();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} element
   */
  constructor(model, element) {
    this.model = model;
    this.live = model.get("live") !== false;
    this.waiting = new Map();
    this.number = 0;
    this.onward = new Map(); // where redo goes, by node
    this.refused = null; // the refused attempt whose reason is shown
    this.root = h("section", {
      class: "mlc bench",
      role: "group",
      "aria-roledescription": t("workbench"),
      tabindex: "-1",
    });
    element.replaceChildren(this.root);
    this.panes = new PaneTools(model, this.root);
    this.build();
    this.stopTheme = followTheme(this.root);
    this.heard = {};
    for (const name of ["tree", "node", "selection", "palette", "costs", "left", "measuring"]) {
      this.heard[`change:${name}`] = () => this.later(name);
    }
    this.heard["msg:custom"] = (message) => this.answer(message);
    for (const [event, listener] of Object.entries(this.heard)) model.on(event, listener);
    this.pending = new Set(["tree", "node", "selection", "palette", "costs", "left", "measuring"]);
    this.update();
  }

  remove() {
    this.panes.remove();
    this.stopTheme();
    clearTimeout(this.patience);
    for (const [event, listener] of Object.entries(this.heard)) this.model.off(event, listener);
  }

  // ------------------------------------------------------------------------------- the elements

  build() {
    this.back = iconButton(t("Undo"), "M8 2L3 6.5 8 11M3 6.5h6a4 4 0 0 1 0 8H6", () => this.undo());
    this.forth = iconButton(t("Redo"), "M8 2l5 4.5L8 11M13 6.5H7a4 4 0 0 0 0 8h3", () =>
      this.redo(),
    );
    this.title = h("span", { class: "title" });
    this.now = h("code", { class: "now-op" });
    this.measureButton = h(
      "button",
      { type: "button", onclick: () => this.measure() },
      t("Measure"),
    );
    this.auto = h("input", { type: "checkbox" });
    this.autoLabel = h("label", { class: "auto" }, this.auto, t("time each attempt"));
    this.status = h("div", { class: "status", role: "status", "aria-live": "polite" });
    this.facts = h("div", { class: "facts", role: "list", "aria-label": t("The program here") });
    this.limits = h("div", { class: "limits", role: "list", "aria-label": t("Limits of the GPU") });
    this.program = new ProgramPane((key) => this.choose(key));
    this.refusal = h("div", { class: "refusal-box", hidden: true });
    this.palette = new PaletteView({
      apply: (op, args) => this.apply(op, args),
      check: (op, args, preview) => this.ask({ do: "check", op, args, preview }, true),
    });
    this.tree = new TreeView((id) => this.goto(id));
    this.python = new PythonPanel(this.live, (text) => this.load(text));
    const keys = t(
      "Undo and redo: buttons, or Ctrl+Z and Ctrl+Shift+Z in the view. Arrow keys move " +
        "among loops and blocks in the program, and among attempts in the tree; Enter chooses.",
    );
    this.root.replaceChildren(
      h(
        "div",
        { class: "bar" },
        this.title,
        h(
          "div",
          { class: "buttons", role: "group", "aria-label": t("Undo and redo") },
          this.back,
          this.forth,
        ),
        this.now,
        this.autoLabel,
        this.measureButton,
        this.panes.tools,
        this.status,
      ),
      this.facts,
      this.limits,
      h(
        "div",
        { class: "bench-panes" },
        h(
          "div",
          { class: "half" },
          h("div", { class: "cap" }, t("Program: choose a loop or a block")),
          this.program.element,
          this.refusal,
        ),
        h(
          "div",
          { class: "half" },
          h("div", { class: "cap" }, t("What can be done with it")),
          this.palette.element,
        ),
      ),
      this.panes.grip,
      h("div", { class: "cap" }, t("Attempts")),
      this.tree.element,
      this.python.element,
      h("p", { class: "keys" }, keys),
    );
    this.root.addEventListener("keydown", (event) => this.key(event));
  }

  // ------------------------------------------------------------------------- what has changed

  /**
   * Changes arrive one by one; they are drawn together.
   * @param {string} name
   */
  later(name) {
    if (!this.pending.size) queueMicrotask(() => this.update());
    this.pending.add(name);
  }

  update() {
    const { pending } = this;
    this.pending = new Set();
    if (pending.has("tree")) {
      this.data = this.model.get("tree");
      this.nodes = this.data.nodes;
      this.programs = new Programs(this.data);
      this.title.textContent = this.data.title;
      this.root.setAttribute("aria-label", t("Workbench of {title}", { title: this.data.title }));
    }
    const wanted = this.model.get("node") ?? this.data.at ?? 0;
    const moved = pending.has("tree") || wanted !== this.at;
    if (moved) {
      this.at = Math.min(wanted, this.nodes.length - 1);
      if (this.refused !== null && this.nodes[this.refused]?.parent !== this.at)
        this.refused = null;
      for (let id = this.at, above = this.nodes[id].parent; above !== null;) {
        this.onward.set(above, id);
        id = above;
        above = this.nodes[id].parent;
      }
      const { program, parent } = this.node;
      this.program.show(
        this.data,
        this.programs,
        program,
        parent === null ? program : this.nodes[parent].program,
      );
      this.python.show(this.schedule(), this.head());
    }
    if (moved || pending.has("costs")) this.drawTree();
    if (moved || pending.has("costs") || pending.has("left")) this.drawFacts();
    if (moved || pending.has("selection")) this.program.select(this.model.get("selection")?.key);
    if (moved || pending.has("selection") || pending.has("palette")) this.drawPalette();
    const measuring = Boolean(this.model.get("measuring"));
    if (this.measured && !measuring) this.say(this.toldTime(), "good");
    this.measured = measuring;
    this.measureButton.textContent = measuring ? t("Stop measuring") : t("Measure");
    this.measureButton.hidden = this.autoLabel.hidden = !this.live;
    this.root.setAttribute("aria-busy", String(measuring));
  }

  get node() {
    return this.nodes[this.at];
  }

  /**
   * @param {Data.Attempt} node
   * @returns {Data.Cost | null}
   */
  costOf(node) {
    if (node.error) return null;
    const known = this.model.get("costs") || {};
    return known[node.program] ?? this.data.programs[node.program].cost ?? null;
  }

  /** @param {Record<string, unknown>} values */
  set(values) {
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    this.model.save_changes();
  }

  /** @param {string} text */
  say(text, kind = "") {
    this.status.className = `status ${kind}`;
    this.status.textContent = text;
  }

  /** @param {number} key */
  choose(key) {
    const [kind, name] = this.data.keys[key];
    this.refused = null;
    this.set({ selection: { key, kind, name } });
    this.drawRefusal();
    if (this.live) this.expect();
  }

  /** After a while without the kernel's word on what was picked, say so. */
  expect() {
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      if (this.model.get("selection")?.key !== undefined && !this.listingFits()) {
        this.palette.say(
          t("The kernel does not answer."),
          t("It is busy with another cell, or gone. What has been tried can still be looked at."),
        );
      }
    }, PATIENCE);
  }

  // --------------------------------------------------------------------------------- palette

  listingFits() {
    const listing = this.model.get("palette");
    const key = this.model.get("selection")?.key;
    return listing && listing.node === this.at && listing.key === key && key !== undefined;
  }

  drawPalette() {
    const selection = this.model.get("selection") || {};
    // Until the kernel has listed anew, the old list stays in sight and out of reach.
    const stale = this.live && selection.key !== undefined && !this.listingFits();
    this.palette.element.classList.toggle("stale", stale);
    this.palette.element.setAttribute("aria-busy", String(stale));
    if (!this.live) {
      this.palette.say(
        t("Choosing a primitive needs a kernel."),
        t(
          "This page holds what was tried: go through the attempts below, or copy the Python and open " +
            "a workbench in a notebook.",
        ),
      );
    } else if (this.listingFits()) {
      this.palette.show(this.model.get("palette"));
    } else if (selection.key === undefined) {
      this.palette.say(
        t("Nothing is chosen yet."),
        t(
          "Click a loop's name or a block in the program, or go there with Tab, the arrow keys and Enter.",
        ),
      );
    } else if (!this.palette.shown) {
      this.palette.say(`${t(selection.kind)} ${selection.name}`, t("Trying every primitive …"));
    }
  }

  // --------------------------------------------------------------------------------- the tree

  drawTree() {
    this.tree.draw(this.nodes, (node) => this.costOf(node), this.at, this.onward);
    this.back.setAttribute("aria-disabled", String(this.node.parent === null));
    this.forth.setAttribute("aria-disabled", String(!this.onward.has(this.at)));
    this.now.textContent = this.node.python || t("the program as it was");
    this.now.title = this.now.textContent;
    this.drawRefusal();
  }

  drawRefusal() {
    const node = this.refused === null ? null : this.nodes[this.refused];
    this.refusal.hidden = !node;
    this.program.fault(node?.error?.keys || []);
    if (!node) return;
    this.refusal.replaceChildren(
      h(
        "button",
        {
          type: "button",
          class: "close",
          "aria-label": t("Close the refusal"),
          onclick: () => {
            this.refused = null;
            this.drawRefusal();
          },
        },
        "✕",
      ),
      h("code", {}, node.python),
      h("strong", {}, t(" was refused: {rule}", { rule: node.error?.rule })),
      h("pre", {}, node.error?.message),
    );
  }

  drawFacts() {
    const cost = this.costOf(this.node);
    /** @type {[string, string, string][]} */
    const found = [];
    if (cost?.time) {
      found.push([t("Time"), duration(cost.time) + spreadOf(cost.spread), ""]);
      const start = this.costOf(this.nodes[0]);
      const parent = this.node.parent === null ? null : this.costOf(this.nodes[this.node.parent]);
      /** @type {[string, Data.Cost | null][]} */
      const others = [
        [t("Change"), parent],
        [t("Since the start"), start],
      ];
      for (const [name, other] of others) {
        if (!other?.time || this.node.parent === null) continue;
        const ratio = other.time / cost.time;
        const noise = 1 + (other.spread || 0) + (cost.spread || 0);
        found.push(
          ratio < noise && 1 / ratio < noise
            ? [name, t("≈ no change beyond noise"), ""]
            : ratio > 1
              ? [name, `▲ ${t("{ratio}× faster", { ratio: digits(ratio) })}`, "good"]
              : [name, `▼ ${t("{ratio}× slower", { ratio: digits(1 / ratio) })}`, "bad"],
        );
      }
      if (cost.gflops) {
        const peak = ofPeak(cost.peak_fraction);
        found.push([t("Speed"), `${digits(cost.gflops)} GFLOP/s${peak}`, ""]);
      }
    } else found.push([t("Time"), cost?.message || t("not measured"), "none"]);
    if (cost?.equal != null) {
      const error =
        cost.max_error == null ? "" : t(" (max error {error})", { error: small(cost.max_error) });
      found.push(
        cost.equal
          ? [t("Result"), `✓ ${t("equals the original{error}", { error })}`, "good"]
          : [t("Result"), `✕ ${t("differs from the original{error}", { error })}`, "bad"],
      );
    }
    this.facts.replaceChildren(...found.map(fact));
    const left = { ...this.data.left, ...this.model.get("left") };
    // The row stays while a program's figures are worked out, so that nothing moves.
    this.limits.hidden = !Object.keys(left).length;
    this.limits.replaceChildren(...leftFacts(left[this.node.program]).map(fact));
  }

  /** @param {number} id */
  goto(id) {
    const node = this.nodes[id];
    if (node.error) {
      this.refused = id;
      this.say(t("{op} was refused here: {rule}", { op: node.op, rule: node.error.rule }), "bad");
      if (node.parent === this.at) return this.drawRefusal();
      id = node.parent ?? 0;
    } else {
      this.refused = null;
      this.say(
        t("attempt {id}: {python}", { id, python: node.python || t("the program as it was") }),
      );
    }
    if (id === this.at) return this.drawRefusal();
    this.set({ node: id });
    if (this.live) this.expect();
  }

  undo() {
    const back = this.node.began ?? this.node.parent;
    if (back !== null) this.goto(back);
  }

  redo() {
    const next = this.onward.get(this.at);
    let end = next; // of several attempts that were made at once
    while (end !== undefined && this.nodes[end].began !== this.at) end = this.onward.get(end);
    if (next !== undefined) this.goto(end ?? next);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (closest(event, "textarea, input[type=text], input[type=number]")) return;
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "z")
      return;
    event.preventDefault();
    event.stopPropagation();
    if (event.shiftKey) this.redo();
    else this.undo();
  }

  // ------------------------------------------------------------------------------- the Python

  /** The Python up to the node shown, without the program. */
  schedule() {
    const lines = [];
    for (let node = this.node; node.parent !== null; node = this.nodes[node.parent]) {
      lines.unshift(...node.lead, node.python);
    }
    return [this.data.prelude, ...lines].join("\n") + "\n";
  }

  /** What stands before it where it is to run: imports and the program. */
  head() {
    const program = this.programs.programs[this.nodes[0].program]
      .map((line) => " ".repeat(line.indent) + line.text)
      .join("\n")
      .trim();
    return `${this.data.imports}\n\n\n${program}\n\n\n`;
  }

  /** @param {string} text */
  async load(text) {
    const told = await this.ask({ do: "python", text });
    if (told?.ok) this.say(t("read: the place is attempt {id}", { id: told.node }));
    return told;
  }

  // ------------------------------------------------------------------------------- the kernel

  /**
   * Ask the kernel; resolves to its answer, or null if there is none.
   * @param {object} message
   * @param {boolean} [quiet]
   * @returns {Promise<Data.Answered | null>}
   */
  ask(message, quiet = false) {
    if (!this.live) return Promise.resolve(null);
    const id = ++this.number;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.waiting.delete(id);
        if (!quiet) this.say(t("The kernel does not answer: it is busy or gone."), "bad");
        resolve(null);
      }, PATIENCE);
      this.waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      try {
        this.model.send({ ...message, id });
      } catch {
        this.answer({ answer: id, ok: false, error: t("There is no kernel to ask.") });
      }
    });
  }

  /** @param {Data.Answered} message */
  answer(message) {
    const waiting = this.waiting.get(message?.answer ?? -1);
    if (!waiting) return;
    this.waiting.delete(message.answer ?? -1);
    waiting(message);
  }

  /**
   * @param {string} op
   * @param {Record<string, unknown>} args
   */
  async apply(op, args) {
    if (!this.live) return;
    const started = performance.now();
    const told = await this.ask({ do: "apply", op, args });
    if (!told) return;
    if (told.ok) {
      this.say(t("applied: {python}", { python: this.node.python }), "good");
      this.root.dataset.applied = (performance.now() - started).toFixed(1);
      if (this.auto.checked && !this.model.get("measuring")) this.measure();
      return;
    }
    this.say(
      told.rule ? t("{op} was refused: {rule}", { op, rule: told.rule }) : told.error || "",
      "bad",
    );
    if (told.node !== undefined) {
      this.refused = told.node;
      this.drawRefusal();
    }
  }

  /** What was measured of the attempt that is shown. */
  toldTime() {
    const cost = this.costOf(this.node);
    if (cost?.time) return t("measured: {time}", { time: duration(cost.time) });
    return cost?.message
      ? t("not measured: {why}", { why: cost.message })
      : t("measured all attempts that could be");
  }

  async measure() {
    const stop = Boolean(this.model.get("measuring"));
    this.say(stop ? t("stopping …") : t("measuring, in a process of its own …"));
    const told = await this.ask({ do: stop ? "stop" : "measure" });
    if (told && told.error) this.say(told.error, "bad");
  }
}

/**
 * What anywidget calls with an element to draw in; the return value takes the view down.
 * @param {Data.Host} host
 */
export function render({ model, el }) {
  speak(model, el);
  const view = new WorkbenchView(model, el);
  return () => view.remove();
}

export default { render };
