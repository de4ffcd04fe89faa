/** The input field of the console: continuation lines and history. */

import { CodeField } from "./code-field.js";
import { History } from "./history.js";

/**
 * @typedef {{
 *   isComplete(code: string): Promise<boolean>,
 *   complete(code: string): Promise<{ names: string[], start: number }>,
 *   run(code: string): void,
 * }} Interpreter
 */

export class Prompt {
  #field;
  #code;
  #interpreter;
  #history = new History();
  #historyIndex = this.#history.length;
  #draft = "";

  /** @param {HTMLTextAreaElement} field @param {HTMLElement} list  for completions @param {Interpreter} interpreter */
  constructor(field, list, interpreter) {
    this.#field = field;
    this.#interpreter = interpreter;
    this.#code = new CodeField(field, list, interpreter);
    field.addEventListener("keydown", (event) => this.#key(event));
  }

  get code() {
    return this.#code.code;
  }

  set code(text) {
    this.#code.code = text;
  }

  focus() {
    this.#field.focus();
  }

  /** Run the code in the field, unless it is blank. */
  submit() {
    const code = this.code.trimEnd();
    if (!code.trim()) return;
    this.#history.add(code);
    this.#historyIndex = this.#history.length;
    this.code = "";
    this.#interpreter.run(code);
  }

  /** The code that was run last. */
  last() {
    return this.#history.at(-1) ?? "";
  }

  /** Forget the code that was entered. */
  forget() {
    this.#history.clear();
    this.#historyIndex = 0;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing) return;
    const { selectionStart: start, selectionEnd: end, value } = this.#field;
    if (event.key === "Enter") {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) return this.submit();
      const typed = value;
      this.#code.newLine();
      // Python decides whether the code is complete. Until it answers, further keys edit the code.
      const atEnd = !value.slice(end).trim();
      if (!event.shiftKey && atEnd && typed.trim()) this.#runIfComplete(typed, this.code);
    } else if (event.key === "ArrowUp" && !value.slice(0, start).includes("\n")) {
      if (this.#recall(-1)) event.preventDefault();
    } else if (event.key === "ArrowDown" && !value.slice(end).includes("\n")) {
      if (this.#recall(1)) event.preventDefault();
    }
    this.#code.key(event);
  }

  /** @param {string} code @param {string} shown  the field's content, unless something was typed since */
  async #runIfComplete(code, shown) {
    if (!(await this.#interpreter.isComplete(code)) || this.code !== shown) return;
    this.code = code;
    this.submit();
  }

  /** Show another entry of the history. @param {number} step @returns {boolean}  whether there is one */
  #recall(step) {
    const index = this.#historyIndex + step;
    if (index < 0 || index > this.#history.length) return false;
    if (this.#historyIndex === this.#history.length) this.#draft = this.code;
    this.#historyIndex = index;
    this.code = index === this.#history.length ? this.#draft : (this.#history.at(index) ?? "");
    this.#field.setSelectionRange(this.code.length, this.code.length);
    return true;
  }
}
