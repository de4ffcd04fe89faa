/**
 * Share the memory of a stock Pyodide with other workers.
 *
 *     import { shareMemory } from "./shared-memory.js";
 *     const sharing = shareMemory(); // before Pyodide is imported
 *     const { loadPyodide } = await import(`${indexURL}pyodide.mjs`);
 *     const pyodide = await Promise.race([loadPyodide({ indexURL }), sharing.failure]);
 *     worker.postMessage(sharing.memory); // a WebAssembly.Memory
 *
 * From then on, every WebAssembly module that loads in this thread has or imports a shared memory (memory-type.js). This needs
 * a page that is cross-origin isolated, or Node.
 */

import { MAX_PAGES, shareModule, sharingStream } from "./memory-type.js";
import { acceptSharedViews, bytesOf, replace } from "./shared-views.js";

/** @typedef {{ source: any, isChanged: boolean }} Loading  a module for the engine */

// Maxima to try, in pages: a device with little address space cannot reserve 4 GB.
const MAXIMA = [MAX_PAGES, MAX_PAGES / 2, MAX_PAGES / 4];

/** Memory cannot be shared here, or a module cannot be loaded with a shared memory. */
export class SharingError extends Error {
  name = "SharingError";
}

/**
 * Make the memories of the modules that load from now on shared ones.
 * @param {Record<string, string>} [copies]  the URLs of modules, with those of copies whose memory is shared already. Browsers
 *   keep the machine code of modules that come unchanged from a URL.
 * @returns {Sharing}
 * @throws {SharingError} this thread cannot have shared memory; nothing has changed
 */
export function shareMemory(copies = {}) {
  const maximum = largestMaximum();
  return new Sharing(maximum, maximum === MAX_PAGES ? copies : {}); // the copies have the largest maximum
}

/** Made by `shareMemory`. */
export class Sharing {
  #maximum;
  #copies;
  /** @type {WeakSet<WebAssembly.Module>} */
  #changed = new WeakSet();
  /** @type {WebAssembly.Memory | null} */
  #memory = null;
  /** @type {(reason: SharingError) => void} */
  #fail = () => {};
  #restore;

  /**
   * Rejected if a module refuses a shared memory before there is one; never fulfilled. Pyodide only logs that its main module
   * cannot be loaded, and waits forever.
   * @type {Promise<never>}
   */
  failure;

