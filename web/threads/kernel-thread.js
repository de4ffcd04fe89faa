/**
 * One thread of the kernels: an instance of their library on Python's heap, which computes parts that it claims.
 *
 * The other side is package/tallow/kernels/src/runtime/parts.c; kernel-supervisor.js starts threads.
 */

/**
 * @typedef {{ module: WebAssembly.Module, memory: WebAssembly.Memory, control: number, slot: number, id: number,
 *   stack: number, data: number, functions: string[], idleMs: number }} Work
 *   `control` is the address of the words and parts, `slot` the number of the thread's word there, which several threads
 *   have one after the other, and `id` that of the thread, from 1; `stack` is the end of its stack and `data` the start of
 *   its static data, both addresses; `functions` are the exports that parts name by their index; the thread ends after
 *   `idleMs` without parts
 */

// Words of the control block, of 4 bytes; those before ALIVE are `parts` of parts.c.
export const CLAIM = 0;
export const DONE = 1;
export const FAILED = 2;
export const MAY_WAIT = 4;
export const ALIVE = 5; // the number of threads that wait for parts
export const SLOTS = 16; // the first of one word for each thread: its state
// Where the parts begin, and how long each is, in float64 numbers: a function, the number of its arguments, and those.
export const PARTS = 32;
export const PART = 32;

export const FREE = 0; // the state of no thread
const PHASES = 4; // the state of a thread is its id times PHASES, plus its phase:
export const STARTING = 0;
const WAITING = 1;
const COMPUTING = 2;

// For so long a thread without parts looks for new ones before it sleeps: Python is at most some 0.2 ms from one kernel to
// the next, and to wake a thread takes up to 0.1 ms on a virtual machine, whose idle processors sleep too.
const SPIN_MS = 1;

/**
 * Compute parts until there have been none for some time.
 * @param {Work} work
 */
export function compute(work) {
  const { memory, control, idleMs } = work;
  const words = wordsOf(work);
  const enter = (/** @type {number} */ phase) => Atomics.store(words, SLOTS + work.slot, stateOf(work.id, phase));
  const numbers = new Float64Array(memory.buffer, control);
  const stackPointer = new WebAssembly.Global({ value: "i32", mutable: true }, work.stack);
  const exports = instantiate(work, stackPointer);
  const functions = work.functions.map((name) => /** @type {(...values: number[]) => void} */ (exports[name]));
  Atomics.add(words, ALIVE, 1);
  enter(WAITING);
  for (let lookUntil = 0; ; ) {
    const claim = Atomics.load(words, CLAIM);
    if ((claim & 255) < ((claim >> 8) & 255)) {
      enter(COMPUTING);
      if (Atomics.compareExchange(words, CLAIM, claim, claim + 1) === claim) run(claim & 255);
      enter(WAITING);
      lookUntil = performance.now() + SPIN_MS;
    } else if (performance.now() > lookUntil && Atomics.wait(words, CLAIM, claim, idleMs) === "timed-out") break;
  }
  Atomics.sub(words, ALIVE, 1);
  Atomics.store(words, SLOTS + work.slot, FREE);

  /** @param {number} part */
  function run(part) {
    const start = PARTS + part * PART;
    try {
      functions[numbers[start]](...numbers.subarray(start + 2, start + 2 + numbers[start + 1]));
      end(words, 0);
    } catch {
      stackPointer.value = work.stack;
      end(words, 1); // a trap
    }
  }
}

/**
 * Give back what a thread has left that was ended from outside: its place, and the part that it was computing.
 * @param {Work} work
 */
export function bury(work) {
  const words = wordsOf(work);
  const state = Atomics.load(words, SLOTS + work.slot);
  const phase = state - stateOf(work.id, 0);
  if (phase < STARTING || phase > COMPUTING) return; // it has ended by itself, and another one may have its place
  Atomics.store(words, SLOTS + work.slot, FREE);
  if (phase !== STARTING) Atomics.sub(words, ALIVE, 1);
  if (phase === COMPUTING) end(words, 1);
}

/** @param {number} id @param {number} phase */
export function stateOf(id, phase) {
  return id * PHASES + phase;
}

/** @param {Work} work */
function wordsOf({ memory, control }) {
  return new Int32Array(memory.buffer, control, SLOTS + 16);
}

/** Say that a part has ended. @param {Int32Array} words @param {0 | 1} failed  1: the thread that waits raises an error */
function end(words, failed) {
  Atomics.add(words, FAILED, failed);
  Atomics.add(words, DONE, 1);
  Atomics.notify(words, DONE);
}

/**
 * Link the library as Emscripten's dynamic linker does: with a stack, static data and a table of its own.
 * @param {Work} work @param {WebAssembly.Global} stackPointer
 * @returns {WebAssembly.Exports}
 */
function instantiate({ module, memory, data }, stackPointer) {
  const { tableSize } = needs(module);
  const table = new WebAssembly.Table({ initial: tableSize, element: "anyfunc" });
  /** @type {Map<string, WebAssembly.Global>} */
  const addresses = new Map();
  for (const { module: from, name } of WebAssembly.Module.imports(module))
    if (from === "GOT.func") addresses.set(name, new WebAssembly.Global({ value: "i32", mutable: true }, 0));
  const instance = new WebAssembly.Instance(module, {
    env: {
      memory,
      __indirect_function_table: table,
      __stack_pointer: stackPointer,
      __memory_base: new WebAssembly.Global({ value: "i32" }, data),
      __table_base: new WebAssembly.Global({ value: "i32" }, 0),
    },
    "GOT.func": Object.fromEntries(addresses),
  });
  for (const [name, address] of addresses) {
    address.value = table.grow(1);
    table.set(address.value, instance.exports[name]);
  }
  /** @type {() => void} */ (instance.exports.__wasm_apply_data_relocs)();
  return instance.exports;
}

/**
 * The sizes that a module needs of what it imports, from its section "dylink.0".
 * @param {WebAssembly.Module} module
 * @returns {{ dataSize: number, tableSize: number }}
 * @throws {Error} the module has no such section, or a broken one
 */
export function needs(module) {
  const MEM_INFO = 1;
  const [section] = WebAssembly.Module.customSections(module, "dylink.0");
  const bytes = new Uint8Array(section ?? new ArrayBuffer(0));
  let at = 0;
  const number = () => {
    let value = 0;
    for (let factor = 1; at < bytes.length && factor <= 2 ** 28; factor *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    throw new Error("the library has no readable section dylink.0");
  };
  for (;;) {
    const kind = number();
    const size = number();
    if (kind !== MEM_INFO) {
      at += size;
      continue;
    }
    const dataSize = number();
    number(); // the alignment of data, at most that of areas
    return { dataSize, tableSize: number() };
  }
}
