/** The models that the page loads: the built-in one, those of the list, and others by name, address or file. */

import { findFiles, folderName, localFolder, parseModel, parseModelFile } from "../../web/page/model-files.js";
import { Problem } from "../../web/worker/protocol.js";
import { page } from "./elements.js";

/** @import { ModelLocation } from "../../web/page/model-files.js" */
/** @import { ModelChoice } from "../../web/page/model-page.js" */
/** @typedef {ModelChoice & { id: string }} Choice  `id` is its value in the list of models */
/** @typedef {(texts: Record<string, unknown>) => Promise<any>} Ask  returns the names of a model's files, see app.py */

const HEADS = { config: "config.json" };
const SINGLE = /\.(pt|bin)$/i; // a complete model in one file
const OF_MODEL = /\.(pt|bin|gguf|safetensors|json|tiktoken)$/i;
const EXAMPLE = "openai/whisper-tiny";
export const BUILT_IN = "";

/** @returns {Choice} */
export function builtIn() {
  return { name: "the built-in model", id: BUILT_IN, files: async () => ({}) };
}

/** The smallest model for all speech, which is the first in the list. */
export function smallest() {
  return /** @type {HTMLOptionElement} */ (page.model.querySelector("optgroup option"));
}

/**
 * A model of the Hub or at an address: a folder, or a single file.
 * @param {string} text  owner/name, owner/name:file.bin, or the address of a folder or a file @param {Ask} ask
 * @returns {Choice}
 * @throws {Problem} it is neither
 */
export function namedModel(text, ask) {
  if (!SINGLE.test(text.trim().replace(/[?#].*/, ""))) {
    const { name, location } = parseModel(text, EXAMPLE);
    return folder(name, location, ask);
  }
  const { name, find } = parseModelFile(text, { ending: "bin|pt", kind: "a file of a Whisper", example: smallest().value });
  return { name, id: text.trim(), files: async (signal) => ({ [name]: await find(signal) }) };
}

/** Files of this computer: a model's folder, or a single file with a model and maybe its tokenizer. @param {Map<string, File>} files @param {Ask} ask @returns {Choice} @throws {Problem} it is a GGUF file */
export function modelOfFiles(files, ask) {
  const single = [...files.values()].filter(({ name }) => SINGLE.test(name));
  const gguf = [...files.values()].find(({ name }) => /\.gguf$/i.test(name));
  if (gguf) throw new Problem("NotSpeech", `${gguf.name} is a GGUF file, which has no speech model for this page.`, "Choose the folder of a Whisper model, or OpenAI's file of one, .pt.");
  const isFolder = [...files.keys()].some((path) => path.split("/").pop() === HEADS.config);
  if (isFolder || single.length !== 1) return folder(folderName(files) ?? "the chosen files", localFolder(files), ask);
  const sources = Object.fromEntries([...files.values()].filter(({ name }) => OF_MODEL.test(name)).map((file) => [file.name, { file }]));
  const { name } = single[0];
  return { name, id: name, files: async () => sources };
}

/** Whether there is a file of a model among these. @param {Map<string, File>} files */
export function hasModel(files) {
  return [...files.values()].some(({ name }) => OF_MODEL.test(name));
}

/** @param {string} name @param {ModelLocation} location @param {Ask} ask @returns {Choice} */
function folder(name, location, ask) {
  return { name, id: name, files: (signal) => findFiles(location, HEADS, ask, signal) };
}

/** Select a model in the list, and add it if the list does not have it. @param {string} id */
export function selectModel(id) {
  let entry = [...page.model.options].find(({ value }) => value === id);
  if (!entry) {
    page.model.querySelector("[data-other]")?.remove();
    entry = new Option(id, id);
    entry.dataset.other = "";
    page.model.append(entry);
  }
  entry.selected = true;
}
