/** A heat map of the similarity between each pair of texts. */

import { clearCanvas, redrawOnChange } from "../../web/page/canvas.js";

const MAX_CELL = 64;
const MIN_CELL_WITH_VALUE = 40;
const MIN_CELL_WITH_NUMBER = 13;
const HEADING_HEIGHT = 22;
// Above this share of the accent colour, --on-accent is easier to read than --ink.
const DARK_SHARE = 0.62;

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** @typedef {{ texts: string[], values: Float32Array }} Similarities  `values` row by row */

export class Heatmap {
  #canvas;
  #readout;
  /** @type {Similarities} */
  #similarities = { texts: [], values: new Float32Array() };
  /** @type {[number, number] | null}  row and column of the selected cell */
  #cell = null;

  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} readout  shows the value of the selected cell */
  constructor(canvas, readout) {
    this.#canvas = canvas;
    this.#readout = readout;
    canvas.addEventListener("pointermove", (event) => this.#point(event));
    canvas.addEventListener("pointerdown", (event) => this.#point(event));
    // A finger leaves the canvas when it is lifted, and the user then reads the value that it touched.
    canvas.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && this.#select(null));
    canvas.addEventListener("blur", () => this.#select(null));
    canvas.addEventListener("keydown", (event) => this.#move(event));
    redrawOnChange(canvas, () => this.draw());
  }

  /** @param {Similarities} similarities */
  show(similarities) {
    this.#similarities = similarities;
    this.#select(null);
  }

  /** The value of the lowest colour: the smallest similarity, rounded down to tenths. The highest colour is 1. */
  get scaleStart() {
    return Math.min(0.9, Math.floor(10 * Math.min(...this.#similarities.values, 1)) / 10);
  }

  draw() {
    const n = this.#similarities.texts.length;
    if (!n) return;
    const { left, cell } = this.#layout();
    this.#canvas.style.height = `${HEADING_HEIGHT + n * cell + 1}px`; // before clearCanvas measures it
    const { context, color } = clearCanvas(this.#canvas);
    const [low, high, ink, onHigh, muted] = ["--sunken", "--accent", "--ink", "--on-accent", "--muted"].map(color);
    context.textBaseline = "middle";
    const { scaleStart } = this;
    for (let row = 0; row < n; row++) {
      const y = HEADING_HEIGHT + row * cell;
      for (let column = 0; column < n; column++) {
        const x = left + column * cell;
        const value = this.#similarities.values[row * n + column];
        const share = Math.min(1, Math.max(0, (value - scaleStart) / (1 - scaleStart)));
        context.fillStyle = `color-mix(in srgb, ${high} ${(100 * share).toFixed(1)}%, ${low})`;
        context.fillRect(x, y, cell - 1, cell - 1);
        if (cell < MIN_CELL_WITH_VALUE) continue;
        context.fillStyle = share < DARK_SHARE ? ink : onHigh;
        context.font = `500 12px ${color("--mono")}`;
        context.textAlign = "center";
        context.fillText(value.toFixed(2).replace("-0.00", "0.00"), x + cell / 2, y + cell / 2);
      }
      if (cell < MIN_CELL_WITH_NUMBER) continue;
      context.fillStyle = muted;
      context.font = `500 11px ${color("--mono")}`;
      context.textAlign = "center";
      context.fillText(String(row + 1), left + (row + 0.5) * cell, HEADING_HEIGHT / 2);
      context.textAlign = "right";
      context.fillText(String(row + 1), left - 8, y + cell / 2);
      context.textAlign = "left";
      context.font = `13px ${color("--sans")}`;
      context.fillStyle = ink;
      const labelWidth = left - 36;
      if (labelWidth > 40) context.fillText(shortened(context, this.#similarities.texts[row], labelWidth), 0, y + cell / 2);
    }
    if (!this.#cell) return;
    const [row, column] = this.#cell;
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.strokeRect(left + column * cell, HEADING_HEIGHT + row * cell, cell - 1, cell - 1);
  }

  /** The left edge of the cells, and their size. On a phone the labels are numbers only. */
  #layout() {
    const { clientWidth: width } = this.#canvas;
    const left = width < 480 ? 30 : Math.min(260, 0.36 * width);
    return { left, cell: Math.max(3, Math.min(MAX_CELL, Math.floor((width - left) / this.#similarities.texts.length))) };
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const { left, cell } = this.#layout();
    const n = this.#similarities.texts.length;
    const row = Math.floor((event.offsetY - HEADING_HEIGHT) / cell);
    const column = Math.floor((event.offsetX - left) / cell);
    this.#select(row >= 0 && row < n && column >= 0 && column < n ? [row, column] : null);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const step = ARROWS[event.key];
    const last = this.#similarities.texts.length - 1;
    if (!step || last < 0) return;
    event.preventDefault();
    const [row, column] = this.#cell ?? [-step[0], -step[1]];
    this.#select([Math.min(last, Math.max(0, row + step[0])), Math.min(last, Math.max(0, column + step[1]))]);
  }

  /** @param {[number, number] | null} cell */
  #select(cell) {
    this.#cell = cell;
    const { texts, values } = this.#similarities;
    this.#readout.textContent = cell
      ? `${values[cell[0] * texts.length + cell[1]].toFixed(3)} · ${cell[0] + 1}: ${texts[cell[0]]} · ${cell[1] + 1}: ${texts[cell[1]]}`
      : "Point at a cell, or select one with the arrow keys, to read its value.";
    this.draw();
  }
}

/** Fill a table with the similarities. @param {HTMLTableElement} table @param {Similarities} similarities */
export function fillTable(table, { texts, values }) {
  const cell = (/** @type {string} */ text) => {
    const td = document.createElement("td");
    td.textContent = text;
    return td;
  };
  const heading = (/** @type {"col" | "row"} */ scope, /** @type {string} */ text) => {
    const th = document.createElement("th");
    th.scope = scope;
    th.textContent = text;
    return th;
  };
  const row = (/** @type {HTMLElement[]} */ ...cells) => {
    const tr = document.createElement("tr");
    tr.append(...cells);
    return tr;
  };
  const head = texts.map((_, i) => heading("col", String(i + 1)));
  const rows = texts.map((text, i) => {
    const rowValues = [...values.subarray(i * texts.length, (i + 1) * texts.length)];
    return row(heading("row", `${i + 1}: ${text}`), ...rowValues.map((value) => cell(value.toFixed(4))));
  });
  table.replaceChildren(row(heading("col", "Text"), ...head), ...rows);
}

/** Shorten a text to a width. @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
function shortened(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = Math.min(text.length, Math.ceil(width / 3));
  while (length && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}
