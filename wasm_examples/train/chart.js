/** Draw lines over the number of steps, with axes. */

import { clearCanvas } from "../../web/page/canvas.js";

// More evaluations than this are thinned.
const MAX_POINTS = 400;
const MARGIN = { left: 46, right: 12, top: 10, bottom: 24 };

/**
 * `color` names a property of CSS.
 * @typedef {{ steps: number[], values: number[], color: string, width: number }} Line
 * @typedef {{ steps: number, low: number, high: number, isLogarithmic?: boolean, format?: (tick: number) => string }} Axes  `steps` is the last step
 */

/** Values at some steps. */
export class Series {
  /** @type {number[]} */
  steps = [];
  /** @type {number[]} */
  values = [];

  /** @param {number} step @param {number} value */
  add(step, value) {
    this.steps.push(step);
    this.values.push(value);
    if (this.steps.length <= MAX_POINTS) return;
    for (const name of /** @type {const} */ (["steps", "values"])) this[name] = this[name].filter((_, i) => i % 2 === 0);
  }
}

/** @param {HTMLCanvasElement} canvas @param {Axes} axes @param {Line[]} lines */
export function drawChart(canvas, { steps, low, high, isLogarithmic = false, format = short }, lines) {
  const { width, height, context, color } = clearCanvas(canvas);
  const plot = { x: MARGIN.left, y: MARGIN.top, w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
  const last = Math.max(steps, 10);
  const transform = isLogarithmic ? Math.log : (/** @type {number} */ value) => value;
  const x = (/** @type {number} */ step) => plot.x + (step / last) * plot.w;
  const y = (/** @type {number} */ value) => {
    const share = (transform(Math.min(Math.max(value, low), high)) - transform(low)) / (transform(high) - transform(low));
    return plot.y + (1 - share) * plot.h;
  };

  context.font = `12px ${color("--sans")}`;
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const tick of isLogarithmic ? decades(low, high) : ticks(low, high, 4)) {
    context.strokeStyle = color("--line");
    context.beginPath();
    context.moveTo(plot.x, y(tick));
    context.lineTo(plot.x + plot.w, y(tick));
    context.stroke();
    context.fillStyle = color("--muted");
    context.fillText(format(tick), plot.x - 7, y(tick));
  }
  context.textBaseline = "alphabetic";
  for (const tick of ticks(0, last, width < 300 ? 2 : 4)) {
    context.textAlign = tick === 0 ? "left" : x(tick) > width - 40 ? "right" : "center";
    context.fillText(tick.toLocaleString("en"), x(tick), height - 6);
  }

  context.lineJoin = "round";
  for (const line of lines) {
    context.strokeStyle = color(line.color);
    context.lineWidth = line.width;
    context.beginPath();
    line.steps.forEach((step, i) => context.lineTo(x(step), y(line.values[i])));
    context.stroke();
  }
}

/** @param {number} tick */
function short(tick) {
  return tick < 1e4 ? String(Number(tick.toPrecision(3))) : tick.toExponential(0);
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
