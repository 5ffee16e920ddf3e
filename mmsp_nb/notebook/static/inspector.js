// The conversation inspector: a page on one side of a wire, `mmsp_nb.notebook.desk` on the other.
//
// `mount` takes any link with `send(message)` and `receive(callback)`: a widget's, or one over HTTP (the page of traces).
// Everything that a model or a tool wrote is set as text; Markdown comes as HTML from Python and passes `sanitized`.
import { Composer } from "./compose.js";
import { button, make } from "./dom.js";
import { dollars, growth, number } from "./figures.js";
import { canDownload, download, fileLink } from "./keep.js";
import { List } from "./list.js";
import { drawRow, opens } from "./rows.js";
import { sanitized } from "./sanitize.js";

const KINDS = { you: "You", answer: "Answers", thinking: "Thinking", tool: "Tools", media: "Media", error: "Errors" };
const KEEP = {
  save: "Save to a file …",
  cells: "To cells: a notebook …",
  markdown: "Download Markdown",
  html: "Download HTML",
  notebook: "Download notebook",
  python: "Download Python",
  compact: "Compact: a summary …",
};

class Inspector {
  constructor(root, link) {
    this.root = root;
    this.link = link;
    this.state = { branches: [], bars: [] };
    this.kinds = null;
    this.sequence = 0;
    this.build();
    link.receive((message) => this.take(message));
    this.send({ op: "hello", size: 40 });
  }

  send(message) {
    if (!this.gone) this.link.send(message);
  }

