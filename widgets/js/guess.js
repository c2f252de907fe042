// Guess first: a step is shown only after the viewer has said whether it is legal and whether the
// program gets faster. For a class: predict, then look.
//
// It stands between the stepper and its model. While it is on, the model's recording ends at the
// last step that was revealed, so nothing of what follows is in the page; answers and the count of
// right ones are the model's `guesses`, kept with each view.

import { digits, h, later } from "./dom.js";
import { t } from "./words.js";

const SAME = 1.1; // up to this ratio a change of time counts as about the same
const SURE = 1.25; // the largest ratio that noise may explain of which that is said too
const speeds = () => ({
  faster: t("▲ faster"),
  same: t("≈ about the same"),
  slower: t("▼ slower"),
});

/**
 * What a step does to the time: { kind: "faster" | "same" | "slower", text } or null if unknown;
 * kind is null where the times are too noisy to tell.
 * @param {Data.Recording} recording
 * @param {number} at
 * @returns {{ kind: string | null, text: string } | null}
 */
export function speedOf(recording, at) {
  const step = recording.steps[at];
  if (step.error) return null;
  if (step.before === step.after) return { kind: "same", text: t("the program is the same") };
  const [before, after] = [step.before, step.after].map((p) => recording.programs[p].cost);
  if (!before?.time || !after?.time) return null;
  const ratio = before.time / after.time;
  const noise = Math.max(SAME, 1 + (before.spread || 0) + (after.spread || 0));
  const text =
    ratio >= 1
      ? t("{ratio}× faster", { ratio: digits(ratio) })
      : t("{ratio}× slower", { ratio: digits(1 / ratio) });
  if (ratio < noise && 1 / ratio < noise)
    return noise > SURE
      ? { kind: null, text: t("the times are too noisy to tell ({text})", { text }) }
      : { kind: "same", text: t("about the same ({text})", { text }) };
  return { kind: ratio > 1 ? "faster" : "slower", text };
}

/**
 * The questions of a step and their answers: { legal, speed }, speed null where it is not asked.
 * @param {Data.Recording} recording
 * @param {number} at
 * @returns {Data.Answer}
 */
export function answersOf(recording, at) {
  return {
    legal: recording.steps[at].error ? "refused" : "legal",
    speed: speedOf(recording, at)?.kind ?? null,
  };
}

/**
 * The call of a step without its results: a refused one has none, which would tell.
 * @param {Data.Step} step
 */
const callOf = (step) => step.python.replace(/^[\w, ]+ = (?=\w+\.)/, "");

/**
 * How many questions were asked and how many answered right, over all answers given.
 * @param {Data.Recording} recording
 * @param {Record<number, Data.Answer>} given
 */
export function score(recording, given) {
  let [right, asked] = [0, 0];
  for (const [key, answer] of Object.entries(given)) {
    const at = Number(key);
    if (!recording.steps[at]) continue;
    const truth = answersOf(recording, at);
    asked += 1;
    if (answer.legal === truth.legal) right += 1;
    if (!truth.speed || !answer.speed) continue;
    asked += 1;
    if (answer.speed === truth.speed) right += 1;
  }
  return { right, asked };
}

/** The mode of one view: what it hides, what it asks, what was said. */
class Guessing {
  #model;
  #telling;
  /** @type {Map<string, Set<(message: any) => void>>} */
  listeners;
  /** @type {{ whole: Data.Recording, last: number, part: Data.Recording } | null} */
  #masked;
  /** @type {HTMLSpanElement} */
  #note = later();

