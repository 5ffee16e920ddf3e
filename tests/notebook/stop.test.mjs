// The page's part of the Stop button that needs no page: `node --test stop.test.mjs`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { interruptRequest } from "../../mmsp_nb/notebook/static/stop.js";

const KERNEL = "0b1cd0e8-9a3a";
const AT = "http://127.0.0.1:8888/lab/tree/a.ipynb";

function page(config, cookie = "") {
  return { cookie, getElementById: (id) => (id === "jupyter-config-data" && config ? { textContent: config } : null) };
}

test("a page of a Jupyter server can interrupt its kernel, with the cookie against forgery", () => {
  const request = interruptRequest(KERNEL, page('{"baseUrl": "/user/ann/"}', "a=1; _xsrf=2%7Cabc; b=2"), AT);
  assert.equal(request.url, `http://127.0.0.1:8888/user/ann/api/kernels/${KERNEL}/interrupt`);
  assert.equal(request.options.method, "POST");
  assert.equal(request.options.credentials, "same-origin");
  assert.deepEqual(request.options.headers, { "X-XSRFToken": "2|abc" });
});

test("a token of the page's own goes along, and a base without a slash will do", () => {
  const request = interruptRequest(KERNEL, page('{"baseUrl": "/x", "token": "abc"}'), AT);
  assert.equal(request.url, `http://127.0.0.1:8888/x/api/kernels/${KERNEL}/interrupt`);
  assert.deepEqual(request.options.headers, { Authorization: "token abc" });
});

test("an id can name nothing but a kernel", () => {
  const { url } = interruptRequest("../shutdown?", page('{"baseUrl": "/"}'), AT);
  assert.equal(url, "http://127.0.0.1:8888/api/kernels/..%2Fshutdown%3F/interrupt");
});

test("other pages have no such request", () => {
  for (const config of [null, "{}", "no JSON", '{"baseUrl": ""}']) {
    assert.equal(interruptRequest(KERNEL, page(config), AT), null);
  }
  assert.equal(interruptRequest("", page('{"baseUrl": "/"}'), AT), null);
});
