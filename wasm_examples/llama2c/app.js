import { kept, clear } from "../../web/cache.js";
import { isolate } from "../../web/isolation.js";
import { Problem } from "../../web/protocol.js";
import { Runtime, SITE } from "../../web/tallow.js";
import { kindOf } from "./files.js";

/** @import { Loaded, Progress, Source, Started } from "../../web/protocol.js" */
/** @typedef {{ name: string, bytes: number, model: string, tokenizer: string, origin: string }} Preset */
/** @typedef {{ name: string, model: Source, tokenizer: Source }} Choice */

/** @template {HTMLElement} T @param {string} id @param {{ new (): T }} type @returns {T} */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`#${id} is missing`);
  return found;
}

const page = {
  modelName: element("model-name", HTMLElement),
  progress: element("progress", HTMLElement),
  progressBar: element("progress-bar", HTMLProgressElement),
  progressText: element("progress-text", HTMLElement),
  presets: element("presets", HTMLElement),
  modelFile: element("model-file", HTMLInputElement),
  tokenizerFile: element("tokenizer-file", HTMLInputElement),
  addressForm: element("address-form", HTMLFormElement),
  modelUrl: element("model-url", HTMLInputElement),
  tokenizerUrl: element("tokenizer-url", HTMLInputElement),
  kept: element("kept", HTMLElement),
  keptText: element("kept-text", HTMLElement),
  forget: element("forget", HTMLButtonElement),
  storyForm: element("story-form", HTMLFormElement),
  prompt: element("prompt", HTMLTextAreaElement),
  stop: element("stop", HTMLButtonElement),
  status: element("status", HTMLElement),
  error: element("error", HTMLElement),
  output: element("output", HTMLElement),
  steps: element("steps", HTMLInputElement),
  temperature: element("temperature", HTMLInputElement),
  topP: element("top-p", HTMLInputElement),
  seed: element("seed", HTMLInputElement),
  stats: element("stats", HTMLElement),
  drop: element("drop", HTMLElement),
};

/** One job at a time on the model; a new one ends the one before. */
class Storyteller {
  #runtime = Runtime.create();
  /** @type {Promise<Started>} */
  #started;
  /** @type {Promise<boolean> | null}  whether the model that is loading, or was loaded last, can be used */
  #model = null;
  #loading = new AbortController();
  /** @type {AbortController | null} */
  #writing = null;
  #numbers = new Numbers();

