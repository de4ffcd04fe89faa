/** Python in the worker: boot Pyodide with tallow, and call the demo through bridge.py. */

import { offerThreads, refuseThreads } from "../threads/kernel-threads.js";
import { PageParts, loadLater } from "./parts.js";
import { FATAL, Problem } from "./protocol.js";
import { sha256 } from "../boot/sha256.js";
import { unshared } from "../threads/shared-views.js";
import { fetchForNextVisit, ofEarlierVisit } from "../boot/snapshot-visits.js";
import { start } from "../boot/start.js";

/** @import { PyodideAPI } from "pyodide" */
/** @import { Supervising } from "../threads/kernel-threads.js" */
/** @import { Start, Started } from "./protocol.js" */
/** @import { Sink } from "./source.js" */
/**
 * URLs, relative to the site. `shared` is a copy of Pyodide's main module with a shared memory. A site with its own copy of
 * Pyodide has `parts`, a folder, and a `snapshot`, if its build could make one.
 * @typedef {{ pyodide: string, shared: string | null, lock: string, parts: string | null,
 *   snapshot: { url: string, sha256: string } | null, libraries: Record<string, string> }} SiteConfig
 *
 * @typedef {Pick<Start, "app" | "modules" | "parts" | "packages" | "libraries" | "interrupts"> & { onStep(name: string): void }} Requested
 */

/**
 * Boot Python and import the demo.
 * @param {URL} site  the folder with site.json
 * @param {Promise<Requested>} requested  what the page needs: Python starts meanwhile
 * @param {Supervising} supervise  by the page
 * @returns {Promise<Python>}
 * @throws {Problem} a file could not be fetched, or the demo could not be imported
 */
export async function boot(site, requested, supervise) {
  const clock = stopwatch();
  const onStep = (/** @type {string} */ name) => requested.then((request) => request.onStep(name));
  onStep("Fetching Python");
  const texts = Promise.all(["memory_check.py", "later.py", "bridge.py"].map((name) => fetchText(new URL(name, import.meta.url))));
  texts.catch(() => {}); // awaited below
  const ownTexts = requested.then(({ app, modules }) => fetchScripts(new URL(app), modules.map((url) => new URL(url))));
  ownTexts.catch(() => {});
  const config = /** @type {SiteConfig} */ (JSON.parse(await fetchText(new URL("site.json", site))));
  const indexURL = new URL(config.pyodide, site).href;
  const lockFileURL = new URL(config.lock, site).href;
  const packageBaseUrl = new URL(".", lockFileURL).href;
  const imported = requested.then(({ libraries }) => importModules(libraries, (name) => new URL(config.libraries[name], site)));
  imported.catch(() => {});
  const partsURL = config.parts && new URL(config.parts, site).href;
  const snapshot = config.snapshot && { ...config.snapshot, url: new URL(config.snapshot.url, site).href };
  const pageParts = partsURL ? new PageParts(partsURL, requested.then(({ parts }) => parts)) : null;
  const visited = ofEarlierVisit(snapshot).then((found) => {
    if (typeof found === "string") pageParts?.fetchCommon();
    return found;
  });
  // They download while Python starts.
  const plain = async () => pageParts?.plainOptions() ?? { packages: ["tallow", ...(await requested).packages] };
  /** @type {Record<string, string>} */
  const copies = config.shared ? { [`${indexURL}pyodide.asm.wasm`]: new URL(config.shared, site).href } : {};
  const onStart = () => {
    clock.lap("fetch");
    onStep("Starting Python");
  };
  const options = { indexURL, lockFileURL, packageBaseUrl, plain, copies, onStart };
  const [found, [checkSource, later, bridgeSource]] = await Promise.all([visited, texts]);
  let booted;
  try {
    booted = await start({ ...options, snapshot: found, checkSource });
    if (booted.snapshot === true) await pageParts?.addTo(booted.pyodide.FS);
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(
      "RuntimeUnavailable",
      `Python could not be loaded from ${indexURL}: ${error instanceof Error ? error.message : error}`,
      navigator.onLine ? "Check that the address can be reached, then try again." : "You are offline; connect, then try again.",
    );
  }
  const { pyodide, sharing } = booted;
  const collector = pyodide.pyimport("gc");
  collector.disable(); // imports make a million objects that stay
  if (sharing?.memory) offerThreads(pyodide, sharing.memory, { supervise });
  else refuseThreads(pyodide, booted.unshared ?? "its memory is not shared");
  if (partsURL && booted.snapshot !== true) loadLater(pyodide, partsURL, later);
  for (const [name, library] of await imported) pyodide.registerJsModule(name, library);
  clock.lap("python");
  onStep("Importing tallow");
  const scripts = [["bridge.py", bridgeSource], ...(await ownTexts)];
  for (const [name, source] of scripts) pyodide.FS.writeFile(`/home/pyodide/${name}`, source);
  const { interrupts } = await requested;
  if (interrupts) pyodide.setInterruptBuffer(/** @type {any} */ (signals(interrupts)));
  try {
    const bridge = pyodide.pyimport("bridge");
    const demo = pyodide.pyimport("app").Demo();
    collector.freeze();
    collector.enable();
    collector.destroy();
    clock.lap("import");
    const started = { ...JSON.parse(bridge.versions()), seconds: clock.laps, unshared: booted.unshared, snapshot: booted.snapshot };
    const atRest = () => snapshot && fetchForNextVisit(snapshot, sharing !== null);
    return new Python(pyodide, interrupts, bridge, demo, { started, atRest });
  } catch (error) {
    // The last line of a traceback is the exception.
    const details = String(error);
    throw new Problem("ImportError", `The demo's Python could not be imported: ${details.trim().split("\n").pop()}`, null, details);
  }
}

