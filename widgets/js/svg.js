// SVG elements, made as `h` of dom.js makes those of HTML.

export const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element: svg("path", { class: "x", d: "M0,0" }, child, ...).
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | null | undefined>} attributes
 * @param {...(string | Node)} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}
