/** Boot a stock Pyodide on a shared memory, as docs/threads.md shows it. The tests use the globals. */

import { offerThreads } from "./web/threads/kernel-threads.js";
import { shareMemory } from "./web/threads/shared-memory.js";

globalThis.originals = {
  "TextDecoder.decode": TextDecoder.prototype.decode,
  "TextEncoder.encodeInto": TextEncoder.prototype.encodeInto,
  "Crypto.getRandomValues": Crypto.prototype.getRandomValues,
  "WebSocket.send": WebSocket.prototype.send,
};
globalThis.sharing = shareMemory();

async function boot() {
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const options = { packages: ["numpy"], packageBaseUrl: new URL("pyodide/", location.href).href };
  globalThis.pyodide = await Promise.race([loadPyodide(options), sharing.failure]);
  offerThreads(pyodide, sharing.memory, { threads: 2 });
  globalThis.python = (code) => pyodide.runPython(code);
}

globalThis.booting = boot();