/**
 * The interrupts as CPython reads them: it reads element 0 and then clears it. Clear only what was read, or an interrupt in
 * between is lost: one in a hundred, in a short loop.
 * @param {Uint8Array} interrupts
 */
function signals(interrupts) {
  let read = 0;
  return {
    get 0() {
      return (read = Atomics.load(interrupts, 0));
    },
    set 0(value) {
      Atomics.compareExchange(interrupts, 0, read, value);
    },
  };
}

export class Python {
  #interrupts;
  #pyodide;
  #bridge;
  #demo;
  #atRest;
  /** Why Python cannot go on, such as a stack that overflowed. @type {Problem | null} */
  #failure = null;
  /** @type {Promise<never>}  rejected when Python cannot go on */
  #failed;

  /** @param {PyodideAPI} pyodide @param {Uint8Array | null} interrupts @param {any} bridge @param {any} demo @param {{ started: Started, atRest: () => void }} boot */
  constructor(pyodide, interrupts, bridge, demo, { started, atRest }) {
    this.#interrupts = interrupts;
    this.#pyodide = pyodide;
    this.#bridge = bridge;
    this.#demo = demo;
    this.started = started;
    this.#atRest = atRest;
    this.#failed = new Promise((_, reject) => {
      // What runs then never ends.
      /** @type {any} */ (pyodide)._api.on_fatal = (/** @type {unknown} */ error) => reject((this.#failure = fatal(error)));
    });
    this.#failed.catch(() => {}); // reported by each call
  }

  /** Rejected with a Problem when Python cannot go on. */
  get failed() {
    return this.#failed;
  }

  /** Do what has time until nothing runs. */
  rest() {
    this.#atRest();
    this.#atRest = () => {};
  }

