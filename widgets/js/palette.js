// What can be done with the block or loop that was picked: a list of primitives with their forms.
//
// Draws what the kernel listed (mlc_lab/observe/workbench_palette.py says what the entries are) and
// hands back plain arguments. It knows nothing of what a primitive means.

import { h, later, sure } from "./dom.js";
import { t } from "./words.js";

/** @typedef {{ element: HTMLElement, value: () => unknown }} Field a control and what it says */

/**
 * @typedef {{ apply: (op: string, args: Record<string, unknown>) => void,
 *   check: (op: string, args: Record<string, unknown>, preview: boolean) => Promise<Data.Answered | null> }} Handlers
 */

let serial = 0; // for the ids that labels need; several palettes may stand on one page

/**
 * A control that can have the focus, and keeps the notebook's hands off its keys.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Data.Attributes} attributes
 * @param {...(Data.Child | Data.Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
const control = (tag, attributes, ...children) =>
  h(tag, { tabindex: "0", ...attributes }, ...children);

/**
 * A text with `code` in backquotes.
 * @param {string} text
 */
const withCode = (text) => text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));

/**
 * @param {unknown} a
 * @param {unknown} b
 */
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/**
 * How a loop of an extent comes apart: "128 → 16 × 8", and what is left over.
 * @param {string} name
 * @param {number | null} extent
 * @param {(number | null)[]} factors
 */
export function splitPreview(name, extent, factors) {
  const known = factors.filter((f) => f !== null);
  if (known.some((f) => !Number.isInteger(f) || f < 1))
    return t("a factor is a whole number, 1 or more");
  const product = known.reduce((a, b) => a * b, 1);
  if (extent === null) {
    return factors.map((f, i) => `${name}_${i} (${f ?? t("the rest")})`).join(", ");
  }
  const full = factors.map((f) => f ?? Math.max(1, Math.ceil(extent / product)));
  const total = full.reduce((a, b) => a * b, 1);
  const text = `${extent} → ${full.join(" × ")}`;
  if (total === extent) return text;
  return total > extent
    ? t("{text} = {total}: the last {count} iterations are skipped by a condition", {
        text,
        total,
        count: total - extent,
      })
    : t("{text} = {total}: {count} iterations would be lost", {
        text,
        total,
        count: extent - total,
      });
}

/**
 * The fields of one parameter: { element, value() }; `changed` is called when the reader edits.
 * @param {Data.Parameter} parameter
 * @param {() => void} changed
 * @returns {Field}
 */
function field(parameter, changed) {
  const make = FIELDS[parameter.kind] || FIELDS.text;
  return make(parameter, changed, `mlc-field-${++serial}`);
}

/**
 * @param {Data.Parameter} parameter
 * @param {string} id
 */
const label = (parameter, id) => h("label", { for: id }, parameter.name);

