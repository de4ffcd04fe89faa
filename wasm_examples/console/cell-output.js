/** The output of a notebook's cell: what is shown, and what the file keeps of it. */

import { Terminal } from "./terminal.js";

/** @import { Output } from "./notebook-file.js" */
/** @import { Piece } from "./terminal.js" */

// What the file keeps of a cell's output, in characters: the first ones.
const MAX_TEXT = 500_000;
const MAX_DATA = 20_000_000; // of pictures, in base64
const STREAMS = ["stdout", "stderr"];

export class CellOutput {
  /** As in nbformat. @type {Output[]} */
  outputs = [];
  #box;
  #terminal;
  #text = 0;
  #data = 0;
  #isCut = false;

  /** @param {HTMLElement} box @param {Output[]} outputs  of the file */
  constructor(box, outputs) {
    this.#box = box;
    this.#terminal = new Terminal(box);
    this.outputs = outputs;
    for (const output of outputs) for (const piece of piecesOf(output)) this.#terminal.write(piece);
    this.flush();
  }

  clear() {
    this.outputs = [];
    this.#text = this.#data = 0;
    this.#isCut = false;
    this.#box.replaceChildren();
    this.#terminal = new Terminal(this.#box);
  }

  /** @param {Piece} piece */
  write(piece) {
    this.#terminal.write(piece);
    this.#keep(piece);
  }

  flush() {
    this.#terminal.flush();
  }

  /** The run has ended: give its number to the results. @param {number} count */
  end(count) {
    if (this.#isCut) this.#terminal.write({ stream: "note", text: "The output is too long to save all of it with the notebook.\n" });
    for (const output of this.outputs) if (output.output_type === "execute_result") output.execution_count = count;
  }

  /** @param {Piece} piece */
  #keep(piece) {
    if ("data" in piece) this.#keepData(piece);
    else if ("text" in piece) this.#keepText(piece);
  }

  /** @param {import("./terminal.js").Shown} piece */
  #keepData({ stream, data }) {
    this.#data += Object.values(data).reduce((sum, { length }) => sum + length, 0);
    if (this.#data > MAX_DATA) this.#isCut = true;
    else if (stream === "display") this.outputs.push({ output_type: "display_data", data, metadata: {} });
    else this.outputs.push({ output_type: "execute_result", data, metadata: {}, execution_count: null });
  }

  /** @param {import("./terminal.js").Text} piece */
  #keepText({ stream, text, name, value }) {
    if (stream === "error") {
      this.outputs.push({ output_type: "error", ename: name ?? "Error", evalue: value ?? "", traceback: text.slice(-MAX_TEXT).trimEnd().split("\n") });
      return;
    }
    const kept = text.slice(0, Math.max(0, MAX_TEXT - this.#text));
    this.#text += kept.length;
    if (kept.length < text.length) this.#isCut = true;
    if (!kept) return;
    const last = this.outputs.at(-1);
    if (stream === "result") {
      this.outputs.push({ output_type: "execute_result", data: { "text/plain": kept.replace(/\n$/, "") }, metadata: {}, execution_count: null });
    } else if (STREAMS.includes(stream)) {
      if (last?.output_type === "stream" && last.name === stream) last.text += kept;
      else this.outputs.push({ output_type: "stream", name: stream, text: kept });
    }
  }
}

/** What the terminal shows of an output of a file. @param {Output} output @returns {Piece[]} */
function piecesOf(output) {
  if (output.output_type === "stream") return [{ stream: output.name, text: [output.text].flat().join("") }];
  if (output.output_type === "error") {
    const lines = output.traceback.length ? output.traceback : [`${output.ename}: ${output.evalue}`];
    return [{ stream: "error", text: `${lines.join("\n").replace(/\x1b\[[0-?]*[ -/]*[@-~]/g, "")}\n` }];
  }
  const texts = Object.entries(output.data).filter((/** @type {any} */ [, value]) => typeof value === "string");
  const data = Object.fromEntries(texts);
  const isText = Object.keys(data).join() === "text/plain";
  if (isText) return [{ stream: "result", text: `${data["text/plain"]}\n` }];
  return [{ stream: output.output_type === "execute_result" ? "value" : "display", data }];
}
