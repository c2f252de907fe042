// A tree of attempts as a picture: one node an attempt, time from left to right, branches below.
//
// Operable by keyboard as a tree: arrows move between nodes, Enter goes there.

import { closest, duration, escapeHTML, h, later, OWN_KEYS } from "./dom.js";
import { t } from "./words.js";

const CELL = { least: 84, letter: 7.1, height: 46, left: 18, top: 20 };

/**
 * Column and row of each node: the first child that was not refused continues its parent's row,
 * the others start rows of their own below.
 * @param {Data.Attempt[]} nodes
 */
export function layoutTree(nodes) {
  const children = nodes.map(() => /** @type {number[]} */ ([]));
  for (const node of nodes) if (node.parent !== null) children[node.parent].push(node.id);
  const places = new Array(nodes.length);
  let rows = 0;
  // Depth first; a row is taken when it is needed, so branches never cross.
  /**
   * @param {number} id
   * @param {number} column
   * @param {number} row
   */
  const visit = (id, column, row) => {
    places[id] = { column, row };
    const first = children[id].find((child) => !nodes[child].error) ?? children[id][0];
    if (first !== undefined) visit(first, column + 1, row);
    for (const child of children[id]) if (child !== first) visit(child, column + 1, ++rows);
  };
  visit(0, 0, 0);
  return { places, rows: rows + 1, children };
}

/**
 * What a node says of itself: { name, below, spoken }.
 * @param {Data.Attempt} node
 * @param {Data.Cost | null} cost
 * @param {number | null | undefined} start
 */
function labelsOf(node, cost, start) {
  const name = node.parent === null ? "start" : node.op;
  if (node.error)
    return {
      name,
      below: "refused",
      spoken: t("{name}, refused: {rule}", { name, rule: node.error.rule }),
    };
  if (!cost) return { name, below: "", spoken: t("{name}, not measured", { name }) };
  if (!cost.time) return { name, below: t("no time"), spoken: `${name}, ${cost.message}` };
  const ratio = node.parent !== null && start ? start / cost.time : 0;
  const times = ratio ? ` · ${ratio >= 9.95 ? ratio.toFixed(0) : ratio.toFixed(1)}×` : "";
  const wrong = cost.equal === false ? t(", wrong result") : "";
  return {
    name,
    below: duration(cost.time) + times,
    wrong: Boolean(wrong),
    spoken: `${name}, ${duration(cost.time)}${ratio ? `, ${ratio.toFixed(2)} times the speed of the start` : ""}${wrong}`,
  };
}

/** The drawn tree; `ongo(id)` when the reader goes to a node. */
export class TreeView {
  /** @type {Data.Attempt[]} */
  nodes = later();
  /** @type {number[][]} */
  children = later();
  /** @type {Map<number, number>} */
  onward = later();

