/** The waveform of a sound: while it is recorded, its last seconds; then all of it, with the part that has been transcribed. */

import { clearCanvas, pointerPosition, redrawOnChange } from "../../web/page/canvas.js";

const PEAKS_PER_S = 20;
const LIVE_S = 10; // what a recording shows
const BAR_PX = 3;
const GAP_PX = 1;
const LEAST_PX = 1.5; // the height of silence
const SLOW_MS = 1000; // between two pictures of a recording for users who prefer less motion

export class Waveform {
  #canvas;
  #player;
  /** @type {number[]}  from 0 to 1 */
  #peaks = [];
  #samples = 0; // those that `#peaks` has, of a file
  #isLive = false;
  #done_s = 0;
  /** @type {[number, number] | null}  seconds */
  #marked = null;
  #undo = () => {}; // shows what was there before the recording
  #frame = 0;
  #drawnAt = -Infinity;

  /** @param {HTMLCanvasElement} canvas @param {HTMLAudioElement} player  plays from where the canvas is clicked */
  constructor(canvas, player) {
    this.#canvas = canvas;
    this.#player = player;
    redrawOnChange(canvas, () => this.#draw());
    for (const event of ["timeupdate", "seeked", "play", "pause"]) player.addEventListener(event, () => this.#drawSoon());
    canvas.addEventListener("click", (event) => this.#seek(/** @type {PointerEvent} */ (event)));
  }

  /** The duration of what it shows. */
  get seconds() {
    return this.#peaks.length / PEAKS_PER_S;
  }

  /** Start again, with no sound. */
  begin() {
    this.#peaks = [];
    this.#samples = this.#done_s = 0;
    this.#marked = null;
    this.#drawSoon();
  }

  /** Start again, with a recording whose levels follow. */
  beginLive() {
    const before = { peaks: this.#peaks, samples: this.#samples, done_s: this.#done_s, marked: this.#marked };
    this.#undo = () => {
      this.#peaks = before.peaks;
      this.#samples = before.samples;
      this.#done_s = before.done_s;
      this.#marked = before.marked;
    };
    this.begin();
    this.#isLive = true;
  }

  /** Append the peak level of a recording since the last one. @param {number} level @param {number} seconds  the duration so far */
  addLevel(level, seconds) {
    while (this.#peaks.length < seconds * PEAKS_PER_S) this.#peaks.push(level);
    this.#drawSoon();
  }

  /** The recording has ended: show all of it, or what was there before. @param {boolean} isKept */
  endLive(isKept) {
    this.#isLive = false;
    if (!isKept) this.#undo();
    this.#drawSoon();
  }

  /** Append samples of a file. @param {Int16Array} samples @param {number} rate  the same in all calls */
  addSamples(samples, rate) {
    const perPeak = rate / PEAKS_PER_S;
    for (const sample of samples) {
      const bin = Math.floor(this.#samples++ / perPeak);
      const level = Math.abs(sample) / 32768;
      if (!(this.#peaks[bin] >= level)) this.#peaks[bin] = level;
    }
    this.#drawSoon();
  }

  /** Show how much has been transcribed. @param {number} seconds */
  advance(seconds) {
    this.#done_s = seconds;
    this.#drawSoon();
  }

  /** Mark a range of time. @param {number} start_s @param {number} end_s */
  mark(start_s, end_s) {
    this.#marked = [start_s, end_s];
    this.#drawSoon();
  }

  /** @param {PointerEvent} event */
  #seek(event) {
    if (this.#isLive || !this.seconds || !this.#player.src) return;
    this.#player.currentTime = pointerPosition(this.#canvas, event)[0] * this.seconds;
  }

  #drawSoon() {
    const isSlow = this.#isLive && matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (this.#frame || (isSlow && performance.now() - this.#drawnAt < SLOW_MS)) return;
    this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#drawnAt = performance.now();
    const [first, count] = this.#range();
    this.#canvas.hidden = count === 0; // when it appears, its new size draws it again
    const { width, height, context, color } = clearCanvas(this.#canvas);
    if (!count || !width) return;
    const x = (/** @type {number} */ seconds) => ((seconds * PEAKS_PER_S - first) / count) * width;
    if (this.#marked && !this.#isLive) {
      context.fillStyle = `color-mix(in srgb, ${color("--accent")} 22%, transparent)`;
      context.fillRect(x(this.#marked[0]), 0, Math.max(2, x(this.#marked[1]) - x(this.#marked[0])), height);
    }
    const done = this.#isLive ? Infinity : x(this.#done_s);
    const bars = Math.floor(width / (BAR_PX + GAP_PX));
    const [heard, unheard] = [color("--accent"), color("--edge")];
    for (let i = 0; i < bars; i++) {
      const left = (i * width) / bars;
      if (first + (i * count) / bars >= this.#peaks.length) break; // the recording has not come so far
      context.fillStyle = left < done ? heard : unheard;
      const tall = Math.max(LEAST_PX, this.#peak(first + (i * count) / bars, first + ((i + 1) * count) / bars) * height);
      context.fillRect(left, (height - tall) / 2, BAR_PX, tall);
    }
    if (!this.#isLive && this.#player.src && this.#player.currentTime > 0) {
      context.fillStyle = color("--ink");
      context.fillRect(Math.min(width - 2, x(this.#player.currentTime)), 0, 2, height);
    }
    this.#canvas.dataset.seconds = this.seconds.toFixed(1);
    this.#canvas.dataset.done = Math.min(this.seconds, this.#done_s).toFixed(1);
  }

  /** The first peak and the number of peaks to show. @returns {[number, number]} */
  #range() {
    const { length } = this.#peaks;
    if (!this.#isLive) return [0, length];
    const count = LIVE_S * PEAKS_PER_S;
    return [Math.max(0, length - count), count];
  }

  /** The highest peak in a range. @param {number} from @param {number} to */
  #peak(from, to) {
    let most = 0;
    for (let i = Math.floor(from); i < Math.max(Math.floor(from) + 1, to) && i < this.#peaks.length; i++) most = Math.max(most, this.#peaks[i]);
    return Math.min(1, most);
  }
}
