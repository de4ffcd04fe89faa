/**
 * Start Python in this thread: from a snapshot of its memory if there is one that fits, on a shared memory if that works.
 *
 *     import { start } from "./start.js";
 *     const { pyodide, snapshot, unshared } = await start({ indexURL, snapshot: { url, sha256 }, plain: () => ({ packages: ["tallow"] }) });
 *
 * What does not work is left out: `snapshot` and `unshared` of the result say why.
 */

import { bootShared } from "./shared-boot.js";
import { Snapshot, SnapshotError } from "./snapshot.js";

/** @import { PyodideAPI } from "pyodide" */
/** @import { Booted } from "./shared-boot.js" */
/** @import { Sharing } from "../threads/shared-memory.js" */
/** @import { Factory } from "./snapshot.js" */
/**
 * Pyodide's own options may be among these: `lockFileURL`, `packageBaseUrl`, `env` and others. `plain` gives those that are only
 * for a start without a snapshot, such as `packages`, and `arrived`, which such a start waits for.
 * @typedef {{ indexURL: string, snapshot?: Place | string, checkSource: string, plain?: () => PlainOptions | Promise<PlainOptions>,
 *   copies?: Record<string, string>, onStart?: () => void, [option: string]: any }} Options
 * @typedef {{ arrived?: Promise<unknown>, [option: string]: any }} PlainOptions
 * @typedef {{ url: string, sha256: string | null }} Place  of a snapshot
 * @typedef {Booted & { snapshot: true | string }} Started  `snapshot` is true, or says why there is none
 */

/**
 * @param {Options} options  `snapshot` may be the reason why there is none; `copies` as for `shareMemory`, `checkSource` as for
 *   `bootShared`, both URLs absolute; `onStart` is called when Pyodide's loader has arrived
 * @returns {Promise<Started>}
 */
export async function start({ indexURL, snapshot = "the site has no snapshot", checkSource, plain, copies = {}, onStart = () => {}, ...options }) {
  const importing = import(/* webpackIgnore: true */ `${indexURL}pyodide.mjs`);
  importing.catch(() => {}); // reported where it is awaited
  const load = async (/** @type {object} */ more) => {
    const { loadPyodide } = await importing;
    onStart();
    return loadPyodide({ indexURL, ...options, ...more });
  };
  let reason = snapshot;
  if (typeof snapshot !== "string") {
    try {
      const opening = Promise.all([
        Snapshot.open(snapshot.url, snapshot.sha256),
        import(/* webpackIgnore: true */ `${indexURL}pyodide.asm.mjs`),
      ]);
      const continued = async (/** @type {Sharing | null} */ sharing) => {
        const program = compileEarly(`${indexURL}pyodide.asm.wasm`);
        const [opened, { default: create }] = await opening;
        sharing?.addCopies(opened.copies);
        return restored(opened, opened.restoring(create, program), indexURL, load);
      };
      const booted = await bootShared(continued, checkSource, copies);
      return { ...booted, snapshot: true };
    } catch (error) {
      // Emscripten's file system throws objects that are no errors, with a name.
      reason = error instanceof SnapshotError ? error.message : error instanceof Error ? String(error) : `${/** @type {any} */ (error)?.name ?? error}`;
    }
  }
  const { arrived, ...more } = (await plain?.()) ?? {};
  const plainly = async () => (await Promise.all([load(more), arrived]))[0];
  return { ...(await bootShared(plainly, checkSource, copies)), snapshot: String(reason) };
}

/**
 * Compile Pyodide's main module while the snapshot arrives. Node has it in a file, which Pyodide reads.
 * @param {string} url @returns {Promise<WebAssembly.Module> | null}
 */
function compileEarly(url) {
  if (!url.startsWith("http")) return null;
  const program = WebAssembly.compileStreaming(fetch(url));
  program.catch(() => {}); // reported where it is awaited
  return program;
}

/**
 * @param {Snapshot} snapshot
 * @param {Factory} createPyodideModule
 * @param {string} indexURL
 * @param {(options: object) => Promise<PyodideAPI>} load
 */
async function restored(snapshot, createPyodideModule, indexURL, load) {
  const pyodide = await load({
    createPyodideModule,
    _loadSnapshot: new Uint8Array(), // what makes Pyodide restore a memory
    stdLibURL: `${indexURL}pyodide.mjs`, // a file that is there already, in the place of one that loads later
  });
  snapshot.renew(pyodide);
  return pyodide;
}
