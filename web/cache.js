/**
 * Downloads kept by the browser, by URL (Cache Storage).
 *
 * An entry is two responses: the bytes, and in a second cache their size and SHA-256. The second is written last, so an
 * entry is whole or not there, whenever a download or the tab ends.
 */

const BYTES = "tallow-downloads";
const RECORDS = "tallow-downloads-records";

/** @typedef {{ size: number, sha256: string }} Record */

/** Why nothing can be kept, or null. Browsers offer storage to https and localhost only. */
const unavailable = "caches" in globalThis ? null : "this address is not secure (https)";

/**
 * @param {string} url
 * @returns {Promise<({ body: ReadableStream<Uint8Array> | null } & Record) | null>}
 */
export async function find(url) {
  if (unavailable) return null;
  const [records, bytes] = await Promise.all([caches.open(RECORDS), caches.open(BYTES)]);
  const [record, response] = await Promise.all([records.match(url), bytes.match(url)]);
  return record && response ? { body: response.body, .../** @type {Record} */ (await record.json()) } : null;
}

/** @param {string} url */
export async function remove(url) {
  const stores = await Promise.all([caches.open(RECORDS), caches.open(BYTES)]);
  await Promise.all(stores.map((store) => store.delete(url)));
}

/** The URLs that are kept. @returns {Promise<Set<string>>} */
export async function kept() {
  if (unavailable) return new Set();
  const records = await caches.open(RECORDS);
  return new Set((await records.keys()).map((request) => request.url));
}

/** Delete everything. */
export async function clear() {
  if (!unavailable) await Promise.all([caches.delete(RECORDS), caches.delete(BYTES)]);
}

/**
 * Keeping is a convenience: when it fails, `failure` says why and the download goes on.
 * @typedef {{
 *   failure: string | null,
 *   write(chunk: Uint8Array): Promise<void>,
 *   commit(size: number, sha256: string): Promise<void>,
 *   abort(): Promise<void>,
 * }} Writer
 */

/** @param {string} url @returns {Promise<Writer>} */
export async function write(url) {
  const { readable, writable } = new TransformStream();
  const stream = writable.getWriter();
  const stored = unavailable
    ? Promise.reject(new Error(unavailable))
    : caches.open(BYTES).then((store) => store.put(url, new Response(readable)));
  /** @type {Writer} */
  const writer = {
    failure: null,
    async write(chunk) {
      if (writer.failure) return;
      // Whichever comes first: the store has taken the chunk, or it has given up (its quota is used up, say).
      await Promise.race([stream.write(chunk), stored]).catch(() => {});
    },
    async commit(size, sha256) {
      if (writer.failure) return;
      try {
        await stream.close();
        await stored;
        const records = await caches.open(RECORDS);
        await records.put(url, new Response(JSON.stringify({ size, sha256 })));
      } catch (error) {
        writer.failure ??= String(error);
      }
    },
    async abort() {
      await stream.abort().catch(() => {}); // already failed: nothing is left to abort
    },
  };
  stored.catch((error) => (writer.failure ??= error instanceof Error ? error.message : String(error)));
  return writer;
}
