/**
 * Keeps what pages load, so that they also open without a network; and isolates the site on hosts that cannot send headers.
 *
 * With a network, every file comes from the server, and an update is taken at the next visit; only files whose address has
 * a hash come from the copy, if their SHA-256 is that of site.json: a damaged one is fetched again, and a page of a hotel's
 * network, an answer that was cut off, or any other content is not kept. When site.json has changed, all copies are renewed, so that a page that is opened later without
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
const GONE = [404, 410]; // statuses of files that the site no longer has
const ABSENT = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Offline</title>
<h1>You are offline</h1><p>This page was not opened on this device before. It opens when there is a network.</p>
<p><a href="${SCOPE}">The front page</a></p></html>`;

let isRetired = false;
/** The hashes in the latest site.json. @type {Promise<Record<string, string> | null> | null} */
let hashes = null;

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
  const kept = isImmutable ? await find(request) : undefined;
  // A second one is read: the first keeps the compiled code that the browser has with it.
  if (kept && (await isExpected(request.url, await find(request)))) return kept;
  const isPage = request.mode === "navigate";
  let response;
  try {
    // Hosts that say nothing about caching let browsers mix versions. What is damaged may come from the browser's own cache.
    response = await fetch(isImmutable && !kept ? request : new Request(request, { cache: isImmutable ? "reload" : "no-cache" }));
  } catch (error) {
    const copy = isImmutable ? undefined : await find(request);
    if (copy) return copy;
    if (isPage) return new Response(ABSENT, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8" } });
    throw error;
  }
  if (request.url === DESCRIPTION) event.waitUntil(renew(response.clone()));
  else event.waitUntil(keep(request.url, response.clone()).then(() => (isPage ? lookForUpdate() : undefined)));
  return response;
}

/** The SHA-256 of each file of runtime/ in a folder, by path; null if the text is not a site.json. @param {string} text */
function hashesOf(text) {
  try {
    return JSON.parse(text).files ?? null;
  } catch {
    return null;
  }
}

/** Whether a file of runtime/ has the SHA-256 that site.json says. @param {string} url @param {Response | undefined} response */
async function isExpected(url, response) {
  hashes ??= find(DESCRIPTION).then(async (kept) => hashesOf((await kept?.text()) ?? ""));
  const files = await hashes;
  if (!files) hashes = null; // until there is one
  try {
    const digest = await crypto.subtle.digest("SHA-256", (await response?.arrayBuffer()) ?? new ArrayBuffer(0));
    const hexadecimal = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return files?.[url.slice(SCOPE.length)] === hexadecimal;
  } catch {
    return false; // it was cut off
  }
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
    const store = await caches.open(STORE);
    await store.put(url.replace(/#.*/, ""), response);
    if (IMMUTABLE.test(url) && !(await isExpected(url, await store.match(url)))) await store.delete(url);
  } catch (error) {
    console.warn(`not kept for use without a network: ${url}:`, error); // no space, or storage is refused
  }
}

/** Keep files of the site that a page has loaded before this worker controlled it. @param {unknown[]} urls */
async function keepAll(urls) {
  await lookForUpdate();
  for (const url of urls) {
    if (typeof url !== "string" || !url.startsWith(SCOPE) || url.startsWith(MODELS) || (await find(url))) continue;
    await fetch(url).then((response) => keep(url, response)).catch(() => {});
  }
}

/** If site.json has changed, renew the copies and delete those of the last runtime. @param {Response} response  to a request of it */
async function renew(response) {
  if (response.status === 404) return retire();
  if (response.status !== 200) return;
  const reading = response.clone().text().catch(() => "");
  const former = hashes;
  const latest = reading.then(hashesOf);
  hashes = latest.then(async (files) => files ?? (await former));
  if (!(await latest)) return; // a host that answers with a page, or an answer that was cut off
  const text = await reading;
  const kept = await find(DESCRIPTION);
  if (kept && (await kept.text()) === text) return;
  await keep(DESCRIPTION, response);
  if (!kept) return;
  const store = await caches.open(STORE);
  for (const { url } of await store.keys()) {
    const folder = IMMUTABLE.exec(url)?.[1];
    if (url === DESCRIPTION || (folder && text.includes(folder))) continue;
    const latest = folder ? null : await fetch(url, { cache: "no-cache" }).catch(() => undefined); // undefined: no network
    if (latest?.ok) await keep(url, latest);
    else if (latest === null || GONE.includes(latest?.status ?? 0)) await store.delete(url);
    // After another error, the old copy is better than none.
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
