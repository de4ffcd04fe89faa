/** The models that the page offers, and how a user chooses another one. */

import { localFolder, findFiles, folderName, parseGguf, parseModel } from "../../web/page/model-files.js";
import { Problem } from "../../web/worker/protocol.js";

/** @import { ModelChoice } from "../../web/page/model-page.js" */
/** @import { NamedModel } from "../../web/page/model-files.js" */
/** @typedef {(method: string, keywords: Record<string, unknown>) => Promise<any>} Call  calls Python */
/** A model with what a link calls it, as in `fromText`; empty for one that is not on the web. @typedef {ModelChoice & { link: string }} Choice */
/**
 * A model to offer. `bytes` is the size of its file, `memory` what it needs with a conversation of CONTEXT tokens, both 0 if it is
 * built in. `url` is the address of its file.
 * @typedef {Choice & { about: string, bytes: number, memory: number, url: string }} Preset
 */

const CONTEXT = 4096;
const PYTHON_BYTES = 150e6; // Python, NumPy and tallow
const GROWTH = 1.25; // the cache of a conversation moves when it grows
const MOST_BYTES = 4e9; // the address space of WebAssembly
const PHONE_BYTES = 1e9; // tabs of phones get no more
const SHARE = 0.5; // of the device's memory, for one tab
export const EXAMPLE = "Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf";
const HEADS = { config: "config.json" };
const GGUF_FILE = "GGUF file"; // as in app.py

/** The model that comes with tallow. @type {Preset} */
export const PACKAGED = { name: "Storyteller", files: async () => ({}), link: "", about: "tells stories only", bytes: 0, memory: 0, url: "" };

/** @returns {Promise<Preset[]>} */
export async function findPresets() {
  /** @type {{ name: string, bytes: number, cacheBytes: number, gguf: string, about: string }[]} */
  const entries = await (await fetch(new URL("presets.json", import.meta.url))).json();
  const others = entries.map(({ name, bytes, cacheBytes, gguf, about }) => {
    const [repository, path] = gguf.split(":");
    const memory = bytes + GROWTH * CONTEXT * cacheBytes + PYTHON_BYTES;
    return { ...fromText(gguf, noCall), name, about, bytes, memory, url: `https://huggingface.co/${repository}/resolve/main/${path}` };
  });
  return [PACKAGED, ...others];
}

/** The memory that a tab of this device can use, as far as the browser tells. */
export function memoryOfDevice() {
  const { deviceMemory, userAgentData } = /** @type {{ deviceMemory?: number, userAgentData?: { mobile: boolean } }} */ (navigator);
  const isPhone = userAgentData?.mobile ?? /Mobi|iPad/.test(navigator.userAgent);
  return Math.min(MOST_BYTES, isPhone ? PHONE_BYTES : Infinity, deviceMemory ? SHARE * deviceMemory * 2 ** 30 : Infinity);
}

/**
 * The model that a user typed: owner/name or owner/name:file.gguf on the Hub, or the address of a folder or a GGUF file.
 * @param {string} text @param {Call} call @returns {Choice}
 * @throws {Problem} it is none of these
 */
export function fromText(text, call) {
  const typed = text.trim();
  if (/\.gguf(\?.*)?$/i.test(typed)) {
    const { name, find } = parseGguf(typed, EXAMPLE);
    return { name, link: typed, files: async (signal) => ({ [GGUF_FILE]: await find(signal) }) };
  }
  return { ...fromLocation(parseModel(typed, EXAMPLE), call), link: typed };
}

/**
 * The model in files that a user chose or dropped, by path: a GGUF file, or a folder.
 * @param {Map<string, File>} files @param {Call} call @returns {Choice}
 * @throws {Problem} there are several GGUF files
 */
export function fromFiles(files, call) {
  const ggufs = [...files.values()].filter(({ name }) => /\.gguf$/i.test(name));
  if (ggufs.length > 1) {
    throw new Problem("TwoModels", `${ggufs[0].name} and ${ggufs[1].name} are two models.`, "Choose one GGUF file.");
  }
  const [file] = ggufs.length ? ggufs : files.size === 1 ? files.values() : [];
  if (file) return { name: file.name, link: "", files: async () => ({ [GGUF_FILE]: { file } }) };
  return { ...fromLocation({ name: folderName(files) ?? "the model", location: localFolder(files) }, call), link: "" };
}

/** @param {NamedModel} model @param {Call} call @returns {ModelChoice} */
function fromLocation({ name, location }, call) {
  const ask = (/** @type {Record<string, unknown>} */ texts) => call("list_files", texts);
  return { name, files: (signal) => findFiles(location, HEADS, ask, signal) };
}

/** @type {Call} */
async function noCall() {
  throw new Error("a GGUF file needs no list of files");
}
