// The pure parts of the inspector's page, run by node's own test runner.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

// one module out of all of them, as the widget has it, but with the names that are tested
const bundled = readFileSync(process.env.MMSP_BUNDLE, "utf8").replace("export default { render };", "");
const tested = "Heights, LIMITS, address, base64, begun, dollars, examine, facts, growth, missing, refusal, seconds, sniff, spoken";
const { Heights, LIMITS, address, base64, begun, dollars, examine, facts, growth, missing, refusal, seconds, sniff, spoken } =
  await import(`data:text/javascript;base64,${Buffer.from(`${bundled}\nexport { ${tested} };`).toString("base64")}`);

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

test("a file is what its bytes say", () => {
  const bytes = (...values) => new Uint8Array(values);
  const text = (said) => new TextEncoder().encode(said);
  assert.equal(sniff(text("GIF89a")), "image/gif");
  assert.equal(sniff(bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1)), "image/png");
  assert.equal(sniff(bytes(0xff, 0xd8, 0xff, 0xe0)), "image/jpeg");
  assert.equal(sniff(text("<svg onload=1>")), null);
  assert.deepEqual(examine("a.csv", text("x,y\n1,2")), { kind: "text", text: "x,y\n1,2" });
  assert.equal(examine("picture.txt", text("GIF87a....")).kind, "image");
  assert.throws(() => examine("talk.mp4", bytes(0, 0, 0, 0x18)), /talk\.mp4 is neither a picture/);
  assert.throws(() => examine("latin.txt", bytes(0xe4, 0x20)), /nor text in UTF-8/);
  assert.throws(() => examine("none.txt", text(" ")), /none\.txt is empty/);
  assert.throws(() => examine("big.csv", text("x".repeat(LIMITS.text + 1))), /1 MB: read it in a cell/);
});

test("how much one question carries is bounded", () => {
  const files = (count, size) => Array.from({ length: count }, () => ({ size }));
  assert.equal(refusal(files(2, 10), "a", 10), "");
  assert.match(refusal(files(LIMITS.files, 1), "a", 1), /a is left out: 10 files/);
  assert.match(refusal(files(2, 2.9e6), "a", 1e6), /6 MB/);
});

test("bytes become base64 whatever their number", () => {
  const bytes = new Uint8Array(100_003).map((_, i) => i * 7);
  assert.equal(base64(bytes), Buffer.from(bytes).toString("base64"));
});

test("an expression that is being typed is seen at the caret", () => {
  assert.equal(begun("compare {{da"), "da");
  assert.equal(begun("{{"), "");
  assert.equal(begun("{{ x"), "x");
  assert.equal(begun("{{done}} and"), null);
  assert.equal(begun("\\{{literal"), null);
  assert.equal(begun("{{a + b"), null);
});

test("a written file has an address where Jupyter shows its folder", () => {
  const lab = { baseUrl: "/hub/", serverRoot: "~/tides" };
  const file = (full, beside = false) => ({ path: full.split("/").pop(), full, beside });
  assert.equal(address(lab, file("~/tides/a b/talk.ipynb"), "/hub/lab"), "/hub/lab/tree/a%20b/talk.ipynb");
  assert.equal(address(lab, file("~/elsewhere/talk.ipynb"), "/hub/lab"), null);
  assert.equal(address(lab, file("~/tidestables/talk.ipynb"), "/hub/lab"), null);
  assert.equal(address(null, file("/x"), "/"), null);
  const notebook = { notebookPage: "notebooks" };
  assert.equal(address(notebook, file("/w/a b.ipynb", true), "/hub/notebooks/my/one.ipynb"), "/hub/notebooks/my/a%20b.ipynb");
  assert.equal(address(notebook, file("/w/a.ipynb", true), "/notebooks/one.ipynb"), "/notebooks/a.ipynb");
  assert.equal(address(notebook, file("/w/a.ipynb"), "/notebooks/one.ipynb"), null);
});

test("every row has a name to be read out", () => {
  assert.equal(spoken({ kind: "tool", name: "look", status: "ok" }), "Tool call look, ok");
  assert.equal(spoken({ kind: "you", text: "Hello" }), "You: Hello");
  assert.equal(spoken({ kind: "error", name: "Timeout", text: "slow" }), "Error Timeout: slow");
  const turn = { kind: "turn", model: "m", state: "done", seconds: 1, in: 1, out: 2, cost: null };
  assert.equal(spoken(turn), "Turn, m, done, 1.0 s · 1 → 2 tokens");
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
