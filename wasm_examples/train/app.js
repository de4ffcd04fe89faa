import { showInk } from "../../web/canvas.js";
import { isolate } from "../../web/isolation.js";
import { Figures, element, onDrop, onSubmit, pageView, readNumber, save, showStartFailure } from "../../web/page.js";
import { Problem } from "../../web/protocol.js";
import { ShareLink } from "../../web/share.js";
import { Runtime } from "../../web/tallow.js";
import { LossCurve } from "./curve.js";
import { Pad } from "./pad.js";
import { Plane } from "./plane.js";
import { showPresets } from "./presets.js";
import { Samples } from "./samples.js";

/** @import { Source } from "../../web/protocol.js" */
/** @typedef {{ loss: number, accuracy: number, train_accuracy: number } | null} Evaluation */
/** @typedef {{ losses: Float32Array, steps: number, epochs: number, seconds: number, evaluation: Evaluation }} Report */
/**
 * The data and the network, as app.py describes them. The other fields are the arguments of Plane and Samples.
 * @typedef {{ new: boolean, images: boolean, parameters: number, examples: [number, number], steps: number,
 *   evaluation: Evaluation, code: string, kernels: string } & Record<string, any>} Description
 */

// Python trains this long at a time, two frames of a 60 Hz screen; between two slices it takes changed settings.
const SLICE_S = 1 / 30;
// How often the pictures are redrawn during training.
const VIEW_MS = { points: 80, images: 300 };
const MODULES = ["datasets.py", "digits.py", "files.py", "points.py", "script.py", "settings.py", "training.py"];

const page = {
  dataset: element("dataset", HTMLSelectElement),
  noise: element("noise", HTMLInputElement),
  clearPoints: element("clear-points", HTMLButtonElement),
  dataFiles: element("data-files", HTMLInputElement),
  dataHint: element("data-hint", HTMLElement),
  network: element("network", HTMLSelectElement),
  activation: element("activation", HTMLSelectElement),
  hidden: element("hidden", HTMLInputElement),
  settings: element("settings", HTMLFormElement),
  optimizer: element("optimizer", HTMLSelectElement),
  lr: element("lr", HTMLInputElement),
  batchSize: element("batch-size", HTMLInputElement),
  weightDecay: element("weight-decay", HTMLInputElement),
  seed: element("seed", HTMLInputElement),
  export: element("export", HTMLButtonElement),
  import: element("import", HTMLInputElement),
  train: element("train", HTMLButtonElement),
  pause: element("pause", HTMLButtonElement),
  step: element("step", HTMLButtonElement),
  reset: element("reset", HTMLButtonElement),
  boundary: element("boundary", HTMLCanvasElement),
  logarithmic: element("logarithmic", HTMLInputElement),
  prediction: element("prediction", HTMLElement),
  probabilities: element("probabilities", HTMLElement),
  classify: element("classify", HTMLButtonElement),
  clearPad: element("clear-pad", HTMLButtonElement),
  seen: element("seen", HTMLCanvasElement),
  copy: element("copy", HTMLButtonElement),
  code: element("code", HTMLElement),
  share: element("share", HTMLButtonElement),
  shareNote: element("share-note", HTMLElement),
};
const view = pageView();
const { status, problems, progress } = view;
const FIGURES = ["Epochs", "Steps", "Loss", "Test: loss", "Test: accuracy", "Training: accuracy", "Speed", "Parameters", "Kernels", "Threads"];

/** Trains one network at a time. Python answers calls one after the other, in the order of the calls. */
class Workbench {
  #runtime = Runtime.create();
  /** @type {Promise<void>} */
  #started;
  /** @type {object | null}  identifies the current run; null while paused */
  #run = null;
  #ended = Promise.resolve();
  /** @type {Description | null} */
  #description = null;
  #viewedAt = -Infinity;
  #steps = 0;
  #isImported = false; // whether the weights came from a file, with no step since
  #hasFiles = false;
  #figures = new Figures(element("stats", HTMLElement), FIGURES);
  #curve = new LossCurve(element("loss-curve", HTMLCanvasElement));
  #plane = new Plane(page.boundary, (x, y) => this.addPoint(x, y));
  #samples = new Samples(element("predictions", HTMLElement));
  #pad = new Pad(element("draw-pad", HTMLCanvasElement), () => this.classify());

