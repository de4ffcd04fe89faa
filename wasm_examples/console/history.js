/** The code that was entered, which this browser keeps. */

import { keepSetting, setting } from "./settings.js";

const NAME = "history";
const MAX_ENTRIES = 200;
const MAX_CHARACTERS = 200_000;

export class History {
  #entries = stored();

  get length() {
    return this.#entries.length;
  }

  /** @param {number} index  from the end if negative @returns {string | undefined} */
  at(index) {
    return this.#entries.at(index);
  }

  /** @param {string} code */
  add(code) {
    if (this.#entries.at(-1) !== code) this.#entries.push(code);
    this.#entries = bounded(this.#entries);
    const kept = stored(); // with what other tabs have added
    if (kept.at(-1) !== code) kept.push(code);
    keep(bounded(kept));
  }

  clear() {
    this.#entries = [];
    keep([]);
  }
}

/** The last entries. @param {string[]} entries */
function bounded(entries) {
  let characters = 0;
  const last = entries.slice(-MAX_ENTRIES);
  const first = last.findLastIndex((entry) => (characters += entry.length) > MAX_CHARACTERS);
  return last.slice(first + 1);
}

/** @returns {string[]} */
function stored() {
  try {
    const entries = JSON.parse(setting(NAME) ?? "[]");
    return Array.isArray(entries) ? bounded(entries.filter((entry) => typeof entry === "string")) : [];
  } catch {
    return []; // something else wrote there
  }
}

/** @param {string[]} entries */
function keep(entries) {
  keepSetting(NAME, JSON.stringify(entries));
}
