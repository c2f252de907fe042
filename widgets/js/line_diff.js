// Which lines two texts have in common, where nothing but their text is known of them.

/** Lines of each text that are compared; what comes after counts as common. */
const MOST = 600;

/**
 * For each line of two texts whether the other one has it too, in the same order.
 * @param {string[]} one
 * @param {string[]} other
 * @returns {[boolean[], boolean[]]}
 */
export function lineDiff(one, other) {
  const [a, b] = [one.slice(0, MOST), other.slice(0, MOST)];
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      longest[i * width + j] =
        a[i] === b[j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  /** @type {[boolean[], boolean[]]} */
  const kept = [one.map((_, at) => at >= MOST), other.map((_, at) => at >= MOST)];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) kept[0][i++] = kept[1][j++] = true;
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return kept;
}
