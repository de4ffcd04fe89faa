/** The search field. The index is fetched, and searched in a worker, once the field is used. */

const DELAY_MS = 120;
const MAX_RESULTS = 30;
const EXCERPT = 160;
const BEFORE = 12; // characters of an excerpt before the first word that was searched
const SHORTEST_STEM = 4; // letters
const LEAST_FUZZY = 5; // letters of a word in which one may be wrong or missing
// Words of questions. The index has none of them, but words that begin with one.
const STOP = new Set("a an and are as at be by can do does for from how i in is it my of on or the to what when where which with you your".split(" "));
const ROOT = new URL(`${document.documentElement.dataset.base}/`, document.baseURI);

/** @typedef {{ location: string, title: string, summary: string }} Result */

class Search {
  #field;
  #list;
  /** @type {Worker | undefined} */
  #worker;
  #found;
  /** The texts of the sections, whose beginnings alone the worker returns. @type {Map<string, string>} */
  #texts = new Map();
  #ready = false;
  #timer = 0;

  /** @param {HTMLInputElement} field @param {HTMLElement} list @param {HTMLElement} found  says how many results there are */
  constructor(field, list, found) {
    this.#field = field;
    this.#list = list;
    this.#found = found;
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

  async #readTexts() {
    /** @type {{ docs: { location: string, text: string }[] }} */
    const { docs } = await (await fetch(new URL("search/search_index.json", ROOT))).json(); // which the worker has fetched, too
    this.#texts = new Map(docs.map(({ location, text }) => [location, text]));
  }

  #start() {
    this.#readTexts().catch((error) => console.warn("results are shown by their beginnings:", error));
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
    const words = this.#words();
    if (!words.length) return this.#hide();
    // "softm*" finds "softmax", and so does "softmx~1".
    const forms = (/** @type {string} */ word) => [`${word}^4`, `${word}*^2`, ...(word.length < LEAST_FUZZY ? [] : [`${word}~1`])];
    if (this.#ready) this.#worker?.postMessage({ query: words.flatMap(forms).join(" ") });
  }

  /** The words to search, without the characters that lunr's query language gives a meaning. */
  #words() {
    const words = this.#field.value.split(/[\s:~^+*.,?!()-]+/).filter(Boolean);
    const telling = words.filter((word) => !STOP.has(word.toLowerCase()));
    return telling.length ? telling : words;
  }

  /** @param {Result[]} results */
  #show(results) {
    const query = letters(this.#field.value);
    const isExact = (/** @type {Result} */ { title }) => letters(title) === query && !this.#field.value.startsWith("--"); // an option
    const words = this.#words().map((word) => word.toLowerCase());
    const phrase = this.#field.value.trim().toLowerCase();
    // Sections with more of the words come first; those with equally many stay in lunr's order.
    const whole = results.map((result) => ({ ...result, summary: this.#texts.get(result.location) ?? result.summary }));
    const ranked = whole.map((result) => ({ result, rank: isExact(result) ? Infinity : rankOf(words, phrase, result) }));
    const sorted = ranked.sort((a, b) => (a.rank === b.rank ? 0 : b.rank - a.rank)).map(({ result }) => result);
    const links = sorted.slice(0, MAX_RESULTS).map(({ location, title, summary }) => {
      const link = document.createElement("a");
      link.href = new URL(location, ROOT).href;
      const name = Object.assign(document.createElement("strong"), { textContent: title });
      const place = Object.assign(document.createElement("small"), { textContent: ` ${placeOf(location)}` });
      const passage = Object.assign(document.createElement("p"), { textContent: excerpt(tidy(summary), words) });
      link.append(name, place, passage);
      return link;
    });
    const nothing = Object.assign(document.createElement("p"), { textContent: "Nothing found." });
    this.#list.replaceChildren(...(links.length ? links : [nothing]));
    this.#list.hidden = false;
    this.#found.textContent = links.length ? `${links.length} results` : "Nothing found.";
  }

  #hide() {
    this.#list.hidden = true;
    this.#found.textContent = "";
  }

  /** Go from the field to the results and back: by 1 or -1. @param {number} step */
  #move(step) {
    /** @type {HTMLElement[]} */
    const places = [this.#field, ...this.#list.querySelectorAll("a")];
    const at = places.findIndex((place) => place === document.activeElement);
    places[Math.min(Math.max(at + step, 0), places.length - 1)].focus();
  }

  /** "/" goes to the field, the arrows through the results, Enter to the first one, Escape leaves. @param {KeyboardEvent} event */
  #key(event) {
    const isSearching = !this.#list.hidden && event.target instanceof Node && (event.target === this.#field || this.#list.contains(event.target));
    if (isSearching && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      return this.#move(event.key === "ArrowDown" ? 1 : -1);
    }
    if (isSearching && event.key === "Enter" && event.target === this.#field && !event.isComposing) {
      return this.#list.querySelector("a")?.click();
    }
    const inField = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
    if (event.key === "/" && !inField && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      this.#field.focus();
    } else if (event.key === "Escape") this.#hide();
  }
}

/** How many of the words a section contains, by their first half, and whether it has them as written. @param {string[]} words @param {string} phrase @param {Result} result */
function rankOf(words, phrase, { title, summary }) {
  const text = `${title} ${tidy(summary)}`.toLowerCase();
  const count = words.filter((word) => text.includes(word.slice(0, Math.max(SHORTEST_STEM, word.length >> 1)))).length;
  return count + (text.includes(phrase) ? 1 : 0);
}

/** The part of a section around the first of the words. @param {string} text @param {string[]} words */
function excerpt(text, words) {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, lower.length) - BEFORE);
  if (!places.length || !start) return text.slice(0, EXCERPT);
  return `… ${text.slice(text.indexOf(" ", start) + 1, start + EXCERPT)}`;
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
const [list, found] = [document.getElementById("results"), document.getElementById("found")];
if (field instanceof HTMLInputElement && list && found) new Search(field, list, found);
