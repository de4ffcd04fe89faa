/**
 * Find the frames of an MP3 file. Each frame has a header of four bytes, from which its length follows. A decoder can start
 * at any frame, but needs a few frames before it, because frames borrow unused bits from earlier ones.
 *
 * Source: ISO/IEC 11172-3, section 2.4.1.3, and 13818-3
 */

import { tagEnd } from "./id3.js";

const RATES = [44100, 48000, 32000];
const KILOBITS = {
  mpeg1: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  mpeg2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const HEAD_BYTES = 4;
const MAX_FRAME_BYTES = 1441; // 160 kbit/s at 8 kHz, or 320 at 32
const BLOCK_BYTES = 1 << 20;
const MAX_JUNK_BYTES = 1 << 16; // before the first frame
const MIN_FRAMES = 3; // in a row, each starting where the previous one ends: fewer may be a coincidence
const LOOKAHEAD_BYTES = MIN_FRAMES * MAX_FRAME_BYTES + HEAD_BYTES;

/** @typedef {{ rate: number, samples: number, bytes: number }} Frame  `samples` per channel */
/**
 * Consecutive frames to decode together: the bytes from `start` to `end`. Only the last `samples` samples count; those
 * before are the margin.
 * @typedef {{ start: number, end: number, samples: number, rate: number }} Stretch
 */

/**
 * Split an MP3 file into stretches; null if it is not an MP3 file. The generator reads the file lazily, so a caller that
 * stops early pays only for what it has read.
 * @param {Blob} file
 * @param {{ length_s: number, margin_s: number }} sizes  of a stretch, and of the margin decoded before it
 * @param {AbortSignal} signal
 * @returns {Promise<AsyncGenerator<Stretch, void> | null>}
 */
export async function splitMp3(file, sizes, signal) {
  const reader = new Reader(file);
  const start = await tagEnd(file);
  const first = await findFrame(reader, start, start + MAX_JUNK_BYTES, signal);
  return first === null ? null : stretches(reader, first, sizes, signal);
}

/**
 * @param {Reader} reader
 * @param {number} first  the offset of the first frame
 * @param {{ length_s: number, margin_s: number }} sizes
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Stretch, void>}
 */
async function* stretches(reader, first, { length_s, margin_s }, signal) {
  for (let next = /** @type {number | null} */ (first); next !== null; ) {
    let offset = next;
    // A file may be joined from files with other rates: a run of frames ends where the rate changes.
    const { rate, samples } = /** @type {Frame} */ (parseHead(await reader.head(offset)));
    const [length, margin] = [length_s, margin_s].map((seconds) => Math.round((seconds * rate) / samples));
    /** @type {number[]}  the offsets of the frames of the margin, then of the stretch */
    let starts = [];
    let marginFrames = 0;
    for (;;) {
      const frame = parseHead(await reader.head(offset));
      if (frame?.rate !== rate) break;
      if (starts.length === marginFrames + length) {
        yield { start: starts[0], end: offset, samples: length * samples, rate };
        signal.throwIfAborted();
        starts = starts.slice(-margin);
        marginFrames = starts.length;
      }
      starts.push(offset);
      offset += frame.bytes;
    }
    if (starts.length > marginFrames) yield { start: starts[0], end: offset, samples: (starts.length - marginFrames) * samples, rate };
    next = await findFrame(reader, offset, reader.size, signal);
  }
}

/** The offset of the first frame that is followed by others, or null. @param {Reader} reader @param {number} from @param {number} limit @param {AbortSignal} signal @returns {Promise<number | null>} */
async function findFrame(reader, from, limit, signal) {
  for (let start = from; start < Math.min(limit, reader.size); start += BLOCK_BYTES) {
    signal.throwIfAborted();
    const bytes = await reader.bytes(start, BLOCK_BYTES + LOOKAHEAD_BYTES);
    const view = new DataView(bytes.buffer);
    for (let i = bytes.indexOf(0xff); i >= 0 && i < BLOCK_BYTES && start + i < limit; i = bytes.indexOf(0xff, i + 1)) {
      if (hasFrames(view, i)) return start + i;
    }
  }
  return null;
}

/** Whether MIN_FRAMES frames of the same rate start at an offset. @param {DataView} view @param {number} offset */
function hasFrames(view, offset) {
  let rate;
  for (let i = 0; i < MIN_FRAMES; i++) {
    const frame = offset + HEAD_BYTES <= view.byteLength ? parseHead(view.getUint32(offset)) : null;
    if (!frame || frame.rate !== (rate ??= frame.rate)) return false;
    offset += frame.bytes;
  }
  return true;
}

/** Parse the header of a frame; null if it is not one. @param {number} head @returns {Frame | null} */
function parseHead(head) {
  const version = (head >>> 19) & 3; // 3 is MPEG-1, 2 is MPEG-2, 0 is 2.5
  const isLayer3 = ((head >>> 17) & 3) === 1;
  const kilobits = KILOBITS[version === 3 ? "mpeg1" : "mpeg2"][(head >>> 12) & 15];
  const rate = RATES[(head >>> 10) & 3] >> [2, 0, 1, 0][version];
  if (head >>> 21 !== 0x7ff || version === 1 || !isLayer3 || !kilobits || !rate) return null;
  const samples = version === 3 ? 1152 : 576;
  return { rate, samples, bytes: Math.floor((samples * 125 * kilobits) / rate) + ((head >>> 9) & 1) };
}

/** Reads a file block by block. */
class Reader {
  #file;
  #start = 0;
  #view = new DataView(new ArrayBuffer(0));

  /** @param {Blob} file */
  constructor(file) {
    this.#file = file;
    this.size = file.size;
  }

  /** Four bytes as a number; 0 at the end of the file. @param {number} offset @returns {Promise<number> | number} */
  head(offset) {
    const inner = offset - this.#start;
    if (inner >= 0 && inner + HEAD_BYTES <= this.#view.byteLength) return this.#view.getUint32(inner);
    return this.#read(offset);
  }

  /** @param {number} start @param {number} count */
  async bytes(start, count) {
    return new Uint8Array(await this.#file.slice(start, start + count).arrayBuffer());
  }

  /** @param {number} offset */
  async #read(offset) {
    this.#view = new DataView((await this.bytes(offset, BLOCK_BYTES)).buffer);
    this.#start = offset;
    return this.#view.byteLength >= HEAD_BYTES ? this.#view.getUint32(0) : 0;
  }
}
