// Threads of tallow's kernels in Node, as web/ makes them in the browser.

import { Worker } from "node:worker_threads";
import { offerThreads } from "../../web/threads/kernel-threads.js";

// Start the threads before a suite, which leaves no time to start them: it runs as one task of the event loop.
const BEGIN = `
import asyncio
import numpy as np
from tallow import kernels

async def begin(others):
    kernels.info()
    from tallow.kernels.bindings import tab_threads, threads
    threads.WORTH_A_THREAD = 1  # small arrays are divided too
    team = tab_threads._team()
    team.start(others)
    while team.alive[0] < others:
        await asyncio.sleep(0.01)

begin
`;

/**
 * Offer threads to Python, and wait until they run.
 * @param {any} pyodide @param {WebAssembly.Memory} memory  Python's heap, which is shared
 * @param {number} threads  their number with Python's own
 */
export async function beginThreads(pyodide, memory, threads) {
  offerThreads(pyodide, memory, { threads, idleMs: Infinity, supervise: superviseInNode });
  await pyodide.runPython(BEGIN)(threads - 1);
}

function superviseInNode(refuse) {
  return (work) => {
    const worker = new Worker(new URL("kernel_thread.mjs", import.meta.url), { workerData: work });
    worker.unref(); // Node does not wait for it
    worker.on("error", (error) => refuse(error.message));
  };
}
