/** A picture of the network: its layers from left to right, each neuron as a small plane of its values, and the weights as lines. */

import { clearCanvas, redrawOnChange, showNote } from "../../web/page/canvas.js";
import { components } from "./plane.js";

const MARGIN = 12;
const GAP = 8; // between the planes of a layer
const LARGEST = 52;
const SHARE = 0.52; // of a layer's column that its planes take
const MORE = 20; // the height of "+ 8 more"
const WORDS_MS = 1000; // between two descriptions in words

/**
 * As inspection.py describes it.
 * @typedef {{ side: number, most: number, sizes: number[], planes: Int8Array, weights: Float32Array, biases: Float32Array }} Network
 */

export class Diagram {
  #canvas;
  #words;
  #wordsAt = -Infinity;
  /** @type {Network | null} */
  #network = null;

  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} words  a list in a <details>, which describes the network */
  constructor(canvas, words) {
    this.#canvas = canvas;
    this.#words = words;
    redrawOnChange(canvas, () => this.draw());
    words.closest("details")?.addEventListener("toggle", () => this.#describe(true));
  }

  /** @param {Network} network @param {boolean} isFinal  whether no other one follows soon */
  set(network, isFinal) {
    this.#network = network;
    this.draw();
    this.#describe(isFinal);
  }

  draw() {
    if (!this.#network) return showNote(this.#canvas, "No network yet.");
    const { sizes, most } = this.#network;
    const column = (this.#canvas.clientWidth - 2 * MARGIN) / sizes.length;
    const plane = Math.max(10, Math.min(LARGEST, SHARE * column));
    const rows = Math.min(most, Math.max(...sizes));
    this.#canvas.style.height = `${2 * MARGIN + rows * (plane + GAP) + MORE}px`;
    const { width, height, context, color } = clearCanvas(this.#canvas);
    if (!width) return;
    const middle = (height - MORE) / 2;
    const places = sizes.map((size, layer) => {
      const shown = Math.min(most, size);
      const top = middle - (shown * (plane + GAP) - GAP) / 2;
      return Array.from({ length: shown }, (_, i) => ({ x: MARGIN + (layer + 0.5) * column, y: top + i * (plane + GAP) + plane / 2 }));
    });
    this.#drawWeights(context, places, plane, [color("--class-0"), color("--class-1")]);
    this.#drawPlanes(context, places, plane, color);
    context.fillStyle = color("--muted");
    context.font = `12px ${color("--sans")}`;
    context.textAlign = "center";
    sizes.forEach((size, layer) => {
      const { x } = places[layer][0];
      const y = (places[layer].at(-1)?.y ?? 0) + plane / 2 + 15;
      if (layer === 0) ["x", "y"].forEach((name, i) => context.fillText(name, Math.max(6, x - plane / 2 - 8), places[0][i].y + 4));
      else if (size > most) context.fillText(`+ ${size - most}${column > 60 ? " more" : ""}`, x, y);
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {{ x: number, y: number }[][]} places @param {number} plane @param {string[]} colors */
  #drawWeights(context, places, plane, colors) {
    const { weights } = /** @type {Network} */ (this.#network);
    let at = 0;
    for (let layer = 1; layer < places.length; layer++) {
      const [from, to] = [places[layer - 1], places[layer]];
      const these = weights.subarray(at, (at += from.length * to.length));
      const largest = these.reduce((most, weight) => Math.max(most, Math.abs(weight)), 1e-6);
      to.forEach((end, i) =>
        from.forEach((start, j) => {
          const weight = these[i * from.length + j];
          const strength = Math.abs(weight) / largest;
          if (!(strength > 0.02)) return;
          const [left, right] = [start.x + plane / 2, end.x - plane / 2];
          const bend = (right - left) / 2;
          context.strokeStyle = colors[weight > 0 ? 1 : 0];
          context.globalAlpha = 0.2 + 0.7 * strength;
          context.lineWidth = 0.4 + 3.6 * strength;
          context.beginPath();
          context.moveTo(left, start.y);
          context.bezierCurveTo(left + bend, start.y, right - bend, end.y, right, end.y);
          context.stroke();
        }),
      );
    }
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {{ x: number, y: number }[][]} places @param {number} plane @param {(name: string) => string} color */
  #drawPlanes(context, places, plane, color) {
    const { planes, side } = /** @type {Network} */ (this.#network);
    const [negative, positive] = [components(color("--class-0")), components(color("--class-1"))];
    const picture = new OffscreenCanvas(side, side);
    const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (picture.getContext("2d"));
    const image = new ImageData(side, side);
    let at = 0;
    places.forEach((layer, i) =>
      layer.forEach(({ x, y }, neuron) => {
        for (let k = 0; k < side * side; k++) {
          const value = planes[at++];
          const [red, green, blue] = value < 0 ? negative : positive;
          image.data.set([red, green, blue, 2 * Math.abs(value)], 4 * k);
        }
        pen.putImageData(image, 0, 0);
        const [left, top] = [x - plane / 2, y - plane / 2];
        context.fillStyle = color("--ground");
        context.fillRect(left, top, plane, plane);
        context.drawImage(picture, left, top, plane, plane);
        // The outputs have the colours of their classes.
        context.strokeStyle = i === places.length - 1 ? color(`--class-${neuron}`) : color("--edge");
        context.lineWidth = i === places.length - 1 ? 2.5 : 1;
        context.strokeRect(left, top, plane, plane);
      }),
    );
  }

  /** Describe the network in words, for those who cannot see the picture. @param {boolean} isFinal */
  #describe(isFinal) {
    const isOpen = this.#words.closest("details")?.open;
    if (!this.#network || !isOpen || (!isFinal && performance.now() - this.#wordsAt < WORDS_MS)) return;
    this.#wordsAt = performance.now();
    const items = inWords(this.#network).map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    });
    this.#words.replaceChildren(...items);
  }
}

/** A sentence about each layer. @param {Network} network */
function inWords({ sizes, most, weights, biases }) {
  const sentences = ["The inputs are x and y, the position of a point."];
  let [at, biasAt] = [0, 0];
  for (let layer = 1; layer < sizes.length; layer++) {
    const [from, to] = [Math.min(most, sizes[layer - 1]), Math.min(most, sizes[layer])];
    const these = weights.subarray(at, (at += from * to));
    biasAt += to;
    const size = sizes[layer];
    const what = layer === sizes.length - 1 ? `The output has ${size} neurons, one for each class` : `Hidden layer ${layer} has ${size} ${size === 1 ? "neuron" : "neurons"}`;
    const drawn = size > most ? `, of which ${most} are drawn` : "";
    if (these.some((weight) => !Number.isFinite(weight))) {
      sentences.push(`${what}${drawn}. Its weights are not numbers.`);
      continue;
    }
    const range = `Its weights are from ${Math.min(...these).toFixed(2)} to ${Math.max(...these).toFixed(2)}`;
    const strongest = these.reduce((best, weight, i) => (Math.abs(weight) > Math.abs(these[best]) ? i : best), 0);
    const source = layer === 1 ? "xy"[strongest % from] : `neuron ${(strongest % from) + 1}`;
    const shifts = biases.subarray(biasAt - to, biasAt);
    const bias = `its biases from ${Math.min(...shifts).toFixed(2)} to ${Math.max(...shifts).toFixed(2)}`;
    sentences.push(`${what}${drawn}. ${range}, ${bias}; the strongest weight leads from ${source} to neuron ${Math.floor(strongest / from) + 1}.`);
  }
  return sentences;
}
