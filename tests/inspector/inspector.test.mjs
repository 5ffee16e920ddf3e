// The pure parts of the inspector's page, run by node's own test runner.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const source = readFileSync(new URL("../../mmsp_nb/notebook/static/inspector.js", import.meta.url), "utf8");
const { Heights, allowed, dollars, facts, growth, missing, seconds } = await import(
  `data:text/javascript;base64,${Buffer.from(source).toString("base64")}`
);

test("heights know where each row stands, and which row stands at a place", () => {
  const heights = new Heights(10_000, 40);
  assert.equal(heights.total, 400_000);
  assert.equal(heights.set(2, 100), 60);
  assert.equal(heights.set(2, 100), 0);
  assert.equal(heights.at(3), 180);
  assert.equal(heights.find(0), 0);
  assert.equal(heights.find(179), 2);
  assert.equal(heights.find(180), 3);
  assert.equal(heights.find(1e9), 9_999);
  heights.resize(2);
  assert.equal(heights.total, 80);
  assert.equal(new Heights(0).find(50), 0);
});

test("every place belongs to the row that covers it", () => {
  const heights = new Heights(200, 33);
  for (let i = 0; i < 200; i += 3) heights.set(i, 10 + ((i * 7) % 90));
  for (let y = 0; y < heights.total; y += 13) {
    const row = heights.find(y);
    assert.ok(heights.at(row) <= y && y < heights.at(row + 1));
  }
});

test("only what is missing is asked for, and not all at once", () => {
  const has = (rows) => (index) => rows.includes(index);
  assert.equal(missing(0, 3, has([0, 1, 2, 3])), null);
  assert.deepEqual(missing(0, 5, has([0, 1, 5])), [2, 5]);
  assert.deepEqual(missing(0, 500, has([]), 80), [0, 80]);
  assert.deepEqual(missing(4, 2, has([])), null);
});

test("a grown text is taken once, whatever comes twice, and a gap is seen", () => {
  assert.equal(growth(5, 5, "abc"), "abc");
  assert.equal(growth(6, 5, "abc"), "bc");
  assert.equal(growth(9, 5, "abc"), "");
  assert.equal(growth(3, 5, "abc"), null);
  assert.equal(growth(1, 0, "😀😀"), "😀");
});

test("attributes that could do something are left out", () => {
  const keep = (tag, ...pairs) => allowed(tag, pairs).map(([name]) => name);
  assert.deepEqual(keep("a", ["href", "javascript:alert(1)"]), []);
  assert.deepEqual(keep("a", ["href", " https://x"]), []);
  assert.deepEqual(keep("a", ["href", "data:text/html,x"]), []);
  assert.deepEqual(keep("a", ["href", "https://example.org"], ["onclick", "x"]), ["href", "target", "rel"]);
  assert.deepEqual(keep("span", ["class", "mmsp-k"], ["style", "x"], ["id", "y"]), ["class"]);
  assert.deepEqual(keep("span", ["class", "jp-Dialog"]), []);
  assert.deepEqual(keep("input", ["type", "password"], ["name", "x"], ["checked", ""]), ["checked", "type", "disabled"]);
  assert.deepEqual(keep("ol", ["start", "7"]), ["start"]);
});

test("figures read well", () => {
  assert.equal(seconds(0.0123), "12 ms");
  assert.equal(seconds(2.34), "2.3 s");
  assert.equal(seconds(125), "2 min 5 s");
  assert.equal(seconds(null), "");
  assert.equal(dollars(1.5), "$1.50");
  assert.equal(dollars(0.00012), "$0.00012");
  assert.equal(dollars(null), "");
  const turn = { seconds: 1.5, first: 0.25, in: 1200, out: 80, cost: 0.012, state: "done" };
  assert.equal(facts(turn), "1.5 s, first after 250 ms · 1,200 → 80 tokens · $0.0120");
  assert.equal(facts({ seconds: null, in: null, out: null, cost: null, state: "failed" }), "");
});
