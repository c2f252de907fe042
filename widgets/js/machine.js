// A run of the virtual machine, instruction by instruction: bytecode, registers, memory over time.
//
// Draws a recorded run (see mlc_lab/observe/machine_run.py) and knows nothing of compilers.

import { duration, h, OWN_KEYS } from "./dom.js";
import { bytesText } from "./graph.js";
import { followTheme } from "./theme.js";

const MACHINE_NS = "http://www.w3.org/2000/svg";
const PLOT = { width: 900, height: 240, left: 64, right: 12, top: 14, bottom: 30 };

function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(MACHINE_NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

class MachineView {
  constructor(model, root) {
    this.model = model;
    this.build(root);
    this.onStep = () => this.show(this.model.get("step"), false);
    this.onRun = () => this.load();
    model.on("change:step", this.onStep);
    model.on("change:run", this.onRun);
    this.load();
  }

  close() {
    this.model.off("change:step", this.onStep);
    this.model.off("change:run", this.onRun);
    this.unfollow();
  }

  build(root) {
    const button = (text, label, to) =>
      h(
        "button",
        { type: "button", "aria-label": label, title: label, onclick: () => this.show(to(), true) },
        text,
      );
    this.title = h("b", {});
    this.facts = h("span", { class: "dim" });
    this.slider = h("input", { type: "range", min: 0, value: 0, "aria-label": "Instruction" });
    this.slider.addEventListener("input", () => this.show(Number(this.slider.value), true));
    this.count = h("output", { class: "count" });
    this.kernels = h(
      "label",
      { class: "only" },
      h("input", {
        type: "checkbox",
        onchange: (event) => {
          this.onlyKernels = event.target.checked;
        },
      }),
      " stop at kernels only",
    );
    this.code = h("div", {
      class: "bytecode",
      role: "listbox",
      tabindex: "0",
      "aria-label": "Bytecode",
    });
    this.code.addEventListener("click", (event) => {
      const line = event.target.closest("[data-line]");
      if (line) this.seek(Number(line.dataset.line));
    });
    this.registers = h("div", {
      class: "registers",
      tabindex: "0",
      role: "region",
      "aria-label": "Registers",
    });
    this.now = h("p", { class: "now-runs" });
    this.plot = h("div", { class: "memory" });
    this.live = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.view = h(
      "section",
      {
        class: "mlc mlc-machine",
        role: "group",
        "aria-label": "A run of the virtual machine",
        tabindex: "-1",
      },
      h("div", { class: "bar" }, this.title, this.facts),
      h(
        "div",
        { class: "bar" },
        h(
          "div",
          { class: "buttons", role: "group", "aria-label": "Move between instructions" },
          button("|◀", "First instruction", () => 0),
          button("◀", "Previous instruction", () => this.next(-1)),
          this.slider,
          button("▶", "Next instruction", () => this.next(1)),
          button("▶|", "Last instruction", () => this.run.steps.length - 1),
        ),
        this.count,
        this.kernels,
      ),
      this.now,
      h("div", { class: "halves" }, this.code, this.registers),
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
    this.title.textContent = `A run of ${title}`;
    this.facts.textContent =
      `${steps.length} instructions, ${steps.filter((s) => s.kernel).length} kernels, ` +
      `${duration(seconds)}; memory ${bytesText(peak)} at the peak` +
      (apart
        ? `, ${bytesText(apart)} if each tensor had its own (${Math.round((100 * peak) / apart)} %)`
        : "");
    this.slider.max = Math.max(0, steps.length - 1);
    this.shownCode = -1;
    this.at = -1;
    this.drawMemory();
    this.show(Math.min(this.model.get("step") || 0, steps.length - 1), false);
  }

  /** The step before or after this one; of kernels only where the reader wants that. */
  next(turn) {
    const { steps } = this.run;
    let to = this.at + turn;
    while (this.onlyKernels && steps[to] && !steps[to].kernel) to += turn;
    return steps[to] ? to : this.at;
  }

  /** The step nearest to this one that ran a line of the function that is shown. */
  seek(line) {
    const { steps } = this.run;
    const found = steps
      .map((_, i) => i)
      .filter((i) => steps[i].code === this.shownCode && steps[i].at === line);
    found.sort((a, b) => Math.abs(a - this.at) - Math.abs(b - this.at));
    if (found.length) this.show(found[0], true);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const within = event.target.closest("input[type=range], input[type=checkbox]");
    const to = {
      ArrowRight: this.next(1),
      ArrowLeft: this.next(-1),
      ArrowDown: this.next(1),
      ArrowUp: this.next(-1),
      Home: 0,
      End: this.run.steps.length - 1,
    }[event.key];
    if (to === undefined || (within && within.type === "checkbox")) return;
    if (event.target.closest(".registers") && /^Arrow(Up|Down)$/.test(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    this.show(to, true);
  }

  show(at, tell) {
    const { steps } = this.run;
    if (!steps.length || at === this.at) return;
    at = Math.max(0, Math.min(steps.length - 1, at));
    this.at = at;
    const step = steps[at];
    this.slider.value = at;
    this.slider.setAttribute("aria-valuetext", `${at} of ${steps.length - 1}: ${step.name}`);
    this.count.textContent = `${at} / ${steps.length - 1}`;
    this.now.replaceChildren(
      h(
        "span",
        { class: step.kernel ? "kind kernel" : "kind" },
        step.kernel ? "kernel " : "machine ",
      ),
      h("code", {}, step.name),
      ` ${duration(step.seconds)}`,
      step.writes ? ` writes ${step.writes}` : "",
      step.reads.length ? `, reads ${step.reads.join(", ")}` : "",
    );
    this.drawCode(step);
    this.drawRegisters(at);
    this.moveMark();
    this.live.textContent = `Instruction ${at}: ${step.name}, ${duration(step.seconds)}`;
    if (tell) {
      this.model.set("step", at);
      this.model.save_changes();
    }
  }

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
        const top = line.offsetTop;
        if (top < this.code.scrollTop || top + 30 > this.code.scrollTop + this.code.clientHeight) {
          this.code.scrollTop = top - this.code.clientHeight / 2;
        }
      }
    }
  }

  drawRegisters(at) {
    const held = new Map();
    for (const step of this.run.steps.slice(0, at + 1)) {
      for (const name of step.unset) held.delete(name);
      for (const [name, text] of Object.entries(step.set)) held.set(name, text);
    }
    const step = this.run.steps[at];
    const number = (name) => Number(name.replace(/\D/g, "")) || 0;
    const rows = [...held]
      .sort((a, b) => number(a[0]) - number(b[0]))
      .map(([name, text]) => {
        const fresh = name in step.set && at > 0;
        const used = step.reads.includes(name);
        return h(
          "tr",
          { class: fresh ? "fresh" : used ? "used" : "" },
          h("th", { scope: "row" }, name),
          h("td", {}, text),
          h("td", { class: "dim" }, fresh ? "written" : used ? "read" : ""),
        );
      });
    const gone = step.unset.map((name) =>
      h(
        "tr",
        { class: "gone" },
        h("th", { scope: "row" }, name),
        h("td", {}, "freed"),
        h("td", {}),
      ),
    );
    this.registers.replaceChildren(h("table", {}, h("caption", {}, "Registers"), ...rows, ...gone));
  }

  // -- memory

  drawMemory() {
    const { steps, storages, live, unshared } = this.run;
    if (!storages.length) {
      this.plot.replaceChildren(h("p", { class: "dim" }, "The run allocated no memory."));
      this.mark = null;
      return;
    }
    const { width, height, left, right, top, bottom } = PLOT;
    const floor = height - bottom;
    // Each piece of memory gets a place of its own for as long as it lives, the lowest that is free.
    const places = [];
    const base = storages.map((entry) => {
      const busy = places
        .filter((p) => p.to > entry.from && p.from < entry.to)
        .sort((a, b) => a.at - b.at);
      let at = 0;
      for (const other of busy) {
        if (other.at >= at + entry.size) break;
        at = Math.max(at, other.at + other.size);
      }
      places.push({ at, size: entry.size, from: entry.from, to: entry.to });
      return at;
    });
    const most = Math.max(...unshared, ...live, ...places.map((p) => p.at + p.size), 1);
    const x = (step) => left + (step / steps.length) * (width - left - right);
    const y = (bytes) => floor - (bytes / most) * (floor - top);
    this.x = x;
    const parts = [0, 0.5, 1].map((f) =>
      shape(
        "g",
        {},
        shape("line", {
          class: "grid",
          x1: left,
          x2: width - right,
          y1: y(f * most),
          y2: y(f * most),
        }),
        shape(
          "text",
          { class: "tick", x: left - 6, y: y(f * most) + 4, "text-anchor": "end" },
          bytesText(Math.round(f * most)),
        ),
      ),
    );
    storages.forEach((entry, i) => {
      parts.push(
        shape(
          "rect",
          {
            class: "storage",
            x: x(entry.from),
            y: y(base[i] + entry.size),
            width: Math.max(1, x(entry.to) - x(entry.from)),
            height: Math.max(1, y(base[i]) - y(base[i] + entry.size)),
          },
          shape(
            "title",
            {},
            `memory ${i}: ${bytesText(entry.size)}, instructions ${entry.from} to ${entry.to}`,
          ),
        ),
      );
      for (const tensor of entry.tensors) {
        const start = base[i] + tensor.offset;
        parts.push(
          shape(
            "rect",
            {
              class: "tensor",
              x: x(tensor.from),
              y: y(start + tensor.size),
              width: Math.max(1, x(tensor.to) - x(tensor.from)),
              height: Math.max(1, y(start) - y(start + tensor.size)),
            },
            shape(
              "title",
              {},
              `${tensor.register}: ${bytesText(tensor.size)}, instructions ${tensor.from} to ${tensor.to}`,
            ),
          ),
        );
        const room = x(tensor.to) - x(tensor.from) > 26 && y(start) - y(start + tensor.size) > 12;
        if (room)
          parts.push(
            shape(
              "text",
              { class: "tensor-name", x: x(tensor.from) + 4, y: y(start + tensor.size / 2) + 4 },
              tensor.register,
            ),
          );
      }
    });
    const line = (values) =>
      values.map((v, i) => `${i ? "L" : "M"}${x(i)},${y(v)}L${x(i + 1)},${y(v)}`).join("");
    parts.push(
      shape("path", { class: "unshared", d: line(unshared) }),
      shape("path", { class: "held", d: line(live) }),
    );
    this.mark = shape("line", { class: "mark", y1: top, y2: floor });
    const svg = shape(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": `Memory over the run: ${this.facts.textContent}`,
      },
      ...parts,
      this.mark,
    );
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * width;
      this.show(Math.floor(((at - left) / (width - left - right)) * steps.length), true);
    });
    this.plot.replaceChildren(
      svg,
      h(
        "div",
        { class: "legend" },
        h("span", {}, h("i", { class: "key held" }), "memory held"),
        h("span", {}, h("i", { class: "key unshared" }), "if each tensor had memory of its own"),
        h("span", {}, h("i", { class: "key tensor" }), "a tensor, for as long as it lives"),
      ),
    );
    svg.setAttribute(OWN_KEYS, "true");
  }

  moveMark() {
    if (!this.mark) return;
    const at = this.x(this.at + 0.5);
    this.mark.setAttribute("x1", at);
    this.mark.setAttribute("x2", at);
  }
}

export function renderMachine({ model, el }) {
  const view = new MachineView(model, el);
  return () => view.close();
}

export default { render: renderMachine };
