/** A cell of the notebook: its source, its buttons, its output. */

import { loadMarkdown, showMarkdown } from "../../web/page/markdown.js";
import { CellOutput } from "./cell-output.js";
import { CodeField } from "./code-field.js";

/** @import { CellData, Kind } from "./notebook-file.js" */
/** @import { Completer } from "./code-field.js" */
/** @import { Sink } from "./session.js" */

/**
 * What a cell asks the notebook for.
 * @typedef {Completer & {
 *   run(cell: Cell, next: boolean): void, changed(): void, move(cell: Cell, step: number): void, add(kind: Kind, after: Cell): void, remove(cell: Cell): void,
 * }} Owner
 */

const NAMES = { code: "Code", markdown: "Markdown", raw: "Raw text" };

/** @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {object} [properties] @param {(Node | string)[]} children @returns {HTMLElementTagNameMap[T]} */
function build(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** @implements {Sink} */
export class Cell {
  element = build("li", { className: "cell" });
  #data;
  #owner;
  #field = build("textarea", { rows: 1, spellcheck: false, autocapitalize: "off" });
  #code;
  #count = build("span", { className: "count" });
  #output = build("div", { className: "output" });
  #rendered = build("div", { className: "rendered rich", tabIndex: -1 });
  #kept;
  #editor;

  /** @param {CellData} data @param {Owner} owner */
  constructor(data, owner) {
    this.#data = data;
    this.#owner = owner;
    this.element.dataset.testid = "cell";
    const completions = build("ul", { className: "completions", hidden: true });
    completions.setAttribute("aria-label", "Completions");
    this.#editor = build("div", { className: "source" }, this.#field);
    this.element.append(this.#bar(), this.#editor, completions, this.#rendered, this.#output);
    this.#field.value = data.source;
    this.#field.dataset.testid = "source";
    this.#code = new CodeField(this.#field, completions, owner, { isPlain: () => this.kind !== "code" });
    this.#field.addEventListener("keydown", (event) => this.#key(event));
    this.#field.addEventListener("input", () => owner.changed());
    this.#output.dataset.testid = "cell-output";
    this.#output.setAttribute("role", "log");
    this.#output.tabIndex = 0; // it scrolls
    this.#rendered.ondblclick = () => this.edit();
    this.#kept = new CellOutput(this.#output, data.outputs);
    this.#show();
    if (this.kind === "markdown" && data.source.trim()) this.render();
  }

  get kind() {
    return this.#data.kind;
  }

  get source() {
    return this.#field.value;
  }

  set source(text) {
    this.#code.code = text;
  }

  /** @returns {CellData} */
  get data() {
    return { ...this.#data, source: this.source, outputs: this.kind === "code" ? this.#kept.outputs : [] };
  }

  /** @param {number} place  from 1 */
  name(place) {
    this.#field.setAttribute("aria-label", `Source of cell ${place}`);
    this.#output.setAttribute("aria-label", `Output of cell ${place}`);
    this.element.setAttribute("aria-label", `Cell ${place}`);
  }

  focus() {
    if (this.#editor.hidden) this.#rendered.focus();
    else this.#field.focus();
  }

  /** Run starts: the output is that of this run. */
  begin() {
    this.clear();
    this.#count.textContent = "[*]";
  }

  /** @param {import("./terminal.js").Piece} piece */
  write(piece) {
    this.#kept.write(piece);
  }

  flush() {
    this.#kept.flush();
  }

  /** @param {number} count  of runs in this session */
  end(count) {
    this.#data.count = count;
    this.#kept.end(count);
    this.#show();
  }

  clear() {
    this.#kept.clear();
    this.#data.count = null;
    this.#show();
  }

  /** Show the Markdown as it looks. */
  async render() {
    await loadMarkdown().catch(console.warn); // then as it is written
    showMarkdown(this.#rendered, this.source.trim() || "An empty cell.");
    this.#rendered.hidden = false;
    this.#editor.hidden = true;
  }

  /** Show the source of Markdown. */
  edit() {
    this.#rendered.hidden = true;
    this.#editor.hidden = false;
    this.#code.update();
    this.#field.focus();
  }

  #show() {
    const isCode = this.kind === "code";
    this.element.dataset.kind = this.kind;
    this.#output.hidden = !isCode;
    this.#count.hidden = !isCode;
    this.#count.textContent = `[${this.#data.count ?? " "}]`;
    if (this.kind !== "markdown" || !this.source.trim()) {
      this.#rendered.hidden = true;
      this.#editor.hidden = false;
    }
  }

  /** @param {string} kind */
  #become(kind) {
    this.#data.kind = /** @type {Kind} */ (kind);
    if (kind !== "code") this.clear();
    this.#show();
    this.edit();
    this.#owner.changed();
  }

  #bar() {
    const kind = build("select");
    kind.setAttribute("aria-label", "Kind of cell");
    for (const [value, text] of Object.entries(NAMES)) kind.append(new Option(text, value, false, value === this.kind));
    kind.onchange = () => this.#become(kind.value);
    const run = build("button", { type: "button", textContent: "Run", className: "run" });
    run.dataset.testid = "run-cell";
    run.onclick = () => this.#owner.run(this, false);
    const actions = Object.entries({
      Edit: () => this.edit(),
      Up: () => this.#owner.move(this, -1),
      Down: () => this.#owner.move(this, 1),
      "Add below": () => this.#owner.add("code", this),
      Delete: () => this.#owner.remove(this),
    }).map(([textContent, onclick]) => build("button", { type: "button", className: `quiet ${textContent.toLowerCase().replace(" ", "-")}`, textContent, onclick }));
    return build("div", { className: "cell-bar" }, run, this.#count, kind, ...actions);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#owner.run(this, event.shiftKey);
    } else if (event.key === "Enter" && this.kind === "code") {
      event.preventDefault();
      this.#code.newLine();
    } else this.#code.key(event);
  }
}
