/** A picture of training: a network with one hidden layer learns two moons, for the card of the page that trains networks. */

import { clearCanvas } from "../page/canvas.js";

const HIDDEN = 12;
const POINTS = 60; // of each class
const FRAMES = 200;
const STEPS_A_FRAME = 8;
const RATE = 0.4;
const FIELD = { width: 60, height: 30 };
const [X_RANGE, Y_RANGE] = [3.6, 2.1];

export class TinyTraining {
  #random = mulberry(7);
  #points = moons(this.#random);
  // Each row: the weights of x, of y and of 1, and the unit's weight in the output.
  #units = Array.from({ length: HIDDEN }, () => [0, 0, 0, 0].map(() => 2 * this.#random() - 1));
  #bias = 0;
  #frame = 0;

  get isDone() {
    return this.#frame >= FRAMES;
  }

  /** Train for one frame. */
  advance() {
    for (let i = 0; i < STEPS_A_FRAME; i++) this.#step();
    this.#frame += 1;
  }

  /** One step of gradient descent on the cross-entropy of all points. */
  #step() {
    const gradient = this.#units.map(() => [0, 0, 0, 0]);
    let biasGradient = 0;
    for (const { x, y, label } of this.#points) {
      const hidden = this.#units.map(([a, b, c]) => Math.tanh(a * x + b * y + c));
      const error = (this.#output(hidden) - label) / this.#points.length;
      biasGradient += error;
      hidden.forEach((h, i) => {
        const inner = error * this.#units[i][3] * (1 - h * h);
        gradient[i][0] += inner * x;
        gradient[i][1] += inner * y;
        gradient[i][2] += inner;
        gradient[i][3] += error * h;
      });
    }
    this.#bias -= RATE * biasGradient;
    this.#units.forEach((unit, i) => unit.forEach((_, j) => (unit[j] -= RATE * gradient[i][j])));
  }

  /** @param {number[]} hidden */
  #output(hidden) {
    const sum = hidden.reduce((total, h, i) => total + h * this.#units[i][3], this.#bias);
    return 1 / (1 + Math.exp(-sum));
  }

  /** @param {number} x @param {number} y */
  #predict(x, y) {
    return this.#output(this.#units.map(([a, b, c]) => Math.tanh(a * x + b * y + c)));
  }

  /** Draw the predicted class at each position, and the points. @param {HTMLCanvasElement} canvas */
  draw(canvas) {
    const { width, height, context, color } = clearCanvas(canvas);
    if (!width) return;
    const classes = [color("--second"), color("--accent")];
    const [columns, rows] = [FIELD.width, FIELD.height];
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const p = this.#predict(((column + 0.5) / columns - 0.5) * X_RANGE, (0.5 - (row + 0.5) / rows) * Y_RANGE);
        context.fillStyle = classes[p > 0.5 ? 1 : 0];
        context.globalAlpha = 0.08 + 0.5 * Math.abs(p - 0.5);
        const [left, top] = [Math.floor((column * width) / columns), Math.floor((row * height) / rows)];
        const [right, bottom] = [Math.floor(((column + 1) * width) / columns), Math.floor(((row + 1) * height) / rows)];
        context.fillRect(left, top, right - left, bottom - top);
      }
    }
    context.globalAlpha = 1;
    for (const { x, y, label } of this.#points) {
      context.fillStyle = classes[label];
      context.beginPath();
      context.arc((x / X_RANGE + 0.5) * width, (0.5 - y / Y_RANGE) * height, 4, 0, 2 * Math.PI);
      context.fill();
    }
  }
}

/** @param {() => number} random @returns {{ x: number, y: number, label: number }[]} */
function moons(random) {
  return Array.from({ length: 2 * POINTS }, (_, i) => {
    const label = i % 2;
    const angle = Math.PI * random();
    const noise = () => 0.2 * (random() + random() - 1);
    const [x, y] = label ? [Math.cos(angle) - 0.5, Math.sin(angle) - 0.2] : [0.5 - Math.cos(angle), 0.2 - Math.sin(angle)];
    return { x: x + noise(), y: y + noise(), label };
  });
}

/** Random numbers from 0 to 1 (Mulberry32): the same picture on every visit. @param {number} seed */
function mulberry(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
