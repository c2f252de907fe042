// A text that is typed, in lines: coloured and numbered, with messages under their lines.
//
// Each line is a block of an editable element, so that a message can stand under it, and what is
// typed is undone as everywhere. Nothing but the lines stands in there: colours are ranges (the CSS
// Custom Highlight API), numbers and messages come from the style of a line's attributes.

import { h } from "./dom.js";
import { tokens } from "./highlight.js";

const INDENT = 4;

/** @param {string} kind */
function highlightOf(kind) {
  const name = `mlc-${kind}`;
  const known = CSS.highlights.get(name);
  if (known) return known;
  const made = new Highlight();
  CSS.highlights.set(name, made);
  return made;
}

/** @param {string} text */
const lineOf = (text) => h("div", {}, text || h("br"));

/**
 * What stands in an editable element as a text, and where in it a place of the document is (-1: it
 * is elsewhere). A block is a line, and so is what stands between two of them.
 * @param {Node} root
 * @param {Node | null} [node]
 * @param {number} [offset]
 */
export function read(root, node = null, offset = 0) {
  // A place between the parts of an element is at the beginning of one, or after the last one.
  while (node && node.nodeName !== "#text" && node.hasChildNodes()) {
    /** @type {ChildNode | undefined} */
    const next = node.childNodes[offset];
    node = next ?? node.lastChild;
    offset = next ? 0 : (node?.nodeValue ?? node?.childNodes ?? "").length;
  }
  let [text, caret, started, ended] = ["", -1, false, false];
  /** @param {Node} at */
  const visit = (at) => {
    const block = at.nodeName === "DIV";
    if (block ? started && (at.parentNode === root || at.previousSibling) : ended) text += "\n";
    [started, ended] = [true, false];
    if (at === node) caret = text.length + (at.nodeName === "#text" ? offset : 0);
    if (at.nodeName === "#text") text += at.nodeValue;
    else if (at.nodeName === "BR")
      text += at.nextSibling && at.nextSibling.nodeName !== "DIV" ? "\n" : "";
    at.childNodes.forEach(visit);
    ended = block;
  };
  root.childNodes.forEach(visit);
  return { text, caret };
}

export class Editor {
  /**
   * @param {{ label: string, readonly: boolean, oninput: (text: string) => void }} options
   */
  constructor({ label, readonly, oninput }) {
    this.oninput = oninput;
    this.leaving = false;
    /** The messages, by their line from 1. @type {Map<number, string>} */
    this.messages = new Map();
    /** @type {[Highlight, AbstractRange][]} */
    this.ranges = [];
    /** @type {{ line: number, column: number, end: number }[]} */
    this.wrong = [];
    this.lines = h("div", {
      class: "lines",
      role: "textbox",
      "aria-multiline": "true",
      "aria-label": label,
      "aria-readonly": readonly ? "true" : undefined,
      contenteditable: readonly ? undefined : "true",
      tabindex: "0",
      spellcheck: "false",
      autocapitalize: "off",
      autocorrect: "off",
      translate: "no",
      oninput: (/** @type {any} */ event) => this.edited(event),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      onbeforeinput: (/** @type {InputEvent} */ event) => {
        if (/^format|^insertFromDrop/.test(event.inputType)) event.preventDefault();
      },
      onpaste: (/** @type {ClipboardEvent} */ event) => this.paste(event),
      onblur: () => (this.leaving = false),
    });
    this.element = h("div", { class: "editor" }, this.lines);
    this.text = "";
  }

  /** Take the colours away, which do not stand in the element. */
  remove() {
    for (const [highlight, range] of this.ranges) highlight.delete(range);
    this.ranges = [];
  }

  /**
   * Show another text.
   * @param {string} text
   */
  show(text) {
    if (text === this.text && this.lines.firstChild) return;
    this.text = text;
    this.lines.replaceChildren(...text.split("\n").map(lineOf));
    this.colour();
  }

  /**
   * Type another text over the whole one, so that it can be undone.
   * @param {string} text
   */
  retype(text) {
    this.lines.focus();
    getSelection()?.selectAllChildren(this.lines);
    document.execCommand("insertText", false, text);
    if (this.text !== text) this.show(text);
  }

