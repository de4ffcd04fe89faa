/** A plot of the loss at each step. */

import { clearCanvas, redrawOnChange } from "../../web/canvas.js";

// More steps than this are drawn as means over runs of steps.
const MAX_BUCKETS = 400;
// The weight of the previous value in the exponential moving average.
const SMOOTHING = 0.75;
const MARGIN = { left: 46, right: 12, top: 10, bottom: 24 };

/** Means over runs of steps. When there are MAX_BUCKETS means, the length of a run doubles. */
class Buckets {
  /** @type {number[]} */
  means = [];
  size = 1;
  #sum = 0;
  #count = 0;

  /** @param {number} value */
  add(value) {
    this.#sum += value;
    if (++this.#count < this.size) return;
    this.means.push(this.#sum / this.#count);
    this.#sum = this.#count = 0;
    if (this.means.length < MAX_BUCKETS) return;
    this.means = this.means.filter((_, i) => i % 2 === 0).map((mean, i) => (mean + this.means[2 * i + 1]) / 2);
    this.size *= 2;
  }
}

export class LossCurve {
  #canvas;
  #buckets = new Buckets();
  /** @type {{ step: number, loss: number }[]} */
  #testLosses = [];
  #steps = 0;
  #logarithmic = false;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    redrawOnChange(canvas, () => this.draw());
  }

  clear() {
    this.#buckets = new Buckets();
    this.#testLosses = [];
    this.#steps = 0;
    this.draw();
  }

  /** Set the scale of the loss axis. @param {boolean} logarithmic */
  scale(logarithmic) {
    this.#logarithmic = logarithmic;
    this.draw();
  }

  /** Add the losses of the batches since the last call; `draw` shows them. @param {Float32Array} losses */
  add(losses) {
    for (const loss of losses) this.#buckets.add(loss);
    this.#steps += losses.length;
  }

  /** Add the loss of the test set at the current step. @param {number} loss */
  addTestLoss(loss) {
    this.#testLosses.push({ step: this.#steps, loss });
    if (this.#testLosses.length > MAX_BUCKETS) this.#testLosses = this.#testLosses.filter((_, i) => i % 2 === 0);
  }

  draw() {
    const { width, height, context, color } = clearCanvas(this.#canvas);
    const plot = { x: MARGIN.left, y: MARGIN.top, w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
    const smooth = smoothed(this.#buckets.means);
    const [low, high] = this.#range([...smooth, ...this.#testLosses.map(({ loss }) => loss)]);
    const last = Math.max(this.#steps, 10);
    const transform = this.#logarithmic ? Math.log : (/** @type {number} */ value) => value;
    const x = (/** @type {number} */ step) => plot.x + (step / last) * plot.w;
    const y = (/** @type {number} */ loss) => {
      const share = (transform(Math.min(Math.max(loss, low), high)) - transform(low)) / (transform(high) - transform(low));
      return plot.y + (1 - share) * plot.h;
    };

    context.font = `12px ${color("--sans")}`;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of this.#logarithmic ? decades(low, high) : ticks(low, high, 4)) {
      context.strokeStyle = color("--line");
      context.beginPath();
      context.moveTo(plot.x, y(tick));
      context.lineTo(plot.x + plot.w, y(tick));
      context.stroke();
      context.fillStyle = color("--muted");
      context.fillText(tick < 1e4 ? String(Number(tick.toPrecision(3))) : tick.toExponential(0), plot.x - 7, y(tick));
    }
    context.textBaseline = "alphabetic";
    for (const tick of ticks(0, last, 4)) {
      context.textAlign = tick === 0 ? "left" : x(tick) > width - 40 ? "right" : "center";
      context.fillText(tick.toLocaleString("en"), x(tick), height - 6);
    }

    const { means, size } = this.#buckets;
    const xs = means.map((_, i) => x((i + 1) * size));
    line(context, xs, means.map(y), color("--loss-faint"), 1);
    line(context, xs, smooth.map(y), color("--loss"), 2);
    line(context, this.#testLosses.map(({ step }) => x(step)), this.#testLosses.map(({ loss }) => y(loss)), color("--test-loss"), 2);
  }

  /** The range of the loss axis. @param {number[]} values @returns {[number, number]} */
  #range(values) {
    if (!values.length) return this.#logarithmic ? [0.01, 1] : [0, 1];
    const high = Math.max(...values) * 1.08 || 1;
    return this.#logarithmic ? [Math.min(Math.max(Math.min(...values), 1e-6), high / 10), high] : [0, high];
  }
}

/** The exponential moving average. @param {number[]} values */
function smoothed(values) {
  let average = values[0];
  return values.map((value) => (average = SMOOTHING * average + (1 - SMOOTHING) * value));
}

/** About `count` round numbers from `low` to `high`. @param {number} low @param {number} high @param {number} count */
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((round) => round * power >= rough) ?? 10);
  const values = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high * (1 + 1e-9); tick += step) values.push(tick);
  return values;
}

/** The powers of ten from `low` to `high`. @param {number} low @param {number} high */
function decades(low, high) {
  const values = [];
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power++) values.push(10 ** power);
  return values;
}

/** @param {CanvasRenderingContext2D} context @param {number[]} xs @param {number[]} ys @param {string} style @param {number} width */
function line(context, xs, ys, style, width) {
  context.strokeStyle = style;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.beginPath();
  xs.forEach((x, i) => context.lineTo(x, ys[i]));
  context.stroke();
}
