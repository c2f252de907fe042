// Two programs side by side: aligned, coloured, changes marked, long unchanged runs folded.

import { closest, escapeHTML, h, later, OWN_KEYS, sure } from "./dom.js";
import { changedWords, folds, numbersOf, rows } from "./diff.js";
import { tokens } from "./highlight.js";
import { LazyDrawing, LazyRows, ROW_HEIGHT } from "./rows.js";
import { t } from "./words.js";

/** @import { Lineage } from "./lineage.js" */

/** @typedef {(side: Data.Side, line: number, key: number | null) => void} Pick */
/** @typedef {(programs: Programs, before: number, after: number) => Data.Drawing[]} Picture */
/** @typedef {{ side: Data.Side, key: number | null, item?: Element }} Pointed */
/** @typedef {Data.Row & { fold?: number, count?: number }} Shown a row, or unchanged ones folded */

/** @type {Record<string, string>} */
const SIGNS = { new: "+", removed: "−", changed: "~", moved: "↕" };
/** @type {Data.Side[]} */
export const SIDES = ["before", "after"];
const FOLD_HEIGHT = 24; // as in the style
const WHOLE = 60; // rows up to which a program is never folded

/**
 * @param {[string, string]} token
 * @param {boolean} marked
 */
const span = ([kind, text], marked) => {
  const inner = escapeHTML(text);
  const coloured = kind ? `<span class="t-${kind}">${inner}</span>` : inner;
  return marked ? `<b>${coloured}</b>` : coloured;
};

/**
 * The keys that an element of the page stands for.
 * @param {Element} item
 */
const keysOf = (item) => (item.dataset.k || "").trim().split(" ").filter(Boolean).map(Number);

/** Programs of one recording, ready to be drawn. What is computed once is kept. */
export class Programs {
  /** @type {Map<string, [string, string][]>} */
  tokens;
  /** @type {Map<string, Data.Row[]>} */
  aligned;

  /** @param {Data.Texts} recording */
  constructor(recording) {
    this.lines = recording.lines.map(([text, keys], n) => {
      const indent = text.length - text.trimStart().length;
      const parts = recording.parts?.[n] || [];
      return { text: text.slice(indent), indent, keys: keys || [], parts };
    });
    this.slots = recording.slots || [];
    this.programs = recording.programs.map((p) => p.lines.map((i) => this.lines[i]));
    this.tokens = new Map();
    this.aligned = new Map();
  }

  /**
   * Aligned rows of two programs, by their numbers.
   * @param {number} before
   * @param {number} after
   * @returns {Data.Row[]}
   */
  rows(before, after) {
    const name = `${before}:${after}`;
    if (!this.aligned.has(name)) {
      const slots = [before, after].map((n) => numbersOf(this.slots[n]));
      const pair = /** @type {[number[], number[]]} */ (slots);
      this.aligned.set(name, rows(this.programs[before], this.programs[after], pair));
    }
    return sure(this.aligned.get(name));
  }

  /**
   * @param {Data.Line} line
   * @returns {[string, string][]}
   */
  tokensOf(line) {
    if (!this.tokens.has(line.text)) this.tokens.set(line.text, tokens(line.text));
    return sure(this.tokens.get(line.text));
  }

  /**
   * @param {Data.Line} line
   * @param {Data.Line | null | undefined} other
   */
  code(line, other) {
    const own = this.tokensOf(line);
    let html = " ".repeat(line.indent);
    if (!other) return html + own.map((token) => span(token, false)).join("");
    const [marks] = changedWords(
      own.map((t) => t[1]),
      this.tokensOf(other).map((t) => t[1]),
    );
    own.forEach((token, i) => (html += span(token, marks[i] && token[1].trim() !== "")));
    return html;
  }