  /**
   * Write something else in a line, while the hand is elsewhere.
   * @param {number} line from 1
   * @param {string} text
   */
  put(line, text) {
    // New nodes: what the browser could undo in the old ones is gone with them.
    this.lines.children[line - 1]?.replaceChildren(text || h("br"));
    this.text = read(this.lines).text;
    this.colour();
  }

  /**
   * Put messages under lines, and underline what they are about.
   * @param {Map<number, string>} messages
   * @param {{ line: number, column: number, end: number }[]} wrong
   */
  say(messages, wrong) {
    [this.messages, this.wrong] = [messages, wrong];
    [...this.lines.children].forEach((line, n) => {
      const message = messages.get(n + 1);
      const bad = wrong.some((place) => place.line === n + 1);
      if (message) line.setAttribute("data-error", message);
      else line.removeAttribute("data-error");
      line.classList.toggle("wrong", bad);
    });
    this.lines.setAttribute("aria-invalid", String(wrong.length > 0));
    this.colour();
    const told = this.lines.querySelector("[data-error]")?.getBoundingClientRect();
    const seen = this.element.getBoundingClientRect();
    if (told && told.top >= seen.top && told.top < seen.bottom && told.bottom > seen.bottom) {
      this.element.scrollTop += Math.min(told.bottom - seen.bottom, told.top - seen.top);
    }
  }

  // ------------------------------------------------------------------------------- what is typed

  /** @param {InputEvent} event */
  edited(event) {
    const selection = getSelection();
    const { text, caret } = read(
      this.lines,
      selection?.focusNode ?? null,
      selection?.focusOffset ?? 0,
    );
    const blocks = [...this.lines.childNodes];
    const plain = blocks.every(
      (line) =>
        line.nodeName === "DIV" &&
        ![...line.childNodes].some((part) => part.nodeName !== "#text" && part.nextSibling) &&
        !line.textContent?.includes("\n") &&
        ![...line.childNodes].some((part) => part.nodeName === "DIV"),
    );
    if (!event.isComposing && (!plain || !blocks.length)) {
      this.lines.replaceChildren(...text.split("\n").map(lineOf));
      const before = text.slice(0, Math.max(0, caret)).split("\n");
      this.goTo(before.length - 1, before[before.length - 1].length);
    }
    // A line that was split took its message along: it is kept once.
    const said = new Set();
    for (const line of this.lines.children) {
      const message = line.getAttribute("data-error");
      if (message && said.has(message)) line.removeAttribute("data-error");
      said.add(message);
    }
    this.text = text;
    this.wrong = [];
    this.colour();
    this.oninput(text);
  }

