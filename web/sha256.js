/** SHA-256, on this thread or on one of its own. */

/** The SHA-256 of the chunks, one after the other, in hexadecimal. @param {Uint8Array<ArrayBuffer>[]} chunks @returns {Promise<string>} */
export async function sha256(chunks) {
  const digest = await crypto.subtle.digest("SHA-256", chunks.length === 1 ? chunks[0] : await new Blob(chunks).arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Chromium copies what it hashes: blocks that stay in the processor's cache take half the time of 16 MiB.
const BLOCK_BYTES = 2 ** 19;

/** The SHA-256 of the SHA-256 of each block of the chunks, in hexadecimal. @param {Uint8Array<ArrayBuffer>[]} chunks @returns {Promise<string>} */
export async function blockHash(chunks) {
  const block = new Uint8Array(BLOCK_BYTES);
  let filled = 0;
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const hashes = [];
  const endBlock = async () => {
    hashes.push(new Uint8Array(await crypto.subtle.digest("SHA-256", block.subarray(0, filled))));
    filled = 0;
  };
  for (const chunk of chunks) {
    for (let rest = chunk; rest.length; ) {
      const piece = rest.subarray(0, BLOCK_BYTES - filled);
      block.set(piece, filled);
      filled += piece.length;
      rest = rest.subarray(piece.length);
      if (filled === BLOCK_BYTES) await endBlock();
    }
  }
  if (filled) await endBlock();
  return sha256(hashes);
}

const SCRIPT = `
import { blockHash } from ${JSON.stringify(import.meta.url)};
let last = Promise.resolve(); // answers come in the order of the requests
onmessage = ({ data: chunks }) => (last = last.then(async () => postMessage(await blockHash(chunks))));
postMessage("");`;

/**
 * Computes block hashes in a worker: Chromium hashes on the calling thread, although the function is asynchronous. Where no
 * worker may start, as a page's policy can have it, this thread computes them.
 */
export class HashWorker {
  #worker;
  #url = URL.createObjectURL(new Blob([SCRIPT], { type: "text/javascript" })); // as in kernel-supervisor.js
  #isStarted;
  /** @type {((hash: string) => void)[]} */
  #waiting = [];

  constructor() {
    this.#worker = new Worker(this.#url, { type: "module" });
    this.#isStarted = new Promise((resolve) => {
      this.#worker.onmessage = () => resolve(true);
      this.#worker.onerror = (event) => {
        event.preventDefault(); // or it is an error of the workers above, and of the page
        resolve(false);
      };
    }).finally(() => (this.#worker.onmessage = ({ data: hash }) => this.#waiting.shift()?.(hash)));
  }

  /** As `blockHash`. The worker takes the memory of the chunks, which are empty afterwards. @param {Uint8Array<ArrayBuffer>[]} chunks @returns {Promise<string>} */
  async hash(chunks) {
    if (!(await this.#isStarted)) return blockHash(chunks);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#worker.postMessage(chunks, [...new Set(chunks.map(({ buffer }) => buffer))]);
    });
  }

  close() {
    this.#worker.terminate();
    URL.revokeObjectURL(this.#url);
  }
}