  /**
   * @param {Data.Line | undefined} line
   * @param {Data.Mark} mark
   * @param {Data.Line | null | undefined} other
   * @param {number} number
   */
  line(line, mark, other, number) {
    if (!line) return '<div class="l fill"></div>';
    const sign = mark
      ? `<i aria-hidden="true">${SIGNS[mark]}</i><s>${t("{mark}: ", { mark: t(mark) })}</s>`
      : "<i></i>";
    return (
      `<div class="l ${mark}" data-n="${number}" data-k=" ${line.keys.join(" ")} " style="--in:${line.indent}">` +
      `${sign}<code>${this.code(line, mark === "changed" ? other : null)}</code></div>`
    );
  }

  /**
   * The rows of both panes as they are shown: a row of `rows`, or { fold, count } in the place of
   * unchanged ones. `open`: the folds, by their first row, that the reader has opened.
   * @param {number} before
   * @param {number} after
   * @param {Set<number | string>} open
   * @returns {Shown[]}
   */
  shownRows(before, after, open) {
    const rows = this.rows(before, after);
    // What fits into the pane anyhow is better seen whole.
    const folded = new Map(rows.length > WHOLE && !open.has("all") ? folds(rows) : []);
    /** @type {Shown[]} */
    const shown = [];
    for (let i = 0; i < rows.length; i++) {
      const last = folded.get(i);
      if (last !== undefined && !open.has(i)) {
        shown.push({ ...rows[i], fold: i, count: last - i + 1 });
        i = last;
      } else shown.push(rows[i]);
    }
    return shown;
  }

  /**
   * HTML of one shown row on the side "before" or "after".
   * @param {Shown} row
   * @param {number} before
   * @param {number} after
   * @param {Data.Side} side
   */
  row(row, before, after, side) {
    if (row.fold !== undefined) {
      return side === "before"
        ? `<button type="button" class="fold" data-fold="${row.fold}" ${OWN_KEYS}="true">⋯ ${t("{count} unchanged lines", { count: row.count })}</button>`
        : `<div class="fold" data-fold="${row.fold}" aria-hidden="true">⋯</div>`;
    }
    const [p, q] = [this.programs[before][row.left], this.programs[after][row.right]];
    return side === "before"
      ? this.line(p, row.leftMark, q, row.left)
      : this.line(q, row.rightMark, p, row.right);
  }

  /**
   * How many lines carry each mark: { new: 3, moved: 1, ... }.
   * @param {number} before
   * @param {number} after
   */
  counts(before, after) {
    /** @type {Record<string, number>} */
    const count = { new: 0, removed: 0, changed: 0, moved: 0 };
    for (const { leftMark, rightMark } of this.rows(before, after)) {
      if (leftMark === "removed") count.removed++;
      if (rightMark) count[rightMark]++;
    }
    return count;
  }
}

/**
 * Marks by line of the program after (or before): what the picture of a program is tinted with.
 * @param {Programs} programs
 * @param {number} before
 * @param {number} after
 * @param {Data.Side} side
 * @returns {Map<number, Data.Mark>}
 */
export function marksOf(programs, before, after, side) {
  const marks = new Map();
  for (const row of programs.rows(before, after)) {
    const [n, mark] = side === "before" ? [row.left, row.leftMark] : [row.right, row.rightMark];
    if (n >= 0 && mark) marks.set(n, mark);
  }
  return marks;
}

/**
 * Draw one program into an element, all its lines unmarked or with `marks` (line -> mark). Lines
 * are `.l[data-n]` with their keys in `data-k`, as in the two panes.
 * @param {HTMLElement} element
 * @param {Programs} programs
 * @param {number} number
 * @param {Map<number, Data.Mark>} [marks]
 */
export function drawProgram(element, programs, number, marks = new Map()) {
  element.innerHTML = programs.programs[number]
    .map((line, n) => programs.line(line, marks.get(n) || "", null, n))
    .join("");
}

/**
 * The items within an element that stand for one of some keys: lines, or boxes of a picture.
 * @param {HTMLElement} element
 * @param {Iterable<number>} keys
 */
