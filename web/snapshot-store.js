/**
 * What the browser keeps of a snapshot between visits, in Cache Storage: a mark that its files have been fetched, and its memory,
 * unpacked. To unpack it takes a quarter of the time of a start.
 */

const STORE = "tallow-snapshots";
const PROBE = new URL("tallow-probe", import.meta.url).href; // browsers do not tell how much they would store

/** Try to store something. @returns {Promise<string | null>}  why that fails, or null */
export async function refusal() {
  if (!("caches" in globalThis)) return "this address is not secure (https), so nothing is stored";
  try {
    await markFetched(PROBE);
    await (await caches.open(STORE)).delete(PROBE);
    return null;
  } catch (error) {
    return `the browser stores nothing: ${error}`;
  }
}

/** Whether the files of the snapshot have been fetched. @param {string} url  of its description */
export async function isFetched(url) {
  return Boolean(await (await caches.open(STORE)).match(url));
}

/** Note that the files have been fetched. @param {string} url */
export async function markFetched(url) {
  await (await caches.open(STORE)).put(url, new Response());
}

/** Delete what is stored. */
export async function forget() {
  await caches.delete(STORE);
}

/**
 * Return the unpacked memory, or null if it is not stored.
 * @param {string} url  of the packed memory @param {string} sha256  of it @param {number} size  of the unpacked one
 * @returns {Promise<Uint8Array<ArrayBuffer> | null>}
 */
export async function storedMemory(url, sha256, size) {
  if (!("caches" in globalThis)) return null;
  try {
    const response = await caches.match(keyOf(url, sha256), { cacheName: STORE });
    const bytes = response && new Uint8Array(await response.arrayBuffer());
    return bytes?.length === size ? bytes : null;
  } catch {
    return null; // the packed memory does as well
  }
}

/**
 * Store the unpacked memory. The SHA-256 of the packed one has been checked.
 * @param {string} url @param {string} sha256 @param {ReadableStream<Uint8Array<ArrayBuffer>>} memory
 */
export async function storeMemory(url, sha256, memory) {
  await (await caches.open(STORE)).put(keyOf(url, sha256), new Response(memory));
}

/** @param {string} url @param {string} sha256 */
function keyOf(url, sha256) {
  return `${url}?unpacked=${sha256}`;
}
