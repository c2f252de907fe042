// One buffer as a grid of its elements, on a canvas: what was used, what is in the first level of
// cache, and where the access of the moment falls.

import { h, later, sure } from "./dom.js";
import { LEVEL_SIGNS } from "./access_chart.js";
import { t } from "./words.js";

/** @import { Access, Result, Trace } from "./access_view.js" */

/** @typedef {Record<"edge" | "bg" | "fg" | "soft" | "resident" | "came" | "mark" | "ink", string> & { levels: string[] }} Colours */

const LARGEST = 22;
const SMALLEST = 2;
/** Cells of this size have lines between them. */
const LINED = 5;
const MAX_CELLS = 65536;
const TRAIL = 10;
/** Rows of a buffer that are not too many below each other. */
const TALL = 256;
/** What an element is to the cache: what its cell is painted for. */
const [EMPTY, CAME, INSIDE, LEFT, UNPAINTED] = [0, 1, 2, 3, 255];

/**
 * Four dimensions as rows and columns of tiles. Three that would be a high column are so, too: in as
 * many columns as make it about square. A high matrix is in strips of its rows, side by side as the
 * columns of a newspaper. Of other shapes null.
 * @param {number[]} dims
 */
function tilesOf(dims) {
  if (dims.length === 4) return dims;
  const high = dims.length === 2 && dims[0] > TALL;
  const [count, tall, wide] = high ? [dims[0], 1, dims[1]] : dims;
  if (!high && (dims.length !== 3 || count * tall <= TALL)) return null;
  let across = 1;
  for (let n = 2; n * n * wide <= count * tall; n++) if (count % n === 0) across = n;
  if (!high) return [count / across, across, tall, wide];
  // the last strip may be shorter, where no number divides the rows
  if (across === 1) across = Math.max(1, Math.round(Math.sqrt(count / wide)));
  const rows = Math.ceil(count / across);
  return [1, Math.ceil(count / rows), rows, wide];
}

/**
 * Where the elements of a buffer of some shape are drawn: { rows, columns, count, tall, wide,
 * row(e), column(e) }. A list is broken into rows. Four dimensions are a matrix of tiles, as a
 * layout in blocks has them; of other shapes the last dimension goes across and the rest down. `tall`
 * and `wide` are the size of a tile (or of what the last two dimensions make), `full` is how many of the
 * first rows have an element in each column.
 * @param {number[]} dims
 */
export function gridOf(dims) {
  const count = dims.reduce((a, b) => a * b, 1);
  /**
   * @param {number} rows
   * @param {number} columns
   * @param {number} tall
   * @param {number} wide
   * @param {(element: number) => number} row
   * @param {(element: number) => number} column
   */
  const grid = (rows, columns, tall, wide, row, column) => ({
    rows,
    columns,
    count,
    tall,
    wide,
    row,
    column,
    // the last element ends the last row that is full, or stands in the first that is not
    full: count ? row(count - 1) + (column(count - 1) === columns - 1 ? 1 : 0) : 0,
  });
  if (dims.length < 2) {
    let columns =
      count > 64 ? (count % 64 === 0 ? 64 : Math.ceil(Math.sqrt(count))) : Math.max(1, count);
    // a long list is about as high as wide
    while (count > 2 * columns * columns && count % (2 * columns) === 0) columns *= 2;
    const rows = Math.ceil(count / columns);
    return grid(
      rows,
      columns,
      rows,
      columns,
      (e) => Math.floor(e / columns),
      (e) => e % columns,
    );
  }
  const tiles = tilesOf(dims);
  if (tiles) {
    const [down, across, tall, wide] = tiles;
    const tile = tall * wide;
    return grid(
      down * tall,
      across * wide,
      tall,
      wide,
      (e) => Math.floor(e / (tile * across)) * tall + (Math.floor(e / wide) % tall),
      (e) => (Math.floor(e / tile) % across) * wide + (e % wide),
    );
  }
  const columns = dims[dims.length - 1];
  return grid(
    count / columns,
    columns,
    dims[dims.length - 2],
    columns,
    (e) => Math.floor(e / columns),
    (e) => e % columns,
  );
}

