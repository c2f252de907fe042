// The tuning board: what a search found, as charts whose points can be opened.
//
// Draws a board (see mlc_lab/meta_schedule/board.py) and knows nothing of compilers. The model is
// anywidget's in a notebook and an object like it in an exported page, where `live` is false.

import { copyButton, digits, duration, escapeHTML, h, later, OWN_KEYS, sure } from "./dom.js";
import { tokens } from "./highlight.js";
import { scaleOf } from "./scale.js";
import { svg } from "./svg.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

/** @import { Scale } from "./scale.js" */

const charts = () => [
  ["progress", t("Progress")],
  ["model", t("Cost model")],
  ["space", t("Space")],
  ["family", t("Family")],
  ["trials", t("Trials")],
];
// Of each search; what they are on light and on dark stands in board.css.
const COLOURS = [0, 1, 2, 3, 4, 5].map((number) => `var(--search-${number})`);
const SHAPES = ["circle", "square", "diamond", "triangle", "down", "plus"];
const SIZE = { width: 860, height: 380, left: 74, right: 18, top: 16, bottom: 44 };

/**
 * @param {string} kind
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
function shapePath(kind, x, y, r) {
  switch (kind) {
    case "square":
      return `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z`;
    case "diamond":
      return `M${x},${y - 1.3 * r}l${1.3 * r},${1.3 * r}l${-1.3 * r},${1.3 * r}l${-1.3 * r},${-1.3 * r}z`;
    case "triangle":
      return `M${x},${y - 1.2 * r}l${1.2 * r},${2.2 * r}h${-2.4 * r}z`;
    case "down":
      return `M${x},${y + 1.2 * r}l${1.2 * r},${-2.2 * r}h${-2.4 * r}z`;
    case "plus":
      return `M${x - r},${y}h${2 * r}M${x},${y - r}v${2 * r}`;
    case "cross":
      return `M${x - r},${y - r}l${2 * r},${2 * r}M${x - r},${y + r}l${2 * r},${-2 * r}`;
    default:
      return `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`;
  }
}

/**
 * @param {Data.Trial} trial
 * @returns {trial is Data.Trial & { time: number }}
 */
const isTimed = (trial) => trial.time !== null;

/**
 * @template {Data.Trial} T
 * @param {T} trial
 * @returns {trial is T & { predicted: number }}
 */
const isPredicted = (trial) => trial.predicted !== null;

/**
 * Whether the times of searches are measured, those of a model, or some of them either.
 * @param {Data.Session[]} sessions
 */
function howKnown(sessions) {
  const modelled = sessions.filter((session) => session.modelled).length;
  return modelled === 0 ? "measured" : modelled === sessions.length ? "modelled" : "both";
}

/** @param {string} state of a search */
const stateOf = (state) =>
  ({ running: t("running"), done: t("done"), stopped: t("stopped") })[state] ?? state;

/** @type {Record<string, (board: BoardView, trials: Data.Trial[]) => Element | Element[]>} */
const DRAWINGS = {
  progress: (board, trials) => board.drawProgress(trials),
  model: (board, trials) => board.drawModel(trials),
  space: (board, trials) => board.drawSpace(trials),
  family: (board, trials) => board.drawFamily(trials),
  trials: (board, trials) => board.drawTrials(trials),
};

class BoardView {
  /** @type {HTMLElement} */
  title = later();
  /** @type {HTMLSpanElement} */
  facts = later();
  /** @type {HTMLButtonElement} */
  stop = later();
  /** @type {HTMLDivElement} */
  tabs = later();
  /** @type {HTMLDivElement} */
  choices = later();
  /** @type {HTMLDivElement} */
  plot = later();
  /** @type {HTMLDivElement} */
  legend = later();
  /** @type {HTMLElement} */
  detail = later();
  /** @type {HTMLDivElement} */
  live = later();
  /** @type {HTMLDivElement} */
  view = later();
  /** @type {() => void} */
  unfollow = later();
  /** @type {Data.Board} */
  board = later();
  /** @type {Map<string, Data.Trial>} */
  byKey = later();
  /** @type {Set<string>} */
  hidden = later();
  /** @type {Map<string, number>} */
  order = later();
  /** @type {[string, SVGElement][]} */
  points = later();
  /** @type {string[]} */
  heat = later();
  /** @type {string} */
  selected = later();
  /** @type {Map<string, [HTMLInputElement | HTMLSelectElement, number | number[]]>} */
  inputs = later();
  /** @type {ReturnType<typeof setInterval> | undefined} */
  clock = undefined;
  /** The trial that others are compared with. */
  beside = "";
  /** @type {HTMLSpanElement} */
  elapsed = later();
  /** @type {HTMLElement} */
  message = later();

  /**
   * @param {Data.Model} model
   * @param {HTMLElement} root
   */
  constructor(model, root) {
    this.model = model;
    this.chart = "progress";
    this.build(root);
    this.handlers = {
      board: () => this.load(),
      selected: () => this.select(this.model.get("selected"), false),
      reply: () => this.answer(),
      running: () => {
        this.status();
        this.draw();
      },
    };
    for (const [name, handler] of Object.entries(this.handlers))
      model.on(`change:${name}`, handler);
    this.load();
  }

  close() {
    clearInterval(this.clock);
    for (const [name, handler] of Object.entries(this.handlers))
      this.model.off(`change:${name}`, handler);
    this.unfollow();
  }

