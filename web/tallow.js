/**
 * Python with tallow in a worker, seen from the page.
 *
 *     const runtime = Runtime.create();
 *     await runtime.start(new URL("app.py", import.meta.url));
 *     await runtime.load({ model: { file }, tokenizer: { url } }, { onProgress });
 *     for await (const { text } of runtime.generate({ prompt: "Once" }, { signal })) output.append(text);
 *
 * or, where a demo has methods of its own,
 *
 *     const report = await runtime.call("advance", { seconds: 0.05 });
 */

import { Problem } from "./protocol.js";

/** @import { Loaded, Progress, Reply, Request, Source, Started, Token } from "./protocol.js" */

/** The folder that holds site.json: this module is in its subfolder web/. */
export const SITE = new URL("..", import.meta.url);

const SIGINT = 2;

export class Runtime {
  /** @type {Map<number, Replies>} */
  #pending = new Map();
  #lastId = 0;
  #port;
  // Shared memory is for isolated pages only.
  #interrupts = globalThis.crossOriginIsolated ? new Uint8Array(new SharedArrayBuffer(1)) : null;

  /** @param {Worker | MessagePort} port  where a worker, or its stand-in, listens */
  constructor(port) {
    this.#port = port;
    port.onmessage = (/** @type {MessageEvent<Reply>} */ { data }) => this.#pending.get(data.id)?.push(data);
  }

  /** Start a worker of its own. */
  static create() {
    // A worker of a blob has the page's Content-Security-Policy; one of another file would have none but its server's.
    const script = `import ${JSON.stringify(new URL("./worker.js", import.meta.url).href)};`;
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const worker = new Worker(url, { type: "module" });
    const runtime = new Runtime(worker);
    worker.onerror = (event) => {
      const problem = new Problem(
        "WorkerError",
        event.message ?? "The worker script could not be loaded.",
        "Check the connection and reload the page.",
      );
      runtime.#fail(problem);
    };
    return runtime;
  }

  /**
   * Boot Python, install tallow and import the demo's Python.
   * @param {URL} app
   * @param {{ modules?: URL[], libraries?: string[], onProgress?: (progress: Progress) => void, signal?: AbortSignal }} [options]
   *   `modules` are what `app` imports from beside it, `libraries` the JavaScript that Python imports by these names
   * @returns {Promise<Started>}
   */
  start(app, { modules = [], libraries = [], ...options } = {}) {
    const urls = { site: SITE.href, app: app.href, modules: modules.map((module) => module.href) };
    return this.#result({ type: "start", id: ++this.#lastId, ...urls, libraries, interrupts: this.#interrupts }, options);
  }

  /**
   * Read files into Python's memory and hand them to the demo's `load`.
   * @param {Record<string, Source>} files
   * @param {{ onProgress?: (progress: Progress) => void, signal?: AbortSignal }} [options]
   * @returns {Promise<Loaded>}
   */
  load(files, options = {}) {
    return this.#result({ type: "load", id: ++this.#lastId, files }, options);
  }

  /**
   * Run the demo's `generate` and stream what it yields. Aborting, or leaving the loop early, stops Python first.
   * @param {Record<string, unknown>} keywords  the arguments of `generate`
   * @param {{ signal?: AbortSignal }} [options]
   * @returns {AsyncGenerator<Token, void>}
   */
  async *generate(keywords, { signal } = {}) {
    for await (const reply of this.#send({ type: "generate", id: ++this.#lastId, options: keywords }, signal)) {
      if (reply.type === "token") yield reply;
    }
  }

  /**
   * Call a method of the demo and wait for what it returns. Calls may come while others wait or `generate` runs: Python
   * takes them one after the other. Python's dicts, lists, numbers and text arrive as such, its bytes and arrays as
   * typed arrays.
   * @param {string} method
   * @param {Record<string, unknown>} [keywords]  its arguments
   * @param {{ onEvent?: (value: any) => void }} [options]  what the method passes to `emit`, while it runs
   * @returns {Promise<any>}
   */
  call(method, keywords = {}, { onEvent } = {}) {
    const id = ++this.#lastId;
    return this.#result({ type: "call", id, method, keywords, emits: Boolean(onEvent) }, { onEvent });
  }

  /**
   * Raise KeyboardInterrupt in the Python code that runs now.
   * @returns {boolean} false where that is not possible: a page that is not isolated can only `close` the runtime
   */
  interrupt() {
    if (this.#interrupts) this.#interrupts[0] = SIGINT;
    return this.#interrupts !== null;
  }

  /** End the worker, whatever it is doing; what is waited for fails. */
  close() {
    if (this.#port instanceof MessagePort) this.#port.close();
    else this.#port.terminate();
    this.#fail(new Problem("Closed", "The runtime was closed.", "Create another."));
  }

  /** @param {Problem} problem */
  #fail(problem) {
    for (const replies of this.#pending.values()) replies.fail(problem);
  }

  /**
   * @param {Request} request
   * @param {{ onProgress?: (progress: Progress) => void, onEvent?: (value: any) => void, signal?: AbortSignal }} options
   * @returns {Promise<any>}
   */
  async #result(request, { onProgress, onEvent, signal }) {
    for await (const reply of this.#send(request, signal)) {
      if (reply.type === "done") return reply.result;
      if (reply.type === "progress") onProgress?.(reply);
      if (reply.type === "event") onEvent?.(reply.value);
    }
  }

  /**
   * The replies to a request, `done` last. Throws on `error` and on abort.
   * @param {Request} request
   * @param {AbortSignal} [signal]
   * @returns {AsyncGenerator<Reply, void>}
   */
  async *#send(request, signal) {
    signal?.throwIfAborted();
    const { id } = request;
    const replies = new Replies();
    const abort = () => this.#port.postMessage({ type: "abort", id });
    this.#pending.set(id, replies);
    signal?.addEventListener("abort", abort);
    let finished = false;
    try {
      this.#port.postMessage(request);
      while (!finished) {
        const reply = await replies.next();
        finished = isLast(reply);
        if (reply.type === "error") throw Problem.from(reply);
        if (reply.type === "done" && reply.reason === "aborted") throw signal?.reason ?? new DOMException("", "AbortError");
        yield reply;
      }
    } finally {
      if (!finished) {
        // The caller has left the loop. It goes on when the worker is free again.
        abort();
        while (!isLast(await replies.next()));
      }
      signal?.removeEventListener("abort", abort);
      this.#pending.delete(id);
    }
  }
}

/** @param {Reply} reply */
function isLast(reply) {
  return reply.type === "done" || reply.type === "error";
}

/** Replies that have come and not been read yet. */
class Replies {
  /** @type {Reply[]} */
  #queue = [];
  /** @type {unknown} */
  #failure;
  #wake = () => {};

  /** @param {Reply} reply */
  push(reply) {
    this.#queue.push(reply);
    this.#wake();
  }

  /** @param {unknown} error */
  fail(error) {
    this.#failure = error;
    this.#wake();
  }

  /** @returns {Promise<Reply>} */
  async next() {
    for (;;) {
      const reply = this.#queue.shift();
      if (reply) return reply;
      if (this.#failure) throw this.#failure;
      await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
    }
  }
}
