// How many gave each answer: bars with their numbers, drawn on the page of the teacher and on phones.

import { h } from "./dom.js";
import { t } from "./words.js";

/**
 * The bars of a question's parts.
 * @param {Data.RoomQuestion} question
 * @param {Data.RoomCounts} counts
 * @param {Data.RoomTruth | null} truth what is so, once it is revealed
 * @param {Record<string, string> | null} [mine] what a student said
 */
export function drawBars(question, counts, truth, mine = null) {
  return question.asks.map(({ name, text, choices }) => {
    const found = counts[name] ?? {};
    const sum = Object.values(found).reduce((total, n) => total + n, 0);
    return h(
      "section",
      { class: "bars", "aria-label": text },
      h("h3", {}, text),
      h(
        "ul",
        {},
        choices.map(([value, word]) => {
          const n = found[value] ?? 0;
          const so = truth?.[name] === value;
          return h(
            "li",
            {
              class: so ? "so" : "",
              style: `--part: ${sum ? (100 * n) / sum : 0}%`,
              "data-value": `${name} ${value}`,
            },
            h("span", {}, word, so ? h("b", {}, t(" ← so it is")) : null),
            h("span", {}, mine?.[name] === value ? h("i", {}, t("you ")) : null, String(n)),
          );
        }),
      ),
    );
  });
}

/**
 * What is so, in a sentence.
 * @param {Data.RoomTruth} truth
 */
export const inWords = (truth) =>
  truth.says.map((/** @type {string} */ text) => text.split("\n")[0]).join("; ");

/**
 * What a question is, as a heading: `told` once it was revealed, where the step was shown with it.
 * @param {Data.RoomQuestion} question
 * @param {string} told
 */
export const titleOf = (question, told) =>
  isFactor(question)
    ? t("Which factor does this split get?")
    : told || t("What would this step do?");

/**
 * Whether a question is about a number in the step, which is shown with the question after it.
 * @param {Data.RoomQuestion} question
 */
export const isFactor = (question) => question.asks[0].name === "split";
