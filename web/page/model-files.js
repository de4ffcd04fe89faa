/** Find the files of a model: in a folder of this computer, on this server, at an address, or on the Hugging Face Hub. */

import { find } from "../worker/cache.js";
import { Missing } from "../worker/download.js";
import { Problem } from "../worker/protocol.js";
import { sha256 } from "../boot/sha256.js";
import { readInto } from "../worker/source.js";

/** @import { Remote, Source } from "../worker/protocol.js" */

/**
 * A location of a model. `open` is called first. `has` is also true if only a request can tell, which `exists` makes.
 * `read` is for small files, which are examined before the others are fetched; it returns null if there is no such file.
 * @typedef {{
 *   open?(signal: AbortSignal): Promise<void>,
 *   has(path: string): boolean,
 *   exists?(path: string, signal: AbortSignal): Promise<boolean>,
 *   read(path: string, signal: AbortSignal): Promise<File | null>,
 *   source(path: string): Source,
 * }} ModelLocation
 * @typedef {{ name: string, location: ModelLocation }} NamedModel
 * `weights` are folders with weights, `tokenizers` the sets of files that may have each tokenizer.
 * @typedef {{ required: string[], optional: string[], weights?: string[], tokenizers?: string[][][] }} FileNames
 */

const HUB = "https://huggingface.co/";
// File names of weights, in order of preference. If there is an index NAME.index.json, the weights are in shards.
const WEIGHTS = ["model.safetensors", "pytorch_model.bin"];
const SHARD = /-\d{5}-of-\d{5}\.gguf$/;
const HUB_FILE = /^([\w.-]+\/[\w.-]+):(.+)$/; // owner/name:path
// Beside an ONNX file of the Hub: the names of its classes, how it takes pictures, and the weights of a large file.
const SETTINGS = ["config.json", "preprocessor_config.json"];
const EXTERNAL = ["_data", "_data_1", ".data"];
const LARGE = /\.(safetensors|bin|pt)$/;

/**
 * Find the files of a model, the small ones first.
 * @param {ModelLocation} location
 * @param {Record<string, string>} heads  paths of the files that decide which others are needed, by the keyword of `ask`
 * @param {(texts: Record<string, string | undefined>) => Promise<FileNames>} ask  returns the names of the needed files
 * @param {AbortSignal} signal
 * @returns {Promise<Record<string, Source>>}
 * @throws {Problem} required files are missing; the message names them
 */
export async function findFiles(location, heads, ask, signal) {
  await location.open?.(signal);
  const read = async (/** @type {[string, string]} */ [name, path]) => [name, await (await location.read(path, signal))?.text()];
  const { required, optional, weights = [], tokenizers = [] } = await ask(Object.fromEntries(await Promise.all(Object.entries(heads).map(read))));
  for (const sets of tokenizers) required.push(...(await findTokenizer(location, sets, signal)));
  for (const folder of weights) required.push(...(await findWeights(location, folder, signal)));
  const missing = required.filter((path) => !location.has(path));
  if (missing.length) {
    throw new Problem(
      "MissingFiles",
      `These files of the model are missing: ${missing.join(", ")}`,
      `Choose or drop the model's whole folder, with everything in it.${instead(missing, tokenizers)}`,
    );
  }
  /** @type {Record<string, Source>} */
  const files = {};
  for (const path of optional) {
    const file = await location.read(path, signal);
    if (file) files[path] = { file };
  }
  const isLarge = (/** @type {string} */ path) => Number(LARGE.test(path));
  for (const path of required.sort((a, b) => isLarge(a) - isLarge(b))) files[path] = location.source(path);
  return files;
}

/**
 * Find the files of a tokenizer: the first set if it is complete, else all complete ones, of which Python reads what the
 * tokenizer's class asks for. tallow/text/tokenizer_folder.py has the same rule.
 * @param {ModelLocation} location @param {string[][]} sets @param {AbortSignal} signal
 * @returns {Promise<string[]>}  the first set if none is complete
 */
async function findTokenizer(location, sets, signal) {
  const [first, ...others] = sets;
  const isComplete = async (/** @type {string[]} */ paths) => (await Promise.all(paths.map((path) => has(location, path, signal)))).every(Boolean);
  if (await isComplete(first)) return first;
  const complete = await Promise.all(others.map(isComplete));
  const found = others.filter((_, i) => complete[i]);
  return found.length ? [...new Set(found.flat())] : first;
}

/** What may be in place of missing tokenizers, as a hint. @param {string[]} missing @param {string[][][]} tokenizers */
function instead(missing, tokenizers) {
  const sets = tokenizers.find(([first]) => first.some((path) => missing.includes(path)));
  if (!sets) return "";
  const [first, ...others] = sets.map((paths) => paths.join(" with "));
  return ` In place of ${first} it may have ${others.join(", or ")}.`;
}

/** @param {ModelLocation} location @param {string} path @param {AbortSignal} signal @returns {Promise<boolean>} */
async function has(location, path, signal) {
  return location.exists?.(path, signal) ?? location.has(path);
}

