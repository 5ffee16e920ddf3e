// The list of rows: only what is near the window is in the page, the rest is asked for while one scrolls.
//
// It is a feed of articles: the focused row is the active one, and only its buttons are stops of the Tab key.
import { Heights, missing } from "./figures.js";
import { make } from "./dom.js";

const OVERSCAN = 12;
const STOPS = "button, select, a, audio, pre[tabindex]";

export class List {
  /** `ask(from, to)` fetches rows; `draw(node, row, index, open)` fills one; `opens(row)` says what is open at first. */
  constructor({ ask, draw, opens, key }) {
    Object.assign(this, { ask, fill: draw, opens, otherKey: key });
    this.rows = new Map(); // index -> data
    this.nodes = new Map(); // index -> element
    this.folded = new Map(); // id -> whether a person opened it
    this.asked = new Map();
    this.heights = new Heights(0, 44);
    this.active = -1;
    this.follow = true;
    this.sizer = make("div.sizer", { role: "presentation" });
    this.element = make(
      "div.list",
      { tabindex: "0", role: "feed", "aria-label": "Items; arrow keys move, Enter folds, Tab goes to the buttons of an item" },
      this.sizer,
    );
    this.element.addEventListener("scroll", () => {
      const { scrollTop, scrollHeight, clientHeight } = this.element;
      this.follow = scrollHeight - scrollTop - clientHeight < 40;
      this.schedule();
    });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.observer = new ResizeObserver((entries) => this.measured(entries));
    this.observer.observe(this.element);
  }

  destroy() {
    this.observer.disconnect();
  }

  get count() {
    return this.heights.count;
  }

  /** Begin anew with other rows, at their `"start"` or `"end"`. */
  reset(total, at) {
    this.rows.clear();
    this.asked.clear();
    for (const index of [...this.nodes.keys()]) this.drop(index);
    this.heights = new Heights(0, 44);
    this.active = -1;
    this.resize(total);
    this.follow = at === "end";
    if (!this.follow) this.element.scrollTop = 0;
  }

  /** All rows may have changed: what is shown stays until the new ones are there. */
  outdated() {
    this.rows.clear();
    for (const node of this.nodes.values()) if (node.dataset.row) node.dataset.old = "true";
  }

  resize(total) {
    this.asked.clear();
    if (total === this.count) return;
    this.heights.resize(total);
    for (const index of [...this.rows.keys()]) if (index >= total) this.rows.delete(index);
  }

  put(index, row) {
    this.rows.set(index, row);
    this.drop(index, true);
  }

  /** Take a row's element away. Focus never falls out of the list, or letters would reach the notebook. */
  drop(index, again = false) {
    const node = this.nodes.get(index);
    if (!node) return;
    if (node.contains(document.activeElement)) {
      this.element.focus({ preventScroll: true });
      if (again) this.refocus = index;
    }
    this.observer.unobserve(node);
    node.remove();
    this.nodes.delete(index);
  }

  schedule() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      this.draw();
    });
  }

  draw() {
    const { element, heights } = this;
    if (!element.clientHeight) return;
    this.sizer.style.height = `${heights.total}px`;
    if (this.follow) element.scrollTop = heights.total;
    const top = element.scrollTop;
    const first = Math.max(0, heights.find(top) - OVERSCAN);
    const last = Math.min(heights.count - 1, heights.find(top + element.clientHeight) + OVERSCAN);
    for (const [index, node] of this.nodes) {
      const renewed = this.rows.has(index) && (node.dataset.old || node.classList.contains("waiting"));
      if (index < first || index > last || renewed) this.drop(index, renewed);
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
    if (this.refocus !== undefined) {
      const node = this.nodes.get(this.refocus);
      if (node && document.activeElement === element) node.focus({ preventScroll: true });
      this.refocus = undefined;
    }
    const wanted = missing(first, last, (index) => this.rows.has(index));
    if (wanted && !this.asked.has(wanted[0])) {
      this.asked.set(wanted[0], true);
      this.element.setAttribute("aria-busy", "true");
      this.ask(wanted[0], wanted[1]);
    } else if (!wanted) this.element.removeAttribute("aria-busy");
  }

  measured(entries) {
    let moved = 0;
    const top = this.element.scrollTop;
    for (const entry of entries) {
      if (entry.target === this.element) continue;
      const index = Number(entry.target.dataset.index);
      if (this.nodes.get(index) !== entry.target || !entry.target.offsetHeight) continue;
      const above = this.heights.at(index) + (this.heights.known.get(index) ?? this.heights.guess) <= top;
      const change = this.heights.set(index, entry.target.offsetHeight);
      if (above) moved += change;
    }
    if (moved && !this.follow) {
      this.sizer.style.height = `${this.heights.total}px`;
      this.element.scrollTop = top + moved;
    }
    this.schedule();
  }

  node(index) {
    const row = this.rows.get(index);
    const place = { role: "article", tabindex: "-1", "aria-posinset": index + 1, "aria-setsize": this.count };
    const node = make(`div.row.${row ? row.kind : "waiting"}`, { ...place, data: { index } });
    if (row) {
      node.dataset.row = row.id;
      for (const flag of ["running", "hidden", "partial"]) if (row[flag]) node.classList.add(flag === "hidden" ? "hid" : flag);
      this.fill(node, row, index, this.isOpen(row));
    } else node.append("…");
    node.addEventListener("pointerdown", () => this.activate(index, false));
    node.addEventListener("focusin", () => this.activate(index, false));
    this.mark(node, index === this.active);
    return node;
  }

  /** Whether a row is the active one, whose buttons can be reached by Tab. */
  mark(node, active) {
    node.classList.toggle("active", active);
    for (const stop of node.querySelectorAll(STOPS)) stop.tabIndex = active ? 0 : -1;
  }

  isOpen(row) {
    return this.folded.get(row.id) ?? this.opens(row);
  }

  fold(index) {
    const row = this.rows.get(index);
    if (!row || row.kind === "turn") return;
    const inside = this.nodes.get(index)?.querySelector(".toggle") === document.activeElement;
    this.folded.set(row.id, !this.isOpen(row));
    this.put(index, row);
    this.draw();
    if (inside) this.nodes.get(index)?.querySelector(".toggle")?.focus({ preventScroll: true });
  }

  activate(index, move) {
    index = Math.max(0, Math.min(index, this.count - 1));
    if (index !== this.active) {
      const before = this.nodes.get(this.active);
      this.active = index;
      if (before) this.mark(before, false);
      const node = this.nodes.get(index);
      if (node) this.mark(node, true);
    }
    if (!move || !this.count) return;
    this.follow = index === this.count - 1;
    const top = this.heights.at(index);
    const bottom = this.heights.at(index + 1);
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.element.scrollTop = Math.min(top, bottom - clientHeight);
    this.draw();
    this.nodes.get(index)?.focus({ preventScroll: true });
  }

  key(event) {
    const own = event.target === this.element || event.target.classList.contains("row");
    if (!own) {
      if (event.key !== "Escape") return;
      event.target.closest(".row")?.focus({ preventScroll: true });
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.round(this.element.clientHeight / 60));
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) this.activate(Math.max(0, this.active) + (this.active < 0 ? 0 : steps[event.key]), true);
    else if (event.key === "Home") this.activate(0, true);
    else if (event.key === "End") this.activate(this.count - 1, true);
    else if (event.key === "Enter" || event.key === " ") this.fold(this.active);
    else if (!this.otherKey(event.key)) return;
    event.preventDefault();
  }
}
