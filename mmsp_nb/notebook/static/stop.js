// The Stop buttons of a kernel: `mmsp_nb.notebook.stopping` is the other side.
//
// There is no view. `running` says what runs, and an output that is still being written carries the mark of its answer;
// the button is laid beside that output, over the column of its prompt. A click is a message to the kernel; when nobody
// hears it, because a cell or a tool keeps the kernel busy, the server is asked to interrupt the kernel.

const UNHEARD = 500; // milliseconds after which a click was not heard
const LOOK = 100; // between two looks for the place
const WATCH = 1000; // between two looks at whether the cell still runs

/** Where the page's server takes interrupts of a kernel; null when no Jupyter server has made the page. */
export function interruptRequest(kernel, page = document, at = location.href) {
  let config = null;
  try {
    config = JSON.parse(page.getElementById("jupyter-config-data").textContent);
  } catch {
    return null;
  }
  if (!config || !config.baseUrl || !kernel) return null;
  const headers = {};
  const cookie = /(?:^|;\s*)_xsrf=([^;]*)/.exec(page.cookie || "");
  if (cookie) headers["X-XSRFToken"] = decodeURIComponent(cookie[1]);
  if (config.token) headers.Authorization = `token ${config.token}`;
  const url = new URL(`${config.baseUrl.replace(/\/?$/, "/")}api/kernels/${encodeURIComponent(kernel)}/interrupt`, at);
  return { url: url.href, options: { method: "POST", credentials: "same-origin", headers } };
}

class Stop {
  constructor(model, id, how) {
    this.model = model;
    this.id = id;
    this.way = how.way;
    this.clicks = 0;
    this.timers = [];
    this.root = null;
    this.after(how.wait || 0, () => this.look());
  }

  after(time, what) {
    this.timers.push(setTimeout(what, time));
  }

  marks() {
    return [...document.querySelectorAll(`[data-mmsp-run="${CSS.escape(this.id)}"]`)];
  }

  /** Find the place. The output is perhaps not drawn yet, or scrolled out of a long notebook. */
  look() {
    const area = this.marks()[0]?.closest(".jp-OutputArea");
    if (area?.parentElement) this.show(area);
    else this.after(LOOK, () => this.look());
  }

  show(area) {
    this.cell = area.closest(".jp-Cell");
    const place = area.parentElement;
    if (getComputedStyle(place).position === "static") place.style.position = "relative";
    this.root = document.createElement("div");
    this.root.className = "mmsp-stop";
    this.area = area;
    this.lay();
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.title = "Stop this answer; what has come is kept";
    this.button.setAttribute("aria-label", "Stop this answer");
    // on the element that has the focus itself: its keys are not the notebook's commands
    this.button.dataset.lmSuppressShortcuts = "true";
    const square = document.createElement("span");
    square.className = "square";
    square.setAttribute("aria-hidden", "true");
    square.textContent = "■";
    this.label = document.createTextNode(" Stop");
    this.button.append(square, this.label);
    this.said = document.createElement("span");
    this.said.className = "said";
    this.said.setAttribute("role", "status");
    this.button.addEventListener("click", () => this.click());
    for (const kind of ["mousedown", "pointerdown", "dblclick"]) {
      this.button.addEventListener(kind, (event) => event.stopPropagation()); // no cell is selected, nothing scrolls
    }
    this.root.append(this.button, this.said);
    place.append(this.root);
    this.watch();
  }

  /** Over the column of the prompt, or where that is too narrow at the right edge of the output. */
  lay() {
    const prompt = this.area.querySelector(".jp-OutputPrompt, .jp-OutputArea-prompt")?.getBoundingClientRect();
    const inside = !prompt || prompt.width < 56;
    this.root.classList.toggle("inside", inside);
    this.root.style.width = inside ? "" : `${prompt.right - this.area.parentElement.getBoundingClientRect().left}px`;
  }

  /** A kernel that was restarted says no more that the answer has ended: its cell shows it. */
  watch() {
    const prompt = this.way === "only message" ? null : this.cell?.querySelector(".jp-InputPrompt");
    if (prompt && prompt.textContent.trim() && !prompt.textContent.includes("*")) this.close();
    else {
      this.lay(); // the window may have another size
      this.after(WATCH, () => this.watch());
    }
  }

  click() {
    this.clicks += 1;
    this.label.data = " …";
    this.said.textContent = "Stopping the answer";
    this.button.setAttribute("aria-label", "Stopping this answer; press again to interrupt the kernel");
    const busy = this.marks().some((mark) => "mmspBusy" in mark.dataset);
    if (this.way === "only message") this.tell();
    else if (this.clicks > 1 || this.way === "interrupt" || busy) this.interrupt();
    else {
      this.tell();
      this.unheard = setTimeout(() => this.interrupt(), UNHEARD);
      this.timers.push(this.unheard);
    }
  }

  tell() {
    try {
      this.model.send({ op: "stop", id: this.id });
    } catch {
      // the kernel is gone
    }
  }

  heard() {
    clearTimeout(this.unheard);
  }

  async interrupt() {
    const request = interruptRequest(this.model.get("kernel"));
    try {
      if (request && (await fetch(request.url, request.options)).ok) return;
    } catch {
      // the server is gone
    }
    this.tell();
  }

  close() {
    this.timers.forEach(clearTimeout);
    if (!this.root) return;
    const focused = this.root.contains(document.activeElement);
    this.root.remove();
    this.root = null;
    if (focused) (this.cell?.closest(".jp-Notebook") ? this.cell : null)?.focus({ preventScroll: true });
  }
}

export function initialize({ model }) {
  const stops = new Map();
  const update = () => {
    const running = model.get("running") || {};
    for (const [id, stop] of stops) {
      if (id in running) continue;
      stop.close();
      stops.delete(id);
    }
    for (const [id, how] of Object.entries(running)) {
      if (!stops.has(id)) stops.set(id, new Stop(model, id, how));
    }
  };
  const message = (said) => {
    if (said && said.op === "heard") stops.get(said.id)?.heard();
  };
  const end = () => {
    stops.forEach((stop) => stop.close());
    stops.clear();
  };
  model.on("change:running", update);
  model.on("msg:custom", message);
  model.on("comm:close", end);
  update();
  return () => {
    model.off("change:running", update);
    model.off("msg:custom", message);
    model.off("comm:close", end);
    end();
  };
}

export default { initialize };
