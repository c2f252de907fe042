// The loop nest of a program as a picture: loops are nested boxes, blocks are boxes within them.
//
// Read off the lines of TVMScript, whose form the printer fixes: a header and what is indented
// under it. Sizes are in pixels; text is set in a monospace face whose width is known.

import { escapeHTML, sure } from "./dom.js";

/** @typedef {{ name: string, extent: string, kind: string, thread: string }} Loop */

/**
 * @typedef {{ tag?: string, text: string, name?: string, role?: string, kind?: string, loop?: Loop, line: number, keys: number[] }} Part
 * something that has a mark of its own: a node, or a row of a block
 */

/**
 * @typedef {{ type: "root" | "loop" | "block" | "group" | "text", indent: number, line: number,
 *   keys: number[], children: Nest[], loop?: Loop, name?: string, text: string, tag?: string,
 *   iterators: Part[], regions: Part[], rows: Part[], head: string, note: string,
 *   w: number, h: number }} Nest a node of the tree of a program's lines
 */

const CHAR = 7.25; // width of one character at 12 px
const ROW = 19;
const GAP = 6;
const SIDE = 8;
const HEAD = 23;
const LONGEST = 64; // characters of a line that are shown
/** @type {Record<string, string>} */
const KIND_OF = {
  "T.parallel": "parallel",
  "T.vectorized": "vectorized",
  "T.unroll": "unrolled",
  "T.thread_binding": "thread",
};
/** @type {Record<string, string>} */
const MARK_SIGNS = { new: "+ ", changed: "~ ", moved: "↕ ", removed: "− " };
/** @type {Record<string, string>} */
const ITERATOR_KINDS = { S: "spatial", R: "reduce", spatial: "spatial", reduce: "reduce" };

/**
 * Parts of an argument list, divided at the commas that stand in no bracket or string.
 * @param {string} text
 */
export function splitArguments(text) {
  const parts = [];
  let depth = 0;
  let quoted = "";
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) quoted = c === quoted ? "" : quoted;
    else if (c === '"' || c === "'") quoted = c;
    else if ("([{".includes(c)) depth++;
    else if (")]}".includes(c)) depth--;
    else if (c === "," && depth === 0) {
      parts.push(text.slice(from, i).trim());
      from = i + 1;
    }
  }
  const last = text.slice(from).trim();
  return last ? [...parts, last] : parts;
}

/**
 * Loops of a `for` line: [{ name, extent, kind, thread }], or null if it is none.
 * @param {string} text
 * @returns {Loop[] | null}
 */
export function loopsOf(text) {
  const found = /^for (.+?) in (range|T\.\w+)\((.*)\):/.exec(text);
  if (!found) return null;
  const names = found[1].split(", ");
  const given = splitArguments(found[3]);
  const plain = given.filter((part) => !/^\w+=/.test(part));
  const thread = /thread="([^"]+)"/.exec(found[3]);
  const kind = KIND_OF[found[2]] || "serial";
  if (found[2] === "T.grid") {
    return names.map((name, i) => ({ name, extent: plain[i], kind, thread: "" }));
  }
  const extent = plain.length > 1 ? `${plain[0]} .. ${plain[1]}` : plain[0];
  return [{ name: names[0], extent, kind, thread: thread ? thread[1] : "" }];
}

/**
 * Iterators of an `axis` line: [{ name, kind, text }], or null.
 * @param {string} text
 * @returns {{ name: string, kind: string, text: string }[] | null}
 */
function iteratorsOf(text) {
  const remap = /^(.+) = T\.axis\.remap\("(\w+)", \[(.*)\]\)/.exec(text);
  if (remap) {
    const values = splitArguments(remap[3]);
    return remap[1].split(", ").map((name, i) => ({
      name,
      kind: ITERATOR_KINDS[remap[2][i]] || "",
      text: values[i],
    }));
  }
  const one = /^(\w+) = T\.axis\.(\w+)\((.*)\)$/.exec(text);
  if (!one) return null;
  const [domain, value] = splitArguments(one[3]);
  const kind = ITERATOR_KINDS[one[2]] || one[2];
  return [{ name: one[1], kind, text: value === undefined ? domain : value }];
}

/**
 * The tree of a program's lines: nodes { type, line, ... children }. Types: "loop", "block",
 * "group" (function, init, condition, allocation in a `with`) and "text".
 * @param {Data.Line[]} lines
 * @returns {Nest}
 */
