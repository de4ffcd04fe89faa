/** The input field of the console: continuation lines, indentation, history and completion. */

const HISTORY_KEY = "tallow-console-history";
const MAX_HISTORY = 200;
const INDENT = "    ";

/**
 * @typedef {{
 *   isComplete(code: string): Promise<boolean>,
 *   complete(code: string): Promise<{ names: string[], start: number }>,
 *   run(code: string): void,
 * }} Interpreter
 */

export class Prompt {
  #field;
  #list;
  #interpreter;
  /** @type {string[]} */
  #history = loadHistory();
  #historyIndex = this.#history.length;
  #draft = "";
  #isLeaving = false; // Escape was pressed last: the next Tab leaves the field

  /** @param {HTMLTextAreaElement} field @param {HTMLElement} list  for completions @param {Interpreter} interpreter */
  constructor(field, list, interpreter) {
    this.#field = field;
    this.#list = list;
    this.#interpreter = interpreter;
    field.addEventListener("input", () => this.#changed());
    field.addEventListener("keydown", (event) => this.#key(event));
    this.#changed();
  }

  get code() {
    return this.#field.value;
  }

  set code(text) {
    this.#field.value = text;
    this.#changed();
  }

  focus() {
    this.#field.focus();
  }

  /** Run the code in the field, unless it is blank. */
  submit() {
    const code = this.code.trimEnd();
    if (!code.trim()) return;
    if (this.#history.at(-1) !== code) this.#history.push(code);
    this.#history = this.#history.slice(-MAX_HISTORY);
    saveHistory(this.#history);
    this.#historyIndex = this.#history.length;
    this.code = "";
    this.#interpreter.run(code);
  }

  /** The code that was run last. */
  last() {
    return this.#history.at(-1) ?? "";
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing) return;
    const isLeaving = this.#isLeaving;
    this.#isLeaving = event.key === "Escape";
    const { selectionStart: start, selectionEnd: end, value } = this.#field;
    if (event.key === "Enter") {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) return this.submit();
      const typed = value;
      this.#newLine();
      // Python decides whether the code is complete. Until it answers, further keys edit the code.
      const atEnd = !value.slice(end).trim();
      if (!event.shiftKey && atEnd && typed.trim()) this.#runIfComplete(typed, this.code);
    } else if (event.key === "Tab" && !event.shiftKey && !isLeaving) {
      event.preventDefault();
      if (/(^|\n)[ \t]*$/.test(value.slice(0, start))) this.#insert(INDENT);
      else this.#complete();
    } else if (event.key === "ArrowUp" && !value.slice(0, start).includes("\n")) {
      if (this.#recall(-1)) event.preventDefault();
    } else if (event.key === "ArrowDown" && !value.slice(end).includes("\n")) {
      if (this.#recall(1)) event.preventDefault();
    } else if (event.key === "Escape") this.#offer([]);
  }

  /** Insert a line with the indentation of this one, deeper after a colon. */
  #newLine() {
    const { selectionStart: start, value } = this.#field;
    const line = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
    const depth = /^[ \t]*/.exec(line)?.[0] ?? "";
    this.#insert(`\n${depth}${/:\s*(#.*)?$/.test(line) ? INDENT : ""}`);
  }

  /** @param {string} code @param {string} shown  the field's content, unless something was typed since */
  async #runIfComplete(code, shown) {
    if (!(await this.#interpreter.isComplete(code)) || this.code !== shown) return;
    this.code = code;
    this.submit();
  }

  /** @param {string} text */
  #insert(text) {
    const { selectionStart: start, selectionEnd: end } = this.#field;
    this.#field.setRangeText(text, start, end, "end");
    this.#changed();
  }

  async #complete() {
    const { selectionStart, value } = this.#field;
    const before = value.slice(0, selectionStart);
    const { names, start } = await this.#interpreter.complete(before);
    if (this.code !== value) return; // something was typed since
    const word = before.slice(start);
    const common = names.reduce(commonPrefix, names[0] ?? "");
    if (common.length > word.length) this.#insert(common.slice(word.length));
    this.#offer(names.length > 1 ? names : []);
  }

  /** Show a list of completions. @param {string[]} names */
  #offer(names) {
    this.#list.hidden = names.length === 0;
    this.#list.replaceChildren(
      ...names.map((name) => Object.assign(document.createElement("li"), { textContent: name.split(".").pop() })),
    );
  }

  /** Show another entry of the history. @param {number} step @returns {boolean}  whether there is one */
  #recall(step) {
    const index = this.#historyIndex + step;
    if (index < 0 || index > this.#history.length) return false;
    if (this.#historyIndex === this.#history.length) this.#draft = this.code;
    this.#historyIndex = index;
    this.code = this.#history[index] ?? this.#draft;
    this.#field.setSelectionRange(this.code.length, this.code.length);
    return true;
  }

  /** Fit the field's height to its text, and hide completions of the previous text. */
  #changed() {
    this.#offer([]);
    this.#field.rows = this.code.split("\n").length;
  }
}

/** @param {string} a @param {string} b */
function commonPrefix(a, b) {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}

/** @returns {string[]} */
function loadHistory() {
  try {
    return JSON.parse(sessionStorage.getItem(HISTORY_KEY) ?? "[]");
  } catch {
    return []; // the browser may forbid storage; the history is optional
  }
}

/** @param {string[]} history */
function saveHistory(history) {
  try {
    sessionStorage.setItem(HISTORY_KEY, JSON.stringify(history));
  } catch {
    // as above
  }
}
