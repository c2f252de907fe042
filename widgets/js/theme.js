// Light or dark: read from what is behind the view, so that it is right in every host.

/**
 * Whether what lies behind an element is dark; the system's wish where nothing has a colour.
 * @param {HTMLElement} element
 */
export function isDark(element) {
  for (let at = element.parentElement; at; at = at.parentElement) {
    const parts = getComputedStyle(at).backgroundColor.match(/[\d.]+/g);
    if (!parts || (parts.length > 3 && Number(parts[3]) < 0.5)) continue;
    const [r, g, b] = parts.map(Number);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/**
 * Keep `data-theme` of a view in step with its host. Returns the function that stops it.
 * @param {HTMLElement} element
 */
export function followTheme(element) {
  const apply = () => (element.dataset.theme = isDark(element) ? "dark" : "light");
  const later = () => setTimeout(apply, 60);
  const wish = matchMedia("(prefers-color-scheme: dark)");
  wish.addEventListener("change", later);
  // JupyterLab, VS Code and Colab say their theme in attributes of <body> or <html>.
  const observer = new MutationObserver(later);
  for (const node of [document.documentElement, document.body]) {
    observer.observe(node, { attributes: true });
  }
  // A view is drawn before its host puts it into the page; look again once it is there.
  requestAnimationFrame(apply);
  later();
  return () => {
    wish.removeEventListener("change", later);
    observer.disconnect();
  };
}