  /** @param {number} maximum @param {Record<string, string>} copies */
  constructor(maximum, copies) {
    this.#maximum = maximum;
    this.#copies = new Map(Object.entries(copies));
    this.failure = new Promise((_, reject) => (this.#fail = reject));
    this.failure.catch(() => {}); // no unhandled rejection where nobody waits for it
    this.#restore = [...acceptSharedViews(), ...this.#loadShared()];
  }

  /** The memory of the first module that has a shared one; null before that. */
  get memory() {
    return this.#memory;
  }

  /**
   * Return a module with a shared memory; the same bytes if it has none.
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  share(bytes) {
    return this.#shareSource(bytes).source;
  }

  /** Add to the copies. @param {Record<string, string>} copies  as for `shareMemory` */
  addCopies(copies) {
    if (this.#maximum !== MAX_PAGES) return;
    for (const [url, copy] of Object.entries(copies)) this.#copies.set(url, copy);
  }

  /** Load modules unchanged again. Memory that is shared stays so; modules that import it can then not be loaded. */
  undo() {
    while (this.#restore.length) this.#restore.pop()?.();
  }

  /** Replace the functions that load modules. @returns {(() => void)[]}  functions that undo it */
  #loadShared() {
    const { Memory, Module, Instance, compile, instantiate, compileStreaming, instantiateStreaming } = WebAssembly;
    const share = (/** @type {unknown} */ source) => this.#shareSource(source);
    const shareResponse = (/** @type {any} */ source) => this.#shareResponse(source);
    /** @type {Record<string, unknown>} */
    const replacements = {
      Memory: new Proxy(Memory, {
        construct: (target, [type, ...rest], proxy) => Reflect.construct(target, [this.#shareType(type), ...rest], proxy),
      }),
      Module: this.#constructing(Module, share),
      Instance: this.#constructing(Instance, (module) => ({ source: module, isChanged: this.#changed.has(module) })),
      compile: this.#loading(compile, share),
      instantiate: this.#loading(instantiate, share),
      compileStreaming: this.#loading(compileStreaming, shareResponse),
      instantiateStreaming: this.#loading(instantiateStreaming, shareResponse),
    };
    const restore = Object.entries(replacements).map(([name, value]) => replace(WebAssembly, name, value));
    return [...restore, this.#fetchCopies()];
  }

  /** Replace `fetch`, which Pyodide calls with a URL. @returns {() => void}  undoes it */
  #fetchCopies() {
    const { fetch } = globalThis;
    return replace(globalThis, "fetch", (/** @type {any} */ resource, /** @type {RequestInit} */ options) =>
      fetch(this.#copies.get(String(resource)) ?? resource, options),
    );
  }

  /** @param {Function} original @param {(source: any) => Loading} share */
  #constructing(original, share) {
    return new Proxy(original, {
      construct: (target, [source, ...rest], proxy) => {
        const loading = share(source);
        try {
          return this.#loaded(loading, Reflect.construct(target, [loading.source, ...rest], proxy), rest[0]);
        } catch (error) {
          throw this.#failed(loading, error);
        }
      },
    });
  }

  /** @param {Function} original @param {(source: any) => Loading | Promise<Loading>} share */
  #loading(original, share) {
    return async (/** @type {unknown} */ source, /** @type {unknown[]} */ ...rest) => {
      const loading = await share(source);
      try {
        return this.#loaded(loading, await original.call(WebAssembly, loading.source, ...rest), rest[0]);
      } catch (error) {
        throw this.#failed(loading, error);
      }
    };
  }

  /** @param {unknown} source  bytes, a module, or a value that the engine refuses @returns {Loading} */
  #shareSource(source) {
    if (source instanceof WebAssembly.Module) return { source, isChanged: this.#changed.has(source) };
    const bytes = bytesOf(source);
    if (!bytes) return { source, isChanged: false };
    const { bytes: shared, changed, refusal } = shareModule(bytes, this.#maximum);
    this.#note(refusal);
    return { source: shared, isChanged: changed };
  }

  /** @param {Response | Promise<Response>} source @returns {Promise<Loading>} */
  async #shareResponse(source) {
    const response = await source;
    /** @type {Loading} */
    const loading = { source: response, isChanged: [...this.#copies.values()].includes(response.url) };
    if (loading.isChanged) return loading;
    if (!(response instanceof Response) || !response.ok || !response.body || response.bodyUsed) return loading; // the engine says more
    const stream = sharingStream(this.#maximum, ({ changed, refusal }) => {
      loading.isChanged = changed;
      this.#note(refusal);
    });
    const { status, statusText, headers } = response;
    loading.source = new Response(response.body.pipeThrough(stream), { status, statusText, headers });
    return loading;
  }

  /** The type of a memory that JavaScript makes: Pyodide's before 314. @param {any} type */
  #shareType(type) {
    const isPlain = type instanceof Object && !type.shared && (type.address ?? "i32") === "i32";
    return isPlain ? { ...type, maximum: Math.min(type.maximum ?? MAX_PAGES, this.#maximum), shared: true } : type;
  }

  /**
   * Note what a changed module became.
   * @param {Loading} loading @param {any} result  as WebAssembly's functions return it @param {any} imports
   */
  #loaded({ source, isChanged }, result, imports) {
    if (!isChanged) return result;
    const module = result.module ?? (result instanceof WebAssembly.Module ? result : source);
    this.#changed.add(module);
    const instance = result.instance ?? result;
    if (instance instanceof WebAssembly.Instance) this.#memory ??= memoryOf(module, instance, imports);
    return result;
  }

  /** @param {Loading} loading @param {unknown} error */
  #failed({ isChanged }, error) {
    if (isChanged) this.#note(`a module cannot be loaded with a shared memory: ${error}`);
    return error;
  }

  /** Once there is a shared memory, what fails is the affair of a side module. @param {string | null} refusal */
  #note(refusal) {
    if (refusal && !this.#memory) this.#fail(new SharingError(refusal));
  }
}

/**
 * The memory of an instance: imported or exported.
 * @param {WebAssembly.Module} module @param {WebAssembly.Instance} instance @param {any} imports
 * @returns {WebAssembly.Memory | null}
 */
function memoryOf(module, instance, imports) {
  const isMemory = (/** @type {{ kind: string }} */ { kind }) => kind === "memory";
  const imported = WebAssembly.Module.imports(module).find(isMemory);
  if (imported) return imports[imported.module][imported.name];
  const exported = WebAssembly.Module.exports(module).find(isMemory);
  return exported ? /** @type {WebAssembly.Memory} */ (instance.exports[exported.name]) : null;
}

/** The largest maximum of a shared memory, in pages, that this device can reserve. @returns {number} */
function largestMaximum() {
  // Without isolation, some browsers make shared memory and do not send it to a worker.
  if (globalThis.crossOriginIsolated === false) throw new SharingError("the page is not cross-origin isolated");
  if (typeof SharedArrayBuffer === "undefined") throw new SharingError("this browser has no shared memory");
  for (const maximum of MAXIMA) {
    try {
      new WebAssembly.Memory({ initial: 1, maximum, shared: true });
      return maximum;
    } catch {
      // too large for this device
    }
  }
  throw new SharingError("this device cannot reserve shared memory");
}
