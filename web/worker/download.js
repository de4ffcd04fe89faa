/** Downloads that resume: after the connection breaks, and after an earlier visit that did not finish. */

import { Problem } from "./protocol.js";

/** @import { Entry } from "./cache.js" */
/** @import { Remote } from "./protocol.js" */
/** @typedef {{ body: ReadableStream<Uint8Array<ArrayBuffer>> | null, start: number, size: number | null, version: string | null }} Answer */
/** @typedef {{ write(chunk: Uint8Array<ArrayBuffer>): Promise<void> }} Copy */

// The pauses before each retry. A retry that receives data resets the count.
const PAUSES_MS = [250, 1000, 3000];
export const CHUNK_BYTES = 2 ** 20; // at most: Chromium's have 0.1 to 0.5 MB
const LOOPBACK = ["localhost", "127.0.0.1"];
const LOGIN = "This page cannot log in: download the model's files, and choose their folder.";

/** The server does not have the file. */
export class Missing extends Problem {}

/** The server does not answer; a retry may succeed. */
class Unreachable extends Problem {}

/** What was received before is not of this file, as the server now has it. */
export class Changed extends Problem {
  /** @param {string} url */
  constructor(url) {
    super("DownloadError", `${url} changed during the download.`, "Load it again.");
  }
}

export class Download {
  #remote;
  #signal;
  /** @type {Answer | null} */
  #answer;
  #stored;

  /** @param {Remote} remote @param {Answer} answer @param {Entry | null} stored @param {AbortSignal} signal */
  constructor(remote, answer, stored, signal) {
    this.#remote = remote;
    this.#signal = signal;
    this.#answer = answer;
    this.#stored = stored;
    this.size = answer.size;
    this.version = answer.version;
    /** The bytes received so far, including the stored ones. */
    this.loaded = stored?.loaded ?? 0;
    /** Whether they come from several answers. */
    this.isJoined = stored !== null;
  }

  /** Whether the rest could be told from that of another file. */
  get canResume() {
    return this.version !== null || this.loaded === 0;
  }

  /**
   * Request a file.
   * @param {Remote} remote
   * @param {Entry | null} stored  the parts of it that an earlier visit stored
   * @param {AbortSignal} signal
   * @throws {Problem} the server refuses, or cannot be reached
   */
  static async begin(remote, stored, signal) {
    if (stored?.loaded && stored.version !== null) {
      const answer = await request(remote, stored.loaded, signal);
      if (answer?.start === 0) return new Download(remote, answer, null, signal); // the server sends all of it
      if (answer?.size === stored.size && answer.version === stored.version) return new Download(remote, answer, stored, signal);
      await answer?.body?.cancel(); // the file has changed
    }
    const answer = /** @type {Answer} */ (await request(remote, 0, signal));
    return new Download(remote, answer, null, signal);
  }

