import { isolate } from "../../web/page/isolation.js";
import { findFiles, folderName, localFolder, parseGguf, parseModel, serverFiles } from "../../web/page/model-files.js";
import { listenForModels } from "../../web/page/model-inputs.js";
import { ModelPage } from "../../web/page/model-page.js";
import { Figures, closeOnPhone, element, megabytes, onCtrlEnter, onSubmit, pageView, showStart } from "../../web/page/page.js";
import { markPresets, preset } from "../../web/page/presets.js";
import { Problem } from "../../web/worker/protocol.js";
import { ShareLink } from "../../web/page/share.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";
import { SITE } from "../../web/page/site.js";
import { EXAMPLES } from "./examples.js";
import { Heatmap, fillTable } from "./heatmap.js";

/** @import { NamedModel } from "../../web/page/model-files.js" */
/** @import { ModelChoice, ModelView } from "../../web/page/model-page.js" */
/** @import { Source } from "../../web/worker/protocol.js" */
/** @import { Similarities } from "./heatmap.js" */
/** @typedef {{ name: string, bytes: number, files: Record<string, string> }} ServerModel  an entry of site.json */

const MOST_COMPARED = 100; // lines, with each other
const MOST_RESULTS = 1000; // in the list
const EXAMPLE_MODEL = "sentence-transformers/all-MiniLM-L6-v2";
const GGUF = /\.gguf$/i;
/** A model that has read far more than the packaged one, quantised. */
const LARGER = { name: "all-MiniLM-L6-v2", file: "second-state/All-MiniLM-L6-v2-Embedding-GGUF:all-MiniLM-L6-v2-Q8_0.gguf", bytes: 25e6 };
const HEADS = { modules: "modules.json", config: "config.json" };

/** The model that comes with tallow. @type {ModelChoice} */
const PACKAGED = { name: "glosses", files: async () => ({}) };

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
  similarity: element("similarity", HTMLElement),
  heatmap: element("heatmap", HTMLCanvasElement),
  readout: element("readout", HTMLElement),
  scale: element("scale", HTMLElement),
  scaleStart: element("scale-start", HTMLElement),
  asTable: element("as-table", HTMLDetailsElement),
  table: element("table", HTMLTableElement),
  share: element("share", HTMLButtonElement),
  shareNote: element("share-note", HTMLElement),
};
/** @type {ModelView} */
const view = {
  ...pageView(),
  stop: page.stop,
  modelName: page.modelName,
  noModel: "No model. Choose one.",
  figures: new Figures(element("stats", HTMLElement), ["Speed", "Each text", "Query", "Texts", "Kernels", "Threads"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement)),
};
const { status, problems } = view;
const NO_RESULTS = page.results.dataset.empty ?? "";

/** Loads a model, compares texts and searches them: one model and one comparison at a time. */
class SentenceSearch {
  /** @type {string[]}  the texts of the last comparison */
  #texts = [];
  #searching = false;
  #heatmap = new Heatmap(page.heatmap, page.readout);
  /** @type {ModelPage<ModelChoice, { name: string, description: string }>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url), parts: ["glosses"], libraries: ["huggingface_tokenizers"] }, {
    onStart: (started) => showStart(view.figures, started),
    onLoad: ({ name }, { info }) => this.#clear(name, info),
    onModel: (model) => this.#mark(model?.name ?? ""),
    hasResults: () => this.#texts.length > 0, // searches use their embeddings
  });

  /** Load the packaged model. */
  loadPackaged() {
    this.#page.load(PACKAGED);
  }

  /** Load a GGUF file in place of the model that is loading or loaded. @param {string} name @param {(signal: AbortSignal) => Promise<Source> | Source} find */
  loadGguf(name, find) {
    this.#page.load({ name, files: async (signal) => ({ "model.gguf": await find(signal) }) });
  }

  /** Load a model in place of the one that is loading or loaded. @param {NamedModel} model */
  load({ name, location }) {
    const ask = (/** @type {Record<string, unknown>} */ texts) => this.#page.runtime.call("list_files", texts);
    this.#page.load({ name, files: (signal) => findFiles(location, HEADS, ask, signal) });
  }

  /** Compare the current lines, in place of those that are being compared. */
  compare() {
    this.#page.work((signal) => this.#tryToCompare(signal), { failed: "These lines have not been compared." });
  }

