/**
 * The text of a recording while it is being made.
 *
 * Every STEP_S seconds the model hears everything that is not settled yet, so its last words may still change: text counts as
 * steady when two passes in a row agree on it. When the unsettled sound fills the model's window, the text up to a pause is
 * settled, and the next pass starts there. The transcription after the recording replaces this text.
 */

import { SAMPLE_RATE, samplesOf } from "../../web/sound/sound.js";

/** @import { Recorder } from "./recorder.js" */
/** @typedef {{ end: number, text: string }} Heard  `end` in seconds after the start of what was heard */
/** @typedef {{ steady: string, draft: string }} Shown */

const STEP_S = 2;
const MOST_WINDOWS = 3; // behind by more than this, the live text skips to the present
const MOST_WORDS = 200; // of the settled ones that are shown
const PAUSE_SAMPLES = SAMPLE_RATE / 10;

export class LiveText {
  #hear;
  #show;
  /** @type {string[]} */
  #settled = [];
  #start_s = 0; // of what is not settled
  /** @type {string[]}  the words of the last pass */
  #words = [];

  /**
   * @param {(samples: Int16Array, signal: AbortSignal) => Promise<Heard[]>} hear
   * @param {(text: Shown) => void} show
   */
  constructor(hear, show) {
    this.#hear = hear;
    this.#show = show;
  }

  /**
   * Hear the recording until the signal aborts.
   * @param {Recorder} recorder @param {() => number} window_s  of the model that is in memory; 0 if there is none @param {AbortSignal} signal
   */
  async run(recorder, window_s, signal) {
    let heard_s = this.#start_s;
    for (;;) {
      await recorder.reach(heard_s + STEP_S, signal);
      heard_s = recorder.seconds;
      const window = window_s();
      if (window) heard_s = await this.#pass(recorder, heard_s, window, signal);
    }
  }

  /** Hear what is not settled. @param {Recorder} recorder @param {number} now_s @param {number} window_s @param {AbortSignal} signal @returns {Promise<number>}  up to where it was heard */
  async #pass(recorder, now_s, window_s, signal) {
    if (now_s - this.#start_s > MOST_WINDOWS * window_s) {
      this.#settle([...this.#words, "…"], now_s - window_s);
    }
    const start_s = this.#start_s;
    const end_s = Math.min(now_s, start_s + window_s);
    let samples = await read(recorder.part(start_s, end_s), signal);
    const isFull = end_s - start_s > window_s - STEP_S;
    if (isFull) samples = samples.subarray(0, quietest(samples, samples.length - STEP_S * SAMPLE_RATE));
    const length_s = samples.length / SAMPLE_RATE;
    const segments = await this.#hear(samples, signal);
    signal.throwIfAborted();
    this.#update(segments, { length_s, isFull });
    return start_s + length_s;
  }

  /** @param {Heard[]} segments @param {{ length_s: number, isFull: boolean }} pass */
  #update(segments, { length_s, isFull }) {
    const words = segments.flatMap(wordsOf);
    const agreed = commonStart(words, this.#words);
    // A sentence that ended a while ago does not change any more.
    const ended = segments.slice(0, -1).filter(({ end }) => end < length_s - 2 * STEP_S);
    const [count, until_s] = isFull ? [words.length, length_s] : [ended.flatMap(wordsOf).length, ended.at(-1)?.end ?? 0];
    this.#settle(words.slice(0, count), this.#start_s + until_s);
    this.#words = words.slice(count);
    this.#tell(Math.max(0, agreed - count));
  }

  /** @param {string[]} words @param {number} until_s */
  #settle(words, until_s) {
    this.#settled = [...this.#settled, ...words].slice(-MOST_WORDS);
    this.#words = [];
    this.#start_s = until_s;
  }

  /** Show the text. @param {number} agreed  the number of unsettled words that are steady */
  #tell(agreed) {
    const steady = [...this.#settled, ...this.#words.slice(0, agreed)].join(" ");
    this.#show({ steady, draft: this.#words.slice(agreed).join(" ") });
  }
}

/** The samples of a file. @param {File} file @param {AbortSignal} signal */
async function read(file, signal) {
  const parts = [];
  for await (const { samples } of samplesOf(file, signal)) parts.push(samples);
  const joined = new Int16Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** The middle of the quietest tenth of a second from `first` on. @param {Int16Array} samples @param {number} first */
function quietest(samples, first) {
  let best = samples.length;
  let least = Infinity;
  for (let at = Math.max(PAUSE_SAMPLES, first); at + PAUSE_SAMPLES <= samples.length; at += PAUSE_SAMPLES / 2) {
    let sum = 0;
    for (let i = at; i < at + PAUSE_SAMPLES; i++) sum += Math.abs(samples[i]);
    if (sum < least) [least, best] = [sum, at + PAUSE_SAMPLES / 2];
  }
  return best;
}

/** @param {{ text: string }} segment */
function wordsOf({ text }) {
  return text.split(/\s+/).filter(Boolean);
}

/** The number of words at the start that are equal. @param {string[]} one @param {string[]} other */
function commonStart(one, other) {
  let count = 0;
  while (count < one.length && one[count] === other[count]) count++;
  return count;
}
