// Kernels on the GPU of this browser: one or two beside each other, what they take, what is counted.
//
// Draws what `mlc_lab/observe/gpu/browser.py` made ready and has it run by webgpu_device.js. Needs no
// kernel of a notebook: `runs` has what was measured, wherever the page is.

import { digits, duration, h, later, OWN_KEYS, small } from "./dom.js";
import { followTheme } from "./theme.js";
import { BrowserGPU, wordsOf } from "./webgpu_device.js";
import { speak, t } from "./words.js";

/** @typedef {{ side: "left" | "right", root: HTMLElement, bar: HTMLElement, inputs: HTMLElement,
 *   facts: HTMLElement, counts: HTMLElement, more: HTMLDetailsElement, source: HTMLElement,
 *   button: HTMLButtonElement }} Lane */

/** @param {"left" | "right"} side */
const sideOf = (side) => (side === "left" ? t("left") : t("right"));

/**
 * A variant in words: its name, and what was chosen.
 * @param {Data.BrowserVariant} variant
 */
export function nameOf(variant) {
  const picked = Object.entries(variant.picked).map(([name, value]) => `${name} ${value}`);
  return [variant.name, ...picked].join(", ");
}

/**
 * What a run found of its result, in words.
 * @param {Data.BrowserRun} run
 */
export function verdict(run) {
  if (run.failure) return t("failed: {why}", { why: run.failure });
  if (run.fault) return t("✗ wrong: {why}", { why: run.fault });
  return run.error
    ? t("✓ equal, largest error {error}", { error: small(run.error) })
    : t("✓ equal");
}

/**
 * The variant that is chosen by a name and choices; the nearest where there is none.
 * @param {Data.BrowserVariant[]} variants
 * @param {string} name
 * @param {Record<string, number | string>} picked
 */
export function find(variants, name, picked) {
  let best = 0;
  let most = -1;
  variants.forEach((variant, at) => {
    if (variant.name !== name) return;
    const same = Object.keys(picked).filter((key) => variant.picked[key] === picked[key]).length;
    if (same > most) [best, most] = [at, same];
  });
  return best;
}

