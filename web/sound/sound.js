/**
 * Decode files to the samples that the model takes: 16 kHz, one channel, 16-bit integers.
 *
 * The browser only decodes complete files, and an hour of decoded music takes more than a gigabyte. WAV, FLAC, MP3,
 * and Opus and Vorbis in Ogg can be cut anywhere, so they are decoded part by part, with one part in memory, whatever length
 * the file says. Files of other formats are decoded at once, up to MAX_WHOLE_BYTES. Every step can be stopped.
 */

import { chunksOf } from "../worker/download.js";
import { readFlac, splitFlac } from "./flac.js";
import { splitMp3 } from "./mp3.js";
import { readOgg, splitOgg } from "./ogg.js";
import { aborted } from "../page/page.js";
import { Problem } from "../worker/protocol.js";
import { readLayout, writeWav } from "./wav.js";

export const SAMPLE_RATE = 16000;
const PART_S = 20;
// Decoded before and after a part, then discarded, because resampling is inexact at the edges.
const MARGIN_S = 1;
const MAX_PART_BYTES = 2 ** 26;
const MAX_CHANNELS = 8; // of FLAC; files of Ogg with more are not made for ears
const SAMPLE_BYTES = 2; // of most files of any format, when nothing is compressed
const MAX_S = 12 * 3600; // samples of this length take 1.4 GB of Python's memory
const MAX_WHOLE_S = 2 * 3600;
const MAX_WHOLE_BYTES = 2 ** 30;
const RATES = [3000, 768000]; // the range that browsers decode
const CONVERT = "Or convert it to WAV: ffmpeg -i IN -ac 1 -ar 16000 OUT.wav";
const NONE = new Int16Array();

/** @import { Stretch } from "./mp3.js" */
/** @import { Layout } from "./wav.js" */
/**
 * Samples, and the share of the file read so far, from 0 to 1; null while the browser decodes a whole file, which has no
 * progress.
 * @typedef {{ samples: Int16Array<ArrayBuffer>, share: number | null }} Decoded
 */
/**
 * A part of a file to decode. `length` of its samples count: those after the first `skip`, or with "rest", those at its end.
 * `share` is the share of the file read after it.
 * @typedef {{ bytes: Blob, length: number, skip: number | "rest", share: number }} Part
 */

/**
 * Decode a file, part by part.
 * @param {File} file
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Decoded, void>}
 * @throws {Problem} the file is too long, has no sound, or is not of a format that this browser decodes
 */
export async function* samplesOf(file, signal) {
  if (!file.size) throw new Problem("NoSound", `${file.name} is empty.`, "Choose another file.");
  try {
    const parts = (await partsOfWav(file)) ?? (await partsOfFlac(file, signal)) ?? (await partsOfOgg(file, signal)) ?? (await partsOfMp3(file, signal));
    let count = 0;
    for await (const decoded of parts ? decodeParts(parts, file, signal) : decodeWhole(file, signal)) {
      signal.throwIfAborted();
      count += decoded.samples.length;
      if (count > MAX_S * SAMPLE_RATE) throw tooLong(file, MAX_S);
      yield decoded;
    }
    if (!count) throw new Problem("NoSound", `${file.name} has no sound.`, "Choose another file.");
  } catch (error) {
    if (error instanceof Problem || signal.aborted) throw error;
    throw new Problem("ReadError", `${file.name} could not be read: ${error instanceof Error ? error.message : error}`, "Choose it again; it may have changed since.");
  }
}

/** @param {AsyncIterable<Part> | Iterable<Part>} parts @param {File} file @param {AbortSignal} signal @returns {AsyncGenerator<Decoded, void>} */
async function* decodeParts(parts, file, signal) {
  let count = 0;
  for await (const { bytes, length, skip, share } of parts) {
    const decoded = await decode(await bytes.arrayBuffer(), file.name, count / SAMPLE_RATE, signal);
    const end = skip === "rest" ? decoded.length : Math.min(decoded.length, skip + length);
    const start = skip === "rest" ? Math.max(0, end - length) : Math.min(skip, end);
    const samples = toIntegers(decoded, start, end);
    count += length;
    if (skip !== "rest" || samples.length === length) yield { samples, share };
    else {
      const padded = new Int16Array(length); // silence in place of what could not be decoded, so that the times stay correct
      padded.set(samples, padded.length - samples.length);
      yield { samples: padded, share };
    }
  }
}

