// The teacher's page of a class: the stepper up to what was revealed, and the answers as they come.

import { h, later } from "./dom.js";
import { PageModel } from "./page.js";
import { drawBars, inWords, isFactor, titleOf } from "./room_bars.js";
import { listen, post } from "./room_link.js";
import { render as renderStepper } from "./stepper.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

class Teacher {
  /** @type {Data.Recording[]} */
  recordings = [];
  /** @type {Data.RoomTeacher | null} */
  state = null;
  /** @type {(() => void) | null} */
  closeStepper = null;
  stepped = "";
  said = "";
  /** @type {(() => void) | null} */
  unlisten = null;
  /** @type {HTMLElement} */
  door = later();

  /** @param {HTMLElement} el */
  constructor(el) {
    this.secret = decodeURIComponent(location.hash.slice(1));
    this.link = h("p", { class: "link", role: "status" });
    this.status = h("p", { class: "sr", role: "status", "aria-live": "polite" });
    this.joining = h("section", { class: "joining", "aria-label": t("Joining") });
    this.panel = h("section", { class: "panel", "aria-label": t("The question") });
    this.bars = h("div", { class: "all-bars" });
    this.count = h("span", { class: "answered" });
    this.stepper = h("div", { class: "stepper" });
    this.view = h(
      "div",
      { class: "mlc mlc-room teacher" },
      this.link,
      h("div", { class: "halves" }, this.panel, this.joining),
      this.stepper,
      this.status,
    );
    el.replaceChildren(this.view);
    this.stop = followTheme(this.view);
    if (!this.secret) this.stranger();
    else this.listen();
  }

  listen() {
    this.unlisten = listen(
      { teacher: this.secret },
      {
        data: (data) => this.take(data),
        state: (on) => {
          this.link.textContent = on ? "" : t("No connection: it is tried again by itself.");
        },
        over: () => this.stranger(),
      },
    );
  }

  close() {
    this.unlisten?.();
    this.closeStepper?.();
    this.stop();
  }

  stranger() {
    this.link.textContent = t(
      "This page needs the whole address that the terminal has shown, with what stands behind #.",
    );
  }

  /** @param {any} data */
  take(data) {
    if (data.recordings) {
      this.recordings = data.recordings;
      this.stepped = "";
      const code = data.code
        ? h("img", {
            src: "code",
            alt: t("QR code of {address}", { address: data.address }),
            width: 200,
            height: 200,
          })
        : null;
      this.facts = h("p", { class: "dim" });
      this.pin = h("strong", { class: "pin" });
      this.door = h("button", {
        type: "button",
        onclick: () => this.act(this.state?.door ? "close" : "open"),
      });
      this.joining.replaceChildren(
        ...(code ? [code] : []),
        h("div", {}, h("p", { class: "address" }, data.address), this.pin, this.facts, this.door),
      );
      return;
    }
    this.state = data;
    this.draw();
  }

  /** @param {string} action */
  async act(action) {
    const message = { do: action, question: this.state?.question.key };
    const { status, why } = await post("act", message, { Authorization: `Bearer ${this.secret}` });
    this.link.textContent =
      status === 200 ? "" : t("This did not work: {why}. Try again.", { why });
  }

  draw() {
    const { state } = this;
    if (!state || !this.pin || !this.facts) return;
    const { question, revealed, truth, counts, answered, joined } = state;
    this.pin.textContent = `PIN ${state.pin.slice(0, 3)} ${state.pin.slice(3)}`;
    const wrong = !state.wrongPins
      ? ""
      : state.wrongPins > 1
        ? t(", {count} wrong PINs", { count: state.wrongPins })
        : t(", 1 wrong PIN");
    this.facts.textContent = t("{joined} joined{wrong}", { joined, wrong });
    this.door.textContent = state.door ? t("Close the door") : t("Let more in");
    const said = `${question.key} ${revealed}`;
    if (said !== this.said) this.drawQuestion();
    this.said = said;
    this.bars.replaceChildren(...drawBars(question, counts, truth));
    this.count.dataset.answered = String(answered);
    this.count.textContent = t("{answered} of {joined} have answered", { answered, joined });
    this.drawStepper();
  }

  /** What stays as it is while answers come in. */
  drawQuestion() {
    const { state } = this;
    if (!state) return;
    const { question, revealed, truth } = state;
    this.status.textContent = truth ? inWords(truth) : t("Question {at}", { at: state.number });
    const button = (/** @type {string} */ act, /** @type {string} */ text, off = false) =>
      h(
        "button",
        {
          type: "button",
          "data-act": act,
          class: act === "back" ? "" : "main",
          disabled: off,
          onclick: () => this.act(act),
        },
        text,
      );
    const focused = document.activeElement?.getAttribute("data-act");
    this.panel.replaceChildren(
      h(
        "p",
        { class: "dim" },
        t("Question {at} of {of}, {title}", {
          at: state.number,
          of: state.of,
          title: question.title,
        }),
      ),
      h(
        "h1",
        {},
        truth
          ? t("Step {at}: {said}", { at: question.step, said: inWords(truth) })
          : titleOf(question, ""),
      ),
      h("pre", { class: "call", tabindex: "0" }, question.call),
      ...(question.meaning ? [h("p", {}, question.meaning)] : []),
      this.bars,
      h(
        "div",
        { class: "tools" },
        revealed
          ? button("next", t("Next question"), state.number === state.of)
          : button("reveal", t("Reveal")),
        button("back", t("Question before"), state.number === 1),
        this.count,
      ),
    );
    if (focused) {
      const same = this.panel.querySelector(`[data-act="${focused}"]:not([disabled])`);
      const main = this.panel.querySelector("button.main");
      const to = same ?? main;
      if (to instanceof HTMLElement) to.focus();
    }
  }

  /** The stepper with all steps that were revealed before, and the present one once it is. */
  drawStepper() {
    const { state } = this;
    if (!state) return;
    const { question, revealed } = state;
    const factor = isFactor(question);
    const last = revealed && !factor ? question.step : question.step - 1;
    const now = `${question.recording} ${last} ${factor}`;
    if (now === this.stepped) return;
    this.stepped = now;
    /** @type {Record<number, Data.Answer>} */
    const answers = {};
    for (let at = 1; at <= last; at++) answers[at] = { legal: "legal", speed: null };
    const whole = this.recordings[question.recording];
    const model = new PageModel({
      // the card of the step to come has its number
      recording: factor ? { ...whole, steps: whole.steps.slice(0, last + 1) } : whole,
      step: last,
      selection: {},
      guess: true,
      guesses: { answers },
    });
    this.closeStepper?.();
    this.stepper.replaceChildren();
    this.closeStepper = renderStepper({ model, el: this.stepper });
  }
}

/** @param {{ model?: Data.Model, el: HTMLElement }} host */
export function renderTeacher({ model, el }) {
  if (model) speak(model, el);
  const teacher = new Teacher(el);
  return () => teacher.close();
}

export default { render: renderTeacher };
