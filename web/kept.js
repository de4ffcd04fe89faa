/** The line of a page that says how many downloads the browser keeps, and deletes them. */

import { clear, kept } from "./cache.js";

export class Kept {
  #box;
  #text;
  #onChange;

  /**
   * @param {HTMLElement} box  holds a <span> and a <button>
   * @param {(urls: Set<string>) => void} [onChange]  told what is kept, whenever it is looked up
   */
  constructor(box, onChange = () => {}) {
    this.#box = box;
    this.#text = /** @type {HTMLElement} */ (box.querySelector("span"));
    this.#onChange = onChange;
    /** @type {HTMLButtonElement} */ (box.querySelector("button")).onclick = async () => {
      await clear();
      await this.show();
    };
  }

  /** Look again. */
  async show() {
    const urls = await kept();
    this.#box.hidden = urls.size === 0;
    this.#text.textContent = `${urls.size} ${urls.size === 1 ? "download is" : "downloads are"} kept in this browser.`;
    this.#onChange(urls);
  }
}
