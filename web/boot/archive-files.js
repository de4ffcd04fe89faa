/**
 * Files of Python that load when Python first opens them, as Python needs them: synchronously. A start from a snapshot has
 * the modules in memory already, so that most pages never load these.
 */

import { readNow } from "./read-files.js";

/**
 * A file is [URL, size], or in an archive, a zip file: [number of the archive, position of the data, compressed size, size, CRC-32,
 * whether deflated]. URLs are relative to the snapshot's.
 * @typedef {[number, number, number, number, number, boolean]} Packed
 * @typedef {{ [name: string]: Tree | [string, number] | Packed }} Tree
 * @typedef {{ archives: [string, number][], tree: Tree }} Layout
 */

const FILE_MODE = 0o100644;
const FOLDER_MODE = 0o40755;
const EIO = 29;
// zlib's z_stream: its size, and where fields of four bytes are.
const STREAM = { bytes: 56, nextIn: 0, availableIn: 4, nextOut: 12, availableOut: 16 };
const RAW = -15; // deflate without a header, with the largest window
const FINISH = 4;
const STREAM_END = 1;
const DAMAGED = "a file is damaged in its archive";

/**
 * Add the files. Their folders are ordinary ones, which other files can be added to.
 * @param {any} module  Pyodide's
 * @param {Layout} layout
 * @param {string} base  the URL of the snapshot
 */
export function addFiles(module, { archives, tree }, base) {
  const { FS } = module;
  const opened = archives.map(([url, size]) => once(() => readWhole(new URL(url, base).href, size)));
  /** @param {[string, number] | Packed} file */
  const add = (/** @type {any} */ node, file) => {
    if (typeof file[0] === "string") {
      const [url, size] = /** @type {[string, number]} */ (file);
      return makeLazy(FS, node, size, () => readWhole(new URL(url, base).href, size));
    }
    const packed = /** @type {Packed} */ (file);
    makeLazy(FS, node, packed[3], () => unpacked(module, opened[packed[0]](), packed));
  };
  fill(FS, FS.lookupPath("/").node, tree, add);
}

/**
 * Make the nodes of a folder. Those of folders below it that do not exist yet are made at their first use.
 * @param {any} FS @param {any} parent @param {Tree} tree @param {(node: any, file: [string, number] | Packed) => void} add
 */
function fill(FS, parent, tree, add) {
  const { MEMFS } = FS.filesystems;
  for (const [name, child] of Object.entries(tree)) {
    const existing = parent.contents[name];
    if (Array.isArray(child)) add(existing ?? MEMFS.createNode(parent, name, FILE_MODE, 0), child);
    else if (existing) fill(FS, existing, child, add);
    else fillLater(FS, MEMFS.createNode(parent, name, FOLDER_MODE, 0), child, add);
  }
}

/** @param {any} FS @param {any} node  an empty folder @param {Tree} tree @param {(node: any, file: any) => void} add */
function fillLater(FS, node, tree, add) {
  const operations = node.node_ops;
  const filled = () => {
    node.node_ops = operations;
    fill(FS, node, tree, add);
    return operations;
  };
  node.node_ops = {
    ...operations,
    lookup(/** @type {any} */ parent, /** @type {string} */ name) {
      filled();
      return FS.lookupNode(parent, name);
    },
    readdir: (/** @type {any} */ folder) => filled().readdir(folder),
  };
}

/**
 * Give a file its contents when they are first used.
 * @param {any} FS @param {any} node @param {number} size @param {() => Uint8Array} read
 */
function makeLazy(FS, node, size, read) {
  const become = (/** @type {Uint8Array | null} */ contents, /** @type {number} */ usedBytes) =>
    Object.defineProperties(node, {
      contents: { value: contents, writable: true, enumerable: true, configurable: true },
      usedBytes: { value: usedBytes, writable: true, enumerable: true, configurable: true },
    });
  const load = () => {
    try {
      become(read(), size);
    } catch (error) {
      console.error(error); // Python reports no more than the number
      throw new FS.ErrnoError(EIO);
    }
  };
  Object.defineProperties(node, {
    contents: {
      configurable: true,
      get() {
        load();
        return node.contents;
      },
      set: (contents) => become(contents, size),
    },
    usedBytes: {
      configurable: true,
      get: () => size,
      set(used) {
        load();
        node.usedBytes = used;
      },
    },
  });
}

/** Return the contents of an archive's file. @param {any} module @param {Uint8Array} archive @param {Packed} entry */
function unpacked(module, archive, [, position, packed, size, checksum, isDeflated]) {
  const zlib = module.LDSO.loadedLibsByName.__main__.exports; // Python's own copy of it
  const heap = zlib.malloc(STREAM.bytes + packed + size + 1);
  if (!heap) throw new Error(`no memory to unpack ${size} bytes`);
  const input = heap + STREAM.bytes;
  const output = isDeflated ? input + packed : input;
  try {
    module.HEAPU8.fill(0, heap, input);
    module.HEAPU8.set(archive.subarray(position, position + packed), input);
    if (isDeflated) {
      const fields = new Uint32Array(module.HEAPU8.buffer);
      const set = (/** @type {number} */ field, /** @type {number} */ value) => (fields[(heap + field) >>> 2] = value);
      set(STREAM.nextIn, input);
      set(STREAM.availableIn, packed);
      set(STREAM.nextOut, output);
      set(STREAM.availableOut, size + 1);
      module.HEAPU8[output] = "1".charCodeAt(0); // the version that this code is for; overwritten by the data
      const isWhole = !zlib.inflateInit2_(heap, RAW, output, STREAM.bytes) && zlib.inflate(heap, FINISH) === STREAM_END;
      zlib.inflateEnd(heap);
      if (!isWhole) throw new Error(DAMAGED);
    }
    if (zlib.crc32(0, output, size) >>> 0 !== checksum) throw new Error(DAMAGED);
    return module.HEAPU8.slice(output, output + size);
  } finally {
    zlib.free(heap);
  }
}

/**
 * Read a file of a known size while Python waits.
 * @param {string} url @param {number} size
 */
function readWhole(url, size) {
  const bytes = readNow(url);
  if (bytes.length !== size) throw new Error(`${url} has ${bytes.length} bytes, not ${size}`);
  return bytes;
}

/** @template T @param {() => T} make @returns {() => T} */
function once(make) {
  /** @type {T | undefined} */
  let made;
  return () => (made ??= make());
}
