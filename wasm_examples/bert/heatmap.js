/** A square of colours: how alike each two of some texts are. */

import { begin, redrawn } from "../../web/canvas.js";

const MAX_CELL = 64;
const ROOM_FOR_VALUE = 40;
const ROOM_FOR_NUMBER = 13;
const HEADING = 22;
// Beyond this share of the accent, the page's ink is no longer the better to read on it.
const DARK = 0.62;

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** @typedef {{ texts: string[], values: Float32Array }} Similarities  `values` row by row */

export class Heatmap {
  #canvas;
  #readout;
  /** @type {Similarities} */
  #shown = { texts: [], values: new Float32Array() };
  /** @type {[number, number] | null}  row and column of the cell that is read out */
  #cell = null;

  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} readout  says the value that is pointed at */
  constructor(canvas, readout) {
    this.#canvas = canvas;
    this.#readout = readout;
    canvas.addEventListener("pointermove", (event) => this.#point(event));
    canvas.addEventListener("pointerdown", (event) => this.#point(event));
    // A finger leaves as soon as it is lifted: what it has touched is then to be read.
    canvas.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && this.#select(null));
    canvas.addEventListener("blur", () => this.#select(null));
    canvas.addEventListener("keydown", (event) => this.#move(event));
    redrawn(canvas, () => this.draw());
  }

  /** @param {Similarities} similarities */
  show(similarities) {
    this.#shown = similarities;
    this.#select(null);
  }

  /** The colours run from the least value there is, in tenths, to 1. */
  get least() {
    return Math.min(0.9, Math.floor(10 * Math.min(...this.#shown.values, 1)) / 10);
  }

  draw() {
    const n = this.#shown.texts.length;
    if (!n) return;
    const { left, cell } = this.#layout();
    this.#canvas.style.height = `${HEADING + n * cell + 1}px`; // before it is measured
    const { context, color } = begin(this.#canvas);
    const [low, high, ink, onHigh, muted] = ["--sunken", "--accent", "--ink", "--on-accent", "--muted"].map(color);
    context.textBaseline = "middle";
    const least = this.least;
    for (let row = 0; row < n; row++) {
      const y = HEADING + row * cell;
      for (let column = 0; column < n; column++) {
        const x = left + column * cell;
        const value = this.#shown.values[row * n + column];
        const share = Math.min(1, Math.max(0, (value - least) / (1 - least)));
        context.fillStyle = `color-mix(in srgb, ${high} ${(100 * share).toFixed(1)}%, ${low})`;
        context.fillRect(x, y, cell - 1, cell - 1);
        if (cell < ROOM_FOR_VALUE) continue;
        context.fillStyle = share < DARK ? ink : onHigh;
        context.font = `500 12px ${color("--mono")}`;
        context.textAlign = "center";
        context.fillText(value.toFixed(2).replace("-0.00", "0.00"), x + cell / 2, y + cell / 2);
      }
      if (cell < ROOM_FOR_NUMBER) continue;
      context.fillStyle = muted;
      context.font = `500 11px ${color("--mono")}`;
      context.textAlign = "center";
      context.fillText(String(row + 1), left + (row + 0.5) * cell, HEADING / 2);
      context.textAlign = "right";
      context.fillText(String(row + 1), left - 8, y + cell / 2);
      context.textAlign = "left";
      context.font = `13px ${color("--sans")}`;
      context.fillStyle = ink;
      const room = left - 36;
      if (room > 40) context.fillText(fitted(context, this.#shown.texts[row], room), 0, y + cell / 2);
    }
    if (!this.#cell) return;
    const [row, column] = this.#cell;
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.strokeRect(left + column * cell, HEADING + row * cell, cell - 1, cell - 1);
  }

  /** Where the cells begin, and how large each is; on a phone there are numbers for labels. */
  #layout() {
    const { clientWidth: width } = this.#canvas;
    const left = width < 480 ? 30 : Math.min(260, 0.36 * width);
    return { left, cell: Math.max(3, Math.min(MAX_CELL, Math.floor((width - left) / this.#shown.texts.length))) };
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const { left, cell } = this.#layout();
    const n = this.#shown.texts.length;
    const row = Math.floor((event.offsetY - HEADING) / cell);
    const column = Math.floor((event.offsetX - left) / cell);
    this.#select(row >= 0 && row < n && column >= 0 && column < n ? [row, column] : null);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const step = ARROWS[event.key];
    const last = this.#shown.texts.length - 1;
    if (!step || last < 0) return;
    event.preventDefault();
    const [row, column] = this.#cell ?? [-step[0], -step[1]];
    this.#select([Math.min(last, Math.max(0, row + step[0])), Math.min(last, Math.max(0, column + step[1]))]);
  }

  /** @param {[number, number] | null} cell */
  #select(cell) {
    this.#cell = cell;
    const { texts, values } = this.#shown;
    this.#readout.textContent = cell
      ? `${values[cell[0] * texts.length + cell[1]].toFixed(3)} · ${cell[0] + 1}: ${texts[cell[0]]} · ${cell[1] + 1}: ${texts[cell[1]]}`
      : "Point at a square, or go there with the arrow keys, to read its value.";
    this.draw();
  }
}

/** The same in cells of text. @param {HTMLTableElement} table @param {Similarities} similarities */
export function fillTable(table, { texts, values }) {
  const cell = (/** @type {string} */ text) => {
    const made = document.createElement("td");
    made.textContent = text;
    return made;
  };
  const heading = (/** @type {"col" | "row"} */ scope, /** @type {string} */ text) => {
    const made = document.createElement("th");
    made.scope = scope;
    made.textContent = text;
    return made;
  };
  const row = (/** @type {HTMLElement[]} */ ...cells) => {
    const made = document.createElement("tr");
    made.append(...cells);
    return made;
  };
  const head = texts.map((_, i) => heading("col", String(i + 1)));
  const rows = texts.map((text, i) => {
    const found = [...values.subarray(i * texts.length, (i + 1) * texts.length)];
    return row(heading("row", `${i + 1}: ${text}`), ...found.map((value) => cell(value.toFixed(4))));
  });
  table.replaceChildren(row(heading("col", "Text"), ...head), ...rows);
}

/** As much of a text as there is room for. @param {CanvasRenderingContext2D} context @param {string} text @param {number} room */
function fitted(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let length = Math.min(text.length, Math.ceil(room / 3));
  while (length && context.measureText(`${text.slice(0, length)}…`).width > room) length--;
  return `${text.slice(0, length)}…`;
}