  constructor() {
    this.#started = this.#runtime.start(new URL("app.py", import.meta.url), { onProgress: showProgress });
    this.#started.then(
      (started) => {
        this.#numbers.start(started);
        if (!this.#model) {
          hideProgress();
          say("Python is ready. Choose a model.");
        }
      },
      (error) => {
        hideProgress();
        say("Python is not running.");
        show(error, { label: "Try again", action: () => location.reload() });
      },
    );
  }

  /** @param {Choice} choice */
  load(choice) {
    this.#loading.abort();
    this.#writing?.abort();
    this.#loading = new AbortController();
    this.#model = this.#load(choice, this.#loading.signal);
  }

  /** @param {Choice} choice @param {AbortSignal} signal @returns {Promise<boolean>} */
  async #load({ name, model, tokenizer }, signal) {
    hide(page.error);
    say(`Loading ${name}`);
    page.modelName.textContent = `Loading ${name}`;
    markPreset(null);
    try {
      await this.#started;
      const loaded = await this.#runtime.load({ model, tokenizer }, { onProgress: showProgress, signal });
      this.#numbers.load(loaded);
      const { layers, width, context, parameters } = loaded.info;
      page.modelName.textContent =
        `${name}: ${count(parameters)} parameters, ${layers} layers of ${width}, context of ${context} tokens`;
      markPreset(name);
      say(loaded.notice ?? "Ready.");
      return true;
    } catch (error) {
      if (signal.aborted && this.#loading.signal !== signal) return false; // another load has taken over the page
      page.modelName.textContent = "None. Choose a model and its tokenizer.";
      if (signal.aborted) say("Loading stopped.");
      else if (await this.#started.catch(() => null)) {
        say(`${name} could not be loaded.`);
        show(error);
      }
      return false;
    } finally {
      if (this.#loading.signal === signal) hideProgress();
      await showKept();
    }
  }

  /** Write a story; does nothing while one is being written. */
  async generate() {
    if (this.#writing) return say("The story is being written; stop it first to begin another.");
    hide(page.error);
    const controller = new AbortController();
    this.#writing = controller;
    try {
      const options = readOptions();
      if (!this.#model) throw new Problem("NothingLoaded", "There is no model yet.", "Choose a model and its tokenizer first.");
      page.output.replaceChildren();
      say("The story begins when the model is loaded.");
      const usable = await Promise.race([this.#model, aborted(controller.signal)]);
      if (!usable) return; // why not is on the page already
      await this.#write(options, controller.signal);
      say("Done.");
    } catch (error) {
      if (controller.signal.aborted) say("Stopped.");
      else {
        say("No story.");
        show(error);
      }
    } finally {
      this.#writing = null;
    }
  }

  /** @param {Record<string, unknown>} options @param {AbortSignal} signal */
  async #write(options, signal) {
    say("Writing");
    document.body.classList.add("burning");
    page.output.setAttribute("aria-busy", "true");
    const given = document.createElement("span");
    given.className = "given";
    const story = document.createTextNode("");
    page.output.replaceChildren(given, story);
    let first = true;
    try {
      for await (const { text, stats } of this.#runtime.generate(options, { signal })) {
        if (first) given.textContent = text;
        else story.appendData(text);
        first = false;
        this.#numbers.write(stats);
      }
    } finally {
      document.body.classList.remove("burning");
      page.output.removeAttribute("aria-busy");
    }
  }

  stop() {
    if (this.#writing) this.#writing.abort();
    else if (!page.progress.hidden && this.#model) this.#loading.abort();
    else say("Nothing is running.");
  }
}

/** What the page measures: where the time goes, and how fast the model writes. */
class Numbers {
  /** @type {Map<string, string>} */
  #rows = new Map();
  #firstWordShown = false;

  /** @param {Started} started */
  start({ tallow, python, seconds }) {
    const parts = Object.entries(seconds).map(([name, value]) => `${name} ${value.toFixed(1)}`);
    this.#set("Page to Python", `${(performance.now() / 1000).toFixed(1)} s`);
    this.#set("of which", parts.join(", "));
    this.#set("Versions", `tallow ${tallow}, Python ${python}`);
  }

  /** @param {Loaded} loaded */
  load({ info, bytes, seconds }) {
    this.#set("Model load", `${seconds.toFixed(2)} s, ${megabytes(bytes)}`);
    this.#set("Kernels", info.kernels);
  }

  /** @param {Record<string, number>} stats */
  write({ tokens, tokens_s, prompt_tokens, prompt_s }) {
    if (tokens && !this.#firstWordShown) {
      this.#firstWordShown = true;
      this.#set("Page to first word", `${(performance.now() / 1000).toFixed(1)} s`);
    }
    // The first token comes with the prompt; the rate is that of the others.
    if (tokens > 1 && tokens_s) this.#set("Speed", `${Math.round((tokens - 1) / tokens_s)} tokens/s`);
    this.#set("Tokens", `${tokens} after ${prompt_tokens} of the prompt`);
    if (tokens) this.#set("Prompt", `${Math.round(prompt_s * 1000)} ms`);
  }

  /** @param {string} name @param {string} value */
  #set(name, value) {
    this.#rows.set(name, value);
    page.stats.replaceChildren(
      ...[...this.#rows].flatMap(([term, text]) => {
        const dt = document.createElement("dt");
        const dd = document.createElement("dd");
        dt.textContent = term;
        dd.textContent = text;
        return [dt, dd];
      }),
    );
  }
}

/** The form, checked as far as a number is a number; Python checks what the numbers mean. */
function readOptions() {
  /** @param {HTMLInputElement} input @param {string} name @param {boolean} whole */
  const number = (input, name, whole) => {
    const value = input.valueAsNumber;
    if (Number.isNaN(value) || (whole && !Number.isSafeInteger(value))) {
      input.focus();
      throw new Problem("BadNumber", `${name} is not a ${whole ? "whole " : ""}number.`, `Write one, such as ${input.defaultValue}.`);
    }
    return value;
  };
  return {
    prompt: page.prompt.value,
    steps: number(page.steps, "Steps", true),
    temperature: number(page.temperature, "Temperature", false),
    top_p: number(page.topP, "Top-p", false),
    seed: number(page.seed, "Seed", true),
  };
}

/** @param {AbortSignal} signal @returns {Promise<never>} */
function aborted(signal) {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

/** @param {string} text */
function say(text) {
  page.status.textContent = text;
}

/** @param {HTMLElement} shown */
function hide(shown) {
  shown.hidden = true;
  shown.replaceChildren();
}

/** @param {unknown} error @param {{ label: string, action: () => void }} [remedy] */
function show(error, remedy) {
  console.error(error, error instanceof Problem ? (error.details ?? "") : "");
  const problem = document.createElement("p");
  problem.textContent = error instanceof Error ? error.message : String(error);
  page.error.replaceChildren(problem);
  if (error instanceof Problem && error.mend) {
    const mend = document.createElement("p");
    mend.className = "mend";
    mend.textContent = error.mend[0].toUpperCase() + error.mend.slice(1);
    page.error.append(mend);
  }
  if (remedy) {
    const button = document.createElement("button");
    button.textContent = remedy.label;
    button.onclick = remedy.action;
    page.error.append(button);
  }
  page.error.hidden = false;
}

/** @param {Progress} progress */
function showProgress({ stage, name, loaded, total }) {
  const what = {
    python: name,
    download: `Downloading the ${name}`,
    cache: `Reading the ${name} from this browser's copy`,
    file: `Reading the ${name}`,
    model: "Building the model",
  }[stage];
  page.progress.hidden = false;
  if (total) {
    page.progressBar.max = total;
    page.progressBar.value = loaded;
  } else page.progressBar.removeAttribute("value");
  const amount = total ? `${megabytes(loaded, "")} of ${megabytes(total)}` : loaded ? megabytes(loaded) : "";
  page.progressText.textContent = `${what} ${amount}`.trim();
  if (stage === "python") say(what);
}

function hideProgress() {
  page.progress.hidden = true;
}

/** @param {number} bytes */
function megabytes(bytes, unit = " MB") {
  return (bytes / 1e6).toFixed(1) + unit;
}

/** @param {number} n */
function count(n) {
  return n >= 1e6 ? `${(n / 1e6).toFixed(1)} million` : n.toLocaleString("en");
}

/** Presets of the project, after those of the server this page comes from. @returns {Promise<Preset[]>} */
async function findPresets() {
  const [site, own] = await Promise.all(
    [new URL("site.json", SITE), new URL("presets.json", import.meta.url)].map(async (url) => (await fetch(url)).json()),
  );
  /** @param {Omit<Preset, "origin">} preset @param {string} origin */
  const placed = (preset, origin) => ({
    ...preset,
    model: new URL(preset.model, SITE).href,
    tokenizer: new URL(preset.tokenizer, SITE).href,
    origin,
  });
  return [
    ...site.models.map((/** @type {Preset} */ preset) => placed(preset, "on this server")),
    ...own.map((/** @type {Preset} */ preset) => placed(preset, `from ${new URL(preset.model).host}`)),
  ];
}

/** @param {Preset[]} presets @param {Storyteller} storyteller */
function showPresets(presets, storyteller) {
  page.presets.replaceChildren(
    ...presets.map(({ name, bytes, model, tokenizer, origin }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.testid = `preset-${name}`;
      button.dataset.name = name;
      button.dataset.url = model;
      button.setAttribute("aria-pressed", "false");
      const size = document.createElement("span");
      size.className = "size";
      size.textContent = megabytes(bytes);
      const where = document.createElement("small");
      where.textContent = origin;
      where.dataset.origin = origin;
      button.append(name, size, where);
      button.onclick = () => {
        clearFiles();
        storyteller.load({ name, model: { url: model }, tokenizer: { url: tokenizer } });
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

/** Which downloads the browser keeps. */
async function showKept() {
  const urls = await kept();
  page.kept.hidden = urls.size === 0;
  page.keptText.textContent = `${urls.size} ${urls.size === 1 ? "download is" : "downloads are"} kept in this browser.`;
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
  if (model && tokenizer) storyteller.load({ name: model.name, model: { file: model }, tokenizer: { file: tokenizer } });
  else if (model) say("Now choose the model's tokenizer.");
  else if (tokenizer) say("Now choose the model.");
}

/** @param {Storyteller} storyteller */
function loadAddresses(storyteller) {
  hide(page.error);
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
    storyteller.load({ name: model.split("/").pop() || model, model: { url: model }, tokenizer: { url: tokenizer } });
  } catch (error) {
    show(error);
  }
}

/** Take dropped files as if they had been chosen, each in its place. @param {DataTransfer} dropped @param {Storyteller} storyteller */
async function takeDrop(dropped, storyteller) {
  for (const file of [...dropped.files]) {
    const alone = new DataTransfer();
    alone.items.add(file);
    try {
      const input = (await kindOf(file)) === "model" ? page.modelFile : page.tokenizerFile;
      input.files = alone.files;
    } catch (error) {
      return show(new Problem("ReadError", `${file.name} could not be read: ${error}`, "Drop files, not folders."));
    }
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
  page.stop.onclick = () => storyteller.stop();
  page.modelFile.onchange = page.tokenizerFile.onchange = () => loadFiles(storyteller);
  page.addressForm.onsubmit = (event) => {
    event.preventDefault();
    loadAddresses(storyteller);
  };
  page.forget.onclick = async () => {
    await clear();
    await showKept();
  };
  addEventListener("dragover", (event) => {
    event.preventDefault();
    page.drop.hidden = !event.dataTransfer?.types.includes("Files");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) page.drop.hidden = true; // it left the window, not an element in it
  });
  addEventListener("drop", (event) => {
    event.preventDefault();
    page.drop.hidden = true;
    if (event.dataTransfer?.files.length) takeDrop(event.dataTransfer, storyteller);
  });
}

if (!(await isolate())) {
  const storyteller = new Storyteller();
  listen(storyteller);
  loadFiles(storyteller); // browsers keep the files of a form over a reload
  showPresets(await findPresets(), storyteller);
  await showKept();
}
