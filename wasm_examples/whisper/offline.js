/** Fetch what the page loads only when it is wanted, so that all of it works without a network later. */
export async function fetchTheRest() {
  const worklet = fetch(new URL("recorder-worklet.js", import.meta.url));
  await Promise.allSettled([import("./decoding.js"), import("./recorder.js"), import("./live.js"), worklet]);
}
