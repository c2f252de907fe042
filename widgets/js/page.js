// Shows views on a page that has no kernel: the values of their traits lie in the page.

/** The part of anywidget's model that a view uses, over values that lie in the page. */
export class PageModel {
  constructor(values) {
    this.values = values;
    this.listeners = new Map();
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    if (this.values[name] === value) return;
    this.values[name] = value;
    for (const listener of this.listeners.get(`change:${name}`) || []) listener();
  }

  save_changes() {}

  send() {}

  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event).add(listener);
  }

  off(event, listener) {
    this.listeners.get(event)?.delete(listener);
  }
}

/** Draw a view at each place of the page that names its values. */
export function showAll(view) {
  for (const host of document.querySelectorAll("[data-mlc-view]")) {
    const data = document.getElementById(host.dataset.mlcView);
    view.render({ model: new PageModel(JSON.parse(data.textContent)), el: host });
    data.remove();
  }
}
