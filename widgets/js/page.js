// Shows views on a page that has no kernel: the values of their traits lie in the page.

import {} from "./dom.js";

/** The part of anywidget's model that a view uses, over values that lie in the page. */
export class PageModel {
  /** @type {Map<string, Set<(message: any) => void>>} */
  listeners;

  /** @param {Record<string, unknown>} values */
  constructor(values) {
    this.values = values;
    this.listeners = new Map();
  }

  /**
   * @param {string} name
   * @returns {any}
   */
  get(name) {
    return this.values[name];
  }

  /**
   * @param {string} name
   * @param {unknown} value
   */
  set(name, value) {
    if (this.values[name] === value) return;
    this.values[name] = value;
    for (const listener of this.listeners.get(`change:${name}`) || []) listener(null);
  }

  save_changes() {}

  /** Takes no message: there is nobody to send it to. */
  send() {}

  /**
   * @param {string} event
   * @param {(message: any) => void} listener
   */
  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event)?.add(listener);
  }

  /**
   * @param {string} event
   * @param {(message: any) => void} listener
   */
  off(event, listener) {
    this.listeners.get(event)?.delete(listener);
  }
}

/**
 * Draw a view at each place of the page that names its values.
 * @param {Data.View} view
 */
export function showAll(view) {
  for (const host of document.querySelectorAll("[data-mlc-view]")) {
    const data = document.getElementById(host.dataset.mlcView || "");
    if (!(host instanceof HTMLElement) || !data?.textContent) continue;
    view.render({ model: new PageModel(JSON.parse(data.textContent)), el: host });
    data.remove();
  }
}