export function nestOf(lines) {
  /** @type {Nest} */
  const root = { ...NODE, children: [] };
  const open = [root];
  lines.forEach((line, n) => {
    const { text } = line;
    if (!text || text.startsWith("@") || text.startsWith("#")) return;
    while (open[open.length - 1].indent >= line.indent) open.pop();
    const above = open[open.length - 1];
    /** @param {Nest} node */
    const put = (node) => (above.children.push(node), node);
    /** @param {Nest["type"]} type */
    const here = (type) => ({ ...NODE, type, line: n, indent: line.indent, keys: line.keys });
    const loops = loopsOf(text);
    if (loops) {
      const keys =
        line.keys.length === loops.length ? line.keys.map((k) => [k]) : loops.map(() => line.keys);
      let into = above;
      loops.forEach((loop, i) => {
        const node = { ...here("loop"), keys: keys[i], loop, children: [] };
        into.children.push(node);
        into = node;
      });
      open.push(into);
      return;
    }
    const block = /^with T\.s?block\("((?:[^"\\]|\\.)*)"/.exec(text);
    if (block) {
      open.push(
        put({ ...here("block"), name: block[1], iterators: [], regions: [], children: [] }),
      );
      return;
    }
    if (above.type === "block") {
      const iterators = iteratorsOf(text);
      if (iterators) {
        iterators.forEach((it, i) =>
          above.iterators.push({ ...it, tag: it.kind, line: n, keys: [line.keys[i]] }),
        );
        return;
      }
      const region = /^T\.(reads|writes|where)\((.*)\)$/.exec(text);
      if (region) {
        if (region[2])
          above.regions.push({ role: region[1], text: region[2], line: n, keys: line.keys });
        return;
      }
    }
    if (text.endsWith(":")) {
      const said = /^(def \w+|class \w+)/.exec(text);
      const shown = said ? said[1] : text.replace(/^with T\.|:$/g, "").replace(/\(\)$/, "");
      open.push(put({ ...here("group"), text: shown, children: [] }));
      return;
    }
    put({ ...here("text"), text, children: [] });
  });
  return root;
}

/** @type {Nest} */
const NODE = {
  type: "root",
  indent: -1,
  line: -1,
  keys: [],
  children: [],
  text: "",
  iterators: [],
  regions: [],
  rows: [],
  head: "",
  note: "",
  w: 0,
  h: 0,
};

/** @param {string} text */
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);
/** @param {string} text */
const wide = (text) => Math.ceil(cut(text).length * CHAR);

/**
 * Measure a node: gives it w and h, and its rows of text.
 * @param {Nest} node
 */
function measure(node) {
  node.children.forEach(measure);
  const { type } = node;
  node.rows = [];
  if (type === "loop") {
    const { name, extent, kind, thread } = /** @type {Loop} */ (node.loop);
    node.head = `${name} : ${extent}`;
    node.note = thread || (kind === "serial" ? "" : kind);
  } else if (type === "block") {
    node.head = node.name || "";
    node.note = "block";
    for (const it of node.iterators) {
      node.rows.push({
        text: `${it.name} = ${it.text}`,
        tag: it.kind,
        line: it.line,
        keys: it.keys,
      });
    }
    for (const region of node.regions) {
      node.rows.push({ text: region.text, tag: region.role, line: region.line, keys: region.keys });
    }
  } else if (type === "group") {
    node.head = node.text;
    node.note = "";
  } else if (type === "text") {
    node.w = wide(node.text) + 4;
    node.h = ROW;
    return;
  }
  const rowWidth = Math.max(0, ...node.rows.map((r) => wide(r.text) + 58));
  const headWidth = type === "root" ? 0 : wide(node.head) + wide(node.note) + 34;
  const inner = Math.max(0, ...node.children.map((c) => c.w));
  const frame = type === "root" ? 0 : 2 * SIDE;
  node.w = Math.max(rowWidth, headWidth, inner) + frame;
  node.h =
    (type === "root" ? 0 : HEAD) +
    node.rows.length * ROW +
    node.children.reduce((sum, c) => sum + c.h + GAP, 0) +
    (type === "root" ? 0 : 2);
}

/**
 * Text that was cut is told in full.
 * @param {string} text
 */
const hint = (text) => (text.length > LONGEST ? `<title>${escapeHTML(text)}</title>` : "");

/**
 * @param {number} n
 * @param {number[]} keys
 * @param {string} label
 */
const tag = (n, keys, label) =>
  `data-n="${n}" data-k=" ${keys.join(" ")} " aria-label="${escapeHTML(label)}"`;

/**
 * @param {Nest} node
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {(node: Part) => Data.Mark} marks
 * @param {Data.Drawing["items"]} out
 */
