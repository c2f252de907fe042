// A kernel of a run: its node in the graph, its program, and the schedule that made it.

import { duration, gunzip, h, later, sure } from "./dom.js";
import { Programs, SideBySide } from "./program.js";
import { t } from "./words.js";

export class KernelPanel {
  /** @type {Data.Run} */
  run = later();
  /** @type {Record<string, Data.KernelEntry>} */
  known = {};
  /** @type {Set<string>} */
  asked = new Set();
  /** @type {SideBySide | null} */
  sides = null;
  /** @type {Data.Recording | null} */
  recording = null;
  name = "";
  drawn = ""; // the kernel whose schedule is shown
  step = 0;

  /**
   * @param {Data.Model} model
   * @param {(step: number) => void} goto
   */
  constructor(model, goto) {
    this.model = model;
    this.goto = goto;
    this.live = Boolean(model.send && model.send.length);
    this.head = h("h4", {});
    this.node = h("div", { class: "node-facts" });
    this.note = h("p", { class: "dim" });
    this.slider = h("input", {
      type: "range",
      min: 0,
      value: 0,
      "aria-label": t("Step of the schedule"),
    });
    this.slider.addEventListener("input", () => this.showStep(Number(this.slider.value)));
    // The view's keys go from instruction to instruction; here they go from step to step.
    this.slider.addEventListener("keydown", (event) => event.stopPropagation());
    this.count = h("output", { class: "of-steps" });
    this.now = h("pre", { class: "now", tabindex: "0" });
    this.place = h("div", {});
    this.place.addEventListener("keydown", (event) => event.stopPropagation());
    this.schedule = h(
      "div",
      {},
      h("div", { class: "bar" }, h("div", { class: "buttons" }, this.slider), this.count),
      h("div", { class: "code" }, this.now),
      this.place,
    );
    this.details = h(
      "details",
      { ontoggle: () => this.open() },
      h("summary", {}, t("Its program and schedule")),
      this.note,
      this.schedule,
    );
    this.element = h(
      "section",
      { class: "kernel-panel", "aria-label": t("Kernel") },
      this.head,
      this.node,
      this.details,
    );
    this.onKernels = () => this.learn(model.get("kernels"));
    model.on("change:kernels", this.onKernels);
    this.onKernels();
  }

  remove() {
    this.model.off("change:kernels", this.onKernels);
  }

  /** @param {Record<string, Data.KernelEntry> | { gzip: string } | undefined} kernels */
  async learn(kernels) {
    if (!kernels) return;
    const found = "gzip" in kernels ? await gunzip(/** @type {any} */ (kernels).gzip) : kernels;
    this.known = /** @type {Record<string, Data.KernelEntry>} */ (found);
    this.open();
  }

  /**
   * Show the kernel of a step; of a step that is none, the one shown stays.
   * @param {Data.Run} run
   * @param {number} at
   */
  show(run, at) {
    this.run = run;
    const step = run.steps[at];
    this.element.hidden = !step?.kernel && !this.name;
    if (!step?.kernel) return;
    this.name = step.name;
    this.head.textContent = t("Kernel {name}, {time}", {
      name: step.name,
      time: duration(step.seconds),
    });
    this.drawNode(step.node);
    this.open();
  }

  /** Show the program and the schedule, as if the reader had opened them. */
  unfold() {
    this.details.open = true;
    sure(this.details.querySelector("summary")).focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "nearest" });
  }

  /** @param {number | null} number */
  drawNode(number) {
    const node = number === null ? undefined : this.run.nodes[number];
    if (!node) {
      this.node.replaceChildren(h("p", { class: "dim" }, t("Its node in the graph is not known.")));
      return;
    }
    /**
     * A button to the step that ran a node, or its name where none did.
     * @param {number | null} to
     * @param {string} text
     */
    const link = (to, text) => {
      const at = to === null ? -1 : this.run.steps.findIndex((step) => step.node === to);
      return at < 0
        ? h("code", {}, text)
        : h("button", { type: "button", class: "chip", onclick: () => this.goto(at) }, text);
    };
    const users = this.run.nodes.flatMap((other, n) =>
      other.takes.some((taken) => taken.node === number)
        ? [link(n, other.name || other.label)]
        : [],
    );
    this.node.replaceChildren(
      h("p", {}, t("Node "), h("code", {}, `${node.name} = ${node.label}(…)`), ` ${node.type}`),
      h("p", {}, t("takes "), ...node.takes.flatMap((t) => [link(t.node, t.name), ` ${t.type} `])),
      h(
        "p",
        {},
        users.length ? t("goes to ") : t("goes to the result"),
        ...users.flatMap((u) => [u, " "]),
      ),
    );
  }

  /** The schedule, where the reader has opened it: what is known of it, or a question to Python. */
  open() {
    if (!this.details.open || !this.name || this.drawn === this.name) return;
    const entry = this.known[this.name];
    this.schedule.hidden = !entry?.recording;
    if (!entry) {
      this.note.textContent = this.live
        ? t("Looking for its schedule …")
        : t("This page does not have it: making the schedules of all kernels took too long.");
      if (this.live && !this.asked.has(this.name)) {
        this.asked.add(this.name);
        this.model.send({ type: "kernel", name: this.name });
      }
      return;
    }
    this.drawn = this.name;
    this.recording = entry.recording || null;
    if (!entry.recording) {
      this.note.textContent = t("Not shown: {why}.", { why: entry.error });
      return;
    }
    const last = entry.recording.steps.length - 1;
    this.note.textContent = t("{count} steps: {note}.", { count: last, note: entry.note ?? "" });
    this.sides = new SideBySide(new Programs(entry.recording), () => {});
    this.place.replaceChildren(this.sides.element);
    this.slider.max = String(last);
    this.showStep(last);
  }

  /** @param {number} at */
  showStep(at) {
    const { steps } = sure(this.recording);
    const { before, after, op, python, error } = steps[at];
    this.slider.value = String(at);
    this.slider.setAttribute(
      "aria-valuetext",
      t("{at} of {last}: {name}", { at, last: steps.length - 1, name: op }),
    );
    this.count.textContent = `${at} / ${steps.length - 1}`;
    this.now.textContent = python || t("the program as it was");
    const captions =
      before === after ? [t("The program"), null] : [t("Before"), t("After {op}", { op })];
    sure(this.sides).show(before, after, error, { captions, step: at });
  }

  /** Draw the programs anew, as after lines were wrapped. */
  redraw() {
    if (this.sides?.shown) this.sides.draw(false);
  }
}
