/** Samples of a model's text, taken after more and more steps of training. */

const FIRST = 10; // steps; then twice as many each time

export class TextSamples {
  #list;
  /** @type {Set<number>} */
  #steps = new Set();
  #next = FIRST;

  /** @param {HTMLElement} list */
  constructor(list) {
    this.#list = list;
  }

  clear() {
    this.#list.replaceChildren();
    this.#steps.clear();
    this.#next = FIRST;
  }

  /** Whether a sample after so many steps is shown. @param {number} step */
  has(step) {
    return this.#steps.has(step);
  }

  /** Whether it is time for a sample. @param {number} step */
  isDue(step) {
    return step >= this.#next;
  }

  /** @param {number} step @param {string} text */
  add(step, text) {
    while (this.#next <= step) this.#next *= 2;
    this.#steps.add(step);
    const item = document.createElement("li");
    const when = document.createElement("b");
    when.textContent = step ? `After ${step.toLocaleString("en")} steps` : "Before training";
    const sample = document.createElement("p");
    sample.dir = "auto";
    sample.textContent = text || "(nothing)";
    item.append(when, sample);
    this.#list.prepend(item); // the newest is in view
  }
}
