/** Parts of Python (cli/parts.py): archives that are unpacked into Pyodide's files, at the start or when first imported. */

import { Problem } from "./protocol.js";
import { gunzip, readNow } from "./read-files.js";

/** @import { PyodideAPI } from "pyodide" */

const GZIP_MAGIC = [0x1f, 0x8b];
const BLOCK = 512; // of a tar archive
const NAME = [0, 100];
const SIZE = [124, 136];
const PREFIX = [345, 500];

/**
 * Download the parts that a page needs to start.
 * @param {string} folder  URL
 * @param {string[]} names
 * @returns {{ arrived: Promise<unknown>, fsInit: (FS: PyodideAPI["FS"]) => Promise<void> }}
 *   `fsInit`, an option of loadPyodide, writes their files. What it throws, Pyodide only logs: await `arrived` too
 */
export function fetchParts(folder, names) {
  const arrived = Promise.all(["start/packages", ...names].map((name) => fetchArchive(`${folder}${name}.tgz`)));
  const fsInit = async (/** @type {PyodideAPI["FS"]} */ FS) => {
    const archives = await arrived.catch(() => []);
    for (const archive of archives) unpack(FS, archive);
  };
  return { arrived, fsInit };
}

/**
 * Load the other parts when Python imports a module of theirs.
 * @param {PyodideAPI} pyodide
 * @param {string} folder  URL
 * @param {string} source  the text of later.py
 */
export function loadLater(pyodide, folder, source) {
  pyodide.FS.writeFile("/home/pyodide/later.py", source);
  const later = pyodide.pyimport("later");
  later.install(
    (/** @type {string} */ part) => readNow(`${folder}${part}.tgz`),
    (/** @type {any} */ archive) => {
      const bytes = archive.toJs(); // a copy, outside of Python's memory
      archive.destroy();
      unpack(pyodide.FS, bytes);
    },
  );
  later.destroy();
}

/** @param {string} url @returns {Promise<Uint8Array<ArrayBuffer>>}  unpacked */
async function fetchArchive(url) {
  const response = await fetch(url);
  if (!response.ok) {
    const hint = "The site has probably been updated since the page was opened: reload the page.";
    throw new Problem("RuntimeUnavailable", `${url} could not be loaded: the server answers ${response.status}`, hint);
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  // Some hosts declare the compression of the file as one of the transfer, which the browser has undone.
  return bytes[0] === GZIP_MAGIC[0] && bytes[1] === GZIP_MAGIC[1] ? gunzip(bytes) : bytes;
}

/**
 * Write the files of a tar archive (POSIX 1003.1, ustar). They are views of the archive.
 * @param {PyodideAPI["FS"]} FS
 * @param {Uint8Array<ArrayBuffer>} archive
 */
function unpack(FS, archive) {
  const decoder = new TextDecoder();
  /** @param {number} at @param {number[]} field */
  const text = (at, [start, end]) => {
    const bytes = archive.subarray(at + start, at + end);
    const zero = bytes.indexOf(0);
    return decoder.decode(zero < 0 ? bytes : bytes.subarray(0, zero));
  };
  const folders = new Set();
  for (let at = 0; archive[at]; ) {
    const size = parseInt(text(at, SIZE), 8);
    const [prefix, name] = [text(at, PREFIX), text(at, NAME)];
    const path = `/${prefix}${prefix && "/"}${name}`;
    const slash = path.lastIndexOf("/");
    const folder = path.slice(0, slash);
    if (!folders.has(folder)) FS.mkdirTree(folder);
    folders.add(folder);
    const start = at + BLOCK;
    FS.createDataFile(folder, path.slice(slash + 1), archive.subarray(start, start + size), true, true, true);
    at = start + Math.ceil(size / BLOCK) * BLOCK;
  }
}
