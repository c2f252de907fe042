// What a warp asks of memory at one instruction: its sectors, its banks. Draws nothing.

import { t } from "./words.js";

export const SECTOR = 32;
export const BANKS = 32;
const WORD = 4;

/** @typedef {{ number: number, first: number, cells: number[][], used: number }} Sector a sector of
 *   32 bytes: its first element, the lanes that ask for each element, and the bytes asked for */
/** @typedef {{ word: number, lanes: number[], part: number }} Word a word of 4 bytes in a bank */

/**
 * The elements of the lanes of a warp: the first one each, null for a lane that takes no part.
 * @param {Data.Threads} recording
 * @param {number} event
 * @param {number} warp
 * @returns {(number | null)[]}
 */
export function elements(recording, event, warp) {
  const [site, lanes, shift] = recording.events[event];
  if (site < 0) return [];
  const start = warp * recording.warp;
  return recording.lanes[lanes]
    .slice(start, start + recording.warp)
    .map((at) => (at === null ? null : at + shift));
}

/**
 * The sectors of global memory that a warp asks for, in order of their addresses.
 * @param {Data.Threads} recording
 * @param {number} event
 * @param {number} warp
 * @returns {Sector[]}
 */
export function sectorsOf(recording, event, warp) {
  const site = recording.sites[recording.events[event][0]];
  const { base, itemsize } = recording.buffers[site.buffer];
  const each = Math.max(1, SECTOR / itemsize);
  /** @type {Map<number, Sector>} */
  const found = new Map();
  elements(recording, event, warp).forEach((element, lane) => {
    if (element === null) return;
    for (let n = 0; n < site.nbytes / itemsize; n += 1) {
      const at = base / itemsize + element + n;
      const number = Math.floor(at / each);
      let sector = found.get(number);
      if (!sector) {
        const cells = Array.from({ length: each }, () => /** @type {number[]} */ ([]));
        sector = { number, first: number * each - base / itemsize, cells, used: 0 };
        found.set(number, sector);
      }
      sector.cells[at % each].push(lane);
    }
  });
  const out = [...found.values()].sort((a, b) => a.number - b.number);
  for (const sector of out) {
    sector.used = sector.cells.filter((lanes) => lanes.length).length * itemsize;
  }
  return out;
}

/**
 * The words of shared memory that a warp asks for, by bank. Lanes that ask for 8 bytes are served in
 * two parts of a warp, those that ask for 16 in four.
 * @param {Data.Threads} recording
 * @param {number} event
 * @param {number} warp
 * @returns {Word[][]}
 */
export function banksOf(recording, event, warp) {
  const site = recording.sites[recording.events[event][0]];
  const { itemsize } = recording.buffers[site.buffer];
  const parts = Math.max(1, Math.floor(site.nbytes / WORD));
  const together = Math.max(1, recording.warp / parts);
  /** @type {Word[][]} */
  const banks = Array.from({ length: BANKS }, () => []);
  elements(recording, event, warp).forEach((element, lane) => {
    if (element === null) return;
    const part = Math.floor(lane / together);
    const from = Math.floor((element * itemsize) / WORD);
    const last = Math.floor((element * itemsize + site.nbytes - 1) / WORD);
    for (let word = from; word <= last; word += 1) {
      const bank = banks[word % BANKS];
      const known = bank.find((entry) => entry.word === word && entry.part === part);
      if (known) known.lanes.push(lane);
      else bank.push({ word, lanes: [lane], part });
    }
  });
  return banks;
}

/**
 * The most different words that one bank gives to lanes that are served together.
 * @param {Word[]} bank
 */
export function turns(bank) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const { part } of bank) counts.set(part, (counts.get(part) ?? 0) + 1);
  return Math.max(0, ...counts.values());
}

/**
 * Lanes as people write them: "0-3, 8".
 * @param {number[]} lanes
 */
export function ranges(lanes) {
  /** @type {[number, number][]} */
  const runs = [];
  for (const lane of lanes) {
    const last = runs[runs.length - 1];
    if (last && last[1] === lane - 1) last[1] = lane;
    else runs.push([lane, lane]);
  }
  return runs.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(", ");
}

/**
 * What an instruction does, and to which buffer.
 * @param {boolean} write
 * @param {boolean} shared
 * @param {string} name
 */
function whatOf(write, shared, name) {
  if (shared)
    return write
      ? t("Store to shared memory, {name}", { name })
      : t("Load from shared memory, {name}", { name });
  return write
    ? t("Store to global memory, {name}", { name })
    : t("Load from global memory, {name}", { name });
}

/**
 * An instruction of a warp in words.
 * @param {Data.Threads} recording
 * @param {number} event
 * @param {number} warp
 */
export function inWords(recording, event, warp) {
  const [number, , , asked] = recording.events[event];
  if (number < 0) return t("Barrier: all threads of the block wait here for each other.");
  const site = recording.sites[number];
  const buffer = recording.buffers[site.buffer];
  const active = elements(recording, event, warp).filter((at) => at !== null).length;
  const what = whatOf(site.write, buffer.scope === "shared", buffer.name);
  if (!active) return t("{what}: no lane of warp {warp} takes part.", { what, warp });
  const lanes = t("{active} of {all} lanes of warp {warp}", { active, all: recording.warp, warp });
  if (buffer.scope === "shared") {
    const most = asked[warp];
    const least = Math.max(1, Math.floor((site.nbytes * recording.warp) / (WORD * BANKS)));
    const worst = Math.max(...banksOf(recording, event, warp).map(turns));
    const clash =
      worst > 1
        ? t(", because a bank is asked for {count} different words at once", { count: worst })
        : "";
    const passes =
      most === 1 ? t("1 pass over the banks") : t("{count} passes over the banks", { count: most });
    return t("{what}: {lanes}, {passes}{conflict}.", {
      what,
      lanes,
      passes,
      conflict: most > least ? clash : t(", no conflict"),
    });
  }
  const sectors = sectorsOf(recording, event, warp);
  const used = sectors.reduce((sum, sector) => sum + sector.used, 0);
  const moved = sectors.length * SECTOR;
  const part = Math.round((100 * used) / moved);
  const count =
    sectors.length === 1 ? t("1 sector") : t("{count} sectors", { count: sectors.length });
  return t("{what}: {lanes}, {sectors}, {used} of {moved} bytes used ({part} %).", {
    what,
    lanes,
    sectors: count,
    used,
    moved,
    part,
  });
}

/**
 * What a multiprocessor holds with another amount: the row of the table that is nearest.
 * @param {[number, number, number, string][]} rows
 * @param {number} amount
 */
export function nearest(rows, amount) {
  return rows.reduce((best, row) =>
    Math.abs(row[0] - amount) < Math.abs(best[0] - amount) ? row : best,
  );
}

/**
 * The nearest amount with which a multiprocessor holds more warps; undefined if there is none.
 * @param {[number, number, number, string][]} rows
 * @param {number} now
 * @param {number} warps
 */
export function lifting(rows, now, warps) {
  const better = rows.filter(([, , held]) => held > warps);
  return better.length ? nearest(better, now) : undefined;
}
