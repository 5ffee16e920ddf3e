// The pure parts of the inspector: where rows stand, what is missing, how figures are written. They know no page.

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
