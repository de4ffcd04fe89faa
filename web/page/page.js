/** Widgets that the pages share: status line, errors, progress bar, figures, number fields, dropped files. */

import { Problem } from "../worker/protocol.js";

/** @import { Progress, Started } from "../worker/protocol.js" */

/**
 * The elements that every page has.
 * @typedef {{ status: Status, problems: ProblemBox, progress: ProgressBar }} PageView
 * @typedef {{ label: string, action: () => void }} Remedy  a button below an error message
 */

/** The element with this id. @template {HTMLElement} T @param {string} id @param {{ new (): T }} type @returns {T} */
export function element(id, type) {
  const match = document.getElementById(id);
  if (!(match instanceof type)) throw new Error(`#${id} is missing`);
  return match;
}

/** @returns {PageView} */
export function pageView() {
  return {
    status: new Status(element("status", HTMLElement)),
    problems: new ProblemBox(element("error", HTMLElement)),
    progress: new ProgressBar(element("progress", HTMLElement)),
  };
}

/** Report that Python did not start. @param {PageView} view @param {unknown} error */
export function showStartFailure({ status, problems, progress }, error) {
  progress.hide();
  status.say("Python is not running.");
  problems.show(error, { label: "Try again", action: () => location.reload() });
}

/**
 * Report that Python has stopped. The view then says nothing else until it is released.
 * @param {PageView} view @param {unknown} problem @param {() => void} restart
 */
export function showStopped({ status, problems, progress }, problem, restart) {
  progress.hide();
  status.hold("Python has stopped.");
  problems.hold(problem, { label: "Restart Python", action: restart });
}

/** Let the view say again what happens. @param {PageView} view */
export function release({ status, problems }) {
  status.release();
  problems.release();
}

// Code that has not ended so long after Stop may hang.
const PATIENCE_MS = 2000;

/**
 * Wait for an answer of Python, which computes or hangs: no one can tell which. After a while, offer to restart it.
 * @param {{ ping(): Promise<void> }} runtime @param {ProblemBox} problems @param {() => void} restart
 */
export async function expectAnswer(runtime, problems, restart) {
  let isOffered = false;
  const offer = () => {
    isOffered = true;
    problems.show(new Problem("NoAnswer", "Python does not answer.", "It may still compute: wait, or restart Python."), { label: "Restart Python", action: restart });
  };
  const timer = setTimeout(offer, PATIENCE_MS);
  await runtime.ping().catch(() => {}); // it has stopped, as the page says
  clearTimeout(timer);
  if (isOffered) problems.hide();
}

// How long a remark is shown: long enough to be read twice.
const REMARK_MS = 5000;

/** The line that shows the state of the page. */
export class Status {
  #line;
  #state;
  #timer = 0;
  #isHeld = false;

  /** @param {HTMLElement} line */
  constructor(line) {
    this.#line = line;
    this.#state = line.textContent ?? "";
  }

