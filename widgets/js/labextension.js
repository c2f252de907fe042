// The extension of JupyterLab and Notebook 7: draws a view from what its notebook has kept of it
// (see saved.py) where no kernel has the view, and on saving keeps what a reader has changed.
//
// Jupyter loads this script when it starts, and takes what it leaves in `_JUPYTERLAB`: `init` gets
// the modules that Jupyter shares, `get` gives the plugin.

import { FOLLOWED, GONE } from "./kernel.js";
import { KEPT, address, style, valuesOf } from "./kept.js";
import { PageModel } from "./page.js";

const WIDGET = "application/vnd.jupyter.widget-view+json";
const STATE = "application/vnd.jupyter.widget-state+json";
/** How long a value is as JSON that saved.py does not pack. */
const SMALL = 1000;
/** Milliseconds that a kernel has to say whether it has a view, before the recording is drawn. */
const SOON = 500;
const LATE = 10_000;

/** What a session says of a kernel that knows no view any more. */
const ENDED = new Set(["restarting", "autorestarting", "terminating", "dead"]);

const BASE = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : "";

// ------------------------------------------------------------------------------- the scripts

/** @type {Map<string, Promise<Data.View>>} */
const views = new Map();

/**
 * The view of a name.
 * @param {unknown} name
 * @returns {Promise<Data.View>}
 */
function viewOf(name) {
  const from = address(name, ".js", BASE);
  const load = async () => {
    const answer = await fetch(from);
    if (!answer.ok) throw new Error(`this version of MLC Lab has no view ${name}`);
    const text = `${await answer.text()}export default mlcView.default;`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    return (await import(url)).default;
  };
  const found = views.get(from) ?? load();
  views.set(from, found);
  found.catch(() => views.delete(from)); // it is asked for again next time
  return found;
}

// -------------------------------------------------------------------------------- the notebook

/** A notebook with views, and what its reader has changed in those that a kernel has. */
class Notebook {
  /**
   * By the id of a model: values that are short, and whether a long one is not in the output yet.
   * @type {Map<string, { values: Record<string, unknown>, behind: boolean }>}
   */
  changed = new Map();
  /** @type {Promise<any> | undefined} */
  asked;

  /** @param {any} panel */
  constructor(panel) {
    this.panel = panel;
    this.rendermime = panel.content.rendermime;
    panel.sessionContext.iopubMessage.connect((/** @type {any} */ _, /** @type {any} */ message) =>
      this.hear(message),
    );
    this.follows = this.kernel?.id;
    for (const changed of ["statusChanged", "kernelChanged", "sessionChanged"])
      panel.sessionContext[changed].connect(() => this.look());
    panel.context.saveState.connect((/** @type {any} */ _, /** @type {string} */ state) => {
      if (state === "started") this.keep();
    });
  }

  get kernel() {
    return this.panel.sessionContext.session?.kernel;
  }

  /**
   * Whether the kernel is known to have the model of an id.
   * @param {string} id
   */
  has(id) {
    return Boolean(this.rendermime.getFactory(WIDGET) && this.kernel?.hasComm(id));
  }

  /**
   * Whether the widget of an id was saved with the notebook, as a setting of JupyterLab has it.
   * @param {string} id
   */
  saved(id) {
    return Boolean(this.panel.context.model.getMetadata("widgets")?.[STATE]?.state?.[id]);
  }

  /**
   * Whether there is a model of an id that its widget can show, asking where it is not known.
   * @param {string} id
   */
  async ask(id) {
    await this.panel.sessionContext.ready;
    const kernel = this.kernel;
    if (!kernel || !this.rendermime.getFactory(WIDGET)) return false;
    const asked = this.asked ?? kernel.requestCommInfo({ target_name: "jupyter.widget" });
    this.asked = asked; // once for all views that are opened together
    const { content } = await asked.finally(() => (this.asked = undefined));
    return this.saved(id) || (content.status === "ok" && Object.hasOwn(content.comms, id));
  }

  /** Whether the kernel has gone: then its views are told, since not every way is told to widgets. */
  look() {
    const { follows, kernel } = this;
    this.follows = kernel?.id;
    if (!follows || (follows === kernel?.id && !ENDED.has(kernel.status))) return;
    for (const place of this.panel.node.querySelectorAll(`.${FOLLOWED}`))
      place.dispatchEvent(new Event(GONE));
  }

  /**
   * Note what a message changes in a view.
   * @param {any} message
   */
  hear(message) {
    if (message.header.msg_type !== "comm_msg") return;
    const view = this.changed.get(message.content.comm_id);
    const { method, state } = message.content.data;
    if (!view || (method !== "update" && method !== "echo_update")) return;
    for (const [name, value] of Object.entries(state)) {
      if (JSON.stringify(value).length > SMALL) view.behind = true;
      else view.values[name] = value;
    }
  }

  /**
   * Put what was changed into the outputs, which are about to be saved. Short values that belong to
   * a long one wait for it: Python writes the output anew in a moment.
   */
  keep() {
    for (const { type, outputs } of this.panel.content.model?.cells ?? []) {
      for (let n = 0; type === "code" && n < outputs.length; n++) {
        const output = outputs.get(n);
        const kept = output.data[KEPT];
        const view = this.changed.get(output.data[WIDGET]?.model_id);
        if (!kept?.values || !view || view.behind) continue;
        const values = { ...kept.values };
        for (const name of Object.keys(values))
          if (name in view.values) values[name] = view.values[name];
        if (JSON.stringify(values) === JSON.stringify(kept.values)) continue;
        output.setData({ data: { ...output.data, [KEPT]: { ...kept, values } } });
      }
    }
  }
}

