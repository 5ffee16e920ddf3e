// The box to ask in: a text, what is attached to it, and the name of what is being edited.
//
// The text stays in the box until Python has taken it: an expression that fails names itself here, and nothing is lost.
import { LIMITS, read, refusal } from "./attach.js";
import { button, make } from "./dom.js";

/** The word after the last `{{` before the caret, when it is still being typed; null elsewhere. */
export function begun(text) {
  const found = /(?:^|[^\\])\{\{\s*([A-Za-z_]\w*)?$/.exec(text);
  return found ? (found[1] ?? "") : null;
}

export class Composer {
  constructor(send) {
    this.send = send;
    this.attachments = []; // {name, kind, size, data | text}, or {name, kept} for a picture of an edited question
    this.turn = null;
    this.pending = null; // what has been sent and not yet taken
    this.last = null;
    this.sequence = 0;
    this.running = false;
    this.build();
  }

  build() {
    const hint = "Ask …  (Enter sends, Shift+Enter breaks the line)";
    const id = `mmsp-names-${Math.random().toString(36).slice(2, 8)}`;
    this.names = make("div.names", { hidden: true, role: "listbox", id, "aria-label": "Variables" });
    this.box = make("textarea", { rows: "1", placeholder: hint, "aria-label": "Your message", "aria-autocomplete": "list", "aria-controls": id });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("input", () => {
      this.grow();
      this.complete();
    });
    this.box.addEventListener("blur", () => this.offer([]));
    this.box.addEventListener("paste", (event) => this.take(event.clipboardData?.files, event));
    this.picker = make("input", {
      type: "file",
      multiple: true,
      hidden: true,
      tabindex: "-1",
      "aria-hidden": "true",
      accept: "image/png,image/jpeg,image/gif,image/webp,text/*,.md,.py,.json,.jsonl,.csv,.tsv,.yaml,.yml,.toml,.log,.sql,.tex",
    });
    this.picker.addEventListener("change", () => {
      this.take(this.picker.files);
      this.picker.value = "";
    });
    this.clip = button("+", "Attach pictures or text files; they can be pasted and dropped too", () => this.picker.click(), ".attach");
    this.editing = make("div.editing", { hidden: true });
    this.deciding = make("div.deciding", { hidden: true, role: "group", "aria-label": "Calls that wait for your word" });
    this.strip = make("div.strip", { hidden: true, role: "list", "aria-label": "Attached" });
    this.problem = make("div.problem", { hidden: true, role: "alert" });
    this.sender = button("Send", "Send (Enter)", () => (this.running ? this.send({ op: "stop" }) : this.ask()), ".send");
    const line = make("div.line", {}, this.clip, this.picker, this.box, this.sender);
    this.element = make("div.form", { role: "group", "aria-label": "Ask" }, this.deciding, this.editing, this.strip, this.problem, this.names, line);
  }

  state(running, waiting) {
    if (this.running && !running) this.say("");
    this.running = running;
    const decide = (approve) => () => this.send({ op: "decide", approve });
    this.deciding.hidden = !waiting.length;
    this.deciding.replaceChildren(
      make("div", {}, waiting.length === 1 ? "Waits for your word:" : "These calls wait for your word:"),
      ...waiting.map((call) => make("pre", {}, call)),
      button("Approve", "Let them run", decide(true), ".send"),
      button("Deny", "Leave them undone, and tell the model", decide(false), ".quiet"),
    );
    this.sender.textContent = running ? "Stop" : "Send";
    this.sender.title = running ? "Stop the answer" : "Send (Enter)";
    this.sender.setAttribute("aria-label", this.sender.title);
    this.sender.classList.toggle("stop", running);
  }

  key(event) {
    const { key } = event;
    if (!this.names.hidden && ["ArrowDown", "ArrowUp", "Tab", "Enter"].includes(key) && !event.shiftKey) {
      event.preventDefault();
      if (key === "Tab" || key === "Enter") return this.insert(this.names.querySelector('[aria-selected="true"]').textContent);
      return this.choose(key === "ArrowDown" ? 1 : -1);
    }
    if (key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.ask();
    } else if (key === "Escape") {
      if (this.names.hidden) this.edit(null);
      else this.offer([]);
    }
  }

  // --- variables

  complete() {
    const word = begun(this.box.value.slice(0, this.box.selectionStart));
    if (word === null) return this.offer([]);
    this.send({ op: "names", word });
  }

  /** What Python knows that begins with `word`. */
  named(word, names) {
    if (begun(this.box.value.slice(0, this.box.selectionStart)) === word && document.activeElement === this.box) this.offer(names);
  }

  offer(names) {
    this.names.hidden = !names.length;
    this.names.replaceChildren(
      ...names.map((name, index) => {
        const id = `${this.names.id}-${index}`;
        const one = make("div.name", { role: "option", id, "aria-selected": String(index === 0) }, name);
        one.addEventListener("pointerdown", (event) => {
          event.preventDefault(); // the box keeps the focus
          this.insert(name);
        });
        return one;
      }),
    );
    if (names.length) this.box.setAttribute("aria-activedescendant", `${this.names.id}-0`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  choose(step) {
    const all = [...this.names.children];
    const at = all.findIndex((one) => one.getAttribute("aria-selected") === "true");
    const next = all[(at + step + all.length) % all.length];
    all[at].setAttribute("aria-selected", "false");
    next.setAttribute("aria-selected", "true");
    next.scrollIntoView({ block: "nearest" });
    this.box.setAttribute("aria-activedescendant", next.id);
  }

  insert(name) {
    const caret = this.box.selectionStart;
    const word = begun(this.box.value.slice(0, caret)) ?? "";
    const closed = this.box.value.slice(caret).startsWith("}}") ? "" : "}}";
    this.box.setRangeText(name + closed, caret - word.length, caret, "end");
    if (!closed) this.box.selectionStart = this.box.selectionEnd = this.box.selectionStart + 2;
    this.offer([]);
    this.grow();
  }

  // --- files

  /** Attach files of an event, if it carries any. */
  async take(files, event = null) {
    if (!files?.length) return;
    event?.preventDefault();
    const problems = [];
    for (const file of [...files]) {
      try {
        const one = await read(file);
        const refused = refusal(this.attachments, one.name, one.size);
        if (refused) problems.push(refused);
        else this.attachments.push(one);
      } catch (error) {
        problems.push(error.message);
      }
    }
    this.say(problems.join("; "));
    this.drawStrip();
    this.box.focus();
  }

  drawStrip() {
    this.strip.hidden = !this.attachments.length;
    this.strip.replaceChildren(
      ...this.attachments.map((one) => {
        const source = one.data ?? one.src;
        const image = source ? make("img", { src: source, alt: "" }) : null;
        const drop = button("✕", `Do not attach ${one.name}`, () => {
          this.attachments = this.attachments.filter((other) => other !== one);
          this.drawStrip();
          this.box.focus();
        }, ".quiet");
        return make("span.file", { role: "listitem" }, image, make("span.filename", { title: one.name }, one.name), drop);
      }),
    );
  }

  say(text) {
    this.problem.hidden = !text;
    this.problem.textContent = text;
  }

  // --- asking

  /** Edit the question of `turn`; null ends that. What stood in the box before is there again afterwards. */
  edit(turn, text = "", kept = []) {
    if (this.turn) this.putBack();
    this.turn = turn;
    this.editing.hidden = !turn;
    this.editing.replaceChildren();
    if (turn) {
      this.editing.append("Asks again in a new branch. ", button("cancel", "Do not edit (Escape)", () => this.edit(null), ".quiet"));
      this.draft = { text: this.box.value, attachments: this.attachments, edited: text };
      this.box.value = text;
      this.attachments = kept.map((one) => ({ ...one, size: 0 })).slice(0, LIMITS.files);
      this.box.focus();
    }
    this.say("");
    this.drawStrip();
    this.grow();
  }

  /** The draft, and below it what was typed into the question since. */
  putBack() {
    const { text, attachments, edited } = this.draft;
    const typed = this.box.value === edited ? "" : this.box.value;
    this.box.value = [text, typed].filter((one) => one.trim()).join("\n\n");
    this.attachments = [...attachments, ...this.attachments.filter((one) => one.kept === undefined)];
  }

  grow() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight + 2, 200)}px`;
  }

  ask() {
    const text = this.box.value;
    if (this.pending || this.ended || !(text.trim() || this.attachments.length)) return;
    if (this.running) return this.say("an answer is still coming: send this after it, or stop it");
    const id = ++this.sequence;
    const files = this.attachments.filter((one) => one.kept === undefined).map(({ name, kind, data, text }) => ({ name, kind, data, text }));
    const kept = this.attachments.filter((one) => one.kept !== undefined).map((one) => one.kept);
    this.pending = { id, text, turn: this.turn, attachments: this.attachments };
    this.box.readOnly = true;
    this.element.classList.add("sending");
    this.waiting = setTimeout(() => this.say("waiting for the kernel, which is busy"), 1500);
    this.send({ op: "ask", id, text, turn: this.turn ?? undefined, files, kept });
  }

  settle() {
    const { pending } = this;
    this.pending = null;
    this.box.readOnly = false;
    this.element.classList.remove("sending");
    clearTimeout(this.waiting);
    this.say("");
    return pending;
  }

  /** Python has taken the question. */
  asked(id) {
    if (this.pending?.id !== id) return;
    this.last = this.settle();
    this.box.value = "";
    this.attachments = [];
    this.edit(null);
  }

  /** Nobody hears this box any more; what is in it stays. */
  end() {
    this.ended = true;
    if (this.pending) this.settle();
    this.sender.setAttribute("aria-disabled", "true");
  }

  /** It has not, and says why: true when that was about our question. */
  refused(id, text) {
    if (!this.pending || this.pending.id !== id) return false;
    this.settle();
    this.say(text);
    this.box.focus();
    return true;
  }

  /** What was taken could not be sent after all: it comes back, above what was typed since. */
  returned(id, text) {
    const { last } = this;
    if (last?.id !== id) return;
    this.last = null;
    if (last.turn) {
      this.edit(last.turn, last.text);
      this.draft.edited = null; // it is new text
      this.attachments = last.attachments;
    } else {
      this.box.value = [last.text, this.box.value].filter((one) => one.trim()).join("\n\n");
      this.attachments = [...last.attachments, ...this.attachments];
    }
    this.say(text);
    this.drawStrip();
    this.grow();
  }
}
