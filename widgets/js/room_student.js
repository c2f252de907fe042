// A student's page of a class, on a phone: the PIN, the question, the answer, what was so.
//
// An answer that was given is kept on the phone until the server has said that it is on its disk, and
// is sent again with the same id until then: a lost connection loses nothing.

import { h, later } from "./dom.js";
import { drawBars, inWords, titleOf } from "./room_bars.js";
import { listen, pause, post } from "./room_link.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

const KEPT = "mlc-lab-class-answer";

/** @typedef {{ id: string, class: string, question: string, answers: Record<string, string> }} Given */

/** @returns {Given | null} */
function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "null");
  } catch {
    return null;
  }
}

/** @param {Given | null} given */
function keep(given) {
  try {
    if (given) localStorage.setItem(KEPT, JSON.stringify(given));
    else localStorage.removeItem(KEPT);
  } catch {
    // A phone that keeps nothing sends for as long as the page is open.
  }
}

/** An id that no other answer has: crypto.randomUUID() is not there on a page without TLS. */
function newId() {
  return [...crypto.getRandomValues(new Uint8Array(12))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** @param {string} text */
const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

class Student {
  /** @type {Data.RoomStudent | null} */
  state = null;
  /** @type {Given | null} */
  given = kept();
  sending = false;
  /** What is drawn: a form that is half filled in is not drawn anew. */
  drawn = "";
  /** @type {(() => void) | null} */
  unlisten = null;
  /** @type {HTMLElement} */
  body = later();

  /** @param {HTMLElement} el */
  constructor(el) {
    this.status = h("p", { class: "sr", role: "status", "aria-live": "polite" });
    this.link = h("p", { class: "link", role: "status" });
    this.body = h("div", { class: "body" });
    this.view = h(
      "section",
      { class: "mlc mlc-room student", "aria-label": t("Class") },
      this.link,
      this.status,
      this.body,
    );
    el.replaceChildren(this.view);
    this.stop = followTheme(this.view);
    this.connect();
  }

  close() {
    this.unlisten?.();
    this.stop();
  }

  connect() {
    this.unlisten?.();
    this.unlisten = listen(
      { student: true },
      {
        data: (state) => this.show(state),
        state: (on) => {
          this.link.textContent = on ? "" : t("No connection: it is tried again by itself.");
        },
        over: (code) => {
          this.link.textContent = "";
          if (code === 4401) return this.askPin();
          if (code === 4410)
            return this.askPin(
              t(
                "Another phone has joined with your name, and answers for you now. Join again here if it was not you.",
              ),
            );
          this.drawn = "over";
          this.body.replaceChildren(h("p", {}, t("This class is open in another window.")));
        },
      },
    );
  }

  // ------------------------------------------------------------------------------------- PIN

  /** @param {string} [why] what is said first */
  askPin(why = "") {
    this.drawn = "pin";
    const pin = h("input", {
      inputmode: "numeric",
      autocomplete: "off",
      maxlength: 12,
      required: true,
      "aria-describedby": "pin-note",
    });
    const note = h("p", { id: "pin-note", class: "note", role: "alert" }, why);
    // Asked for where the teacher has a list of the class.
    const name = h("input", { autocomplete: "off", maxlength: 200 });
    const named = h("label", { hidden: true }, h("span", {}, t("Your name on the list")), name);
    const button = h("button", { type: "submit", class: "main" }, t("Join"));
    const form = h(
      "form",
      {},
      h("h1", {}, t("Join the class")),
      h("label", {}, h("span", {}, t("The PIN on the screen")), pin),
      named,
      note,
      button,
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      const { status, why, wait } = await post("join", { pin: pin.value, name: name.value });
      button.disabled = false;
      if (status === 200) return this.connect();
      if (status === 428) named.hidden = false;
      note.textContent = sentence(why + (wait ? ` (${Math.ceil(wait)} s)` : ""));
      (named.hidden ? pin : name).select();
    });
    this.body.replaceChildren(form);
    pin.focus();
  }

  // -------------------------------------------------------------------------------- question

  /** @param {Data.RoomStudent} state */
  show(state) {
    this.state = state;
    const { given } = this;
    const same = given?.class === state.class && given.question === state.question.key;
    if (given && (!same || state.mine)) this.forget();
    if (this.given) void this.send();
    this.draw();
  }

  /**
   * @param {string} text
   * @param {boolean} [aside] only for those who do not see the page
   */
  tell(text, aside = false) {
    this.status.className = aside ? "sr" : "told";
    this.status.textContent = text;
  }

  forget() {
    this.given = null;
    keep(null);
  }

  draw() {
    const { state } = this;
    if (!state) return;
    const { question, revealed, mine } = state;
    const now = `${question.key} ${revealed} ${Boolean(mine)} ${Boolean(this.given)}`;
    if (now === this.drawn) return;
    this.drawn = now;
    const head = [
      h(
        "p",
        { class: "dim" },
        t("Question {at} of {of}, {title}", {
          at: state.number,
          of: state.of,
          title: question.title,
        }),
      ),
      h("h1", {}, titleOf(question, revealed ? t("What it did") : "")),
      h("pre", { class: "call", tabindex: "0" }, question.call),
      question.meaning ? h("p", {}, question.meaning) : null,
      h(
        "details",
        {},
        h("summary", {}, t("The program before it")),
        h("pre", { tabindex: "0" }, question.program),
      ),
    ];
    if (revealed) return this.drawTold(head);
    if (mine || this.given) {
      const answers = mine ?? this.given?.answers ?? {};
      const words = question.asks
        .filter(({ name }) => answers[name])
        .map(({ name, choices }) => choices.find(([value]) => value === answers[name])?.[1]);
      this.body.replaceChildren(...present(head), h("p", { class: "mine" }, words.join(", ")));
      this.tell(
        mine ? t("Your answer is in. Wait for the others.") : t("Your answer is being sent."),
      );
      return;
    }
    this.tell(t("Question {at}: {call}", { at: state.number, call: question.call }), true);
    this.body.replaceChildren(...present(head), this.form(question));
  }

  /** @param {(HTMLElement | null)[]} head */
  drawTold(head) {
    const { question, mine, truth, counts, score } = /** @type {Data.RoomStudent} */ (this.state);
    if (!truth || !counts) return;
    const right =
      mine && question.asks.filter(({ name }) => mine[name] && truth[name] === mine[name]);
    const asked = mine && question.asks.filter(({ name }) => mine[name] && truth[name] !== null);
    const told = sentence(inWords(truth));
    const own =
      right && asked
        ? t(" You had {right} of {asked} right.", { right: right.length, asked: asked.length })
        : "";
    this.tell(told + own);
    this.body.replaceChildren(
      ...present(head),
      ...drawBars(question, counts, truth, mine),
      h(
        "p",
        { class: "dim" },
        t("Right so far: {right} of {of}", { right: score[0], of: score[1] }),
      ),
    );
  }

  /** @param {Data.RoomQuestion} question */
  form(question) {
    const note = h("p", { class: "note", role: "alert" });
    const sets = question.asks.map(({ name, text, choices }) =>
      h(
        "fieldset",
        { "data-ask": name },
        h("legend", {}, text),
        choices.map(([value, word]) =>
          h("label", {}, h("input", { type: "radio", name, value }), h("span", {}, word)),
        ),
      ),
    );
    const form = h(
      "form",
      {},
      sets,
      note,
      h("button", { type: "submit", class: "main" }, t("Send")),
      h("p", { class: "dim" }, t("The first answer counts: it cannot be changed.")),
    );
    const chosen = () => {
      /** @type {Record<string, string>} */
      const answers = {};
      for (const [name, value] of new FormData(form)) answers[name] = String(value);
      return answers;
    };
    form.addEventListener("change", () => {
      const refused = chosen().legal === "refused";
      for (const set of sets.slice(1)) set.disabled = refused;
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const answers = chosen();
      const [first] = question.asks;
      if (!answers[first.name]) {
        note.textContent =
          first.name === "legal" ? t("Say first whether it is legal.") : first.text;
        form.querySelector("input")?.focus();
        return;
      }
      this.given = { id: newId(), class: this.state?.class ?? "", question: question.key, answers };
      keep(this.given);
      this.draw();
      void this.send();
    });
    return form;
  }

  /** Send the answer until the server has it, or says that it comes too late. */
  async send() {
    if (this.sending) return;
    this.sending = true;
    for (let tries = 0; this.given; tries++) {
      const { given } = this;
      const { status, why, wait } = await post("vote", given);
      if (given !== this.given) continue;
      if (status === 200) {
        if (this.state?.question.key === given.question)
          this.state = { ...this.state, mine: given.answers };
        this.forget();
        this.draw();
      } else if (status >= 400 && status < 500 && status !== 429) {
        this.forget();
        this.draw();
        this.tell(sentence(why));
        if (status === 401) this.askPin();
      } else {
        await new Promise((done) => setTimeout(done, Math.max(1000 * wait, pause(tries))));
      }
    }
    this.sending = false;
  }
}

/**
 * @template T
 * @param {(T | null)[]} parts
 */
const present = (parts) => /** @type {T[]} */ (parts.filter((part) => part !== null));

/** @param {{ model?: Data.Model, el: HTMLElement }} host */
export function renderStudent({ model, el }) {
  if (model) speak(model, el);
  const student = new Student(el);
  return () => student.close();
}

export default { render: renderStudent };
