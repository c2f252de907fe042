// What a view shows as a file for slides: SVG, or PNG painted from it.
//
// The picture is made of what is in the page, with the colours it has there; nothing is loaded.

import { escapeHTML, h, sure } from "./dom.js";
import { t } from "./words.js";

const MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace";
const EDGE = 14;

/**
 * Pieces of text and backgrounds of an element that shows lines, as SVG around (0, 0).
 * @param {HTMLElement} pane
 */
function linesAsSVG(pane) {
  const origin = pane.getBoundingClientRect();
  const [dx, dy] = [pane.scrollLeft - origin.left, pane.scrollTop - origin.top];
  const ground = pane.scrollWidth;
  let out = "";
  for (const line of pane.querySelectorAll(".l, .fold")) {
    const box = line.getBoundingClientRect();
    const { backgroundColor } = getComputedStyle(line);
    if (!/, 0\)$|transparent/.test(backgroundColor)) {
      out += `<rect x="0" y="${box.top + dy}" width="${ground}" height="${box.height}" fill="${backgroundColor}"/>`;
    }
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = /** @type {Text} */ (walker.currentNode);
      const parent = sure(node.parentElement);
      if (!node.data.trim() || parent.closest("s")) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const at = range.getBoundingClientRect();
      const style = getComputedStyle(parent);
      const indent = node.data.length - node.data.trimStart().length;
      const x = at.left + dx + (indent * at.width) / node.data.length;
      const weight = Number(style.fontWeight) >= 600 ? ' font-weight="700"' : "";
      out +=
        `<text x="${x.toFixed(1)}" y="${(at.bottom + dy - 4).toFixed(1)}" fill="${style.color}"${weight}>` +
        `${escapeHTML(node.data.trim())}</text>`;
    }
  }
  return { svg: out, width: ground, height: pane.scrollHeight };
}

/**
 * A drawing of the page with the style it has there written into it.
 * @param {SVGElement} drawing
 */
function drawingAsSVG(drawing) {
  const copy = /** @type {SVGElement} */ (drawing.cloneNode(true));
  const originals = drawing.querySelectorAll("rect, text, path, line, circle, polyline");
  const copies = copy.querySelectorAll("rect, text, path, line, circle, polyline");
  originals.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of [
      "fill",
      "stroke",
      "stroke-width",
      "stroke-dasharray",
      "font-size",
      "font-weight",
    ]) {
      copies[i].setAttribute(name, style.getPropertyValue(name));
    }
    copies[i].setAttribute("font-family", node.tagName === "text" ? MONO : "");
  });
  for (const title of copy.querySelectorAll("title")) title.remove();
  const box = drawing.getBoundingClientRect();
  return { svg: copy.innerHTML, width: box.width, height: box.height };
}

/**
 * SVG text of several panes side by side under a heading.
 * @param {HTMLElement[]} panes
 * @param {string[]} heading
 */
export function pictureOf(panes, heading) {
  const view = sure(panes[0].closest(".mlc"));
  const wrapped = view.classList.contains("wrap");
  view.classList.remove("wrap"); // a picture has room for long lines
  const parts = panes.map((pane) => {
    /** @type {SVGElement | null} */
    const drawing = pane.querySelector("svg.nest");
    return drawing ? drawingAsSVG(drawing) : linesAsSVG(pane);
  });
  view.classList.toggle("wrap", wrapped);
  const style = getComputedStyle(view);
  const top = EDGE + 20 * heading.length + 8;
  const height = top + Math.max(...parts.map((part) => part.height)) + EDGE;
  const wide = Math.max(0, ...heading.map((line) => line.length * 7.4));
  const width =
    Math.max(wide, parts.reduce((sum, part) => sum + part.width + EDGE, 0) - EDGE) + 2 * EDGE;
  let x = EDGE;
  let body = "";
  for (const part of parts) {
    body += `<svg x="${x}" y="${top}" width="${part.width}" height="${part.height}" overflow="hidden">${part.svg}</svg>`;
    x += part.width + EDGE;
  }
  const head = heading.map(
    (line, i) =>
      `<text x="${EDGE}" y="${EDGE + 14 + 20 * i}" fill="${style.color}"${i ? "" : ' font-weight="700"'}>${escapeHTML(line)}</text>`,
  );
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
    `viewBox="0 0 ${width} ${height}" font-family="${MONO}" font-size="12.5" xml:space="preserve">` +
    `<rect width="${width}" height="${height}" fill="${style.backgroundColor}"/>${head.join("")}${body}</svg>`
  );
}

/**
 * SVG text painted into a PNG, `scale` pixels for one of the picture's.
 * @param {string} svg
 * @returns {Promise<Blob>}
 */
export function paintPNG(svg, scale = 2) {
  return new Promise((done, fail) => {
    const image = new Image();
    image.onload = () => {
      const canvas = h("canvas", {
        width: Math.ceil(image.width * scale),
        height: Math.ceil(image.height * scale),
      });
      const context = sure(canvas.getContext("2d"));
      context.scale(scale, scale);
      context.drawImage(image, 0, 0);
      canvas.toBlob(
        (blob) => (blob ? done(blob) : fail(new Error(t("the picture is too large")))),
        "image/png",
      );
    };
    image.onerror = () => fail(new Error(t("the picture cannot be painted")));
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  });
}

/**
 * Give a file to the reader.
 * @param {string} name
 * @param {Blob} blob
 */
export function saveFile(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/**
 * Two buttons that save what `make()` gives as SVG text under `name()`.
 * @param {() => string} make
 * @param {() => string} name
 * @param {(said: string) => void} tell
 */
export function saveButtons(make, name, tell) {
  /**
   * @param {string} ending
   * @param {(svg: string) => Blob | Promise<Blob>} blobOf
   */
  const button = (ending, blobOf) =>
    h(
      "button",
      {
        type: "button",
        class: "small",
        "aria-label": t("Save this step as {kind}", { kind: ending.toUpperCase() }),
        title: t("Save this step as {kind}", { kind: ending.toUpperCase() }),
        onclick: async () => {
          try {
            saveFile(`${name()}.${ending}`, await blobOf(make()));
            tell(t("Saved {file}", { file: `${name()}.${ending}` }));
          } catch (error) {
            tell(t("Not saved: {why}", { why: error instanceof Error ? error.message : error }));
          }
        },
      },
      ending.toUpperCase(),
    );
  return h(
    "span",
    { class: "save" },
    t("Save as "),
    button("svg", (svg) => new Blob([svg], { type: "image/svg+xml" })),
    button("png", (svg) => paintPNG(svg)),
  );
}
