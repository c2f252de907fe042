// The card of an exercise on a page of the site, where no Python checks it: the page has what Python
// would say of an answer (widgets/page_card.py), and the browser keeps what was answered.

import { PageModel } from "./page.js";

/** Answers what the card asks for, as widgets/card.py does. */
export class PageCard extends PageModel {
  /** @param {Record<string, any>} values */
  constructor(values) {
    super(values);
    /** @type {Data.CardPage} */
    this.page = values.page;
    /** @type {Data.Task} */
    this.task = values.task;
    this.key = `mlc-lab exercise ${this.task.id} ${this.task.seed}`;
    /** The answer that has marks. @type {unknown} */
    this.checked = undefined;
    this.restore();
  }

  /**
   * @param {string} name
   * @param {unknown} value
   */
  set(name, value) {
    super.set(name, value);
    if (name === "asked") this.check();
    if (name === "wanted") super.set("hints", this.told(Number(value)));
    if (["answer", "asked", "wanted"].includes(name)) this.keep();
  }

  check() {
    const { value, n } = this.get("answer");
    this.checked = value;
    super.set("marks", { ...marksOf(this.task, this.page, value), n });
  }

  /**
   * Hints, and the solution after them.
   * @param {number} count
   */
  told(count) {
    return [...this.page.hints, this.page.solution].slice(0, count);
  }

  // -------------------------------------------------------------------- what the browser keeps

  /** Marks are made anew, in the language of this page. An answer to another version of the exercise
   * has none, and one of fields may fit no more. */
  restore() {
    const { version, value, checked, hints } = stored(this.key);
    const { values, task, page } = this;
    const current = version === page.version;
    const text = task.kind !== "prediction";
    if (typeof value !== (text ? "string" : "object") || !(current || text)) return;
    values.answer = { value, n: 0 };
    values.task = { ...task, outdated: !current };
    if (!current) return;
    values.wanted = hints;
    values.hints = this.told(hints);
    this.checked = checked;
    if (checked !== undefined && page.rows)
      values.marks = { ...marksOf(task, page, checked), n: alike(checked, value) ? 0 : -1 };
  }

  keep() {
    const kept = {
      version: this.page.version,
      value: this.get("answer").value,
      checked: this.checked,
      hints: this.get("wanted"),
    };
    try {
      localStorage.setItem(this.key, JSON.stringify(kept));
    } catch {
      // a private window, or no room: it lasts as long as the page
    }
  }
}

/**
 * What the browser has kept, or nothing.
 * @param {string} key
 * @returns {Record<string, any>}
 */
function stored(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/**
 * The marks of an answer; where the page cannot check it, why there are none.
 * @param {Data.Task} task
 * @param {Data.CardPage} page
 * @param {any} value
 */
export function marksOf(task, page, value) {
  const of = task.rows.reduce((sum, row) => sum + row.of, 0);
  if (!page.rows) return { rows: [], points: "–", of, error: page.error };
  const { words } = page;
  const rows = page.rows.map(({ kind, field, title, of, ...row }) => {
    const given = value?.[field];
    const asked = task.fields.find(({ name }) => name === field);
    const found =
      kind === "marks"
        ? marked(row, words, field, asked?.choices ?? [], given)
        : predicted(row, words, asked?.kind ?? "number", given);
    const { part: [good, all] = [0, 1], ...told } = found;
    const points = found.passed ? of : Math.floor((of * good) / all);
    return { kind, title, of, place: {}, ...told, points };
  });
  return { rows, points: rows.reduce((sum, row) => sum + row.points, 0), of, error: null };
}

/**
 * What checks/prediction.py finds.
 * @param {Data.PageTruth} row
 * @param {Record<string, string>} words
 * @param {string} kind of the field
 * @param {any} given
 * @returns {Data.PageFound}
 */
function predicted(row, words, kind, given) {
  const { equals, within = 0, why, says = [], about = {} } = row;
  if (given === null || given === undefined || given === "")
    return { passed: false, says: words.empty };
  if (kind === "several") given = [...new Set(given)].sort();
  const right =
    kind === "number"
      ? Math.abs(given - equals) <= within * Math.abs(equals)
      : alike(given, equals);
  if (right) return { passed: true, says: why };
  const known = says.find(([one]) => alike(one, given));
  if (known) return { passed: false, says: known[1] };
  if (kind === "several") {
    const [more, less] = [without(given, equals), without(equals, given)];
    const parts = [
      ...(more.length ? [filled(words.more, { value: more.join(", ") })] : []),
      ...(less.length ? [filled(words.less, { value: less.length })] : []),
      ...more.filter((name) => about[name]).map((name) => about[name]),
    ];
    return { passed: false, says: filled(words.several, { value: parts.join(words.clause) }) };
  }
  if (kind === "order")
    return { passed: false, says: filled(words.order, { value: given.join(", ") }) };
  const template = given > equals ? words.large : words.small;
  return { passed: false, says: filled(template, { value: written(given) }) };
}

/**
 * What checks/marks.py finds.
 * @param {Data.PageTruth} row
 * @param {Record<string, string>} words
 * @param {string} field
 * @param {string[]} places in the order in which they are told
 * @param {string[] | null | undefined} given
 * @returns {Data.PageFound}
 */
function marked({ equals, why, about = {} }, words, field, places, given) {
  if (!given) return { passed: false, says: words.unmarked };
  const now = places.filter((name) => given.includes(name));
  const [more, less] = [without(now, equals), without(equals, now)];
  if (!more.length && !less.length) return { passed: true, says: why };
  const good = now.length - more.length;
  const says = [...more.slice(0, 1), ...less.slice(0, 1)].map((name) => about[name]);
  const counts = { value0: good, value1: equals.length, value2: more.length };
  return {
    passed: false,
    says: says.join(words.clause) + words.sentence + filled(words.counts, counts),
    part: [Math.max(0, good - more.length), equals.length || 1],
    place: { field, wrong: more[0] ?? "", missing: less[0] ?? "" },
  };
}

/**
 * @param {string[]} list
 * @param {string[]} others
 */
const without = (list, others) => list.filter((one) => !others.includes(one));

/**
 * @param {unknown} one
 * @param {unknown} other
 */
const alike = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * @param {string} template
 * @param {Record<string, unknown>} values
 */
const filled = (template, values) =>
  template.replace(/\{(\w+)\}/g, (place, name) => String(values[name] ?? place));

/**
 * A number as Python writes it.
 * @param {number} number
 */
export function written(number) {
  const small = number !== 0 && Math.abs(number) < 1e-4;
  const text = small ? number.toExponential() : String(number);
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}
