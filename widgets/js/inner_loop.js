// The inner loop in machine code, with what lives in which register: press a group to find its
// registers in the text.

import { escapeHTML, h } from "./dom.js";
import { codeTokens } from "./highlight.js";
import { t } from "./words.js";

const REGISTER = /\b(?:[xyz]mm\d+|[vq]\d+)\b/;

/**
 * A register without its width: ymm3, xmm3 and zmm3 are one, as are v3 and q3.
 * @param {string} name
 */
const register = (name) => name.replace(/^[xyz]mm/, "mm").replace(/^q/, "v");

/**
 * Registers as people list them: "ymm0 to ymm7, ymm9".
 * @param {string[]} names
 */
export function ranges(names) {
  /** @type {string[][]} */
  const runs = [];
  for (const name of names) {
    const last = runs.at(-1)?.at(-1);
    const [, kind, n] = name.match(/^(\D+)(\d+)$/) ?? ["", name, "0"];
    if (last === `${kind}${Number(n) - 1}`) runs.at(-1)?.push(name);
    else runs.push([name]);
  }
  return runs
    .map((run) =>
      run.length > 2 ? t("{first} to {last}", { first: run[0], last: run.at(-1) }) : run.join(", "),
    )
    .join(", ");
}

export class InnerLoopPane {
  #head;
  #held;
  #text;
  /** @type {Data.InnerLoop | undefined} */
  #inner;
  /** What the marked registers hold, which stays marked when another loop is shown. */
  #marked = "";

  constructor() {
    this.#head = h("h4", {}, t("Inner loop in machine code"));
    this.#held = h("ul", { class: "held", "aria-label": t("What lives in which vector register") });
    this.#text = h("div", {
      class: "asm",
      role: "region",
      "aria-label": t("Inner loop in machine code"),
      tabindex: "0",
    });
    this.element = h("div", {}, this.#head, this.#held, this.#text);
  }

  /**
   * @param {Data.InnerLoop | undefined} inner
   * @param {string} none what is said where there is nothing yet
   * @param {boolean} [waits] another one is on its way: until then the old one stays, paler
   */
  draw(inner, none, waits = false) {
    this.element.classList.toggle("stale", waits);
    if (waits && this.#inner) return;
    this.#inner = inner;
    const text = inner?.text ?? [];
    const count = inner?.instructions ?? text.length;
    this.#head.textContent = !text.length
      ? t("Inner loop in machine code")
      : text.length < count
        ? t("Inner loop in machine code: the first {shown} of {count} instructions", {
            shown: text.length,
            count,
          })
        : t("Inner loop in machine code: {count} instructions", { count });
    this.#held.replaceChildren(
      ...(inner?.held ?? []).map(({ registers, what }) => {
        const pressed = what === this.#marked;
        const button = h(
          "button",
          { type: "button", class: "small", "aria-pressed": String(pressed) },
          h("code", {}, ranges(registers)),
          ` ${what}`,
        );
        button.addEventListener("click", () => {
          this.#marked = this.#marked === what ? "" : what;
          this.draw(this.#inner, none);
          this.#find(what)?.focus();
        });
        return h("li", {}, button);
      }),
    );
    if (!text.length) {
      this.#text.innerHTML = `<p class="wait">${escapeHTML(inner?.message ?? none)}</p>`;
      return;
    }
    const group = inner?.held?.find((one) => one.what === this.#marked);
    const wanted = new Set(group?.registers.map(register));
    const onStack = new Set(inner?.on_stack);
    const lines = text.map((line, n) => this.#line(line, wanted, onStack.has(n)));
    this.#text.innerHTML = `<pre>${lines.join("\n")}</pre>`;
  }

  /** @param {string} what */
  #find(what) {
    const at = this.#inner?.held?.findIndex((one) => one.what === what) ?? -1;
    return this.#held.querySelectorAll("button")[at];
  }

  /**
   * @param {string} line
   * @param {Set<string>} wanted
   * @param {boolean} spill
   */
  #line(line, wanted, spill) {
    const code = codeTokens(line)
      .map(([kind, part]) => {
        const name = part.match(REGISTER)?.[0];
        const lit = name && wanted.has(register(name)) ? " lit" : "";
        return kind || lit
          ? `<span class="t-${kind}${lit}">${escapeHTML(part)}</span>`
          : escapeHTML(part);
      })
      .join("");
    return spill ? `<span class="spill">${code}</span>` : code;
  }
}
