// A run of the virtual machine: its kernels over time, and instruction by instruction the bytecode,
// the registers with what they hold, and the memory.
//
// Draws a recorded run (see mlc_lab/observe/machine_run.py) and knows nothing of compilers.

import { bytesText, closest, duration, h, later, OWN_KEYS } from "./dom.js";
import { KernelPanel } from "./kernel_panel.js";
import { PaneTools } from "./panes.js";
import { svg } from "./svg.js";
import { brief, drawTensor } from "./tensor.js";
import { followTheme } from "./theme.js";
import { Timeline } from "./timeline.js";
import { speak, t } from "./words.js";

const PLOT = { width: 900, height: 240, left: 64, right: 12, top: 14, bottom: 30 };

/**
 * A place for each piece of memory for as long as it lives, the lowest that is free.
 * @param {Data.Span[]} storages
 */
export function placesOf(storages) {
  /** @type {(Data.Span & { at: number })[]} */
  const places = [];
  for (const { from, to, size } of storages) {
    const busy = places.filter((p) => p.to > from && p.from < to).sort((a, b) => a.at - b.at);
    let at = 0;
    for (const other of busy) {
      if (other.at >= at + size) break;
      at = Math.max(at, other.at + other.size);
    }
    places.push({ at, size, from, to });
  }
  return places;
}