export class BufferGrid {
  #buffer;
  #canvas;
  #columnOf;
  #grid;
  #number;
  #painted;
  #rowOf;
  #said;
  #tooLarge;
  #trace;

  /** @type {Colours | null} */
  #colours;
  /** The cells as they were painted last; of a frame only those that changed are painted again. */
  #ground = document.createElement("canvas");
  /** @type {Int32Array} */
  #first = later();
  /** @type {number} */
  #cell = later();
  /** @type {number} */
  #scale = later();

  /**
   * @param {Data.Buffer} buffer
   * @param {number} number
   * @param {Trace} trace
   * @param {(element: number) => void} onPick
   */
  constructor(buffer, number, trace, onPick) {
    this.#buffer = buffer;
    this.#number = number;
    this.#trace = trace;
    this.#grid = gridOf(buffer.shape);
    this.#tooLarge = this.#grid.count > MAX_CELLS;
    this.#canvas = h("canvas", { role: "img" });
    this.#colours = null;
    const kind = buffer.kind === "parameter" ? "" : `, ${buffer.kind}`;
    const { tall, wide } = this.#grid;
    const inStrips = buffer.shape.length === 2 && wide < this.#grid.columns;
    const strips = inStrips ? `, ${t("in strips of {rows} rows", { rows: tall })}` : "";
    this.#said = h("div", { class: "said" });
    this.element = h(
      "figure",
      { class: "buffer" },
      h(
        "figcaption",
        {},
        h("strong", {}, buffer.name),
        ` ${buffer.shape.join(" × ")} ${buffer.dtype}${kind}${strips}`,
      ),
      this.#canvas,
      this.#said,
    );
    if (this.#tooLarge) this.#canvas.replaceWith(h("p", { class: "note" }, t("too large to draw")));
    this.#canvas.addEventListener("click", (event) => {
      const box = this.#canvas.getBoundingClientRect();
      // in a narrow page the picture is drawn smaller than it is
      const cell = (this.#cell * box.width) / (this.#grid.columns * this.#cell + 1);
      const column = Math.floor((event.clientX - box.left) / cell);
      const row = Math.floor((event.clientY - box.top) / cell);
      const element = this.#elementAt(row, column);
      if (element >= 0) onPick(element);
    });
    const count = this.#tooLarge ? 0 : this.#grid.count;
    this.#rowOf = Int32Array.from({ length: count }, (_, e) => this.#grid.row(e));
    this.#columnOf = Int32Array.from({ length: count }, (_, e) => this.#grid.column(e));
    /** What each cell of the ground is painted for. */
    this.#painted = new Uint8Array(count).fill(UNPAINTED);
    this.#firstUse();
  }

