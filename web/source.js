/** Bytes from a file or a URL into Python's memory, chunk by chunk, with a copy of downloads kept by the browser. */

import * as cache from "./cache.js";
import { Download, chunksOf } from "./download.js";
import { Problem } from "./protocol.js";

/** @import { Remote, Source, Stage } from "./protocol.js" */

/**
 * Where the bytes go: `begin`, which throws if the file's first bytes or its size make it useless, then `write` for each
 * chunk, then `end`. `digest` is the SHA-256 of all that was written.
 * @typedef {{
 *   begin(head: Uint8Array, size: number | null): void,
 *   write(chunk: Uint8Array): void,
 *   end(): void,
 *   digest(): Promise<ArrayBuffer>,
 * }} Sink
 * @typedef {{ stage: Stage, loaded: number, total: number | null }} Report
 * @typedef {{ onProgress: (report: Report) => void, signal: AbortSignal }} Options
 * @typedef {{ size: number, notice: string | null }} Read
 */

// Python's memory ends at 4 GiB, and a model needs room to work beside its weights.
const MAX_BYTES = 3 * 2 ** 30;
// As much as the largest header of the formats read here.
const HEAD_BYTES = 256;

/** The bytes have ended before they should. */
class Broken extends Problem {}

/**
 * @param {Source} source
 * @param {Sink} sink
 * @param {Options} options
 * @returns {Promise<Read>}
 * @throws {Problem} the source cannot be read, is too large, or its head is refused
 */
export async function readInto(source, sink, options) {
  return "file" in source ? readFile(source.file, sink, options) : readUrl(source, sink, options);
}

/** @param {File} file @param {Sink} sink @param {Options} options @returns {Promise<Read>} */
async function readFile(file, sink, options) {
  checkSize(file.size, file.name);
  const size = await pump(chunksOf(file.stream()), file.size, sink, options, { stage: "file", name: file.name });
  return { size, notice: null };
}

/** @param {Remote} remote @param {Sink} sink @param {Options} options @returns {Promise<Read>} */
async function readUrl(remote, sink, options) {
  const { url } = remote;
  const entry = await cache.find(url);
  let notice = null;
  if (entry?.sha256 && (!remote.sha256 || remote.sha256 === entry.sha256)) {
    const size = await pump(entry.chunks(), entry.size, sink, options, { stage: "cache", name: url }).catch(async (error) => {
      if (!options.signal.aborted) await cache.remove(url); // what is refused or unreadable now would be so for ever
      throw error;
    });
    if (size === entry.size && hex(await sink.digest()) === entry.sha256) return { size, notice };
    notice = "The stored copy was damaged, so the file was downloaded again.";
  }
  const download = await Download.begin(remote, entry?.sha256 ? null : entry, options.signal);
  checkSize(download.size, url);
  if (!download.loaded) await cache.remove(url);
  const copy = new cache.Writer(url, { size: download.size, version: download.version, sha256: null }, download.loaded);
  try {
    const size = await pump(download.chunks(copy), download.size, sink, options, { stage: "download", name: url });
    const sha256 = copy.failure && !remote.sha256 ? "" : hex(await sink.digest());
    checkContent(remote, size, sha256);
    await copy.commit(size, sha256);
    if (copy.failure) notice = `The download is not kept for the next visit: ${copy.failure}.`;
    return { size, notice };
  } catch (error) {
    // What the connection broke off may come later; what was refused would be refused again.
    if (options.signal.aborted || error instanceof Broken) await copy.abort();
    else await cache.remove(url);
    throw error;
  }
}

/** @param {Remote} remote @param {number} size @param {string} sha256 */
function checkContent(remote, size, sha256) {
  const isSize = remote.size === undefined || remote.size === size;
  const isHash = remote.sha256 === undefined || remote.sha256 === sha256;
  if (isSize && isHash) return;
  const why = isSize ? `its SHA-256 is ${sha256}, not ${remote.sha256}` : `it has ${size} bytes, not ${remote.size}`;
  throw new Problem("DamagedDownload", `${remote.url} was not received correctly: ${why}.`, "Load it again. If that does not help, the server has another file than its list says.");
}

/** @param {number | null} size @param {string} name */
function checkSize(size, name) {
  if (size !== null && size > MAX_BYTES) {
    throw new Problem(
      "FileTooLarge",
      `${name} has ${(size / 1e9).toFixed(1)} GB; a tab can hold files up to ${(MAX_BYTES / 1e9).toFixed(1)} GB.`,
      "Choose a smaller model, or run this one natively.",
    );
  }
}

/**
 * Move bytes into a sink.
 * @param {AsyncIterable<Uint8Array<ArrayBuffer>>} chunks
 * @param {number | null} size
 * @param {Sink} sink
 * @param {Options} options
 * @param {{ stage: Stage, name: string }} source
 * @returns {Promise<number>} how many bytes there were
 */
async function pump(chunks, size, sink, { onProgress, signal }, { stage, name }) {
  let loaded = 0;
  let begun = false;
  try {
    for await (const chunk of headFirst(chunks, HEAD_BYTES)) {
      signal.throwIfAborted();
      if (!begun) sink.begin(chunk, size);
      begun = true;
      loaded += chunk.length;
      checkSize(loaded, name);
      sink.write(chunk);
      onProgress({ stage, loaded, total: size });
    }
  } catch (error) {
    // What streams throw names neither the file nor the place; Problems and aborts already say enough.
    if (error instanceof Problem || signal.aborted) throw error;
    throw new Broken(
      "ReadError",
      `${name} stopped after ${megabytes(loaded)}${size === null ? "" : ` of ${megabytes(size)}`}: ${error instanceof Error ? error.message : error}`,
      stage === "download" ? "Check the connection, then load it again." : "Choose the file again; it may have changed since.",
    );
  }
  sink.end();
  return loaded;
}

/**
 * The chunks, the first ones joined until they have `length` bytes; an empty one of none.
 * @param {AsyncIterable<Uint8Array<ArrayBuffer>>} chunks
 * @param {number} length
 * @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, void>}
 */
async function* headFirst(chunks, length) {
  let head = new Uint8Array();
  let begun = false;
  for await (const chunk of chunks) {
    if (begun) yield chunk;
    else {
      const joined = new Uint8Array(head.length + chunk.length);
      joined.set(head);
      joined.set(chunk, head.length);
      head = joined;
      begun = head.length >= length;
      if (begun) yield head;
    }
  }
  if (!begun) yield head;
}

/** @param {number} bytes */
function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** @param {ArrayBuffer} digest */
function hex(digest) {
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