  /** @param {(id: number) => void} ongo */
  constructor(ongo) {
    this.ongo = ongo;
    this.focused = 0;
    this.element = h("div", { class: "tree-box" });
    this.element.addEventListener("click", (event) => {
      const node = closest(event, "[data-node]");
      if (node) this.go(Number(node.dataset.node));
    });
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  /**
   * Draw the tree; `costOf(node)` gives what was measured, `at` is the node shown.
   * @param {Data.Attempt[]} nodes
   * @param {(node: Data.Attempt) => Data.Cost | null} costOf
   * @param {number} at
   * @param {Map<number, number>} onward
   */
  draw(nodes, costOf, at, onward) {
    const within = this.element.contains(document.activeElement);
    const { places, rows, children } = layoutTree(nodes);
    Object.assign(this, { nodes, children, onward });
    if (!within || !nodes[this.focused]) this.focused = at;
    const path = new Set();
    for (let id = /** @type {number | null} */ (at); id !== null; id = nodes[id].parent)
      path.add(id);
    const first = costOf(nodes[0]);
    const labels = nodes.map((node) => labelsOf(node, costOf(node), first && first.time));
    // A column is as wide as its longest label.
    /** @type {number[]} */
    const widths = [];
    nodes.forEach((node, i) => {
      const { column } = places[i];
      const letters = Math.max(labels[i].name.length, 0.9 * labels[i].below.length);
      widths[column] = Math.max(widths[column] || CELL.least, 30 + CELL.letter * letters);
    });
    const lefts = widths.map((_, i) => widths.slice(0, i).reduce((a, b) => a + b, CELL.left));
    /** @param {number} id */
    const x = (id) => lefts[places[id].column];
    /** @param {number} id */
    const y = (id) => CELL.top + places[id].row * CELL.height;
    const times = nodes.flatMap((n) => (n.error ? [] : costOf(n)?.time || []));
    const best = times.length > 1 ? Math.min(...times) : null;
    let edges = "";
    let marks = "";
    for (const node of nodes) {
      const [cx, cy] = [x(node.id), y(node.id)];
      if (node.parent !== null) {
        const [px, py] = [x(node.parent), y(node.parent)];
        const line = py === cy ? `M${px},${py}H${cx}` : `M${px},${py}V${cy - 8}q0,8 8,8H${cx}`;
        edges += `<path class="edge${path.has(node.id) ? " on" : ""}${node.error ? " bad" : ""}" d="${line}"/>`;
      }
      const cost = costOf(node);
      const said = labels[node.id];
      const classes = [
        "node",
        path.has(node.id) && "on",
        node.id === at && "at",
        node.error && "bad",
        said.wrong && "wrong",
        best && !node.error && cost?.time === best && "best",
      ];
      const shape =
        node.error || said.wrong
          ? `<path class="cross" d="M${cx - 5},${cy - 5}l10,10m0,-10l-10,10"/>`
          : `<circle cx="${cx}" cy="${cy}" r="${node.id === at ? 7.5 : 5.5}"/>`;
      const level = places[node.id].column + 1;
      marks +=
        `<g class="${classes.filter(Boolean).join(" ")}" data-node="${node.id}" role="treeitem" ` +
        `tabindex="${node.id === this.focused ? 0 : -1}" ${OWN_KEYS}="true" aria-level="${level}" ` +
        `aria-selected="${node.id === at}" aria-label="${escapeHTML(`${node.id}: ${said.spoken}`)}">` +
        `<rect x="${cx - 11}" y="${cy - 15}" width="${widths[places[node.id].column] - 6}" height="${CELL.height - 8}" rx="5"/>` +
        shape +
        `<text class="name" x="${cx + 13}" y="${cy - 3}">${escapeHTML(said.name)}</text>` +
        `<text class="time" x="${cx + 13}" y="${cy + 14}">${escapeHTML(said.below)}</text>` +
        `<title>${escapeHTML([...node.lead, node.python].join("\n") || t("the program as it was"))}</title></g>`;
    }
    const width = widths.reduce((a, b) => a + b, CELL.left);
    const height = CELL.top + rows * CELL.height - 8;
    this.element.innerHTML =
      `<svg class="attempts" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `role="tree" aria-label="${t("Attempts")}">${edges}${marks}</svg>`;
    if (within) this.item(this.focused)?.focus();
    this.reveal(at);
  }

  /**
   * @param {number} id
   * @returns {SVGElement | null}
   */
  item(id) {
    return this.element.querySelector(`[data-node="${id}"]`);
  }

  /**
   * Scroll within the box, and nowhere else, so that a node is in sight.
   * @param {number} id
   */
  reveal(id) {
    const rect = this.item(id)?.querySelector("rect");
    if (!rect) return;
    const [left, right] = [rect.x.baseVal.value, rect.x.baseVal.value + rect.width.baseVal.value];
    const [top, bottom] = [rect.y.baseVal.value, rect.y.baseVal.value + rect.height.baseVal.value];
    const box = this.element;
    if (left < box.scrollLeft) box.scrollLeft = left - 8;
    if (right > box.scrollLeft + box.clientWidth) box.scrollLeft = right - box.clientWidth + 8;
    if (top < box.scrollTop) box.scrollTop = top - 8;
    if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight + 8;
  }

  /** @param {number} id */
  focus(id) {
    this.item(this.focused)?.setAttribute("tabindex", "-1");
    this.focused = id;
    const item = this.item(id);
    item?.setAttribute("tabindex", "0");
    item?.focus({ preventScroll: true });
    this.reveal(id);
  }

  /** @param {number} id */
  go(id) {
    this.focused = id;
    this.ongo(id);
    this.item(id)?.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const at = this.focused;
    const { parent } = this.nodes[at];
    const siblings = parent === null ? [0] : this.children[parent];
    const place = siblings.indexOf(at);
    const next = this.onward.get(at) ?? this.children[at][0];
    /** @type {Record<string, number>} */
    const targets = {
      ArrowLeft: parent ?? at,
      ArrowRight: next ?? at,
      ArrowUp: siblings[place - 1] ?? at,
      ArrowDown: siblings[place + 1] ?? at,
      Home: 0,
      End: this.nodes.length - 1,
    };
    if (event.key in targets) this.focus(targets[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.go(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
