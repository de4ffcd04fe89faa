/** The list of what was found, and how many there are of each kind. */

import { colourOf, shown } from "./marks.js";

/** @import { Found, Look } from "./marks.js" */

export class FoundList {
  #counts;
  #list;
  #onLight;
  /** @type {HTMLButtonElement[]} */
  #buttons = [];

  /** @param {{ counts: HTMLElement, things: HTMLElement }} elements @param {(index: number | null) => void} onLight  one thing is to be shown brightly, or none */
  constructor({ counts, things }, onLight) {
    this.#counts = counts;
    this.#list = things;
    this.#onLight = onLight;
  }

  /** Show what was found. Entries stay elements, so that the focus stays where it is. @param {Found} found @param {Look} look */
  show(found, look) {
    const things = shown(found, look);
    while (this.#buttons.length < things.length) this.#add();
    while (this.#buttons.length > things.length) this.#buttons.pop()?.parentElement?.remove();
    things.forEach(({ label, score, kind, index }, i) => {
      const button = this.#buttons[i];
      button.dataset.index = String(index);
      button.style.setProperty("--kind", colourOf(kind));
      const [name, number] = button.querySelectorAll("span");
      if (name.textContent !== label) name.textContent = label;
      number.textContent = score.toFixed(2);
    });
    const text = countsOf(things.map(({ label }) => label));
    if (this.#counts.textContent !== text) this.#counts.textContent = text;
  }

  /** Show nothing, as nothing has been found yet. */
  clear() {
    this.#list.replaceChildren();
    this.#buttons = [];
    this.#counts.textContent = "";
  }

  /** @param {number | null} index */
  light(index) {
    for (const button of this.#buttons) button.classList.toggle("lit", Number(button.dataset.index) === index);
  }

  #add() {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.testid = "thing";
    button.append(document.createElement("span"), document.createElement("span"));
    const light = () => this.#onLight(Number(button.dataset.index));
    const dim = () => this.#onLight(null);
    button.onpointerenter = button.onfocus = button.onclick = light;
    button.onpointerleave = button.onblur = dim;
    item.append(button);
    this.#list.append(item);
    this.#buttons.push(button);
  }
}

/** As in "4 things: 2 × dog, cat, fish". @param {string[]} labels */
function countsOf(labels) {
  if (!labels.length) return "Nothing that it knows.";
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const label of [...labels].sort()) counts.set(label, (counts.get(label) ?? 0) + 1);
  const kinds = [...counts].sort(([, a], [, b]) => b - a).map(([label, count]) => (count > 1 ? `${count} × ${label}` : label));
  return `${labels.length} ${labels.length > 1 ? "things" : "thing"}: ${kinds.join(", ")}.`;
}
