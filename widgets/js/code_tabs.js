// What a program becomes: lowered stages, LLVM IR, assembly and source for GPUs beside it.
//
// The lines come with the recording (an exported page) or are asked of the kernel, once for each
// program (a notebook). A line of code says from which lines of the program it came.

import { closest, copyButton, escapeHTML, gunzip, h, later, sure } from "./dom.js";
import { codeTokens, sourceTokens, tokens } from "./highlight.js";
import { LazyRows } from "./rows.js";
import { t } from "./words.js";

/** @import { Programs } from "./program.js" */

const PATIENCE = 60000; // ms after which a kernel that has not answered is given up
const STILL = 600; // ms that a reader stays on a step before its code is made ahead
const WHOLE_CODE = 140; // lines up to which all are in the page
/** The languages of GPUs, by the kind of target: names, which are not translated. */
export const LANGUAGES = {
  cuda: "CUDA",
  opencl: "OpenCL",
  webgpu: "WGSL",
  metal: "Metal",
  nvptx: "PTX",
};
/** @type {Record<number, string>} */
const WIDTH_NAMES = { 64: "64-bit", 128: "128-bit", 256: "256-bit", 512: "512-bit" };
const MIX_ORDER = [
  "load",
  "store",
  "fma",
  "arithmetic",
  "shuffle",
  "compare",
  "move",
  "branch",
  "other",
];
const WIDTH_ORDER = ["scalar", "64-bit", "128-bit", "256-bit", "512-bit"];

/**
 * The code of the programs of a recording that came so far: a view that is drawn anew has it, too.
 * @type {WeakMap<Data.Recording, Map<number, Data.CodeEntry>>}
 */
const CAME = new WeakMap();

/** The code of programs: what the recording has, and what the kernel has answered. */
export class CodeSource {
  /** @type {Map<number, Data.CodeEntry>} */
  known;
  /** @type {Map<number, (entry: Data.CodeEntry) => void>} */
  waiting;
  /** @type {Promise<void> | null} */
  unpacking;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  still;
  /** @type {Set<number>} */
  ahead = new Set(); // what was asked for before a reader did

  /**
   * @param {Data.Model} model
   * @param {Data.Recording} recording
   */
  constructor(model, recording) {
    this.model = model;
    this.known = CAME.get(recording) ?? new Map();
    CAME.set(recording, this.known);
    this.waiting = new Map();
    /** @param {any} message */
    this.onMessage = (message) => {
      if (message?.type !== "code") return;
      if (message.code) this.learn(message.code);
      else this.refuse(message.program, message.error);
    };
    this.unpacking = null;
    if (recording.code) {
      this.unpacking = this.unpack(recording.code).finally(() => (this.unpacking = null));
    }
    // The model of an exported page has nobody to send to: its `send` takes no message.
    this.live = Boolean(model.send && model.send.length);
    if (this.live) model.on("msg:custom", this.onMessage);
  }

  /**
   * The code that came with the recording, which is compressed in a page.
   * @param {Data.Code | { gzip: string }} code
   */
  async unpack(code) {
    this.learn("gzip" in code ? await gunzip(code.gzip) : code);
  }

  /** @param {Data.Code} code */
  learn(code) {
    const lines = code.lines.map(([text, from, width]) => ({ text, from, width }));
    for (const [program, at] of Object.entries(code.programs)) {
      /** @param {number[]} numbers */
      const pick = (numbers) => numbers.map((i) => lines[i]);
      const entry = {
        ...at,
        llvm: pick(at.llvm),
        assembly: pick(at.assembly),
        stages: at.stages.map((stage) => ({ ...stage, lines: pick(stage.lines) })),
        sources: Object.fromEntries(
          Object.entries(at.sources || {}).map(([kind, source]) => [
            kind,
            { ...source, lines: pick(source.lines) },
          ]),
        ),
      };
      this.known.set(Number(program), entry);
      this.waiting.get(Number(program))?.(entry);
      this.waiting.delete(Number(program));
    }
  }

