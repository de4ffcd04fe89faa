/** The notebook that this browser keeps, in IndexedDB: one, which one tab at a time may write. */

const DATABASE = "tallow-console";
const TABLE = "notebooks";
const KEY = "notebook";
const LOCK = "tallow-console-notebook";

/** @returns {Promise<IDBDatabase>} */
function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
    request.onsuccess = () => {
      request.result.onversionchange = () => request.result.close();
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
  });
}

export class NotebookStore {
  #opened = open();

  constructor() {
    this.#opened.catch(() => {}); // reported by each use
  }

  /** Whether this tab may write: the first one that asks, until it is closed. @returns {Promise<boolean>} */
  claim() {
    if (!navigator.locks) return Promise.resolve(true);
    return new Promise((resolve) => {
      navigator.locks
        .request(LOCK, { ifAvailable: true }, (lock) => {
          resolve(lock !== null);
          return lock && new Promise(() => {}); // held until the tab is closed
        })
        .catch(() => resolve(true));
    });
  }

  /** The text of the notebook that was kept. @returns {Promise<string | undefined>} */
  async read() {
    const transaction = (await this.#opened).transaction(TABLE, "readonly");
    const text = await ended(transaction, transaction.objectStore(TABLE).get(KEY));
    return typeof text === "string" ? text : undefined;
  }

  /** @param {string} text */
  async write(text) {
    const transaction = (await this.#opened).transaction(TABLE, "readwrite");
    await ended(transaction, transaction.objectStore(TABLE).put(text, KEY));
  }
}

/** The result of a request, after its transaction. @template T @param {IDBTransaction} transaction @param {IDBRequest<T>} request @returns {Promise<T>} */
function ended(transaction, request) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}
