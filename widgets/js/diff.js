// What changed between two programs, by the identity of what their lines stand for.
//
// mlc_lab/observe/alignment.py has woven all programs of a recording into one sequence of slots:
// lines that face each other share a slot. Here the slots of two programs are merged.

/** @typedef {{ text: string, keys: number[] }} Keyed a line: its text without indentation */

/**
 * The first line of each key.
 * @param {Keyed[]} lines
 */
function index(lines) {
  /** @type {Map<number, number>} */
  const byKey = new Map();
  lines.forEach((line, i) => {
    for (const key of line.keys) if (!byKey.has(key)) byKey.set(key, i);
  });
  return byKey;
}

/**
 * The numbers that runs [first, count, first, count, ...] stand for.
 * @param {number[]} runs
 */
export function numbersOf(runs) {
  const numbers = [];
  for (let i = 0; i < runs.length; i += 2)
    for (let k = 0; k < runs[i + 1]; k++) numbers.push(runs[i] + k);
  return numbers;
}

/**
 * Both programs side by side: every line stands in one row, in order. Rows { left, right, leftMark,
 * rightMark } have indices into `before` and `after` (or -1), and for each side a mark: "" for
 * unchanged, "changed", "moved", "removed", "new". `slots`: those of the lines of each.
 * @param {Keyed[]} before
 * @param {Keyed[]} after
 * @param {[number[], number[]]} slots
 * @returns {Data.Row[]}
 */
export function rows(before, after, slots) {
  const there = new Map(slots[1].map((slot, b) => [slot, b]));
  /** @type {[number, number][]} */
  const pairs = [];
  slots[0].forEach((slot, a) => {
    const b = there.get(slot);
    if (b !== undefined) pairs.push([a, b]);
  });
  const paired = [new Set(pairs.map(([a]) => a)), new Set(pairs.map(([, b]) => b))];
  // A line that faces none: its counterpart lies elsewhere ("moved"), is shared with another line
  // ("changed": one line became two, or two one), or does not exist.
  /**
   * @param {Keyed[]} lines
   * @param {Keyed[]} others
   * @param {Set<number>} pairedThere
   * @param {Data.Mark} absent
   * @returns {(n: number) => Data.Mark}
   */
  const marksOf = (lines, others, pairedThere, absent) => {
    const where = index(others);
    return (n) => {
      const found = lines[n].keys.map((key) => where.get(key)).filter((i) => i !== undefined);
      if (!found.length) return absent;
      return found.some((i) => !pairedThere.has(i)) ? "moved" : "changed";
    };
  };
  const leftMark = marksOf(before, after, paired[1], "removed");
  const rightMark = marksOf(after, before, paired[0], "new");

  /** @type {Data.Row[]} */
  const out = [];
  let i = 0;
  let j = 0;
  for (const [a, b] of [...pairs, [before.length, after.length]]) {
    for (; i < a || j < b; i += Number(i < a), j += Number(j < b)) {
      out.push({
        left: i < a ? i : -1,
        right: j < b ? j : -1,
        leftMark: i < a ? leftMark(i) : "",
        rightMark: j < b ? rightMark(j) : "",
      });
    }
    if (a < before.length) {
      const mark = before[a].text === after[b].text ? "" : "changed";
      out.push({ left: a, right: b, leftMark: mark, rightMark: mark });
      [i, j] = [a + 1, b + 1];
    }
  }
  return out;
}

/**
 * Which tokens of two lines differ: [booleans of a, booleans of b].
 * @param {string[]} a
 * @param {string[]} b
 * @returns {[boolean[], boolean[]]}
 */
export function changedWords(a, b) {
  const n = a.length;
  const m = b.length;
  const length = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      length[i][j] =
        a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const left = new Array(n).fill(true);
  const right = new Array(m).fill(true);
  for (let i = 0, j = 0; i < n && j < m;) {
    if (a[i] === b[j]) {
      left[i++] = false;
      right[j++] = false;
    } else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return [left, right];
}

/**
 * Runs of unchanged rows worth folding: [[first, last], ...]. Rows within `context` of a change
 * stay, and a run shorter than `least` is not worth a fold.
 * @param {Data.Row[]} rows
 * @returns {[number, number][]}
 */
export function folds(rows, context = 3, least = 8) {
  /** @type {[number, number][]} */
  const found = [];
  let start = 0;
  /** @param {number} end */
  const close = (end) => {
    const first = start === 0 ? 0 : start + context;
    const last = end === rows.length ? end - 1 : end - 1 - context;
    if (last - first + 1 >= least) found.push([first, last]);
  };
  rows.forEach((row, i) => {
    if (!row.leftMark && !row.rightMark) return;
    close(i);
    start = i + 1;
  });
  if (start > 0) close(rows.length);
  return found;
}

/**
 * Which lines of `after` are not in `before`, by the longest common subsequence of the two.
 * @param {string[]} before
 * @param {string[]} after
 * @returns {Set<number>}
 */
export function newLines(before, after) {
  const [n, m] = [before.length, after.length];
  const length = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      length[i][j] =
        before[i] === after[j]
          ? length[i + 1][j + 1] + 1
          : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const found = new Set();
  for (let i = 0, j = 0; j < m;) {
    if (i < n && before[i] === after[j]) [i, j] = [i + 1, j + 1];
    else if (i < n && length[i + 1][j] >= length[i][j + 1]) i++;
    else found.add(j++);
  }
  return found;
}