  /** Stop loading and comparing. */
  stop() {
    this.#page.stop(this.#texts.length ? "Stopped. The results shown are from the previous comparison." : "Stopped.");
  }

  /** Clear what the page shows of the last model. @param {string} name @param {Record<string, any>} info */
  #clear(name, { parameters, layers, width, limit, knows }) {
    this.#texts = [];
    page.results.replaceChildren();
    showSimilarityParts(false);
    closeOnPhone(page.choices);
    const shape = layers ? `${layers} layers of ${width}` : `a vector of ${width} numbers for each token`;
    const reach = limit ? `texts of up to ${limit} tokens` : "texts of any length";
    const description = `${name}: ${(parameters / 1e6).toFixed(1)} million parameters, ${shape}, ${reach}`;
    return { name, description: knows ? `${description}. It is built in and knows ${knows}.` : description };
  }

  /** Mark the model in memory among the presets, now and when they appear. @param {string} name */
  #mark(name) {
    page.presets.dataset.model = name;
    markPresets(page.presets, name);
  }

  /** @param {AbortSignal} signal */
  async #tryToCompare(signal) {
    const texts = readLines();
    const usable = await this.#page.ready("The comparison starts when the model has loaded.", signal);
    if (!usable || !this.#page.model) return; // the page says why
    await this.#compare(texts, signal);
  }

  /** @param {string[]} texts @param {AbortSignal} signal */
  async #compare(texts, signal) {
    document.body.classList.add("burning");
    showStale(true);
    let cut = 0;
    const { runtime } = this.#page;
    try {
      for await (const { stats } of runtime.generate({ texts }, { signal })) {
        status.say(`Reading line ${Math.min(texts.length, stats.done + 1)} of ${texts.length}`);
        cut = stats.cut;
        if (!stats.encoded) continue; // all texts so far were encoded before
        view.figures.show("Speed", `${Math.round(stats.tokens / stats.seconds)} tokens/s`);
        view.figures.show("Each text", `${((1000 * stats.seconds) / stats.encoded).toFixed(1)} ms`);
        view.figures.show("Texts", `${stats.encoded} with ${stats.tokens} tokens`);
      }
      this.#texts = texts;
      if (texts.length <= MOST_COMPARED) showSimilarities(this.#heatmap, { texts, values: await runtime.call("similarities") });
      else showTooMany(texts.length);
      status.say(cut ? `Done. ${cut === 1 ? "One line is" : `${cut} lines are`} longer than the model's context; the rest is ignored.` : "Done.");
      await this.search();
    } finally {
      document.body.classList.remove("burning");
      showStale(false);
    }
  }

  /** Rank the lines by the current query. A search that is running repeats until it has used the latest query. */
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
          if (query.trim() && !this.#page.isLoading && !this.#page.isWorking) status.remark("Press Compare first to search the lines.");
          continue;
        }
        const { texts, scores, known, knowsQuery, seconds } = await this.#page.runtime.call("search", { query });
        view.figures.show("Query", `${(1000 * seconds).toFixed(1)} ms`);
        page.results.dataset.empty = knowsQuery ? NO_RESULTS : "No word of the query is known to this model.";
        showResults(knowsQuery ? texts : [], scores, known);
      }
    } catch (error) {
      problems.show(error);
    } finally {
      this.#searching = false;
    }
  }
}

/** Mark the results as those of other lines than the ones being compared. @param {boolean} stale */
function showStale(stale) {
  for (const part of [page.results, page.similarity]) part.classList.toggle("stale", stale);
}

/** @param {boolean} shown */
function showSimilarityParts(shown) {
  for (const part of [page.heatmap, page.scale, page.asTable]) part.hidden = !shown;
  if (!shown) page.readout.textContent = page.readout.dataset.empty ?? "";
}

/** @param {Heatmap} heatmap @param {Similarities} similarities */
function showSimilarities(heatmap, similarities) {
  showSimilarityParts(true);
  heatmap.show(similarities);
  page.scaleStart.textContent = heatmap.scaleStart.toFixed(1);
  // A hundred lines have ten thousand cells, so the table is only filled when it is open.
  page.asTable.ontoggle = () => page.asTable.open && fillTable(page.table, similarities);
  if (page.asTable.open) fillTable(page.table, similarities);
}

/** Show no similarities, and why. @param {number} count  of the lines */
function showTooMany(count) {
  showSimilarityParts(false);
  page.readout.textContent = `${count} lines can be searched; up to ${MOST_COMPARED} are compared with each other.`;
}

