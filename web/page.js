/** What the scripts of the pages share: finding elements, saying what went wrong, progress and figures. */

import { Problem } from "./protocol.js";

/** @import { Progress } from "./protocol.js" */

/** @template {HTMLElement} T @param {string} id @param {{ new (): T }} type @returns {T} */
export function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`#${id} is missing`);
  return found;
}

// How long a remark is shown: long enough to be read twice.
const REMARK_MS = 5000;

/** The line that says what goes on. */
export class Status {
  #line;
  #lasting;
  #timer = 0;

  /** @param {HTMLElement} line */
  constructor(line) {
    this.#line = line;
    this.#lasting = line.textContent ?? "";
  }

  /** Say what goes on, until something else does. @param {string} text */
  say(text) {
    clearTimeout(this.#timer);
    this.#lasting = text;
    this.#show(text);
  }

  /** Say what has just been done; after a while the line says again what goes on. @param {string} text */
  remark(text) {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#show(this.#lasting), REMARK_MS);
    this.#show(text);
  }

  /** @param {string} text */
  #show(text) {
    if (this.#line.textContent !== text) this.#line.textContent = text; // else it would be read out again
  }
}

/** The place where a page says what went wrong. */
export class ProblemBox {
  #box;

  /** @param {HTMLElement} box */
  constructor(box) {
    this.#box = box;
  }

  hide() {
    this.#box.hidden = true;
    this.#box.replaceChildren();
  }

  /** @param {unknown} error @param {{ label: string, action: () => void }} [remedy] */
  show(error, remedy) {
    console.error(error, error instanceof Problem ? (error.details ?? "") : "");
    const problem = document.createElement("p");
    problem.textContent = sentence(error instanceof Error ? error.message : String(error));
    this.#box.replaceChildren(problem);
    if (error instanceof Problem && error.mend) {
      const mend = document.createElement("p");
      mend.className = "mend";
      mend.textContent = sentence(error.mend);
      this.#box.append(mend);
    }
    if (remedy) {
      const button = document.createElement("button");
      button.textContent = remedy.label;
      button.onclick = remedy.action;
      this.#box.append(button);
    }
    this.#box.hidden = false;
    this.#box.scrollIntoView({ block: "nearest" }); // on a phone the cause may be a screen away
  }
}

/** Python's messages are written for the middle of a line; some begin with a name or an address, which stays as it is. @param {string} text */
function sentence(text) {
  const begun = text.replace(/^[a-z]+(?=:? )/, (word) => word[0].toUpperCase() + word.slice(1));
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/**
 * The number in a form's field, from its `min` to its `max`.
 * @param {HTMLInputElement} input
 * @param {{ whole?: boolean, above?: number }} [kind]  `above` is what it must be larger than, where `min` would let that in
 * @throws {Problem} it is none, by the name that the field has on the page
 */
export function readNumber(input, { whole = false, above = -Infinity } = {}) {
  const value = input.valueAsNumber;
  const [least, most] = [bound(input.min, -Infinity), bound(input.max, Infinity)];
  const isNumber = !Number.isNaN(value) && (!whole || Number.isSafeInteger(value));
  if (isNumber && least <= value && value <= most && above < value) return value;
  input.focus();
  const name = input.labels?.[0]?.textContent?.trim() ?? "This";
  const kind = `${whole ? "whole " : ""}number`;
  if (!isNumber) throw new Problem("BadNumber", `${name} is not a ${kind}.`, `Write one, such as ${input.defaultValue}.`);
  const from = above > -Infinity ? `above ${above}` : `of ${least} or more`;
  const to = most < Infinity ? ` and of ${most} at most` : "";
  throw new Problem("BadNumber", `${name} cannot be ${value}.`, `Write a ${kind} ${from}${to}, such as ${input.defaultValue}.`);
}

/** @param {string} attribute @param {number} otherwise */
function bound(attribute, otherwise) {
  return attribute === "" ? otherwise : Number(attribute);
}

/** A bar with a line of text below it. */
export class ProgressBar {
  #box;
  #bar;
  #text;

  /** @param {HTMLElement} box  holds a <progress> and a <p> */
  constructor(box) {
    this.#box = box;
    this.#bar = /** @type {HTMLProgressElement} */ (box.querySelector("progress"));
    this.#text = /** @type {HTMLParagraphElement} */ (box.querySelector("p"));
  }

  hide() {
    this.#box.hidden = true;
  }

  /** @param {Progress} progress */
  show({ stage, name, loaded, total }) {
    const what = {
      python: name,
      download: `Downloading the ${name}`,
      cache: `Reading the ${name} from this browser's copy`,
      file: `Reading the ${name}`,
      model: "Building the model",
    }[stage];
    const amount = total ? `${megabytes(loaded, "")} of ${megabytes(total)}` : loaded ? megabytes(loaded) : "";
    this.tell(`${what} ${amount}`.trim(), total ? loaded / total : null);
  }

  /** @param {string} text @param {number | null} share  from 0 to 1; null where it is not known */
  tell(text, share) {
    this.#box.hidden = false;
    if (share === null) this.#bar.removeAttribute("value");
    else this.#bar.value = share;
    this.#text.textContent = text;
  }
}

/** Named values in a <dl>, those of `order` first. */
export class Figures {
  #list;
  #order;
  /** @type {Map<string, HTMLElement>} */
  #values = new Map();

  /** @param {HTMLElement} list @param {string[]} order */
  constructor(list, order) {
    this.#list = list;
    this.#order = order;
  }

  /** @param {string} name */
  has(name) {
    return this.#values.has(name);
  }

  /** @param {string} name @param {string} value */
  show(name, value) {
    const place = this.#values.get(name) ?? this.#add(name);
    place.textContent = value;
  }

  /** @param {string} name */
  #add(name) {
    const group = document.createElement("div");
    const dt = document.createElement("dt");
    const dd = document.createElement("dd");
    dt.textContent = name;
    group.append(dt, dd);
    this.#values.set(name, dd);
    const names = [...this.#order.filter((first) => this.#values.has(first)), ...this.#values.keys()];
    const next = [...new Set(names)].indexOf(name);
    this.#list.insertBefore(group, this.#list.children[next] ?? null);
    return dd;
  }
}

/** Fails when the signal says so, for what cannot be stopped itself. @param {AbortSignal} signal @returns {Promise<never>} */
export function aborted(signal) {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Have the browser save a file. @param {string} name @param {BlobPart} content */
export function save(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content]));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** @param {number} bytes */
export function megabytes(bytes, unit = " MB") {
  return (bytes / 1e6).toFixed(1) + unit;
}

/**
 * Files dropped anywhere on the page, with a curtain that says what may be.
 * @param {HTMLElement} curtain
 * @param {(files: File[], transfer: DataTransfer) => void} take  what is in folders, `transfer` has while the event lasts
 */
export function onDrop(curtain, take) {
  addEventListener("dragover", (event) => {
    event.preventDefault();
    curtain.hidden = !event.dataTransfer?.types.includes("Files");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) curtain.hidden = true; // it left the window, not an element in it
  });
  addEventListener("drop", (event) => {
    event.preventDefault();
    curtain.hidden = true;
    const transfer = event.dataTransfer;
    if (transfer?.files.length) take([...transfer.files], transfer);
  });
}
