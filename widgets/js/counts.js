// Counts of cache misses in the stepper: among the facts of a step, as columns over all steps, and
// as a roofline. They are exact and made in Python (mlc_lab/observe/count_steps.py).

import { bytesText, closest, digits, duration, h, heads, later, percent, sure } from "./dom.js";
import { bytesByLevel, drawRoofline } from "./roofline.js";
import { t } from "./words.js";

/** @param {number} value */
const full = (value) => value.toLocaleString("en-US");

/**
 * A count as people read it: "134.5 M".
 * @param {number} value
 */
export function amount(value) {
  /** @type {[number, string, number?][]} */
  const units = [
    [1e12, " T"],
    [1e9, " G"],
    [1e6, " M"],
    [1e4, " k", 1e3],
  ];
  for (const [from, name, size] of units)
    if (value >= from) return `${digits(value / (size || from))}${name}`;
  return full(value);
}

/**
 * A size in bytes: "32 KiB".
 * @param {number} bytes
 */
function binary(bytes) {
  if (bytes >= 2 ** 20) return `${bytes / 2 ** 20} MiB`;
  return bytes >= 2 ** 10 ? `${bytes / 2 ** 10} KiB` : `${bytes} B`;
}

/** @param {Data.Cost | null | undefined} cost */
const countsOf = (cost) => (cost && cost.counts && cost.counts.levels ? cost.counts : null);

/**
 * The counts as facts of a step: [{ name, value, title }].
 * @param {Data.Cost | null} cost
 * @returns {Data.Fact[]}
 */
export function countFacts(cost) {
  const counts = countsOf(cost);
  if (!counts) {
    const why = cost && cost.counts && cost.counts.message;
    return why ? [{ name: t("Cache misses"), value: why, kind: "none" }] : [];
  }
  const about = counts.part ? t("about ") : "";
  /** @type {Data.Fact[]} */
  const found = counts.levels.map((level) => ({
    name: t("{level} misses", { level: level.name }),
    value:
      about +
      amount(level.misses) +
      (level.lookups ? ` (${percent(level.misses / level.lookups)})` : ""),
    title: t("{misses} of {lookups} lines asked for; {read} bytes in, {written} written back", {
      misses: full(level.misses),
      lookups: full(level.lookups),
      read: full(level.bytes_in),
      written: full(level.bytes_out),
    }),
  }));
  const memory = bytesByLevel(counts).memory;
  found.push({
    name: t("From memory"),
    value: `${about}${bytesText(memory)}`,
    title: t("{count} bytes", { count: full(memory) }),
  });
  if (counts.sharing) {
    const { shared, written, moves } = counts.sharing;
    found.push({
      name: t("Shared lines"),
      value: t("{shared} of {written}, {moves} moves", { shared, written, moves: full(moves) }),
    });
  }
  if (counts.part) {
    found.push({
      name: t("Counted"),
      value: t("the first {part}", { part: percent(counts.part) }),
      title: t("the outer loops are cut short, and what they do is taken to go on in the same way"),
    });
  }
  if (counts.intensity) {
    found.push({
      name: t("Intensity"),
      value: `${digits(counts.intensity)} flop/B`,
      title: t("floating point operations for each byte that memory delivers or takes"),
    });
  }
  return found;
}

/** The folded part of the stepper with the columns and the roofline. `go(step)` moves the stepper. */
export class CountsPanel {
  /** @type {HTMLDetailsElement} */
  element;
  /** @type {HTMLSelectElement} */
  level;
  /** @type {HTMLDivElement} */
  body = later();
  /** @type {string[]} */
  names = later();
  /** @type {number} */
  step = later();
  /** @type {(() => void) | undefined} */
  onCounts = later();

