/**
 * A first visit starts Python from parts, which are half the bytes of a snapshot, and then fetches the snapshot for the next
 * visit.
 */

import { forget, isFetched, markFetched, refusal } from "./snapshot-store.js";
import { Snapshot } from "./snapshot.js";

/** @import { Place } from "./start.js" */

/**
 * Return a snapshot that an earlier visit has fetched, or the reason not to use it.
 * @param {Place | null} snapshot
 * @returns {Promise<Place | string>}
 */
export async function ofEarlierVisit(snapshot) {
  if (!snapshot) return "the site has no snapshot";
  try {
    if ("caches" in globalThis && (await isFetched(snapshot))) return snapshot;
  } catch {
    // the reason follows
  }
  return (await refusal()) ?? "its memory is not stored yet";
}

/**
 * Fetch a snapshot, unless the user saves data. A failure changes nothing: the next visit tries again.
 * @param {Place} snapshot @param {boolean} isShared  whether Python's memory is
 */
export function fetchForNextVisit(snapshot, isShared) {
  const connection = /** @type {{ saveData?: boolean } | undefined} */ (/** @type {any} */ (navigator).connection);
  if (!connection?.saveData) fetchNow(snapshot, isShared).catch(() => {});
}

/** @param {Place} snapshot @param {boolean} isShared */
async function fetchNow(snapshot, isShared) {
  if ((await refusal()) || (await isFetched(snapshot))) return;
  await forget(); // that of a site that has been updated since
  await Snapshot.fetch(snapshot, isShared);
  await markFetched(snapshot);
}
