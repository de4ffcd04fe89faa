/** The elements of the page that more than one of its modules uses, and the view that shows its state. */

import { Figures, element, pageView } from "../../web/page/page.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";

/** @import { ModelView } from "../../web/page/model-page.js" */

export const page = {
  camera: element("camera", HTMLButtonElement),
  stop: element("stop", HTMLButtonElement),
  view: element("view", HTMLCanvasElement),
  rate: element("rate", HTMLElement),
  pictureFile: element("picture-file", HTMLInputElement),
  look: element("look", HTMLSelectElement),
  detail: element("detail", HTMLSelectElement),
  border: element("border", HTMLInputElement),
  borderShown: element("border-shown", HTMLOutputElement),
  blur: element("blur", HTMLInputElement),
  blurShown: element("blur-shown", HTMLOutputElement),
  levels: element("levels", HTMLSelectElement),
  levelsField: element("levels-field", HTMLElement),
  save: element("save", HTMLButtonElement),
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
  figures: new Figures(element("stats", HTMLElement), ["Depth", "Range", "Map", "Weights", "Kernels", "Threads"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement)),
};
