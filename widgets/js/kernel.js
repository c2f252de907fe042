// What stands beside a view in a notebook: when its kernel has restarted or ended, the view says so
// and stays, as a page without a kernel has it.

import { h } from "./dom.js";
import { PageModel } from "./page.js";
import { followTheme } from "./theme.js";
import { speak, t } from "./words.js";

/** The class of the place of a view that a kernel follows, and what tells it that this one is gone.
 * JupyterLab's widgets do not hear of a kernel that died: the extension sends the event. */
export const FOLLOWED = "mlc-followed";
export const GONE = "mlc-kernel-gone";

/** The values that a view had when its kernel went; what a reader changes stays in the page. */
export class LeftModel extends PageModel {
  /**
   * @param {Data.Model} model
   * @param {Record<string, unknown>} alone values of a view that no kernel follows
   */
  constructor(model, alone) {
    super({ ...alone });
    this.model = model;
  }

  /** @param {string} name */
  get(name) {
    return Object.hasOwn(this.values, name) ? this.values[name] : this.model.get(name);
  }

  /**
   * @param {string} name
   * @param {unknown} value
   */
  set(name, value) {
    if (!Object.hasOwn(this.values, name)) this.values[name] = this.model.get(name);
    super.set(name, value);
  }
}

/** The words above a view that was left. */
function note() {
  return h(
    "section",
    { class: "mlc left", role: "alert" },
    h("strong", {}, t("This view has lost its kernel, which was restarted or has ended.")),
    t(" It stays as it was; nothing new is computed. Run the cell again to make it live."),
  );
}

/**
 * A view that says so when its kernel has gone.
 * @param {Data.View} view
 * @param {Record<string, unknown>} alone values of a view that no kernel follows
 * @returns {Data.View}
 */
export function followed(view, alone) {
  return {
    /** @param {Data.Host} host */
    render({ model, el }) {
      let close = view.render({ model, el });
      const gone = () => {
        if (!el.classList.contains(FOLLOWED)) return;
        el.classList.remove(FOLLOWED);
        close?.();
        const place = h("div", {});
        speak(model, place);
        const told = note();
        el.replaceChildren(told, place);
        const stop = followTheme(told);
        const values = { ...alone, ...view.left?.(model) };
        const left = view.render({ model: new LeftModel(model, values), el: place });
        close = () => {
          stop();
          left?.();
        };
      };
      el.classList.add(FOLLOWED);
      el.addEventListener(GONE, gone);
      model.on("comm_live_update", gone); // ipywidgets have left the model's kernel
      return () => {
        el.removeEventListener(GONE, gone);
        model.off("comm_live_update", gone);
        close?.();
      };
    },
  };
}
