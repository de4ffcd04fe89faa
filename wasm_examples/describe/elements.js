/** The elements of the page that more than one of its modules uses, and the view that shows its state. */

import { Figures, element, pageView } from "../../web/page/page.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";

/** @import { ModelView } from "../../web/page/model-page.js" */

export const page = {
  camera: element("camera", HTMLButtonElement),
  view: element("view", HTMLCanvasElement),
  rate: element("rate", HTMLElement),
  pictureFile: element("picture-file", HTMLInputElement),
  askForm: element("ask-form", HTMLFormElement),
  textLabel: element("text-label", HTMLElement),
  text: element("text", HTMLInputElement),
  stop: element("stop", HTMLButtonElement),
  log: element("log", HTMLOListElement),
  steps: element("steps", HTMLInputElement),
  temperature: element("temperature", HTMLInputElement),
  temperatureShown: element("temperature-shown", HTMLOutputElement),
  share: element("share", HTMLButtonElement),
  shareNote: element("share-note", HTMLElement),
  choices: element("choices", HTMLDetailsElement),
  presets: element("presets", HTMLElement),
  modelForm: element("model-form", HTMLFormElement),
  modelId: element("model-id", HTMLInputElement),
  modelFiles: element("model-files", HTMLInputElement),
  modelFolder: element("model-folder", HTMLInputElement),
};

/** @type {ModelView} */
export const view = {
  ...pageView(),
  stop: page.stop,
  modelName: element("model-name", HTMLElement),
  noModel: "No model. Choose one.",
  figures: new Figures(element("stats", HTMLElement), ["Picture", "Speed", "Weights", "Kernels", "Threads"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement)),
};
