/**
 * Python with tallow in a worker, seen from the page.
 *
 *     const runtime = Runtime.create();
 *     await runtime.start(new URL("app.py", import.meta.url));
 *     await runtime.load({ model: { file }, tokenizer: { url } }, { onProgress });
 *     for await (const { text } of runtime.generate({ prompt: "Once" }, { signal })) output.append(text);
 *
 * or, if the demo has other methods,
 *
 *     const report = await runtime.call("advance", { seconds: 0.05 });
 */

import { FATAL, Problem } from "../worker/protocol.js";
import { SITE } from "./site.js";

/** @import { Work } from "../threads/kernel-thread.js" */
/** @import { Supervisor } from "../threads/kernel-supervisor.js" */
/** @import { Loaded, Notice, Progress, Reply, Request, Source, Started, Token } from "../worker/protocol.js" */

const SIGINT = 2;

export class Runtime {
  /** Called when Python has stopped by itself: it failed for good, or its worker has ended. @type {(problem: Problem) => void} */
  onStop = () => {};
  /** @type {Map<number, Replies>} */
  #pending = new Map();
  #lastId = 0;
  /** @type {Problem | null}  why requests fail */
  #end = null;
  #hasAnswered = false;
  #port;
  #site;
  /** @type {Promise<Supervisor> | undefined} */
  #supervisor;
  // Only isolated pages have shared memory.
  #interrupts = globalThis.crossOriginIsolated ? new Uint8Array(new SharedArrayBuffer(1)) : null;