  /**
   * Call `done(entry)` with the code of a program, or with { error } where there is none.
   * @param {number} program
   * @param {(entry: Data.CodeEntry) => void} done
   */
  get(program, done) {
    if (this.known.has(program)) {
      done(sure(this.known.get(program)));
      return;
    }
    if (this.unpacking) {
      const again = () => this.get(program, done);
      this.unpacking.then(again, again);
      return;
    }
    if (!this.live) {
      done({
        error: t(
          "This page was written without lowered code. Write it with " +
            "recording.html(path, code=True) to have it here.",
        ),
      });
      return;
    }
    const asked = this.waiting.has(program);
    this.waiting.set(program, done);
    if (asked) return;
    const giveUp = () => {
      if (this.waiting.get(program) !== done) return;
      this.refuse(
        program,
        t(
          "No answer: code is made by the notebook's kernel, which is not running or is busy. " +
            "Run the cell again.",
        ),
      );
    };
    try {
      this.model.send({ type: "code", program });
      setTimeout(giveUp, PATIENCE);
    } catch {
      giveUp(); // a saved notebook without a kernel
    }
  }

  /**
   * There is no code of a program, for a reason that may pass.
   * @param {number} program
   * @param {string} error
   */
  refuse(program, error) {
    this.ahead.delete(program);
    this.waiting.get(program)?.({ error, again: true });
    this.waiting.delete(program);
  }

  /**
   * Have the code of programs made before a reader asks for it, if the reader stays where they are.
   * @param {number[]} programs
   */
  prepare(programs) {
    clearTimeout(this.still);
    if (!this.live) return;
    this.still = setTimeout(() => {
      for (const program of programs) {
        if (this.known.has(program) || this.waiting.has(program) || this.ahead.has(program))
          continue;
        this.ahead.add(program);
        try {
          this.model.send({ type: "code", program, ahead: true });
        } catch {
          return; // a saved notebook without a kernel
        }
      }
    }, STILL);
  }

  remove() {
    clearTimeout(this.still);
    if (this.live) this.model.off("msg:custom", this.onMessage);
  }
}

/**
 * Lines of a program (from `n` on) that stand under line `n`, it included.
 * @param {Data.Line[]} lines
 * @param {number} n
 */
function under(lines, n) {
  const found = [n];
  for (let i = n + 1; i < lines.length && lines[i].indent > lines[n].indent; i++) found.push(i);
  return found;
}

/** The view of one kind of code of one program: the program on the left, its code on the right. */
export class CodeView {
  /** @type {Data.CodeKind} */
  kind;
  /** @type {HTMLElement | null} */
  absent = null; // what is said where a program has no code of this kind
  /** @type {number[] | null} */
  chosen;
  /** @type {Data.CodeEntry | null} */
  entry = later();
  /** @type {string} */
  labels = later();
  /** @type {number[] | null} */
  lit = later();
  /** @type {Map<number, Data.Mark>} */
  marks = later();
  /** @type {ReturnType<typeof setInterval> | undefined} */
  clock;

