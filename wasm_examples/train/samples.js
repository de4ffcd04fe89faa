/** Images with what the network takes them for. */

import { showInk } from "../../web/canvas.js";

const SIDE = 28;

export class Samples {
  #list;
  /** @type {Uint8Array} */
  #labels = new Uint8Array();

  /** @param {HTMLElement} list */
  constructor(list) {
    this.#list = list;
  }

  /** @param {Uint8Array} pixels  of all images, one after the other @param {Uint8Array} labels */
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

  /** @param {Uint8Array} classes @param {Uint8Array} sure  0 to 255 */
  setGuesses(classes, sure) {
    [...this.#list.children].forEach((item, i) => {
      const right = classes[i] === this.#labels[i];
      item.classList.toggle("wrong", !right);
      const text = /** @type {HTMLElement} */ (item.lastElementChild);
      text.textContent = right ? `${classes[i]}` : `${classes[i]}, not ${this.#labels[i]}`;
      text.title = `${Math.round(sure[i] / 2.55)}% sure`;
    });
  }
}
