/**
 * Downloads that the browser stores, by URL (Cache Storage).
 *
 * A download is stored in parts, each of them complete, so that it can resume after the connection broke or the tab was
 * closed. A record describes the file that the parts belong to; the record of a complete download has a SHA-256.
 */

const PARTS = "tallow-downloads";
const RECORDS = "tallow-downloads-records";
export const PART_BYTES = 16 * 2 ** 20;

/**
 * `version` identifies the content of the URL, or is null if the server does not; `sha256` is null until the download is
 * complete.
 * @typedef {{ size: number | null, version: string | null, sha256: string | null }} Record
 * @typedef {Record & { loaded: number, chunks: () => AsyncGenerator<Uint8Array<ArrayBuffer>, void> }} Entry
 */

/** The reason why nothing can be stored, or null. Browsers offer storage to https and localhost only. */
const unavailable = "caches" in globalThis ? null : "this address is not secure (https)";

/** Find the stored download of a URL, complete or only its first parts. @param {string} url @returns {Promise<Entry | null>} */
export async function find(url) {
  if (unavailable) return null;
  const [records, store] = await Promise.all([caches.open(RECORDS), caches.open(PARTS)]);
  const response = await records.match(url);
  if (!response) return null;
  const record = /** @type {Record} */ (await response.json());
  const isComplete = record.sha256 !== null;
  const count = isComplete ? Math.ceil((record.size ?? 0) / PART_BYTES) : Infinity;
  /** @type {Response[]} */
  const parts = [];
  while (parts.length < count) {
    const part = await store.match(partUrl(url, parts.length));
    if (!part) break;
    parts.push(part);
  }
  if (isComplete && parts.length < count) return null; // the browser has deleted some parts
  const chunks = async function* () {
    let next = parts[0]?.arrayBuffer(); // the browser reads a part while the caller uses the one before
    for (let i = 0; i < parts.length; i++) {
      const part = await next;
      next = parts[i + 1]?.arrayBuffer();
      yield new Uint8Array(/** @type {ArrayBuffer} */ (part));
    }
  };
  return { ...record, loaded: isComplete ? (record.size ?? 0) : parts.length * PART_BYTES, chunks };
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
    const record = /** @type {Record | undefined} */ (await (await records.match(request))?.json());
    return record?.sha256 ? [request.url] : [];
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
  #parts;
  /** @type {Uint8Array<ArrayBuffer>[]} */
  #chunks = [];
  #bytes = 0;

  /** @param {string} url @param {Record} record @param {number} loaded  the bytes that are stored already, a multiple of PART_BYTES */
  constructor(url, record, loaded) {
    this.#url = url;
    this.#record = record;
    this.#parts = loaded / PART_BYTES;
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
    await this.#try(() => this.#storeRecord({ ...this.#record, size, sha256 }));
  }

  /** End an incomplete download. Without a version, it could not be told from another version of the file, and is deleted. */
  async abort() {
    if (this.#record.version === null) await remove(this.#url);
  }

  #storePart() {
    return this.#try(async () => {
      if (!this.#parts) await this.#storeRecord(this.#record);
      const store = await caches.open(PARTS);
      await store.put(partUrl(this.#url, this.#parts), new Response(new Blob(this.#chunks)));
      this.#chunks = [];
      this.#bytes = 0;
      this.#parts++;
    });
  }

  /** @param {Record} record */
  async #storeRecord(record) {
    const records = await caches.open(RECORDS);
    await records.put(this.#url, new Response(JSON.stringify(record)));
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
