// Where things come from, across the steps: from the origins that a recording keeps of each step.
//
// A key that stands in both programs of a step is the same thing still. A step's origins say of
// keys in the program after which keys in the program before they came from.

import { sure } from "./dom.js";

/** @import { Programs } from "./program.js" */

/**
 * @typedef {{ name: string, key: number, outer: Scope | null, until: number }} Scope a name that can
 * be seen, and those that could be seen before it
 */

const KINDS = new Set(["loop", "block", "iterator", "buffer"]);
const SCOPES = new Set(["loop", "block", "group"]); // names in such a line hold within it

/**
 * Names that a line defines, in the order of its traceable keys; that of a block is quoted.
 * @param {Data.Line} line
 * @returns {string[]}
 */
const defined = ({ parts }) =>
  parts
    .filter(([kind]) => KINDS.has(kind))
    .map(([kind, name]) => (kind === "block" ? `"${name}"` : String(name)));

export class Lineage {
  /** @type {Map<number, Set<number>>} */
  present;
  /** @type {Map<number, (Scope | null)[]>} */
  scopes;
  /** @type {Map<number, Map<number, string>>} */
  called;
  /** @type {Map<number, number[]>[]} */
  children;

  /**
   * @param {Data.Recording} recording
   * @param {Programs} programs
   */
  constructor(recording, programs) {
    this.recording = recording;
    this.programs = programs;
    this.present = new Map();
    this.scopes = new Map();
    this.called = new Map();
    this.parents = recording.steps.map((step) => new Map(step.origins || []));
    this.children = this.parents.map((table) => {
      const turned = new Map();
      for (const [key, olds] of table) {
        for (const old of olds) turned.set(old, [...(turned.get(old) || []), key]);
      }
      return turned;
    });
  }

  /**
   * Kind and name of a key: ["loop", "i"].
   * @param {number} key
   * @returns {[string, string]}
   */
  key(key) {
    return this.recording.keys[key] || ["", ""];
  }

  /**
   * Whether a key stands for something with a history: a loop, block, iterator or buffer.
   * @param {number} key
   */
  traceable(key) {
    return KINDS.has(this.key(key)[0]) && this.key(key)[1] !== "";
  }

  /**
   * @param {number} program
   * @returns {Set<number>}
   */
  keysIn(program) {
    if (!this.present.has(program)) {
      this.present.set(program, new Set(this.programs.programs[program].flatMap((l) => l.keys)));
    }
    return sure(this.present.get(program));
  }

  /**
   * Keys in the program before a step that a key of the program after came from.
   * @param {number} step
   * @param {number} key
   */
  before(step, key) {
    const found = new Set(this.parents[step].get(key));
    if (this.keysIn(this.recording.steps[step].before).has(key)) found.add(key);
    return found;
  }

  /**
   * Keys in the program after a step that came from a key of the program before.
   * @param {number} step
   * @param {number} key
   */
  after(step, key) {
    const found = new Set(this.children[step].get(key));
    if (this.keysIn(this.recording.steps[step].after).has(key)) found.add(key);
    return found;
  }

  /**
   * { before, after }: what to light up in the two programs of a step for keys on one side.
   * @param {number} step
   * @param {Data.Side} side
   * @param {Iterable<number>} keys
   * @returns {Data.Related}
   */
  related(step, side, keys) {
    const here = new Set(keys);
    const there = new Set();
    for (const key of here) {
      const found = side === "after" ? this.before(step, key) : this.after(step, key);
      for (const other of found) there.add(other);
    }
    return side === "after" ? { before: there, after: here } : { before: here, after: there };
  }

  /**
   * The same for the programs after two steps, far apart perhaps: `from` on the left, `to` on the
   * right. Either may be the earlier.
   * @param {number} from
   * @param {number} to
   * @param {Data.Side} side
   * @param {Iterable<number>} keys
   * @returns {Data.Related}
   */
  between(from, to, side, keys) {
    const here = new Set(keys);
    let there = new Set(keys);
    const [at, end] = side === "after" ? [to, from] : [from, to];
    for (let s = at; s > end; s--) there = this.through(there, (key) => this.before(s, key));
    for (let s = at + 1; s <= end; s++) there = this.through(there, (key) => this.after(s, key));
    return side === "after" ? { before: there, after: here } : { before: here, after: there };
  }

