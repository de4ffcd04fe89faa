/**
 * Downloads that the browser stores, by URL (Cache Storage).
 *
 * A download is stored in parts, each of them complete, so that it can resume after the connection broke or the tab was
 * closed. A record describes the file that the parts belong to, with the block hash of each part, which reading a part checks;
 * the record of a complete download has the file's SHA-256, too.
 */

import { ByteReader, CHUNK_BYTES } from "./download.js";
import { Problem } from "./protocol.js";
import { blockHash, HashWorker } from "../boot/sha256.js";

const PARTS = "tallow-downloads";
const RECORDS = "tallow-downloads-records";
export const PART_BYTES = 16 * 2 ** 20;
// The parts whose hashes may be missing while the next one is read.
const UNCHECKED = 2;

/**
 * `version` identifies the content of the URL, or is null if the server does not; `sha256` is null until the download is
 * complete; `parts` are the block hashes of the parts. A chunk of `chunks` is empty when the next one is requested.
 * @typedef {{ size: number | null, version: string | null, sha256: string | null, parts: string[] }} Record
 * @typedef {Record & { loaded: number, chunks: () => AsyncGenerator<Uint8Array<ArrayBuffer>, void> }} Entry
 */

/** A stored part is not what was received. */
export class Damaged extends Problem {}

/** The reason why nothing can be stored, or null. Browsers offer storage to https and localhost only. */
const unavailable = "caches" in globalThis ? null : "this address is not secure (https)";

/** Find the stored download of a URL, complete or only its first parts. @param {string} url @returns {Promise<Entry | null>} */
export async function find(url) {
  if (unavailable) return null;
  const [records, store] = await Promise.all([caches.open(RECORDS), caches.open(PARTS)]);
  const response = await records.match(url);
  if (!response) return null;
  const record = await recordIn(response);
  if (!record) return null;
  const isComplete = record.sha256 !== null;
  const found = await Promise.all(record.parts.map((_, i) => store.match(partUrl(url, i))));
  const missing = found.indexOf(undefined);
  const parts = /** @type {Response[]} */ (missing < 0 ? found : found.slice(0, missing));
  if (isComplete && parts.length < record.parts.length) return null; // the browser has deleted some parts
  const loaded = isComplete ? (record.size ?? 0) : parts.length * PART_BYTES;
  return { ...record, parts: record.parts.slice(0, parts.length), loaded, chunks: () => checkedChunks(url, parts, record.parts) };
}

/** The record in a response; null if it is damaged, or from before records had the hashes of the parts. @param {Response} response @returns {Promise<Record | null>} */
async function recordIn(response) {
  const record = await response.json().catch(() => null);
  return Array.isArray(record?.parts) ? record : null;
}

/**
 * The content of parts, checked: all chunks of a file with a wrong part may come before the error.
 * @param {string} url @param {Response[]} parts @param {string[]} expected  the block hash of each part
 * @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, void>}
 * @throws {Damaged}
 */
async function* checkedChunks(url, parts, expected) {
  const worker = parts.length > 1 ? new HashWorker() : null; // which takes longer to start than one part to check
  /** @type {Promise<void>[]} */
  const checks = [];
  /** The memory of checked parts, for the next ones: new memory would be a third of the time. @type {ArrayBuffer[]} */
  const spare = [];
  const check = async (/** @type {Uint8Array<ArrayBuffer>} */ bytes, /** @type {string} */ expectedHash) => {
    const { hash, memory } = worker ? await worker.hash(bytes) : { hash: await blockHash([bytes]), memory: bytes.buffer };
    if (hash !== expectedHash) throw new Damaged("DamagedDownload", `The stored copy of ${url} is damaged.`, "Load it again.");
    spare.push(memory);
  };
  try {
    for (const [i, part] of parts.entries()) {
      const bytes = yield* readPart(part, spare.pop() ?? new ArrayBuffer(PART_BYTES));
      checks.push(check(bytes, expected[i]));
      checks[i].catch(() => {}); // awaited below
      await checks[i - UNCHECKED];
    }
    await Promise.all(checks);
  } finally {
    worker?.close();
  }
}

