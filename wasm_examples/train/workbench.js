/** Train one network at a time: runs, settings and files. Python answers calls one after the other, in the order of the calls. */

import { element, expectAnswer, save, showStartFailure } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { CurrentRun } from "./current-run.js";
import { Display } from "./display.js";
import { Drawing } from "./drawing.js";
import { chosenClass, fields, readSettings, showChoices, speed } from "./form.js";

/** @import { PageView } from "../../web/page/page.js" */
/** @import { Source, Started } from "../../web/worker/protocol.js" */
/** @import { Runtime } from "../../web/page/tallow.js" */

// Python trains this long at a time, two frames of a 60 Hz screen; between two slices it takes changed settings.
const SLICE_S = 1 / 30;
// The longest slice, where the user chooses the number of steps.
const SLOW_SLICE_S = 1;
// How often the pictures are redrawn during training.
const VIEW_MS = { points: 80, images: 300 };

export class Workbench {
  #runtime;
  #started;
  #view;
  #training = new CurrentRun(element("pause", HTMLButtonElement));
  #ended = Promise.resolve();
  #viewedAt = -Infinity;
  #isImported = false; // whether the weights came from a file, with no step since
  #hasFiles = false;
  #display = new Display((x, y) => this.addPoint(x, y));
  #drawing = new Drawing(() => this.classify());

