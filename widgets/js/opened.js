// A view of the kernel's inside of another one: what is chosen in it is an answer in the card.

import { h } from "./dom.js";
import { t } from "./words.js";

/** How often, and after how many milliseconds again, a view is looked for that was just made. */
const TRIES = 20;
const AGAIN = 250;

/** The place where a card opens the workbench, or the stepper. */
export class Opened {
  /** What takes the view down. */
  remove = () => {};
  count = 0;

  /**
   * @param {Data.Model} model has "opener" {"what", "n"}, which is asked for, and "opened" {"model",
   *   "n"}, or a "message", which is there
   * @param {{ what: string, label: string, told: string }} asked
   */
  constructor(model, asked) {
    this.model = model;
    this.asked = asked;
    this.place = h("div", { class: "view" });
    this.status = h("span", { class: "hint", role: "status" });
    this.button = h("button", { type: "button", class: "small", onclick: () => this.toggle() });
    this.element = h("div", { class: "opened" }, this.button, this.status, this.place);
    this.label();
  }

  get open() {
    return this.place.childElementCount > 0;
  }

  label() {
    this.button.textContent = this.open ? t("Close") : this.asked.label;
    this.button.setAttribute("aria-expanded", String(this.open));
    this.status.textContent = this.open ? this.asked.told : "";
  }

  toggle() {
    if (this.open) return this.close();
    this.count++;
    this.status.textContent = t("It is opened …");
    this.model.set("opener", { what: this.asked.what, n: this.count });
    this.model.save_changes();
  }

  close() {
    this.remove();
    this.remove = () => {};
    this.place.replaceChildren();
    this.label();
  }

  /** The kernel has made the view, or says why not. */
  async show() {
    const { n, model: id, message } = this.model.get("opened");
    if (n !== this.count || this.open) return;
    if (message) {
      this.status.textContent = t("This cannot be shown: {why}", { why: message });
      return;
    }
    try {
      this.remove = await showInside(this.model, id, this.place);
      this.label();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.status.textContent = t("This cannot be shown: {why}", { why });
    }
  }
}

/**
 * Show a view of the kernel's in a place; gives what takes it down.
 * @param {Data.Model} model of the view around it
 * @param {string} id
 * @param {HTMLElement} place
 */
export async function showInside(model, id, place) {
  const manager = /** @type {Data.Manager} */ (model.widget_manager);
  const view = await manager.create_view(await found(manager, id));
  place.replaceChildren(view.el);
  return () => view.remove();
}

/**
 * The model of a view that the kernel has just made: its message may still be under way.
 * @param {Data.Manager} manager
 * @param {string} id
 */
async function found(manager, id) {
  for (let at = 1; ; at++) {
    try {
      return await manager.get_model(id);
    } catch (error) {
      if (at === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
  }
}