  /**
   * @param {Data.Recording} recording
   * @param {Data.Model} model
   * @param {(step: number) => void} go
   * @param {CountsPanel | undefined} before
   */
  constructor(recording, model, go, before) {
    this.recording = recording;
    this.model = model;
    this.go = go;
    this.table = h("table", { class: "counts" });
    this.picture = h("div", { class: "roofline" });
    this.level = h("select", { "aria-label": t("Level of the roofline") });
    this.level.addEventListener("change", () => this.drawRoofline());
    this.ask = h("button", { type: "button" }, t("Count cache misses of every step"));
    this.ask.addEventListener("click", () => this.request());
    this.said = h("span", { role: "status" });
    this.note = h("p", { class: "note" });
    this.element = h(
      "details",
      { class: "counts-panel" },
      h("summary", {}, t("Cache misses and roofline")),
      h("div", { class: "bar" }, this.ask, this.said),
      (this.body = h(
        "div",
        {},
        h(
          "div",
          {
            class: "scroll",
            tabindex: "0",
            role: "region",
            "aria-label": t("Counts of every step"),
          },
          this.table,
        ),
        h("label", { class: "sub" }, t("Roofline at "), this.level),
        this.picture,
        this.note,
      )),
    );
    /** @param {Event} event */
    const pick = (event) => {
      const at = closest(event, "[data-step]");
      if (at && (!(event instanceof KeyboardEvent) || event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        event.stopPropagation();
        this.go(Number(at.dataset.step));
        if (event.type === "keydown") this.focusStep(at.dataset.step);
      }
    };
    for (const part of [this.table, this.picture]) {
      part.addEventListener("click", pick);
      part.addEventListener("keydown", pick);
    }
    /** @param {any} message */
    this.onMessage = (message) => this.take(message);
    this.live = Boolean(model.send && model.send.length);
    if (this.live) model.on("msg:custom", this.onMessage);
    this.element.addEventListener("toggle", () => this.drawRoofline());
    this.observer = new ResizeObserver(() => this.drawRoofline());
    this.observer.observe(this.picture);
    // A view that is drawn anew keeps what the reader has opened and chosen.
    this.element.open = Boolean(before?.element.open);
    this.chosen = before?.level.value ?? "";
    this.build();
  }

  remove() {
    this.observer.disconnect();
    if (this.live) this.model.off("msg:custom", this.onMessage);
  }

  /** @param {string | undefined} step */
  focusStep(step) {
    this.picture.querySelector(`[data-step="${step}"]`)?.focus();
  }

  /** Ask Python for the counts, with what comes of it in sight. */
  request() {
    this.element.open = true;
    if (this.ask.getAttribute("aria-disabled") === "true") return;
    this.ask.setAttribute("aria-disabled", "true");
    this.said.textContent = t("counting…");
    this.model.send({ type: "counts" });
  }

  /**
   * Python has counted a program, or all.
   * @param {any} message
   */
  take(message) {
    if (!message || message.type !== "counts") return;
    const { program, counts, machine, done, error } = message;
    if (machine) this.recording.machine = { ...this.recording.machine, ...machine };
    if (program !== undefined) {
      const at = this.recording.programs[program];
      at.cost = { ...(at.cost || {}), counts };
      this.said.textContent = t("counted {done} of {all} programs", {
        done: this.recording.programs.filter(({ cost }) => countsOf(cost)).length,
        all: this.recording.programs.length,
      });
    }
    if (done) {
      this.ask.setAttribute("aria-disabled", "false");
      this.said.textContent = error || t("every step is counted");
    }
    this.build();
    this.show(this.step || 0);
    this.onCounts?.();
  }

  counted() {
    return this.recording.programs.some((program) => countsOf(program.cost));
  }

  build() {
    const { live } = this;
    const any = this.counted();
    const every = this.recording.programs.every((program) => countsOf(program.cost));
    this.element.hidden = !any && !live;
    this.ask.hidden = !live || every;
    this.body.hidden = !any;
    this.element.classList.toggle("any", any);
    if (!any) return;
    const machine = this.recording.machine || {};
    const names = (machine.caches || []).map((level) => level.name);
    this.names = names.length
      ? names
      : sure(countsOf(this.recording.programs.find((p) => countsOf(p.cost))?.cost)).levels.map(
          (l) => l.name,
        );
    const chosen = this.level.value || this.chosen || "memory";
    this.level.replaceChildren(
      ...Object.keys(machine.bandwidth || {}).map((name) =>
        h("option", { value: name, selected: name === chosen }, name),
      ),
    );
    const sharing = this.recording.programs.some((p) => countsOf(p.cost)?.sharing);
    const columns = [
      t("step"),
      t("time"),
      "GFLOP/s",
      t("reads"),
      t("writes"),
      ...this.names.map((n) => t("{level} misses", { level: n })),
      t("memory bytes"),
      "flop/B",
      ...(sharing ? [t("moves")] : []),
    ];
    const rows = this.recording.steps.map((step, i) => {
      const cost = step.error ? null : this.recording.programs[step.after].cost;
      const counts = countsOf(cost);
      const cells = [
        cost && cost.time ? duration(cost.time) : "",
        cost && cost.gflops ? digits(cost.gflops) : "",
        ...(counts
          ? [
              amount(counts.reads),
              amount(counts.writes),
              ...counts.levels.map((level) => amount(level.misses)),
              amount(bytesByLevel(counts).memory),
              counts.intensity ? digits(counts.intensity) : "",
              ...(sharing ? [amount(counts.sharing?.moves ?? 0)] : []),
            ]
          : []),
      ];
      return h(
        "tr",
        { "data-step": i },
        h(
          "th",
          { scope: "row" },
          h("button", { type: "button", class: "plain" }, `${i} ${step.op}`),
        ),
        cells.map((text) => h("td", {}, text)),
        counts
          ? null
          : h(
              "td",
              { class: "uncounted", colspan: columns.length - 1 - cells.length },
              step.error ? t("refused: nothing changed") : t("not counted"),
            ),
      );
    });
    this.table.replaceChildren(heads(columns), h("tbody", {}, rows));
    const caches = (machine.caches || []).map(
      (c) => `${c.name} ${binary(c.size)} ${c.ways}-way ${c.replacement}`,
    );
    this.note.textContent = t(
      "Counted exactly, in simulated caches without prefetching: {caches}. " +
        "Time, peak and bandwidths are measured. Small arrays indexed by constants are registers.",
      { caches: caches.join(", ") },
    );
  }

  /** @param {number} step */
  show(step) {
    this.step = step;
    for (const row of this.table.querySelectorAll("tr[data-step]")) {
      const here = Number(row.dataset.step) === step;
      row.classList.toggle("here", here);
      if (here) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    }
    this.drawRoofline();
  }

  drawRoofline() {
    if (!this.element.open || this.body.hidden) return;
    const held = this.picture.contains(document.activeElement)
      ? document.activeElement?.dataset.step
      : null;
    const width = Math.min(900, this.picture.clientWidth);
    this.picture.innerHTML =
      drawRoofline(this.recording, this.level.value, this.step || 0, width) ||
      (width
        ? `<p class='note'>${t("There is no step with both a time and counts at this level.")}</p>`
        : "");
    if (held) this.focusStep(held);
  }
}
