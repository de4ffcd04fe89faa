/**
 * Isolation for static hosts that cannot send headers: this worker adds them to every response of the site. It caches
 * nothing and changes nothing else. The site builder copies this file to the root, so that all pages are in its scope.
 */

/** @typedef {Event & { waitUntil(promise: Promise<unknown>): void }} ExtendableEvent */
/** @typedef {Event & { request: Request, respondWith(response: Promise<Response>): void }} FetchEvent */

const worker = /** @type {any} */ (self);

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {ExtendableEvent} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("fetch", (/** @type {FetchEvent} */ event) => {
  // Responses of other origins need no change: an isolated page reads them by CORS.
  if (new URL(event.request.url).origin === location.origin) event.respondWith(isolated(event.request));
});

/** @param {Request} request */
async function isolated(request) {
  const response = await fetch(request);
  const headers = new Headers(response.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  headers.set("Cross-Origin-Resource-Policy", "same-origin");
  const { status, statusText } = response;
  // Responses with status 204 and 304 cannot have a body, not even an empty one.
  return new Response(response.body && ![204, 304].includes(status) ? response.body : null, { status, statusText, headers });
}
