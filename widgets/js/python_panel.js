// The Python of the workbench: what the schedule is so far, to copy, to change and to read back.

import { copyButton, h } from "./dom.js";
import { t } from "./words.js";

/** The panel; `onread(text)` reads a text and resolves to { ok, error, line } or null. */
export class PythonPanel {
  /**
   * @param {boolean} live
   * @param {(text: string) => Promise<Data.Answered | null>} onread
   */
  constructor(live, onread) {
    this.onread = onread;
    this.dirty = false;
    this.head = this.now = "";
    this.text = h("textarea", {
      class: "python",
      rows: 9,
      spellcheck: "false",
      wrap: "off",
      tabindex: "0",
      "aria-label": t("Python of the schedule"),
      readonly: !live,
    });
    this.text.addEventListener("input", () => this.edited());
    this.read = h("button", { type: "button", onclick: () => this.load() }, t("Read this text"));
    this.reset = h("button", { type: "button", onclick: () => this.draw(true) }, t("Discard"));
    this.error = h("pre", { class: "text-error", role: "alert" });
    this.element = h(
      "details",
      { class: "so-far", open: true },
      h("summary", {}, t("Python so far")),
      this.text,
      h(
        "div",
        { class: "text-foot" },
        copyButton(t("Copy the schedule"), () => this.text.value),
        this.copyAll(),
        this.read,
        this.reset,
        this.error,
      ),
    );
  }

  copyAll() {
    const all = copyButton(
      t("Copy the complete Python, program and all"),
      () => this.head + this.text.value,
    );
    all.textContent = t("Copy with the program");
    const says = new MutationObserver(() => {
      if (all.textContent === "Copy") all.textContent = t("Copy with the program");
    });
    says.observe(all, { childList: true, characterData: true, subtree: true });
    return all;
  }

  /**
   * Show the Python of a schedule; `head` is what makes it complete. What is typed stays.
   * @param {string} text
   * @param {string} head
   */
  show(text, head) {
    Object.assign(this, { now: text, head });
    this.draw(false);
  }

  /** @param {boolean} discard */
  draw(discard) {
    if (this.dirty && !discard) return;
    this.text.value = this.now;
    this.text.rows = Math.max(6, Math.min(16, this.now.split("\n").length + 1));
    this.dirty = false;
    this.read.hidden = this.reset.hidden = true;
    this.error.textContent = "";
  }

  edited() {
    this.dirty = true;
    this.read.hidden = this.reset.hidden = false;
  }

  async load() {
    const told = await this.onread(this.text.value);
    if (!told) return;
    if (told.ok) return this.draw(true);
    this.edited();
    this.error.textContent = told.error || "";
    if (told.line) this.showLine(told.line);
  }

  /**
   * Put the cursor where the text is wrong.
   * @param {number} line
   */
  showLine(line) {
    const lines = this.text.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.text.focus({ preventScroll: true });
    this.text.setSelectionRange(start, start + (lines[line - 1] || "").length);
  }
}
