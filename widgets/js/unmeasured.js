// The steps whose programs have no time yet, and the button that measures them: time is short at
// first, and a reader may want the rest.

import { h } from "./dom.js";
import { t } from "./words.js";

/**
 * Whether a program was not measured yet; one that could not be run is not tried again.
 * @param {Data.Cost | null | undefined} cost
 */
export const isLeft = (cost) =>
  !cost || (!cost.time && (!cost.message || cost.message.endsWith("was used up")));

export class Unmeasured {
  /**
   * @param {Data.Recording} recording
   * @param {Data.Model} model
   * @param {() => void} changed called after each program that was measured
   * @param {boolean} [offered] whether times can be asked for where there are none at all
   */
  constructor(recording, model, changed, offered = false) {
    this.recording = recording;
    this.model = model;
    this.changed = changed;
    this.offered = offered;
    this.ask = h("button", { type: "button", class: "small" }, t("Measure the rest"));
    this.ask.addEventListener("click", () => this.request());
    this.said = h("span", { role: "status", class: "sub" });
    this.element = h("div", { class: "bar unmeasured" }, this.ask, this.said);
    this.live = Boolean(model.send && model.send.length);
    /** @param {any} message */
    this.onMessage = (message) => this.take(message);
    if (this.live) model.on("msg:custom", this.onMessage);
    this.draw();
  }

  remove() {
    if (this.live) this.model.off("msg:custom", this.onMessage);
  }

  left() {
    return this.recording.programs.filter((program) => isLeft(program.cost)).length;
  }

  draw() {
    const some = this.recording.programs.some((program) => program.cost?.time);
    // Where nothing was measured nothing was to be, as a rule; a saved page cannot measure.
    this.element.hidden = !this.live || !(some || this.offered) || !this.left();
    if (!some) this.ask.textContent = t("Measure the times");
    if (!this.said.textContent)
      this.said.textContent = t("{count} programs have no time yet", { count: this.left() });
  }

  request() {
    if (this.ask.getAttribute("aria-disabled") === "true") return;
    this.ask.setAttribute("aria-disabled", "true");
    this.said.textContent = t("measuring…");
    this.model.send({ type: "measure" });
  }

  /**
   * Python has measured a program, or all that were left.
   * @param {any} message
   */
  take(message) {
    if (!message || message.type !== "measure") return;
    const { program, cost, machine, done, error } = message;
    if (machine) this.recording.machine = { ...this.recording.machine, ...machine };
    if (program !== undefined) {
      this.recording.programs[program].cost = cost;
      this.said.textContent = t("measured; {count} programs are left", { count: this.left() });
    }
    if (done) {
      this.ask.setAttribute("aria-disabled", "false");
      this.said.textContent = error || t("measured");
    }
    if (!done || error) this.changed();
  }
}