/** @param {File} file @returns {Promise<Iterable<Part> | null>} */
async function partsOfWav(file) {
  const layout = await readLayout(file);
  if (!layout) return null;
  const { rate, frameBytes, start, end } = layout;
  const part_s = partLength(rate * frameBytes);
  if (rate < RATES[0] || rate > RATES[1] || part_s < 1) throw noSound(file.name, 0);
  const frames = Math.floor((end - start) / frameBytes);
  if (!frames) throw new Problem("NoSound", `${file.name} has no sound.`, "Choose another file.");
  if (frames > MAX_S * rate) throw tooLong(file, MAX_S, frames / rate);
  return wavParts(file, layout, frames, part_s);
}

/** @param {File} file @param {Layout} layout @param {number} frames @param {number} part_s @returns {Generator<Part, void>} */
function* wavParts(file, { head, rate, frameBytes, start }, frames, part_s) {
  for (let from = 0; from < frames; from += part_s * rate) {
    const to = Math.min(frames, from + part_s * rate);
    const before = Math.min(from, MARGIN_S * rate); // whole seconds are whole samples at any rate
    const bytes = file.slice(start + (from - before) * frameBytes, start + Math.min(frames, to + MARGIN_S * rate) * frameBytes);
    yield { bytes: writeWav(head, bytes), length: resampled(to - from, rate), skip: resampled(before, rate), share: to / frames };
  }
}

/** @param {File} file @param {AbortSignal} signal @returns {Promise<AsyncIterable<Part> | null>} */
async function partsOfFlac(file, signal) {
  const layout = await readFlac(file);
  return layout && stretchParts(file, splitFlac(file, layout, stretchSizes(file, layout), signal), layout.head);
}

/** @param {File} file @param {AbortSignal} signal @returns {Promise<AsyncIterable<Part> | null>} */
async function partsOfOgg(file, signal) {
  const layout = await readOgg(file);
  return layout && stretchParts(file, splitOgg(file, layout, stretchSizes(file, layout), signal), layout.head);
}

/** @param {File} file @param {{ rate: number, channels: number }} layout */
function stretchSizes(file, { rate, channels }) {
  if (rate < RATES[0] || rate > RATES[1] || channels < 1 || channels > MAX_CHANNELS) throw noSound(file.name, 0);
  return { length_s: partLength(rate * channels * SAMPLE_BYTES), margin_s: MARGIN_S };
}

/** @param {File} file @param {AbortSignal} signal @returns {Promise<AsyncIterable<Part> | null>} */
async function partsOfMp3(file, signal) {
  const stretches = await splitMp3(file, { length_s: PART_S, margin_s: MARGIN_S }, signal);
  return stretches && stretchParts(file, stretches);
}

/** @param {File} file @param {AsyncIterable<Stretch>} stretches @param {Uint8Array<ArrayBuffer>} [head]  of each part @returns {AsyncGenerator<Part, void>} */
async function* stretchParts(file, stretches, head = new Uint8Array()) {
  let seconds = 0;
  for await (const { start, end, samples, rate } of stretches) {
    const before = Math.round(seconds * SAMPLE_RATE);
    seconds += samples / rate;
    // The end of the decoded samples is exact; at the start, decoders drop frames that they cannot decode, or add a delay.
    const bytes = new Blob([head, file.slice(start, end)]);
    yield { bytes, length: Math.round(seconds * SAMPLE_RATE) - before, skip: "rest", share: Math.min(1, end / file.size) };
  }
}

/** Decode a file that cannot be cut. @param {File} file @param {AbortSignal} signal @returns {AsyncGenerator<Decoded, void>} */
async function* decodeWhole(file, signal) {
  yield { samples: NONE, share: null };
  const seconds = await durationOf(file, signal);
  if (Number.isNaN(seconds) && file.size > MAX_PART_BYTES) throw noSound(file.name, 0); // too large to try
  if (file.size > MAX_WHOLE_BYTES) {
    throw new Problem("TooLong", `${file.name} has ${gigabytes(file.size)}; the limit for its format is ${gigabytes(MAX_WHOLE_BYTES)}.`, CONVERT);
  }
  if (seconds > MAX_WHOLE_S) throw tooLong(file, MAX_WHOLE_S, seconds);
  const bytes = new Uint8Array(file.size);
  let [loaded, reported] = [0, 0];
  for await (const chunk of chunksOf(file.stream())) {
    signal.throwIfAborted();
    bytes.set(chunk, loaded);
    loaded += chunk.length;
    if (loaded - reported < MAX_PART_BYTES / 16 && loaded < file.size) continue;
    reported = loaded;
    yield { samples: NONE, share: loaded / file.size };
  }
  yield { samples: NONE, share: null };
  const decoded = await decode(bytes.buffer, file.name, 0, signal);
  for (let start = 0; start < decoded.length; start += PART_S * SAMPLE_RATE) {
    const end = Math.min(decoded.length, start + PART_S * SAMPLE_RATE);
    yield { samples: toIntegers(decoded, start, end), share: end / decoded.length };
  }
}

