import assert from "node:assert/strict";
import { test } from "node:test";
import { ranges } from "../../widgets/js/inner_loop.js";

test("registers are listed as ranges", () => {
  assert.equal(ranges(["ymm0", "ymm1", "ymm2", "ymm5"]), "ymm0 to ymm2, ymm5");
  assert.equal(ranges(["v1", "v2"]), "v1, v2");
  assert.equal(ranges(["ymm0", "zmm1"]), "ymm0, zmm1");
  assert.equal(ranges([]), "");
});
