// The names of roofs in a roofline: each begins on its roof, and none reaches over the peak.

import assert from "node:assert/strict";
import test from "node:test";

import { drawRoofline } from "../../widgets/js/roofline.js";

const machine = { peak_gflops: 265, bandwidth: { L1: 537, L2: 261, L3: 118, memory: 47.4 } };
/** How wide a letter is at least, in pixels. */
const LETTER = 6;

/**
 * A roofline of one point at some intensity and speed.
 * @param {number} intensity
 * @param {number} gflops
 * @param {number} width
 */
function drawn(intensity, gflops, width) {
  const levels = [{ name: "L1", bytes_in: 1000, bytes_out: 0 }];
  const counts = { levels, flops: 1000 * intensity, bytes_read: 1000, bytes_written: 0 };
  const recording = {
    machine,
    steps: [{ op: "split", name: "here", after: 0 }],
    programs: [{ cost: { gflops, counts } }],
  };
  return drawRoofline(/** @type {any} */ (recording), "memory", 0, width, "state");
}

test("the name of a roof lies along it and ends below the peak, wherever the point is", () => {
  for (const width of [300, 420, 900])
    for (let intensity = 0.06; intensity < 14; intensity *= 1.13) {
      const svg = drawn(intensity, 0.9 * Math.min(265, intensity * 47.4), width);
      const peak = Number(svg.match(/<line class="peak" x1="\S+" x2="\S+" y1="(\S+)"/)?.[1]);
      const feet = [...svg.matchAll(/<line class="roof [^>]* x1="(\S+)" y1="(\S+)"/g)];
      const names = svg.matchAll(/translate\((\S+) (\S+)\) rotate\((\S+)\)" dy="-4">([^<]+)</g);
      for (const [, x, y, turn, text] of names) {
        const [, left, foot] = feet.shift() ?? [];
        assert.ok(
          Number(x) >= Number(left) - 1 && Number(y) <= Number(foot) + 1,
          `${text}: ${x} ${y}`,
        );
        const end = Number(y) + LETTER * text.length * Math.sin((Number(turn) * Math.PI) / 180);
        assert.ok(end >= peak - 1, `${text} at ${intensity}: ${end} above ${peak}`);
      }
    }
});
