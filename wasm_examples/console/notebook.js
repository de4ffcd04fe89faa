/** The notebook view: cells of code and Markdown, which run in the console's session. */

import { save } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { Cell } from "./cell.js";
import { MAX_BYTES, newCell, readNotebook, writeNotebook } from "./notebook-file.js";
import { NotebookStore } from "./notebook-store.js";
import { keepSetting, setting } from "./settings.js";

/** @import { PageView } from "../../web/page/page.js" */
/** @import { CellData, Kind, NotebookData } from "./notebook-file.js" */
/** @import { Options, Session } from "./session.js" */

const KEEP_MS = 400; // after the last change
const DEFAULT_NAME = "notebook.ipynb";
const EMPTY = () => ({ cells: [newCell()], metadata: {} });

export class Notebook {
  #session;
  #view;
  #options;
  #store = new NotebookStore();
  #mayKeep = false;
  #list = document.createElement("ol");
  /** @type {Cell[]} */
  #cells = [];
  /** @type {Record<string, any>} */
  #metadata = {};
  /** @type {HTMLElement | undefined}  in the place of the cell that was deleted last */
  #undo;
  #runs = 0;
  #isRunningAll = false;
  #timer = 0;

  /**
   * Show the notebook that the browser keeps.
   * @param {HTMLElement} place @param {Session} session @param {PageView} view @param {() => Options} options  of each run
   */
  static async open(place, session, view, options) {
    const notebook = new Notebook(session, view, options);
    await notebook.#restore();
    place.replaceChildren(notebook.#bar(), notebook.#list); // from here on: what restores would replace a file that is opened earlier
    return notebook;
  }

  /** @param {Session} session @param {PageView} view @param {() => Options} options */
  constructor(session, view, options) {
    this.#session = session;
    this.#view = view;
    this.#options = options;
    this.#list.className = "cells";
    this.#list.setAttribute("aria-label", "Cells");
    addEventListener("pagehide", () => this.#keepNow());
  }

  async #restore() {
    this.#mayKeep = await this.#store.claim();
    if (!this.#mayKeep) this.#view.status.say("The notebook is open in another tab. Changes here last as long as this tab; Save keeps them in a file.");
    const text = await this.#store.read().catch((error) => this.#cannotKeep(error));
    try {
      this.#show(text === undefined ? EMPTY() : readNotebook(text));
    } catch (error) {
      this.#show(EMPTY());
      this.#view.problems.show(error);
    }
  }

  /** @param {NotebookData} notebook */
  #show({ cells, metadata }) {
    this.#metadata = metadata;
    this.#cells = (cells.length ? cells : [newCell()]).map((data) => this.#cell(data));
    this.#list.replaceChildren(...this.#cells.map(({ element }) => element));
    this.#rename();
  }

  /** @param {CellData} data @returns {Cell} */
  #cell(data) {
    return new Cell(data, {
      complete: (code) => this.#session.complete(code),
      run: (cell, next) => this.#runAndGoOn(cell, next),
      changed: () => this.#changed(),
      move: (cell, step) => this.#move(cell, step),
      add: (kind, after) => this.#add(kind, after),
      remove: (cell) => this.#remove(cell),
    });
  }

  /** Add a cell with this code. @param {string} code */
  add(code) {
    const last = this.#cells.at(-1);
    if (last?.kind !== "code" || last.source.trim()) this.#add("code", last, code);
    else last.source = code;
    this.#cells.at(-1)?.focus();
    this.#changed();
  }

  // ---- files

  /** Open a file. @param {File} file */
  async read(file) {
    const { problems, status } = this.#view;
    problems.hide();
    try {
      if (file.size > MAX_BYTES) throw new Problem("BadNotebook", `${file.name} has ${(file.size / 1e6).toFixed(0)} MB; the page opens notebooks up to ${MAX_BYTES / 1e6} MB.`);
      const notebook = readNotebook(await file.text());
      if (!this.#mayReplace()) return;
      this.#show(notebook);
      keepSetting("notebook-name", file.name);
      status.remark(`${file.name} is open. Nothing has run yet.`);
      this.#changed();
    } catch (error) {
      problems.show(error);
    }
  }

  #save() {
    save(setting("notebook-name") ?? DEFAULT_NAME, this.#text());
    this.#view.status.remark("The notebook was saved to the downloads.");
  }

  #new() {
    if (!this.#mayReplace()) return;
    this.#show(EMPTY());
    keepSetting("notebook-name", DEFAULT_NAME);
    this.#changed();
    this.#cells[0].focus();
  }

  /** Whether the notebook may be replaced: it is empty, or the user agrees. */
  #mayReplace() {
    return !this.#cells.some(({ source }) => source.trim()) || confirm("Replace the notebook? Save it first to keep it.");
  }

  #text() {
    return writeNotebook({ cells: this.#cells.map(({ data }) => data), metadata: this.#metadata });
  }

  /** Keep the notebook in the browser, when it has not changed for a moment. */
  #changed() {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#keepNow(), KEEP_MS);
  }

