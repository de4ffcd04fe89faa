/** The pad with a drawing, and what the network takes it for. */

import { showInk } from "../../web/page/canvas.js";
import { element } from "../../web/page/page.js";
import { Pad } from "./pad.js";

const SIDE = 28;

export class Drawing {
  #pad;
  #prediction = element("prediction", HTMLElement);
  #probabilities = element("probabilities", HTMLElement);
  #sees = element("sees", HTMLElement);
  #seen = element("seen", HTMLCanvasElement);

  /** @param {() => void} onChange  after every stroke */
  constructor(onChange) {
    this.#pad = new Pad(element("draw-pad", HTMLCanvasElement), onChange);
  }

  get strokes() {
    return this.#pad.strokes;
  }

  clear() {
    this.#pad.clear();
    this.#prediction.textContent = "Draw a digit from 0 to 9.";
    this.#probabilities.replaceChildren();
    this.#sees.hidden = true;
  }

  /** Show the image that the network sees, and its answer. @param {{ pixels: Uint8Array, probabilities: Float32Array }} answer */
  show({ pixels, probabilities }) {
    this.#sees.hidden = false;
    showInk(this.#seen, pixels, SIDE);
    const best = probabilities.indexOf(Math.max(...probabilities));
    this.#prediction.textContent = `Prediction: ${best}, ${Math.round(100 * probabilities[best])}%.`;
    this.#probabilities.replaceChildren(
      ...[...probabilities].map((probability, digit) => {
        const item = document.createElement("li");
        const bar = document.createElement("i");
        bar.style.height = `${100 * probability}%`;
        item.title = `${digit}: ${(100 * probability).toFixed(1)}%`;
        item.append(bar, String(digit));
        return item;
      }),
    );
  }
}
