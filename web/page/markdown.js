/**
 * Markdown and HTML of others, as elements of the page. What a model, a notebook or a value in Python contains is hostile: in Markdown
 * raw HTML is shown as text and images are not loaded; DOMPurify keeps only harmless elements and attributes. Markdown that takes too much
 * work is shown as it is written.
 */

import { bounded } from "./markdown-bounds.js";
import { SITE } from "./site.js";

const TAGS = [
  ..."a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s strong sub sup".split(" "),
  ..."table tbody td th thead tr ul".split(" "),
];
const ATTRIBUTES = ["href", "title", "start", "align"];
const HTML_TAGS = [...TAGS, ..."caption col colgroup dd details div dl dt img small span sub summary sup tfoot u".split(" ")];
const HTML_ATTRIBUTES = [...ATTRIBUTES, "alt", "colspan", "rowspan", "height", "width", "src"];
const STYLES = /<style\b[^]*?(?:<\/style\s*>|$)/gi; // one without an end contains the rest, as for browsers
const ADDRESS = /^(?:https?:|mailto:)/i;

/** A block of Markdown, as parsed. `raw` is its text. @typedef {{ type: string, raw: string }} Block */
/** @typedef {{ parse(text: string): Block[], render(blocks: Block[]): DocumentFragment }} Library */
/** The parser and the renderer, once they have loaded. @type {Library | null} */
let library = null;
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
  const [{ Marked, Lexer }, { default: purify }] = await Promise.all(
    ["marked", "dompurify"].map((name) => import(/* webpackIgnore: true */ new URL(libraries[name], SITE).href)),
  );
  const marked = new Marked({ gfm: true, breaks: true });
  const { BoundedLexer, tokenizer } = bounded(Lexer);
  marked.use({
    tokenizer,
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
  library = { parse: (text) => new BoundedLexer(marked.defaults).lex(text), render: (blocks) => purify.sanitize(marked.parser(blocks), options) };
  sanitise = (html) => purify.sanitize(html, { ...options, ALLOWED_TAGS: HTML_TAGS, ALLOWED_ATTR: HTML_ATTRIBUTES });
}

/** HTML without what can act: scripts, styles, forms, frames, pictures from elsewhere. After `loadMarkdown`. @param {string} html */
export function safeHtml(html) {
  if (!sanitise) throw new Error("loadMarkdown has not ended");
  return sanitise(html.replace(STYLES, "")); // the policy would report them while they are parsed
}

/** Show Markdown in an element. @param {HTMLElement} box @param {string} text */
export function showMarkdown(box, text) {
  new GrowingMarkdown(box).show(text);
}

/** Shows Markdown that is being written: text at its end changes the last block only, so the ones before it stay as they are. */
export class GrowingMarkdown {
  #box;
  /** @type {string | null}  null if it is shown as it is written */
  #shown = "";
  #finished = ""; // the text of the blocks that stay
  #nodes = 0; // of them, in the box
  /** @type {string | null}  a text that takes too much work, as longer ones do */
  #refused = null;

  /** @param {HTMLElement} box */
  constructor(box) {
    this.#box = box;
  }

  /** Show a text, which often is the last one with more at its end. @param {string} text */
  show(text) {
    const lines = text.replace(/\r\n?/g, "\n");
    const isRefused = this.#refused !== null && lines.startsWith(this.#refused);
    if (library !== null && !isRefused) {
      try {
        this.#box.classList.remove("plain");
        return this.#render(library, lines);
      } catch (error) {
        console.warn("Markdown is shown as it is written:", error);
        this.#refused = lines;
        this.#restart();
      }
    }
    this.#box.classList.add("plain");
    this.#box.textContent = text;
    this.#shown = null;
  }

  /** @param {Library} library @param {string} lines @throws {Error} they take too much work */
  #render(library, lines) {
    if (lines === this.#shown) return;
    if (!lines.startsWith(this.#finished)) this.#restart();
    let blocks = library.parse(lines.slice(this.#finished.length));
    const definesLinks = blocks.some(({ type }) => type === "def"); // anywhere in the text: earlier blocks may use them
    if (definesLinks && this.#finished) {
      this.#restart();
      blocks = library.parse(lines);
    }
    const last = definesLinks ? 0 : Math.max(0, blocks.findLastIndex(({ type }) => type !== "space"));
    const children = this.#box.childNodes;
    while (children.length > this.#nodes) children[this.#nodes].remove();
    this.#box.append(library.render(blocks.slice(0, last)));
    this.#nodes = children.length;
    this.#finished += blocks.slice(0, last).map(({ raw }) => raw).join("");
    this.#box.append(library.render(blocks.slice(last)));
    this.#shown = lines;
    for (const block of this.#box.querySelectorAll("pre")) {
      block.tabIndex = 0; // it scrolls sideways, also by keys
      block.dir = "ltr"; // code, also between lines of Arabic
    }
  }

  #restart() {
    this.#finished = "";
    this.#nodes = 0;
  }
}

/** @param {string} text */
function escapeHtml(text) {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
