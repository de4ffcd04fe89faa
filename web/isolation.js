/** Make the page cross-origin isolated by service-worker.js, on hosts that do not send the headers. */

import { SITE } from "./tallow.js";

const ATTEMPT_KEY = "tallow-isolation-tried";
const INTERACTIONS = ["pointerdown", "keydown", "input", "change", "drop"];

/**
 * Isolate the page, if it is not isolated. This needs one reload, on the first visit to such a host; if the user has
 * used the page by then, isolation waits until the next visit. Pages also work without it (old browsers, no https), with
 * one thread and less precise clocks.
 */
export async function isolate() {
  if (globalThis.crossOriginIsolated || !navigator.serviceWorker || sessionStorage.getItem(ATTEMPT_KEY)) return;
  sessionStorage.setItem(ATTEMPT_KEY, "yes");
  const used = new AbortController();
  for (const type of INTERACTIONS) {
    addEventListener(type, () => used.abort(), { capture: true, once: true, signal: used.signal });
  }
  try {
    await navigator.serviceWorker.register(new URL("service-worker.js", SITE));
  } catch (error) {
    console.warn("not isolated:", error);
    return;
  }
  await navigator.serviceWorker.ready;
  if (!used.signal.aborted) location.reload();
}
