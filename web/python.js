/** Python in this worker: boots Pyodide with tallow, and calls the demo through bridge.py. */

import { Problem } from "./protocol.js";

/** @import { PyodideAPI } from "pyodide" */
/** @import { Start, Started } from "./protocol.js" */
/** @import { Sink } from "./source.js" */
/** @typedef {{ pyodide: string, lock: string, libraries: Record<string, string> }} SiteConfig  URLs, relative to the site */

/**
 * @param {Pick<Start, "site" | "app" | "modules" | "libraries" | "interrupts">} request  `site` is the URL of the folder with site.json
 * @param {(step: string) => void} onStep
 * @returns {Promise<Python>}
 * @throws {Problem} what could not be fetched
 */
export async function boot({ site, app, modules, libraries, interrupts }, onStep) {
  const clock = stopwatch();
  onStep("Fetching Python");
  const bridge = new URL("bridge.py", import.meta.url);
  const scripts = new Map([...modules.map((url) => new URL(url)), bridge].map((url) => [url.pathname.split("/").pop(), url]));
  scripts.set("app.py", new URL(app));
  const [config, ...sources] = await Promise.all([
    fetched(new URL("site.json", site)).then((text) => /** @type {SiteConfig} */ (JSON.parse(text))),
    ...[...scripts.values()].map(fetched),
  ]);
  const indexURL = new URL(config.pyodide, site).href;
  const lockFileURL = new URL(config.lock, site).href;
  let pyodide;
  try {
    const { loadPyodide } = await import(`${indexURL}pyodide.mjs`);
    clock.lap("fetch");
    onStep("Starting Python");
    // The packages download while Python starts.
    pyodide = /** @type {PyodideAPI} */ (
      await loadPyodide({ indexURL, lockFileURL, packageBaseUrl: new URL(".", lockFileURL).href, packages: ["tallow"] })
    );
  } catch (error) {
    throw new Problem(
      "RuntimeUnavailable",
      `Python could not be loaded from ${indexURL}: ${error instanceof Error ? error.message : error}`,
      navigator.onLine ? "Check that the address can be reached, then try again." : "You are offline; connect, then try again.",
    );
  }
  for (const name of libraries) pyodide.registerJsModule(name, await imported(new URL(config.libraries[name], site)));
  clock.lap("python");
  onStep("Importing tallow");
  [...scripts.keys()].forEach((name, i) => pyodide.FS.writeFile(`/home/pyodide/${name}`, sources[i]));
  if (interrupts) pyodide.setInterruptBuffer(interrupts);
  try {
    const bridge = pyodide.pyimport("bridge");
    const demo = pyodide.pyimport("app").Demo();
    clock.lap("import");
    return new Python(pyodide, interrupts, bridge, demo, clock.laps);
  } catch (error) {
    // The last line of a traceback says what happened.
    const details = String(error);
    throw new Problem("ImportError", `The demo's Python does not run: ${details.trim().split("\n").pop()}`, null, details);
  }
}

export class Python {
  #interrupts;
  #pyodide;
  #bridge;
  #demo;
  /** @type {Started} */
  started;

  /** @param {PyodideAPI} pyodide @param {Uint8Array | null} interrupts @param {any} bridge @param {any} demo @param {Record<string, number>} seconds */
  constructor(pyodide, interrupts, bridge, demo, seconds) {
    this.#interrupts = interrupts;
    this.#pyodide = pyodide;
    this.#bridge = bridge;
    this.#demo = demo;
    this.started = { ...JSON.parse(bridge.versions()), seconds };
  }

  /** The files of one `load`. */
  newFiles() {
    this.#forgetInterrupt();
    const files = this.call(() => this.#bridge.Files(this.#demo));
    return {
      /** @param {string} name @returns {Sink} */
      open: (name) => ({
        begin: (head, size) => this.call(() => files.begin(name, this.#bytes(head), size ?? undefined)),
        write: (chunk) =>
          this.call(() => {
            // Memory moves when it grows, so its view is taken anew for every chunk.
            const proxy = files.room(chunk.length);
            const room = proxy.getBuffer("u8");
            room.data.set(chunk);
            room.release();
            proxy.destroy();
          }),
        end: () => this.call(() => files.end()),
        digest: () =>
          this.call(() => {
            const proxy = files.current();
            const bytes = proxy.getBuffer("u8");
            const hash = crypto.subtle.digest("SHA-256", bytes.data); // copies the bytes before it returns
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

  /** @param {Record<string, unknown>} options */
  generate(options) {
    this.#forgetInterrupt();
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
   * @param {((value: unknown) => void) | null} emit  is sent what Python emits, converted as results are
   * @returns {Promise<unknown>}
   */
  async invoke(method, keywords, emit) {
    const send = emit && ((/** @type {unknown} */ value) => emit(this.#plain(value)));
    const given = this.#pyodide.toPy(keywords);
    this.#forgetInterrupt();
    try {
      const result = this.#bridge.call(this.#demo, method, given, send);
      return this.#plain(await result);
    } catch (error) {
      throw this.#problem(error);
    } finally {
      given.destroy();
    }
  }

  /** One that came too late for what it was to end is not meant for what begins now. */
  #forgetInterrupt() {
    this.#interrupts?.fill(0);
  }

  /** What a message can carry. @param {any} value */
  #plain(value) {
    if (!(value instanceof this.#pyodide.ffi.PyProxy)) return value;
    const plain = value.toJs({ dict_converter: Object.fromEntries, create_pyproxies: false });
    value.destroy();
    return plain;
  }

  /**
   * Call Python; its exceptions become Problems.
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
    if (!(error instanceof this.#pyodide.ffi.PythonError)) return error;
    return Problem.from(JSON.parse(this.#bridge.describe_last_error()));
  }

  /** @param {Uint8Array} data */
  #bytes(data) {
    return this.#pyodide.toPy(data);
  }
}

/** @param {URL} url */
async function imported(url) {
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

/** @param {URL} url */
async function fetched(url) {
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
