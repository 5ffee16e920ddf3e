// What anywidget calls.
import { make } from "./dom.js";
import { mount } from "./inspector.js";

function render({ model, el }) {
  const root = make("div");
  el.append(root);
  let callback = null;
  const receive = (message) => callback?.(message);
  model.on("msg:custom", receive);
  const gone = () => callback?.({ op: "gone" });
  const send = (message) => {
    try {
      model.send(message);
    } catch {
      gone(); // nobody hears it: a kernel that was restarted knows no widgets of before
    }
  };
  model.on("comm_live_update", gone);
  const unmount = mount(root, { send, receive: (given) => (callback = given) });
  return () => {
    model.off("comm_live_update", gone);
    model.off("msg:custom", receive);
    unmount();
  };
}

export default { render };