export function withKeys(element, keys) {
  const selectors = [...keys].map((key) => `[data-k*=" ${key} "]`);
  return selectors.length ? element.querySelectorAll(selectors.join(",")) : [];
}

/**
 * Light up, within an element that shows a program, what stands for some keys: its lines or boxes,
 * and in the text the very names. `lineage` may be null; then only lines light up.
 * @param {HTMLElement} element
 * @param {number} program
 * @param {Set<number>} keys
 * @param {Lineage | null} lineage
 */
export function lightUp(element, program, keys, lineage) {
  for (const item of withKeys(element, keys)) item.classList.add("rel");
  if (!lineage || !keys.size) return;
  const names = new Set();
  for (const key of keys) {
    const [kind] = lineage.key(key);
    const name = lineage.nameIn(program, key);
    if (lineage.traceable(key)) names.add(kind === "block" ? `"${name}"` : name);
  }
  for (const word of element.querySelectorAll(".t-name,.t-string")) {
    if (!names.has(word.textContent)) continue;
    const line = word.closest("[data-n]");
    const key = line && lineage.resolve(program, Number(line.dataset.n), word.textContent);
    if (key !== null && keys.has(key)) word.classList.add("tok");
  }
}

/**
 * Take away what `lightUp` did.
 * @param {HTMLElement} element
 */
export function lightsOut(element) {
  for (const old of element.querySelectorAll(".rel")) old.classList.remove("rel");
  for (const old of element.querySelectorAll(".tok")) old.classList.remove("tok");
}

/**
 * The element with both panes, kept scrolled together. Options: `onselect(side, line, key)` on a
 * click or Enter (line -1: Escape undid the selection), `onpoint(side, line, key)` while something is pointed at (line -1: no more), and
 * `lineage` to tell which name is meant and what it came from. `key` is null where a whole line is
 * meant.
 */
export class SideBySide {
  /** @type {Picture | null} */
  picture;
  /** @type {Set<number | string>} */
  open;
  /** @type {[number, number] | null} */
  shown;
  /** @type {Pointed | null} */
  pinned;
  /** @type {((side: Data.Side, keys: number[]) => Data.Related) | null} */
  relate = later();
  /** @type {Data.Refusal | null | undefined} */
  refusal = later();
  /** @type {Pointed | null} */
  pointed = later();

  /**
   * @param {Programs} programs
   * @param {Pick} onselect
   * @param {{ lineage?: Lineage | null, onpoint?: Pick | null, oncursor?: ((side: Data.Side, line: number, said: string) => void) | null }} [options]
   */
  constructor(programs, onselect, { lineage = null, onpoint = null, oncursor = null } = {}) {
    this.programs = programs;
    this.onselect = onselect;
    this.onpoint = onpoint;
    this.oncursor = oncursor;
    this.lineage = lineage;
    this.picture = null;
    this.step = 0;
    this.open = new Set();
    this.shown = null;
    this.pinned = null;
    this.left = this.pane("before");
    this.right = this.pane("after");
    this.rows = [this.left, this.right].map((pane) => new LazyRows(pane, () => this.light()));
    this.drawings = [this.left, this.right].map(
      (pane) => new LazyDrawing(pane, () => this.light()),
    );
    this.leftCap = h("div", { class: "cap" }, t("Before"));
    this.rightCap = h("div", { class: "cap" }, t("After"));
    this.element = h(
      "div",
      { class: "panes" },
      h("div", { class: "half" }, this.leftCap, this.left),
      h("div", { class: "half" }, this.rightCap, this.right),
    );
    new ResizeObserver(() => this.level()).observe(this.left);
    for (const [one, other] of [
      [this.left, this.right],
      [this.right, this.left],
    ]) {
      one.addEventListener("scroll", () => {
        if (!this.refusal && !this.picture) other.scrollTop = one.scrollTop;
      });
      one.addEventListener("keydown", (event) => this.keydown(event, one));
      one.addEventListener("blur", () => this.cursor(null));
    }
    this.element.addEventListener("click", (event) => {
      const fold = closest(event, "[data-fold]");
      if (fold) {
        this.open.add(Number(fold.dataset.fold));
        this.draw(false);
        this.left.focus();
        return;
      }
      const item = closest(event, "[data-n]");
      if (item && String(getSelection()) === "") this.select(item, this.keyAt(event));
    });
    this.element.addEventListener("mouseover", (event) => {
      const item = closest(event, "[data-n]");
      this.point(item, item && this.keyAt(event));
    });
    this.element.addEventListener("mouseleave", () => this.point(null, null));
  }

