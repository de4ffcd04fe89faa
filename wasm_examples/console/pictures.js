/** What a value looks like, from its data by media type. The data is hostile: an <img> runs no scripts, and HTML is sanitised. */

import { safeHtml, showMarkdown, loadMarkdown } from "../../web/page/markdown.js";

/** @typedef {Record<string, string>} Data  by media type, as in notebooks: pictures in base64, other types as text */

const IMAGES = ["image/png", "image/jpeg", "image/gif"];
const SVG = "image/svg+xml";
const HTML = "text/html";
const MARKDOWN = "text/markdown";
const TEXT = "text/plain";
const BASE64 = /^[A-Za-z0-9+/\s]*={0,2}\s*$/;

/**
 * The element that shows a value.
 * @param {Data} data @param {{ withText?: boolean }} [options]  `withText` also shows the value's text
 * @returns {HTMLElement}
 */
export function elementOf(data, { withText = false } = {}) {
  const box = Object.assign(document.createElement("div"), { className: "shown" });
  const text = data[TEXT] ?? "";
  const address = imageOf(data);
  if (address) {
    if (withText && text) box.append(textOf(text));
    const image = Object.assign(document.createElement("img"), { src: address, alt: text.slice(0, 120) || "Picture" });
    image.onerror = () => image.replaceWith(note("The picture is damaged."));
    box.append(image);
  } else if (data[HTML] || data[MARKDOWN]) {
    box.append(textOf(text)); // until the libraries have loaded, and if they cannot be
    loadMarkdown().then(() => {
      const content = Object.assign(document.createElement("div"), { className: "rich" });
      if (data[HTML]) content.append(safeHtml(data[HTML]));
      else showMarkdown(content, data[MARKDOWN]);
      if (content.textContent?.trim() || content.querySelector("img")) box.replaceChildren(content);
    }, console.warn);
  } else box.append(textOf(text));
  return box;
}

/** @param {Data} data @returns {string | null} */
function imageOf(data) {
  for (const kind of IMAGES) if (data[kind] && BASE64.test(data[kind])) return `data:${kind};base64,${data[kind].replace(/\s/g, "")}`;
  return data[SVG] ? `data:${SVG};charset=utf-8,${encodeURIComponent(data[SVG])}` : null;
}

/** @param {string} text */
function textOf(text) {
  return Object.assign(document.createElement("div"), { className: "result", textContent: `${text}\n` });
}

/** @param {string} text */
function note(text) {
  return Object.assign(document.createElement("div"), { className: "note", textContent: text });
}
