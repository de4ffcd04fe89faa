// Write the memory of a Python that has imported what pages import:  node snapshot_writer.mjs CONFIG.json
//
// CONFIG.json: {
//   pyodide:  folder of the Pyodide distribution,
//   stdlib:   path of the archive with Python's own library,
//   wheels:   paths of the wheels to install,
//   state:    path of web/boot/snapshot_state.py,
//   imports:  the import statements to run,
//   rewriter: URL of web/threads/memory-type.js,
//   out:      folder for the files
// }
// Node must have stack switching (JSPI), of which Pyodide keeps in its memory that it is there.
// Writes memory.bin.gz, the pieces of the memory that are not zero, one after the other; libraries as <number>.wasm and
// <number>-shared.wasm; and linking.json: what the tab needs besides the memory to go on, as web/boot/snapshot.js reads it.
// Source of the layout of a library's handle: Emscripten's struct dso.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const HANDLE = { memoryBase: 12, memorySize: 16, tableBase: 20, tableSize: 24 };
const LARGEST_FREE = 1 << 24;
const LARGEST_SMALL = 512; // Python's allocator takes the requests up to this size
const ALIGNMENT = 16;
const BLOCK = 1 << 16; // of memory that is left out if it is zero; memory has whole blocks

const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { loadPyodide } = await import(pathToFileURL(`${config.pyodide}/pyodide.mjs`).href);
const { shareModule } = await import(config.rewriter);
const { default: create } = await import(pathToFileURL(`${config.pyodide}/pyodide.asm.mjs`).href);
const pyodide = await loadPyodide({ stdLibURL: config.stdlib, _makeSnapshot: true, createPyodideModule: reservingSlot });
const module = pyodide._module;
const program = module.LDSO.loadedLibsByName.__main__.exports; // Emscripten's name for what all libraries can import
const before = { table: tableEntries(), symbols: symbolValues() };

const sitePackages = pyodide.runPython("import site; site.getsitepackages()[0]");
for (const wheel of config.wheels) pyodide.unpackArchive(new Uint8Array(readFileSync(wheel)), "zip", { extractDir: sitePackages });
pyodide.FS.writeFile("/home/pyodide/snapshot_state.py", readFileSync(config.state, "utf8"));
pyodide.runPython(config.imports, { globals: pyodide.toPy({}) });
const inline = pyodide.runPython("import snapshot_state; snapshot_state.prepare()").toJs({ dict_converter: Object.fromEntries });
pyodide.runPython("import gc; gc.collect(); gc.freeze()");

const libraries = describeLibraries();
const linking = {
  build: pyodide._api.config.BUILD_ID,
  table: { before: before.table.length, after: module.wasmTable.length, free: [...module.freeTableIndexes] },
  symbols: Object.fromEntries(Object.entries(symbolValues()).filter(([name, value]) => before.symbols[name] !== value)),
  slots: describeSlots(libraries),
  libraries,
  inline,
  objects: pyodide._api.serializeHiwireState(),
};
clearUnused();
const memory = module.HEAPU8.slice();
linking.memory = { size: memory.length, pieces: usedPieces(memory) };
const pieces = linking.memory.pieces.map(([start, length]) => memory.subarray(start, start + length));
writeFileSync(`${config.out}/memory.bin.gz`, gzipSync(Buffer.concat(pieces), { level: 9 }));
writeFileSync(`${config.out}/linking.json`, JSON.stringify(linking));
process.exit(0);

/** Make Pyodide's module, with an empty slot in the table where this engine adds no trampoline: see web/boot/snapshot.js. */
function reservingSlot(settings) {
  settings.preRun.push((module) => {
    const { _PyRuntime, _PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET } = module.LDSO.loadedLibsByName.__main__.exports;
    const offset = module.HEAP32[_PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET.value >>> 2];
    if (module.HEAP32[(_PyRuntime.value + offset) >>> 2] === 0) module.wasmTable.grow(1);
  });
  return create(settings);
}

