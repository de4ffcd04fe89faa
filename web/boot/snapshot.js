/**
 * Python's memory as a site's build wrote it, and its place in a new Pyodide.
 *
 * The memory contains Python with its modules imported. Not in it are the WebAssembly libraries that Python had opened: their
 * code, the table of functions that they share, and where symbols are. `restoring` puts each where it was, then the memory
 * over it. All that this needs of Emscripten's loader are names that Pyodide exports (NEEDED).
 */

import { addFiles } from "./archive-files.js";
import { gunzip, unpacked } from "./read-files.js";
import { sha256 } from "./sha256.js";
import { replace } from "../threads/shared-views.js";
import { storeMemory, storedMemory } from "./snapshot-store.js";

/** @import { PyodideAPI } from "pyodide" */
/** @import { Layout } from "./archive-files.js" */
/** @import { Place } from "./start.js" */
/**
 * The file of the memory has its `pieces`, each [start, length], one after the other, compressed; the rest is zero.
 * `sha256` is that of the file, `unpackedHash` the block hash of the pieces.
 * @typedef {{ url: string, size: number, sha256: string, unpackedHash: string, pieces: [number, number][] }} Memory
 *
 * `file` and `shared` are URLs relative to the snapshot's: the library, and its copy for a shared memory.
 * @typedef {{ path: string, file: string, shared: string, handle: number, global: boolean, memoryBase: number, memorySize: number,
 *   tableBase: number, tableSize: number }} Library
 * @typedef {{ format: number, build: string, memory: Memory,
 *   table: { before: number, after: number, free: number[] }, symbols: Record<string, number>, slots: [number, number, string][],
 *   libraries: Library[], objects: unknown, packages: string[], inline: Record<string, string>, layout: Layout }} Description
 * @typedef {(settings: any) => Promise<any>} Factory  makes Pyodide's module
 */

const FORMAT = 3;
const FUNCTIONS = ["growMemory", "newDSO", "mergeLibSymbols", "relocateExports", "setWasmTableEntry", "updateTableMap", "getEnvStrings", "__tzset_js"];
const NEEDED = [...FUNCTIONS, "GOT", "LDSO", "wasmTable", "freeTableIndexes", "HEAP32", "HEAPU8", "FS"];

/** The snapshot cannot be used here. */
export class SnapshotError extends Error {
  name = "SnapshotError";
}

export class Snapshot {
  #url;
  #description;
  /** @type {Promise<Uint8Array<ArrayBuffer>> | null}  the pieces */
  #memory = null;

  /** @param {string} url @param {Description} description */
  constructor(url, description) {
    this.#url = url;
    this.#description = description;
    this.#open();
  }

