import { isolate } from "../../web/isolation.js";
import { Kept } from "../../web/kept.js";
import { Latest } from "../../web/latest.js";
import { Figures, ProblemBox, ProgressBar, Status, aborted, element, megabytes, onDrop, readNumber } from "../../web/page.js";
import { Problem } from "../../web/protocol.js";
import { Runtime, SITE } from "../../web/tallow.js";
import { kindOf } from "./files.js";

/** @import { Loaded, Source, Started } from "../../web/protocol.js" */
/** @import { Kind } from "./files.js" */
/** @typedef {{ name: string, files: Record<string, Source> }} Choice  without files the model that comes with tallow */
/** @typedef {Choice & { size: string, origin: string, url: string }} Preset  `url` is what the browser may keep */

/** @type {Preset} */
const PACKAGED = { name: "stories", files: {}, size: "built in", origin: "trained by tallow", url: "" };

const page = {
  modelName: element("model-name", HTMLElement),
  presets: element("presets", HTMLElement),
  modelFile: element("model-file", HTMLInputElement),
  tokenizerFile: element("tokenizer-file", HTMLInputElement),
  addressForm: element("address-form", HTMLFormElement),
  modelUrl: element("model-url", HTMLInputElement),
  tokenizerUrl: element("tokenizer-url", HTMLInputElement),
  storyForm: element("story-form", HTMLFormElement),
  examples: element("examples", HTMLElement),
  prompt: element("prompt", HTMLTextAreaElement),
  stop: element("stop", HTMLButtonElement),
  output: element("output", HTMLElement),
  steps: element("steps", HTMLInputElement),
  temperature: element("temperature", HTMLInputElement),
  topP: element("top-p", HTMLInputElement),
  seed: element("seed", HTMLInputElement),
};
const status = new Status(element("status", HTMLElement));
const problems = new ProblemBox(element("error", HTMLElement));
const progress = new ProgressBar(element("progress", HTMLElement));
const downloads = new Kept(element("kept", HTMLElement), markKept);

/** Loads models and tells stories, one of each at a time. */
class Storyteller {
  #runtime = Runtime.create();
  /** @type {Promise<Started>} */
  #started;
  /** @type {{ name: string, description: string, context: number } | null}  the model in memory; one that cannot be loaded leaves it there */
  #current = null;
  /** @type {Choice}  what was last asked for, whatever became of it */
  #choice = PACKAGED;
  /** @type {Latest<boolean>}  whether the model can be used */
  #loading = new Latest();
  /** @type {Latest<void>} */
  #writing = new Latest();
  #numbers = new Numbers();

