// Type and see: a program or a schedule is typed, and what follows from it stands beside it.
//
// Python (widgets/typed.py) reads each text that is sent and answers what is wrong with it; the last
// text that could be read is the point that is drawn, as on the page of choices (live.js). Numbers
// that the text leaves open have sliders, which write them into the text.

import { copyButton, h, later } from "./dom.js";
import { Editor } from "./editor.js";
import { Live, pointsOf } from "./live.js";
import { speak, t } from "./words.js";

/** Milliseconds after the last key until the text is sent, and until a message is unfolded. */
const SEND = 150;
const SAY = 450;

/** @param {Data.TextError} error */
function told(error) {
  const place = `${error.line}:${error.column + 1}: `;
  if (error.rule) return `${t("refused: {rule}", { rule: error.rule })}\n${error.message}`;
  return place + error.message + (error.hint ? `\n${t("hint: {hint}", { hint: error.hint })}` : "");
}

export class Typed extends Live {
  /** @type {Editor} */
  editor = later();
  /** @type {HTMLDivElement} */
  sliders = later();
  /** @type {HTMLParagraphElement} */
  status = later();
  /** The number of the text that was typed last; answers to others are not drawn. */
  n = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  sayTimer = undefined;
  /** The text that the sliders belong to. */
  written = "";
  /** The texts that were shown, by key. @type {Map<string, string>} */
  texts = new Map();

  remove() {
    super.remove();
    clearTimeout(this.timer);
    clearTimeout(this.sayTimer);
    this.editor.remove();
  }

  followed() {
    const { point, points, machine, why, busy } = super.followed();
    return {
      ...{ point, points, machine, why, busy },
      typed: () => this.followText(),
      answer: () => this.drawAnswer(),
    };
  }

  named() {
    this.root.classList.add("typed");
    this.root.setAttribute("aria-roledescription", t("page of typed text"));
    this.root.setAttribute(
      "aria-label",
      t("Type and see: {title}", { title: this.model.get("title") }),
    );
    return t("Type and see");
  }

  buttons() {
    const reset = h("button", { type: "button", class: "small" }, t("Reset"));
    reset.addEventListener("click", () => this.editor.retype(this.model.get("start")));
    reset.hidden = !this.model.get("live");
    const copy = copyButton(t("Copy the text"), () => this.editor.text, t("Copy text"));
    copy.classList.add("small");
    return [reset, copy];
  }

  chosen() {
    const live = Boolean(this.model.get("live"));
    this.editor = new Editor({
      label: t("Program and schedule"),
      readonly: !live,
      oninput: () => this.edited(),
    });
    this.sliders = h("div", { class: "sliders" });
    Object.assign(this, { controls: [] });
    this.status = h("p", { class: "sr", role: "status" });
    const { text, n } = this.model.get("typed");
    this.n = n;
    this.editor.show(text);
    const keys = t("Tab indents; Escape, then Tab, leaves. Alt with ↑ or ↓ changes a number.");
    const kept = t("The cell keeps its own text: copy this one into it to keep it.");
    return [
      this.editor.element,
      h(
        "p",
        { class: "hint" },
        live ? `${keys} ${kept}` : t("Without Python the text stays as it is."),
      ),
      this.status,
      this.sliders,
    ];
  }

  // ------------------------------------------------------------------------------- typing

  /** Something was typed: it is sent when the hand pauses. */
  edited() {
    this.n++;
    this.drawControls();
    clearTimeout(this.timer);
    clearTimeout(this.sayTimer);
    this.timer = setTimeout(() => this.send(), SEND);
  }

  send() {
    this.timer = undefined;
    this.model.set("typed", { text: this.editor.text, n: this.n });
    this.model.save_changes();
  }

  /** The text was set elsewhere, in Python or in another view. */
  followText() {
    const { text, n } = this.model.get("typed");
    if (n < this.n || this.timer || text === this.editor.text) return;
    this.n = n;
    this.editor.show(text);
    this.show(); // its program may be here already
  }

  /** What is wrong with the text, if that is known of the text as it is now. */
  drawAnswer() {
    const answer = this.model.get("answer");
    if (answer.n !== this.n) return;
    /** @type {Data.TextError | null} */
    const error = answer.error;
    this.program.classList.toggle("stale", Boolean(error));
    clearTimeout(this.sayTimer);
    const say = () => {
      this.editor.say(new Map(error ? [[error.line, told(error)]] : []), error ? [error] : []);
      this.status.textContent = error
        ? t("line {line}: {message}", { line: error.line, message: told(error) })
        : "";
    };
    // Lines move apart for a message: not while one types, unless there is one already.
    if (!error || this.editor.messages.size || !this.editor.lines.matches(":focus")) return say();
    this.editor.say(new Map(), [error]);
    this.sayTimer = setTimeout(say, SAY);
  }

  // ------------------------------------------------------------------------------- the sliders

