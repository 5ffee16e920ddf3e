// What leaves the page: copies, downloads, links to files that the kernel has written.
import { make } from "./dom.js";

/** Offer `text` as a file. False where a page may not do that: VS Code's views. */
export function download(name, mime, text) {
  if (!canDownload()) return false;
  const url = URL.createObjectURL(new Blob([text], { type: mime }));
  const link = make("a", { href: url, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return true;
}

export const canDownload = () => !/\bvscode-/.test(document.body.className);

/** Where Jupyter opens a written file; null where there is no Jupyter, or nobody knows.
 *
 * JupyterLab says which folder it serves. Notebook 7 does not, but the address of the page is that of its notebook.
 */
export function address(config, { path, full, beside }, pathname) {
  if (!config) return null;
  if (config.notebookPage) {
    const found = beside && /^(.*\/notebooks\/(?:.*\/)?)[^/]+$/.exec(pathname);
    return found ? found[1] + encodeURIComponent(path) : null;
  }
  const root = config.serverRoot;
  if (typeof root !== "string" || !root || !full.startsWith(`${root}/`)) return null;
  return `${config.baseUrl ?? "/"}lab/tree/${full.slice(root.length + 1).split("/").map(encodeURIComponent).join("/")}`;
}

/** A link to a file that the kernel has written, or its name alone. */
export function fileLink(written) {
  let config = null;
  try {
    config = JSON.parse(document.getElementById("jupyter-config-data")?.textContent ?? "null");
  } catch {
    // not Jupyter's page
  }
  const where = address(config, written, location.pathname);
  const named = { href: where, target: "_blank", rel: "noopener", data: { lmSuppressShortcuts: "true" } };
  return where ? make("a", named, written.path) : make("code", {}, written.path);
}