function paint(node, x, y, width, marks, out) {
  if (node.type === "text") {
    const mark = marks(node);
    out.push({
      y,
      h: ROW,
      mark,
      html:
        `<g class="n-text ${mark}" ${tag(node.line, node.keys, node.text)}>` +
        `<rect x="${x}" y="${y}" width="${width}" height="${ROW - 2}" rx="2"/>` +
        `<text x="${x + 3}" y="${y + 13}">${escapeHTML(MARK_SIGNS[mark] || "")}${escapeHTML(cut(node.text))}</text>` +
        `${hint(node.text)}</g>`,
    });
    return;
  }
  let top = y;
  let left = x;
  let inner = width;
  if (node.type !== "root") {
    const mark = marks(node);
    const { loop } = node;
    const kind = loop ? loop.kind : "";
    const said = loop
      ? `loop ${loop.name}, extent ${loop.extent}, ${loop.thread || loop.kind}`
      : `${node.type} ${node.head}`;
    out.push({
      y,
      h: node.h,
      mark,
      html:
        `<g class="n-${node.type} ${kind} ${mark}" ${tag(node.line, node.keys, said)}>` +
        `<rect x="${x}" y="${y}" width="${width}" height="${node.h}" rx="4"/>` +
        (mark ? `<rect class="bar" x="${x}" y="${y}" width="4" height="${node.h}" rx="2"/>` : "") +
        `<text class="h" x="${x + SIDE + 2}" y="${y + 16}">${MARK_SIGNS[mark] || ""}${escapeHTML(cut(node.head))}</text>` +
        (node.note
          ? `<text class="kind" x="${x + width - SIDE}" y="${y + 16}" text-anchor="end">${escapeHTML(node.note)}</text>`
          : "") +
        "</g>",
    });
    top = y + HEAD;
    left = x + SIDE;
    inner = width - 2 * SIDE;
    for (const row of node.rows) {
      const changed = marks(row);
      out.push({
        y: top,
        h: ROW,
        mark: changed,
        html:
          `<g class="n-row ${changed}" ${tag(row.line, row.keys, `${row.tag} ${row.text}`)}>` +
          `<rect x="${left - 2}" y="${top}" width="${inner + 4}" height="${ROW - 2}" rx="2"/>` +
          `<text class="role" x="${left + 2}" y="${top + 13}">${row.tag}</text>` +
          `<text x="${left + 56}" y="${top + 13}">${escapeHTML(cut(row.text))}</text>` +
          `${hint(row.text)}</g>`,
      });
      top += ROW;
    }
  }
  for (const child of node.children) {
    paint(child, left, top, inner, marks, out);
    top += child.h + GAP;
  }
}

/**
 * A tree that `nestOf` gave as a drawing for `LazyDrawing`. `marks(node)`: "", "new", "changed",
 * "moved" or "removed".
 * @param {Nest} root
 * @param {(node: Part) => Data.Mark} [marks]
 * @returns {Data.Drawing}
 */
export function drawNest(root, marks = () => "") {
  measure(root);
  /** @type {Data.Drawing["items"]} */
  const items = [];
  paint(root, 1, 1, root.w, marks, items);
  return { width: root.w + 2, height: root.h + 2, label: "Loop nest", items };
}

/**
 * What a loop or an iterator says of itself: what is compared to tell whether it changed.
 * @param {Part} part
 */
const wordsOf = ({ loop, tag, text }) =>
  loop ? `${loop.extent} ${loop.kind} ${loop.thread}` : `${tag} ${text}`;

/**
 * @param {Nest} node
 * @param {Map<number, Part>} [found]
 */
function partsByKey(node, found = new Map()) {
  const parts = node.type === "loop" ? [node] : node.type === "block" ? node.iterators : [];
  for (const part of parts) if (part.keys.length === 1) found.set(part.keys[0], part);
  for (const child of node.children) partsByKey(child, found);
  return found;
}

/**
 * Both programs as nests, as two drawings. `marks`: for each the marks of its lines, by line number. Several
 * loops or iterators may share a line, so each of them is judged by itself.
 * @param {Data.Line[]} before
 * @param {Data.Line[]} after
 * @param {Map<number, Data.Mark>[]} marks
 */
export function drawNests(before, after, marks) {
  const trees = [nestOf(before), nestOf(after)];
  const known = trees.map((tree) => partsByKey(tree));
  return trees.map((tree, side) =>
    drawNest(tree, (node) => {
      const mark = marks[side].get(node.line) || "";
      if (!known[side].has(node.keys[0]) || node.keys.length !== 1 || mark === "moved" || !mark)
        return mark;
      const other = known[1 - side].get(node.keys[0]);
      if (!other) return side ? "new" : "removed";
      return wordsOf(sure(known[side].get(node.keys[0]))) === wordsOf(other) ? "" : "changed";
    }),
  );
}