/**
 * Read a part into memory: yield its chunks, each empty when the next one is requested, and return all of it.
 * @param {Response} part @param {ArrayBuffer} memory
 * @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>}
 */
async function* readPart({ body }, memory) {
  const reader = new ByteReader(/** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (body));
  let size = 0;
  try {
    while (size < memory.byteLength) {
      const chunk = await reader.read(new Uint8Array(memory, size, Math.min(CHUNK_BYTES, memory.byteLength - size)));
      memory = chunk.buffer;
      if (!chunk.length) break;
      size += chunk.length;
      yield chunk;
    }
  } finally {
    await reader.cancel();
  }
  return new Uint8Array(memory, 0, size);
}

/** Delete the stored download of a URL. @param {string} url */
export async function remove(url) {
  if (unavailable) return;
  const [records, store] = await Promise.all([caches.open(RECORDS), caches.open(PARTS)]);
  await records.delete(url);
  for (let part = 0; await store.delete(partUrl(url, part)); part++);
}

/** The URLs of the complete downloads. @returns {Promise<Set<string>>} */
export async function storedUrls() {
  if (unavailable) return new Set();
  const records = await caches.open(RECORDS);
  const completeUrl = async (/** @type {Request} */ request) => {
    const response = await records.match(request);
    return response && (await recordIn(response))?.sha256 ? [request.url] : [];
  };
  return new Set((await Promise.all((await records.keys()).map(completeUrl))).flat());
}

/** Delete all stored downloads. */
export async function clear() {
  if (!unavailable) await Promise.all([caches.delete(RECORDS), caches.delete(PARTS)]);
}

/** Stores a download as it arrives. Storing is optional: if it fails, `failure` is the reason and the download continues. */
export class Writer {
  failure = unavailable;
  #url;
  #record;
  /** @type {Uint8Array<ArrayBuffer>[]} */
  #chunks = [];
  #bytes = 0;

  /** @param {string} url @param {Record} record  with the parts that are stored already */
  constructor(url, record) {
    this.#url = url;
    this.#record = record;
  }

  /** @param {Uint8Array<ArrayBuffer>} chunk */
  async write(chunk) {
    for (let rest = chunk; rest.length && !this.failure; ) {
      const piece = rest.subarray(0, PART_BYTES - this.#bytes);
      this.#chunks.push(piece);
      this.#bytes += piece.length;
      rest = rest.subarray(piece.length);
      if (this.#bytes === PART_BYTES) await this.#storePart();
    }
  }

  /** Mark the download as complete. @param {number} size @param {string} sha256 */
  async commit(size, sha256) {
    if (this.#bytes && !this.failure) await this.#storePart();
    await this.#try(() => this.#updateRecord({ size, sha256 }));
  }

  /** End an incomplete download. Without a version, it could not be told from another version of the file, and is deleted. */
  async abort() {
    if (this.#record.version === null) await remove(this.#url);
  }

  #storePart() {
    return this.#try(async () => {
      const { parts } = this.#record;
      await this.#updateRecord({ parts: [...parts, await blockHash(this.#chunks)] });
      const store = await caches.open(PARTS);
      await store.put(partUrl(this.#url, parts.length), new Response(new Blob(this.#chunks)));
      this.#chunks = [];
      this.#bytes = 0;
    });
  }

  /** @param {Partial<Record>} entries */
  async #updateRecord(entries) {
    this.#record = { ...this.#record, ...entries };
    const records = await caches.open(RECORDS);
    await records.put(this.#url, new Response(JSON.stringify(this.#record)));
  }

  /** @param {() => Promise<void>} step */
  async #try(step) {
    if (this.failure) return;
    try {
      await step();
    } catch (error) {
      this.failure = error instanceof Error ? error.message : String(error);
      this.#chunks = [];
      await remove(this.#url).catch(() => {}); // parts without the rest would only take space
    }
  }
}

/** The key of a part in Cache Storage. @param {string} url @param {number} part */
function partUrl(url, part) {
  const key = new URL(url);
  key.searchParams.set("tallow-part", String(part));
  return key.href;
}