/** Find the weights in a folder: one file, or an index and its shards. @param {ModelLocation} location @param {string} folder  empty, or ending with a slash @param {AbortSignal} signal */
async function findWeights(location, folder, signal) {
  for (const name of WEIGHTS) {
    const path = folder + name;
    const index = await location.read(`${path}.index.json`, signal);
    if (index) return [`${path}.index.json`, ...shardNames(await index.text(), path).map((shard) => folder + shard)];
    if (await has(location, path, signal)) return [path];
  }
  return [folder + WEIGHTS[0]];
}

/** The shards that an index names; Python checks the rest of it. @param {string} text  of the index @param {string} path @returns {string[]} */
function shardNames(text, path) {
  try {
    return [...new Set(Object.values(/** @type {Record<string, string>} */ (JSON.parse(text).weight_map)).map(String))];
  } catch {
    throw new Problem("CheckpointError", `${path}.index.json is not an index of weights.`, "Choose or fetch the model's files again.");
  }
}

/** The outermost folder that looks like a model, among files by path. @param {Map<string, File>} files @returns {ModelLocation} */
export function localFolder(files) {
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

/** A model of this server, whose files are known. @param {Record<string, string>} urls  by path @returns {ModelLocation} */
export function serverFiles(urls) {
  return {
    has: (path) => path in urls,
    read: async (path, signal) => (path in urls ? read({ url: urls[path] }, signal) : null),
    source: (path) => ({ url: urls[path] }),
  };
}

/** A folder at an address. @param {string} url  ending with a slash @returns {ModelLocation} */
function remoteFolder(url) {
  return {
    has: () => true,
    exists: (path, signal) => exists(url + path, signal),
    read: (path, signal) => read({ url: url + path }, signal),
    source: (path) => ({ url: url + path }),
  };
}

/** A repository of the Hub. The Hub lists its files with their sizes, and the SHA-256 of large ones. @param {string} name @returns {ModelLocation} */
function hubRepository(name) {
  const url = `${HUB}${name}/resolve/main/`;
  const unlisted = remoteFolder(url); // without the list, e.g. offline, stored downloads still load
  /** @type {Map<string, Remote> | null} */
  let files = null;
  return {
    async open(signal) {
      files = await listFiles(name, url, signal);
    },
    has: (path) => files?.has(path) ?? true,
    exists: async (path, signal) => files?.has(path) ?? exists(url + path, signal),
    read: async (path, signal) => {
      if (!files) return unlisted.read(path, signal);
      const file = files.get(path);
      return file ? read(file, signal) : null;
    },
    source: (path) => files?.get(path) ?? unlisted.source(path),
  };
}

/** List the files of a repository. @param {string} name @param {string} url  of its files @param {AbortSignal} signal @returns {Promise<Map<string, Remote> | null>}  null if the Hub cannot be reached */
async function listFiles(name, url, signal) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(`${HUB}api/models/${name}/tree/main?recursive=true`, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    return null;
  }
  if (response.status === 401 || response.status === 404) {
    throw new Problem("DownloadError", `The Hub has no model ${name}, or it is not public.`, "Check its owner and name. To use a private model, download its files and choose their folder.");
  }
  if (!response.ok) return null;
  /** @type {{ type: string, path: string, size: number, lfs?: { oid: string } }[]} */
  const entries = await response.json();
  const isFile = (/** @type {{ type: string }} */ { type }) => type === "file";
  return new Map(entries.filter(isFile).map(({ path, size, lfs }) => [path, { url: url + path, size, ...(lfs && { sha256: lfs.oid }) }]));
}

/**
 * Parse the name or address of a model that a user typed.
 * @param {string} text  owner/name on the Hub, or the address of a folder
 * @param {string} example  a name on the Hub, for the hint
 * @returns {NamedModel}
 * @throws {Problem} it is neither
 */