  /** Show the state until the next one. @param {string} text */
  say(text) {
    if (this.#isHeld) return;
    clearTimeout(this.#timer);
    this.#state = text;
    this.#show(text);
  }

  /** Show a state that none replaces until it is released. @param {string} text */
  hold(text) {
    this.release();
    this.say(text);
    this.#isHeld = true;
  }

  release() {
    this.#isHeld = false;
  }

  /** Show a remark for a few seconds, then the state again. @param {string} text */
  remark(text) {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#show(this.#state), REMARK_MS);
    this.#show(text);
  }

  /** @param {string} text */
  #show(text) {
    if (this.#line.textContent !== text) this.#line.textContent = text; // screen readers announce every assignment
  }
}

/** The box that shows an error, its hint and a button to fix it. */
export class ProblemBox {
  #box;
  #isHeld = false;

  /** @param {HTMLElement} box */
  constructor(box) {
    this.#box = box;
  }

  hide() {
    if (this.#isHeld) return;
    this.#box.hidden = true;
    this.#box.replaceChildren();
  }

  /** Show an error that none replaces until it is released. @param {unknown} error @param {Remedy} remedy */
  hold(error, remedy) {
    this.release();
    this.show(error, remedy);
    this.#isHeld = true;
  }

  release() {
    this.#isHeld = false;
    this.hide();
  }

  /** @param {unknown} error @param {Remedy[]} remedies  the likeliest first */
  show(error, ...remedies) {
    if (this.#isHeld) return;
    console.error(error, error instanceof Problem ? (error.details ?? "") : "");
    const problem = document.createElement("p");
    problem.textContent = sentence(error instanceof Error ? error.message : String(error));
    this.#box.replaceChildren(problem);
    if (error instanceof Problem && error.hint) {
      const hint = document.createElement("p");
      hint.className = "hint";
      hint.textContent = sentence(error.hint);
      this.#box.append(hint);
    }
    for (const remedy of remedies) {
      const button = document.createElement("button");
      button.textContent = remedy.label;
      button.onclick = remedy.action;
      this.#box.append(button);
    }
    this.#box.hidden = false;
    this.#box.scrollIntoView({ block: "nearest" }); // on a phone the cause may be a screen away
  }
}

/** Make a sentence of a Python message, which starts in lower case. A name or an address at its start stays unchanged. @param {string} text */
function sentence(text) {
  const capitalized = text.replace(/^[a-z]+(?=:? )/, (word) => word[0].toUpperCase() + word.slice(1));
  return /[.!?]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}

/**
 * Read the number in a form's field and check it against the field's `min` and `max`.
 * @param {HTMLInputElement} input
 * @param {{ whole?: boolean, above?: number }} [kind]  `above` is an exclusive lower bound; `min` is inclusive
 * @throws {Problem} the field has no number, or one out of range; the message names the field's label
 */
export function readNumber(input, { whole = false, above = -Infinity } = {}) {
  const value = input.valueAsNumber;
  const [min, max] = [bound(input.min, -Infinity), bound(input.max, Infinity)];
  const isNumber = !Number.isNaN(value) && (!whole || Number.isSafeInteger(value));
  if (isNumber && min <= value && value <= max && above < value) return value;
  input.focus();
  const name = input.labels?.[0]?.textContent?.trim() ?? "This";
  const kind = `${whole ? "whole " : ""}number`;
  const example = input.defaultValue && `, such as ${input.defaultValue}`;
  if (whole && Number.isInteger(value) && !isNumber) throw new Problem("BadNumber", `${name} is too large.`, `Write a ${kind} of at most ${Number.MAX_SAFE_INTEGER}.`);
  if (!isNumber) throw new Problem("BadNumber", `${name} is not a ${kind}.`, `Write one${example}.`);
  const from = above > -Infinity ? `above ${above}` : `of at least ${min}`;
  const to = max < Infinity ? ` and at most ${max}` : "";
  throw new Problem("BadNumber", `${name} cannot be ${value}.`, `Write a ${kind} ${from}${to}${example}.`);
}

/** @param {string} attribute @param {number} fallback */
function bound(attribute, fallback) {
  return attribute === "" ? fallback : Number(attribute);
}

/** A progress bar with a line of text below it. */
export class ProgressBar {
  #box;
  #bar;
  #text;

  /** @param {HTMLElement} box  contains a <progress> and a <p> */
  constructor(box) {
    this.#box = box;
    this.#bar = /** @type {HTMLProgressElement} */ (box.querySelector("progress"));
    this.#text = /** @type {HTMLParagraphElement} */ (box.querySelector("p"));
  }

  hide() {
    this.#box.hidden = true;
  }

  /** Show the progress of a start or a load. @param {Progress} progress */
  show({ stage, name, loaded, total }) {
    const action = {
      python: name,
      download: `Downloading the ${name}`,
      cache: `Reading the ${name} from this browser's copy`,
      file: `Reading the ${name}`,
      model: "Building the model",
    }[stage];
    const amount = total ? `${megabytes(loaded, "")} of ${megabytes(total)}` : loaded ? megabytes(loaded) : "";
    this.update(`${action} ${amount}`.trim(), total ? loaded / total : null);
  }

  /** @param {string} text @param {number | null} share  from 0 to 1; null if unknown */
  update(text, share) {
    this.#box.hidden = false;
    if (share === null) this.#bar.removeAttribute("value");
    else this.#bar.value = share;
    this.#text.textContent = text;
  }
}

/** Named values in a <dl>. The names in `order` come first, in that order. */
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
    const dd = this.#values.get(name) ?? this.#add(name);
    dd.textContent = value;
  }

  /**
   * Show a number that the user can change.
   * @param {string} name @param {number} value @param {number} most @param {(value: number) => void} onChange
   */
  choose(name, value, most, onChange) {
    const select = document.createElement("select");
    select.setAttribute("aria-label", name);
    for (let i = 1; i <= most; i++) select.append(new Option(`${i} of ${most}`, String(i), i === value, i === value));
    select.onchange = () => onChange(Number(select.value));
    (this.#values.get(name) ?? this.#add(name)).replaceChildren(select);
  }

  /**
   * Show the number of threads for kernels, which the user can change; or why there is one.
   * @param {Pick<Started, "threads" | "mostThreads" | "oneThread">} started @param {(count: number) => void} onChoose
   */
  showThreads({ threads, mostThreads, oneThread }, onChoose) {
    if (mostThreads > 1) this.choose("Threads", threads, mostThreads, onChoose);
    else this.show("Threads", oneThread ? `1: ${oneThread}` : "1");
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

/** A promise that rejects when the signal aborts, to race with work that cannot be stopped itself. @param {AbortSignal} signal @returns {Promise<never>} */
export function aborted(signal) {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Copy a text, and say so. @param {string} text @param {Status} status @param {string} copied  the remark */
export async function copyText(text, status, copied) {
  try {
    await navigator.clipboard.writeText(text);
    status.remark(copied);
  } catch {
    status.remark("The browser does not let the page copy. Select the text instead.");
  }
}

/** Save a file to the user's downloads. @param {string} name @param {BlobPart} content */
export function save(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content]));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Show how long Python took to start, and its versions. @param {Figures} figures @param {Started} started */
export function showStart(figures, { tallow, python, seconds }) {
  figures.show("Start of Python", `${(seconds.fetch + seconds.python + seconds.import).toFixed(1)} s`);
  figures.show("Versions", `tallow ${tallow}, Python ${python}`);
}

/** Close a <details> on a narrow screen, where it would push the results off the screen. @param {HTMLDetailsElement} details */
export function closeOnPhone(details) {
  if (matchMedia("(max-width: 60rem)").matches) details.open = false;
}

/** @param {number} bytes */
export function megabytes(bytes, unit = " MB") {
  return (bytes / 1e6).toFixed(1) + unit;
}

/** Call an action when a form is submitted, or was before this script has loaded (early.js). @param {HTMLFormElement} form @param {() => void} action */
export function onSubmit(form, action) {
  form.onsubmit = (event) => {
    event.preventDefault();
    action();
  };
  const { submittedEarly } = /** @type {{ submittedEarly?: Set<EventTarget> }} */ (globalThis);
  if (submittedEarly?.delete(form)) queueMicrotask(action); // when the page's script has run
}

/** Call an action on Ctrl+Enter or Cmd+Enter in a text field. @param {HTMLTextAreaElement} field @param {() => void} action */
export function onCtrlEnter(field, action) {
  field.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) action();
  };
}

/**
 * Accept files dropped anywhere on the page.
 * @param {HTMLElement} curtain  covers the page while files are dragged over it, and says which files it takes
 * @param {(files: File[], transfer: DataTransfer) => void} take  `transfer` has the content of dropped folders, during the event only
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
