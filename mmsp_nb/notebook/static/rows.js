// How one row looks: the line above a turn, or an item with what can be done to it.
import { button, make, picture, sparkline } from "./dom.js";
import { facts, number, seconds } from "./figures.js";
import { sanitized } from "./sanitize.js";

const OPEN = new Set(["turn", "you", "answer", "media", "error"]);
const LABELS = { thinking: "Thinking", you: "You", answer: "", media: "", tool: "" };
const MARKS = { ok: "✓", running: "…", interrupted: "–", held: "◦" };
const STATUS = { held: "not run" };

/** What is open at first: a picture is there to be seen, what is coming to be followed. */
export const opens = (row) => OPEN.has(row.kind) || Boolean(row.running && row.kind === "thinking") || Boolean(row.images?.length);

/** What a screen reader says of a row. */
export function spoken(row) {
  const text = (row.text ?? "").slice(0, 120);
  if (row.kind === "turn") return `Turn, ${row.model}, ${row.state}, ${facts(row)}`;
  if (row.kind === "tool") return `Tool call ${row.name}, ${STATUS[row.status] ?? row.status}`;
  if (row.kind === "media") return row.label ?? "media";
  return `${{ you: "You", answer: "Answer", thinking: "Thinking", error: `Error ${row.name}` }[row.kind]}: ${text}`;
}

/** Fills `node`. `does` has `send(message)`, `act(name, more)`, `fold(index)` and `writable`. */
export function drawRow(node, row, index, open, does) {
  node.setAttribute("aria-label", spoken(row));
  if (row.kind === "turn") drawTurn(node, row, does);
  else drawItem(node, row, index, open, does);
}

function copier(row, does) {
  const select = make("select", { "aria-label": "Copy as", title: "Copy as" }, make("option", { value: "" }, "copy"));
  for (const form of ["text", "markdown", "json", "python"]) select.append(make("option", { value: form }, form));
  select.addEventListener("change", () => {
    if (select.value) does.send({ op: "copy", row: row.id, form: select.value });
    select.value = "";
  });
  return select;
}

function drawTurn(node, turn, does) {
  node.classList.add(turn.state);
  node.append(make("span.dot", { title: turn.state, role: "img", "aria-label": turn.state }), make("span.model", {}, turn.model));
  for (const flag of ["pinned", "hidden", "summary", "stale"]) {
    if (turn[flag] || turn.state === flag) node.append(make("span.flag", {}, flag));
  }
  if (turn.state === "failed" || turn.state === "partial") node.append(make("span.flag.bad", {}, turn.state));
  node.append(make("span.facts", {}, facts(turn)), make("span.space"));
  const id = turn.turn;
  const actions = make("span.actions", { role: "group", "aria-label": "turn" });
  if (does.writable) {
    actions.append(
      button("fork", "Branch off after this turn", () => does.act("fork", { turn: id })),
      button("edit", "Edit the question and ask again, in a new branch", () => does.send({ op: "prompt", turn: id })),
      turn.hidden
        ? button("show", "Send this turn again", () => does.act("show", { turn: id }))
        : button("hide", "Keep it here, do not send it any more", () => does.act("hide", { turn: id })),
      button(turn.pinned ? "unpin" : "pin", turn.pinned ? "Let compacting take it" : "Keep it when the conversation is compacted", () => does.act("pin", { turn: id })),
      button("delete", "Take this turn out; undo brings it back", () => does.act("remove", { turn: id })),
    );
  }
  actions.append(
    button("request", "What was sent", () => does.send({ op: "request", turn: id })),
    button("events", "What came back, with times", () => does.send({ op: "events", turn: id })),
    copier(turn, does),
  );
  node.append(actions);
}

function drawItem(node, row, index, open, does) {
  const bar = make("div.bar");
  const body = make("div.body");
  const label = row.kind === "error" ? row.name : LABELS[row.kind];
  const foldable = row.kind === "thinking" || row.kind === "tool" || row.kind === "you";
  const toggle = make("button.toggle", { type: "button", "aria-expanded": String(open), onclick: () => does.fold(index) });
  if (row.kind === "tool") {
    const mark = make(`span.mark.${row.status === "ok" ? "good" : row.status}`, { role: "img", "aria-label": STATUS[row.status] ?? row.status }, MARKS[row.status] ?? "✗");
    toggle.append(make("span.twist"), mark, make("code.call", {}, make("b", {}, row.name), row.args ? `(${row.head ?? row.args})` : row.head === undefined ? "" : "()"));
    if (row.peek && !open) toggle.append(make("span.peek", {}, ` → ${row.peek}`));
    if (row.seconds) toggle.append(make("span.took", {}, seconds(row.seconds)));
    bar.append(toggle);
  } else if (foldable) {
    toggle.append(make("span.twist"), make("span.label", {}, label));
    if (!open && row.text) toggle.append(make("span.peek", {}, ` ${row.text.slice(0, 160).replace(/\s+/g, " ")}`));
    bar.append(toggle);
  } else if (label) bar.append(make("span.label", {}, label));
  if (row.partial) bar.append(make("span.flag.bad", {}, "cut off"));
  if (!bar.contains(toggle)) bar.append(make("span.space"));
  bar.append(make("span.actions", {}, button("JSON", "The item as it is", () => does.send({ op: "raw", row: row.id })), copier(row, does)));
  if (open) fillBody(body, row, does);
  node.append(bar, body);
}

function fillBody(body, row, does) {
  if (row.kind === "tool") {
    if (row.args && row.args !== row.head) body.append(make("pre.args", {}, row.args)); // the line above shows a short one
    if (row.result) body.append(make("pre.result", {}, row.result.text));
    for (const image of row.images ?? []) body.append(picture(image));
  } else if (row.kind === "media") {
    if (row.media === "image") body.append(picture(row));
    else if (row.media === "audio" && /^data:audio\/[a-z0-9.+-]+;base64,/.test(row.src ?? "")) {
      body.append(make("audio", { controls: true, src: row.src, "aria-label": row.label }), make("span.label", {}, row.label));
    } else if (row.media === "embedding") body.append(sparkline(row.points), make("span.label", {}, row.label), make("code", {}, row.text));
    else body.append(make("span.label", {}, row.label ?? ""));
  } else if (row.html !== undefined) body.append(sanitized(row.html));
  else body.append(make(row.running ? "div.text.growing" : "div.text", {}, row.text ?? ""));
  if (row.more && !row.whole) {
    body.append(button(`show all (${number(row.more)} more)`, "Fetch the whole item", () => does.send({ op: "body", row: row.id }), ".more"));
  }
}
