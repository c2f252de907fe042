// The loop nest of a program as a picture: loops are nested boxes, blocks are boxes within them.
//
// The tree follows from the parts of a recording's lines and from their indentation. Where each box
// stands is worked out by the rule and the sizes of mlc_lab/observe/nest.py, which draws the same
// picture where no script runs. Sizes are in pixels; text is set in a monospace face whose width is
// known.

import { escapeHTML, sure } from "./dom.js";
import { t } from "./words.js";

/**
 * @typedef {{ text: string, role: string, line: number, keys: number[] }} Part a row of a block: an
 * iterator or a region
 */

/**
 * @typedef {{ kind: "root" | "loop" | "block" | "group" | "text", line: number, indent: number,
 *   head: string, note: string, tint: string, said: string, keys: number[], rows: Part[],
 *   children: Box[], w: number, h: number }} Box
 */

const CHAR = 7.25; // width of one character at 12 px
const ROW = 19;
const GAP = 6;
const SIDE = 8;
const HEAD = 23;
const ROLE = 58; // beside the text of a row: what it is
const NOTE = 34; // beside a head: its sign, and the space before its note
const LONGEST = 64; // characters of a line that are shown
const ROWS = new Set(["iterator", "reads", "writes", "where"]);
const ITERATORS = new Set(["spatial", "reduce", "scan", "opaque"]);
/** @type {Record<string, string>} */
const MARK_SIGNS = { new: "+ ", changed: "~ ", moved: "↕ ", removed: "− " };
/**
 * @param {Box["kind"]} kind
 * @param {number} line
 * @param {number} indent
 * @param {Partial<Box>} more
 * @returns {Box}
 */
const box = (kind, line, indent, more) => ({
  kind,
  line,
  indent,
  head: "",
  note: "",
  tint: "",
  said: "",
  keys: [],
  rows: [],
  children: [],
  w: 0,
  h: 0,
  ...more,
});

/**
 * The rows of a block that a line of iterators or regions gives.
 * @param {Data.Line} line
 * @param {number} n
 * @returns {Part[]}
 */
const rowsOf = ({ parts, keys }, n) =>
  parts.flatMap((part, i) => {
    if (part[0] === "iterator")
      return [
        { role: part[2], text: `${part[1]} = ${part[3]}`, line: n, keys: keys.slice(i, i + 1) },
      ];
    return part[1] ? [{ role: part[0], text: String(part[1]), line: n, keys }] : [];
  });

/**
 * The tree of a program's lines.
 * @param {Data.Line[]} lines
 * @returns {Box}
 */
export function nestOf(lines) {
  const root = box("root", -1, -1, {});
  const open = [root];
  lines.forEach((line, n) => {
    const { text, indent, keys, parts } = line;
    const kind = parts.length ? parts[0][0] : "text";
    if (!text || kind === "aside") return;
    while (open[open.length - 1].indent >= indent) open.pop();
    let above = open[open.length - 1];
    /** @param {Box} node */
    const put = (node) => (above.children.push(node), node);
    if (kind === "loop") {
      for (const [i, part] of parts.entries()) {
        const [, name, extent, tint, thread] = /** @type {Data.LoopPart} */ (part);
        above = put(
          box("loop", n, indent, {
            head: `${name} : ${extent}`,
            note: thread || (tint === "serial" ? "" : tint),
            tint,
            said: t("loop {name}, extent {extent}, {kind}", { name, extent, kind: thread || tint }),
            keys: keys.slice(i, i + 1),
          }),
        );
      }
      open.push(above);
    } else if (kind === "block" || kind === "group") {
      const head = String(parts[0][1]);
      const note = kind === "block" ? t("block") : "";
      open.push(put(box(kind, n, indent, { head, note, said: `${t(kind)} ${head}`, keys })));
    } else if (ROWS.has(kind)) {
      above.rows.push(...rowsOf(line, n));
    } else put(box("text", n, indent, { head: text, said: text, keys }));
  });
  return root;
}

/** @param {string} text */
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);
/** @param {string} text */
const wide = (text) => Math.ceil(cut(text).length * CHAR);

/**
 * Give a box its width and height, from the inside out.
 * @param {Box} node
 */
function measure(node) {
  node.children.forEach(measure);
  if (node.kind === "text") {
    node.w = wide(node.head) + 4;
    node.h = ROW;
    return;
  }
  node.w = Math.max(
    0,
    ...node.rows.map((row) => wide(row.text) + ROLE),
    ...node.children.map((child) => child.w),
  );
  node.h = ROW * node.rows.length + node.children.reduce((sum, child) => sum + child.h + GAP, 0);
  if (node.kind === "root") return;
  node.w = Math.max(node.w, wide(node.head) + wide(node.note) + NOTE) + 2 * SIDE;
  node.h += HEAD + 2;
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
 * @param {Box} node
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {(node: Box | Part) => Data.Mark} marks
 * @param {Data.Drawing["items"]} out
 */
function paint(node, x, y, width, marks, out) {
  let top = y;
  let left = x;
  let inner = width;
  const mark = node.kind === "root" ? "" : marks(node);
  const sign = MARK_SIGNS[mark] || "";
  if (node.kind === "text") {
    out.push({
      y,
      h: ROW,
      mark,
      html:
        `<g class="n-text ${mark}" ${tag(node.line, node.keys, node.said)}>` +
        `<rect x="${x}" y="${y}" width="${width}" height="${ROW - 2}" rx="2"/>` +
        `<text x="${x + 3}" y="${y + 13}">${sign}${escapeHTML(cut(node.head))}</text>` +
        `${hint(node.head)}</g>`,
    });
    return;
  }
  if (node.kind !== "root") {
    out.push({
      y,
      h: node.h,
      mark,
      html:
        `<g class="n-${node.kind} ${node.tint} ${mark}" ${tag(node.line, node.keys, node.said)}>` +
        `<rect x="${x}" y="${y}" width="${width}" height="${node.h}" rx="4"/>` +
        (mark ? `<rect class="bar" x="${x}" y="${y}" width="4" height="${node.h}" rx="2"/>` : "") +
        `<text class="h" x="${x + SIDE + 2}" y="${y + 16}">${sign}${escapeHTML(cut(node.head))}</text>` +
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
          `<g class="n-row ${changed}" ${tag(row.line, row.keys, `${row.role} ${row.text}`)}>` +
          `<rect x="${left - 2}" y="${top}" width="${inner + 4}" height="${ROW - 2}" rx="2"/>` +
          `<text class="role" x="${left + 2}" y="${top + 13}">${row.role}</text>` +
          `<text x="${left + ROLE - 2}" y="${top + 13}">${escapeHTML(cut(row.text))}</text>` +
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
 * @param {Box} root
 * @param {(node: Box | Part) => Data.Mark} [marks]
 * @returns {Data.Drawing}
 */
export function drawNest(root, marks = () => "") {
  measure(root);
  /** @type {Data.Drawing["items"]} */
  const items = [];
  paint(root, 1, 1, root.w, marks, items);
  return { width: root.w + 2, height: root.h + 2, label: t("Loop nest"), items };
}

/**
 * What a loop or an iterator says of itself: what is compared to tell whether it changed.
 * @param {Box | Part} part
 */
const wordsOf = (part) => ("role" in part ? `${part.role} ${part.text}` : part.said);

/**
 * The loops and iterators that have a key of their own, by it.
 * @param {Box} node
 * @param {Map<number, Box | Part>} [found]
 */
function partsByKey(node, found = new Map()) {
  const parts = node.kind === "loop" ? [node] : node.rows.filter((row) => ITERATORS.has(row.role));
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