  /**
   * The content of the file, from its start.
   * @throws {Changed} the rest of the file cannot be had, but a file from its start
   * @param {Copy} copy  receives the bytes that were not stored before
   * @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, void>}
   */
  async *chunks(copy) {
    if (this.#stored) yield* this.#stored.chunks();
    for (let failures = 0; ; ) {
      const before = this.loaded;
      try {
        this.#answer ??= await this.#resume();
        let skip = this.loaded - this.#answer.start; // a server without range requests sends everything again
        for await (const chunk of chunksOf(this.#answer.body)) {
          const rest = chunk.subarray(skip);
          skip = Math.max(0, skip - chunk.length);
          if (!rest.length) continue;
          this.loaded += rest.length;
          await copy.write(rest);
          yield rest;
        }
        if (this.size === null || this.loaded === this.size) return; // browsers throw if a body ends early, but for its own size
        if (this.loaded > this.size) throw new Changed(this.#remote.url);
        throw new Error("the answer ended early");
      } catch (error) {
        const isFinal = error instanceof Problem && !(error instanceof Unreachable);
        if (isFinal || this.#signal.aborted || !this.canResume) throw error;
        failures = this.loaded > before ? 0 : failures + 1;
        if (failures === PAUSES_MS.length) throw new Error(error instanceof Error ? error.message : String(error));
        await pause(PAUSES_MS[failures], this.#signal);
        this.#answer = null;
      }
    }
  }

  async #resume() {
    const answer = await request(this.#remote, this.loaded, this.#signal);
    this.isJoined = this.loaded > 0;
    if (answer && answer.version === this.version && (this.size === null || answer.size === this.size)) return answer;
    await answer?.body?.cancel();
    throw new Changed(this.#remote.url);
  }
}

/** The chunks of a stream. Leaving the loop cancels the stream. @param {ReadableStream<Uint8Array<ArrayBuffer>> | null} stream @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, void>} */
export async function* chunksOf(stream) {
  if (!stream) return;
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      if (value.length) yield value;
    }
  } finally {
    await reader.cancel().catch(() => {}); // a failed stream cannot be cancelled, and need not be
  }
}

/**
 * Reads a stream into given memory, by a copy where the browser cannot do that. New memory for each chunk of a large file would
 * wait for a garbage collection, and take as long as reading.
 */
export class ByteReader {
  /** @type {ReadableStreamBYOBReader | null} */
  #direct = null;
  /** @type {ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | null} */
  #copied = null;
  /** @type {Uint8Array<ArrayBuffer>} */
  #rest = new Uint8Array();

  /** @param {ReadableStream<Uint8Array<ArrayBuffer>>} stream */
  constructor(stream) {
    try {
      this.#direct = stream.getReader({ mode: "byob" });
    } catch {
      this.#copied = stream.getReader(); // the stream is not one of bytes
    }
  }

  /**
   * Read the next bytes into a view, whose memory moves to the result.
   * @param {Uint8Array<ArrayBuffer>} view @returns {Promise<Uint8Array<ArrayBuffer>>}  empty at the end
   */
  async read(view) {
    if (this.#direct) return /** @type {Uint8Array<ArrayBuffer>} */ ((await this.#direct.read(view)).value);
    if (!this.#rest.length) this.#rest = (await this.#copied?.read())?.value ?? this.#rest;
    const length = Math.min(view.length, this.#rest.length);
    view.set(this.#rest.subarray(0, length));
    this.#rest = this.#rest.subarray(length);
    return view.subarray(0, length);
  }

  async cancel() {
    await (this.#direct ?? this.#copied)?.cancel().catch(() => {}); // a failed stream cannot be cancelled, and need not be
  }
}

/**
 * Request a file from an offset on.
 * @param {Remote} remote @param {number} start @param {AbortSignal} signal
 * @returns {Promise<Answer | null>}  from `start`, or from 0 if the server has no range requests; null if it sends another part
 */
async function request({ url, sha256 }, start, signal) {
  if (!isSecure(url)) {
    throw new Problem("DownloadError", `"${url}" is not secure; the page fetches files by https only.`, "Use https if the server supports it, or download the file and choose it.");
  }
  /** @type {Response} */
  let response;
  try {
    // cache.js stores downloads; the HTTP cache would store a second copy of a large file. The header "Range: bytes=N-" needs
    // no CORS preflight.
    response = await fetch(url, { signal, cache: "no-store", headers: start ? { Range: `bytes=${start}-` } : {} });
  } catch (error) {
    if (signal.aborted) throw error;
    throw navigator.onLine
      ? new Unreachable(
          "DownloadError",
          `${url} could not be fetched.`,
          "The address may be wrong, the server down, or it may not let other sites read its files (CORS).",
        )
      : new Unreachable("DownloadError", `${url} could not be fetched: you are offline.`, "Connect, or choose a file from this computer.");
  }
  if (start && response.status === 416) return null;
  if (!response.ok) throw refusal(url, response);
  const { headers } = response;
  const place = response.status === 206 ? placeOf(response, start) : { start: 0, size: sizeOf(headers) };
  if (!place && !start) throw new Problem("DownloadError", `${url}: the server sends a part of the file, and was asked for all of it.`);
  if (place) return { body: response.body, ...place, version: sha256 ?? headers.get("etag") ?? headers.get("last-modified") };
  await response.body?.cancel();
  return null;
}

/** Whether the pages' Content-Security-Policy allows the URL: https, this computer, or the page's own origin. @param {string} url */
function isSecure(url) {
  const { protocol, hostname, origin } = new URL(url);
  return protocol !== "http:" || LOOPBACK.includes(hostname) || origin === globalThis.origin;
}

/** The error for a response that is not OK. @param {string} url @param {Response} response */
function refusal(url, { status, statusText, headers }) {
  if (headers.get("x-error-code") === "GatedRepo") {
    return new Problem("DownloadError", `${url} is available only after accepting the terms of its model.`, `Accept them on the model's page. ${LOGIN}`);
  }
  const message = `${url}: the server answers ${`${status} ${statusText}`.trim()}.`;
  if (status === 401 || status === 403) return new Problem("DownloadError", message, `Access to it is restricted. ${LOGIN}`);
  const Kind = status === 404 ? Missing : status >= 500 ? Unreachable : Problem;
  return new Kind("DownloadError", message, "Check the address, or choose a file from this computer.");
}

/** The size of the body; null if the server does not send it. @param {Headers} headers */
function sizeOf(headers) {
  const length = headers.get("content-length");
  return length === null || headers.has("content-encoding") ? null : Number(length);
}

/**
 * Where the content of a partial answer (RFC 9110, section 14.4) is in its file, and the size of the file.
 * @param {Response} response @param {number} start  as requested
 * @returns {{ start: number, size: number | null } | null}  null for another part, or for several
 */
function placeOf({ headers, type }, start) {
  const range = headers.get("content-range");
  const rest = sizeOf(headers);
  if (headers.has("content-encoding") || headers.get("content-type")?.startsWith("multipart/")) return null;
  // A server of another origin has to allow a page to read the range. Without it, the length has to do.
  if (range === null) return type === "cors" && rest !== null ? { start, size: start + rest } : null;
  const [first, last, total] = (/^bytes (\d+)-(\d+)\/(\d+)$/.exec(range) ?? []).slice(1).map(Number);
  const isWhole = last === total - 1 && (rest === null || rest === total - first);
  return isWhole && (first === start || first === 0) ? { start: first, size: total } : null;
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
