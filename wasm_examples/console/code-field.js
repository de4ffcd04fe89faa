/** A field for Python: indentation, completion with Tab, and Escape before a Tab that leaves the field. */

import { Editor } from "./editor.js";

const INDENT = "    ";

/** @typedef {{ complete(code: string): Promise<{ names: string[], start: number }> }} Completer */

export class CodeField {
  #field;
  #list;
  #completer;
  #editor;
  #isPlain;
  #isLeaving = false; // Escape was pressed last: the next Tab leaves the field

  /**
   * @param {HTMLTextAreaElement} field @param {HTMLElement} list  for completions @param {Completer} completer
   * @param {{ isPlain?: () => boolean }} [options]  `isPlain`: whether the text is no code now
   */
  constructor(field, list, completer, { isPlain = () => false } = {}) {
    this.#isPlain = isPlain;
    this.#field = field;
    this.#list = list;
    this.#completer = completer;
    this.#editor = new Editor(field, isPlain);
    field.addEventListener("input", () => this.update());
    this.update();
  }

  get code() {
    return this.#field.value;
  }

  set code(text) {
    this.#field.value = text;
    this.update();
  }

  focus() {
    this.#field.focus();
  }

  /** Handle Tab and Escape. @param {KeyboardEvent} event */
  key(event) {
    const isLeaving = this.#isLeaving;
    this.#isLeaving = event.key === "Escape";
    if (event.key === "Escape") return this.#offer([]);
    if (event.key !== "Tab" || event.shiftKey || isLeaving) return;
    event.preventDefault();
    const before = this.code.slice(0, this.#field.selectionStart);
    if (this.#isPlain() || /(^|\n)[ \t]*$/.test(before)) this.insert(INDENT);
    else this.#complete();
  }

  /** Insert a line with the indentation of this one, deeper after a colon. */
  newLine() {
    const { selectionStart: start, value } = this.#field;
    const line = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
    const depth = /^[ \t]*/.exec(line)?.[0] ?? "";
    this.insert(`\n${depth}${/:\s*(#.*)?$/.test(line) ? INDENT : ""}`);
  }

  /** @param {string} text */
  insert(text) {
    const { selectionStart: start, selectionEnd: end } = this.#field;
    this.#field.setRangeText(text, start, end, "end");
    this.#field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  async #complete() {
    const { selectionStart, value } = this.#field;
    const before = value.slice(0, selectionStart);
    const { names, start } = await this.#completer.complete(before);
    if (this.code !== value) return; // something was typed since
    const word = before.slice(start);
    const common = names.reduce(commonPrefix, names[0] ?? "");
    if (common.length > word.length) this.insert(common.slice(word.length));
    this.#offer(names.length > 1 ? names : []);
  }

  /** Show a list of completions. @param {string[]} names */
  #offer(names) {
    this.#list.hidden = names.length === 0;
    this.#list.replaceChildren(
      ...names.map((name) => Object.assign(document.createElement("li"), { textContent: name.split(".").pop() })),
    );
  }

  /** Show the text in colours, and hide completions of the previous text. */
  update() {
    this.#offer([]);
    this.#editor.update();
  }
}

/** @param {string} a @param {string} b */
function commonPrefix(a, b) {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}
