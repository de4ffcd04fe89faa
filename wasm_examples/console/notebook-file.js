/** Notebooks as files: Jupyter's format, nbformat 4 (https://nbformat.readthedocs.io). Files of others are hostile. */

import { Problem } from "../../web/worker/protocol.js";

/**
 * @typedef {Record<string, any>} Output  as in nbformat: "stream", "execute_result", "display_data" or "error"
 * @typedef {"code" | "markdown" | "raw"} Kind
 * @typedef {{ kind: Kind, source: string, outputs: Output[], count: number | null, metadata: object, id: string, attachments?: object }} CellData
 * @typedef {{ cells: CellData[], metadata: Record<string, any> }} NotebookData
 */

export const MAX_BYTES = 50_000_000;
const MAX_CELLS = 2000;
const MAX_OUTPUTS = 1000; // of a cell
const FORMAT = { nbformat: 4, nbformat_minor: 5 };
const KINDS = ["code", "markdown", "raw"];
const ID = /^[A-Za-z0-9_-]{1,64}$/;
const PYTHON = {
  kernelspec: { display_name: "Python 3", language: "python", name: "python3" },
  language_info: { name: "python", file_extension: ".py", mimetype: "text/x-python" },
};

/** @returns {CellData} */
export function newCell(/** @type {Kind} */ kind = "code", source = "") {
  return { kind, source, outputs: [], count: null, metadata: {}, id: newId() };
}

/** An identifier that no other cell has. */
function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The content of a file. @param {NotebookData} notebook @returns {string} */
export function writeNotebook({ cells, metadata }) {
  const written = cells.map(({ kind, source, outputs, count, metadata, id, attachments }) => ({
    cell_type: kind,
    id,
    metadata,
    source: linesOf(source),
    ...(kind === "code" ? { execution_count: count, outputs } : attachments ? { attachments } : {}),
  }));
  return `${JSON.stringify({ cells: written, metadata: { ...PYTHON, ...metadata }, ...FORMAT }, null, 1)}\n`;
}

/** Text as nbformat has it: lines with their ends. @param {string} text @returns {string[]} */
function linesOf(text) {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/**
 * Read the content of a file.
 * @param {string} text
 * @returns {NotebookData}
 * @throws {Problem} it is not a notebook of this format
 */
export function readNotebook(text) {
  if (text.length > MAX_BYTES) throw unusable(`it has ${(text.length / 1e6).toFixed(0)} MB, and the page reads up to ${MAX_BYTES / 1e6} MB`);
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    throw unusable("it is not JSON");
  }
  if (!isObject(file) || !("nbformat" in file)) throw unusable("it has no nbformat, which every notebook has");
  if (file.nbformat !== 4) throw unusable(`it has format ${String(file.nbformat).slice(0, 20)}, and the page reads format 4`, "Convert it: jupyter nbconvert --to notebook.");
  if (!Array.isArray(file.cells)) throw unusable("it has no list of cells");
  if (file.cells.length > MAX_CELLS) throw unusable(`it has ${file.cells.length} cells, and the page shows up to ${MAX_CELLS}`);
  const ids = new Set();
  const cells = file.cells.map((/** @type {any} */ cell, /** @type {number} */ i) => readCell(cell, i, ids));
  return { cells, metadata: isObject(file.metadata) ? file.metadata : {} };
}

/** @param {any} cell @param {number} i @param {Set<string>} ids @returns {CellData} */
function readCell(cell, i, ids) {
  const name = `cell ${i + 1}`;
  if (!isObject(cell) || !KINDS.includes(cell.cell_type)) throw unusable(`${name} is neither code nor Markdown nor raw text`);
  const outputs = cell.cell_type === "code" ? (cell.outputs ?? []) : [];
  if (!Array.isArray(outputs)) throw unusable(`the outputs of ${name} are no list`);
  const id = ID.test(cell.id) && !ids.has(cell.id) ? cell.id : newId();
  ids.add(id);
  return {
    kind: cell.cell_type,
    source: textOf(cell.source, name),
    outputs: outputs.slice(0, MAX_OUTPUTS).map((output) => readOutput(output, name)),
    count: Number.isInteger(cell.execution_count) && cell.execution_count >= 0 ? cell.execution_count : null,
    metadata: isObject(cell.metadata) ? cell.metadata : {},
    id,
    ...(isObject(cell.attachments) && cell.cell_type !== "code" ? { attachments: cell.attachments } : {}),
  };
}

/** @param {any} output @param {string} name @returns {Output} */
function readOutput(output, name) {
  const type = isObject(output) ? output.output_type : undefined;
  const metadata = isObject(output?.metadata) ? output.metadata : {};
  if (type === "stream") {
    return { output_type: type, name: output.name === "stderr" ? "stderr" : "stdout", text: linesOf(textOf(output.text, name)) };
  }
  if (type === "error") {
    const traceback = Array.isArray(output.traceback) ? output.traceback.filter((/** @type {any} */ line) => typeof line === "string") : [];
    return { output_type: type, ename: String(output.ename ?? ""), evalue: String(output.evalue ?? ""), traceback };
  }
  if (type === "execute_result" || type === "display_data") {
    const data = readData(output.data, name);
    const count = Number.isInteger(output.execution_count) ? output.execution_count : null;
    return { output_type: type, data, metadata, ...(type === "execute_result" ? { execution_count: count } : {}) };
  }
  throw unusable(`an output of ${name} has a kind that nbformat 4 does not have`);
}

/** The data of an output, by media type; JSON is kept as it is. @param {any} data @param {string} name */
function readData(data, name) {
  if (!isObject(data)) throw unusable(`an output of ${name} has no data`);
  return Object.fromEntries(Object.entries(data).map(([kind, value]) => [kind, /^application\/(.*\+)?json$/.test(kind) ? value : textOf(value, name)]));
}

/** Text, which a file may have in lines. @param {any} text @param {string} name @returns {string} */
function textOf(text, name) {
  const lines = Array.isArray(text) ? text : [text];
  if (!lines.every((line) => typeof line === "string")) throw unusable(`${name} has something else than text where text belongs`);
  return lines.join("");
}

/** @param {any} value @returns {value is Record<string, any>} */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {string} why @param {string} [hint] */
function unusable(why, hint = "Choose a file that Jupyter or this page has saved.") {
  return new Problem("BadNotebook", `This notebook cannot be opened: ${why}.`, hint);
}