  constructor() {
    const modules = MODULES.map((name) => new URL(name, import.meta.url));
    const onProgress = progress.show.bind(progress);
    this.#started = this.#runtime.start(new URL("app.py", import.meta.url), { modules, onProgress }).then((started) => {
      this.#figures.showThreads(started, (count) => this.#runtime.setThreads(count));
    });
    this.#started.then(
      async () => {
        progress.hide();
        if (await this.configure()) status.say(this.#run ? "Training." : "Python is ready. Press Train.");
        else if (this.#needsFiles) this.#showState();
        else status.say("Python is ready.");
      },
      (error) => showStartFailure(view, error),
    );
  }

  get #needsFiles() {
    return page.dataset.value === "files" && !this.#hasFiles;
  }

  /** Set the status line to the state of the network. */
  #showState() {
    if (this.#needsFiles) status.say("Choose a file of images and its file of labels, or drop both on the page.");
    else if (this.#run) status.say("Training.");
    else if (this.#steps) status.say(`Paused after ${this.#steps.toLocaleString("en")} ${this.#steps === 1 ? "step" : "steps"}.`);
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
      this.#run = null;
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
    if (this.#description) await this.reset();
    this.train();
  }

  /** Train until paused. */
  train() {
    if (this.#run) return status.remark("Training is already running.");
    const run = {};
    this.#run = run;
    status.say("Training starts when Python is ready.");
    this.#ended = this.#train(run);
  }

  /** @param {object} run */
  async #train(run) {
    try {
      await this.#started;
      if (!(await this.configure())) {
        if (!this.#run || this.#run === run) this.#run = null;
        return this.#showState();
      }
      if (this.#run === run) status.say("Training.");
      document.body.classList.add("burning");
      while (this.#run === run) await this.#advance(SLICE_S);
    } catch (error) {
      status.say("Training has ended.");
      problems.show(error);
    } finally {
      if (!this.#run || this.#run === run) {
        this.#run = null;
        document.body.classList.remove("burning");
      }
      if (this.#description) await this.#showPresent();
    }
  }

  async pause() {
    if (!this.#run) return status.remark("Nothing is running.");
    this.#run = null;
    status.say("Pausing.");
    await this.#ended; // after the slice that Python computes
    if (!this.#run) this.#showState();
  }

  /** Train on one batch. */
  async step() {
    this.#run = null;
    const done = (await this.configure()) && (await this.#guarded(() => this.#advance(0)));
    if (done) status.say(`Step ${this.#steps.toLocaleString("en")}.`);
    else this.#showState();
  }

  /** Restore the network to its state before the first step. */
  async reset() {
    this.#run = null;
    const done = await this.#guarded(async () => {
      await this.#started;
      if (this.#description) await this.#show(await this.#runtime.call("reset"));
    });
    if (done) this.#showState();
  }

  /** @param {number} x @param {number} y */
  addPoint(x, y) {
    if (page.dataset.value !== "own" || !this.#description) return;
    const { value } = /** @type {HTMLInputElement} */ (document.querySelector("input[name=class]:checked"));
    return this.#guarded(async () => {
      await this.#show(await this.#runtime.call("add_point", { x, y, label: Number(value) }));
    });
  }

  async clearPoints() {
    this.#run = null;
    if (await this.#guarded(async () => this.#show(await this.#runtime.call("clear_points")))) this.#showState();
  }

  /** Show the network's prediction for the drawing. */
  classify() {
    return this.#guarded(() => this.#classify());
  }

  clearPad() {
    this.#pad.clear();
    page.prediction.textContent = "Draw a digit from 0 to 9.";
    page.probabilities.replaceChildren();
    showInk(page.seen, new Uint8Array(), 28);
  }

  /** @param {boolean} logarithmic */
  scale(logarithmic) {
    this.#curve.scale(logarithmic);
  }

  /** Save the weights as a file. */
  export() {
    return this.#guarded(async () => {
      await this.#started;
      const bytes = await this.#runtime.call("export");
      save("weights.safetensors", bytes);
      status.remark(`Saved weights.safetensors, ${bytes.length.toLocaleString("en")} bytes: tl.load reads it.`);
    });
  }

  /** Continue with the weights in a file. @param {File} file */
  async import(file) {
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
      status.say("Reading the files.");
      await this.#started;
      const { info } = await this.#load(Object.fromEntries(files.map((file) => [file.name, { file }])));
      this.#hasFiles = true;
      page.dataset.value = "files";
      page.network.value = "cnn";
      if (await this.configure()) summary = `${info.examples.toLocaleString("en")} images of ${info.names[0]}. Press Train.`;
    });
    if (summary) status.say(summary);
    else this.#showState();
  }

  /** @param {Record<string, Source>} sources */
  async #load(sources) {
    try {
      return await this.#runtime.load(sources, { onProgress: (report) => progress.show(report) });
    } finally {
      progress.hide();
    }
  }

  /** @param {number} seconds */
  async #advance(seconds) {
    /** @type {Report} */
    const { losses, steps, epochs, seconds: duration, evaluation } = await this.#runtime.call("advance", { seconds });
    this.#curve.add(losses);
    this.#showCounts(steps, epochs);
    this.#figures.show("Loss", short(losses[losses.length - 1]));
    this.#figures.show("Speed", `${Math.round(losses.length / duration)} steps/s`);
    if (evaluation) this.#showEvaluation(evaluation);
    this.#curve.draw();
    const pause = VIEW_MS[this.#description?.images ? "images" : "points"];
    if (!this.#run || performance.now() - this.#viewedAt > pause) await this.#view();
  }

  /** Show the figures and the predictions of the current weights: those shown may be of some steps before. */
  async #showPresent() {
    /** @type {Evaluation} */
    const evaluation = await this.#runtime.call("evaluate");
    if (evaluation) this.#showEvaluation(evaluation);
    this.#curve.draw();
    await this.#view();
  }

  /** Draw the current predictions. */
  async #view() {
    this.#viewedAt = performance.now();
    const { classes, confidence } = await this.#runtime.call("view");
    if (!this.#description?.images) return this.#plane.setField({ classes, confidence });
    this.#samples.setPredictions(classes, confidence);
    if (this.#pad.strokes.length) await this.#classify();
  }

  async #classify() {
    await this.#started;
    const { pixels, probabilities } = await this.#runtime.call("classify", { strokes: this.#pad.strokes });
    showInk(page.seen, pixels, 28);
    const best = probabilities.indexOf(Math.max(...probabilities));
    page.prediction.textContent = `Prediction: ${best}, ${Math.round(100 * probabilities[best])}%.`;
    page.probabilities.replaceChildren(
      ...[...probabilities].map((probability, digit) => {
        const item = document.createElement("li");
        const bar = document.createElement("i");
        bar.style.height = `${100 * probability}%`;
        item.title = `${digit}: ${(100 * probability).toFixed(1)}%`;
        item.append(bar, String(digit));
        return item;
      }),
    );
  }

  /** @param {Description} description */
  async #show(description) {
    this.#description = description;
    page.code.textContent = description.code;
    const [train, test] = description.examples;
    page.dataHint.textContent =
      page.dataset.value === "own"
        ? `${train} points, too few for a test set: all are in the training set.`
        : `${train.toLocaleString("en")} training examples, ${test.toLocaleString("en")} test examples.`;
    this.#figures.show("Parameters", description.parameters.toLocaleString("en"));
    this.#figures.show("Kernels", description.kernels);
    showFor(description.images ? "images" : "points");
    if (description.images) this.#samples.setImages(description.pixels, description.labels);
    else this.#plane.setPoints(/** @type {any} */ (description));
    if (description.new) {
      this.#isImported = false;
      this.#curve.clear();
      this.#showCounts(0, 0);
      for (const name of ["Loss", "Speed"]) this.#figures.show(name, "–");
    }
    if (description.evaluation) this.#showEvaluation(description.evaluation);
    await this.#view();
  }

  /** @param {number} steps @param {number} epochs */
  #showCounts(steps, epochs) {
    this.#steps = steps;
    this.#figures.show("Steps", steps.toLocaleString("en"));
    this.#figures.show("Epochs", epochs.toLocaleString("en"));
  }

  /** @param {NonNullable<Evaluation>} evaluation */
  #showEvaluation({ loss, accuracy, train_accuracy }) {
    this.#curve.addTestLoss(loss);
    this.#figures.show("Test: loss", short(loss));
    this.#figures.show("Test: accuracy", `${(100 * accuracy).toFixed(1)}%`);
    this.#figures.show("Training: accuracy", `${(100 * train_accuracy).toFixed(1)}%`);
  }

  /** Run an action and show its error, if any. @param {() => Promise<unknown>} action @returns {Promise<boolean>}  whether it succeeded */
  async #guarded(action) {
    problems.hide();
    try {
      await action();
      return true;
    } catch (error) {
      problems.show(error);
      return false;
    }
  }
}

