// The program of the workbench: one pane, in which the names of loops and the heads of blocks are
// buttons, one of them in the order of Tab, the others reached by the arrow keys.

import { closest, escapeHTML, h, later, OWN_KEYS, sure } from "./dom.js";
import { marksOf } from "./program.js";
import { t } from "./words.js";

/** @import { Programs } from "./program.js" */

/** @type {Record<string, string>} */
const SIGN_OF = { new: "+", removed: "−", changed: "~", moved: "↕" };

/** The pane; `onpick(key)` when the reader picks a loop or block. */
export class ProgramPane {
  /** @type {Map<number, string>} */
  made;
  /** @type {number[]} */
  shown;
  /** @type {Element[]} */
  marked;
  /** @type {Data.Tree} */
  data = later();
  /** @type {Programs} */
  programs = later();
  /** @type {number} */
  program = later();

  /** @param {(key: number) => void} onpick */
  constructor(onpick) {
    this.onpick = onpick;
    this.made = new Map(); // lines as HTML
    this.shown = [];
    this.marked = [];
    this.element = h("div", {
      class: "pane program",
      role: "region",
      "aria-label": t("Program: choose a loop or block"),
      tabindex: "-1",
    });
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("mouseover", (event) => this.relate(event.target));
    this.element.addEventListener("mouseleave", () => this.relate(null));
  }

  /**
   * Show a program, with what changed against the program `before`. Only the lines that differ from
   * those shown are made anew.
   * @param {Data.Tree} data
   * @param {Programs} programs
   * @param {number} program
   * @param {number} before
   */
  show(data, programs, program, before) {
    Object.assign(this, { data, programs, program });
    const lines = data.programs[program].lines;
    const old = this.shown;
    const shorter = Math.min(lines.length, old.length);
    let head = 0;
    while (head < shorter && lines[head] === old[head]) head++;
    let tail = 0;
    while (tail < shorter - head && lines[lines.length - 1 - tail] === old[old.length - 1 - tail])
      tail++;
    const within = this.element.contains(document.activeElement);
    const top = this.element.scrollTop;
    for (let n = old.length - tail - 1; n >= head; n--) this.element.children[n].remove();
    const html = lines
      .slice(head, lines.length - tail)
      .map((line) => this.lineHTML(line))
      .join("");
    const next = this.element.children[head];
    if (next) next.insertAdjacentHTML("beforebegin", html);
    else this.element.insertAdjacentHTML("beforeend", html);
    this.shown = lines;
    this.mark(before === program ? new Map() : marksOf(this.programs, before, program, "after"));
    this.element.scrollTop = top;
    if (within && !this.element.contains(document.activeElement)) {
      (this.element.querySelector(".pick[tabindex='0']") || this.element).focus({
        preventScroll: true,
      });
    }
    if (this.marked.length) this.reveal(this.marked[0]);
  }

  /**
   * Show what changed against the attempt before: `marks` by number of the line.
   * @param {Map<number, Data.Mark>} marks
   */
  mark(marks) {
    /**
     * @param {Element} line
     * @param {Data.Mark} mark
     */
    const put = (line, mark) => {
      line.className = `l ${mark}`;
      line.children[0].textContent = SIGN_OF[mark] || "";
      line.children[1].textContent = mark && t("{mark}: ", { mark: t(mark) });
    };
    for (const line of this.marked) put(line, "");
    this.marked = [...marks.keys()].map((n) => this.element.children[n]);
    for (const [n, mark] of marks) put(this.element.children[n], mark);
  }

  /**
   * Scroll the pane, and nothing else, so that a line is in sight.
   * @param {Element} line
   */
  reveal(line) {
    const top = /** @type {HTMLElement} */ (line).offsetTop; // the pane is what it is measured from
    const pane = this.element;
    if (top < pane.scrollTop || top > pane.scrollTop + pane.clientHeight - 60) {
      pane.scrollTop = Math.max(0, top - 80);
    }
  }

  /**
   * A line of the recording as HTML; made once.
   * @param {number} number
   * @returns {string}
   */
  lineHTML(number) {
    if (!this.made.has(number)) {
      const line = this.programs.lines[number];
      this.made.set(
        number,
        `<div class="l" data-k=" ${line.keys.join(" ")} " style="--in:${line.indent}"><i aria-hidden="true"></i>` +
          `<s></s><code>${" ".repeat(line.indent)}${this.code(line)}</code></div>`,
      );
    }
    return sure(this.made.get(number));
  }

