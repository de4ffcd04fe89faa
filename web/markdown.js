/**
 * Markdown and HTML of others, as elements of the page. What a model, a notebook or a value in Python contains is hostile: in Markdown
 * raw HTML is shown as text and images are not loaded; DOMPurify keeps only harmless elements and attributes.
 */

import { SITE } from "./tallow.js";

const TAGS = [
  ..."a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s strong sub sup".split(" "),
  ..."table tbody td th thead tr ul".split(" "),
];
const ATTRIBUTES = ["href", "title", "start", "align"];
const HTML_TAGS = [...TAGS, ..."caption col colgroup dd details div dl dt img small span sub summary sup tfoot u".split(" ")];
const HTML_ATTRIBUTES = [...ATTRIBUTES, "alt", "colspan", "rowspan", "height", "width", "src"];
const STYLES = /<style\b[^]*?<\/style\s*>/gi;
const ADDRESS = /^(?:https?:|mailto:)/i;

/** The renderer, once it has loaded. @type {((text: string) => DocumentFragment) | null} */
let render = null;
/** @type {((html: string) => DocumentFragment) | null} */
let sanitise = null;
/** @type {Promise<void> | undefined} */
let loading;

/** Load the libraries; until then, and if they cannot be loaded, Markdown is shown as it is written. */
export function loadMarkdown() {
  loading ??= load().catch((error) => {
    loading = undefined; // the next call tries again
    throw error;
  });
  return loading;
}

async function load() {
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
    if (element.localName === "img" && !element.getAttribute("src")?.startsWith("data:image/")) element.removeAttribute("src");
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
  sanitise = (html) => purify.sanitize(html, { ...options, ALLOWED_TAGS: HTML_TAGS, ALLOWED_ATTR: HTML_ATTRIBUTES });
}

/** HTML without what can act: scripts, styles, forms, frames, pictures from elsewhere. After `loadMarkdown`. @param {string} html */
export function safeHtml(html) {
  if (!sanitise) throw new Error("loadMarkdown has not ended");
  return sanitise(html.replace(STYLES, "")); // the policy would report them while they are parsed
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
