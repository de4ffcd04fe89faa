/** A mel spectrogram that fills the canvas: time to the right, pitch upwards, louder is brighter. */

import { clearCanvas, redrawOnChange } from "../../web/page/canvas.js";

const FRAMES_PER_SECOND = 100;
const LABEL_HEIGHT = 18;
const LABEL_EVERY_PX = 90;

/** @typedef {{ start_s: number, frames: number, bins: number, pixels: Uint8Array }} Window  `pixels` row by row, the highest pitch first */

export class Spectrogram {
  #canvas;
  #box;
  /** @type {Window | null} */
  #window = null;
  /** @type {[number, number] | null}  seconds */
  #marked = null;

  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} box  around it, hidden while there is nothing to show */
  constructor(canvas, box) {
    this.#canvas = canvas;
    this.#box = box;
    redrawOnChange(canvas, () => this.draw());
  }

  /** @param {Window} window */
  show(window) {
    this.#window = window;
    this.#box.hidden = false;
    this.draw();
  }

  clear() {
    this.#window = this.#marked = null;
    this.#box.hidden = true;
  }

  /** Draw a frame around a range of time. @param {number} start_s @param {number} end_s */
  mark(start_s, end_s) {
    this.#marked = [start_s, end_s];
    this.draw();
  }

  draw() {
    const { width, height, context, color } = clearCanvas(this.#canvas);
    if (!this.#window || !width) return;
    const { start_s, frames } = this.#window;
    const seconds = frames / FRAMES_PER_SECOND;
    this.#canvas.dataset.seconds = seconds.toFixed(2);
    const imageHeight = height - LABEL_HEIGHT;
    context.fillStyle = color("--sunken");
    context.fillRect(0, 0, width, imageHeight);
    context.drawImage(image(this.#window, color("--accent")), 0, 0, width, imageHeight);
    if (this.#marked) {
      const [from, to] = this.#marked.map((time) => ((time - start_s) / seconds) * width);
      context.strokeStyle = color("--ink");
      context.lineWidth = 2;
      context.strokeRect(Math.max(1, from), 1, Math.min(width - 1, to) - Math.max(1, from), imageHeight - 2);
    }
    context.fillStyle = color("--muted");
    context.font = `500 11px ${color("--mono")}`;
    context.textBaseline = "bottom";
    const step = Math.max(1, Math.ceil((seconds * LABEL_EVERY_PX) / width));
    for (let time = Math.ceil(start_s / step) * step; time < start_s + seconds; time += step) {
      const text = clock(time);
      const x = ((time - start_s) / seconds) * width;
      context.fillText(text, Math.min(x, width - context.measureText(text).width), height);
    }
  }
}

/** An image of the pixels, as the opacity of one colour. @param {Window} window @param {string} color */
function image({ frames, bins, pixels }, color) {
  const picture = new OffscreenCanvas(frames, bins);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (picture.getContext("2d"));
  const data = new ImageData(frames, bins);
  pixels.forEach((value, i) => (data.data[4 * i + 3] = value));
  context.putImageData(data, 0, 0);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = color;
  context.fillRect(0, 0, frames, bins);
  return picture;
}

/** Format a time as 1:02 or 1:01:02. @param {number} seconds */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}
