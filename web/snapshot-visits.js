/**
 * A first visit starts Python from parts, which are half the bytes of a snapshot, and then fetches the snapshot for the next
 * visit, into the browser's cache.
 */

import { Snapshot } from "./snapshot.js";

/** @import { Place } from "./start.js" */

const VISITS = "tallow-snapshots"; // of Cache Storage: an empty response for each snapshot that was fetched
const DELAY_MS = 3000; // the page loads its model first

/**
 * Return a snapshot that an earlier visit has fetched, or the reason not to use it.
 * @param {Place | null} snapshot
 * @returns {Promise<Place | string>}
 */
export async function ofEarlierVisit(snapshot) {
  if (!snapshot) return "the site has no snapshot";
  if (!("caches" in globalThis)) return "this address is not secure (https), so nothing is stored";
  try {
    const visits = await caches.open(VISITS);
    return (await visits.match(snapshot.url)) ? snapshot : "it is fetched during a first visit, for the next";
  } catch (error) {
    return `the browser stores nothing: ${error}`;
  }
}

/**
 * Fetch a snapshot in a while, unless the user saves data. A failure changes nothing: the next visit tries again.
 * @param {Place} snapshot @param {boolean} isShared  whether Python's memory is
 */
export function fetchForNextVisit(snapshot, isShared) {
  const connection = /** @type {{ saveData?: boolean } | undefined} */ (/** @type {any} */ (navigator).connection);
  if (!("caches" in globalThis) || connection?.saveData) return;
  setTimeout(() => fetchNow(snapshot, isShared).catch(() => {}), DELAY_MS);
}

/** @param {Place} snapshot @param {boolean} isShared */
async function fetchNow(snapshot, isShared) {
  const visits = await caches.open(VISITS);
  if (await visits.match(snapshot.url)) return;
  await Snapshot.fetch(snapshot.url, isShared);
  for (const { url } of await visits.keys()) await visits.delete(url); // of a site that has been updated since
  await visits.put(snapshot.url, new Response());
}
