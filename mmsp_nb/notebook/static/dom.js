// Elements of the inspector. What a model or a tool wrote is set as text.

const SVG = "http://www.w3.org/2000/svg";

/** `make("button.quiet", {title}, "text", child)` */
export function make(what, properties = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  // the notebook takes letters for commands unless the focused element itself says no
  if (["button", "input", "textarea", "select", "summary", "audio"].includes(tag) || "tabindex" in properties) {
    element.dataset.lmSuppressShortcuts = "true";
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export const button = (label, title, onclick, more = "") =>
  make(`button${more}`, { type: "button", title, "aria-label": title, onclick }, label);

export function sparkline(points) {
  const svg = document.createElementNS(SVG, "svg");
  const low = Math.min(...points, 0);
  const high = Math.max(...points, 0);
  const span = high - low || 1;
  const line = document.createElementNS(SVG, "polyline");
  const step = points.length > 1 ? 240 / (points.length - 1) : 0;
  line.setAttribute("points", points.map((p, i) => `${(i * step).toFixed(1)},${(38 - ((p - low) / span) * 36).toFixed(1)}`).join(" "));
  svg.setAttribute("viewBox", "0 0 240 40");
  svg.setAttribute("class", "spark");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `sparkline of ${points.length} values from ${low.toPrecision(3)} to ${high.toPrecision(3)}`);
  svg.append(line);
  return svg;
}

/** A picture that is a data URL of pixels; anything else is only named. */
export function picture(image) {
  if (typeof image.src === "string" && /^data:image\/(png|jpeg|gif|webp);base64,/.test(image.src)) {
    return make("img", { src: image.src, alt: image.label, loading: "lazy" });
  }
  return make("span.label", {}, image.remote ? `picture at ${image.label} (not fetched)` : image.label ?? "picture");
}
