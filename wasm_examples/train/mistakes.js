/** Where a network that reads digits is wrong: the confusion matrix, and a gallery of mistakes. */

import { showInk } from "../../web/page/canvas.js";

const SIDE = 28;
const STRONGEST = 45; // percent of colour: more would make the number hard to read

/** @typedef {{ pixels: Uint8Array, labels: Uint8Array, classes: Uint8Array, confidence: Uint8Array }} Mistakes  `confidence` is 0 to 255 */

export class Confusion {
  #body;
  #summary;
  /** @type {HTMLTableCellElement[]} */
  #cells = [];

  /** @param {HTMLTableElement} table  with an empty head and body @param {HTMLElement} summary  a line below it */
  constructor(table, summary) {
    this.#body = table.tBodies[0];
    this.#summary = summary;
    const head = table.tHead?.rows[0];
    for (let digit = 0; digit < 10; digit++) head?.append(header("col", digit));
    for (let digit = 0; digit < 10; digit++) {
      const row = this.#body.insertRow();
      row.append(header("row", digit));
      for (let guess = 0; guess < 10; guess++) this.#cells.push(row.insertCell());
    }
  }

  /** @param {Uint32Array} counts  (true class, predicted class), row by row */
  set(counts) {
    let correct = 0;
    let total = 0;
    for (let digit = 0; digit < 10; digit++) {
      const row = counts.subarray(10 * digit, 10 * digit + 10);
      const sum = row.reduce((a, b) => a + b, 0);
      correct += row[digit];
      total += sum;
      row.forEach((count, guess) => {
        const cell = this.#cells[10 * digit + guess];
        const text = count ? String(count) : "";
        if (cell.textContent !== text) cell.textContent = text;
        const color = guess === digit ? "--good" : "--bad";
        const share = Math.round(count && STRONGEST * Math.sqrt(count / sum));
        cell.style.background = count ? `color-mix(in srgb, var(${color}) ${share}%, transparent)` : "";
      });
    }
    this.#summary.textContent = `${correct.toLocaleString("en")} of ${total.toLocaleString("en")} test images are right.`;
  }
}

export class Gallery {
  #list;
  #summary;

  /** @param {HTMLElement} list @param {HTMLElement} summary  a line below it */
  constructor(list, summary) {
    this.#list = list;
    this.#summary = summary;
  }

  /** @param {Mistakes} mistakes */
  set({ pixels, labels, classes, confidence }) {
    while (this.#list.children.length > labels.length) this.#list.lastElementChild?.remove();
    labels.forEach((label, i) => {
      const item = this.#list.children[i] ?? this.#add();
      const canvas = /** @type {HTMLCanvasElement} */ (item.firstElementChild);
      canvas.setAttribute("aria-label", `a ${label}`);
      showInk(canvas, pixels.subarray(i * SIDE * SIDE, (i + 1) * SIDE * SIDE), SIDE);
      /** @type {HTMLElement} */ (item.lastElementChild).textContent = `${classes[i]} (${Math.round(confidence[i] / 2.55)}%), not ${label}`;
    });
    this.#summary.textContent = labels.length ? "The most confident mistakes first." : "There is no mistake among these test images.";
  }

  #add() {
    const item = document.createElement("li");
    item.className = "wrong";
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    item.append(canvas, document.createElement("span"));
    this.#list.append(item);
    return item;
  }
}

/** @param {"col" | "row"} scope @param {number} digit */
function header(scope, digit) {
  const cell = document.createElement("th");
  cell.scope = scope;
  cell.textContent = String(digit);
  return cell;
}
