/**
 * Make functions of the browser accept views of shared memory, which they refuse or must be given a copy of. Each is replaced only
 * where it refuses them: Node's accept more than a browser's.
 */

/**
 * @typedef {object} Refusal
 * @property {any} owner
 * @property {string} name
 * @property {(view: Uint8Array<any>) => unknown} attempt  throws if the function refuses the view
 * @property {(original: Function) => Function} accepting  the replacement
 */

/** @returns {Refusal[]} */
function refusals() {
  return [
    {
      // Python's strings, file names and messages leave the heap by it.
      owner: TextDecoder.prototype,
      name: "decode",
      attempt: (view) => new TextDecoder().decode(view),
      accepting: (decode) =>
        function (/** @type {unknown} */ input, /** @type {unknown[]} */ ...options) {
          return decode.call(this, unshared(input), ...options);
        },
    },
    {
      // os.urandom, and with it the seeds of random, NumPy and hashes, fill the heap by it.
      owner: Crypto.prototype,
      name: "getRandomValues",
      attempt: (view) => crypto.getRandomValues(view),
      accepting: (getRandomValues) =>
        function (/** @type {ArrayBufferView} */ view) {
          const copy = unshared(view);
          getRandomValues.call(this, copy);
          if (copy !== view) bytesOf(view)?.set(copy);
          return view;
        },
    },
  ];
}

/** Replace what refuses shared views. @returns {(() => void)[]}  functions that undo it */
export function acceptSharedViews() {
  const view = new Uint8Array(new SharedArrayBuffer(1));
  const needed = refusals().filter(({ attempt }) => {
    try {
      attempt(view);
      return false;
    } catch {
      return true;
    }
  });
  return needed.map(({ owner, name, accepting }) => replace(owner, name, accepting(owner[name])));
}

/** Replace a property. @param {any} owner @param {string} name @param {unknown} value @returns {() => void}  undoes it */
export function replace(owner, name, value) {
  const original = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(owner, name));
  Object.defineProperty(owner, name, { ...original, value });
  return () => Object.defineProperty(owner, name, original);
}

/** The bytes of a buffer or of a view; null for other values. @param {any} source @returns {Uint8Array<any> | null} */
export function bytesOf(source) {
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  return source instanceof ArrayBuffer || isShared(source) ? new Uint8Array(source) : null;
}

/** Copy the bytes of shared memory; return other values as they are. @param {any} source */
function unshared(source) {
  return isShared(source?.buffer ?? source) ? /** @type {Uint8Array} */ (bytesOf(source)).slice() : source;
}

/** @param {unknown} buffer */
export function isShared(buffer) {
  return buffer instanceof SharedArrayBuffer;
}
