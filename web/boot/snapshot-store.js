/**
 * What the browser keeps of a snapshot between visits: in Cache Storage a mark that its files have been fetched, and in a file its
 * memory, unpacked. To unpack it takes a quarter of the time of a start. Whoever can write to the storage of the page's origin can
 * change both: the hashes that they are compared with come from the site.
 */

import { blockHash } from "./sha256.js";

/** @import { Place } from "./start.js" */

const STORE = "tallow-snapshots"; // the name of the cache and of the folder
const PROBE = new URL("tallow-probe", import.meta.url).href; // browsers do not tell how much they would store

/** Try to store something. @returns {Promise<string | null>}  why that fails, or null */
export async function refusal() {
  if (!("caches" in globalThis)) return "this address is not secure (https), so nothing is stored";
  try {
    await markFetched({ url: PROBE, sha256: null });
    await (await caches.open(STORE)).delete(PROBE);
    return null;
  } catch (error) {
    return `the browser stores nothing: ${error}`;
  }
}

/** Whether the files of this snapshot have been fetched, and not of another one with the same address. @param {Place} snapshot */
export async function isFetched({ url, sha256 }) {
  const mark = await (await caches.open(STORE)).match(url);
  return (await mark?.text()) === (sha256 ?? "");
}

/** Note that the files have been fetched. @param {Place} snapshot */
export async function markFetched({ url, sha256 }) {
  await (await caches.open(STORE)).put(url, new Response(sha256));
}

/** Delete what is stored. */
export async function forget() {
  await caches.delete(STORE);
  const root = await navigator.storage?.getDirectory?.().catch(() => null);
  await root?.removeEntry(STORE, { recursive: true }).catch(() => {}); // there is none
}

/**
 * Return the unpacked memory; null if it is not stored, or if what is stored is another one, which is then forgotten.
 * @param {string} sha256  of the packed memory
 * @param {{ size: number, hash: string }} expected  of the unpacked one; a block hash
 */
export async function storedMemory(sha256, { size, hash }) {
  const bytes = await readStored(sha256, size).catch(() => null); // the packed memory does as well
  if (!bytes) return null;
  if (bytes.length === size && (await blockHash([bytes])) === hash) return bytes;
  await forget(); // the mark too, so that this visit fetches and stores it again
  return null;
}

/** @param {string} name @param {number} most  bytes to read @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function readStored(name, most) {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(STORE);
  const file = /** @type {any} */ (await folder.getFileHandle(name));
  const handle = await file.createSyncAccessHandle({ mode: "read-only" }); // or only one tab has it
  try {
    const bytes = new Uint8Array(most);
    return handle.getSize() === most ? bytes.subarray(0, handle.read(bytes, { at: 0 })) : new Uint8Array();
  } finally {
    handle.close();
  }
}

/**
 * Store the unpacked memory. The SHA-256 of the packed one has been checked.
 * @param {string} sha256  of the packed memory @param {ReadableStream<Uint8Array<ArrayBuffer>>} memory
 */
export async function storeMemory(sha256, memory) {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(STORE, { create: true });
  const file = /** @type {any} */ (await folder.getFileHandle(sha256, { create: true }));
  const pieces = await file.createSyncAccessHandle();
  const write = (/** @type {Uint8Array} */ chunk) => {
    if (pieces.write(chunk) !== chunk.length) throw new Error("there is no room"); // for which Chromium throws nothing
  };
  try {
    pieces.truncate(0);
    await memory.pipeTo(new WritableStream({ write }));
    pieces.close();
  } catch (error) {
    pieces.close();
    await folder.removeEntry(sha256);
    throw error;
  }
}
