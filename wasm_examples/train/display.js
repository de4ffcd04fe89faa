/** What the page shows of the data and the network: figures, curves and predictions. */

import { Figures, element } from "../../web/page/page.js";
import { AccuracyCurve, LossCurve } from "./curve.js";
import { Diagram } from "./diagram.js";
import { fields } from "./form.js";
import { Confusion, Gallery } from "./mistakes.js";
import { Plane } from "./plane.js";
import { Samples } from "./samples.js";

/** @import { Started } from "../../web/worker/protocol.js" */
/** @import { Network } from "./diagram.js" */
/** @import { Mistakes } from "./mistakes.js" */
/** @import { Field } from "./plane.js" */
/** @typedef {{ loss: number, accuracy: number, train_accuracy: number }} Evaluation */
/** @typedef {Field & { diagram: Network, confusion: Uint32Array, mistakes: Mistakes }} Predictions  `diagram` for points only, the last two for images only */
/** @typedef {{ losses: Float32Array, steps: number, epochs: number, seconds: number, evaluation: Evaluation | null }} Report */
/**
 * The data and the network, as app.py describes them. The other fields are those of Points, or the images and their labels.
 * @typedef {{ new: boolean, images: boolean, parameters: number, examples: [number, number], steps: number,
 *   evaluation: Evaluation | null, code: string, kernels: string } & Record<string, any>} Description
 */

const FIGURES = ["Epochs", "Steps", "Loss", "Test: loss", "Test: accuracy", "Training: accuracy", "Speed", "Parameters", "Kernels", "Threads"];

export class Display {
  steps = 0;
  /** @type {Description | null} */
  #description = null;
  #figures = new Figures(element("stats", HTMLElement), FIGURES);
  #curve = new LossCurve(element("loss-curve", HTMLCanvasElement));
  #accuracy = new AccuracyCurve(element("accuracy-curve", HTMLCanvasElement));
  #samples = new Samples(element("predictions", HTMLElement));
  #confusion = new Confusion(element("confusion", HTMLTableElement), element("confusion-summary", HTMLElement));
  #gallery = new Gallery(element("mistakes", HTMLElement), element("mistakes-summary", HTMLElement));
  #diagram = new Diagram(element("diagram", HTMLCanvasElement), element("diagram-words", HTMLElement));
  #plane;
  #code = element("code", HTMLElement);
  #dataHint = element("data-hint", HTMLElement);

  /** @param {(x: number, y: number) => void} onPick  called with the coordinates of a click on the plane */
  constructor(onPick) {
    this.#plane = new Plane(element("boundary", HTMLCanvasElement), onPick);
  }

  /** Whether there is a network. */
  get isFilled() {
    return this.#description !== null;
  }

  get hasImages() {
    return this.#description?.images ?? false;
  }

  /** @param {Started} started @param {(count: number) => void} onChoose */
  showThreads(started, onChoose) {
    this.#figures.showThreads(started, onChoose);
  }

  /** Set the scale of the loss axis. @param {boolean} logarithmic */
  scale(logarithmic) {
    this.#curve.scale(logarithmic);
  }

  /** @param {Description} description */
  describe(description) {
    this.#description = description;
    this.#code.textContent = description.code;
    const [train, test] = description.examples;
    this.#dataHint.textContent =
      fields.dataset.value === "own"
        ? `${train} points, too few for a test set: all are in the training set.`
        : `${train.toLocaleString("en")} training examples, ${test.toLocaleString("en")} test examples.`;
    this.#figures.show("Parameters", description.parameters.toLocaleString("en"));
    this.#figures.show("Kernels", description.kernels);
    showFor(description.images ? "images" : "points");
    if (description.images) this.#samples.setImages(description.pixels, description.labels);
    else this.#plane.setPoints(/** @type {any} */ (description));
    if (description.new) {
      this.#curve.clear();
      this.#accuracy.clear();
      this.#showCounts(0, 0);
      for (const name of ["Loss", "Speed"]) this.#figures.show(name, "–");
    }
    this.evaluate(description.evaluation);
  }

  /** Show steps of training. @param {Report} report */
  report({ losses, steps, epochs, seconds, evaluation }) {
    this.#curve.add(losses);
    this.#showCounts(steps, epochs);
    this.#figures.show("Loss", short(losses[losses.length - 1]));
    this.#figures.show("Speed", `${Math.round(losses.length / seconds)} steps/s`);
    this.evaluate(evaluation);
    this.#curve.draw();
  }

  /** @param {Evaluation | null} evaluation */
  evaluate(evaluation) {
    if (!evaluation) return;
    const { loss, accuracy, train_accuracy } = evaluation;
    this.#curve.addTestLoss(loss);
    this.#accuracy.add(this.steps, { training: train_accuracy, test: accuracy });
    this.#figures.show("Test: loss", short(loss));
    this.#figures.show("Test: accuracy", percent(accuracy));
    this.#figures.show("Training: accuracy", percent(train_accuracy));
    this.#curve.draw();
    this.#accuracy.draw();
  }

  /** Show the network's predictions of the plane or of test images. @param {Predictions} predictions @param {boolean} isFinal  whether no others follow soon */
  predict(predictions, isFinal) {
    if (this.hasImages) {
      this.#samples.setPredictions(predictions.classes, predictions.confidence);
      this.#confusion.set(predictions.confusion);
      this.#gallery.set(predictions.mistakes);
    } else {
      this.#plane.setField(predictions);
      this.#diagram.set(predictions.diagram, isFinal);
    }
  }

  /** @param {number} steps @param {number} epochs */
  #showCounts(steps, epochs) {
    this.steps = steps;
    this.#figures.show("Steps", steps.toLocaleString("en"));
    this.#figures.show("Epochs", epochs.toLocaleString("en"));
  }
}

/** Show the parts of the page for points, or for images. @param {"points" | "images"} kind */
function showFor(kind) {
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".middle [data-for]"))) {
    part.hidden = part.dataset.for !== kind;
  }
}

/** @param {number} loss */
function short(loss) {
  return loss < 1e4 ? loss.toFixed(4) : loss.toExponential(2);
}

/** @param {number} share */
function percent(share) {
  return `${(100 * share).toFixed(1)}%`;
}