  constructor() {
    this.#started = this.#runtime.start(new URL("app.py", import.meta.url), { onProgress: (report) => progress.show(report) });
    this.#started.then(
      (started) => {
        this.#numbers.start(started);
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
    this.load(PACKAGED);
  }

  /** Load a model in place of the one that is loading or loaded. @param {Choice} choice */
  async load(choice) {
    this.#writing.stop();
    this.#choice = choice;
    problems.hide();
    await this.#beginLoading(choice);
  }

  /** @param {Choice} choice */
  async #beginLoading(choice) {
    status.say(`Loading ${choice.name}`);
    page.modelName.textContent = `Loading ${choice.name}`;
    markPreset(null);
    await this.#loading.begin((signal) => this.#load(choice, signal));
    if (this.#loading.busy) return; // another load has taken over the page
    progress.hide();
    page.modelName.textContent = this.#current?.description ?? "No model. Choose a model and its tokenizer.";
    markPreset(this.#current?.name ?? null);
    downloads.show();
  }

  /** @param {Choice} choice @param {AbortSignal} signal @returns {Promise<boolean>} whether it can be used */
  async #load({ name, files }, signal) {
    try {
      await Promise.race([this.#started, aborted(signal)]);
    } catch {
      return false; // when Python did not start, the page says so already
    }
    try {
      const loaded = await this.#runtime.load(files, { onProgress: (report) => progress.show(report), signal });
      const { layers, width, context, parameters } = loaded.info;
      const description = `${name}: ${count(parameters)} parameters, ${layers} layers of ${width}, context of ${context} tokens`;
      this.#current = { name, description, context };
      this.#numbers.load(loaded);
      status.say(["Ready.", loaded.notice ?? ""].join(" ").trim());
      return true;
    } catch (error) {
      if (!signal.aborted) {
        status.say(`${name} could not be loaded.`);
        problems.show(error);
      }
      return false;
    }
  }

  /** Write a story by the options as they are now, in place of the one that is being written. */
  async generate() {
    problems.hide();
    await this.#writing.begin((signal) => this.#tryToWrite(signal));
  }

  /** @param {AbortSignal} signal */
  async #tryToWrite(signal) {
    try {
      const options = readOptions();
      if (!this.#current && !this.#loading.busy) this.#beginLoading(this.#choice); // it was stopped, or failed
      let usable = true;
      if (this.#loading.busy) {
        status.say("The story starts when the model has loaded.");
        usable = Boolean(await Promise.race([this.#loading.done, aborted(signal)]));
      }
      if (!usable || !this.#current) return; // why not is on the page already
      const { context } = this.#current;
      const length = await this.#write(options, signal);
      const cut = options.steps > context && length >= context;
      status.say(cut ? `Done. The story ends at ${context} tokens of your ${options.steps}: that is the model's context.` : "Done.");
    } catch (error) {
      if (signal.aborted) return;
      status.say("No new story.");
      problems.show(error);
    }
  }

  /** @param {Record<string, unknown>} options @param {AbortSignal} signal @returns {Promise<number>} how many tokens there are */
  async #write(options, signal) {
    status.say("Writing");
    document.body.classList.add("burning");
    page.output.setAttribute("aria-busy", "true");
    page.output.classList.add("stale");
    const given = document.createElement("span");
    given.className = "given";
    const story = document.createTextNode("");
    let length = 0;
    try {
      for await (const { text, stats } of this.#runtime.generate(options, { signal })) {
        if (given.isConnected) story.appendData(text);
        else {
          given.textContent = text;
          page.output.classList.remove("stale");
          page.output.replaceChildren(given, story); // not before: options that Python refuses leave the last story there
        }
        length = stats.prompt_tokens + stats.tokens;
        this.#numbers.write(stats);
      }
      return length;
    } finally {
      document.body.classList.remove("burning");
      page.output.classList.remove("stale");
      page.output.removeAttribute("aria-busy");
    }
  }

  /** Stop whatever is loading or being written. */
  async stop() {
    const isLoading = this.#loading.busy;
    if (!isLoading && !this.#writing.busy) return status.remark("Nothing is running.");
    await Promise.all([this.#loading.stop(), this.#writing.stop()]);
    if (this.#loading.busy || this.#writing.busy) return; // something else has begun
    status.say(isLoading ? "Loading stopped." : "Stopped.");
  }
}

/** What the page measures: how fast the model writes, and where the time before went. */
class Numbers {
  #figures = new Figures(element("stats", HTMLElement), ["Speed", "Tokens", "Prompt", "Kernels", "Page to first word"]);

  /** @param {Started} started */
  start({ tallow, python, seconds }) {
    this.#figures.show("Start of Python", `${seconds.python.toFixed(1)} s`);
    this.#figures.show("Imports", `${seconds.import.toFixed(1)} s`);
    this.#figures.show("Page to Python", secondsSinceOpening());
    this.#figures.show("Versions", `tallow ${tallow}, Python ${python}`);
  }

  /** @param {Loaded} loaded */
  load({ info, bytes, seconds }) {
    this.#figures.show("Model load", `${seconds.toFixed(2)} s${bytes ? `, ${megabytes(bytes)}` : ""}`);
    this.#figures.show("Kernels", info.kernels);
  }

  /** @param {Record<string, number>} stats */
  write({ tokens, tokens_s, prompt_tokens, prompt_s }) {
    if (tokens && !this.#figures.has("Page to first word")) this.#figures.show("Page to first word", secondsSinceOpening());
    // The first token comes with the prompt; the rate is that of the others.
    if (tokens > 1 && tokens_s) this.#figures.show("Speed", `${Math.round((tokens - 1) / tokens_s)} tokens/s`);
    this.#figures.show("Tokens", `${tokens} after ${prompt_tokens} given`);
    if (tokens) this.#figures.show("Prompt", `${Math.round(prompt_s * 1000)} ms`);
  }

}

function secondsSinceOpening() {
  return `${(performance.now() / 1000).toFixed(1)} s`;
}

function readOptions() {
  return {
    prompt: page.prompt.value,
    steps: readNumber(page.steps, { whole: true }),
    temperature: readNumber(page.temperature),
    top_p: readNumber(page.topP, { above: 0 }),
    seed: readNumber(page.seed, { whole: true }),
  };
}

/** @param {number} n */
function count(n) {
  return n >= 1e6 ? `${(n / 1e6).toFixed(1)} million` : n.toLocaleString("en");
}

/** The model that is here already, those of the server this page comes from, and those of others. @returns {Promise<Preset[]>} */
async function findPresets() {
  const [site, own] = await Promise.all(
    [new URL("site.json", SITE), new URL("presets.json", import.meta.url)].map(async (url) => (await fetch(url)).json()),
  );
  /** @typedef {{ name: string, bytes: number, model: string, tokenizer: string }} Entry */
  /** @param {Entry} entry @param {string} origin @returns {Preset} */
  const preset = ({ name, bytes, model, tokenizer }, origin) => {
    const url = new URL(model, SITE).href;
    const files = { model: { url }, tokenizer: { url: new URL(tokenizer, SITE).href } };
    return { name, files, size: megabytes(bytes), origin, url };
  };
  return [
    PACKAGED,
    ...site.models.map((/** @type {Entry} */ entry) => preset(entry, "on this server")),
    ...own.map((/** @type {Entry} */ entry) => preset(entry, `from ${new URL(entry.model).host}`)),
  ];
}

/** @param {Preset[]} presets @param {Storyteller} storyteller */
function showPresets(presets, storyteller) {
  page.presets.replaceChildren(
    ...presets.map(({ name, files, size, origin, url }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.testid = `preset-${name}`;
      button.dataset.name = name;
      button.dataset.url = url;
      button.setAttribute("aria-pressed", "false");
      const weight = document.createElement("span");
      weight.className = "size";
      weight.textContent = size;
      const where = document.createElement("small");
      where.textContent = origin;
      where.dataset.origin = origin;
      button.append(name, weight, where);
      button.onclick = () => {
        clearFiles();
        storyteller.load({ name, files });
      };
      const item = document.createElement("li");
      item.append(button);
      return item;
    }),
  );
}

/** @param {string | null} name */
function markPreset(name) {
  for (const button of page.presets.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.name === name));
  }
}

/** @param {Set<string>} urls  that the browser keeps */
function markKept(urls) {
  for (const button of page.presets.querySelectorAll("button")) {
    const where = button.querySelector("small");
    if (where) where.textContent = urls.has(button.dataset.url ?? "") ? "kept in this browser" : (where.dataset.origin ?? "");
  }
}

function clearFiles() {
  page.modelFile.value = "";
  page.tokenizerFile.value = "";
}

/** Load the two chosen files, or say which is missing. @param {Storyteller} storyteller */
function loadFiles(storyteller) {
  const model = page.modelFile.files?.[0];
  const tokenizer = page.tokenizerFile.files?.[0];
  if (model && tokenizer) storyteller.load({ name: model.name, files: { model: { file: model }, tokenizer: { file: tokenizer } } });
  else if (model) status.say("Now choose the model's tokenizer.");
  else if (tokenizer) status.say("Now choose the model.");
}

/** @param {Storyteller} storyteller */
function loadAddresses(storyteller) {
  problems.hide();
  /** @param {HTMLInputElement} input @param {string} name */
  const address = (input, name) => {
    const text = input.value.trim();
    if (!/^https?:/.test(text) || !URL.canParse(text)) {
      input.focus();
      throw new Problem("BadAddress", `"${text}" is no address of a ${name}.`, "It begins with https://");
    }
    return new URL(text).href;
  };
  try {
    const model = address(page.modelUrl, "model");
    const tokenizer = address(page.tokenizerUrl, "tokenizer");
    clearFiles();
    storyteller.load({ name: model.split("/").pop() || model, files: { model: { url: model }, tokenizer: { url: tokenizer } } });
  } catch (error) {
    problems.show(error);
  }
}

/** Take dropped files as if they had been chosen, each in its place. @param {File[]} dropped @param {Storyteller} storyteller */
async function takeDrop(dropped, storyteller) {
  /** @type {Map<Kind, File>} */
  const files = new Map();
  for (const file of dropped) {
    /** @type {Kind} */
    let kind;
    try {
      kind = await kindOf(file);
    } catch (error) {
      return problems.show(new Problem("ReadError", `${file.name} could not be read: ${error}`, "Drop files, not folders."));
    }
    const other = files.get(kind);
    if (other) return problems.show(new Problem("TwoOfAKind", `${other.name} and ${file.name} are each a ${kind}.`, "Drop one model and one tokenizer."));
    files.set(kind, file);
  }
  problems.hide();
  for (const [kind, file] of files) {
    const alone = new DataTransfer();
    alone.items.add(file);
    (kind === "model" ? page.modelFile : page.tokenizerFile).files = alone.files;
  }
  loadFiles(storyteller);
}

/** @param {Storyteller} storyteller */
function listen(storyteller) {
  page.storyForm.onsubmit = (event) => {
    event.preventDefault();
    storyteller.generate();
  };
  page.prompt.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) storyteller.generate();
  };
  for (const button of page.examples.querySelectorAll("button")) {
    button.onclick = () => {
      page.prompt.value = button.textContent ?? "";
      storyteller.generate();
    };
  }
  page.stop.onclick = () => storyteller.stop();
  for (const input of [page.modelFile, page.tokenizerFile]) {
    input.onchange = () => loadFiles(storyteller);
    input.onclick = () => (input.value = ""); // else choosing the same file again, mended perhaps, would be no change
  }
  page.addressForm.onsubmit = (event) => {
    event.preventDefault();
    loadAddresses(storyteller);
  };
  onDrop(element("drop", HTMLElement), (files) => takeDrop(files, storyteller));
}

const storyteller = new Storyteller();
listen(storyteller);
loadFiles(storyteller); // browsers keep the files of a form over a reload
isolate();
showPresets(await findPresets(), storyteller);
await downloads.show();
