/**
 * Find the pages of an Ogg file with Opus or Vorbis. The head of a page says where it ends, and where its packets begin; the
 * packets say how long they last (Opus), or at most last (Vorbis). A decoder can start at any page, behind the file's headers.
 *
 * Source: RFC 3533, section 6 (pages); RFC 7845, section 5.1, and RFC 6716, section 3.1 (Opus); Vorbis I, section 4.2.2
 */

/** @import { Stretch } from "./mp3.js" */

const MAGIC = [0x4f, 0x67, 0x67, 0x53]; // "OggS"
const HEAD_BYTES = 27;
const MAX_PAGE_BYTES = HEAD_BYTES + 255 + 255 * 255;
const MAX_HEADERS_BYTES = 2 ** 24; // with a picture
const MAX_STRETCH_BYTES = 2 ** 26;
const BLOCK_BYTES = 1 << 20;
const [CONTINUED, FIRST] = [1, 2]; // flags of pages
const OPUS_RATE = 48000;
const OPUS_SAMPLES = 5760; // the most of a packet: 120 ms

/**
 * `skip` samples at the start do not count; `most` returns the most samples of a packet, of which a page has the first bytes.
 * @typedef {{ rate: number, channels: number, headers: number, skip: number, most: (packet: Uint8Array) => number }} Codec
 */
/** @typedef {Codec & { head: Uint8Array<ArrayBuffer>, serial: number, start: number }} Layout  `head` goes before pages that are cut out */
/** @typedef {{ start: number, end: number, flags: number, serial: number, granule: number, packets: Uint8Array[], ended: number }} Page */

/**
 * Read the headers of a file; null if it is no Ogg file with one stream of Opus or Vorbis.
 * @param {Blob} file @returns {Promise<Layout | null>}
 */
export async function readOgg(file) {
  const window = new Window(file);
  const first = await pageAt(window, 0);
  const codec = first?.packets.length === 1 ? codecOf(first.packets[0]) : null;
  if (!first || !codec) return null;
  let { end, ended } = first;
  while (ended < codec.headers && end < MAX_HEADERS_BYTES) {
    const page = await pageAt(window, end);
    if (page?.serial !== first.serial || page.flags & FIRST) return null;
    end = page.end;
    ended += page.ended;
  }
  if (ended !== codec.headers) return null;
  const head = new Uint8Array(await file.slice(0, end).arrayBuffer());
  return { ...codec, head, serial: first.serial, start: end };
}

/**
 * Split an Ogg file into stretches; the generator reads the file lazily. Whatever lengths the pages say, a stretch decodes to
 * at most the samples that its packets can have: damaged pages are left out, as a decoder would search for others in them.
 * @param {Blob} file
 * @param {Layout} layout
 * @param {{ length_s: number, margin_s: number }} sizes  of a stretch, and of the margin decoded before it
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Stretch, void>}
 * @throws {RangeError} the file has several streams
 */
export async function* splitOgg(file, { rate, skip, most, serial, start }, { length_s, margin_s }, signal) {
  const window = new Window(file);
  /** @type {{ start: number, end: number, most: number }[]}  pages of the margin, then of the stretch */
  let pages = [];
  let [position, samples, bound] = [skip, 0, 0];
  for (let at = start; at < file.size; ) {
    const page = await pageAt(window, at);
    const last = pages.at(-1);
    if (page && (page.serial !== serial || page.flags & FIRST)) throw new RangeError("it has several streams");
    const isFull = bound >= length_s * rate || (last && last.end > pages[0].start + MAX_STRETCH_BYTES);
    if (last && (isFull || !page)) {
      yield { start: pages[0].start, end: last.end, samples, rate };
      signal.throwIfAborted();
      pages = page ? lastOf(pages, margin_s * rate) : [];
      samples = bound = 0;
    }
    if (!page) {
      at = await window.find(at + 1, signal);
      continue;
    }
    const ofPage = page.packets.reduce((sum, packet) => sum + most(packet), 0);
    bound += ofPage;
    if (page.granule >= 0) {
      // What a packet has that began on the last page counts here.
      samples = Math.min(samples + Math.max(0, page.granule - position), bound);
      position = page.granule;
    }
    pages.push({ start: page.start, end: page.end, most: ofPage });
    at = page.end;
  }
  const last = pages.at(-1);
  if (last && bound) yield { start: pages[0].start, end: last.end, samples, rate };
}

/** The last pages that have so many samples. @template {{ most: number }} T @param {T[]} pages @param {number} samples */
function lastOf(pages, samples) {
  let first = pages.length;
  for (let count = 0; first > 0 && count < samples; ) count += pages[--first].most;
  return pages.slice(first);
}

