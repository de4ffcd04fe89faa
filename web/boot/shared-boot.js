/** Boot Pyodide on a shared memory, or on a plain one where that does not work. */

import { shareMemory, SharingError } from "../threads/shared-memory.js";
import { SnapshotError } from "./snapshot.js";

/** @import { PyodideAPI } from "pyodide" */
/** @import { Sharing } from "../threads/shared-memory.js" */
/** @typedef {{ pyodide: PyodideAPI, sharing: Sharing | null, unshared: string | null }} Booted  `unshared` says why `sharing` is null */

// Long enough for TextDecoder; of one, two and four bytes for each character.
const TEXTS = ["a", "\xe9", "\u20ac", "\u{1f525}"].map((character) => character.repeat(100));
const BYTES = Uint8Array.from({ length: 256 }, (_, i) => i);

/**
 * Boot Pyodide, twice if the shared memory fails.
 * @param {(sharing: Sharing | null) => Promise<PyodideAPI>} load  imports and starts Pyodide with NumPy
 * @param {string} checkSource  the text of memory_check.py
 * @param {Record<string, string>} copies  as for `shareMemory`
 * @returns {Promise<Booted>}
 * @throws {SnapshotError} as `load` does
 */
export async function bootShared(load, checkSource, copies) {
  /** @type {Sharing | undefined} */
  let sharing;
  try {
    sharing = shareMemory(copies);
    const pyodide = await Promise.race([load(sharing), sharing.failure]);
    check(pyodide, sharing, checkSource);
    return { pyodide, sharing, unshared: null };
  } catch (error) {
    // Whatever failed may be due to the shared memory. If it is not, it fails again.
    sharing?.undo();
    if (error instanceof SnapshotError) throw error;
    const pyodide = await load(null);
    const unshared = error instanceof SharingError ? error.message : `Python failed on a shared memory: ${error}`;
    return { pyodide, sharing: null, unshared };
  }
}

/**
 * Check that Python's memory is the shared one, and that text, bytes, arrays and random numbers work on it.
 * @param {PyodideAPI} pyodide @param {Sharing} sharing @param {string} source
 * @throws {SharingError}
 */
function check(pyodide, sharing, source) {
  const heap = /** @type {any} */ (pyodide)._module.HEAPU8.buffer;
  if (heap !== /** @type {unknown} */ (sharing.memory?.buffer)) throw new SharingError("Python's memory is not the shared one");
  pyodide.FS.writeFile("/home/pyodide/memory_check.py", source);
  const module = pyodide.pyimport("memory_check");
  for (const sent of TEXTS) {
    const proxy = module.round_trip(sent, BYTES);
    const [text, bytes, random] = proxy.toJs();
    proxy.destroy();
    const isSame = text === sent && isEqual(bytes, BYTES) && random.length === BYTES.length && !isEqual(random, bytes);
    if (!isSame) throw new SharingError("text, arrays or random numbers are wrong on a shared memory");
  }
  module.destroy();
}

/** @param {Uint8Array} a @param {Uint8Array} b */
function isEqual(a, b) {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
