import { dropped, filesOf, folder, listed, written } from "../../web/folder.js";
import { isolate } from "../../web/isolation.js";
import { Kept } from "../../web/kept.js";
import { Figures, ProblemBox, ProgressBar, aborted, element, megabytes, onDrop } from "../../web/page.js";
import { Problem } from "../../web/protocol.js";
import { Runtime, SITE } from "../../web/tallow.js";
import { EXAMPLES } from "./examples.js";
import { Heatmap, fillTable } from "./heatmap.js";

/** @import { Loaded, Started } from "../../web/protocol.js" */
/** @import { Choice } from "../../web/folder.js" */
/** @import { Similarities } from "./heatmap.js" */
/** @typedef {{ name: string, bytes: number, files: Record<string, string> }} Offer  of the server this page comes from */

const MAX_LINES = 100;
const HEADS = { modules: "modules.json", config: "config.json" };

const page = {
  modelName: element("model-name", HTMLElement),
  choices: element("choices", HTMLDetailsElement),
  presets: element("presets", HTMLElement),
  modelForm: element("model-form", HTMLFormElement),
  modelId: element("model-id", HTMLInputElement),
  modelFolder: element("model-file", HTMLInputElement),
  modelFiles: element("model-files", HTMLInputElement),
  textsForm: element("texts-form", HTMLFormElement),
  texts: element("texts", HTMLTextAreaElement),
  examples: element("examples", HTMLElement),
  stop: element("stop", HTMLButtonElement),
  status: element("status", HTMLElement),
  query: element("query", HTMLInputElement),
  results: element("results", HTMLElement),
  heatmap: element("heatmap", HTMLCanvasElement),
  readout: element("readout", HTMLElement),
  scale: element("scale", HTMLElement),
  least: element("least", HTMLElement),
  asTable: element("as-table", HTMLDetailsElement),
  table: element("table", HTMLTableElement),
};
const problems = new ProblemBox(element("error", HTMLElement));
const progress = new ProgressBar(element("progress", HTMLElement));
const downloads = new Kept(element("kept", HTMLElement));

/** Loads a model, compares texts and searches them: one model and one comparison at a time. */
class Reader {
  #runtime = Runtime.create();
  /** @type {Promise<Started>} */
  #started;
  /** @type {string | null}  the model in memory; one that cannot be loaded leaves it there */
  #description = null;
  /** @type {{ controller: AbortController, done: Promise<boolean> } | null} */
  #loading = null;
  /** @type {AbortController | null} */
  #comparing = null;
  /** @type {string[]}  the texts whose vectors Python has */
  #texts = [];
  #searching = false;
  #heatmap = new Heatmap(page.heatmap, page.readout);
  #figures = new Figures(element("stats", HTMLElement), ["Speed", "Each text", "Query", "Texts", "Kernels"]);

  constructor() {
    const onProgress = progress.show.bind(progress);
    this.#started = this.#runtime.start(new URL("app.py", import.meta.url), { libraries: ["huggingface_tokenizers"], onProgress });
    this.#started.then(
      ({ tallow, python, seconds }) => {
        this.#figures.show("Start of Python", `${(seconds.fetch + seconds.python + seconds.import).toFixed(1)} s`);
        this.#figures.show("Versions", `tallow ${tallow}, Python ${python}`);
        if (this.#loading) return;
        progress.hide();
        say("Python is ready. Choose a model.");
      },
      (error) => {
        progress.hide();
        say("Python is not running.");
        problems.show(error, { label: "Try again", action: () => location.reload() });
      },
    );
  }