class WebGPUView {
  /** @type {Lane[]} */
  lanes = later();
  /** @type {HTMLElement} */
  status = later();
  /** @type {HTMLElement} */
  where = later();
  /** @type {HTMLElement} */
  race = later();
  /** @type {HTMLElement} */
  table = later();
  busy = false;
  refusal = "";

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} el
   */
  constructor(model, el) {
    this.model = model;
    this.gpu = new BrowserGPU();
    /** @type {Data.BrowserKernels} */
    this.data = model.get("kernels");
    this.root = this.build();
    el.replaceChildren(this.root);
    this.stop = followTheme(this.root);
    this.update = () => this.draw();
    for (const name of ["left", "right", "runs"]) model.on(`change:${name}`, this.update);
    this.draw();
    this.look();
  }

  close() {
    this.stop();
    this.gpu.close();
    for (const name of ["left", "right", "runs"]) this.model.off(`change:${name}`, this.update);
  }

  build() {
    const { data } = this;
    const many = data.variants.length > 1;
    this.status = h("p", { class: "status", role: "status" });
    this.where = h("p", { class: "where" });
    this.race = h("p", { class: "race", "aria-live": "polite" });
    this.table = h("div", { class: "all" });
    const sides = /** @type {("left" | "right")[]} */ (many ? ["left", "right"] : ["left"]);
    this.lanes = sides.map((side) => this.lane(side));
    const buttons = [this.action(many ? t("Run both") : t("Run"), () => this.chosen())];
    if (data.variants.length > 2) {
      const all = data.variants.map((_, n) => n).filter((n) => !data.variants[n].error);
      buttons.push(this.action(t("Run all {count}", { count: all.length }), () => all));
    }
    // a page has it as its heading
    const title = this.model.get("titled") ? [] : [h("span", { class: "title" }, data.title)];
    return h(
      "section",
      { class: "mlc mlc-webgpu", role: "group", "aria-label": data.title },
      h("div", { class: "bar" }, ...title, ...buttons),
      this.where,
      this.status,
      this.race,
      h("div", { class: "lanes" }, ...this.lanes.map((lane) => lane.root)),
      this.table,
    );
  }

  /**
   * A button that runs variants.
   * @param {string} text
   * @param {() => number[]} which
   */
  action(text, which) {
    return h("button", { type: "button", class: "go", onclick: () => this.run(which()) }, text);
  }

  /**
   * @param {"left" | "right"} side
   * @returns {Lane}
   */
  lane(side) {
    const bar = h("div", { class: "length", "aria-hidden": "true" });
    const inputs = h("div", { class: "inputs" });
    const facts = h("div", { class: "facts" });
    const counts = h("div", { class: "counts" });
    const source = h("pre", {
      tabindex: "0",
      role: "region",
      "aria-label": `WGSL, ${sideOf(side)}`,
    });
    const button = this.action(t("Run this one"), () => [this.model.get(side)]);
    const more = h("details", {}, h("summary", {}, t("Counts of the simulated device")), counts);
    const lines = h("div", { class: "source" }, source);
    const root = h(
      "section",
      { class: "lane", "aria-label": sideOf(side) },
      inputs,
      bar,
      facts,
      this.data.variants.length > 1 ? button : null,
      more,
      h("details", {}, h("summary", {}, t("The kernel in WGSL")), lines),
    );
    for (const name of new Set(this.data.variants.map((variant) => variant.name))) {
      if (!inputs.childElementCount) inputs.append(this.chooser(side, "program", []));
      inputs.querySelector("select")?.append(h("option", { value: name }, name));
    }
    for (const [name, values] of Object.entries(this.data.choices)) {
      inputs.append(this.chooser(side, name, values));
    }
    return { side, root, bar, inputs, facts, counts, more, source, button };
  }

  /**
   * @param {"left" | "right"} side
   * @param {string} name
   * @param {(number | string)[]} values
   */
  chooser(side, name, values) {
    const select = h(
      "select",
      {
        "data-name": name,
        "aria-label": `${t(name)}, ${sideOf(side)}`,
        [OWN_KEYS]: "true",
        onchange: () => this.pick(side),
      },
      ...values.map((value) => h("option", { value: String(value) }, String(value))),
    );
    return h("label", {}, `${t(name)} `, select);
  }

  /**
   * The choosers of a side were changed.
   * @param {"left" | "right"} side
   */
  pick(side) {
    const lane = this.lanes.find((one) => one.side === side);
    let name = "";
    /** @type {Record<string, number | string>} */
    const picked = {};
    for (const select of lane?.inputs.querySelectorAll("select") || []) {
      const key = select.dataset.name || "";
      if (key === "program" && !name) name = select.value;
      else picked[key] = this.data.choices[key][select.selectedIndex];
    }
    this.model.set(side, find(this.data.variants, name, picked));
    this.model.save_changes();
  }

  /** The variants that are shown, each once. */
  chosen() {
    return [...new Set(this.lanes.map((lane) => Number(this.model.get(lane.side))))];
  }

  /** Say what the browser has. */
  async look() {
    this.refusal = await this.gpu.open();
    this.root.dataset.gpu = this.refusal ? "none" : "ready";
    this.where.textContent = this.refusal
      ? t("{refusal} What is shown are the counts of the simulated device.", {
          refusal: this.refusal,
        })
      : this.gpu.hasClock
        ? t("The GPU of this browser: {name}. Times are those of its own clock.", {
            name: this.gpu.name,
          })
        : t(
            "The GPU of this browser: {name}. Times are those of the page, with the way to it and back.",
            { name: this.gpu.name },
          );
    if (this.refusal) for (const lane of this.lanes) lane.more.open = true;
    this.draw();
  }

  /**
   * Run variants one after the other.
   * @param {number[]} which
   */
  async run(which) {
    if (this.busy || this.refusal) {
      if (this.refusal) this.status.textContent = this.refusal;
      return;
    }
    this.busy = true;
    this.draw();
    for (const [n, at] of which.entries()) {
      const variant = this.data.variants[at];
      if (variant.error) continue;
      const count = which.length > 1 ? ` (${n + 1} / ${which.length})` : "";
      this.status.textContent = t("Running {name} ...", { name: nameOf(variant) + count });
      /** @type {Data.BrowserRun} */
      const run = {
        variant: at,
        device: this.gpu.name,
        seconds: 0,
        clock: "",
        fault: "",
        error: 0,
        failure: "",
      };
      try {
        Object.assign(run, await this.gpu.run(this.data, variant));
        if (!Number.isFinite(run.error)) run.error = -1;
      } catch (error) {
        run.failure = wordsOf(error);
      }
      /** @type {Data.BrowserRun[]} */
      const runs = this.model.get("runs");
      this.model.set("runs", [...runs.filter((one) => one.variant !== at), run]);
      this.model.save_changes();
    }
    this.busy = false;
    this.status.textContent = t("Done.");
    this.draw();
  }

  /**
   * @param {number} at
   * @returns {Data.BrowserRun | undefined}
   */
  runOf(at) {
    return this.model.get("runs").find((/** @type {Data.BrowserRun} */ run) => run.variant === at);
  }

  /** Which of the two is faster, in words. */
  sentence() {
    const [a, b] = this.chosen();
    const [one, other] = [this.runOf(a), b === undefined ? undefined : this.runOf(b)];
    if (!one?.seconds || !other?.seconds) return "";
    if (one.device !== other.device) return t("The two were run on different GPUs.");
    const ratio = other.seconds / one.seconds;
    const names = [nameOf(this.data.variants[a]), nameOf(this.data.variants[b])];
    if (ratio < 1.03 && ratio > 1 / 1.03) return t("Both take the same time.");
    const [fast, slow, by] = ratio > 1 ? [...names, ratio] : [names[1], names[0], 1 / ratio];
    return t("{fast} is {ratio} × as fast as {slow}.", { fast, ratio: digits(Number(by)), slow });
  }

  draw() {
    for (const lane of this.lanes) this.drawLane(lane);
    const off = String(this.busy || Boolean(this.refusal));
    for (const button of this.root.querySelectorAll("button.go")) {
      button.setAttribute("aria-disabled", off);
    }
    this.race.textContent = this.busy ? "" : this.sentence();
    this.table.replaceChildren(...(this.data.variants.length > 2 ? [this.overview()] : []));
  }

  /** @param {Lane} lane */
  drawLane(lane) {
    const { variants, flop } = this.data;
    const at = Math.min(Math.max(0, Number(this.model.get(lane.side))), variants.length - 1);
    const variant = variants[at];
    for (const select of lane.inputs.querySelectorAll("select")) {
      const key = select.dataset.name || "";
      const first = select === lane.inputs.querySelector("select");
      const value = first ? variant.name : variant.picked[key];
      select.value = String(value ?? "");
      const label = /** @type {HTMLElement} */ (select.parentElement);
      label.hidden = first ? select.options.length < 2 : value === undefined;
    }
    const run = this.runOf(at);
    const times = this.chosen().map((n) => this.runOf(n)?.seconds || 0);
    const part = run?.seconds ? (100 * run.seconds) / Math.max(...times) : 0;
    lane.bar.style.setProperty("--part", `${part}%`);
    lane.bar.hidden = !part;
    lane.facts.replaceChildren(
      ...(variant.error
        ? [fact(t("Not possible"), variant.error, "bad")]
        : run
          ? [
              fact(t("Time"), run.seconds ? duration(run.seconds) : t("none")),
              flop && run.seconds ? fact("GFLOP/s", digits(flop / run.seconds / 1e9)) : null,
              fact(t("Result"), verdict(run), run.failure || run.fault ? "bad" : "good"),
              fact(t("On"), run.device || t("no GPU")),
            ]
          : [fact(t("Time"), t("not run yet"), "none")]
      ).filter((one) => one !== null),
    );
    lane.counts.replaceChildren(this.countTable(variant));
    lane.source.textContent = variant.kernels.map((kernel) => kernel.text.trim()).join("\n\n");
  }

  /** @param {Data.BrowserVariant} variant */
  countTable(variant) {
    if (!variant.counts.length)
      return h("p", {}, variant.note || variant.error || t("not counted"));
    /** @type {[string, string][]} */
    const rows = [...variant.counts];
    if (variant.seconds !== null) {
      rows.push([t("time of a model of {gpu}", { gpu: this.data.gpu }), duration(variant.seconds)]);
    }
    return h(
      "div",
      {},
      h(
        "table",
        {},
        h(
          "tbody",
          {},
          ...rows.map(([name, text]) =>
            h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, text)),
          ),
        ),
      ),
      h("p", { class: "note" }, variant.note),
    );
  }

  /** All variants in a table, the fastest first. */
  overview() {
    const { variants, flop } = this.data;
    const order = variants.map((_, n) => n);
    /** @param {number} n */
    const key = (n) => this.runOf(n)?.seconds || Infinity;
    order.sort((a, b) => (key(a) === key(b) ? a - b : key(a) - key(b)));
    const heads = ["", t("Time"), "GFLOP/s", t("Result"), t("Model's time")];
    return h(
      "details",
      { open: order.some((n) => this.runOf(n)) || Boolean(this.refusal) },
      h("summary", {}, t("All {count}", { count: variants.length })),
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h("tr", {}, ...heads.map((text) => (text ? h("th", { scope: "col" }, text) : h("td")))),
        ),
        h(
          "tbody",
          {},
          ...order.map((n) => {
            const run = this.runOf(n);
            const own = variants[n].seconds;
            const cells = [
              run?.seconds ? duration(run.seconds) : "",
              run?.seconds && flop ? digits(flop / run.seconds / 1e9) : "",
              variants[n].error
                ? t("not possible: {why}", { why: variants[n].error })
                : run
                  ? verdict(run)
                  : "",
              own === null ? "" : duration(own),
            ];
            return h(
              "tr",
              {},
              h("th", { scope: "row" }, nameOf(variants[n])),
              ...cells.map((text) => h("td", {}, text)),
            );
          }),
        ),
      ),
    );
  }
}

/**
 * @param {string} name
 * @param {string} value
 */
function fact(name, value, kind = "") {
  return h("div", { class: `fact ${kind}` }, h("span", {}, name), h("strong", {}, value));
}

/** @param {Data.Host} host */
export function renderWebGPU({ model, el }) {
  speak(model, el);
  const view = new WebGPUView(model, el);
  return () => view.close();
}

export default { render: renderWebGPU };
