// The access view: which elements of each buffer a program reads and writes, in time order, and
// where in the caches it finds them.
//
// Draws an access trace and what caches made of it (see mlc_lab/observe/access.py). What caches do
// is computed in Python: the view only adds up what is recorded.

import { h, heads, iconButton, later, percent, setIcon, sure } from "./dom.js";
import { BufferGrid } from "./access_grid.js";
import {
  LEVEL_SIGNS,
  drawTimeline,
  levelClass,
  reuseBins,
  reuseChart,
  reuseTable,
} from "./access_chart.js";
import { tokens } from "./highlight.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

/** @import { PaneTools } from "./panes.js" */
/** @typedef {ReturnType<Trace["at"]>} Access one access of a trace */

const SPEEDS = [1, 2, 5, 10, 30, 100, 300, 1000, 3000];
const POLICIES = [
  ["lru", "LRU"],
  ["fifo", "FIFO"],
  ["random", "random"],
  ["plru", "tree-PLRU"],
];
/** @param {number} n */
const whole = (n) => n.toLocaleString("en-US");

/** A trace made ready to be walked through: where each access stands among buffers and loops. */
export class Trace {
  /** @param {Data.Accesses} data */
  constructor(data) {
    this.data = data;
    this.length = data.site.length;
    const starts = new Int32Array(this.length);
    let at = 0;
    let next = 0;
    data.moments.forEach((isNew, i) => {
      if (isNew) {
        at = next;
        next += data.sites[data.site[i]].loops.length;
      }
      starts[i] = at;
    });
    this.starts = starts;
  }

  /**
   * The access at a place in time.
   * @param {number} i
   */
  at(i) {
    const { data } = this;
    const site = data.sites[data.site[i]];
    const buffer = data.buffers[site.buffer];
    const element = data.element[i];
    const values = data.values.slice(this.starts[i], this.starts[i] + site.loops.length);
    return {
      site,
      buffer,
      element,
      values,
      number: i,
      lanes: Math.max(1, site.bytes / buffer.itemsize),
      thread: data.thread.length ? data.thread[i] : 0,
      address: buffer.base + element * buffer.itemsize,
    };
  }

  /**
   * An element's index as the program has it: "3, 4".
   * @param {Data.Buffer} buffer
   * @param {number} element
   * @returns {string}
   */
  index(buffer, element) {
    const out = [];
    for (const extent of [...buffer.shape].reverse()) {
      out.unshift(element % extent);
      element = Math.floor(element / extent);
    }
    return out.join(", ");
  }

  /** @param {Access} access */
  name(access) {
    const { buffer, element, lanes } = access;
    const last = lanes > 1 ? ` to [${this.index(buffer, element + lanes - 1)}]` : "";
    return `${buffer.name}[${this.index(buffer, element)}]${last}`;
  }
}

/** What one choice of caches made of the trace. */
export class Result {
  /** @type {Map<number, Set<number>>} */
  resident;

  /**
   * @param {Data.CacheResult} data
   * @param {number[]} reuse
   * @param {number} length
   */
  constructor(data, reuse, length) {
    this.data = data;
    this.reuse = reuse;
    this.names = [...data.levels.map((level) => level.name), "memory"];
    this.line = data.levels[0].line;
    this.found = Uint8Array.from(data.found, Number);
    this.upTo = this.names.map(() => new Int32Array(length + 1));
    for (let i = 0; i < length; i++) {
      for (const counts of this.upTo) counts[i + 1] = counts[i];
      this.upTo[this.found[i]][i + 1]++;
    }
    this.goneAt = 0;
    this.now = -1;
    this.resident = new Map();
  }

  /**
   * The lines in the first level of the thread that makes access `i`, once it is done.
   * @param {number} i
   * @param {Trace} trace
   * @returns {Set<number>}
   */
  residentAt(i, trace) {
    if (i < this.now) {
      this.resident.clear();
      this.goneAt = 0;
      this.now = -1;
    }
    const { gone } = this.data;
    while (this.now < i) {
      const { address, site, thread } = trace.at(++this.now);
      if (!this.resident.has(thread)) this.resident.set(thread, new Set());
      const held = sure(this.resident.get(thread));
      const last = Math.floor((address + site.bytes - 1) / this.line);
      for (let n = Math.floor(address / this.line); n <= last; n++) held.add(n);
      while (this.goneAt < gone.length && gone[this.goneAt] === this.now) {
        held.delete(gone[this.goneAt + 1]);
        this.goneAt += 2;
      }
    }
    return sure(this.resident.get(trace.at(i).thread));
  }
}