  /** Load a model in place of the one that is loading or loaded. @param {Choice} choice */
  load(choice) {
    this.#abort();
    const controller = new AbortController();
    const loading = { controller, done: this.#load(choice, controller.signal) };
    this.#loading = loading;
    loading.done.finally(() => {
      if (this.#loading !== loading) return; // another load has taken over the page
      this.#loading = null;
      progress.hide();
      page.modelName.textContent = this.#description ?? "None yet. Choose one.";
      downloads.show();
    });
  }

  /** @param {Choice} choice @param {AbortSignal} signal @returns {Promise<boolean>} whether it can be used */
  async #load({ name, place }, signal) {
    problems.hide();
    say(`Loading ${name}`);
    page.modelName.textContent = `Loading ${name}`;
    try {
      await Promise.race([this.#started, aborted(signal)]);
    } catch {
      if (signal.aborted) say("Loading stopped.");
      return false; // when Python did not start, the page says so already
    }
    try {
      const ask = (/** @type {Record<string, unknown>} */ texts) => this.#runtime.call("wanted", texts);
      const files = await filesOf(place, HEADS, ask, signal);
      const loaded = await this.#runtime.load(files, { onProgress: (report) => progress.show(report), signal });
      this.#show(name, loaded);
      return true;
    } catch (error) {
      if (signal.aborted) say("Loading stopped.");
      else {
        say(`${name} could not be loaded.`);
        problems.show(error);
      }
      return false;
    }
  }

  /** @param {string} name @param {Loaded} loaded */
  #show(name, { info, bytes, seconds, notice }) {
    const { parameters, layers, width, limit, kernels } = info;
    this.#description = `${name}: ${(parameters / 1e6).toFixed(1)} million parameters, ${layers} layers of ${width}, texts of up to ${limit} tokens`;
    this.#texts = [];
    page.results.replaceChildren();
    showLikeness(false);
    this.#figures.show("Model load", `${seconds.toFixed(2)} s, ${megabytes(bytes)}`);
    this.#figures.show("Kernels", kernels);
    // On a phone the choices would keep the texts off the screen.
    if (matchMedia("(max-width: 60rem)").matches) page.choices.open = false;
    say(["Ready.", notice ?? ""].join(" ").trim());
  }

  /** Compare the lines; does nothing while some are being compared. */
  async compare() {
    if (this.#comparing) return say("Lines are being compared; stop that first.");
    problems.hide();
    const controller = new AbortController();
    try {
      const texts = readLines();
      if (!this.#description && !this.#loading) throw new Problem("NoModel", "There is no model yet.", "Choose one: from the Hub, or a folder of this computer.");
      this.#comparing = controller;
      if (this.#loading) {
        say("The lines are compared when the model is loaded.");
        if (!(await Promise.race([this.#loading.done, aborted(controller.signal)]))) return; // why not is on the page
      }
      await this.#compare(texts, controller.signal);
    } catch (error) {
      if (controller.signal.aborted) say("Stopped.");
      else {
        say("Nothing is compared.");
        problems.show(error);
      }
    } finally {
      this.#comparing = null;
    }
  }

  /** @param {string[]} texts @param {AbortSignal} signal */
  async #compare(texts, signal) {
    document.body.classList.add("burning");
    let cut = 0;
    try {
      for await (const { stats } of this.#runtime.generate({ texts }, { signal })) {
        say(`Reading line ${Math.min(texts.length, stats.done + 1)} of ${texts.length}`);
        cut = stats.cut;
        if (!stats.made) continue; // all of them were known
        this.#figures.show("Speed", `${Math.round(stats.tokens / stats.seconds)} tokens/s`);
        this.#figures.show("Each text", `${((1000 * stats.seconds) / stats.made).toFixed(1)} ms`);
        this.#figures.show("Texts", `${stats.made} of ${stats.tokens} tokens`);
      }
      this.#texts = texts;
      showSimilarities(this.#heatmap, { texts, values: await this.#runtime.call("similarities") });
      say(cut ? `Done. ${cut === 1 ? "One line is" : `${cut} lines are`} longer than the model reads; the rest of it is left out.` : "Done.");
      await this.search();
    } finally {
      document.body.classList.remove("burning");
    }
  }

  /** Rank the lines by the query as it is now; while a search goes on, the next one waits for it. */
  async search() {
    if (this.#searching) return;
    this.#searching = true;
    try {
      for (let query = null; query !== page.query.value; ) {
        query = page.query.value;
        if (!query.trim() || !this.#texts.length) {
          page.results.replaceChildren();
          if (query.trim() && !this.#loading && !this.#comparing) say("Press Compare first; then the lines can be searched.");
          continue;
        }
        const texts = this.#texts;
        const { scores, seconds } = await this.#runtime.call("search", { query });
        this.#figures.show("Query", `${(1000 * seconds).toFixed(1)} ms`);
        showResults(texts, scores);
      }
    } catch (error) {
      problems.show(error);
    } finally {
      this.#searching = false;
    }
  }

  /** Stop whatever is loading or being compared. */
  stop() {
    if (!this.#loading && !this.#comparing) say("Nothing is running.");
    this.#abort();
  }

  #abort() {
    this.#loading?.controller.abort();
    this.#comparing?.abort();
  }
}

/** @param {boolean} shown */
function showLikeness(shown) {
  for (const part of [page.heatmap, page.scale, page.asTable]) part.hidden = !shown;
  if (!shown) page.readout.textContent = page.readout.dataset.empty ?? "";
}

/** @param {Heatmap} heatmap @param {Similarities} similarities */
function showSimilarities(heatmap, similarities) {
  showLikeness(true);
  heatmap.show(similarities);
  page.least.textContent = heatmap.least.toFixed(1);
  // A hundred lines are ten thousand cells: made when they are looked at.
  page.asTable.ontoggle = () => page.asTable.open && fillTable(page.table, similarities);
  if (page.asTable.open) fillTable(page.table, similarities);
}

/** @param {string[]} texts @param {Float32Array} scores */
function showResults(texts, scores) {
  const order = texts.map((_, i) => i).sort((a, b) => scores[b] - scores[a]);
  page.results.replaceChildren(
    ...order.map((i) => {
      const item = document.createElement("li");
      const score = document.createElement("meter");
      score.min = 0;
      score.max = 1;
      score.value = Math.max(0, scores[i]);
      score.setAttribute("aria-hidden", "true");
      const number = document.createElement("span");
      number.className = "score";
      number.textContent = scores[i].toFixed(3);
      const text = document.createElement("span");
      text.textContent = texts[i];
      item.append(number, score, text);
      return item;
    }),
  );
}

function readLines() {
  const lines = page.texts.value.split("\n").map((line) => line.trim());
  const texts = lines.filter(Boolean);
  if (texts.length && texts.length <= MAX_LINES) return texts;
  page.texts.focus();
  if (!texts.length) throw new Problem("NoLines", "There are no lines to compare.", "Write some, one text a line.");
  throw new Problem("TooManyLines", `There are ${texts.length} lines; the page compares up to ${MAX_LINES}.`, "Leave some out.");
}

/** @param {string} text */
function say(text) {
  page.status.textContent = text;
}

/** The models of the server that this page comes from. @param {Reader} reader */
async function showPresets(reader) {
  /** @type {{ encoders: Offer[] }} */
  const { encoders } = await (await fetch(new URL("site.json", SITE))).json();
  page.presets.replaceChildren(
    ...encoders.map(({ name, bytes, files }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.testid = `preset-${name}`;
      button.textContent = `${name}, ${megabytes(bytes)}, on this server`;
      const urls = Object.fromEntries(Object.entries(files).map(([path, url]) => [path, new URL(url, SITE).href]));
      button.onclick = () => reader.load({ name, place: listed(urls) });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }),
  );
}

/** @param {Reader} reader */
function showExamples(reader) {
  for (const { name, query, texts } of EXAMPLES) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.dataset.testid = "example";
    button.textContent = name;
    const fill = () => {
      page.texts.value = texts.join("\n");
      page.query.value = query;
    };
    button.onclick = () => {
      fill();
      reader.compare();
    };
    page.examples.append(button, " ");
    if (!page.texts.value) fill();
  }
}

/** @param {Reader} reader @param {Map<string, File>} files */
function loadFolder(reader, files) {
  if (!files.size) return;
  const [first] = files.keys();
  reader.load({ name: first.includes("/") ? first.split("/")[0] : "the model", place: folder(files) });
}

/** @param {Reader} reader */
function listen(reader) {
  page.textsForm.onsubmit = (event) => {
    event.preventDefault();
    reader.compare();
  };
  page.texts.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) reader.compare();
  };
  page.query.oninput = () => reader.search();
  page.stop.onclick = () => reader.stop();
  page.modelForm.onsubmit = (event) => {
    event.preventDefault();
    try {
      reader.load(written(page.modelId.value, "sentence-transformers/all-MiniLM-L6-v2"));
    } catch (error) {
      page.modelId.focus();
      problems.show(error);
    }
  };
  for (const input of [page.modelFolder, page.modelFiles]) {
    input.onchange = () => loadFolder(reader, new Map([...(input.files ?? [])].map((file) => [file.webkitRelativePath || file.name, file])));
    input.onclick = () => (input.value = ""); // else choosing the same files again, mended perhaps, would be no change
  }
  onDrop(element("drop", HTMLElement), async (_, transfer) => {
    try {
      loadFolder(reader, await dropped(transfer));
    } catch (error) {
      problems.show(new Problem("ReadError", `What was dropped could not be read: ${error}`, "Choose the folder instead."));
    }
  });
}

const reader = new Reader();
listen(reader);
showExamples(reader);
showLikeness(false);
isolate();
await showPresets(reader);
await downloads.show();
