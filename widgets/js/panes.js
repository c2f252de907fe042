// What readers do with the panes of a view: wrap long lines, make them larger, fill the screen.
//
// A view puts `tools` into its bar and `grip` below its panes. The style gives every pane the height
// it has by itself and `--more` (stepper.css), and wraps lines within `.wrap`.

import { drag, h, iconButton, setIcon } from "./dom.js";
import { t } from "./words.js";

const STEP = 40; // pixels that an arrow key adds
const LEAST = -200;
const MOST = 2000;

const OUT = "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4";
const IN = "M6 2v4H2M10 2v4h4M10 14v-4h4M6 14v-4H2";

/** The height of the panes and the lines in them; `onwrap()` after lines were wrapped, or not. */
export class PaneTools {
  #full;
  #model;
  #more;
  #onEscape;
  #onFull;
  #onWrap;
  #onwrap;
  #room;
  #root;
  #wrap;

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} root
   * @param {(() => void) | null} [onwrap] null where the view shows no program
   */
  constructor(model, root, onwrap = () => {}) {
    this.#model = model;
    this.#root = root;
    this.#onwrap = onwrap;
    this.#more = 0; // pixels, by the reader
    this.#room = 0; // and those that a full screen has to give
    this.#wrap = iconButton(
      t("Wrap long lines"),
      "M2 3h12M2 8h10a2.2 2.2 0 0 1 0 4.5H8M2 13h3M10 10l-2.5 2.5L10 15",
      () => {
        this.#model.set("wrap", !this.#model.get("wrap"));
        this.#model.save_changes();
        this.#wrapLines(); // where nothing tells of a trait that the view does not have
      },
    );
    this.#wrap.hidden = !onwrap;
    this.#full = iconButton(t("Full screen"), OUT, () => this.#fill(!this.#filled));
    this.tools = h("span", { class: "pane-tools" }, this.#wrap, this.#full);
    this.grip = h("div", {
      class: "grip",
      role: "separator",
      tabindex: "0",
      "aria-orientation": "horizontal",
      "aria-label": t("Height of the panes"),
      "aria-valuemin": LEAST,
      "aria-valuemax": MOST,
      title: t("Drag to make the panes higher; so do ↑ and ↓. Home: as at first"),
      onkeydown: (event) => this.#key(event),
      onpointerdown: (/** @type {PointerEvent} */ event) => this.#drag(event),
      ondblclick: () => this.#setMore(0),
    });
    this.#onWrap = () => this.#wrapLines();
    this.#onFull = () => this.#screen();
    /** @param {KeyboardEvent} event */
    this.#onEscape = (event) => {
      if (event.key !== "Escape" || !this.#filled) return;
      event.preventDefault();
      event.stopPropagation();
      this.#fill(false);
    };
    model.on("change:wrap", this.#onWrap);
    root.addEventListener("fullscreenchange", this.#onFull);
    root.addEventListener("keydown", this.#onEscape, true);
    this.#setMore(0);
    this.#wrapLines();
  }

  remove() {
    this.#model.off("change:wrap", this.#onWrap);
    this.#root.removeEventListener("fullscreenchange", this.#onFull);
    this.#root.removeEventListener("keydown", this.#onEscape, true);
  }

  #wrapLines() {
    const on = Boolean(this.#model.get("wrap"));
    this.#wrap.setAttribute("aria-pressed", String(on));
    if (on === this.#root.classList.contains("wrap")) return;
    this.#root.classList.toggle("wrap", on);
    this.#onwrap?.();
  }

  /** @param {number} more */
  #setMore(more) {
    this.#more = Math.min(MOST, Math.max(LEAST, Math.round(more)));
    this.grip.setAttribute("aria-valuenow", String(this.#more));
    this.#root.style.setProperty("--more", `${this.#more + this.#room}px`);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    /** @type {Record<string, number>} */
    const to = {
      ArrowDown: this.#more + STEP,
      ArrowUp: this.#more - STEP,
      PageDown: this.#more + 5 * STEP,
      PageUp: this.#more - 5 * STEP,
      Home: 0,
    };
    if (!(event.key in to)) return;
    event.preventDefault();
    event.stopPropagation();
    this.#setMore(to[event.key]);
  }

  /** @param {PointerEvent} event */
  #drag(event) {
    if (event.button !== 0) return;
    const from = this.#more - event.clientY;
    drag(event, this.grip, (now) => this.#setMore(from + now.clientY));
  }

  /** Whether the view fills the screen, or, where the host does not allow that, the page. */
  get #filled() {
    return this.#root.matches(":fullscreen, .over");
  }

  /** @param {boolean} on */
  async #fill(on) {
    if (!on && this.#root.matches(":fullscreen")) return document.exitFullscreen();
    if (on) {
      try {
        await this.#root.requestFullscreen();
        return;
      } catch {
        // a frame that may not, or a browser that cannot
      }
    }
    this.#root.classList.toggle("over", on);
    this.#screen();
  }

  /** The view came to fill the screen, or went back: the panes take the room that is there. */
  #screen() {
    const on = this.#filled;
    setIcon(this.#full, on ? t("Leave the full screen") : t("Full screen"), on ? IN : OUT);
    this.#room = 0;
    this.#setMore(this.#more);
    if (!on) return;
    const top = this.#root.getBoundingClientRect().top - this.#root.scrollTop;
    const ends = [...this.#root.children].map(
      (child) => child.getBoundingClientRect().bottom - top,
    );
    this.#room = Math.max(0, innerHeight - Math.max(...ends) - 12, 0.7 * innerHeight - 400);
    this.#setMore(this.#more);
  }
}
