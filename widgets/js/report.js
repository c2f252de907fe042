// The report of a class: marks by check, wrong answers by kind, likenesses, and any answer opened.
//
// Draws what mlc_lab/exercises/teach/class_report.py has counted. All that students wrote is text.

import { renderComparison } from "./comparison.js";
import { digits, gunzip, h, heads, later, percent } from "./dom.js";
import { lineDiff } from "./line_diff.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

/** @returns {[string, string][]} */
const tabs = () => [
  ["marks", t("Marks")],
  ["students", t("Students")],
  ["wrong", t("Wrong answers")],
  ["alike", t("Alike")],
];
/** Students in a table, groups in a list: more are behind a button. */
const PAGE = 100;
const BINS = 5;

/**
 * How many answers reached each fifth of the points; the last one has those with all of them.
 * @param {{ points: number }[]} answers
 * @param {number} of
 */
export function bins(answers, of) {
  const counts = new Array(BINS).fill(0);
  for (const { points } of answers)
    counts[of ? Math.min(BINS - 1, Math.floor((BINS * points) / of)) : 0] += 1;
  return counts;
}

class Report {
  /** @type {Data.ClassReport} */
  data = later();
  /** @type {HTMLElement} */
  panel = later();
  /** @type {HTMLElement} */
  detail = later();
  /** @type {HTMLElement} */
  tabs = later();
  /** @type {HTMLElement} */
  status = later();
  /** @type {HTMLElement} */
  stepper = later();
  /** @type {(() => void) | null} */
  closeStepper = null;
  /** @type {Set<number>} */
  open = new Set();
  shown = PAGE;
  only = "";
  order = "name";

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} el
   */
  constructor(model, el) {
    this.model = model;
    this.view = h("section", { class: "mlc mlc-report", role: "group", "aria-label": t("Class") });
    el.replaceChildren(this.view);
    this.stop = followTheme(this.view);
    /** @type {[string, () => void][]} */
    this.followed = [
      ["report", () => void this.load()],
      ["tab", () => this.draw()],
      ["chosen", () => this.drawAnswer()],
      ["comparison", () => this.drawStepper()],
      ["trouble", () => this.drawStepper()],
    ];
    for (const [name, act] of this.followed) model.on(`change:${name}`, act);
    void this.load();
  }

  close() {
    this.closeStepper?.();
    this.stop();
    for (const [name, act] of this.followed) this.model.off(`change:${name}`, act);
  }

  async load() {
    this.data = await gunzip(this.model.get("report").gzip);
    this.build();
  }

  build() {
    const { title, students, answers, exercises } = this.data;
    const given = answers.flat().filter((answer) => answer !== null).length;
    this.tabs = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": t("Parts of the report") },
      tabs().map(([id, text]) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            "data-tab": id,
            onclick: () => this.go(id),
            onkeydown: (event) => this.tabKey(event, id),
          },
          text,
        ),
      ),
    );
    this.panel = h("div", { class: "panel", role: "tabpanel", tabindex: "0" });
    this.detail = h("section", { class: "answer", "aria-label": t("Answer"), hidden: true });
    this.stepper = h("div", {});
    this.status = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.view.replaceChildren(
      h(
        "header",
        {},
        h("b", {}, title),
        h(
          "span",
          { class: "dim" },
          t("students: {students}, exercises: {exercises}, answers: {answers}", {
            students: students.length,
            exercises: exercises.length,
            answers: given,
          }),
        ),
      ),
      this.tabs,
      this.panel,
      this.detail,
      this.status,
    );
    this.draw();
    this.drawAnswer();
    this.drawStepper();
  }

  /** @param {string} tab */
  go(tab) {
    this.shown = PAGE;
    this.model.set("tab", tab);
    this.model.save_changes();
    this.draw();
  }

  /**
   * @param {KeyboardEvent} event
   * @param {string} id
   */
  tabKey(event, id) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const all = tabs();
    const at = all.findIndex(([name]) => name === id);
    this.go(all[(at + by + all.length) % all.length][0]);
    /** @type {HTMLElement | null} */
    const now = this.tabs.querySelector('[aria-selected="true"]');
    now?.focus();
  }

  draw() {
    if (!this.data) return;
    const tab = this.model.get("tab") || "marks";
    for (const button of this.tabs.querySelectorAll("button")) {
      const on = button.dataset.tab === tab;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    this.panel.setAttribute("aria-label", tabs().find(([id]) => id === tab)?.[1] ?? "");
    if (tab === "students") this.drawStudents();
    else if (tab === "wrong") this.drawWrong();
    else if (tab === "alike") this.drawAlike();
    else this.drawMarks();
  }

  // ---------------------------------------------------------------------------------- marks

  drawMarks() {
    const { exercises, answers, students } = this.data;
    const rows = exercises.flatMap((exercise, n) => {
      const given = /** @type {Data.ClassAnswer[]} */ (answers[n].filter((a) => a !== null));
      const solved = given.filter((answer) => answer.points >= exercise.of).length;
      const sum = given.reduce((total, answer) => total + answer.points, 0);
      const open = this.open.has(n);
      const head = h(
        "tr",
        {},
        h(
          "th",
          { scope: "row" },
          h(
            "button",
            {
              type: "button",
              class: "link",
              "aria-expanded": String(open),
              "data-exercise": exercise.id,
              onclick: () => this.toggle(n, exercise.id),
            },
            `${open ? "▾" : "▸"} ${exercise.id} ${exercise.title}`,
          ),
        ),
        share(given.length, students.length),
        share(solved, given.length),
        h(
          "td",
          { class: "number" },
          given.length ? digits(sum / given.length) : "",
          ` / ${exercise.of}`,
        ),
        h("td", {}, given.length ? bars(bins(given, exercise.of)) : ""),
      );
      if (!open) return [head];
      return [
        head,
        ...exercise.rows.map((row, at) => {
          const passed = given.filter((answer) => answer.rows[at]?.[1]).length;
          return h(
            "tr",
            { class: "check" },
            h("th", { scope: "row" }, row.title),
            h("td", {}),
            share(passed, given.length),
            h(
              "td",
              { class: "number" },
              row.of === 1 ? t("1 point") : t("{points} points", { points: row.of }),
            ),
            h("td", {}),
          );
        }),
      ];
    });
    this.panel.replaceChildren(
      table(
        [
          t("Exercise and its checks"),
          t("Answered"),
          t("Solved, or passed"),
          t("Mean"),
          t("Points"),
        ],
        rows,
      ),
    );
  }

  /**
   * @param {number} n
   * @param {string} id
   */
  toggle(n, id) {
    if (!this.open.delete(n)) this.open.add(n);
    this.drawMarks();
    /** @type {HTMLElement | null} */
    const again = this.panel.querySelector(`[data-exercise="${id}"]`);
    again?.focus();
  }

  // ------------------------------------------------------------------------------- students

  drawStudents() {
    const { exercises, answers, students } = this.data;
    const total = students.map((_, s) =>
      answers.reduce((sum, row) => sum + (row[s]?.points ?? 0), 0),
    );
    const order = students.map((_, s) => s);
    if (this.order === "points") order.sort((a, b) => total[a] - total[b]);
    const sorts = h("select", {
      "aria-label": t("Order of the students"),
      onchange: () => {
        this.order = sorts.value;
        this.drawStudents();
        this.panel.querySelector("select")?.focus();
      },
    });
    for (const [value, text] of [
      ["name", t("By name")],
      ["points", t("Fewest points first")],
    ])
      sorts.append(h("option", { value, selected: value === this.order }, text));
    const rows = order
      .slice(0, this.shown)
      .map((s) =>
        h(
          "tr",
          {},
          h(
            "th",
            { scope: "row", title: students[s].note || undefined },
            students[s].name,
            students[s].note ? h("span", { class: "dim" }, ` (${students[s].note})`) : null,
          ),
          h("td", { class: "number" }, String(total[s])),
          ...exercises.map((exercise, n) => this.cell(n, s)),
        ),
      );
    const made = table([t("Student"), t("Points"), ...exercises.map((e) => e.id)], rows);
    made.className = "heat";
    made.addEventListener("keydown", (event) => this.heatKey(event, made));
    const first = made.querySelector("button:not([disabled])");
    if (first instanceof HTMLElement) first.tabIndex = 0;
    this.panel.replaceChildren(
      h("div", { class: "tools" }, sorts),
      made,
      ...this.more(order.length),
    );
  }

  /**
   * @param {number} n
   * @param {number} s
   */
  cell(n, s) {
    const { exercises, answers, students } = this.data;
    const answer = answers[n][s];
    const { id, of } = exercises[n];
    return h(
      "td",
      {},
      h(
        "button",
        {
          type: "button",
          tabindex: "-1",
          disabled: !answer,
          style: `--part: ${answer && of ? Math.round((70 * answer.points) / of) : 0}%`,
          "aria-label": `${students[s].name}, ${id}: ${answer ? t("{points} of {of} points", { points: answer.points, of }) : t("no answer")}`,
          onclick: () => this.choose(id, s),
        },
        answer ? String(answer.points) : "·",
      ),
    );
  }

  /**
   * The arrow keys walk the table.
   * @param {KeyboardEvent} event
   * @param {HTMLTableElement} made
   */
  heatKey(event, made) {
    /** @type {Record<string, [number, number]>} */
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move || !(event.target instanceof HTMLButtonElement)) return;
    event.preventDefault();
    event.stopPropagation();
    const cell = /** @type {HTMLTableCellElement} */ (event.target.parentElement);
    let row = /** @type {HTMLTableRowElement} */ (cell.parentElement).rowIndex;
    let column = cell.cellIndex;
    for (;;) {
      row += move[0];
      column += move[1];
      const found = made.rows[row]?.cells[column]?.querySelector("button");
      if (!found) return;
      if (found.disabled) continue;
      event.target.tabIndex = -1;
      found.tabIndex = 0;
      return found.focus();
    }
  }

  /**
   * A button for those that are not shown yet.
   * @param {number} count
   */
  more(count) {
    if (count <= this.shown) return [];
    return [
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            this.shown += PAGE;
            this.draw();
          },
        },
        t("Show more ({count})", { count: count - this.shown }),
      ),
    ];
  }

  // -------------------------------------------------------------------------- wrong answers

  drawWrong() {
    const { exercises, groups } = this.data;
    const choice = h("select", {
      "aria-label": t("Wrong answers to"),
      onchange: () => {
        this.only = choice.value;
        this.shown = PAGE;
        this.drawWrong();
        this.panel.querySelector("select")?.focus();
      },
    });
    choice.append(h("option", { value: "" }, t("All exercises, the commonest first")));
    for (const { id, title } of exercises)
      choice.append(h("option", { value: id, selected: id === this.only }, `${id} ${title}`));
    const all = exercises
      .flatMap(({ id }, n) => groups[n].map((group) => ({ id, n, group })))
      .filter(({ id }) => !this.only || id === this.only)
      .sort((a, b) => b.group.students.length - a.group.students.length);
    const list = h(
      "ol",
      { class: "groups" },
      all.slice(0, this.shown).map(({ id, n, group }) => this.group(id, n, group)),
    );
    this.panel.replaceChildren(
      h("div", { class: "tools" }, choice),
      all.length ? list : h("p", {}, t("There is no wrong answer.")),
      ...this.more(all.length),
      ...(this.data.unread
        ? [
            h(
              "p",
              { class: "dim" },
              t(
                "{count} small groups are by their text; those of more students by the program that the text makes.",
                { count: this.data.unread },
              ),
            ),
          ]
        : []),
    );
    this.markGroup();
  }

  /**
   * @param {string} id
   * @param {number} n
   * @param {Data.ClassGroup} group
   */
  group(id, n, group) {
    const exercise = this.data.exercises[n];
    const many = group.students.length;
    const failed = group.failed.map((at) => exercise.rows[at]?.title).filter((text) => text);
    return h(
      "li",
      { "data-group": `${id} ${group.first}` },
      h("span", { class: "many" }, `${many}×`),
      h(
        "div",
        {},
        h(
          "button",
          {
            type: "button",
            class: "link",
            "aria-label":
              many === 1
                ? t("1 student in {id}: open this answer", { id })
                : t("{count} students in {id}: open this answer", { count: many, id }),
            onclick: () => this.choose(id, group.first),
          },
          `${id} ${t("{title}: {points} of {of} points", { title: exercise.title, points: group.points, of: exercise.of })}`,
        ),
        h("small", {}, this.text(group.says) || failed.join("; ")),
      ),
    );
  }

  markGroup() {
    const { exercise, student } = this.model.get("chosen") || {};
    const n = this.data.exercises.findIndex(({ id }) => id === exercise);
    const answer = n < 0 ? null : this.data.answers[n][student];
    const group = answer && answer.group >= 0 ? this.data.groups[n][answer.group] : null;
    for (const item of this.panel.querySelectorAll("[data-group]"))
      item.setAttribute(
        "aria-current",
        String(Boolean(group) && item.getAttribute("data-group") === `${exercise} ${group?.first}`),
      );
  }

  // ---------------------------------------------------------------------------------- alike

  drawAlike() {
    const { alike, students } = this.data;
    const link = (/** @type {string} */ id, /** @type {number} */ s) =>
      h(
        "button",
        { type: "button", class: "link", onclick: () => this.choose(id, s) },
        students[s].name,
      );
    const rows = alike
      .slice(0, this.shown)
      .map((row) =>
        h(
          "tr",
          {},
          h("td", {}, link(row.exercises[0], row.students[0])),
          h("td", {}, link(row.exercises[0], row.students[1])),
          h("td", { class: "number" }, String(row.exercises.length)),
          h("td", {}, row.exercises.join(", ")),
          h("td", {}, row.same.join(", ")),
        ),
      );
    this.panel.replaceChildren(
      h(
        "p",
        {},
        t(
          "Pairs whose answers have the same wording, but for the numbers of their variants, where few others have it. It is a reason to look, and no proof.",
        ),
      ),
      alike.length
        ? table([t("One"), t("Other"), t("Answers"), t("Same wording"), t("Same letters")], rows)
        : h("p", {}, t("No answers are too alike.")),
      ...this.more(alike.length),
    );
  }

  // ------------------------------------------------------------------------------ one answer

  /** @param {number} at */
  text(at) {
    return at < 0 ? "" : this.data.texts[at];
  }

  /**
   * @param {string} exercise
   * @param {number} student
   */
  choose(exercise, student) {
    this.model.set("chosen", { exercise, student });
    this.model.save_changes();
    this.drawAnswer();
    this.detail.querySelector("h3")?.focus();
    this.detail.scrollIntoView({ block: "nearest" });
  }

  drawAnswer() {
    if (!this.data) return;
    const { exercise: id, student } = this.model.get("chosen") || {};
    const n = this.data.exercises.findIndex((one) => one.id === id);
    const answer = n < 0 ? null : this.data.answers[n][student];
    this.markGroup();
    this.detail.hidden = !answer;
    if (!answer) return this.detail.replaceChildren();
    const exercise = this.data.exercises[n];
    const group = answer.group < 0 ? null : this.data.groups[n][answer.group];
    const of = this.data.students[student];
    const told = t("{name}, {id} {title}: {points} of {of} points", {
      name: of.name,
      id,
      title: exercise.title,
      points: answer.points,
      of: exercise.of,
    });
    this.status.textContent = told;
    const error = this.text(answer.error);
    this.detail.replaceChildren(
      h("h3", { tabindex: "-1" }, told),
      ...(group ? [this.others(id, student, group)] : []),
      h(
        "ul",
        {},
        error ? h("li", { class: "no" }, h("span", { class: "sign" }, "✗ "), error) : null,
        ...exercise.rows.map((row, at) => {
          const [points, passed, says, place] = answer.rows[at] ?? [0, 0, -1, -1];
          return h(
            "li",
            { class: passed ? "yes" : "no" },
            h("span", { class: "sign" }, passed ? "✓ " : "✗ "),
            `${row.title} (${points} / ${row.of})`,
            says >= 0 ? h("small", {}, this.text(says)) : null,
            place >= 0 ? h("pre", { tabindex: "0" }, this.text(place)) : null,
          );
        }),
      ),
      ...this.beside(answer, group, student),
      this.stepper,
    );
    this.drawStepper();
  }

  /**
   * The students who gave the same wrong answer.
   * @param {string} id
   * @param {number} student
   * @param {Data.ClassGroup} group
   */
  others(id, student, group) {
    const choice = h("select", {
      "aria-label": t("Students with this answer"),
      onchange: () => {
        this.choose(id, Number(choice.value));
        this.detail.querySelector("select")?.focus();
      },
    });
    for (const s of group.students)
      choice.append(h("option", { value: s, selected: s === student }, this.data.students[s].name));
    const many = group.students.length;
    return h(
      "div",
      { class: "tools" },
      h(
        "span",
        { class: "dim" },
        many === 1 ? t("Nobody else") : t("{count} students have this answer:", { count: many }),
      ),
      many === 1 ? null : choice,
    );
  }

  /**
   * The answer beside the reference: as programs where it makes one, else as text.
   * @param {Data.ClassAnswer} answer
   * @param {Data.ClassGroup | null} group
   * @param {number} student
   */
  beside(answer, group, student) {
    const own = this.text(answer.text);
    const parts = [pair([t("The answer"), own], null)];
    if (!group) return parts;
    const first = this.data.students[group.first].name;
    const whose = group.first === student ? "" : t(", in the variant of {name}", { name: first });
    parts[0] = pair(
      [t("The answer"), own],
      [t("A reference{whose}", { whose }), this.text(group.reference)],
    );
    if (group.program >= 0)
      parts.push(
        pair(
          [t("The program that it makes{whose}", { whose }), this.text(group.program)],
          [t("The program of the reference{whose}", { whose }), this.text(group.right)],
          true,
        ),
      );
    return parts;
  }

  drawStepper() {
    if (!this.data) return;
    this.closeStepper?.();
    this.closeStepper = null;
    const { exercise, student } = this.model.get("chosen") || {};
    const comparison = this.model.get("comparison") || {};
    const one = this.data.exercises.find(({ id }) => id === exercise);
    const makes = one && ["schedule", "program", "space", "record"].includes(one.kind);
    if (!makes || !this.model.get("live")) return this.stepper.replaceChildren();
    if (comparison.of?.[0] === exercise && comparison.of?.[1] === student) {
      this.closeStepper = renderComparison({ model: this.model, el: this.stepper });
      this.status.textContent = t("The answer is open in the stepper, beside the reference.");
      return;
    }
    const trouble = this.model.get("trouble");
    const button = h(
      "button",
      {
        type: "button",
        onclick: () => {
          if (button.getAttribute("aria-disabled") === "true") return;
          button.setAttribute("aria-disabled", "true");
          button.textContent = t("Reading ...");
          this.model.set("asked", { exercise, student, at: Date.now() });
          this.model.save_changes();
        },
      },
      t("Open in the stepper, beside the reference"),
    );
    this.stepper.replaceChildren(
      h("div", { class: "tools" }, button, h("span", { role: "alert" }, trouble || "")),
    );
  }
}

