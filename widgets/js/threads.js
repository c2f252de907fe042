// The threads of a block, instruction by instruction: which lane touches which element, the sectors
// and the banks, barriers over time, and what limits how many warps there are at once.
//
// Draws what `mlc_lab/observe/gpu/threads.py` recorded, and adds it up; it runs nothing.

import { closest, h, later, OWN_KEYS } from "./dom.js";
import { PaneTools } from "./panes.js";
import { followTheme } from "./theme.js";
import {
  BANKS,
  banksOf,
  elements,
  inWords,
  lifting,
  nearest,
  ranges,
  SECTOR,
  sectorsOf,
  turns,
} from "./threads_memory.js";
import { speak, t } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
/** Kinds of instructions, from top to bottom of a warp's row. */
const kinds = () => [t("load global"), t("store global"), t("load shared"), t("store shared")];
/** Blocks that are drawn along an axis at most. */
const CELLS = 24;
/** @returns {[string, string][]} */
const amounts = () => [
  ["threads", t("threads of a block")],
  ["registers", t("registers of a thread")],
  ["shared memory", t("bytes of shared memory of a block")],
];

/** @param {number} n */
const whole = (n) => n.toLocaleString("en-US");
/** @param {number[]} sizes */
const times = (sizes) => sizes.filter((n, at) => at === 0 || n > 1).join(" x ");

/**
 * An element of SVG.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 */
function s(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, `${value}`);
  return element;
}