/** @type {Record<string, (parameter: Data.Parameter, changed: () => void, id: string) => Field>} */
const FIELDS = {
  /**
   * @param {Data.Parameter} parameter
   * @param {() => void} changed
   * @param {string} id
   * @returns {Field}
   */
  choice(parameter, changed, id) {
    const options = parameter.choices.map((choice, i) =>
      h(
        "option",
        { value: i, selected: same(choice.value, parameter.default) },
        choice.legal === false ? `${choice.label}  ✕` : choice.label,
      ),
    );
    const select = control("select", { id }, options);
    const why = h("div", { class: "why", id: `${id}-why` });
    select.setAttribute("aria-describedby", `${id}-why`);
    const tell = () => {
      const { reason = "", note = "" } = parameter.choices[Number(select.value)] || {};
      why.textContent = reason || note;
      why.classList.toggle("note", !reason);
    };
    select.addEventListener("change", () => {
      tell();
      changed();
    });
    tell();
    return {
      element: h("div", { class: "field" }, label(parameter, id), select, why),
      value: () => parameter.choices[Number(select.value)].value,
    };
  },

  /**
   * @param {Data.Parameter} parameter
   * @param {() => void} changed
   * @param {string} id
   * @returns {Field}
   */
  factors(parameter, changed, id) {
    const { extent, divisors = null, loop } = parameter;
    let factors = [...parameter.default];
    const rows = h("div", { class: "factors" });
    const preview = h("output", { class: "preview", for: id });
    const draw = () => {
      rows.replaceChildren(
        ...factors.map((factor, i) => {
          const which =
            i === 0 ? "outermost" : i === factors.length - 1 ? "innermost" : `loop ${i}`;
          if (factor === null) {
            return h(
              "div",
              { class: "factor" },
              h("span", {}, which),
              h("span", { class: "rest" }, t("what is left")),
            );
          }
          const number = control("input", {
            type: "number",
            min: 1,
            value: factor,
            "aria-label": t("Factor {at} ({which})", { at: i, which }),
          });
          /** @param {number} value */
          const set = (value) => {
            factors[i] = value;
            tell();
            changed();
          };
          number.addEventListener("input", () => {
            if (slider && divisors) slider.value = String(near(divisors, number.valueAsNumber));
            set(number.valueAsNumber);
          });
          /** @type {HTMLInputElement | null} */
          let slider = null;
          if (divisors) {
            slider = control("input", {
              type: "range",
              min: 0,
              max: divisors.length - 1,
              step: 1,
              value: near(divisors, factor),
              "aria-label": t("Divisor for factor {at} ({which})", { at: i, which }),
            });
            slider.setAttribute("aria-valuetext", String(factor));
            const range = slider;
            range.addEventListener("input", () => {
              const divisor = divisors[Number(range.value)];
              number.value = String(divisor);
              range.setAttribute("aria-valuetext", number.value);
              set(divisor);
            });
          }
          return h("div", { class: "factor" }, h("span", {}, which), slider, number);
        }),
      );
    };
    const tell = () => {
      preview.textContent = splitPreview(loop, extent, factors);
    };
    const count = control("input", { type: "number", id, min: 2, max: 6, value: factors.length });
    count.addEventListener("input", () => {
      const wanted = Math.max(1, Math.min(6, count.valueAsNumber || 2));
      factors =
        wanted > factors.length
          ? [...factors, ...new Array(wanted - factors.length).fill(1)]
          : [...factors.slice(0, 1), ...factors.slice(factors.length - wanted + 1)];
      draw();
      tell();
      changed();
    });
    draw();
    tell();
    return {
      element: h(
        "div",
        { class: "field" },
        h("label", { for: id }, "into"),
        count,
        h("span", {}, "loops"),
        rows,
        preview,
      ),
      value: () => [...factors],
    };
  },

  /**
   * @param {Data.Parameter} parameter
   * @param {() => void} changed
   * @param {string} id
   * @returns {Field}
   */
  order(parameter, changed, id) {
    const order = [...parameter.default];
    const list = h("ol", { class: "order", "aria-label": parameter.name });
    /** @param {unknown} value */
    const name = (value) => sure(parameter.items.find((item) => same(item.value, value))).label;
    /**
     * @param {number} from
     * @param {number} to
     */
    const move = (from, to) => {
      const [item] = order.splice(from, 1);
      order.splice(to, 0, item);
      draw();
      const row = list.children[to];
      const wanted = row.querySelector(to < from ? "button" : "button + button");
      const free = wanted?.hasAttribute("disabled")
        ? row.querySelector("button:not([disabled])")
        : wanted;
      free?.focus();
      changed();
    };
    const draw = () => {
      list.replaceChildren(
        ...order.map((value, i) =>
          h(
            "li",
            {},
            h("span", {}, name(value)),
            h(
              "button",
              {
                type: "button",
                "aria-label": t("Move {name} out", { name: name(value) }),
                disabled: i === 0,
                onclick: () => move(i, i - 1),
              },
              "↑",
            ),
            h(
              "button",
              {
                type: "button",
                "aria-label": t("Move {name} in", { name: name(value) }),
                disabled: i === order.length - 1,
                onclick: () => move(i, i + 1),
              },
              "↓",
            ),
          ),
        ),
      );
    };
    draw();
    list.id = id;
    return {
      element: h(
        "div",
        { class: "field" },
        h("span", { class: "name" }, t("outermost first")),
        list,
      ),
      value: () => [...order],
    };
  },

  /**
   * @param {Data.Parameter} parameter
   * @param {() => void} changed
   * @param {string} id
   * @returns {Field}
   */
  bool(parameter, changed, id) {
    const box = control("input", { type: "checkbox", id, checked: parameter.default });
    box.addEventListener("change", changed);
    return {
      element: h("div", { class: "field" }, box, label(parameter, id)),
      value: () => box.checked,
    };
  },

  /**
   * @param {Data.Parameter} parameter
   * @param {() => void} changed
   * @param {string} id
   * @returns {Field}
   */
  int(parameter, changed, id) {
    const box = control("input", { type: "number", id, value: parameter.default });
    box.addEventListener("input", changed);
    return {
      element: h("div", { class: "field" }, label(parameter, id), box),
      value: () => box.valueAsNumber,
    };
  },

  /**
   * @param {Data.Parameter} parameter
   * @param {() => void} changed
   * @returns {Field}
   */
  ints(parameter, changed) {
    const boxes = parameter.default.map((/** @type {number} */ value, /** @type {number} */ i) => {
      const name = parameter.labels ? parameter.labels[i] : `${parameter.name} ${i}`;
      const box = control("input", { type: "number", value, "aria-label": name });
      box.addEventListener("input", changed);
      return h("label", { class: "small" }, parameter.labels ? `${name} ` : "", box);
    });
    return {
      element: h("div", { class: "field" }, h("span", { class: "name" }, parameter.name), boxes),
      value: () =>
        boxes.map((/** @type {Element} */ label) => label.querySelector("input")?.valueAsNumber),
    };
  },

  /**
   * @param {Data.Parameter} parameter
   * @param {() => void} changed
   * @param {string} id
   * @returns {Field}
   */
  text(parameter, changed, id) {
    const list =
      parameter.suggestions &&
      h(
        "datalist",
        { id: `${id}-list` },
        parameter.suggestions.map((value) => h("option", { value })),
      );
    const box = control("input", {
      type: "text",
      id,
      value: parameter.default,
      spellcheck: "false",
      autocomplete: "off",
      list: list ? `${id}-list` : null,
    });
    box.addEventListener("input", changed);
    return {
      element: h("div", { class: "field" }, label(parameter, id), box, list),
      value: () => box.value,
    };
  },

  map: (parameter, changed, id) => written(parameter, changed, id, "map"),
  value: (parameter, changed, id) => written(parameter, changed, id, "python"),
};