  /** Set the number of threads for kernels. @param {number} count @returns {number}  at most what the browser offers */
  setThreads(count) {
    return this.call(() => this.#bridge.set_threads(count));
  }

  /** The buffers for the files of one `load`. */
  newFiles() {
    const files = this.call(() => this.#bridge.Files(this.#demo));
    return {
      /** @param {string} name @returns {Sink} */
      open: (name) => ({
        begin: (head, size) => this.call(() => files.begin(name, this.#bytes(head), size ?? undefined)),
        write: (chunk) =>
          this.call(() => {
            // Memory moves when it grows, so every chunk needs a new view.
            const proxy = files.extend(chunk.length);
            const view = proxy.getBuffer("u8");
            view.data.set(chunk);
            view.release();
            proxy.destroy();
          }),
        end: () => this.call(() => files.end()),
        digest: () =>
          this.call(() => {
            const proxy = files.current();
            const bytes = proxy.getBuffer("u8");
            const hash = sha256([unshared(bytes.data)]); // copies the bytes before it returns
            bytes.release();
            proxy.destroy();
            return hash;
          }),
      }),
      /** @returns {Record<string, unknown>} */
      load: () => JSON.parse(this.call(() => files.load())),
      close: () => files.destroy(),
    };
  }

  /** Start the demo's `generate`. @param {Record<string, unknown>} options  its keyword arguments */
  generate(options) {
    const stream = this.call(() => this.#bridge.Stream(this.#demo, JSON.stringify(options)));
    return {
      /** Run for `budget` seconds, at least one step. @param {number} budget @returns {{ text: string, stats: Record<string, number> } | null} */
      run: (budget) => JSON.parse(this.call(() => stream.run(budget))),
      close: () => {
        this.call(() => stream.close());
        stream.destroy();
      },
    };
  }

  /**
   * Call a method of the demo, and await it if it is a coroutine.
   * @param {string} method
   * @param {Record<string, unknown>} keywords
   * @param {((value: unknown) => void) | null} emit  receives what Python emits, converted as results are
   * @returns {Promise<unknown>}
   */
  async invoke(method, keywords, emit) {
    const send = emit && ((/** @type {unknown} */ value) => emit(this.#plain(value)));
    if (this.#failure) throw this.#failure;
    const pythonKeywords = this.#pyodide.toPy(keywords);
    try {
      const result = this.#bridge.call(this.#demo, method, pythonKeywords, send);
      return this.#plain(await Promise.race([result, this.#failed]));
    } catch (error) {
      throw this.#problem(error);
    } finally {
      if (!this.#failure) pythonKeywords.destroy();
    }
  }

  /**
   * Stop code that waits. Code that computes sees the shared interrupt, which by now has stopped it or come after its end:
   * clear it, so that it does not stop the next request.
   */
  interrupt() {
    this.#interrupts?.fill(0);
    this.call(() => this.#bridge.interrupt(this.#demo));
  }

  /** Convert a Python value to what a message can contain. @param {any} value */
  #plain(value) {
    if (!(value instanceof this.#pyodide.ffi.PyProxy)) return value;
    const plain = value.toJs({ dict_converter: Object.fromEntries, create_pyproxies: false });
    value.destroy();
    return plain;
  }

  /**
   * Call Python and convert its exceptions to Problems.
   * @template T
   * @param {() => T} run
   * @returns {T}
   */
  call(run) {
    try {
      return run();
    } catch (error) {
      throw this.#problem(error);
    }
  }

  /** @param {unknown} error */
  #problem(error) {
    if (this.#failure) return this.#failure; // Pyodide's objects throw now
    if (!(error instanceof this.#pyodide.ffi.PythonError)) return error;
    return Problem.from(JSON.parse(this.#bridge.describe_last_error()));
  }

  /** @param {Uint8Array} data */
  #bytes(data) {
    return this.#pyodide.toPy(data);
  }
}

/** @param {unknown} error */
function fatal(error) {
  const what = error instanceof Error ? error.message : String(error);
  const why = /call stack/.test(what) ? "the call stack overflowed, as in a recursion without end" : what;
  return new Problem(FATAL, `Python has stopped: ${why}`, "Start Python again, or reload the page.", error instanceof Error ? (error.stack ?? null) : null);
}

/**
 * Fetch a page's Python: its own and what it imports.
 * @param {URL} app @param {URL[]} modules @returns {Promise<[string, string][]>}  by file name
 */
function fetchScripts(app, modules) {
  const named = modules.map((url) => /** @type {const} */ ([url.pathname.split("/").pop() ?? "", url]));
  return Promise.all([...named, /** @type {const} */ (["app.py", app])].map(async ([name, url]) => [name, await fetchText(url)]));
}

/** Import JavaScript modules. @param {string[]} names @param {(name: string) => URL} place @returns {Promise<[string, any][]>} */
function importModules(names, place) {
  return Promise.all(names.map(async (name) => [name, await importModule(place(name))]));
}

/** Import a JavaScript module. @param {URL} url */
async function importModule(url) {
  try {
    return await import(url.href);
  } catch (error) {
    throw unavailable(url, String(error));
  }
}

/** @param {URL} url @param {string} reason */
function unavailable(url, reason) {
  return new Problem("RuntimeUnavailable", `${url.href} could not be loaded: ${reason}`, "Check the connection, then try again.");
}

/** Fetch a text. @param {URL} url */
async function fetchText(url) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(url);
  } catch (error) {
    throw unavailable(url, navigator.onLine ? String(error) : "you are offline");
  }
  if (!response.ok) throw unavailable(url, `the server answers ${response.status} ${response.statusText}`);
  return response.text();
}

function stopwatch() {
  let last = performance.now();
  /** @type {Record<string, number>} */
  const laps = {};
  return {
    laps,
    /** @param {string} name */
    lap(name) {
      const now = performance.now();
      laps[name] = (now - last) / 1000;
      last = now;
    },
  };
}
