// Long lists of lines, of which only what is near the eye is in the page.
//
// The lines stand in chunks of known height. A chunk is filled when it comes near the visible part
// of its pane, and stays filled; short lists are filled at once, so that all of them can be found.

const CHUNK = 80; // rows
const WHOLE_UP_TO = 240; // rows up to which everything is filled at once
const NEAR = 500; // pixels beyond the visible part that are filled too
export const ROW_HEIGHT = 19;

export class LazyRows {
  /** `onfill()` is called after rows have come into the pane later than `show`. */
  constructor(pane, onfill) {
    this.pane = pane;
    this.onfill = onfill;
    this.chunks = [];
    pane.addEventListener("scroll", () => {
      if (this.fill()) this.onfill?.();
    });
  }

  /**
   * Show rows in place of what the pane had. `draw(i)` gives the HTML of a row, `height(i)` its
   * height in pixels; `top` is where to scroll to.
   */
  show(count, draw, { height = () => ROW_HEIGHT, top = this.pane.scrollTop } = {}) {
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
    this.chunks.forEach((chunk, i) => (chunk.element = this.pane.children[i]));
    this.height = height;
    this.pane.scrollTop = top;
    if (count <= WHOLE_UP_TO) this.chunks.forEach((chunk) => this.write(chunk));
    else this.fill(top);
  }

  write(chunk) {
    if (chunk.filled) return false;
    chunk.filled = true;
    let html = "";
    for (let i = chunk.from; i < chunk.to; i++) html += this.draw(i);
    chunk.element.innerHTML = html;
    return true;
  }

  /** Fill what is near the visible part; whether there was anything to fill. */
  fill(top = this.pane.scrollTop) {
    const end = top + (this.pane.clientHeight || 400) + NEAR;
    let any = false;
    for (const chunk of this.chunks) {
      if (chunk.y < end && chunk.y + chunk.tall > top - NEAR) any = this.write(chunk) || any;
    }
    return any;
  }

  /** Where a row begins, in pixels from the top; its chunk is filled. */
  reveal(row) {
    const chunk = this.chunks.find((c) => row >= c.from && row < c.to);
    if (!chunk) return 0;
    this.write(chunk);
    let { y } = chunk;
    for (let i = chunk.from; i < row; i++) y += this.height(i);
    return y;
  }
}
