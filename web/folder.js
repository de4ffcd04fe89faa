/** Where the files of a model come from: a folder of this computer, a server's list of them, or an address. */

import { find } from "./cache.js";
import { Missing } from "./download.js";
import { Problem } from "./protocol.js";
import { readInto } from "./source.js";

/** @import { Remote, Source } from "./protocol.js" */

/**
 * A place that holds a model. `open` comes first; `read` is for its small files, which are looked into before the rest is
 * fetched.
 * @typedef {{
 *   open?(signal: AbortSignal): Promise<void>,
 *   has(path: string): boolean,
 *   isThere?(path: string, signal: AbortSignal): Promise<boolean>,
 *   read(path: string, signal: AbortSignal): Promise<File | null>,
 *   source(path: string): Source,
 * }} Place  `has` is true also where only trying will tell, which `isThere` does
 * @typedef {{ name: string, place: Place }} Choice
 * @typedef {{ required: string[], optional: string[], weights?: string[] }} Wanted  `weights` are folders that hold some
 */

const HUB = "https://huggingface.co/";
// The names of weights, the first that is there; beside an index, which then comes first, they are in parts.
const WEIGHTS = ["model.safetensors", "pytorch_model.bin"];
const LARGE = /\.(safetensors|bin|pt)$/;

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
  await place.open?.(signal);
  const read = async (/** @type {[string, string]} */ [name, path]) => [name, await (await place.read(path, signal))?.text()];
  const { required, optional, weights = [] } = await ask(Object.fromEntries(await Promise.all(Object.entries(heads).map(read))));
  for (const part of weights) required.push(...(await weightsOf(place, part, signal)));
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
  const isLarge = (/** @type {string} */ path) => Number(LARGE.test(path));
  for (const path of required.sort((a, b) => isLarge(a) - isLarge(b))) files[path] = place.source(path);
  return files;
}

/** The files that hold the weights of a part, whole or in shards. @param {Place} place @param {string} part  empty or with a slash at its end @param {AbortSignal} signal */
async function weightsOf(place, part, signal) {
  for (const name of WEIGHTS) {
    const path = part + name;
    const index = await place.read(`${path}.index.json`, signal);
    if (index) return [`${path}.index.json`, ...shardsOf(await index.text(), path).map((shard) => part + shard)];
    if (await (place.isThere?.(path, signal) ?? place.has(path))) return [path];
  }
  return [part + WEIGHTS[0]];
}

/** @param {string} text  of an index, which Python checks @param {string} path @returns {string[]} */
function shardsOf(text, path) {
  try {
    return [...new Set(Object.values(/** @type {Record<string, string>} */ (JSON.parse(text).weight_map)).map(String))];
  } catch {
    throw new Problem("CheckpointError", `${path}.index.json is no index of weights.`, "Choose or fetch the model's files again.");
  }
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
    read: async (path, signal) => (path in urls ? read({ url: urls[path] }, signal) : null),
    source: (path) => ({ url: urls[path] }),
  };
}

/** A folder at an address, which ends with a slash. @param {string} url @returns {Place} */
function address(url) {
  return {
    has: () => true,
    isThere: (path, signal) => isThere(url + path, signal),
    read: (path, signal) => read({ url: url + path }, signal),
    source: (path) => ({ url: url + path }),
  };
}

/** A repository of the Hub, whose list says which files there are, how large they are, and the SHA-256 of large ones. @param {string} name @returns {Place} */
function repository(name) {
  const url = `${HUB}${name}/resolve/main/`;
  const untold = address(url); // offline, what is kept can still be read
  /** @type {Map<string, Remote> | null} */
  let files = null;
  return {
    async open(signal) {
      files = await listOf(name, url, signal);
    },
    has: (path) => files?.has(path) ?? true,
    isThere: async (path, signal) => files?.has(path) ?? isThere(url + path, signal),
    read: async (path, signal) => {
      if (!files) return untold.read(path, signal);
      const file = files.get(path);
      return file ? read(file, signal) : null;
    },
    source: (path) => files?.get(path) ?? untold.source(path),
  };
}

/** @param {string} name @param {string} url  of its files @param {AbortSignal} signal @returns {Promise<Map<string, Remote> | null>}  null where the Hub cannot be reached */
async function listOf(name, url, signal) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(`${HUB}api/models/${name}/tree/main?recursive=true`, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    return null;
  }
  if (response.status === 401 || response.status === 404) {
    throw new Problem("DownloadError", `The Hub has no model ${name}, or it is not public.`, "Check its owner and name; of a private one, download the files and choose their folder.");
  }
  if (!response.ok) return null;
  /** @type {{ type: string, path: string, size: number, lfs?: { oid: string } }[]} */
  const entries = await response.json();
  const isFile = (/** @type {{ type: string }} */ { type }) => type === "file";
  return new Map(entries.filter(isFile).map(({ path, size, lfs }) => [path, { url: url + path, size, ...(lfs && { sha256: lfs.oid }) }]));
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
  if (/^([\w.-]+\/)?[\w.-]+$/.test(name)) return { name, place: repository(name) };
  throw new Problem("BadModel", `"${name}" is neither a model of the Hub nor an address.`, `Write its owner and name, as in ${example}.`);
}

/** A small file, from the browser's copy if there is one; null where there is no such file. @param {Remote} remote @param {AbortSignal} signal */
async function read(remote, signal) {
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const chunks = [];
  const sink = {
    begin: () => void chunks.splice(0), // a damaged copy is read first, then the file itself
    write: (/** @type {Uint8Array} */ chunk) => void chunks.push(/** @type {Uint8Array<ArrayBuffer>} */ (chunk)),
    end: () => {},
    digest: async () => crypto.subtle.digest("SHA-256", await new Blob(chunks).arrayBuffer()),
  };
  try {
    await readInto(remote, sink, { onProgress: () => {}, signal });
  } catch (error) {
    if (error instanceof Missing) return null;
    throw error;
  }
  return new File(chunks, remote.url);
}

/** Whether there is a file, kept or on its server; one that does not tell without sending it has it, for all we know. @param {string} url @param {AbortSignal} signal */
async function isThere(url, signal) {
  if ((await find(url))?.sha256) return true;
  try {
    return (await fetch(url, { method: "HEAD", signal })).status !== 404;
  } catch (error) {
    if (signal.aborted) throw error;
    return true; // reading it will say why it cannot be read
  }
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
