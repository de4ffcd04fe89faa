/** A file on its way from a server: where the connection breaks, or ended in an earlier visit, it goes on from there. */

import { Problem } from "./protocol.js";

/** @import { Entry } from "./cache.js" */
/** @import { Remote } from "./protocol.js" */
/** @typedef {{ body: ReadableStream<Uint8Array<ArrayBuffer>> | null, start: number, size: number | null, version: string | null }} Answer */
/** @typedef {{ write(chunk: Uint8Array<ArrayBuffer>): Promise<void> }} Copy */

// Before another try; when the last has brought nothing either, it is given up.
const PAUSES_MS = [250, 1000, 3000];
const LOOPBACK = ["localhost", "127.0.0.1"];
const LOGIN = "This page cannot log in: download the model's files, and choose their folder.";

/** There is no such file. */
export class Missing extends Problem {}

/** The server does not answer now; it may later. */
class Unreachable extends Problem {}

export class Download {
  #remote;
  #signal;
  /** @type {Answer | null} */
  #answer;
  #kept;

  /** @param {Remote} remote @param {Answer} answer @param {Entry | null} kept @param {AbortSignal} signal */
  constructor(remote, answer, kept, signal) {
    this.#remote = remote;
    this.#signal = signal;
    this.#answer = answer;
    this.#kept = kept;
    this.size = answer.size;
    this.version = answer.version;
    /** How much there is. */
    this.loaded = kept?.loaded ?? 0;
  }

  /**
   * @param {Remote} remote
   * @param {Entry | null} kept  what has come of it in an earlier visit
   * @param {AbortSignal} signal
   * @throws {Problem} the server refuses, or cannot be reached
   */
  static async begin(remote, kept, signal) {
    if (kept?.loaded && kept.version !== null) {
      const answer = await ask(remote, kept.loaded, signal);
      if (answer?.start && answer.size === kept.size && answer.version === kept.version) return new Download(remote, answer, kept, signal);
      await answer?.body?.cancel(); // another file than it was
    }
    const answer = /** @type {Answer} */ (await ask(remote, 0, signal));
    return new Download(remote, answer, null, signal);
  }

  /**
   * All of the file.
   * @param {Copy} copy  is given what was not kept before
   * @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, void>}
   */
  async *chunks(copy) {
    if (this.#kept) yield* this.#kept.chunks();
    for (let failures = 0; ; ) {
      const before = this.loaded;
      try {
        this.#answer ??= await this.#continued();
        let known = this.loaded - this.#answer.start; // from a server that does not know ranges
        for await (const chunk of chunksOf(this.#answer.body)) {
          const rest = chunk.subarray(known);
          known = Math.max(0, known - chunk.length);
          if (!rest.length) continue;
          this.loaded += rest.length;
          await copy.write(rest);
          yield rest;
        }
        return; // a browser tells a body that ends too early from one that is whole
      } catch (error) {
        const isFinal = error instanceof Problem && !(error instanceof Unreachable);
        if (isFinal || this.#signal.aborted) throw error;
        failures = this.loaded > before ? 0 : failures + 1;
        if (failures === PAUSES_MS.length) throw new Error(error instanceof Error ? error.message : String(error));
        await pause(PAUSES_MS[failures], this.#signal);
        this.#answer = null;
      }
    }
  }

  async #continued() {
    const answer = await ask(this.#remote, this.loaded, this.#signal);
    const differs = answer && [answer.size !== this.size, answer.version !== this.version].some(Boolean);
    if (answer && !differs) return answer;
    await answer?.body?.cancel();
    throw new Problem("DownloadError", `${this.#remote.url} has changed while it was downloaded.`, "Load it again.");
  }
}

/** The bytes of a stream, which is cancelled when they are not wanted any more. @param {ReadableStream<Uint8Array<ArrayBuffer>> | null} stream @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, void>} */
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
    await reader.cancel().catch(() => {}); // a stream that failed cannot be cancelled, and need not be
  }
}

/**
 * @param {Remote} remote @param {number} start @param {AbortSignal} signal
 * @returns {Promise<Answer | null>}  from `start` or, of a server that does not know ranges, from 0; null where the file is shorter
 */
async function ask({ url, sha256 }, start, signal) {
  if (!isSecure(url)) {
    throw new Problem("DownloadError", `"${url}" is not secure; the page fetches files by https only.`, "Write https where the server has it, or download the file and choose it.");
  }
  /** @type {Response} */
  let response;
  try {
    // Our own cache holds what is worth holding; the HTTP cache would keep a second copy of a large file. A range that
    // begins somewhere needs no leave of another origin's server.
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
  const isPart = response.status === 206;
  return {
    body: response.body,
    start: isPart ? start : 0,
    size: isPart ? totalOf(headers, start) : sizeOf(headers),
    version: sha256 ?? headers.get("etag") ?? headers.get("last-modified"),
  };
}

/** Whether the pages' Content-Security-Policy lets them fetch it: by https, from this computer, or from where the page is. @param {string} url */
function isSecure(url) {
  const { protocol, hostname, origin } = new URL(url);
  return protocol !== "http:" || LOOPBACK.includes(hostname) || origin === globalThis.origin;
}

/** @param {string} url @param {Response} response */
function refusal(url, { status, statusText, headers }) {
  if (headers.get("x-error-code") === "GatedRepo") {
    return new Problem("DownloadError", `${url} is available only after accepting the terms of its model.`, `Accept them on the model's page. ${LOGIN}`);
  }
  const message = `${url}: the server answers ${`${status} ${statusText}`.trim()}.`;
  if (status === 401 || status === 403) return new Problem("DownloadError", message, `Access to it is restricted. ${LOGIN}`);
  const Kind = status === 404 ? Missing : status >= 500 ? Unreachable : Problem;
  return new Kind("DownloadError", message, "Check the address, or choose a file from this computer.");
}

/** The size of the body, if the server tells it. @param {Headers} headers */
function sizeOf(headers) {
  const length = headers.get("content-length");
  return length === null || headers.has("content-encoding") ? null : Number(length);
}

/** The size of a file of which the body is the part from `start` on. @param {Headers} headers @param {number} start */
function totalOf(headers, start) {
  const rest = sizeOf(headers); // which another origin's page may read, unlike Content-Range
  return rest === null ? null : start + rest;
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
