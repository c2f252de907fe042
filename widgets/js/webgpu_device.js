// Runs kernels on the GPU of this browser: what `mlc_lab/observe/gpu/browser.py` made ready.
//
// Knows WebGPU and no page. A device is opened when the first kernel is run, and again after it was
// lost.

import { t } from "./words.js";

/** What a run found; `clock` says by what the time was taken. */
/** @typedef {{ seconds: number, clock: string, fault: string, error: number }} Outcome */

/** Seconds that a time is measured for, and how often. */
const SLICE = 0.02;
const REPEATS = 5;
/** Seconds after which the first run of a kernel is given up. */
const PATIENCE = 20;

/**
 * The numbers of an array, as `numbers` of browser.py makes them, bit for bit.
 * @param {string} dtype
 * @param {number} count
 * @param {number} seed
 */
export function inputs(dtype, count, seed) {
  const out =
    dtype === "float32"
      ? new Float32Array(count)
      : dtype === "int32"
        ? new Int32Array(count)
        : new Uint32Array(count);
  const start = Math.imul(seed, 0x85ebca6b);
  for (let i = 0; i < count; i++) {
    let x = (Math.imul(i, 0x9e3779b9) + start) >>> 0;
    x = Math.imul(x ^ (x >>> 16), 0x7feb352d) >>> 0;
    x = Math.imul(x ^ (x >>> 15), 0x846ca68b) >>> 0;
    x = (x ^ (x >>> 16)) >>> 0;
    out[i] = dtype === "float32" ? (x >>> 8) / 2 ** 23 - 1 : x & 7;
  }
  return out;
}

/** @param {string} text in base 64 */
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/** @param {number} bits of a float16 */
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}

/**
 * The bytes of a result as numbers.
 * @param {ArrayBuffer} data
 * @param {string} dtype
 * @returns {ArrayLike<number>}
 */
function numbersOf(data, dtype) {
  if (dtype === "float32") return new Float32Array(data);
  if (dtype === "int32") return new Int32Array(data);
  if (dtype === "float16") return Array.from(new Uint16Array(data), half);
  return new Uint32Array(data);
}

/**
 * What is wrong with a result ("" if nothing), and the largest error that was seen.
 * @param {ArrayLike<number>} have
 * @param {Data.ExpectedResult} right
 * @returns {{ fault: string, error: number }}
 */
export function compare(have, right) {
  const most = right.tolerance * Math.max(right.scale, 1e-30);
  let error = 0;
  for (let n = 0; n < right.values.length; n++) {
    const wanted = Number(right.values[n]);
    const at = n * right.every;
    if (Object.is(have[at], wanted) || have[at] === wanted) continue;
    const off = Math.abs(have[at] - wanted);
    error = Math.max(error, off);
    if (!(off <= most)) {
      return {
        fault: t("element {at} is {have} and should be {wanted}", { at, have: have[at], wanted }),
        error: off,
      };
    }
  }
  for (let n = 0; n < right.sums.length; n++) {
    let sum = 0;
    const start = n * right.group;
    const end = Math.min(start + right.group, have.length);
    for (let i = start; i < end; i++) sum += have[i];
    const wanted = Number(right.sums[n]);
    if (Object.is(sum, wanted) || sum === wanted) continue;
    // sums have nine digits in the page
    if (!(Math.abs(sum - wanted) <= (most + 1e-8 * right.scale) * (end - start))) {
      const words = { start, last: end - 1, sum, wanted };
      return {
        fault: t("the sum of elements {start} to {last} is {sum} and should be {wanted}", words),
        error,
      };
    }
  }
  return { fault: "", error };
}

/**
 * A promise that fails where another takes too long.
 * @template T
 * @param {Promise<T>} promise
 * @param {number} seconds
 * @returns {Promise<T>}
 */
function within(promise, seconds) {
  /** @type {ReturnType<typeof setTimeout>} */
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`no answer for ${seconds} s`)), seconds * 1000);
  });
  return /** @type {Promise<T>} */ (Promise.race([promise, late])).finally(() =>
    clearTimeout(timer),
  );
}

const LIMITS = /** @type {const} */ ([
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
  "maxComputeWorkgroupStorageSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxBufferSize",
]);

/** The GPU of this browser. */
export class BrowserGPU {
  /** @type {GPUDevice | null} */
  device = null;
  name = "";

