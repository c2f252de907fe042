// A view whose kernel has gone: it is drawn again from what it had, and asks nobody.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LeftModel, followed } from "../../widgets/js/kernel.js";
import { PageModel } from "../../widgets/js/page.js";

/** As much of the page as a note above a view needs. @type {any} */
const page = globalThis;

class Element extends EventTarget {
  /** @type {any[]} */
  children = [];
  dataset = {};
  parentElement = null;
  /** @type {Record<string, string>} */
  attributes = {};
  classList = {
    /** @type {Set<string>} */
    names: new Set(),
    /** @param {string} name */
    add: (name) => this.classList.names.add(name),
    /** @param {string} name */
    remove: (name) => this.classList.names.delete(name),
    /** @param {string} name */
    contains: (name) => this.classList.names.has(name),
  };
  /** @param {any[]} children */
  append(...children) {
    this.children.push(...children);
  }
  /** @param {any[]} children */
  replaceChildren(...children) {
    this.children = children;
  }
  /**
   * @param {string} name
   * @param {string} value
   */
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  /** @returns {string} */
  get text() {
    return this.children.map((c) => (typeof c === "string" ? c : c.text)).join("");
  }
}

page.document = { createElement: () => new Element(), documentElement: null, body: null };
page.matchMedia = () => ({ addEventListener() {}, removeEventListener() {}, matches: false });
page.MutationObserver = class {
  observe() {}
  disconnect() {}
};
page.requestAnimationFrame = () => {};

/** A model with a kernel, and what was sent to it. */
class Live extends PageModel {
  /** @type {object[]} */
  sent = [];
  /** @param {...object} messages */
  send(...messages) {
    this.sent.push(...messages);
  }
  /** @param {string} event */
  tell(event) {
    for (const listener of this.listeners.get(event) ?? []) listener(null);
  }
}

/** Draws a view that shows what its model says, and notes how often it was taken down. */
function shown() {
  const model = new Live({ step: 3, busy: "counting…", live: true });
  /** @type {any} */
  const el = new Element();
  /** @type {any[]} */
  const drawn = [];
  let closed = 0;
  const view = {
    /** @param {Data.Host} host */
    render(host) {
      drawn.push(host.model);
      return () => closed++;
    },
  };
  const close = followed(view, { live: false, busy: "" }).render({ model, el });
  return { model, el, drawn, close, closed: () => closed };
}

test("a view whose kernel has gone says so, once, and keeps what it shows", () => {
  const { model, el, drawn, close, closed } = shown();
  assert.equal(el.text, "");
  model.tell("comm_live_update");
  model.tell("comm_live_update");
  assert.match(el.text, /restarted or has ended.*Run the cell again/);
  assert.equal(el.children[0].attributes.role, "alert");
  assert.deepEqual([drawn.length, closed()], [2, 1]);
  const left = drawn[1];
  assert.deepEqual(
    ["step", "busy", "live"].map((name) => left.get(name)),
    [3, "", false],
  );
  close();
  assert.equal(closed(), 2);
});

test("the page tells of a kernel that died, too", () => {
  const { el, drawn } = shown();
  el.dispatchEvent(new Event("mlc-kernel-gone"));
  assert.match(el.text, /Run the cell again/);
  assert.equal(drawn.length, 2);
});

test("a reader goes on in a view that was left, and nobody is asked", () => {
  const model = new Live({ step: 3 });
  const left = new LeftModel(model, {});
  let heard = 0;
  left.on("change:step", () => heard++);
  left.set("step", 3);
  assert.equal(heard, 0);
  left.set("step", 4);
  left.save_changes();
  left.send();
  assert.deepEqual([left.get("step"), model.get("step"), heard], [4, 3, 1]);
  assert.deepEqual([left.send.length, model.sent.length], [0, 0]);
});