  /** @param {Data.Model} model */
  constructor(model) {
    this.#model = model;
    this.listeners = new Map();
    this.button = h(
      "button",
      {
        type: "button",
        class: "small guess-toggle",
        title: t("Say what a step does before it is shown"),
        onclick: () => this.#turn(!this.#on),
      },
      t("Guess first"),
    );
    this.card = h("form", { class: "guess-card", "aria-label": t("Guess first") });
    // The arrow keys choose an answer here; they must not step.
    this.card.addEventListener("keydown", (event) => event.stopPropagation());
    this.card.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#reveal();
    });
    this.#telling = false; // whether the answer of the step just revealed is on the card
    this.#masked = null;
    model.on("change:recording", () => (this.#masked = null));
    model.on("change:guess", () => this.#changed());
    this.#draw();
  }

  get #on() {
    return Boolean(this.#model.get("guess"));
  }

  /** @returns {Data.Recording} */
  get #recording() {
    return this.#model.get("recording");
  }

  get #given() {
    return this.#model.get("guesses")?.answers || {};
  }

  /** The last step that may be seen. */
  get #revealed() {
    let at = 0;
    while (this.#given[at + 1] && at + 1 < this.#recording.steps.length) at++;
    return at;
  }

  /** The recording as far as it may be seen. */
  #visible() {
    const whole = this.#recording;
    const last = this.#revealed;
    if (!this.#masked || this.#masked.whole !== whole || this.#masked.last !== last) {
      const steps = whole.steps.slice(0, last + 1);
      const seen = new Set(steps.flatMap((step) => [step.before, step.after]));
      const programs = whole.programs.map((program, i) =>
        seen.has(i) ? program : { lines: [], cost: null },
      );
      this.#masked = { whole, last, part: { ...whole, steps, programs } };
    }
    return this.#masked.part;
  }

  /** @param {string} name */
  get(name) {
    if (this.#on && name === "recording") return this.#visible();
    if (this.#on && name === "step") return Math.min(this.#model.get("step") || 0, this.#revealed);
    return this.#model.get(name);
  }

  /** Let the stepper draw anew, and the card too. */
  #changed() {
    this.#draw();
    for (const listener of this.listeners.get("change:recording") || []) listener(null);
  }

  /** @param {boolean} on */
  #turn(on) {
    this.#telling = false;
    this.#model.set("guess", on);
    this.#model.save_changes();
    this.#changed();
    this.button.focus();
  }

  /**
   * @param {Record<number, Data.Answer>} answers
   * @param {Record<string, unknown>} [values]
   */
  #keep(answers, values = {}) {
    this.#model.set("guesses", { answers, ...score(this.#recording, answers) });
    for (const [name, value] of Object.entries(values)) this.#model.set(name, value);
    this.#model.save_changes();
  }

  /**
   * @param {string} name
   * @returns {string | null}
   */
  #chosen(name) {
    /** @type {HTMLInputElement | null} */
    const found = this.card.querySelector(`input[data-of="${name}"]:checked`);
    return found && found.value;
  }

  #reveal() {
    const legal = this.#chosen("legal");
    if (!legal) {
      this.#note.textContent = t("Say first whether it is legal.");
      this.card.querySelector("input")?.focus();
      return;
    }
    const at = this.#revealed + 1;
    const speed = legal === "legal" ? this.#chosen("speed") : null;
    this.#telling = true;
    this.#keep({ ...this.#given, [at]: { legal, speed } }, { step: at });
    this.#changed();
    this.card.querySelector("button")?.focus();
  }

  #again() {
    this.#telling = false;
    this.#keep({}, { step: 0 });
    this.#changed();
    this.card.querySelector("input")?.focus();
  }

  // -------------------------------------------------------------------------------- the card

  #draw() {
    this.button.setAttribute("aria-pressed", String(this.#on));
    this.card.hidden = !this.#on;
    if (!this.#on) return this.card.replaceChildren();
    const { right, asked } = score(this.#recording, this.#given);
    const count = h(
      "output",
      { class: "guess-count", "aria-label": t("Right guesses") },
      t("{right} of {asked} right", { right, asked }),
    );
    const last = this.#recording.steps.length - 1;
    const at = this.#revealed;
    this.#note = h("span", { class: "guess-note", role: "alert" });
    if (this.#telling) return this.card.replaceChildren(...this.#told(at, last), count);
    if (at >= last) {
      return this.card.replaceChildren(
        h("strong", {}, last ? t("That was the last step.") : t("There is no step to guess.")),
        h("button", { type: "button", onclick: () => this.#again() }, t("Start again")),
        count,
      );
    }
    this.card.replaceChildren(
      ...this.#question(at + 1, last).filter((part) => part !== null),
      count,
    );
  }

  /**
   * @param {number} at
   * @param {number} last
   */
  #question(at, last) {
    const step = this.#recording.steps[at];
    const doc = this.#recording.docs[step.op] || {};
    const number = `guess-${at}-${(Math.random() * 1e9) | 0}`; // radio groups are by name in a page
    /**
     * @param {string} of
     * @param {string} value
     * @param {string} text
     */
    const choice = (of, value, text) =>
      h(
        "label",
        {},
        h("input", { type: "radio", name: `${number}-${of}`, value, "data-of": of }),
        text,
      );
    const timed = this.#recording.programs.some((program) => program.cost?.time);
    const speed = h(
      "fieldset",
      { class: "guess-speed" },
      h("legend", {}, t("If so, the program becomes")),
      Object.entries(speeds()).map(([value, text]) => choice("speed", value, text)),
    );
    const legal = h(
      "fieldset",
      {},
      h("legend", {}, t("Is it legal here?")),
      choice("legal", "legal", t("✓ legal")),
      choice("legal", "refused", t("✕ refused")),
    );
    legal.addEventListener("change", () => (speed.disabled = this.#chosen("legal") === "refused"));
    return [
      h(
        "div",
        { class: "guess-head" },
        h("strong", {}, t("What would step {at} of {last} do?", { at, last })),
        h("pre", { tabindex: "0" }, [...(step.lead || []), callOf(step)].join("\n")),
        doc.meaning ? h("p", { class: "meaning" }, doc.meaning) : null,
      ),
      legal,
      timed ? speed : null,
      h("button", { type: "submit", class: "guess-reveal" }, t("Reveal")),
      this.#note,
    ];
  }

  /**
   * @param {number} at
   * @param {number} last
   */
  #told(at, last) {
    const truth = answersOf(this.#recording, at);
    const given = this.#given[at];
    /** @param {boolean} right */
    const words = (right) => (right ? t("✓ right: ") : t("✕ not so: "));
    /** @type {[boolean | null, string][]} */
    const rows = [
      [
        given.legal === truth.legal,
        truth.legal === "legal" ? t("it is legal") : t("it is refused"),
      ],
    ];
    const speed = speedOf(this.#recording, at);
    if (speed) {
      const judged = speed.kind && given.speed;
      rows.push([judged ? given.speed === truth.speed : null, speed.text]);
    }
    return [
      h(
        "div",
        { class: "guess-head", role: "status" },
        h("strong", {}, t("Step {at}: ", { at })),
        rows.map(([right, text]) =>
          h(
            "span",
            {
              class: `guess-verdict ${right === null ? "" : right ? "good" : "bad"}`,
            },
            (right === null ? "" : words(right)) + text,
          ),
        ),
      ),
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            this.#telling = false;
            this.#draw();
            this.card.querySelector("input, button")?.focus();
          },
        },
        at < last ? t("Next step") : t("To the end"),
      ),
    ];
  }
}

/**
 * A model for the stepper that keeps back what has not been guessed while the mode is on.
 * @param {Data.Model} model
 * @returns {Data.Model & { guess: Guessing }}
 */
export function guessing(model) {
  const guess = new Guessing(model);
  const proxy = new Proxy(model, {
    /**
     * @param {any} target
     * @param {string | symbol} name
     */
    get(target, name) {
      if (name === "guess") return guess;
      if (name === "get") return (/** @type {string} */ key) => guess.get(key);
      if (name === "on") {
        return (/** @type {string} */ event, /** @type {() => void} */ listener) => {
          if (!guess.listeners.has(event)) guess.listeners.set(event, new Set());
          guess.listeners.get(event)?.add(listener);
          return target.on(event, listener);
        };
      }
      if (name === "off") {
        return (/** @type {string} */ event, /** @type {() => void} */ listener) => {
          guess.listeners.get(event)?.delete(listener);
          return target.off(event, listener);
        };
      }
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return /** @type {any} */ (proxy);
}
