/**
 * Downloads kept by the browser, by URL (Cache Storage).
 *
 * The bytes lie in parts, each of which is whole or not there, so that a download goes on where it ended, with the
 * connection or with the tab. A record says what the parts belong to; the one of a download that has come to its end has
 * a SHA-256.
 */

const PARTS = "tallow-downloads";
const RECORDS = "tallow-downloads-records";
export const PART_BYTES = 16 * 2 ** 20;

/**
 * `version` is whatever tells one content of a URL from the next, where something does; `sha256` is null until the end.
 * @typedef {{ size: number | null, version: string | null, sha256: string | null }} Record
 * @typedef {Record & { loaded: number, chunks: () => AsyncGenerator<Uint8Array<ArrayBuffer>, void> }} Entry
 */

/** Why nothing can be kept, or null. Browsers offer storage to https and localhost only. */
const unavailable = "caches" in globalThis ? null : "this address is not secure (https)";

/** What there is of a URL, all of it or its first parts. @param {string} url @returns {Promise<Entry | null>} */
export async function find(url) {
  if (unavailable) return null;
  const [records, store] = await Promise.all([caches.open(RECORDS), caches.open(PARTS)]);
  const response = await records.match(url);
  if (!response) return null;
  const record = /** @type {Record} */ (await response.json());
  const whole = record.sha256 === null ? Infinity : Math.ceil((record.size ?? 0) / PART_BYTES);
  /** @type {Response[]} */
  const parts = [];
  while (parts.length < whole) {
    const part = await store.match(partUrl(url, parts.length));
    if (!part) break;
    parts.push(part);
  }
  if (record.sha256 !== null && parts.length < whole) return null; // the browser has deleted some
  const chunks = async function* () {
    for (const part of parts) yield new Uint8Array(await part.arrayBuffer());
  };
  return { ...record, loaded: record.sha256 === null ? parts.length * PART_BYTES : (record.size ?? 0), chunks };
}

/** @param {string} url */
export async function remove(url) {
  if (unavailable) return;
  const [records, store] = await Promise.all([caches.open(RECORDS), caches.open(PARTS)]);
  await records.delete(url);
  for (let part = 0; await store.delete(partUrl(url, part)); part++);
}

/** The URLs that are kept, whole. @returns {Promise<Set<string>>} */
export async function kept() {
  if (unavailable) return new Set();
  const records = await caches.open(RECORDS);
  const isWhole = async (/** @type {Request} */ request) => {
    const record = /** @type {Record | undefined} */ (await (await records.match(request))?.json());
    return record?.sha256 ? [request.url] : [];
  };
  return new Set((await Promise.all((await records.keys()).map(isWhole))).flat());
}

/** Delete everything. */
export async function clear() {
  if (!unavailable) await Promise.all([caches.delete(RECORDS), caches.delete(PARTS)]);
}

/** Takes a download as it comes. Keeping is a convenience: when it fails, `failure` says why and the download goes on. */
export class Writer {
  failure = unavailable;
  #url;
  #record;
  #parts;
  /** @type {Uint8Array<ArrayBuffer>[]} */
  #chunks = [];
  #bytes = 0;

  /** @param {string} url @param {Record} record @param {number} loaded  how much of it is kept already, in whole parts */
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
      if (this.#bytes === PART_BYTES) await this.#keep();
    }
  }

  /** The download has come to its end. @param {number} size @param {string} sha256 */
  async commit(size, sha256) {
    if (this.#bytes && !this.failure) await this.#keep();
    await this.#try(() => this.#write({ ...this.#record, size, sha256 }));
  }

  /** It has ended before. What cannot be told from another version of the file is of no use later. */
  async abort() {
    if (this.#record.version === null) await remove(this.#url);
  }

  #keep() {
    return this.#try(async () => {
      if (!this.#parts) await this.#write(this.#record);
      const store = await caches.open(PARTS);
      await store.put(partUrl(this.#url, this.#parts), new Response(new Blob(this.#chunks)));
      this.#chunks = [];
      this.#bytes = 0;
      this.#parts++;
    });
  }

  /** @param {Record} record */
  async #write(record) {
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
      await remove(this.#url).catch(() => {}); // a part of a file would only take room
    }
  }
}

/** The key of a part. @param {string} url @param {number} part */
function partUrl(url, part) {
  const key = new URL(url);
  key.searchParams.set("tallow-part", String(part));
  return key.href;
}
