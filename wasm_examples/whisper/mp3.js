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
const MOST_FRAME_BYTES = 1441; // 160 kbit/s at 8 kHz, or 320 at 32
const BLOCK_BYTES = 1 << 20;
const MAX_JUNK_BYTES = 1 << 16; // before the first frame
const FEWEST_FRAMES = 3; // of which each begins where the one before says
const AHEAD_BYTES = FEWEST_FRAMES * MOST_FRAME_BYTES + HEAD_BYTES;

/** @typedef {{ rate: number, samples: number, bytes: number }} Frame  `samples` of each channel */
/**
 * Frames that follow each other, to decode at once: the bytes from `start` to `end`, of whose samples only the last
 * `samples` count.
 * @typedef {{ start: number, end: number, samples: number, rate: number }} Stretch
 */

/**
 * The frames of a file, or null if it is no MP3. They are found while they are asked for, so that neither a long file nor
 * one that is no MP3 behind its beginning takes more time or memory than what is read of it.
 * @param {Blob} file
 * @param {{ length_s: number, margin_s: number }} sizes  of a stretch, and of what is decoded before it
 * @param {AbortSignal} signal
 * @returns {Promise<AsyncGenerator<Stretch, void> | null>}
 */
export async function stretchesOf(file, sizes, signal) {
  const reader = new Reader(file);
  const begin = await endOfTag(reader);
  const first = await firstFrame(reader, begin, begin + MAX_JUNK_BYTES, signal);
  return first === null ? null : stretches(reader, first, sizes, signal);
}

/**
 * @param {Reader} reader
 * @param {number} first  where the first frame begins
 * @param {{ length_s: number, margin_s: number }} sizes
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Stretch, void>}
 */
async function* stretches(reader, first, { length_s, margin_s }, signal) {
  for (let next = /** @type {number | null} */ (first); next !== null; ) {
    let at = next;
    // Files are joined from others, of other rates too: what follows is as this frame is, up to one that is not.
    const { rate, samples } = /** @type {Frame} */ (frameAt(await reader.head(at)));
    const [most, margin] = [length_s, margin_s].map((seconds) => Math.round((seconds * rate) / samples));
    /** @type {number[]}  where the frames of the stretch begin, behind those of its margin */
    let starts = [];
    let before = 0; // how many of them are its margin
    for (;;) {
      const frame = frameAt(await reader.head(at));
      if (frame?.rate !== rate) break;
      if (starts.length === before + most) {
        yield { start: starts[0], end: at, samples: most * samples, rate };
        signal.throwIfAborted();
        starts = starts.slice(-margin);
        before = starts.length;
      }
      starts.push(at);
      at += frame.bytes;
    }
    if (starts.length > before) yield { start: starts[0], end: at, samples: (starts.length - before) * samples, rate };
    next = await firstFrame(reader, at, reader.size, signal);
  }
}

/** Where the first of some frames begins that follow each other, or null. @param {Reader} reader @param {number} from @param {number} limit @param {AbortSignal} signal @returns {Promise<number | null>} */
async function firstFrame(reader, from, limit, signal) {
  for (let start = from; start < Math.min(limit, reader.size); start += BLOCK_BYTES) {
    signal.throwIfAborted();
    const bytes = await reader.bytes(start, BLOCK_BYTES + AHEAD_BYTES);
    const view = new DataView(bytes.buffer);
    for (let i = bytes.indexOf(0xff); i >= 0 && i < BLOCK_BYTES && start + i < limit; i = bytes.indexOf(0xff, i + 1)) {
      if (areFrames(view, i)) return start + i;
    }
  }
  return null;
}

/** @param {DataView} view @param {number} at */
function areFrames(view, at) {
  let rate;
  for (let i = 0; i < FEWEST_FRAMES; i++) {
    const frame = at + HEAD_BYTES <= view.byteLength ? frameAt(view.getUint32(at)) : null;
    if (!frame || frame.rate !== (rate ??= frame.rate)) return false;
    at += frame.bytes;
  }
  return true;
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
    this.size = file.size;
  }

  /** Four bytes as one number; 0 where there are fewer. @param {number} at @returns {Promise<number> | number} */
  head(at) {
    const inner = at - this.#start;
    if (inner >= 0 && inner + HEAD_BYTES <= this.#view.byteLength) return this.#view.getUint32(inner);
    return this.#read(at);
  }

  /** @param {number} start @param {number} count */
  async bytes(start, count) {
    return new Uint8Array(await this.#file.slice(start, start + count).arrayBuffer());
  }

  /** @param {number} at */
  async #read(at) {
    this.#view = new DataView((await this.bytes(at, BLOCK_BYTES)).buffer);
    this.#start = at;
    return this.#view.byteLength >= HEAD_BYTES ? this.#view.getUint32(0) : 0;
  }
}
