/** Makes the page cross-origin isolated where the host does not, by service-worker.js. */

import { SITE } from "./tallow.js";

const TRIED = "tallow-isolation-tried";
const TOUCHES = ["pointerdown", "keydown", "input", "change", "drop"];

/**
 * Isolation needs one reload, on the first visit to such a host; a page that has been touched by then is left alone until
 * the next visit. Without isolation (an old browser, no https) pages work too: they have one thread and coarser clocks.
 */
export async function isolate() {
  if (globalThis.crossOriginIsolated || !navigator.serviceWorker || sessionStorage.getItem(TRIED)) return;
  sessionStorage.setItem(TRIED, "yes");
  const touched = new AbortController();
  for (const type of TOUCHES) {
    addEventListener(type, () => touched.abort(), { capture: true, once: true, signal: touched.signal });
  }
  try {
    await navigator.serviceWorker.register(new URL("service-worker.js", SITE));
  } catch (error) {
    console.warn("not isolated:", error);
    return;
  }
  await navigator.serviceWorker.ready;
  if (!touched.signal.aborted) location.reload();
}
