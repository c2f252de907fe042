// The kernels of a run over time: one strip, each kernel as wide as it took, and those that took most.

import { closest, duration, h, percent } from "./dom.js";
import { t } from "./words.js";

const COLOURS = 6;
const SHOWN = 6; // names in the list of those that took most

export class Timeline {
  /** @type {{ step: number, name: string, from: number, seconds: number }[]} */
  kernels = [];
  at = -1;

  /**
   * @param {(step: number, open: boolean) => void} onpick `open`: the reader wants the kernel itself
   */
  constructor(onpick) {
    this.onpick = onpick;
    this.strip = h("div", {
      class: "strip",
      role: "slider",
      tabindex: "0",
      "aria-label": t("Kernels over time"),
      "aria-valuemin": 1,
    });
    this.scale = h("div", { class: "dim scale" });
    this.most = h("div", {
      class: "most",
      role: "group",
      "aria-label": t("Kernels that took most"),
    });
    this.element = h("div", { class: "timeline" }, this.strip, this.scale, this.most);
    this.element.addEventListener("click", (event) => {
      const at = closest(event, "[data-step]");
      if (at) this.onpick(Number(at.dataset.step), true);
    });
    this.strip.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {Data.RunStep[]} steps */
  load(steps) {
    this.kernels = [];
    let total = 0;
    steps.forEach(({ name, kernel, seconds }, step) => {
      if (!kernel) return;
      this.kernels.push({ step, name, from: total, seconds });
      total += seconds;
    });
    /** @type {Map<string, { calls: number, seconds: number, longest: number }>} */
    const names = new Map();
    this.kernels.forEach(({ name, seconds }, n) => {
      const row = names.get(name) || { calls: 0, seconds: 0, longest: n };
      row.calls++;
      row.seconds += seconds;
      if (seconds > this.kernels[row.longest].seconds) row.longest = n;
      names.set(name, row);
    });
    const sorted = [...names].sort((a, b) => b[1].seconds - a[1].seconds);
    const colour = new Map(sorted.map(([name], n) => [name, n % COLOURS]));
    this.element.hidden = !this.kernels.length;
    this.strip.setAttribute("aria-valuemax", String(this.kernels.length));
    this.strip.replaceChildren(
      ...this.kernels.map(({ step, name, from, seconds }) =>
        h(
          "span",
          {
            class: `k c${colour.get(name)}`,
            "data-step": step,
            title: `${name}: ${duration(seconds)}`,
            style: `left:${(100 * from) / total}%;width:${(100 * seconds) / total}%`,
          },
          name,
        ),
      ),
    );
    this.scale.replaceChildren(
      h("span", {}, "0"),
      h(
        "span",
        {},
        t("{time} in {count} kernels", { time: duration(total), count: this.kernels.length }),
      ),
    );
    this.most.replaceChildren(
      ...sorted
        .slice(0, SHOWN)
        .map(([name, { calls, seconds, longest }]) =>
          h(
            "button",
            { type: "button", class: "small", "data-step": this.kernels[longest].step },
            h("i", { class: `k c${colour.get(name)}`, "aria-hidden": "true" }),
            `${name} ${percent(seconds / total)}${calls > 1 ? t(", {calls} calls", { calls }) : ""}`,
          ),
        ),
      sorted.length > SHOWN
        ? h("span", { class: "dim" }, t("and {count} more", { count: sorted.length - SHOWN }))
        : "",
    );
    this.at = -1;
  }

  /**
   * Mark the kernel that runs at a step, or the one before it.
   * @param {number} step
   */
  mark(step) {
    this.at = this.kernels.filter((kernel) => kernel.step <= step).length - 1;
    const now = this.kernels[this.at];
    [...this.strip.children].forEach((part, n) =>
      part.classList.toggle("on", n === this.at && now.step === step),
    );
    this.strip.setAttribute("aria-valuenow", String(this.at + 1));
    this.strip.setAttribute(
      "aria-valuetext",
      now ? `${now.name}, ${duration(now.seconds)}` : t("before the first kernel"),
    );
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const last = this.kernels.length - 1;
    const open = event.key === "Enter";
    const to = {
      ArrowRight: Math.min(last, this.at + 1),
      ArrowLeft: Math.max(0, this.at - 1),
      Home: 0,
      End: last,
      Enter: Math.max(0, this.at),
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.onpick(this.kernels[to].step, open);
  }
}
