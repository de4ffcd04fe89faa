import { isolate } from "../../web/page/isolation.js";
import { LatestTask } from "../../web/page/latest-task.js";
import { parseGguf } from "../../web/page/model-files.js";
import { ModelPage } from "../../web/page/model-page.js";
import { Figures, copyText, element, megabytes, onCtrlEnter, onDrop, onSubmit, pageView, readNumber } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { readSeed, sharedSeed } from "../../web/page/seed.js";
import { ShareLink } from "../../web/page/share.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";
import { SITE } from "../../web/page/site.js";
import { kindOf } from "./files.js";

/** @import { ModelChoice, ModelView } from "../../web/page/model-page.js" */
/** @import { Started } from "../../web/worker/protocol.js" */
/** @import { Kind } from "./files.js" */
/** @typedef {{ name: string, description: string, context: number }} Model */
/** @typedef {ModelChoice & { size: string, origin: string, url: string }} Preset  `url` is the address of its weights */

const EXAMPLE_GGUF = "Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf";
const ADDRESS_HINT = "Addresses begin with https://. A model without a tokenizer is a GGUF file.";

/** The model that comes with tallow. @type {Preset} */
const PACKAGED = { name: "stories", files: async () => ({}), size: "built in", origin: "trained by tallow", url: "" };

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
  told: element("told", HTMLElement),
  usedSeed: element("used-seed", HTMLElement),
  copy: element("copy", HTMLButtonElement),
  steps: element("steps", HTMLInputElement),
  temperature: element("temperature", HTMLInputElement),
  topP: element("top-p", HTMLInputElement),
  seed: element("seed", HTMLInputElement),
  share: element("share", HTMLButtonElement),
  shareNote: element("share-note", HTMLElement),
};
/** @type {ModelView} */
const view = {
  ...pageView(),
  stop: page.stop,
  modelName: page.modelName,
  noModel: "No model. Choose one.",
  figures: new Figures(element("stats", HTMLElement), ["Speed", "Tokens", "Prompt", "Kernels", "Threads", "Page to first word"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement), markStored),
};
const { status, problems } = view;

/** Loads models and writes stories, one of each at a time. */
class Storyteller {
  #numbers = new Numbers(view.figures);
  /** @type {ModelPage<ModelChoice, Model>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url), parts: ["stories"], libraries: ["huggingface_tokenizers"] }, {
    onStart: (started) => this.#numbers.start(started),
    onLoad: ({ name }, { info }) => {
      const { layers, width, context, parameters } = info;
      const description = `${name}: ${count(parameters)} parameters, ${layers} layers of ${width}, context of ${context} tokens`;
      return { name, description, context };
    },
    onModel: (model) => markPreset(model?.name ?? null),
  });

  #stops = 0; // how often Stop was pressed

  constructor() {
    this.load(PACKAGED);
  }

  /** Load a model in place of the one that is loading or loaded. @param {ModelChoice} choice */
  load(choice) {
    this.#page.load(choice);
  }

