// The graph view: a computation graph to look through, zoom, search and walk along by keyboard.
//
// Draws a graph (see mlc_lab/observe/graph.py) that is laid out already, and knows nothing of
// compilers. The model is anywidget's in a notebook and an object like it in an exported page.

import {
  bytesText,
  closest,
  copyButton,
  drag,
  escapeHTML,
  h,
  later,
  OWN_KEYS,
  sure,
} from "./dom.js";
import { tokens } from "./highlight.js";
import { PaneTools } from "./panes.js";
import { SVG, svg } from "./svg.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

/** @returns {Record<string, string>} */
const kinds = () => ({
  param: t("parameter"),
  constant: t("constant"),
  op: t("operator"),
  kernel: t("TensorIR kernel"),
  extern: t("packed function"),
  call: t("function call"),
  group: t("fused group"),
  tuple: t("tuple"),
  item: t("tuple item"),
  cast: "match_cast",
  if: t("branch"),
  output: t("output"),
});
const VALUE_KINDS = new Set(["param", "constant", "output", "tuple", "item"]);
const LINE = 16;

/**
 * The lines of text in a node's box; the layout has made room for just these.
 * @param {Data.GraphNode} node
 */
export function boxLines(node) {
  if (node.kind === "item" || node.kind === "tuple") return [node.label];
  const lines = [node.label];
  if (node.type) lines.push(node.type);
  for (const constant of node.constants.slice(0, 4)) {
    lines.push(
      ["const", constant.type, constant.bytes === null ? "" : bytesText(constant.bytes)]
        .filter(Boolean)
        .join(" "),
    );
  }
  if (node.constants.length > 4)
    lines.push(t("and {count} more constants", { count: node.constants.length - 4 }));
  return lines.map((line) => (line.length <= 44 ? line : line.slice(0, 43) + "…"));
}

/** @param {[number, number][]} points */
export function curve(points) {
  let [x, y] = points[0];
  let path = `M${x},${y}`;
  for (const [nextX, nextY] of points.slice(1)) {
    const bend = (nextY - y) / 2;
    path += `C${x},${y + bend} ${nextX},${nextY - bend} ${nextX},${nextY}`;
    [x, y] = [nextX, nextY];
  }
  return path;
}

