/**
 * Files as samples that a model hears: 16 kHz, one channel, 16-bit integers.
 *
 * The browser decodes them. It can do so only with whole files, and an hour of music takes more than a gigabyte; so WAV
 * and MP3, which can be cut anywhere, are decoded part by part. Whatever the file, no more of it is in memory than a part,
 * or for other formats than MAX_WHOLE_BYTES, and each step can be stopped.
 */

import { chunksOf } from "../../web/download.js";
import { aborted } from "../../web/page.js";
import { Problem } from "../../web/protocol.js";
import { stretchesOf } from "./mp3.js";
import { layoutOf, wavOf } from "./wav.js";

export const SAMPLE_RATE = 16000;
const PART_S = 20;
// Heard before and behind a part, and then left out: resampling at an edge knows only one side of it.
const MARGIN_S = 1;
const MAX_PART_BYTES = 2 ** 26;
const MAX_S = 12 * 3600; // of samples, which then take 1.4 GB of Python's memory
const MAX_WHOLE_S = 2 * 3600;
const MAX_WHOLE_BYTES = 2 ** 30;
const RATES = [3000, 768000]; // that browsers decode
const CONVERT = "Or make a WAV file of it: ffmpeg -i IN -ac 1 -ar 16000 OUT.wav";
const NONE = new Int16Array();

/** @import { Stretch } from "./mp3.js" */
/** @import { Layout } from "./wav.js" */
/**
 * Samples, and how much of the file has been read, from 0 to 1; null while the browser decodes all of it at once, and does
 * not tell how far it is.
 * @typedef {{ samples: Int16Array, share: number | null }} Heard
 */
/**
 * What is decoded at once. Of its samples, `length` count, behind the first `skip`, or at its end. `share` of the file is
 * then read.
 * @typedef {{ bytes: Blob, length: number, skip: number | "rest", share: number }} Part
 */

/**
 * The samples of a file, part by part.
 * @param {File} file
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Heard, void>}
 * @throws {Problem} it is no sound that this browser knows, holds none, or is too long
 */
export async function* samplesOf(file, signal) {
  if (!file.size) throw new Problem("NoSound", `${file.name} is empty.`, "Choose another file.");
  try {
    const parts = (await partsOfWav(file)) ?? (await partsOfMp3(file, signal));
    let count = 0;
    for await (const heard of parts ? joined(parts, file, signal) : whole(file, signal)) {
      signal.throwIfAborted();
      count += heard.samples.length;
      if (count > MAX_S * SAMPLE_RATE) throw tooLong(file, MAX_S);
      yield heard;
    }
    if (!count) throw new Problem("NoSound", `${file.name} holds no sound.`, "Choose another file.");
  } catch (error) {
    if (error instanceof Problem || signal.aborted) throw error;
    throw new Problem("ReadError", `${file.name} could not be read: ${error instanceof Error ? error.message : error}`, "Choose it again; it may have changed since.");
  }
}

/** @param {AsyncIterable<Part> | Iterable<Part>} parts @param {File} file @param {AbortSignal} signal @returns {AsyncGenerator<Heard, void>} */
async function* joined(parts, file, signal) {
  let count = 0;
  for await (const { bytes, length, skip, share } of parts) {
    const decoded = await decode(await bytes.arrayBuffer(), file.name, count / SAMPLE_RATE, signal);
    const end = skip === "rest" ? decoded.length : Math.min(decoded.length, skip + length);
    const start = skip === "rest" ? Math.max(0, end - length) : Math.min(skip, end);
    const samples = toIntegers(decoded, start, end);
    count += length;
    if (skip !== "rest" || samples.length === length) yield { samples, share };
    else {
      const padded = new Int16Array(length); // what could not be decoded is silence, so that times stay right
      padded.set(samples, padded.length - samples.length);
      yield { samples: padded, share };
    }
  }
}

