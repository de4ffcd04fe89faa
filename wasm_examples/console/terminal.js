/** The output of a terminal: a style for each stream, lines that "\r" overwrites, pictures, limited scrollback. */

import { save } from "../../web/page/page.js";
import { coloured } from "./colours.js";

/**
 * What a cell sends. The stream of an error is "error", of the last value "result" or "value", of what code shows "display".
 * @typedef {{ stream: string, text: string, name?: string, value?: string }} Text
 * @typedef {{ stream: "value" | "display", data: Record<string, string> }} Shown  data by media type
 * @typedef {{ stream: "download", name: string, bytes: Uint8Array<ArrayBuffer> }} Download  a file to save
 * @typedef {Text | Shown | Download} Piece
 */

// The scrollback is split into blocks, so that new text changes the layout of the last block only.
const MAX_CHARACTERS = 100_000;
const BLOCK_CHARACTERS = 4000;
const PICTURE_CHARACTERS = 2000; // that a picture counts for
// Colours and cursor movements, which are removed: the control sequences of ECMA-48.
const CONTROL_SEQUENCES = /\x1b\[[0-?]*[ -/]*[@-~]/g;

export class Terminal {
  #box;
  /** @type {Piece[]} */
  #pending = [];
  #timer = 0;
  /** @type {{ element: HTMLElement, size: number }[]} */
  #blocks = [];
  #size = 0;
  /** @type {Span | null}  the run of text that is being written */
  #span = null;
  #isShown = false; // the last block is a picture, which text does not join
  #note = Object.assign(document.createElement("div"), { className: "note", textContent: "Earlier output is not shown." });

  /** @param {HTMLElement} box */
  constructor(box) {
    this.#box = box;
  }

  /** Start a cell by showing its code, as at a prompt. @param {string} code */
  begin(code) {
    this.flush();
    const echo = this.#begin("given");
    echo.classList.add("python");
    echo.append(coloured(code, (line) => (line ? "... " : ">>> ")));
    this.#count(code.length);
    this.#begin("written");
    this.#scroll();
  }

  /** Write text. It is shown after a few milliseconds, together with other text. @param {Piece} piece */
  write(piece) {
    this.#pending.push(piece);
    // A timer, because animation frames stop while the tab is in the background.
    this.#timer ||= window.setTimeout(() => this.flush(), 16);
  }

  /** Show the pending text now. */
  flush() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (!this.#pending.length) return;
    for (const piece of joined(this.#pending)) {
      if ("bytes" in piece) save(piece.name, piece.bytes);
      if ("data" in piece) this.#show(piece);
      if (!("text" in piece)) continue;
      const { stream, text } = piece;
      // A traceback stays whole, because its last line has a style of its own.
      const parts = stream === "error" ? [text] : splitText(text.replace(CONTROL_SEQUENCES, ""));
      for (const part of parts) this.#put(stream, part);
    }
    this.#pending = [];
    this.#scroll();
  }

  clear() {
    this.flush();
    this.#box.replaceChildren();
    this.#blocks = [];
    this.#size = 0;
    this.#begin("written"); // for the output of a running cell
  }

  /** All text that is shown, for the clipboard. */
  text() {
    this.flush();
    const texts = [...this.#box.children].map((block) => block.textContent?.replace(/\n$/, "") ?? "");
    return texts.filter(Boolean).join("\n");
  }

  /** @param {string} stream @param {string} text */
  #put(stream, text) {
    const size = this.#blocks.at(-1)?.size ?? Infinity;
    const canSplit = this.#span?.atLineStart ?? true;
    if (this.#isShown || (size > BLOCK_CHARACTERS && canSplit) || size > MAX_CHARACTERS / 2) this.#begin("written");
    if (this.#span?.stream !== stream) {
      this.#span = new Span(stream);
      this.#blocks.at(-1)?.element.append(this.#span.element);
    }
    this.#span.write(text);
    this.#count(text.length);
  }

  /** @param {Shown} piece */
  #show({ stream, data }) {
    const place = this.#begin("written");
    this.#count(PICTURE_CHARACTERS);
    // Most sessions need no pictures.
    import("./pictures.js").then(({ elementOf }) => {
      place.append(elementOf(data, { withText: stream === "value" }));
      const image = place.querySelector("img");
      if (image) image.onload = () => this.#scroll();
      this.#scroll();
    });
    this.#isShown = true;
  }

  /** Start a block. @param {string} name  its CSS class */
  #begin(name) {
    const element = Object.assign(document.createElement("div"), { className: name });
    this.#box.append(element);
    this.#blocks.push({ element, size: 0 });
    this.#span = null;
    this.#isShown = false;
    return element;
  }

  /** Count the characters of the last block, and remove the oldest blocks beyond the limit. @param {number} characters */
  #count(characters) {
    this.#blocks[this.#blocks.length - 1].size += characters;
    this.#size += characters;
    while (this.#size > MAX_CHARACTERS && this.#blocks.length > 1) {
      const oldest = /** @type {{ element: HTMLElement, size: number }} */ (this.#blocks.shift());
      oldest.element.remove();
      this.#size -= oldest.size;
      this.#box.prepend(this.#note);
    }
  }

  #scroll() {
    this.#box.scrollTop = this.#box.scrollHeight;
  }
}

/** Join consecutive texts of the same stream. @param {Piece[]} pieces */
function joined(pieces) {
  /** @type {Piece[]} */
  const runs = [];
  for (const piece of pieces) {
    const last = runs.at(-1);
    if ("text" in piece && last && "text" in last && last.stream === piece.stream && piece.stream !== "error") last.text += piece.text;
    else runs.push({ ...piece });
  }
  return runs;
}

/** Split text at line ends, into parts about as long as a block. @param {string} text */
function splitText(text) {
  const parts = [];
  while (text.length > BLOCK_CHARACTERS) {
    const end = text.indexOf("\n", BLOCK_CHARACTERS) + 1;
    if (!end) break;
    parts.push(text.slice(0, end));
    text = text.slice(end);
  }
  return text ? [...parts, text] : parts;
}

/** A run of text of one stream. Its last line can be overwritten. */
class Span {
  element = document.createElement("span");
  stream;
  #lines = document.createTextNode("");
  #line = document.createTextNode("");
  #column = 0;

  /** @param {string} stream */
  constructor(stream) {
    this.stream = stream;
    this.element.className = stream;
    this.element.append(this.#lines, this.#line);
  }

  get atLineStart() {
    return this.#line.data === "";
  }

  /** @param {string} text */
  write(text) {
    if (this.stream === "error") return this.#writeError(text);
    let lines = "";
    let line = this.#line.data;
    for (const part of text.split(/(\r?\n|\r)/)) {
      if (part === "\n" || part === "\r\n") {
        lines += `${line}\n`;
        line = "";
        this.#column = 0;
      } else if (part === "\r") this.#column = 0;
      else {
        line = line.slice(0, this.#column) + part + line.slice(this.#column + part.length);
        this.#column += part.length;
      }
    }
    if (lines) this.#lines.appendData(lines);
    this.#line.data = line;
  }

  /** Write a traceback, with its last line, the exception, in bold. @param {string} text */
  #writeError(text) {
    const end = text.trimEnd().lastIndexOf("\n") + 1;
    const exception = document.createElement("b");
    exception.textContent = text.slice(end);
    this.element.append(text.slice(0, end), exception);
  }
}