  /**
   * @param {Programs} programs
   * @param {CodeSource} source
   * @param {(said: string) => void} tell
   */
  constructor(programs, source, tell) {
    this.programs = programs;
    this.source = source;
    this.tell = tell;
    this.kind = "stages";
    this.stage = "";
    this.all = false;
    this.program = -1;
    this.chosen = null;
    this.left = this.pane(t("Program after the step"));
    this.right = this.pane(t("Code"));
    const again = () => this.light(this.lit);
    this.leftRows = new LazyRows(this.left, again, WHOLE_CODE);
    this.rightRows = new LazyRows(this.right, again, WHOLE_CODE);
    this.stages = h("select", {
      "aria-label": t("Lowering stage"),
      onchange: () => {
        this.stage = this.stages.value;
        this.draw();
      },
    });
    this.unchanged = h(
      "button",
      {
        type: "button",
        class: "small",
        "aria-pressed": "false",
        onclick: () => {
          this.all = !this.all;
          this.unchanged.setAttribute("aria-pressed", String(this.all));
          this.draw();
        },
      },
      t("Passes that changed nothing"),
    );
    this.caption = h("span", {});
    this.facts = h("div", { class: "mix" });
    this.element = h(
      "div",
      { class: "panes code-view" },
      h("div", { class: "half" }, h("div", { class: "cap" }, t("After")), this.left),
      h(
        "div",
        { class: "half" },
        h(
          "div",
          { class: "cap" },
          this.caption,
          this.stages,
          this.unchanged,
          copyButton(t("Copy this code"), () =>
            this.lines()
              .map((line) => line.text)
              .join("\n"),
          ),
        ),
        this.right,
      ),
      this.facts,
    );
    for (const [pane, other] of [
      [this.left, this.right],
      [this.right, this.left],
    ]) {
      pane.addEventListener("mouseover", (event) => this.point(pane, closest(event, "[data-n]")));
      pane.addEventListener("mouseleave", () => this.point(pane, null));
      pane.addEventListener("click", (event) => {
        const line = closest(event, "[data-n]");
        if (line && String(getSelection()) === "") this.choose(pane, line, other);
      });
      pane.addEventListener("keydown", (event) => this.key(event, pane, other));
      pane.addEventListener("blur", () => pane.querySelector(".cur")?.classList.remove("cur"));
    }
  }

  /** @param {string} label */
  pane(label) {
    return h("div", { class: "pane", tabindex: "0", role: "region", "aria-label": label });
  }

  /**
   * Show a kind of code of a program; `marks` tints its lines. Where `absent` is given, there is
   * none, and it says why.
   * @param {number} program
   * @param {Data.CodeKind} kind
   * @param {Map<number, Data.Mark>} marks
   * @param {HTMLElement | null} [absent]
   */
  show(program, kind, marks, absent = null) {
    if (program !== this.program) this.chosen = null;
    this.program = program;
    this.kind = kind;
    this.marks = marks;
    this.absent = absent;
    this.drawLeft();
    if (!absent) return this.ask();
    this.entry = null;
    clearInterval(this.clock);
    this.draw();
    this.tell?.(absent.textContent || "");
  }

  /** Get the code of the program, and say how long that takes. */
  ask() {
    const { program } = this;
    this.entry = null;
    clearInterval(this.clock);
    this.source.get(program, (entry) => {
      if (program !== this.program) return;
      clearInterval(this.clock);
      this.entry = entry;
      this.draw();
      if (this.tell) {
        const said = this.error() || t("{count} lines", { count: this.lines().length });
        this.tell(`${this.caption.textContent}: ${said}`);
      }
    });
    if (this.entry) return;
    this.draw(); // until the answer comes
    const start = performance.now();
    this.clock = setInterval(() => {
      const said = this.right.querySelector(".wait");
      if (!said || !said.isConnected) return clearInterval(this.clock);
      said.textContent = t("Compiling, {seconds} s", {
        seconds: Math.round((performance.now() - start) / 1000),
      });
    }, 1000);
  }

  /** Draw both panes anew, as after lines were wrapped. */
  redraw() {
    if (this.program >= 0) this.drawLeft();
    if (this.entry) this.draw();
  }

  drawLeft() {
    const text = this.programs.programs[this.program];
    this.leftRows.show(text.length, (n) =>
      this.programs.line(text[n], this.marks.get(n) || "", null, n),
    );
  }

  lines() {
    if (!this.entry || !this.entry.stages) return [];
    if (this.kind in LANGUAGES) return this.entry.sources?.[this.kind]?.lines || [];
    if (this.kind === "llvm" || this.kind === "assembly") return this.entry[this.kind] || [];
    const stage = this.entry.stages.find((s) => s.name === this.stage);
    return stage ? stage.lines : [];
  }

  /** Why a kind of code could not be made. */
  error() {
    const source = this.kind in LANGUAGES ? this.entry?.sources?.[this.kind] : null;
    return (source ? source.error : this.entry?.error) || "";
  }

  /** What stands above the code. */
  title() {
    const language = /** @type {Record<string, string>} */ (LANGUAGES)[this.kind];
    if (language) return t("Source: {language}", { language });
    if (this.kind === "stages") return t("Lowered, after ");
    const name = this.kind === "llvm" ? t("LLVM IR, optimised") : t("Assembly");
    const machine = this.entry?.machine;
    return machine ? name + t(" for {machine}", { machine }) : name;
  }

