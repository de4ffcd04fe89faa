// In a worker of the page: measure in Pyodide on shared memory, with threads.
import { measure } from "./inside.mjs";
import { offerThreads } from "./kernel-threads.js";
import { shareMemory } from "./shared-memory.js";

const read = async (name) => (await fetch(`./${name}`)).arrayBuffer();

onmessage = async ({ data: job }) => {
  try {
    const base = new URL("/pyodide/", location.href).href;
    const sharing = shareMemory();
    const { loadPyodide } = await import(`${base}pyodide.mjs`);
    const load = async (options) => {
      const pyodide = await Promise.race([loadPyodide(options), sharing.failure]);
      offerThreads(pyodide, sharing.memory);
      return pyodide;
    };
    postMessage({ result: await measure(load, base, read, job) });
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
