// Long lists of lines and large drawings, of which only what is near the eye is in the page.
//
// The lines stand in chunks of known height. A chunk is filled when it comes near the visible part
// of its pane, and stays filled; short lists are filled at once, so that all of them can be found.
// Where a pane is scrolled to is remembered from its events: asking it would make the browser lay
// out the page several times in one step.

import { later, sure } from "./dom.js";

/** @typedef {{ from: number, to: number, y: number, tall: number, filled: boolean, element?: HTMLElement }} Chunk */

const CHUNK = 40; // rows
const WHOLE_UP_TO = 240; // rows up to which everything is filled at once
const NEAR = 400; // pixels beyond the visible part that are filled too
const TALL = 400; // height of a pane in pixels, as in the style, until the page has said it
export const ROW_HEIGHT = 19;

/**
 * Tell of the height of a pane when it is known and whenever it changes.
 * @param {HTMLElement} pane
 * @param {(tall: number) => void} changed
 */
function watchHeight(pane, changed) {
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.height) changed(contentRect.height);
  }).observe(pane);
}

export class LazyRows {
  /** @type {Chunk[]} */
  chunks;
  /** @type {(row: number) => string} */
  draw = later();
  /** @type {(row: number) => number} */
  height = later();

  /**
   * `onfill()` is called after rows have come into the pane later than `show`; lists of up to `whole`
   * rows are filled at once.
   * @param {HTMLElement} pane
   * @param {() => void} onfill
   */
  constructor(pane, onfill, whole = WHOLE_UP_TO) {
    this.pane = pane;
    this.wholeUpTo = whole;
    this.onfill = onfill;
    this.chunks = [];
    this.top = 0;
    this.tall = TALL;
    pane.addEventListener("scroll", () => {
      this.top = pane.scrollTop;
      if (this.fill()) this.onfill?.();
    });
    watchHeight(pane, (tall) => {
      this.tall = tall;
      if (this.fill()) this.onfill?.();
    });
  }

  /** Whether lines are wrapped: then rows are as high as they are, and all of them are filled. */
  get wrapped() {
    return Boolean(this.pane.closest(".mlc.wrap"));
  }

  /**
   * Scroll the pane.
   * @param {number} top
   */
  scroll(top) {
    if (top === this.top) return;
    this.pane.scrollTop = this.top = top;
  }

  /**
   * Show rows in place of what the pane had. `draw(i)` gives the HTML of a row, `height(i)` its
   * height in pixels; `top` is where to scroll to.
   * @param {number} count
   * @param {(row: number) => string} draw
   * @param {{ height?: (row: number) => number, top?: number }} [options]
   */
  show(count, draw, { height = () => ROW_HEIGHT, top = this.top } = {}) {
    this.draw = draw;
    this.chunks = [];
    let html = "";
    let y = 0;
    for (let from = 0; from < count; from += CHUNK) {
      const to = Math.min(count, from + CHUNK);
      let tall = 0;
      for (let i = from; i < to; i++) tall += height(i);
      this.chunks.push({ from, to, y, tall, filled: false });
      html += `<div class="chunk" style="height:${tall}px"></div>`;
      y += tall;
    }
    this.pane.innerHTML = html;
    this.chunks.forEach((chunk, i) => {
      chunk.element = /** @type {HTMLElement} */ (this.pane.children[i]);
    });
    this.height = height;
    if (this.wrapped) {
      for (const chunk of this.chunks) {
        this.write(chunk);
        sure(chunk.element).style.height = "";
      }
    } else if (count <= this.wholeUpTo) this.chunks.forEach((chunk) => this.write(chunk));
    else this.fill(top);
    this.scroll(this.wrapped ? top : Math.max(0, Math.min(top, y - this.tall + 8)));
  }

  /** @param {Chunk} chunk */
  write(chunk) {
    if (chunk.filled) return false;
    chunk.filled = true;
    let html = "";
    for (let i = chunk.from; i < chunk.to; i++) html += this.draw(i);
    sure(chunk.element).innerHTML = html;
    return true;
  }

  /**
   * Fill what is near the visible part; whether there was anything to fill.
   * @param {number} [top]
   */
  fill(top = this.top) {
    const end = top + this.tall + NEAR;
    let any = false;
    for (const chunk of this.chunks) {
      if (chunk.y < end && chunk.y + chunk.tall > top - NEAR) any = this.write(chunk) || any;
    }
    return any;
  }

  /** Fill all of it, for a picture. */
  whole() {
    this.chunks.forEach((chunk) => this.write(chunk));
  }

  /**
   * Where a row begins, in pixels from the top; its chunk is filled.
   * @param {number} row
   */
  reveal(row) {
    const chunk = this.chunks.find((c) => row >= c.from && row < c.to);
    if (!chunk) return 0;
    this.write(chunk);
    if (this.wrapped) {
      const { pane } = this;
      const at = sure(chunk.element).children[row - chunk.from].getBoundingClientRect().top;
      return at - pane.getBoundingClientRect().top - pane.clientTop + pane.scrollTop;
    }
    let { y } = chunk;
    for (let i = chunk.from; i < row; i++) y += this.height(i);
    return y;
  }
}

/** A drawing of many boxes, as an SVG whose boxes come into the page when they come near. */
export class LazyDrawing {
  /** @type {(Data.Drawing["items"][0] & { shown: boolean })[]} */
  items;
  /** @type {SVGElement | null} */
  svg = later();

  /**
   * @param {HTMLElement} pane
   * @param {() => void} onfill
   */
  constructor(pane, onfill) {
    this.pane = pane;
    this.onfill = onfill;
    this.items = [];
    this.tall = TALL;
    pane.addEventListener("scroll", () => {
      if (this.svg && this.fill(pane.scrollTop)) this.onfill?.();
    });
    watchHeight(pane, (tall) => {
      this.tall = tall;
      if (this.svg && this.fill(pane.scrollTop)) this.onfill?.();
    });
  }

  /**
   * Show { width, height, label, items }; an item is { y, h, html }, one that lies within another
   * stands after it. `top` is where the pane is scrolled to.
   * @param {Data.Drawing} drawing
   * @param {number} top
   */
  show({ width, height, label, items }, top) {
    this.pane.innerHTML =
      `<svg class="nest" viewBox="0 0 ${width} ${height}" width="${width}" ` +
      `height="${height}" role="group" aria-label="${label}"></svg>`;
    this.svg = this.pane.querySelector("svg");
    this.items = items.map((item) => ({ ...item, shown: false }));
    this.fill(top);
  }

  /** Something else stands in the pane now. */
  clear() {
    this.svg = null;
  }

  /**
   * Draw what is near the visible part; whether there was anything to draw.
   * @param {number} top
   * @param {number} [end]
   */
  fill(top, end = top + this.tall + NEAR) {
    let html = "";
    for (const item of this.items) {
      if (item.shown || item.y > end || item.y + item.h < top - NEAR) continue;
      item.shown = true;
      html += item.html;
    }
    if (html) this.svg?.insertAdjacentHTML("beforeend", html);
    return Boolean(html);
  }

  /** Draw all of it, for a picture. */
  whole() {
    if (this.svg) this.fill(0, Infinity);
  }
}
