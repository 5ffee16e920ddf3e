// What anywidget calls.
import { make } from "./dom.js";
import { mount } from "./inspector.js";

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
