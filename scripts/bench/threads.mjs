// In a worker of the page: measure in Pyodide, with threads on shared memory, or on plain memory. The first message is the
// job, each one asks for a measurement.
import { session } from "./inside.mjs";
import { offerThreads } from "./kernel-threads.js";
import { shareMemory } from "./shared-memory.js";

const read = async (name) => (await fetch(`./${name}`)).arrayBuffer();
let measuring;

async function begin(job) {
  const base = new URL("/pyodide/", location.href).href;
  const sharing = job.plain ? null : shareMemory();
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const load = async (options) => {
    if (!sharing) return loadPyodide(options);
    const pyodide = await Promise.race([loadPyodide(options), sharing.failure]);
    offerThreads(pyodide, sharing.memory);
    return pyodide;
  };
  return session(load, base, read, job);
}

onmessage = async ({ data: job }) => {
  try {
    measuring ??= begin(job);
    postMessage({ result: await (await measuring)() });
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
