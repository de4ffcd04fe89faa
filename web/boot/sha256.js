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
  const endBlock = async (/** @type {Uint8Array<ArrayBuffer>} */ bytes) => {
    hashes.push(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
    filled = 0;
  };
  for (const chunk of chunks) {
    for (let rest = chunk; rest.length; ) {
      const piece = rest.subarray(0, BLOCK_BYTES - filled);
      rest = rest.subarray(piece.length);
      if (piece.length === BLOCK_BYTES) {
        await endBlock(piece);
        continue;
      }
      block.set(piece, filled);
      filled += piece.length;
      if (filled === BLOCK_BYTES) await endBlock(block);
    }
  }
  if (filled) await endBlock(block.subarray(0, filled));
  return sha256(hashes);
}

const SCRIPT = `
import { blockHash } from ${JSON.stringify(import.meta.url)};
let last = Promise.resolve(); // answers come in the order of the requests
onmessage = ({ data: bytes }) =>
  (last = last.then(async () => postMessage({ hash: await blockHash([bytes]), memory: bytes.buffer }, [bytes.buffer])));
postMessage("");`;

/**
 * Computes block hashes in a worker: Chromium hashes on the calling thread, although the function is asynchronous. This thread
 * computes them until the worker runs, which may be never: a page's policy can forbid it, and a busy browser can lose its start.
 */
export class HashWorker {
  #worker;
  #url = URL.createObjectURL(new Blob([SCRIPT], { type: "text/javascript" })); // as in kernel-supervisor.js
  #isRunning = false;
  /** @type {((answer: { hash: string, memory: ArrayBuffer }) => void)[]} */
  #waiting = [];

  constructor() {
    this.#worker = new Worker(this.#url, { type: "module" });
    this.#worker.onmessage = ({ data: answer }) => {
      this.#isRunning = true; // the first message is empty
      this.#waiting.shift()?.(answer);
    };
    this.#worker.onerror = (event) => event.preventDefault(); // or it is an error of the workers above, and of the page
  }

  /** Hash bytes as `blockHash` does, and return their memory, too. They are empty afterwards. @param {Uint8Array<ArrayBuffer>} bytes @returns {Promise<{ hash: string, memory: ArrayBuffer }>} */
  async hash(bytes) {
    if (!this.#isRunning) return { hash: await blockHash([bytes]), memory: bytes.buffer };
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#worker.postMessage(bytes, [bytes.buffer]);
    });
  }

  close() {
    this.#worker.terminate();
    URL.revokeObjectURL(this.#url);
  }
}
