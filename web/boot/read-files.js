/** Read a file while Python waits, and unpack gzip: in a worker, and in Node. */

const SIZE_BYTES = 4; // at the end of a gzip file: the size of its content modulo 2^32, little-endian (RFC 1952)
const MAX_RATIO = 1032; // of deflate
const PIECE_BYTES = 2 ** 16;

/**
 * Read a file synchronously. A worker may, a page may not.
 * @param {string} url @returns {Uint8Array<ArrayBuffer>}
 */
export function readNow(url) {
  return url.startsWith("file:") ? readDisk(url) : request(url);
}

/** @param {string} url @returns {Uint8Array<ArrayBuffer>} */
function readDisk(url) {
  return new Uint8Array(/** @type {any} */ (globalThis).process.getBuiltinModule("node:fs").readFileSync(new URL(url)));
}

/** @param {string} url */
function request(url) {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${url}: the server answers ${request.status}`);
  return new Uint8Array(request.response);
}

/** The content of a gzip file, as a stream. @param {Uint8Array<ArrayBuffer>} packed */
export function unpacked(packed) {
  let at = 0;
  /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */
  const pieces = new ReadableStream({
    pull(controller) {
      if (at < packed.length) controller.enqueue(packed.subarray(at, (at += PIECE_BYTES)));
      else controller.close();
    },
  });
  return pieces.pipeThrough(new DecompressionStream("gzip"));
}

/**
 * Unpack gzip. Without Response, for which Node loads a WebAssembly module of its own.
 * @param {Uint8Array<ArrayBuffer>} packed
 */
export async function gunzip(packed) {
  const trailer = packed.subarray(-SIZE_BYTES);
  const size = trailer.length < SIZE_BYTES ? 0 : new DataView(packed.buffer, trailer.byteOffset).getUint32(0, true);
  if (size > MAX_RATIO * packed.length) throw new Error(`${packed.length} bytes of gzip cannot have ${size} unpacked`);
  const bytes = new Uint8Array(size);
  let filled = 0;
  for await (const chunk of /** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (unpacked(packed)))) {
    if (filled + chunk.length > size) throw new Error(`gzip has more than ${size} bytes unpacked, which is its own size`);
    bytes.set(chunk, filled);
    filled += chunk.length;
  }
  return bytes.subarray(0, filled);
}
