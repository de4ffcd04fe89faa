/** The downloaded model that a page used last, so that a later visit can offer it. */

/** @import { Source } from "../worker/protocol.js" */

const KEY = `tallow-last-model ${location.pathname}`;

/** Keep a choice with its files, if all of them are downloads. @param {{ name: string }} choice @param {Record<string, Source>} files */
export function keepLast(choice, files) {
  const sources = Object.values(files);
  if (!sources.length || sources.some((source) => "file" in source)) return;
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...choice, files }));
  } catch {
    // storage is full or not allowed: the next visit has no offer
  }
}

/**
 * The choice that was kept last, if the browser still stores its files.
 * @param {Set<string>} urls  the stored downloads
 * @returns {any}  as it was; null if there is none
 */
export function storedLast(urls) {
  try {
    const { files, ...choice } = JSON.parse(localStorage.getItem(KEY) ?? "null");
    const isStored = Object.values(files).every(({ url }) => urls.has(url));
    return isStored ? { ...choice, files: async () => files } : null;
  } catch {
    return null; // there is none, or another version of the page wrote it
  }
}
