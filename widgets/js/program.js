// Two programs side by side: aligned, coloured, changes marked, long unchanged runs folded.

import { escapeHTML, h, OWN_KEYS } from "./dom.js";
import { align, changedWords, folds } from "./diff.js";
import { tokens } from "./highlight.js";

const SIGNS = { new: "+", removed: "−", changed: "~", moved: "↕" };
const WHOLE = 60; // rows up to which a program is never folded
const SPOKEN = { new: "new: ", removed: "removed: ", changed: "changed: ", moved: "moved: " };

const span = ([kind, text], marked) => {
  const inner = escapeHTML(text);
  const coloured = kind ? `<span class="t-${kind}">${inner}</span>` : inner;
  return marked ? `<b>${coloured}</b>` : coloured;
};

/** Programs of one recording, ready to be drawn. What is computed once is kept. */
export class Programs {
  constructor(recording) {
    this.lines = recording.lines.map(([text, keys]) => {
      const indent = text.length - text.trimStart().length;
      return { text: text.slice(indent), indent, keys: keys || [] };
    });
    this.programs = recording.programs.map((p) => p.lines.map((i) => this.lines[i]));
    this.tokens = new Map();
    this.aligned = new Map();
  }

  /** Aligned rows of two programs, by their numbers. */
  rows(before, after) {
    const name = `${before}:${after}`;
    if (!this.aligned.has(name)) {
      this.aligned.set(name, align(this.programs[before], this.programs[after]));
    }
    return this.aligned.get(name);
  }

  tokensOf(line) {
    if (!this.tokens.has(line.text)) this.tokens.set(line.text, tokens(line.text));
    return this.tokens.get(line.text);
  }

  code(line, other) {
    const own = this.tokensOf(line);
    let html = " ".repeat(line.indent);
    if (!other) return html + own.map((token) => span(token, false)).join("");
    const [marks] = changedWords(own.map((t) => t[1]), this.tokensOf(other).map((t) => t[1]));
    own.forEach((token, i) => (html += span(token, marks[i] && token[1].trim() !== "")));
    return html;
  }

  line(line, mark, other, number) {
    if (!line) return '<div class="l fill"></div>';
    const sign = mark ? `<i aria-hidden="true">${SIGNS[mark]}</i><s>${SPOKEN[mark]}</s>` : "<i></i>";
    return (
      `<div class="l ${mark}" data-n="${number}" data-k=" ${line.keys.join(" ")} ">` +
      `${sign}<code>${this.code(line, mark === "changed" ? other : null)}</code></div>`
    );
  }

  /** HTML of both panes. `open`: the folds, by their first row, that the reader has opened. */
  panes(before, after, open) {
    const rows = this.rows(before, after);
    const [a, b] = [this.programs[before], this.programs[after]];
    // What fits into the pane anyhow is better seen whole.
    const folded = new Map(rows.length > WHOLE ? folds(rows) : []);
    let left = "";
    let right = "";
    for (let i = 0; i < rows.length; i++) {
      const last = folded.get(i);
      if (last !== undefined && !open.has(i) && !open.has("all")) {
        const label = `${last - i + 1} unchanged lines`;
        left += `<button type="button" class="fold" data-fold="${i}" ${OWN_KEYS}="true">⋯ ${label}</button>`;
        right += `<div class="fold" data-fold="${i}" aria-hidden="true">⋯</div>`;
        i = last;
        continue;
      }
      const row = rows[i];
      const [p, q] = [a[row.left], b[row.right]];
      left += this.line(p, row.leftMark, q, row.left);
      right += this.line(q, row.rightMark, p, row.right);
    }
    return [left, right];
  }

  /** How many lines carry each mark: { new: 3, moved: 1, ... }. */
  counts(before, after) {
    const count = { new: 0, removed: 0, changed: 0, moved: 0 };
    for (const { leftMark, rightMark } of this.rows(before, after)) {
      if (leftMark === "removed") count.removed++;
      if (rightMark) count[rightMark]++;
    }
    return count;
  }
}