  /** @param {Worker | MessagePort} port  of a worker, or of its stand-in in tests @param {URL} [site]  the folder with site.json */
  constructor(port, site = SITE) {
    this.#port = port;
    this.#site = site;
    port.onmessage = (/** @type {MessageEvent<Reply | Notice>} */ { data }) => {
      this.#hasAnswered = true;
      if (data.type === "thread") this.#startThread(data.work);
      else if (data.type === "alive") navigator.locks.request(data.lock, () => this.#stop(ended()));
      else if (data.type === "stopped") this.#stop(Problem.from(data));
      else this.#pending.get(data.id)?.push(data);
    };
  }

  /** Create a runtime with a new worker, or with the one that early.js has started. @param {URL} [site]  the folder with site.json */
  static create(site = SITE) {
    const early = /** @type {{ earlyWorker?: Worker | null }} */ (globalThis);
    const worker = (site === SITE && early.earlyWorker) || startWorker(site);
    early.earlyWorker = null;
    const runtime = new Runtime(worker, site);
    worker.onerror = (event) => {
      const problem = new Problem(
        "WorkerError",
        `The worker script ${new URL("web/worker.js", site)} could not be loaded: ${event.message ?? "it is blocked"}`,
        "Check the connection and reload the page.",
      );
      // Later errors are of code that Python or the user gave to a timer: the worker goes on.
      if (!runtime.#hasAnswered) runtime.#fail(problem);
    };
    return runtime;
  }

  /**
   * Boot Python, install tallow and import the demo's Python.
   * @param {URL} app
   * @param {{ modules?: URL[], parts?: string[], packages?: string[], libraries?: string[], onProgress?: (progress: Progress) => void, signal?: AbortSignal }} [options]
   *   `modules` are the Python files that `app` imports, `parts` the parts of Python that it needs besides those of every page
   *   (site/parts.py; others load when they are imported), `packages` those besides NumPy and tallow that it imports, `libraries` the JavaScript modules of site.json that Python imports
   * @returns {Promise<Started>}
   */
  async start(app, { modules = [], parts = [], packages = [], libraries = [], ...options } = {}) {
    const urls = { app: app.href, modules: modules.map((module) => module.href) };
    const request = { type: /** @type {const} */ ("start"), id: ++this.#lastId, ...urls, parts, packages, libraries, interrupts: this.#interrupts };
    /** @type {Started} */
    const started = await this.#result(request, options);
    if (started.mostThreads > 1) this.#supervise().catch(() => {}); // reported when a thread is wanted
    return started;
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
   * Run the demo's `generate` and stream what it yields. On abort, or if the caller leaves the loop early, Python stops first.
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
   * Call a method of the demo and wait for its result. Python runs calls one after the other, so a call may wait for others
   * or for `generate`. Dicts, lists, numbers and strings arrive as their JavaScript equivalents, bytes and arrays as typed
   * arrays.
   * @param {string} method
   * @param {Record<string, unknown>} [keywords]  its arguments
   * @param {{ onEvent?: (value: any) => void }} [options]  `onEvent` receives what the method passes to `emit`, while it runs
   * @returns {Promise<any>}
   */
  call(method, keywords = {}, { onEvent } = {}) {
    const id = ++this.#lastId;
    return this.#result({ type: "call", id, method, keywords, emits: Boolean(onEvent) }, { onEvent });
  }

  /**
   * Set the number of threads for kernels, from the next one on.
   * @param {number} count
   * @returns {Promise<number>}  at most `mostThreads` of what `start` returned
   */
  setThreads(count) {
    return this.#result({ type: "threads", id: ++this.#lastId, count }, {});
  }

  /**
   * Raise KeyboardInterrupt in the running Python code, or call the demo's `interrupt` if Python waits. On a page that is
   * not isolated, code that computes goes on; `close` ends it.
   */
  interrupt() {
    if (this.#interrupts) this.#interrupts[0] = SIGINT;
    this.#port.postMessage({ type: "interrupt" });
  }

  /**
   * Wait until the worker does not compute. A worker that computes for long does not answer, as one that hangs.
   * @returns {Promise<void>}
   */
  ping() {
    return this.#result({ type: "ping", id: ++this.#lastId }, {});
  }

  /** Terminate the worker and the threads of its kernels. Pending and later requests fail. */
  close() {
    this.#fail(closed());
  }

  /** Start a thread of the kernels. @param {Work} work */
  async #startThread(work) {
    try {
      const supervisor = await this.#supervise();
      if (!this.#end) supervisor.start(work);
    } catch (error) {
      this.#port.postMessage({ type: "refusal", reason: String(error) });
    }
  }

  #supervise() {
    const url = new URL("web/kernel-supervisor.js", this.#site).href;
    return (this.#supervisor ??= import(/* webpackIgnore: true */ /* @vite-ignore */ url).then(({ supervise }) =>
      supervise((/** @type {string} */ reason) => this.#port.postMessage({ type: "refusal", reason })),
    ));
  }

  /** @param {Problem} problem */
  #stop(problem) {
    if (this.#end) return; // it was closed
    this.#fail(problem);
    this.onStop(problem);
  }

  /** Terminate the worker and the threads. @param {Problem} problem  of pending and later requests */
  #fail(problem) {
    if (this.#port instanceof MessagePort) this.#port.close();
    else this.#port.terminate();
    this.#supervisor?.then((supervisor) => supervisor.end()).catch(() => {}); // there is none
    this.#end ??= problem;
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
    if (this.#end) throw this.#end;
    const { id } = request;
    const replies = new Replies();
    const abort = () => this.#port.postMessage({ type: "abort", id });
    this.#pending.set(id, replies);
    signal?.addEventListener("abort", abort);
    let finished = true; // nothing was sent yet
    try {
      this.#port.postMessage(request);
      finished = false;
      while (!finished) {
        const reply = await replies.next();
        finished = isLast(reply);
        if (reply.type === "error") throw Problem.from(reply);
        if (reply.type === "done" && reply.reason === "aborted") throw signal?.reason ?? new DOMException("", "AbortError");
        yield reply;
      }
    } finally {
      try {
        if (!finished && !this.#end) {
          // The caller has left the loop, which returns only when the worker is free again.
          abort();
          while (!isLast(await replies.next()));
        }
      } finally {
        signal?.removeEventListener("abort", abort);
        this.#pending.delete(id);
      }
    }
  }
}

/** @param {URL} site  the folder with site.json */
function startWorker(site) {
  // A worker from a blob inherits the page's Content-Security-Policy; a worker from a file has that of its response. In Firefox, what
  // a script from a blob imports by a statement does not come from the service worker, and is missing without a network.
  const script = `
const early = [];
onmessage = (event) => early.push(event);
import(${JSON.stringify(new URL("web/worker.js", site).href)}).then(() => early.forEach((event) => onmessage(event)), reportError);`;
  return new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), { type: "module" });
}

function closed() {
  return new Problem("Closed", "The runtime was closed.", "Create another.");
}

function ended() {
  return new Problem(FATAL, "Python has stopped: its worker has ended.", "Start Python again, or reload the page.");
}

/** @param {Reply} reply */
function isLast(reply) {
  return reply.type === "done" || reply.type === "error";
}

/** A queue of replies. */
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