/**
 * The class of what shows an output.
 * @param {any} Panel the class of Lumino
 */
function savedView(Panel) {
  return class SavedView extends Panel {
    /** @param {Notebook} notebook */
    constructor(notebook) {
      super();
      this.notebook = notebook;
      this.widget = ""; // the id of the model whose widget is shown
      this.turn = 0;
      this.close = () => {};
    }

    /**
     * Jupyter calls this with each change of the output, too.
     * @param {any} model
     */
    async renderModel(model) {
      const id = model.data[WIDGET]?.model_id;
      if (id && id === this.widget) {
        this.notebook.changed.set(id, { values: {}, behind: false }); // Python wrote it as it is
        return undefined;
      }
      this.clear();
      if (this.notebook.has(id)) return this.follow(model, id);
      const turn = this.turn;
      const answer = this.notebook.ask(id).catch(() => false);
      const patience = this.notebook.saved(id) ? LATE : SOON;
      const late = new Promise((resolve) => setTimeout(() => resolve(false), patience));
      if (!(await Promise.race([answer, late])) && turn === this.turn) await this.draw(model);
      answer.then((/** @type {boolean} */ there) => {
        if (there && turn === this.turn) this.follow(model, id);
      });
      return undefined;
    }

    /** Take down what is shown. */
    clear() {
      this.turn++;
      this.widget = "";
      this.close();
      this.close = () => {};
      for (const widget of [...this.widgets]) widget.dispose();
      this.node.replaceChildren();
    }

    dispose() {
      if (!this.isDisposed) this.clear();
      super.dispose();
    }

    /**
     * Show the widget itself: the kernel has it.
     * @param {any} model
     * @param {string} id
     */
    follow(model, id) {
      this.clear();
      this.widget = id;
      if (!this.notebook.changed.has(id))
        this.notebook.changed.set(id, { values: {}, behind: false });
      return this.show(WIDGET, model);
    }

    /**
     * Show another form of the output.
     * @param {string} type
     * @param {any} model
     */
    show(type, model) {
      const shown = this.notebook.rendermime.createRenderer(type);
      this.addWidget(shown);
      return shown.renderModel(model);
    }

    /**
     * Draw what the notebook has kept, or say why that cannot be.
     * @param {any} model
     */
    async draw(model) {
      const turn = this.turn;
      const kept = model.data[KEPT];
      if (kept?.empty) return; // a place that only the kernel fills
      const el = document.createElement("div");
      try {
        const [view, values] = await Promise.all([
          viewOf(kept?.view),
          valuesOf(kept),
          style(kept?.styles, BASE),
        ]);
        if (turn !== this.turn) return;
        this.node.append(el);
        this.close = view.render({ model: new PageModel(values), el });
      } catch (error) {
        if (turn !== this.turn) return;
        el.remove();
        const why = error instanceof Error ? error.message : String(error);
        const told = document.createElement("p");
        told.textContent = `The view cannot be drawn from what the notebook has kept: ${why}. Run the cell again to see it.`;
        this.node.append(told);
        const type = ["text/html", "text/plain"].find((each) => each in model.data);
        if (type) await this.show(type, model);
        if (this.node.querySelector(".mlc-not-kept")) told.remove(); // that says it, and more
      }
    }
  };
}

// ---------------------------------------------------------------------------------- the plugin

/** @type {Record<string, Record<string, { get(): any }>>} */
let scope = {};

/**
 * A module that Jupyter shares.
 * @param {string} name
 * @returns {Promise<any>}
 */
async function shared(name) {
  const factory = await Object.values(scope[name])[0].get();
  return factory();
}

async function extension() {
  const { Panel } = await shared("@lumino/widgets");
  const { INotebookTracker } = await shared("@jupyterlab/notebook");
  const SavedView = savedView(Panel);
  /** @param {any} panel */
  const attach = (panel) => {
    const notebook = new Notebook(panel);
    // before widgets, whose rank is -10
    notebook.rendermime.addFactory(
      { safe: false, mimeTypes: [KEPT], createRenderer: () => new SavedView(notebook) },
      -20,
    );
  };
  const plugin = {
    id: "mlc-lab:plugin",
    description: "Draws the views of MLC Lab in notebooks that were saved.",
    autoStart: true,
    optional: [INotebookTracker],
    /**
     * @param {any} _app
     * @param {any} tracker
     */
    activate(_app, tracker) {
      tracker?.forEach(attach);
      tracker?.widgetAdded.connect((/** @type {any} */ _, /** @type {any} */ panel) =>
        attach(panel),
      );
    },
  };
  return () => ({ __esModule: true, default: plugin });
}

/** @type {any} */
const page = window;
page._JUPYTERLAB ??= {};
page._JUPYTERLAB["mlc-lab"] = {
  /** @param {any} given */
  init: (given) => {
    scope = given;
  },
  get: extension,
};
