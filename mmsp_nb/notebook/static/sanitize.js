// HTML of Python's Markdown renderer for the page. It is safe when it leaves Python; here DOMPurify looks at it once more,
// so that nothing depends on one place alone. Every place that inserts HTML calls `sanitized`; there is no other.
import createPurify from "./vendor/purify.min.js";

const HTML =
  "p br hr em strong del code pre ul ol li blockquote h1 h2 h3 h4 h5 h6 table thead tbody tr th td span div a input";
const MATH =
  "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts " +
  "mprescripts none mtable mtr mtd mstyle mpadded mphantom menclose";
const ATTRIBUTES =
  "class href title start type checked disabled display displaystyle scriptlevel mathvariant stretchy fence separator " +
  "largeop movablelimits symmetric accent accentunder lspace rspace minsize maxsize linethickness columnalign rowalign " +
  "columnspacing rowspacing columnlines rowlines notation width height depth";

export const CONFIG = {
  ALLOWED_TAGS: `${HTML} ${MATH}`.split(" ").concat("#text"),
  ALLOWED_ATTR: ATTRIBUTES.split(" "),
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i, // of every attribute but those that are named here
  ADD_URI_SAFE_ATTR: ATTRIBUTES.split(" ").filter((name) => name !== "href"),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** What is particular to this page: our classes only, links that leave it, boxes that cannot be ticked. */
function narrow(node) {
  if (!/^(?:mmsp-[a-z] ?)+$/.test(node.getAttribute("class") ?? "")) node.removeAttribute("class");
  if (node.localName === "a" && node.hasAttribute("href")) {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
    node.dataset.lmSuppressShortcuts = "true";
  } else if (node.localName === "input") {
    node.setAttribute("type", "checkbox");
    node.setAttribute("disabled", "");
  }
}

let purify = null;

/** A fragment of the page with what is allowed of `html`. */
export function sanitized(html) {
  if (!purify) {
    purify = createPurify(window); // one of our own: hooks of others and ours do not meet
    purify.addHook("afterSanitizeAttributes", narrow);
  }
  return purify.sanitize(html, CONFIG);
}
