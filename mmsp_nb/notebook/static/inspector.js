// The conversation inspector: a page on one side of a wire, `mmsp_nb.notebook.desk` on the other.
//
// `render` is what anywidget calls; `mount` takes any link with `send(message)` and `receive(callback)`, which is how
// the page of traces uses it. Everything that a model or a tool wrote is set as text. Markdown comes as HTML from
// Python and is rebuilt here node by node, from a short list of elements and attributes: nothing is parsed into the page.

const GUESS = { turn: 40, you: 52, answer: 90, thinking: 34, tool: 34, media: 120, error: 44 };
const OPEN = new Set(["turn", "you", "answer", "media", "error"]);
const OVERSCAN = 12;
const LABELS = { you: "You", answer: "Answers", thinking: "Thinking", tool: "Tools", media: "Media", error: "Errors" };
const SVG = "http://www.w3.org/2000/svg";

// --- pure parts, tested without a page ------------------------------------------------------------------------------

/** Heights of rows, and which of them stand at a place. Unknown heights are guessed. */
export class Heights {
  constructor(count = 0, guess = 40) {
    this.guess = guess;
    this.known = new Map();
    this.resize(count);
  }
  resize(count) {
    this.count = count;
    for (const index of [...this.known.keys()]) if (index >= count) this.known.delete(index);
    this.offsets = null;
  }
  clear() {
    this.known.clear();
    this.offsets = null;
  }
  /** Returns by how much the row has changed. */
  set(index, height) {
    const before = this.known.get(index) ?? this.guess;
    if (before === height && this.known.has(index)) return 0;
    this.known.set(index, height);
    this.offsets = null;
    return height - before;
  }
  at(index) {
    if (!this.offsets) {
      const offsets = new Float64Array(this.count + 1);
      for (let i = 0; i < this.count; i++) offsets[i + 1] = offsets[i] + (this.known.get(i) ?? this.guess);
      this.offsets = offsets;
    }
    return this.offsets[Math.max(0, Math.min(index, this.count))];
  }
  get total() {
    return this.at(this.count);
  }
  /** The row at a distance from the top. */
  find(y) {
    this.at(0);
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offsets[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return Math.max(low, 0);
  }
}

/** The stretch of rows to ask for: what is missing between two rows, at most `most`. Null when nothing is. */
export function missing(first, last, has, most = 80) {
  let from = first;
  while (from <= last && has(from)) from++;
  if (from > last) return null;
  let to = Math.min(last, from + most - 1);
  while (to > from && has(to)) to--;
  return [from, to + 1];
}

/** What of a grown text is new to a row that already has `length` of it; null when something between is missing. */
export function growth(length, at, text) {
  if (at > length) return null;
  const letters = Array.from(text);
  return letters.slice(Math.max(0, length - at)).join("");
}

export const number = (value) => (value === null || value === undefined ? "" : value.toLocaleString("en-US"));

export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  return value < 60 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

export function dollars(value) {
  if (value === null || value === undefined) return "";
  return value >= 1 ? `$${value.toFixed(2)}` : `$${value.toFixed(value < 0.01 ? 5 : 4)}`;
}

/** `1.2 s (first 0.3 s) · 120 → 80 tokens · $0.0012` */
export function facts(turn) {
  const parts = [];
  if (turn.seconds !== null && turn.state !== "running") {
    parts.push(seconds(turn.seconds) + (turn.first ? `, first after ${seconds(turn.first)}` : ""));
  }
  if (turn.in !== null || turn.out !== null) parts.push(`${number(turn.in ?? 0)} → ${number(turn.out ?? 0)} tokens`);
  if (turn.cost !== null) parts.push(dollars(turn.cost));
  return parts.join(" · ");
}

const TAGS = new Set(
  ("p br hr em strong del code pre ul ol li blockquote h1 h2 h3 h4 h5 h6 table thead tbody tr th td span div a input")
    .split(" "),
);
const LINK = /^(?:https?:\/\/|mailto:)[^\s]+$/i;

/** Which attributes an element may keep, as pairs. Pure: it sees names and values, no page. */
export function allowed(tag, attributes) {
  const kept = [];
  for (const [name, value] of attributes) {
    if (name === "class" && /^mmsp-[a-z]$/.test(value)) kept.push([name, value]);
    else if (tag === "a" && name === "href" && LINK.test(value)) {
      kept.push([name, value], ["target", "_blank"], ["rel", "noopener noreferrer nofollow"]);
    } else if (tag === "a" && name === "title") kept.push([name, value]);
    else if (tag === "ol" && name === "start" && /^\d{1,9}$/.test(value)) kept.push([name, value]);
    else if (tag === "input" && name === "checked") kept.push([name, ""]);
  }
  if (tag === "input") kept.push(["type", "checkbox"], ["disabled", ""]);
  return kept;
}

// --- the page -------------------------------------------------------------------------------------------------------

/** Copies nodes of an inert document into the page's, allowed elements only; of others only their text stays. */
function rebuild(html, into) {
  const inert = new DOMParser().parseFromString(html, "text/html");
  const walk = (from, to) => {
    for (const node of from.childNodes) {
      if (node.nodeType === 3) to.append(node.data);
      else if (node.nodeType === 1) {
        const tag = node.localName;
        if (!TAGS.has(tag)) {
          if (tag !== "style" && tag !== "script") walk(node, to);
          continue;
        }
        const made = document.createElement(tag);
        for (const [name, value] of allowed(tag, [...node.attributes].map((a) => [a.name, a.value]))) {
          made.setAttribute(name, value);
        }
        if (tag === "a") made.dataset.lmSuppressShortcuts = "true";
        walk(node, made);
        to.append(made);
      }
    }
  };
  walk(inert.body, into);
}

/** `make("button.quiet", {title}, "text", child)` */
function make(what, properties = {}, ...children) {
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

const button = (label, title, onclick, more = "") =>
  make(`button${more}`, { type: "button", title, "aria-label": title, onclick }, label);

function sparkline(points) {
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
function picture(image) {
  if (typeof image.src === "string" && /^data:image\/(png|jpeg|gif|webp);base64,/.test(image.src)) {
    return make("img", { src: image.src, alt: image.label, loading: "lazy" });
  }
  return make("span.label", {}, image.remote ? `picture at ${image.label} (not fetched)` : image.label ?? "picture");
}

class Inspector {
  constructor(root, link) {
    this.root = root;
    this.link = link;
    this.rows = new Map(); // index -> data
    this.nodes = new Map(); // index -> element
    this.folded = new Map(); // id -> whether a person folded it
    this.heights = new Heights(0, 44);
    this.state = { branches: [], bars: [] };
    this.active = -1;
    this.follow = true;
    this.kinds = null;
    this.asked = new Map();
    this.sequence = 0;
    this.build();
    link.receive((message) => this.take(message));
    this.send({ op: "hello", size: 40 });
  }

  send(message) {
    this.link.send(message);
  }

  // --- the frame

  build() {
    const root = this.root;
    root.classList.add("mmsp-inspector");
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "Conversation");
    for (const kind of ["keydown", "keyup", "keypress", "paste", "copy", "cut"]) {
      root.addEventListener(kind, (event) => event.stopPropagation());
    }
    this.title = make("strong.title");
    this.model = make("span.chip");
    this.spent = make("span.spent");
    this.fill = make("span.fill");
    this.gauge = make("span.gauge", { role: "meter", "aria-label": "context window" }, this.fill);
    this.share = make("span.share");
    this.undo = button("↶", "Undo", () => this.act("undo"), ".quiet");
    this.redo = button("↷", "Redo", () => this.act("redo"), ".quiet");
    const head = make("header", {}, this.title, this.model, make("span.space"), this.spent, this.gauge, this.share, this.undo, this.redo);
    this.tabs = make("div.tabs", { role: "tablist", "aria-label": "Branches" });
    this.search = make("input.search", { type: "search", placeholder: "Search", "aria-label": "Search in this conversation" });
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.filter(), 150);
    });
    this.chips = make("div.chips", { role: "group", "aria-label": "Show only" });
    this.count = make("span.count", { "aria-live": "polite" });
    const tools = make(
      "div.tools",
      {},
      this.search,
      this.chips,
      this.count,
      make("span.space"),
      button("next error", "Go to the next error (e)", () => this.send({ op: "locate", after: this.active }), ".quiet.next"),
    );
    this.bars = make("div.bars", { role: "group", "aria-label": "Tokens of each turn" });
    this.sizer = make("div.sizer", { role: "presentation" });
    this.list = make("div.list", { tabindex: "0", role: "list", "aria-label": "Items; arrow keys move, Enter folds" }, this.sizer);
    this.list.addEventListener("scroll", () => {
      const { scrollTop, scrollHeight, clientHeight } = this.list;
      this.follow = scrollHeight - scrollTop - clientHeight < 40;
      this.schedule();
    });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.panel = make("aside.panel", { hidden: true, "aria-label": "Details" });
    this.panel.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
    this.box = make("textarea", { rows: "1", placeholder: "Ask …  (Enter sends, Shift+Enter breaks the line)", "aria-label": "Your message" });
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.ask();
      } else if (event.key === "Escape") this.edit(null);
    });
    this.box.addEventListener("input", () => this.grow());
    this.editing = make("div.editing", { hidden: true });
    this.sender = button("Send", "Send (Enter)", () => (this.state.running ? this.send({ op: "stop" }) : this.ask()), ".send");
    this.form = make("div.form", {}, this.editing, make("div.line", {}, this.box, this.sender));
    this.note = make("div.note", { role: "status", "aria-live": "polite" });
    root.replaceChildren(head, this.tabs, tools, this.bars, make("div.main", {}, this.list, this.panel), this.note, this.form);
    this.observer = new ResizeObserver((entries) => this.measured(entries));
    this.observer.observe(this.list);
  }

  destroy() {
    this.observer.disconnect();
    clearTimeout(this.typing);
    clearTimeout(this.fading);
  }

  // --- what comes from Python

  take(message) {
    const handler = this[`on_${message.op}`];
    if (handler) handler.call(this, message);
  }

  on_state(state) {
    this.state = state;
    this.title.textContent = state.title;
    this.model.textContent = state.model;
    this.spent.textContent = dollars(state.cost);
    if (state.gauge) this.on_gauge(state.gauge);
    for (const element of [this.undo, this.redo, this.form]) element.hidden = !state.writable;
    this.sender.textContent = state.running ? "Stop" : "Send";
    this.sender.title = state.running ? "Stop the answer" : "Send (Enter)";
    this.sender.setAttribute("aria-label", this.sender.title);
    this.sender.classList.toggle("stop", state.running);
    this.root.classList.toggle("running", state.running);
    this.drawTabs();
    this.drawChips();
    this.drawBars();
  }

  on_gauge(gauge) {
    const share = gauge.window ? Math.min(gauge.tokens / gauge.window, 1) : null;
    this.gauge.hidden = share === null;
    this.fill.style.width = `${(share ?? 0) * 100}%`;
    this.gauge.classList.toggle("full", share > 0.8);
    this.gauge.setAttribute("aria-valuenow", Math.round((share ?? 0) * 100));
    this.gauge.setAttribute("aria-valuemin", 0);
    this.gauge.setAttribute("aria-valuemax", 100);
    const about = gauge.exact ? "" : "≈ ";
    this.share.textContent = `${about}${number(gauge.tokens)}${gauge.window ? ` of ${number(gauge.window)}` : " tokens"}`;
    this.gauge.title = share === null ? "" : `${(share * 100).toFixed(1)} % of the context window`;
  }

  drawTabs() {
    const { branches, branch, writable } = this.state;
    this.tabs.hidden = branches.length < 2;
    const tabs = branches.map((one) => {
      const chosen = one.name === branch;
      const tab = make(
        "button.tab",
        { type: "button", role: "tab", "aria-selected": String(chosen), tabindex: chosen ? "0" : "-1", onclick: () => chosen || this.act("checkout", { branch: one.name }) },
        one.name,
        make("span.tally", {}, ` ${one.turns}`),
      );
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const all = [...this.tabs.querySelectorAll(".tab")];
        all[(all.indexOf(tab) + step + all.length) % all.length].focus();
      });
      return tab;
    });
    const other = branches.find((one) => one.name !== branch);
    if (other) {
      tabs.push(make("span.space"));
      tabs.push(button("compare", "Compare this branch with another", () => this.compare(branch, other.name), ".quiet"));
      if (writable) tabs.push(button("drop", `Forget branch ${other.name}`, () => this.act("drop", { branch: other.name }), ".quiet"));
    }
    this.tabs.replaceChildren(...tabs);
  }

  drawChips() {
    if (this.chips.childElementCount) return;
    for (const kind of this.state.kinds) {
      const chip = make("button.filter", { type: "button", "aria-pressed": "false" }, LABELS[kind]);
      chip.addEventListener("click", () => {
        const kinds = new Set(this.kinds ?? []);
        if (kinds.has(kind)) kinds.delete(kind);
        else kinds.add(kind);
        this.kinds = kinds.size ? [...kinds] : null;
        chip.setAttribute("aria-pressed", String(kinds.has(kind)));
        this.filter();
      });
      this.chips.append(chip);
    }
  }

  drawBars() {
    const { bars } = this.state;
    this.bars.hidden = bars.length < 2 || bars.every((bar) => !bar.in && !bar.out);
    const most = Math.max(...bars.map((bar) => bar.in + bar.out), 1);
    this.bars.replaceChildren(
      ...bars.map((bar) => {
        const label = `turn ${bar.n}: ${number(bar.in)} tokens in, ${number(bar.out)} out${bar.state === "done" ? "" : `, ${bar.state}`}`;
        const element = button("", label, () => this.send({ op: "locate", turn: bar.turn }), `.bar.${bar.state}`);
        element.tabIndex = -1;
        const into = make("span.in");
        const out = make("span.out");
        into.style.height = `${(bar.in / most) * 100}%`;
        out.style.height = `${(bar.out / most) * 100}%`;
        if (bar.hidden) element.classList.add("hid");
        element.append(out, into);
        return element;
      }),
    );
  }

  filter() {
    this.sequence++;
    this.send({ op: "filter", kinds: this.kinds, text: this.search.value, seq: this.sequence });
  }

  on_rows(message) {
    if (message.seq !== undefined && message.seq !== this.sequence) return;
    if (message.reset) {
      this.forget();
      this.heights = new Heights(0, 44);
      this.active = -1;
    }
    this.resize(message.total);
    message.rows.forEach((row, i) => this.put(message.from + i, row));
    for (const [from] of this.asked) if (from >= message.from && from < message.from + Math.max(message.rows.length, 1)) this.asked.delete(from);
    const filtered = this.kinds || this.search.value.trim();
    this.count.textContent = filtered ? `${number(message.total)} rows` : "";
    if (message.reset === "end") this.bottom();
    else if (message.reset === "start") this.list.scrollTop = 0;
    this.schedule();
  }

  on_stale(message) {
    const keep = new Map(message.tail.map((row) => [row.n, row]));
    if (message.whole) this.rows.clear();
    this.asked.clear();
    this.resize(message.total);
    for (const [n, row] of keep) this.put(n, row);
    if (message.whole) this.nodes.forEach((node, index) => node.dataset.row && (node.dataset.old = String(index)));
    this.schedule();
  }

  on_grow(message) {
    for (let index = this.heights.count - 1; index >= Math.max(0, this.heights.count - 8); index--) {
      const row = this.rows.get(index);
      if (!row || row.id !== message.row) continue;
      const piece = growth(row.length ?? 0, message.at, message.text);
      if (piece === null) {
        this.rows.delete(index);
        this.schedule();
        return;
      }
      row.text += piece;
      row.length = message.at + Array.from(message.text).length;
      const text = this.nodes.get(index)?.querySelector(".growing");
      if (text) text.append(piece);
      return;
    }
  }

  on_body(message) {
    for (const [index, row] of this.rows) {
      if (row.id === message.row.id) {
        this.put(index, { ...message.row, whole: true });
        this.schedule();
      }
    }
  }

  on_at(message) {
    this.follow = false;
    this.activate(message.index, true);
  }

  on_note(message) {
    this.note.textContent = message.text;
    this.note.classList.toggle("bad", Boolean(message.error));
    clearTimeout(this.fading);
    this.fading = setTimeout(() => (this.note.textContent = ""), 8000);
  }

  on_prompt(message) {
    this.edit(message.turn, message.text);
  }

  async on_copied(message) {
    try {
      await navigator.clipboard.writeText(message.text);
      this.on_note({ text: `copied as ${message.form}` });
    } catch {
      this.show(`Copy (${message.form})`, make("pre", { tabindex: "0" }, message.text));
    }
  }

  on_detail(message) {
    this.show(message.title, make("pre", { tabindex: "0" }, message.text));
  }

  on_events(message) {
    const lines = message.events.map((event) => {
      const body = make("details", {}, make("summary", {}, make("span.at", {}, `${event.at.toFixed(3)} s`), ` ${event.kind}`), make("pre", {}, event.json));
      return body;
    });
    const to = message.from + message.events.length;
    const content = make("div.events", {}, make("p", {}, message.total ? `${number(message.from + 1)}–${number(to)} of ${number(message.total)} events` : "no events were kept for this turn"), ...lines);
    if (to < message.total) content.append(button("more", "Later events", () => this.send({ op: "events", turn: message.turn, from: to })));
    this.show("Events", content);
  }

  on_compared(message) {
    const pick = (name, other, first) => {
      const select = make("select", { "aria-label": "branch" }, ...this.state.branches.map((one) => make("option", { selected: one.name === name }, one.name)));
      select.addEventListener("change", () => (first ? this.compare(select.value, other) : this.compare(other, select.value)));
      return select;
    };
    const side = (turn) =>
      turn ? make("div.side", {}, make("div.who", {}, `You: ${turn.prompt}`), make("div.answer", {}, make("b", {}, turn.model), ` ${turn.text || `(${turn.state})`}`)) : make("div.side.none", {}, "—");
    const pairs = message.pairs.flatMap((pair) => [side(pair.a), side(pair.b)].map((one) => (one.classList.add(pair.status), one)));
    const grid = make("div.compare", {}, pick(message.a, message.b, true), pick(message.b, message.a, false), ...pairs);
    this.show("Compare", message.left_out ? make("div", {}, make("p", {}, `${message.left_out} earlier turns are left out`), grid) : grid, true);
  }

  // --- rows

  put(index, row) {
    this.rows.set(index, row);
    const node = this.nodes.get(index);
    if (node) {
      this.observer.unobserve(node);
      node.remove();
      this.nodes.delete(index);
    }
  }

  forget() {
    this.rows.clear();
    this.asked.clear();
    for (const node of this.nodes.values()) {
      this.observer.unobserve(node);
      node.remove();
    }
    this.nodes.clear();
  }

  resize(total) {
    if (total === this.heights.count) return;
    this.heights.resize(total);
    for (const index of [...this.rows.keys()]) if (index >= total) this.rows.delete(index);
    this.list.setAttribute("aria-setsize", total);
  }

  schedule() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      this.draw();
    });
  }

  bottom() {
    this.follow = true;
    this.sizer.style.height = `${this.heights.total}px`;
    this.list.scrollTop = this.list.scrollHeight;
  }

  draw() {
    const { list, heights } = this;
    if (!list.clientHeight) return;
    this.sizer.style.height = `${heights.total}px`;
    if (this.follow) list.scrollTop = heights.total;
    const top = list.scrollTop;
    const first = Math.max(0, heights.find(top) - OVERSCAN);
    const last = Math.min(heights.count - 1, heights.find(top + list.clientHeight) + OVERSCAN);
    for (const [index, node] of this.nodes) {
      const row = this.rows.get(index);
      if (index < first || index > last || (row && (node.dataset.old || node.classList.contains("waiting")))) {
        if (!node.contains(document.activeElement) || index >= heights.count || row) {
          this.observer.unobserve(node);
          node.remove();
          this.nodes.delete(index);
        }
      }
    }
    let before = null;
    for (let index = first; index <= last; index++) {
      let node = this.nodes.get(index);
      if (!node) {
        node = this.node(index);
        this.nodes.set(index, node);
        if (before) before.after(node);
        else this.sizer.prepend(node);
        this.observer.observe(node);
      }
      node.style.transform = `translateY(${heights.at(index)}px)`;
      before = node;
    }
    const wanted = missing(first, last, (index) => this.rows.has(index));
    if (wanted && !this.asked.has(wanted[0])) {
      this.asked.set(wanted[0], true);
      this.send({ op: "rows", from: wanted[0], to: wanted[1] });
    }
  }

  measured(entries) {
    let moved = 0;
    const top = this.list.scrollTop;
    for (const entry of entries) {
      if (entry.target === this.list) continue;
      const index = Number(entry.target.dataset.index);
      if (this.nodes.get(index) !== entry.target || !entry.target.offsetHeight) continue;
      const above = this.heights.at(index) + (this.heights.known.get(index) ?? this.heights.guess) <= top;
      const change = this.heights.set(index, entry.target.offsetHeight);
      if (above) moved += change;
    }
    if (moved && !this.follow) {
      this.sizer.style.height = `${this.heights.total}px`;
      this.list.scrollTop = top + moved;
    }
    this.schedule();
  }

  isOpen(row) {
    return this.folded.get(row.id) ?? (OPEN.has(row.kind) || Boolean(row.running && row.kind === "thinking"));
  }

  fold(index) {
    const row = this.rows.get(index);
    if (!row || row.kind === "turn") return;
    const focused = this.nodes.get(index)?.contains(document.activeElement);
    this.folded.set(row.id, !this.isOpen(row));
    this.put(index, row);
    this.draw();
    if (focused) this.nodes.get(index)?.querySelector(".toggle")?.focus();
  }

  node(index) {
    const row = this.rows.get(index);
    if (!row) {
      return make("div.row.waiting", { role: "listitem", data: { index }, "aria-busy": "true", id: this.name(index) }, "…");
    }
    const open = this.isOpen(row);
    const node = make(`div.row.${row.kind}`, {
      role: "listitem",
      id: this.name(index),
      data: { index, row: row.id },
      "aria-posinset": index + 1,
      "aria-setsize": this.heights.count,
    });
    for (const flag of ["running", "hidden", "partial"]) if (row[flag]) node.classList.add(flag === "hidden" ? "hid" : flag);
    if (index === this.active) node.classList.add("active");
    node.addEventListener("pointerdown", () => this.activate(index, false));
    if (row.kind === "turn") this.turn(node, row);
    else this.item(node, row, index, open);
    return node;
  }

  name(index) {
    this.prefix ??= `mmsp-${Math.random().toString(36).slice(2, 8)}`;
    return `${this.prefix}-${index}`;
  }

  turn(node, turn) {
    node.classList.add(turn.state);
    node.append(make("span.dot", { title: turn.state, role: "img", "aria-label": turn.state }), make("span.model", {}, turn.model));
    for (const flag of ["pinned", "hidden", "summary", "stale"]) {
      if (turn[flag] || turn.state === flag) node.append(make("span.flag", {}, flag));
    }
    if (turn.state === "failed" || turn.state === "partial") node.append(make("span.flag.bad", {}, turn.state));
    node.append(make("span.facts", {}, facts(turn)), make("span.space"));
    const id = turn.turn;
    const actions = make("span.actions", { role: "group", "aria-label": "turn" });
    if (this.state.writable) {
      actions.append(
        button("fork", "Branch off after this turn", () => this.act("fork", { turn: id })),
        button("edit", "Edit the question and ask again, in a new branch", () => this.send({ op: "prompt", turn: id })),
        turn.hidden
          ? button("show", "Send this turn again", () => this.act("show", { turn: id }))
          : button("hide", "Keep it here, do not send it any more", () => this.act("hide", { turn: id })),
        button(turn.pinned ? "unpin" : "pin", "Keep it when the conversation is compacted", () => this.act("pin", { turn: id })),
        button("delete", "Take this turn out; undo brings it back", () => this.act("remove", { turn: id })),
      );
    }
    actions.append(
      button("request", "What was sent", () => this.send({ op: "request", turn: id })),
      button("events", "What came back, with times", () => this.send({ op: "events", turn: id })),
      this.copier(turn),
    );
    node.append(actions);
  }

  copier(row) {
    const select = make("select", { "aria-label": "Copy as", title: "Copy as" }, make("option", { value: "" }, "copy"));
    for (const form of ["text", "markdown", "json", "python"]) select.append(make("option", { value: form }, form));
    select.addEventListener("change", () => {
      if (select.value) this.send({ op: "copy", row: row.id, form: select.value });
      select.value = "";
    });
    return select;
  }

  item(node, row, index, open) {
    const bar = make("div.bar");
    const body = make("div.body");
    const label = { thinking: "Thinking", you: "You", error: row.name, answer: "", media: "", tool: "" }[row.kind];
    const foldable = row.kind === "thinking" || row.kind === "tool" || row.kind === "you";
    const toggle = make("button.toggle", { type: "button", "aria-expanded": String(open), onclick: () => this.fold(index) });
    if (row.kind === "tool") {
      const marks = { ok: "✓", running: "…", error: "✗", invalid: "✗", unknown: "✗", timeout: "✗", interrupted: "–" };
      toggle.append(make("span.twist"), make(`span.mark.${row.status === "ok" ? "good" : row.status}`, {}, marks[row.status] ?? "?"), make("code.call", {}, make("b", {}, row.name), row.args ? `(${row.head ?? row.args})` : "()"));
      if (row.peek && !open) toggle.append(make("span.peek", {}, ` → ${row.peek}`));
      if (row.seconds) toggle.append(make("span.took", {}, seconds(row.seconds)));
      bar.append(toggle);
    } else if (foldable) {
      toggle.append(make("span.twist"), make("span.label", {}, label));
      if (!open && row.text) toggle.append(make("span.peek", {}, ` ${row.text.slice(0, 160).replace(/\s+/g, " ")}`));
      bar.append(toggle);
    } else if (label) bar.append(make("span.label", {}, label));
    if (row.partial) bar.append(make("span.flag.bad", {}, "cut off"));
    const actions = make(
      "span.actions",
      {},
      button("JSON", "The item as it is", () => this.send({ op: "raw", row: row.id })),
      this.copier(row),
    );
    if (!bar.contains(toggle)) bar.append(make("span.space"));
    bar.append(actions);
    if (open) this.fillBody(body, row);
    node.append(bar, body);
  }

  fillBody(body, row) {
    if (row.kind === "tool") {
      if (row.args && row.args !== row.head) body.append(make("pre.args", {}, row.args)); // the line above shows a short one
      if (row.result) body.append(make(`pre.result`, {}, row.result.text));
      for (const image of row.images ?? []) body.append(picture(image));
    } else if (row.kind === "media") {
      if (row.media === "image") body.append(picture(row));
      else if (row.media === "audio" && /^data:audio\/[a-z0-9.+-]+;base64,/.test(row.src ?? "")) {
        body.append(make("audio", { controls: true, src: row.src, "aria-label": row.label }), make("span.label", {}, row.label));
      } else if (row.media === "embedding") body.append(sparkline(row.points), make("span.label", {}, row.label), make("code", {}, row.text));
      else body.append(make("span.label", {}, row.label ?? ""));
    } else if (row.html !== undefined) rebuild(row.html, body);
    else body.append(make(row.running ? "div.text.growing" : "div.text", {}, row.text ?? ""));
    if (row.more && !row.whole) {
      body.append(button(`show all (${number(row.more)} more)`, "Fetch the whole item", () => this.send({ op: "body", row: row.id }), ".more"));
    }
  }

  // --- moving about

  key(event) {
    if (event.target !== this.list) return;
    const page = Math.max(1, Math.round(this.list.clientHeight / 60));
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) this.activate(Math.max(0, this.active) + (this.active < 0 ? 0 : steps[event.key]), true);
    else if (event.key === "Home") this.activate(0, true);
    else if (event.key === "End") this.activate(this.heights.count - 1, true);
    else if (event.key === "Enter" || event.key === " ") this.fold(this.active);
    else if (event.key === "/") this.search.focus();
    else if (event.key === "e") this.send({ op: "locate", after: this.active });
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }

  activate(index, scroll) {
    index = Math.max(0, Math.min(index, this.heights.count - 1));
    this.nodes.get(this.active)?.classList.remove("active");
    this.active = index;
    this.nodes.get(index)?.classList.add("active");
    this.list.setAttribute("aria-activedescendant", this.name(index));
    if (!scroll) return;
    this.follow = index === this.heights.count - 1;
    const top = this.heights.at(index);
    const bottom = this.heights.at(index + 1);
    if (top < this.list.scrollTop) this.list.scrollTop = top;
    else if (bottom > this.list.scrollTop + this.list.clientHeight) this.list.scrollTop = Math.min(top, bottom - this.list.clientHeight);
    this.schedule();
  }

  show(title, content, wide = false) {
    this.back ??= document.activeElement;
    const close = button("✕", "Close (Escape)", () => this.close(), ".quiet");
    this.panel.replaceChildren(make("div.bar", {}, make("strong", {}, title), make("span.space"), close), content);
    this.panel.classList.toggle("wide", wide);
    this.panel.hidden = false;
    close.focus();
  }

  close() {
    if (this.panel.hidden) return;
    this.panel.hidden = true;
    (this.root.contains(this.back) ? this.back : this.list).focus();
    this.back = null;
    this.schedule();
  }

  // --- doing

  act(name, more = {}) {
    this.send({ op: "act", name, ...more });
  }

  compare(a, b) {
    this.send({ op: "compare", a, b });
  }

  edit(turn, text = "") {
    this.edited = turn;
    this.editing.hidden = !turn;
    this.editing.replaceChildren();
    if (!turn) return;
    this.editing.append("Asks again in a new branch. ", button("cancel", "Do not edit (Escape)", () => this.edit(null), ".quiet"));
    this.box.value = text;
    this.grow();
    this.box.focus();
  }

  grow() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight + 2, 200)}px`;
  }

  ask() {
    const text = this.box.value;
    if (!text.trim() || this.state.running) return;
    this.send({ op: "ask", text, turn: this.edited ?? undefined });
    this.box.value = "";
    this.edit(null);
    this.grow();
    this.follow = true;
  }
}

/** Show a conversation in `root`. `link` has `send(message)` and `receive(callback)`. Returns what takes it away. */
export function mount(root, link) {
  const inspector = new Inspector(root, link);
  return () => inspector.destroy();
}

function render({ model, el }) {
  const root = make("div");
  el.append(root);
  let callback = null;
  const receive = (message) => callback?.(message);
  model.on("msg:custom", receive);
  const unmount = mount(root, { send: (message) => model.send(message), receive: (given) => (callback = given) });
  return () => {
    model.off("msg:custom", receive);
    unmount();
  };
}

export default { render };
