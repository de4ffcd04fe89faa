/** Plots of the loss at each step, and of the accuracy at each evaluation. */

import { redrawOnChange } from "../../web/page/canvas.js";
import { Series, drawChart } from "./chart.js";

// More steps than this are drawn as means over runs of steps.
const MAX_BUCKETS = 400;
// The weight of the previous value in the exponential moving average.
const SMOOTHING = 0.75;

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
  #test = new Series();
  #steps = 0;
  #isLogarithmic = false;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    redrawOnChange(canvas, () => this.draw());
  }

  clear() {
    this.#buckets = new Buckets();
    this.#test = new Series();
    this.#steps = 0;
    this.draw();
  }

  /** Set the scale of the loss axis. @param {boolean} isLogarithmic */
  scale(isLogarithmic) {
    this.#isLogarithmic = isLogarithmic;
    this.draw();
  }

  /** Add the losses of the batches since the last call; `draw` shows them. @param {Iterable<number>} losses */
  add(losses) {
    for (const loss of losses) {
      this.#buckets.add(loss);
      this.#steps += 1;
    }
  }

  /** Add the loss of the test set at the current step. @param {number} loss */
  addTestLoss(loss) {
    this.#test.add(this.#steps, loss);
  }

  draw() {
    const { means, size } = this.#buckets;
    const smooth = smoothed(means);
    const [low, high] = this.#range([...smooth, ...this.#test.values]);
    const steps = means.map((_, i) => (i + 1) * size);
    drawChart(this.#canvas, { steps: this.#steps, low, high, isLogarithmic: this.#isLogarithmic }, [
      { steps, values: means, color: "--loss-faint", width: 1 },
      { steps, values: smooth, color: "--loss", width: 2 },
      { ...this.#test, color: "--test-loss", width: 2 },
    ]);
  }

  /** The range of the loss axis. @param {number[]} values @returns {[number, number]} */
  #range(values) {
    if (!values.length) return this.#isLogarithmic ? [0.01, 1] : [0, 1];
    const high = Math.max(...values) * 1.08 || 1;
    return this.#isLogarithmic ? [Math.min(Math.max(Math.min(...values), 1e-6), high / 10), high] : [0, high];
  }
}

export class AccuracyCurve {
  #canvas;
  #training = new Series();
  #test = new Series();
  #steps = 0;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    redrawOnChange(canvas, () => this.draw());
  }

  clear() {
    this.#training = new Series();
    this.#test = new Series();
    this.#steps = 0;
    this.draw();
  }

  /** Add the accuracies, from 0 to 1, after this number of steps. @param {number} step @param {{ training: number, test: number }} accuracy */
  add(step, { training, test }) {
    this.#steps = step;
    this.#training.add(step, training);
    this.#test.add(step, test);
  }

  draw() {
    const values = [...this.#training.values, ...this.#test.values];
    // The axis starts at a round number, so that it does not move with every evaluation.
    const low = values.length ? Math.min(0.9, Math.floor(5 * Math.min(...values)) / 5) : 0;
    const format = (/** @type {number} */ tick) => `${Math.round(100 * tick)}%`;
    drawChart(this.#canvas, { steps: this.#steps, low, high: 1.005, format }, [
      { ...this.#training, color: "--loss", width: 2 },
      { ...this.#test, color: "--test-loss", width: 2 },
    ]);
  }
}

/** The exponential moving average. @param {number[]} values */
function smoothed(values) {
  let average = values[0];
  return values.map((value) => (average = SMOOTHING * average + (1 - SMOOTHING) * value));
}