  /** @param {HTMLElement} root */
  build(root) {
    this.title = h("b", {});
    this.facts = h("span", { class: "dim", role: "status" });
    this.elapsed = h("span", { class: "dim", "aria-hidden": "true" });
    this.stop = h(
      "button",
      { type: "button", class: "stop", onclick: () => this.interrupt() },
      t("Stop, keep what was found"),
    );
    this.tabs = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": t("Charts") },
      charts().map(([id, text]) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            "data-chart": id,
            id: undefined,
            onclick: () => this.open(id),
            onkeydown: (event) => this.tabKey(event),
          },
          text,
        ),
      ),
    );
    this.choices = h("div", { class: "choices" });
    this.plot = h("div", { class: "plot", role: "tabpanel", tabindex: "-1" });
    this.legend = h("div", { class: "legend" });
    this.detail = h("section", { class: "detail", "aria-label": t("Trial") });
    this.live = h("div", { class: "sr", role: "status", "aria-live": "polite" });
    this.view = h(
      "div",
      { class: "mlc mlc-board" },
      h("div", { class: "bar" }, this.title, this.facts, this.elapsed, this.stop),
      this.legend,
      this.tabs,
      this.choices,
      h("div", { class: "halves" }, this.plot, this.detail),
      this.live,
    );
    root.append(this.view);
    this.unfollow = followTheme(this.view);
  }

  // -- data

  load() {
    /** @type {Data.Board} */
    const data = (this.board = this.model.get("board"));
    this.byKey = new Map(data.trials.map((trial) => [trial.key, trial]));
    this.hidden = new Set(
      [...(this.hidden || [])].filter((key) => data.sessions.some((s) => s.key === key)),
    );
    this.order = new Map(data.sessions.map((session, index) => [session.key, index]));
    const taken = new Map();
    for (const trial of data.trials) {
      // the number of a trial on the axis, in each search from 0
      const index = taken.get(trial.session) || 0;
      trial.index = index;
      taken.set(trial.session, index + 1);
    }
    this.title.textContent = data.title;
    this.status();
    this.drawLegend();
    this.draw();
    this.select(
      this.byKey.has(this.model.get("selected")) ? this.model.get("selected") : "",
      false,
    );
  }

  status() {
    const { trials, sessions } = this.board;
    const failed = trials.filter((trial) => trial.status !== "ok").length;
    const best = Math.min(...trials.filter(isTimed).map((t) => t.time));
    const wanted = sessions.reduce((sum, session) => sum + (session.trials_wanted || 0), 0);
    const running = this.model.get("running");
    this.facts.textContent = [
      running && wanted
        ? t("{count} of {wanted} trials", { count: trials.length, wanted })
        : t("{count} trials", { count: trials.length }),
      failed ? t("{count} failed", { count: failed }) : "",
      Number.isFinite(best) ? t("best {time}", { time: duration(best) }) : "",
      this.ofPeak(best),
      running ? (trials.length ? "searching" : t("the first trials are built and measured")) : "",
    ]
      .filter(Boolean)
      .join(", ");
    // Before the first trial, and between two rounds, nothing else moves.
    clearInterval(this.clock);
    const since = Date.now();
    const tell = () => {
      const seconds = Math.round((Date.now() - since) / 1000);
      this.elapsed.textContent = running && seconds > 1 ? t("for {seconds} s", { seconds }) : "";
    };
    tell();
    if (running) this.clock = setInterval(tell, 1000);
    this.stop.hidden = !(running && this.model.get("kernel"));
  }

  /** @param {number} time */
  ofPeak(time) {
    const session = this.board.sessions.find((item) => item.peak_s);
    if (!session || !Number.isFinite(time) || this.board.sessions.length > 1) return "";
    return t("{part} % of peak", { part: Math.round((100 * sure(session.peak_s)) / time) });
  }

  shown() {
    return this.board.trials.filter((trial) => !this.hidden.has(trial.session));
  }

  /** @param {{ session: string }} trial */
  look(trial) {
    const index = this.order.get(trial.session) || 0;
    return [COLOURS[index % COLOURS.length], SHAPES[index % SHAPES.length]];
  }

  /**
   * A decision in words: what it is about, and what was decided.
   * @param {Data.Trial} trial
   * @param {string} name
   */
  decision(trial, name) {
    const words = this.board.words?.[trial.words ?? 0]?.[name];
    const value = trial.decisions[name];
    const chosen = words?.choices && !Array.isArray(value) ? words.choices[value] : undefined;
    const text = chosen ?? (Array.isArray(value) ? value.join(" × ") : String(value));
    return { label: words?.label ?? name, text, choices: words?.choices ?? null };
  }

  /**
   * What a trial has that its parent has not, with what the decision is about.
   * @param {Data.Trial} trial
   */
  mutation(trial) {
    const words = this.board.words?.[trial.words ?? 0];
    return trial.mutation.replace(/v\d+(?:, v\d+)*/g, (name) =>
      words?.[name] ? `${name} (${words[name].label})` : name,
    );
  }

  /** @param {string} axis what a decision on an axis is about */
  axisLabel(axis) {
    return this.board.axis_labels?.[axis] ?? axis;
  }

  /**
   * A value on an axis: of a choice, what is chosen.
   * @param {string} axis
   * @param {number} value
   */
  axisText(axis, value) {
    const choices = this.board.words?.find((words) => words[axis])?.[axis].choices;
    return choices?.[value] ?? String(value);
  }

  drawLegend() {
    const { sessions } = this.board;
    this.legend.hidden = sessions.length < 2;
    this.legend.replaceChildren(
      ...sessions.map((session, index) => {
        const box = h("input", {
          type: "checkbox",
          checked: !this.hidden.has(session.key),
          onchange: () => {
            if (box.checked) this.hidden.delete(session.key);
            else this.hidden.add(session.key);
            this.draw();
          },
        });
        const mark = svg(
          "svg",
          { width: 14, height: 14, "aria-hidden": "true" },
          svg("path", {
            d: shapePath(SHAPES[index % 6], 7, 7, 4.5),
            fill: COLOURS[index % 6],
            stroke: COLOURS[index % 6],
          }),
        );
        return h("label", {}, box, mark, ` ${session.label} (${stateOf(session.state)})`);
      }),
    );
  }

  // -- charts

  /** @param {string} chart */
  open(chart) {
    this.chart = chart;
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  tabKey(event) {
    const at = charts().findIndex(([id]) => id === this.chart);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.open(charts()[(at + step + charts().length) % charts().length][0]);
    this.tabs.querySelector('[aria-selected="true"]')?.focus();
  }

  draw() {
    for (const tab of this.tabs.children) {
      const on = tab.dataset.chart === this.chart;
      tab.setAttribute("aria-selected", String(on));
      tab.setAttribute("tabindex", on ? "0" : "-1");
    }
    this.choices.replaceChildren();
    this.points = [];
    const trials = this.shown();
    const name = sure(charts().find(([id]) => id === this.chart))[1];
    this.plot.setAttribute("aria-label", name);
    if (!trials.length) {
      const hidden = this.board.trials.length > 0;
      const none = hidden ? t("All searches are hidden.") : t("No trials yet.");
      this.plot.replaceChildren(h("p", { class: "dim" }, none));
      return;
    }
    this.plot.replaceChildren(...[DRAWINGS[this.chart](this, trials)].flat());
    this.highlight();
  }

  /**
   * @param {Scale} x
   * @param {Scale} y
   * @param {string} xTitle
   * @param {string} yTitle
   * @param {string} label
   */
  frame(x, y, xTitle, yTitle, label) {
    const { width, height, left, right, top, bottom } = SIZE;
    const parts = [];
    for (const [value, text] of y.ticks) {
      const at = y.at(value);
      parts.push(
        svg("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }),
        svg("text", { class: "tick", x: left - 6, y: at + 4, "text-anchor": "end" }, text),
      );
    }
    for (const [value, text] of x.ticks) {
      const at = x.at(value);
      parts.push(
        svg(
          "text",
          { class: "tick", x: at, y: height - bottom + 16, "text-anchor": "middle" },
          text,
        ),
      );
    }
    parts.push(
      svg("path", { class: "axis", d: `M${left},${top}V${height - bottom}H${width - right}` }),
      svg(
        "text",
        { class: "label", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" },
        xTitle,
      ),
      svg(
        "text",
        {
          class: "label",
          x: 0,
          y: 0,
          "text-anchor": "middle",
          transform: `translate(14,${(top + height - bottom) / 2}) rotate(-90)`,
        },
        yTitle,
      ),
    );
    return svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label },
      ...parts,
    );
  }

  /**
   * A trial's mark: a button that can be reached by arrow keys from its neighbours.
   * @param {Data.Trial} trial
   * @param {number} x
   * @param {number} y
   */
  point(trial, x, y, r = 4.5) {
    const [colour, shape] = this.look(trial);
    const failed = trial.status !== "ok";
    const path = svg("path", {
      class: `point${failed ? " failed" : ""}`,
      d: shapePath(failed ? "cross" : shape, x, y, r),
      fill: failed || shape === "plus" ? "none" : colour,
      stroke: colour,
    });
    const element = svg(
      "g",
      {
        class: "mark",
        role: "button",
        tabindex: "-1",
        "data-key": trial.key,
        [OWN_KEYS]: "true",
        "aria-label": this.words(trial),
      },
      svg("circle", { class: "hit", cx: x, cy: y, r: 9 }),
      path,
      svg("title", {}, this.words(trial)),
    );
    element.addEventListener("click", () => this.select(trial.key, true));
    element.addEventListener("keydown", (event) => this.pointKey(event, trial));
    this.points.push([trial.key, element]);
    return element;
  }

  /** @param {Data.Trial} trial */
  words(trial) {
    const result =
      trial.time === null
        ? `${trial.status.replace("_", " ")}: ${trial.reason}`
        : duration(trial.time);
    return t("trial {at}, {result}", { at: trial.index, result });
  }

  /**
   * @param {KeyboardEvent} event
   * @param {Data.Trial} trial
   */
  pointKey(event, trial) {
    const at = this.points.findIndex(([key]) => key === trial.key);
    let to;
    if (event.key === "ArrowRight" || event.key === "ArrowDown") to = at + 1;
    else if (event.key === "ArrowLeft" || event.key === "ArrowUp") to = at - 1;
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = this.points.length - 1;
    else if (event.key === "Enter" || event.key === " ") to = at;
    else return;
    event.preventDefault();
    event.stopPropagation();
    to = Math.min(this.points.length - 1, Math.max(0, to));
    this.select(this.points[to][0], true);
    this.points[to][1].focus();
  }

  /**
   * @param {Data.Trial[]} trials
   * @param {number[]} [extra]
   */
  timeScale(trials, extra = []) {
    const times = [...trials.filter(isTimed).flatMap((t) => [t.low, t.high, t.time]), ...extra];
    const low = Math.min(...times),
      high = Math.max(...times);
    return scaleOf(low / 1.1, high * 1.1, SIZE.height - SIZE.bottom - 18, SIZE.top, {
      log: true,
      text: duration,
    });
  }

  /** @param {Data.Trial[]} trials */
  drawProgress(trials) {
    const sessions = this.board.sessions.filter((session) => !this.hidden.has(session.key));
    /** @type {[string, number][]} */
    const lines = [];
    const baselines = new Set(sessions.flatMap((s) => Object.keys(s.baselines ?? {})));
    for (const [name, times] of /** @type {[string, (number | null | undefined)[]][]} */ ([
      [t("machine's peak"), sessions.map((session) => session.peak_s)],
      ["numpy", sessions.map((session) => session.numpy_s)],
      ...[...baselines].map((name) => [name, sessions.map((s) => s.baselines?.[name])]),
    ])) {
      const values = new Set(times.filter(Boolean));
      for (const value of values) if (value) lines.push([name, value]);
    }
    lines.sort((a, b) => a[1] - b[1]); // those that lie close have their names at other ends
    if (!trials.some((t) => t.time !== null) && !lines.length) lines.push(["", 1e-3]);
    const y = this.timeScale(
      trials,
      lines.map(([, value]) => value),
    );
    if (this.model.get("live") && !this.model.get("running") && !baselines.size) {
      const button = h("button", { type: "button" }, t("Measure it as written, and by default"));
      button.title = t(
        "the program as it is written, and its default schedule: lines to compare with",
      );
      button.addEventListener("click", () => {
        if (button.getAttribute("aria-disabled") === "true") return;
        button.setAttribute("aria-disabled", "true");
        button.textContent = t("Measuring…");
        this.model.send({ do: "baselines" });
      });
      this.choices.replaceChildren(button);
    }
    const count = Math.max(...trials.map((t) => t.index)) + 1;
    const x = scaleOf(0, Math.max(count - 1, 1), SIZE.left + 8, SIZE.width - SIZE.right - 8, {
      whole: true,
      text: String,
    });
    const said = howKnown(sessions) === "modelled" ? t("modelled time") : "time";
    const chart = this.frame(x, y, "trial", said, t("Time of each trial and the best so far"));
    lines.forEach(([name, value], index) => {
      // names at alternate ends, so that they stay apart
      const at = y.at(value);
      const end = index % 2 === 0;
      const beside = name === t("machine's peak") ? 12 : -4; // trials lie above the peak's line
      chart.append(
        svg("line", {
          class: "reference",
          x1: SIZE.left,
          x2: SIZE.width - SIZE.right,
          y1: at,
          y2: at,
        }),
        svg(
          "text",
          {
            class: "tick halo",
            x: end ? SIZE.width - SIZE.right - 4 : SIZE.left + 4,
            y: at + beside,
            "text-anchor": end ? "end" : "start",
          },
          `${name} ${duration(value)}`,
        ),
      );
    });
    for (const session of sessions) {
      let best = Infinity;
      let path = "";
      for (const trial of trials.filter((t) => t.session === session.key)) {
        if (trial.time === null || trial.time >= best) continue;
        const at = x.at(trial.index);
        path += path ? `H${at}V${y.at(trial.time)}` : `M${at},${y.at(trial.time)}`;
        best = trial.time;
      }
      if (path) {
        path += `H${x.at(Math.max(...trials.filter((t) => t.session === session.key).map((t) => t.index)))}`;
        const [colour] = this.look({ session: session.key });
        chart.append(svg("path", { class: "best", d: path, stroke: colour }));
      }
    }
    const lane = SIZE.height - SIZE.bottom - 7;
    for (const trial of trials) {
      const at = x.at(trial.index);
      if (trial.time !== null && trial.high > trial.low) {
        chart.append(
          svg("line", {
            class: "spread",
            x1: at,
            x2: at,
            y1: y.at(trial.low),
            y2: y.at(trial.high),
          }),
        );
      }
      chart.append(this.point(trial, at, trial.time === null ? lane : y.at(trial.time)));
    }
    return chart;
  }

  /** @param {Data.Trial[]} trials */
  drawModel(trials) {
    const pairs = trials.filter(isTimed).filter(isPredicted);
    if (!pairs.length) {
      return h(
        "p",
        { class: "dim" },
        t("No trial was predicted: the search had no cost model, or its first round is not over."),
      );
    }
    const best = Math.min(...pairs.map((t) => t.time));
    /** @param {Data.Trial & { time: number }} trial */
    const speed = (trial) => best / trial.time;
    const scores = pairs.map((t) => t.predicted);
    const x = scaleOf(
      Math.min(...scores),
      Math.max(...scores),
      SIZE.left + 10,
      SIZE.width - SIZE.right - 10,
    );
    const y = scaleOf(0, 1.05, SIZE.height - SIZE.bottom, SIZE.top);
    const [speeds, title, caption] = {
      measured: () => [
        t("measured speed, best = 1"),
        t("Predicted against measured"),
        t("Rank correlation of predicted and measured speed (1: the same order)"),
      ],
      modelled: () => [
        t("modelled speed, best = 1"),
        t("Predicted against modelled"),
        t("Rank correlation of predicted and modelled speed (1: the same order)"),
      ],
      both: () => [
        t("measured or modelled speed, best = 1"),
        t("Predicted against measured or modelled"),
        t("Rank correlation of predicted and measured or modelled speed (1: the same order)"),
      ],
    }[howKnown(this.board.sessions.filter((session) => !this.hidden.has(session.key)))]();
    const chart = this.frame(x, y, t("predicted score (higher is faster)"), speeds, title);
    for (const trial of pairs)
      chart.append(this.point(trial, x.at(trial.predicted), y.at(speed(trial))));
    const rounds = this.board.rounds.filter(
      (r) => !this.hidden.has(r.session) && r.correlation !== null,
    );
    /** @param {string} session */
    const label = (session) =>
      (this.board.sessions.find((s) => s.key === session) || {}).label || session;
    const table = h(
      "table",
      { class: "rounds" },
      h("caption", {}, caption),
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "search"),
        h("th", { scope: "col" }, "round"),
        h("th", { scope: "col" }, "trials"),
        h("th", { scope: "col" }, "correlation"),
        h("th", { "aria-hidden": "true" }),
      ),
      rounds.map((r) =>
        h(
          "tr",
          {},
          h("td", {}, label(r.session)),
          h("td", {}, String(r.round)),
          h("td", {}, String(r.trials)),
          h("td", {}, sure(r.correlation).toFixed(2)),
          h(
            "td",
            { "aria-hidden": "true" },
            h("span", {
              class: "meter",
              style: `width:${Math.max(0, sure(r.correlation)) * 120}px`,
            }),
          ),
        ),
      ),
    );
    return [chart, table];
  }

  /** @param {Data.Trial[]} trials */
  drawSpace(trials) {
    const axes = this.board.axes;
    if (!axes.length)
      return h("p", { class: "dim" }, t("The trials have no decisions that differ."));
    /**
     * @param {string} value
     * @param {(event: Event) => void} onchange
     * @param {string} label
     */
    const pick = (value, onchange, label) =>
      h(
        "select",
        { "aria-label": label, [OWN_KEYS]: "true", onchange },
        ["", ...axes].map((axis) =>
          h(
            "option",
            { value: axis, selected: axis === value },
            axis ? this.axisLabel(axis) : t("all decisions"),
          ),
        ),
      );
    this.heat = (this.heat || ["", ""]).map((axis) => (axes.includes(axis) ? axis : ""));
    /** @param {number} index */
    const changed = (index) => (/** @type {Event} */ event) => {
      this.heat[index] = /** @type {HTMLSelectElement} */ (event.target).value;
      this.draw();
    };
    if (axes.length > 1) {
      this.choices.replaceChildren(
        h("span", { class: "dim" }, t("Heat map of")),
        pick(this.heat[0], changed(0), t("First decision")),
        h("span", { class: "dim" }, "and"),
        pick(this.heat[1], changed(1), t("Second decision")),
      );
    }
    const [a, b] = this.heat;
    return a && b && a !== b ? this.heatMap(trials, a, b) : this.parallel(trials, axes);
  }

  /**
   * @param {number} time
   * @param {number} low
   * @param {number} high
   */
  shade(time, low, high) {
    const at = high > low ? Math.log(time / low) / Math.log(high / low) : 0;
    const stops = [
      [0, 114, 178],
      [86, 180, 233],
      [230, 190, 70],
      [213, 94, 0],
    ];
    const scaled = Math.min(0.9999, Math.max(0, at)) * 3;
    const [p, q] = [stops[Math.floor(scaled)], stops[Math.floor(scaled) + 1]];
    const mix = p.map((v, i) => Math.round(v + (q[i] - v) * (scaled % 1)));
    return `rgb(${mix.join(",")})`;
  }

  /**
   * Whether white is what can be read on the shade of a time.
   * @param {number | null} time
   * @param {number} low
   * @param {number} high
   */
  isDeep(time, low, high) {
    if (time === null) return false;
    const at = high > low ? Math.log(time / low) / Math.log(high / low) : 0;
    return at < 0.15 || at > 0.92;
  }

  /**
   * @param {Data.Trial[]} trials
   * @param {string[]} axes
   */
  parallel(trials, axes) {
    const { width, height, top } = SIZE;
    const floor = height - 30;
    const good = trials.filter(isTimed);
    const low = Math.min(...good.map((t) => t.time)),
      high = Math.max(...good.map((t) => t.time));
    const xs = axes.map(
      (_, index) => 50 + (axes.length > 1 ? (index * (width - 100)) / (axes.length - 1) : 0),
    );
    const chart = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": t("Decisions of each trial, coloured by time"),
    });
    const scales = axes.map((axis) => {
      const values = [
        ...new Set(trials.map((t) => t.at[axis]).filter((v) => v !== undefined)),
      ].sort((p, q) => p - q);
      const gap = values.length > 1 ? (floor - top - 30) / (values.length - 1) : 0;
      return new Map(
        values.map((value, index) => [
          value,
          values.length > 1 ? floor - index * gap : (floor + top + 30) / 2,
        ]),
      );
    });
    const sorted = [...good].sort((p, q) => q.time - p.time);
    const failed = trials.filter((t) => t.time === null);
    for (const trial of [...failed, ...sorted]) {
      const stops = axes
        .map((axis, i) => [xs[i], scales[i].get(trial.at[axis])])
        .filter(([, y]) => y !== undefined);
      if (!stops.length) continue;
      const colour = trial.time === null ? "var(--dim)" : this.shade(trial.time, low, high);
      const path = svg("path", {
        class: `route${trial.time === null ? " failed" : ""}`,
        d: "M" + stops.map((p) => p.join(",")).join("L"),
        stroke: colour,
      });
      const element = svg(
        "g",
        {
          class: "mark line",
          role: "button",
          tabindex: "-1",
          "data-key": trial.key,
          "aria-label": this.words(trial),
          [OWN_KEYS]: "true",
        },
        path,
        svg("title", {}, this.words(trial)),
      );
      element.addEventListener("click", () => this.select(trial.key, true));
      element.addEventListener("keydown", (event) => this.pointKey(event, trial));
      this.points.push([trial.key, element]);
      chart.append(element);
    }
    axes.forEach((axis, i) => {
      chart.append(
        svg("line", { class: "axis", x1: xs[i], x2: xs[i], y1: top + 24, y2: floor + 4 }),
        this.axisTitle(axis, xs[i], top + 4, i === 0, i === axes.length - 1),
      );
      for (const [value, y] of scales[i]) {
        chart.append(
          svg(
            "text",
            { class: "tick halo", x: xs[i] - 5, y: y + 4, "text-anchor": "end" },
            this.axisText(axis, value),
          ),
        );
      }
    });
    return [chart, this.ramp(low, high)];
  }

  /**
   * The title of an axis among others: at the ends it goes inward, and the whole is in its title.
   * @param {string} axis
   * @param {number} x
   * @param {number} y
   * @param {boolean} first
   * @param {boolean} last
   */
  axisTitle(axis, x, y, first, last) {
    const label = this.axisLabel(axis);
    const short = label.length > 18 ? `${label.slice(0, 17)}…` : label;
    return svg(
      "text",
      {
        ...{ class: "label", x: first ? 4 : last ? SIZE.width - 4 : x, y },
        "text-anchor": first ? "start" : last ? "end" : "middle",
      },
      short,
      svg("title", {}, `${label} (${axis})`),
    );
  }

  /**
   * @param {number} low
   * @param {number} high
   */
  ramp(low, high) {
    if (!Number.isFinite(low)) return h("span");
    const steps = [0, 0.25, 0.5, 0.75, 1].map((f) =>
      this.shade(low * (high / low) ** f, low, high),
    );
    return h(
      "div",
      { class: "ramp" },
      h("span", {}, duration(low)),
      h("span", {
        class: "bar-of",
        style: `background:linear-gradient(90deg,${steps.join(",")})`,
        "aria-hidden": "true",
      }),
      h("span", {}, duration(high)),
    );
  }

  /**
   * @param {Data.Trial[]} trials
   * @param {string} a
   * @param {string} b
   */
  heatMap(trials, a, b) {
    /** @param {string} axis */
    const values = (axis) =>
      [...new Set(trials.map((t) => t.at[axis]).filter((v) => v !== undefined))].sort(
        (p, q) => p - q,
      );
    const [across, up] = [values(a), values(b)];
    const cells = new Map();
    for (const trial of trials) {
      if (trial.at[a] === undefined || trial.at[b] === undefined) continue;
      const key = `${trial.at[a]},${trial.at[b]}`;
      const old = cells.get(key);
      if (!old || (trial.time !== null && (old.time === null || trial.time < old.time)))
        cells.set(key, trial);
    }
    const good = [...cells.values()].filter((t) => t.time !== null).map((t) => t.time);
    const low = Math.min(...good),
      high = Math.max(...good);
    const { left, top, width, height, right, bottom } = SIZE;
    const w = (width - left - right) / across.length,
      tall = (height - top - bottom) / up.length;
    const chart = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": t("Best time for each {first} and {second}", {
        first: this.axisLabel(a),
        second: this.axisLabel(b),
      }),
    });
    across.forEach((value, i) =>
      chart.append(
        svg(
          "text",
          {
            class: "tick",
            x: left + (i + 0.5) * w,
            y: height - bottom + 16,
            "text-anchor": "middle",
          },
          this.axisText(a, value),
        ),
      ),
    );
    up.forEach((value, i) =>
      chart.append(
        svg(
          "text",
          {
            class: "tick",
            x: left - 6,
            y: height - bottom - (i + 0.5) * tall + 4,
            "text-anchor": "end",
          },
          this.axisText(b, value),
        ),
      ),
    );
    chart.append(
      svg(
        "text",
        { class: "label", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" },
        this.axisLabel(a),
      ),
      svg(
        "text",
        {
          class: "label",
          transform: `translate(16,${(top + height - bottom) / 2}) rotate(-90)`,
          "text-anchor": "middle",
        },
        this.axisLabel(b),
      ),
    );
    across.forEach((va, i) =>
      up.forEach((vb, j) => {
        const trial = cells.get(`${va},${vb}`);
        if (!trial) return;
        const [x, y] = [left + i * w, height - bottom - (j + 1) * tall];
        const element = svg(
          "g",
          {
            class: "mark cell",
            role: "button",
            tabindex: "-1",
            "data-key": trial.key,
            "aria-label": `${a} ${va}, ${b} ${vb}: ${this.words(trial)}`,
            [OWN_KEYS]: "true",
          },
          svg("rect", {
            x: x + 1,
            y: y + 1,
            width: Math.max(1, w - 2),
            height: Math.max(1, tall - 2),
            fill: trial.time === null ? "var(--soft)" : this.shade(trial.time, low, high),
          }),
          svg(
            "text",
            {
              class: `cell-text${this.isDeep(trial.time, low, high) ? " on-deep" : ""}`,
              x: x + w / 2,
              y: y + tall / 2 + 4,
              "text-anchor": "middle",
            },
            w > 52 && tall > 14 ? (trial.time === null ? "×" : duration(trial.time)) : "",
          ),
        );
        element.addEventListener("click", () => this.select(trial.key, true));
        element.addEventListener("keydown", (event) => this.pointKey(event, trial));
        this.points.push([trial.key, element]);
        chart.append(element);
      }),
    );
    return [chart, this.ramp(low, high)];
  }

  /** @param {Data.Trial[]} trials */
  drawFamily(trials) {
    if (!trials.some((t) => t.parent !== null)) {
      const drawn = t(
        "No trial was mutated from another yet. The first round of a search is drawn at random; " +
          "an evolutionary one mutates the best of the rounds before.",
      );
      return h("p", { class: "dim" }, drawn);
    }
    const good = trials.filter(isTimed);
    const y = this.timeScale(good);
    const last = Math.max(...trials.map((t) => t.generation));
    const x = scaleOf(0, Math.max(1, last), SIZE.left + 30, SIZE.width - SIZE.right - 30, {
      whole: true,
      text: String,
    });
    const chart = this.frame(
      x,
      y,
      t("generation (mutations since a random trace)"),
      "time",
      t("Family tree of the trials"),
    );
    const lane = SIZE.height - SIZE.bottom - 7;
    const groups = new Map();
    /** @type {Map<string | null, [number, number]>} */
    const spot = new Map();
    for (const trial of trials) {
      const key = `${trial.generation}`;
      const index = groups.get(key) || 0;
      groups.set(key, index + 1);
      const shift = ((index * 0.618) % 1) * 44 - 22;
      spot.set(trial.key, [
        x.at(trial.generation) + shift,
        trial.time === null ? lane : y.at(trial.time),
      ]);
    }
    for (const trial of trials) {
      const from = spot.get(trial.parent),
        to = sure(spot.get(trial.key));
      if (from) {
        const middle = (from[0] + to[0]) / 2;
        chart.append(
          svg("path", {
            class: "kin",
            d: `M${from}C${middle},${from[1]} ${middle},${to[1]} ${to}`,
            "data-from": trial.parent,
            "data-to": trial.key,
          }),
        );
      }
    }
    for (const trial of trials) chart.append(this.point(trial, ...sure(spot.get(trial.key))));
    return chart;
  }

  /** @param {Data.Trial[]} trials */
  drawTrials(trials) {
    const rows = [...trials].sort((p, q) => (p.time ?? Infinity) - (q.time ?? Infinity));
    const body = rows.slice(0, 500).map((trial) => {
      const button = h(
        "button",
        { type: "button", class: "link", onclick: () => this.select(trial.key, true) },
        String(trial.index),
      );
      return h(
        "tr",
        { "data-row": trial.key },
        h("td", {}, button),
        h("td", {}, trial.time === null ? "" : duration(trial.time)),
        h("td", {}, trial.status),
        h("td", {}, trial.strategy),
        h("td", {}, String(trial.generation)),
        h(
          "td",
          { class: "wide" },
          Object.keys(trial.decisions)
            .map((name) => this.decision(trial, name))
            .map(({ label, text }) => `${label} = ${text}`)
            .join("; "),
        ),
      );
    });
    const head = ["trial", "time", "status", "strategy", "generation", "decisions"].map((text) =>
      h("th", { scope: "col" }, text),
    );
    return h("table", { class: "list" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
  }

  // -- one trial

  /**
   * @param {string} key
   * @param {boolean} tell
   */
  select(key, tell) {
    this.selected = this.byKey.has(key) ? key : "";
    this.highlight();
    this.describe();
    if (tell) {
      this.model.set("selected", this.selected);
      this.model.save_changes();
    }
  }

  highlight() {
    let focusable = null;
    for (const [key, element] of this.points) {
      const on = key === this.selected;
      element.classList.toggle("selected", on);
      element.setAttribute("tabindex", "-1");
      if (on) focusable = element;
    }
    focusable = focusable || (this.points[0] && this.points[0][1]);
    if (focusable) focusable.setAttribute("tabindex", "0");
    const kin = this.relatives(this.selected);
    for (const line of this.plot.querySelectorAll(".kin")) {
      line.classList.toggle("near", kin.has(line.dataset.to) && kin.has(line.dataset.from));
    }
    for (const row of this.plot.querySelectorAll("[data-row]"))
      row.classList.toggle("selected", row.dataset.row === this.selected);
    const trial = this.byKey.get(this.selected);
    if (trial) this.live.textContent = this.words(trial);
  }

  /** @param {string | null} key */
  relatives(key) {
    const found = new Set();
    while (key && this.byKey.has(key) && !found.has(key)) {
      found.add(key);
      key = sure(this.byKey.get(key)).parent;
    }
    return found;
  }

  describe() {
    const trial = this.byKey.get(this.selected);
    if (!trial) {
      this.detail.replaceChildren(
        h("p", { class: "dim" }, t("Open a point: its decisions and its trace appear here.")),
      );
      return;
    }
    /** @type {[string, string | Node][]} */
    const rows = [
      [
        "result",
        trial.time === null
          ? `${trial.status}: ${trial.reason}`
          : t("{time} ({low} to {high})", {
              time: duration(trial.time),
              low: duration(trial.low),
              high: duration(trial.high),
            }),
      ],
      ["from", `${trial.strategy}${trial.mutation ? `, ${this.mutation(trial)}` : ""}`],
      ["round", String(trial.round)],
    ];
    if (trial.predicted !== null) rows.push(["predicted", digits(trial.predicted)]);
    if (trial.error !== null) rows.push([t("largest error"), trial.error.toExponential(1)]);
    if (trial.parent && this.byKey.has(trial.parent)) {
      const parent = sure(this.byKey.get(trial.parent));
      rows.push([
        "parent",
        h(
          "button",
          { type: "button", class: "link", onclick: () => this.select(parent.key, true) },
          this.words(parent),
        ),
      ]);
    }
    const live = this.model.get("live");
    this.inputs = new Map();
    const decisions = Object.entries(trial.decisions).map(([name, value]) => {
      const { label, text, choices } = this.decision(trial, name);
      const head = h("th", { scope: "row", title: name }, label);
      if (!live) return h("tr", {}, head, h("td", {}, text));
      const said = { "aria-label": t("Decision {label}", { label }), [OWN_KEYS]: "true" };
      const options = choices?.map((choice, n) =>
        h("option", { value: String(n), selected: n === value }, choice),
      );
      const input = options
        ? h("select", said, options)
        : h("input", { type: "text", value: text, ...said });
      this.inputs.set(name, [input, value]);
      return h("tr", {}, head, h("td", {}, input));
    });
    this.message = h("p", { class: "message", role: "status" });
    /** @type {HTMLElement[]} */
    const children = [
      h("h3", {}, t("Trial {at}", { at: trial.index })),
      h(
        "table",
        {},
        rows.map(([name, value]) =>
          h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)),
        ),
      ),
    ];
    if (decisions.length) children.push(h("h4", {}, t("Decisions")), h("table", {}, decisions));
    children.push(...this.compared(trial));
    if (live) {
      children.push(
        h(
          "div",
          { class: "buttons" },
          decisions.length
            ? h(
                "button",
                { type: "button", onclick: () => this.measure() },
                t("Measure these decisions"),
              )
            : null,
          h(
            "button",
            {
              type: "button",
              onclick: () =>
                this.ask({ do: "stepper", key: trial.key }, t("Opening the stepper below…")),
            },
            t("Open in the stepper"),
          ),
        ),
        this.message,
      );
    }
    if (trial.trace.length) {
      const text = trial.trace.map((index) => this.board.lines[index]).join("\n");
      const html = text
        .split("\n")
        .map((line) =>
          tokens(line)
            .map(([kind, part]) =>
              kind ? `<span class="t-${kind}">${escapeHTML(part)}</span>` : escapeHTML(part),
            )
            .join(""),
        )
        .join("\n");
      children.push(
        h(
          "details",
          { open: true },
          h(
            "summary",
            {},
            t("Trace "),
            copyButton(t("Copy the trace"), () => text),
          ),
          h("pre", { tabindex: "0", "aria-label": t("Trace"), html }),
        ),
      );
    }
    this.detail.replaceChildren(...children);
  }

  /**
   * Another trial beside this one: what differs, and by how much.
   * @param {Data.Trial} trial
   * @returns {HTMLElement[]}
   */
  compared(trial) {
    const others = this.board.trials.filter((t) => t.key !== trial.key && t.time !== null);
    if (!others.length) return [];
    others.sort((p, q) => sure(p.time) - sure(q.time));
    const list = h(
      "select",
      { "aria-label": t("Compare with"), [OWN_KEYS]: "true" },
      [h("option", { value: "" }, t("no other trial"))].concat(
        others.slice(0, 500).map((t) => h("option", { value: t.key }, this.words(t))),
      ),
    );
    const place = h("div", { role: "status" });
    const show = () => {
      this.beside = list.value;
      const other = this.byKey.get(list.value);
      place.replaceChildren(...(other ? this.differences(trial, other) : []));
    };
    if (this.beside !== trial.key && this.byKey.has(this.beside)) list.value = this.beside;
    list.addEventListener("change", show);
    show();
    return [h("h4", {}, t("Compared with "), list), place];
  }

  /**
   * @param {Data.Trial} one
   * @param {Data.Trial} other
   */
  differences(one, other) {
    const names = [...new Set([...Object.keys(one.decisions), ...Object.keys(other.decisions)])];
    /** @param {Data.Trial} trial */
    const all = (trial) =>
      new Map(
        names
          .filter((name) => name in trial.decisions)
          .map((name) => this.decision(trial, name))
          .map(({ label, text }) => [label, text]),
      );
    const [left, right] = [all(one), all(other)];
    const rows = [...new Set([...left.keys(), ...right.keys()])]
      .filter((label) => left.get(label) !== right.get(label))
      .map((label) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, label),
          h("td", {}, left.get(label) ?? "–"),
          h("td", {}, right.get(label) ?? "–"),
        ),
      );
    const heads = [
      "",
      t("trial {at}", { at: one.index }),
      t("trial {at}", { at: other.index }),
    ].map((text) => h("th", { scope: "col" }, text));
    const [a, b] = [one.time, sure(other.time)];
    let said = t("It has no time to compare.");
    if (a !== null) {
      const ratio = Math.max(a, b) / Math.min(a, b);
      said =
        ratio < 1.01
          ? t("Both take the same time.")
          : a < b
            ? t("{ratio} times as fast as trial {at}.", { ratio: digits(ratio), at: other.index })
            : t("{ratio} times as slow as trial {at}.", { ratio: digits(ratio), at: other.index });
    }
    /** @type {HTMLElement[]} */
    const parts = [h("p", {}, said)];
    if (rows.length)
      parts.push(
        h("table", { class: "beside" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)),
      );
    else parts.push(h("p", { class: "dim" }, t("Their decisions are the same.")));
    if (this.model.get("live")) {
      const open = () =>
        this.ask({ do: "compare", key: one.key, other: other.key }, t("Opening both below…"));
      parts.push(h("button", { type: "button", onclick: open }, t("Open both, side by side")));
    }
    return parts;
  }

  measure() {
    /** @type {Record<string, number | number[]>} */
    const decisions = {};
    for (const [name, [input, old]] of this.inputs) {
      const values = input.value
        .split(/[\s,×x*]+/)
        .filter(Boolean)
        .map(Number);
      if (!values.length || values.some((v) => !Number.isInteger(v))) {
        this.message.textContent = t("{name} has to be whole numbers", { name });
        input.focus();
        return;
      }
      const value = Array.isArray(old) ? values : values[0];
      if (JSON.stringify(value) !== JSON.stringify(old)) decisions[name] = value;
    }
    if (!Object.keys(decisions).length) {
      this.message.textContent = t("Change a decision first.");
      return;
    }
    this.ask({ do: "measure", key: this.selected, decisions }, t("Measuring…"));
  }

  /**
   * @param {object} request
   * @param {string} text
   */
  ask(request, text) {
    this.message.textContent = text;
    this.model.send(request);
  }

  answer() {
    const reply = this.model.get("reply");
    if (this.message && reply.text) this.message.textContent = reply.text;
    if (reply.text) this.live.textContent = reply.text;
  }

  /** Interrupt the kernel that searches, as Jupyter's own button does: it keeps what was found. */
  async interrupt() {
    const config = document.getElementById("jupyter-config-data");
    const base = config ? JSON.parse(config.textContent).baseUrl : "/";
    const token = config ? JSON.parse(config.textContent).token : "";
    const xsrf = (document.cookie.match(/(?:^|; )_xsrf=([^;]*)/) || [])[1];
    this.facts.textContent = t("stopping after the trial that runs");
    const headers = {};
    if (xsrf) headers["X-XSRFToken"] = decodeURIComponent(xsrf);
    if (token) headers.Authorization = `token ${token}`;
    try {
      const answer = await fetch(`${base}api/kernels/${this.model.get("kernel")}/interrupt`, {
        method: "POST",
        headers,
      });
      if (!answer.ok) throw new Error(answer.statusText);
    } catch {
      this.facts.textContent = t("this host lets no view stop a kernel: use Jupyter's stop button");
    }
  }
}

/** @param {Data.Host} host */
export function renderBoard({ model, el }) {
  speak(model, el);
  const view = new BoardView(model, el);
  return () => view.close();
}

export default { render: renderBoard };