/** @param {File} file @returns {Promise<Iterable<Part> | null>} */
async function partsOfWav(file) {
  const layout = await layoutOf(file);
  if (!layout) return null;
  const { rate, frameBytes, start, end } = layout;
  const part_s = Math.min(PART_S, Math.floor(MAX_PART_BYTES / (rate * frameBytes)) - 2 * MARGIN_S);
  if (rate < RATES[0] || rate > RATES[1] || part_s < 1) throw noSound(file.name, 0);
  const frames = Math.floor((end - start) / frameBytes);
  if (!frames) throw new Problem("NoSound", `${file.name} holds no sound.`, "Choose another file.");
  if (frames > MAX_S * rate) throw tooLong(file, MAX_S, frames / rate);
  return wavParts(file, layout, frames, part_s);
}

/** @param {File} file @param {Layout} layout @param {number} frames @param {number} part_s @returns {Generator<Part, void>} */
function* wavParts(file, { head, rate, frameBytes, start }, frames, part_s) {
  for (let from = 0; from < frames; from += part_s * rate) {
    const to = Math.min(frames, from + part_s * rate);
    const before = Math.min(from, MARGIN_S * rate); // whole seconds: whole samples at any rate
    const bytes = file.slice(start + (from - before) * frameBytes, start + Math.min(frames, to + MARGIN_S * rate) * frameBytes);
    yield { bytes: wavOf(head, bytes), length: resampled(to - from, rate), skip: resampled(before, rate), share: to / frames };
  }
}

/** @param {File} file @param {AbortSignal} signal @returns {Promise<AsyncIterable<Part> | null>} */
async function partsOfMp3(file, signal) {
  const stretches = await stretchesOf(file, { length_s: PART_S, margin_s: MARGIN_S }, signal);
  return stretches && mp3Parts(file, stretches);
}

/** @param {File} file @param {AsyncIterable<Stretch>} stretches @returns {AsyncGenerator<Part, void>} */
async function* mp3Parts(file, stretches) {
  let seconds = 0;
  for await (const { start, end, samples, rate } of stretches) {
    const before = Math.round(seconds * SAMPLE_RATE);
    seconds += samples / rate;
    // The end is where it should be; at the start, decoders leave out what they cannot decode, or add their delay.
    yield { bytes: file.slice(start, end), length: Math.round(seconds * SAMPLE_RATE) - before, skip: "rest", share: Math.min(1, end / file.size) };
  }
}

/** A file that cannot be cut. @param {File} file @param {AbortSignal} signal @returns {AsyncGenerator<Heard, void>} */
async function* whole(file, signal) {
  yield { samples: NONE, share: null };
  const seconds = await durationOf(file, signal);
  if (Number.isNaN(seconds) && file.size > MAX_PART_BYTES) throw noSound(file.name, 0); // not worth reading
  if (file.size > MAX_WHOLE_BYTES) {
    throw new Problem("TooLong", `${file.name} has ${gigabytes(file.size)}, and of its format the page reads ${gigabytes(MAX_WHOLE_BYTES)}.`, CONVERT);
  }
  if (seconds > MAX_WHOLE_S) throw tooLong(file, MAX_WHOLE_S, seconds);
  const bytes = new Uint8Array(file.size);
  let [loaded, told] = [0, 0];
  for await (const chunk of chunksOf(file.stream())) {
    signal.throwIfAborted();
    bytes.set(chunk, loaded);
    loaded += chunk.length;
    if (loaded - told < MAX_PART_BYTES / 16 && loaded < file.size) continue;
    told = loaded;
    yield { samples: NONE, share: loaded / file.size };
  }
  yield { samples: NONE, share: null };
  const decoded = await decode(bytes.buffer, file.name, 0, signal);
  for (let start = 0; start < decoded.length; start += PART_S * SAMPLE_RATE) {
    const end = Math.min(decoded.length, start + PART_S * SAMPLE_RATE);
    yield { samples: toIntegers(decoded, start, end), share: end / decoded.length };
  }
}

