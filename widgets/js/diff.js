// What changed between two programs, by the identity of what their lines stand for.
//
// A line has a text and keys. A key is the identity of something in the program: a loop, a block,
// an iterator, a statement. Equal keys mean the same object, whatever its text says now, so a loop
// that was moved is found again, and a line that merely reads the same is not taken for it.
// Lines without keys (decorators, `with T.init():`) are known by their text.

/** @typedef {{ text: string, keys: number[] }} Keyed a line to align */

/**
 * Longest chain of pairs rising on both sides, by total weight. `pairs` are [a, b, weight].
 * @param {[number, number, number][]} pairs
 * @param {number} size
 */
export function heaviestChain(pairs, size) {
  const ordered = [...pairs].sort((p, q) => p[0] - q[0] || q[1] - p[1]);
  const best = new Float64Array(size + 1); // a Fenwick tree of prefix maxima over b
  const from = new Int32Array(size + 1).fill(-1);
  const previous = new Int32Array(ordered.length).fill(-1);
  let top = 0;
  let last = -1;
  ordered.forEach(([, b, weight], index) => {
    let sum = 0;
    for (let i = b; i > 0; i -= i & -i) {
      if (best[i] > sum) [sum, previous[index]] = [best[i], from[i]];
    }
    sum += weight;
    if (sum > top) [top, last] = [sum, index];
    for (let i = b + 1; i <= size; i += i & -i) {
      if (sum > best[i]) [best[i], from[i]] = [sum, index];
    }
  });
  const chain = [];
  for (let i = last; i >= 0; i = previous[i]) chain.push(ordered[i]);
  return chain.reverse();
}

/** @param {Keyed[]} lines */
function index(lines) {
  const byKey = new Map();
  lines.forEach((line, i) => {
    for (const key of line.keys) if (!byKey.has(key)) byKey.set(key, i);
  });
  return byKey;
}

/**
 * Pairs of lines that stand for the same thing, heavier the surer.
 * @param {Keyed[]} before
 * @param {Keyed[]} after
 * @returns {[number, number, number][]}
 */
function candidates(before, after) {
  const byKey = index(after);
  /** @type {Map<string, number[]>} */
  const byText = new Map();
  after.forEach((line, i) => {
    if (line.keys.length) return;
    if (!byText.has(line.text)) byText.set(line.text, []);
    byText.get(line.text)?.push(i);
  });
  /** @type {[number, number, number][]} */
  const pairs = [];
  before.forEach((line, a) => {
    if (!line.keys.length) {
      // The same text may stand in many places: offer those nearby.
      const near = (byText.get(line.text) || []).slice();
      near.sort((p, q) => Math.abs(p - a) - Math.abs(q - a));
      for (const b of near.slice(0, 6)) pairs.push([a, b, 1]);
      return;
    }
    const shared = new Map();
    for (const key of line.keys) {
      const b = byKey.get(key);
      if (b !== undefined) shared.set(b, (shared.get(b) || 0) + 1);
    }
    for (const [b, count] of shared) {
      const same = after[b].text === line.text;
      const all = Math.max(line.keys.length, after[b].keys.length);
      pairs.push([a, b, same ? 8 : 2 + (4 * count) / all]);
    }
  });
  return pairs;
}

/**
 * Aligned rows [{ left, right, mark }]: indices into `before` and `after` (or -1), and for each
 * side a mark: "" unchanged, "changed", "moved", "removed", "new".
 * A line is { text (without its indentation), keys }.
 * @param {Keyed[]} before
 * @param {Keyed[]} after
 * @returns {Data.Row[]}
 */
export function align(before, after) {
  let head = 0;
  /**
   * @param {number} a
   * @param {number} b
   */
  const equal = (a, b) =>
    before[a].text === after[b].text && before[a].keys.join() === after[b].keys.join();
  const shorter = Math.min(before.length, after.length);
  while (head < shorter && equal(head, head)) head++;
  let tail = 0;
  while (tail < shorter - head && equal(before.length - 1 - tail, after.length - 1 - tail)) tail++;

  const a = before.slice(head, before.length - tail);
  const b = after.slice(head, after.length - tail);
  const chain = heaviestChain(candidates(a, b), b.length);
  const paired = { left: new Set(chain.map((p) => p[0])), right: new Set(chain.map((p) => p[1])) };

  // A line outside the chain: its counterpart lies elsewhere ("moved"), is shared with another
  // line ("changed": one line became two, or two one), or does not exist.
  /**
   * @param {Keyed[]} lines
   * @param {Keyed[]} others
   * @param {Set<number>} pairedThere
   * @param {Data.Mark} absent
   * @returns {Data.Mark[]}
   */
  const marksOf = (lines, others, pairedThere, absent) => {
    const where = index(others);
    return lines.map((line) => {
      const there = line.keys.map((key) => where.get(key)).filter((i) => i !== undefined);
      if (!there.length) return absent;
      return there.some((i) => !pairedThere.has(i)) ? "moved" : "changed";
    });
  };
  const leftMarks = marksOf(a, b, paired.right, "removed");
  const rightMarks = marksOf(b, a, paired.left, "new");

  /** @type {Data.Row[]} */
  const rows = [];
  /**
   * @param {number} left
   * @param {number} right
   * @param {Data.Mark} leftMark
   * @param {Data.Mark} rightMark
   */
  const row = (left, right, leftMark, rightMark) => rows.push({ left, right, leftMark, rightMark });
  for (let i = 0; i < head; i++) row(i, i, "", "");
  let i = 0;
  let j = 0;
  for (const [p, q] of [...chain, [a.length, b.length]]) {
    for (; i < p || j < q; i += Number(i < p), j += Number(j < q)) {
      row(
        i < p ? head + i : -1,
        j < q ? head + j : -1,
        i < p ? leftMarks[i] : "",
        j < q ? rightMarks[j] : "",
      );
    }
    if (p < a.length) {
      const mark = a[p].text === b[q].text ? "" : "changed";
      row(head + p, head + q, mark, mark);
      [i, j] = [p + 1, q + 1];
    }
  }
  for (let t = tail; t > 0; t--) row(before.length - t, after.length - t, "", "");
  return rows;
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
