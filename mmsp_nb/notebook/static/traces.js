// Trace files: a list beside the inspector. In a notebook it talks to `trace_browser`, on a page of its own by HTTP.
import { mount } from "./inspector.js";

const size = (bytes) => (bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

function browse(root, { open, list }) {
  root.className = "mmsp-traces";
  const nav = document.createElement("nav");
  nav.setAttribute("aria-label", "Traces");
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Filter traces";
  search.setAttribute("aria-label", "Filter traces");
  search.dataset.lmSuppressShortcuts = "true";
  const names = document.createElement("div");
  names.className = "names";
  nav.append(search, names);
  const view = document.createElement("div");
  view.className = "view";
  view.textContent = "Choose a trace.";
  root.replaceChildren(nav, view);
  for (const kind of ["keydown", "keyup", "keypress"]) root.addEventListener(kind, (event) => event.stopPropagation());
  let files = [];
  let unmount = null;
  let stop = null; // following the file
  let current = null;
  const choose = (file) => {
    unmount?.();
    stop?.();
    current = file;
    for (const one of names.children) one.setAttribute("aria-current", String(one.textContent.startsWith(`${file} `)));
    const place = document.createElement("div");
    view.replaceChildren(place);
    stop = open(file, (link) => (unmount = mount(place, link)));
  };
  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    const shown = files.filter((file) => file.id.toLowerCase().includes(wanted)).slice(0, 300);
    names.replaceChildren(
      ...shown.map((file) => {
        const one = document.createElement("button");
        one.type = "button";
        one.dataset.lmSuppressShortcuts = "true";
        const small = document.createElement("small");
        small.textContent = size(file.size);
        one.append(`${file.id} `, small);
        one.setAttribute("aria-current", String(file.id === current));
        one.addEventListener("click", () => choose(file.id));
        return one;
      }),
    );
    if (!shown.length) names.textContent = files.length ? "none matches" : "there are no traces here yet: %%mmsp --trace ID or a config's trace_id writes them";
  };
  search.addEventListener("input", draw);
  list((found) => {
    const was = document.activeElement?.closest?.(".names button")?.firstChild.data;
    files = found;
    draw();
    // the list is made anew when a file comes: the focus stays where it was
    if (was) [...names.children].find((one) => one.firstChild.data === was)?.focus();
  });
}

function render({ model, el }) {
  const root = document.createElement("div");
  el.append(root);
  let receive = null;
  let opened = null;
  let listed = null;
  const take = (message) => {
    if (message.op === "list") listed?.(message.files);
    else if (message.op === "opened") opened?.();
    else receive?.(message);
  };
  model.on("msg:custom", take);
  const link = { send: (message) => model.send(message), receive: (callback) => (receive = callback) };
  browse(root, {
    list: (done) => {
      listed = done;
      model.send({ op: "list" });
    },
    open: (file, ready) => {
      receive = (message) => message.op === "note" && (root.querySelector(".view").textContent = message.text);
      opened = () => ready(link);
      model.send({ op: "open", file });
    },
  });
  return () => model.off("msg:custom", take);
}

export default { render };

// on a page of its own
const page = typeof document === "undefined" ? null : document.getElementById("mmsp-traces-page");
if (page) {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  browse(page, {
    list: (done) => {
      let last = "";
      const look = async () => {
        const found = await (await fetch(`/list?token=${encodeURIComponent(token)}`)).text();
        if (found !== last) done(JSON.parse((last = found)));
      };
      look();
      setInterval(() => document.hidden || look().catch(() => {}), 2000); // the server may have ended
    },
    open: (file, ready) => {
      const view = crypto.getRandomValues(new Uint32Array(2)).join("-");
      let receive = null;
      let last = Promise.resolve();
      const send = (message) => {
        last = last.then(async () => {
          const answer = await fetch("/desk", {
            method: "POST",
            headers: { "content-type": "application/json", "x-mmsp-token": token },
            body: JSON.stringify({ file, view, message }),
          });
          for (const one of await answer.json()) receive?.(one);
        }).catch(() => {});
      };
      const timer = setInterval(() => document.hidden || send({ op: "poll" }), 1000);
      ready({ send, receive: (callback) => (receive = callback) });
      return () => clearInterval(timer);
    },
  });
}
