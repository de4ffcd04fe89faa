import { dropped, filesOf, folder, listed, written } from "../../web/folder.js";
import { isolate } from "../../web/isolation.js";
import { Kept } from "../../web/kept.js";
import { Latest } from "../../web/latest.js";
import { Figures, ProblemBox, ProgressBar, Status, aborted, element, megabytes, onDrop } from "../../web/page.js";
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
  query: element("query", HTMLInputElement),
  results: element("results", HTMLElement),
  likeness: element("likeness", HTMLElement),
  heatmap: element("heatmap", HTMLCanvasElement),
  readout: element("readout", HTMLElement),
  scale: element("scale", HTMLElement),
  least: element("least", HTMLElement),
  asTable: element("as-table", HTMLDetailsElement),
  table: element("table", HTMLTableElement),
};
const status = new Status(element("status", HTMLElement));
const problems = new ProblemBox(element("error", HTMLElement));
const progress = new ProgressBar(element("progress", HTMLElement));
const downloads = new Kept(element("kept", HTMLElement));

/** The way out where there is no model. */
const CHOOSE = {
  label: "Choose a model",
  action() {
    page.choices.open = true;
    page.modelId.focus();
  },
};

/** Loads a model, compares texts and searches them: one model and one comparison at a time. */
class Reader {
  #runtime = Runtime.create();
  /** @type {Promise<Started>} */
  #started;
  /** @type {string | null}  the model in memory; one that cannot be loaded leaves it there */
  #description = null;
  /** @type {Latest<boolean>}  whether the model can be used */
  #loading = new Latest();
  /** @type {Latest<void>} */
  #comparing = new Latest();
  /** @type {string[]}  the texts that were compared last */
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
        if (this.#loading.busy) return;
        progress.hide();
        status.say("Python is ready. Choose a model.");
      },
      (error) => {
        progress.hide();
        status.say("Python is not running.");
        problems.show(error, { label: "Try again", action: () => location.reload() });
      },
    );
  }

  /** Load a model in place of the one that is loading or loaded. @param {Choice} choice */
  async load(choice) {
    this.#comparing.stop();
    problems.hide();
    status.say(`Loading ${choice.name}`);
    page.modelName.textContent = `Loading ${choice.name}`;
    await this.#loading.begin((signal) => this.#load(choice, signal));
    if (this.#loading.busy) return; // another load has taken over the page
    progress.hide();
    page.modelName.textContent = this.#description ?? "No model yet. Choose one.";
    downloads.show();
  }

  /** @param {Choice} choice @param {AbortSignal} signal @returns {Promise<boolean>} whether it can be used */
  async #load({ name, place }, signal) {
    try {
      await Promise.race([this.#started, aborted(signal)]);
    } catch {
      return false; // when Python did not start, the page says so already
    }
    try {
      const ask = (/** @type {Record<string, unknown>} */ texts) => this.#runtime.call("wanted", texts);
      const files = await filesOf(place, HEADS, ask, signal);
      const loaded = await this.#runtime.load(files, { onProgress: (report) => progress.show(report), signal });
      this.#show(name, loaded);
      return true;
    } catch (error) {
      if (!signal.aborted) {
        status.say(`${name} could not be loaded.`);
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
    // On a phone the choices would keep what is found off the screen.
    if (matchMedia("(max-width: 60rem)").matches) page.choices.open = false;
    status.say(["Ready.", notice ?? ""].join(" ").trim());
  }

  /** Compare the lines as they are now, in place of those that are being compared. */
  async compare() {
    problems.hide();
    await this.#comparing.begin((signal) => this.#tryToCompare(signal));
  }

  /** @param {AbortSignal} signal */
  async #tryToCompare(signal) {
    try {
      const texts = readLines();
      if (this.#loading.busy) {
        status.say("The comparison starts when the model has loaded.");
        if (!(await Promise.race([this.#loading.done, aborted(signal)]))) return; // why not is on the page
      }
      if (!this.#description) throw new Problem("NoModel", "There is no model yet.", "Choose one: from the Hub, or a folder of this computer.");
      await this.#compare(texts, signal);
    } catch (error) {
      if (signal.aborted) return;
      status.say("These lines have not been compared.");
      problems.show(error, error instanceof Problem && error.name === "NoModel" ? CHOOSE : undefined);
    }
  }

  /** @param {string[]} texts @param {AbortSignal} signal */
  async #compare(texts, signal) {
    document.body.classList.add("burning");
    showStale(true);
    let cut = 0;
    try {
      for await (const { stats } of this.#runtime.generate({ texts }, { signal })) {
        status.say(`Reading line ${Math.min(texts.length, stats.done + 1)} of ${texts.length}`);
        cut = stats.cut;
        if (!stats.made) continue; // all of them were known
        this.#figures.show("Speed", `${Math.round(stats.tokens / stats.seconds)} tokens/s`);
        this.#figures.show("Each text", `${((1000 * stats.seconds) / stats.made).toFixed(1)} ms`);
        this.#figures.show("Texts", `${stats.made} of ${stats.tokens} tokens`);
      }
      this.#texts = texts;
      showSimilarities(this.#heatmap, { texts, values: await this.#runtime.call("similarities") });
      status.say(cut ? `Done. ${cut === 1 ? "One line is" : `${cut} lines are`} longer than the model's context; the rest is ignored.` : "Done.");
      await this.search();
    } finally {
      document.body.classList.remove("burning");
      showStale(false);
    }
  }

  /** Rank the lines by the query as it is now; while a search goes on, the next one waits for it. */
  async search() {
    if (this.#searching) return;
    this.#searching = true;
    try {
      let query = null;
      /** @type {string[] | null} */
      let compared = null;
      while (query !== page.query.value || compared !== this.#texts) {
        query = page.query.value;
        compared = this.#texts;
        if (!query.trim() || !compared.length) {
          page.results.replaceChildren();
          if (query.trim() && !this.#loading.busy && !this.#comparing.busy) status.remark("Press Compare first to search the lines.");
          continue;
        }
        const { texts, scores, seconds } = await this.#runtime.call("search", { query });
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
  async stop() {
    const isLoading = this.#loading.busy;
    if (!isLoading && !this.#comparing.busy) return status.remark("Nothing is running.");
    await Promise.all([this.#loading.stop(), this.#comparing.stop()]);
    if (this.#loading.busy || this.#comparing.busy) return; // something else has begun
    if (isLoading) status.say("Loading stopped.");
    else status.say(this.#texts.length ? "Stopped. The results shown are from the previous comparison." : "Stopped.");
  }
}

/** What is shown is not of the lines that are being compared. @param {boolean} stale */
function showStale(stale) {
  for (const part of [page.results, page.likeness]) part.classList.toggle("stale", stale);
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
  if (!texts.length) throw new Problem("NoLines", "There are no lines to compare.", "Write some, one text per line.");
  throw new Problem("TooManyLines", `There are ${texts.length} lines; the page compares up to ${MAX_LINES}.`, "Leave some out.");
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