function readSettings() {
  return {
    dataset: page.dataset.value,
    noise: page.noise.valueAsNumber,
    seed: readNumber(page.seed, { whole: true }),
    network: page.network.value,
    hidden: page.hidden.value,
    activation: page.activation.value,
    optimizer: page.optimizer.value,
    lr: readNumber(page.lr),
    weight_decay: readNumber(page.weightDecay),
    batch_size: readNumber(page.batchSize, { whole: true }),
  };
}

/** @param {number} loss */
function short(loss) {
  return loss < 1e4 ? loss.toFixed(4) : loss.toExponential(2);
}

/** Show the controls that the chosen dataset has. */
function showChoices() {
  const { value } = page.dataset;
  const kind = ["own", "files", "digits"].includes(value) ? value : "shape";
  for (const control of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".choose [data-for]"))) {
    control.hidden = control.dataset.for !== kind;
  }
  page.boundary.classList.toggle("picked", kind === "own");
  page.network.disabled = kind === "shape" || kind === "own";
  if (page.network.disabled) page.network.value = "mlp";
}

/** Show the parts of the page for points, or for images. @param {"points" | "images"} kind */
function showFor(kind) {
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".middle [data-for]"))) {
    part.hidden = part.dataset.for !== kind;
  }
}

/** @param {Workbench} workbench */
function listen(workbench) {
  page.train.onclick = () => workbench.train();
  page.pause.onclick = () => workbench.pause();
  page.step.onclick = () => workbench.step();
  page.reset.onclick = () => workbench.reset();
  onSubmit(page.settings, () => {}); // the fields have handlers of their own
  page.dataset.onchange = () => {
    // Convolutions suit images only.
    page.network.value = ["digits", "files"].includes(page.dataset.value) ? "cnn" : "mlp";
    workbench.change();
  };
  const others = [page.noise, page.network, page.activation, page.hidden, page.optimizer, page.lr, page.batchSize];
  for (const control of [...others, page.weightDecay, page.seed]) control.onchange = () => workbench.change();
  showPresets(element("presets", HTMLElement), () => workbench.begin());
  page.clearPoints.onclick = () => workbench.clearPoints();
  page.classify.onclick = () => workbench.classify();
  page.clearPad.onclick = () => workbench.clearPad();
  page.logarithmic.onchange = () => workbench.scale(page.logarithmic.checked);
  page.export.onclick = () => workbench.export();
  page.import.onchange = () => {
    const file = page.import.files?.[0];
    if (file) workbench.import(file);
  };
  page.dataFiles.onchange = () => workbench.takeData([...(page.dataFiles.files ?? [])]);
  for (const input of [page.import, page.dataFiles]) {
    input.onclick = () => (input.value = ""); // otherwise, choosing the same file again would not be a change
  }
  page.copy.onclick = async () => {
    await navigator.clipboard.writeText(page.code.textContent ?? "");
    status.remark("The script was copied.");
  };
  onDrop(element("drop", HTMLElement), (files) => {
    if (files.length === 1 && files[0].name.endsWith(".safetensors")) workbench.import(files[0]);
    else workbench.takeData(files);
  });
}

const link = new ShareLink(
  {
    dataset: page.dataset,
    noise: page.noise,
    network: page.network,
    activation: page.activation,
    hidden: page.hidden,
    optimizer: page.optimizer,
    learning_rate: page.lr,
    batch_size: page.batchSize,
    weight_decay: page.weightDecay,
    seed: page.seed,
  },
  { button: page.share, note: page.shareNote },
);
showChoices();
const workbench = new Workbench();
link.onOpen = () => workbench.change();
listen(workbench);
isolate();
