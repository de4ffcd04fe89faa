/** The line of a page that shows how many downloads the browser stores, with a button that deletes them. */

import { clear, storedUrls } from "./cache.js";

export class StoredDownloads {
  #box;
  #text;
  #onChange;

  /**
   * @param {HTMLElement} box  contains a <span> and a <button>
   * @param {(urls: Set<string>) => void} [onChange]  called with the stored URLs each time they are looked up
   */
  constructor(box, onChange = () => {}) {
    this.#box = box;
    this.#text = /** @type {HTMLElement} */ (box.querySelector("span"));
    this.#onChange = onChange;
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
    this.#onChange(urls);
  }
}
