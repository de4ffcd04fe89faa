/** The text tab: a language model learns a text, and its samples improve. Loaded when the tab is opened first. */

import { Figures, ProgressBar, ProblemBox, Status, copyText, element, expectAnswer, onSubmit, readNumber, save } from "../../web/page/page.js";
import { CurrentRun } from "./current-run.js";
import { LossCurve } from "./curve.js";
import { keep, kept } from "./kept.js";
import { textFields } from "./text-fields.js";
import { readText } from "./text-file.js";
import { TextSamples } from "./text-samples.js";

/** @import { Started } from "../../web/worker/protocol.js" */
/** @import { Runtime } from "../../web/page/tallow.js" */

const SLICE_S = 1 / 20;
const SAMPLE = { length: 120, temperature: 0.8, seed: 1 };
// In a folder of their own, so that the snapshot of all pages is without what they import.
const MODULES = ["recipes.py", "words_script.py", "words.py"];
const FIGURES = ["Steps", "Loss", "Test: loss", "Speed", "Parameters", "Trained", "Vocabulary"];
const DEFAULTS = /** @type {const} */ ({
  new: { file: "stories.txt", lr: "0.003", batch: "8" },
  lora: { file: "pirates.txt", lr: "0.002", batch: "4" },
});

const page = {
  text: element("text", HTMLTextAreaElement),
  hint: element("text-hint", HTMLElement),
  file: element("text-file", HTMLInputElement),
  weights: element("text-import", HTMLInputElement),
  output: element("text-output", HTMLElement),
  code: element("text-code", HTMLElement),
};

export class TextTab {
  #runtime;
  #started;
  view = {
    status: new Status(element("text-status", HTMLElement)),
    problems: new ProblemBox(element("text-error", HTMLElement)),
    progress: new ProgressBar(element("text-progress", HTMLElement)),
  };
  #figures = new Figures(element("text-stats", HTMLElement), FIGURES);
  #curve = new LossCurve(element("text-curve", HTMLCanvasElement));
  #samples = new TextSamples(element("text-samples", HTMLElement));
  #training = new CurrentRun(element("text-pause", HTMLButtonElement));
  #ended = Promise.resolve();
  #steps = 0;
  #hasModel = false;
  #hasOwnText = false;

