/**
 * Register service-worker.js: it keeps the site for use without a network, and makes pages cross-origin isolated on hosts that
 * do not send the headers.
 */

import { SITE } from "./site.js";

const ATTEMPT_KEY = "tallow-isolation-tried";
const INTERACTIONS = ["pointerdown", "keydown", "input", "change", "drop"];
const THIS_COMPUTER = /^(localhost|127\.0\.0\.1|\[::1\])$/;

/**
 * Isolate the page, if it is not isolated. This needs one reload, on the first visit to such a host; if the user has
 * used the page by then, isolation waits until the next visit. Pages also work without it (old browsers, no https), with
 * one thread and less precise clocks.
 * @returns {Promise<boolean>} whether the site is kept for use without a network
 */
export async function isolate() {
  const { serviceWorker } = navigator;
  if (!serviceWorker) return false;
  // A server of this computer that isolates is `tallow demo`. Other servers will use its address, and must not get the worker.
  if (globalThis.crossOriginIsolated && THIS_COMPUTER.test(location.hostname)) return false;
  const isControlled = Boolean(serviceWorker.controller);
  const used = new AbortController();
  if (navigator.userActivation?.hasBeenActive) used.abort(); // before this script has loaded
  for (const type of INTERACTIONS) {
    addEventListener(type, () => used.abort(), { capture: true, once: true, signal: used.signal });
  }
  try {
    await serviceWorker.register(new URL("service-worker.js", SITE));
  } catch (error) {
    console.warn("not isolated, and not kept for use without a network:", error);
    return false;
  }
  const { active } = await serviceWorker.ready;
  if (!globalThis.crossOriginIsolated && !used.signal.aborted && isFirstAttempt()) location.reload();
  else if (!isControlled) active?.postMessage({ keep: loadedFiles() });
  return true;
}

/** Whether this tab has not been reloaded for isolation: some browsers do not isolate pages by a service worker. */
function isFirstAttempt() {
  if (sessionStorage.getItem(ATTEMPT_KEY)) return false;
  sessionStorage.setItem(ATTEMPT_KEY, "yes");
  return true;
}

/** The files that this page has loaded without the service worker. */
function loadedFiles() {
  return [location.href.replace(/#.*/, ""), ...performance.getEntriesByType("resource").map(({ name }) => name)];
}
