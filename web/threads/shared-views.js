/**
 * Make functions of the browser accept views of shared memory. These are all that Pyodide calls with views of its heap. Other
 * functions refuse them too (Blob, ImageData, crypto.subtle, streams, files), or share the memory instead of a copy
 * (postMessage): their callers have to copy.
 */

/** The replacements, by the object and the name of the method. @returns {[object | undefined, string, (original: Function) => Function][]} */
function replacements() {
  return [
    // Text of more than 16 bytes leaves the heap by it: strings, file names, messages.
    [globalThis.TextDecoder?.prototype, "decode", acceptingDecode],
    // Text that a page gives to Python's standard input enters the heap by it.
    [globalThis.TextEncoder?.prototype, "encodeInto", acceptingEncodeInto],
    // os.urandom fills the heap by it; with that come the seeds of hashes, random and NumPy.
    [globalThis.Crypto?.prototype, "getRandomValues", acceptingGetRandomValues],
    // Python's sockets send by it.
    [globalThis.WebSocket?.prototype, "send", acceptingSend],
  ];
}

/** Replace the functions. @returns {(() => void)[]}  functions that undo it */
export function acceptSharedViews() {
  return replacements().flatMap(([owner, name, accepting]) => (owner ? [replace(owner, name, accepting(/** @type {any} */ (owner)[name]))] : []));
}

/** @param {Function} decode */
function acceptingDecode(decode) {
  /** @this {TextDecoder} @param {any} input @param {unknown[]} rest */
  return function (input, ...rest) {
    return decode.call(this, unshared(input), ...rest);
  };
}

/** @param {Function} encodeInto */
function acceptingEncodeInto(encodeInto) {
  /** @this {TextEncoder} @param {string} text @param {any} view */
  return function (text, view) {
    const plain = unshared(view);
    const result = encodeInto.call(this, text, plain);
    if (plain !== view) view.set(plain.subarray(0, result.written));
    return result;
  };
}

/** @param {Function} getRandomValues */
function acceptingGetRandomValues(getRandomValues) {
  /** @this {Crypto} @param {any} view */
  return function (view) {
    const plain = unshared(view);
    getRandomValues.call(this, plain);
    if (plain !== view) view.set(plain);
    return view;
  };
}

/** @param {Function} send */
function acceptingSend(send) {
  /** @this {WebSocket} @param {any} data */
  return function (data) {
    return send.call(this, unshared(data));
  };
}

/** Copy a buffer or a view of shared memory; return other values as they are. @param {any} value */
export function unshared(value) {
  if (!isShared(ArrayBuffer.isView(value) ? value.buffer : value)) return value;
  const view = "slice" in value && "length" in value ? value : bytesOf(value);
  return view.slice(); // of a typed array: with memory of its own, that is plain
}

/** The bytes of a buffer or of a view; null for other values. @param {unknown} source @returns {Uint8Array<any> | null} */
export function bytesOf(source) {
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  return source instanceof ArrayBuffer || isShared(source) ? new Uint8Array(source) : null;
}

/** @param {unknown} buffer @returns {buffer is SharedArrayBuffer} */
export function isShared(buffer) {
  return typeof SharedArrayBuffer !== "undefined" && buffer instanceof SharedArrayBuffer;
}

/** Replace a property, perhaps an inherited one. @param {object} owner @param {string} name @param {unknown} value @returns {() => void}  undoes it */
export function replace(owner, name, value) {
  const original = Object.getOwnPropertyDescriptor(owner, name);
  Object.defineProperty(owner, name, { configurable: true, writable: true, ...original, value });
  return () => {
    if (original) Object.defineProperty(owner, name, original);
    else Reflect.deleteProperty(owner, name);
  };
}