  /** @param {Runtime} runtime @param {Promise<Started>} started  when Python runs @param {PageView} view */
  constructor(runtime, started, view) {
    this.#runtime = runtime;
    this.#started = started;
    this.#view = view;
    started.then(
      async (report) => {
        view.progress.hide();
        this.#display.showThreads(report, (count) => this.#runtime.setThreads(count));
        if (await this.configure()) view.status.say(this.#training.run ? "Training." : "Python is ready. Press Train.");
        else if (this.#needsFiles) this.#showState();
        else view.status.say("Python is ready.");
      },
      (error) => showStartFailure(view, error),
    );
  }

  get #needsFiles() {
    return fields.dataset.value === "files" && !this.#hasFiles;
  }

  /** Set the status line to the state of the network. */
  #showState() {
    const { status } = this.#view;
    const { steps } = this.#display;
    if (this.#needsFiles) status.say("Choose a file of images and its file of labels, or drop both on the page.");
    else if (this.#training.run) status.say("Training.");
    else if (steps) status.say(`Paused after ${steps.toLocaleString("en")} ${steps === 1 ? "step" : "steps"}.`);
    else status.say(`The network ${this.#isImported ? "has the weights of a file" : "is new"}. Press Train.`);
  }

  /** Apply a change of the form. */
  async change() {
    if ((await this.configure()) || this.#needsFiles) this.#showState();
  }

  /** Send the settings of the form to Python. @returns {Promise<boolean>}  whether Python accepted them */
  async configure() {
    showChoices();
    if (this.#needsFiles) {
      this.#training.run = null;
      return false;
    }
    return this.#guarded(async () => {
      const settings = readSettings();
      await this.#started;
      await this.#show(await this.#runtime.call("configure", settings));
    });
  }

  /** Train a new network with the settings of the form. */
  async begin() {
    if (this.#display.isFilled) await this.reset();
    this.train();
  }

  /** Train until paused. */
  train() {
    if (this.#training.run) return this.#view.status.remark("Training is already running.");
    const run = {};
    this.#training.run = run;
    this.#view.status.say("Training starts when Python is ready.");
    this.#ended = this.#train(run);
  }

  /** @param {object} run */
  async #train(run) {
    const { status, problems } = this.#view;
    try {
      await this.#started;
      if (!(await this.configure())) {
        if (!this.#training.run || this.#training.run === run) this.#training.run = null;
        return this.#showState();
      }
      if (this.#training.run === run) status.say("Training.");
      document.body.classList.add("burning");
      while (this.#training.run === run) {
        const steps = Number(speed.value) || null;
        await this.#advance(steps ? SLOW_SLICE_S : SLICE_S, steps);
      }
    } catch (error) {
      status.say("Training has ended.");
      problems.show(error);
    } finally {
      if (!this.#training.run || this.#training.run === run) {
        this.#training.run = null;
        document.body.classList.remove("burning");
      }
      if (this.#display.isFilled) await this.#showPresent();
    }
  }

  async pause() {
    this.#training.run = null;
    this.#view.status.say("Pausing.");
    expectAnswer(this.#runtime, this.#view.problems, () => location.reload());
    await this.#ended; // after the slice that Python computes
    if (!this.#training.run) this.#showState();
  }

  /** Stop when the user leaves the tab. */
  leave() {
    if (this.#training.run) this.pause();
  }

  /** Train on one batch. */
  async step() {
    this.#training.run = null;
    const done = (await this.configure()) && (await this.#guarded(() => this.#advance(0)));
    if (done) this.#view.status.say(`Step ${this.#display.steps.toLocaleString("en")}.`);
    else this.#showState();
  }

  /** Restore the network to its state before the first step. */
  async reset() {
    this.#training.run = null;
    const done = await this.#guarded(async () => {
      await this.#started;
      if (this.#display.isFilled) await this.#show(await this.#runtime.call("reset"));
    });
    if (done) this.#showState();
  }

  /** @param {number} x @param {number} y */
  addPoint(x, y) {
    if (fields.dataset.value !== "own" || !this.#display.isFilled) return;
    return this.#guarded(async () => this.#show(await this.#runtime.call("add_point", { x, y, label: chosenClass() })));
  }

  async clearPoints() {
    this.#training.run = null;
    if (await this.#guarded(async () => this.#show(await this.#runtime.call("clear_points")))) this.#showState();
  }

  /** Show the network's prediction for the drawing. */
  classify() {
    return this.#guarded(() => this.#classify());
  }

  clearPad() {
    this.#drawing.clear();
  }

  /** @param {boolean} logarithmic */
  scale(logarithmic) {
    this.#display.scale(logarithmic);
  }

  /** Save the weights as a file. */
  export() {
    return this.#guarded(async () => {
      await this.#started;
      const bytes = await this.#runtime.call("export");
      save("weights.safetensors", bytes);
      this.#view.status.remark(`Saved weights.safetensors, ${bytes.length.toLocaleString("en")} bytes: tl.load reads it.`);
    });
  }

  /** Continue with the weights in a file. @param {File} file */
  async import(file) {
    const { status } = this.#view;
    let isDone = false;
    await this.#guarded(async () => {
      if (!(await this.configure())) return;
      status.say(`Reading ${file.name}.`);
      await this.#load({ weights: { file } });
      await this.#show({ ...(await this.#runtime.call("configure", readSettings())), new: true });
      this.#isImported = true;
      isDone = true;
    });
    this.#showState();
    if (isDone) status.remark(`The network has the weights of ${file.name}.`);
  }

  /** Train on images and labels. @param {File[]} files */
  async takeData(files) {
    let summary = "";
    await this.#guarded(async () => {
      if (files.length !== 2) {
        const subject = files.length === 1 ? `${files[0].name} alone is` : `${files.length} files are`;
        throw new Problem("TwoFiles", `${subject} not a dataset.`, "Choose two files together: images and their labels. Weights are in one file, which ends in .safetensors.");
      }
      this.#view.status.say("Reading the files.");
      await this.#started;
      const { info } = await this.#load(Object.fromEntries(files.map((file) => [file.name, { file }])));
      this.#hasFiles = true;
      fields.dataset.value = "files";
      fields.network.value = "cnn";
      if (await this.configure()) summary = `${info.examples.toLocaleString("en")} images of ${info.names[0]}. Press Train.`;
    });
    if (summary) this.#view.status.say(summary);
    else this.#showState();
  }

  /** @param {Record<string, Source>} sources */
  async #load(sources) {
    const { progress } = this.#view;
    try {
      return await this.#runtime.load(sources, { onProgress: (report) => progress.show(report) });
    } finally {
      progress.hide();
    }
  }

  /**
   * Train, and draw what follows from it when it is time.
   * @param {number} seconds @param {number | null} [steps]  between two pictures; null for as many as there is time for
   */
  async #advance(seconds, steps = null) {
    const run = this.#training.run;
    this.#display.report(await this.#runtime.call("advance", { seconds, ...(steps && { steps }) }));
    const pause = VIEW_MS[this.#display.hasImages ? "images" : "points"];
    const left = this.#viewedAt + pause - performance.now();
    if (steps !== null && run && left > 0) await new Promise((resolve) => setTimeout(resolve, left));
    if (!this.#training.run || steps !== null || left < 0) await this.#predict();
  }

  /** Show the figures and the predictions of the current weights: those shown may be of some steps before. */
  async #showPresent() {
    this.#display.evaluate(await this.#runtime.call("evaluate"));
    await this.#predict();
  }

  /** Draw the current predictions. */
  async #predict() {
    this.#viewedAt = performance.now();
    this.#display.predict(await this.#runtime.call("view"), !this.#training.run);
    if (this.#display.hasImages && this.#drawing.strokes.length) await this.#classify();
  }

  async #classify() {
    await this.#started;
    this.#drawing.show(await this.#runtime.call("classify", { strokes: this.#drawing.strokes }));
  }

  /** @param {import("./display.js").Description} description */
  async #show(description) {
    if (description.new) this.#isImported = false;
    this.#display.describe(description);
    await this.#predict();
  }

  /** Run an action and show its error, if any. @param {() => Promise<unknown>} action @returns {Promise<boolean>}  whether it succeeded */
  async #guarded(action) {
    this.#view.problems.hide();
    try {
      await action();
      return true;
    } catch (error) {
      this.#view.problems.show(error);
      return false;
    }
  }
}
