// The words of the views, in the language in which the view was made (see bundle.py, words).
//
// Texts are written in English, where they are used: t("Step {at} of {last}", { at, last }). The
// catalogue of translations is made of these calls, so the text is one literal there. Words that come
// with the data of a view are looked up as they are: t("loop"), t("block"), t("iterator"),
// t("buffer"), t("new"), t("changed"), t("moved"), t("removed"), t("step"), t("state"),
// t("memory operands"), t("load"), t("store"), t("fma"), t("arithmetic"), t("shuffle"), t("compare"),
// t("size"), t("line"), t("ways"), t("warps"), t("blocks"), t("registers"), t("shared memory"),
// t("program"), t("group").

/** The texts in another language, by the English ones; its name is that of "". @type {Record<string, string>} */
let words = {};

/**
 * Speak the language of a view. One within another has none of its own: it speaks the outer one's.
 * @param {Data.Model} model
 * @param {HTMLElement} element
 */
export function speak(model, element) {
  words = model.get("words") ?? words;
  if (words[""]) element.lang = words[""];
}

/**
 * A text in the language of the view, with values in the `{places}` for them.
 * @param {string} message
 * @param {Record<string, unknown>} [values]
 */
export function t(message, values) {
  const said = words[message] ?? message;
  return values ? said.replace(/\{(\w+)\}/g, (place, name) => String(values[name] ?? place)) : said;
}