/** The functions in the table that libraries share. */
function tableEntries() {
  return Array.from({ length: module.wasmTable.length }, (_, i) => module.wasmTable.get(i));
}

/** The addresses of functions and data, by name: the global offset table. */
function symbolValues() {
  return Object.fromEntries(Object.entries(module.GOT).map(([name, { value }]) => [name, value]));
}

/** Write the libraries that Python has opened, and return where they are. */
function describeLibraries() {
  const { loadedLibsByHandle, loadedLibsByName } = module.LDSO;
  const handles = Object.entries(loadedLibsByHandle).filter(([, { name }]) => name !== "__main__");
  const opened = Object.keys(loadedLibsByName).filter((name) => name !== "__main__");
  if (handles.length !== opened.length) throw new Error(`${opened.length} libraries have ${handles.length} handles`);
  return handles.map(([handle, { name, global, exports }], number) => {
    const bytes = pyodide.FS.readFile(name);
    const code = Object.keys(exports).find((symbol) => /^__(start_)?em_(js|asm)/.test(symbol));
    if (code) throw new Error(`${name} contains JavaScript, ${code}`);
    writeFileSync(`${config.out}/${number}.wasm`, bytes);
    writeFileSync(`${config.out}/${number}-shared.wasm`, shareModule(bytes).bytes);
    const place = Object.fromEntries(Object.entries(HANDLE).map(([field, at]) => [field, module.HEAPU32[(+handle + at) >> 2]]));
    return { path: name, file: `${number}.wasm`, shared: `${number}-shared.wasm`, handle: +handle, global, ...place };
  });
}

/** The table's entries outside of the libraries' own ranges, as [index, number of the library or -1, name of the export]. */
function describeSlots(libraries) {
  const names = new Map(Object.entries(program).map(([name, f]) => [f, [-1, name]]));
  libraries.forEach(({ path }, number) => {
    for (const [name, f] of Object.entries(module.LDSO.loadedLibsByName[path].exports)) if (!names.has(f)) names.set(f, [number, name]);
  });
  const slots = [];
  tableEntries().forEach((f, i) => {
    const isOwn = libraries.some(({ tableBase, tableSize }) => i >= tableBase && i < tableBase + tableSize);
    if (!f || isOwn || f === before.table[i] || module.freeTableIndexes.includes(i)) return;
    const name = names.get(f);
    if (!name) throw new Error(`the function ${i} of the table, ${f.name}, is no library's`);
    slots.push([i, ...name]);
  });
  return slots;
}

/** The [start, length] of the memory that is not zero. */
function usedPieces(memory) {
  const pieces = [];
  for (let start = 0; start < memory.length; start += BLOCK) {
    if (memory.subarray(start, start + BLOCK).every((byte) => byte === 0)) continue;
    const last = pieces.at(-1);
    if (last && last[0] + last[1] === start) last[1] += BLOCK;
    else pieces.push([start, BLOCK]);
  }
  return pieces;
}

/** Fill unused memory with zeros, so that it compresses to nothing: the stack, and what both allocators have free. */
function clearUnused() {
  const { malloc, free, malloc_footprint, malloc_set_footprint_limit, PyObject_Malloc, PyObject_Free } = program;
  module.HEAPU8.fill(0, program.emscripten_stack_get_end(), program.emscripten_stack_get_current());
  malloc_set_footprint_limit(malloc_footprint()); // so that all comes from what is free
  const drain = (allocate, size) => {
    const taken = [];
    for (let address = allocate(size) >>> 0; address; address = allocate(size) >>> 0) {
      module.HEAPU8.fill(0, address, address + size);
      taken.push(address);
    }
    return taken;
  };
  const blocks = [];
  for (let size = LARGEST_FREE; size >= ALIGNMENT; size >>= 1) blocks.push(...drain(malloc, size));
  const small = [];
  for (let size = LARGEST_SMALL; size >= ALIGNMENT; size -= ALIGNMENT) small.push(...drain(PyObject_Malloc, size));
  small.forEach((address) => PyObject_Free(address));
  blocks.forEach((address) => free(address));
  malloc_set_footprint_limit(-1);
}