export class GraphDrawing {
  /** @type {HTMLElement} */
  title = later();
  /** @type {HTMLSpanElement} */
  facts = later();
  /** @type {HTMLInputElement} */
  search = later();
  /** @type {HTMLSpanElement} */
  found = later();
  /** @type {HTMLButtonElement} */
  openAll = later();
  /** @type {HTMLButtonElement} */
  shutAll = later();
  /** @type {HTMLDivElement} */
  bar = later();
  /** @type {SVGSVGElement} */
  canvas = later();
  /** @type {HTMLDivElement} */
  pane = later();
  /** @type {HTMLElement} */
  detail = later();
  /** @type {HTMLDivElement} */
  live = later();
  /** @type {() => void} */
  unfollow = later();
  /** @type {Data.Graph} */
  graph = later();
  /** @type {Map<string, Data.GraphNode>} */
  nodes = later();
  /** @type {string[]} */
  groups = later();
  /** @type {Data.Layout} */
  placed = later();
  /** @type {Set<string>} */
  open = later();
  /** @type {Map<string, string[]>} */
  above = later();
  /** @type {Map<string, string[]>} */
  below = later();
  /** @type {Map<string, SVGElement[]>} */
  edgesOf = later();
  /** @type {Map<string, SVGElement>} */
  elements = later();
  /** @type {string} */
  selected = later();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} root
   * @param {((view: HTMLElement) => PaneTools) | null} [tools] null within a view that has its own
   */
  constructor(model, root, tools = (view) => new PaneTools(model, view)) {
    this.model = model;
    this.root = root;
    this.zoom = 1;
    this.zoomed = false; // by the reader
    /** @type {GraphDrawing[]} */
    this.peers = [this]; // the drawings that are shown in one scale
    this.view = h("div", { class: "mlc mlc-graph" });
    this.panes = tools && tools(this.view);
    this.mark = `graph-arrow-${Math.random().toString(36).slice(2)}`;
    this.build();
    this.onLayout = () => this.draw(true);
    this.onSelected = () => this.select(this.model.get("selected"), false);
    this.onGraph = () => {
      this.load();
      this.draw(false);
    };
    model.on("change:drawing", this.onLayout);
    model.on("change:selected", this.onSelected);
    model.on("change:graph", this.onGraph);
    this.load();
    this.draw(false);
    // In a notebook the view is drawn before it has its place, and thus a size.
    this.observer = new ResizeObserver(() => {
      if (!this.zoomed) this.fit(true);
    });
    this.observer.observe(sure(this.pane.parentElement));
  }

  close() {
    this.observer.disconnect();
    this.panes?.remove();
    this.model.off("change:drawing", this.onLayout);
    this.model.off("change:selected", this.onSelected);
    this.model.off("change:graph", this.onGraph);
    this.unfollow();
  }

  build() {
    this.title = h("b", { class: "title" });
    this.facts = h("span", { class: "dim" });
    this.search = h("input", {
      type: "search",
      placeholder: t("find an operator, shape, name"),
      "aria-label": t("Find in the graph"),
      [OWN_KEYS]: "true",
      oninput: () => this.find(0),
      onkeydown: (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        this.find(event.shiftKey ? -1 : 1);
      },
    });
    this.found = h("span", { class: "dim", role: "status" });
    /**
     * @param {string} text
     * @param {string} label
     * @param {() => void} action
     */
    const button = (text, label, action) =>
      h("button", { type: "button", title: label, "aria-label": label, onclick: action }, text);
    this.openAll = button(t("Open all groups"), t("Open all fused groups"), () =>
      this.setOpen(true),
    );
    this.shutAll = button(t("Shut all groups"), t("Shut all fused groups"), () =>
      this.setOpen(false),
    );
    this.part = h("span", { class: "note" }, t("a part is shown: Fit shows all"));
    this.bar = h(
      "div",
      { class: "bar", role: "toolbar", "aria-label": t("Graph") },
      this.title,
      this.facts,
      this.search,
      this.found,
      button("−", t("Zoom out"), () => this.zoomBy(1 / 1.25)),
      button("+", t("Zoom in"), () => this.zoomBy(1.25)),
      button(t("Fit"), t("Fit the graph into the view"), () => this.fit()),
      this.part,
      this.openAll,
      this.shutAll,
      button("SVG", t("Save the picture as SVG"), () => this.save()),
      this.panes?.tools,
    );
    this.canvas = svg("svg", {
      role: "group",
      "aria-label": t("Computation graph: arrow keys walk along the edges, Enter opens a node"),
    });
    this.pane = h("div", { class: "drawing" }, this.canvas);
    this.pane.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.pane.addEventListener("pointerdown", (event) => this.drag(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("click", (event) => {
      const node = closest(event, "[data-node]");
      if (!node) return;
      if (closest(event, "[data-toggle]")) this.toggle(node.dataset.node || "");
      else this.select(node.dataset.node || "", true);
    });
    this.detail = h("section", { class: "detail", "aria-label": t("Node") });
    this.live = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.view.append(
      this.bar,
      h("div", { class: "halves" }, this.pane, this.detail),
      ...(this.panes ? [this.panes.grip] : []),
      this.live,
    );
    this.root.append(this.view);
    this.unfollow = followTheme(this.view);
  }

  load() {
    this.graph = this.model.get("graph");
    this.nodes = new Map(this.graph.nodes.map((node) => [node.id, node]));
    this.groups = this.graph.nodes.filter((node) => node.kind === "group").map((node) => node.id);
    this.openAll.hidden = this.shutAll.hidden = !this.groups.length;
    const calls = this.graph.nodes.filter(
      (node) => node.group === null && !VALUE_KINDS.has(node.kind),
    );
    const moved = calls.map((node) => node.moved);
    this.title.textContent = this.graph.title;
    const known = moved.every((size) => size !== null);
    this.facts.textContent =
      t("{count} calls", { count: calls.length }) +
      (known ? t(", {size} moved", { size: bytesText(moved.reduce((a, b) => a + b, 0)) }) : "") +
      (this.groups.length ? t(", {count} fused groups", { count: this.groups.length }) : "");
  }

  // -- drawing

  /** @param {boolean} keep */
  draw(keep) {
    const focused = keep && this.selected;
    const held = this.canvas.contains(document.activeElement);
    /** @type {Data.Layout} */
    const placed = this.model.get("drawing");
    this.placed = placed;
    const shown = new Set(placed.boxes.map((box) => box[0]));
    this.open = new Set();
    for (const node of this.graph.nodes) {
      if (node.group !== null && shown.has(node.id)) this.open.add(node.group);
    }
    this.above = new Map();
    this.below = new Map();
    this.edgesOf = new Map();
    const parts = [];
    this.elements = new Map();
    for (const [id, x, y, width, height] of placed.boxes) {
      parts.push(this.box(this.node(id), x, y, width, height));
    }
    const routes = placed.routes.map(([index, points]) => {
      const edge = this.graph.edges[index];
      const from = this.standIn(edge.from, shown);
      const to = this.standIn(edge.to, shown);
      if (!this.below.has(from)) this.below.set(from, []);
      if (!this.above.has(to)) this.above.set(to, []);
      this.below.get(from)?.push(to);
      this.above.get(to)?.push(from);
      const path = svg("path", {
        class: "edge",
        d: curve(points),
        "marker-end": `url(#${this.mark})`,
        "data-from": from,
        "data-to": to,
      });
      path.append(svg("title", {}, edge.label));
      for (const end of [from, to]) {
        if (!this.edgesOf.has(end)) this.edgesOf.set(end, []);
        this.edgesOf.get(end)?.push(path);
      }
      return path;
    });
    const arrow = svg(
      "marker",
      {
        id: this.mark,
        viewBox: "0 0 8 8",
        refX: 7,
        refY: 4,
        markerWidth: 9,
        markerHeight: 9,
        markerUnits: "userSpaceOnUse",
        orient: "auto",
        class: "head",
      },
      svg("path", { d: "M0,0L8,4L0,8z" }),
    );
    this.canvas.replaceChildren(svg("defs", {}, arrow), ...parts, ...routes);
    this.canvas.setAttribute("viewBox", `-12 -12 ${placed.width + 24} ${placed.height + 24}`);
    if (keep) this.setZoom(this.zoom);
    else this.fit(true);
    this.select(focused && shown.has(focused) ? focused : this.model.get("selected") || "", false);
    if (!this.selected && placed.boxes.length) {
      this.elements.get(placed.boxes[0][0])?.setAttribute("tabindex", "0");
    }
    if (held) this.canvas.querySelector('[tabindex="0"]')?.focus(); // whoever opened a group goes on
  }

  /**
   * @param {string} id
   * @param {Set<string>} shown
   * @returns {string}
   */
  standIn(id, shown) {
    while (!shown.has(id)) id = sure(this.node(id).group);
    return id;
  }

  /**
   * @param {Data.GraphNode} node
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  box(node, x, y, width, height) {
    const isOpen = this.open.has(node.id);
    const lines = isOpen ? [node.label] : boxLines(node);
    const labels = lines.map((line, number) =>
      svg(
        "text",
        {
          x: x + width / 2,
          y: y + LINE * (number + 1),
          class: number ? "small" : "name",
        },
        line,
      ),
    );
    const words = [
      kinds()[node.kind] || node.kind,
      node.label,
      node.name && t("bound to {name}", { name: node.name }),
      node.type,
      node.pure ? "" : t("has effects"),
      node.kind === "group" ? (isOpen ? "open" : "shut") : "",
    ]
      .filter(Boolean)
      .join(", ");
    const element = svg(
      "g",
      {
        class: `node ${node.kind}${node.pure ? "" : " impure"}${isOpen ? " open" : ""}`,
        "data-node": node.id,
        role: "button",
        tabindex: "-1",
        "aria-label": words,
        [OWN_KEYS]: "true",
      },
      svg("rect", { x, y, width, height, rx: VALUE_KINDS.has(node.kind) ? 12 : 3 }),
      ...labels,
    );
    if (node.kind === "group") {
      element.append(
        svg(
          "text",
          {
            x: x + 8,
            y: y + LINE,
            class: "toggle",
            "data-toggle": "true",
            "aria-hidden": "true",
          },
          isOpen ? "▾" : "▸",
        ),
      );
    }
    this.elements.set(node.id, element);
    return element;
  }

  /**
   * The reader zooms, around a point of the pane or its middle.
   * @param {number} factor
   * @param {[number, number] | null} [middle]
   */
  zoomBy(factor, middle = null) {
    const zoom = this.zoom * factor;
    for (const peer of this.peers) {
      peer.zoomed = true;
      peer.setZoom(zoom, peer === this ? middle : null);
    }
  }

  /**
   * @param {number} zoom
   * @param {[number, number] | null} [middle]
   */
  setZoom(zoom, middle = null) {
    const old = this.zoom;
    this.zoom = Math.min(4, Math.max(0.05, zoom));
    const { clientWidth, clientHeight, scrollLeft, scrollTop } = this.pane;
    const [x, y] = middle || [clientWidth / 2, clientHeight / 2];
    this.canvas.setAttribute("width", String((this.placed.width + 24) * this.zoom));
    this.canvas.setAttribute("height", String((this.placed.height + 24) * this.zoom));
    const { width, height } = this.placed;
    const whole =
      (width + 24) * this.zoom <= clientWidth + 1 && (height + 24) * this.zoom <= clientHeight + 1;
    sure(this.part).style.visibility = whole ? "hidden" : "visible"; // its room stays: nothing moves
    this.pane.scrollLeft = ((scrollLeft + x) * this.zoom) / old - x;
    this.pane.scrollTop = ((scrollTop + y) * this.zoom) / old - y;
  }

  /**
   * The zoom at which the whole graph is in view; at first, where that is too small to be read (two
   * that are compared are seen whole at less), its width, and no less than names can be told at.
   * @param {boolean} first
   */
  fitting(first) {
    const wide = (this.pane.clientWidth || 800) / (this.placed.width + 24);
    const high = (this.pane.clientHeight || 560) / (this.placed.height + 24);
    const whole = Math.min(1, wide, high);
    const least = this.peers.length > 1 ? 0.4 : 0.75;
    return !first || whole > least ? whole : Math.min(1, Math.max(wide, 0.4));
  }

  /** Show the graph, and those beside it, in one scale at which all of them fit; never enlarged. */
  fit(first = false) {
    const zoom = Math.min(...this.peers.map((peer) => peer.fitting(first)));
    for (const peer of this.peers) {
      peer.zoomed = false;
      peer.setZoom(zoom);
      if (!first) continue;
      const { pane, placed } = peer;
      pane.scrollTop = 0;
      pane.scrollLeft = Math.max(0, ((placed.width + 24) * zoom - pane.clientWidth) / 2);
      if (peer.selected) peer.reveal(peer.selected);
    }
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = this.pane.getBoundingClientRect();
    this.zoomBy(event.deltaY < 0 ? 1.1 : 1 / 1.1, [
      event.clientX - box.left,
      event.clientY - box.top,
    ]);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (event.button !== 0 || closest(event, "[data-node]")) return;
    const { scrollLeft, scrollTop } = this.pane;
    /** @param {PointerEvent} now */
    const move = (now) => {
      this.pane.scrollLeft = scrollLeft - (now.clientX - event.clientX);
      this.pane.scrollTop = scrollTop - (now.clientY - event.clientY);
    };
    this.pane.classList.add("dragging");
    drag(event, this.pane, move, () => this.pane.classList.remove("dragging"));
  }

  // -- going about

  /** @param {KeyboardEvent} event */
  key(event) {
    const node = closest(event, "[data-node]");
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    const id = node.dataset.node || "";
    /** @type {string | null} */
    let to = null;
    if (event.key === "ArrowDown") to = (this.below.get(id) || [])[0] ?? null;
    else if (event.key === "ArrowUp") to = (this.above.get(id) || [])[0] ?? null;
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      to = this.beside(id, event.key === "ArrowRight" ? 1 : -1);
    } else if (event.key === "Home") to = this.placed.boxes[0][0];
    else if (event.key === "End") to = this.placed.boxes[this.placed.boxes.length - 1][0];
    else if (event.key === "Enter" || event.key === " ") {
      if (this.node(id).kind === "group") this.toggle(id);
      else this.detail.focus();
      this.select(id, true);
    } else if (event.key === "+" || event.key === "=") this.zoomBy(1.25);
    else if (event.key === "-") this.zoomBy(1 / 1.25);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (to) {
      this.select(to, true);
      this.elements.get(to)?.focus();
    }
  }

  /** @param {string} id */
  node(id) {
    return sure(this.nodes.get(id));
  }

  /**
   * The nearest box to the right or left at about the same height.
   * @param {string} id
   * @param {number} direction
   */
  beside(id, direction) {
    const boxes = new Map(this.placed.boxes.map((box) => [box[0], box]));
    const [, x, y, width, height] = sure(boxes.get(id));
    /** @type {[number, string] | null} */
    let best = null;
    for (const [other, ox, oy, w, hh] of this.placed.boxes) {
      const dx = (ox + w / 2 - x - width / 2) * direction;
      const dy = Math.abs(oy + hh / 2 - y - height / 2);
      if (other === id || dx <= 0 || dy > 60) continue;
      if (!best || dx + 2 * dy < best[0]) best = [dx + 2 * dy, other];
    }
    return best && best[1];
  }

  /**
   * @param {string} id
   * @param {boolean} tell
   */
  select(id, tell) {
    if (id && !this.elements.has(id)) id = "";
    if (this.selected && this.elements.has(this.selected)) {
      const old = this.elements.get(this.selected);
      old?.classList.remove("selected");
      old?.setAttribute("tabindex", "-1");
    }
    for (const edge of this.edgesOf.get(this.selected) || []) edge.classList.remove("near");
    for (const edge of this.edgesOf.get(id) || []) edge.classList.add("near");
    this.selected = id;
    if (id) {
      const element = sure(this.elements.get(id));
      this.canvas.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
      element.classList.add("selected");
      element.setAttribute("tabindex", "0");
      this.reveal(id);
      this.live.textContent = element.getAttribute("aria-label");
    }
    this.describe(id);
    if (tell) {
      this.model.set("selected", id);
      this.model.save_changes();
    }
  }

  /** @param {string} id */
  reveal(id) {
    const box = this.placed.boxes.find((item) => item[0] === id);
    if (!box) return;
    const [, ...sizes] = box;
    const [x, y, width, height] = sizes.map((size) => size * this.zoom);
    const pane = this.pane;
    const margin = 24;
    if (x < pane.scrollLeft || x + width + margin > pane.scrollLeft + pane.clientWidth) {
      pane.scrollLeft = x + width / 2 - pane.clientWidth / 2;
    }
    if (y < pane.scrollTop || y + height + margin > pane.scrollTop + pane.clientHeight) {
      pane.scrollTop = y + height / 2 - pane.clientHeight / 2;
    }
  }

  /** @param {number} step */
  find(step) {
    const wanted = this.search.value.trim().toLowerCase();
    const hits =
      wanted === ""
        ? []
        : this.placed.boxes
            .map((box) => box[0])
            .filter((id) => {
              const node = this.node(id);
              return `${node.label} ${node.name} ${node.type} ${kinds()[node.kind]}`
                .toLowerCase()
                .includes(wanted);
            });
    for (const [id, element] of this.elements) element.classList.toggle("hit", hits.includes(id));
    if (!hits.length) {
      this.found.textContent = wanted ? t("nothing found") : "";
      return;
    }
    const at = hits.indexOf(this.selected);
    const next = step === 0 ? Math.max(at, 0) : (at + step + hits.length) % hits.length;
    this.found.textContent = t("{at} of {count}", { at: next + 1, count: hits.length });
    this.select(hits[next], true);
  }

  // -- groups

  /** @param {string} id */
  toggle(id) {
    const open = new Set(this.open);
    if (open.has(id)) open.delete(id);
    else open.add(id);
    this.ask([...open]);
  }

  /** @param {boolean} all */
  setOpen(all) {
    this.ask(all ? this.groups : []);
  }

  /**
   * Open just these groups. The kernel answers with a new drawing; where none answers, as in an
   * exported page, there are the drawings with all groups open and with all shut.
   * @param {string[]} open
   */
  ask(open) {
    const before = this.placed;
    const more = open.length > this.open.size;
    this.model.set("opened", open);
    this.model.save_changes();
    setTimeout(
      () => {
        if (this.placed !== before) return;
        const { layouts } = this.graph;
        this.model.set("drawing", more ? layouts.open : layouts.closed);
      },
      this.model.send.length ? 1500 : 0,
    );
  }

  // -- one node

  /** @param {string} id */
  describe(id) {
    const node = id && this.nodes.get(id);
    if (!node) {
      this.detail.replaceChildren(
        h("p", { class: "dim" }, t("Select a node: its attributes and its TensorIR appear here.")),
      );
      return;
    }
    const rows = [["kind", kinds()[node.kind] || node.kind]];
    if (node.name) rows.push(["variable", node.name]);
    if (node.type)
      rows.push(["result", node.type + (node.bytes ? `, ${bytesText(node.bytes)}` : "")]);
    for (const edge of this.graph.edges.filter((item) => item.to === id)) {
      rows.push(["input", `${this.node(edge.from).label} ${edge.label}`]);
    }
    for (const constant of node.constants) {
      rows.push([t("constant"), `${constant.type}, ${bytesText(constant.bytes)}`]);
    }
    if (!VALUE_KINDS.has(node.kind)) rows.push(["moved", bytesText(node.moved)]);
    if (node.region !== null) rows.push([t("dataflow block"), String(node.region)]);
    if (!VALUE_KINDS.has(node.kind))
      rows.push(["effects", node.pure ? t("none: pure") : t("may have effects")]);
    for (const [name, value] of Object.entries(node.attrs)) rows.push([name, value]);
    /** @type {HTMLElement[]} */
    const children = [
      h("h3", {}, node.label),
      h(
        "table",
        {},
        ...rows.map(([name, value]) =>
          h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)),
        ),
      ),
    ];
    const inner = this.graph.nodes.filter((item) => item.group === id);
    if (inner.length) {
      children.push(
        h("p", {}, t("Fused: {names}", { names: inner.map((item) => item.label).join(", ") })),
      );
    }
    if (node.script) children.push(code("TVMScript", node.script));
    if (node.text !== null && node.text !== undefined) {
      children.push(code("TensorIR", this.graph.texts[node.text]));
    }
    this.detail.replaceChildren(...children);
  }

  save() {
    const copy = /** @type {SVGSVGElement} */ (this.canvas.cloneNode(true));
    copy.setAttribute("xmlns", SVG);
    const look = [
      "fill",
      "stroke",
      "stroke-width",
      "stroke-dasharray",
      "font-weight",
      "font-size",
      "text-anchor",
      "font-family",
    ];
    const from = this.canvas.querySelectorAll("rect,path,text");
    copy.querySelectorAll("rect,path,text").forEach((element, index) => {
      const style = getComputedStyle(from[index]);
      element.setAttribute(
        "style",
        look.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"),
      );
    });
    const text = new XMLSerializer().serializeToString(copy);
    const link = h("a", {
      href: URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })),
      download: `${this.graph.title}.svg`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}

/**
 * @param {string} title
 * @param {string} text
 */
function code(title, text) {
  const lines = text.split("\n");
  const html = lines
    .map((line) =>
      tokens(line)
        .map(([kind, part]) =>
          kind ? `<span class="t-${kind}">${escapeHTML(part)}</span>` : escapeHTML(part),
        )
        .join(""),
    )
    .join("\n");
  const block = h("pre", { tabindex: "0", "aria-label": title, html });
  return h(
    "details",
    { open: true },
    h(
      "summary",
      {},
      title,
      " ",
      copyButton(t("Copy the {title}", { title }), () => text),
    ),
    block,
  );
}

/** @param {Data.Host} host */
export function renderGraph({ model, el }) {
  speak(model, el);
  const drawing = new GraphDrawing(model, el);
  return () => drawing.close();
}

export default { render: renderGraph };