  /**
   * @param {Iterable<number>} keys
   * @param {(key: number) => Iterable<number>} turn
   */
  through(keys, turn) {
    const found = new Set();
    for (const key of keys) for (const other of turn(key)) found.add(other);
    return found;
  }

  /**
   * The ancestors and descendants of a key of a step's program, step by step: [{ step, keys }],
   * with an entry for the first step and for each in which they changed or were renamed. `keys` are
   * those in the program after that step; an empty list says that nothing of it is left.
   * @param {number} step
   * @param {Data.Side} side
   * @param {number} key
   */
  history(step, side, key) {
    const at = side === "before" ? step - 1 : step;
    /** @type {{ step: number, keys: Set<number> }[]} */
    const rows = [];
    let keys = new Set([key]);
    for (let s = at; s >= 0 && keys.size; s--) {
      if (side === "before" && step === 0) break;
      rows.unshift({ step: s, keys });
      const older = new Set();
      for (const k of keys) for (const old of s ? this.before(s, k) : []) older.add(old);
      keys = older;
    }
    keys = new Set([key]);
    for (let s = Math.max(at, 0) + 1; s < this.recording.steps.length && keys.size; s++) {
      const newer = new Set();
      for (const k of keys) for (const made of this.after(s, k)) newer.add(made);
      rows.push({ step: s, keys: newer });
      keys = newer;
    }
    /** @param {{ step: number, keys: Set<number> }} row */
    const said = (row) =>
      [...row.keys]
        .map((k) => `${k} ${this.nameIn(this.recording.steps[row.step].after, k)}`)
        .sort()
        .join();
    return rows
      .filter((row, i) => i === 0 || said(row) !== said(rows[i - 1]))
      .map((row) => ({ step: row.step, keys: [...row.keys] }));
  }

  /**
   * What a key is called in a program, as its text has it: a block may have been renamed.
   * @param {number} program
   * @param {number} key
   * @returns {string}
   */
  nameIn(program, key) {
    if (!this.called.has(program)) {
      const names = new Map();
      for (const line of this.programs.programs[program]) {
        const keys = line.keys.filter((k) => this.traceable(k));
        defined(line).forEach((name, i) => {
          if (keys[i] !== undefined) names.set(keys[i], name.replace(/^"|"$/g, ""));
        });
      }
      this.called.set(program, names);
    }
    return sure(this.called.get(program)).get(key) ?? this.key(key)[1];
  }

  /**
   * For each line of a program the names that can be seen there, as a chain of definitions.
   * @param {number} program
   * @returns {(Scope | null)[]}
   */
  scope(program) {
    const known = this.scopes.get(program);
    if (known) return known;
    /** @type {Scope | null} */
    let top = null;
    const found = this.programs.programs[program].map((line) => {
      while (top && line.text && top.until > line.indent) top = top.outer;
      const keys = line.keys.filter((key) => this.traceable(key));
      const inside = SCOPES.has(line.parts[0]?.[0]);
      defined(line).forEach((name, i) => {
        if (keys[i] === undefined) return;
        top = { name, key: keys[i], until: line.indent + (inside ? 1 : 0), outer: top };
      });
      return top;
    });
    this.scopes.set(program, found);
    return found;
  }

  /**
   * The key that a name (or a quoted block name) stands for in a line, or null.
   * @param {number} program
   * @param {number} line
   * @param {string} name
   * @returns {number | null}
   */
  resolve(program, line, name) {
    for (let at = this.scope(program)[line]; at; at = at.outer) if (at.name === name) return at.key;
    return null;
  }

  /**
   * The traceable keys of a line, in reading order: those it defines, then those it uses.
   * @param {number} program
   * @param {number} line
   */
  symbols(program, line) {
    const at = this.programs.programs[program][line];
    const found = at.keys.filter((key) => this.traceable(key));
    for (const [kind, text] of this.programs.tokensOf(at)) {
      const key = kind === "name" ? this.resolve(program, line, text) : null;
      if (key !== null) found.push(key);
    }
    return [...new Set(found)];
  }
}