  /**
   * Why no kernel can be run here, or "".
   * @returns {Promise<string>}
   */
  async open() {
    if (this.device) return "";
    if (!navigator.gpu) {
      return isSecureContext
        ? t("This browser has no WebGPU.")
        : t("WebGPU is there only for pages from https, from this machine, or from a file.");
    }
    /** @type {GPUAdapter | null} */
    let adapter = null;
    try {
      adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    } catch {
      // as where there is none
    }
    if (!adapter) return t("This browser has WebGPU, but no GPU for it.");
    const { vendor, architecture, device, description } = adapter.info;
    const words = [vendor, architecture, device].filter(Boolean).join(" ");
    this.name = description || words || t("a GPU that the browser does not name");
    /** @type {Record<string, number>} */
    const requiredLimits = {};
    for (const limit of LIMITS) requiredLimits[limit] = adapter.limits[limit];
    const wanted = /** @type {GPUFeatureName[]} */ (["timestamp-query", "shader-f16"]);
    try {
      this.device = await adapter.requestDevice({
        requiredLimits,
        requiredFeatures: wanted.filter((feature) => adapter.features.has(feature)),
      });
    } catch (error) {
      return t("This browser's GPU, {name}, cannot be opened: {why}", {
        name: this.name,
        why: wordsOf(error),
      });
    }
    const opened = this.device;
    opened.lost.then(() => {
      if (this.device === opened) this.device = null;
    });
    return "";
  }

  /** Whether times are the GPU's own. */
  get hasClock() {
    return Boolean(this.device?.features.has("timestamp-query"));
  }

  close() {
    this.device?.destroy();
    this.device = null;
  }