/** @param {string[]} texts @param {Float32Array} scores @param {boolean[]} known  whether the model knows a word of each text */
function showResults(texts, scores, known) {
  const all = texts.map((_, i) => i).sort((a, b) => Number(known[b]) - Number(known[a]) || scores[b] - scores[a]);
  const order = all.slice(0, MOST_RESULTS);
  if (order.length < all.length) status.remark(`The ${MOST_RESULTS} most similar of ${all.length} lines are shown.`);
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
      number.textContent = known[i] ? scores[i].toFixed(3) : "–";
      const text = document.createElement("span");
      text.dir = "auto";
      text.textContent = texts[i];
      if (!known[i]) text.append(unknownNote());
      item.append(number, score, text);
      return item;
    }),
  );
}

function unknownNote() {
  const note = document.createElement("small");
  note.className = "hint unknown";
  note.textContent = "no word of this line is known";
  return note;
}

function readLines() {
  const lines = page.texts.value.split("\n").map((line) => line.trim());
  const texts = lines.filter(Boolean);
  if (texts.length) return texts;
  page.texts.focus();
  throw new Problem("NoLines", "There are no lines to compare.", "Write some, one text per line.");
}

/** Show a button for each model that needs no typing. @param {SentenceSearch} app */
async function showPresets(app) {
  /** @type {{ encoders: ServerModel[] }} */
  const { encoders } = await (await fetch(new URL("site.json", SITE))).json();
  page.presets.replaceChildren(
    noted(PACKAGED.name, PACKAGED.name, "built in", () => app.loadPackaged()),
    noted(LARGER.name, parseGguf(LARGER.file, LARGER.file).name, `${megabytes(LARGER.bytes)}, from the Hugging Face Hub; knows far more`, () => loadNamed(app, LARGER.file)),
    ...encoders.map(({ name, bytes, files }) => {
      const urls = Object.fromEntries(Object.entries(files).map(([path, url]) => [path, new URL(url, SITE).href]));
      return noted(name, name, `${megabytes(bytes)}, on this server`, () => app.load({ name, location: serverFiles(urls) }));
    }),
  );
  markPresets(page.presets, page.presets.dataset.model);
}

/** @param {string} name @param {string} model  its name when it is loaded @param {string} note @param {() => void} load */
function noted(name, model, note, load) {
  return preset(`${name}, ${note}`, model, load, `preset-${name}`);
}

/** Load the model of a name or an address that was typed. @param {SentenceSearch} app @param {string} text @throws {Problem} */
function loadNamed(app, text) {
  if (!GGUF.test(text.trim())) return app.load(parseModel(text, EXAMPLE_MODEL));
  const { name, find } = parseGguf(text, LARGER.file);
  app.loadGguf(name, find);
}

/** Load a GGUF file or a folder. @param {SentenceSearch} app @param {Map<string, File>} files */
function loadFiles(app, files) {
  const gguf = [...files.values()].find((file) => GGUF.test(file.name));
  if (gguf) return app.loadGguf(gguf.name, () => ({ file: gguf }));
  app.load({ name: folderName(files) ?? "the model", location: localFolder(files) });
}

/** @param {SentenceSearch} app */
function showExamples(app) {
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
      app.compare();
    };
    page.examples.append(button, " ");
    if (!page.texts.value) fill();
  }
}

/** @param {SentenceSearch} app */
function listen(app) {
  onSubmit(page.textsForm, () => app.compare());
  onCtrlEnter(page.texts, () => app.compare());
  page.query.oninput = () => app.search();
  page.stop.onclick = () => app.stop();
  const loadFolder = (/** @type {Map<string, File>} */ files) => loadFiles(app, files);
  listenForModels(
    { form: page.modelForm, name: page.modelId, files: [page.modelFolder, page.modelFiles], curtain: element("drop", HTMLElement) },
    { name: (text) => loadNamed(app, text), files: loadFolder, drop: loadFolder },
    problems,
  );
}

const app = new SentenceSearch();
listen(app);
showExamples(app);
const link = new ShareLink({ lines: page.texts, query: page.query }, { button: page.share, note: page.shareNote });
link.onOpen = () => app.search();
showSimilarityParts(false);
isolate();
app.loadPackaged();
app.compare();
await showPresets(app);
await view.downloads.refresh();
