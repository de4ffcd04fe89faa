// In a worker of the page: measure in Pyodide, with threads on shared memory, or on plain memory, and other libraries. The
// first message is the job, each one asks for a measurement.
import { session } from "./inside.mjs";
import { offerThreads } from "./kernel-threads.js";
import { shareMemory } from "./shared-memory.js";

const read = async (name) => {
  const response = await fetch(`./${name}`);
  if (!response.ok) throw new Error(`${name}: HTTP ${response.status}`);
  return response.arrayBuffer();
};
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
  return session(load, base, read, job, await rivalsOf(job));
}

async function rivalsOf({ name, onnx, wllama, jax, checkpoints, threads }) {
  const rivals = {};
  if (onnx) rivals.onnx = await (await import(`./onnx_${name}.mjs`)).open(read, threads);
  if (wllama) rivals.wllama = await (await import("./wllama.mjs")).open(read, checkpoints, threads);
  if (jax) rivals.jax = await (await import("./jax.mjs")).open(threads);
  return rivals;
}

onmessage = async ({ data: job }) => {
  try {
    measuring ??= begin(job);
    postMessage({ result: await (await measuring)() });
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
