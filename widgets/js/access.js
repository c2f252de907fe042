// The access view as a view of its own, with what readers do with its panes.

import { renderAccesses } from "./access_view.js";
import { PaneTools } from "./panes.js";

export default {
  /** @param {Data.Host} host */
  render: (host) => renderAccesses(host, PaneTools),
};