/** NaN where the browser does not know the format. @param {File} file @param {AbortSignal} signal @returns {Promise<number>} */
async function durationOf(file, signal) {
  const audio = new Audio();
  /** @type {Promise<number>} */
  const known = new Promise((resolve) => {
    audio.onloadedmetadata = audio.ondurationchange = () => {
      if (audio.duration === Infinity) audio.currentTime = 1e9; // recorders do not write how long it became: look for the end
      else if (!Number.isNaN(audio.duration)) resolve(audio.duration);
    };
    audio.onerror = () => resolve(NaN);
  });
  audio.preload = "metadata";
  audio.src = URL.createObjectURL(file);
  try {
    return await Promise.race([known, aborted(signal)]);
  } finally {
    URL.revokeObjectURL(audio.src);
    audio.removeAttribute("src");
    audio.load(); // which ends the reading of the other
  }
}

/** @param {number} frames @param {number} rate */
function resampled(frames, rate) {
  return Math.round((frames * SAMPLE_RATE) / rate);
}

const nothing = () => {};
/** @type {Promise<void>}  the end of what is being decoded, in this page */
let decoding = Promise.resolve();

/**
 * Browsers cannot be told to stop decoding. What nobody waits for any more goes on behind the page, and the next waits for
 * it: two at once might need more memory than there is.
 * @param {ArrayBuffer} encoded @param {string} name @param {number} at_s  where in the file it begins @param {AbortSignal} signal
 */
async function decode(encoded, name, at_s, signal) {
  await Promise.race([decoding, aborted(signal)]);
  const made = new OfflineAudioContext(1, 1, SAMPLE_RATE).decodeAudioData(encoded);
  decoding = made.then(nothing, nothing);
  try {
    return await Promise.race([made, aborted(signal)]);
  } catch (error) {
    throw signal.aborted ? error : noSound(name, Math.floor(at_s));
  }
}

/** @param {string} name @param {number} at_s */
function noSound(name, at_s) {
  const where = at_s ? ` from ${Math.floor(at_s / 60)}:${String(at_s % 60).padStart(2, "0")} on` : "";
  return new Problem("SoundError", `${name} cannot be read as sound${where}.`, `Choose a file that this browser plays. ${CONVERT}`);
}

/** @param {File} file @param {number} most_s @param {number} [seconds]  where it is known */
function tooLong({ name }, most_s, seconds) {
  const hours = (/** @type {number} */ s) => +(s / 3600).toFixed(1);
  const lasts = seconds ? `lasts ${hours(seconds)} hours` : `lasts more than ${hours(most_s)} hours`;
  const [limit, mend] = most_s === MAX_S ? ["the page reads", "Cut it in parts: ffmpeg -i IN -f segment -segment_time 36000 OUT%d.wav"] : ["of its format the page reads", CONVERT];
  return new Problem("TooLong", `${name} ${lasts}, and ${limit} ${hours(most_s)}.`, mend);
}

/** @param {number} bytes */
function gigabytes(bytes) {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

// How loud each channel is in the mix, by how many there are: the weights of ffmpeg, as tallow/audio/channels.py has
// them. Browsers put channels in the order of WAV files (Web Audio API, "Channel Ordering").
const [FRONT, SURROUND] = [Math.SQRT1_2, 0.5];
/** @type {Record<number, number[]>} */
const LEVELS = {
  3: [FRONT, FRONT, 1],
  4: [FRONT, FRONT, SURROUND, SURROUND],
  5: [FRONT, FRONT, 1, SURROUND, SURROUND],
  6: [FRONT, FRONT, 1, 0, SURROUND, SURROUND],
  7: [FRONT, FRONT, 1, 0, SURROUND, SURROUND, SURROUND],
  8: [FRONT, FRONT, 1, 0, SURROUND, SURROUND, SURROUND, SURROUND],
};

/** All channels in one. @param {AudioBuffer} buffer @param {number} start @param {number} end */
function toIntegers(buffer, start, end) {
  const channels = Array.from({ length: buffer.numberOfChannels }, (_, i) => buffer.getChannelData(i));
  const levels = LEVELS[channels.length] ?? channels.map(() => 1);
  const scale = 32768 / levels.reduce((a, b) => a + b);
  const samples = new Int16Array(end - start);
  for (let i = 0; i < samples.length; i++) {
    let sum = 0;
    for (let c = 0; c < channels.length; c++) sum += levels[c] * channels[c][start + i];
    samples[i] = Math.max(-32768, Math.min(32767, Math.round(sum * scale)));
  }
  return samples;
}
