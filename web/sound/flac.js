/**
 * Find the frames of a FLAC file. Only the header of a frame says how many samples it has, and only the next header shows
 * where it ends. A decoder can start at any frame, behind a copy of the file's STREAMINFO.
 *
 * Source: RFC 9639, sections 8.2 (STREAMINFO) and 9.1 (headers of frames)
 */

import { tagEnd } from "./id3.js";

/** @import { Stretch } from "./mp3.js" */

const MAGIC = "fLaC";
const INFO_BYTES = 34;
const LAST_BLOCK = 0x80; // of metadata
const MAX_HEAD_BYTES = 16;
const MAX_FRAME_BYTES = 2 ** 21 + 2 ** 16; // 65,535 samples of 8 channels in 32 bits, and what is around them
const BLOCK_BYTES = 1 << 20;
const MAX_STRETCH_BYTES = 2 ** 26;
const MAX_FRAMES = 2 ** 18; // of a stretch
const MAX_FOREIGN_SAMPLES = 2 ** 23; // of all channels in a stretch
const SIZES = [0, 192, 576, 1152, 2304, 4608, 0, 0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768];
const [SIZE_OF_8_BITS, SIZE_OF_16_BITS] = [6, 7];
const RATE_BYTES = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2]; // that follow, by the code of the rate

/**
 * `head` goes before frames that are cut out. It has what the file's STREAMINFO says of each frame.
 * @typedef {{ head: Uint8Array<ArrayBuffer>, rate: number, channels: number, start: number }} Layout
 */
/** What looks like the header of a frame. @typedef {{ start: number, samples: number, channels: number, form: number }} Frame */

/** Read the beginning of a file; null if it is not a FLAC file. @param {Blob} file @returns {Promise<Layout | null>} */
export async function readFlac(file) {
  const first = await tagEnd(file);
  const infoStart = MAGIC.length + 4;
  const head = new Uint8Array(await file.slice(first, first + infoStart + INFO_BYTES).arrayBuffer());
  if (head.length < infoStart + INFO_BYTES || String.fromCharCode(...head.subarray(0, MAGIC.length)) !== MAGIC) return null;
  const info = head.subarray(infoStart);
  const rate = (info[10] << 12) | (info[11] << 4) | (info[12] >> 4);
  const channels = ((info[12] >> 1) & 7) + 1;
  head.set([LAST_BLOCK, 0, 0, INFO_BYTES], MAGIC.length);
  // Unknown: the sizes of frames in bytes, the number of samples (36 bits), and their MD5.
  info.fill(0, 4, 10).fill(0, 14);
  info[13] &= 0xf0;
  return { head, rate, channels, start: first + infoStart + INFO_BYTES };
}

/**
 * Split a FLAC file into stretches; the generator reads the file lazily. Whatever lengths the file says, decoding a stretch
 * takes memory for its own samples, and for at most MAX_FOREIGN_SAMPLES besides.
 *
 * Bytes of a sound look like a header of the same form as the first one once in 10^11, and like one of another form once in
 * 10^8. A decoder may take the latter for a frame, so the samples that it announces are counted.
 * @param {Blob} file
 * @param {Layout} layout
 * @param {{ length_s: number, margin_s: number }} sizes  of a stretch, and of the margin decoded before it
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Stretch, void>}
 * @throws {RangeError} the file has more foreign headers
 */
export async function* splitFlac(file, { rate, channels, start }, { length_s, margin_s }, signal) {
  /** @type {Frame[]}  of the margin, then of the stretch */
  let frames = [];
  /** @type {number | undefined} */
  let form;
  let [samples, foreign] = [0, 0];
  for await (const frame of framesOf(file, start, signal)) {
    if (frame.channels !== channels || frame.form !== (form ??= frame.form)) {
      foreign += frame.samples * frame.channels;
      if (foreign > MAX_FOREIGN_SAMPLES) throw new RangeError("it has frames of different forms");
      continue;
    }
    const last = frames.at(-1);
    const isGap = last && frame.start > last.start + MAX_FRAME_BYTES;
    if (isGap || samples >= length_s * rate || frames.length >= MAX_FRAMES || frame.start > (frames[0]?.start ?? start) + MAX_STRETCH_BYTES) {
      if (last) yield { start: frames[0].start, end: Math.min(frame.start, last.start + MAX_FRAME_BYTES), samples, rate };
      signal.throwIfAborted();
      frames = isGap ? [] : lastOf(frames, margin_s * rate);
      samples = foreign = 0;
    }
    frames.push(frame);
    samples += frame.samples;
  }
  const last = frames.at(-1);
  if (last) yield { start: frames[0].start, end: Math.min(file.size, last.start + MAX_FRAME_BYTES), samples, rate };
}

/** The last frames that have so many samples, and not many more of them than that. @param {Frame[]} frames @param {number} samples */
function lastOf(frames, samples) {
  let first = frames.length;
  for (let count = 0; first > frames.length - MAX_FRAMES / 2 && first > 0 && count < samples; ) count += frames[--first].samples;
  return frames.slice(first);
}

/** @param {Blob} file @param {number} from @param {AbortSignal} signal @returns {AsyncGenerator<Frame, void>} */
async function* framesOf(file, from, signal) {
  for (let start = from; start < file.size; start += BLOCK_BYTES) {
    signal.throwIfAborted();
    const bytes = new Uint8Array(await file.slice(start, start + BLOCK_BYTES + MAX_HEAD_BYTES).arrayBuffer());
    for (let i = bytes.indexOf(0xff); i >= 0 && i < BLOCK_BYTES; i = bytes.indexOf(0xff, i + 1)) {
      const frame = parseHead(bytes.subarray(i, i + MAX_HEAD_BYTES), start + i);
      if (frame) yield frame;
    }
  }
}

/** Parse the header of a frame; null if it is not one. @param {Uint8Array} head @param {number} start @returns {Frame | null} */
function parseHead(head, start) {
  if ((head[1] & 0xfe) !== 0xf8) return null; // the last bit: blocks of various sizes
  const [size, rate, channels, depth] = [head[2] >> 4, head[2] & 15, head[3] >> 4, head[3] & 15];
  const numberBytes = head[4] < 0x80 ? 1 : Math.clz32(~head[4] << 24); // as in UTF-8, up to 7
  if (size === 0 || rate === 15 || channels > 10 || depth === 6 || depth % 2 || (head[4] >= 0x80 && head[4] < 0xc0) || numberBytes > 7) return null;
  let at = 4 + numberBytes;
  let samples = SIZES[size];
  if (size === SIZE_OF_8_BITS) samples = head[at++] + 1;
  if (size === SIZE_OF_16_BITS) samples = ((head[at++] << 8) | head[at++]) + 1;
  at += RATE_BYTES[rate];
  if (at >= head.length || crc8(head.subarray(0, at)) !== head[at]) return null;
  const form = (head[1] << 16) | (rate << 8) | depth;
  return { start, samples, channels: channels < 8 ? channels + 1 : 2, form };
}

const POLYNOMIAL = 0x07;
const REMAINDERS = Uint8Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = (byte << 1) ^ (byte & 0x80 ? 0x100 | POLYNOMIAL : 0);
  return byte;
});

/** @param {Uint8Array} bytes */
function crc8(bytes) {
  return bytes.reduce((crc, byte) => REMAINDERS[crc ^ byte], 0);
}