class ThreadsView {
  /** @type {HTMLElement} */
  said = later();
  /** @type {HTMLElement} */
  statement = later();
  /** @type {HTMLElement} */
  lanes = later();
  /** @type {HTMLElement} */
  memory = later();
  /** @type {HTMLInputElement} */
  slider = later();
  /** @type {HTMLOutputElement} */
  place = later();
  /** @type {HTMLSelectElement} */
  warps = later();
  /** @type {Element} */
  now = later();
  /** @type {Element} */
  chart = later();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} el
   */
  constructor(model, el) {
    this.model = model;
    /** @type {Data.Threads} */
    this.data = model.get("recording");
    this.last = this.data.events.length - 1;
    this.root = h("section", {
      class: "mlc mlc-threads",
      role: "group",
      "aria-label": t("Threads"),
    });
    this.panes = new PaneTools(model, this.root);
    this.build();
    this.stop = followTheme(this.root);
    for (const name of ["event", "warp", "lane"]) model.on(`change:${name}`, this.draw);
    this.draw();
    el.replaceChildren(this.root);
  }

  remove() {
    this.stop();
    this.panes.remove();
    for (const name of ["event", "warp", "lane"]) this.model.off(`change:${name}`, this.draw);
  }

  /**
   * @param {string} name
   * @param {number} value
   */
  set(name, value) {
    this.model.set(name, value);
    this.model.save_changes();
    this.draw();
  }

  /** @param {number} event */
  go(event) {
    this.set("event", Math.max(0, Math.min(this.last, event)));
  }

  get count() {
    const [x, y, z] = this.data.block;
    return Math.max(1, Math.ceil((x * y * z) / this.data.warp));
  }

  // ------------------------------------------------------------------------------------ building

  build() {
    const { data } = this;
    const cut = data.total > data.events.length;
    const head = h(
      "p",
      { class: "what" },
      h("strong", {}, data.kernel),
      " ",
      t("{grid} blocks of {block} threads, as on {gpu}.", {
        grid: times(data.grid),
        block: times(data.block),
        gpu: data.gpu,
      }),
      " ",
      cut
        ? t("Block {chosen} is shown, its first {shown} of {all} events.", {
            chosen: data.chosen,
            shown: whole(data.events.length),
            all: whole(data.total),
          })
        : t("Block {chosen} is shown.", { chosen: data.chosen }),
    );
    if (this.last < 0) {
      this.root.append(head, h("p", {}, t("It uses no memory of the block or of the GPU.")));
      this.draw = () => undefined;
      return;
    }
    this.slider = h("input", {
      type: "range",
      min: "0",
      max: this.last,
      "aria-label": t("Instruction, in time order"),
      oninput: () => this.go(Number(this.slider.value)),
    });
    this.place = h("output", { class: "place" });
    this.warps = h(
      "select",
      { "aria-label": t("Warp"), onchange: () => this.set("warp", Number(this.warps.value)) },
      ...Array.from({ length: this.count }, (_, n) =>
        h("option", { value: n }, t("warp {number}", { number: n })),
      ),
    );
    /** @type {(word: string, label: string, by: number) => HTMLElement} */
    const button = (word, label, by) =>
      h(
        "button",
        { type: "button", "aria-label": label, onclick: () => this.go(this.event + by) },
        word,
      );
    const bar = h(
      "div",
      { class: "bar" },
      button("◀", t("Instruction before"), -1),
      button("▶", t("Next instruction"), 1),
      this.slider,
      this.place,
      this.warps,
      this.panes.tools,
    );
    this.said = h("p", { class: "said", role: "status", "aria-live": "polite" });
    this.statement = h("pre", { class: "statement", tabindex: "0", "aria-label": t("Statement") });
    this.lanes = h("div", { class: "lanes", role: "group", "aria-label": t("Lanes of the warp") });
    this.lanes.addEventListener("click", (event) => this.mark(event));
    this.lanes.addEventListener("keydown", (event) => this.walk(event));
    this.memory = h("div", { class: "memory" });
    this.memory.addEventListener("click", (event) => this.mark(event));
    this.root.append(
      head,
      h("div", { class: "where" }, this.grid()),
      bar,
      this.said,
      this.statement,
      this.lanes,
      this.memory,
      this.timeline(),
      this.panes.grip,
      this.occupancy(),
      h(
        "details",
        {},
        h("summary", {}, t("Counts of the whole launch")),
        h("pre", { class: "counts", tabindex: "0", "aria-label": t("Counts") }, data.text),
      ),
    );
  }

  /** The grid, with the block that is shown. */
  grid() {
    const [x, y] = this.data.grid;
    const [across, down] = [Math.min(x, CELLS), Math.min(y, CELLS)];
    const own = [this.data.chosen % x, Math.floor(this.data.chosen / x) % y];
    const size = 9;
    const svg = s("svg", {
      viewBox: `0 0 ${across * size} ${down * size}`,
      width: across * size,
      height: down * size,
      role: "img",
      "aria-label": t("Grid of {grid} blocks; block {chosen} is shown", {
        grid: times(this.data.grid),
        chosen: this.data.chosen,
      }),
    });
    for (let j = 0; j < down; j += 1) {
      for (let i = 0; i < across; i += 1) {
        const chosen = i === own[0] && j === own[1] ? "cell chosen" : "cell";
        svg.append(
          s("rect", { x: i * size + 1, y: j * size + 1, width: 7, height: 7, class: chosen }),
        );
      }
    }
    const more =
      x > CELLS || y > CELLS ? t(" The first {across} x {down} are drawn.", { across, down }) : "";
    return h(
      "div",
      { class: "grid" },
      svg,
      h("span", { class: "dim" }, t("Grid of blocks.") + more),
    );
  }

  /** Memory instructions and barriers over time, a row a warp. */
  timeline() {
    const { events, sites, buffers } = this.data;
    const [row, part] = [19, 4];
    const svg = s("svg", {
      viewBox: `0 0 ${events.length} ${this.count * row}`,
      preserveAspectRatio: "none",
      style: `height: max(30px, ${this.count * row}px + var(--more, 0px))`,
      role: "img",
      "aria-label": t("Time line: {warps} warps, {events} events", {
        warps: this.count,
        events: events.length,
      }),
    });
    const paths = kinds().map(() => /** @type {string[]} */ ([]));
    /** @type {string[]} */
    const barriers = [];
    events.forEach(([site, , , asked], at) => {
      if (site < 0) {
        barriers.push(`M${at} 0h1v${this.count * row}h-1z`);
        return;
      }
      const { scope } = buffers[sites[site].buffer];
      const kind = (scope === "shared" ? 2 : 0) + (sites[site].write ? 1 : 0);
      asked.forEach((n, warp) => {
        if (n) paths[kind].push(`M${at} ${warp * row + 1 + kind * part}h1v${part - 0.5}h-1z`);
      });
    });
    svg.append(s("path", { d: barriers.join(""), class: "barrier" }));
    paths.forEach((d, kind) => svg.append(s("path", { d: d.join(""), class: `kind${kind}` })));
    this.now = s("rect", { y: 0, width: 1, height: this.count * row, class: "now" });
    svg.append(this.now);
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const at = /** @type {MouseEvent} */ (event).clientX - box.left;
      this.go(Math.floor((at / box.width) * events.length));
    });
    this.chart = svg;
    const legend = [...kinds(), t("barrier")].map((name, kind) =>
      h(
        "span",
        { class: "key" },
        h("i", { class: kind < 4 ? `kind${kind}` : "barrier", "aria-hidden": "true" }),
        kind < 4 ? t("{name} (row {row})", { name, row: kind + 1 }) : name,
      ),
    );
    return h(
      "div",
      { class: "timeline" },
      h("div", { class: "title" }, t("Over time: a band for each warp, four rows in a band")),
      svg,
      h("div", { class: "legend" }, ...legend),
    );
  }

  /** What limits how many warps a multiprocessor holds, and what would lift it. */
  occupancy() {
    const { occupancy } = this.data;
    const part = Math.round((100 * occupancy.warps) / occupancy.most_warps);
    const most = Math.max(...Object.values(occupancy.each), 1);
    const limits = Object.entries(occupancy.each).map(([name, n]) =>
      h(
        "tr",
        { class: name === occupancy.limit ? "limit" : "" },
        h("th", { scope: "row" }, t(name)),
        h("td", {}, h("div", { class: "length", style: `--part: ${(100 * n) / most}%` })),
        h(
          "td",
          {},
          t("{count} blocks", { count: n }) + (name === occupancy.limit ? t(" ← the limit") : ""),
        ),
      ),
    );
    const better = amounts().flatMap(([name, words]) => {
      const found = lifting(occupancy.lifted[name], occupancy.now[name], occupancy.warps);
      return found
        ? [
            t("{amount} {of} ({warps} warps)", {
              amount: whole(found[0]),
              of: words,
              warps: found[2],
            }),
          ]
        : [];
    });
    const lifts = better.length
      ? t("It would hold more with {changes}.", { changes: better.join(t(", or with ")) })
      : t("No single change of these lets it hold more.");
    const sliders = amounts().map(([name, words]) => this.amount(name, words));
    return h(
      "div",
      { class: "occupancy" },
      h(
        "div",
        { class: "title" },
        t(
          "Occupancy: a multiprocessor holds {blocks} blocks, {warps} of {most} warps ({part} %), limited by {limit}",
          {
            blocks: occupancy.blocks,
            warps: occupancy.warps,
            most: occupancy.most_warps,
            part,
            limit: t(occupancy.limit),
          },
        ),
      ),
      h("table", {}, h("tbody", {}, ...limits)),
      h("p", { class: "lifts" }, lifts),
      ...sliders,
    );
  }

  /**
   * A slider for one amount, the others as they are, and what follows.
   * @param {string} name
   * @param {string} words
   */
  amount(name, words) {
    const { lifted, now, warps, most_warps: most } = this.data.occupancy;
    const rows = lifted[name];
    const own = nearest(rows, now[name]);
    const said = h("output", { class: "follows" });
    const input = h("input", {
      type: "range",
      min: "0",
      max: rows.length - 1,
      value: rows.indexOf(own),
      "aria-label": words,
      oninput: () => say(),
    });
    const say = () => {
      const [amount, blocks, held, limit] = rows[Number(input.value)];
      input.setAttribute(
        "aria-valuetext",
        t("{amount} {of}", { amount: whole(amount), of: words }),
      );
      const change = held > warps ? "▲ " : held < warps ? "▼ " : "";
      said.textContent =
        blocks > 0
          ? t("{amount} {of}: {change}{held} of {most} warps, limited by {limit}", {
              amount: whole(amount),
              of: words,
              change,
              held,
              most,
              limit: t(limit),
            })
          : t("{amount} {of}: ▼ no block fits, for {limit}", {
              amount: whole(amount),
              of: words,
              limit: t(limit),
            });
    };
    say();
    return h("label", { class: "amount" }, input, said);
  }

  // ------------------------------------------------------------------------------------- drawing

  get event() {
    return this.model.get("event");
  }

  draw = () => {
    const { data, event } = this;
    const warp = Math.min(this.model.get("warp"), this.count - 1);
    const lane = this.model.get("lane");
    this.slider.value = String(event);
    this.place.textContent = t("{at} of {all}", { at: event + 1, all: this.last + 1 });
    this.slider.setAttribute(
      "aria-valuetext",
      t("{at} of {all}", { at: event + 1, all: this.last + 1 }),
    );
    this.warps.value = String(warp);
    this.now.setAttribute("x", String(event));
    this.said.textContent = inWords(data, event, warp);
    const site = data.sites[data.events[event][0]];
    this.statement.textContent = site ? site.statement : t("barrier");
    const at = elements(data, event, warp);
    const buffer = site && data.buffers[site.buffer];
    const cells = Array.from({ length: data.warp }, (_, n) => {
      const element = at[n] ?? null;
      const where = element === null ? t("takes no part") : `${buffer.name}[${element}]`;
      return h(
        "button",
        {
          type: "button",
          "data-lane": n,
          class: element === null ? "idle" : "",
          tabindex: n === Math.max(lane, 0) ? "0" : "-1",
          "aria-pressed": String(n === lane),
          "aria-label": t("lane {number}: {where}", { number: n, where }),
          title: where,
        },
        String(n),
      );
    });
    const focused = document.activeElement?.parentElement === this.lanes;
    this.lanes.replaceChildren(...cells);
    if (focused) cells[Math.max(lane, 0)].focus();
    this.memory.replaceChildren(...(site ? this.drawn(event, warp, lane) : []));
  };

  /**
   * @param {number} event
   * @param {number} warp
   * @param {number} lane
   */
  drawn(event, warp, lane) {
    const { data } = this;
    const site = data.sites[data.events[event][0]];
    const buffer = data.buffers[site.buffer];
    return buffer.scope === "shared"
      ? this.banks(event, warp, lane)
      : this.sectors(event, warp, lane, buffer);
  }

  /**
   * @param {number} event
   * @param {number} warp
   * @param {number} lane
   * @param {Data.ThreadBuffer} buffer
   */
  sectors(event, warp, lane, buffer) {
    const found = sectorsOf(this.data, event, warp);
    const whole_ = s("svg", {
      viewBox: `0 0 ${buffer.size} 1`,
      preserveAspectRatio: "none",
      height: 12,
      role: "img",
      "aria-label": t("Where in {name} the warp is", { name: buffer.name }),
    });
    const wide = Math.max(buffer.size / 400, 1);
    for (const { first, cells } of found) {
      whole_.append(
        s("rect", { x: first, y: 0, width: Math.max(cells.length, wide), height: 1, class: "at" }),
      );
    }
    const rows = found.map(({ first, cells, used }) =>
      h(
        "div",
        { class: "sector" },
        h("span", { class: "from" }, `[${first}]`),
        ...cells.map((lanes, n) =>
          h(
            "span",
            {
              class: `cell${lanes.length ? " asked" : ""}${lanes.includes(lane) ? " marked" : ""}`,
              "data-lane": lanes[0],
              title: `${buffer.name}[${first + n}]: ${lanes.length ? t("lane {number}", { number: ranges(lanes) }) : t("moved, not used")}`,
            },
            lanes.length ? ranges(lanes) : "·",
          ),
        ),
        h("span", { class: "used" }, t("{used} of {all} bytes", { used, all: SECTOR })),
      ),
    );
    return [
      h(
        "div",
        { class: "title" },
        t("All of {name}, {count} elements", { name: buffer.name, count: whole(buffer.size) }),
      ),
      whole_,
      h(
        "div",
        { class: "title" },
        t("Sectors of 32 bytes, with the lanes that ask for each element"),
      ),
      h(
        "div",
        {
          class: "list",
          tabindex: "0",
          role: "group",
          "aria-label": t("Sectors"),
          [OWN_KEYS]: true,
        },
        ...rows,
      ),
    ];
  }

  /**
   * @param {number} event
   * @param {number} warp
   * @param {number} lane
   */
  banks(event, warp, lane) {
    const columns = banksOf(this.data, event, warp).map((bank, number) => {
      const most = turns(bank);
      return h(
        "div",
        { class: `bank${most > 1 ? " conflict" : ""}` },
        h("span", { class: "number" }, most > 1 ? `${number} ×${most}` : String(number)),
        ...bank.map(({ word, lanes }) =>
          h(
            "span",
            {
              class: `cell asked${lanes.includes(lane) ? " marked" : ""}`,
              "data-lane": lanes[0],
              title: t("bank {bank}, word {word}: lane {lanes}", {
                bank: number,
                word,
                lanes: ranges(lanes),
              }),
            },
            ranges(lanes),
          ),
        ),
      );
    });
    return [
      h(
        "div",
        { class: "title" },
        t(
          "{count} banks of shared memory, with the lanes that ask for each word; × marks a conflict",
          { count: BANKS },
        ),
      ),
      h(
        "div",
        {
          class: "banks",
          tabindex: "0",
          role: "group",
          "aria-label": t("Banks"),
          [OWN_KEYS]: true,
        },
        ...columns,
      ),
    ];
  }

  // -------------------------------------------------------------------------------------- lanes

  /** @param {Event} event */
  mark(event) {
    const at = closest(event, "[data-lane]");
    if (!at) return;
    const lane = Number(at.dataset.lane);
    this.set("lane", lane === this.model.get("lane") ? -1 : lane);
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const lane = Math.max(this.model.get("lane"), 0);
    const to = event.key === "Home" ? 0 : event.key === "End" ? this.data.warp - 1 : undefined;
    if (step === undefined && to === undefined) return;
    event.preventDefault();
    this.set("lane", to ?? Math.max(0, Math.min(this.data.warp - 1, lane + (step ?? 0))));
  }
}

/** @param {Data.Host} host */
export function renderThreads({ model, el }) {
  speak(model, el);
  const view = new ThreadsView(model, el);
  return () => view.remove();
}

export default { render: renderThreads };