  drawStages() {
    const { stages = [] } = this.entry || {};
    const idle = stages.filter((stage) => !stage.changed).length;
    const shown = stages.filter((stage) => this.all || stage.changed);
    if (!shown.some((stage) => stage.name === this.stage) && shown.length) {
      this.stage = shown[shown.length - 1].name;
    }
    const labels = shown.map((stage) =>
      stage.changed ? stage.name : t("{name} (nothing)", { name: stage.name }),
    );
    if (labels.join() !== this.labels) {
      this.labels = labels.join();
      this.stages.replaceChildren(
        ...shown.map((stage, i) => h("option", { value: stage.name }, labels[i])),
      );
    }
    this.stages.value = this.stage;
    this.unchanged.textContent = this.all
      ? t("Hide {idle} idle", { idle })
      : t("{idle} idle passes", { idle });
    this.unchanged.title = t("Passes that changed nothing");
    this.unchanged.hidden = !idle;
  }

  draw() {
    const lowered = this.kind === "stages";
    this.stages.hidden = this.unchanged.hidden = !lowered;
    const source = this.kind in LANGUAGES;
    this.caption.textContent = this.title();
    if (lowered) this.drawStages();
    const lines = this.lines();
    if (this.absent) this.right.replaceChildren(this.absent);
    else if (!this.entry) this.right.replaceChildren(h("p", { class: "wait" }, t("Compiling …")));
    else if (!lines.length) {
      this.right.replaceChildren(
        h("p", { class: "wait" }, this.error() || t("There is nothing to show.")),
        this.entry.again
          ? h("button", { type: "button", onclick: () => this.tryAgain() }, t("Try again"))
          : "",
      );
    } else {
      const written = source && this.kind !== "nvptx"; // as a language, not as instructions
      const read = lowered ? tokens : written ? sourceTokens : codeTokens;
      this.rightRows.show(lines.length, (n) => {
        const line = lines[n];
        // A line that many steps share is coloured once.
        line.html ||= read(line.text)
          .map(([kind, text]) =>
            kind ? `<span class="t-${kind}">${escapeHTML(text)}</span>` : escapeHTML(text),
          )
          .join("");
        const wide = line.width ? ` w${line.width}` : "";
        const sign = line.width
          ? `<i title="${WIDTH_NAMES[line.width] || `${line.width}-bit`} vectors">${line.width}</i>`
          : "<i></i>";
        const indent = line.text.length - line.text.trimStart().length;
        return `<div class="l${wide}" data-n="${n}" data-from=" ${line.from.join(" ")} " style="--in:${indent}">${sign}<code>${line.html}</code></div>`;
      });
    }
    this.right.classList.toggle("machine", !lowered && !source);
    this.drawFacts();
    this.light(this.chosen);
    if (this.chosen) this.meet(this.right);
  }

  tryAgain() {
    this.right.focus();
    this.ask();
  }

  drawFacts() {
    const { mix = {} } = this.entry || {};
    const error = this.error();
    const parts = [];
    if (this.absent) return this.facts.replaceChildren();
    if (this.kind === "assembly" && mix.instructions) {
      /** @param {string} name */
      const count = (name) =>
        h(
          "span",
          { class: `count-of ${name.replace(/^(\d+)-bit/, "w$1")}` },
          h("b", {}, String(mix[name])),
          ` ${t(name)}`,
        );
      parts.push(h("span", {}, h("b", {}, String(mix.instructions)), t(" instructions: ")));
      parts.push(...MIX_ORDER.filter((name) => mix[name]).map(count));
      if (mix["memory operands"]) parts.push(count("memory operands"));
      parts.push(
        h("span", {}, t(" · by width: ")),
        ...WIDTH_ORDER.filter((name) => mix[name]).map(count),
      );
    } else if (error && this.lines().length) {
      parts.push(h("span", { class: "bad" }, `✕ ${error}`));
    } else {
      parts.push(t("Point at a line to see what it became, or what it came from."));
    }
    this.facts.replaceChildren(...parts);
  }

