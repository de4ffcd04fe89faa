/** Test images and the network's predictions. */

import { showInk } from "../../web/page/canvas.js";

const SIDE = 28;

export class Samples {
  #list;
  /** @type {Uint8Array} */
  #labels = new Uint8Array();

  /** @param {HTMLElement} list */
  constructor(list) {
    this.#list = list;
  }

  /** @param {Uint8Array} pixels  of all images, concatenated @param {Uint8Array} labels */
  setImages(pixels, labels) {
    this.#labels = labels;
    this.#list.replaceChildren(
      ...[...labels].map((label, i) => {
        const item = document.createElement("li");
        const canvas = document.createElement("canvas");
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", `a ${label}`);
        showInk(canvas, pixels.subarray(i * SIDE * SIDE, (i + 1) * SIDE * SIDE), SIDE);
        item.append(canvas, document.createElement("span"));
        return item;
      }),
    );
  }

  /** @param {Uint8Array} classes @param {Uint8Array} confidence  0 to 255 */
  setPredictions(classes, confidence) {
    [...this.#list.children].forEach((item, i) => {
      const isCorrect = classes[i] === this.#labels[i];
      item.classList.toggle("wrong", !isCorrect);
      const text = /** @type {HTMLElement} */ (item.lastElementChild);
      text.textContent = isCorrect ? `${classes[i]}` : `${classes[i]}, not ${this.#labels[i]}`;
      text.title = `Confidence: ${Math.round(confidence[i] / 2.55)}%`;
    });
  }
}