  /** @param {Data.Side} side */
  pane(side) {
    const label = side === "before" ? t("Program before the step") : t("Program after the step");
    return h("div", { class: `pane ${side}`, tabindex: "0", role: "region", "aria-label": label });
  }

  /**
   * @param {Element} item
   * @returns {Data.Side}
   */
  sideOf(item) {
    return this.left.contains(item) ? "before" : "after";
  }

  /** @param {Data.Side} side */
  programOf(side) {
    return sure(this.shown)[side === "before" ? 0 : 1];
  }

  /**
   * The key of the name under the pointer, or of the thing that the line heads; null for none.
   * @param {Event} event
   * @returns {number | null}
   */
  keyAt(event) {
    const item = closest(event, "[data-n]");
    if (!item || !this.lineage) return null;
    const word = closest(event, ".t-name,.t-string");
    if (word) {
      const program = this.programOf(this.sideOf(item));
      const key = this.lineage.resolve(program, Number(item.dataset.n), word.textContent);
      if (key !== null) return key;
    }
    const own = keysOf(item);
    return own.length === 1 && this.lineage.traceable(own[0]) ? own[0] : null;
  }

  /**
   * @param {Element} item
   * @param {number | null} key
   */
  select(item, key) {
    for (const old of this.element.querySelectorAll(".sel")) old.classList.remove("sel");
    item.classList.add("sel");
    const side = this.sideOf(item);
    this.pinned = key === null ? null : { side, key };
    this.onselect(side, Number(item.dataset.n), key);
    this.light();
  }

  /** Forget what was selected. */
  unpin() {
    this.pinned = null;
    for (const old of this.element.querySelectorAll(".sel")) old.classList.remove("sel");
    this.light();
  }

