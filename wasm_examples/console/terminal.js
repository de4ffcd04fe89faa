/** The output of a terminal in a scrolling element: streams in their styles, lines that are overwritten, an end to scrolling back. */

/** @typedef {{ stream: string, text: string }} Piece */

// What is kept to scroll back to, in blocks that are laid out once: a flood of text changes only the last.
const MAX_CHARACTERS = 100_000;
const BLOCK_CHARACTERS = 4000;
// Colours and movements of the cursor, which are not followed: ECMA-48, control sequences.
const CONTROL_SEQUENCES = /\x1b\[[0-?]*[ -/]*[@-~]/g;

export class Terminal {
  #box;
  /** @type {Piece[]} */
  #waiting = [];
  #timer = 0;
  /** @type {{ element: HTMLElement, size: number }[]} */
  #blocks = [];
  #size = 0;
  /** @type {Span | null}  what is being written */
  #span = null;
  #note = Object.assign(document.createElement("div"), { className: "note", textContent: "Earlier output is not shown." });

  /** @param {HTMLElement} box */
  constructor(box) {
    this.#box = box;
  }

  /** Begin a cell by its code, as at a prompt. @param {string} code */
  begin(code) {
    this.flush();
    const echo = this.#begin("given");
    echo.textContent = code.replace(/^/gm, "... ").replace("... ", ">>> ");
    this.#count(code.length);
    this.#begin("written");
    this.#scroll();
  }

  /** @param {Piece} piece */
  write(piece) {
    this.#waiting.push(piece);
    // Drawn once for many pieces. An animation frame would not come while the tab is in the background.
    this.#timer ||= window.setTimeout(() => this.flush(), 16);
  }

  /** Show what has been written. */
  flush() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (!this.#waiting.length) return;
    for (const { stream, text } of joined(this.#waiting)) {
      // A traceback is one, as its last line stands out.
      const parts = stream === "error" ? [text] : inBlocks(text.replace(CONTROL_SEQUENCES, ""));
      for (const part of parts) this.#put(stream, part);
    }
    this.#waiting = [];
    this.#scroll();
  }

  clear() {
    this.flush();
    this.#box.replaceChildren();
    this.#blocks = [];
    this.#size = 0;
    this.#begin("written"); // a cell that runs goes on writing
  }

  /** All that is shown, for the clipboard. */
  text() {
    this.flush();
    const texts = [...this.#box.children].map((block) => block.textContent?.replace(/\n$/, "") ?? "");
    return texts.filter(Boolean).join("\n");
  }

  /** @param {string} stream @param {string} text */
  #put(stream, text) {
    const size = this.#blocks.at(-1)?.size ?? Infinity;
    const mayEnd = this.#span?.atLineStart ?? true;
    if ((size > BLOCK_CHARACTERS && mayEnd) || size > MAX_CHARACTERS / 2) this.#begin("written");
    if (this.#span?.stream !== stream) {
      this.#span = new Span(stream);
      this.#blocks.at(-1)?.element.append(this.#span.element);
    }
    this.#span.write(text);
    this.#count(text.length);
  }

  /** @param {string} name */
  #begin(name) {
    const element = Object.assign(document.createElement("div"), { className: name });
    this.#box.append(element);
    this.#blocks.push({ element, size: 0 });
    this.#span = null;
    return element;
  }

  /** Count what the last block got, and drop the oldest where there is too much. @param {number} characters */
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

/** Pieces of the same stream that follow each other, as one. @param {Piece[]} pieces */
function joined(pieces) {
  /** @type {Piece[]} */
  const runs = [];
  for (const { stream, text } of pieces) {
    const last = runs.at(-1);
    if (last?.stream === stream && stream !== "error") last.text += text;
    else runs.push({ stream, text });
  }
  return runs;
}

/** The text in parts of whole lines, each about as long as a block. @param {string} text */
function inBlocks(text) {
  const parts = [];
  while (text.length > BLOCK_CHARACTERS) {
    const end = text.indexOf("\n", BLOCK_CHARACTERS) + 1;
    if (!end) break;
    parts.push(text.slice(0, end));
    text = text.slice(end);
  }
  return text ? [...parts, text] : parts;
}

/** A run of text of one stream, whose last line may be overwritten. */
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

  /** A traceback; its last line says what happened. @param {string} text */
  #writeError(text) {
    const end = text.trimEnd().lastIndexOf("\n") + 1;
    const what = document.createElement("b");
    what.textContent = text.slice(end);
    this.element.append(text.slice(0, end), what);
  }
}
