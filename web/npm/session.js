/** The runtimes that a page has started: one for each folder with the package's files. */

import { SITE } from "../page/site.js";
import { aborted } from "../page/page.js";
import { Runtime } from "../page/tallow.js";

/** @import { Options } from "./types.d.ts" */
/** @typedef {{ runtime: Runtime, models: Map<string, Promise<number>> }} Session  `models` has their numbers, by kind and name */

/** @type {Map<string, Promise<Session>>}  by the address of their files */
const sessions = new Map();

/** Start Python, if it has not been started with these files. @param {Options} options @returns {Promise<Session>} */
export function session({ files, onProgress, signal }) {
  const folder = folderOf(files);
  const { href } = folder;
  let current = sessions.get(href);
  if (!current) {
    current = start(folder, onProgress);
    sessions.set(href, current);
    current.catch(() => sessions.get(href) === current && sessions.delete(href)); // the next call tries again
  }
  return signal ? Promise.race([current, aborted(signal)]) : current;
}

/** @param {URL} folder @param {Options["onProgress"]} onProgress @returns {Promise<Session>} */
async function start(folder, onProgress) {
  const runtime = Runtime.create(folder);
  try {
    const modules = [new URL("web/pipelines.py", folder)];
    await runtime.start(new URL("web/tasks.py", folder), { modules, libraries: ["huggingface_tokenizers"], onProgress });
  } catch (error) {
    runtime.close();
    throw error;
  }
  runtime.onStop = () => sessions.delete(folder.href); // the next call starts another
  return { runtime, models: new Map() };
}

/** The folder with site.json. @param {string | URL} [files] */
function folderOf(files = SITE) {
  return new URL(`${files}`.replace(/\/*$/, "/"), document.baseURI);
}

/** End Python. @param {Pick<Options, "files">} [options] */
export async function close({ files } = {}) {
  const { href } = folderOf(files);
  const current = sessions.get(href);
  sessions.delete(href);
  (await current?.catch(() => null))?.runtime.close();
}

/** Options as keyword arguments in Python: without those that are missing, and in snake case. @param {Record<string, unknown>} options */
export function keywords(options) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given.map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]));
}