class MachineView {
  /** @type {HTMLElement} */
  title = later();
  /** @type {HTMLSpanElement} */
  facts = later();
  /** @type {HTMLInputElement} */
  slider = later();
  /** @type {HTMLOutputElement} */
  count = later();
  /** @type {HTMLLabelElement} */
  kernels = later();
  /** @type {boolean} */
  onlyKernels = later();
  /** @type {HTMLDivElement} */
  code = later();
  /** @type {HTMLDivElement} */
  registers = later();
  /** @type {HTMLParagraphElement} */
  now = later();
  /** @type {HTMLDivElement} */
  plot = later();
  /** @type {HTMLDivElement} */
  live = later();
  /** @type {HTMLDivElement} */
  values = later();
  /** The register whose values are shown. */
  chosen = "";
  /** @type {() => void} */
  unfollow = later();
  /** @type {Data.Run} */
  run = later();
  /** @type {number} */
  shownCode = later();
  /** @type {number} */
  at = later();
  /** @type {SVGElement | null} */
  mark = later();
  /** @type {(step: number) => number} */
  x = later();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} root
   */
  constructor(model, root) {
    this.model = model;
    this.view = h("section", {
      class: "mlc mlc-machine",
      role: "group",
      "aria-label": t("A run of the virtual machine"),
      tabindex: "-1",
    });
    this.kernel = new KernelPanel(model, (step) => this.show(step, true));
    this.timeline = new Timeline((step, open) => {
      this.show(step, true);
      if (open) this.kernel.unfold();
    });
    this.panes = new PaneTools(model, this.view, () => this.kernel.redraw());
    this.build(root);
    this.onStep = () => this.show(this.model.get("step"), false);
    this.onRun = () => this.load();
    model.on("change:step", this.onStep);
    model.on("change:run", this.onRun);
    this.load();
  }

  close() {
    this.panes.remove();
    this.kernel.remove();
    this.model.off("change:step", this.onStep);
    this.model.off("change:run", this.onRun);
    this.unfollow();
  }

  /** @param {HTMLElement} root */
  build(root) {
    /**
     * @param {string} text
     * @param {string} label
     * @param {() => number} to
     */
    const button = (text, label, to) =>
      h(
        "button",
        { type: "button", "aria-label": label, title: label, onclick: () => this.show(to(), true) },
        text,
      );
    this.title = h("b", {});
    this.facts = h("span", { class: "dim" });
    this.slider = h("input", { type: "range", min: 0, value: 0, "aria-label": t("Instruction") });
    this.slider.addEventListener("input", () => this.show(Number(this.slider.value), true));
    this.count = h("output", { class: "count" });
    this.kernels = h(
      "label",
      { class: "only" },
      h("input", {
        type: "checkbox",
        onchange: (event) => {
          this.onlyKernels = /** @type {HTMLInputElement} */ (event.target).checked;
        },
      }),
      ` ${t("stop at kernels only")}`,
    );
    this.code = h("div", {
      class: "bytecode",
      role: "listbox",
      tabindex: "0",
      "aria-label": t("Bytecode"),
    });
    this.code.addEventListener("click", (event) => {
      const line = closest(event, "[data-line]");
      if (line) this.seek(Number(line.dataset.line));
    });
    this.registers = h("div", {
      class: "registers",
      tabindex: "0",
      role: "region",
      "aria-label": t("Registers"),
    });
    this.registers.addEventListener("click", (event) => {
      const at = closest(event, "[data-register]");
      if (!at) return;
      this.chosen = at.dataset.register;
      this.drawRegisters(this.at);
      this.registers.querySelector("[aria-pressed=true]")?.focus();
    });
    this.values = h("div", { class: "values", "aria-live": "off" });
    this.now = h("p", { class: "now-runs" });
    this.plot = h("div", { class: "memory" });
    this.live = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.view.append(
      h("div", { class: "bar" }, this.title, this.facts, this.panes.tools),
      this.timeline.element,
      h(
        "div",
        { class: "bar" },
        h(
          "div",
          { class: "buttons", role: "group", "aria-label": t("Move between instructions") },
          button("|◀", t("First instruction"), () => 0),
          button("◀", t("Previous instruction"), () => this.next(-1)),
          this.slider,
          button("▶", t("Next instruction"), () => this.next(1)),
          button("▶|", t("Last instruction"), () => this.run.steps.length - 1),
        ),
        this.count,
        this.kernels,
      ),
      this.now,
      h("div", { class: "halves" }, this.code, this.registers),
      this.panes.grip,
      this.values,
      this.kernel.element,
      this.plot,
      this.live,
    );
    this.view.addEventListener("keydown", (event) => this.key(event));
    root.append(this.view);
    this.unfollow = followTheme(this.view);
  }

  load() {
    this.run = this.model.get("run");
    const { steps, title, peak, unshared } = this.run;
    const seconds = steps.reduce((sum, step) => sum + step.seconds, 0);
    const apart = unshared[unshared.length - 1] || 0;
    this.title.textContent = t("A run of {title}", { title });
    this.facts.textContent =
      t("{count} instructions, {kernels} kernels, {time}; memory {peak} at the peak", {
        count: steps.length,
        kernels: steps.filter((s) => s.kernel).length,
        time: duration(seconds),
        peak: bytesText(peak),
      }) +
      (apart
        ? t(", {bytes} if each tensor had its own ({part} %)", {
            bytes: bytesText(apart),
            part: Math.round((100 * peak) / apart),
          })
        : "");
    this.slider.max = String(Math.max(0, steps.length - 1));
    this.shownCode = -1;
    this.at = -1;
    this.timeline.load(steps);
    this.drawMemory();
    this.show(Math.min(this.model.get("step") || 0, steps.length - 1), false);
  }

  /**
   * The step before or after this one; of kernels only where the reader wants that.
   * @param {number} turn
   */
  next(turn) {
    const { steps } = this.run;
    let to = this.at + turn;
    while (this.onlyKernels && steps[to] && !steps[to].kernel) to += turn;
    return steps[to] ? to : this.at;
  }

  /**
   * The step nearest to this one that ran a line of the function that is shown.
   * @param {number} line
   */
  seek(line) {
    const { steps } = this.run;
    const found = steps
      .map((_, i) => i)
      .filter((i) => steps[i].code === this.shownCode && steps[i].at === line);
    found.sort((a, b) => Math.abs(a - this.at) - Math.abs(b - this.at));
    if (found.length) this.show(found[0], true);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    /** @type {HTMLInputElement | null} */
    const within = closest(event, "input[type=range], input[type=checkbox]");
    const to = {
      ArrowRight: this.next(1),
      ArrowLeft: this.next(-1),
      ArrowDown: this.next(1),
      ArrowUp: this.next(-1),
      Home: 0,
      End: this.run.steps.length - 1,
    }[event.key];
    if (to === undefined || (within && within.type === "checkbox")) return;
    if (closest(event, ".registers") && /^Arrow(Up|Down)$/.test(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    this.show(to, true);
  }

  /**
   * @param {number} at
   * @param {boolean} tell
   */
  show(at, tell) {
    const { steps } = this.run;
    if (!steps.length || at === this.at) return;
    at = Math.max(0, Math.min(steps.length - 1, at));
    this.at = at;
    const step = steps[at];
    this.slider.value = String(at);
    this.slider.setAttribute(
      "aria-valuetext",
      t("{at} of {last}: {name}", { at, last: steps.length - 1, name: step.name }),
    );
    this.count.textContent = `${at} / ${steps.length - 1}`;
    this.now.replaceChildren(
      h(
        "span",
        { class: step.kernel ? "kind kernel" : "kind" },
        `${step.kernel ? t("kernel") : t("machine")} `,
      ),
      h("code", {}, step.name),
      ` ${duration(step.seconds)}`,
      step.writes ? t(" writes {register}", { register: step.writes }) : "",
      step.reads.length ? t(", reads {registers}", { registers: step.reads.join(", ") }) : "",
    );
    this.drawCode(step);
    const [written] = Object.keys(step.wrote);
    if (written) this.chosen = written;
    this.drawRegisters(at);
    this.timeline.mark(at);
    this.kernel.show(this.run, at);
    this.moveMark();
    this.live.textContent = t("Instruction {at}: {name}, {time}", {
      at,
      name: step.name,
      time: duration(step.seconds),
    });
    if (tell) {
      this.model.set("step", at);
      this.model.save_changes();
    }
  }

  /** @param {Data.RunStep} step */
  drawCode(step) {
    const { code, steps } = this.run;
    if (step.code !== this.shownCode) {
      this.shownCode = step.code;
      const { function: name, lines } = code[step.code];
      const spent = lines.map(() => 0);
      for (const other of steps) if (other.code === step.code) spent[other.at] += other.seconds;
      const most = Math.max(...spent, 1e-12);
      this.code.replaceChildren(
        h("div", { class: "cap" }, `@${name}`),
        ...lines.map((text, i) =>
          h(
            "div",
            { class: "line", role: "option", "data-line": i },
            h("span", {
              class: "heat",
              style: `width:${(36 * spent[i]) / most}px`,
              title: duration(spent[i]),
              "aria-hidden": "true",
            }),
            h("span", { class: "text" }, text),
          ),
        ),
      );
    }
    for (const line of this.code.querySelectorAll("[data-line]")) {
      const on = Number(line.dataset.line) === step.at;
      line.setAttribute("aria-selected", String(on));
      if (on) {
        const top = /** @type {HTMLElement} */ (line).offsetTop;
        if (top < this.code.scrollTop || top + 30 > this.code.scrollTop + this.code.clientHeight) {
          this.code.scrollTop = top - this.code.clientHeight / 2;
        }
      }
    }
  }

  /**
   * What the registers hold after a step: the text and, of a tensor, what is in it. It is null where
   * nobody looked, and undefined where nothing was written yet.
   * @param {number} at
   * @returns {Map<string, { text: string, value?: Data.Summary | null }>}
   */
  held(at) {
    const held = new Map();
    const { steps, given, values } = this.run;
    /** @param {number | null} index */
    const summary = (index) => (index === null ? null : values[index]);
    steps.slice(0, at + 1).forEach((step, n) => {
      for (const name of step.unset) held.delete(name);
      for (const [name, text] of Object.entries(step.set)) held.set(name, { text });
      if (step.writes && held.has(step.writes)) delete held.get(step.writes).value;
      for (const [name, index] of Object.entries(n ? step.wrote : { ...given, ...step.wrote })) {
        if (held.has(name)) held.get(name).value = summary(index);
      }
    });
    return held;
  }

  /** @param {number} at */
  drawRegisters(at) {
    const held = this.held(at);
    const step = this.run.steps[at];
    /** @param {string} name */
    const number = (name) => Number(name.replace(/\D/g, "")) || 0;
    const rows = [...held]
      .sort((a, b) => number(a[0]) - number(b[0]))
      .map(([name, { text, value }]) => {
        const fresh = name in step.set && at > 0;
        const wrote = name in step.wrote;
        const used = step.reads.includes(name);
        return h(
          "tr",
          { class: fresh ? "fresh" : used ? (wrote ? "used wrote" : "used") : "" },
          h("th", { scope: "row" }, value ? this.toValues(name) : name),
          h("td", {}, text, value ? h("div", { class: "dim" }, brief(value)) : null),
          h("td", { class: "dim" }, fresh || wrote ? t("written") : used ? t("read") : ""),
        );
      });
    const gone = step.unset.map((name) =>
      h(
        "tr",
        { class: "gone" },
        h("th", { scope: "row" }, name),
        h("td", {}, t("freed")),
        h("td", {}),
      ),
    );
    this.registers.replaceChildren(
      h("table", {}, h("caption", {}, t("Registers")), ...rows, ...gone),
    );
    const chosen = held.get(this.chosen);
    this.values.replaceChildren(
      ...(chosen && chosen.value !== undefined
        ? drawTensor(this.chosen, chosen.value)
        : [
            h("p", { class: "dim" }, t("Choose a register that holds a tensor to see its values.")),
          ]),
    );
  }

  /**
   * The button of a register that shows its values.
   * @param {string} name
   */
  toValues(name) {
    const pressed = String(name === this.chosen);
    return h(
      "button",
      { type: "button", class: "chip", "data-register": name, "aria-pressed": pressed },
      name,
    );
  }

  // -- memory

  drawMemory() {
    const { steps, storages, live, unshared } = this.run;
    if (!storages.length) {
      this.plot.replaceChildren(h("p", { class: "dim" }, t("The run allocated no memory.")));
      this.mark = null;
      return;
    }
    const { width, height, left, right, top, bottom } = PLOT;
    const floor = height - bottom;
    const places = placesOf(storages);
    const base = places.map((place) => place.at);
    const most = Math.max(...unshared, ...live, ...places.map((p) => p.at + p.size), 1);
    /** @param {number} step */
    const x = (step) => left + (step / steps.length) * (width - left - right);
    /** @param {number} bytes */
    const y = (bytes) => floor - (bytes / most) * (floor - top);
    this.x = x;
    const parts = [0, 0.5, 1].map((f) =>
      svg(
        "g",
        {},
        svg("line", {
          class: "grid",
          x1: left,
          x2: width - right,
          y1: y(f * most),
          y2: y(f * most),
        }),
        svg(
          "text",
          { class: "tick", x: left - 6, y: y(f * most) + 4, "text-anchor": "end" },
          bytesText(Math.round(f * most)),
        ),
      ),
    );
    storages.forEach((entry, i) => {
      parts.push(
        svg(
          "rect",
          {
            class: "storage",
            x: x(entry.from),
            y: y(base[i] + entry.size),
            width: Math.max(1, x(entry.to) - x(entry.from)),
            height: Math.max(1, y(base[i]) - y(base[i] + entry.size)),
          },
          svg(
            "title",
            {},
            t("memory {number}: {bytes}, instructions {from} to {to}", {
              number: i,
              bytes: bytesText(entry.size),
              from: entry.from,
              to: entry.to,
            }),
          ),
        ),
      );
      for (const tensor of entry.tensors) {
        const start = base[i] + tensor.offset;
        parts.push(
          svg(
            "rect",
            {
              class: "tensor",
              x: x(tensor.from),
              y: y(start + tensor.size),
              width: Math.max(1, x(tensor.to) - x(tensor.from)),
              height: Math.max(1, y(start) - y(start + tensor.size)),
            },
            svg(
              "title",
              {},
              t("{register}: {bytes}, instructions {from} to {to}", {
                register: tensor.register,
                bytes: bytesText(tensor.size),
                from: tensor.from,
                to: tensor.to,
              }),
            ),
          ),
        );
        const room = x(tensor.to) - x(tensor.from) > 26 && y(start) - y(start + tensor.size) > 12;
        if (room)
          parts.push(
            svg(
              "text",
              { class: "tensor-name", x: x(tensor.from) + 4, y: y(start + tensor.size / 2) + 4 },
              tensor.register,
            ),
          );
      }
    });
    /** @param {number[]} values */
    const line = (values) =>
      values.map((v, i) => `${i ? "L" : "M"}${x(i)},${y(v)}L${x(i + 1)},${y(v)}`).join("");
    parts.push(
      svg("path", { class: "unshared", d: line(unshared) }),
      svg("path", { class: "held", d: line(live) }),
    );
    this.mark = svg("line", { class: "mark", y1: top, y2: floor });
    const picture = svg(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": t("Memory over the run: {facts}", { facts: this.facts.textContent }),
      },
      ...parts,
      this.mark,
    );
    picture.addEventListener("click", (event) => {
      const box = picture.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * width;
      this.show(Math.floor(((at - left) / (width - left - right)) * steps.length), true);
    });
    this.plot.replaceChildren(
      picture,
      h(
        "div",
        { class: "legend" },
        h("span", {}, h("i", { class: "key held" }), t("memory held")),
        h("span", {}, h("i", { class: "key unshared" }), t("if each tensor had memory of its own")),
        h("span", {}, h("i", { class: "key tensor" }), t("a tensor, for as long as it lives")),
      ),
    );
    picture.setAttribute(OWN_KEYS, "true");
  }

  moveMark() {
    if (!this.mark) return;
    const at = this.x(this.at + 0.5);
    this.mark.setAttribute("x1", String(at));
    this.mark.setAttribute("x2", String(at));
  }
}

/** @param {Data.Host} host */
export function renderMachine({ model, el }) {
  speak(model, el);
  const view = new MachineView(model, el);
  return () => view.close();
}

export default { render: renderMachine };