  /** @param {Runtime} runtime @param {Promise<Started>} started  when Python runs */
  constructor(runtime, started) {
    this.#runtime = runtime;
    this.#started = this.#prepare(started);
    this.#started.then(
      () => this.#training.run || this.view.status.say("Ready. Press Train."),
      (error) => {
        this.view.status.say("The text tab could not be loaded.");
        this.view.problems.show(error, { label: "Try again", action: () => location.reload() });
      },
    );
    this.#listen();
    this.#suit();
    const former = kept("text");
    if (former === null) this.useExample();
    else this.#take(former);
  }

  /** Import the Python of this tab. @param {Promise<Started>} started */
  async #prepare(started) {
    const sources = await Promise.all(MODULES.map((name) => fetchText(new URL(`text/${name}`, import.meta.url))));
    await started;
    await this.#runtime.call("open_words", { sources: Object.fromEntries(MODULES.map((name, i) => [name, sources[i]])) });
  }

  #listen() {
    const press = (/** @type {string} */ id, /** @type {() => void} */ action) => (element(id, HTMLButtonElement).onclick = action);
    press("text-train", () => this.train());
    press("text-pause", () => this.pause());
    press("text-reset", () => this.reset());
    press("text-example", () => this.useExample());
    press("text-export", () => this.export());
    press("text-copy", () => this.copy());
    onSubmit(element("text-settings", HTMLFormElement), () => {}); // Train reads the fields
    onSubmit(element("text-ask", HTMLFormElement), () => this.generate());
    textFields.task.onchange = () => this.#suit(true);
    page.text.oninput = () => {
      this.#hasOwnText = true;
      this.#count();
    };
    page.file.onchange = () => page.file.files?.[0] && this.takeFile(page.file.files[0]);
    page.weights.onchange = () => page.weights.files?.[0] && this.import(page.weights.files[0]);
    for (const input of [page.file, page.weights]) input.onclick = () => (input.value = "");
    addEventListener("pagehide", () => keep("text", this.#hasOwnText ? page.text.value : null));
  }

  /** Show the settings that the task has. @param {boolean} [isChosen]  by the user, so that the task's own rates and example apply */
  #suit(isChosen = false) {
    const { value } = textFields.task;
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-task]"))) part.hidden = part.dataset.task !== value;
    if (!isChosen) return;
    const { lr, batch } = DEFAULTS[/** @type {"new" | "lora"} */ (value)];
    textFields.lr.value = lr;
    textFields.batch.value = batch;
    if (!this.#hasOwnText) this.useExample();
  }

  /** Show what a link has set. */
  open() {
    this.#suit();
    if (!this.#hasOwnText) this.useExample();
  }

  /** Fill in the example text of the task. */
  useExample() {
    return this.#guarded(async () => {
      const { file } = DEFAULTS[/** @type {"new" | "lora"} */ (textFields.task.value)];
      page.text.value = await fetchText(new URL(`texts/${file}`, import.meta.url));
      this.#hasOwnText = false;
      this.#count();
    });
  }

  /** Use the text of a file. @param {File} file */
  takeFile(file) {
    return this.#guarded(async () => {
      this.#take(await readText(file));
      this.view.status.remark(`${file.name} is the text now. Train starts a new model.`);
    });
  }

  /** Use a text of the user's. @param {string} text */
  #take(text) {
    page.text.value = text;
    this.#hasOwnText = true;
    this.#count();
  }

  #count() {
    page.hint.textContent = `${page.text.value.length.toLocaleString("en")} characters. The text stays in this tab, even when you share a link.`;
  }

  /** Train until paused: the model so far, or a new one if a setting or the text has changed. */
  train() {
    if (this.#training.run) return this.view.status.remark("Training is already running.");
    const run = {};
    this.#training.run = run;
    this.view.status.say("Training starts when Python is ready.");
    this.#ended = this.#ended.then(() => this.#train(run, "configure"));
  }

  /** Train a new model with the settings of the form. */
  async reset() {
    const wasRunning = this.#training.run !== null;
    this.#training.run = null;
    await this.#ended;
    if (wasRunning && !this.#training.run) {
      const run = (this.#training.run = {});
      this.#ended = this.#train(run, "reset");
    } else if (await this.#guarded(() => this.#begin("reset"))) this.#showState();
  }

  /** @param {object} run @param {"configure" | "reset"} method */
  async #train(run, method) {
    this.view.problems.hide();
    try {
      await this.#begin(method);
      if (this.#training.run === run) this.view.status.say("Training.");
      document.body.classList.add("burning");
      while (this.#training.run === run) await this.#advance();
      if (!this.#samples.has(this.#steps)) await this.#sample();
      page.code.textContent = await this.#call("script");
    } catch (error) {
      if (!this.#training.run || this.#training.run === run) this.view.status.say("Training has ended.");
      this.view.problems.show(error);
    } finally {
      if (!this.#training.run || this.#training.run === run) {
        this.#training.run = null;
        document.body.classList.remove("burning");
      }
    }
  }

  async pause() {
    this.#training.run = null;
    this.view.status.say("Pausing.");
    expectAnswer(this.#runtime, this.view.problems, () => location.reload());
    await this.#ended;
    if (!this.#training.run && this.#hasModel) this.#showState();
  }

  /** Stop when the user leaves the tab. */
  leave() {
    if (this.#training.run) this.pause();
  }

  #showState() {
    this.view.status.say(this.#steps ? `Paused after ${this.#steps.toLocaleString("en")} steps.` : "The model is new. Press Train.");
  }

  /** Send the form to Python. @param {"configure" | "reset"} method */
  async #begin(method) {
    const settings = readSettings();
    await this.#started;
    const description = await this.#call(method, settings);
    page.code.textContent = description.code;
    if (!description.new) return;
    this.#hasModel = true;
    this.#steps = 0;
    this.#curve.clear();
    this.#samples.clear();
    for (const name of ["Loss", "Test: loss", "Speed"]) this.#figures.show(name, "–");
    this.#figures.show("Steps", "0");
    this.#figures.show("Parameters", description.parameters.toLocaleString("en"));
    this.#figures.show("Trained", description.trained.toLocaleString("en"));
    this.#figures.show("Vocabulary", description.vocabulary.toLocaleString("en"));
    this.#showValidation(description.validation);
    await this.#sample();
  }

  async #advance() {
    const { losses, steps, seconds, tokens, validation } = await this.#call("advance", { seconds: SLICE_S });
    this.#steps = steps;
    this.#curve.add(losses);
    this.#figures.show("Steps", steps.toLocaleString("en"));
    this.#figures.show("Loss", losses[losses.length - 1].toFixed(4));
    this.#figures.show("Speed", `${Math.round(tokens / seconds).toLocaleString("en")} tokens/s`);
    this.#showValidation(validation);
    this.#curve.draw();
    if (this.#samples.isDue(steps)) await this.#sample();
  }

  /** @param {number} loss  -1 without test */
  #showValidation(loss) {
    if (loss < 0) return;
    this.#curve.addTestLoss(loss);
    this.#figures.show("Test: loss", loss.toFixed(4));
    this.#curve.draw();
  }

  /** Show what the model writes now. */
  async #sample() {
    const { text } = await this.#call("sample", { prompt: "", ...SAMPLE });
    this.#samples.add(this.#steps, text);
  }

  /** Continue the user's prompt. */
  generate() {
    return this.#guarded(async () => {
      await this.#started;
      const prompt = textFields.prompt.value;
      const seed = Math.floor(1e9 * Math.random());
      const { text, unknown } = await this.#call("sample", { prompt, ...SAMPLE, seed });
      const start = document.createElement("b");
      start.textContent = prompt;
      page.output.replaceChildren(start, text);
      if (unknown) this.view.status.remark(`The model does not know ${[...unknown].map((letter) => `“${letter}”`).join(", ")}, and read the prompt without.`);
    });
  }

  /** Save the weights, or the adapter. */
  export() {
    return this.#guarded(async () => {
      await this.#started;
      const { name, bytes } = await this.#call("export");
      save(name, bytes);
      const use = name.endsWith(".zip") ? "unpack it for PeftModel.from_pretrained, here or in peft" : "tl.load reads it";
      this.view.status.remark(`Saved ${name}, ${bytes.length.toLocaleString("en")} bytes: ${use}.`);
    });
  }

  /** Continue with the weights of a file. @param {File} file */
  async import(file) {
    this.#training.run = null;
    await this.#ended;
    let isDone = false;
    await this.#guarded(async () => {
      await this.#started;
      const onProgress = this.view.progress.show.bind(this.view.progress);
      try {
        const { info } = await this.#runtime.load({ "text weights": { file } }, { onProgress });
        textFields.task.value = "new";
        textFields.width.value = String(info.width);
        textFields.layers.value = String(info.layers);
        textFields.context.value = String(info.context);
        this.#suit();
      } finally {
        this.view.progress.hide();
      }
      await this.#begin("configure");
      isDone = true;
    });
    if (isDone) this.view.status.say(`The model has the weights of ${file.name}. Press Train.`);
  }

  copy() {
    return copyText(page.code.textContent ?? "", this.view.status, "The script was copied.");
  }

  /** Call a method of words.py. @param {string} method @param {Record<string, unknown>} [keywords] */
  #call(method, keywords = {}) {
    return this.#runtime.call("words", { method, keywords });
  }

  /** Run an action and show its error, if any. @param {() => Promise<unknown>} action @returns {Promise<boolean>}  whether it succeeded */
  async #guarded(action) {
    this.view.problems.hide();
    try {
      await action();
      return true;
    } catch (error) {
      this.view.problems.show(error);
      return false;
    }
  }
}

function readSettings() {
  return {
    task: textFields.task.value,
    text: page.text.value.toWellFormed(), // half a character, as a cut emoji, is no text for Python
    width: Number(textFields.width.value),
    layers: readNumber(textFields.layers, { whole: true }),
    context: Number(textFields.context.value),
    rank: readNumber(textFields.rank, { whole: true }),
    lr: readNumber(textFields.lr, { above: 0 }),
    batch_size: readNumber(textFields.batch, { whole: true }),
    seed: readNumber(textFields.seed, { whole: true }),
  };
}

/** @param {URL} url */
async function fetchText(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url.href} could not be loaded: the server answers ${response.status}.`);
  return response.text();
}