  /** Begin to open the memory, unless that has begun. */
  #open() {
    const { memory } = this.#description;
    this.#memory ??= openMemory(new URL(memory.url, this.#url).href, memory);
    this.#memory.catch(() => {}); // reported where it is awaited
    return this.#memory;
  }

  /**
   * Fetch a snapshot's description, and begin to fetch its memory.
   * @param {string} url
   * @param {string | null} digest  the SHA-256 of the description, in hexadecimal
   * @throws {SnapshotError}
   */
  static async open(url, digest) {
    if (!globalThis.crypto?.subtle) throw new SnapshotError("hashes cannot be checked: the page's address begins with http:");
    return new Snapshot(url, await fetchDescription(url, digest));
  }

  /**
   * Fetch all files of a snapshot, so that the browser has them in its cache, and the memory unpacked.
   * @param {Place} place @param {boolean} isShared  whether they are for a shared memory
   * @throws {SnapshotError}
   */
  static async fetch({ url, sha256 }, isShared) {
    const { memory, libraries } = await fetchDescription(url, sha256);
    for (const { file, shared } of libraries) await fetchForCache(new URL(isShared ? shared : file, url).href);
    const packed = await fetchPacked(new URL(memory.url, url).href, memory.sha256);
    await storeMemory(memory.sha256, unpacked(packed)).catch(() => {}); // no room: the next start unpacks it again
  }

  /** The libraries' URLs, with those of their copies for a shared memory: as for `shareMemory`. */
  get copies() {
    const absolute = (/** @type {string} */ url) => new URL(url, this.#url).href;
    return Object.fromEntries(this.#description.libraries.map(({ file, shared }) => [absolute(file), absolute(shared)]));
  }

  /**
   * Wrap the function that makes Pyodide's module: the module comes with the snapshot's memory.
   * @param {Factory} create @param {Promise<WebAssembly.Module> | null} program  Pyodide's main module, if it compiles already
   * @returns {Factory}
   */
  restoring(create, program) {
    const { build, libraries, objects, memory } = this.#description;
    const compiling = Promise.all(libraries.map(({ file }) => compiled(new URL(file, this.#url).href)));
    compiling.catch(() => {});
    return async (settings) => {
      if (settings.API.config.BUILD_ID !== build) throw new SnapshotError("the snapshot is of another build of Pyodide");
      if (program) settings.instantiateWasm = instantiating(program, settings.instantiateWasm);
      const parts = /** @type {const} */ ([create(settings), compiling, this.#open()]);
      await Promise.allSettled(parts); // or what goes on disturbs the next start
      const [module, compiled, opened] = await Promise.all(parts);
      let pieces = opened;
      const own = module.HEAPU8.length;
      const missing = NEEDED.filter((name) => !(name in module));
      if (missing.length) throw new SnapshotError(`this Pyodide does not export ${missing.join(", ")}`);
      if (own < memory.size && !module.growMemory(memory.size)) throw new SnapshotError("the memory cannot grow");
      link(module, this.#description, compiled);
      this.#addFiles(module);
      settings.API.restoreSnapshot = () => {
        const trampoline = trampolineOf(module);
        const ownTrampoline = module.HEAP32[trampoline];
        this.#memory = null; // another start opens it again
        putMemory(module.HEAPU8, pieces, this.#description, own);
        pieces = new Uint8Array(); // gives 34 MB back
        module.HEAP32[trampoline] = ownTrampoline;
        return objects;
      };
      return module;
    };
  }

  /** Give Python this environment, and new random states. @param {PyodideAPI} pyodide */
  renew(pyodide) {
    const module = /** @type {any} */ (pyodide)._module;
    for (const name of this.#description.packages) pyodide.loadedPackages[name] = "default channel"; // what loadPackage writes
    setTimeZone(module);
    const state = pyodide.pyimport("snapshot_state");
    const environment = pyodide.toPy(Object.fromEntries(module.getEnvStrings().map(splitOnce)));
    state.renew(environment);
    environment.destroy();
    state.destroy();
  }

  /** Add the files that Python had: Pyodide looks among them for packages. @param {any} module */
  #addFiles(module) {
    const { layout, inline } = this.#description;
    addFiles(module, layout, this.#url);
    for (const [path, text] of Object.entries(inline)) module.FS.writeFile(path, text);
  }
}

/**
 * Wrap Pyodide's function that instantiates its main module, which adds imports and fetches the module by itself.
 * @param {Promise<WebAssembly.Module>} program @param {(imports: any, done: any) => unknown} original
 */
function instantiating(program, original) {
  return (/** @type {any} */ imports, /** @type {any} */ done) => {
    const restore = replace(WebAssembly, "instantiateStreaming", async (/** @type {unknown} */ _, /** @type {any} */ all) => {
      restore();
      const module = await program;
      return { module, instance: await WebAssembly.instantiate(module, all) };
    });
    return original(imports, done);
  };
}

/** @param {string} url @param {string | null} digest @returns {Promise<Description>} */
async function fetchDescription(url, digest) {
  const packed = await fetchBytes(url);
  if (digest && (await sha256([packed])) !== digest) throw new SnapshotError("the snapshot's description has another SHA-256");
  const description = JSON.parse(new TextDecoder().decode(await gunzip(packed)));
  if (description.format !== FORMAT) throw new SnapshotError(`the snapshot has format ${description.format}, not ${FORMAT}`);
  return description;
}

/**
 * Put the libraries where they were.
 * @param {any} module @param {Description} description @param {WebAssembly.Module[]} compiled
 */
function link(module, { table, symbols, slots, libraries }, compiled) {
  const { wasmTable, GOT, LDSO } = module;
  const program = LDSO.loadedLibsByName.__main__.exports;
  const functions = wasmTable.length + (module.HEAP32[trampolineOf(module)] ? 0 : 1);
  if (functions !== table.before) throw new SnapshotError(`the table has ${functions} functions, not ${table.before}`);
  wasmTable.grow(table.after - wasmTable.length);
  for (const [name, value] of Object.entries(symbols)) (GOT[name] ??= new WebAssembly.Global({ value: "i32", mutable: true })).value = value;
  const exports = libraries.map(({ path, handle, global, memoryBase, tableBase }, i) => {
    /** @type {{ exports: Record<string, any> }} */
    const library = { exports: {} };
    const instance = new WebAssembly.Instance(compiled[i], importsOf(module, memoryBase, tableBase, library));
    const relocated = (library.exports = module.relocateExports(instance.exports, memoryBase));
    Object.assign(module.newDSO(path, handle, relocated), { global, module: compiled[i] });
    if (global) module.mergeLibSymbols(relocated, path);
    return relocated;
  });
  for (const [i, library, name] of slots) module.setWasmTableEntry(i, (library < 0 ? program : exports[library])[name]);
  module.updateTableMap(table.before, table.after - table.before);
  module.freeTableIndexes.push(...table.free);
}

/**
 * Replace the memory by the snapshot's.
 * @param {Uint8Array} heap @param {Uint8Array} pieces @param {Description} description
 * @param {number} own  the size before the memory grew. What is beyond it is zero already, but for the data of the libraries
 */
function putMemory(heap, pieces, { memory, libraries }, own) {
  for (const { memoryBase, memorySize } of libraries) heap.fill(0, memoryBase, memoryBase + memorySize);
  let [at, end] = [0, 0];
  for (const [start, length] of memory.pieces) {
    heap.fill(0, Math.min(end, own), Math.min(start, own));
    end = start + length;
    heap.set(pieces.subarray(at, (at += length)), start);
  }
  heap.fill(0, Math.min(end, own), Math.min(memory.size, own));
}

/**
 * Where Python has the function of the table that calls C functions of fewer parameters, in words. It is the last one that Pyodide
 * adds before Python starts, and 0 on engines without garbage-collected objects, where JavaScript does it.
 * @param {any} module
 */
function trampolineOf({ HEAP32, LDSO }) {
  const { _PyRuntime, _PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET } = LDSO.loadedLibsByName.__main__.exports;
  return (_PyRuntime.value + HEAP32[_PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET.value >>> 2]) >>> 2;
}

/**
 * The imports of a library, as Emscripten's loader gives them. A function that the program does not have is one of the library
 * itself: C++ lets another library replace it.
 * @param {any} module @param {number} memoryBase @param {number} tableBase @param {{ exports: Record<string, any> }} library
 */
function importsOf({ GOT, LDSO }, memoryBase, tableBase, library) {
  const program = LDSO.loadedLibsByName.__main__.exports;
  /** @type {Record<string, any>} */
  const own = { __memory_base: memoryBase, __table_base: tableBase };
  const env = new Proxy(own, {
    get(_, name) {
      const key = String(name);
      if (!(key in own) && key in program && !program[key].stub) return program[key];
      return (own[key] ??= (/** @type {unknown[]} */ ...values) => library.exports[key](...values));
    },
  });
  const addresses = new Proxy(/** @type {Record<string, any>} */ ({}), { get: (_, name) => GOT[name] });
  return { env, wasi_snapshot_preview1: env, "GOT.mem": addresses, "GOT.func": addresses };
}

/** Set the C library's time zone, which it takes from the browser once. @param {any} module */
function setTimeZone({ HEAPU32, LDSO, __tzset_js }) {
  const { timezone, daylight, tzname } = LDSO.loadedLibsByName.__main__.exports;
  const names = tzname.value >>> 2;
  __tzset_js(timezone.value, daylight.value, HEAPU32[names], HEAPU32[names + 1]);
}

/** @param {string} setting */
function splitOnce(setting) {
  const at = setting.indexOf("=");
  return [setting.slice(0, at), setting.slice(at + 1)];
}

/** Open the memory that the browser has stored, or fetch it. @param {string} url @param {Memory} memory */
async function openMemory(url, memory) {
  const expected = { size: sizeOf(memory), hash: memory.unpackedHash };
  return (await storedMemory(memory.sha256, expected)) ?? fetchMemory(url, memory);
}

/** @param {string} url @param {Memory} memory */
async function fetchMemory(url, memory) {
  const pieces = await gunzip(await fetchPacked(url, memory.sha256));
  const expected = sizeOf(memory);
  if (pieces.length !== expected) throw new SnapshotError(`the snapshot's memory has ${pieces.length} bytes, not ${expected}`);
  return pieces;
}

/** @param {string} url  of a packed memory @param {string} digest  its SHA-256 */
async function fetchPacked(url, digest) {
  const packed = await fetchBytes(url);
  if ((await sha256([packed])) !== digest) throw new SnapshotError("the snapshot's memory has another SHA-256");
  return packed;
}

/** @param {Memory} memory @returns {number}  the bytes of its pieces */
function sizeOf({ pieces }) {
  return pieces.reduce((size, [, length]) => size + length, 0);
}

/** @param {string} url @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function fetchBytes(url) {
  if (url.startsWith("file:")) return new Uint8Array(await nodeFiles().readFile(new URL(url)));
  return new Uint8Array(await (await fetched(url)).arrayBuffer());
}

/** Fetch a file for the browser's cache alone. @param {string} url */
async function fetchForCache(url) {
  await (await fetched(url)).body?.pipeTo(new WritableStream());
}

/** @param {string} url */
async function compiled(url) {
  if (url.startsWith("file:")) return WebAssembly.compile(await fetchBytes(url));
  return WebAssembly.compileStreaming(await fetched(url));
}

/** @param {string} url */
async function fetched(url) {
  const response = await fetch(url);
  if (!response.ok) throw new SnapshotError(`${url}: the server answers ${response.status}`);
  return response;
}

function nodeFiles() {
  return /** @type {any} */ (globalThis).process.getBuiltinModule("node:fs/promises");
}