  /**
   * A line's tokens; the names of loops and the heads of blocks are what one can pick.
   * @param {Data.Line} line
   */
  code(line) {
    const all = this.programs.tokensOf(line);
    /** @param {[string, string]} token */
    const span = ([kind, text]) =>
      kind ? `<span class="t-${kind}">${escapeHTML(text)}</span>` : escapeHTML(text);
    const [first] = line.parts;
    if (first?.[0] === "loop") {
      let which = 0;
      return all
        .map((token) => {
          const part = /** @type {Data.LoopPart | undefined} */ (line.parts[which]);
          if (token[0] !== "name" || token[1] !== part?.[1]) return span(token);
          const said = t("loop {name}, extent {extent}", { name: part[1], extent: part[2] });
          return this.pick(line.keys[which++], said, escapeHTML(part[1]));
        })
        .join("");
    }
    if (first?.[0] === "block") {
      const at = all.findIndex(([kind]) => kind === "builtin");
      /**
       * @param {number} from
       * @param {number} [to]
       */
      const part = (from, to) => all.slice(from, to).map(span).join("");
      const pick = this.pick(line.keys[0], t("block {name}", { name: first[1] }), part(at, at + 4));
      return part(0, at) + pick + part(at + 4);
    }
    return all.map(span).join("");
  }

  /**
   * @param {number} key
   * @param {string} said
   * @param {string} inner
   */
  pick(key, said, inner) {
    return (
      `<button type="button" class="pick" tabindex="-1" ${OWN_KEYS}="true" data-key="${key}" ` +
      `aria-label="${escapeHTML(said)}" aria-pressed="false">${inner}</button>`
    );
  }

  picks() {
    return [...this.element.querySelectorAll(".pick")];
  }

  /**
   * Show what is picked; `key` may stand nowhere in the program.
   * @param {number | undefined} key
   */
  select(key) {
    const old = this.element.querySelectorAll(".pick[aria-pressed='true'], .pick[tabindex='0']");
    for (const pick of old) {
      pick.setAttribute("aria-pressed", "false");
      pick.setAttribute("tabindex", "-1");
    }
    const chosen = this.element.querySelector(`.pick[data-key="${key}"]`);
    chosen?.setAttribute("aria-pressed", "true");
    (chosen || this.element.querySelector(".pick"))?.setAttribute("tabindex", "0");
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const pick = closest(event, ".pick");
    if (pick) return this.onpick(Number(pick.dataset.key));
    const line = closest(event, ".l");
    if (!line || String(getSelection())) return;
    // Anywhere in a block's lines means the block, anywhere in a loop's line its first loop.
    const lines = this.programs.programs[this.program];
    const kinds = this.data.keys;
    const all = this.element.children;
    const start = Array.prototype.indexOf.call(all, line);
    for (let n = start; n >= 0; n--) {
      if (n < start && lines[n].indent >= lines[start].indent) continue;
      const found = all[n].querySelector(".pick");
      const kind = kinds[lines[n].keys[0]]?.[0];
      if (found && (kind === "block" || n === start)) {
        return this.onpick(Number(found.dataset.key));
      }
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const pick = closest(event, ".pick");
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !pick) return;
    const picks = this.picks();
    const at = picks.indexOf(pick);
    /** @param {Element} p */
    const lineOf = (p) => p.closest(".l");
    let to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: picks.length - 1 }[event.key];
    if (event.key === "ArrowDown")
      to = picks.findIndex((p, i) => i > at && lineOf(p) !== lineOf(pick));
    if (event.key === "ArrowUp") {
      to = at;
      while (to >= 0 && lineOf(picks[to]) === lineOf(pick)) to--;
      while (to > 0 && lineOf(picks[to - 1]) === lineOf(picks[to])) to--;
    }
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const target = picks[to];
    if (!target) return;
    pick.setAttribute("tabindex", "-1");
    target.setAttribute("tabindex", "0");
    target.focus({ preventScroll: true });
    this.reveal(sure(lineOf(target)));
  }

  /**
   * Light up the lines that stand for the same thing as the one under the pointer.
   * @param {EventTarget | null} target
   */
  relate(target) {
    for (const old of this.element.querySelectorAll(".rel")) old.classList.remove("rel");
    const line = target instanceof Element ? target.closest(".l") : null;
    const pick = target instanceof Element ? target.closest(".pick") : null;
    const keys = pick
      ? [pick.dataset.key]
      : (line?.dataset.k || "").trim().split(" ").filter(Boolean);
    for (const key of keys) {
      for (const found of this.element.querySelectorAll(`.l[data-k*=" ${key} "]`))
        found.classList.add("rel");
    }
  }

  /**
   * Mark the lines of some keys as those at fault; none to take the marks away.
   * @param {Iterable<number>} keys
   */
  fault(keys) {
    for (const old of this.element.querySelectorAll(".l.fault")) old.classList.remove("fault");
    for (const key of keys) {
      for (const line of this.element.querySelectorAll(`.l[data-k*=" ${key} "]`))
        line.classList.add("fault");
    }
  }
}
