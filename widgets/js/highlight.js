// Programs and code, coloured: text -> [[class, text], ...], classes being those of the style.

const KEYWORDS = new Set(
  (
    "and as assert break class continue def elif else False for from if import in is lambda None " +
    "not or pass raise return True while with yield"
  ).split(" "),
);
const PATTERN =
  /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(@[\w.]+)|(\b\d[\w.]*(?:[eE][-+]\d+)?)|(\b[TRI]\.\w+(?:\.\w+)*)|([A-Za-z_]\w*)|(\s+)|([^\w\s])/g;
const CLASSES = ["comment", "string", "meta", "number", "builtin", "name", "", "op"];

/**
 * Tokens of one line; their texts, joined, are the line.
 * @param {string} line
 * @returns {[string, string][]}
 */
export function tokens(line) {
  /** @type {[string, string][]} */
  const found = [];
  for (const match of line.matchAll(PATTERN)) {
    const kind = match.slice(1).findIndex((group) => group !== undefined);
    const text = match[0];
    found.push([kind === 5 && KEYWORDS.has(text) ? "keyword" : CLASSES[kind], text]);
  }
  return found;
}

const WORDS = new Set(
  (
    "array break bool char const constant continue device double else extern f16 f32 float fn for " +
    "half i32 if inline int kernel let long return short struct threadgroup u32 uchar uint ulong " +
    "unsigned var void volatile while __global __global__ __kernel __local __restrict__ " +
    "__shared__ restrict"
  ).split(" "),
);
const SOURCE =
  /(\/\/.*$|^\s*#.*$)|("(?:[^"\\]|\\.)*")|(@\w+)|(\b\d[\w.]*(?:[eE][-+]\d+\w*)?)|(\b(?:blockIdx|threadIdx|get_group_id|get_local_id)\b)|([A-Za-z_]\w*)|(\s+)|([^\w\s])/g;

/**
 * Tokens of a line of a kernel's source: CUDA C, OpenCL C, WGSL, Metal.
 * @param {string} line
 * @returns {[string, string][]}
 */
export function sourceTokens(line) {
  /** @type {[string, string][]} */
  const found = [];
  for (const match of line.matchAll(SOURCE)) {
    const kind = match.slice(1).findIndex((group) => group !== undefined);
    const text = match[0];
    found.push([kind === 5 && WORDS.has(text) ? "keyword" : CLASSES[kind], text]);
  }
  return found;
}

const CODE =
  /(;.*$|#\s.*$|\/\/.*$)|("(?:[^"\\]|\\.)*")|([%@][\w.$]+)|(\.?L?[\w.$]+:$)|((?<![\w.])-?\d[\w.]*|\$-?\d\w*)|([A-Za-z_.][\w.]*)|(\s+)|([^\w\s])/g;
const CODE_CLASSES = ["comment", "string", "builtin", "meta", "number", "", "", "op"];

/**
 * Tokens of a line of LLVM IR, assembly or PTX; the first word, what the line does, stands out.
 * @param {string} line
 * @returns {[string, string][]}
 */
export function codeTokens(line) {
  /** @type {[string, string][]} */
  const found = [];
  let first = true;
  for (const match of line.matchAll(CODE)) {
    const kind = match.slice(1).findIndex((group) => group !== undefined);
    found.push([kind === 5 && first ? "keyword" : CODE_CLASSES[kind], match[0]]);
    if (kind === 5) first = false;
  }
  return found;
}
