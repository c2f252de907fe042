// An exercise as a card: what is asked, a place for the answer, and marks row by row.
//
// Python (widgets/card.py) checks the answer; this draws what it says and sends what was filled in.

import { renderAccesses } from "./access_view.js";
import { h, later, sure } from "./dom.js";
import { tokens } from "./highlight.js";
import { MarkedPicture } from "./marks.js";
import { Opened, showInside } from "./opened.js";
import { PageModel } from "./page.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

/** Milliseconds after the last key until the answer is sent, to be kept in the notebook. */
const SEND = 400;
const levels = () => ["", t("one step"), t("a few steps"), t("needs thought"), t("a project")];
/**
 * Whether the reason of a row is seen in what the program reads and writes: it names an element of a
 * buffer, or a buffer whose accesses miss.
 * @param {Data.MarksRow} row
 */
const isSeen = (row) => /^\w+\[/.test(row.place?.element ?? "") || row.place?.buffer !== undefined;
/**
 * Whether it is an operator of a model, which is seen in its graph.
 * @param {Data.MarksRow} row
 */
const isInGraph = (row) => row.place?.binding !== undefined;
const names = () => [t("A nudge"), t("A second hint"), t("Nearly all"), t("A solution")];

/**
 * Text with `code` in it, in paragraphs; a program stands between two lines of three backquotes.
 * @param {string} text
 * @returns {HTMLElement[]}
 */
export function paragraphs(text) {
  /** @type {HTMLElement[]} */
  const out = [];
  text
    .trim()
    .split(/^```\w*\n([^]*?)^```$/m)
    .forEach((piece, at) => {
      if (at % 2) out.push(code(piece.replace(/\n$/, "")));
      else out.push(...prose(piece));
    });
  return out;
}

/**
 * Paragraphs of text with `code` in it, and lists whose items begin with "- ".
 * @param {string} text
 */
function prose(text) {
  return text
    .trim()
    .split(/\n\s*\n/)
    .filter((part) => part)
    .map((part) =>
      part.startsWith("- ")
        ? h(
            "ul",
            {},
            part.split(/\n(?=- )/).map((item) => h("li", {}, words(item.slice(2)))),
          )
        : h("p", {}, words(part)),
    );
}

/**
 * A text whose lines are one, with its code marked.
 * @param {string} text
 */
function words(text) {
  return text
    .replace(/\s*\n\s*/g, " ")
    .split(/(`[^`]*`)/)
    .map((piece) => (/^`.*`$/.test(piece) ? h("code", {}, piece.slice(1, -1)) : piece));
}

/**
 * A program in colours.
 * @param {string} text
 */
function code(text) {
  const lines = text
    .split("\n")
    .flatMap((line) => [
      ...tokens(line).map(([kind, word]) =>
        kind ? h("span", { class: `t-${kind}` }, word) : word,
      ),
      "\n",
    ]);
  return h("pre", { class: "listing", tabindex: "0" }, lines);
}

/**
 * A part of a program without what all its lines are set in by; lines of dots stand for the rest.
 * @param {string} text
 */
export function setOut(text) {
  const margins = text.match(/^ *(?=[^ .\n])/gm) ?? [""];
  const least = margins.sort()[0].length;
  return text.replace(RegExp(`^ {${least}}`, "gm"), "");
}

/**
 * Move a thing of a list up or down.
 * @template T
 * @param {T[]} list
 * @param {number} at
 * @param {number} by
 */
export function moved(list, at, by) {
  const to = at + by;
  if (to < 0 || to >= list.length) return list;
  const out = [...list];
  [out[at], out[to]] = [out[to], out[at]];
  return out;
}

export class Card {
  /** @type {HTMLElement} */
  place = later();
  /** @type {HTMLElement} */
  rows = later();
  /** @type {HTMLElement} */
  helps = later();
  /** @type {HTMLElement} */
  watched = later();
  /** @type {HTMLButtonElement} */
  button = later();
  /** @type {HTMLElement} */
  status = later();
  /** What a check has found, for those who hear the card. @type {HTMLElement} */
  said = later();
  /** @type {HTMLElement} */
  told = later();
  /** @type {HTMLButtonElement} */
  more = later();
  /** Whether what is told next is a solution. */
  last = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;
  /** How often accesses were asked for, and what takes their view down. */
  looks = 0;
  unwatch = () => {};
  /** The workbench or the stepper, opened in the card. @type {Opened | null} */
  opened = null;
  /** The pictures in which places are marked, by their fields. @type {Map<string, MarkedPicture>} */
  pictures = new Map();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} root
   */
  constructor(model, root) {
    this.model = model;
    /** @type {Data.Task} */
    this.task = model.get("task");
    this.n = model.get("answer").n;
    this.value = model.get("answer").value;
    this.view = h("section", {
      class: "mlc mlc-card",
      role: "group",
      "aria-label": t("Exercise {id}: {title}", { id: this.task.id, title: this.task.title }),
    });
    this.build();
    root.append(this.view);
    this.unfollow = followTheme(this.view);
    /** @type {[string, () => void][]} */
    this.followed = [
      ["marks", () => this.drawMarks()],
      ["hints", () => this.drawHints()],
      ["busy", () => this.drawBusy()],
      ["coming", () => this.drawMarks()],
      ["answer", () => this.follow()],
      ["watched", () => this.drawWatched()],
      ["opened", () => this.opened?.show()],
    ];
    for (const [name, act] of this.followed) model.on(`change:${name}`, act);
    this.drawAnswer();
    this.drawMarks();
    this.drawHints();
    this.drawBusy();
  }

  close() {
    clearTimeout(this.timer);
    this.unwatch();
    this.opened?.close();
    for (const [name, act] of this.followed) this.model.off(`change:${name}`, act);
    this.unfollow();
  }

  get live() {
    return Boolean(this.model.get("live"));
  }

  build() {
    const { id, title, level, minutes, statement, program } = this.task;
    this.points = h("span", { class: "points" });
    this.button = h("button", { type: "button", class: "check", onclick: () => this.check() });
    this.status = h("span", { class: "status", role: "status" });
    this.said = h("span", { class: "sr", role: "status" });
    this.place = h("div", { class: "answer" });
    this.rows = h("ul", { class: "marks" });
    this.told = h("div", { class: "told", "aria-live": "polite" });
    this.more = h("button", { type: "button", class: "small", onclick: () => this.askMore() });
    this.helps = h("div", { class: "helps" }, this.told, this.more);
    this.watched = h("div", { class: "watched", role: "status" });
    this.opened = this.opener();
    this.view.append(
      h(
        "header",
        {},
        h("b", {}, `${id}  ${title}`),
        h(
          "span",
          { class: "dim" },
          t("{level}, {minutes} minutes", { level: levels()[level], minutes }),
        ),
        this.points,
      ),
      h("div", { class: "statement" }, paragraphs(statement)),
      ...(program
        ? [h("details", {}, h("summary", {}, t("The program it starts from")), code(program))]
        : []),
      this.place,
      h("div", { class: "actions" }, this.button, this.status, this.said),
      ...(this.opened ? [this.opened.element] : []),
      this.rows,
      this.watched,
      this.helps,
    );
  }

  /** The view in which the answer can be made too, where a kernel is there to make it. */
  opener() {
    const { kind, fields } = this.task;
    const steps = fields.some((field) => field.view);
    if (!this.live || !this.model.widget_manager || !(steps || kind === "schedule")) return null;
    const asked = steps
      ? {
          what: "stepper",
          label: t("Choose in the stepper"),
          told: t("The step that it shows is your answer."),
        }
      : {
          what: "workbench",
          label: t("Answer by clicking"),
          told: t("Where the workbench stands is your answer. To type closes it."),
        };
    return new Opened(this.model, asked);
  }

  // ------------------------------------------------------------------------------- the answer

  drawAnswer() {
    if (this.task.kind === "prediction")
      return this.place.replaceChildren(...this.task.fields.map((field) => this.field(field)));
    const schedule = this.task.kind === "schedule";
    const trace = typeof this.value !== "string";
    const area = h("textarea", {
      "aria-label": t("Answer"),
      spellcheck: "false",
      rows: 8,
      readonly: !this.live,
      placeholder: schedule
        ? 'i, j, k = sch.get_loops("C")\nsch.reorder(i, k, j)'
        : "@T.prim_func\ndef main(...):",
      onkeydown: (event) => event.stopPropagation(),
      oninput: () => {
        this.opened?.close();
        this.set(area.value);
      },
    });
    area.setAttribute("data-lm-suppress-shortcuts", "true");
    area.value = trace ? "" : this.value;
    area.rows = Math.min(24, Math.max(8, area.value.split("\n").length + 1));
    const told = schedule
      ? t(
          "Lines of a schedule sch of this program. They are read, not run. Or click them in the " +
            "workbench, here or in a cell of its own: card.workbench().",
        )
      : t("TVMScript. It is parsed, not run.");
    this.place.replaceChildren(
      h("label", {}, h("span", {}, t("Answer")), area),
      h("p", { class: "hint" }, trace ? t("A schedule made in code was checked.") : told),
    );
  }

  /**
   * A place of a prediction.
   * @param {Data.TaskField} field
   */
  field(field) {
    const disabled = !this.live;
    const value = this.value?.[field.name];
    const legend = h("legend", {}, field.question);
    if (field.picture) {
      const picture = new MarkedPicture(field, value, disabled, (marked) =>
        this.fill(field.name, marked, false),
      );
      this.pictures.set(field.name, picture);
      return h("fieldset", {}, legend, picture.element);
    }
    if (field.kind === "number") {
      const input = h("input", {
        type: "number",
        step: "any",
        disabled,
        "aria-label": field.question,
        oninput: () =>
          this.fill(field.name, input.value === "" ? null : Number(input.value), false),
      });
      if (value !== null && value !== undefined) input.value = String(value);
      return h("fieldset", {}, legend, input);
    }
    if (field.kind === "order")
      return this.ordered(field, legend, value ?? field.choices, disabled);
    const several = field.kind === "several";
    const name = `${this.task.id}-${field.name}-${Math.random().toString(36).slice(2)}`;
    const boxes = field.choices.map((choice, at) => {
      const input = h("input", {
        type: several ? "checkbox" : "radio",
        name,
        value: choice,
        disabled,
        checked: several ? Boolean(value?.includes(choice)) : value === choice,
        onchange: () => {
          const chosen = boxes
            .map((box) => sure(box.querySelector("input")))
            .filter((b) => b.checked);
          const values = chosen.map((box) => box.value);
          this.fill(field.name, several ? values : values[0], false);
        },
      });
      return h("label", {}, input, field.said?.[at] ?? choice);
    });
    return h("fieldset", {}, legend, boxes);
  }

  /**
   * A list that is put in order.
   * @param {Data.TaskField} field
   * @param {HTMLElement} legend
   * @param {string[]} order
   * @param {boolean} disabled
   */
  ordered(field, legend, order, disabled) {
    const list = h("ol", {});
    /** @param {string} choice @param {number} by */
    const called = (choice, by) =>
      by < 0 ? t("{choice} up", { choice }) : t("{choice} down", { choice });
    /** @param {string[]} now @param {string} [focus] */
    const draw = (now, focus) => {
      list.replaceChildren(
        ...now.map((choice, at) => {
          const button = (/** @type {number} */ by, /** @type {string} */ sign) =>
            h(
              "button",
              {
                type: "button",
                class: "small",
                disabled: disabled || !now[at + by],
                "aria-label": called(choice, by),
                onclick: () => {
                  const next = moved(now, at, by);
                  this.fill(field.name, next, false);
                  draw(next, called(choice, by));
                },
              },
              sign,
            );
          return h("li", {}, button(-1, "↑"), button(1, "↓"), h("span", {}, choice));
        }),
      );
      const again = [...list.querySelectorAll("button")];
      const same = again.find((b) => b.getAttribute("aria-label") === focus);
      (same?.disabled
        ? same.parentElement?.querySelector("button:not(:disabled)")
        : same
      )?.focus?.();
    };
    draw(order);
    return h("fieldset", {}, legend, list);
  }

  /**
   * @param {string} name
   * @param {unknown} value
   * @param {boolean} draw
   */
  fill(name, value, draw) {
    this.set({ ...this.value, [name]: value });
    if (draw) this.drawAnswer();
  }

  /** @param {unknown} value */
  set(value) {
    this.value = value;
    this.n++;
    this.drawMarks();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), SEND);
  }

  send() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.model.set("answer", { value: this.value, n: this.n });
    this.model.save_changes();
  }

  /** The answer was set in Python, or in another view. */
  follow() {
    const { value, n } = this.model.get("answer");
    if (n <= this.n) return;
    [this.value, this.n] = [value, n];
    this.drawAnswer();
    this.drawMarks();
  }

  check() {
    if (this.model.get("busy")) return;
    if (this.task.kind === "prediction")
      for (const field of this.task.fields)
        if (field.kind === "order" && !this.value?.[field.name])
          this.value = { ...this.value, [field.name]: field.choices };
    this.send();
    this.model.set("asked", this.model.get("asked") + 1);
    this.model.save_changes();
  }

  // ------------------------------------------------------------------------------- the marks

  drawBusy() {
    const busy = Boolean(this.model.get("busy"));
    this.button.textContent = busy ? t("Checking ...") : t("Check");
    // and not `disabled`: a button that is pressed keeps the focus
    this.button.setAttribute("aria-disabled", String(busy));
    this.button.hidden = !this.live;
    this.drawMarks();
  }

  drawMarks() {
    /** @type {Data.Marks} */
    const marks = this.model.get("marks");
    const before = this.task.before;
    const known = marks.rows ? marks : before;
    sure(this.points).textContent = known
      ? (marks.rows ? "" : t("before: ")) + t("{points} of {of} points", known)
      : "";
    if (this.model.get("busy")) return this.drawComing();
    if (!marks.rows && this.task.outdated)
      this.status.textContent = t("This answers an earlier version: check it anew.");
    if (!marks.rows)
      return this.rows.replaceChildren(...this.task.rows.map((row) => waiting(row, false)));
    const stale = marks.n !== this.n;
    if (stale) {
      this.unwatch(); // it is another answer's
      this.watched.replaceChildren();
    }
    this.rows.classList.toggle("stale", stale);
    for (const [name, picture] of this.pictures) {
      const row = stale ? undefined : marks.rows.find(({ place }) => place?.field === name);
      picture.flag(row?.place.wrong, row?.place.missing);
    }
    const { points, of, error } = marks;
    this.status.textContent = stale
      ? t("These are the marks of an answer before.")
      : points === of
        ? t("{points} of {of} points: solved", { points, of })
        : t("{points} of {of} points", { points, of });
    this.say(stale ? {} : marks);
    this.rows.replaceChildren(
      ...(error
        ? [
            h(
              "li",
              { class: "no" },
              h("span", { class: "sign" }, "✗"),
              h(
                "span",
                {},
                (error.line ? t("line {line}: ", { line: error.line }) : "") + error.message,
                error.hint ? h("small", {}, error.hint) : null,
              ),
            ),
          ]
        : marks.rows.map((row, at) => rowOf(row, stale ? null : this.lookerAt(row, at)))),
    );
    this.drawHints();
  }

  /**
   * Say what is wrong, once.
   * @param {Partial<Data.Marks>} marks
   */
  say({ error, rows }) {
    const missed = rows?.filter((row) => !row.passed) ?? [];
    const said = error
      ? [error.message, error.hint]
      : missed.map(({ title }) => `${t("not reached")}: ${title}`);
    const text = said.filter(Boolean).join(". ");
    if (this.said.textContent !== text) this.said.textContent = text;
  }

  /** While an answer is checked: the rows that are known, the one that is looked at, the others. */
  drawComing() {
    /** @type {Data.MarksRow[]} */
    const rows = this.model.get("coming").rows ?? [];
    const rest = this.task.rows.slice(rows.length);
    this.unwatch();
    this.watched.replaceChildren();
    this.rows.classList.remove("stale");
    this.rows.replaceChildren(
      ...rows.map((row) => rowOf(row, null)),
      ...rest.map((row, at) => waiting(row, at === 0)),
    );
    sure(this.points).textContent = "";
    this.status.textContent = t("{at} of {count} rows checked", {
      at: rows.length,
      count: this.task.rows.length,
    });
  }

  // ------------------------------------------------------------------------------- accesses

  /**
   * The button that shows where a row went wrong, if that can be seen.
   * @param {Data.MarksRow} row
   * @param {number} at
   */
  lookerAt(row, at) {
    if (!this.live || row.passed) return null;
    if (isInGraph(row)) return this.model.widget_manager ? this.looker(at, true) : null;
    return isSeen(row) ? this.looker(at, false) : null;
  }

  /**
   * A button that opens the access view, or the graph, where a row went wrong.
   * @param {number} row
   * @param {boolean} graph
   */
  looker(row, graph) {
    const onclick = () => {
      this.unwatch();
      this.watched.textContent = t("Its program is run …");
      this.looks++;
      this.model.set("look", { row, n: this.looks });
      this.model.save_changes();
    };
    const label = graph ? t("Show it in the graph") : t("What it reads and writes");
    return h("button", { type: "button", class: "small", onclick }, label);
  }

  drawWatched() {
    const { n, message, trace, results, position, model } = this.model.get("watched");
    if (n !== this.looks) return;
    this.unwatch();
    this.watched.textContent = message ? t("This cannot be shown: {why}", { why: message }) : "";
    if (model) this.showGraph(model);
    if (!trace) return;
    const place = h("div", {});
    this.watched.append(
      ...trace.notes.map((/** @type {string} */ text) => h("p", {}, text)),
      place,
    );
    const values = { trace, results, configuration: 0, position, error: "", live: false };
    const close = renderAccesses({ model: new PageModel(values), el: place });
    this.unwatch = () => {
      close();
      this.unwatch = () => {};
    };
  }

  /**
   * Show a graph, which is a view of the kernel's.
   * @param {string} id
   */
  async showGraph(id) {
    const place = h("div", {});
    this.watched.append(place);
    try {
      const close = await showInside(this.model, id, place);
      this.unwatch = () => {
        close();
        place.remove();
        this.unwatch = () => {};
      };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.watched.textContent = t("This cannot be shown: {why}", { why });
    }
  }

  // ------------------------------------------------------------------------------- help

  askMore() {
    const { model } = this;
    model.set("wanted", this.last ? 4 : model.get("hints").length + 1);
    model.save_changes();
  }

  /** What is there stays, and what is new is added, so that it alone is read out. */
  drawHints() {
    const { told, more, model } = this;
    /** @type {string[]} */
    const hints = model.get("hints");
    const marks = model.get("marks");
    const solved = marks.rows && marks.points === marks.of;
    const { cost = 0, solution = true } = model.get("rules") ?? {};
    if (told.childElementCount > hints.length) told.replaceChildren();
    for (let at = told.childElementCount; at < hints.length; at++) {
      const text = at < 3 ? paragraphs(hints[at]) : [code(hints[at])];
      told.append(h("div", { class: "help", tabindex: "-1" }, h("b", {}, names()[at]), text));
    }
    const price =
      !cost || solved ? "" : cost > 1 ? t(", costs {cost} points", { cost }) : t(", costs 1 point");
    this.last = Boolean(solution && (hints.length >= 3 || solved));
    more.textContent = this.last
      ? solved
        ? t("A solution")
        : cost
          ? t("Give up: a solution, costs all points")
          : t("Give up: a solution")
      : t("Hint {at} of 3{price}", { at: hints.length + 1, price });
    const gone = !this.live || hints.length >= (solution ? 4 : 3);
    // from a button that goes, the focus goes to what it has brought
    if (gone && more === document.activeElement) told.lastElementChild?.focus();
    more.hidden = gone;
  }
}

/**
 * A row of the marks.
 * @param {Data.MarksRow} row
 * @param {HTMLElement | null} button
 */
function rowOf(row, button) {
  return h(
    "li",
    { class: row.passed ? "yes" : "no" },
    h(
      "span",
      { class: "sign", role: "img", "aria-label": row.passed ? t("reached") : t("not reached") },
      row.passed ? "✓" : "✗",
    ),
    h(
      "span",
      {},
      row.title,
      row.says ? h("small", {}, row.says) : null,
      row.place?.text ? code(setOut(row.place.text)) : null,
      button,
    ),
    pointsOf(row.points, row.of),
  );
}

/**
 * A row of which nothing is known, or which is looked at now.
 * @param {{ title: string, of: number }} row
 * @param {boolean} now
 */
function waiting(row, now) {
  const sign = h("span", { class: "sign" }, now ? "◐" : "○");
  return h("li", { class: now ? "now" : "" }, sign, h("span", {}, row.title), pointsOf(0, row.of));
}

/**
 * @param {number} points
 * @param {number} of
 */
function pointsOf(points, of) {
  return h("span", { class: "of" }, of ? `${points} / ${of}` : points ? String(points) : "");
}

/** @param {Data.Host} host */
export function renderCard({ model, el }) {
  speak(model, el);
  const card = new Card(model, el);
  return () => card.close();
}

export default { render: renderCard };