/**
 * A field whose text is Python, which the kernel reads (and never executes).
 * @param {Data.Parameter} parameter
 * @param {() => void} changed
 * @param {string} id
 * @param {string} tag
 * @returns {Field}
 */
function written(parameter, changed, id, tag) {
  const box = control("input", {
    type: "text",
    id,
    value: parameter.default?.[tag] ?? "None",
    class: "python-text",
    spellcheck: "false",
    autocomplete: "off",
  });
  box.addEventListener("input", changed);
  return {
    element: h("div", { class: "field wide" }, label(parameter, id), box),
    value: () => ({ [tag]: box.value }),
  };
}

/**
 * Index of the divisor nearest to a number.
 * @param {number[]} divisors
 * @param {number} value
 */
function near(divisors, value) {
  let best = 0;
  divisors.forEach((d, i) => {
    if (Math.abs(d - value) < Math.abs(divisors[best] - value)) best = i;
  });
  return best;
}

/**
 * The list. `handlers`: apply(op, args), check(op, args, preview) -> Promise of
 * { legal, rule, reason, preview: [[sign, line], ...] }.
 */
export class PaletteView {
  /** @type {Set<string>} */
  open;
  /** @type {Data.Listing | null | undefined} */
  shown = later();

  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.handlers = handlers;
    this.open = new Set();
    this.previews = false; // whether the reader wants to see what would change
    this.head = h("div", { class: "palette-head", tabindex: "-1" });
    const id = `mlc-field-${++serial}`;
    this.only = control("input", { type: "checkbox", id });
    this.only.addEventListener("change", () =>
      this.list.classList.toggle("legal-only", this.only.checked),
    );
    this.filter = h(
      "div",
      { class: "palette-filter" },
      this.only,
      h("label", { for: id }, t("only what is legal here")),
    );
    this.list = h("div", { class: "palette-list" });
    this.element = h(
      "div",
      { class: "palette", role: "region", "aria-label": t("What can be done here") },
      this.head,
      this.filter,
      this.list,
    );
    this.filter.hidden = true;
  }

  /**
   * Say something in place of the list.
   * @param {string | Node} head
   * @param {string | undefined} text
   */
  say(head, text) {
    this.head.replaceChildren(head);
    this.filter.hidden = true;
    this.list.replaceChildren(...(text ? [h("p", { class: "hint" }, text)] : []));
    this.shown = null;
  }

  /**
   * Show a listing { kind, name, entries }.
   * @param {Data.Listing} listing
   */
  show(listing) {
    if (this.shown === listing) return;
    const focused = this.element.contains(document.activeElement)
      ? document.activeElement?.closest("[data-op]")?.dataset.op || ""
      : null;
    this.shown = listing;
    const legal = listing.entries.filter((entry) => entry.legal).length;
    this.head.replaceChildren(
      h("strong", {}, `${t(listing.kind)} ${listing.name}`),
      h(
        "span",
        {},
        t(" {legal} of {all} primitives are legal", { legal, all: listing.entries.length }),
      ),
    );
    this.filter.hidden = false;
    const groups = new Map();
    for (const entry of listing.entries) {
      if (!groups.has(entry.group)) groups.set(entry.group, []);
      groups.get(entry.group).push(this.entry(entry));
    }
    this.list.replaceChildren(
      ...[...groups].map(([name, rows]) => {
        const id = `mlc-field-${++serial}`;
        return h(
          "div",
          { class: "group", role: "group", "aria-labelledby": id },
          h("div", { class: "group-name", id }, name),
          rows,
        );
      }),
    );
    if (focused !== null) {
      const again = focused && this.list.querySelector(`[data-op="${focused}"] .entry-name`);
      (again || this.head).focus({ preventScroll: true });
    }
  }

  /** @param {Data.PaletteEntry} entry */
  entry(entry) {
    const id = `mlc-field-${++serial}`;
    const body = h("div", { class: "entry-body", id });
    const name = h(
      "button",
      { type: "button", class: "entry-name", "aria-controls": id, "aria-expanded": "false" },
      h("span", { class: "sign", "aria-hidden": "true" }, entry.legal ? "▸" : "✕"),
      h("span", { class: "op" }, entry.op),
      entry.legal
        ? null
        : h(
            "span",
            { class: "rule" },
            h("s", {}, t("refused, ")),
            t("rule: {rule}", { rule: entry.rule }),
          ),
    );
    const row = h(
      "div",
      { class: `entry ${entry.legal ? "legal" : "refused"}`, "data-op": entry.op },
      name,
    );
    /** @type {HTMLElement[] | null} */
    let form = null;
    /** @param {boolean} wanted */
    const toggle = (wanted) => {
      name.setAttribute("aria-expanded", String(wanted));
      row.classList.toggle("open", wanted);
      this.open[wanted ? "add" : "delete"](entry.op);
      if (wanted && !form) {
        form = entry.legal ? this.form(entry) : this.reason(entry);
        body.replaceChildren(...form);
      }
      body.hidden = !wanted;
    };
    name.addEventListener("click", () => toggle(name.getAttribute("aria-expanded") !== "true"));
    const args = () => Object.fromEntries(entry.parameters.map((p) => [p.name, p.default]));
    // What is refused can have the focus and says why; it does not vanish from under the reader.
    row.append(
      h(
        "button",
        {
          type: "button",
          class: "quick",
          "aria-disabled": entry.legal ? null : "true",
          title: entry.legal ? t("Apply with its defaults") : entry.reason,
          "aria-label": entry.legal
            ? t("Apply {op} with its defaults", { op: entry.op })
            : t("Apply {op}: refused, {rule}", { op: entry.op, rule: entry.rule }),
          onclick: () => (entry.legal ? this.handlers.apply(entry.op, args()) : toggle(true)),
        },
        t("Apply"),
      ),
      body,
    );
    body.hidden = true;
    if (this.open.has(entry.op)) toggle(true);
    return row;
  }

  /** @param {Data.PaletteEntry} entry */
  reason(entry) {
    return [
      h("p", { class: "meaning" }, withCode(entry.meaning)),
      h("p", { class: "reason" }, h("strong", {}, `✕ ${entry.rule}: `), entry.reason),
    ];
  }

  /** @param {Data.PaletteEntry} entry */
  form(entry) {
    const verdict = h("div", { class: "verdict", role: "status" });
    const change = h("pre", {
      class: "change",
      tabindex: "0",
      "aria-label": t("What would change"),
    });
    const preview = h(
      "details",
      { class: "would", open: this.previews },
      h("summary", {}, t("What would change")),
      change,
    );
    preview.addEventListener("toggle", () => {
      this.previews = preview.open;
      if (preview.open && !change.firstChild) judge();
    });
    const apply = h(
      "button",
      { type: "submit", class: "apply" },
      t("Apply {op}", { op: entry.op }),
    );
    /** @type {[Data.Parameter, Field | null][]} */
    const fields = [];
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    let asked = 0;
    const args = () => {
      /** @type {Record<string, unknown>} */
      const found = {};
      for (const [parameter, one] of fields)
        found[parameter.name] = one ? one.value() : parameter.default;
      return found;
    };
    const judge = async () => {
      const number = ++asked;
      const told = await this.handlers.check(entry.op, args(), preview.open);
      if (number !== asked || !told) return;
      verdict.className = `verdict ${told.legal ? "good" : "bad"}`;
      verdict.replaceChildren(told.legal ? t("✓ legal") : `✕ ${told.rule}: ${told.reason}`);
      apply.setAttribute("aria-disabled", String(!told.legal));
      change.replaceChildren(
        ...(told.preview || []).map(([sign, line]) =>
          h(
            "div",
            { class: { "+": "l new", "-": "l removed" }[sign] || "l" },
            `${sign === "@" ? " " : sign} ${line}`,
          ),
        ),
      );
      if (told.legal && told.preview && !told.preview.length) change.textContent = "nothing";
    };
    const changed = () => {
      clearTimeout(timer);
      timer = setTimeout(judge, 150);
    };
    /** @type {HTMLElement[]} */
    const plain = [];
    /** @type {HTMLElement[]} */
    const advanced = [];
    for (const parameter of entry.parameters) {
      if (parameter.kind === "fixed") {
        fields.push([parameter, null]);
        continue;
      }
      const made = field(parameter, changed);
      fields.push([parameter, made]);
      (parameter.advanced ? advanced : plain).push(made.element);
    }
    const form = h(
      "form",
      {},
      h("p", { class: "meaning" }, withCode(entry.meaning)),
      plain,
      advanced.length ? h("details", {}, h("summary", {}, t("More")), advanced) : null,
      h("div", { class: "form-foot" }, apply, verdict),
      preview,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (apply.getAttribute("aria-disabled") !== "true") this.handlers.apply(entry.op, args());
    });
    return [form];
  }
}
