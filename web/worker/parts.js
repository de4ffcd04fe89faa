/** Parts of Python (site/parts.py): archives that are unpacked into Pyodide's files, at the start or when first imported. */

import { Problem } from "./protocol.js";
import { gunzip, readNow } from "../boot/read-files.js";

/** @import { PyodideAPI } from "pyodide" */

const GZIP_MAGIC = [0x1f, 0x8b];
const COMMON = "start/packages";
const BLOCK = 512; // of a tar archive
const NAME = [0, 100];
const SIZE = [124, 136];
const PREFIX = [345, 500];

/** The parts that one page needs. They download while Python starts. */
export class PageParts {
  #folder;
  #own;
  /** @type {Promise<Uint8Array<ArrayBuffer>[]> | undefined} */
  #common;

  /** @param {string} folder  URL @param {Promise<string[]>} names  of the parts that not every page needs */
  constructor(folder, names) {
    this.#folder = folder;
    this.#own = names.then((own) => fetchArchives(folder, own));
    this.#own.catch(() => {}); // reported where they are awaited
  }

  /** Begin to download what every page needs that starts without a snapshot. */
  fetchCommon() {
    return (this.#common ??= fetchArchives(this.#folder, [COMMON]));
  }

  /**
   * Return the options of `start` for Python without a snapshot. `fsInit` writes the files; Pyodide only logs what it throws, so
   * await `arrived` too.
   * @returns {{ arrived: Promise<unknown>, fsInit: (FS: PyodideAPI["FS"]) => Promise<void>, stdLibURL: string }}
   */
  plainOptions() {
    const arrived = Promise.all([this.fetchCommon(), this.#own]).then((archives) => archives.flat());
    arrived.catch(() => {}); // reported where it is awaited
    const fsInit = async (/** @type {PyodideAPI["FS"]} */ FS) => (await arrived.catch(() => [])).forEach((archive) => unpack(FS, archive));
    return { arrived, fsInit, stdLibURL: `${this.#folder}start/stdlib.zip` };
  }

  /**
   * Write the page's own parts to the files of a Python from a snapshot. Without them Python loads the same files when it opens
   * them, slower.
   * @param {PyodideAPI["FS"]} FS
   */
  async addTo(FS) {
    for (const archive of await this.#own.catch(() => [])) unpack(FS, archive);
  }
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

/** @param {string} folder  URL @param {string[]} names */
function fetchArchives(folder, names) {
  const archives = Promise.all(names.map((name) => fetchArchive(`${folder}${name}.tgz`)));
  archives.catch(() => {}); // reported where they are awaited
  return archives;
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
 * Write the files of a tar archive (POSIX 1003.1, ustar). They are views of the archive, and replace files that exist.
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
    if (FS.analyzePath(path, false).exists) FS.unlink(path);
    FS.createDataFile(folder, path.slice(slash + 1), archive.subarray(start, start + size), true, true, true);
    at = start + Math.ceil(size / BLOCK) * BLOCK;
  }
}