  /** @param {ClipboardEvent} event */
  paste(event) {
    event.preventDefault();
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const plain = text.replaceAll(/\r\n?/g, "\n").replaceAll("\u00a0", " ");
    document.execCommand("insertText", false, plain);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.isComposing || this.lines.contentEditable !== "true") return;
    const leaving = this.leaving;
    this.leaving = event.key === "Escape";
    if (event.ctrlKey || event.metaKey) {
      // JupyterLab prevents the browser's own keys for this in all of a notebook.
      const key = event.altKey ? "" : event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      event.preventDefault();
      document.execCommand(key === "y" || event.shiftKey ? "redo" : "undo");
      return;
    }
    if (event.key === "Tab" && !event.altKey && !leaving) {
      event.preventDefault();
      this.indent(event.shiftKey ? -1 : 1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const { text, column } = this.caret();
      const head = text.slice(0, column);
      const more = /:\s*$/.test(head) ? INDENT : 0;
      const blank = (head.match(/^ */) ?? [""])[0].length + more;
      document.execCommand("insertParagraph");
      if (blank) document.execCommand("insertText", false, " ".repeat(blank));
    } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      if (this.turn(event.key === "ArrowUp", event.shiftKey)) event.preventDefault();
    } else if (event.key === "Tab" && event.shiftKey) {
      this.leaving = true; // the browser goes back by itself
    }
  }

  /**
   * Change the whole number at the caret by one, or double or halve it.
   * @param {boolean} up
   * @param {boolean} much
   */
  turn(up, much) {
    const { line, text, column } = this.caret();
    for (const match of text.matchAll(/(?<![\w.])\d+(?![\w.])/g)) {
      const end = match.index + match[0].length;
      if (column < match.index || column > end) continue;
      const old = BigInt(match[0]);
      const by = up ? old + 1n : old > 0n ? old - 1n : old;
      const value = !much ? by : up ? old * 2n : old / 2n;
      this.select(line, match.index, end);
      document.execCommand("insertText", false, String(value));
      this.goTo(line, match.index + String(value).length);
      return true;
    }
    return false;
  }

  /** @param {number} way in or out */
  indent(way) {
    const selection = getSelection();
    if (!selection?.rangeCount) return;
    const { line, column } = this.caret();
    if (way > 0 && selection.isCollapsed) {
      document.execCommand("insertText", false, " ".repeat(INDENT - (column % INDENT)));
      return;
    }
    const range = selection.getRangeAt(0);
    const [first, last] = [
      this.lineAt(range.startContainer, range.startOffset),
      this.lineAt(range.endContainer, range.endOffset),
    ];
    for (let n = first; n <= last; n++) {
      const text = this.lines.children[n]?.textContent ?? "";
      if (way > 0 && text) {
        this.goTo(n, 0);
        document.execCommand("insertText", false, " ".repeat(INDENT));
      } else if (way < 0) {
        const blank = Math.min(INDENT, (text.match(/^ */) ?? [""])[0].length);
        if (!blank) continue;
        this.select(n, 0, blank);
        document.execCommand("delete");
      }
    }
    if (first === last) this.goTo(line, Math.max(0, column + way * INDENT));
    else {
      const end = this.lines.children[last]?.textContent?.length ?? 0;
      const [a, b] = [this.place(first, 0), this.place(last, end)];
      selection.setBaseAndExtent(...a, ...b);
    }
  }

  // ------------------------------------------------------------------------------- places

  /** Where the caret is: the line from 0, its text, the column. */
  caret() {
    const selection = getSelection();
    const { text, caret } = read(
      this.lines,
      selection?.focusNode ?? null,
      selection?.focusOffset ?? 0,
    );
    const before = text.slice(0, Math.max(0, caret)).split("\n");
    const line = before.length - 1;
    return { line, text: text.split("\n")[line] ?? "", column: before[line].length };
  }

  /**
   * @param {Node} node
   * @param {number} offset
   */
  lineAt(node, offset) {
    const { text, caret } = read(this.lines, node, offset);
    return text.slice(0, Math.max(0, caret)).split("\n").length - 1;
  }

  /**
   * A place of the document: a node and an offset in it.
   * @param {number} line from 0
   * @param {number} column
   * @returns {[Node, number]}
   */
  place(line, column) {
    const block = this.lines.children[line] ?? this.lines;
    let left = column;
    for (const part of block.childNodes) {
      if (!(part instanceof Text)) continue;
      if (left <= part.length) return [part, left];
      left -= part.length;
    }
    return [block, 0];
  }

  /**
   * @param {number} line from 0
   * @param {number} column
   */
  goTo(line, column) {
    getSelection()?.collapse(...this.place(line, column));
  }

  /**
   * @param {number} line from 0
   * @param {number} start
   * @param {number} end
   */
  select(line, start, end) {
    getSelection()?.setBaseAndExtent(...this.place(line, start), ...this.place(line, end));
  }

  // ------------------------------------------------------------------------------- colours

  /** Colour the text; a browser that cannot do it shows it plain. */
  colour() {
    this.remove();
    if (typeof CSS === "undefined" || !CSS.highlights) return;
    [...this.lines.children].forEach((line, n) => {
      let column = 0;
      for (const [kind, text] of tokens(line.textContent ?? "")) {
        if (kind && kind !== "name") this.mark(kind, n, column, column + text.length);
        column += text.length;
      }
    });
    for (const { line, column, end } of this.wrong) this.mark("error", line - 1, column, end);
  }

  /**
   * @param {string} kind
   * @param {number} line from 0
   * @param {number} start
   * @param {number} end
   */
  mark(kind, line, start, end) {
    const [a, b] = [this.place(line, start), this.place(line, end)];
    if (a[0] === this.lines || !(a[0] instanceof Text && b[0] instanceof Text)) return;
    const range = new StaticRange({
      ...{ startContainer: a[0], startOffset: a[1], endContainer: b[0], endOffset: b[1] },
    });
    const highlight = highlightOf(kind);
    highlight.add(range);
    this.ranges.push([highlight, range]);
  }
}
