/** The conversations that this browser keeps, in IndexedDB. Without it, as in some private windows, they last as long as the page. */

/** @import { Saved } from "./conversation.js" */

const DATABASE = "tallow-chat";
const CONVERSATIONS = "conversations";

/** @returns {Promise<IDBDatabase>} */
function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(CONVERSATIONS, { keyPath: "id" });
    request.onsuccess = () => {
      request.result.onversionchange = () => request.result.close();
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("another tab has an older version open"));
  });
}

export class Store {
  #opened = open();
  /** @type {(reason: unknown) => void} */
  #onFailure;

  /** @param {(reason: unknown) => void} onFailure  called if conversations cannot be kept */
  constructor(onFailure) {
    this.#onFailure = onFailure;
    this.#opened.catch(() => {}); // reported by each use
  }

  /** All conversations, the last used first. @returns {Promise<Saved[]>} */
  async all() {
    const found = /** @type {Saved[] | undefined} */ (await this.#run("readonly", (store) => store.getAll()));
    return (found ?? []).filter(isConversation).sort((a, b) => b.updated - a.updated);
  }

  /** Keep a conversation. Messages that another tab has added to it stay. @param {Saved} saved */
  async put(saved) {
    await this.#run("readwrite", (store) => {
      const request = store.get(saved.id);
      request.onsuccess = () => store.put({ ...saved, messages: { ...request.result?.messages, ...saved.messages } });
      return request;
    });
  }

  /** @param {string} id */
  async delete(id) {
    await this.#run("readwrite", (store) => store.delete(id));
  }

  /**
   * Run a request, and wait until its transaction ends.
   * @template T
   * @param {IDBTransactionMode} mode
   * @param {(store: IDBObjectStore) => IDBRequest<T>} start
   * @returns {Promise<T | undefined>}  undefined if it failed
   */
  async #run(mode, start) {
    try {
      const transaction = (await this.#opened).transaction(CONVERSATIONS, mode);
      const request = start(transaction.objectStore(CONVERSATIONS));
      await new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onerror = transaction.onabort = () => reject(transaction.error);
      });
      return request.result;
    } catch (error) {
      this.#onFailure(error);
      return undefined;
    }
  }
}

/** Whether a stored value has the form of a conversation: another version of the page may have written it. @param {any} value */
function isConversation(value) {
  return typeof value?.id === "string" && typeof value.title === "string" && typeof value.messages === "object" && value.messages !== null;
}
