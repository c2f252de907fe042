// Bundles the script of each view: `npm run build` writes widgets/bundles/, which are committed.
//
//     node widgets/build.mjs [FOLDER]    write into another folder, to compare
//
// Every file of js/ that has a default export is a view; `page.js` is what stands beside a view on a
// page without a kernel, `kernel.js` in a notebook; `site.js` draws views on the pages of the site.
// `labextension.js` becomes what JupyterLab loads, in labextension/. A bundle is one script that
// makes a variable of one name, so that the same file serves a notebook, which wants a module, and a
// page, which has the text inside (see bundle.py). Its first line has a digest of the files it was
// made from, by which a test tells without node whether the bundle is current.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, version } from "esbuild";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const SOURCES = path.join(HERE, "js");
const EXTENSION = "labextension.js";
/** The variables of the scripts that are no views. @type {Record<string, string | undefined>} */
const NAMES = {
  "page.js": "mlcPage",
  "kernel.js": "mlcKernel",
  "site.js": undefined,
  [EXTENSION]: undefined,
};
/** @param {string} name */
const read = (name) => readFileSync(path.join(SOURCES, name), "utf8").replaceAll("\r\n", "\n");

/**
 * The digest of some files of js/, in the order of their names.
 * @param {string[]} names
 */
function digest(names) {
  const hash = createHash("sha256");
  for (const name of [...names].sort()) hash.update(`${name}\n${read(name)}`);
  return hash.digest("hex").slice(0, 16);
}

/** @param {string} entry */
async function bundled(entry) {
  const made = await build({
    absWorkingDir: SOURCES,
    entryPoints: [entry],
    bundle: true,
    format: "iife",
    globalName: entry in NAMES ? NAMES[entry] : "mlcView",
    target: "es2022",
    charset: "utf8",
    minify: true,
    legalComments: "none",
    metafile: true,
    write: false,
  });
  const inputs = Object.keys(made.metafile.inputs);
  const head = `// Made of js/${entry} by esbuild ${version} (npm run build); sources ${digest(inputs)}\n`;
  return head + made.outputFiles[0].text;
}

const target = process.argv[2] ?? path.join(HERE, "bundles");
const entries = readdirSync(SOURCES).filter(
  (name) =>
    (name in NAMES && name !== EXTENSION) ||
    (name.endsWith(".js") && /^export default /m.test(read(name))),
);
rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const remote = path.join(target, "../labextension/static/remoteEntry.js");
mkdirSync(path.dirname(remote), { recursive: true });
for (const entry of [...entries, EXTENSION]) {
  const text = await bundled(entry);
  writeFileSync(entry === EXTENSION ? remote : path.join(target, entry), text);
  console.log(`${entry.padEnd(16)} ${(Buffer.byteLength(text) / 1000).toFixed(1).padStart(6)} kB`);
}
