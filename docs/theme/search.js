/** The search field. The index is fetched, and searched in a worker, once the field is used. */

const DELAY_MS = 120;
const MAX_RESULTS = 30;
const EXCERPT = 160;
const ROOT = new URL(`${document.documentElement.dataset.base}/`, document.baseURI);

/** @typedef {{ location: string, title: string, summary: string }} Result */

class Search {
  #field;
  #list;
  /** @type {Worker | undefined} */
  #worker;
  #ready = false;
  #timer = 0;

  /** @param {HTMLInputElement} field @param {HTMLElement} list */
  constructor(field, list) {
    this.#field = field;
    this.#list = list;
    field.addEventListener("focus", () => this.#start(), { once: true });
    field.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => this.#ask(), DELAY_MS);
    });
    addEventListener("keydown", (event) => this.#key(event));
    addEventListener("click", (event) => {
      if (!(event.target instanceof Node && list.parentElement?.contains(event.target))) this.#hide();
    });
    field.disabled = false;
  }

  #start() {
    this.#worker = new Worker(new URL("search/worker.js", ROOT));
    this.#worker.onmessage = ({ data }) => {
      if (data.allowSearch) {
        this.#ready = true;
        this.#ask();
      } else if (data.results) this.#show(data.results);
    };
    this.#worker.postMessage({ init: true });
  }

  #ask() {
    // Characters that lunr's query language gives a meaning; "softm*" finds "softmax".
    const words = this.#field.value.split(/[\s:~^+*.()-]+/).filter(Boolean);
    if (!words.length) return this.#hide();
    if (this.#ready) this.#worker?.postMessage({ query: words.flatMap((word) => [word, `${word}*`]).join(" ") });
  }

  /** @param {Result[]} results */
  #show(results) {
    const query = letters(this.#field.value);
    const isExact = (/** @type {Result} */ { title }) => letters(title) === query;
    const sorted = [...results.filter(isExact), ...results.filter((result) => !isExact(result))];
    const links = sorted.slice(0, MAX_RESULTS).map(({ location, title, summary }) => {
      const link = document.createElement("a");
      link.href = new URL(location, ROOT).href;
      const name = Object.assign(document.createElement("strong"), { textContent: title });
      const place = Object.assign(document.createElement("small"), { textContent: ` ${placeOf(location)}` });
      const excerpt = Object.assign(document.createElement("p"), { textContent: tidy(summary).slice(0, EXCERPT) });
      link.append(name, place, excerpt);
      return link;
    });
    const nothing = Object.assign(document.createElement("p"), { textContent: "Nothing found." });
    this.#list.replaceChildren(...(links.length ? links : [nothing]));
    this.#list.hidden = false;
  }

  #hide() {
    this.#list.hidden = true;
  }

  /** "/" goes to the field, Escape leaves it. @param {KeyboardEvent} event */
  #key(event) {
    const inField = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
    if (event.key === "/" && !inField && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      this.#field.focus();
    } else if (event.key === "Escape") this.#hide();
  }
}

/** "tallow.nn" of "api/tallow.nn/#linear". @param {string} location */
function placeOf(location) {
  return location.replace(/#.*$/, "").split("/").filter(Boolean).at(-1) ?? "";
}

/** "crossentropy" of "cross_entropy". @param {string} text */
function letters(text) {
  return text.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** The index has a space around each token of a signature. @param {string} text */
function tidy(text) {
  return text.replace(/\s+([),:.\]])/g, "$1").replace(/\s*([([])\s*/g, "$1");
}

const field = document.getElementById("search");
const list = document.getElementById("results");
if (field instanceof HTMLInputElement && list) new Search(field, list);
