/** Read the layout of a WAV file, and write WAV files. package/tallow/audio/wav.py documents the format. */

const PCM = 1;
const FORMAT_BYTES = 16;
// There are only a few chunks before the samples, such as an image.
const MAX_CHUNKS = 64;

/**
 * @typedef {{ head: Uint8Array<ArrayBuffer>, rate: number, frameBytes: number, start: number, end: number }} Layout
 *   `head` is the "fmt " chunk with its name and size; the samples are the bytes from `start` to `end`
 */

/** Find the samples in a file; null if it is not a WAV file. @param {Blob} file @returns {Promise<Layout | null>} */
export async function readLayout(file) {
  const bytes = async (/** @type {number} */ at, /** @type {number} */ size) => new Uint8Array(await file.slice(at, at + size).arrayBuffer());
  const riff = await bytes(0, 12);
  if (letters(riff, 0) !== "RIFF" || letters(riff, 8) !== "WAVE") return null;
  let head = null;
  for (let at = 12, chunks = 0; chunks < MAX_CHUNKS; chunks++) {
    const chunk = await bytes(at, 8);
    if (chunk.length < 8) return null;
    const size = new DataView(chunk.buffer).getUint32(4, true);
    const name = letters(chunk, 0);
    at += 8;
    if (name === "data") {
      if (!head || head.length < 8 + FORMAT_BYTES) return null;
      const view = new DataView(head.buffer);
      const [rate, frameBytes] = [view.getUint32(12, true), view.getUint16(20, true)];
      if (!rate || !frameBytes) return null;
      // A program that does not know the length writes 0 or the maximum, and a file may be truncated.
      const end = size ? Math.min(at + size, file.size) : file.size;
      return { head, rate, frameBytes, start: at, end };
    }
    if (name === "fmt ") head = await bytes(at - 8, 8 + Math.min(size, 64));
    at += size + (size % 2);
  }
  return null;
}

/** @param {Uint8Array} bytes @param {number} at */
function letters(bytes, at) {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}

/** Write a WAV file. @param {Uint8Array<ArrayBuffer>} format  the "fmt " chunk @param {Blob} samples */
export function writeWav(format, samples) {
  const head = new Uint8Array(12 + format.length + 8);
  const view = new DataView(head.buffer);
  const write = (/** @type {number} */ at, /** @type {string} */ text) => [...text].forEach((letter, i) => (head[at + i] = letter.charCodeAt(0)));
  write(0, "RIFF");
  view.setUint32(4, head.length - 8 + samples.size, true);
  write(8, "WAVE");
  head.set(format, 12);
  write(12 + format.length, "data");
  view.setUint32(12 + format.length + 4, samples.size, true);
  return new Blob([head, samples]);
}

/** The "fmt " chunk of one channel of 16-bit integers. @param {number} rate */
export function mono16(rate) {
  const chunk = new Uint8Array(8 + FORMAT_BYTES);
  const view = new DataView(chunk.buffer);
  chunk.set([0x66, 0x6d, 0x74, 0x20]); // "fmt "
  view.setUint32(4, FORMAT_BYTES, true);
  view.setUint16(8, PCM, true);
  view.setUint16(10, 1, true);
  view.setUint32(12, rate, true);
  view.setUint32(16, 2 * rate, true);
  view.setUint16(20, 2, true);
  view.setUint16(22, 16, true);
  return chunk;
}
