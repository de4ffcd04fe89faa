/** A pad to draw one digit on, with a pointer, a finger or the arrow keys. */

import { begin, keyCursor, placeOn, redrawn } from "../../web/canvas.js";

/** @typedef {[number, number][]} Stroke  corners, each way from 0 to 1 */

export class Pad {
  #canvas;
  #cursor;
  #onChange;
  /** @type {Stroke[]} */
  strokes = [];
  /** @type {Stroke | null}  being drawn */
  #open = null;

  /** @param {HTMLCanvasElement} canvas @param {() => void} onChange  after every stroke */
  constructor(canvas, onChange) {
    this.#canvas = canvas;
    this.#onChange = onChange;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.#begin(placeOn(canvas, event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.#open || !canvas.hasPointerCapture(event.pointerId)) return;
      for (const between of event.getCoalescedEvents?.() ?? [event]) this.#open.push(placeOn(canvas, between));
      this.draw();
    });
    for (const type of ["pointerup", "pointercancel"]) canvas.addEventListener(type, () => this.#end());
    this.#cursor = keyCursor(canvas, 0.04, {
      move: () => {
        if (this.#cursor.shown) this.#open?.push([this.#cursor.x, this.#cursor.y]);
        else this.#end();
        this.draw();
      },
      press: () => (this.#open ? this.#end() : this.#begin([this.#cursor.x, this.#cursor.y])),
    });
    redrawn(canvas, () => this.draw());
  }

  clear() {
    this.strokes = [];
    this.#open = null;
    this.draw();
  }

  /** @param {[number, number]} place */
  #begin(place) {
    this.#open = [place];
    this.strokes.push(this.#open);
    this.draw();
  }

  #end() {
    if (!this.#open) return;
    this.#open = null;
    this.draw();
    this.#onChange();
  }

  draw() {
    const { width, height, context, color } = begin(this.#canvas);
    context.strokeStyle = color("--ink");
    context.lineWidth = width / 14;
    context.lineCap = context.lineJoin = "round";
    for (const stroke of this.strokes) {
      context.beginPath();
      for (const [x, y] of [stroke[0], ...stroke]) context.lineTo(x * width, y * height);
      context.stroke();
    }
    if (!this.#cursor.shown) return;
    context.strokeStyle = color("--accent");
    context.lineWidth = 2;
    context.beginPath();
    context.arc(this.#cursor.x * width, this.#cursor.y * height, width / 24, 0, 2 * Math.PI);
    context.stroke();
  }
}
