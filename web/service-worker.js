/**
 * Keeps what pages load, so that they also open without a network; and isolates the site on hosts that cannot send headers.
 *
 * With a network, every file comes from the server, and an update is taken at the next visit; only files whose address has
 * a hash come from the copy. When site.json has changed, all copies are renewed, so that a page that is opened later without
 * a network fits the modules that it shares with others.
 *
 * The site builder copies this file to the root, so that all pages are in its scope.
 */

/** @typedef {Event & { waitUntil(promise: Promise<unknown>): void }} ExtendableEvent */
/** @typedef {ExtendableEvent & { request: Request, respondWith(response: Promise<Response>): void }} FetchEvent */

const worker = /** @type {any} */ (self);
/** @type {string}  the site's address */
const SCOPE = worker.registration.scope;
const STORE = "tallow-site";
const DESCRIPTION = new URL("site.json", SCOPE).href;
const IMMUTABLE = new RegExp(`^${SCOPE.replace(/[^\w]/g, "\\$&")}(runtime/[^/]+/)`);
const MODELS = new URL("models/", SCOPE).href; // the pages keep them, see cache.js
const ABSENT = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Offline</title>
<h1>You are offline</h1><p>This page was not opened on this device before. It opens when there is a network.</p>
<p><a href="${SCOPE}">The front page</a></p></html>`;

let isRetired = false;

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {ExtendableEvent} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("message", (/** @type {ExtendableEvent & MessageEvent} */ event) => {
  if (Array.isArray(event.data?.keep)) event.waitUntil(keepAll(event.data.keep));
});
worker.addEventListener("fetch", (/** @type {FetchEvent} */ event) => {
  const { method, url, headers, mode, destination } = event.request;
  if (method !== "GET" || !url.startsWith(SCOPE)) return; // an isolated page reads other origins by CORS
  const needsHeaders = mode === "navigate" || destination.includes("frame") || destination.includes("work");
  const isKept = !url.startsWith(MODELS) && !headers.has("Range");
  if (!isKept && !needsHeaders) return;
  const response = isKept ? answer(event) : fetch(event.request);
  event.respondWith(needsHeaders ? response.then(isolated) : response);
});

/** Answer from the server, or with the copy. @param {FetchEvent} event @returns {Promise<Response>} */
async function answer(event) {
  const { request } = event;
  const isImmutable = IMMUTABLE.test(request.url);
  const kept = isImmutable && (await find(request));
  if (kept) return kept;
  const isPage = request.mode === "navigate";
  let response;
  try {
    // Hosts that say nothing about caching let browsers mix versions.
    response = await fetch(isImmutable ? request : new Request(request, { cache: "no-cache" }));
  } catch (error) {
    const copy = await find(request);
    if (copy) return copy;
    if (isPage) return new Response(ABSENT, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8" } });
    throw error;
  }
  if (request.url === DESCRIPTION) event.waitUntil(renew(response.clone()));
  else event.waitUntil(keep(request.url, response.clone()).then(() => (isPage ? lookForUpdate() : undefined)));
  return response;
}

async function lookForUpdate() {
  const response = await fetch(DESCRIPTION, { cache: "no-cache" }).catch(() => null);
  if (response) await renew(response);
}

/** @param {RequestInfo} request @returns {Promise<Response | undefined>} */
async function find(request) {
  try {
    return await (await caches.open(STORE)).match(request, { ignoreVary: true });
  } catch {
    return undefined; // the browser stores nothing
  }
}

/** @param {string} url @param {Response} response */
async function keep(url, response) {
  if (isRetired || response.status !== 200 || response.type !== "basic") return;
  try {
    await (await caches.open(STORE)).put(url.replace(/#.*/, ""), response);
  } catch (error) {
    console.warn(`not kept for use without a network: ${url}:`, error); // no space, or storage is refused
  }
}

/** Keep files of the site that a page has loaded before this worker controlled it. @param {unknown[]} urls */
async function keepAll(urls) {
  for (const url of urls) {
    if (typeof url !== "string" || !url.startsWith(SCOPE) || url.startsWith(MODELS) || (await find(url))) continue;
    await fetch(url).then((response) => keep(url, response)).catch(() => {});
  }
}

/** If site.json has changed, renew the copies and delete those of the last runtime. @param {Response} response  to a request of it */
async function renew(response) {
  if (response.status === 404) return retire();
  if (response.status !== 200) return;
  const kept = await find(DESCRIPTION);
  const text = await response.clone().text();
  if (kept && (await kept.text()) === text) return;
  await keep(DESCRIPTION, response);
  if (!kept) return;
  const store = await caches.open(STORE);
  for (const { url } of await store.keys()) {
    const folder = IMMUTABLE.exec(url)?.[1];
    if (url === DESCRIPTION || (folder && text.includes(folder))) continue;
    const latest = folder ? null : await fetch(url, { cache: "no-cache" }).catch(() => undefined);
    if (latest === undefined) continue; // no network
    if (latest?.ok) await keep(url, latest);
    else await store.delete(url);
  }
}

/** Leave: the address belongs to something else now. */
async function retire() {
  isRetired = true;
  await worker.registration.unregister();
  await caches.delete(STORE);
}

/** Add the headers that isolate a document or a worker. @param {Response} response */
function isolated(response) {
  if (response.type === "opaqueredirect" || response.type === "error") return response;
  const headers = new Headers(response.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  headers.set("Cross-Origin-Resource-Policy", "same-origin");
  const { status, statusText } = response;
  // Responses with status 204 and 304 cannot have a body, not even an empty one.
  return new Response(response.body && ![204, 304].includes(status) ? response.body : null, { status, statusText, headers });
}
