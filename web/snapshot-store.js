/**
 * What the browser keeps of a snapshot between visits: in Cache Storage a mark that its files have been fetched, and in a file its
 * memory, unpacked. To unpack it takes a quarter of the time of a start, and only a file is read into Python's memory directly.
 */

/**
 * The pieces of a memory, one after the other: a FileSystemSyncAccessHandle, which TypeScript knows in workers only.
 * @typedef {{ read(into: Uint8Array, options: { at: number }): number, close(): void }} Pieces
 */

const STORE = "tallow-snapshots"; // the name of the cache and of the folder
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
  const root = await navigator.storage?.getDirectory?.().catch(() => null);
  await root?.removeEntry(STORE, { recursive: true }).catch(() => {}); // there is none
}

/**
 * Return the unpacked memory, or null if it is not stored.
 * @param {string} sha256  of the packed memory @param {number} size  of the unpacked one
 * @returns {Promise<Pieces | null>}
 */
export async function storedMemory(sha256, size) {
  try {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(STORE);
    const file = /** @type {any} */ (await folder.getFileHandle(sha256));
    const pieces = await file.createSyncAccessHandle({ mode: "read-only" }); // or only one tab has it
    if (pieces.getSize() === size) return pieces;
    pieces.close();
  } catch {
    // the packed memory does as well
  }
  return null;
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
