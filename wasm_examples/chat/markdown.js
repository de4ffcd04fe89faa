/**
 * Markdown of a model, as elements of the page. What a model writes is hostile: raw HTML is shown as text, images are not loaded, and
 * DOMPurify keeps only the elements and attributes of Markdown.
 */

import { SITE } from "../../web/tallow.js";

const TAGS = [
  ..."a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s strong sub sup".split(" "),
  ..."table tbody td th thead tr ul".split(" "),
];
const ATTRIBUTES = ["href", "title", "start", "align"];
const ADDRESS = /^(?:https?:|mailto:)/i;

/** The renderer, once it has loaded. @type {((text: string) => DocumentFragment) | null} */
let render = null;

/** Load the libraries; until then, and if they cannot be loaded, Markdown is shown as it is written. */
export async function loadMarkdown() {
  /** @type {{ libraries: Record<string, string> }} */
  const { libraries } = await (await fetch(new URL("site.json", SITE))).json();
  const [{ Marked }, { default: purify }] = await Promise.all(
    ["marked", "dompurify"].map((name) => import(/* webpackIgnore: true */ new URL(libraries[name], SITE).href)),
  );
  const marked = new Marked({ gfm: true, breaks: true });
  marked.use({
    renderer: {
      html: (/** @type {{ text: string }} */ { text }) => escapeHtml(text),
      image: (/** @type {{ text: string }} */ { text }) => escapeHtml(text || "image"),
      checkbox: (/** @type {{ checked: boolean }} */ { checked }) => (checked ? "☑ " : "☐ "),
    },
  });
  purify.addHook("afterSanitizeAttributes", (/** @type {Element} */ element) => {
    if (element.localName !== "a") return;
    element.setAttribute("target", "_blank");
    element.setAttribute("rel", "noopener noreferrer nofollow");
  });
  const options = {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOWED_URI_REGEXP: ADDRESS,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  };
  render = (text) => purify.sanitize(marked.parse(text), options);
}

/** Show Markdown in an element. @param {HTMLElement} box @param {string} text */
export function showMarkdown(box, text) {
  box.classList.toggle("plain", render === null);
  if (render === null) {
    box.textContent = text;
    return;
  }
  const content = render(text);
  for (const block of content.querySelectorAll("pre")) block.tabIndex = 0; // it scrolls sideways, also by keys
  box.replaceChildren(content);
}

/** @param {string} text */
function escapeHtml(text) {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