  /**
   * Run a variant, compare what it computes, and time it. Throws an Error that says what failed.
   * @param {Data.BrowserKernels} data
   * @param {Data.BrowserVariant} variant
   * @returns {Promise<Outcome>}
   */
  async run(data, variant) {
    const refusal = await this.open();
    const device = this.device;
    if (refusal || !device) throw new Error(refusal || "the GPU is gone");
    this.#fits(device, variant);
    const lost = device.lost.then((info) => {
      throw new Error(`the GPU was lost: ${info.message || info.reason}`);
    });
    lost.catch(() => {}); // of a device that is lost later
    device.pushErrorScope("out-of-memory");
    device.pushErrorScope("validation");
    /** @type {GPUBuffer[]} */
    const made = [];
    try {
      const work = this.#work(device, data, variant, made);
      return await Promise.race([work, lost]);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("no answer")) this.close();
      throw error;
    } finally {
      for (const buffer of made) buffer.destroy();
    }
  }

  /**
   * Refuse what the GPU cannot take, with the limit.
   * @param {GPUDevice} device
   * @param {Data.BrowserVariant} variant
   */
  #fits(device, variant) {
    const { limits } = device;
    for (const kernel of variant.kernels) {
      const threads = kernel.block.reduce((a, b) => a * b, 1);
      /** @type {[string, number, number][]} */
      const rows = [
        ["threads a workgroup", threads, limits.maxComputeInvocationsPerWorkgroup],
        ["bytes of shared memory", kernel.shared, limits.maxComputeWorkgroupStorageSize],
        ["arrays", kernel.read_only.length, limits.maxStorageBuffersPerShaderStage],
      ];
      for (const [what, wanted, most] of rows) {
        if (wanted > most) {
          throw new Error(`${kernel.name} takes ${wanted} ${what}; this GPU has ${most}`);
        }
      }
    }
  }

  /**
   * @param {GPUDevice} device
   * @param {Data.BrowserKernels} data
   * @param {Data.BrowserVariant} variant
   * @param {GPUBuffer[]} made
   * @returns {Promise<Outcome>}
   */
  async #work(device, data, variant, made) {
    const pipelines = await this.#pipelines(device, variant);
    const use = GPUBufferUsage;
    /**
     * @param {number} size
     * @param {number} usage
     */
    const buffer = (size, usage) => {
      const one = device.createBuffer({ size: Math.max(4, Math.ceil(size / 4) * 4), usage });
      made.push(one);
      return one;
    };
    const memory = variant.buffers.map((size) =>
      buffer(size, use.STORAGE | use.COPY_SRC | use.COPY_DST),
    );
    data.arrays.forEach((array, n) => {
      const count = array.shape.reduce((a, b) => a * b, 1);
      const bytes = array.data
        ? bytesOf(array.data)
        : new Uint8Array(inputs(array.dtype, count, array.seed ?? 0).buffer);
      const whole = new Uint8Array(memory[n].size);
      whole.set(bytes);
      device.queue.writeBuffer(memory[n], 0, whole);
    });
    const groups = variant.launches.map((launch) => {
      const entries = launch.buffers.map((n, binding) => ({
        binding,
        resource: { buffer: memory[n] },
      }));
      const scalars = bytesOf(launch.scalars);
      if (scalars.length) {
        const own = buffer(Math.ceil(scalars.length / 16) * 16, use.UNIFORM | use.COPY_DST);
        const whole = new Uint8Array(own.size);
        whole.set(scalars);
        device.queue.writeBuffer(own, 0, whole);
        entries.push({ binding: entries.length, resource: { buffer: own } });
      }
      const layout = pipelines[launch.kernel].getBindGroupLayout(0);
      return device.createBindGroup({ layout, entries });
    });
    const clock = this.hasClock
      ? device.createQuerySet({ type: "timestamp", count: 2 })
      : /** @type {null} */ (null);
    const ticks = clock ? buffer(16, use.QUERY_RESOLVE | use.COPY_SRC) : null;
    /**
     * Run all launches `times` times: seconds by the GPU's clock, by the page's where it has none.
     * @param {number} times
     */
    const once = async (times) => {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass(
        clock
          ? {
              timestampWrites: {
                querySet: clock,
                beginningOfPassWriteIndex: 0,
                endOfPassWriteIndex: 1,
              },
            }
          : {},
      );
      for (let n = 0; n < times; n++) {
        variant.launches.forEach((launch, at) => {
          pass.setPipeline(pipelines[launch.kernel]);
          pass.setBindGroup(0, groups[at]);
          pass.dispatchWorkgroups(launch.grid[0], launch.grid[1], launch.grid[2]);
        });
      }
      pass.end();
      if (clock && ticks) encoder.resolveQuerySet(clock, 0, 2, ticks, 0);
      const begun = performance.now();
      device.queue.submit([encoder.finish()]);
      await within(device.queue.onSubmittedWorkDone(), PATIENCE);
      const page = (performance.now() - begun) / 1000;
      if (!ticks) return { own: page, page };
      const read = new BigUint64Array(await this.#read(device, ticks, 16, made));
      return { own: Number(read[1] - read[0]) / 1e9, page };
    };
    const first = await once(1);
    for (const kind of ["it does not fit the GPU", "the GPU's memory is full"]) {
      const error = await device.popErrorScope();
      if (error) throw new Error(`${kind}: ${error.message}`);
    }
    let fault = "";
    let worst = 0;
    for (const [n, array] of data.arrays.entries()) {
      if (!array.expected) continue;
      const result = numbersOf(
        await this.#read(device, memory[n], variant.buffers[n], made),
        array.dtype,
      );
      const found = compare(result, array.expected);
      worst = Math.max(worst, found.error);
      if (found.fault && !fault) fault = `${array.name}: ${found.fault}`;
    }
    // The clocks of browsers are coarse, on purpose: as many runs as fill a slice are timed at once.
    const rough = Math.max(first.own || first.page, 1e-6);
    let times = Math.min(1000, Math.max(1, Math.ceil(SLICE / rough)));
    const warm = await once(times);
    const seconds = [warm.own / times];
    if (warm.page < 1) {
      times = Math.min(2000, Math.max(1, Math.ceil((SLICE * times) / Math.max(warm.own, 1e-6))));
      seconds.pop();
      for (let n = 0; n < REPEATS; n++) seconds.push((await once(times)).own / times);
    }
    clock?.destroy();
    seconds.sort((a, b) => a - b);
    return {
      seconds: seconds[seconds.length >> 1],
      clock: clock ? "the GPU's clock" : "the page's clock, with the way to the GPU and back",
      fault,
      error: worst,
    };
  }

  /**
   * @param {GPUDevice} device
   * @param {Data.BrowserVariant} variant
   */
  async #pipelines(device, variant) {
    const out = [];
    for (const kernel of variant.kernels) {
      const module = device.createShaderModule({ code: kernel.text });
      const info = await module.getCompilationInfo();
      const bad = info.messages.find((message) => message.type === "error");
      if (bad) {
        const line = kernel.text.split("\n")[bad.lineNum - 1] || "";
        const where = `line ${bad.lineNum} of ${kernel.name}`;
        throw new Error(`${where}: ${bad.message}\n${line.trim()}`);
      }
      const layout = device.createBindGroupLayout({ entries: this.#entries(kernel, variant) });
      out.push(
        await device.createComputePipelineAsync({
          layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
          compute: { module, entryPoint: kernel.name },
        }),
      );
    }
    return out;
  }

  /**
   * @param {Data.BrowserKernel} kernel
   * @param {Data.BrowserVariant} variant
   */
  #entries(kernel, variant) {
    /** @type {GPUBufferBindingType[]} */
    const kinds = kernel.read_only.map((only) => (only ? "read-only-storage" : "storage"));
    const at = variant.kernels.indexOf(kernel);
    if (variant.launches.some((launch) => launch.kernel === at && launch.scalars)) {
      kinds.push("uniform");
    }
    const visibility = GPUShaderStage.COMPUTE;
    return kinds.map((type, binding) => ({ binding, visibility, buffer: { type } }));
  }

  /**
   * @param {GPUDevice} device
   * @param {GPUBuffer} source
   * @param {number} size
   * @param {GPUBuffer[]} made
   */
  async #read(device, source, size, made) {
    const whole = Math.ceil(size / 4) * 4;
    const target = device.createBuffer({
      size: whole,
      usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
    made.push(target);
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(source, 0, target, 0, whole);
    device.queue.submit([encoder.finish()]);
    await within(target.mapAsync(GPUMapMode.READ), PATIENCE);
    const data = target.getMappedRange().slice(0, size);
    target.unmap();
    return data;
  }
}

/** @param {unknown} error */
export const wordsOf = (error) => (error instanceof Error ? error.message : String(error));
