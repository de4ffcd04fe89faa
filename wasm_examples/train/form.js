/** The form of the page: its settings, and the controls that the chosen dataset has. */

import { element, readNumber } from "../../web/page/page.js";

export const fields = {
  dataset: element("dataset", HTMLSelectElement),
  noise: element("noise", HTMLInputElement),
  network: element("network", HTMLSelectElement),
  activation: element("activation", HTMLSelectElement),
  hidden: element("hidden", HTMLInputElement),
  optimizer: element("optimizer", HTMLSelectElement),
  lr: element("lr", HTMLInputElement),
  batchSize: element("batch-size", HTMLInputElement),
  l1: element("l1", HTMLInputElement),
  weightDecay: element("weight-decay", HTMLInputElement),
  seed: element("seed", HTMLInputElement),
};
/** How many steps are between two pictures; it changes no result. */
export const speed = element("speed", HTMLSelectElement);
const boundary = element("boundary", HTMLCanvasElement);

/** The settings as Python takes them. @throws {Problem} a field has no such number */
export function readSettings() {
  return {
    dataset: fields.dataset.value,
    noise: fields.noise.valueAsNumber,
    seed: readNumber(fields.seed, { whole: true }),
    network: fields.network.value,
    hidden: fields.hidden.value,
    activation: fields.activation.value,
    optimizer: fields.optimizer.value,
    lr: readNumber(fields.lr),
    l1: readNumber(fields.l1),
    weight_decay: readNumber(fields.weightDecay),
    batch_size: readNumber(fields.batchSize, { whole: true }),
  };
}

/** Show the controls that the chosen dataset has. */
export function showChoices() {
  const { value } = fields.dataset;
  const kind = ["own", "files", "digits"].includes(value) ? value : "shape";
  for (const control of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".choose [data-for]"))) {
    control.hidden = control.dataset.for !== kind;
  }
  boundary.classList.toggle("picked", kind === "own");
  fields.network.disabled = kind === "shape" || kind === "own";
  if (fields.network.disabled) fields.network.value = "mlp";
}

/** Choose the kind of network that suits the dataset: convolutions are for images. */
export function suitNetwork() {
  fields.network.value = ["digits", "files"].includes(fields.dataset.value) ? "cnn" : "mlp";
}

/** The class that the user chose for new points. */
export function chosenClass() {
  return Number(/** @type {HTMLInputElement} */ (document.querySelector("input[name=class]:checked")).value);
}
