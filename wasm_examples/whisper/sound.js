/**
 * Files as samples that a model hears: 16 kHz, one channel, 16-bit integers.
 *
 * The browser decodes them. It can do so only with whole files, and an hour of music takes more than a gigabyte; so WAV
 * and MP3, which can be cut anywhere, are decoded part by part.
 */

import { Problem } from "../../web/protocol.js";
import { framesOf } from "./mp3.js";
import { layoutOf, wavOf } from "./wav.js";

export const SAMPLE_RATE = 16000;
const PART_S = 20;
// Heard before and behind a part, and then left out: resampling at an edge knows only one side of it.
const MARGIN_S = 1;
const MAX_WHOLE_S = 2 * 3600;
const MAX_WHOLE_BYTES = 2 ** 31 - 1;
const CONVERT = "Or make a WAV file of it: ffmpeg -i IN -ac 1 -ar 16000 OUT.wav";

/**
 * What is decoded at once. Of its samples, `length` count (null: all), behind the first `skip`, or at its end.
 * @typedef {{ bytes: Blob, length: number | null, skip: number | "rest" }} Part
 */

/**
 * The samples of a file, part by part, and how much of it they are, from 0 to 1.
 * @param {File} file
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<{ samples: Int16Array, share: number }, void>}
 * @throws {Problem} it is no sound that this browser knows, holds none, or is too long
 */
export async function* samplesOf(file, signal) {
  if (!file.size) throw new Problem("NoSound", `${file.name} is empty.`, "Choose another file.");
  try {
    const parts = (await partsOfWav(file)) ?? (await partsOfMp3(file, signal)) ?? [await whole(file)];
    let any = false;
    for (const [i, part] of parts.entries()) {
      signal.throwIfAborted();
      const samples = await decode(part, file.name, i * PART_S);
      signal.throwIfAborted();
      any ||= samples.length > 0;
      yield { samples, share: (i + 1) / parts.length };
    }
    if (!any) throw new Problem("NoSound", `${file.name} holds no sound.`, "Choose another file.");
  } catch (error) {
    if (error instanceof Problem || signal.aborted) throw error;
    throw new Problem("ReadError", `${file.name} could not be read: ${error instanceof Error ? error.message : error}`, "Choose it again; it may have changed since.");
  }
}

/** @param {File} file @returns {Promise<Part[] | null>} */
async function partsOfWav(file) {
  const layout = await layoutOf(file);
  if (!layout) return null;
  const { head, rate, frameBytes, start } = layout;
  const frames = Math.floor((layout.end - start) / frameBytes);
  const parts = [];
  for (let from = 0; from < frames; from += PART_S * rate) {
    const to = Math.min(frames, from + PART_S * rate);
    const before = Math.min(from, MARGIN_S * rate); // whole seconds: whole samples at any rate
    const bytes = file.slice(start + (from - before) * frameBytes, start + Math.min(frames, to + MARGIN_S * rate) * frameBytes);
    parts.push({ bytes: wavOf(head, bytes), length: resampled(to - from, rate), skip: resampled(before, rate) });
  }
  if (!parts.length) throw new Problem("NoSound", `${file.name} holds no sound.`, "Choose another file.");
  return parts;
}

/** @param {File} file @param {AbortSignal} signal @returns {Promise<Part[] | null>} */
async function partsOfMp3(file, signal) {
  const frames = await framesOf(file, signal);
  if (!frames) return null;
  const { rate, samples, starts } = frames;
  const step = Math.round((PART_S * rate) / samples);
  const margin = Math.round((MARGIN_S * rate) / samples);
  /** @type {Part[]} */
  const parts = [];
  for (let from = 0; from < starts.length; from += step) {
    const to = Math.min(starts.length, from + step);
    // The end is where it should be; at the start, decoders leave out what they cannot decode, or add their delay.
    const bytes = file.slice(starts[Math.max(0, from - margin)], starts[to] ?? file.size);
    parts.push({ bytes, length: resampled(to * samples, rate) - resampled(from * samples, rate), skip: "rest" });
  }
  return parts;
}

/** @param {File} file @returns {Promise<Part>} */
async function whole(file) {
  if (file.size > MAX_WHOLE_BYTES) {
    throw new Problem("TooLong", `${file.name} has ${(file.size / 1e9).toFixed(1)} GB, and of its format a tab reads two.`, CONVERT);
  }
  const seconds = await durationOf(file);
  if (seconds > MAX_WHOLE_S) {
    throw new Problem("TooLong", `${file.name} lasts ${(seconds / 3600).toFixed(1)} hours, and of its format the page reads two.`, CONVERT);
  }
  return { bytes: file, length: null, skip: 0 };
}

/** NaN where the browser does not know, or does not know the format. @param {File} file @returns {Promise<number>} */
function durationOf(file) {
  const audio = new Audio();
  audio.preload = "metadata";
  audio.src = URL.createObjectURL(file);
  /** @type {Promise<number>} */
  const known = new Promise((resolve) => {
    audio.onloadedmetadata = () => resolve(audio.duration);
    audio.onerror = () => resolve(NaN);
  });
  return known.finally(() => URL.revokeObjectURL(audio.src));
}

/** @param {number} frames @param {number} rate */
function resampled(frames, rate) {
  return Math.round((frames * SAMPLE_RATE) / rate);
}

/** @param {Part} part @param {string} name @param {number} at_s  where in the file it begins */
async function decode({ bytes, length, skip }, name, at_s) {
  const encoded = await bytes.arrayBuffer();
  let decoded;
  try {
    decoded = await new OfflineAudioContext(1, 1, SAMPLE_RATE).decodeAudioData(encoded);
  } catch {
    const where = at_s ? ` from ${Math.floor(at_s / 60)}:${String(at_s % 60).padStart(2, "0")} on` : "";
    throw new Problem("SoundError", `${name} cannot be read as sound${where}.`, `Choose a file that this browser plays. ${CONVERT}`);
  }
  const end = skip === "rest" ? decoded.length : Math.min(decoded.length, skip + (length ?? decoded.length));
  const start = skip === "rest" ? Math.max(0, end - (length ?? end)) : Math.min(skip, end);
  const samples = toIntegers(decoded, start, end);
  if (skip !== "rest" || samples.length === length) return samples;
  const padded = new Int16Array(length ?? 0); // what could not be decoded is silence, so that times stay right
  padded.set(samples, padded.length - samples.length);
  return padded;
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
