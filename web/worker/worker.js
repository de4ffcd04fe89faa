/**
 * The worker: runs Python, one request at a time.
 *
 * Python runs synchronously, in slices. Between two slices the worker waits for one task of the event loop, so that it can
 * receive an "abort" message. Python starts as soon as the worker runs: all that a page's "start" adds is what to import.
 */

import { boot } from "./python.js";
import { Problem } from "./protocol.js";
import { readInto } from "./source.js";

/** @import { Abort, Call, Generate, Interrupt, Load, Notice, Refusal, Reply, Request, Start } from "./protocol.js" */
/** @import { Python, Requested } from "./python.js" */
/** @import { Report } from "./source.js" */
/** @typedef {{ postMessage(message: Reply | Notice): void, onmessage: ((event: MessageEvent) => void) | null }} Port */
/** @typedef {Reply extends infer R ? R extends { id: number } ? Omit<R, "id"> : never : never} Unaddressed */

// The length of a slice, after which the worker sends the new text and checks for an abort: one frame of a 60 Hz screen.
// Without slices, a thousand tokens per second would be a thousand messages.
const SLICE_S = 1 / 60;
// The time without a request after which the worker does what has time.
const REST_MS = 3000;

const SITE = new URL("..", import.meta.url);

class Server {
  #port;
  /** @type {Map<number, AbortController>} */
  #running = new Map();
  /** @type {(request: Requested) => void} */
  #request = () => {};
  /** @type {(reason: string) => void} */
  #refuseThreads = () => {};
  #isStarted = false;
  /** @type {Promise<Python>} */
  #python;
  #nextTask = taskHop();
  #lock = holdLock();
  #restTimer = 0;

  /** @param {Port} port */
  constructor(port) {
    this.#port = port;
    const requested = new Promise((resolve) => (this.#request = resolve));
    this.#python = boot(SITE, requested, (refuse) => {
      this.#refuseThreads = refuse;
      return (work) => port.postMessage({ type: "thread", work });
    });
    this.#python.then(
      ({ failed }) => failed.catch((problem) => port.postMessage({ type: "stopped", ...problem.toFault() })),
      () => {}, // reported to each request
    );
    port.onmessage = ({ data }) => this.#receive(data);
  }

  /** @param {Request | Abort | Interrupt | Refusal} message */
  async #receive(message) {
    if (message.type === "refusal") return this.#refuseThreads(message.reason);
    if (message.type === "interrupt") return (await this.#python).interrupt();
    const { id } = message;
    if (message.type === "abort") {
      this.#running.get(id)?.abort();
      return;
    }
    const controller = new AbortController();
    this.#running.set(id, controller);
    clearTimeout(this.#restTimer);
    /** @param {Unaddressed} reply */
    const reply = (reply) => this.#port.postMessage(/** @type {Reply} */ ({ ...reply, id }));
    try {
      const result = await this.#answer(message, reply, controller.signal);
      reply({ type: "done", reason: "end", result });
    } catch (error) {
      if (controller.signal.aborted) reply({ type: "done", reason: "aborted", result: null });
      else reply({ type: "error", ...asProblem(error).toFault() });
    } finally {
      this.#running.delete(id);
      if (!this.#running.size) this.#restTimer = setTimeout(() => this.#rest(), REST_MS);
    }
  }

  async #rest() {
    (await this.#python).rest();
  }

  /**
   * @param {Request} request
   * @param {(reply: Unaddressed) => void} reply
   * @param {AbortSignal} signal
   * @returns {Promise<unknown>}
   */
  async #answer(request, reply, signal) {
    if (request.type === "ping") return null;
    if (request.type === "start") return this.#start(request, reply);
    if (!this.#isStarted) throw new Problem("ProtocolError", `"${request.type}" came before "start"`);
    const python = await this.#python;
    if (request.type === "load") return this.#load(python, request, reply, signal);
    if (request.type === "generate") return this.#generate(python, request, reply, signal);
    if (request.type === "threads") return python.setThreads(request.count);
    return this.#call(python, request, reply);
  }

  /** @param {Start} request @param {(reply: Unaddressed) => void} reply */
  async #start({ id, type, ...request }, reply) {
    this.#isStarted = true;
    this.#lock.then((lock) => lock && this.#port.postMessage({ type: "alive", lock }));
    this.#request({ ...request, onStep: (name) => reply({ type: "progress", stage: "python", name, loaded: 0, total: null }) });
    return (await this.#python).started;
  }

  /** @param {Python} python @param {Load} request @param {(reply: Unaddressed) => void} reply @param {AbortSignal} signal */
  async #load(python, { files }, reply, signal) {
    const started = performance.now();
    const buffers = python.newFiles();
    /** @type {Set<string>} */
    const notices = new Set();
    let bytes = 0;
    try {
      for (const [name, source] of Object.entries(files)) {
        const onProgress = throttled((/** @type {Report} */ report) => reply({ type: "progress", name, ...report }));
        const { size, notice } = await readInto(source, buffers.open(name), { onProgress, signal });
        bytes += size;
        if (notice) notices.add(notice);
      }
      reply({ type: "progress", stage: "model", name: "", loaded: 0, total: null });
      await this.#nextTask(); // send the progress and receive an abort, before Python blocks the thread
      signal.throwIfAborted();
      const info = buffers.load();
      if (bytes) setTimeout(collectGarbage); // that of the tokenizer: 50 MB for 150,000 tokens
      return { info, bytes, seconds: (performance.now() - started) / 1000, notice: [...notices].join(" ") || null };
    } finally {
      buffers.close();
    }
  }

  /** @param {Python} python @param {Generate} request @param {(reply: Unaddressed) => void} reply @param {AbortSignal} signal */
  async #generate(python, { options }, reply, signal) {
    const stream = python.generate(options);
    try {
      // The first slice ends with the first token, so that the page shows it at once.
      for (let slice = stream.run(0); slice; slice = stream.run(SLICE_S)) {
        reply({ type: "token", ...slice });
        await this.#nextTask();
        signal.throwIfAborted();
      }
    } finally {
      stream.close();
    }
    return null;
  }

  /** @param {Python} python @param {Call} request @param {(reply: Unaddressed) => void} reply */
  #call(python, { method, keywords, emits }, reply) {
    const emit = (/** @type {unknown} */ value) => reply({ type: "event", value });
    return python.invoke(method, keywords, emits ? emit : null);
  }
}