/**
 * A table with these heads.
 * @param {string[]} names of its columns
 * @param {HTMLTableRowElement[]} rows
 */
function table(names, rows) {
  return h("table", {}, heads(names), h("tbody", {}, rows));
}

/**
 * A cell: so many of all, and as a bar.
 * @param {number} count
 * @param {number} all
 */
function share(count, all) {
  const part = all ? count / all : 0;
  return h(
    "td",
    { class: "number share", style: `--part: ${100 * part}%` },
    all ? `${count} (${percent(part)})` : "0",
  );
}

/** @param {number[]} counts */
function bars(counts) {
  const most = Math.max(1, ...counts);
  const told = counts.map((n, at) =>
    t("{count} with {low} to {high} %", {
      count: n,
      low: (100 * at) / BINS,
      high: (100 * (at + 1)) / BINS,
    }),
  );
  return h(
    "span",
    { class: "bins", role: "img", "aria-label": told.join(", "), title: told.join("\n") },
    counts.map((n) => h("i", { style: `--part: ${n / most}` })),
  );
}

/**
 * Two texts side by side; with `marked` what differs is marked.
 * @param {[string, string]} one
 * @param {[string, string] | null} other
 * @param {boolean} [marked]
 */
function pair(one, other, marked = false) {
  const shown = other && other[1] ? [one, other] : [one];
  const kept = marked && other ? lineDiff(one[1].split("\n"), other[1].split("\n")) : null;
  return h(
    "div",
    { class: "beside" },
    shown.map(([title, text], side) =>
      h(
        "div",
        {},
        h("h4", {}, title),
        h(
          "pre",
          { tabindex: "0", "aria-label": title },
          kept
            ? text.split("\n").map((line, at) =>
                h(
                  "span",
                  {
                    class: kept[side][at] ? "line" : `line ${side ? "come" : "gone"}`,
                    "data-sign": kept[side][at] ? "" : side ? "+" : "−",
                  },
                  line,
                  "\n",
                ),
              )
            : text,
        ),
      ),
    ),
  );
}

/** @param {Data.Host} host */
export function renderReport({ model, el }) {
  speak(model, el);
  const report = new Report(model, el);
  return () => report.close();
}

export default { render: renderReport };
