/** Makes the page cross-origin isolated where the host does not, by service-worker.js. */

import { SITE } from "./tallow.js";

const TRIED = "tallow-isolation-tried";

/**
 * Isolation needs one reload, on the first visit to such a host. Without it (an old browser, no https) pages work too:
 * they have one thread and coarser clocks.
 * @returns {Promise<boolean>} whether the page is about to reload, so that nothing should be started
 */
export async function isolate() {
  if (globalThis.crossOriginIsolated || !navigator.serviceWorker || sessionStorage.getItem(TRIED)) return false;
  sessionStorage.setItem(TRIED, "yes");
  try {
    await navigator.serviceWorker.register(new URL("service-worker.js", SITE));
  } catch (error) {
    console.warn("not isolated:", error);
    return false;
  }
  await navigator.serviceWorker.ready;
  location.reload();
  return true;
}