  /**
   * Lines of the program for a line in a pane: itself, what is under it, or its origins.
   * @param {HTMLElement} pane
   * @param {Element} line
   * @returns {number[]}
   */
  origins(pane, line) {
    if (pane === this.right)
      return (line.dataset.from || "").trim().split(" ").filter(Boolean).map(Number);
    const lines = this.programs.programs[this.program];
    const made = new Set(this.lines().flatMap((l) => l.from));
    let n = Number(line.dataset.n);
    if (made.has(n)) return [n];
    // A line that became nothing itself, such as an iterator's, stands for its block.
    if (!lines[n].text.endsWith(":")) {
      let up = n;
      while (up > 0 && lines[up].indent >= lines[n].indent) up--;
      if (lines[up].text.startsWith("with ")) n = up;
    }
    return under(lines, n).filter((i) => made.has(i));
  }

  /**
   * @param {HTMLElement} pane
   * @param {Element | null} line
   */
  point(pane, line) {
    this.light(line ? this.origins(pane, line) : this.chosen);
  }

  /**
   * @param {HTMLElement} pane
   * @param {Element} line
   * @param {HTMLElement} other
   */
  choose(pane, line, other) {
    this.chosen = this.origins(pane, line);
    this.light(this.chosen);
    const count = this.meet(other);
    if (this.tell)
      this.tell(`${line.textContent.trim()}: ${t("{count} lines of code", { count })}`);
  }

  /**
   * Bring the first line of a pane that belongs to what is chosen to sight; how many lines of code
   * do.
   * @param {HTMLElement} pane
   */
  meet(pane) {
    const met = this.lines()
      .map((at, n) => (at.from.some((k) => sure(this.chosen).includes(k)) ? n : -1))
      .filter((n) => n >= 0);
    const first = pane === this.right ? met[0] : Math.min(...sure(this.chosen));
    const rows = pane === this.right ? this.rightRows : this.leftRows;
    if (first !== undefined && Number.isFinite(first)) this.toSight(pane, rows.reveal(first));
    return met.length;
  }

  /**
   * Scroll a pane so that what is `y` pixels down can be seen, if it cannot be already.
   * @param {HTMLElement} pane
   * @param {number} y
   */
  toSight(pane, y) {
    if (y < pane.scrollTop || y > pane.scrollTop + pane.clientHeight - 40) {
      pane.scrollTop = Math.max(0, y - 60);
    }
  }

  /** @param {number[] | null} origins */
  light(origins) {
    this.lit = origins;
    for (const old of this.element.querySelectorAll(".rel")) old.classList.remove("rel");
    if (!origins || !origins.length) return;
    for (const n of origins) this.left.querySelector(`[data-n="${n}"]`)?.classList.add("rel");
    const selector = origins.map((n) => `[data-from*=" ${n} "]`).join(",");
    for (const line of this.right.querySelectorAll(selector)) line.classList.add("rel");
  }

  /**
   * @param {KeyboardEvent} event
   * @param {HTMLElement} pane
   * @param {HTMLElement} other
   */
  key(event, pane, other) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    (pane === this.left ? this.leftRows : this.rightRows).fill();
    const lines = [...pane.querySelectorAll("[data-n]")];
    const at = lines.findIndex((line) => line.classList.contains("cur"));
    if (event.key === "Escape") {
      this.chosen = null;
      this.light(null);
    } else if ((event.key === "Enter" || event.key === " ") && at >= 0) {
      this.choose(pane, lines[at], other);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const to =
        event.key === "ArrowDown" ? Math.min(lines.length - 1, at + 1) : Math.max(0, at - 1);
      lines[at]?.classList.remove("cur");
      lines[to]?.classList.add("cur");
      lines[to]?.scrollIntoView({ block: "nearest", inline: "nearest" });
      if (lines[to]) {
        this.point(pane, lines[to]);
        this.tell?.(lines[to].textContent.trim());
      }
    } else return;
    event.preventDefault();
  }
}