  /**
   * The lines up and down the pane are walked with the arrow keys; Enter selects, and goes on to
   * the next name of the line.
   * @param {KeyboardEvent} event
   * @param {HTMLElement} pane
   */
  keydown(event, pane) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (!this.picture) this.rows[pane === this.left ? 0 : 1].fill();
    const items = [...pane.querySelectorAll("[data-n]")];
    if (!items.length) return;
    const at = items.findIndex((item) => item.classList.contains("cur"));
    let to;
    if (event.key === "ArrowDown") to = Math.min(items.length - 1, at + 1);
    else if (event.key === "ArrowUp") to = at < 0 ? items.length - 1 : Math.max(0, at - 1);
    else if (event.key === "Enter" || event.key === " ") {
      if (at < 0) return;
      const side = this.sideOf(items[at]);
      const program = this.programOf(side);
      const line = Number(items[at].dataset.n);
      const own = keysOf(items[at]);
      const { lineage } = this;
      const keys = !lineage
        ? []
        : this.picture
          ? own.filter((k) => lineage.traceable(k))
          : lineage.symbols(program, line);
      const again =
        this.pinned && this.pinned.side === side ? keys.indexOf(this.pinned.key ?? -1) : -1;
      this.select(items[at], keys.length ? keys[(again + 1) % keys.length] : null);
      event.preventDefault();
      return;
    } else if (event.key === "Escape") {
      this.cursor(null);
      this.unpin();
      this.onselect(this.sideOf(items[0]), -1, null);
      return;
    } else return;
    event.preventDefault();
    this.cursor(items[to]);
  }

  /** @param {Element | null} item */
  cursor(item) {
    for (const old of this.element.querySelectorAll(".cur")) old.classList.remove("cur");
    if (!item) return;
    item.classList.add("cur");
    item.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.oncursor?.(
      this.sideOf(item),
      Number(item.dataset.n),
      item.getAttribute("aria-label") || item.textContent.trim(),
    );
  }

  /**
   * Draw with `picture(programs, before, after)` -> [left, right], drawings for `LazyDrawing`; null:
   * as text. Without `draw`, from the next `show` on.
   * @param {Picture | null} picture
   */
  setPicture(picture, draw = true) {
    this.picture = picture;
    this.left.classList.toggle("drawn", Boolean(picture));
    this.right.classList.toggle("drawn", Boolean(picture));
    if (this.shown && draw) this.draw();
  }

  /**
   * Show two programs; the first change comes into sight, nothing else moves. Where the step was
   * refused, its error { rule, message } stands in place of the second program. `captions` stand
   * above the panes (texts or elements), the second null where one pane is enough; `step` is the one whose origins count, unless
   * `relate(side, keys)` -> { before, after } says what belongs together.
   * @param {number} before
   * @param {number} after
   * @param {Data.Refusal | null | undefined} refusal
   * @param {{ captions?: (string | Node | null)[], step?: number, relate?: ((side: Data.Side, keys: number[]) => Data.Related) | null }} [options]
   */
  show(
    before,
    after,
    refusal,
    { captions = [t("Before"), t("After")], step = this.step, relate = null } = {},
  ) {
    this.step = step;
    this.relate = relate;
    this.leftCap.replaceChildren(captions[0] ?? "");
    this.rightCap.replaceChildren(
      refusal ? t("Refused: the program is as it was") : (captions[1] ?? ""),
    );
    this.element.classList.toggle("one", captions[1] === null && !refusal);
    this.refusal = refusal;
    this.open = new Set(this.open.has("all") ? ["all"] : []);
    this.shown = [before, after];
    this.draw();
  }

  /**
   * Where a pane should be scrolled to so that what is `y` pixels down can be seen.
   * @param {number} y
   */
  topFor(y) {
    const { top, tall } = this.rows[0];
    return y < top || y > top + tall - 80 ? Math.max(0, y - 60) : top;
  }

  /** Rows that face each other are as high as the higher of the two, where lines are wrapped. */
  level() {
    if (!this.rows[0].wrapped || this.picture || this.refusal) return;
    const pair = [this.left, this.right].map((pane) => [
      .../** @type {NodeListOf<HTMLElement>} */ (pane.querySelectorAll(".chunk > *")),
    ]);
    for (const row of pair.flat()) row.style.removeProperty("--tall");
    const [left, right] = pair.map((rows) => rows.map((row) => row.offsetHeight));
    left.forEach((height, n) => {
      for (const rows of pair)
        rows[n].style.setProperty("--tall", `${Math.max(height, right[n])}px`);
    });
  }

  /**
   * Bring a line of one side into sight, if it is shown.
   * @param {Data.Side} side
   * @param {number} line
   */
  reveal(side, line) {
    const s = side === "before" ? 0 : 1;
    if (this.picture || (s && this.refusal)) return;
    const name = s ? "right" : "left";
    const at = this.programs
      .shownRows(...sure(this.shown), this.open)
      .findIndex((row) => row[name] === line);
    if (at < 0) return;
    const top = this.topFor(this.rows[s].reveal(at));
    for (const rows of this.rows) rows.scroll(top);
    this.light();
  }

  /**
   * Draw anew; `first`: scroll to the first change.
   * @param {boolean} [first]
   */
  draw(first = true) {
    if (this.picture) this.drawPictures(first);
    else this.drawRows(first);
    this.right.classList.toggle("refusal", Boolean(this.refusal));
    if (this.refusal) {
      const { rule, message } = this.refusal;
      const why = h("strong", {}, rule ? t("✕ Refused: {rule}", { rule }) : t("✕ Refused"));
      this.right.replaceChildren(why, h("pre", {}, message));
    }
    this.light();
  }

  /** @param {boolean} first */
  drawPictures(first) {
    const drawings = sure(this.picture)(this.programs, ...sure(this.shown));
    const faults = new Set(this.refusal ? this.refusal.keys || [] : []);
    const found = drawings.map((drawing) => drawing.items.find((item) => item.mark));
    const fault =
      faults.size &&
      drawings[0].items.find((item) => [...faults].some((key) => item.html.includes(` ${key} `)));
    const told = (fault ? [fault] : found).flatMap((item) => (item ? [item.y] : []));
    const top = first && told.length ? this.topFor(Math.min(...told)) : this.rows[0].top;
    drawings.forEach((drawing, s) => {
      if (s && this.refusal) this.drawings[s].clear();
      else this.drawings[s].show(drawing, top);
      this.rows[s].chunks = [];
      this.rows[s].scroll(top);
    });
  }

  /** @param {boolean} first */
  drawRows(first) {
    for (const drawing of this.drawings) drawing.clear();
    const pair = sure(this.shown);
    const shown = this.programs.shownRows(...pair, this.open);
    const faults = new Set(this.refusal ? this.refusal.keys || [] : []);
    /** @param {number} i */
    const height = (i) => (shown[i].fold === undefined ? ROW_HEIGHT : FOLD_HEIGHT);
    const before = this.programs.programs[pair[0]];
    /** @param {Data.Row} row */
    const isFault = (row) => row.left >= 0 && before[row.left]?.keys.some((key) => faults.has(key));
    let { top } = this.rows[0];
    const told = first
      ? shown.findIndex((row) => row.leftMark || row.rightMark || (faults.size && isFault(row)))
      : -1;
    if (told >= 0) {
      let y = 0;
      for (let i = 0; i < told; i++) y += height(i);
      top = this.topFor(y);
    }
    SIDES.forEach((side, s) => {
      if (s && this.refusal) return;
      this.rows[s].show(shown.length, (i) => this.programs.row(shown[i], ...pair, side), {
        height,
        top,
      });
    });
    this.level();
    if (told >= 0 && this.rows[0].wrapped) {
      top = this.topFor(this.rows[0].reveal(told));
      for (const rows of this.rows) rows.scroll(top);
    }
  }

  /** @param {boolean} all */
  unfold(all) {
    this.open = new Set(all ? ["all"] : []);
    this.draw(false);
  }

  markFaults() {
    for (const item of withKeys(this.left, this.refusal?.keys || [])) {
      item.classList.add("fault");
      const sign = item.querySelector("i");
      if (sign) sign.textContent = "✕";
    }
  }

  /**
   * What is pointed at lights up with its ancestors and descendants; else what was selected.
   * @param {Element | null} item
   * @param {number | null} key
   */
  point(item, key) {
    this.pointed = item && { side: this.sideOf(item), item, key };
    this.light();
    if (!this.onpoint) return;
    if (item) this.onpoint(this.sideOf(item), Number(item.dataset.n), key);
    else this.onpoint("before", -1, null);
  }

  light() {
    lightsOut(this.element);
    if (this.refusal) this.markFaults();
    const at = this.pointed || this.pinned;
    if (!at || !this.shown) return;
    const keys = at.key === null || at.key === undefined ? [] : [at.key];
    if (!keys.length && at.item) keysOf(at.item);
    const related = this.relate
      ? this.relate(at.side, keys)
      : this.lineage
        ? this.lineage.related(this.step, at.side, keys)
        : { before: new Set(keys), after: new Set(keys) };
    lightUp(this.left, this.shown[0], related.before, this.lineage);
    if (!this.refusal) lightUp(this.right, this.shown[1], related.after, this.lineage);
  }
}