  #keepNow() {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (this.#mayKeep) this.#store.write(this.#text()).catch((error) => this.#cannotKeep(error));
  }

  /** @param {unknown} error @returns {undefined} */
  #cannotKeep(error) {
    this.#mayKeep = false;
    const why = `The browser does not keep the notebook: ${error instanceof Error ? error.message : error}.`;
    this.#view.problems.show(new Problem("NotKept", why, "Save it to a file before you close the page."));
  }

  // ---- cells

  /** @param {Kind} kind @param {Cell} [after]  the last one by default @param {string} [source] */
  #add(kind, after = this.#cells.at(-1), source = "") {
    const cell = this.#cell(newCell(kind, source));
    const place = after ? this.#cells.indexOf(after) + 1 : 0;
    this.#cells.splice(place, 0, cell);
    if (after) after.element.after(cell.element);
    else this.#list.append(cell.element);
    this.#rename();
    cell.focus();
    this.#changed();
    return cell;
  }

  /** @param {Cell} cell @param {number} step */
  #move(cell, step) {
    const from = this.#cells.indexOf(cell);
    const to = from + step;
    if (to < 0 || to >= this.#cells.length) return;
    const other = this.#cells[to];
    [this.#cells[from], this.#cells[to]] = [other, cell];
    if (step < 0) other.element.before(cell.element);
    else other.element.after(cell.element);
    cell.element.scrollIntoView({ block: "nearest" });
    this.#rename();
    this.#changed();
  }

  /** @param {Cell} cell */
  #remove(cell) {
    const place = this.#cells.indexOf(cell);
    this.#cells.splice(place, 1);
    this.#undo?.remove();
    this.#undo = this.#undoOf(cell);
    cell.element.replaceWith(this.#undo);
    if (!this.#cells.length) this.#add("code");
    else this.#cells[Math.min(place, this.#cells.length - 1)].focus();
    this.#rename();
    this.#changed();
  }

  /** A line in the place of a deleted cell, which brings it back. @param {Cell} cell */
  #undoOf(cell) {
    const line = document.createElement("p");
    line.className = "hint";
    line.setAttribute("role", "status");
    line.dataset.testid = "cell-deleted";
    const undo = document.createElement("button");
    undo.type = "button";
    undo.className = "quiet";
    undo.textContent = "Undo";
    undo.onclick = () => {
      const next = this.#cells.findIndex(({ element }) => line.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
      this.#cells.splice(next < 0 ? this.#cells.length : next, 0, cell);
      line.replaceWith(cell.element);
      this.#rename();
      cell.focus();
      this.#changed();
    };
    line.append("A cell was deleted. ", undo);
    return line;
  }

  #rename() {
    for (const [i, cell] of this.#cells.entries()) cell.name(i + 1);
  }

  // ---- runs

  /** @param {Cell} cell @param {boolean} next  go to the next cell, a new one after the last */
  #runAndGoOn(cell, next) {
    this.#run(cell);
    if (!next) return;
    const following = this.#cells[this.#cells.indexOf(cell) + 1];
    if (following) following.focus();
    else this.#add("code");
  }

  /** @param {Cell} cell @returns {Promise<boolean>}  whether the cells below may run */
  async #run(cell) {
    if (cell.kind === "markdown") await cell.render();
    if (cell.kind !== "code") return true;
    if (!cell.source.trim()) {
      cell.clear();
      return true;
    }
    const outcome = await this.#session.run(cell.source, cell, { ...this.#options(), closes_figures: true });
    if (outcome !== "dropped") cell.end(++this.#runs);
    this.#changed();
    return outcome === "done";
  }

  async #runAll() {
    if (this.#isRunningAll) return;
    this.#isRunningAll = true;
    try {
      for (const cell of [...this.#cells]) if (!(await this.#run(cell))) break;
    } finally {
      this.#isRunningAll = false;
    }
  }

  #clearOutputs() {
    for (const cell of this.#cells) cell.clear();
    this.#changed();
  }

  #bar() {
    const bar = Object.assign(document.createElement("div"), { className: "links" });
    const actions = {
      "Run all": () => this.#runAll(),
      "Add code": () => this.#add("code"),
      "Add Markdown": () => this.#add("markdown"),
      "Clear outputs": () => this.#clearOutputs(),
      Save: () => this.#save(),
      New: () => this.#new(),
    };
    for (const [textContent, onclick] of Object.entries(actions)) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent, onclick, className: "quiet" });
      button.dataset.testid = textContent.toLowerCase().replace(" ", "-");
      bar.append(button);
    }
    const input = Object.assign(document.createElement("input"), { type: "file", accept: ".ipynb" });
    input.dataset.testid = "open-notebook";
    input.onchange = () => {
      const [file] = input.files ?? [];
      if (file) this.read(file);
      input.value = "";
    };
    const label = Object.assign(document.createElement("label"), { className: "hint", textContent: "Open a notebook (.ipynb)" });
    label.append(input);
    bar.append(label);
    return bar;
  }
}