  /** Write a story with the current options, in place of the one that is being written. */
  async generate() {
    const stops = this.#stops;
    await choosing.result; // may load a model, which would stop the story
    if (stops !== this.#stops) return; // Stop was pressed meanwhile
    this.#page.work((signal) => this.#generate(signal), { failed: "No new story." });
  }

  /** Stop loading and writing. */
  stop() {
    this.#stops++;
    this.#page.stop();
  }

  /** @param {AbortSignal} signal */
  async #generate(signal) {
    const options = readOptions();
    const usable = await this.#page.ready("The story starts when the model has loaded.", signal);
    if (!usable || !this.#page.model) return; // the page says why
    const { context } = this.#page.model;
    const length = await this.#write(options, signal);
    const isCut = options.steps > context && length >= context;
    status.say(isCut ? `Done. The story ends at ${context} tokens of your ${options.steps}: that is the model's context.` : "Done.");
  }

  /** @param {ReturnType<typeof readOptions>} options @param {AbortSignal} signal @returns {Promise<number>}  the tokens of the prompt and the story */
  async #write(options, signal) {
    status.say("Writing");
    document.body.classList.add("burning");
    page.output.setAttribute("aria-busy", "true");
    page.output.classList.add("stale");
    const prompt = document.createElement("span");
    prompt.className = "given";
    const story = document.createTextNode("");
    let length = 0;
    try {
      for await (const { text, stats } of this.#page.runtime.generate(options, { signal })) {
        if (prompt.isConnected) story.appendData(text);
        else {
          // Only now: if Python rejects the options, the last story stays.
          prompt.textContent = text;
          page.output.classList.remove("stale");
          page.output.replaceChildren(prompt, story);
          showSeed(options.seed);
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
}

/** The measurements of the page: the speed of the model, and how long everything before took. */
class Numbers {
  #figures;

  /** @param {Figures} figures */
  constructor(figures) {
    this.#figures = figures;
  }

  /** @param {Started} started */
  start({ tallow, python, seconds }) {
    this.#figures.show("Start of Python", `${seconds.python.toFixed(1)} s`);
    this.#figures.show("Imports", `${seconds.import.toFixed(1)} s`);
    this.#figures.show("Page to Python", secondsSinceOpening());
    this.#figures.show("Versions", `tallow ${tallow}, Python ${python}`);
  }

  /** @param {Record<string, number>} stats */
  write({ tokens, tokens_per_s, prompt_tokens, prompt_s }) {
    if (tokens && !this.#figures.has("Page to first word")) this.#figures.show("Page to first word", secondsSinceOpening());
    if (tokens_per_s) this.#figures.show("Speed", `${Math.round(tokens_per_s)} tokens/s`);
    this.#figures.show("Tokens", `${tokens} after a prompt of ${prompt_tokens}`);
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
    seed: readSeed(page.seed),
  };
}

/** Show the seed of the story that begins. @param {number} seed */
function showSeed(seed) {
  page.told.hidden = false;
  page.usedSeed.dataset.seed = String(seed);
  page.usedSeed.textContent = `Seed ${seed}`;
}

/** @param {number} n */
function count(n) {
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)} million`;
  return String(n).replace(/\B(?=(\d{3})+$)/g, ","); // toLocaleString takes 25 ms for its first number
}

/** The packaged model, the models of this server, and models of other servers. @returns {Promise<Preset[]>} */
async function findPresets() {
  const [site, own] = await Promise.all(
    [new URL("site.json", SITE), new URL("presets.json", import.meta.url)].map(async (url) => (await fetch(url)).json()),
  );
  /** @typedef {{ name: string, bytes: number, model: string, tokenizer: string }} Entry */
  /** @param {Entry} entry @param {string} origin @returns {Preset} */
  const preset = ({ name, bytes, model, tokenizer }, origin) => {
    const url = new URL(model, SITE).href;
    const files = { model: { url }, tokenizer: { url: new URL(tokenizer, SITE).href } };
    return { name, files: async () => files, size: megabytes(bytes), origin, url };
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
      const sizeLabel = document.createElement("span");
      sizeLabel.className = "size";
      sizeLabel.textContent = size;
      const originLabel = document.createElement("small");
      originLabel.textContent = origin;
      originLabel.dataset.origin = origin;
      button.append(name, sizeLabel, originLabel);
      button.onclick = () => {
        clearChosenFiles();
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

/** @param {Set<string>} urls  the downloads that the browser stores */
function markStored(urls) {
  for (const button of page.presets.querySelectorAll("button")) {
    const originLabel = button.querySelector("small");
    if (originLabel) originLabel.textContent = urls.has(button.dataset.url ?? "") ? "kept in this browser" : (originLabel.dataset.origin ?? "");
  }
}

/** Looks at the files that were chosen last. @type {LatestTask<void>} */
const choosing = new LatestTask();

function clearChosenFiles() {
  choosing.stop();
  page.modelFile.value = "";
  page.tokenizerFile.value = "";
}

/** Load the chosen GGUF file, or both files of a llama2.c model, or say which one is missing. @param {Storyteller} storyteller */
function loadChosenFiles(storyteller) {
  choosing.run((signal) => tryToLoadChosenFiles(storyteller, signal));
}

/** @param {Storyteller} storyteller @param {AbortSignal} signal */
async function tryToLoadChosenFiles(storyteller, signal) {
  const model = page.modelFile.files?.[0];
  const tokenizer = page.tokenizerFile.files?.[0];
  if (model || tokenizer) problems.hide(); // it is about what was chosen before
  const kind = model && (await kindOf(model).catch(() => undefined)); // loading it reports a file that cannot be read
  if (signal.aborted) return; // chosen anew meanwhile
  if (model && kind === "GGUF file") {
    page.tokenizerFile.value = "";
    storyteller.load({ name: model.name, files: async () => ({ "GGUF file": { file: model } }) });
  } else if (model && tokenizer) {
    const files = { model: { file: model }, tokenizer: { file: tokenizer } };
    storyteller.load({ name: model.name, files: async () => files });
  } else if (model && kind === null) problems.show(unknownFile(model));
  else if (model) status.say("Now choose the model's tokenizer.");
  else if (tokenizer) status.say("Now choose the model.");
}

/** @param {File} file */
function unknownFile({ name }) {
  return new Problem("UnknownFile", `${name} is neither a GGUF file nor a model or tokenizer of llama2.c.`, "Choose a GGUF file of a language model, or a llama2.c checkpoint and its tokenizer.");
}

/** Load a GGUF file, or the model and the tokenizer of llama2.c, from addresses. @param {Storyteller} storyteller */
function loadAddresses(storyteller) {
  problems.hide();
  /** @param {HTMLInputElement} input @param {string} name */
  const address = (input, name) => {
    const text = input.value.trim();
    if (!/^https?:/.test(text) || !URL.canParse(text)) {
      input.focus();
      throw new Problem("BadAddress", `"${text}" is not the address of a ${name}.`, ADDRESS_HINT);
    }
    return new URL(text).href;
  };
  try {
    if (!page.tokenizerUrl.value.trim()) {
      const { name, find } = parseGguf(page.modelUrl.value, EXAMPLE_GGUF);
      clearChosenFiles();
      storyteller.load({ name, files: async (signal) => ({ "GGUF file": await find(signal) }) });
      return;
    }
    const model = address(page.modelUrl, "model");
    const tokenizer = address(page.tokenizerUrl, "tokenizer");
    clearChosenFiles();
    const files = { model: { url: model }, tokenizer: { url: tokenizer } };
    storyteller.load({ name: model.split("/").pop() || model, files: async () => files });
  } catch (error) {
    problems.show(error);
  }
}

/** Put each dropped file into the field of its kind, then load them. @param {File[]} dropped @param {Storyteller} storyteller */
async function takeDrop(dropped, storyteller) {
  /** @type {Map<"model" | "tokenizer", File>} */
  const files = new Map();
  for (const file of dropped) {
    /** @type {Kind | null} */
    let kind;
    try {
      kind = await kindOf(file);
    } catch (error) {
      return problems.show(new Problem("ReadError", `${file.name} could not be read: ${error}`, "Drop files, not folders."));
    }
    if (!kind) return problems.show(unknownFile(file));
    const role = kind === "tokenizer" ? kind : "model";
    const other = files.get(role);
    if (other) return problems.show(new Problem("TwoOfAKind", `${other.name} and ${file.name} are both a ${role}.`, "Drop one GGUF file, or one model and its tokenizer."));
    files.set(role, file);
  }
  problems.hide();
  for (const [role, file] of files) {
    const transfer = new DataTransfer(); // the only way to make a FileList
    transfer.items.add(file);
    (role === "model" ? page.modelFile : page.tokenizerFile).files = transfer.files;
  }
  loadChosenFiles(storyteller);
}

/** @param {Storyteller} storyteller */
function listen(storyteller) {
  onSubmit(page.storyForm, () => storyteller.generate());
  onCtrlEnter(page.prompt, () => storyteller.generate());
  for (const button of page.examples.querySelectorAll("button")) {
    button.onclick = () => {
      page.prompt.value = button.textContent ?? "";
      storyteller.generate();
    };
  }
  page.stop.onclick = () => storyteller.stop();
  page.copy.onclick = () => copyText(page.output.textContent ?? "", status, "The story was copied.");
  for (const input of [page.modelFile, page.tokenizerFile]) {
    input.onchange = () => loadChosenFiles(storyteller);
    input.onclick = () => (input.value = ""); // otherwise, choosing the same file again would not be a change
  }
  onSubmit(page.addressForm, () => loadAddresses(storyteller));
  onDrop(element("drop", HTMLElement), (files) => takeDrop(files, storyteller));
}

const { prompt, steps, temperature, topP, seed } = page;
const shownSeed = () => page.usedSeed.dataset.seed ?? "";
new ShareLink({ prompt, steps, temperature, top_p: topP, seed: sharedSeed(seed, shownSeed) }, { button: page.share, note: page.shareNote });
const storyteller = new Storyteller();
listen(storyteller);
loadChosenFiles(storyteller); // browsers keep the files of a form when the page reloads
isolate();
showPresets(await findPresets(), storyteller);
await view.downloads.refresh();
