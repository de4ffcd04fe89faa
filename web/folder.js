/** Where the files of a model come from: a folder of this computer, a server's list of them, or an address. */

import { Problem } from "./protocol.js";
import { Missing, readInto } from "./source.js";

/** @import { Source } from "./protocol.js" */

/**
 * A place that holds a model. `read` is for its small files, which are looked into before the rest is fetched.
 * @typedef {{
 *   has(path: string): boolean,
 *   read(path: string, signal: AbortSignal): Promise<File | null>,
 *   source(path: string): Source,
 * }} Place  `has` is true also where only trying will tell
 * @typedef {{ name: string, place: Place }} Choice
 * @typedef {{ required: string[], optional: string[] }} Wanted
 */

const HUB = "https://huggingface.co/";

/**
 * The files of the model at a place, the small ones first.
 * @param {Place} place
 * @param {Record<string, string>} heads  the files that tell which others there are, by what `ask` calls their texts
 * @param {(texts: Record<string, string | undefined>) => Promise<Wanted>} ask  which files those are
 * @param {AbortSignal} signal
 * @returns {Promise<Record<string, Source>>}
 * @throws {Problem} naming the files that are not there
 */
export async function filesOf(place, heads, ask, signal) {
  const read = async (/** @type {[string, string]} */ [name, path]) => [name, await (await place.read(path, signal))?.text()];
  const { required, optional } = await ask(Object.fromEntries(await Promise.all(Object.entries(heads).map(read))));
  const missing = required.filter((path) => !place.has(path));
  if (missing.length) {
    throw new Problem(
      "MissingFiles",
      `These files of the model are missing: ${missing.join(", ")}`,
      "Choose or drop the model's whole folder, with all that lies in it.",
    );
  }
  /** @type {Record<string, Source>} */
  const files = {};
  for (const path of optional) {
    const file = await place.read(path, signal);
    if (file) files[path] = { file };
  }
  const isLarge = (/** @type {string} */ path) => Number(path.endsWith(".safetensors"));
  for (const path of required.sort((a, b) => isLarge(a) - isLarge(b))) files[path] = place.source(path);
  return files;
}

/** Files by their paths, of which those in the outermost folder that looks like a model's are taken. @param {Map<string, File>} files @returns {Place} */
export function folder(files) {
  const depth = (/** @type {string} */ path) => path.split("/").length;
  const outermost = (/** @type {string} */ name) =>
    [...files.keys()].filter((path) => path.split("/").pop() === name).sort((a, b) => depth(a) - depth(b))[0];
  const mark = outermost("modules.json") ?? outermost("config.json") ?? "";
  const root = mark.slice(0, mark.lastIndexOf("/") + 1);
  const at = (/** @type {string} */ path) => files.get(root + path);
  return {
    has: (path) => Boolean(at(path)),
    read: async (path) => at(path) ?? null,
    source: (path) => ({ file: /** @type {File} */ (at(path)) }),
  };
}

/** What a server offers: the addresses of files by their paths. @param {Record<string, string>} urls @returns {Place} */
export function listed(urls) {
  return {
    has: (path) => path in urls,
    read: async (path, signal) => (path in urls ? read(urls[path], signal) : null),
    source: (path) => ({ url: urls[path] }),
  };
}

/** A folder at an address, which ends with a slash. @param {string} url @returns {Place} */
function address(url) {
  return {
    has: () => true,
    read: (path, signal) => read(url + path, signal),
    source: (path) => ({ url: url + path }),
  };
}

/**
 * The model that somebody has written down.
 * @param {string} text  owner/name of the Hub, or the address of a folder
 * @param {string} example
 * @returns {Choice}
 * @throws {Problem} it is neither
 */
export function written(text, example) {
  const name = text.trim();
  if (/^https?:\/\//.test(name) && URL.canParse(name)) {
    const url = name.replace(/\/*$/, "/");
    return { name: url.split("/").at(-2) ?? url, place: address(url) };
  }
  if (/^([\w.-]+\/)?[\w.-]+$/.test(name)) return { name, place: address(`${HUB}${name}/resolve/main/`) };
  throw new Problem("BadModel", `"${name}" is neither a model of the Hub nor an address.`, `Write its owner and name, as in ${example}.`);
}

/** A small file, from the browser's copy if there is one; null where there is no such file. @param {string} url @param {AbortSignal} signal */
async function read(url, signal) {
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const chunks = [];
  const sink = {
    begin: () => void chunks.splice(0), // a damaged copy is read first, then the file itself
    write: (/** @type {Uint8Array} */ chunk) => void chunks.push(/** @type {Uint8Array<ArrayBuffer>} */ (chunk)),
    end: () => {},
    digest: async () => crypto.subtle.digest("SHA-256", await new Blob(chunks).arrayBuffer()),
  };
  try {
    await readInto({ url }, sink, { onProgress: () => {}, signal });
  } catch (error) {
    if (error instanceof Missing) return null;
    throw error;
  }
  return new File(chunks, url);
}

// A model's folder holds folders of its parts; the Hub's cache keeps it three folders deep.
const MAX_DEPTH = 5;

/** All files that are dropped, those in folders too. To be called while the event is handled. @param {DataTransfer} transfer @returns {Promise<Map<string, File>>} */
export async function dropped(transfer) {
  /** @type {Map<string, File>} */
  const files = new Map();
  const walks = [...transfer.items].map((item) => {
    const entry = item.webkitGetAsEntry();
    if (entry) return walk(entry, files, MAX_DEPTH);
    const file = item.getAsFile();
    if (file) files.set(file.name, file);
  });
  await Promise.all(walks);
  return files;
}

/** @param {FileSystemEntry} entry @param {Map<string, File>} files @param {number} depth @returns {Promise<void>} */
async function walk(entry, files, depth) {
  if (entry instanceof FileSystemFileEntry) {
    /** @type {File} */
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    files.set(entry.fullPath.replace(/^\//, ""), file);
  } else if (entry instanceof FileSystemDirectoryEntry && depth) {
    const reader = entry.createReader();
    for (;;) {
      /** @type {FileSystemEntry[]} */
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return; // it gives a hundred at a time
      await Promise.all(some.map((inner) => walk(inner, files, depth - 1)));
    }
  }
}