const PLAY = "M4 2v12l10-6z";
const PAUSE = "M4 2v12M12 2v12";

class AccessView {
  #handlers;
  #model;
  #panes;
  #playing;
  #resize;
  #root;
  #stopTheme;
  #themeObserver;

  /** @type {Trace} */
  #trace = later();
  /** @type {number} */
  #last = later();
  /** @type {HTMLButtonElement} */
  #playButton = later();
  /** @type {HTMLInputElement} */
  #slider = later();
  /** @type {HTMLOutputElement} */
  #count = later();
  /** @type {HTMLSelectElement} */
  #speed = later();
  /** @type {HTMLSelectElement} */
  #choice = later();
  /** @type {HTMLCanvasElement} */
  #timeline = later();
  /** @type {HTMLParagraphElement} */
  #readout = later();
  /** @type {BufferGrid[]} */
  #grids = later();
  /** @type {HTMLPreElement} */
  #program = later();
  /** @type {HTMLTableElement} */
  #levels = later();
  /** @type {HTMLDivElement} */
  #histogram = later();
  /** @type {HTMLDivElement} */
  #histogramTable = later();
  /** @type {HTMLDivElement} */
  #table = later();
  /** @type {HTMLFormElement} */
  #form = later();
  /** @type {HTMLParagraphElement} */
  #error = later();
  /** @type {HTMLDivElement} */
  #live = later();
  /** @type {HTMLInputElement} */
  #find = later();
  /** @type {HTMLDetailsElement} */
  #caches = later();
  /** @type {HTMLDetailsElement} */
  #nearby = later();
  /** @type {HTMLDivElement} */
  #legend = later();
  /** @type {number} */
  #position = later();
  /** @type {Result} */
  #result = later();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} element
   * @param {typeof PaneTools} [Tools] none where it is a part of a small view
   */
  constructor(model, element, Tools) {
    this.#model = model;
    this.#root = h("section", {
      class: "mlc mlc-access",
      role: "group",
      "aria-roledescription": t("access view"),
      tabindex: "-1",
    });
    element.replaceChildren(this.#root);
    this.#playing = false;
    this.#panes = Tools && new Tools(model, this.#root);
    this.#build();
    this.#stopTheme = followTheme(this.#root);
    this.#themeObserver = new MutationObserver(() => this.#recolour());
    this.#themeObserver.observe(this.#root, { attributes: true, attributeFilter: ["data-theme"] });
    this.#resize = new ResizeObserver(() => this.#layout());
    this.#resize.observe(this.#root);
    this.#root.addEventListener("keydown", (event) => this.#key(event));
    this.#handlers = {
      "change:trace": () => this.#rebuild(),
      "change:results": () => this.#takeResults(),
      "change:configuration": () => this.#takeResults(),
      "change:position": () => this.#show(this.#model.get("position"), false),
      "change:error": () => this.#showError(),
    };
    for (const [event, handler] of Object.entries(this.#handlers)) model.on(event, handler);
  }

  remove() {
    this.#pause();
    this.#panes?.remove();
    this.#stopTheme();
    this.#themeObserver.disconnect();
    this.#resize.disconnect();
    for (const [event, handler] of Object.entries(this.#handlers)) this.#model.off(event, handler);
  }

  // ------------------------------------------------------------------------------------ building

  /** Another trace: at the same moment as before, as quick, and still playing if it was. */
  #rebuild() {
    const [at, playing, speed] = [this.#position, this.#playing, this.#speed.value];
    const open = [this.#caches.open, this.#nearby.open];
    const top = this.#program.scrollTop;
    const held = this.#root.contains(document.activeElement);
    this.#build();
    this.#speed.value = speed;
    [this.#caches.open, this.#nearby.open] = open;
    this.#program.scrollTop = top;
    this.#show(at, false, true);
    if (held) this.#root.focus({ preventScroll: true });
    if (playing && this.#position < this.#last) this.#play();
  }

  #build() {
    this.#pause();
    /** @type {Data.Accesses} */
    const data = this.#model.get("trace");
    this.#trace = new Trace(data);
    this.#last = Math.max(0, this.#trace.length - 1);
    this.#playButton = iconButton(t("Play"), PLAY, () => this.#toggle());
    this.#slider = h("input", {
      type: "range",
      min: 0,
      max: this.#last,
      step: 1,
      "aria-label": t("Access"),
    });
    this.#slider.addEventListener("input", () => this.#show(Number(this.#slider.value)));
    this.#count = h("output", { class: "count wide" });
    this.#speed = h(
      "select",
      { "aria-label": t("Speed") },
      SPEEDS.map((s) =>
        h("option", { value: s, selected: s === 10 }, t("{count} a second", { count: whole(s) })),
      ),
    );
    this.#choice = h("select", { "aria-label": t("Caches") });
    this.#choice.addEventListener("change", () => {
      this.#model.set("configuration", Number(this.#choice.value));
      this.#model.save_changes();
      this.#takeResults();
    });
    this.#timeline = h("canvas", { class: "timeline", role: "img" });
    this.#timeline.addEventListener("click", (event) => {
      const box = this.#timeline.getBoundingClientRect();
      this.#show(Math.round(((event.clientX - box.left) / box.width) * this.#last));
    });
    this.#readout = h("p", { class: "readout" });
    this.#grids = data.buffers.map(
      (buffer, number) =>
        new BufferGrid(buffer, number, this.#trace, (element) => this.#goToNext(number, element)),
    );
    this.#program = h(
      "pre",
      { class: "program", tabindex: "0", "aria-label": t("The lowered program") },
      data.lines.map((line) =>
        h(
          "div",
          { class: "row", style: `--in:${line.search(/\S|$/)}` },
          tokens(line).map(([kind, text]) => h("span", { class: kind ? `t-${kind}` : "" }, text)),
        ),
      ),
    );
    this.#levels = h("table", { class: "levels" });
    this.#histogram = h("div", { class: "reuse" });
    this.#histogramTable = h("div");
    this.#table = h("div", {
      class: "near",
      tabindex: "0",
      role: "region",
      "aria-label": t("Accesses around this one"),
    });
    this.#form = h("form", { class: "caches" });
    this.#error = h("p", { class: "refused", role: "alert" });
    this.#live = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.#find = h("input", {
      type: "text",
      size: 12,
      "aria-label": t("Element to find, such as A[3, 4]"),
      placeholder: "A[3, 4]",
    });
    const search = h(
      "form",
      { class: "find" },
      this.#find,
      h("button", { type: "submit" }, t("Next access of it")),
    );
    search.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#findElement(this.#find.value);
    });
    /**
     * @param {string} title
     * @param {...Data.Child} body
     */
    const details = (title, ...body) => h("details", {}, h("summary", {}, title), ...body);
    this.#caches = details(t("Change the caches"), this.#form, this.#error);
    this.#nearby = details(t("Accesses around this one, as a table"), this.#table);
    this.#nearby.addEventListener("toggle", () => this.#drawTable());
    this.#root.setAttribute("aria-label", t("Accesses of {title}", { title: data.title }));
    this.#root.replaceChildren(
      h(
        "div",
        { class: "bar" },
        h("span", { class: "title" }, t("Accesses of {title}", { title: data.title })),
        h("label", {}, t("Caches "), this.#choice),
        h("label", {}, t("Speed "), this.#speed),
        this.#panes?.tools,
      ),
      h(
        "div",
        { class: "bar" },
        h(
          "div",
          { class: "buttons", role: "group", "aria-label": t("Move in time") },
          iconButton(t("First access"), "M3 2v12M13 2v12L5 8z", () => this.#show(0)),
          iconButton(t("Previous access"), "M11 2v12L4 8z", () => this.#show(this.#position - 1)),
          this.#playButton,
          iconButton(t("Next access"), "M5 2v12L12 8z", () => this.#show(this.#position + 1)),
          iconButton(t("Last access"), "M13 2v12M3 2v12l8-6z", () => this.#show(this.#last)),
          h("button", { type: "button", onclick: () => this.#nextMiss() }, t("Next miss")),
          this.#slider,
        ),
        this.#count,
      ),
      this.#timeline,
      this.#readout,
      h(
        "div",
        { class: "grids" },
        this.#grids.map((grid) => grid.element),
      ),
      (this.#legend = h("div", { class: "legend", "aria-label": t("Legend") })),
      h(
        "div",
        { class: "below" },
        h(
          "div",
          { class: "half" },
          h("div", { class: "cap" }, t("What the caches had")),
          this.#levels,
          h("div", { class: "cap" }, t("Reuse distance: other lines used since this line was")),
          this.#histogram,
          details(t("Reuse distances as a table"), this.#histogramTable),
        ),
        h(
          "div",
          { class: "half" },
          h("div", { class: "cap" }, t("The lowered program")),
          this.#program,
        ),
      ),
      this.#panes?.grip ?? "",
      ...data.notes.map((note) => h("p", { class: "note" }, note)),
      this.#caches,
      this.#nearby,
      details(t("Find an element"), search),
      this.#live,
    );
    this.#position = -1;
    this.#takeResults();
    this.#showError();
  }

  #takeResults() {
    /** @type {Data.CacheResult[]} */
    const results = this.#model.get("results");
    const chosen = Math.max(0, Math.min(results.length - 1, this.#model.get("configuration")));
    /** @param {Data.CacheResult} r */
    const line = (r) => r.levels[0].line;
    const reuse = results.find((r) => r.reuse && line(r) === line(results[chosen]))?.reuse;
    this.#result = new Result(results[chosen], sure(reuse), this.#trace.length);
    this.#choice.replaceChildren(
      ...results.map((r, i) => h("option", { value: i, selected: i === chosen }, r.name)),
    );
    this.#drawForm();
    this.#drawLegend();
    this.#layout();
    const at = this.#position < 0 ? this.#model.get("position") : this.#position;
    this.#position = -1;
    this.#show(at, false);
  }

  /** The caches as fields; live they can be changed, a page shows those that were recorded. */
  #drawForm() {
    const live = Boolean(this.#model.get("live"));
    const rows = this.#result.data.levels.map((level, i) => this.#levelFields(level, i, live));
    const body = h("tbody", {}, rows);
    const add = h("button", { type: "button", "aria-disabled": String(!live) }, t("Add a level"));
    add.addEventListener("click", () => {
      const [last] = [...body.children].slice(-1);
      const fields = this.#readFields(last);
      const level = { ...fields, name: `L${body.children.length + 1}`, size: fields.size * 4 };
      if (live && body.children.length < 5)
        body.append(this.#levelFields(level, body.children.length, live));
    });
    const drop = h(
      "button",
      { type: "button", "aria-disabled": String(!live) },
      t("Remove the last level"),
    );
    drop.addEventListener("click", () => {
      if (live && body.children.length > 1) body.lastElementChild?.remove();
    });
    const apply = h("button", { type: "submit", "aria-disabled": String(!live) }, t("Simulate"));
    this.#form.replaceChildren(
      h("table", {}, heads([t("Level"), t("Bytes"), t("Line"), t("Ways"), t("Replacement")]), body),
      h("div", { class: "bar" }, apply, add, drop),
      live
        ? ""
        : h(
            "p",
            { class: "note" },
            t(
              "This page shows what was recorded: choose among it above. In a notebook the caches can be changed here.",
            ),
          ),
    );
    this.#form.onsubmit = (event) => {
      event.preventDefault();
      if (!live) return;
      this.#model.set("error", "");
      const levels = [...body.children].map((row) => this.#readFields(row));
      this.#model.set("request", { levels, serial: Date.now() });
      this.#model.save_changes();
    };
  }

  /**
   * @param {Data.CacheLevel} level
   * @param {number} i
   * @param {boolean} live
   */
  #levelFields(level, i, live) {
    const name = `L${i + 1}`;
    /** @param {"size" | "line" | "ways"} key */
    const number = (key) =>
      h("input", {
        type: "number",
        min: 1,
        value: level[key],
        "data-key": key,
        "aria-label": t("{key} of {level}", { key: t(key), level: name }),
        readonly: !live,
      });
    const policy = h(
      "select",
      {
        "data-key": "replacement",
        "aria-label": t("replacement of {level}", { level: name }),
        disabled: !live,
      },
      POLICIES.map(([value, text]) =>
        h("option", { value, selected: value === level.replacement }, text),
      ),
    );
    return h(
      "tr",
      { "data-name": name },
      h("th", { scope: "row" }, name),
      /** @type {const} */ (["size", "line", "ways"]).map((key) => h("td", {}, number(key))),
      h("td", {}, policy),
    );
  }

  /**
   * @param {Element} row
   * @returns {Data.CacheLevel}
   */
  #readFields(row) {
    /** @type {Record<string, unknown>} */
    const level = { name: /** @type {HTMLElement} */ (row).dataset.name };
    for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (
      row.querySelectorAll("[data-key]")
    )) {
      level[sure(field.dataset.key)] = field.type === "number" ? Number(field.value) : field.value;
    }
    return /** @type {any} */ (level);
  }

  #showError() {
    const text = this.#model.get("error") || "";
    this.#error.textContent = text;
    this.#error.hidden = !text;
    if (text) this.#caches.open = true;
  }

  // -------------------------------------------------------------------------------------- moving

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = /** @type {HTMLInputElement} */ (event.target);
    const { tagName } = target;
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowLeft: () => this.#show(this.#position - 1),
      ArrowRight: () => this.#show(this.#position + 1),
      Home: () => this.#show(0),
      End: () => this.#show(this.#last),
      " ": () => this.#toggle(),
      m: () => this.#nextMiss(),
    };
    if (!(event.key in acts)) return;
    // Fields, menus and buttons have their own use of keys.
    const typing = tagName === "INPUT" && target.type !== "range";
    if (typing || tagName === "SELECT") return;
    if (event.key === " " && (tagName === "BUTTON" || tagName === "SUMMARY")) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  #toggle() {
    if (this.#playing) this.#pause();
    else this.#play();
  }

  #play() {
    if (!this.#trace.length) return;
    this.#playing = true;
    if (this.#position >= this.#last) this.#show(0, false);
    setIcon(this.#playButton, t("Pause"), PAUSE);
    let before = performance.now();
    let owed = 0;
    /** @param {number} now */
    const tick = (now) => {
      if (!this.#playing) return;
      // After a pause of the page (another tab) it goes on where it was.
      owed += (Math.min(now - before, 250) * Number(this.#speed.value)) / 1000;
      before = now;
      if (owed >= 1) {
        this.#show(this.#position + Math.floor(owed), false, true);
        owed %= 1;
      }
      if (this.#position >= this.#last) this.#pause();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  #pause() {
    if (!this.#playing) return;
    this.#playing = false;
    setIcon(this.#playButton, t("Play"), PLAY);
    this.#tell();
    this.#drawTable();
    this.#live.textContent = t("Paused. {said}", { said: this.#readout.textContent });
  }

  #tell() {
    this.#model.set("position", this.#position);
    this.#model.save_changes();
  }

  #nextMiss() {
    for (let i = this.#position + 1; i <= this.#last; i++) {
      if (this.#result.found[i] > 0) return this.#show(i);
    }
    this.#live.textContent = t("No further miss.");
  }

  /**
   * @param {number} buffer
   * @param {number} element
   */
  #goToNext(buffer, element) {
    /** @param {number} i */
    const covers = (i) => {
      const access = this.#trace.at(i);
      return (
        access.site.buffer === buffer &&
        access.element <= element &&
        element < access.element + access.lanes
      );
    };
    for (let k = 1; k <= this.#trace.length; k++) {
      const i = (this.#position + k) % this.#trace.length;
      if (covers(i)) return this.#show(i);
    }
    this.#live.textContent = t("It is never accessed.");
  }

  /** @param {string} text */
  #findElement(text) {
    const match = text.match(/^\s*(\w+)\s*\[([\d,\s]*)\]\s*$/);
    const { buffers } = this.#trace.data;
    const number = match ? buffers.findIndex((b) => b.name === match[1]) : -1;
    const index = match ? match[2].split(",").map(Number) : [];
    const fits =
      number >= 0 &&
      index.length === buffers[number].shape.length &&
      index.every((x, d) => x < buffers[number].shape[d]);
    this.#find.setAttribute("aria-invalid", String(!fits));
    if (!fits) {
      this.#live.textContent = t("There is no element {text}.", { text });
      return;
    }
    const element = index.reduce((sum, x, d) => sum * buffers[number].shape[d] + x, 0);
    this.#goToNext(number, element);
  }

  /**
   * Show access `at`. `tell`: the model should hear of it; `running`: it is being played.
   * @param {number} at
   */
  #show(at, tell = true, running = false) {
    if (tell && this.#playing) this.#pause();
    at = Math.max(0, Math.min(this.#last, at));
    if (!this.#trace.length) {
      this.#readout.textContent = t("The program accesses no memory.");
      return;
    }
    const unchanged = at === this.#position;
    this.#position = at;
    this.#slider.value = String(at);
    this.#count.textContent = `${whole(at + 1)} / ${whole(this.#trace.length)}`;
    const access = this.#trace.at(at);
    const said = this.#describe(access);
    this.#slider.setAttribute("aria-valuetext", `${at + 1} of ${this.#trace.length}: ${said}`);
    const level = this.#result.found[at];
    this.#readout.replaceChildren(
      h(
        "span",
        { class: `badge ${levelClass(level, this.#result.names.length)}` },
        `${LEVEL_SIGNS[this.#signOf(level)]} ${this.#result.names[level]}`,
      ),
      ` ${said}`,
    );
    this.#drawGrids();
    this.#markLine(access.site.line);
    this.#drawLevels();
    this.#drawTimeline();
    if (!running) {
      this.#drawTable();
      if (!unchanged) this.#live.textContent = said;
    }
    if (tell && !unchanged) this.#tell();
  }

  /** @param {number} level */
  #signOf(level) {
    return level === this.#result.names.length - 1 ? LEVEL_SIGNS.length - 1 : level;
  }

  /** @param {Access} access */
  #describe(access) {
    const { site, buffer, lanes, values, thread, number } = access;
    const verb = site.write ? t("writes") : t("reads");
    const wide =
      lanes > 1
        ? t("a vector of {lanes} × {size} B", { lanes, size: buffer.itemsize })
        : `${site.bytes} B`;
    const distance = this.#result.reuse[number];
    const reuse =
      distance < 0
        ? t("first use of its line")
        : t("reuse distance {distance}", { distance: whole(distance) });
    const loops = site.loops.map((name, i) => `${name}=${values[i]}`).join(" ");
    const threads = this.#trace.data.thread.length ? t(", thread {thread}", { thread }) : "";
    const level = this.#result.found[number];
    const where =
      level === 0
        ? t("found in {level}", { level: this.#result.names[0] })
        : t("missed {levels}, found in {level}", {
            levels: this.#result.names.slice(0, level).join(t(" and ")),
            level: this.#result.names[level],
          });
    return `${verb} ${this.#trace.name(access)}, ${wide}${threads}; ${where}; ${reuse}${loops ? `; ${loops}` : ""}`;
  }

  /** @param {number | null} line */
  #markLine(line) {
    this.#program.querySelector(".here")?.classList.remove("here");
    if (line === null) return;
    const element = /** @type {HTMLElement} */ (this.#program.children[line]);
    element.classList.add("here");
    const top = element.offsetTop - this.#program.offsetTop;
    if (
      top < this.#program.scrollTop ||
      top > this.#program.scrollTop + this.#program.clientHeight - 24
    ) {
      this.#program.scrollTop = top - this.#program.clientHeight / 2;
    }
  }

  // ------------------------------------------------------------------------------------- drawing

  #layout() {
    const width = this.#root.clientWidth - 24;
    if (width <= 0) return;
    for (const grid of this.#grids) grid.layout(width, this.#grids.length);
    this.#drawGrids();
    this.#drawTimeline();
    this.#drawHistogram();
  }

  #recolour() {
    for (const grid of this.#grids) grid.recolour();
    this.#drawGrids();
    this.#drawTimeline();
  }

  #drawGrids() {
    if (this.#position < 0) return;
    const resident = this.#result.residentAt(this.#position, this.#trace);
    for (const grid of this.#grids) grid.draw(this.#position, this.#result, resident);
  }

  #drawTimeline() {
    if (this.#position >= 0) drawTimeline(this.#timeline, this.#result, this.#position);
  }

  #drawLegend() {
    const { names } = this.#result;
    this.#legend.replaceChildren(
      ...names.map((name, i) =>
        h(
          "span",
          { class: `badge ${levelClass(i, names.length)}` },
          `${LEVEL_SIGNS[this.#signOf(i)]} ${t("found in {level}", { level: name })}`,
        ),
      ),
      h(
        "span",
        { class: "key resident" },
        this.#trace.data.thread.length
          ? t("in {level} of this thread now", { level: names[0] })
          : t("in {level} now", { level: names[0] }),
      ),
      h("span", { class: "key came" }, t("came with its line, not used yet")),
      h("span", { class: "key left" }, t("used before, not in {level}", { level: names[0] })),
      h("span", { class: "key read" }, t("read")),
      h("span", { class: "key written" }, t("write")),
      h("span", { class: "key line" }, t("the line of {size} B", { size: this.#result.line })),
    );
  }

  #drawLevels() {
    const { data, names, upTo } = this.#result;
    const all = this.#trace.length;
    /** @param {number} i */
    const cells = (i) => [
      whole(upTo[i][this.#position + 1]),
      whole(upTo[i][all]),
      all ? percent(upTo[i][all] / all) : "",
      i < data.counts.length ? whole(data.counts[i].misses) : "",
      i < data.counts.length ? whole(data.counts[i].bytes_in) : "",
      i < data.counts.length ? whole(data.counts[i].bytes_out) : "",
    ];
    if (this.#levels.dataset.names !== names.join()) {
      this.#levels.dataset.names = names.join();
      this.#levels.replaceChildren(
        heads([
          "",
          t("found so far"),
          t("found in all"),
          t("share"),
          t("misses"),
          t("bytes in"),
          t("bytes back"),
        ]),
        h(
          "tbody",
          {},
          names.map((name, i) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, `${LEVEL_SIGNS[this.#signOf(i)]} ${name}`),
              cells(i).map(() => h("td", {})),
            ),
          ),
        ),
      );
    }
    names.forEach((_, i) => {
      const row = this.#levels.tBodies[0].rows[i];
      cells(i).forEach((text, k) => {
        if (row.cells[k + 1].textContent !== text) row.cells[k + 1].textContent = text;
      });
    });
  }

  #drawHistogram() {
    const bins = reuseBins(this.#result);
    const width = Math.floor(this.#histogram.clientWidth);
    if (width) this.#histogram.innerHTML = reuseChart(bins, this.#result, width);
    this.#histogramTable.replaceChildren(reuseTable(bins, this.#result));
  }

  #drawTable() {
    if (!this.#nearby.open || !this.#trace.length) return;
    const from = Math.max(0, Math.min(this.#position - 8, this.#last - 24));
    const rows = [];
    for (let i = from; i <= Math.min(this.#last, from + 24); i++) {
      const access = this.#trace.at(i);
      const reuse = this.#result.reuse[i];
      const texts = [
        whole(i + 1),
        access.site.write ? "write" : "read",
        this.#trace.name(access),
        `${access.site.bytes} B`,
        String(access.thread),
        this.#result.names[this.#result.found[i]],
        reuse < 0 ? "first" : whole(reuse),
        access.site.loops.map((name, k) => `${name}=${access.values[k]}`).join(" "),
      ];
      rows.push(
        h(
          "tr",
          {
            "aria-current": i === this.#position ? "true" : null,
            class: i === this.#position ? "here" : null,
          },
          texts.map((text) => h("td", {}, text)),
        ),
      );
    }
    const names = ["", "", "element", "bytes", "thread", t("found in"), "reuse", "loops"];
    this.#table.replaceChildren(h("table", {}, heads(names), h("tbody", {}, rows)));
  }
}

/**
 * Draw the view in an element; the return value takes it down.
 * @param {Pick<Data.Host, "model" | "el">} host
 * @param {typeof PaneTools} [Tools]
 */
export function renderAccesses({ model, el }, Tools) {
  speak(model, el);
  const view = new AccessView(model, el, Tools);
  return () => view.remove();
}