  /** @returns {Data.TypedPoint} what is shown */
  shown() {
    return /** @type {Data.TypedPoint} */ (this.point ?? this.model.get("point"));
  }

  /** @param {Data.KnobValue[]} state */
  keyOf(state) {
    const labels = state.map((value, at) => this.knobs[at]?.labels[Number(value)]);
    return JSON.stringify([this.shown().skeleton, ...labels]);
  }

  /**
   * Write other numbers into the text.
   * @param {Data.KnobValue[]} state
   */
  choose(state) {
    if (JSON.stringify(state) === JSON.stringify(this.state)) return;
    Object.assign(this, { state: structuredClone(state) });
    if (this.model.get("all")) return this.show();
    const { text, places } = this.shown();
    const lines = text.split("\n");
    const changes = places.flatMap((all, at) =>
      all.map((place) => ({ place, label: this.knobs[at].labels[Number(state[at])] })),
    );
    changes.sort((a, b) => b.place[0] - a.place[0] || b.place[1] - a.place[1]);
    for (const { place, label } of changes) {
      const [line, start, end] = place;
      lines[line - 1] = lines[line - 1].slice(0, start) + label + lines[line - 1].slice(end);
    }
    for (const { place } of changes) this.editor.put(place[0], lines[place[0] - 1]);
    this.written = this.editor.text;
    this.n++;
    this.program.classList.add("stale"); // until the program of this text is here
    this.drawControls();
    this.send();
  }

  /** @param {string} key */
  goBack(key) {
    const all = this.model.get("all");
    const text = this.texts.get(key);
    if (all) this.choose(all[key].state);
    else if (text !== undefined) this.editor.retype(text);
  }

  /**
   * The sliders of some numbers; those that are there already stay under the hand.
   * @param {Data.Knob[]} knobs
   */
  drawSliders(knobs) {
    const known = this.knobs;
    Object.assign(this, { knobs });
    /** @param {Data.Knob[]} all */
    const kinds = (all) => JSON.stringify(all.map(({ name, labels }) => [name, labels]));
    if (this.controls.length === knobs.length && kinds(known) === kinds(knobs)) return;
    Object.assign(this, { controls: knobs.map((knob, at) => this.control(knob, at)) });
    this.sliders.replaceChildren(...this.controls.map((control) => control.element));
  }

  drawControls() {
    super.drawControls();
    const off = this.editor.text !== this.written;
    for (const input of this.sliders.querySelectorAll("input")) input.disabled = off;
  }

  // ------------------------------------------------------------------------------- drawing

  /** Show the last text that could be read. */
  show() {
    const all = this.model.get("all");
    /** @type {Data.TypedPoint} */
    const point = all?.[this.keyOf(this.state)] ?? this.model.get("point");
    const old = this.point;
    if (all && old && point.key !== this.keyOf(this.state)) {
      this.drawControls();
      return this.sayLacking();
    }
    const settled = old && old.key !== point.key && (old.cost.counts || old.cost.inner);
    if (all) this.editor.show(point.text);
    // A slider may be further already: it stays where the hand is.
    const ahead = this.editor.text === this.written && this.editor.text !== point.text;
    Object.assign(this, { point, before: settled ? old : this.before });
    this.texts.delete(point.key);
    this.texts.set(point.key, point.text);
    if (this.editor.text === point.text) this.written = point.text;
    if (!ahead) {
      const moved = Math.min(this.moved, Math.max(0, point.knobs.length - 1));
      this.drawSliders(point.knobs);
      Object.assign(this, { state: structuredClone(point.state), moved });
    }
    this.root.classList.toggle("nothing", !point.lines.length);
    this.drawControls();
    this.drawPoint(old);
    this.drawAnswer();
  }

  /** @param {Data.LivePoint | undefined} old what was shown */
  drawProgram(old) {
    this.refusal.hidden = true;
    if (this.model.get("answer").n === this.n) {
      this.program.classList.toggle("stale", Boolean(this.model.get("answer").error));
    }
    if (!old || old.key !== this.point.key) {
      this.drawLines(this.point.lines, this.before?.lines);
      this.drawNest(this.before?.nest);
    }
  }

  /** @param {{ label: string, state: Data.KnobValue[] }} visited */
  nameOf(visited) {
    return visited === this.trail.get(this.point.key) ? t("here") : visited.label;
  }

  label() {
    const label = super.label();
    return this.knobs.length
      ? label
      : t("text {number}", { number: [...this.texts.keys()].indexOf(this.point.key) + 1 });
  }
}

/**
 * What anywidget calls with an element to draw in; the return value takes the view down.
 * @param {Data.Host} host
 */
export function renderTyped({ model, el }) {
  speak(model, el);
  const view = new Typed(model, el).start();
  return () => view.remove();
}

/**
 * The states that were shown; none while the text cannot be read, which is kept then.
 * @param {Data.Model} model
 */
const left = (model) => (model.get("answer").error ? {} : pointsOf(model));

export default { render: renderTyped, left };