/** The duration in seconds; NaN if the browser does not know the format. @param {File} file @param {AbortSignal} signal @returns {Promise<number>} */
async function durationOf(file, signal) {
  const audio = new Audio();
  /** @type {Promise<number>} */
  const duration = new Promise((resolve) => {
    audio.onloadedmetadata = audio.ondurationchange = () => {
      if (audio.duration === Infinity) audio.currentTime = 1e9; // recorders do not write the duration: seek to the end to find it
      else if (!Number.isNaN(audio.duration)) resolve(audio.duration);
    };
    audio.onerror = () => resolve(NaN);
  });
  audio.preload = "metadata";
  audio.src = URL.createObjectURL(file);
  try {
    return await Promise.race([duration, aborted(signal)]);
  } finally {
    URL.revokeObjectURL(audio.src);
    audio.removeAttribute("src");
    audio.load(); // stops reading the file
  }
}

/** The length of a part in seconds. @param {number} byteRate  of the sound, in bytes per second */
function partLength(byteRate) {
  return Math.min(PART_S, Math.floor(MAX_PART_BYTES / byteRate) - 2 * MARGIN_S);
}

/** The number of samples after resampling. @param {number} frames @param {number} rate */
function resampled(frames, rate) {
  return Math.round((frames * SAMPLE_RATE) / rate);
}

const nothing = () => {};
/** @type {Promise<void>}  settles when the page's current decoding ends */
let decoding = Promise.resolve();

/**
 * Decode with the browser. Decoding cannot be stopped: after an abort it continues in the background, and the next call
 * waits for it, because two at once might exceed the memory.
 * @param {ArrayBuffer} encoded @param {string} name @param {number} at_s  the position of its start in the file @param {AbortSignal} signal
 */
async function decode(encoded, name, at_s, signal) {
  await Promise.race([decoding, aborted(signal)]);
  const decoded = new OfflineAudioContext(1, 1, SAMPLE_RATE).decodeAudioData(encoded);
  decoding = decoded.then(nothing, nothing);
  try {
    return await Promise.race([decoded, aborted(signal)]);
  } catch (error) {
    throw signal.aborted ? error : noSound(name, Math.floor(at_s));
  }
}

/** @param {string} name @param {number} at_s */
function noSound(name, at_s) {
  const position = at_s ? ` from ${Math.floor(at_s / 60)}:${String(at_s % 60).padStart(2, "0")} on` : "";
  return new Problem("SoundError", `${name} cannot be read as sound${position}.`, `Choose a file that this browser plays. ${CONVERT}`);
}

/** @param {File} file @param {number} max_s @param {number} [seconds]  the duration, if known */
function tooLong({ name }, max_s, seconds) {
  const hours = (/** @type {number} */ s) => +(s / 3600).toFixed(1);
  const lasts = seconds ? `lasts ${hours(seconds)} hours` : `lasts more than ${hours(max_s)} hours`;
  const [limit, hint] = max_s === MAX_S ? ["the limit is", "Cut it into parts: ffmpeg -i IN -f segment -segment_time 36000 OUT%d.wav"] : ["the limit for its format is", CONVERT];
  return new Problem("TooLong", `${name} ${lasts}; ${limit} ${hours(max_s)}.`, hint);
}

/** @param {number} bytes */
function gigabytes(bytes) {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

// The weights of the channels in the mix, by the number of channels: those of ffmpeg, as in tallow/audio/channels.py.
// Browsers order channels as WAV files do (Web Audio API, "Channel Ordering").
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

/** Mix the channels and convert to 16-bit integers. @param {AudioBuffer} buffer @param {number} start @param {number} end */
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
