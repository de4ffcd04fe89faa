/** Read a file or a URL into Python's memory, chunk by chunk; the browser stores a copy of downloads. */

import * as cache from "./cache.js";
import { ByteReader, CHUNK_BYTES, Changed, Download } from "./download.js";
import { Problem } from "./protocol.js";

/** @import { Remote, Source, Stage } from "./protocol.js" */

/**
 * The destination of the bytes: `begin` is called first, then `write` for each chunk, then `end`. `begin` throws if the
 * file's first bytes or its size are wrong; it is called again if what came before was of another file. `write` copies the chunk, which
 * is empty later. `digest` is the SHA-256 of all bytes written, in hexadecimal.
 * @typedef {{
 *   begin(head: Uint8Array, size: number | null): void,
 *   write(chunk: Uint8Array): void,
 *   end(): void,
 *   digest(): Promise<string>,
 * }} Sink
 * @typedef {{ stage: Stage, loaded: number, total: number | null }} Report
 * @typedef {{ onProgress: (report: Report) => void, signal: AbortSignal }} Options
 * @typedef {{ size: number, notice: string | null }} Read
 */

// Python's memory is limited to 4 GiB, and a model needs memory besides its weights.
const MAX_BYTES = 3 * 2 ** 30;
// The size of the largest header among the supported formats.
const HEAD_BYTES = 256;

/** Reading failed before the end of the file. */
class Broken extends Problem {
  canResume = true;
}

/**
 * Read a source into a sink.
 * @param {Source} source
 * @param {Sink} sink
 * @param {Options} options
 * @returns {Promise<Read>}
 * @throws {Problem} the source cannot be read, is too large, or is refused by the sink
 */
export async function readInto(source, sink, options) {
  return "file" in source ? readFile(source.file, sink, options) : readUrl(source, sink, options);
}

/** @param {File} file @param {Sink} sink @param {Options} options @returns {Promise<Read>} */
async function readFile(file, sink, options) {
  checkSize(file.size, file.name);
  const size = await pump(chunksOfFile(file), file.size, sink, options, { stage: "file", name: file.name });
  return { size, notice: null };
}

/** The chunks of a file, all in the same memory. @param {File} file @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, void>} */
async function* chunksOfFile(file) {
  const reader = new ByteReader(file.stream());
  try {
    for (let chunk = new Uint8Array(CHUNK_BYTES); ; ) {
      chunk = await reader.read(new Uint8Array(chunk.buffer));
      if (!chunk.length) return;
      yield chunk;
    }
  } finally {
    await reader.cancel();
  }
}

/** @param {Remote} remote @param {Sink} sink @param {Options} options @returns {Promise<Read>} */
async function readUrl(remote, sink, options) {
  const { url } = remote;
  const entry = await cache.find(url);
  let notice = null;
  if (entry?.sha256 && (!remote.sha256 || remote.sha256 === entry.sha256)) {
    try {
      const size = await pump(entry.chunks(), entry.size, sink, options, { stage: "cache", name: url });
      return { size, notice };
    } catch (error) {
      if (options.signal.aborted) throw error;
      await cache.remove(url); // it would fail in the same way at every visit
      if (!(error instanceof cache.Damaged)) throw error;
      notice = "The stored copy was damaged, so the file was downloaded again.";
    }
  }
  try {
    return await download(remote, entry?.sha256 ? null : entry, sink, options, notice);
  } catch (error) {
    const isOver = error instanceof Changed || (error instanceof Broken && !error.canResume);
    if (!isOver || options.signal.aborted) throw error;
    return download(remote, null, sink, options, notice); // from its start, once
  }
}

/**
 * Download a file and store it.
 * @param {Remote} remote @param {cache.Entry | null} entry  the parts that an earlier visit stored @param {Sink} sink @param {Options} options
 * @param {string | null} notice @returns {Promise<Read>}
 * @throws {Problem}
 */
async function download(remote, entry, sink, options, notice) {
  const { url } = remote;
  const download = await Download.begin(remote, entry, options.signal);
  checkSize(download.size, url);
  if (!download.loaded) await cache.remove(url);
  const parts = download.loaded && entry ? entry.parts : [];
  const copy = new cache.Writer(url, { size: download.size, version: download.version, sha256: null, parts });
  try {
    const size = await pump(download.chunks(copy), download.size, sink, options, { stage: "download", name: url });
    const sha256 = copy.failure && !remote.sha256 ? "" : await sink.digest();
    if (download.isJoined && remote.sha256 && remote.sha256 !== sha256) throw new Changed(url);
    checkContent(remote, size, sha256);
    await copy.commit(size, sha256);
    if (copy.failure) notice = `The download is not kept for the next visit: ${copy.failure}.`;
    return { size, notice };
  } catch (error) {
    if (error instanceof Broken) error.canResume = download.canResume;
    // Keep an interrupted download, which can resume later. Delete a refused one, which would be refused again.
    if (options.signal.aborted || error instanceof Broken) await copy.abort();
    else await cache.remove(url);
    throw error;
  }
}

/** Check a download against the expected size and hash. @param {Remote} remote @param {number} size @param {string} sha256 */
function checkContent(remote, size, sha256) {
  const sizeMatches = remote.size === undefined || remote.size === size;
  const hashMatches = remote.sha256 === undefined || remote.sha256 === sha256;
  if (sizeMatches && hashMatches) return;
  const reason = sizeMatches ? `its SHA-256 is ${sha256}, not ${remote.sha256}` : `it has ${size} bytes, not ${remote.size}`;
  throw new Problem("DamagedDownload", `${remote.url} was not received correctly: ${reason}.`, "Load it again. If that does not help, the file on the server differs from the server's list.");
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
 * Write chunks into a sink.
 * @param {AsyncIterable<Uint8Array<ArrayBuffer>>} chunks
 * @param {number | null} size
 * @param {Sink} sink
 * @param {Options} options
 * @param {{ stage: Stage, name: string }} source
 * @returns {Promise<number>}  the number of bytes
 */
async function pump(chunks, size, sink, { onProgress, signal }, { stage, name }) {
  let loaded = 0;
  let hasBegun = false;
  try {
    for await (const chunk of headFirst(chunks, HEAD_BYTES)) {
      signal.throwIfAborted();
      if (!hasBegun) sink.begin(chunk, size);
      hasBegun = true;
      loaded += chunk.length;
      checkSize(loaded, name);
      sink.write(chunk);
      onProgress({ stage, loaded, total: size });
    }
  } catch (error) {
    // The errors of streams name neither the file nor the position.
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
 * Join the first chunks until they have `length` bytes. Yield an empty chunk if there are no chunks.
 * @param {AsyncIterable<Uint8Array<ArrayBuffer>>} chunks
 * @param {number} length
 * @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, void>}
 */
async function* headFirst(chunks, length) {
  let head = new Uint8Array();
  let isComplete = false;
  for await (const chunk of chunks) {
    if (isComplete) yield chunk;
    else {
      const joined = new Uint8Array(head.length + chunk.length);
      joined.set(head);
      joined.set(chunk, head.length);
      head = joined;
      isComplete = head.length >= length;
      if (isComplete) yield head;
    }
  }
  if (!isComplete) yield head;
}

/** @param {number} bytes */
function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
