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

/** Where Jupyter opens the file at `full`, a path on the server; null where there is no Jupyter or it lies outside. */
export function address(config, full) {
  const root = config?.serverRoot;
  if (typeof root !== "string" || !root || !full.startsWith(`${root}/`)) return null;
  const path = full.slice(root.length + 1).split("/").map(encodeURIComponent).join("/");
  return `${config.baseUrl ?? "/"}${config.notebookPage ? "notebooks" : "lab/tree"}/${path}`;
}

/** A link to a file that the kernel has written, or its name alone. */
export function fileLink(path, full) {
  let config = null;
  try {
    config = JSON.parse(document.getElementById("jupyter-config-data")?.textContent ?? "null");
  } catch {
    // not Jupyter's page
  }
  const where = address(config, full);
  return where ? make("a", { href: where, target: "_blank", rel: "noopener", data: { lmSuppressShortcuts: "true" } }, path) : make("code", {}, path);
}
