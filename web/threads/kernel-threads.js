/**
 * Threads of the kernels: workers that compute parts of them on Python's heap, which is shared memory.
 *
 * Python (package/tallow/kernels/bindings/tab_threads.py) calls `start` when the first large kernel wants threads, and goes
 * on with one until they run. Nothing waits for a worker to start, or for one that ends. kernel-supervisor.js starts them.
 */

import { FREE, MAY_WAIT, needs, SLOTS, STARTING, stateOf } from "./kernel-thread.js";

/** @import { PyodideAPI } from "pyodide" */
/** @import { Work } from "./kernel-thread.js" */
/**
 * @typedef {(refuse: (reason: string) => void) => (work: Work) => void} Supervising
 *   gets ready, and returns a function that starts a thread; `refuse` receives why one has not started
 */

const MOST = 16; // with Python's own
const STACK = 1 << 18;
const IDLE_MS = 60_000; // then a thread ends, so that a page that is hidden for long keeps none
const MODULE = "tallow_kernel_threads"; // the name in Python

/**
 * Offer threads to tallow in a Pyodide whose heap is shared memory.
 * @param {PyodideAPI} pyodide
 * @param {WebAssembly.Memory} memory  its heap
 * @param {{ threads?: number, idleMs?: number, supervise?: Supervising }} [options]
 *   `threads` is their number with Python's own, otherwise the number of processors; a thread ends after `idleMs` without
 *   work; `supervise` is for a page that starts them, otherwise a worker of this one does, which cannot start while Python runs
 */
export function offerThreads(pyodide, memory, { threads = navigator.hardwareConcurrency, idleMs = IDLE_MS, supervise = superviseInWorker } = {}) {
  const pool = new Pool(pyodide, memory, idleMs, supervise, (reason) => (offer.reason ||= reason));
  const offer = { most: Math.max(1, Math.min(threads, MOST)), reason: "", start: pool.start.bind(pool) };
  pyodide.registerJsModule(MODULE, offer);
  if (offer.most > 1) setTimeout(() => pool.prepare()); // not while the page starts
}

/** Say to tallow why there is one thread. @param {PyodideAPI} pyodide @param {string} reason */
export function refuseThreads(pyodide, reason) {
  pyodide.registerJsModule(MODULE, { most: 1, reason, start: () => {} });
}

class Pool {
  #pyodide;
  #memory;
  #idleMs;
  #supervise;
  #refuse;
  /** @type {((work: Work) => void) | undefined} */
  #startThread;
  /** @type {WebAssembly.Module | undefined} */
  #module;
  #lastId = 0; // of a thread
  /** @type {number[]} */
  #areas = []; // one for each thread, for its stack and then its data

  /**
   * @param {PyodideAPI} pyodide @param {WebAssembly.Memory} memory @param {number} idleMs @param {Supervising} supervise
   * @param {(reason: string) => void} refuse  receives why a thread did not start
   */
  constructor(pyodide, memory, idleMs, supervise, refuse) {
    this.#pyodide = pyodide;
    this.#memory = memory;
    this.#idleMs = idleMs;
    this.#supervise = supervise;
    this.#refuse = refuse;
  }

  /** Start the supervisor, unless it runs. */
  prepare() {
    try {
      return (this.#startThread ??= this.#supervise((reason) => this.#refuse(`a worker did not start: ${reason}`)));
    } catch (error) {
      this.#refuse(`threads did not start: ${error}`);
    }
  }

  /**
   * Start threads that do not run, in the background.
   * @param {string} library  the path of the kernels' library in Python's file system
   * @param {number} control  the address of the control block
   * @param {string} functions  JSON: the exports that parts name by their index
   * @param {number} threads  how many are wanted besides Python's own
   */
  start(library, control, functions, threads) {
    try {
      this.#module ??= this.#compiled(library);
      const words = new Int32Array(this.#memory.buffer, control, SLOTS + MOST);
      words[MAY_WAIT] = Number(mayWait());
      for (let slot = 0; slot < Math.min(threads, MOST - 1); slot++) {
        const id = this.#lastId + 1;
        if (Atomics.compareExchange(words, SLOTS + slot, FREE, stateOf(id, STARTING)) !== FREE) continue;
        this.#lastId = id;
        const end = (this.#area(slot, needs(this.#module).dataSize) + STACK) & ~15;
        const place = { memory: this.#memory, control, slot, id, stack: end, data: end };
        this.prepare()?.({ ...place, module: this.#module, functions: JSON.parse(functions), idleMs: this.#idleMs });
      }
    } catch (error) {
      this.#refuse(`threads did not start: ${error}`);
    }
  }

  /** @param {string} library  its path @returns {WebAssembly.Module} */
  #compiled(library) {
    const { LDSO } = /** @type {any} */ (this.#pyodide)._module;
    // From a snapshot it is compiled already. A new module is changed by shared-memory.js as all modules.
    return LDSO?.loadedLibsByName[library]?.module ?? new WebAssembly.Module(this.#pyodide.FS.readFile(library));
  }

  /** Return the address of a thread's memory. @param {number} slot @param {number} dataSize */
  #area(slot, dataSize) {
    return (this.#areas[slot] ??= this.#allocate(STACK + dataSize + 16));
  }

  /** @param {number} bytes @returns {number} */
  #allocate(bytes) {
    const address = /** @type {any} */ (this.#pyodide)._module._malloc(bytes) >>> 0;
    if (!address) throw new Error("no memory is left for threads");
    return address;
  }
}

/** Whether this thread may wait in Atomics.wait: not the main thread of a page. */
function mayWait() {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0);
    return true;
  } catch {
    return false;
  }
}

/** @type {Supervising} */
function superviseInWorker(refuse) {
  // A worker from a blob inherits the Content-Security-Policy; a worker from a file has that of its response.
  const url = new URL("./kernel-supervisor.js", import.meta.url).href;
  const script = `
import { supervise } from ${JSON.stringify(url)};
const { start } = supervise(postMessage);
onmessage = ({ data: work }) => start(work);`;
  const supervisor = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), { type: "module" });
  supervisor.onmessage = ({ data: reason }) => refuse(reason);
  supervisor.onerror = (event) => {
    event.preventDefault(); // or it is an error of Python's worker, and of the page
    refuse(event.message ?? "its script is blocked");
  };
  return (work) => supervisor.postMessage(work);
}
