/** Sounds that are fetched: the samples of the site, and addresses that a user types. */

import { Download } from "../../web/worker/download.js";
import { megabytes } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { hearing, view } from "./elements.js";

/** @typedef {{ file: string, name: string }} Sample */

const MAX_BYTES = 2 ** 30; // the largest file that sound.js decodes at once
const LIST = new URL("samples/samples.json", import.meta.url);

/**
 * Fetch a sound.
 * @param {string} text  an address that a user typed @param {AbortSignal} signal
 * @returns {Promise<File>}
 * @throws {Problem} it is no address, cannot be fetched, or is too large
 */
export async function fetchSound(text, signal) {
  const url = text.trim();
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new Problem("BadAddress", url ? `"${url}" is not the address of a sound.` : "There is no address yet.", "Write one that begins with https://.");
  }
  const name = nameOf(url);
  view.status.say(`Fetching ${name}`);
  hearing.update(`Fetching ${name}`, null);
  try {
    return new File(await download(url, name, signal), name);
  } catch (error) {
    if (error instanceof Problem || signal.aborted) throw error;
    const reason = error instanceof Error ? error.message : error;
    throw new Problem("DownloadError", `${name} could not be fetched completely: ${reason}`, "Try again; or download it and choose the file.");
  } finally {
    hearing.hide();
  }
}

/** The content of a file. @param {string} url @param {string} name @param {AbortSignal} signal @returns {Promise<Blob[]>} */
async function download(url, name, signal) {
  const download = await Download.begin({ url }, null, signal);
  /** @type {Blob[]} */
  const parts = [];
  const nowhere = { write: async () => {} }; // sounds are not kept
  refuseLarge(name, download.size);
  for await (const chunk of download.chunks(nowhere)) {
    parts.push(new Blob([chunk]));
    refuseLarge(name, download.loaded);
    hearing.update(`Fetching ${name}, ${megabytes(download.loaded)}`, download.size ? download.loaded / download.size : null);
  }
  return parts;
}

/** @param {string} name @param {number | null} size  in bytes; null if unknown */
function refuseLarge(name, size) {
  if (size === null || size <= MAX_BYTES) return;
  throw new Problem("TooLarge", `${name} has more than ${MAX_BYTES / 2 ** 30} GiB.`, "Download it and choose the file; WAV and MP3 files are then read in parts.");
}

/** The last part of an address. @param {string} url */
function nameOf(url) {
  const last = new URL(url).pathname.split("/").findLast(Boolean) ?? "sound";
  try {
    return decodeURIComponent(last);
  } catch {
    return last; // it has a percent sign that encodes nothing
  }
}

/** Show a button for each sample. @param {HTMLElement} place @param {(address: string) => void} use */
export async function showSamples(place, use) {
  /** @type {Sample[]} */
  const samples = await (await fetch(LIST)).json();
  for (const { file, name } of samples) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.dataset.testid = "sample";
    button.textContent = name;
    button.onclick = () => use(new URL(file, LIST).href);
    place.append(button, " ");
  }
}