/**
 * Hold a lock as long as this worker lives: the browser releases it however the worker ends, and not while it computes.
 * @returns {Promise<string | null>}  its name; null where there are no locks, as on a page from http:
 */
function holdLock() {
  return new Promise((resolve) => {
    if (!navigator.locks) return resolve(null);
    const name = `tallow-worker-${crypto.randomUUID()}`;
    const hold = () => {
      resolve(name);
      return new Promise(() => {});
    };
    navigator.locks.request(name, hold).catch(() => resolve(null));
  });
}

/**
 * Return a function that waits for one task of the event loop. Awaiting a promise does not receive messages. A nested
 * setTimeout waits at least 4 ms; a message to itself takes 0.07 ms (Chromium).
 * @returns {() => Promise<void>}
 */
function taskHop() {
  const { port1, port2 } = new MessageChannel();
  /** @type {(() => void)[]} Requests run side by side, so that several may wait. */
  const waiting = [];
  port1.onmessage = () => waiting.shift()?.();
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      port2.postMessage(null);
    });
}

/**
 * Limit reports to one every 50 ms. The first is always sent, and the last, in which `loaded` is `total`.
 * @template {{ loaded: number, total: number | null }} T
 * @param {(value: T) => void} report
 * @returns {(value: T) => void}
 */
function throttled(report) {
  let last = -Infinity;
  return (value) => {
    const now = performance.now();
    if (now - last < 50 && value.loaded !== value.total) return;
    last = now;
    report(value);
  };
}

/**
 * Make the engine collect garbage, which it may leave for minutes. There is no function for it, but Chromium collects all garbage,
 * in 50 to 250 ms, before it refuses a buffer that does not fit the memory.
 */
function collectGarbage() {
  try {
    new ArrayBuffer(2 ** 34);
  } catch {
    // as expected
  }
}

/** @param {unknown} error @returns {Problem} */
function asProblem(error) {
  if (error instanceof Problem) return error;
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return new Problem(name, message, null, stack ?? null);
}

new Server(/** @type {Port} */ (/** @type {unknown} */ (self)));