  /**
   * The element whose cell is at a row and a column; -1 where there is none.
   * @param {number} row
   * @param {number} column
   */
  #elementAt(row, column) {
    return this.#rowOf.findIndex((r, e) => r === row && this.#columnOf[e] === column);
  }

  /** When each element is first used: before that its cell is empty. */
  #firstUse() {
    const { count } = this.#grid;
    this.#first = new Int32Array(this.#tooLarge ? 0 : count).fill(-1);
    if (this.#tooLarge) return;
    for (let i = 0; i < this.#trace.length; i++) {
      const site = this.#trace.data.sites[this.#trace.data.site[i]];
      if (site.buffer !== this.#number) continue;
      const start = this.#trace.data.element[i];
      const end = start + Math.max(1, site.bytes / this.#buffer.itemsize);
      for (let e = start; e < end; e++) if (this.#first[e] < 0) this.#first[e] = i;
    }
  }

  /**
   * @param {number} width
   * @param {number} buffers
   */
  layout(width, buffers) {
    if (this.#tooLarge) return;
    const share = Math.max(160, Math.min(width, Math.floor(width / Math.min(buffers, 4)) - 22));
    const { columns, rows } = this.#grid;
    const cell = Math.max(
      SMALLEST,
      Math.min(LARGEST, Math.floor(share / columns), Math.floor(440 / rows)),
    );
    const scale = window.devicePixelRatio || 1;
    if (cell === this.#cell && scale === this.#scale) return;
    this.#cell = cell;
    this.#scale = scale;
    const [w, tall] = [columns * cell + 1, rows * cell + 1];
    for (const canvas of [this.#canvas, this.#ground]) {
      canvas.width = Math.round(w * scale);
      canvas.height = Math.round(tall * scale);
    }
    this.#canvas.style.width = `${w}px`;
    // small cells have no lines between them, nor at their left and top
    this.#canvas.classList.toggle("fine", cell < LINED);
    this.#painted.fill(UNPAINTED);
  }

  /** Colours changed: everything is painted again. */
  recolour() {
    this.#colours = null;
    this.#painted.fill(UNPAINTED);
  }

  #palette() {
    if (!this.#colours) {
      const style = getComputedStyle(this.element);
      /** @param {string} name */
      const read = (name) => style.getPropertyValue(name).trim();
      this.#colours = {
        edge: read("--edge"),
        bg: read("--bg"),
        fg: read("--fg"),
        soft: read("--cell-left"),
        resident: read("--cell-resident"),
        came: read("--cell-came"),
        mark: read("--cell-mark"),
        levels: ["--at-0", "--at-1", "--at-2", "--at-m"].map(read),
        ink: read("--at-ink"),
      };
    }
    return this.#colours;
  }

  /**
   * What each element is to the cache at a moment, painted where that changed. How many were used
   * so far, and how many of these are in the first level.
   * @param {number} position
   * @param {Result} result
   * @param {Set<number>} resident
   */
  #paint(position, result, resident) {
    const colours = this.#palette();
    const fills = [colours.bg, colours.came, colours.resident, colours.soft];
    const [cell, painted, first, rowOf, columnOf] = [
      this.#cell,
      this.#painted,
      this.#first,
      this.#rowOf,
      this.#columnOf,
    ];
    const { columns, rows, count, full } = this.#grid;
    const { itemsize, base } = this.#buffer;
    const context = sure(this.#ground.getContext("2d"));
    context.setTransform(this.#scale, 0, 0, this.#scale, 0, 0);
    context.strokeStyle = colours.mark;
    context.lineWidth = 1;
    const gap = cell >= LINED ? 1 : 0;
    if (painted[0] === UNPAINTED) {
      context.fillStyle = colours.edge;
      context.fillRect(0, 0, columns * cell + 1, rows * cell + 1);
      // Cells in rows that are full: one for all, and the lines between them.
      context.fillStyle = colours.bg;
      if (full) context.fillRect(gap, gap, columns * cell - gap, full * cell - gap);
      context.fillStyle = colours.edge;
      for (let x = 1; gap && x < columns; x++) context.fillRect(x * cell, 0, 1, full * cell);
      for (let y = 1; gap && y < full; y++) context.fillRect(0, y * cell, columns * cell, 1);
      for (let e = 0; e < count; e++) if (rowOf[e] < full) painted[e] = EMPTY;
    }
    let [used, held, at, came, fill] = [0, 0, -1, false, ""];
    /** @param {number} e */
    const kindOf = (e) => {
      const line = Math.floor((base + e * itemsize) / result.line);
      // A line comes whole: its other elements are in the cache before anything asks for them.
      if (line !== at) [at, came] = [line, resident.has(line)];
      const seen = first[e] >= 0 && first[e] <= position;
      return came ? (seen ? INSIDE : CAME) : seen ? LEFT : EMPTY;
    };
    for (let e = 0; e < count; e++) {
      const kind = kindOf(e);
      if (kind === INSIDE || kind === LEFT) used += 1;
      if (kind === INSIDE) held += 1;
      if (kind === painted[e]) continue;
      painted[e] = kind;
      if (fills[kind] !== fill) context.fillStyle = fill = fills[kind];
      const x = columnOf[e] * cell;
      const y = rowOf[e] * cell;
      context.fillRect(x + gap, y + gap, cell - gap, cell - gap);
      // What has left the cache is crossed, so that it can be told without its colour.
      if (kind === LEFT && cell >= 6) {
        context.beginPath();
        context.moveTo(x + 2, y + cell - 1);
        context.lineTo(x + cell - 1, y + 2);
        context.stroke();
      }
    }
    return { used, held };
  }

  /**
   * @param {number} position
   * @param {Result} result
   * @param {Set<number>} resident
   */
  draw(position, result, resident) {
    if (this.#tooLarge || !this.#cell) return;
    const { used, held } = this.#paint(position, result, resident);
    const context = sure(this.#canvas.getContext("2d"));
    const colours = this.#palette();
    const { columns, count, rows, tall, wide } = this.#grid;
    const cell = this.#cell;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.#ground, 0, 0);
    context.setTransform(this.#scale, 0, 0, this.#scale, 0, 0);
    // Tiles, and what lies behind each other, are set apart.
    context.fillStyle = colours.mark;
    for (let y = tall; y < rows; y += tall) context.fillRect(0, y * cell, columns * cell, 1);
    for (let x = wide; x < columns; x += wide) context.fillRect(x * cell, 0, 1, rows * cell);
    this.#drawTrail(context, position, result, colours);
    const inIt = result.names[0];
    this.#canvas.setAttribute(
      "aria-label",
      t("{name}: {used} of {count} elements used so far, {held} of them in {level}", {
        name: this.#buffer.name,
        used,
        count,
        held,
        level: inIt,
      }),
    );
    this.#said.textContent = t("{used} of {count} used, {held} in {level}", {
      used,
      count,
      held,
      level: inIt,
    });
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} position
   * @param {Result} result
   * @param {Colours} colours
   */
  #drawTrail(context, position, result, colours) {
    const cell = this.#cell;
    for (let back = Math.min(TRAIL, position); back >= 0; back--) {
      const access = this.#trace.at(position - back);
      if (access.site.buffer !== this.#number) continue;
      const level = result.found[position - back];
      const memory = level === result.names.length - 1;
      const colour = colours.levels[memory ? 3 : Math.min(level, 2)];
      if (back === 0) this.#outlineLine(context, access, result, colours);
      for (let e = access.element; e < access.element + access.lanes; e++) {
        const x = this.#columnOf[e] * cell;
        const y = this.#rowOf[e] * cell;
        if (back > 0) {
          context.globalAlpha = 0.75 - (0.6 * back) / TRAIL;
          context.fillStyle = colour;
          context.beginPath();
          context.arc(x + (cell + 1) / 2, y + (cell + 1) / 2, Math.max(1, cell / 5), 0, 7);
          context.fill();
          context.globalAlpha = 1;
          continue;
        }
        context.fillStyle = colour;
        context.fillRect(x, y, cell + 1, cell + 1);
        // A write has a frame inside its cell.
        if (access.site.write && cell >= 6) {
          context.strokeStyle = colours.ink;
          context.lineWidth = 1.5;
          context.strokeRect(x + 2, y + 2, cell - 3, cell - 3);
        }
        if (cell >= 12) {
          context.fillStyle = colours.ink;
          context.font = `${Math.floor(cell * 0.6)}px sans-serif`;
          context.textAlign = "center";
          context.textBaseline = "middle";
          const sign = LEVEL_SIGNS[memory ? LEVEL_SIGNS.length - 1 : level];
          context.fillText(sign, x + (cell + 1) / 2, y + (cell + 1) / 2 + 1);
        }
      }
    }
  }

  /**
   * A dashed frame around the elements of the access's line.
   * @param {CanvasRenderingContext2D} context
   * @param {Access} access
   * @param {Result} result
   * @param {Colours} colours
   */
  #outlineLine(context, access, result, colours) {
    const cell = this.#cell;
    const { count } = this.#grid;
    const { itemsize, base } = this.#buffer;
    const line = Math.floor(access.address / result.line);
    const low = Math.max(0, Math.ceil((line * result.line - base) / itemsize));
    const high = Math.min(count, Math.ceil(((line + 1) * result.line - base) / itemsize));
    context.strokeStyle = colours.fg;
    context.lineWidth = 1.5;
    context.setLineDash([3, 2]);
    for (let e = low; e < high;) {
      let end = e + 1;
      const row = this.#rowOf[e];
      while (
        end < high &&
        this.#rowOf[end] === row &&
        this.#columnOf[end] === this.#columnOf[end - 1] + 1
      )
        end++;
      context.strokeRect(this.#columnOf[e] * cell + 0.5, row * cell + 0.5, (end - e) * cell, cell);
      e = end;
    }
    context.setLineDash([]);
  }
}