/** The codec of a stream; null if it is another one. @param {Uint8Array} packet  the first one @returns {Codec | null} */
function codecOf(packet) {
  const text = String.fromCharCode(...packet.subarray(0, 8));
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
  if (text === "OpusHead" && packet.length >= 19) {
    return { rate: OPUS_RATE, channels: packet[9], headers: 2, skip: view.getUint16(10, true), most: samplesOfOpus };
  }
  if (text.startsWith("\x01vorbis") && packet.length >= 30) {
    const long = 1 << (packet[28] >> 4);
    return { rate: view.getUint32(12, true), channels: packet[11], headers: 3, skip: 0, most: () => long / 2 };
  }
  return null;
}

/** @param {Uint8Array} packet */
function samplesOfOpus(packet) {
  if (packet.length < 2) return OPUS_SAMPLES;
  const kind = packet[0] >> 3;
  const frame = kind < 12 ? [480, 960, 1920, 2880][kind & 3] : kind < 16 ? [480, 960][kind & 1] : [120, 240, 480, 960][kind & 3];
  const frames = [1, 2, 2, packet[1] & 63][packet[0] & 3];
  return Math.min(OPUS_SAMPLES, frame * frames);
}

/** The page at an offset; null if there is none, or a damaged one. @param {Window} window @param {number} start @returns {Promise<Page | null>} */
async function pageAt(window, start) {
  const bytes = await window.bytes(start, MAX_PAGE_BYTES);
  if (bytes.length < HEAD_BYTES || MAGIC.some((byte, i) => bytes[i] !== byte) || bytes[4] !== 0) return null;
  const lacing = bytes.subarray(HEAD_BYTES, HEAD_BYTES + bytes[26]);
  const bodyStart = HEAD_BYTES + bytes[26];
  const size = lacing.reduce((sum, byte) => sum + byte, bodyStart);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (size > bytes.length || crc32(bytes.subarray(0, size)) !== view.getUint32(22, true)) return null;
  /** @type {Uint8Array[]}  those that begin here */
  const packets = [];
  let [at, ended] = [bodyStart, 0];
  for (let i = 0, from = at, begins = !(bytes[5] & CONTINUED); i < lacing.length; i++) {
    at += lacing[i];
    if (lacing[i] === 255 && i < lacing.length - 1) continue;
    if (begins) packets.push(bytes.subarray(from, at));
    if (lacing[i] < 255) ended++;
    [from, begins] = [at, true];
  }
  const granule = Number(view.getBigInt64(6, true));
  return { start, end: start + size, flags: bytes[5], serial: view.getUint32(14, true), granule, packets, ended };
}

const POLYNOMIAL = 0x04c11db7;
const REMAINDERS = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte << 24;
  for (let bit = 0; bit < 8; bit++) value = (value << 1) ^ (value < 0 ? POLYNOMIAL : 0);
  return value;
});

/** The checksum of a page, whose own place counts as zero. @param {Uint8Array} bytes */
function crc32(bytes) {
  let value = 0;
  for (let i = 0; i < bytes.length; i++) value = (value << 8) ^ REMAINDERS[((value >>> 24) ^ (i >= 22 && i < 26 ? 0 : bytes[i])) & 255];
  return value >>> 0;
}

/** Reads a file block by block. */
class Window {
  #file;
  #start = 0;
  #bytes = new Uint8Array();

  /** @param {Blob} file */
  constructor(file) {
    this.#file = file;
  }

  /** The bytes at an offset, fewer at the end of the file. @param {number} start @param {number} count */
  async bytes(start, count) {
    const end = Math.min(this.#file.size, start + count);
    if (start < this.#start || end > this.#start + this.#bytes.length) {
      this.#bytes = new Uint8Array(await this.#file.slice(start, start + BLOCK_BYTES).arrayBuffer());
      this.#start = start;
    }
    return this.#bytes.subarray(start - this.#start, end - this.#start);
  }

  /** Where the next page may begin; the end of the file if nowhere. @param {number} start @param {AbortSignal} signal */
  async find(start, signal) {
    for (let from = start; from < this.#file.size; from += BLOCK_BYTES / 2) {
      signal.throwIfAborted();
      const bytes = await this.bytes(from, BLOCK_BYTES / 2 + MAGIC.length - 1);
      for (let i = bytes.indexOf(MAGIC[0]); i >= 0; i = bytes.indexOf(MAGIC[0], i + 1)) {
        if (MAGIC.every((byte, k) => bytes[i + k] === byte)) return from + i;
      }
    }
    return this.#file.size;
  }
}