export function parseModel(text, example) {
  const name = text.trim();
  if (/^https?:\/\//.test(name) && URL.canParse(name)) {
    const url = name.replace(/\/*$/, "/");
    return { name: url.split("/").at(-2) ?? url, location: remoteFolder(url) };
  }
  if (/^([\w.-]+\/)?[\w.-]+$/.test(name)) return { name, location: hubRepository(name) };
  throw new Problem("BadModel", `${name ? `"${name}"` : "An empty name"} is neither a model of the Hub nor an address.`, `Write its owner and name, as in ${example}.`);
}

/**
 * Parse the name or address of a GGUF file that a user typed.
 * @param {string} text  owner/name:file.gguf on the Hub, or an address
 * @param {string} example  a name on the Hub, for the hint
 * @returns {{ name: string, find(signal: AbortSignal): Promise<Remote> }}
 * @throws {Problem} it is neither, or the file is a shard of a model
 */
export function parseGguf(text, example) {
  const parsed = parseModelFile(text, { ending: "gguf", kind: "a GGUF file", example });
  if (SHARD.test(parsed.name)) throw new Problem("Shard", `${parsed.name} is a part of a model; the page loads models of one file.`, "Join the parts with llama.cpp: llama-gguf-split --merge.");
  return parsed;
}

/**
 * Parse the name or address of a model in one file that a user typed.
 * @param {string} text  owner/name:file on the Hub, or an address
 * @param {{ ending: string, kind: string, example: string }} expected
 *   `ending` is that of the file's name, as a regular expression; `kind` and `example`, a name on the Hub, are for messages
 * @returns {{ name: string, find(signal: AbortSignal): Promise<Remote> }}
 * @throws {Problem} it is neither
 */
export function parseModelFile(text, { ending, kind, example }) {
  const typed = text.trim();
  const named = new RegExp(`^((?:[\\w.-]+/)?[\\w.-]+):((?:[\\w.-]+/)*[\\w.-]+\\.(?:${ending}))$`).exec(typed);
  if (!named && !(/^https?:\/\//.test(typed) && URL.canParse(typed))) {
    throw new Problem("BadModel", `${typed ? `"${typed}"` : "An empty name"} is not the address of a model.`, `Write an address that begins with https://, or ${kind} of the Hub, as in ${example}.`);
  }
  // The Hub's page about a file has /blob/ where the file itself has /resolve/.
  const url = named ? "" : new URL(typed).href.replace(/^(https:\/\/huggingface\.co\/[^/]+\/[^/]+)\/blob\//, "$1/resolve/");
  const path = named ? named[2] : new URL(url).pathname;
  const name = path.split("/").pop() || url;
  return { name, find: async (signal) => (named ? hubFile(named[1], path, { ending, kind }, signal) : { url }) };
}

/**
 * The files that an ONNX model of the Hub needs besides its own, by their names without folders: its settings, and weights of a
 * large file. None for a file of another place.
 * @param {string} name  owner/name:file on the Hub, or an address @param {AbortSignal} signal
 */
export async function companionsOf(name, signal) {
  /** @type {Record<string, Source>} */
  const files = {};
  const [, repository, path] = HUB_FILE.exec(name) ?? [];
  if (!repository) return files;
  const location = hubRepository(repository);
  await location.open?.(signal);
  for (const file of [...SETTINGS, ...EXTERNAL.map((end) => path + end)]) {
    if (await location.exists?.(file, signal)) files[file.slice(file.lastIndexOf("/") + 1)] = location.source(file);
  }
  return files;
}

/** A file of a repository of the Hub, with its size and hash if the Hub lists them. @param {string} name @param {string} path @param {{ ending: string, kind: string }} expected @param {AbortSignal} signal @returns {Promise<Remote>} */
async function hubFile(name, path, { ending, kind }, signal) {
  const url = `${HUB}${name}/resolve/main/`;
  const files = await listFiles(name, url, signal);
  const file = files ? files.get(path) : { url: url + path };
  if (file) return file;
  const others = [...(files?.keys() ?? [])].filter((other) => new RegExp(`\\.(?:${ending})$`).test(other));
  throw new Problem("MissingFiles", `${name} has no file ${path}.`, others.length ? `It has ${others.join(", ")}.` : `It has no ${kind.replace(/^an? /, "")}.`);
}

/** Read a small file, from the stored download if there is one; null if there is no such file. @param {Remote} remote @param {AbortSignal} signal */
async function read(remote, signal) {
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const chunks = [];
  const sink = {
    begin: () => void chunks.splice(0), // called again if the stored download was damaged
    write: (/** @type {Uint8Array} */ chunk) => void chunks.push(chunk.slice()),
    end: () => {},
    digest: () => sha256(chunks),
  };
  try {
    await readInto(remote, sink, { onProgress: () => {}, signal });
  } catch (error) {
    if (error instanceof Missing) return null;
    throw error;
  }
  return new File(chunks, remote.url);
}

/** Whether a file exists, as a stored download or on its server. True if the server does not answer. @param {string} url @param {AbortSignal} signal */
async function exists(url, signal) {
  if ((await find(url))?.sha256) return true;
  try {
    return (await fetch(url, { method: "HEAD", signal })).status !== 404;
  } catch (error) {
    if (signal.aborted) throw error;
    return true; // reading the file reports why the server does not answer
  }
}

// A model's folder has subfolders, and in the Hub's cache it lies three folders deep.
const MAX_DEPTH = 5;

/** The files chosen in an input, by path. @param {HTMLInputElement} input @returns {Map<string, File>} */
export function chosenFiles({ files }) {
  return new Map([...(files ?? [])].map((file) => [file.webkitRelativePath || file.name, file]));
}

/** The name of the folder that contains the files; null for files without one. @param {Map<string, File>} files */
export function folderName(files) {
  const [path = ""] = files.keys();
  return path.includes("/") ? path.split("/")[0] : null;
}

/** All dropped files, by path, including those in folders. Call it during the event. @param {DataTransfer} transfer @returns {Promise<Map<string, File>>} */
export async function droppedFiles(transfer) {
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
      const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!entries.length) return; // readEntries returns at most a hundred at a time
      await Promise.all(entries.map((inner) => walk(inner, files, depth - 1)));
    }
  }
}
