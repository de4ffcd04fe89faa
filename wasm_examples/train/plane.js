/** The points in the plane, and the network's prediction at every position. */

import { clearCanvas, keyCursor, pointerPosition, redrawOnChange, showNote } from "../../web/page/canvas.js";

const RADIUS = 4;

/** @typedef {{ view: number, points: Float32Array, labels: Uint8Array, trained: Uint8Array }} Points  `points` is x, y, x, y, ...; `view` is the largest coordinate shown */
/** @typedef {{ classes: Uint8Array, confidence: Uint8Array }} Field  row by row, from the top left; `confidence` is 0 to 255 */

export class Plane {
  #canvas;
  #cursor;
  #image = new OffscreenCanvas(1, 1);
  /** @type {Points | null} */
  #points = null;
  /** @type {Field | null} */
  #field = null;

  /** @param {HTMLCanvasElement} canvas @param {(x: number, y: number) => void} onPick  called with the coordinates of a click */
  constructor(canvas, onPick) {
    this.#canvas = canvas;
    const pick = (/** @type {number} */ x, /** @type {number} */ y) => {
      const view = this.#points?.view ?? 1;
      onPick(view * (2 * x - 1), view * (1 - 2 * y));
    };
    canvas.addEventListener("pointerdown", (event) => pick(...pointerPosition(canvas, event)));
    this.#cursor = keyCursor(canvas, 0.02, {
      move: () => this.draw(),
      press: () => pick(this.#cursor.x, this.#cursor.y),
    });
    redrawOnChange(canvas, () => this.draw());
  }

  /** @param {Points} points */
  setPoints(points) {
    this.#points = points;
    this.draw();
  }

  /** @param {Field} field */
  setField(field) {
    this.#field = field;
    this.draw();
  }

  draw() {
    if (!this.#points) return showNote(this.#canvas, "No points yet.");
    const { width, height, context, color } = clearCanvas(this.#canvas);
    const colors = [0, 1, 2, 3].map((label) => color(`--class-${label}`));
    if (this.#field) {
      this.#paint(this.#field, colors);
      context.imageSmoothingQuality = "high";
      context.drawImage(this.#image, 0, 0, width, height);
    }
    const { view, points, labels, trained } = this.#points;
    labels.forEach((label, i) => {
      const x = ((points[2 * i] / view + 1) / 2) * width;
      const y = ((1 - points[2 * i + 1] / view) / 2) * height;
      context.beginPath();
      addMarker(context, label, x, y);
      context.lineWidth = 1.5;
      context.fillStyle = trained[i] ? colors[label] : color("--card");
      context.strokeStyle = trained[i] ? color("--card") : colors[label];
      context.fill();
      context.stroke();
    });
    if (this.#cursor.shown) {
      context.strokeStyle = color("--ink");
      context.lineWidth = 2;
      const [x, y] = [this.#cursor.x * width, this.#cursor.y * height];
      context.strokeRect(x - 7, y - 7, 14, 14);
    }
  }

  /** Paint each position in the colour of its class, more opaque with higher confidence. @param {Field} field @param {string[]} colors */
  #paint({ classes, confidence }, colors) {
    const side = Math.sqrt(classes.length);
    const image = new ImageData(side, side);
    const rgb = colors.map(components);
    classes.forEach((label, i) => image.data.set([...rgb[label], 20 + 0.55 * confidence[i]], 4 * i));
    this.#image = new OffscreenCanvas(side, side);
    /** @type {OffscreenCanvasRenderingContext2D} */ (this.#image.getContext("2d")).putImageData(image, 0, 0);
  }
}

/** Add the marker of a class to the path. Classes differ in shape too, for users who cannot tell the colours apart. @param {CanvasRenderingContext2D} context @param {number} label @param {number} x @param {number} y */
function addMarker(context, label, x, y) {
  const r = RADIUS;
  if (label === 0) context.arc(x, y, r, 0, 2 * Math.PI);
  else if (label === 1) context.rect(x - r + 0.5, y - r + 0.5, 2 * r - 1, 2 * r - 1);
  else {
    const corners = label === 2 ? [[0, -1.2], [1.15, 0.9], [-1.15, 0.9]] : [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]];
    for (const [dx, dy] of corners) context.lineTo(x + r * dx, y + r * dy);
    context.closePath();
  }
}

/** The red, green and blue of "#rrggbb". @param {string} color */
export function components(color) {
  const number = Number.parseInt(color.trim().slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}