/** The element with both panes, kept scrolled together; `onselect(side, line)` on a click. */
export class SideBySide {
  constructor(programs, onselect) {
    this.programs = programs;
    this.open = new Set();
    this.shown = null;
    this.left = this.pane("before");
    this.right = this.pane("after");
    this.element = h(
      "div", { class: "panes" },
      h("div", { class: "half" }, h("div", { class: "cap" }, "Before"), this.left),
      h("div", { class: "half" }, (this.rightCap = h("div", { class: "cap" }, "After")), this.right)
    );
    for (const [one, other] of [[this.left, this.right], [this.right, this.left]]) {
      one.addEventListener("scroll", () => {
        if (!this.refusal) other.scrollTop = one.scrollTop;
      });
    }
    this.element.addEventListener("click", (event) => {
      const fold = event.target.closest("[data-fold]");
      if (fold) {
        this.open.add(Number(fold.dataset.fold));
        this.draw();
        this.left.focus();
        return;
      }
      const line = event.target.closest(".l[data-n]");
      if (line && String(getSelection()) === "") {
        onselect(this.left.contains(line) ? "before" : "after", Number(line.dataset.n));
      }
    });
    this.element.addEventListener("mouseover", (event) => this.relate(event.target.closest(".l")));
    this.element.addEventListener("mouseleave", () => this.relate(null));
  }

  pane(side) {
    const label = `Program ${side} the step`;
    return h("div", { class: `pane ${side}`, tabindex: "0", role: "region", "aria-label": label });
  }

  /**
   * Show two programs; the first change comes into sight, nothing else moves. Where the step was
   * refused, its error { rule, message } stands in place of the second program.
   */
  show(before, after, refusal) {
    this.rightCap.textContent = refusal ? "Refused: the program is as it was" : "After";
    this.refusal = refusal;
    this.open = new Set(this.open.has("all") ? ["all"] : []);
    this.shown = [before, after];
    this.draw();
    const telling = ".l.fault, .l.new, .l.changed, .l.moved, .l.removed";
    const changed = this.element.querySelector(telling);
    if (!changed) return;
    const top = changed.offsetTop - changed.parentElement.offsetTop;
    const pane = changed.parentElement;
    if (top < pane.scrollTop || top > pane.scrollTop + pane.clientHeight - 80) {
      this.left.scrollTop = this.right.scrollTop = Math.max(0, top - 60);
    }
  }

  draw() {
    const [left, right] = this.programs.panes(...this.shown, this.open);
    const top = this.left.scrollTop;
    this.left.innerHTML = left;
    this.right.classList.toggle("refusal", Boolean(this.refusal));
    if (this.refusal) {
      const { rule, message } = this.refusal;
      const why = h("strong", {}, `✕ Refused${rule ? `: ${rule}` : ""}`);
      this.right.replaceChildren(why, h("pre", {}, message));
      for (const line of this.linesOf(this.refusal.keys || [], this.left)) {
        line.classList.add("fault");
        line.querySelector("i").textContent = "✕";
      }
      return;
    }
    this.right.innerHTML = right;
    this.left.scrollTop = this.right.scrollTop = top;
  }

  unfold(all) {
    this.open = new Set(all ? ["all"] : []);
    this.draw();
  }

  /** Light up the lines, on both sides, that stand for the same thing as this one. */
  relate(line) {
    for (const old of this.element.querySelectorAll(".rel")) old.classList.remove("rel");
    const keys = line && line.dataset.k ? line.dataset.k.trim() : "";
    if (!keys) return;
    for (const found of this.linesOf(keys.split(" "), this.element)) found.classList.add("rel");
  }

  /** The lines within an element that carry one of some keys. */
  linesOf(keys, within) {
    if (!keys.length) return [];
    return within.querySelectorAll(keys.map((key) => `.l[data-k*=" ${key} "]`).join(","));
  }
}
