/** A pad to draw a digit on, with a pointer, a finger or the arrow keys. */

import { clearCanvas, keyCursor, pointerPosition, redrawOnChange } from "../../web/page/canvas.js";

/** @typedef {[number, number][]} Stroke  points, x and y from 0 to 1 */

export class Pad {
  #canvas;
  #cursor;
  #onChange;
  /** @type {Stroke[]} */
  strokes = [];
  /** @type {Stroke | null}  the stroke that is being drawn */
  #current = null;

  /** @param {HTMLCanvasElement} canvas @param {() => void} onChange  after every stroke */
  constructor(canvas, onChange) {
    this.#canvas = canvas;
    this.#onChange = onChange;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.#begin(pointerPosition(canvas, event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.#current || !canvas.hasPointerCapture(event.pointerId)) return;
      for (const part of event.getCoalescedEvents?.() ?? [event]) this.#current.push(pointerPosition(canvas, part));
      this.draw();
    });
    for (const type of ["pointerup", "pointercancel"]) canvas.addEventListener(type, () => this.#end());
    this.#cursor = keyCursor(canvas, 0.04, {
      move: () => {
        if (this.#cursor.shown) this.#current?.push([this.#cursor.x, this.#cursor.y]);
        else this.#end();
        this.draw();
      },
      press: () => (this.#current ? this.#end() : this.#begin([this.#cursor.x, this.#cursor.y])),
    });
    redrawOnChange(canvas, () => this.draw());
  }

  clear() {
    this.strokes = [];
    this.#current = null;
    this.draw();
  }

  /** @param {[number, number]} point */
  #begin(point) {
    this.#current = [point];
    this.strokes.push(this.#current);
    this.draw();
  }

  #end() {
    if (!this.#current) return;
    this.#current = null;
    this.draw();
    this.#onChange();
  }

  draw() {
    const { width, height, context, color } = clearCanvas(this.#canvas);
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
