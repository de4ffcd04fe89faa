/** The line of a page that shows how many downloads the browser stores, with a button that deletes them. */

import { clear, storedUrls } from "../worker/cache.js";

export class StoredDownloads {
  #box;
  #text;
  /** Called with the stored URLs each time they are looked up. @type {((urls: Set<string>) => void)[]} */
  listeners;

  /**
   * @param {HTMLElement} box  contains a <span> and a <button>
   * @param {((urls: Set<string>) => void)[]} listeners
   */
  constructor(box, ...listeners) {
    this.#box = box;
    this.#text = /** @type {HTMLElement} */ (box.querySelector("span"));
    this.listeners = listeners;
    /** @type {HTMLButtonElement} */ (box.querySelector("button")).onclick = async () => {
      await clear();
      await this.refresh();
    };
  }

  /** Look up the stored downloads and show how many there are. */
  async refresh() {
    const urls = await storedUrls();
    this.#box.hidden = urls.size === 0;
    this.#text.textContent = `${urls.size} ${urls.size === 1 ? "download is" : "downloads are"} kept in this browser.`;
    for (const listener of this.listeners) listener(urls);
  }
}
