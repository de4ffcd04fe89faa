/** Bytes from a file or a URL into Python's memory, chunk by chunk, with a copy of downloads kept by the browser. */

import * as cache from "./cache.js";
import { Problem } from "./protocol.js";

/** @import { Source, Stage } from "./protocol.js" */

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

/** There is no such file. */
export class Missing extends Problem {}

/**
 * @param {Source} source
 * @param {Sink} sink
 * @param {Options} options
 * @returns {Promise<Read>}
 * @throws {Problem} the source cannot be read, is too large, or its head is refused
 */
export async function readInto(source, sink, options) {
  return "file" in source ? readFile(source.file, sink, options) : readUrl(source.url, sink, options);
}

/** @param {File} file @param {Sink} sink @param {Options} options @returns {Promise<Read>} */
async function readFile(file, sink, options) {
  checkSize(file.size, file.name);
  const size = await pump(file.stream(), file.size, sink, options, { stage: "file", name: file.name });
  return { size, notice: null };
}

/** @param {string} url @param {Sink} sink @param {Options} options @returns {Promise<Read>} */
async function readUrl(url, sink, options) {
  let notice = null;
  const entry = await cache.find(url);
  if (entry) {
    const size = await pump(entry.body, entry.size, sink, options, { stage: "cache", name: url }).catch(async (error) => {
      if (!options.signal.aborted) await cache.remove(url); // what is refused or unreadable now would be so for ever
      throw error;
    });
    if (size === entry.size && hex(await sink.digest()) === entry.sha256) return { size, notice };
    await cache.remove(url);
    notice = "The stored copy was damaged, so the file was downloaded again.";
  }
  const response = await request(url, options.signal);
  const size = sizeOf(response);
  checkSize(size, url);
  const writer = await cache.write(url);
  try {
    const received = await pump(response.body, size, sink, options, { stage: "download", name: url, copy: writer });
    await writer.commit(received, writer.failure ? "" : hex(await sink.digest()));
    if (writer.failure) notice = `The download is not kept for the next visit: ${writer.failure}.`;
    return { size: received, notice };
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

/** @param {string} url @param {AbortSignal} signal */
async function request(url, signal) {
  /** @type {Response} */
  let response;
  try {
    // Our own cache holds what is worth holding; the HTTP cache would keep a second copy of a large file.
    response = await fetch(url, { signal, cache: "no-store" });
  } catch (error) {
    if (signal.aborted) throw error;
    throw navigator.onLine
      ? new Problem(
          "DownloadError",
          `${url} could not be fetched.`,
          "The address may be wrong, the server down, or it may not let other sites read its files (CORS).",
        )
      : new Problem("DownloadError", `${url} could not be fetched: you are offline.`, "Connect, or choose a file from this computer.");
  }
  if (!response.ok) {
    const status = `${response.status} ${response.statusText}`.trim();
    const Kind = response.status === 404 ? Missing : Problem;
    throw new Kind("DownloadError", `${url}: the server answers ${status}.`, "Check the address, or choose a file from this computer.");
  }
  return response;
}

/** The size of the body, if the server tells it. @param {Response} response */
function sizeOf({ headers }) {
  const length = headers.get("content-length");
  return length === null || headers.has("content-encoding") ? null : Number(length);
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
 * Move a stream into a sink, and into the cache beside it.
 * @param {ReadableStream<Uint8Array> | null} stream
 * @param {number | null} size
 * @param {Sink} sink
 * @param {Options} options
 * @param {{ stage: Stage, name: string, copy?: cache.Writer }} source
 * @returns {Promise<number>} how many bytes there were
 */
async function pump(stream, size, sink, { onProgress, signal }, { stage, name, copy }) {
  const reader = (stream ?? new Blob().stream()).getReader();
  let loaded = 0;
  try {
    const head = await readHead(reader, HEAD_BYTES);
    sink.begin(head, size);
    for (let chunk = head; chunk.length; chunk = await nextChunk(reader)) {
      signal.throwIfAborted();
      loaded += chunk.length;
      checkSize(loaded, name);
      sink.write(chunk);
      await copy?.write(chunk);
      onProgress({ stage, loaded, total: size });
    }
  } catch (error) {
    await reader.cancel().catch(() => {}); // a stream that failed cannot be cancelled, and need not be
    // What streams throw names neither the file nor the place; Problems and aborts already say enough.
    if (error instanceof Problem || signal.aborted) throw error;
    throw new Problem(
      "ReadError",
      `${name} stopped after ${megabytes(loaded)}${size === null ? "" : ` of ${megabytes(size)}`}: ${error instanceof Error ? error.message : error}`,
      stage === "download" ? "Check the connection, then load it again." : "Choose the file again; it may have changed since.",
    );
  }
  sink.end();
  return loaded;
}

/**
 * The first chunks, joined until they have `length` bytes or the stream ends.
 * @param {ReadableStreamDefaultReader<Uint8Array>} reader
 * @param {number} length
 * @returns {Promise<Uint8Array>}
 */
async function readHead(reader, length) {
  /** @type {Uint8Array} */
  let head = new Uint8Array();
  while (head.length < length) {
    const value = await nextChunk(reader);
    if (!value.length) break;
    const joined = new Uint8Array(head.length + value.length);
    joined.set(head);
    joined.set(value, head.length);
    head = joined;
  }
  return head;
}

/** The next bytes; none at the end. @param {ReadableStreamDefaultReader<Uint8Array>} reader @returns {Promise<Uint8Array>} */
async function nextChunk(reader) {
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return new Uint8Array();
    if (value.length) return value;
  }
}

/** @param {number} bytes */
function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** @param {ArrayBuffer} digest */
function hex(digest) {
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
