/**
 * MP3 files: where their frames begin. Each frame has a head of four bytes that says how long it is; decoders start at
 * any of them, and need the few before it that lend it their unused bits.
 *
 * Source: ISO/IEC 11172-3, section 2.4.1.3, and 13818-3; https://id3.org/id3v2.4.0-structure
 */

const RATES = [44100, 48000, 32000];
const KILOBITS = {
  mpeg1: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  mpeg2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const HEAD_BYTES = 4;
const BLOCK_BYTES = 1 << 22;
const MAX_JUNK_BYTES = 1 << 16; // before the first frame
const FEWEST_FRAMES = 3; // of which each begins where the one before says

/** @typedef {{ rate: number, samples: number, starts: number[] }} Frames  samples of a frame, and where each begins */
/** @typedef {{ rate: number, samples: number, bytes: number }} Frame */

/** The frames of a file, or null if it is no MP3. @param {Blob} file @param {AbortSignal} signal @returns {Promise<Frames | null>} */
export async function framesOf(file, signal) {
  const reader = new Reader(file);
  let at = await endOfTag(reader);
  const limit = at + MAX_JUNK_BYTES;
  /** @type {number[]} */
  const starts = [];
  /** @type {Frame | null} */
  let first = null;
  while (at + HEAD_BYTES <= file.size) {
    signal.throwIfAborted();
    const frame = frameAt(await reader.head(at));
    if (frame && first && frame.rate !== first.rate) return null; // whoever joined it did so badly
    if (frame) {
      first ??= frame;
      starts.push(at);
      at += frame.bytes;
    } else if (starts.length && starts.length < FEWEST_FRAMES) {
      at = starts[0] + 1; // that was no head
      starts.length = 0;
      first = null;
    } else {
      at += 1;
      if (!first && at > limit) return null;
    }
  }
  return first && starts.length >= FEWEST_FRAMES ? { rate: first.rate, samples: first.samples, starts } : null;
}

/** Where what a player shows of the file ends. @param {Reader} reader */
async function endOfTag(reader) {
  const head = await reader.head(0);
  if (head !== 0x49443303 && head !== 0x49443304 && head !== 0x49443302) return 0; // "ID3", version
  const size = await reader.head(6);
  return 10 + (((size >>> 24) & 127) << 21) + (((size >>> 16) & 127) << 14) + (((size >>> 8) & 127) << 7) + (size & 127);
}

/** @param {number} head @returns {Frame | null} */
function frameAt(head) {
  const version = (head >>> 19) & 3; // 3 is MPEG-1, 2 is MPEG-2, 0 is 2.5
  const isLayer3 = ((head >>> 17) & 3) === 1;
  const kilobits = KILOBITS[version === 3 ? "mpeg1" : "mpeg2"][(head >>> 12) & 15];
  const rate = RATES[(head >>> 10) & 3] >> [2, 0, 1, 0][version];
  if (head >>> 21 !== 0x7ff || version === 1 || !isLayer3 || !kilobits || !rate) return null;
  const samples = version === 3 ? 1152 : 576;
  return { rate, samples, bytes: Math.floor((samples * 125 * kilobits) / rate) + ((head >>> 9) & 1) };
}

/** Bytes of a file, which is read block by block. */
class Reader {
  #file;
  #start = 0;
  #view = new DataView(new ArrayBuffer(0));

  /** @param {Blob} file */
  constructor(file) {
    this.#file = file;
  }

  /** Four bytes as one number; 0 where there are fewer. @param {number} at @returns {Promise<number> | number} */
  head(at) {
    const inner = at - this.#start;
    if (inner >= 0 && inner + HEAD_BYTES <= this.#view.byteLength) return this.#view.getUint32(inner);
    return this.#read(at);
  }

  /** @param {number} at */
  async #read(at) {
    this.#view = new DataView(await this.#file.slice(at, at + BLOCK_BYTES).arrayBuffer());
    this.#start = at;
    return this.#view.byteLength >= HEAD_BYTES ? this.#view.getUint32(0) : 0;
  }
}