  get filtered() {
    return Boolean(this.kinds || this.search.value.trim());
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
    this.undo = button("↶", "Undo", () => this.state.undo && this.act("undo"), ".quiet");
    this.redo = button("↷", "Redo", () => this.state.redo && this.act("redo"), ".quiet");
    this.keep = make("select.keep", { "aria-label": "Keep this conversation", title: "Save, download, to cells, compact" });
    this.keep.addEventListener("change", () => {
      const wanted = this.keep.value;
      this.keep.value = "";
      if (wanted) this.keeping(wanted);
    });
    const space = make("span.space");
    const head = make("header", {}, this.title, this.model, space, this.spent, this.gauge, this.share, this.undo, this.redo, this.keep);
    this.tabs = make("div.tabs", { role: "tablist", "aria-label": "Branches" });
    this.branching = make("div.branching", { role: "group", "aria-label": "Branch" });
    this.branches = make("div.branches", {}, this.tabs, make("span.space"), this.branching);
    this.search = make("input.search", { type: "search", placeholder: "Search", "aria-label": "Search in this conversation" });
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.filter(), 150);
    });
    this.chips = make("div.chips", { role: "group", "aria-label": "Show only" });
    this.counted = make("span.count", { "aria-live": "polite" });
    const next = button("next error", "Go to the next error (e)", () => this.nextError(), ".quiet.next");
    const tools = make("div.tools", {}, this.search, this.chips, this.counted, make("span.space"), next);
    this.bars = make("div.bars", { role: "group", "aria-label": "Tokens of each turn" });
    const page = this;
    const does = {
      send: (message) => this.send(message),
      act: (name, more) => this.act(name, more),
      fold: (index) => this.list.fold(index),
      get writable() {
        return page.state.writable;
      },
    };
    this.list = new List({
      ask: (from, to) => this.send({ op: "rows", from, to }),
      draw: (node, row, index, open) => drawRow(node, row, index, open, does),
      opens,
      key: (key) => this.key(key),
    });
    this.panel = make("aside.panel", { hidden: true, "aria-label": "Details" });
    this.panel.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
    this.composer = new Composer((message) => this.send(message));
    this.note = make("div.note", { role: "status", "aria-live": "polite" });
    this.empty = make("div.empty", { hidden: true });
    const main = make("div.main", {}, this.list.element, this.empty, this.panel);
    root.replaceChildren(head, this.branches, tools, this.bars, main, this.note, this.composer.element);
    this.dropping();
  }

  /** Files may be dropped anywhere in a conversation that can be asked. */
  dropping() {
    const carries = (event) => this.state.writable && event.dataTransfer?.types.includes("Files");
    for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
      this.root.addEventListener(kind, (event) => {
        if (!carries(event)) return;
        event.preventDefault();
        event.stopPropagation();
        const outside = kind === "drop" || (kind === "dragleave" && !this.root.contains(event.relatedTarget));
        this.root.classList.toggle("dropping", !outside);
        if (kind === "drop") this.composer.take(event.dataTransfer.files);
      });
    }
  }

  destroy() {
    this.list.destroy();
    clearTimeout(this.typing);
    clearTimeout(this.fading);
  }

  // --- what comes from Python

  take(message) {
    const handler = this[`on_${message.op}`];
    if (handler) handler.call(this, message);
  }

  on_state(state) {
    const before = this.state;
    this.state = state;
    this.title.textContent = state.title;
    this.model.textContent = state.model;
    this.spent.textContent = dollars(state.cost);
    if (state.gauge) this.on_gauge(state.gauge);
    for (const element of [this.undo, this.redo, this.composer.element]) element.hidden = !state.writable;
    // not `disabled`: that would take the focus away, and letters would be the notebook's commands
    this.undo.setAttribute("aria-disabled", String(!state.undo));
    this.redo.setAttribute("aria-disabled", String(!state.redo));
    this.composer.state(state.running, state.waiting);
    this.root.classList.toggle("running", state.running);
    if (before.writable !== state.writable || before.files !== state.files) this.drawKeep();
    this.drawTabs();
    this.drawChips();
    this.drawBars();
  }

  drawKeep() {
    const { writable, files } = this.state;
    const offered = Object.keys(KEEP).filter((what) => (what === "compact" ? writable : files || !["save", "cells"].includes(what)));
    const options = offered.map((what) => make("option", { value: what }, KEEP[what]));
    this.keep.replaceChildren(make("option", { value: "" }, "keep"), ...options);
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
    this.branches.hidden = branches.length < 2;
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
    const doing = [];
    if (other) {
      doing.push(button("compare", "Compare this branch with another", () => this.compare(branch, other.name), ".quiet"));
      if (writable) doing.push(button("drop", `Forget branch ${other.name}`, () => this.act("drop", { branch: other.name }), ".quiet"));
    }
    const focused = this.tabs.contains(document.activeElement);
    this.tabs.replaceChildren(...tabs);
    this.branching.replaceChildren(...doing);
    if (focused) this.tabs.querySelector('[aria-selected="true"]')?.focus();
  }

  drawChips() {
    if (this.chips.childElementCount) return;
    for (const kind of this.state.kinds) {
      const chip = make("button.filter", { type: "button", "aria-pressed": "false" }, KINDS[kind]);
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

  filter(at = "start") {
    this.sequence++;
    this.send({ op: "filter", kinds: this.kinds, text: this.search.value, seq: this.sequence, at });
  }

  /** Show all again, and the end of it. */
  unfilter() {
    clearTimeout(this.typing);
    this.search.value = "";
    this.kinds = null;
    for (const chip of this.chips.children) chip.setAttribute("aria-pressed", "false");
    this.filter("end");
  }

  on_rows(message) {
    if (message.seq !== undefined && message.seq !== this.sequence) return;
    const { list } = this;
    if (message.reset) list.reset(message.total, message.reset);
    else list.resize(message.total);
    message.rows.forEach((row, i) => list.put(message.from + i, row));
    this.counted.textContent = this.filtered ? `${number(message.total)} rows` : "";
    list.schedule();
    this.drawEmpty();
  }

  on_stale(message) {
    const { list } = this;
    if (message.whole) list.outdated();
    list.resize(message.total);
    for (const row of message.tail) list.put(row.n, row);
    list.schedule();
    this.drawEmpty();
  }

  /** What stands where there are no rows: why, and how to get some. */
  drawEmpty() {
    this.empty.hidden = this.list.count > 0;
    if (this.filtered) this.empty.replaceChildren("nothing matches");
    else if (!this.state.writable) this.empty.replaceChildren("there are no turns in it");
    else {
      const hint = make("span", {}, make("code", {}, "{{name}}"), " puts a variable of yours in, + a picture or a text");
      this.empty.replaceChildren(make("b", {}, `Ask ${this.state.model}`), hint);
    }
  }

  on_grow(message) {
    const { list } = this;
    for (let index = list.count - 1; index >= Math.max(0, list.count - 8); index--) {
      const row = list.rows.get(index);
      if (!row || row.id !== message.row) continue;
      const piece = growth(row.length ?? 0, message.at, message.text);
      if (piece === null) {
        list.rows.delete(index);
        list.schedule();
        return;
      }
      row.text += piece;
      row.length = message.at + Array.from(message.text).length;
      const text = list.nodes.get(index)?.querySelector(".growing");
      if (text) text.append(piece);
      return;
    }
  }

  on_body(message) {
    for (const [index, row] of this.list.rows) {
      if (row.id !== message.row.id) continue;
      this.list.put(index, { ...message.row, whole: true });
      this.list.schedule();
    }
  }

  on_at(message) {
    this.list.activate(message.index, true);
  }

  on_note(message) {
    if (message.for !== undefined && this.composer.refused(message.for, message.text)) return;
    this.say(Boolean(message.error), message.text);
  }

  /** The kernel was restarted, or another one took its place: nothing is asked or changed here any more. */
  on_gone() {
    if (this.gone) return;
    if (this.state.kinds) this.on_state({ ...this.state, running: false, waiting: [], undo: false, redo: false });
    this.composer.end();
    this.say(false, "The kernel that this view belongs to is gone. What is shown stays to be read; run the cell again to go on.");
    clearTimeout(this.fading);
    this.gone = true;
  }

  say(bad, ...content) {
    if (this.gone) return;
    this.note.replaceChildren(...content);
    this.note.classList.toggle("bad", bad);
    clearTimeout(this.fading);
    this.fading = setTimeout(() => this.note.replaceChildren(), 12_000);
  }

  on_asked(message) {
    this.list.follow = true;
    this.composer.asked(message.id);
    if (this.filtered) this.unfilter(); // or the answer might be hidden
  }

  on_returned(message) {
    this.composer.returned(message.id, message.text);
  }

  on_names(message) {
    this.composer.named(message.word, message.names);
  }

  on_prompt(message) {
    this.composer.edit(message.turn, message.text, message.kept);
  }

  async on_copied(message) {
    try {
      await navigator.clipboard.writeText(message.text);
      this.say(false, `copied as ${message.form}`);
    } catch {
      this.show(`Copy (${message.form})`, make("pre", { tabindex: "0" }, message.text));
    }
  }

  on_document(message) {
    if (download(message.name, message.mime, message.text)) this.say(false, `downloaded ${message.name}`);
    else this.show(message.name, make("pre", { tabindex: "0" }, message.text));
  }

  on_written(message) {
    this.say(false, "wrote ", fileLink(message));
  }

  on_detail(message) {
    this.show(message.title, make("pre", { tabindex: "0" }, message.text));
  }

  on_request(message) {
    const { turn, number: n, count } = message;
    const content = make("div", {}, make("pre", { tabindex: "0" }, message.text));
    const other = (label, title, to) => button(label, title, () => this.send({ op: "request", turn, number: to }));
    if (n > 1) content.append(other("earlier", "The request before", n - 1));
    if (n < count) content.append(other("later", "The next request of this turn", n + 1));
    this.show(count > 1 ? `Request ${n} of ${count}` : "Request", content);
  }

  on_events(message) {
    let request = 0;
    const lines = message.events.flatMap((event) => {
      const at = make("span.at", {}, `${event.at.toFixed(3)} s`);
      const line = make("details", {}, make("summary", {}, at, ` ${event.kind}`), make("pre", {}, event.json));
      if (event.request === request) return [line];
      request = event.request;
      return [make("h6", {}, `Request ${request}`), line];
    });
    const to = message.from + message.events.length;
    const head = message.total ? `${number(message.from + 1)}–${number(to)} of ${number(message.total)} events` : "no events were kept for this turn";
    const content = make("div.events", {}, make("p", {}, head), ...lines);
    if (message.left_out) content.append(make("p", {}, `${number(message.left_out)} later ones were not kept`));
    const { turn, from, size } = message;
    if (from) content.append(button("earlier", "Earlier events", () => this.send({ op: "events", turn, from: Math.max(0, from - size) })));
    if (to < message.total) content.append(button("later", "Later events", () => this.send({ op: "events", turn, from: to })));
    this.show("Events", content);
  }

  on_compared(message) {
    const pick = (name, other, first) => {
      const select = make("select", { "aria-label": "branch" }, ...this.state.branches.map((one) => make("option", { selected: one.name === name }, one.name)));
      select.addEventListener("change", () => (first ? this.compare(select.value, other) : this.compare(other, select.value)));
      return select;
    };
    const side = (turn) => {
      if (!turn) return make("div.side.none", {}, "—");
      const said = turn.html ? sanitized(turn.html) : `(${turn.state})`;
      return make("div.side", {}, make("div.who", {}, `You: ${turn.prompt}`), make("div.said", {}, make("b", {}, turn.model)), make("div.answer", {}, make("div.body", {}, said)));
    };
    const pairs = message.pairs.flatMap((pair) => [side(pair.a), side(pair.b)].map((one) => (one.classList.add(pair.status), one)));
    const grid = make("div.compare", {}, pick(message.a, message.b, true), pick(message.b, message.a, false), ...pairs);
    this.show("Compare", message.left_out ? make("div", {}, make("p", {}, `${message.left_out} earlier turns are left out`), grid) : grid, true);
  }

  // --- details

  show(title, content, wide = false) {
    if (this.panel.hidden) this.back = document.activeElement;
    const close = button("✕", "Close (Escape)", () => this.close(), ".quiet");
    this.panel.replaceChildren(make("div.bar", {}, make("strong", {}, title), make("span.space"), close), content);
    this.panel.classList.toggle("wide", wide);
    this.panel.hidden = false;
    close.focus();
  }

  close() {
    if (this.panel.hidden) return;
    this.panel.hidden = true;
    (this.root.contains(this.back) ? this.back : this.list.element).focus();
    this.back = null;
    this.list.schedule();
  }

  // --- doing

  act(name, more = {}) {
    this.send({ op: "act", name, ...more });
  }

  keeping(what) {
    if (what === "compact") {
      this.say(false, "asking the model for a summary of the older turns …");
      this.act("compact");
    } else if (what === "save" || what === "cells") this.send({ op: what });
    else this.send({ op: "export", format: what, file: Boolean(this.state.files) && !canDownload() });
  }

  nextError() {
    this.send({ op: "locate", after: this.list.active });
  }

  /** Keys of the list that are not about moving; false for those that mean nothing. */
  key(key) {
    if (key === "/") this.search.focus();
    else if (key === "e") this.nextError();
    else if (key === "Escape") this.close();
    else return false;
    return true;
  }

  compare(a, b) {
    this.send({ op: "compare", a, b });
  }
}

/** Show a conversation in `root`. `link` has `send(message)` and `receive(callback)`. Returns what takes it away. */
export function mount(root, link) {
  const inspector = new Inspector(root, link);
  return () => inspector.destroy();
}
